"""The policy: a language model that reads pages and writes a thought and an action.

An episode is one token sequence: the first page as a prompt, then reply, page, reply, page, … What the model generated
is kept as it was generated, so that training sees those very tokens; text is never tokenised a second time.

    prompt_ids       page 1 and the goal
    completion_ids   reply 1 | page 2 and the goal | reply 2 | …
    completion_mask     1    |         0           |    1    | …      1: the agent's own tokens, which carry loss
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.observation import Observation
from dynaweb_lite.prompts import policy_messages, policy_reply, policy_turn, split_reply
from dynaweb_lite.sft import TokenExample
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import Decision


class EpisodeTokens(NamedTuple):
    """An episode as tokens: prompt [P], completion [T] and its mask [T], 1 where the agent wrote."""

    prompt_ids: list[int]
    completion_ids: list[int]
    completion_mask: list[int]

    def add(self, tokens: Sequence[int], mask: int) -> None:
        """Append tokens to the completion, the agent's own (mask 1) or a page's (mask 0)."""
        self.completion_ids.extend(tokens)
        self.completion_mask.extend([mask] * len(tokens))


@dataclass
class _Record:
    """What a policy remembers of an episode: its tokens, and after how many replies."""

    tokens: EpisodeTokens
    replies: int = 0
    owner: int = field(default=0, repr=False)


class LanguagePolicy:
    """A worlds.Policy over a language model. Temperature 0 is greedy; `seed` makes sampling repeatable."""

    def __init__(
        self,
        lm: LanguageModel,
        temperature: float = 0.0,
        top_p: float = 1.0,
        max_new_tokens: int = 24,
        seed: int = 0,
    ) -> None:
        self.lm, self.temperature, self.top_p, self.max_new_tokens = lm, temperature, top_p, max_new_tokens
        self.generator = torch.Generator(device=lm.device).manual_seed(seed)

    def act(self, episodes: Sequence[Trajectory], observations: Sequence[Observation]) -> list[Decision]:
        """One decision for each running episode [B].

        A reply that holds no action is passed on as it is: the world answers with `last_action_error`.
        """
        records = [self._read_page(e, o) for e, o in zip(episodes, observations, strict=True)]
        prompts = [r.tokens.prompt_ids + r.tokens.completion_ids for r in records]
        replies = self.lm.generate(prompts, self.max_new_tokens, self.temperature, self.top_p, self.generator)
        decisions = []
        for record, reply in zip(records, replies, strict=True):
            record.tokens.add(reply.tokens, mask=1)
            if not reply.tokens or reply.tokens[-1] != self.lm.end_of_turn:
                record.tokens.add(
                    [self.lm.end_of_turn], mask=0
                )  # the reply was cut; the next page needs its turn closed
            record.replies += 1
            thought, action = split_reply(reply.text)
            decisions.append(Decision(action, thought, tuple(reply.tokens), tuple(reply.logprobs)))
        return decisions

    def _read_page(self, episode: Trajectory, observation: Observation) -> _Record:
        """The episode's record with the page at hand added; steps that others took become part of the prompt."""
        record: _Record | None = getattr(episode, "policy_record", None)
        if record and record.owner == id(self) and record.replies == len(episode.steps) > 0:
            record.tokens.add(self.lm.turn_tokens(policy_turn(episode.goal, observation)), mask=0)
            return record
        messages = policy_messages(episode.goal, episode.steps, observation)
        tokens = EpisodeTokens(self.lm.prompt_tokens(messages), [], [])
        episode.policy_record = _Record(tokens, len(episode.steps), id(self))  # type: ignore[attr-defined]
        return episode.policy_record  # type: ignore[attr-defined]


def episode_tokens(episode: Trajectory) -> EpisodeTokens:
    """The tokens that a LanguagePolicy read and generated in an episode.

    Raises ValueError for an episode that no LanguagePolicy played in this process.
    """
    record: _Record | None = getattr(episode, "policy_record", None)
    if record is None:
        raise ValueError(f"episode of task {episode.task_id} holds no generated tokens; use encode_episode for it")
    return record.tokens


def encode_episode(lm: LanguageModel, trajectory: Trajectory) -> EpisodeTokens:
    """An expert's trajectory as (prompt_ids [P], completion_ids [T], completion_mask [T]), in the policy's own form.

    Raises ValueError for a trajectory without steps.
    """
    if not trajectory.steps:
        raise ValueError(f"trajectory of task {trajectory.task_id} has no steps")
    goal, first = trajectory.goal, trajectory.steps[0]
    tokens = EpisodeTokens(lm.prompt_tokens(policy_messages(goal, [], first.observation)), [], [])
    for number, step in enumerate(trajectory.steps):
        if number:
            tokens.add(lm.turn_tokens(policy_turn(goal, step.observation)), mask=0)
        tokens.add(lm.reply_tokens(policy_reply(step.thought, step.action)), mask=1)
    return tokens


def episode_examples(lm: LanguageModel, trajectories: Iterable[Trajectory]) -> list[TokenExample]:
    """Trajectories for behaviour cloning, one example each: the loss falls on the replies, never on pages."""
    episodes = (encode_episode(lm, t) for t in trajectories if t.steps)
    return [TokenExample(p + completion, [0] * len(p) + mask) for p, completion, mask in episodes]
