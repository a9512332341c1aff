"""A page without a browser: parsed HTML whose attributes hold what is typed and chosen; what evaluators read of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, Protocol
from urllib.parse import urljoin

from lxml import html
from lxml.etree import ParserError

from dynaweb_lite.forms import control_keys, get_state, is_active
from dynaweb_lite.html_locators import HtmlLocator
from dynaweb_lite.inner_text import inner_text, page_html
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.stylesheets import displays

STATE = ("value", "checked", "selected")
"""Attributes that hold what is typed and chosen here, and what was sent in a browser."""


class Session(Protocol):
    """Where a page came from, with the cookies of its episode."""

    def read(self, url: str) -> str:
        """The text of a file, empty where there is none."""
        ...

    def request(self, method: str, url: str, headers: dict[str, str], data: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request."""
        ...


@dataclass
class Page:
    """A loaded page, an `evaluators.PageReader`. The document's attributes hold what is typed and chosen.

    `defaults` is what stood in its controls first, `source` what was sent, `session` what can fetch more of its site.
    """

    url: str
    document: html.HtmlElement
    focus: html.HtmlElement | None = None
    source: tuple[str, str] = ("", "text/html")
    session: Session | None = field(default=None, repr=False)
    defaults: dict[tuple, str] = field(init=False)

    def __post_init__(self) -> None:
        self.defaults = {key: get_state(control) for key, control in control_keys(self.document)}

    @property
    def title(self) -> str:
        return self.document.findtext(".//title") or ""

    def text(self) -> str:
        """The text that the page shows."""
        body = self.document.find("body")
        return "" if body is None else self._shown(body)

    def content(self) -> str:
        """The page as HTML; what is typed and chosen is no part of it."""
        return page_html(self.as_sent)

    @cached_property
    def as_sent(self) -> html.HtmlElement:
        """The document without what was typed and chosen since."""
        return parse(*self.source) if self.source[0] else self.document

    def locate(self, tree: list) -> Any:
        """The value of a locator. Raises LookupError where its JavaScript would throw."""
        return HtmlLocator(self.document, self._attribute, self._shown).value(tree)

    def _shown(self, element: html.HtmlElement) -> str:
        return inner_text(element, displays(self.document, self.styles))

    @cached_property
    def styles(self) -> list[str]:
        """The page's style sheets."""
        sheets = []
        for element in self.document.iter("style", "link"):
            if element.tag == "style":
                sheets.append(element.text or "")
            elif "stylesheet" in element.get("rel", "").split() and self.session:
                sheets.append(self.session.read(urljoin(self.url, element.get("href", ""))))
        return sheets

    def _attribute(self, element: html.HtmlElement, name: str) -> str | None:
        if name not in STATE or element.tag not in ("input", "option"):
            return element.get(name)
        path = element.getroottree().getpath(element)
        return next(iter(self.as_sent.getroottree().xpath(path)), element).get(name)

    def prepare(self, tree: list) -> None:
        """Do what an entry of `prep_actions` says: without scripts, a click outside links and controls does nothing.

        Raises LookupError where the page lacks the element, NotScorable where the click would do something.
        """
        if tree[0] != "chain" or not tree[2] or tree[2][-1][1] != "click":
            raise NotScorable("prep_actions may only click")
        element = self.locate([tree[0], tree[1], tree[2][:-1]])
        if element is None:
            raise LookupError("nothing to click")
        if any(is_active(e) for e in (element, *element.iterancestors())):
            raise NotScorable("prep_actions that click on links or controls need a browser")

    def request(self, method: str, url: str, headers: dict[str, str], data: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request to the page's site, in the tab's session."""
        if self.session is None:
            raise NotScorable(f"{self.url} has no site to ask")
        return self.session.request(method, url, headers, data)


def parse(body: str, mimetype: str) -> html.HtmlElement:
    """A document from a response; what is not HTML is shown as plain text."""
    if mimetype not in ("text/html", "application/xhtml+xml"):
        body = f"<body><pre>{escape(body)}</pre></body>"
    try:
        document = html.document_fromstring(body)
    except ParserError:
        document = html.document_fromstring("<body></body>")
    for area in document.iter("textarea", "pre", "listing"):
        area.text = (area.text or "").removeprefix("\n")
    return document
