"""From a page to the lines of an observation, once for Chromium's accessibility tree and once for plain HTML.

Both readers make the same `Node` tree, and `page_lines` applies one set of rules to it, so that a page reads the same
with and without a browser: containers without a name vanish and their children take their place; text that only
repeats the name of what it stands in, or of the control that it labels, vanishes too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import html

from dynaweb_lite.actions import Action, ActionError, check_action, parse_action
from dynaweb_lite.observation import (
    INTERACTIVE_ROLES,
    SHOWN_PROPERTIES,
    Element,
    Observation,
    cut_to_budget,
    number,
    one_line,
)

VALUE_ROLES = frozenset("textbox searchbox combobox spinbutton slider".split())
LABELLED_ROLES = VALUE_ROLES | {"checkbox", "radio", "listbox", "switch"}
NAMED_BY_CONTENT = INTERACTIVE_ROLES | {"heading", "cell", "columnheader", "rowheader", "gridcell"}
CELL_ROLES = frozenset("cell columnheader rowheader gridcell".split())
TEXT_ROLES = frozenset(("StaticText", "img"))
LEAF_ROLES = frozenset("textbox searchbox spinbutton StaticText img".split())
SKIPPED_ROLES = frozenset("ListMarker LineBreak InlineTextBox Iframe".split())
ROLE_NAMES = {"image": "img", "DisclosureTriangle": "button", "PopUpButton": "button"}
"""Roles that Chromium spells differently from WebArena's texts."""

BLOCK_TAGS = frozenset(
    "address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 "
    "h2 h3 h4 h5 h6 header hr legend li main nav ol option p pre section select table tbody td textarea tfoot th thead "
    "tr ul".split()
)
HIDDEN_TAGS = frozenset("head script style template noscript datalist object iframe svg".split())
TEXT_TYPES = frozenset("text search email tel url password number".split())
BUTTON_TYPES = {"submit": "Submit", "reset": "Reset", "button": "", "image": "Submit"}
TAG_ROLES = {"th": "columnheader", "td": "cell", "label": "LabelText", "textarea": "textbox"} | dict.fromkeys(
    ("h1", "h2", "h3", "h4", "h5", "h6"), "heading"
)
REGION_ROLES = {"nav": "navigation", "section": "region", "main": "main", "aside": "complementary"} | {
    "fieldset": "group",
    "ul": "list",
    "ol": "list",
}


@dataclass
class Node:
    """A node of either tree. `key` is what the reader needs to find it again: a DOM node id or an HTML element."""

    role: str
    name: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    key: Any = None

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()


def read_page(root: Node, title: str, url: str, max_elements: int) -> tuple[Observation, list[Any]]:
    """The observation of a tree, cut to `max_elements`, and the key of each of its elements in order."""
    lines = page_lines(root)
    page = Observation(one_line(title), url, number([element for element, _ in lines]))
    if len(lines) <= max_elements:
        return page, [key for _, key in lines]
    cut = cut_to_budget(page, max_elements)
    rest = iter(lines)  # what is kept of equal lines is always the first, so the first match is the right one
    return cut, [next(key for old, key in rest if _looks(old) == _looks(new)) for new in cut.elements]


def _looks(element: Element) -> tuple:
    return element.role, element.name, element.depth, element.properties


def page_lines(root: Node) -> list[tuple[Element, Any]]:
    """Elements (not numbered yet) with their keys, in document order."""
    labelled = {one_line(node.name) for node in root.walk() if node.role in LABELLED_ROLES}
    lines: list[tuple[Element, Any]] = []

    def visit(node: Node, depth: int, content_name: str, other_name: str) -> None:
        name = one_line(node.name)
        if node.role in SKIPPED_ROLES:
            return
        if node.role == "LabelText":
            text = _static_text(node)
            content_name = text if text in labelled else content_name
        elif _is_line(node, name, content_name, other_name):
            lines.append((Element(0, node.role, name, depth, _shown(node)), node.key))
            depth += 1
            content_name, other_name = (name, "") if node.role in NAMED_BY_CONTENT else (content_name, name)
        if node.role not in LEAF_ROLES:
            for child in node.children:
                visit(child, depth, content_name, other_name)

    visit(Node("RootWebArea", children=root.children), 0, "", "")
    return lines


def _static_text(node: Node) -> str:
    return one_line("".join(n.name for n in node.walk() if n.role == "StaticText"))


def _is_line(node: Node, name: str, content_name: str, other_name: str) -> bool:
    if node.role in INTERACTIVE_ROLES:
        return True
    if node.role in TEXT_ROLES:
        return bool(name) and name not in content_name and name != other_name
    if node.role.startswith("Layout"):  # tables that only arrange things
        return False
    if node.role in CELL_ROLES and any(n.role in INTERACTIVE_ROLES or n.role == "heading" for n in node.walk()):
        return False
    return bool(name)


def _shown(node: Node) -> tuple[tuple[str, str], ...]:
    """Properties worth a reader's time: False is left out where it is the rule, as is a native list's `expanded`."""
    shown = dict(node.properties)
    if node.role in VALUE_ROLES:
        shown.setdefault("value", "")
    for key in ("selected", "disabled", "required"):
        if shown.get(key) != "True":
            shown.pop(key, None)
    if any(n.role == "option" for n in node.walk()):
        shown.pop("expanded", None)
    return tuple((key, shown[key]) for key in SHOWN_PROPERTIES if key in shown)


def read_action(text: str, observation: Observation) -> Action | str:
    """The action that a text stands for, or the sentence that says why it cannot be done on this page."""
    try:
        action = parse_action(text)
    except ActionError as error:
        return str(error)
    element = observation.element(action.element_id) if action.element_id else None
    if element and element.get("disabled") == "True" and action.kind != "hover":
        return f"[{element.id}] is disabled"
    return check_action(action, observation) or action


def from_chromium(nodes: list[dict]) -> Node:
    """The tree of the DevTools method Accessibility.getFullAXTree; keys are backendDOMNodeIds."""
    by_id = {node["nodeId"]: node for node in nodes}

    def build(row: dict) -> Node:
        role = "none" if row["ignored"] else row["role"]["value"]
        node = Node(ROLE_NAMES.get(role, role), key=row.get("backendDOMNodeId"))
        node.name = str(row.get("name", {}).get("value", ""))
        if "value" in row and node.role in VALUE_ROLES:
            node.properties["value"] = str(row["value"].get("value", ""))
        for item in row.get("properties", ()):
            if item["name"] in SHOWN_PROPERTIES and item["name"] != "value":
                node.properties[item["name"]] = str(item["value"].get("value")).capitalize()
        if role not in LEAF_ROLES:
            node.children = [build(by_id[i]) for i in row.get("childIds", ()) if i in by_id]
        return node

    return build(nodes[0])


class HtmlReader:
    """Reads the tree that Chromium would make of plain HTML without scripts and without layout tricks in its styles.

    Attributes hold the state of the form: `value`, `checked` and `selected` are what is typed and chosen now.
    """

    def __init__(self, document: html.HtmlElement) -> None:
        self.document = document
        self.labels: dict[html.HtmlElement, list[html.HtmlElement]] = {}
        for label in document.iter("label"):
            if (control := control_of(label)) is not None:
                self.labels.setdefault(control, []).append(label)

    def tree(self) -> Node:
        body = self.document.find("body")
        return Node("RootWebArea", children=self.children(body) if body is not None else [])

    def children(self, element: html.HtmlElement) -> list[Node]:
        nodes = [Node("StaticText", element.text, key=element)] if element.text else []
        for child in element:
            if isinstance(child.tag, str) and not is_hidden(child):
                nodes.append(self.node(child))
            if child.tail:
                nodes.append(Node("StaticText", child.tail, key=element))
        return nodes

    def node(self, element: html.HtmlElement) -> Node:
        tag = element.tag
        if tag == "input" or tag == "textarea":
            return self.field(element)
        if tag == "select":
            return self.select(element)
        if tag == "img":
            return Node("img", element.get("alt", element.get("title", "")), key=element)
        role = self.role(element)
        node = Node(role, key=element, children=self.children(element))
        named = role in NAMED_BY_CONTENT
        node.name = element.get("aria-label") or (content_text(element) if named else self.caption(element))
        node.name = node.name or (element.get("title", "") if named else "")
        if tag == "button" and is_disabled(element):
            node.properties["disabled"] = "True"
        return node

    def role(self, element: html.HtmlElement) -> str:
        tag = element.tag
        if element.get("role"):
            return element.get("role")
        if tag == "a":
            return "link" if element.get("href") is not None else "generic"
        if tag in ("td", "th"):
            return self.cell_role(element)
        return "button" if tag == "button" else TAG_ROLES.get(tag, REGION_ROLES.get(tag, tag))

    def cell_role(self, cell: html.HtmlElement) -> str:
        table = next(cell.iterancestors("table"), None)
        if table is None or next(table.iter("th", "thead", "caption"), None) is None:
            return "generic"  # a table for layout
        if cell.tag == "th" and (cell.get("scope") == "row" or any(c.tag == "td" for c in cell.getparent())):
            return "rowheader"
        return TAG_ROLES[cell.tag]

    def caption(self, element: html.HtmlElement) -> str:
        inner = {"table": "caption", "fieldset": "legend", "figure": ""}.get(element.tag)
        found = element.find(inner) if inner else None
        return content_text(found) if found is not None else ""

    def label(self, control: html.HtmlElement, *fallbacks: str) -> str:
        texts = [content_text(label) for label in self.labels.get(control, ())]
        names = (control.get("aria-label"), " ".join(texts), *(control.get(f) for f in (*fallbacks, "title")))
        return next((name for name in names if name and name.strip()), "")

    def field(self, element: html.HtmlElement) -> Node:
        kind = "textarea" if element.tag == "textarea" else element.get("type", "text").lower()
        if kind in BUTTON_TYPES:
            name = element.get("aria-label") or element.get("value", BUTTON_TYPES[kind]) or element.get("title", "")
            node = Node("button", name, key=element)
        elif kind in ("checkbox", "radio"):
            node = Node(kind, self.label(element), {"checked": str(element.get("checked") is not None)}, key=element)
        else:
            role = {"search": "searchbox", "number": "spinbutton"}.get(kind, "textbox")
            value = field_value(element)
            shown = "•" * len(value) if kind == "password" else value
            node = Node(role, self.label(element, "placeholder"), {"value": shown}, key=element)
            if element.get("required") is not None:
                node.properties["required"] = "True"
        if is_disabled(element):
            node.properties["disabled"] = "True"
        return node

    def select(self, element: html.HtmlElement) -> Node:
        chosen, disabled, many = chosen_options(element), is_disabled(element), element.get("multiple") is not None
        node = Node("listbox" if many else "combobox", self.label(element), key=element)
        node.properties = {"disabled": str(disabled), "required": str(element.get("required") is not None)}
        if not many:
            node.properties["value"] = one_line(option_label(chosen[0])) if chosen else ""
        for option in element.iter("option"):
            off = disabled or option.get("disabled") is not None
            properties = {"disabled": str(off), "selected": str(option in chosen and not off)}
            node.children.append(Node("option", option_label(option), properties, key=option))
        return node


def is_hidden(element: html.HtmlElement) -> bool:
    """Whether Chromium leaves the element out of the tree."""
    if element.tag in HIDDEN_TAGS or element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    style = element.get("style", "").replace(" ", "")
    return "display:none" in style or (element.tag == "input" and element.get("type") == "hidden")


def is_disabled(element: html.HtmlElement) -> bool:
    fieldsets = element.iterancestors("fieldset")
    return element.get("disabled") is not None or any(f.get("disabled") is not None for f in fieldsets)


def content_text(element: html.HtmlElement) -> str:
    """What names an element by its content, on one line: text and images, without controls."""
    parts: list[str] = []

    def visit(node: html.HtmlElement) -> None:
        parts.append(node.text or "")
        for child in node:
            if isinstance(child.tag, str) and not is_hidden(child):
                edge = " " if child.tag in BLOCK_TAGS else ""
                parts.append(edge)
                if child.tag == "img":
                    parts.append(f" {child.get('alt', '')} ")
                elif child.tag not in ("input", "textarea", "select"):
                    visit(child)
                parts.append(edge)
            parts.append(child.tail or "")

    visit(element)
    return one_line("".join(parts))


def control_of(label: html.HtmlElement) -> html.HtmlElement | None:
    """The control that a label belongs to, or None."""
    if target := label.get("for"):
        return next(iter(label.getroottree().xpath("//*[@id=$name]", name=target)), None)
    return next((e for e in label.iter("input", "select", "textarea") if e.get("type") != "hidden"), None)


def field_value(element: html.HtmlElement) -> str:
    """What stands in a text field now."""
    if element.tag == "textarea":
        return element.text or ""
    return element.get("value", "")


def option_label(option: html.HtmlElement) -> str:
    return option.get("label") or one_line(option.text_content())


def chosen_options(select: html.HtmlElement) -> list[html.HtmlElement]:
    """Options chosen now; a list for one choice always has one where it has options that are not disabled."""
    options = list(select.iter("option"))
    chosen = [o for o in options if o.get("selected") is not None]
    if select.get("multiple") is not None:
        return chosen
    return chosen[-1:] or [o for o in options if o.get("disabled") is None][:1]
