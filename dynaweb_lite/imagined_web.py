"""The imagined web: a world like the real one, made of a world model's predictions.

Dreams happen here. Actions are read and refused exactly as on real pages; `stop` is rewarded by a judge; going back and
forward follows the dream's own history, since one page does not tell what came before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynaweb_lite.accessibility import read_action
from dynaweb_lite.actions import Action
from dynaweb_lite.judge import Judge
from dynaweb_lite.observation import Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.world_model import Prediction, Predictor
from dynaweb_lite.worlds import WorldStep

STILL_KINDS = ("scroll", "hover")
"""Actions that leave the text of a page as it is: pages are whole, not what fits a window."""
TAB_KINDS = ("new_tab", "tab_focus", "close_tab")
"""Actions that an imagined web does not have: a dream has one tab."""


@dataclass
class Dream:
    """One episode: its task, the pages of its history, and where in it the agent is."""

    task: Task
    history: list[Observation]
    position: int = 0
    over: bool = False
    error: str = ""

    @property
    def page(self) -> Observation:
        return self.history[self.position].with_error(self.error)

    def show(self, page: Observation) -> None:
        """The next page. One with another URL is a new entry of the history; the same URL updates the entry at hand."""
        page = page.with_error("")
        if page.url == self.history[self.position].url:
            self.history[self.position] = page
        else:
            self.history[self.position + 1 :] = [page]
            self.position += 1

    def move(self, by: int) -> str:
        """Go back (-1) or forward (1) in the history. Returns why that is not possible, or nothing."""
        if not 0 <= self.position + by < len(self.history):
            return "there is no page to go " + ("back" if by < 0 else "forward") + " to"
        self.position += by
        return ""


class ImaginedWeb:
    """A `worlds.World` in which a world model makes the pages and a judge the rewards.

    `start_page(task)` gives the page a dream begins on where no `starts` are given: a real page, recorded before.
    A dream ends, truncated, at a prediction whose confidence is below `min_confidence`: the model knows its errors.
    A step's `info` says "imagined", and for predicted pages "parsed", "cached" and "confidence".
    """

    name = "imagined"

    def __init__(
        self,
        world_model: Predictor,
        judge: Judge,
        start_page: Callable[[Task], Observation] | None = None,
        min_confidence: float = 0.0,
    ) -> None:
        self.world_model, self.judge, self.start_page = world_model, judge, start_page
        self.min_confidence = min_confidence
        self.dreams: list[Dream] = []

    def reset(self, tasks: Sequence[Task], starts: Sequence[Observation] | None = None) -> list[Observation]:
        """Begin a dream for each task [B]. Raises ValueError where neither `starts` nor `start_page` says where."""
        if starts is None and self.start_page is None:
            raise ValueError("an imagined web has no pages of its own: give starts, or a start_page function")
        pages = starts if starts is not None else [self.start_page(task) for task in tasks]
        self.dreams = [Dream(task, [page.with_error("")]) for task, page in zip(tasks, pages, strict=True)]
        return [dream.page for dream in self.dreams]

    def step(self, actions: Sequence[str | None]) -> list[WorldStep | None]:
        """Do one action in each dream [B]; all predictions are one batch, all verdicts another.

        Raises ValueError for an action in a dream that is over.
        """
        stops: list[tuple[int, Action]] = []
        predicted: list[tuple[int, str]] = []
        steps: list[WorldStep | None] = [None] * len(actions)
        for i, (dream, text) in enumerate(zip(self.dreams, actions, strict=True)):
            if text is None:
                continue
            if dream.over:
                raise ValueError(f"episode {i} is over; give None for it, or reset")
            action = read_action(text, dream.page)
            if isinstance(action, str):
                dream.error = action
                steps[i] = WorldStep(dream.page, info={"imagined": True})
            elif action.kind == "stop":
                stops.append((i, action))
            elif _by_rule(dream, action):
                steps[i] = WorldStep(dream.page, info={"imagined": True})
            else:
                predicted.append((i, str(action)))
        for (i, _), step in zip(predicted, self._predict(predicted), strict=True):
            steps[i] = step
        for (i, _), step in zip(stops, self._judge(stops), strict=True):
            steps[i] = step
        return steps

    def _predict(self, asked: Sequence[tuple[int, str]]) -> list[WorldStep]:
        pairs = [(self.dreams[i].page.with_error(""), action) for i, action in asked]
        predictions = self.world_model.predict(pairs) if pairs else []
        steps = []
        for (i, _), prediction in zip(asked, predictions, strict=True):
            dream = self.dreams[i]
            dream.error = ""
            dream.show(prediction.observation)
            info = _info(prediction)
            dream.over = prediction.confidence < self.min_confidence
            if dream.over:
                info["stopped"] = f"confidence {prediction.confidence:.2f} is below {self.min_confidence:.2f}"
            steps.append(WorldStep(dream.page, truncated=dream.over, info=info))
        return steps

    def _judge(self, stops: Sequence[tuple[int, Action]]) -> list[WorldStep]:
        items = [(self.dreams[i].task.intent, self.dreams[i].page.with_error(""), a.text) for i, a in stops]
        rewards = self.judge.judge(items) if items else []
        for i, _ in stops:
            self.dreams[i].over = True
        return [
            WorldStep(page, reward, terminated=True, info={"imagined": True})
            for (_, page, _), reward in zip(items, rewards, strict=True)
        ]

    def observe(self, i: int) -> Observation:
        """The page of episode i."""
        return self.dreams[i].page

    def close(self) -> None:
        """Forget the dreams; the model stays loaded."""
        self.dreams = []


def _by_rule(dream: Dream, action: Action) -> bool:
    """Do what needs no model. False where the model must say what comes."""
    if action.kind in ("go_back", "go_forward"):
        dream.error = dream.move(-1 if action.kind == "go_back" else 1)
    elif action.kind in STILL_KINDS:
        dream.error = ""
    elif action.kind in TAB_KINDS:
        dream.error = f"{action.kind} is not supported in an imagined web"
    else:
        return False
    return True


def _info(prediction: Prediction) -> dict:
    return {
        "imagined": True,
        "parsed": prediction.parsed,
        "cached": prediction.cached,
        "confidence": prediction.confidence,
    }
