"""Dreams held against the truth: the same actions, done again in a true world.

A policy may find what the world model or the judge gets wrong and exploit it; one-step accuracy does not show that,
because the policy goes where the model is wrong. Doing its dreams' actions again does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynaweb_lite.observation import Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import Decision, World, rollout


class ReplayPolicy:
    """Does the actions of given episodes again, one by one."""

    def __init__(self, episodes: Sequence[Trajectory]):
        self.actions = [[step.action for step in e.steps] for e in episodes]
        self._number: dict[int, int] = {}

    def act(self, episodes: Sequence[Trajectory], observations: Sequence[Observation]) -> list[Decision]:
        for episode in episodes:
            self._number.setdefault(id(episode), len(self._number))
        actions = [self.actions[self._number[id(e)]][len(e.steps) :] for e in episodes]
        return [Decision(rest[0] if rest else "stop []") for rest in actions]


def dream_agreement(dreams: Sequence[Trajectory], tasks: Mapping[int | str, Task], world: World) -> dict:
    """Replay dreams [B] that began on start pages in a true world.

    `agreement`: share of dreams whose reward is the true one. `page_agreement`: share of steps after which both
    show the same page. `true_reward`: mean true reward. `false_reward`: share of all dreams rewarded without desert.
    """
    dreams = [d for d in dreams if d.steps]
    if not dreams:
        return {}
    longest = max(len(d.steps) for d in dreams)
    real = rollout(ReplayPolicy(dreams), world, [tasks[d.task_id] for d in dreams], longest)
    pairs = [(a, b) for d, r in zip(dreams, real, strict=True) for a, b in zip(d.steps, r.steps, strict=False)]
    rewards = [(d.reward, r.reward if d.terminated else 0.0) for d, r in zip(dreams, real, strict=True)]
    return {
        "agreement": sum(a == b for a, b in rewards) / len(rewards),
        "page_agreement": sum(a.next_observation == b.next_observation for a, b in pairs) / len(pairs),
        "true_reward": sum(b for _, b in rewards) / len(rewards),
        "false_reward": sum(a > b for a, b in rewards) / len(rewards),
    }
