"""What a world is: the one interface that the real web and the imagined web share.

    observations = world.reset(tasks, starts=None)      # B tasks -> B pages
    steps = world.step(actions)                         # B action texts (None: this episode is over) -> B steps

A policy cannot tell a `RealWeb` from an `ImaginedWeb`. `rollout` runs one in either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dynaweb_lite.actions import ActionError, parse_action
from dynaweb_lite.observation import Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Step, Trajectory


@dataclass(frozen=True)
class WorldStep:
    """Gymnasium's five: the page after the action, reward in {0, 1}, and whether and how the episode ended."""

    observation: Observation
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict = field(default_factory=dict)


class World(Protocol):
    """A batch of episodes, each in a place of its own."""

    name: str

    def reset(self, tasks: Sequence[Task], starts: Sequence[Observation] | None = None) -> list[Observation]:
        """Begin an episode for each task [B]; `starts` are pages to begin on, else each task's start page."""
        ...

    def step(self, actions: Sequence[str | None]) -> list[WorldStep | None]:
        """Do one action in each episode [B]; None leaves an episode alone and yields None.

        An action that cannot be read or done is no exception: the page stays and carries `last_action_error`.
        `stop` ends the episode and earns the reward.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Decision:
    """What a policy says on a page. `tokens`: ids that it generated, kept for training; `logprobs` beside them."""

    action: str
    thought: str = ""
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


class Policy(Protocol):
    """Anything that acts: a language model, a scripted expert, a random explorer."""

    def act(self, episodes: Sequence[Trajectory], observations: Sequence[Observation]) -> list[Decision]:
        """One decision for each running episode [B], given what happened in it so far and the page it is on."""
        ...


def rollout(
    policy: Policy,
    world: World,
    tasks: Sequence[Task],
    max_steps: int,
    starts: Sequence[Observation] | None = None,
    source: str = "policy",
    on_step: Callable[[int, int, Decision], None] | None = None,
) -> list[Trajectory]:
    """Play one episode for each task [B], side by side, for at most `max_steps` actions.

    The same line runs a policy in real pages and in imagined ones. `on_step(episode, step, decision)` is called for
    every decision, before the world answers.
    """
    observations = world.reset(tasks, starts)
    episodes = [Trajectory(t.task_id, t.intent, source=source, provenance={"world": world.name}) for t in tasks]
    for number in range(max_steps):
        running = [i for i, e in enumerate(episodes) if not (e.terminated or e.truncated)]
        if not running:
            break
        decisions = policy.act([episodes[i] for i in running], [observations[i] for i in running])
        actions: list[str | None] = [None] * len(tasks)
        for i, decision in zip(running, decisions, strict=True):
            actions[i] = decision.action
            if on_step:
                on_step(i, number, decision)
        for i, decision, step in zip(running, decisions, [s for s in world.step(actions) if s], strict=True):
            record(episodes[i], observations[i], decision, step)
            observations[i] = step.observation
    for episode in episodes:
        episode.truncated = not episode.terminated
    return episodes


def record(episode: Trajectory, observation: Observation, decision: Decision, step: WorldStep) -> None:
    """Add one step to an episode, and note how it ended when it did."""
    episode.steps.append(Step(observation, decision.action, step.observation, decision.thought, step.reward))
    episode.terminated, episode.truncated = step.terminated, step.truncated
    if step.terminated:
        episode.answer = answer_of(decision.action)
    episode.provenance |= {key: step.info[key] for key in ("error", "not_scorable") if key in step.info}


def answer_of(action: str) -> str:
    """The text inside a stop action, else an empty string."""
    try:
        parsed = parse_action(action)
    except ActionError:
        return ""
    return parsed.text if parsed.kind == "stop" else ""
