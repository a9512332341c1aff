"""The world model: a language model that reads a page and an action and writes how the page changes.

It writes a reason and an edit script (`state_change`), which is applied to the page by rule (the paper: the model
predicts the change Δ, not the whole next page). A reply that is no edit script keeps the page and is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch

from dynaweb_lite.actions import ActionError, describe_action, parse_action
from dynaweb_lite.language_model import Generated, LanguageModel
from dynaweb_lite.observation import Observation
from dynaweb_lite.prompts import world_model_messages, world_model_reply
from dynaweb_lite.sft import Example
from dynaweb_lite.state_change import StateChangeError, apply, changed_lines, describe, diff, unnumbered
from dynaweb_lite.trajectory import Transition

Pair = tuple[Observation, str]
"""A page and the text of an action on it."""


@dataclass(frozen=True)
class Prediction:
    """An imagined next page. `parsed` False: the reply could not be applied and the page stayed.

    `confidence`: geometric mean of the reply tokens' probabilities, in [0, 1]. `cached`: taken from an earlier answer.
    """

    observation: Observation
    reason: str
    change: str
    parsed: bool = True
    confidence: float = 1.0
    cached: bool = False


@dataclass
class WorldModel:
    """Predicts next pages, and counts predictions, cache hits and unparsable replies since the start.

    At temperature 0 equal questions have equal answers, and are asked once.
    """

    lm: LanguageModel
    max_new_tokens: int = 400
    temperature: float = 0.0
    top_p: float = 1.0
    generator: torch.Generator | None = None
    cache: dict[tuple[str, str], Prediction] = field(default_factory=dict, repr=False)
    predictions: int = 0
    cache_hits: int = 0
    unparsable: int = 0

    @property
    def cache_misses(self) -> int:
        return self.predictions - self.cache_hits

    @property
    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("predictions", "cache_hits", "cache_misses", "unparsable")}

    def predict(self, pairs: Sequence[Pair]) -> list[Prediction]:
        """The next page for each page and action [B]; all that are not in the cache are generated in one batch."""
        keys = [pair_key(*pair) for pair in pairs]
        fresh = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self.cache}
        asked = list(fresh.values()) if self.temperature == 0 else list(pairs)
        prompts = [self.lm.prompt_tokens(world_model_messages(*pair)) for pair in asked]
        replies = self.lm.generate(prompts, self.max_new_tokens, self.temperature, self.top_p, self.generator)
        made = [read_reply(page, reply) for (page, _), reply in zip(asked, replies, strict=True)]
        predictions = made if self.temperature > 0 else self._answer(keys, dict(zip(fresh, made, strict=True)))
        self.predictions += len(predictions)
        self.cache_hits += sum(p.cached for p in predictions)
        self.unparsable += sum(not p.parsed for p in predictions)
        return predictions

    def _answer(self, keys: Sequence[tuple[str, str]], made: dict[tuple[str, str], Prediction]) -> list[Prediction]:
        """Predictions in the order of the questions; only the first asking of each new one is not a cache hit."""
        predictions = []
        for key in keys:
            if key in made and key not in self.cache:
                self.cache[key] = replace(made[key], cached=True)
                predictions.append(made[key])
            else:
                predictions.append(self.cache[key])
        return predictions


def pair_key(observation: Observation, action: str) -> tuple[str, str]:
    """Page text without its error line, and action in its plain spelling: equal keys ask the model the same."""
    try:
        action = describe_action(parse_action(action), observation)
    except ActionError:
        pass
    return observation.with_error("").text, action


def read_reply(page: Observation, reply: Generated) -> Prediction:
    """A reply applied to the page: its first line is the reason, the rest the edit script."""
    reason, _, change = reply.text.partition("\n")
    confidence = math.exp(sum(reply.logprobs) / max(len(reply.logprobs), 1))
    try:
        return Prediction(apply(page, change), reason, change, True, confidence)
    except StateChangeError:
        return Prediction(page.with_error(""), reason, change, False, confidence)


def training_examples(transitions: Iterable[Transition], deduplicate: bool = True) -> list[Example]:
    """What to learn from transitions: reason by rule and exact edit script; equal examples once."""
    examples: dict[object, Example] = {}
    for number, t in enumerate(transitions):
        before, after = t.observation.with_error(""), t.next_observation.with_error("")
        reply = world_model_reply(describe(before, t.action, after), diff(before, after))
        key = (*pair_key(before, t.action), reply) if deduplicate else number
        examples.setdefault(key, Example(world_model_messages(before, t.action), reply))
    return list(examples.values())


# Fidelity


@dataclass(frozen=True)
class TransitionScore:
    """How well one next page was predicted. `hits`, `predicted`, `real` count changed lines: agreed, imagined, true."""

    exact: bool
    line_f1: float
    changed_f1: float
    hits: int
    predicted: int
    real: int
    parsed: bool = True
    seen: bool = False


def score_transition(
    before: Observation, real: Observation, imagined: Observation, parsed: bool = True, seen: bool = False
) -> TransitionScore:
    """Compare an imagined next page with the real one.

    line F1: overlap of all lines of the two pages, as multisets, ids left out. Changed-lines F1: overlap of the lines
    that went and came between `before` and each of the pages (+ and - lines apart); 1 when neither page differs.
    """
    before, real, imagined = (o.with_error("") for o in (before, real, imagined))
    true_change, imagined_change = _signed(before, real), _signed(before, imagined)
    hits = (true_change & imagined_change).total()
    predicted, actual = imagined_change.total(), true_change.total()
    lines = _lines(real) & _lines(imagined)
    line_f1 = f1(lines.total(), _lines(imagined).total(), _lines(real).total())
    exact = real.text == imagined.text
    return TransitionScore(exact, line_f1, f1(hits, predicted, actual), hits, predicted, actual, parsed, seen)


def f1(hits: int, predicted: int, real: int) -> float:
    """2 · hits / (predicted + real); 1 when both are empty."""
    return 2 * hits / (predicted + real) if predicted + real else 1.0


def _lines(page: Observation) -> Counter:
    return Counter(page.header_lines + [unnumbered(e) for e in page.elements])


def _signed(before: Observation, after: Observation) -> Counter:
    gone, came = changed_lines(before, after)
    return Counter([("-", line) for line in gone] + [("+", line) for line in came])


def fidelity(
    model: WorldModel | Callable[[Sequence[Pair]], Sequence[Prediction]],
    transitions: Sequence[Transition],
    seen: Collection[tuple[str, str]] = (),
    batch_size: int = 512,
) -> dict:
    """One-step accuracy on transitions, beside the baseline "nothing changes".

    `seen`: `pair_key`s of the training transitions. Returns the measures of `summarise`, the headline (mean
    changed-lines F1 over transitions) first, and the same measures under "seen", "unseen" and "nothing_changes".
    Raises ValueError without transitions.
    """
    if not transitions:
        raise ValueError("no transitions to measure fidelity on; collect some first")
    predict = model.predict if isinstance(model, WorldModel) else model
    pairs = [(t.observation, t.action) for t in transitions]
    predictions = [p for i in range(0, len(pairs), batch_size) for p in predict(pairs[i : i + batch_size])]
    known = frozenset(seen)
    scores = [
        score_transition(t.observation, t.next_observation, p.observation, p.parsed, pair_key(*pair) in known)
        for t, p, pair in zip(transitions, predictions, pairs, strict=True)
    ]
    unchanged = [score_transition(t.observation, t.next_observation, t.observation) for t in transitions]
    return {
        **summarise(scores),
        "seen": summarise([s for s in scores if s.seen]),
        "unseen": summarise([s for s in scores if not s.seen]),
        "nothing_changes": summarise(unchanged),
    }


def summarise(scores: Sequence[TransitionScore]) -> dict:
    """Means over transitions, {} for none. `changed_f1_interval`: its normal 95 % interval, cut to [0, 1].

    `changed_f1_moved`: mean over the transitions whose page really changed. `changed_f1_pooled`: over the lines of all
    transitions together (micro average), so that long changes weigh more.
    """
    n = len(scores)
    if not n:
        return {}
    mean = sum(s.changed_f1 for s in scores) / n
    margin = 1.96 * math.sqrt(sum((s.changed_f1 - mean) ** 2 for s in scores) / max(n - 1, 1) / n)
    moved = [s.changed_f1 for s in scores if s.real]
    return {
        "changed_f1": mean,
        "changed_f1_interval": [max(0.0, mean - margin), min(1.0, mean + margin)],
        "changed_f1_moved": sum(moved) / len(moved) if moved else 1.0,
        "changed_f1_pooled": f1(
            sum(s.hits for s in scores), sum(s.predicted for s in scores), sum(s.real for s in scores)
        ),
        "line_f1": sum(s.line_f1 for s in scores) / n,
        "exact": sum(s.exact for s in scores) / n,
        "parsed": sum(s.parsed for s in scores) / n,
        "n": n,
    }
