"""The judge: did the episode reach its goal? Read off a model's own yes and no, from the last page and the answer.

The paper's terminal reward in dreams is self-assessed. A judge that says yes too easily teaches the
policy to stop early; `audit` measures that against true outcomes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.observation import Observation
from dynaweb_lite.prompts import judge_messages
from dynaweb_lite.sft import Example
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory

Item = tuple[str, Observation, str]
"""Goal, last page, answer."""


class Judge(Protocol):
    """Anything that rewards finished episodes."""

    def judge(self, items: Sequence[Item]) -> list[float]:
        """1.0 where the goal is reached, else 0.0, for each item [B]."""
        ...


@dataclass(frozen=True)
class Verdict:
    """A labelled item: the goal, the page the agent stopped on, its answer, and whether it truly succeeded."""

    goal: str
    observation: Observation
    answer: str
    success: bool

    @property
    def item(self) -> Item:
        return self.goal, self.observation, self.answer


@dataclass
class SelfJudge:
    """Judges by one comparison: how likely is "yes", how likely "no", as the first token of the reply.

    No text is generated, so no verdict can be unreadable. `threshold`: the probability from which on it is a yes.
    """

    lm: LanguageModel
    threshold: float = 0.5
    cache: dict[tuple[str, str, str], float] = field(default_factory=dict, repr=False)

    def judge(self, items: Sequence[Item]) -> list[float]:
        return [float(p >= self.threshold) for p in self.probabilities(items)]

    def probabilities(self, items: Sequence[Item]) -> list[float]:
        """P(yes) / (P(yes) + P(no)) for each item [B]; equal items are asked once."""
        keys = [(goal, page.with_error("").text, answer) for goal, page, answer in items]
        fresh = {key: item for key, item in zip(keys, items, strict=True) if key not in self.cache}
        if fresh:
            prompts = [self.lm.prompt_tokens(judge_messages(*item)) for item in fresh.values()]
            logits = self.lm.next_token_logits(prompts)[:, self._yes_no()]
            self.cache.update(zip(fresh, torch.softmax(logits, -1)[:, 0].tolist(), strict=True))
        return [self.cache[key] for key in keys]

    def _yes_no(self) -> list[int]:
        """First tokens of the two replies. Raises ValueError where the tokenizer begins both alike."""
        yes, no = self.lm.reply_tokens("yes")[0], self.lm.reply_tokens("no")[0]
        if yes == no:
            raise ValueError(f"the tokenizer of {self.lm.name} begins 'yes' and 'no' with the same token")
        return [yes, no]


@dataclass(frozen=True)
class RuleJudge:
    """A judge made of any function of goal, page and answer: for tests, and for true outcomes where they are known."""

    rule: Callable[[str, Observation, str], bool]

    def judge(self, items: Sequence[Item]) -> list[float]:
        return [float(self.rule(*item)) for item in items]


def judge_examples(rows: Iterable[Verdict], balance: bool = True) -> list[Example]:
    """What a judge learns from: labelled rows, equal ones once.

    With `balance`, the rarer label is repeated until both are equally frequent, so that saying one thing never pays.
    """
    distinct = {(r.goal, r.observation.with_error("").text, r.answer, r.success): r for r in rows}
    labelled = {label: [r for r in distinct.values() if r.success == label] for label in (True, False)}
    most = max(len(group) for group in labelled.values())
    chosen = []
    for group in labelled.values():
        size = most if balance and group else len(group)
        chosen += [group[i % len(group)] for i in range(size)]
    return [Example(judge_messages(*r.item), "yes" if r.success else "no") for r in chosen]


def audit(judge: Judge, rows: Sequence[Verdict]) -> dict:
    """The judge against the truth: agreement, and how often it errs on failures and on successes, each with its n.

    `false_positive_rate`: share of true failures judged a success; `false_negative_rate`: share of true successes
    judged a failure; None where there are none of that kind. Raises ValueError without rows.
    """
    if not rows:
        raise ValueError("no labelled rows to audit the judge on")
    said = [bool(reward) for reward in judge.judge([r.item for r in rows])]
    failures = [s for s, r in zip(said, rows, strict=True) if not r.success]
    successes = [s for s, r in zip(said, rows, strict=True) if r.success]
    return {
        "n": len(rows),
        "agreement": sum(s == r.success for s, r in zip(said, rows, strict=True)) / len(rows),
        "n_failures": len(failures),
        "false_positive_rate": sum(failures) / len(failures) if failures else None,
        "n_successes": len(successes),
        "false_negative_rate": sum(not s for s in successes) / len(successes) if successes else None,
    }


def verdict_rows(tasks: Sequence[Task], episodes: Sequence[Trajectory], rng: random.Random) -> list[Verdict]:
    """Labelled rows from successful episodes [B] of tasks [B]: what was reached, and near misses of three kinds.

    The near misses: stopped one page too early; another task of the same kind; a wrong fact of the same page.
    Episodes that failed count as failures as they stand.
    """
    by_kind: dict[str, list[Task]] = {}
    for task in tasks:
        by_kind.setdefault(task.kind, []).append(task)
    rows = []
    for task, episode in zip(tasks, episodes, strict=True):
        page, answer = episode.observations[-1], episode.answer
        rows.append(Verdict(task.intent, page, answer, bool(episode.reward)))
        if not episode.reward:
            continue
        earlier = [o for o in episode.observations[:-1] if o != page]
        if earlier:
            rows.append(Verdict(task.intent, rng.choice([earlier[-1], rng.choice(earlier)]), "", False))
        others = [t for t in by_kind[task.kind] if t.intent != task.intent]
        if others:
            rows.append(Verdict(rng.choice(others).intent, page, answer, False))
        facts = [e.name.split(": ", 1)[1] for e in page.elements if ": " in e.name]
        wrong = [f for f in facts if f != answer]
        if answer and wrong:
            rows.append(Verdict(task.intent, page, rng.choice(wrong), False))
    return rows
