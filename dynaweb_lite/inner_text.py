"""The text that a page shows, without a browser: Chromium's `innerText` on parsed HTML, and the page as HTML again.

Follows the HTML standard's rendered-text algorithm with a browser's own styles and the `display` of a page's own
(stylesheets.py); nothing else in them changes the text here. The tests hold it against Chromium, letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from lxml import html

NO_TEXT = frozenset("head script style template noscript datalist object iframe textarea audio video".split())
LINES_IN = {"select": "option", "svg": "text"}
"""Boxes that show lines of their own, and nothing else."""
BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre search "
    "section summary table ul".split()
)
ATOMIC = frozenset("input img button canvas meter progress textarea select iframe object svg".split())
"""Inline things that stand like a letter in their line: spaces beside them are kept."""
CELLS, ROW_GROUPS = ("td", "th"), ("thead", "tbody", "tfoot")
WITHOUT_TEXT = NO_TEXT | {*ROW_GROUPS, *LINES_IN, "table", "tr"}
"""Elements whose own text is white space between their parts, or not shown."""
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
RAW = frozenset("script style xmp iframe noembed noframes noscript plaintext".split())
INLINE_BOXES = frozenset("inline-block inline-flex inline-grid inline-table".split())
BLOCK_DISPLAYS = frozenset("block flex grid list-item flow-root".split())
BOXES_OF_BLOCKS = frozenset("flex grid inline-flex inline-grid".split())
"""What lays its children out as blocks, whatever they are."""
_SPACES = re.compile(r"[ \t\n\r\f]+")


def inner_text(element: html.HtmlElement, displays: Mapping[html.HtmlElement, str] | None = None) -> str:
    """What `element.innerText` says: the text as shown, with its line breaks; all its text where it is hidden.

    `displays`: what style sheets set, see `stylesheets.displays`.
    """
    if element.tag in VOID:
        return ""
    lines = _Lines(displays or {}, element)
    if any(lines.not_rendered(e) for e in (element, *element.iterancestors())):
        return element.text_content() if element.tag != "textarea" else ""
    if element.tag in ("option", "optgroup") and element.getparent().tag == "select":
        return element.text_content()
    return lines.read()


def _is_closed(element: html.HtmlElement) -> bool:
    """Whether an element lies in a `details` that is shut."""
    parent = element.getparent()
    return parent is not None and parent.tag == "details" and parent.get("open") is None and element.tag != "summary"


class _Lines:
    """Collects text and required line breaks (their number) in document order, for one element, the target.

    An element in a line is read with the whole block that it stands in: whether its spaces show depends on what is
    beside it.
    """

    def __init__(self, displays: Mapping[html.HtmlElement, str], target: html.HtmlElement) -> None:
        self.displays, self.target = displays, target
        self.span = slice(None)
        self.parts: list[str | int] = []
        self.fresh = True
        """At the start of a line or after a space: a further space is not shown."""
        self.loose = False
        """Whether the last text ends in a space that vanishes at a line's end."""

    def read(self) -> str:
        block = next((e for e in (self.target, *self.target.iterancestors()) if self.begins_line(e)), self.target)
        self.inside(block, preserve=any(map(_preserves, (block, *block.iterancestors()))))
        self.end_line()
        text, wanted = "", 0
        for part in self.parts[self.span]:
            if isinstance(part, int):
                wanted = max(wanted, part)
            elif part:
                text += "\n" * wanted * bool(text) + part
                wanted = 0
        return text

    def begins_line(self, element: html.HtmlElement) -> bool:
        """Whether an element has lines of its own rather than a place in another's."""
        display = self.displays.get(element)
        if display in INLINE_BOXES | BLOCK_DISPLAYS or self.displays.get(element.getparent()) in BOXES_OF_BLOCKS:
            return True
        return display != "inline" and element.tag in BLOCKS | ATOMIC | {"tr", *CELLS, *ROW_GROUPS}

    def not_rendered(self, element: html.HtmlElement) -> bool:
        """Whether an element makes no box of its own."""
        if element.tag in NO_TEXT - {"textarea"} or self.displays.get(element) == "none" or _is_closed(element):
            return True
        if element.tag == "input" and element.get("type", "").lower() == "hidden":
            return True
        return element.get("hidden") is not None and element not in self.displays

    def inside(self, element: html.HtmlElement, preserve: bool) -> None:
        shows_text = element.tag not in WITHOUT_TEXT and (element.tag != "details" or element.get("open") is not None)
        if element.text and shows_text:
            self.text(element.text, preserve)
        for child in element:
            if isinstance(child.tag, str) and not self.not_rendered(child):
                begin = len(self.parts)
                self.element(child, preserve or _preserves(child), self.displays.get(element) in BOXES_OF_BLOCKS)
                if child is self.target:
                    self.span = slice(begin, len(self.parts))
            if child.tail and shows_text:
                self.text(child.tail, preserve)

    def element(self, element: html.HtmlElement, preserve: bool, as_block: bool) -> None:
        tag, display = element.tag, self.displays.get(element)
        as_block = (
            as_block or tag in BLOCKS and display != "inline" or display in ("block", "flex", "grid", "list-item")
        )
        if tag == "br":
            self.end_line()
            self.parts.append("\n")
        elif tag in LINES_IN:
            self.lines_in(element, as_block)
        elif display in INLINE_BOXES or tag in ATOMIC and not as_block:
            self.atomic(element, preserve)
        elif tag in CELLS:
            self.end_line()
            self.inside(element, preserve)
            self.end_line()
            self.parts += [] if _is_last(element, CELLS) else ["\t"]
        elif tag == "tr":
            self.inside(element, preserve)
            self.end_line()
            self.parts += [] if _is_last_row(element) else ["\n"]
        elif as_block:
            self.block(element, preserve, 2 if tag == "p" else 1)
        else:
            self.inside(element, preserve)

    def block(self, element: html.HtmlElement, preserve: bool, breaks: int) -> None:
        self.end_line()
        self.parts.append(breaks)
        self.inside(element, preserve)
        self.end_line()
        self.parts.append(breaks)

    def atomic(self, element: html.HtmlElement, preserve: bool) -> None:
        """A box in the line: its text begins and ends without spaces, and spaces around it stay."""
        self.fresh, self.loose = True, False
        if element.tag == "button" or element.tag not in ATOMIC:
            self.inside(element, preserve)
            self.end_line()
        self.fresh = self.loose = False

    def lines_in(self, element: html.HtmlElement, as_block: bool) -> None:
        """A box of lines, the options of a list or the texts of a drawing."""
        if as_block:
            self.end_line()
        self.loose = False
        for line in element.iter(LINES_IN[element.tag]):
            if not self.not_rendered(line):
                self.parts += [1, _SPACES.sub(" ", line.text_content()).strip(), 1]
        self.fresh = as_block

    def text(self, text: str, preserve: bool) -> None:
        if preserve:
            self.parts.append(text)
            self.fresh, self.loose = text.endswith("\n"), False
            return
        text = _SPACES.sub(" ", text)
        if self.fresh and text.startswith(" "):
            text = text[1:]
        if text:
            self.parts.append(text)
            self.fresh = self.loose = text.endswith(" ")

    def end_line(self) -> None:
        """What follows begins a line: a space before it is not shown."""
        if self.loose:
            for i in range(len(self.parts) - 1, -1, -1):
                if isinstance(self.parts[i], str):
                    self.parts[i] = self.parts[i].removesuffix(" ")
                    break
        self.fresh, self.loose = True, False


def _preserves(element: html.HtmlElement) -> bool:
    return element.tag in ("pre", "textarea", "listing", "plaintext", "xmp")


def _is_last(element: html.HtmlElement, tags: tuple[str, ...]) -> bool:
    return all(e.tag not in tags for e in element.itersiblings())


def _is_last_row(row: html.HtmlElement) -> bool:
    group = row.getparent()
    in_group = _is_last(row, ("tr", *ROW_GROUPS))
    return in_group and (group is None or group.tag not in ROW_GROUPS or _is_last(group, ("tr", *ROW_GROUPS)))


def page_html(document: html.HtmlElement) -> str:
    """The document as HTML, spelled as browsers spell it (`page.content()`)."""
    tree = document.getroottree()
    doctype = "<!DOCTYPE html>" if tree.docinfo.doctype else ""
    parts: list[str] = [doctype]
    _write(document, parts)
    return "".join(parts)


def _write(element: html.HtmlElement, parts: list[str]) -> None:
    if not isinstance(element.tag, str):
        parts.append(f"<!--{element.text or ''}-->")
        return
    attributes = "".join(f' {key}="{_quoted(value)}"' for key, value in element.attrib.items())
    parts.append(f"<{element.tag}{attributes}>")
    if element.tag in VOID:
        return
    spell = str if element.tag in RAW else _escaped
    parts.append(spell(element.text or ""))
    for child in element:
        _write(child, parts)
        parts.append(spell(child.tail or ""))
    parts.append(f"</{element.tag}>")


def _escaped(text: str) -> str:
    return escape(text, quote=False).replace("\xa0", "&nbsp;")


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', "&quot;")
