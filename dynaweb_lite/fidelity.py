"""How well a world model predicts, next to what needs no model.

Changed-lines F1 is the headline: on a page that changes little, copying it scores high on lines and nothing on changes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dynaweb_lite.actions import ActionError, parse_action
from dynaweb_lite.observation import Observation
from dynaweb_lite.state_change import changed_lines, unnumbered
from dynaweb_lite.trajectory import Transition
from dynaweb_lite.world_model import Pair, Prediction, Predictor, pair_key


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


class NothingChanges:
    """The baseline that every action leaves the page as it is."""

    def predict(self, pairs: Sequence[Pair]) -> list[Prediction]:
        return [Prediction(page.with_error(""), "", "") for page, _ in pairs]


class NearestTransition:
    """The baseline that remembers: the next page of the most similar transition among those it was given.

    Transitions whose action says the same (kind, element, text) come first; among them, or among all where there is
    none, the one whose page shares most lines with the page asked about (Jaccard, as multisets).
    Raises ValueError without transitions.
    """

    def __init__(self, transitions: Sequence[Transition]) -> None:
        if not transitions:
            raise ValueError("no transitions to retrieve from")
        self.by_action: dict[str, dict[tuple[str, str], tuple[Counter, Observation]]] = {}
        for t in transitions:
            found = self.by_action.setdefault(_named(t.observation, t.action), {})
            found.setdefault(pair_key(t.observation, t.action), (_lines(t.observation), t.next_observation))
        self.all = [row for rows in self.by_action.values() for row in rows.values()]

    def predict(self, pairs: Sequence[Pair]) -> list[Prediction]:
        return [Prediction(self._nearest(page, action).with_error(""), "", "") for page, action in pairs]

    def _nearest(self, page: Observation, action: str) -> Observation:
        lines = _lines(page)
        among = list(self.by_action.get(_named(page, action), {}).values()) or self.all
        return max(among, key=lambda row: (row[0] & lines).total() / (row[0] | lines).total())[1]


def _named(page: Observation, text: str) -> str:
    """An action without its id: kind, the element's role and name, what is typed."""
    try:
        action = parse_action(text)
    except ActionError:
        return text
    element = page.element(action.element_id) if action.element_id else None
    name = f"{element.role} {element.name}" if element else ""
    return f"{action.kind} {name} [{action.text}] {action.press_enter}"


def fidelity(
    model: Predictor,
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
    pairs = [(t.observation, t.action) for t in transitions]
    predictions = [p for i in range(0, len(pairs), batch_size) for p in model.predict(pairs[i : i + batch_size])]
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
