"""Two ways to write Δ, behind one interface: an edit script, or a description in words.

edit script   compact, applied by rule, exactly invertible (`state_change`); one generation a prediction
described     the paper's: words for what goes and comes, which the language model then applies to the page; two

    form.annotate(before, action, after) -> Annotation          by rule; `annotators` asks a language model instead
    form.examples(transition, annotation) -> what to learn
    form.apply(lm, pages, changes, …) -> next pages             None where a change cannot be applied
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Protocol

from dynaweb_lite.observation import Observation
from dynaweb_lite.prompts import (
    DESCRIBED_SYSTEM,
    WORLD_MODEL_SYSTEM,
    apply_change_messages,
    world_model_messages,
    world_model_reply,
)
from dynaweb_lite.sft import Example
from dynaweb_lite.state_change import StateChangeError, apply, describe, diff, unnumbered
from dynaweb_lite.trajectory import Transition

Generate = Callable[[list[list[dict]]], list[str]]
"""Chats [B] -> replies [B]."""


@dataclass(frozen=True)
class Annotation:
    """What a world model learns to write about a transition: a reason (one line) and the change."""

    reason: str
    change: str


class ChangeForm(Protocol):
    """A way to write Δ. `system`: the instruction that asks for it."""

    name: str
    system: str

    def annotate(self, before: Observation, action: str, after: Observation) -> Annotation:
        """Reason and change by rule."""
        ...

    def examples(self, transition: Transition, annotation: Annotation) -> list[Example]:
        """What to learn from an annotated transition."""
        ...

    def apply(self, pages: Sequence[Observation], changes: Sequence[str], ask: Generate) -> list[Observation | None]:
        """The next page for each page and change [B]; None where the change cannot be applied."""
        ...


@dataclass(frozen=True)
class EditScript:
    """Δ as the lines that stay and the lines that come."""

    name: str = "edit script"
    system: str = WORLD_MODEL_SYSTEM

    def annotate(self, before: Observation, action: str, after: Observation) -> Annotation:
        return Annotation(describe(before, action, after), diff(before, after))

    def examples(self, transition: Transition, annotation: Annotation) -> list[Example]:
        return [_prediction_example(self, transition, annotation)]

    def apply(self, pages: Sequence[Observation], changes: Sequence[str], ask: Generate) -> list[Observation | None]:
        return [_applied(page, change) for page, change in zip(pages, changes, strict=True)]


@dataclass(frozen=True)
class Described:
    """Δ in words; the language model itself turns them into the next page, in a second step that it learns too."""

    name: str = "described"
    system: str = DESCRIBED_SYSTEM

    def annotate(self, before: Observation, action: str, after: Observation) -> Annotation:
        return Annotation(describe(before, action, after), narrate(before, after))

    def examples(self, transition: Transition, annotation: Annotation) -> list[Example]:
        before, after = transition.observation.with_error(""), transition.next_observation.with_error("")
        if not annotation.change:
            return [_prediction_example(self, transition, annotation)]
        second = Example(apply_change_messages(before, annotation.change), diff(before, after))
        return [_prediction_example(self, transition, annotation), second]

    def apply(self, pages: Sequence[Observation], changes: Sequence[str], ask: Generate) -> list[Observation | None]:
        """Pages without a change stay; the others are asked in one batch."""
        asked = [i for i, change in enumerate(changes) if change.strip()]
        replies = ask([apply_change_messages(pages[i], changes[i]) for i in asked]) if asked else []
        made: list[Observation | None] = [page.with_error("") for page in pages]
        for i, reply in zip(asked, replies, strict=True):
            made[i] = _applied(pages[i], reply)
        return made


EDIT_SCRIPT, DESCRIBED = EditScript(), Described()
FORMS: dict[str, ChangeForm] = {"edit script": EDIT_SCRIPT, "described": DESCRIBED}


def _prediction_example(form: ChangeForm, transition: Transition, annotation: Annotation) -> Example:
    messages = world_model_messages(transition.observation, transition.action, form.system)
    return Example(messages, world_model_reply(annotation.reason, annotation.change))


def _applied(page: Observation, change: str) -> Observation | None:
    try:
        return apply(page, change)
    except StateChangeError:
        return None


def narrate(before: Observation, after: Observation) -> str:
    """A change in words, by rule: the new tab line, then what takes whose place, in order. Empty when nothing changes.

    Not invertible in general: equal elements cannot be told apart by their names. Applying it is the model's work.
    """
    parts = [] if before.header_lines == after.header_lines else [f"{after.header_lines[-1]}"]
    old, new = [unnumbered(e) for e in before.elements], [unnumbered(e) for e in after.elements]
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, came = ", ".join(t.strip() for t in old[i:j]), ", ".join(t.strip() for t in new[k:m])
        if tag == "replace":
            parts.append(f"{came} in place of {gone}")
        elif tag == "insert":
            parts.append(f"{came} after {old[i - 1].strip()}" if i else f"{came} at the top")
        elif tag == "delete":
            parts.append(f"{gone} gone")
    return "\n".join(parts)
