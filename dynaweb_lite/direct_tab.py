"""A tab without a browser: WSGI calls, links, forms and history, as a browser has them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from lxml import html
from werkzeug.test import Client

from dynaweb_lite.accessibility import (
    TEXT_TYPES,
    control_of,
    is_disabled,
)
from dynaweb_lite.actions import Action
from dynaweb_lite.forms import (
    NOT_SENT,
    choose,
    control_keys,
    form_controls,
    form_of,
    form_pairs,
    form_quote,
    get_state,
    is_active,
    is_submit,
    is_valid,
    owner,
    set_chosen,
    set_state,
    toggle,
)
from dynaweb_lite.html_page import Page, parse
from dynaweb_lite.page_reader import read_json

MAX_REDIRECTS = 20
BLANK = "about:blank"


def not_allowed(host: str) -> str:
    return f"host not allowed: {host}"


@dataclass
class Visit:
    """An entry of the history: a URL and, once left, what stood in its forms."""

    url: str
    kept: dict[tuple, str] = field(default_factory=dict)


class Tab:
    """A tab of one episode: fetches, follows, fills in and sends forms, as a browser does.

    `client` holds the episode's cookies, `opened` collects tabs that links have opened beside this one.
    """

    def __init__(self, client: Client, hosts: Sequence[str]) -> None:
        self.client, self.hosts = client, hosts
        self.opened: list[Tab] = []
        self.page = Page(BLANK, html.document_fromstring("<body></body>"))
        self.history: list[Visit] = []
        self.position = -1

    @classmethod
    def blank(cls, client: Client, hosts: Sequence[str]) -> Tab:
        """A tab as a person opens it: its empty page stands in its history."""
        tab = cls(client, hosts)
        tab.history, tab.position = [Visit(BLANK)], 0
        return tab

    def open(self, url: str, data: bytes | None = None, from_form: bool = False) -> str:
        """Go to a URL, with `data` by POST. Returns why it cannot be, or an empty string.

        The history gets a new entry, unless a link leads to the page that it stands on.
        """
        if (split := urlsplit(url)).scheme not in ("http", "https") or split.hostname not in self.hosts:
            return not_allowed(split.hostname or url)
        url = tidy_url(url)
        is_reload = bool(self.history) and not from_form and url == self.history[self.position].url
        if data is None and split.fragment and url.split("#")[0] == self.page.url.split("#")[0]:
            self.page.url = url
        else:
            self._leave()
            self.page = self.fetch(url, data)
        if is_reload:
            self.history[self.position] = Visit(self.page.url)
        else:
            self.position += 1
            self.history[self.position :] = [Visit(self.page.url)]
        return ""

    def fetch(self, url: str, data: bytes | None = None) -> Page:
        """The page behind a URL, redirects followed."""
        if url == BLANK:
            return Page(BLANK, html.document_fromstring("<body></body>"))
        for _ in range(MAX_REDIRECTS):
            split = urlsplit(url)
            response = self.client.open(
                path=split.path,
                query_string=split.query,
                base_url=f"http://{split.netloc}",
                method="GET" if data is None else "POST",
                data=data,
                content_type=None if data is None else "application/x-www-form-urlencoded",
            )
            if response.status_code not in (301, 302, 303, 307, 308):
                break
            url = tidy_url(urljoin(url, response.headers["Location"]))
            data = data if response.status_code in (307, 308) else None
            if urlsplit(url).hostname not in self.hosts:
                return Page(url, parse(not_allowed(urlsplit(url).hostname or url), "text/plain"))
        source = response.get_data(as_text=True), response.mimetype
        return Page(url, parse(*source), source=source, session=self)

    def read(self, url: str) -> str:
        """The text of a file of a site, empty where there is none."""
        split = urlsplit(url)
        if split.hostname not in self.hosts:
            return ""
        response = self.client.get(split.path, query_string=split.query, base_url=f"http://{split.netloc}")
        return response.get_data(as_text=True) if response.status_code == 200 else ""

    def request(self, method: str, url: str, headers: dict[str, str], data: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request to a site, in this session."""
        split = urlsplit(url)
        target = {"path": split.path, "query_string": split.query, "base_url": f"http://{split.netloc}"}
        body = None if data is None else json.dumps(data)
        response = self.client.open(**target, method=method, headers=headers, data=body)
        return response.status_code, read_json(response.get_data(as_text=True))

    def move(self, by: int) -> str:
        """Go back (-1) or forward (1); the page is fetched again and what was typed into it stands there again."""
        if not 0 <= self.position + by < len(self.history):
            return "there is no page to go " + ("back" if by < 0 else "forward") + " to"
        self._leave()
        self.position += by
        visit = self.history[self.position]
        if visit.url.split("#")[0] == self.page.url.split("#")[0] and "#" in visit.url + self.page.url:
            self.page.url = visit.url
            return ""
        self.page = self.fetch(visit.url)
        for key, control in control_keys(self.page.document):
            if key in visit.kept:
                set_state(control, visit.kept[key])
        return ""

    def _leave(self) -> None:
        if self.history:
            states = {key: get_state(control) for key, control in control_keys(self.page.document)}
            always = ("select", "checkbox", "radio")
            self.history[self.position].kept = {
                key: s
                for key, s in states.items()
                if s != self.page.defaults[key] or not {*key[1:3]}.isdisjoint(always)
            }

    def act(self, action: Action, element: html.HtmlElement | None) -> str:
        """Do an action; `element` is what its id stands for. Returns why it did nothing, or an empty string."""
        match action.kind:
            case "click":
                return self.click(element)
            case "type":
                return self.type(element, action.text, action.press_enter)
            case "select":
                return choose(element, action)
            case "press":
                return self.press(action.text)
            case "goto":
                return self.open(action.text if "://" in action.text else f"http://{action.text}")
            case "go_back":
                return self.move(-1)
            case "go_forward":
                return self.move(1)
            case "scroll" | "hover":
                return ""
        return f"{action.kind} is not supported without a browser"

    def click(self, element: html.HtmlElement) -> str:
        target = next((e for e in (element, *element.iterancestors()) if is_active(e)), None)
        if target is not None and target.tag == "label":
            target = control_of(target)
        self.page.focus = target
        if target is None or is_disabled(target):
            return ""
        kind = target.get("type", "submit" if target.tag == "button" else "text").lower()
        if target.tag == "a":
            return self.follow(target)
        if target.tag == "option":
            set_chosen(target)
        elif target.tag in ("button", "input") and kind in ("submit", "image"):
            return self.submit(target)
        elif kind == "reset" and target.tag in ("button", "input"):
            self.page = self.fetch(self.page.url)
        elif target.tag == "input" and kind == "checkbox":
            toggle(target, target.get("checked") is None)
        elif target.tag == "input" and kind == "radio":
            for other in owner(target).iter("input"):
                if other.get("type") == "radio" and other.get("name") == target.get("name"):
                    toggle(other, other is target)
        return ""

    def follow(self, link: html.HtmlElement) -> str:
        url = urljoin(self.page.url, link.get("href").strip())
        if url.startswith(("javascript:", "mailto:", "tel:")):
            return ""
        if link.get("target") != "_blank":
            return self.open(url)
        beside = Tab(self.client, self.hosts)
        if error := beside.open(url):
            return error
        self.opened.append(beside)
        return ""

    def type(self, element: html.HtmlElement, text: str, press_enter: bool) -> str:
        """Put text in place of what stands in a field."""
        if element.tag not in ("input", "textarea") or element.get("readonly") is not None:
            return f"this {element.tag} takes no text"
        if element.get("type") == "number" and text and not re.fullmatch(r"-?\d+(\.\d+)?", text):
            return f"not a number: {text!r}"
        text = text[: int(element.get("maxlength", len(text)))]
        if element.tag == "textarea":
            element.text = text
        else:
            element.set("value", text.replace("\n", ""))
        self.page.focus = element
        return self.press("Enter") if press_enter else ""

    def press(self, key: str) -> str:
        """Enter sends the form of the field in focus, or clicks what is in focus; other keys change nothing here."""
        focus = self.page.focus
        if key != "Enter" or focus is None:
            return ""
        if focus.tag in ("a", "button"):
            return self.click(focus)
        if focus.tag == "textarea":
            focus.text = (focus.text or "") + "\n"
            return ""
        if focus.tag != "input" or (form := form_of(focus)) is None:
            return ""
        buttons = [e for e in form_controls(form) if is_submit(e)]
        if buttons:
            return "" if is_disabled(buttons[0]) else self.submit(buttons[0])
        fields = [e for e in form_controls(form) if e.tag == "input" and e.get("type", "text") in TEXT_TYPES]
        return self.submit(None, form) if len(fields) <= 1 else ""

    def submit(self, button: html.HtmlElement | None, form: html.HtmlElement | None = None) -> str:
        form = form_of(button) if form is None else form
        if form is None:
            return ""
        if form.get("novalidate") is None and not all(is_valid(e) for e in form_controls(form)):
            return NOT_SENT
        pairs = [pair for e in form_controls(form) for pair in form_pairs(e, button)]
        query = "&".join(f"{form_quote(key)}={form_quote(value)}" for key, value in pairs)
        action = button.get("formaction") if button is not None else None
        url = urljoin(self.page.url, action or form.get("action") or self.page.url)
        if form.get("method", "get").lower() == "post":
            return self.open(url, query.encode(), from_form=True)
        url = urlunsplit(urlsplit(url)._replace(query=query, fragment="")) + ("" if query else "?")
        return self.open(url, from_form=True)


def tidy_url(url: str) -> str:
    """A URL as the address bar spells it, without `.` and `..`."""
    split = urlsplit(url)
    path = urlsplit(urljoin("http://any/", "." + split.path)).path if "/." in split.path else split.path
    path = quote(path or "/", safe="/%:@!$&'()*+,;=~-._|[]^")
    query = quote(split.query, safe="%/?:@!$&()*+,;=~-._|[]^{}`\\")
    return urlunsplit((split.scheme, split.netloc.lower(), path, query, split.fragment))
