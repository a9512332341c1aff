"""What a round of rollouts is measured by, and metrics.csv, which a killed run cannot spoil."""

from __future__ import annotations

import csv
import os
import statistics as stats
from collections.abc import Sequence
from pathlib import Path

from dynaweb_lite.actions import ActionError, parse_action
from dynaweb_lite.groups import Group
from dynaweb_lite.policy import episode_tokens
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import World

Row = dict[str, float]
WORLD_COUNTERS = ("cache_hits", "cache_misses", "predictions", "unparsable")
"""Counters that are logged when the world's model has them."""


def describe_groups(groups: Sequence[Group], kept: Sequence[Group], episodes: Sequence[Trajectory]) -> Row:
    """Metrics of a round; rewards are those of rollouts unless the name says otherwise."""

    def mean(values: Sequence[float]) -> float:
        return stats.fmean(values) if values else float("nan")

    steps = [step for t in episodes for step in t.steps]
    with_experts = [t.reward for g in groups if g.expert_goal for t in g.rollouts]
    without = [t.reward for g in groups if not g.expert_goal for t in g.rollouts]
    return {
        "reward": mean([t.reward for t in episodes]),
        "reward_with_experts": mean(with_experts),
        "reward_without_experts": mean(without),
        "reward_kept": mean([r for g in kept for r in g.rewards]),
        "expert_share": mean([len(g.experts) / len(g.rewards) for g in kept]),
        "spread_share": mean([g.has_spread for g in groups]),
        "spread_share_kept": mean([g.has_spread for g in kept]),
        "episodes": len(episodes),
        "tokens_mean": mean([len(episode_tokens(t).completion_ids) for t in episodes]),
        "own_tokens_mean": mean([sum(episode_tokens(t).completion_mask) for t in episodes]),
        "steps_mean": mean([len(t.steps) for t in episodes]),
        "terminated_share": mean([t.terminated for t in episodes]),
        "unparsable_share": mean([not is_action(step.action) for step in steps]),
        "refused_share": mean([bool(step.next_observation.last_action_error) for step in steps]),
    }


def is_action(text: str) -> bool:
    """Whether a reply's last line holds an action of the language."""
    try:
        parse_action(text)
    except ActionError:
        return False
    return True


def world_counters(world: World) -> Row:
    """The counters of an imagined world's model, as far as it has them."""
    model = getattr(world, "world_model", None)
    found = {name: getattr(model, name, None) for name in WORLD_COUNTERS}
    return {f"world_{name}": value for name, value in found.items() if isinstance(value, int | float)}


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a killed run leaves the old one or the new one, never half of one."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def write_metrics(path: Path, rows: Sequence[Row]) -> None:
    """All rows of a run as CSV; a column that a row lacks stays empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names)]
    lines += [",".join(f"{row[n]:.6g}" if n in row else "" for n in names) for row in rows]
    write_whole(path, "\n".join(lines) + "\n")


def read_metrics(path: str | Path) -> list[Row]:
    """Rows of a metrics.csv, empty cells left out; an empty list where the file is missing."""
    if not Path(path).exists():
        return []
    with Path(path).open(encoding="utf-8", newline="") as file:
        return [{name: float(cell) for name, cell in row.items() if cell} for row in csv.DictReader(file)]
