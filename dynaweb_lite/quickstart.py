"""The whole loop in one go: act on real pages, learn how pages change, dream, improve, score on real pages.

Each phase leaves files in the run's folder and is passed over when they are there, so a stopped run goes on where it
was. Real pages that cost counts are those in Chromium; validation uses the same sites without a browser (DirectWeb),
whose pages equal Chromium's to the letter, and no reported score comes from it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import cached_property
from multiprocessing import active_children, get_context
from pathlib import Path

import torch

from dynaweb_lite import metrics
from dynaweb_lite.browser import RealWeb
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.experts import ExpertPolicy
from dynaweb_lite.explore import RandomExplorer, collect, transitions_of
from dynaweb_lite.fidelity import fidelity
from dynaweb_lite.imagined_web import ImaginedWeb
from dynaweb_lite.judge import SelfJudge, Verdict, audit, judge_examples, verdict_rows
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.observation import Observation
from dynaweb_lite.policy import LanguagePolicy, episode_examples
from dynaweb_lite.presets import ASSETS, Preset
from dynaweb_lite.replay import dream_agreement
from dynaweb_lite.report import write_report
from dynaweb_lite.rl import RLSettings, train_gspo
from dynaweb_lite.runs import Clock, RunError, open_run, provenance, quiet_libraries, watch_memory, write_json
from dynaweb_lite.score import (
    Result,
    format_table,
    load_results,
    outcomes,
    paired_difference,
    paired_row,
    results_rows,
    score,
)
from dynaweb_lite.sft import SFTSettings, train_sft
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory, load_trajectories
from dynaweb_lite.views import Pair
from dynaweb_lite.world_model import WorldModel, pair_key, training_examples
from dynaweb_lite.worlds import Policy, record, rollout

METHODS = ("base", "sft", "dreams_only", "dynaweb")
ARMS = METHODS[2:]
COLLECT, SEEDS, MODEL, CLONE = "collect on real pages", "train the seeds", "learn the world model", "clone the experts"
REINFORCE = {
    "dreams_only": "reinforce in dreams, no experts",
    "dynaweb": "reinforce in dreams, experts interleaved",
}
SCORE, REPORT = "score on real pages", "report"
FRESH_SEED, RECORDED = 1, ASSETS / "explorations.jsonl"
REPORT_PAIRS = 8


class Loop:
    """One run of the loop in a folder. Call `run`, or the phases one by one in their order."""

    def __init__(self, preset: Preset, folder: Path, jobs: int = 1):
        open_run(folder, preset)
        self.jobs = min(jobs, len(preset.seeds))
        self.preset, self.folder = preset, folder
        self.clock = Clock(folder, expected_minutes(preset, self.jobs))
        self.server = SiteServer(seed=0)
        self.tasks = {split: generate_tasks(0, split) for split in ("expert", "train", "validation", "test")}
        self.by_id = {t.task_id: t for tasks in self.tasks.values() for t in tasks}

    # Phases

    def run(self) -> Path:
        """All phases; returns the report's path."""
        with watch_memory(self.folder):
            return self._run()

    def _run(self) -> Path:
        seeds = self.preset.seeds
        with self.clock.phase(COLLECT):
            self.collect()
        if self.jobs > 1:
            with self.clock.phase(SEEDS):
                self._train_side_by_side()
        with self.clock.phase(MODEL):
            for seed in seeds:
                self.world_model(seed)
            self.measure_fidelity()
        with self.clock.phase(CLONE):
            for seed in seeds:
                self.cloned(seed)
        for arm in ARMS:
            with self.clock.phase(REINFORCE[arm]):
                for seed in seeds:
                    self.reinforced(arm, seed)
        with self.clock.phase(SCORE):
            print(f"{len(self.scored_tasks)} of {len(self.tasks['test'])} test tasks, in Chromium")
            for method, seed in self._arms():
                self.score(method, seed)
        with self.clock.phase(REPORT):
            self.imagine_beside_real()
            rows = self.write_results()
            report = write_report(self.folder)
        print("\n" + format_table(rows) + f"\n\nreport: {report}", flush=True)
        return report

    def _train_side_by_side(self) -> None:
        """Seeds in processes of their own; the phases that follow find their files."""
        threads = max(1, torch.get_num_threads() // self.jobs)
        with ProcessPoolExecutor(self.jobs, get_context("spawn")) as pool:
            calls = [pool.submit(train_seed, self.preset, self.folder, s, threads) for s in self.preset.seeds]
            try:
                for call in calls:
                    call.result()
            except BaseException:
                for process in active_children():
                    process.terminate()
                raise

    def collect(self) -> None:
        """Expert trajectories of the few expert tasks, and random exploration, both in Chromium."""
        with RealWeb(self.server, contexts=self.preset.contexts) as web:
            experts = self.tasks["expert"]
            collect(
                ExpertPolicy(experts), web, experts, self.folder / "experts.jsonl", len(experts), self.preset.max_steps,
                self.preset.contexts, source="expert",
            )  # fmt: skip
            collect(
                RandomExplorer(self._exploration_seed), web, self.tasks["train"], self.folder / "explorations.jsonl",
                self.preset.explorations, self.preset.exploration_steps, self.preset.contexts, self._exploration_seed,
            )  # fmt: skip
        failed = [e.goal for e in self.experts if e.reward < 1]
        if failed:
            raise RunError(f"{len(failed)} scripted experts failed, among them: {failed[0]!r}; the sites have changed")
        learnt, held_out = self.explorations
        recorded = len(load_trajectories(RECORDED)) if self.preset.recorded else 0
        print(
            f"{len(self.experts)} expert trajectories and {len(learnt) + len(held_out)} explorations ({recorded} "
            f"of them recorded): {self.real_steps} real steps; {len(held_out)} explorations are held out"
        )

    @property
    def _exploration_seed(self) -> int:
        """Fresh walks differ from the recorded ones."""
        return FRESH_SEED if self.preset.recorded else 0

    @cached_property
    def experts(self) -> list[Trajectory]:
        return load_trajectories(self.folder / "experts.jsonl")

    @cached_property
    def explorations(self) -> tuple[list[Trajectory], list[Trajectory]]:
        """Explorations to learn from, and those held out to measure the world model."""
        recorded = load_trajectories(RECORDED) if self.preset.recorded else []
        if self.preset.recorded and not recorded:
            raise RunError(
                f"no recorded explorations in {RECORDED.name}: take the whole repository, or run with --full"
            )
        walks = recorded + load_trajectories(self.folder / "explorations.jsonl")
        order = random.Random(0).sample(range(len(walks)), len(walks))
        held_out = set(order[: round(len(walks) * self.preset.held_out_share)])
        return [w for i, w in enumerate(walks) if i not in held_out], [w for i, w in enumerate(walks) if i in held_out]

    @property
    def real_steps(self) -> int:
        """Real steps that dreams rest on: explorations and experts, recorded ones counted too."""
        return sum(len(t.steps) for part in (*self.explorations, self.experts) for t in part)

    def base(self) -> LanguageModel:
        return LanguageModel.load(self.preset.model)

    def world_model(self, seed: int) -> LanguageModel:
        """Page changes and verdicts, learnt together: the authors' repository too lets the world model judge."""
        transitions = transitions_of(self.explorations[0] + self.experts)
        examples = training_examples(transitions) + judge_examples(self.verdicts(seed))
        settings = replace(self.preset.world_model, seed=seed)
        return train_sft(self.base(), examples, self.folder / f"world_model-{seed}", settings)

    def verdicts(self, seed: int) -> list[Verdict]:
        """What the judge learns from: the experts' outcomes and near misses. The base has judged on other sites."""
        return verdict_rows([self.by_id[e.task_id] for e in self.experts], self.experts, random.Random(seed))

    def measure_fidelity(self) -> None:
        """One-step accuracy on held-out explorations, and the judge's agreement with the truth."""
        path, seed = self.folder / "fidelity.json", self.preset.seeds[0]
        if path.exists():
            return
        lm = self.world_model(seed).merged()
        seen = {pair_key(t.observation, t.action) for t in transitions_of(self.explorations[0] + self.experts)}
        found = fidelity(WorldModel(lm), transitions_of(self.explorations[1]), seen)
        tasks = self.tasks["validation"]
        episodes = self._rollout_direct(ExpertPolicy(tasks), tasks)
        found["judge"] = audit(SelfJudge(lm), verdict_rows(tasks, episodes, random.Random(0)))
        write_json(path, found)
        print(
            f"world model: changed-lines F1 {found['changed_f1']:.3f} (nothing changes: "
            f"{found['nothing_changes']['changed_f1']:.3f}), exact {found['exact']:.3f}, n={found['n']}; "
            f"judge agrees with the truth on {found['judge']['agreement']:.3f} of {found['judge']['n']}"
        )

    def _rollout_direct(self, policy: Policy, tasks: Sequence[Task]) -> list[Trajectory]:
        return rollout(policy, DirectWeb(self.server), tasks, self.preset.max_steps)

    def validate(self, lm: LanguageModel) -> float:
        """Success rate of a greedy policy on the validation tasks."""
        episodes = self._rollout_direct(LanguagePolicy(lm), self.tasks["validation"])
        return sum(e.reward for e in episodes) / len(episodes)

    def cloned(self, seed: int) -> LanguageModel:
        """Behaviour cloning, each setting tried and the best on validation taken: the baseline, and where RL starts."""
        tried = {}
        for number, settings in enumerate(self.preset.cloning):
            folder = self.folder / f"sft-{seed}" / str(number)
            lm = self._clone(replace(settings, seed=seed), folder)
            score_path = folder / "validation.json"
            if not score_path.exists():
                write_json(score_path, {"validation": self.validate(lm), "settings": asdict(settings)})
            tried[number] = json.loads(score_path.read_text())["validation"]
        best = max(tried, key=tried.get)
        write_json(self.folder / f"sft-{seed}" / "tried.json", {"validation": tried, "best": best})
        return self._clone(replace(self.preset.cloning[best], seed=seed), self.folder / f"sft-{seed}" / str(best))

    def _clone(self, settings: SFTSettings, folder: Path) -> LanguageModel:
        base = self.base()
        return train_sft(base, episode_examples(base, self.experts), folder, settings, progress=False)

    @cached_property
    def start_pages(self) -> dict[str, Observation]:
        """The real page that tasks of a site begin on, from the experts' trajectories."""
        return {self.by_id[e.task_id].site: e.steps[0].observation for e in self.experts}

    def imagined_web(self, seed: int) -> ImaginedWeb:
        lm = self.world_model(seed).merged()
        return ImaginedWeb(WorldModel(lm), SelfJudge(lm), lambda task: self.start_pages[task.site])

    def reinforced(self, arm: str, seed: int) -> LanguageModel:
        """GSPO in dreams from the cloned policy, with expert trajectories in the groups (dynaweb) or without."""
        settings = rl_settings(self.preset, arm, seed)
        experts = {e.task_id: [e] for e in self.experts}  # both arms draw the same goals
        return train_gspo(
            self.cloned(seed),
            self.tasks["train"] + self.tasks["expert"],
            self.imagined_web(seed),
            experts,
            self.folder / f"{arm}-{seed}",
            settings,
            evaluate=lambda lm, update: self.validate(lm),
            on_update=lambda row: print(update_line(arm, seed, settings.updates, row), flush=True),
            audit=lambda dreams: dream_agreement(dreams, self.by_id, DirectWeb(self.server)),
        )

    def policy(self, method: str, seed: int) -> LanguagePolicy:
        makers = {"base": lambda: self.base(), "sft": lambda: self.cloned(seed)}
        lm = makers[method]() if method in makers else self.reinforced(method, seed)
        return LanguagePolicy(lm.merged())

    @cached_property
    def scored_tasks(self) -> list[Task]:
        """The test tasks, or a sample of them that takes the kinds in turn."""
        tasks = self.tasks["test"]
        if not self.preset.test_tasks:
            return tasks
        nth: dict[str, int] = {}
        ranked = []
        for task in tasks:
            nth[task.kind] = nth.get(task.kind, 0) + 1
            ranked.append((nth[task.kind], task.kind, task))
        return [t for _, _, t in sorted(ranked, key=lambda r: r[:2])][: self.preset.test_tasks]

    def score(self, method: str, seed: int) -> None:
        """One method in Chromium on the test tasks; what was scored before is not scored again."""
        path, preset = self._scores(method, seed), self.preset
        if len(load_results(path)) < len(self.scored_tasks):
            policy = self.policy(method, seed)
            with RealWeb(self.server, contexts=preset.contexts) as web:
                label = f"{method}, seed {seed}"
                score(policy, web, self.scored_tasks, preset.max_steps, preset.contexts, path, label)

    def _arms(self) -> list[tuple[str, int]]:
        """Methods with their seeds; the base model has none and is scored once."""
        seeds = self.preset.seeds
        return [("base", seeds[0])] + [(method, seed) for method in METHODS[1:] for seed in seeds]

    def _results(self, method: str, seed: int) -> list[Result]:
        return list(load_results(self._scores(method, seed)).values())

    def _scores(self, method: str, seed: int) -> Path:
        return self.folder / "scores" / f"{method}-{seed}.jsonl"

    def write_results(self) -> list[dict]:
        """results.json: score rows of each method, and the paired difference of DynaWeb and SFT."""
        results = {m: {s: self._results(m, s) for n, s in self._arms() if n == m} for m in METHODS}
        rows = []
        for method, runs in results.items():
            dreamt = [self._dream_steps(method, seed) for seed in runs]
            real = {"base": 0, "sft": sum(len(e.steps) for e in self.experts)}.get(method, self.real_steps)
            minutes = sum(self._minutes(method, seed) for seed in runs) / len(runs)
            rows += results_rows(method, runs, "test", real, round(sum(dreamt) / len(dreamt)), minutes)
        by_task = {m: {s: outcomes(r) for s, r in results[m].items()} for m in ("sft", "dreams_only", "dynaweb")}
        rows.append(paired_row("dynaweb - sft", paired_difference(by_task["dynaweb"], by_task["sft"]), "test"))
        rows.append(
            paired_row("dynaweb - dreams_only", paired_difference(by_task["dynaweb"], by_task["dreams_only"]), "test")
        )
        made = provenance(self.folder, self.preset, self.clock.total_seconds)
        write_json(self.folder / "results.json", {"study": "quickstart", "made": made, "rows": rows})
        return rows

    def _dream_steps(self, method: str, seed: int) -> int:
        path = self.folder / f"{method}-{seed}" / "metrics.csv"
        rows = metrics.read_metrics(path) if path.exists() else []
        return round(sum(r.get("episodes", 0) * r.get("steps_mean", 0) for r in rows))

    def _minutes(self, method: str, seed: int) -> float:
        """Minutes of training: all settings tried for cloning; the world model, rollouts and updates for an arm."""
        folders = {"base": [], "sft": list((self.folder / f"sft-{seed}").glob("*/"))}
        trained = folders.get(method, [self.folder / f"world_model-{seed}"])
        seconds = sum(json.loads((f / "training.json").read_text(encoding="utf-8"))["seconds"] for f in trained)
        path = self.folder / f"{method}-{seed}" / "metrics.csv"
        rows = metrics.read_metrics(path) if path.exists() else []
        return (seconds + sum(r.get("seconds_rollout", 0) + r.get("seconds_update", 0) for r in rows)) / 60

    def imagine_beside_real(self) -> None:
        """A few real steps with screenshots, and what the world model imagined for them: pairs.json for the report."""
        path = self.folder / "pairs.json"
        if path.exists():
            return
        model = WorldModel(self.world_model(self.preset.seeds[0]).merged())
        kinds: dict[str, Task] = {}
        for task in self.tasks["validation"]:
            kinds.setdefault(task.kind, task)
        with RealWeb(self.server, contexts=1) as web:
            pairs = [p for task in kinds.values() for p in real_and_imagined(task, web, model)]
        chosen = random.Random(0).sample(pairs, min(REPORT_PAIRS, len(pairs)))
        write_json(path, [pair.to_json() for pair in chosen])


def real_and_imagined(task: Task, web: RealWeb, model: WorldModel) -> list[Pair]:
    """The expert's steps on a task in the browser, each beside what the world model predicts for it."""
    expert, episode, pairs = ExpertPolicy([task]), Trajectory(task.task_id, task.intent), []
    page = web.reset([task])[0]
    while True:
        decision = expert.act([episode], [page])[0]
        if decision.action.startswith("stop"):
            return pairs
        imagined = model.predict([(page, decision.action)])[0].observation
        step = web.step([decision.action])[0]
        pairs.append(Pair(task.intent, page, decision.action, step.observation, imagined, web.screenshot(0)))
        record(episode, page, decision, step)
        page = step.observation


def train_seed(preset: Preset, folder: Path, seed: int, threads: int) -> None:
    """All that is trained and scored for one seed; for a process of its own."""
    torch.set_num_threads(threads)
    quiet_libraries()
    loop = Loop(preset, folder)
    loop.world_model(seed)
    for method, its_seed in loop._arms():
        if its_seed == seed:
            loop.score(method, seed)


def expected_minutes(preset: Preset, jobs: int) -> dict[str, float]:
    """Minutes of each phase on two idle cores, for the first estimate of the time left; later ones follow the clock."""
    seeds, updates = len(preset.seeds), preset.rl.updates
    epochs = sum(settings.epochs for settings in preset.cloning)
    scored = (preset.test_tasks or 280) * (1 + 3 * seeds)
    training = {
        MODEL: 0.4 * preset.world_model.epochs * seeds,
        CLONE: 0.04 * epochs * seeds,
        **{phase: 0.1 * updates * seeds for phase in REINFORCE.values()},
        SCORE: 0.006 * scored,
    }
    collecting = {COLLECT: 0.3 + preset.explorations / 80}
    if jobs == 1:
        return {**collecting, **training, REPORT: 0.3}
    return {**collecting, SEEDS: sum(training.values()), **dict.fromkeys(training, 0.1), REPORT: 0.3}


def rl_settings(preset: Preset, arm: str, seed: int) -> RLSettings:
    """The arm's settings: the preset's, and for dreams only no expert trajectory in any group."""
    settings = replace(preset.rl, seed=seed)
    return settings if arm == "dynaweb" else replace(settings, real_share=0.0)


def update_line(arm: str, seed: int, updates: int, row: dict) -> str:
    """One line of progress for an update."""
    shown = {"reward": "dream reward", "validation": "validation", "agreement": "dream/true agreement"}
    parts = [f"{words} {row[key]:.2f}" for key, words in shown.items() if key in row]
    seconds = row.get("seconds_rollout", 0) + row.get("seconds_update", 0)
    return f"  {arm}, seed {seed}: update {row['update']:.0f}/{updates}, {', '.join(parts)} ({seconds:.1f} s)"
