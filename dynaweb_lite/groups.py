"""Groups of episodes for GSPO: which goals are tried, where they start, and where expert trajectories take part.

A group [G] is one goal played G times from one page. Some members may be real expert trajectories of the same goal (the
paper's interleaving); the others are rolled out in a world, imagined or real.
"""

from __future__ import annotations

import random
import statistics as stats
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dynaweb_lite.observation import Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import Policy, World, rollout

if TYPE_CHECKING:
    from dynaweb_lite.rl import RLSettings

TaskId = int | str
Experts = Mapping[TaskId, Sequence[Trajectory]]


class GoalStatistics:
    """A running estimate of each goal's success rate q, from the policy's own episodes only.

    q = (successes + 1) / (tries + 2), where counts fade by `discount` at every visit, so that q follows the policy.
    """

    def __init__(self, discount: float = 0.7) -> None:
        self.discount = discount
        self.counts: dict[TaskId, tuple[float, float]] = {}

    def success(self, task_id: TaskId) -> float:
        """Estimated success rate in (0, 1); one half for a goal that was never tried."""
        successes, tries = self.counts.get(task_id, (0.0, 0.0))
        return (successes + 1) / (tries + 2)

    def spread(self, task_id: TaskId) -> float:
        """q(1-q): the chance, up to a factor, that two episodes of the goal differ in reward and so carry gradient."""
        q = self.success(task_id)
        return q * (1 - q)

    def add(self, task_id: TaskId, rewards: Sequence[float]) -> None:
        """Count episodes of a goal by their rewards."""
        successes, tries = self.counts.get(task_id, (0.0, 0.0))
        self.counts[task_id] = (successes * self.discount + sum(rewards), tries * self.discount + len(rewards))

    def mean_success(self) -> float:
        """Mean estimate over the goals tried so far; one half before the first."""
        return sum(map(self.success, self.counts)) / len(self.counts) if self.counts else 0.5

    def to_json(self) -> list:
        return [[task_id, *counts] for task_id, counts in self.counts.items()]

    def load(self, rows: Sequence[Sequence]) -> None:
        """Take over counts that `to_json` wrote (a list, because JSON's keys are strings and task ids may not be)."""
        self.counts = {task_id: (successes, tries) for task_id, successes, tries in rows}


@dataclass
class Group:
    """One goal's episodes: those rolled out, then the experts' [G in all].

    `expert_goal`: the goal has experts, whether or not one takes part. `start`: an intermediate page, or None.
    """

    task: Task
    experts: list[Trajectory]
    expert_goal: bool = False
    start: Observation | None = None
    rollouts: list[Trajectory] = field(default_factory=list)

    @property
    def rewards(self) -> list[float]:
        """Rewards [G] in member order; an expert's is 1 (paper, section 3.4)."""
        return [t.reward for t in self.rollouts] + [1.0] * len(self.experts)

    @property
    def has_spread(self) -> bool:
        """Whether rewards differ: only then is any advantage other than zero."""
        return len(set(self.rewards)) > 1


def group_advantages(rewards: Sequence[float]) -> list[float]:
    """How much better than its group each episode [G] went: (r - mean) / (std + 1e-4), std that of a sample.

    GRPO (Shao et al., 2024, section 4.1.2), as TRL computes it in training; a test holds the two together.
    Raises StatisticsError for fewer than two rewards.
    """
    mean, spread = stats.fmean(rewards), stats.stdev(rewards)
    return [(r - mean) / (spread + 1e-4) for r in rewards]


def draw_groups(
    rng: random.Random,
    tasks: Sequence[Task],
    experts: Experts,
    statistics: GoalStatistics,
    settings: RLSettings,
    count: int,
) -> list[Group]:
    """Choose `count` goals, from those with experts with probability `expert_goal_probability`, and their members.

    Within a pool, goals are weighted by q(1-q) plus a floor, and drawn without repetition while the pool lasts.
    """
    pools = {kind: [t for t in tasks if bool(experts.get(t.task_id)) == kind] for kind in (True, False)}
    left = {kind: list(pool) for kind, pool in pools.items()}
    groups = []
    for _ in range(count):
        kind = rng.random() < settings.expert_goal_probability
        kind = kind if pools[kind] else not kind
        left[kind] = left[kind] or list(pools[kind])
        weights = [statistics.spread(t.task_id) + settings.weight_floor for t in left[kind]]
        task = left[kind].pop(rng.choices(range(len(weights)), weights)[0])
        groups.append(_make_group(rng, task, experts.get(task.task_id, ()), settings))
    return groups


def _make_group(rng: random.Random, task: Task, experts: Sequence[Trajectory], settings: RLSettings) -> Group:
    """A group before its rollouts: how many members are experts, which ones, and on which page all begin."""
    usable = [t for t in experts if t.steps]
    if not usable:
        return Group(task, [])
    wanted = count_expert_members(rng, settings)
    if rng.random() < settings.intermediate_share:
        trajectory = rng.choice(usable)
        first = rng.randrange(len(trajectory.steps))
        if first:
            rest = replace(trajectory, steps=trajectory.steps[first:])
            return Group(task, [rest] * wanted, True, trajectory.steps[first].observation)
    chosen = rng.sample(usable, min(wanted, len(usable)))
    return Group(task, [chosen[i % len(chosen)] for i in range(wanted)], True)


def count_expert_members(rng: random.Random, settings: RLSettings) -> int:
    """How many of a group's members are expert trajectories; one member at least stays the policy's own."""
    if settings.replace_mode == "fixed_count":
        wanted = settings.expert_members if settings.real_share > 0 else 0
    else:
        wanted = sum(rng.random() < settings.real_share for _ in range(settings.group_size))
    return min(wanted, settings.group_size - 1)


def play_groups(
    groups: Sequence[Group],
    policy: Policy,
    world: World,
    settings: RLSettings,
    starts: Mapping[TaskId, Observation] | None,
) -> list[Trajectory]:
    """Roll out all groups' missing members side by side in one batch; returns them, and fills the groups.

    Raises ValueError when an intermediate start is drawn but the other goals' start pages are not given.
    """
    owners = [g for g in groups for _ in range(settings.group_size - len(g.experts))]
    pages = None
    if starts is not None:
        pages = [g.start or starts[g.task.task_id] for g in owners]
    elif any(g.start for g in groups):
        raise ValueError("intermediate_share > 0 needs `starts`: a start page for every task")
    source = "dream" if hasattr(world, "world_model") else "policy"
    episodes = rollout(policy, world, [g.task for g in owners], settings.max_dream_steps, pages, source)
    for owner, episode in zip(owners, episodes, strict=True):
        owner.rollouts.append(episode)
    return episodes


def keep_groups(groups: Sequence[Group], count: int) -> list[Group]:
    """The first `count` groups, those whose rewards differ before the others."""
    return sorted(groups, key=lambda g: not g.has_spread)[:count]
