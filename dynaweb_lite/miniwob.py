"""MiniWobWeb: the pages of MiniWoB++, a benchmark that others made, as a world like any other.

The pages come from the installed package `miniwob`, whose own code is never run. A task is a page and a seed; its goal
and its reward are the page's own. An agent sees and does here what it sees and does in `RealWeb`.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError
from waitress.server import create_server
from werkzeug.exceptions import NotFound
from werkzeug.middleware.shared_data import SharedDataMiddleware

from dynaweb_lite.actions import ELEMENT_KINDS, Action
from dynaweb_lite.browser import RealWeb
from dynaweb_lite.episode import Episode
from dynaweb_lite.observation import Observation, one_line
from dynaweb_lite.sites.server import CONNECTIONS
from dynaweb_lite.tasks import Task, TaskError
from dynaweb_lite.worlds import WorldStep

HOST = "miniwob.test"
NOT_INSTALLED = "MiniWoB++ is not installed. Run `pip install --no-deps miniwob==1.1.0`"
REAL_TIME = ("button-delay", "chase-circle", "hover-shape", "moving-items", "simon-says")
"""Pages that are about being quick or patient. They test no language model, and BrowserGym leaves them out too."""

TIME_LIMIT_MS = 24 * 3600 * 1000
"""A page ends its episode with -1 after 10 to 30 seconds. A day instead: no slow machine or model loses by it."""
CLOCK_STEP_MS = 500
"""How far the page's clock is put forward after each action, at once: animations and delayed menus are over by then.
BrowserGym waits as long. Between actions the clock runs as usual."""
CLOCK_STARTS = "2026-01-01T12:00:00Z"
VIEWPORT = {"width": 500, "height": 320}
"""The package's own window; a task fills 160 by 210 of it, at the top left."""
BATCH = 8

BEGIN = """
(async () => {
  const tick = () => new Promise(done => {
    const {port1, port2} = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(0);
  });
  if (document.readyState !== "complete") await new Promise(done => addEventListener("load", done));
  await tick();
  if (core.ept0 !== null) throw new Error("the page has begun before");
  Math.seedrandom(SEED);
  core.EPISODE_MAX_TIME = LIMIT;
  core.startEpisodeReal();
  while (!WOB_TASK_READY) await tick();
  core.clearTimer();
  core.hideDisplay();
  const said = core.getUtterance();
  document.getElementById("query").style.visibility = "hidden";
  return said.utterance ?? said;
})()
"""
"""Start the episode as the page's START button does; then hide score, clock and goal, which are not the task's page.
A tick is the next turn of the event loop; `setTimeout` would be the page's clock, which is slower (`CLOCK_STEP_MS`)."""

LOOK = """
(() => {
  if (!window.core || core.ept0 === null) return null;
  if (WOB_DONE_GLOBAL) core.cover_div.style.display = "none";
  return [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON];
})()
"""
"""What the page says of its episode; null when it is not the page that was begun. At the end START stays hidden."""


def html_folder() -> Path:
    """Where the installed package keeps its pages. Raises TaskError that says what to install."""
    found = importlib.util.find_spec("miniwob")
    folder = Path(found.submodule_search_locations[0]) / "html" if found and found.submodule_search_locations else None
    if folder is None or not (folder / "core" / "core.js").exists():
        raise TaskError(NOT_INSTALLED)
    return folder


def page_names() -> list[str]:
    """Names of the pages whose reward has nothing to do with speed, sorted: `click-button` and 124 more."""
    names = sorted(path.stem for path in (html_folder() / "miniwob").glob("*.html"))
    return [name for name in names if name not in REAL_TIME]


def miniwob_tasks(
    names: Iterable[str] | None = None, seeds: Iterable[int] = range(1), world: MiniWobWeb | None = None
) -> list[Task]:
    """A task for each page (None: all of `page_names`) and seed; the same seed is the same page, anywhere.

    A task's `intent` is what its page asks for, so each page is opened once: in `world`, or in a browser for this
    call. `eval` is {"eval_types": ["miniwob"], "page": name, "seed": seed}, which only MiniWobWeb reads.
    Raises TaskError for a name that is none, with names near it, and for a page that does not begin.
    """
    known, seeds = page_names(), list(seeds)
    rows = [(check_name(name, known), seed) for name in (known if names is None else names) for seed in seeds]
    tasks = [make_task(name, seed) for name, seed in rows]
    if world is not None:
        return world.with_intents(tasks)
    with MiniWobWeb(contexts=min(len(tasks), BATCH)) as own:
        return own.with_intents(tasks)


def check_name(name: str, known: Sequence[str]) -> str:
    """The name of a page. Raises TaskError with near names when it is none."""
    if name in known or name in REAL_TIME:
        return name
    near = difflib.get_close_matches(name, known, n=4, cutoff=0.5) or known[:4]
    raise TaskError(f"MiniWoB++ has no page {name!r}; near it: {', '.join(near)}")


def make_task(name: str, seed: int) -> Task:
    """The task of a page and a seed, its intent still empty."""
    return Task(
        task_id=f"miniwob.{name}.{seed}",
        sites=("miniwob",),
        start_url=f"http://{HOST}/miniwob/{name}.html",
        intent="",
        eval={"eval_types": ["miniwob"], "page": name, "seed": seed},
        require_login=False,
        kind=name,
    )


class PageServer:
    """The package's files on a free loopback port, with the part of `SiteServer` that RealWeb asks for."""

    def __init__(self, folder: Path) -> None:
        self.hosts, self.port = [HOST], 0
        self.app = SharedDataMiddleware(NotFound(), {"/": str(folder)}, cache_timeout=24 * 3600)
        self._server: Any = None

    def start(self) -> PageServer:
        limits = {"threads": 8, "connection_limit": CONNECTIONS, "asyncore_use_poll": True}
        self._server = create_server(self.app, host="127.0.0.1", port=0, **limits)
        self.port = self._server.effective_port
        threading.Thread(target=self._server.run, daemon=True, name="miniwob").start()
        return self

    def drop(self, session: str) -> None:
        """Nothing to forget: the pages keep their state in the browser."""

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


@dataclass(frozen=True)
class Outcome:
    """What a page says of its episode: is it over, the reward without its time penalty, the page's reason."""

    is_over: bool = False
    raw_reward: float = 0.0
    reason: str = ""


class MiniWobEpisode(Episode):
    """An episode on one MiniWoB page. `outcome` is as of the last look at the page.

    `has_mouse`: a hover has brought the mouse onto the page. It stays there, and has to go along with later clicks.
    """

    outcome = Outcome()
    has_mouse = False
    page_errors: tuple[str, ...] = ()

    async def act(self, action: Action) -> str:
        """Do an action on the page; those that would leave it do nothing, as MiniWoB++ has none of them."""
        if action.kind not in (*ELEMENT_KINDS, "press", "scroll"):
            return f"{action.kind} does nothing here: a MiniWoB task is one page"
        if self.has_mouse and action.kind == "click":
            await super().act(replace(action, kind="hover"))
        self.has_mouse = self.has_mouse or action.kind == "hover"
        return await super().act(action)

    async def put_mouse_away(self) -> None:
        """Take the mouse off the page, so that the next episode's page does not open under it."""
        if self.has_mouse:
            corner = {"x": VIEWPORT["width"] - 1, "y": VIEWPORT["height"] - 1}
            await self.tab.session.send("Input.dispatchMouseEvent", {"type": "mouseMoved"} | corner)
            self.has_mouse = False

    async def begin(self, seed: int, max_elements: int) -> tuple[str, Observation]:
        """Start the episode on the page that has loaded: its goal, and what it shows.

        Raises PlaywrightError when the page's script fails.
        """
        script = BEGIN.replace("SEED", json.dumps(seed)).replace("LIMIT", str(TIME_LIMIT_MS))
        goal = one_line(str(await evaluate_script(self.tab.session, script)))
        return goal, await super().observe(max_elements)

    async def observe(self, max_elements: int, error: str = "") -> Observation:
        """Put the page's clock forward, ask the page how the episode stands, and read it."""
        await self.tab.page.clock.run_for(CLOCK_STEP_MS)
        said = await evaluate_script(self.tab.session, LOOK)
        if said is None:
            self.outcome = Outcome(is_over=True, reason="the page was left")
        else:
            self.outcome = Outcome(bool(said[0]), float(said[1]), said[2] or "")
        return await super().observe(max_elements, error)

    def _on_page(self, page: Any) -> None:
        super()._on_page(page)
        page.on("pageerror", lambda error: setattr(self, "page_errors", (*self.page_errors, one_line(str(error)))))


async def evaluate_script(session: CDPSession, script: str) -> Any:
    """The value of a script in the page, promises waited for. Raises PlaywrightError with the script's own error."""
    answer = await session.send("Runtime.evaluate", {"expression": script, "awaitPromise": True, "returnByValue": True})
    if details := answer.get("exceptionDetails"):
        said = details.get("exception", {}).get("description") or details["text"]
        raise PlaywrightError(f"the page's script failed: {one_line(said)}")
    return answer["result"].get("value")


class MiniWobWeb(RealWeb):
    """MiniWoB++ in Chromium, a `worlds.World` for tasks of `miniwob_tasks`, any number of them side by side.

    An episode ends when its page says so, when the agent stops, or when an action makes the page leave. Reward is 1
    where the page's raw reward (before its time penalty) is 1, else 0: success as MiniWoB++'s own
    `get_binary_reward` has it. With `partial_counts` any raw reward above 0 earns 1, as in scores by BrowserGym;
    say which you report. info holds `raw_reward` (-1 to 1), the page's `reason`, and `page_errors` of its scripts.

    The goal is the task's intent and stands nowhere on the page, nor do the page's clock and score.
    Raises TaskError when the package is missing, BrowserError when no Chromium is found or it does not start.
    """

    name = "miniwob"
    episode_class = MiniWobEpisode
    context_options = {"viewport": VIEWPORT, "timezone_id": "UTC"}

    def __init__(
        self,
        contexts: int = 4,
        max_elements: int = 60,
        partial_counts: bool = False,
        headless: bool = True,
        chromium: str | None = None,
        step_timeout_seconds: float = 30.0,
    ) -> None:
        self.partial_counts = partial_counts
        self.goals: dict[int | str, str] = {}
        server = PageServer(html_folder())
        super().__init__(server, contexts, max_elements, headless, chromium, step_timeout_seconds)
        self.evaluator = None  # its pages give the reward

    def reset(self, tasks: Sequence[Task], starts: Sequence[Observation] | None = None) -> list[Observation]:
        """Load each task's page [B] anew and begin it with the task's seed; a page has no other place to start.

        A page that cannot begin is an observation with `last_action_error`, and its first step is truncated.
        Raises TaskError for a task that is none of MiniWoB's.
        """
        if foreign := [task.task_id for task in tasks if "miniwob" not in task.eval.get("eval_types", ())]:
            raise TaskError(f"not of MiniWoB++: task {foreign[0]}; make tasks with miniwob_tasks")
        return super().reset(tasks)

    def with_intents(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks with their intents, read from their pages. Raises TaskError for a page that does not begin."""
        for start in range(0, len(tasks), BATCH):
            batch = tasks[start : start + BATCH]
            for task, page in zip(batch, self.reset(batch), strict=True):
                if page.last_action_error:
                    raise TaskError(f"task {task.task_id}: {page.last_action_error}")
        return [replace(task, intent=self.goals[task.task_id]) for task in tasks]

    def close(self) -> None:
        """Close the browser, then the server of the pages."""
        super().close()
        self.server.close()

    async def _new_episode(self, hosts: list[str] | None = None) -> Episode:
        episode = await super()._new_episode(hosts)
        await episode.context.clock.install(time=CLOCK_STARTS)
        await episode.tab.session.send("Network.disable")  # so that the cache serves: these files never change
        return episode

    async def _open(self, episode: Episode, task: Task, url: str) -> Observation:
        """The first page, begun. It is loaded anew, and MiniWoB++ stores nothing outside its pages, so all is clean."""
        episode.task, episode.outcome, episode.page_errors = task, Outcome(), ()
        if len(episode.context.pages) > 1:
            await episode.clear()
        await episode.put_mouse_away()
        # answers when the page is there, which BEGIN is waiting for anyway: sooner than Playwright's goto
        answer = await episode.tab.session.send("Page.navigate", {"url": url})
        if error := answer.get("errorText"):
            raise PlaywrightError(f"{url} did not open: {error}")
        self.goals[task.task_id], page = await episode.begin(task.eval["seed"], self.max_elements)
        return page

    async def _step_one(self, episode: Episode, text: str | None) -> WorldStep | Action | None:
        if text is not None and episode.outcome.is_over:
            return WorldStep(episode.seen.with_error("the episode is over"), terminated=True)
        step = await super()._step_one(episode, text)
        if isinstance(step, Action):
            step = WorldStep(episode.seen.with_error(""), terminated=True)
            episode.outcome = replace(episode.outcome, is_over=True)
        return step and self._judged(episode, step)

    def _judged(self, episode: Episode, step: WorldStep) -> WorldStep:
        """The step with the reward that the page gave, if it gave one."""
        outcome = episode.outcome
        info = step.info | {"raw_reward": outcome.raw_reward, "reason": outcome.reason}
        if episode.page_errors:
            info["page_errors"] = episode.page_errors
        won = outcome.raw_reward > 0 if self.partial_counts else outcome.raw_reward >= 1
        terminated = step.terminated or outcome.is_over and not step.truncated
        return replace(step, reward=float(outcome.is_over and won), terminated=terminated, info=info)
