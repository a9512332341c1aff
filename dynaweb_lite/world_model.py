"""The world model: a language model that reads a page and an action and writes how the page changes.

It writes a reason and a change Δ in one of two forms (`change_forms`), which is applied to the page (the paper: the
model predicts the change, not the whole next page). A reply that cannot be applied keeps the page and is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch

from dynaweb_lite.actions import ActionError, describe_action, parse_action
from dynaweb_lite.change_forms import EDIT_SCRIPT, Annotation, ChangeForm
from dynaweb_lite.language_model import Generated, LanguageModel
from dynaweb_lite.observation import Observation
from dynaweb_lite.prompts import Message, world_model_messages
from dynaweb_lite.sft import Example
from dynaweb_lite.trajectory import Transition

Pair = tuple[Observation, str]
"""A page and the text of an action on it."""
CUT_OFF = "\n(cut off)"
"""What stands for a reply that was cut off: a change that cannot be applied."""
MAX_ELEMENTS = 400
"""A page of more elements is no prediction but a repetition without end."""


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


class Predictor(Protocol):
    """Anything that predicts next pages: a world model, or a baseline that needs none."""

    def predict(self, pairs: Sequence[Pair]) -> list[Prediction]:
        """The next page for each page and action [B]."""
        ...


@dataclass
class WorldModel:
    """Predicts next pages, and counts predictions, cache hits and unparsable replies since the start.

    At temperature 0 equal questions have equal answers, and are asked once. `form`: the form of Δ that `lm` has learnt.
    """

    lm: LanguageModel
    form: ChangeForm = EDIT_SCRIPT
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
        replies = self._ask([world_model_messages(*pair, self.form.system) for pair in asked], self.temperature)
        made = read_replies(self.form, [page for page, _ in asked], replies, self._apply)
        predictions = made if self.temperature > 0 else self._answer(keys, dict(zip(fresh, made, strict=True)))
        self.predictions += len(predictions)
        self.cache_hits += sum(p.cached for p in predictions)
        self.unparsable += sum(not p.parsed for p in predictions)
        return predictions

    def _ask(self, chats: Sequence[list[Message]], temperature: float) -> list[Generated]:
        prompts = [self.lm.prompt_tokens(chat) for chat in chats]
        replies = self.lm.generate(prompts, self.max_new_tokens, temperature, self.top_p, self.generator)
        return [self._whole(reply) for reply in replies]

    def _whole(self, reply: Generated) -> Generated:
        """The reply; one that was cut off at `max_new_tokens` says nothing, for its end is missing."""
        return reply if len(reply.tokens) < self.max_new_tokens else replace(reply, text=CUT_OFF)

    def _apply(self, chats: list[list[Message]]) -> list[str]:
        """The second step of changes in words: applying has one right answer, so the likeliest is taken."""
        return [reply.text for reply in self._ask(chats, 0.0)]

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


def read_replies(
    form: ChangeForm,
    pages: Sequence[Observation],
    replies: Sequence[Generated],
    ask: Callable[[list[list[Message]]], list[str]],
) -> list[Prediction]:
    """Replies applied to their pages [B]: the first line of each is the reason, the rest the change.

    `ask` answers the chats of a second step, where the form has one.
    """
    parts = [reply.text.partition("\n") for reply in replies]
    made = form.apply(pages, [change for _, _, change in parts], ask)
    predictions = []
    for page, reply, (reason, _, change), after in zip(pages, replies, parts, made, strict=True):
        confidence = math.exp(sum(reply.logprobs) / max(len(reply.logprobs), 1))
        parsed = after is not None and len(after.elements) <= MAX_ELEMENTS
        shown = after if parsed else page.with_error("")
        predictions.append(Prediction(shown, reason, change, parsed, confidence))
    return predictions


def training_examples(
    transitions: Iterable[Transition],
    deduplicate: bool = True,
    form: ChangeForm = EDIT_SCRIPT,
    annotate: Callable[[Transition], Annotation | None] | None = None,
) -> list[Example]:
    """What to learn from transitions: a reason and a change of the given form; equal examples once.

    `annotate` gives reason and change of a transition, or None to leave it out; by rule where it is not given.
    """
    examples: dict[object, Example] = {}
    for number, t in enumerate(transitions):
        before, after = t.observation.with_error(""), t.next_observation.with_error("")
        annotation = annotate(t) if annotate else form.annotate(before, t.action, after)
        for example in form.examples(t, annotation) if annotation else ():
            key = (example.messages[-1]["content"], example.reply)
            examples.setdefault(key if deduplicate else (number, *key), example)
    return list(examples.values())
