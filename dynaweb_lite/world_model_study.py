"""The study of the world model: trained anew from recorded pages, and measured on walks it has never seen.

    python -m dynaweb_lite world-model --report

Measured on walks in the real browser, by page (memory or generalisation), by site (an unseen seed), step by step in a
free-running dream, by facts and by how well the model knows its own errors; each beside two baselines, "nothing
changes" and "nearest transition".
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from dynaweb_lite.actions import parse_action
from dynaweb_lite.browser import RealWeb
from dynaweb_lite.change_forms import DESCRIBED, EDIT_SCRIPT, ChangeForm
from dynaweb_lite.drift import DriftStep, free_running
from dynaweb_lite.explore import RandomExplorer, collect, transitions_of
from dynaweb_lite.fidelity import NearestTransition, NothingChanges, score_transition, summarise
from dynaweb_lite.imagined_evaluator import facts_agreement
from dynaweb_lite.imagined_web import ImaginedWeb
from dynaweb_lite.judge import RuleJudge, SelfJudge, judge_examples, verdict_rows
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.observation import INTERACTIVE_ROLES
from dynaweb_lite.policy import LanguagePolicy
from dynaweb_lite.presets import ASSETS, Preset
from dynaweb_lite.prompts import world_model_messages
from dynaweb_lite.replay import dream_agreement
from dynaweb_lite.runs import Clock, RunError, open_run, provenance, write_json
from dynaweb_lite.sft import SFTSettings, train_sft
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.trajectory import Trajectory, Transition, load_trajectories
from dynaweb_lite.world_model import Prediction, Predictor, WorldModel, pair_key, training_examples
from dynaweb_lite.worlds import rollout

MODEL, NEAREST, NOTHING = "world model", "nearest transition", "nothing changes"
AGAIN, DESCRIBED_MODEL = "world model, trained again", "world model, changes in words"
SENSIBLE_MODEL = "world model, no odd actions"
WALKS, WALK_STEPS, WALK_SEED, OTHER_SITE_SEED = 80, 10, 41, 7
MAX_DREAM_STEPS = 10
RESULTS_FILE = "results.json"
THRESHOLDS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
CONFIDENCE_BINS = 5
THROUGHPUT_ROUNDS = 3


@dataclass(frozen=True)
class Split:
    """Transitions that tell memory and generalisation apart."""

    name: str
    transitions: Sequence[Transition]


def split_by_page(transitions: Sequence[Transition], training: Sequence[Transition]) -> list[Split]:
    """Held-out transitions by what training has shown of them: this very question, this page, or nothing of it."""
    asked = {pair_key(t.observation, t.action) for t in training}
    seen = {p.with_error("").text for t in training for p in (t.observation, t.next_observation)}
    parts: dict[str, list[Transition]] = {"seen page and action": [], "seen page, new action": [], "unseen page": []}
    for t in transitions:
        known = pair_key(t.observation, t.action) in asked
        on_page = t.observation.with_error("").text in seen
        parts[list(parts)[0 if known else 1 if on_page else 2]].append(t)
    return [Split(name, rows) for name, rows in parts.items()]


def row(method: str, split: str, step: int, scores: Sequence) -> dict:
    """One line of the results: means over transitions with the 95 % interval of changed-lines F1."""
    found = summarise(scores)
    low, high = found["changed_f1_interval"]
    measures = {name: round(found[name], 4) for name in ("changed_f1", "exact", "line_f1")}
    return {"method": method, "split": split, "step": step, **measures, "n": found["n"]} | {
        "low": round(low, 4),
        "high": round(high, 4),
    }


def one_step_rows(predictors: Mapping[str, Predictor], splits: Sequence[Split]) -> list[dict]:
    """A row for each split and predictor; splits without transitions are left out."""
    rows = []
    for split in splits:
        for name, predictor in predictors.items() if split.transitions else ():
            predictions = predictor.predict([(t.observation, t.action) for t in split.transitions])
            rows.append(row(name, split.name, 1, scores_of(split.transitions, predictions)))
    return rows


def scores_of(transitions: Sequence[Transition], predictions: Sequence[Prediction]) -> list:
    return [
        score_transition(t.observation, t.next_observation, p.observation, p.parsed)
        for t, p in zip(transitions, predictions, strict=True)
    ]


def drift_rows(name: str, steps: Sequence[DriftStep]) -> list[dict]:
    """A row for each imagined step."""
    numbers = sorted({step.step for step in steps})
    return [row(name, "free-running", k, [s.score for s in steps if s.step == k]) for k in numbers]


def calibration(transitions: Sequence[Transition], predictions: Sequence[Prediction]) -> dict:
    """Does confidence predict errors? Bins of equal size, and the area under the ROC curve for "the page is exact".

    0.5 is chance, 1 is perfect order. Raises ValueError when all predictions are right, or all wrong.
    """
    confidence = np.array([p.confidence for p in predictions])
    exact = np.array([s.exact for s in scores_of(transitions, predictions)])
    if exact.all() or not exact.any():
        raise ValueError("confidence cannot be tested where all predictions are right or all are wrong")
    bins = [
        {"confidence": float(confidence[part].mean()), "exact": float(exact[part].mean()), "n": len(part)}
        for part in np.array_split(np.argsort(confidence), min(CONFIDENCE_BINS, len(confidence)))
    ]
    right, wrong = confidence[exact][:, None], confidence[~exact][None, :]
    auc = float(((right > wrong) + 0.5 * (right == wrong)).mean())
    return {"auc": auc, "bins": bins}


def stopping(steps: Sequence[DriftStep], thresholds: Sequence[float] = THRESHOLDS) -> list[dict]:
    """What a dream keeps that stops when its confidence falls below a threshold: steps kept, and their fidelity."""
    rows = []
    for threshold in thresholds:
        kept = [s for s in steps if s.confidence >= threshold]
        found = summarise([s.score for s in kept])
        measures = {key: round(found[key], 4) for key in ("changed_f1", "exact")} if kept else {}
        rows.append({"threshold": threshold, "kept": len(kept) / len(steps), "n": len(kept), **measures})
    return rows


def throughput(lm: LanguageModel, pairs: Sequence, rounds: int = THROUGHPUT_ROUNDS) -> dict:
    """Predictions a second: batched with a cache, beside the naive loop, in turns in one run; medians.

    The naive loop asks transformers' `generate` for one prediction at a time and remembers none.
    """
    ours, naive = [], []
    few = pairs[: max(1, len(pairs) // 20)]
    for _ in range(rounds):
        began = time.perf_counter()
        WorldModel(lm).predict(pairs)
        ours.append(len(pairs) / (time.perf_counter() - began))
        began = time.perf_counter()
        for pair in few:
            naive_prediction(lm, pair)
        naive.append(len(few) / (time.perf_counter() - began))
    mine, other = float(np.median(ours)), float(np.median(naive))
    return {"name": "dream vs naive loop", "ours": mine, "other": other, "ratio": mine / other, "unit": "predictions/s"}


def naive_prediction(lm: LanguageModel, pair: tuple) -> str:
    """One reply by transformers' own generate, as a first version would ask for it."""
    prompt = torch.tensor([lm.prompt_tokens(world_model_messages(*pair))])
    ends = {"eos_token_id": sorted(lm.stop_tokens), "pad_token_id": lm.tokenizer.pad_token_id}
    with lm.speaking() as model:
        made = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=400, do_sample=False, **ends
        )
    return lm.decode(made[0, prompt.shape[1] :].tolist())


class WorldModelStudy:
    """Everything above in a folder, phase by phase; what is there already is not done again."""

    def __init__(self, preset: Preset, folder: Path) -> None:
        open_run(folder, preset)
        self.preset, self.folder = preset, folder
        self.clock = Clock(folder, {"walk": 1.5, "train": 14.0, "measure": 6.0})
        self.server = SiteServer(0)
        self.tasks = {split: generate_tasks(0, split) for split in ("expert", "train", "validation")}

    def run(self) -> dict:
        """Collect, train, measure; returns what `results.json` holds."""
        with self.clock.phase("walk"):
            self.walks, self.other_walks = self._walk(0), self._walk(OTHER_SITE_SEED)
        with self.clock.phase("train"):
            for name in (AGAIN, DESCRIBED_MODEL, SENSIBLE_MODEL):
                self.trained(name)
        with self.clock.phase("measure"):
            results = self.measure()
        made = provenance(self.folder, self.preset, self.clock.total_seconds)
        results = {"study": "world_model", "made": made, **results}
        write_json(self.folder / RESULTS_FILE, results)
        return results

    def _walk(self, site_seed: int) -> list[Trajectory]:
        """Fresh walks in the real browser, over a site's validation tasks' start pages."""
        path = self.folder / f"walks-{site_seed}.jsonl"
        with RealWeb(SiteServer(site_seed), contexts=self.preset.contexts) as web:
            return collect(
                RandomExplorer(WALK_SEED),
                web,
                generate_tasks(site_seed, "validation"),
                path,
                WALKS,
                WALK_STEPS,
                self.preset.contexts,
                WALK_SEED,
            )

    @cached_property
    def experts(self) -> list[Trajectory]:
        return load_trajectories(ASSETS / "experts.jsonl")

    @cached_property
    def recorded(self) -> tuple[list[Trajectory], list[Trajectory]]:
        """The explorations in assets/ that the shipped model has learnt from, and those held out from it."""
        walks = load_trajectories(ASSETS / "explorations.jsonl")
        if not walks:
            raise RunError("no recorded explorations in assets/: take the whole repository")
        order = random.Random(0).sample(range(len(walks)), len(walks))
        held_out = set(order[: round(len(walks) * self.preset.held_out_share)])
        return [w for i, w in enumerate(walks) if i not in held_out], [w for i, w in enumerate(walks) if i in held_out]

    @cached_property
    def training(self) -> list[Transition]:
        return transitions_of(self.recorded[0] + self.experts)

    @property
    def held_out(self) -> list[Transition]:
        return transitions_of(self.recorded[1])

    def baselines(self) -> dict[str, Predictor]:
        return {NEAREST: NearestTransition(self.training), NOTHING: NothingChanges()}

    def trained(self, name: str) -> LanguageModel:
        """A world model by name: the shipped one, or one trained here by the preset's settings, once."""
        if name == MODEL:
            return LanguageModel.load(self.preset.model, ASSETS / "world-model")
        form = DESCRIBED if name == DESCRIBED_MODEL else EDIT_SCRIPT
        transitions = [t for t in self.training if sensible(t)] if name == SENSIBLE_MODEL else self.training
        examples = training_examples(transitions, form=form)
        if name == AGAIN:
            by_id = {task.task_id: task for task in self.tasks["expert"]}
            rows = verdict_rows([by_id[e.task_id] for e in self.experts], self.experts, random.Random(0))
            examples += judge_examples(rows)
        settings: SFTSettings = replace(self.preset.world_model, seed=0)
        base = LanguageModel.load(self.preset.model)
        return train_sft(base, examples, self.folder / name.replace(", ", "-").replace(" ", "-"), settings)

    def predictors(self) -> dict[str, Predictor]:
        """World models first, baselines after them."""
        forms: dict[str, ChangeForm] = {MODEL: EDIT_SCRIPT, AGAIN: EDIT_SCRIPT, DESCRIBED_MODEL: DESCRIBED}
        models = {name: WorldModel(self.trained(name).merged(), form) for name, form in forms.items()}
        return models | self.baselines()

    def measure(self) -> dict:
        """All tables of the study."""
        predictors, held_out = self.predictors(), transitions_of(self.walks)
        splits = [Split("held out", held_out), *split_by_page(held_out, self.training)]
        splits.append(Split("other site", transitions_of(self.other_walks)))
        rows = one_step_rows(predictors, splits)
        dreams = {name: free_running(self.walks, silent(p), MAX_DREAM_STEPS) for name, p in predictors.items()}
        rows += [line for name, steps in dreams.items() for line in drift_rows(name, steps)]
        asked = {name: p.predict([(t.observation, t.action) for t in held_out]) for name, p in predictors.items()}
        every = [task for part in self.tasks.values() for task in part]
        return {
            "rows": rows,
            "facts": [{"method": n} | facts_agreement(held_out, made, every) for n, made in asked.items()],
            "calibration": calibration(held_out, asked[MODEL]),
            "stopping": stopping(dreams[MODEL]),
            "odd_actions": self.odd_actions(held_out, asked[MODEL]),
            "exploitation": self.exploitation(predictors[MODEL]),
            "throughput": throughput(predictors[MODEL].lm, [(t.observation, t.action) for t in held_out]),
            "unparsable": {name: p.counts for name, p in predictors.items() if isinstance(p, WorldModel)},
        }

    def odd_actions(self, held_out: Sequence[Transition], usual: Sequence[Prediction]) -> list[dict]:
        """What a model invents that has never seen odd actions, on odd ones and on sensible ones."""
        blind = WorldModel(self.trained(SENSIBLE_MODEL).merged())
        made = {MODEL: usual, SENSIBLE_MODEL: blind.predict([(t.observation, t.action) for t in held_out])}
        rows = []
        for name, predictions in made.items():
            pairs = list(zip(held_out, predictions, strict=True))
            for split, wanted in (("odd actions", False), ("sensible actions", True)):
                part = [(t, p) for t, p in pairs if sensible(t) is wanted]
                rows.append(row(name, split, 1, scores_of(*zip(*part, strict=True))))
        return rows

    def exploitation(self, model: WorldModel) -> dict:
        """The shipped policy's dreams, done again in the real browser: do pages and rewards agree?"""
        policy = LanguagePolicy(LanguageModel.load(self.preset.model, ASSETS / "dynaweb").merged())
        starts = {e.task_id.split("-")[0]: e.steps[0].observation for e in self.experts}
        tasks = self.tasks["validation"]
        web = ImaginedWeb(model, SelfJudge(model.lm), lambda task: starts[str(task.task_id).split("-")[0]])
        dreams = rollout(policy, web, tasks, self.preset.rl.max_dream_steps, source="dream")
        with RealWeb(self.server, contexts=self.preset.contexts) as real:
            return dream_agreement(dreams, {t.task_id: t for t in tasks}, real) | {"n": len(dreams)}


def silent(predictor: Predictor) -> ImaginedWeb:
    """An imagined web in which nobody stops."""
    return ImaginedWeb(predictor, RuleJudge(lambda *item: False))


def sensible(transition: Transition) -> bool:
    """Whether a person might do this: click what reacts to clicks, or type a text and send it or go on in its form.

    The other actions are the explorer's odd ones.
    """
    action = parse_action(transition.action)
    element = transition.observation.element(action.element_id) if action.element_id else None
    if action.kind == "type":
        return bool(action.text) and (action.press_enter or element.role != "searchbox")
    return action.kind in ("go_back", "select") or (element is not None and element.role in INTERACTIVE_ROLES)
