"""Time resets and steps: on a replica, and on the same MiniWoB++ task through this project and through BrowserGym.

    python benchmarks/environment.py      # about three minutes; the first time BrowserGym is installed before

Rounds are interleaved (theirs, ours, theirs, ours, …), both play the very same pages to their end in the same
Chromium, and medians are compared. Believe the numbers of an otherwise idle machine only.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from browsergym_process import REQUIREMENT, BenchmarkError, BrowserGym, ready_environment

from dynaweb_lite.browser import RealWeb
from dynaweb_lite.chromium import BrowserError, find_chromium
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.miniwob import MiniWobWeb, make_task
from dynaweb_lite.observation import Observation
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.tasks import Task, TaskError
from dynaweb_lite.worlds import World

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "assets" / "results" / "bench.json"
VENV = ROOT / "runs" / "browsergym-venv"

PAGE = "click-checkboxes"
"""The MiniWoB++ task that is timed: some checkboxes named by the goal, then Submit, two to seven clicks."""
EPISODES = 3
"""How many episodes one side plays before it is the other's turn."""
SIDE_BY_SIDE = 8
NO_WAITS = {"slow_mo": 0, "pre_observation_delay": 0}
"""BrowserGym slows each of Playwright's calls down by 100 ms and waits 500 ms before it reads a page: by default,
which is how it is used, and in the rows that are named vs BrowserGym. These keywords set both to nothing."""
NOTES = """
Milliseconds are medians; ratio says how many times as fast ours is. {chromium}.
Both take a page's accessibility tree at every step; BrowserGym takes a DOM snapshot and a screenshot too. Where
BrowserGym waits 500 ms for the page, ours puts the page's clock forward by as much. BrowserGym starts a browser for
each reset; ours loads the page anew in a context that is there.
"""


@dataclass
class Times:
    """Seconds that resets and steps took."""

    reset: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)

    def ms(self, what: str) -> float:
        return 1000 * statistics.median(getattr(self, what))


def row(name: str, ours: float, other: float) -> dict:
    """A benchmark row of milliseconds; `ratio` is how many times as fast ours is."""
    ratio = round(other / ours, 3 if other < ours else 1)
    return {"name": name, "ours": round(ours, 2), "other": round(other, 2), "ratio": ratio, "unit": "ms"}


def rows_of(suffix: str, ours: Times, other: Times) -> list[dict]:
    """The two rows of a comparison: step, then reset."""
    return [row(f"{what} {suffix}", ours.ms(what), other.ms(what)) for what in ("step", "reset")]


def timed(work: Callable[[], Sequence]) -> tuple[float, list]:
    """Seconds per result of a batch, and the results; the pages' text is made within the time."""
    began = time.perf_counter()
    results = list(work())
    for result in results:
        _ = result.text if isinstance(result, Observation) else result.observation.text
    return (time.perf_counter() - began) / len(results), results


def time_world(world: World, tasks: list[Task], rounds: int, steps: int, choose: Callable[[Observation], str]) -> Times:
    """Play `tasks` side by side; the times are those of one episode's share. The first round only warms up."""
    times = Times()
    for number in range(rounds + 1):
        seconds, pages = timed(lambda: world.reset(tasks))
        step_seconds = []
        for _ in range(steps):
            each, done = timed(lambda now=pages: world.step([choose(page) for page in now]))
            step_seconds.append(each)
            pages = [step.observation for step in done]
        if failed := [page.last_action_error for page in pages if page.last_action_error]:
            raise BenchmarkError(f"a step of ours failed: {failed[0]}")
        if number:
            times.reset.append(seconds)
            times.step += step_seconds
    return times


def replica_rows(rounds: int) -> list[dict]:
    """Reset to the shop's first page, then open one page after another: in Chromium, and without a browser."""
    task = Task("bench", ("shopping",), "__SHOPPING__", "look around", {"eval_types": []})

    def choose(page: Observation) -> str:
        names = ("My Account", "My Cart")
        return f"click [{page.find('link', names[page.title == 'Account']).id}]"

    rows = []
    with SiteServer() as server, RealWeb(server, contexts=SIDE_BY_SIDE) as real:
        for contexts in (1, SIDE_BY_SIDE):
            ours = time_world(real, [task] * contexts, rounds, 6, choose)
            direct = time_world(DirectWeb(server), [task] * contexts, rounds, 6, choose)
            rows += rows_of(f"on a replica, {contexts} side by side, vs no browser (DirectWeb)", ours, direct)
    return rows


def wanted(goal: str) -> list[str]:
    """The checkboxes that the goal of PAGE names."""
    names = goal.removeprefix("Select ").removesuffix(" and click Submit.")
    return [] if names == "nothing" else names.split(", ")


def play_ours(world: MiniWobWeb, page_seed: int, goal: str, times: Times) -> None:
    """Play PAGE to its end. Raises BenchmarkError when it is another page than theirs, or earns no reward."""
    task = make_task(PAGE, page_seed)
    seconds, [page] = timed(lambda: world.reset([task]))
    times.reset.append(seconds)
    if world.goals.get(task.task_id) != goal:
        raise BenchmarkError(f"not the same page: {world.goals.get(task.task_id)!r} here, {goal!r} in BrowserGym")
    reward = 0.0
    for role, name in [*(("checkbox", name) for name in wanted(goal)), ("button", "Submit")]:
        action = f"click [{page.find(role, name).id}]"
        seconds, [step] = timed(lambda action=action: world.step([action]))
        times.step.append(seconds)
        page, reward = step.observation, step.reward
    if reward != 1:
        raise BenchmarkError(f"ours earned {reward} on {task.task_id}")


def play_theirs(other: BrowserGym, seed: int, times: Times) -> tuple[int, str]:
    """Play PAGE to its end through BrowserGym. Returns the page's seed and goal."""
    start = other.ask(do="reset", seed=seed)
    times.reset.append(start["seconds"])
    for role, name in [*(("checkbox", name) for name in wanted(start["goal"])), ("button", "Submit")]:
        step = other.ask(do="click", role=role, name=name)
        times.step.append(step["seconds"])
    if step["error"] or step["reward"] != 1:
        raise BenchmarkError(f"BrowserGym earned {step['reward']} with seed {seed}: {step['error']}")
    return start["page_seed"], start["goal"]


def compare(world: MiniWobWeb, python: Path, chromium: Path, rounds: int, **keywords: float) -> tuple[Times, Times]:
    """Interleaved rounds on the same pages: our times and BrowserGym's. A first episode each only warms up."""
    url = f"http://127.0.0.1:{world.server.port}/miniwob/"
    ours, theirs, seeds = Times(), Times(), itertools.count(1)
    with BrowserGym(python, PAGE, url, chromium, **keywords) as other:
        play_ours(world, *play_theirs(other, 0, Times()), Times())
        for _ in range(rounds):
            played = [play_theirs(other, next(seeds), theirs) for _ in range(EPISODES)]
            for page_seed, goal in played:
                play_ours(world, page_seed, goal, ours)
    return ours, theirs


def miniwob_rows(python: Path, rounds: int) -> list[dict]:
    """The rows against BrowserGym, both in the same Chromium.

    First the full one, which BrowserGym's Playwright starts for its users (it is older than the headless shell); then,
    where there is one, the headless shell, which we would choose.
    """
    full, shell = find_chromium(headless=False), find_chromium()
    with MiniWobWeb(contexts=1, chromium=str(full or shell)) as world:
        print("BrowserGym as it is used", flush=True)
        ours, theirs = compare(world, python, full or shell, rounds)
        rows = rows_of("vs BrowserGym", ours, theirs)
        print("BrowserGym without its waits", flush=True)
        rows += rows_of("vs BrowserGym without its waits", *compare(world, python, full or shell, rounds, **NO_WAITS))
    if full is None or full == shell:
        return rows
    print("the same in the headless shell", flush=True)
    with MiniWobWeb(contexts=1) as world:
        ours, theirs = compare(world, python, shell, rounds)
        rows += rows_of("vs BrowserGym, both in the headless shell", ours, theirs)
        tasks = [make_task(PAGE, seed) for seed in range(SIDE_BY_SIDE)]
        batch = time_world(world, tasks, rounds, 4, lambda page: f"click [{page.find('checkbox').id}]")
        rows += rows_of(f"of {SIDE_BY_SIDE} side by side vs one BrowserGym, both in the headless shell", batch, theirs)
    return rows


def chromium_version() -> str:
    """What the Chromium that we would choose says of itself."""
    said = subprocess.run([find_chromium(), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return f"{find_chromium().name} {found[0] if found else ''}".strip()


def made(seconds: float) -> dict:
    """Where the numbers come from."""
    from dynaweb_lite.runs import commit  # brings torch along: not before the clock has stopped

    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "preset": "none",
        "device": f"CPU, {os.cpu_count()} cores, {platform.machine()}",
        "seconds": round(seconds),
        "versions": {
            "chromium": chromium_version(),
            "playwright": version("playwright"),
            "browsergym": REQUIREMENT.split("==")[1],
        },
    }


def format_rows(rows: list[dict]) -> str:
    """The rows as a table."""
    width = max(len(r["name"]) for r in rows)
    lines = [f"{'':{width}}  {'ours, ms':>9}  {'other, ms':>9}  {'ratio':>7}"]
    lines += [f"{r['name']:{width}}  {r['ours']:9.1f}  {r['other']:9.1f}  {r['ratio']:7}" for r in rows]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and write assets/results/bench.json as the last thing: an interrupted run leaves the old one."""
    parser = argparse.ArgumentParser(description="Time resets and steps, ours and BrowserGym's.")
    parser.add_argument(
        "--rounds", type=int, choices=range(1, 101), metavar="N", default=3, help=f"of {EPISODES} episodes (default: 3)"
    )
    parser.add_argument("--skip-browsergym", action="store_true", help="only our own rows; prints, writes nothing")
    options = parser.parse_args()
    try:
        python = None if options.skip_browsergym else ready_environment(VENV)
        began = time.monotonic()
        print("resets and steps on a replica", flush=True)
        rows = replica_rows(EPISODES * options.rounds)
        if python:
            rows += miniwob_rows(python, options.rounds)
        seconds = time.monotonic() - began
    except KeyboardInterrupt:
        print("\nstopped; nothing was written", file=sys.stderr)
        return 130
    except (BenchmarkError, BrowserError, TaskError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"\n{format_rows(rows)}\n{NOTES.format(chromium=chromium_version())}")
    if python:
        from dynaweb_lite.runs import write_json

        write_json(RESULTS, {"study": "bench", "made": made(seconds), "rows": rows})
        print(f"wrote {RESULTS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
