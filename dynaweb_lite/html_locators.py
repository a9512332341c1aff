"""Answers locators (locators.py) on parsed HTML, with the values that JavaScript would give in a browser.

`null` and `undefined` are None; where JavaScript would throw, LookupError is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lxml import html
from lxml.cssselect import CSSSelector, SelectorError

from dynaweb_lite.accessibility import chosen_options, field_value
from dynaweb_lite.forms import option_value
from dynaweb_lite.locators import repair_css, spelled


class HtmlLocator:
    """Answers locators on one document, whose attributes hold the state of its forms.

    `attribute` says what an attribute was when the page came, `text` what an element shows.
    """

    def __init__(
        self,
        document: html.HtmlElement,
        attribute: Callable[[html.HtmlElement, str], str | None],
        text: Callable[[html.HtmlElement], str],
    ) -> None:
        self.document, self.attribute, self.text = document, attribute, text
        self.names: dict[str, Any] = {}

    def value(self, tree: list) -> Any:
        """The value of an expression. Raises LookupError where JavaScript would throw."""
        kind = tree[0]
        if kind == "chain":
            return self.chain(tree[1], tree[2])
        if kind == "or":
            left = self.value(tree[1])
            return left if left or isinstance(left, (list, html.HtmlElement)) else self.value(tree[2])
        if kind == "plus":
            return self.plus(self.value(tree[1]), self.value(tree[2]))
        raise LookupError(f"no value in {kind}")

    def plus(self, left: Any, right: Any) -> Any:
        if type(left) is type(right) is int:
            return left + right
        return spelled(left) + spelled(right)

    def chain(self, start: list, links: list) -> Any:
        value = self.start(start)
        for kind, *rest in links:
            if value is None:
                if rest[-1]:
                    return None
                raise LookupError(f"nothing to read {rest[0]} of")
            if kind == "get":
                value = self.get(value, rest[0])
            elif kind == "item":
                value = value[rest[0]] if isinstance(value, (list, str)) and rest[0] < len(value) else None
            else:
                value = self.call(value, rest[0], rest[1])
        return value

    def start(self, start: list) -> Any:
        match start:
            case ["document"]:
                return self.document
            case ["string", text]:
                return text
            case ["name", name]:
                return self.names[name]
            case ["group", tree]:
                return self.value(tree)
        value = self.value(start[1])
        if not isinstance(value, (list, str)):
            raise LookupError("nothing to spread")
        return list(value)

    def call(self, value: Any, name: str, arguments: list) -> Any:
        if name == "map" and isinstance(value, list):
            return [self.applied(arguments[0], item) for item in value]
        texts = [spelled(self.value(argument)) for argument in arguments]
        if name in ("querySelector", "querySelectorAll") and isinstance(value, html.HtmlElement):
            found = self.select(value, texts[0])
            return found if name == "querySelectorAll" else next(iter(found), None)
        if name == "getAttribute" and isinstance(value, html.HtmlElement):
            return self.attribute(value, texts[0])
        if name == "join" and isinstance(value, list):
            return (texts[0] if texts else ",").join("" if item is None else spelled(item) for item in value)
        if name == "trim" and isinstance(value, str):
            return value.strip()
        if name == "toString":
            return spelled(value)
        raise LookupError(f"no {name} here")

    def applied(self, arrow: list, item: Any) -> Any:
        _, name, body = arrow
        self.names[name] = item
        return self.value(body)

    def select(self, scope: html.HtmlElement, css: str) -> list[html.HtmlElement]:
        """Descendants that fit; as in browsers, a selector's left parts may lie outside the scope."""
        try:
            found = CSSSelector(repair_css(css))(self.document)
        except SelectorError as error:
            raise LookupError(f"no selector: {css}") from error
        return found if scope is self.document else [e for e in found if scope in e.iterancestors()]

    def get(self, value: Any, name: str) -> Any:
        if name == "length":
            return len(value) if isinstance(value, (list, str)) else None
        if name == "textContent" and isinstance(value, str):  # a text node
            return value
        if not isinstance(value, html.HtmlElement):
            return None
        match name:
            case "outerText" | "innerText":
                return self.text(value)
            case "textContent":
                return value.text_content()
            case "parentElement":
                return value.getparent()
            case "firstElementChild":
                return next(elements(value), None)
            case "lastElementChild":
                return next(elements(value, reverse=True), None)
            case "nextElementSibling" | "previousElementSibling":
                siblings = value.itersiblings(preceding=name.startswith("prev"))
                return next((e for e in siblings if isinstance(e.tag, str)), None)
            case "firstChild":
                return value.text or next(iter(value), None)
            case "lastChild":
                return last_child(value)
        return control_property(value, name)


def elements(parent: html.HtmlElement, reverse: bool = False):
    return (e for e in parent.iterchildren(reversed=reverse) if isinstance(e.tag, str))


def last_child(element: html.HtmlElement) -> Any:
    """The last node: an element, or the text after it."""
    if not len(element):
        return element.text
    return element[-1].tail or element[-1]


def control_property(element: html.HtmlElement, name: str) -> str | int | bool | None:
    """`value`, `checked` and `selectedIndex` of a form control, None where an element has none."""
    tag = element.tag
    if name == "checked":
        return element.get("checked") is not None if tag == "input" else None
    if name == "selectedIndex":
        if tag != "select":
            return None
        options, chosen = list(element.iter("option")), chosen_options(element)
        return options.index(chosen[0]) if chosen else -1
    if tag == "select":
        chosen = chosen_options(element)
        return option_value(chosen[0]) if chosen else ""
    if tag == "option":
        return option_value(element)
    if tag == "input" and element.get("type", "").lower() in ("checkbox", "radio"):
        return element.get("value", "on")
    return field_value(element) if tag in ("input", "textarea", "button") else None
