"""Steps, trajectories and transitions, and their JSONL files.

One line of a file is one trajectory. A file that was cut off in the middle of its last line still reads.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dynaweb_lite.observation import Observation, ObservationError, parse_observation

SOURCES = ("expert", "exploration", "policy", "dream")


@dataclass(frozen=True)
class Step:
    """One action and what followed. `action` is the text that the agent wrote; it may hold no valid action."""

    observation: Observation
    action: str
    next_observation: Observation
    thought: str = ""
    reward: float = 0.0


@dataclass(frozen=True)
class Transition:
    """What the world model learns from: a page, an action on it, and the page that followed."""

    observation: Observation
    action: str
    next_observation: Observation


@dataclass
class Trajectory:
    """An episode. `source` is one of SOURCES; `provenance` says how it came about (seed, model, world, …).

    `terminated`: the agent stopped. `truncated`: it ran out of steps. `answer`: the text of its stop action.
    """

    task_id: int | str
    goal: str
    steps: list[Step] = field(default_factory=list)
    source: str = "policy"
    terminated: bool = False
    truncated: bool = False
    answer: str = ""
    provenance: dict = field(default_factory=dict)

    @property
    def reward(self) -> float:
        """The reward of the last step, 0 for an empty trajectory: rewards come only at the end (paper, section 3)."""
        return self.steps[-1].reward if self.steps else 0.0

    @property
    def observations(self) -> list[Observation]:
        """All pages in order, the last one included: one more than there are steps."""
        return [s.observation for s in self.steps] + [s.next_observation for s in self.steps[-1:]]

    def transitions(self) -> list[Transition]:
        """The transitions of the episode; `stop` changes no page and is left out, as are refused actions."""
        return [
            Transition(s.observation, s.action, s.next_observation)
            for s in self.steps
            if not s.action.startswith("stop") and not s.next_observation.last_action_error
        ]

    def to_json(self) -> dict:
        """A JSON object in which every page stands once, although pages are shared between steps."""
        pages = [o.text for o in self.observations]
        steps = [{"thought": s.thought, "action": s.action, "reward": s.reward} for s in self.steps]
        rest = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "steps"}
        return {**rest, "pages": pages, "steps": steps}

    @classmethod
    def from_json(cls, row: dict) -> Trajectory:
        """Read a trajectory. Raises KeyError or ObservationError when the row is not one."""
        pages = [parse_observation(text) for text in row["pages"]]
        steps = [
            Step(pages[i], s["action"], pages[i + 1], s.get("thought", ""), s.get("reward", 0.0))
            for i, s in enumerate(row["steps"])
        ]
        known = {key: row[key] for key in cls.__dataclass_fields__ if key in row and key != "steps"}
        return cls(steps=steps, **known)


def append_jsonl(path: str | Path, rows: Iterable[dict]) -> None:
    """Add rows to a JSONL file; a half-written last line from a killed run is closed first, so it harms no other."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def read_jsonl(path: str | Path) -> Iterator[dict]:
    """Rows of a JSONL file; lines that are no JSON (a truncated write) are passed over."""
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def save_trajectories(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Append trajectories to a file, made where it is missing."""
    append_jsonl(path, (t.to_json() for t in trajectories))


def load_trajectories(path: str | Path) -> list[Trajectory]:
    """Trajectories of a file, an empty list where it is missing; rows that are none are passed over with a warning."""
    trajectories, bad = [], 0
    for row in read_jsonl(path) if Path(path).exists() else ():
        try:
            trajectories.append(Trajectory.from_json(row))
        except (KeyError, TypeError, IndexError, ObservationError):
            bad += 1
    if bad:
        warnings.warn(f"{path}: {bad} rows are no trajectories and were passed over", stacklevel=2)
    return trajectories
