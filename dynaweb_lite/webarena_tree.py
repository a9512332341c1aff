"""Accessibility trees as WebArena and BrowserGym write them, read into observations.

    WebArena                                       BrowserGym
    Tab 0 (current): Search | Tab 1: Wiki          RootWebArea 'Search', focused, url='http://…'
    [1] RootWebArea 'Search' focused: True           [12] link 'Home', clickable, visible
      [12] link 'Home' expanded: False               StaticText 'Home'

The nodes go through the rules that both of our own readers share (`accessibility.page_lines`), so an imported page
reads as one of ours: ids 1..n, no RootWebArea, no text that repeats its parent, no properties that nobody sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dynaweb_lite.accessibility import NAMED_BY_CONTENT, ROLE_NAMES, VALUE_ROLES, Node, read_page
from dynaweb_lite.observation import (
    SHOWN_PROPERTIES,
    Observation,
    ObservationError,
    one_line,
    parse_observation,
    unquote,
)

MAX_ELEMENTS = 400
"""Longer pages are cut: a world model takes a page of more elements for a repetition without end."""
MAX_NAME_LINES = 20
MAX_DEPTH = 100
"""No page is so deep; what claims to be deeper lies side by side."""

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_START = r"(\t*)(?:\[(\w+)\] ?)?([A-Za-z][\w-]*)"
_REST = r"((?:,| \w+[:=]).*|(?: \w+)*)"
_LINE = re.compile(rf"{_START}(?: ?({_QUOTED}))?{_REST}", re.DOTALL)
_ODD_LINE = re.compile(rf"{_START} ?((['\"]).*\5){_REST}", re.DOTALL)
"""A name with quotes in it that nobody escaped: it runs to the last quote of its kind."""
_OPEN_NAME = re.compile(rf"{_START} ?['\"]", re.DOTALL)
_WITH_ID = re.compile(r"\t*\[\w+\] ")
_COLON_PROPERTY = re.compile(r" (\w+): (.*?)(?= \w+: |$)", re.DOTALL)
_EQUALS_PROPERTY = re.compile(rf"(\w+)=({_QUOTED}|[^\s,]+)", re.DOTALL)
_FLAG = re.compile(r", (\w+)(?=,|$)")
_KEPT = frozenset((*SHOWN_PROPERTIES, "url"))
_TABS = re.compile(r" \| (?=Tab \d+(?: \(current\))?: ?)")
_TAB = re.compile(r"Tab (\d+)( \(current\))?: ?(.*)")


@dataclass(frozen=True)
class ImportedPage:
    """A page from elsewhere. `ids`: from its own ids to ours.

    `hidden`: its ids that the observation does not show (nameless containers, lines beyond the budget).
    `unreadable_lines`: how many lines were passed over because they are no elements.
    """

    observation: Observation
    ids: Mapping[str, int]
    hidden: frozenset[str] = frozenset()
    unreadable_lines: int = 0


def read_tree(text: str, url: str = "", title: str = "", max_elements: int = MAX_ELEMENTS) -> ImportedPage:
    """Read a tree of WebArena or BrowserGym, or a page in our own form.

    `url` wins over the tree's own; `title` holds where the tree has none. Raises ObservationError when no element can
    be read.
    """
    if own := _in_our_form(text):
        return ImportedPage(own, {str(e.id): e.id for e in own.elements})
    lines = text.split("\n")
    tabs = _read_tabs(lines[0]) if _TAB.match(lines[0]) else []
    root, unreadable = _read_nodes(lines[1:] if tabs else lines)
    page, keys = read_page(root, "", "", max_elements)
    if not page.elements:
        raise ObservationError("no element can be read")
    current = next((tab for tab in tabs if tab[1]), (0, True, "" if tabs else title))
    others = {i: (i, one_line(name), "") for i, _, name in tabs if i != current[0]}
    page = replace(
        page,
        title=one_line(current[2] or root.name or title),
        url="".join((url or root.properties.get("url", "")).split()),
        tab=current[0],
        other_tabs=tuple(others[i] for i in sorted(others)),
    )
    ids, hidden = _shown_ids(root, page, keys)
    return ImportedPage(page, ids, hidden, unreadable)


def _in_our_form(text: str) -> Observation | None:
    try:
        page = parse_observation(text.strip("\n"))
    except ObservationError:
        return None
    return page if page.elements else None


def _read_tabs(line: str) -> list[tuple[int, bool, str]]:
    """(index, whether it is the current one, title) of each tab in WebArena's first line."""
    found = [_TAB.match(part) for part in _TABS.split(line)]
    return [(int(tab[1]), bool(tab[2]), tab[3]) for tab in found if tab]


def _read_nodes(lines: list[str]) -> tuple[Node, int]:
    """The tree below the page's root, which bears the page's title and properties, and the number of lines that are
    no elements."""
    root, unreadable = Node("RootWebArea"), 0
    above: list[tuple[int, Node]] = [(-1, root)]
    for raw, match in _matched(lines):
        if match is None:
            unreadable += raw
            continue
        tabs, key, role, name, rest = match
        node = Node(ROLE_NAMES.get(role, role), _unquoted(name or "''"), _properties(rest), key=key or None)
        depth = min(len(tabs), MAX_DEPTH)
        while above[-1][0] >= depth:
            above.pop()
        parent = above[-1][1]
        if role == "RootWebArea":  # the page's own, or a frame's, whose children belong to what holds the frame
            root.name, root.properties = root.name or node.name, root.properties or node.properties
            node = parent
        else:
            parent.children.append(node)
        above.append((depth, node))
    for node in root.walk():
        _settle_value(node)
    return root, unreadable


def _matched(lines: list[str]) -> Iterator[tuple[int, tuple[str, ...] | None]]:
    """(lines used, groups of the element they make or None). Names may run over several lines."""
    i = 0
    while i < len(lines):
        if not lines[i].strip():
            i += 1
            continue
        used, found = 1, _read_line(lines[i])
        if found is None and _OPEN_NAME.match(lines[i]):
            used, found = _read_over_lines(lines[i : i + MAX_NAME_LINES])
        yield used, found
        i += used


def _read_over_lines(lines: list[str]) -> tuple[int, tuple[str, ...] | None]:
    for used in range(2, len(lines) + 1):
        if _WITH_ID.match(lines[used - 1]):
            break
        if found := _read_line("\n".join(lines[:used])):
            return used, found
    return 1, None


def _read_line(line: str) -> tuple[str, ...] | None:
    """Tabs, id, role, name and the rest; None when the line is no element."""
    match = _LINE.fullmatch(line)
    if match and (match[2] or match[4] or match[3] in ("generic", "RootWebArea")):
        return match.group(1, 2, 3, 4, 5)
    odd = _ODD_LINE.fullmatch(line)
    return odd.group(1, 2, 3, 4, 6) if odd else None


def _properties(rest: str) -> dict[str, str]:
    """Properties of either spelling: ``expanded: False`` or ``, expanded=False, required``."""
    if re.match(r",| \w+=", rest):
        pairs = _EQUALS_PROPERTY.findall(rest) + [(flag, "True") for flag in _FLAG.findall(rest)]
    else:
        pairs = _COLON_PROPERTY.findall(rest)
    found = {key: one_line(_unquoted(value.strip())) for key, value in pairs if key in _KEPT}
    words = {key: found[key].capitalize() for key in SHOWN_PROPERTIES if found.get(key) and " " not in found[key]}
    return words | {key: found[key] for key in ("value", "url") if key in found}


def _unquoted(text: str) -> str:
    """As `unquote`, without the way through Python's parser where nothing is escaped: pages have many such names."""
    return unquote(text) if "\\" in text or text[:1] not in ("'", '"') else text[1:-1]


def _settle_value(node: Node) -> None:
    """What a field holds is its `value`: elsewhere it stands as text below the field, or as the selected option."""
    if node.role not in VALUE_ROLES:
        return
    texts = [child for child in node.children if child.role == "StaticText"]
    options = [n for n in node.walk() if n.role == "option" and n.properties.get("selected") == "True"]
    if not node.properties.get("value"):
        node.properties["value"] = one_line(" ".join(n.name for n in options[:1] or texts))
    for text in texts:
        text.name = ""


def _shown_ids(root: Node, page: Observation, keys: list) -> tuple[dict[str, int], frozenset[str]]:
    """Ids of the page by the tree's own ids, and the tree's ids that the page does not show.

    A click on the text of a link is a click on the link, so what vanished inside such an element counts as it.
    """
    ids = {key: element.id for element, key in zip(page.elements, keys, strict=True) if key}
    hidden: set[str] = set()

    def visit(node: Node, holder: int | None) -> None:
        if node.key and node.key not in ids:
            hidden.add(node.key) if holder is None else ids.setdefault(node.key, holder)
        elif node.key:
            holder = ids[node.key] if node.role in NAMED_BY_CONTENT else None
        for child in node.children:
            visit(child, holder)

    visit(root, None)
    return ids, frozenset(hidden)
