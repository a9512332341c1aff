"""RealWeb: many episodes side by side in one Chromium, each in a browser context and a site state of its own.

One worker thread owns Playwright and its event loop; the class is synchronous and works in scripts, JupyterLab and
Colab alike. Nothing that goes wrong in a page or in the browser leaves `step` as an exception.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from playwright.async_api import Browser, BrowserContext, Page, Route, async_playwright
from playwright.async_api import Error as PlaywrightError

from dynaweb_lite.accessibility import read_action
from dynaweb_lite.actions import Action
from dynaweb_lite.chromium import NOT_FOUND, BrowserError, find_chromium, switches
from dynaweb_lite.chromium_tab import ChromiumTab, first_line, hosts_of
from dynaweb_lite.direct import not_allowed
from dynaweb_lite.evaluators import NotScorable, evaluate
from dynaweb_lite.observation import Observation
from dynaweb_lite.sites.server import SESSION_COOKIE
from dynaweb_lite.tasks import Task, resolve_url, site_urls
from dynaweb_lite.worlds import WorldStep

if TYPE_CHECKING:
    from dynaweb_lite.sites import SiteServer

VIEWPORT = {"width": 1280, "height": 720}
_session_numbers = itertools.count()


class Worker:
    """A thread with an event loop of its own, whatever loop the calling thread may be in."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True, name="browser")
        self.thread.start()

    def run(self, work: Coroutine) -> Any:
        """Do the work in the thread and wait for its result; an interrupted wait cancels it."""
        future: Future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(timeout=5)


class Episode:
    """A browser context with its tabs, reused by one episode after another, and the page that the agent sees."""

    def __init__(self, context: BrowserContext, hosts: list[str], is_live: bool) -> None:
        self.context, self.hosts, self.is_live = context, hosts, is_live
        self.tabs: list[ChromiumTab] = []
        self.current = 0
        self.session = ""
        self.task: Task | None = None
        self.seen = Observation("", "about:blank")
        self.dead: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.expected: asyncio.Event = asyncio.Event()
        context.on("page", self._on_page)

    @property
    def tab(self) -> ChromiumTab:
        return self.tabs[self.current]

    def fail(self, reason: str) -> None:
        if not self.dead.done():
            self.dead.set_result(reason)

    def _on_page(self, page: Page) -> None:
        page.on("crash", lambda _: self.fail("the page crashed"))
        self.expected.set()

    async def adopt(self) -> None:
        """Make tabs of pages that have opened, the newest current, and let go of those that have closed."""
        current = self.tabs[self.current] if self.tabs else None
        self.tabs = [t for t in self.tabs if not t.page.is_closed()]
        known = {tab.page for tab in self.tabs}
        for page in self.context.pages:
            if page not in known and not page.is_closed():
                await page.wait_for_load_state("domcontentloaded")
                self.tabs.append(await ChromiumTab.attach(page, self.hosts, self.is_live))
                current = self.tabs[-1]
        self.current = self.tabs.index(current) if current in self.tabs else len(self.tabs) - 1

    async def act(self, action: Action) -> str:
        """Do an action, those on tabs included. Returns why it did nothing, or an empty string."""
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
            await asyncio.wait_for(self.expected.wait(), 5)
        if len(self.context.pages) != len(self.tabs):
            await self.adopt()
        if self.tab.page.url.startswith("chrome-error:"):
            error = error or not_allowed(self.tab.url)
            await self.tab.move(-1)
        return error

    async def observe(self, max_elements: int, error: str = "") -> Observation:
        page = await self.tab.observe(max_elements)
        others = tuple((i, t.title, t.url) for i, t in enumerate(self.tabs) if i != self.current)
        self.seen = Observation(page.title, page.url, page.elements, self.current, others, page.cut, error)
        return self.seen


class BrowserPage:
    """An `evaluators.PageReader` on a tab; called outside the browser's thread."""

    def __init__(self, worker: Worker, tab: ChromiumTab, timeout_seconds: float) -> None:
        self.worker, self.tab, self.url, self.timeout_seconds = worker, tab, tab.page.url, timeout_seconds

    def text(self, css: str | None = None, index: int = 0) -> str | None:
        return self._read(css, index, "text")

    def value(self, css: str, index: int = 0) -> str | None:
        return self._read(css, index, "value")

    def _read(self, css: str | None, index: int, what: str) -> str | None:
        return self.worker.run(asyncio.wait_for(self.tab.read(css, index, what), self.timeout_seconds))


class RealWeb:
    """The real web in Chromium, a `worlds.World` for any number of tasks.

    With a `server`, the replicas, and nothing else can be reached. Without one, the sites that the WA_* variables
    name, in a fresh context an episode, and only their hosts. `contexts` are opened at the start, and more when a
    batch is larger.
    Raises BrowserError when no Chromium is found or it does not start.
    """

    name = "real"

    def __init__(
        self,
        server: SiteServer | None = None,
        contexts: int = 4,
        max_elements: int = 60,
        headless: bool = True,
        chromium: str | None = None,
        step_timeout_seconds: float = 30.0,
    ) -> None:
        self.server = server.start() if server else None
        self.max_elements, self.headless, self.chromium = max_elements, headless, chromium
        self.step_timeout_seconds = step_timeout_seconds
        self.hosts = list(server.hosts) if server else hosts_of(site_urls().values())
        self.worker = Worker()
        self.episodes: list[Episode] = []
        self.batch = 0
        self._playwright: Any = None
        self._browser: Browser | None = None
        try:
            self.worker.run(self._prepare(contexts))
        except BaseException:
            self.close()
            raise

    def reset(self, tasks: Sequence[Task], starts: Sequence[Observation] | None = None) -> list[Observation]:
        """Begin an episode for each task [B] in a state of its own, on its start page or on the URL of `starts`."""
        urls = [page.url for page in starts] if starts else [resolve_url(task.start_url) for task in tasks]
        return self.worker.run(self._reset(list(tasks), urls))

    def step(self, actions: Sequence[str | None]) -> list[WorldStep | None]:
        """Do one action in each episode [B], side by side; see `worlds.World.step`.

        A browser that breaks down ends its episodes: truncated, with the reason in info["error"].
        """
        steps = self.worker.run(self._step(actions))
        return [self._score(i, s) if isinstance(s, Action) else s for i, s in enumerate(steps)]

    def observe(self, i: int) -> Observation:
        """Read the page of episode i anew."""
        return self.worker.run(self.episodes[i].observe(self.max_elements))

    def screenshot(self, i: int) -> bytes:
        """What a person would see of episode i, as PNG."""
        return self.worker.run(self.episodes[i].tab.page.screenshot())

    def close(self) -> None:
        """Close the browser and forget the episodes' state on the server."""
        if self.worker.thread.is_alive():
            self.worker.run(self._shut_down())
            self.worker.close()
        if self.server:
            for episode in self.episodes:
                self.server.drop(episode.session)
        self.episodes = []

    def __enter__(self) -> RealWeb:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _prepare(self, contexts: int) -> None:
        """Have a living browser and at least so many contexts; broken ones are replaced."""
        if self._browser is None or not self._browser.is_connected():
            await self._shut_down()
            self.episodes = []
            await self._launch()
        for i, episode in enumerate(self.episodes):
            if episode.dead.done() or (self.server is None and episode.task):
                await quietly(episode.context.close())
                self.episodes[i] = await self._new_episode()
        missing = range(contexts - len(self.episodes))
        self.episodes += await asyncio.gather(*(self._new_episode() for _ in missing))

    async def _launch(self) -> None:
        path = find_chromium(self.chromium, self.headless)
        if path is None:
            raise BrowserError(NOT_FOUND)
        flags = switches(self.hosts, self.server.port) if self.server else switches()
        self._playwright = await async_playwright().start()
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=path, headless=self.headless, args=flags
            )
        except PlaywrightError as error:
            raise BrowserError(f"{path} does not start: {first_line(error)}. {NOT_FOUND.split('. ', 1)[1]}") from error
        self._browser.on("disconnected", lambda _: [e.fail("the browser stopped") for e in self.episodes])

    async def _shut_down(self) -> None:
        browser, playwright = self._browser, self._playwright
        self._browser = self._playwright = None
        if browser:
            await quietly(browser.close())
        if playwright:
            await quietly(playwright.stop())

    async def _new_episode(self) -> Episode:
        context = await self._browser.new_context(accept_downloads=False, viewport=VIEWPORT, locale="en-US")
        if self.server is None:
            await context.route("**/*", self._filter)
        episode = Episode(context, self.hosts, is_live=self.server is None)
        await context.new_page()
        await episode.adopt()
        return episode

    async def _filter(self, route: Route) -> None:
        allowed = hosts_of([route.request.url])
        await (route.continue_() if set(allowed) <= set(self.hosts) else route.abort("blockedbyclient"))

    async def _reset(self, tasks: list[Task], urls: list[str]) -> list[Observation]:
        self.batch = len(tasks)
        await self._prepare(len(tasks))
        rows = zip(self.episodes[: self.batch], tasks, urls, strict=True)
        return await asyncio.gather(*(self._begin(episode, task, url) for episode, task, url in rows))

    async def _begin(self, episode: Episode, task: Task, url: str) -> Observation:
        try:
            return await self._guarded(episode, self._open(episode, task, url))
        except (PlaywrightError, TimeoutError) as error:
            episode.fail(first_line(error))
            return Observation("", "about:blank").with_error(f"{url} did not open: {first_line(error)}")

    async def _open(self, episode: Episode, task: Task, url: str) -> Observation:
        episode.task = task
        for tab in episode.tabs[1:]:
            await tab.page.close()
        episode.tabs, episode.current = episode.tabs[:1], 0
        if self.server:
            self.server.drop(episode.session)
            episode.session = f"real-{next(_session_numbers)}"
            await episode.context.clear_cookies()
            cookie = {"name": SESSION_COOKIE, "value": episode.session}
            await episode.context.add_cookies([cookie | {"url": f"http://{host}"} for host in self.hosts])
        error = await episode.tab.goto(url)
        await episode.tab.session.send("Page.resetNavigationHistory")
        return await episode.observe(self.max_elements, error)

    async def _guarded(self, episode: Episode, work: Coroutine) -> Any:
        """The work's result; TimeoutError or PlaywrightError when the time is up or the page or browser breaks down."""
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, episode.dead), timeout=self.step_timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done() and not episode.dead.done():
            return task.result()
        task.cancel()
        await asyncio.wait((task,), timeout=1)
        if episode.dead.done():
            raise PlaywrightError(episode.dead.result())
        raise TimeoutError(f"no answer within {self.step_timeout_seconds:g} seconds")

    async def _step(self, actions: Sequence[str | None]) -> list[WorldStep | Action | None]:
        pairs = zip(self.episodes[: self.batch], actions, strict=True)
        return await asyncio.gather(*(self._step_one(episode, action) for episode, action in pairs))

    async def _step_one(self, episode: Episode, text: str | None) -> WorldStep | Action | None:
        """One step; a stop action comes back as it is, to be scored outside the browser's thread."""
        if text is None:
            return None
        if episode.dead.done():
            return broken(episode, episode.dead.result())
        action = read_action(text, episode.seen)
        if isinstance(action, str):
            episode.seen = episode.seen.with_error(action)
            return WorldStep(episode.seen)
        if action.kind == "stop":
            return action
        error = ""
        try:
            error = await self._guarded(episode, episode.act(action))
        except TimeoutError as late:
            error = str(late)
        except PlaywrightError as failure:
            error = first_line(failure)
        try:
            return WorldStep(await self._guarded(episode, episode.observe(self.max_elements, error)))
        except (PlaywrightError, TimeoutError) as failure:
            episode.fail(first_line(failure))
            return broken(episode, first_line(failure))

    def _score(self, i: int, stop: Action) -> WorldStep:
        episode, opened = self.episodes[i], []

        def open_page(url: str) -> BrowserPage:
            opened.append(self.worker.run(self._guarded(episode, self._extra_tab(episode, url))))
            return BrowserPage(self.worker, opened[-1], self.step_timeout_seconds)

        last_page = BrowserPage(self.worker, episode.tab, self.step_timeout_seconds)
        try:
            reward = evaluate(episode.task, stop.text, last_page, open_page)
        except NotScorable as error:
            return WorldStep(episode.seen.with_error(""), terminated=True, info={"error": str(error)})
        except (PlaywrightError, TimeoutError) as error:
            return broken(episode, first_line(error))
        finally:
            for tab in opened:
                self.worker.run(quietly(tab.page.close()))
        return WorldStep(episode.seen.with_error(""), reward, terminated=True)

    async def _extra_tab(self, episode: Episode, url: str) -> ChromiumTab:
        tab = await ChromiumTab.attach(await episode.context.new_page(), self.hosts, episode.is_live)
        await tab.goto(url)
        return tab


def broken(episode: Episode, reason: str) -> WorldStep:
    """The step that ends an episode whose page or browser broke down."""
    episode.seen = episode.seen.with_error(reason)
    return WorldStep(episode.seen, truncated=True, info={"error": reason})


async def quietly(work: Coroutine) -> None:
    """Do closing work whose failure no longer matters."""
    try:
        await asyncio.wait_for(work, 5)
    except Exception:  # whatever is being closed may be gone already
        return
