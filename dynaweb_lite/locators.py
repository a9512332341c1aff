"""Locators of `program_html`: WebArena writes them in JavaScript, and here they are read into data, never executed.

The subset that the 812 tasks use: `document`, `.querySelector`, `.querySelectorAll(…)[n]`, the elements next to one,
text, value and attributes, `+`, `||`, `?.`, and `[...X].map(elem => …).join(' ')`. `parse_locator` turns a text into
nested lists that JSON can carry; chromium_reader.py answers them in a page, html_locators.py on parsed HTML.

    ["chain", start, [["get", name, optional], ["call", name, arguments, optional], ["item", n, optional], …]]
    start: ["document"] | ["name", "elem"] | ["string", "…"] | ["spread", X] | ["group", X]
    ["plus", left, right] | ["or", left, right] | ["arrow", "elem", body]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from dynaweb_lite.page_reader import NotScorable

PROPERTIES = frozenset(
    "outerText innerText textContent value checked selectedIndex firstElementChild lastElementChild firstChild "
    "lastChild parentElement nextElementSibling previousElementSibling length".split()
)
METHODS = frozenset("querySelector querySelectorAll getAttribute toString trim map join".split())
PREPARING = METHODS | {"click"}
"""Methods of `prep_actions`, which set a page up before it is read."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)|(?P<name>[A-Za-z_$][\w$]*)|(?P<number>\d+)"""
    r"""|(?P<sign>\.\.\.|\?\.|=>|\|\||[.()\[\],+;]))"""
)
_ESCAPES = {"n": "\n", "t": "\t"}
_CALL = re.compile(r"func:\s*(\w+)\((.*)\)\s*", re.DOTALL)


class LocatorError(NotScorable):
    """The locator has a form that is not understood; the message quotes it."""


def parse_locator(text: str, methods: frozenset[str] = METHODS) -> list:
    """A JavaScript expression as data. Raises LocatorError for what lies outside the subset."""
    return _Parser(text, methods).whole()


def parse_call(text: str) -> tuple[str, list[str]] | None:
    """Name and arguments of `func:name('a', 'b')`, None for other text. `__page__` stays as it is.

    Raises LocatorError where the arguments are no plain strings.
    """
    if not (match := _CALL.fullmatch(text)):
        return None
    try:
        arguments = ast.literal_eval(f"[{match[2].replace('__page__', repr('__page__'))}]")
    except (ValueError, SyntaxError):
        arguments = [None]
    if not all(isinstance(argument, str) for argument in arguments):
        raise LocatorError(f"cannot read the arguments of {text!r}")
    return match[1], arguments


def texts_locator(css: str) -> list:
    """What asks for the texts of all elements that fit a selector."""
    found = ["chain", ["document"], [["call", "querySelectorAll", [["chain", ["string", css], []]], False]]]
    text = ["arrow", "element", ["chain", ["name", "element"], [["get", "outerText", False]]]]
    return ["chain", ["spread", found], [["call", "map", [text], False]]]


def spelled(value: Any) -> str:
    """A value as JavaScript turns it into text."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return ",".join(map(spelled, value)) if isinstance(value, list) else str(value)


def repair_css(css: str) -> str:
    """A selector with the closing bracket that browsers forgive, and some of WebArena's task files leave out."""
    return css + "]" * (css.count("[") - css.count("]"))


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, methods: frozenset[str]) -> None:
        self.text, self.methods, self.names = text, methods, set()
        self.tokens = list(self._tokens(text.strip().removeprefix("() =>").strip().rstrip(";")))
        self.at = 0

    def _tokens(self, text: str) -> Iterator[tuple[str, str]]:
        end = 0
        while end < len(text.rstrip()):
            if not (match := _TOKEN.match(text, end)):
                raise self.error()
            yield match.lastgroup, match[match.lastgroup]
            end = match.end()

    def error(self) -> LocatorError:
        return LocatorError(f"cannot read the locator {self.text!r}: it does more than read elements and text")

    def whole(self) -> list:
        tree = self.either()
        if self.at < len(self.tokens):
            raise self.error()
        return tree

    def peek(self, *signs: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] in [("sign", sign) for sign in signs]

    def skip(self, *signs: str) -> str:
        """The next sign if it is one of these, else an empty string."""
        if not self.peek(*signs):
            return ""
        self.at += 1
        return self.tokens[self.at - 1][1]

    def need(self, sign: str) -> None:
        if not self.skip(sign):
            raise self.error()

    def take(self, kind: str) -> str:
        """The next token, which must be of this kind."""
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != kind:
            raise self.error()
        self.at += 1
        return self.tokens[self.at - 1][1]

    def either(self) -> list:
        tree = self.sum()
        while self.skip("||"):
            tree = ["or", tree, self.sum()]
        return tree

    def sum(self) -> list:
        tree = self.chain()
        while self.skip("+"):
            tree = ["plus", tree, self.chain()]
        return tree

    def chain(self) -> list:
        start, links = self.start(), []
        while sign := self.skip(".", "?.", "["):
            optional = sign == "?."
            if sign == "[" or (optional and self.skip("[")):
                links.append(["item", int(self.take("number")), optional])
                self.need("]")
            else:
                links.append(self.member(optional))
        return ["chain", start, links]

    def member(self, optional: bool) -> list:
        name = self.take("name")
        if not self.skip("("):
            if name not in PROPERTIES:
                raise self.error()
            return ["get", name, optional]
        arguments = [] if self.peek(")") else [self.argument()]
        while self.skip(","):
            arguments.append(self.argument())
        self.need(")")
        if name not in self.methods:
            raise self.error()
        return ["call", name, arguments, optional]

    def argument(self) -> list:
        following = self.tokens[self.at + 1 : self.at + 2]
        if following != [("sign", "=>")]:
            return self.either()
        name = self.take("name")
        self.need("=>")
        self.names.add(name)
        return ["arrow", name, self.either()]

    def start(self) -> list:
        if self.skip("("):
            tree = self.either()
            self.need(")")
            return ["group", tree]
        if self.skip("["):
            self.need("...")
            tree = self.either()
            self.need("]")
            return ["spread", tree]
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "string":
            return ["string", re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), self.take("string")[1:-1])]
        name = self.take("name")
        if name != "document" and name not in self.names:
            raise self.error()
        return ["document"] if name == "document" else ["name", name]
