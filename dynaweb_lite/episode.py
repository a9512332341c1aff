"""One episode in Chromium: a browser context with its tabs, what an action does to them, and how they are cleaned."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Frame, Page, Request
from playwright.async_api import Error as PlaywrightError

from dynaweb_lite.actions import Action
from dynaweb_lite.chromium_tab import ChromiumTab, host_of
from dynaweb_lite.direct_tab import not_allowed
from dynaweb_lite.observation import Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.worlds import WorldStep

NEW_TAB_SECONDS = 5
"""How long a page that opens in a new tab may take before the agent is told that it does not come."""
LATE_TAB = f"the page in the new tab did not load within {NEW_TAB_SECONDS} seconds"

FORGET = "sessionStorage.clear(); window.name = ''"
"""What a tab itself keeps for an origin."""


class Episode:
    """A browser context with its tabs, reused by one episode after another, and the page that the agent sees.

    `hosts`: where it may go. `origins`: those whose pages it has shown and that may have stored something.
    `asked`: requests for pages since the last action began, on live sites.
    """

    def __init__(self, context: BrowserContext, hosts: list[str], is_live: bool) -> None:
        self.context, self.hosts, self.is_live = context, hosts, is_live
        self.tabs: list[ChromiumTab] = []
        self.current = 0
        self.session = ""
        self.task: Task | None = None
        self.seen = Observation("", "about:blank")
        self.origins: set[str] = set()
        self.asked: list[Request] = []
        self.is_late = self.is_mixed = False
        self.dead: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.expected: asyncio.Event = asyncio.Event()
        context.on("page", self._on_page)
        if is_live:
            context.on("request", self._on_request)

    @property
    def tab(self) -> ChromiumTab:
        return self.tabs[self.current]

    @property
    def is_reusable(self) -> bool:
        """Whether `clear` leaves nothing behind: no tab still to come, and no storage of one site inside another."""
        return not (self.dead.done() or self.is_late or self.is_mixed)

    def fail(self, reason: str) -> None:
        if not self.dead.done():
            self.dead.set_result(reason)

    def _on_page(self, page: Page) -> None:
        page.on("crash", lambda _: self.fail("the page crashed"))
        page.on("framenavigated", self._on_frame)
        self.expected.set()

    def _on_frame(self, frame: Frame) -> None:
        if not (origin := origin_of(frame.url)):
            return
        self.origins.add(origin)
        self.is_mixed |= frame.parent_frame is not None and origin_of(frame.page.url) != origin

    def _on_request(self, request: Request) -> None:
        if request.is_navigation_request():
            self.asked.append(request)

    def wanted(self, url: str) -> str:
        """The address that was asked for when redirects led to `url`; empty where a form was sent or nothing asked."""
        for request in reversed(self.asked):
            if request.url.split("#")[0] == url.split("#")[0]:
                while request.redirected_from:
                    request = request.redirected_from
                return request.url if request.method == "GET" else ""
        return ""

    async def adopt(self) -> None:
        """Make tabs of pages that have opened, the newest current, and let go of those that have closed."""
        current = self.tabs[self.current] if self.tabs else None
        self.tabs = [t for t in self.tabs if not t.page.is_closed()]
        known = {tab.page for tab in self.tabs}
        for page in self.context.pages:
            if page not in known and not page.is_closed():
                self.tabs.append(await self._attach(page))
                current = self.tabs[-1]
        self.current = self.tabs.index(current) if current in self.tabs else len(self.tabs) - 1

    async def _attach(self, page: Page) -> ChromiumTab:
        is_late = False
        try:
            await page.wait_for_load_state("domcontentloaded", timeout=NEW_TAB_SECONDS * 1000)
        except PlaywrightError:
            is_late = not page.is_closed()
        tab = await ChromiumTab.attach(page, self.hosts, self.is_live)
        if is_late:
            await tab.stop()
            tab.notes.append(LATE_TAB)
        return tab

    async def act(self, action: Action) -> str:
        """Do an action, those on tabs included. Returns why it did nothing, or an empty string."""
        self.asked.clear()
        match action.kind:
            case "new_tab":
                await self.context.new_page()
            case "tab_focus":
                if int(action.text) >= len(self.tabs):
                    return f"no tab {action.text}: tabs run 0 to {len(self.tabs) - 1}"
                self.current = int(action.text)
                await self.tab.page.bring_to_front()
            case "close_tab":
                if len(self.tabs) == 1:
                    return "the last tab stays open"
                await self.tab.page.close()
            case _:
                return await self._act_in_tab(action)
        await self.adopt()
        return ""

    async def _act_in_tab(self, action: Action) -> str:
        tab = self.tab
        tab.popup_announced = False
        self.expected.clear()
        error = await tab.act(action)
        if tab.popup_announced:
            error = await self._await_tab(error)
        if len(self.context.pages) != len(self.tabs):
            await self.adopt()
        if self.tab is not tab:
            error = self.tab.told(error)
        return await self._come_back() or error

    async def _await_tab(self, error: str) -> str:
        self.is_late = True
        try:
            await asyncio.wait_for(self.expected.wait(), NEW_TAB_SECONDS)
        except TimeoutError:
            return error or LATE_TAB
        self.is_late = False
        return error

    async def _come_back(self) -> str:
        """Leave a page that is none, or not allowed: for the one before it, or by closing its tab. Says what it was."""
        if not (url := await self.tab.astray()):
            return ""
        if await self.tab.move(-1) and len(self.tabs) > 1:
            await self.tab.page.close()
            await self.adopt()
        return f"{url} did not open" if host_of(url) in self.hosts else not_allowed(host_of(url) or url)

    async def observe(self, max_elements: int, error: str = "") -> Observation:
        page = await self.tab.observe(max_elements)
        others = tuple((i, t.title, t.url) for i, t in enumerate(self.tabs) if i != self.current)
        self.seen = Observation(page.title, page.url, page.elements, self.current, others, page.cut, error)
        return self.seen

    async def clear(self) -> None:
        """Be as a fresh context, if `is_reusable`, with one tab. Where pages had scripts, it shows an empty page."""
        for page in [page for page in self.context.pages if page is not self.tabs[0].page]:
            await page.close()
        self.tabs, self.current = self.tabs[:1], 0
        if self.origins:
            await forget(self.tab, self.origins)
            self.origins = set()
        self.tab.told("")
        await self.context.clear_cookies()


async def forget(tab: ChromiumTab, origins: Iterable[str]) -> None:
    """Clear what pages of these origins have stored in the browser, in its cache and in this tab; cookies stay.

    The tab goes to an empty page of each origin, so that no script of theirs can write again afterwards.
    """
    await tab.page.route("**/*", lambda route: route.fulfill(body="", content_type="text/html"))
    for origin in origins:
        data = {"origin": origin, "storageTypes": "service_workers"}
        await tab.session.send("Storage.clearDataForOrigin", data)
        await tab.page.goto(origin, timeout=0)
        await tab.page.evaluate(FORGET)
        await tab.session.send("Storage.clearDataForOrigin", data | {"storageTypes": "all"})
    await tab.page.unroute("**/*")
    await tab.session.send("Network.clearBrowserCache")


def origin_of(url: str) -> str:
    """Scheme, host and port of a web address; empty for any other."""
    split = urlsplit(url)
    return f"{split.scheme}://{split.netloc}" if split.scheme in ("http", "https") else ""


def broken(episode: Episode, reason: str) -> WorldStep:
    """The step that ends an episode whose page or browser broke down."""
    episode.seen = episode.seen.with_error(reason)
    return WorldStep(episode.seen, truncated=True, info={"error": reason})
