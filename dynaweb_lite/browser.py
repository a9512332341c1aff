"""RealWeb: many episodes side by side in one Chromium, each in a browser context and a site state of its own.

One worker thread owns Playwright and its event loop; the class is synchronous and works in scripts, JupyterLab and
Colab alike. Nothing that goes wrong in a page or in the browser leaves `step` as an exception.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.async_api import Browser, BrowserContext, async_playwright
from playwright.async_api import Error as PlaywrightError

from dynaweb_lite import chromium_reader
from dynaweb_lite.accessibility import read_action
from dynaweb_lite.actions import Action
from dynaweb_lite.answer_judge import Judge
from dynaweb_lite.chromium import NOT_FOUND, BrowserError, find_chromium, switches
from dynaweb_lite.chromium_tab import ChromiumTab, first_line, host_of, quietly
from dynaweb_lite.episode import Episode, broken
from dynaweb_lite.evaluators import Evaluator, NotScorable
from dynaweb_lite.live import LOGIN_SECONDS, LoginError, Logins, Wall, allowed_hosts
from dynaweb_lite.observation import Observation
from dynaweb_lite.sites.server import SESSION_COOKIE
from dynaweb_lite.tasks import TABS, Task, base_url, live_urls, replica_urls, resolve_url, sites_at
from dynaweb_lite.worlds import WorldStep

if TYPE_CHECKING:
    from dynaweb_lite.sites import SiteServer

CONTEXT = {"viewport": {"width": 1280, "height": 720}, "locale": "en-US"}
SCRIPT_SECONDS = 3.0
"""What a page of a live site gets to fill itself in before an evaluator reads it; as long as WebArena waits."""
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


class BrowserPage:
    """A `page_reader.PageReader` on a tab; called outside the browser's thread."""

    def __init__(self, worker: Worker, tab: ChromiumTab, timeout_seconds: float) -> None:
        self.worker, self.tab, self.url, self.timeout_seconds = worker, tab, tab.page.url, timeout_seconds

    def text(self) -> str:
        return self._wait(chromium_reader.visible_text(self.tab.page))

    def content(self) -> str:
        return self._wait(self.tab.page.content())

    def locate(self, tree: list) -> Any:
        return self._wait(chromium_reader.answer(self.tab.page, tree))

    def prepare(self, tree: list) -> None:
        self._wait(chromium_reader.answer(self.tab.page, tree))
        self._wait(self.tab.settle())

    def request(self, method: str, url: str, headers: dict[str, str], data: Any = None) -> tuple[int, Any]:
        return self._wait(chromium_reader.fetch(self.tab.page, method, url, headers, data))

    def _wait(self, work: Coroutine) -> Any:
        return self.worker.run(asyncio.wait_for(work, self.timeout_seconds))


class RealWeb:
    """The real web in Chromium, a `worlds.World` for any number of tasks.

    With a `server`, the replicas, and nothing else can be reached: `contexts` are opened at the start, more when a
    batch is larger, and cleared for each episode. Without one, the user's own sites, which the WA_* variables name:
    an episode is logged in on its task's sites and reaches only their hosts. `logins` names a file that keeps the
    cookies of those logins between runs. `strict` and `judge` choose how tasks are scored (evaluators.Evaluator).
    Raises BrowserError when no Chromium is found or it does not start.
    """

    name = "real"
    episode_class = Episode
    context_options: dict[str, Any] = {}
    """What a subclass's contexts have otherwise than CONTEXT, in Playwright's words."""

    def __init__(
        self,
        server: SiteServer | None = None,
        contexts: int = 4,
        max_elements: int = 60,
        headless: bool = True,
        chromium: str | None = None,
        step_timeout_seconds: float = 30.0,
        logins: str | Path | None = None,
        strict: str = "",
        judge: Judge | None = None,
    ) -> None:
        self.server = server.start() if server else None
        self.max_elements, self.headless, self.chromium = max_elements, headless, chromium
        self.step_timeout_seconds = step_timeout_seconds
        self.evaluator: Evaluator | None = Evaluator(strict, judge)
        self.hosts = list(server.hosts) if server else []
        self.urls = replica_urls() if server else live_urls()
        self.wall = None if server else Wall()
        self.logins = None if server else Logins(self.urls, self._new_context, logins)
        self.worker = Worker()
        self.episodes: list[Episode] = []
        self.batch = 0
        self._playwright: Any = None
        self._browser: Browser | None = None
        try:
            self.worker.run(self._prepare(contexts if server else 0))
        except BaseException:
            self.close()
            raise

    def reset(self, tasks: Sequence[Task], starts: Sequence[Observation] | None = None) -> list[Observation]:
        """Begin an episode for each task [B] in a state of its own, on its start page or on the URL of `starts`.

        Where that fails, the observation says why in `last_action_error`, and the first step is truncated.
        Raises TaskError for a task with a site that has no address.
        """
        with sites_at(self.urls):
            for site in dict.fromkeys(site for task in tasks for site in task.visited_sites):
                base_url(site, self.urls)
            urls = [p.url for p in starts] if starts else [TABS.join(map(resolve_url, t.start_urls)) for t in tasks]
            hosts = [self.hosts if self.server else allowed_hosts(task, self.urls) for task in tasks]
        return self.worker.run(self._reset(list(tasks), urls, hosts))

    def step(self, actions: Sequence[str | None]) -> list[WorldStep | None]:
        """Do one action in each episode [B], side by side; see `worlds.World.step`.

        A browser that breaks down ends its episodes: truncated, with the reason in info["error"].
        """
        steps = self.worker.run(self._step(actions))
        with sites_at(self.urls):
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
        if self.wall:
            self.wall.close()
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
            if not episode.is_reusable:
                await quietly(episode.context.close())
                self.episodes[i] = await self._new_episode()
        missing = range(contexts - len(self.episodes))
        self.episodes += await asyncio.gather(*(self._new_episode() for _ in missing))

    async def _prepare_live(self, hosts: list[list[str]]) -> None:
        """A context for each list of hosts [B]: a wall stands around each, so they are made anew for each episode.

        That costs little beside a real site's page, and leaves nothing that `Episode.clear` might not reach.
        """
        old, self.episodes = self.episodes, []
        await asyncio.gather(*(quietly(episode.context.close()) for episode in old))
        await self._prepare(0)
        self.episodes = await asyncio.gather(*(self._new_episode(its_hosts) for its_hosts in hosts))

    async def _launch(self) -> None:
        path = find_chromium(self.chromium, self.headless)
        if path is None:
            raise BrowserError(NOT_FOUND)
        flags = switches(self.hosts, self.server.port) if self.server else switches()
        # a proxy of the environment would be asked for the replicas, in vain, and could get around the wall
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self._playwright = await async_playwright().start()
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=path, headless=self.headless, args=flags, env=env
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

    async def _new_context(self, hosts: Sequence[str]) -> BrowserContext:
        proxy = {"proxy": self.wall.around(hosts)} if self.wall else {}
        return await self._browser.new_context(accept_downloads=False, **CONTEXT | self.context_options | proxy)

    async def _new_episode(self, hosts: list[str] | None = None) -> Episode:
        hosts = self.hosts if hosts is None else hosts
        episode = self.episode_class(await self._new_context(hosts), hosts, is_live=self.server is None)
        await episode.context.new_page()
        await episode.adopt()
        return episode

    async def _reset(self, tasks: list[Task], urls: list[str], hosts: list[list[str]]) -> list[Observation]:
        self.batch = len(tasks)
        await (self._prepare(len(tasks)) if self.server else self._prepare_live(hosts))
        rows = zip(self.episodes[: self.batch], tasks, urls, strict=True)
        return await asyncio.gather(*(self._begin(episode, task, url) for episode, task, url in rows))

    async def _begin(self, episode: Episode, task: Task, url: str) -> Observation:
        try:
            if self.logins:
                await self.logins.give(episode.context, task)
            return await self._guarded(episode, self._open(episode, task, url))
        except LoginError as error:
            episode.fail(str(error))
        except (PlaywrightError, TimeoutError) as error:
            told = first_line(error)
            episode.fail(told if "did not open" in told else f"{url} did not open: {told}")
        return Observation("", "about:blank").with_error(episode.dead.result())

    async def _open(self, episode: Episode, task: Task, url: str) -> Observation:
        """The first page of an episode, in a clean context. `url` may hold several, parted by TABS, a tab for each."""
        episode.task = task
        if self.server:
            await self._forget(episode)
        first, *others = url.split(TABS)
        await self._enter(episode, first)
        for address in others:
            await episode.observe(self.max_elements)  # the tab's title, for the list of tabs
            await episode.act(Action("new_tab"))
            await self._enter(episode, address)
        if others:
            await episode.observe(self.max_elements)
            await episode.act(Action("tab_focus", text="0"))
        return await episode.observe(self.max_elements, episode.tab.told(""))

    async def _forget(self, episode: Episode) -> None:
        """Give an episode on replicas a context and a state on the server that know of no other."""
        if getattr(self.server, "is_script_free", False):
            episode.origins.clear()
        await episode.clear()
        self.server.drop(episode.session)
        episode.session = f"real-{next(_session_numbers)}"
        cookie = {"name": SESSION_COOKIE, "value": episode.session}
        await episode.context.add_cookies([cookie | {"url": f"http://{host}"} for host in self.hosts])

    async def _enter(self, episode: Episode, url: str) -> None:
        """Open a start page in the current tab and forget what came before. Raises PlaywrightError if it does not."""
        tab = episode.tab
        if error := await tab.goto(url):
            raise PlaywrightError(error)
        if self.logins and episode.task.require_login:
            await self.logins.keep_tab(episode.context, tab, url)
        await tab.session.send("Page.resetNavigationHistory")

    async def _guarded(self, episode: Episode, work: Coroutine, seconds: float | None = None) -> Any:
        """The work's result; TimeoutError or PlaywrightError when the time is up or the page or browser breaks down."""
        seconds = seconds or self.step_timeout_seconds
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, episode.dead), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done() and not episode.dead.done():
            return task.result()
        task.cancel()
        await asyncio.wait((task,), timeout=1)
        if episode.dead.done():
            raise PlaywrightError(episode.dead.result())
        raise TimeoutError(f"no answer within {seconds:g} seconds")

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
        error = await self._act(episode, action)
        try:
            return WorldStep(await self._guarded(episode, episode.observe(self.max_elements, error)))
        except (PlaywrightError, TimeoutError) as failure:
            episode.fail(first_line(failure))
            return broken(episode, first_line(failure))

    async def _act(self, episode: Episode, action: Action) -> str:
        """Do an action. Returns what went wrong; a page that does not come is given up, what has come of it stays."""
        try:
            error = await self._guarded(episode, episode.act(action))
            if self.logins and episode.task.require_login:
                work = self.logins.keep(episode, action, self.max_elements, error)
                error = await self._guarded(episode, work, LOGIN_SECONDS + self.step_timeout_seconds)
            return error
        except TimeoutError as late:
            await quietly(episode.tab.stop(), 1.0)
            return str(late)
        except PlaywrightError as failure:
            return first_line(failure)
        except LoginError as failure:
            episode.fail(str(failure))
            return str(failure)

    def _score(self, i: int, stop: Action) -> WorldStep:
        episode, opened = self.episodes[i], []

        def open_page(url: str) -> BrowserPage:
            opened.append(self.worker.run(self._guarded(episode, self._extra_tab(episode, url))))
            return BrowserPage(self.worker, opened[-1], self.step_timeout_seconds)

        last_page = BrowserPage(self.worker, episode.tab, self.step_timeout_seconds)
        try:
            reward = self.evaluator.score(episode.task, stop.text, last_page, open_page)
        except NotScorable as error:
            return WorldStep(episode.seen.with_error(""), terminated=True, info=error.info)
        except (PlaywrightError, TimeoutError) as error:
            return broken(episode, first_line(error))
        finally:
            for tab in opened:
                self.worker.run(quietly(tab.page.close()))
        return WorldStep(episode.seen.with_error(""), reward, terminated=True)

    async def _extra_tab(self, episode: Episode, url: str) -> ChromiumTab:
        """A tab beside the episode's own, for evaluators. Raises PlaywrightError when a page does not open."""
        tab = await ChromiumTab.attach(await episode.context.new_page(), episode.hosts, episode.is_live)
        try:
            if (error := await tab.goto(url)) and host_of(url) in episode.hosts:
                raise PlaywrightError(error)
            if self.logins and episode.task.require_login:
                await self.logins.keep_tab(episode.context, tab, url)
        except (PlaywrightError, LoginError) as error:
            await quietly(tab.page.close())
            raise PlaywrightError(str(error)) from error
        await asyncio.sleep(SCRIPT_SECONDS if episode.is_live else 0)
        return tab
