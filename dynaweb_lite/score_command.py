"""The command `score`: any tasks with any policy, on the replicas or on the user's own sites, resumable.

Tasks come from a set by name or from a file in WebArena's schema. Where they run: practice and generated tasks on the
replicas, others on the user's own sites when WA_* variables are set, else on the replicas.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dynaweb_lite.browser import RealWeb
from dynaweb_lite.experts import ExpertPolicy
from dynaweb_lite.explore import RandomExplorer
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.policy import LanguagePolicy
from dynaweb_lite.presets import ASSETS, TINY
from dynaweb_lite.runs import RunError, commit, device_name, fingerprint, quiet_libraries, write_json
from dynaweb_lite.score import Result, load_results, results_rows, score
from dynaweb_lite.scripted import ScriptPolicy
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks as practice_tasks
from dynaweb_lite.sites.webarena.generator import generate_tasks
from dynaweb_lite.tasks import Task, TaskError, live_urls, load_tasks, variable
from dynaweb_lite.trajectory import Trajectory, save_trajectories
from dynaweb_lite.webarena_tasks import replicated, task_file, webarena_tasks
from dynaweb_lite.worlds import Decision, Policy

PRACTICE, GENERATED, WEBARENA, LITE = "practice", "generated", "webarena", "webarena-lite"
NAMES = (PRACTICE, GENERATED, WEBARENA, LITE)
SCRIPTED = ("expert", "random", "nothing")
MAX_STEPS = {PRACTICE: TINY.max_steps, WEBARENA: 30}
"""Actions that an episode may take: on practice tasks, and on all others, as in WebArena."""
RESULTS, TRAJECTORIES = "results.jsonl", "trajectories.jsonl"


@dataclass(frozen=True)
class Plan:
    """What is played and where. `ground`: the replicas' ground, empty for the user's own sites."""

    name: str
    tasks: list[Task]
    ground: str

    @property
    def place(self) -> str:
        return f"replicas ({self.ground})" if self.ground else "your own sites"


class Idler:
    """Does nothing: stops at once, without an answer."""

    def act(self, episodes: Sequence[Trajectory], observations: Sequence[object]) -> list[Decision]:
        return [Decision("stop []") for _ in episodes]


def make_plan(options: Namespace) -> Plan:
    """The tasks that the options choose, and where they run. Raises TaskError that says what to change."""
    name = options.tasks
    ours = name in (PRACTICE, GENERATED)
    is_live = options.live or (not ours and not options.ground and bool(live_urls()))
    if is_live and options.ground:
        raise TaskError("--live runs on your own sites and --ground on replicas: take one of them")
    ground = "" if is_live else options.ground or (PRACTICE if name == PRACTICE else WEBARENA)
    tasks = choose(named_tasks(name), options.ids)
    if ground and name in (WEBARENA, LITE):
        tasks = with_replica(tasks, bool(options.ids))
    if is_live:
        asked = dict.fromkeys(site for task in tasks for site in task.visited_sites)
        if missing := [variable(site) for site in asked if site not in live_urls()]:
            raise TaskError(f"these tasks need addresses of your own sites: set {', '.join(missing)}")
    return Plan(name, tasks[: options.limit], ground)


def named_tasks(name: str) -> list[Task]:
    """A set of tasks by its name, or the tasks of a file. Raises TaskError."""
    if name == PRACTICE:
        return practice_tasks(0, "test")
    if name == GENERATED:
        return generate_tasks(0, "test")
    if name == WEBARENA:
        return webarena_tasks()
    if name == LITE:
        return load_tasks(task_file(LITE))
    if not Path(name).exists():
        raise TaskError(f"no tasks called {name!r}: name one of {', '.join(NAMES)}, or a file")
    return load_tasks(name)


def choose(tasks: list[Task], ids: Sequence[str] | None) -> list[Task]:
    """The tasks of these ids, or all. Raises TaskError for an id that is none."""
    if unknown := set(ids or ()) - {str(task.task_id) for task in tasks}:
        raise TaskError(f"no task {', '.join(sorted(unknown))} among these")
    return [task for task in tasks if not ids or str(task.task_id) in ids]


def with_replica(tasks: list[Task], is_asked: bool) -> list[Task]:
    """Those of WebArena's tasks that run on the replicas. Raises TaskError when others were asked for by id."""
    known = {row.task_id for row in replicated()}
    kept = [task for task in tasks if task.extra.get("old_task_id", task.task_id) in known]
    if is_asked and len(kept) < len(tasks):
        lacking = ", ".join(str(task.task_id) for task in tasks if task not in kept)
        raise TaskError(f"no replica for task {lacking}: set the WA_* variables to run it on your own sites")
    print(f"{len(kept)} of {len(tasks)} tasks have a replica")
    return kept


def make_policy(spec: str, base: str, tasks: Sequence[Task]) -> Policy:
    """A policy: one of SCRIPTED, "base", an adapter in assets/ by name, or the folder of an adapter or a model.

    Raises ModelError or TaskError that says what is missing.
    """
    if spec == "nothing":
        return Idler()
    if spec == "random":
        return RandomExplorer()
    if spec == "expert":
        return expert(tasks)
    folder = folder_of(spec)
    if spec == "base":
        lm = LanguageModel.load(base)
    elif (folder / "config.json").exists():
        lm = LanguageModel.load(folder)
    else:
        lm = LanguageModel.load(base, adapter=folder)
    return LanguagePolicy(lm.merged())


def folder_of(spec: str) -> Path:
    """The folder that a policy's name stands for: one in assets/, else the path itself."""
    return ASSETS / spec if (ASSETS / spec / "adapter_config.json").exists() else Path(spec)


def expert(tasks: Sequence[Task]) -> Policy:
    """The scripted experts of tasks. Raises TaskError for a task that has none."""
    if all(task.task_id in {t.task_id for t in practice_tasks(0, "test")} for task in tasks):
        return ExpertPolicy(tasks)
    solutions = {row.task_id: row.solution for row in replicated()}
    scripts = {t.task_id: t.extra.get("script") or solutions.get(t.extra.get("old_task_id", t.task_id)) for t in tasks}
    if lacking := [str(task_id) for task_id, script in scripts.items() if not script]:
        raise TaskError(f"no expert for task {', '.join(lacking[:9])}")
    return ScriptPolicy(scripts)


def open_folder(options: Namespace, plan: Plan, max_steps: int) -> Path:
    """The run's folder, new or to go on with. Raises RunError when it holds a run with other settings."""
    names = [Path(plan.name).stem, Path(options.policy).name, plan.ground or "live", options.strict]
    folder = options.run or Path("runs") / "score" / re.sub(r"[^\w.-]+", "_", "-".join(filter(None, names)))
    settings = {
        "tasks": plan.name,
        "place": plan.ground or "live",
        "policy": options.policy if options.policy in SCRIPTED else weights_of(options),
        "strict": options.strict,
        "max_steps": max_steps,
    }
    path = folder / "score.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != settings:
        raise RunError(f"{folder} holds a run with other settings: take another --run")
    write_json(path, settings)
    return folder


def weights_of(options: Namespace) -> list[str]:
    """What tells models apart: the policy's name, and short hashes of its weights and of those below them."""
    weights = folder_of(options.policy) / "adapter_model.safetensors"
    own = hashlib.sha256(weights.read_bytes()).hexdigest()[:12] if weights.exists() else fingerprint(options.policy)
    return [Path(options.policy).name, own, fingerprint(options.base)]


def play(policy: Policy, plan: Plan, max_steps: int, folder: Path, options: Namespace) -> None:
    """Play what is not finished yet; results and trajectories go to the folder, batch by batch."""

    def keep(episodes: Sequence[Trajectory]) -> None:
        save_trajectories(folder / TRAJECTORIES, [e for e in episodes if "error" not in e.provenance])

    server = SiteServer(ground=plan.ground) if plan.ground else None
    with RealWeb(server, contexts=options.contexts, strict=options.strict, logins=options.logins) as web:
        score(
            policy,
            web,
            plan.tasks,
            max_steps,
            options.contexts,
            folder / RESULTS,
            label=Path(options.policy).name,
            on_episodes=keep,
            replay_broken=True,
        )


def report(plan: Plan, options: Namespace, folder: Path) -> tuple[list[dict], int]:
    """Print the table by site for what is finished. Returns its rows, and how many episodes broke down."""
    known = load_results(folder / RESULTS)
    results = [known[task.task_id] for task in plan.tasks if task.task_id in known]
    if not results:
        return [], 0
    rows = results_rows(Path(options.policy).name, {0: results}, plan.name)
    rows = [row | {"broke_down": broken_in(results, row["tasks"])} for row in rows if "/" not in row["tasks"]]
    print("\n" + site_table(rows))
    if len(results) < len(plan.tasks):
        print(f"{len(results)} of {len(plan.tasks)} tasks so far")
    if plan.ground:
        print("These are scores on light replicas, never WebArena scores.")
    broken = [result for result in results if result.error]
    if broken:
        print(f"broken down: {len(broken)}, counted as failures; the same command plays them again:")
        print("\n".join(dict.fromkeys(f"  {result.site}: {result.error}" for result in broken)))
    return rows, len(broken)


def site_table(rows: Sequence[dict]) -> str:
    """A line a site: how many tasks count, their success rate with its 95 % interval, and what went wrong."""
    lines = [f"{'site':<16}{'n':>5}  {'success [95 %]':<22}{'not scorable':>13}{'broke down':>12}  evaluator"]
    for row in rows:
        shown = f"{row['success']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" if row["n"] else "none scored"
        counts = f"{row.get('not_scorable', 0):>13}{row['broke_down']:>12}"
        lines.append(f"{row['tasks']:<16}{row['n']:>5}  {shown:<22}{counts}  {row.get('evaluator', '')}")
    return "\n".join(lines)


def broken_in(results: Sequence[Result], site: str) -> int:
    """How many episodes of a site ("all": of all) broke down."""
    return sum(bool(result.error) for result in results if site in ("all", result.site))


def main(options: Namespace) -> int:
    """Play, print the table by site, write --out. Returns 0 when no episode broke down."""
    quiet_libraries()
    plan, began = make_plan(options), time.monotonic()
    max_steps = options.max_steps or MAX_STEPS.get(plan.name, MAX_STEPS[WEBARENA])
    folder = open_folder(options, plan, max_steps)
    policy = make_policy(options.policy, options.base, plan.tasks)
    print(f"{len(plan.tasks)} tasks on {plan.place}; kept in {folder}", flush=True)
    try:
        play(policy, plan, max_steps, folder, options)
    except KeyboardInterrupt:
        report(plan, options, folder)
        raise
    rows, broken = report(plan, options, folder)
    if options.out:
        made = {"date": datetime.now(UTC).date().isoformat(), "commit": commit(), "device": device_name()}
        made |= {"seconds": round(time.monotonic() - began), "place": plan.place, "tasks": plan.name}
        write_json(options.out, {"study": "score", "made": made, "rows": rows})
    return int(broken > 0)
