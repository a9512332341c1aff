"""Pages as accessibility-tree text, WebArena's form, and back.

A page is a header line for each tab, then one line for each element::

    Tab 0 (current): My Cart | http://shop.test/checkout/cart/
    [1] link 'My Cart'
    [2] searchbox 'Search' value: ''
    (cut: 14 more elements)
    (error: no element [99] on this page)

Ids run 1..n in document order, so the same page always reads the same, whatever ids the browser gave its nodes.
The two lines in brackets appear only where they apply.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from functools import cached_property

INTERACTIVE_ROLES = frozenset(
    "link button textbox searchbox combobox listbox checkbox radio menuitem option tab switch slider spinbutton "
    "menuitemcheckbox menuitemradio treeitem".split()
)
SHOWN_PROPERTIES = ("value", "checked", "selected", "expanded", "pressed", "disabled", "required")
"""Element properties that the text shows, in this order. Focus is left out: it moves without the page changing."""

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_HEADER = re.compile(r"Tab (\d+)( \(current\))?: (.*) \| (\S*)")
_ELEMENT = re.compile(rf"(\t*)\[(\d+)\] ([A-Za-z][\w-]*)(?: ({_QUOTED}))?((?: \w+: (?:{_QUOTED}|\S+))*)")
_PROPERTY = re.compile(rf" (\w+): ({_QUOTED}|\S+)")
_CUT = re.compile(r"\(cut: (\d+) more elements?\)")
_ERROR = re.compile(r"\(error: (.*)\)")


class ObservationError(ValueError):
    """The text is not a page in accessibility-tree form."""


@dataclass(frozen=True)
class Element:
    """One line of the tree: a role, a name, a depth in tabs, and the properties that a person would notice."""

    id: int
    role: str
    name: str = ""
    depth: int = 0
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The element without its id and depth: ``link 'My Cart'``. Two elements that look alike have equal labels."""
        shown = [self.role, repr(self.name)] if self.name or self.role in INTERACTIVE_ROLES else [self.role]
        shown += [f"{key}: {repr(value) if key == 'value' else value}" for key, value in self.properties]
        return " ".join(shown)

    @property
    def line(self) -> str:
        return "\t" * self.depth + f"[{self.id}] {self.label}"

    def get(self, key: str, default: str = "") -> str:
        """The value of a property, or `default`."""
        return dict(self.properties).get(key, default)


@dataclass(frozen=True)
class Observation:
    """What an agent sees: the current tab's title, its URL and its elements.

    `other_tabs` holds (index, title, url) of tabs in the background; `tab` is the current one's index.
    `cut` counts elements left out to keep to a budget. `last_action_error` says why the last action did nothing.
    """

    title: str
    url: str
    elements: tuple[Element, ...] = ()
    tab: int = 0
    other_tabs: tuple[tuple[int, str, str], ...] = ()
    cut: int = 0
    last_action_error: str = field(default="", compare=False)

    @cached_property
    def text(self) -> str:
        """The page as text, one line an element; `parse_observation` reads it back."""
        return "\n".join([*self.header_lines, *(e.line for e in self.elements), *self.footer_lines])

    @property
    def header_lines(self) -> list[str]:
        tabs = [(self.tab, " (current)", self.title, self.url)] + [(i, "", t, u) for i, t, u in self.other_tabs]
        return [f"Tab {i}{mark}: {one_line(title)} | {url}" for i, mark, title, url in sorted(tabs)]

    @property
    def footer_lines(self) -> list[str]:
        cut = [f"(cut: {self.cut} more element{'s' if self.cut != 1 else ''})"] if self.cut else []
        return cut + ([f"(error: {one_line(self.last_action_error)})"] if self.last_action_error else [])

    def element(self, element_id: int) -> Element | None:
        """The element with this id, or None."""
        return self.elements[element_id - 1] if 1 <= element_id <= len(self.elements) else None

    def find(self, role: str = "", name: str | None = None) -> Element | None:
        """The first element with this role (any, when empty) and name (any, when None), or None."""
        return next((e for e in self.elements if role in ("", e.role) and name in (None, e.name)), None)

    def with_error(self, message: str) -> Observation:
        """The same page, saying that the last action failed; with an empty message, the page without one."""
        return replace(self, last_action_error=message)

    def __hash__(self) -> int:
        return hash((self.url, self.elements))


def one_line(text: str) -> str:
    """Text with every run of white space turned into one space."""
    return " ".join(text.split())


def number(elements: list[Element]) -> tuple[Element, ...]:
    """Elements with ids 1..n in their order."""
    return tuple(e if e.id == i else replace(e, id=i) for i, e in enumerate(elements, 1))


def parse_element(line: str) -> Element:
    """Read one element line. Raises ObservationError with the line when it is not one."""
    match = _ELEMENT.fullmatch(line)
    if not match:
        raise ObservationError(f"not an element line: {line!r} (expected: [id] role 'name')")
    tabs, element_id, role, name, properties = match.groups()
    pairs = tuple((key, unquote(value)) for key, value in _PROPERTY.findall(properties))
    return Element(int(element_id), role, unquote(name or "''"), len(tabs), pairs)


def unquote(text: str) -> str:
    """The value of a quoted string; text without quotes is returned as it is."""
    if text[:1] not in "'\"":
        return text
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text[1:-1]


def parse_observation(text: str) -> Observation:
    """Read a page from its text; ids must run 1..n. Raises ObservationError naming the line that does not fit."""
    tabs, elements, cut, error = [], [], 0, ""
    for line in text.split("\n"):
        if header := _HEADER.fullmatch(line):
            tabs.append((int(header[1]), bool(header[2]), header[3], header[4]))
        elif found := _CUT.fullmatch(line):
            cut = int(found[1])
        elif found := _ERROR.fullmatch(line):
            error = found[1]
        else:
            elements.append(parse_element(line))
    if [e.id for e in elements] != list(range(1, len(elements) + 1)):
        raise ObservationError("element ids do not run 1, 2, 3, … in order")
    current = [t for t in tabs if t[1]]
    if len(current) != 1:
        raise ObservationError("no header line such as: Tab 0 (current): Title | http://…")
    index, _, title, url = current[0]
    others = tuple((i, t, u) for i, is_current, t, u in tabs if not is_current)
    return Observation(title, url, tuple(elements), index, others, cut, error)


def cut_to_budget(observation: Observation, max_elements: int) -> Observation:
    """Keep at most `max_elements` elements: interactive ones and headings first, then text, in document order."""
    if len(observation.elements) <= max_elements:
        return observation

    def importance(element: Element) -> int:
        return 0 if element.role in INTERACTIVE_ROLES else 1 if element.role == "heading" else 2

    kept = sorted(observation.elements, key=lambda e: (importance(e), e.id))[:max_elements]
    kept_in_order = sorted(kept, key=lambda e: e.id)
    dropped = len(observation.elements) - max_elements
    return replace(observation, elements=number(kept_in_order), cut=observation.cut + dropped)
