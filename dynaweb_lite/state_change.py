"""Δ, the change from one page to the next, as an edit script: short, exact, and invertible.

    Tab 0 (current): My Cart | http://shop.test/checkout/cart/     the new header, only where it changed
    = [1] [5]                                                      keep lines 1 to 5 of the old page
    heading 'My Cart'                                              new lines, without ids
    = [9] [11]                                                     keep lines 9 to 11; all others are gone

Ids follow from the order, so they are left out of new lines and counted anew: apply(o, diff(o, o')) == o' always.
The paper describes Δ in free text and applies it in a second step; this form needs no second model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from dynaweb_lite.observation import Element, Observation, ObservationError, number, parse_element, parse_observation

_KEEP = re.compile(r"= \[(\d+)\] \[(\d+)\]")


class StateChangeError(ValueError):
    """The text is no edit script of this page; the message names the line."""


def unnumbered(element: Element) -> str:
    """An element line without its id: tabs and label."""
    return "\t" * element.depth + element.label


def diff(before: Observation, after: Observation) -> str:
    """The edit script that turns one page into the other; an empty string when nothing changes."""
    old, new = [unnumbered(e) for e in before.elements], [unnumbered(e) for e in after.elements]
    lines = [] if before.header_lines == after.header_lines else list(after.header_lines)
    if after.cut and after.cut != before.cut:
        lines.append(after.footer_lines[0])
    if old == new:
        return "\n".join(lines)
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines.append(f"= [{i + 1}] [{j}]")
        else:
            lines += new[k:m]
    return "\n".join(lines) if new else "\n".join([*lines, "= [0] [0]"])


def apply(before: Observation, change: str) -> Observation:
    """The page after the change. Raises StateChangeError naming the first line that cannot be applied."""
    if not change.strip():
        return before.with_error("")
    headers, elements, cut, edited = [], [], "", False
    for line in change.split("\n"):
        if keep := _KEEP.fullmatch(line):
            edited = True
            first, last = int(keep[1]), int(keep[2])
            if (first, last) != (0, 0):
                elements += _kept(before, first, last, line)
        elif line.startswith("Tab ") and not elements:
            headers.append(line)
        elif line.startswith("(cut: "):
            cut = line
        else:
            edited = True
            elements.append(_new_element(line))
    return _assemble(before, headers, elements if edited else list(before.elements), cut)


def _kept(before: Observation, first: int, last: int, line: str) -> Sequence[Element]:
    if not 1 <= first <= last <= len(before.elements):
        raise StateChangeError(f"{line!r} keeps lines that the page of {len(before.elements)} does not have")
    return before.elements[first - 1 : last]


def _new_element(line: str) -> Element:
    depth = len(line) - len(line.lstrip("\t"))
    try:
        return parse_element("\t" * depth + "[1] " + line[depth:])
    except ObservationError as error:
        raise StateChangeError(f"not a line of an edit script: {line!r}") from error


def _assemble(before: Observation, headers: list[str], elements: list[Element], cut: str) -> Observation:
    try:
        page = parse_observation("\n".join((headers or before.header_lines) + ([cut] if cut else [])))
    except ObservationError as error:
        raise StateChangeError(f"not a header: {headers[0]!r}") from error
    return replace(page, elements=number(elements), cut=page.cut or (0 if elements and headers else before.cut))


def describe(before: Observation, action: str, after: Observation) -> str:
    """A reason in a few words, by rule: what kind of change the action makes. The world model says it before Δ."""
    if before == after:
        return "Nothing changes."
    if before.url.split("?")[0] == after.url.split("?")[0]:
        return "The page updates."
    return f"Opens {after.title}."


def changed_lines(before: Observation, after: Observation) -> tuple[list[str], list[str]]:
    """Lines that went and lines that came, without ids, header lines among them. Both empty when nothing changes."""
    old = before.header_lines + [unnumbered(e) for e in before.elements]
    new = after.header_lines + [unnumbered(e) for e in after.elements]
    gone, came = [], []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += old[i:j]
            came += new[k:m]
    return gone, came
