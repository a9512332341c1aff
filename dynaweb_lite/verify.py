"""The proof that tasks run on the replicas, shown by playing them.

A real task: a scripted solution scores 1, having seen the facts that its answer rests on; an agent that does nothing
scores 0, and so does a plausible mistake. A generated task: its expert scores 1, an idler 0.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from tqdm.auto import tqdm

from dynaweb_lite.observation import Observation
from dynaweb_lite.scripted import ScriptPolicy
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.webarena import MODULES
from dynaweb_lite.sites.webarena.generator import generate_tasks
from dynaweb_lite.tasks import Task, TaskError
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.webarena_tasks import Replicated, lite_ids, replicated, replicated_tasks
from dynaweb_lite.worlds import World, rollout

PARTS = ("solution", "nothing", "wrong")
BATCH = 8


@dataclass(frozen=True)
class Proof:
    """Scores of one task's three runs, and what went wrong in them (empty when all is as it must be)."""

    task_id: int | str
    site: str
    solution: float
    nothing: float
    wrong: float
    problems: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.problems


def verify(rows: Sequence[Replicated], tasks: Sequence[Task], world: World) -> list[Proof]:
    """Run solution, idler and mistake of each task in the world, `BATCH` tasks side by side, with a progress bar."""
    proofs = []
    with tqdm(total=len(rows), desc="verifying", unit="task") as bar:
        for start in range(0, len(rows), BATCH):
            part, its_tasks = rows[start : start + BATCH], tasks[start : start + BATCH]
            scripts = [[row.solution for row in part], [("stop []",)] * len(part), [row.wrong for row in part]]
            runs = [play(its_tasks, script, world) for script in scripts]
            proofs += [_proof(row, [(r[0][i], r[1].get(row.task_id, "")) for r in runs]) for i, row in enumerate(part)]
            bar.update(len(part))
    return proofs


def play(
    tasks: Sequence[Task], scripts: Sequence[Sequence[str]], world: World
) -> tuple[list[Trajectory], dict[int | str, str]]:
    """One episode for each task by its script, and the errors of scripts that did not fit, by task id."""
    policy = ScriptPolicy({task.task_id: script for task, script in zip(tasks, scripts, strict=True)})
    episodes = rollout(policy, world, tasks, max((len(s) for s in scripts), default=0) + 1, source="expert")
    return episodes, policy.errors


def _proof(row: Replicated, runs: Sequence[tuple[Trajectory, str]]) -> Proof:
    scores = [episode.reward for episode, _ in runs]
    problems = [f"{part}: {error}" for part, (_, error) in zip(PARTS, runs, strict=True) if error]
    problems += [
        f"{part}: {episode.provenance['error']}"
        for part, (episode, _) in zip(PARTS, runs, strict=True)
        if "error" in episode.provenance
    ]
    if scores != [1.0, 0.0, 0.0]:
        problems.append(f"scores {scores}, not [1.0, 0.0, 0.0]")
    seen = "\n".join(text for page in runs[0][0].observations for text in texts_of(page))
    problems += [f"never seen: {fact!r}" for fact in row.reads if fact not in seen]
    return Proof(row.task_id, row.site, *scores, tuple(problems))


def verify_generated(tasks: Sequence[Task], world: World) -> list[Proof]:
    """Run the expert and the idler of each generated task; their column of mistakes is that of the idler."""
    proofs, solved, errors, idle = [], [], {}, []
    for start in tqdm(range(0, len(tasks), BATCH), desc="verifying", unit="batch"):
        part = tasks[start : start + BATCH]
        episodes, part_errors = play(part, [task.extra["script"] for task in part], world)
        solved, errors = solved + episodes, errors | part_errors
        idle += play(part, [("stop []",)] * len(part), world)[0]
    for task, best, nothing in zip(tasks, solved, idle, strict=True):
        problems = [errors[task.task_id]] if task.task_id in errors else []
        if (best.reward, nothing.reward) != (1.0, 0.0):
            problems.append(f"scores {best.reward}, {nothing.reward}, not 1.0, 0.0")
        proofs.append(Proof(task.task_id, task.site, best.reward, nothing.reward, nothing.reward, tuple(problems)))
    return proofs


def texts_of(page: Observation) -> list[str]:
    """What a page says: its title, and the names and values of its elements."""
    return [page.title, *(text for e in page.elements for text in (e.name, e.get("value")))]


def table(proofs: Sequence[Proof]) -> str:
    """A line a site: how many tasks, how many of them are proven, and the mean score of each run."""
    lines = [f"{'site':<16}{'tasks':>6}{'proven':>8}{'solution':>10}{'nothing':>9}{'wrong':>7}"]
    sites = Counter(proof.site for proof in proofs)
    for site in [*sites, "all"]:
        part = [p for p in proofs if site in (p.site, "all")]
        means = [sum(getattr(p, name) for p in part) / max(1, len(part)) for name in PARTS]
        proven = sum(p.holds for p in part)
        lines.append(f"{site:<16}{len(part):>6}{proven:>8}{means[0]:>10.2f}{means[1]:>9.2f}{means[2]:>7.2f}")
    return "\n".join(lines)


def publish(proofs: Sequence[Proof], seconds: float) -> None:
    """Write assets/results/webarena_replicas.json. For a run over all real tasks in the browser only."""
    from dynaweb_lite.presets import RESULTS  # late: these two import torch, and a look at the tasks need not wait
    from dynaweb_lite.runs import commit, device_name, write_json

    lite = lite_ids()
    rows = [
        {"task_id": p.task_id, "site": p.site, "lite": p.task_id in lite} | {n: getattr(p, n) for n in PARTS}
        for p in sorted(proofs, key=lambda p: p.task_id)
    ]
    made = {"date": time.strftime("%Y-%m-%d"), "commit": commit(), "device": device_name(), "seconds": round(seconds)}
    write_json(RESULTS / "webarena_replicas.json", {"study": "webarena_replicas", "made": made, "rows": rows})


def main(options: Namespace) -> int:
    """The command `tasks`: list, or prove and print, those that the options choose. Returns 1 when a proof fails.

    Raises TaskError for an unknown site or id, and for options that would do nothing.
    """
    for name, needs in (("direct", "verify"), ("trace", "verify"), ("seed", "generated")):
        if getattr(options, name) and not getattr(options, needs):
            raise TaskError(f"--{name} does nothing without --{needs}")
    if options.generated and options.ids:
        raise TaskError("--ids are WebArena's; generated tasks have none: leave out one of the two")
    sites = tuple(MODULES) if options.site is None else (options.site,)
    if unknown := set(sites) - set(MODULES):
        raise TaskError(f"no site {unknown.pop()!r}; there are {', '.join(MODULES)}")
    rows = [] if options.generated else replicated(sites, options.ids or ())
    tasks = generate_tasks(options.seed, sites=sites) if options.generated else replicated_tasks(rows)
    if not options.verify:
        print(listing(tasks))
        return 0
    began = time.monotonic()
    with closing(open_world(options)) as world:
        proofs = verify_generated(tasks, world) if options.generated else verify(rows, tasks, world)
    for proof in proofs:
        if not proof.holds:
            print(f"task {proof.task_id} ({proof.site}): {'; '.join(proof.problems)}")
    print(table(proofs))
    whole = not (options.generated or options.direct or options.site or options.ids)
    if whole and all(proof.holds for proof in proofs):
        publish(proofs, time.monotonic() - began)
    return int(not all(proof.holds for proof in proofs))


def open_world(options: Namespace) -> World:
    """The replicas in Chromium, or without a browser."""
    from dynaweb_lite.browser import RealWeb
    from dynaweb_lite.direct import DirectWeb

    server = SiteServer(options.seed if options.generated else 0, ground="webarena")
    world = DirectWeb(server) if options.direct else RealWeb(server, contexts=BATCH)
    return Traced(world) if options.trace else world


class Traced:
    """A world that prints what happens in it."""

    def __init__(self, world: World):
        self.world, self.name = world, world.name

    def reset(self, tasks, starts=None):
        pages = self.world.reset(tasks, starts)
        for task, page in zip(tasks, pages, strict=True):
            print(f"\n=== task {task.task_id}: {task.intent}\n{page.text}")
        return pages

    def step(self, actions):
        steps = self.world.step(actions)
        for action, step in zip(actions, steps, strict=True):
            if step is not None:
                print(f"\n--> {action}\n{step.observation.text}\nreward {step.reward} {step.info or ''}")
        return steps

    def close(self):
        self.world.close()


def listing(tasks: Sequence[Task]) -> str:
    """A line a task: id, site, kind of check, intent; and a count below."""
    lines = [
        f"{t.task_id!s:<28} {'+'.join(t.sites):<20} {'+'.join(t.eval['eval_types']):<24} {t.intent}" for t in tasks
    ]
    counts = Counter(task.site for task in tasks)
    return "\n".join([*lines, "", ", ".join(f"{site} {n}" for site, n in counts.items()) + f"; {len(tasks)} in all"])
