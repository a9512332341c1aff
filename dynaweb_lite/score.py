"""How good a policy is: success rates with intervals, and paired differences between methods.

Every rate carries n and a 95 % interval. Two methods are compared task by task and seed by seed, never by looking
at whether their intervals overlap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from dynaweb_lite.tasks import Task, TaskError
from dynaweb_lite.trajectory import Trajectory, append_jsonl, read_jsonl
from dynaweb_lite.worlds import Policy, World, rollout

Z95 = 1.959964
_T95 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


@dataclass(frozen=True)
class Result:
    """One episode, scored. `success` is 0 or 1; `error` says how it broke down, if it did.

    `evaluator`: which one scored it, "right" or "webarena" (evaluators.py). `not_scorable`: why the task cannot be
    scored here (no judge for it, say); such a result counts neither as a success nor as a failure.
    """

    task_id: int | str
    site: str
    kind: str
    success: int
    steps: int
    answer: str
    error: str
    seconds: float
    evaluator: str = ""
    not_scorable: str = ""


@dataclass(frozen=True)
class Rate:
    """A success rate: `successes` of `n` (a fraction after averaging over seeds), and its 95 % Wilson interval."""

    n: int
    successes: float
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.successes / self.n if self.n else 0.0

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] (n={self.n})"


@dataclass(frozen=True)
class PairedDifference:
    """The mean of a − b over tasks and seeds that both have, with 95 % intervals that answer different questions.

    `over_tasks`: bootstrap over tasks, these trained models on other tasks. `low`, `high`: bootstrap over seeds and
    over tasks together, other training runs on other tasks; this is the interval to quote. `over_seeds`: Student's t
    on the differences of the seeds (wide with few of them), None with a single seed.
    """

    difference: float
    low: float
    high: float
    over_tasks: tuple[float, float]
    over_seeds: tuple[float, float] | None
    by_seed: tuple[float, ...]
    n: int

    def __iter__(self):
        return iter((self.difference, self.low, self.high))


def wilson(successes: float, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for a proportion (Wilson 1927); (0, 1) when n is 0."""
    if n == 0:
        return 0.0, 1.0
    p, z2 = successes / n, z * z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def rate(successes: float, n: int) -> Rate:
    return Rate(n, successes, *wilson(successes, n))


def success(results: Sequence[Result]) -> Rate:
    """The success rate of a list of results, without those that cannot be scored."""
    scored = [r for r in results if not r.not_scorable]
    return rate(sum(r.success for r in scored), len(scored))


def success_by(results: Iterable[Result], key: Callable[[Result], str]) -> dict[str, Rate]:
    """Success rates of the parts that `key` names, such as ``lambda r: r.site``, sorted by name."""
    parts: dict[str, list[Result]] = {}
    for result in results:
        parts.setdefault(key(result), []).append(result)
    return {name: success(parts[name]) for name in sorted(parts)}


def score(
    policy: Policy,
    world: World,
    tasks: Sequence[Task],
    max_steps: int,
    batch: int,
    path: str | Path | None = None,
    label: str = "score",
    on_episodes: Callable[[Sequence[Trajectory]], None] | None = None,
    replay_broken: bool = False,
) -> list[Result]:
    """Play every task once, `batch` side by side, and return a result for each, in the order of `tasks`.

    With a `path`, finished tasks are kept there (JSONL) and not played again: a killed run goes on where it was.
    Episodes that broke down with the browser are played once more; what fails again keeps its `error`.
    Tasks that the world cannot score are not played, and what the judge could not score is played again next time.
    What another evaluator scored is played anew, and with `replay_broken` what broke down in an earlier call.
    `on_episodes` is given the episodes of each batch. Use one path for one policy.
    Raises TaskError when there are no tasks.
    """
    if not tasks:
        raise TaskError("no tasks to score: the split is empty, or the filter left none")
    name = evaluator_of(world)
    done = load_results(path) if path else {}
    done = {i: r for i, r in done.items() if not r.not_scorable and (r.evaluator or "right") == (name or "right")}
    done = {i: r for i, r in done.items() if not (replay_broken and r.error)}
    if left_out := unscorable(world, [t for t in tasks if t.task_id not in done]):
        done.update(left_out)
        if path:
            append_jsonl(path, map(asdict, left_out.values()))
    todo = [t for t in tasks if t.task_id not in done]
    with tqdm(total=len(tasks), initial=len(tasks) - len(todo), desc=label, unit="task") as bar:
        for start in range(0, len(todo), batch):
            results = score_batch(policy, world, todo[start : start + batch], max_steps, on_episodes)
            if broken := [t for t, r in zip(todo[start : start + batch], results, strict=True) if r.error]:
                bar.write(
                    f"{label}: episodes broken down: {len(broken)} ({results[0].error or 'see error'}); trying again"
                )
                again = {r.task_id: r for r in score_batch(policy, world, broken, max_steps, on_episodes)}
                results = [again.get(r.task_id, r) for r in results]
            done.update({r.task_id: r for r in results})
            if path:
                append_jsonl(path, map(asdict, results))
            bar.update(len(results))
            bar.set_postfix_str(f"success {success([done[t.task_id] for t in tasks if t.task_id in done]).value:.2f}")
    return [done[t.task_id] for t in tasks]


def evaluator_of(world: World) -> str:
    """The name of the world's evaluator; empty for imagined worlds and MiniWoB++, which reward by themselves."""
    return getattr(getattr(world, "evaluator", None), "name", "")


def unscorable(world: World, tasks: Sequence[Task]) -> dict[int | str, Result]:
    """Results of those tasks that the world's evaluator cannot score, whatever an agent does, by task id."""
    evaluator = getattr(world, "evaluator", None)
    reasons = {t: evaluator.why_not(t) for t in tasks} if evaluator else {}
    blank = {"success": 0, "steps": 0, "answer": "", "error": "", "seconds": 0.0}
    return {
        t.task_id: Result(t.task_id, t.site, t.kind, **blank, evaluator=evaluator.name, not_scorable=why)
        for t, why in reasons.items()
        if why
    }


def score_batch(
    policy: Policy,
    world: World,
    tasks: Sequence[Task],
    max_steps: int,
    on_episodes: Callable[[Sequence[Trajectory]], None] | None = None,
) -> list[Result]:
    """Play these tasks side by side [B]; `seconds` of each is the batch's time divided by B."""
    began = time.monotonic()
    episodes = rollout(policy, world, tasks, max_steps)
    seconds = (time.monotonic() - began) / len(tasks)
    if on_episodes:
        on_episodes(episodes)
    return [
        result_of(task, episode, seconds, evaluator_of(world)) for task, episode in zip(tasks, episodes, strict=True)
    ]


def result_of(task: Task, episode: Trajectory, seconds: float, evaluator: str = "") -> Result:
    """What an episode earned; only a full reward is a success, as in WebArena."""
    error = str(episode.provenance.get("error", ""))
    said = {"not_scorable": error} if "not_scorable" in episode.provenance else {"error": error}
    return Result(
        task_id=task.task_id,
        site=task.site,
        kind=task.kind,
        success=int(episode.reward >= 1.0),
        steps=len(episode.steps),
        answer=episode.answer,
        seconds=round(seconds, 3),
        evaluator=evaluator,
        **{"error": "", **said},
    )


def load_results(path: str | Path) -> dict[int | str, Result]:
    """Results of a JSONL file by task id, empty where it is missing; half-written rows are passed over."""
    names = set(Result.__dataclass_fields__)
    needed = names - {"evaluator", "not_scorable"}  # older files have neither
    rows = read_jsonl(path) if Path(path).exists() else ()
    return {row["task_id"]: Result(**row) for row in rows if isinstance(row, dict) and needed <= set(row) <= names}


def outcomes(results: Iterable[Result]) -> dict[int | str, int]:
    """Results as {task id: 0 or 1}, what `paired_difference` takes for each seed; without what cannot be scored."""
    return {r.task_id: r.success for r in results if not r.not_scorable}


def student_t95(degrees: int) -> float:
    """The 97.5 % quantile of Student's t: a table up to 10 degrees, then its expansion around the normal."""
    if degrees <= len(_T95):
        return _T95[degrees - 1]
    z, n = Z95, degrees
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2) + third


def paired_difference(
    a: Mapping[int, Mapping[int | str, float]],
    b: Mapping[int, Mapping[int | str, float]],
    draws: int = 4000,
    rng_seed: int = 0,
) -> PairedDifference:
    """Mean of a − b with its intervals, from {seed: {task id: 0 or 1}} of two methods.

    Seeds and tasks that only one of them has are left out. Raises ValueError when nothing is left.
    """
    seeds = sorted(set(a) & set(b))
    shared = set.intersection(*(set(side[s]) for s in seeds for side in (a, b))) if seeds else set()
    if not shared:
        raise ValueError("nothing to pair: the two methods share no seed with a task that both played")
    tasks = sorted(shared, key=str)
    table = np.array([[a[s][t] - b[s][t] for t in tasks] for s in seeds], dtype=float)  # [seeds, tasks]
    by_seed = table.mean(1)
    rng = np.random.default_rng(rng_seed)
    weights = rng.multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), size=draws) / len(tasks)
    picks = rng.integers(len(seeds), size=(draws, len(seeds)))
    of_draws = weights @ table.T  # [draws, seeds]: each seed's difference on the resampled tasks
    low, high = interval(np.take_along_axis(of_draws, picks, 1).mean(1))
    over_tasks, mean = interval(of_draws.mean(1)), float(by_seed.mean())
    return PairedDifference(mean, low, high, over_tasks, t_interval(by_seed), tuple(by_seed.tolist()), len(tasks))


def interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of bootstrap draws."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def t_interval(values: np.ndarray) -> tuple[float, float] | None:
    """Student's 95 % interval for the mean of a few values [n]; None for one value."""
    if len(values) < 2:
        return None
    half = student_t95(len(values) - 1) * float(values.std(ddof=1)) / sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def results_rows(
    method: str,
    runs: Mapping[int, Sequence[Result]],
    split: str,
    real_steps: int = 0,
    dream_steps: int = 0,
    minutes: float = 0.0,
) -> list[dict]:
    """Rows for a results file: all tasks, then each site, then each kind on each site (`tasks` says which).

    `runs` holds one method's results by seed. `success` is the mean over seeds; the interval is Wilson's for n tasks
    (not n × seeds: the same tasks played by another seed are no new tasks). Rows of worlds with an evaluator say which
    it was, and how many tasks were `not_scorable`; n is without them.
    """
    keys: list[Callable[[Result], str]] = [lambda r: "all", lambda r: r.site, lambda r: f"{r.site}/{r.kind}"]
    results = sum(map(list, runs.values()), [])
    pooled = {name: (part, key) for key in keys for name, part in success_by(results, key).items()}
    rows = []
    for name, (part, key) in pooled.items():
        mean = rate(part.successes / len(runs), round(part.n / len(runs)))
        numbers = {"success": round(mean.value, 4), "low": round(mean.low, 4), "high": round(mean.high, 4)}
        rows.append({"method": method, "tasks": name, "split": split, "n": mean.n, **numbers, "seeds": len(runs)})
        rows[-1] |= {"real_steps": real_steps, "dream_steps": dream_steps, "minutes": round(minutes, 1)}
        rows[-1] |= how_scored([r for r in results if key(r) == name], len(runs))
    return rows


def how_scored(results: Sequence[Result], seeds: int) -> dict:
    """What a row says of the evaluator and of tasks that it could not score; nothing where there was no evaluator."""
    names = ", ".join(sorted({r.evaluator for r in results if r.evaluator}))
    count = sum(bool(r.not_scorable) for r in results)
    return {"evaluator": names, "not_scorable": round(count / seeds)} if names or count else {}


def paired_row(method: str, paired: PairedDifference, split: str) -> dict:
    """A results row for a difference such as "dynaweb - sft"; the other two intervals and the seeds stand beside it."""
    more = {"over_tasks": paired.over_tasks, "over_seeds": paired.over_seeds, "by_seed": paired.by_seed}
    numbers = {"success": paired.difference, "low": paired.low, "high": paired.high}
    row = {"method": method, "tasks": "all", "split": split, "n": paired.n, "seeds": len(paired.by_seed)}
    return row | {k: round(v, 4) for k, v in numbers.items()} | {k: rounded(v) for k, v in more.items()}


def rounded(values: Sequence[float] | None) -> list[float] | None:
    return None if values is None else [round(v, 4) for v in values]


def format_table(rows: Sequence[dict], tasks: str | None = "all") -> str:
    """A Markdown table of results rows, aligned for a terminal; `tasks` keeps one part, None keeps all.

    Which evaluator scored them, and how many tasks it could not score, stands there if the rows say so.
    """
    head = ["method", "tasks", "n", "seeds", "success [95 %]", "real steps", "dream steps", "minutes"]
    kept = [row for row in rows if tasks in (None, row["tasks"])]
    more = {"evaluator": "evaluator", "not_scorable": "not scorable"} if any("evaluator" in row for row in kept) else {}
    head += more.values()
    body = [table_cells(row) + [str(row.get(key, "")) for key in more] for row in kept]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = [head, ["-" * w for w in widths], *body]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines)


def table_cells(row: Mapping) -> list[str]:
    sign = "+" if " - " in row["method"] else ""
    shown = (
        f"{row['success']:{sign}.3f} [{row['low']:{sign}.3f}, {row['high']:{sign}.3f}]" if row["n"] else "none scored"
    )
    counts = [f"{row[key]:,}" if key in row else "" for key in ("real_steps", "dream_steps", "minutes")]
    return [row["method"], row["tasks"], str(row["n"]), str(row["seeds"]), shown, *counts]
