"""The task's own evaluator on an imagined page: what it would say of the page that a world model has made.

An imagined page is text: it has no markup to search and no other page to open. So a locator finds the whole text of the
page, and a check of another address holds only where the agent is there already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlsplit

from dynaweb_lite.evaluators import evaluate
from dynaweb_lite.experts import BUTTONS, FACTS, target_of
from dynaweb_lite.judge import Item
from dynaweb_lite.observation import Observation
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Transition
from dynaweb_lite.world_model import Prediction


@dataclass(frozen=True)
class ObservationPage:
    """A `page_reader.PageReader` on the text of a page."""

    page: Observation

    @property
    def url(self) -> str:
        return self.page.url

    def text(self) -> str:
        parts = [part for e in self.page.elements for part in (e.name, e.get("value")) if part]
        return "\n".join(parts)

    def content(self) -> str:
        return escape(self.text())

    def locate(self, tree: list) -> str:
        return self.text()

    def prepare(self, tree: list) -> None:
        """An imagined page does nothing by itself."""

    def request(self, method: str, url: str, headers: dict[str, str], data: Any = None) -> tuple[int, Any]:
        raise NotScorable("an imagined web has no interface behind its pages")

    def open(self, url: str) -> ObservationPage:
        """The page itself where the address is its own, else an empty one."""
        here = urlsplit(url)[1:4] == urlsplit(self.page.url)[1:4]
        return self if here else ObservationPage(Observation("", url))


def imagined_verdict(task: Task, page: Observation, answer: str) -> bool:
    """Whether the task's evaluator accepts an answer given on this page. Raises NotScorable."""
    seen = ObservationPage(page.with_error(""))
    return evaluate(task, answer, seen, seen.open) == 1.0


class EvaluatorJudge:
    """A judge that rewards dreams by the tasks' evaluators on imagined pages, for goals that name one task each.

    Raises KeyError for a goal that is none of its tasks'.
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.tasks = {task.intent: task for task in tasks}

    def judge(self, items: Sequence[Item]) -> list[float]:
        return [float(imagined_verdict(self.tasks[goal], page, answer)) for goal, page, answer in items]


def answer_on(task: Task, page: Observation) -> str | None:
    """What someone who reads this page would answer a practice task; None where the page is not the item's."""
    if not page.find("heading", target_of(task)):
        return "" if task.kind in BUTTONS else None
    if task.kind not in FACTS:
        return ""
    return next((e.name[len(FACTS[task.kind]) :] for e in page.elements if e.name.startswith(FACTS[task.kind])), None)


def settles(task: Task, page: Observation) -> bool:
    """Whether stopping on this page, with what it says, succeeds."""
    answer = answer_on(task, page)
    return answer is not None and imagined_verdict(task, page, answer)


def facts_agreement(
    transitions: Sequence[Transition], predictions: Sequence[Prediction], tasks: Sequence[Task]
) -> dict[str, float]:
    """Would the evaluators judge the imagined page as they judge the real one? Over transitions and practice tasks.

    Counted are pairs of a transition and a task whose goal is reached on the page ("settled"). `found`: share of those
    settled on the real page that are so on the imagined one too; `precision`: the other way round; `f1`: of both.
    `n_settled`: how many the real pages settle.
    """
    truly = imagined = both = 0
    for transition, prediction in zip(transitions, predictions, strict=True):
        site = [task for task in tasks if _same_site(task, transition.next_observation)]
        real = {task.task_id for task in site if settles(task, transition.next_observation)}
        dreamt = {task.task_id for task in site if settles(task, prediction.observation)}
        truly, imagined, both = truly + len(real), imagined + len(dreamt), both + len(real & dreamt)
    return {
        "found": both / truly if truly else 1.0,
        "precision": both / imagined if imagined else 1.0,
        "f1": 2 * both / (truly + imagined) if truly + imagined else 1.0,
        "n_settled": truly,
    }


def _same_site(task: Task, page: Observation) -> bool:
    return ("forum" in urlsplit(page.url).netloc) == (task.site == "reddit")
