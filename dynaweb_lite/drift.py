"""Drift: how far a dream strays from the truth when each imagined page is imagined from the one before.

A walk on real pages is played again in the imagined web, with the same actions. An action means the element that it
named on the real page, so it is carried over by role and name; where the imagined page has no such element, the action
is lost and the page stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dynaweb_lite.actions import ActionError, parse_action
from dynaweb_lite.fidelity import TransitionScore, score_transition
from dynaweb_lite.imagined_web import ImaginedWeb
from dynaweb_lite.observation import Element, Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.views import Pair
from dynaweb_lite.world_model import Predictor


@dataclass(frozen=True)
class DriftStep:
    """One step of a walk, dreamt on: the real page, the imagined one, and how they agree.

    `score` compares what changed since the walk's first page. `lost`: the imagined page lacked the action's element.
    `confidence`: the lowest of the dream's predictions so far, in [0, 1]; 1 before the first.
    """

    walk: int
    step: int
    real: Observation
    imagined: Observation
    score: TransitionScore
    lost: bool
    confidence: float


def carry(text: str, real: Observation, imagined: Observation) -> str | None:
    """An action on a real page, for the imagined page: the same element by role, name and place among its equals.

    None where the imagined page has none. Actions without an element are the same everywhere.
    """
    try:
        action = parse_action(text)
    except ActionError:
        return text
    element = real.element(action.element_id) if action.element_id else None
    if element is None:
        return text
    place = [e.id for e in real.elements if _alike(e, element)].index(element.id)
    there = [e.id for e in imagined.elements if _alike(e, element)]
    return str(replace(action, element_id=there[min(place, len(there) - 1)])) if there else None


def _alike(a: Element, b: Element) -> bool:
    return (a.role, a.name) == (b.role, b.name)


def free_running(walks: Sequence[Trajectory], web: ImaginedWeb, max_dream_steps: int = 10) -> list[DriftStep]:
    """Dream on from the first real page of each walk [B], doing what was done there.

    Steps whose real action was refused are played as they are: a model must know those too. Stops end a walk.
    """
    rows: list[DriftStep] = []
    starts = [walk.steps[0].observation for walk in walks]
    pages = web.reset([_task(walk) for walk in walks], starts)
    confidence = [1.0] * len(walks)
    for k in range(max_dream_steps):
        actions = [_carried(walk, k, page) for walk, page in zip(walks, pages, strict=True)]
        for i, (walk, step) in enumerate(zip(walks, web.step([a or None for a in actions]), strict=True)):
            if actions[i] is None:
                continue
            info = step.info if step else {}
            pages[i] = step.observation if step else pages[i]
            confidence[i] = min(confidence[i], info.get("confidence", 1.0))
            real = walk.steps[k].next_observation
            score = score_transition(starts[i], real, pages[i], info.get("parsed", True))
            rows.append(DriftStep(i, k + 1, real, pages[i], score, step is None, confidence[i]))
    return rows


def _carried(walk: Trajectory, k: int, page: Observation) -> str | None:
    """The k-th action for the imagined page; empty where it is lost, None where the walk is over."""
    if k >= len(walk.steps) or walk.steps[k].action.startswith("stop"):
        return None
    return carry(walk.steps[k].action, walk.steps[k].observation, page) or ""


def _task(walk: Trajectory) -> Task:
    return Task(walk.task_id, ("",), "", walk.goal, {})


def teacher_forced_pairs(walk: Trajectory, model: Predictor) -> list[Pair]:
    """A walk as pairs to look at: each page imagined from the real page before it."""
    made = model.predict([(s.observation, s.action) for s in walk.steps])
    return [
        Pair(walk.goal, s.observation, s.action, s.next_observation, p.observation)
        for s, p in zip(walk.steps, made, strict=True)
    ]


def free_running_pairs(walk: Trajectory, web: ImaginedWeb) -> list[Pair]:
    """A walk as pairs to look at: each page imagined from the imagined page before it."""
    dreamt = free_running([walk], web, len(walk.steps))
    return [
        Pair(walk.goal, s.observation, s.action, s.next_observation, d.imagined)
        for s, d in zip(walk.steps, dreamt, strict=False)
    ]
