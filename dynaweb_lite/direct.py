"""The replicas without a browser: each action is a WSGI call and a parse, about thirty times faster than Chromium.

Pages read the same to the letter as through `RealWeb` (tests/test_web.py walks both). For pre-training data, validation
and experiments; scores that are reported come from the browser.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from lxml import html
from lxml.cssselect import CSSSelector
from lxml.etree import ParserError
from werkzeug.test import Client

from dynaweb_lite.accessibility import (
    TEXT_TYPES,
    HtmlReader,
    chosen_options,
    content_text,
    control_of,
    field_value,
    is_disabled,
    read_action,
    read_page,
)
from dynaweb_lite.actions import Action
from dynaweb_lite.evaluators import NotScorable, evaluate, repair_css
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
    option_value,
    owner,
    set_chosen,
    set_state,
    toggle,
)
from dynaweb_lite.observation import Observation
from dynaweb_lite.sites.server import SESSION_COOKIE
from dynaweb_lite.tasks import Task, resolve_url
from dynaweb_lite.worlds import WorldStep

if TYPE_CHECKING:
    from dynaweb_lite.sites import SiteServer

MAX_REDIRECTS = 20
_session_numbers = itertools.count()


def not_allowed(host: str) -> str:
    return f"host not allowed: {host}"


@dataclass
class Page:
    """A loaded page. The document's attributes hold what is typed and chosen, `defaults` what stood there first."""

    url: str
    document: html.HtmlElement
    focus: html.HtmlElement | None = None
    defaults: dict[tuple, str] = field(init=False)

    def __post_init__(self) -> None:
        self.defaults = {key: get_state(control) for key, control in control_keys(self.document)}

    @property
    def title(self) -> str:
        return self.document.findtext(".//title") or ""

    def text(self, css: str | None = None, index: int = 0) -> str | None:
        """The visible text of the page or of the index-th element that fits a CSS selector; None if there is none."""
        element = self.document.find("body") if css is None else self._select(css, index)
        return None if element is None else content_text(element, visible_text=True)

    def value(self, css: str, index: int = 0) -> str | None:
        """What stands in a form control; None if there is none."""
        element = self._select(css, index)
        if element is None or element.tag not in ("input", "textarea", "select", "option", "button"):
            return None
        if element.tag == "select":
            element = next(iter(chosen_options(element)), element)
        return option_value(element) if element.tag == "option" else field_value(element)

    def _select(self, css: str, index: int) -> html.HtmlElement | None:
        found = CSSSelector(repair_css(css))(self.document)
        return found[index] if -len(found) <= index < len(found) else None


@dataclass
class Visit:
    """An entry of the history: a URL and, once left, what stood in its forms."""

    url: str
    kept: dict[tuple, str] = field(default_factory=dict)


class Tab:
    """One episode's tab: fetches, follows, fills in and sends forms, as a browser does."""

    def __init__(self, server: SiteServer, session: str) -> None:
        self.hosts = set(server.hosts)
        self.client = Client(server.app)
        for host in server.hosts:
            self.client.set_cookie(SESSION_COOKIE, session, domain=host)
        self.page = Page("about:blank", html.document_fromstring("<body></body>"))
        self.history: list[Visit] = []
        self.position = -1

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
        return Page(url, parse(response.get_data(as_text=True), response.mimetype))

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
            return self.follow(target.get("href"))
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

    def follow(self, href: str) -> str:
        url = urljoin(self.page.url, href.strip())
        return "" if url.startswith(("javascript:", "mailto:", "tel:")) else self.open(url)

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
    """A URL as the address bar spells it."""
    split = urlsplit(url)
    path = quote(split.path or "/", safe="/%:@!$&'()*+,;=~-._|[]^")
    query = quote(split.query, safe="%/?:@!$&()*+,;=~-._|[]^{}`\\")
    return urlunsplit((split.scheme, split.netloc.lower(), path, query, split.fragment))


def parse(body: str, mimetype: str) -> html.HtmlElement:
    """A document from a response; what is not HTML is shown as plain text."""
    if mimetype not in ("text/html", "application/xhtml+xml"):
        body = f"<body><pre>{escape(body)}</pre></body>"
    try:
        document = html.document_fromstring(body)
    except ParserError:
        document = html.document_fromstring("<body></body>")
    for area in document.iter("textarea"):
        area.text = (area.text or "").removeprefix("\n")
    return document


class DirectWeb:
    """Episodes on replicas without a browser, one after the other; a `worlds.World` for any number of tasks."""

    name = "direct"

    def __init__(self, server: SiteServer, max_elements: int = 60) -> None:
        self.server, self.max_elements = server, max_elements
        self.tasks: list[Task] = []
        self.sessions: list[str] = []
        self.tabs: list[Tab] = []
        self.seen: list[tuple[Observation, list]] = []

    def reset(self, tasks: Sequence[Task], starts: Sequence[Observation] | None = None) -> list[Observation]:
        """Begin an episode for each task [B] in a state of its own, on its start page or on the URL of `starts`."""
        self.close()
        self.tasks = list(tasks)
        for i, task in enumerate(tasks):
            session = f"direct-{next(_session_numbers)}"
            tab = Tab(self.server, session)
            error = tab.open(starts[i].url if starts else resolve_url(task.start_url))
            self.sessions.append(session)
            self.tabs.append(tab)
            self.seen.append(self._read(tab, error))
        return [page for page, _ in self.seen]

    def step(self, actions: Sequence[str | None]) -> list[WorldStep | None]:
        """Do one action in each episode [B]; see `worlds.World.step`."""
        return [None if action is None else self._step(i, action) for i, action in enumerate(actions)]

    def observe(self, i: int) -> Observation:
        """The page of episode i."""
        return self.seen[i][0]

    def _step(self, i: int, text: str) -> WorldStep:
        page, keys = self.seen[i]
        action = read_action(text, page)
        if isinstance(action, str):
            return self._unchanged(i, action)
        tab = self.tabs[i]
        if action.kind == "stop":
            try:
                reward = evaluate(self.tasks[i], action.text, tab.page, lambda url: tab.fetch(tidy_url(url)))
            except NotScorable as error:
                return WorldStep(page.with_error(""), terminated=True, info={"error": str(error)})
            return WorldStep(page.with_error(""), reward, terminated=True)
        if action.kind in ("scroll", "hover"):
            return self._unchanged(i, "")
        error = tab.act(action, keys[action.element_id - 1] if action.element_id else None)
        self.seen[i] = self._read(tab, error)
        return WorldStep(self.seen[i][0])

    def _unchanged(self, i: int, error: str) -> WorldStep:
        page, keys = self.seen[i]
        self.seen[i] = page.with_error(error), keys
        return WorldStep(self.seen[i][0])

    def _read(self, tab: Tab, error: str = "") -> tuple[Observation, list]:
        page, keys = read_page(HtmlReader(tab.page.document).tree(), tab.page.title, tab.page.url, self.max_elements)
        return page.with_error(error), keys

    def close(self) -> None:
        """Forget the episodes and their state on the server."""
        for session in self.sessions:
            self.server.drop(session)
        self.tasks, self.sessions, self.tabs, self.seen = [], [], [], []
