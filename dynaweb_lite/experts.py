"""Scripted experts: they know the seeded content, and click and type as a person would.

They take mixed routes, one in three through the search box and the others by browsing, since people do both. A route
through a collection needs to know what lies in it; a search needs no such knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynaweb_lite.actions import Action
from dynaweb_lite.observation import Element, Observation
from dynaweb_lite.sites.content import FORUM_STYLES, SHOP_STYLES
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import Decision

SEARCH_EVERY = 3
FACTS = {"price": "Price: ", "rating": "Rating: ", "brand": "Brand: ", "author": "Author: ", "points": "Points: "}
FACTS["order_status"] = "Status: "
BUTTONS = {
    "add_to_cart": SHOP_STYLES["add_label"],
    "wish": SHOP_STYLES["wish_label"],
    "upvote": FORUM_STYLES["upvote_label"],
    "subscribe": ("Subscribe",),
}


class ExpertPolicy:
    """Solves the given tasks. `search_every` = 3: each third task of a kind goes through search; 0: none; 1: all."""

    def __init__(self, tasks: Sequence[Task], search_every: int = SEARCH_EVERY):
        self.tasks = {t.task_id: t for t in tasks}
        self.search_every = search_every

    def act(self, episodes: Sequence[Trajectory], observations: Sequence[Observation]) -> list[Decision]:
        return [self.decide(self.tasks[e.task_id], e, o) for e, o in zip(episodes, observations, strict=True)]

    def decide(self, task: Task, episode: Trajectory, page: Observation) -> Decision:
        """The next move: act on the item's page, else find the way there."""
        target = target_of(task)
        if task.kind in BUTTONS and _pressed(episode):
            return Decision("stop []", "Done.")
        if page.find("heading", target):
            return self.on_item(task, episode, page)
        if link := page.find("link", target):
            return click(link)
        return self.find_item(task, page)

    def on_item(self, task: Task, episode: Trajectory, page: Observation) -> Decision:
        """What the task asks for, on the page of the item."""
        if task.kind in FACTS:
            fact = next(e.name for e in page.elements if e.name.startswith(FACTS[task.kind]))
            return Decision(f"stop [{fact[len(FACTS[task.kind]) :]}]", f"Read '{fact}'.")
        if task.kind in BUTTONS:
            return click(_button(page, BUTTONS[task.kind]))
        if task.kind == "comment" and not _pressed(episode):
            box = page.find("textbox", "Comment")
            if not box.get("value"):
                comment = task.instantiation_dict["comment"]
                return Decision(str(Action("type", box.id, comment, press_enter=False)), f"Write '{comment}'.")
            return click(_button(page, FORUM_STYLES["reply_label"]))
        return Decision("stop []", "Done.")

    def find_item(self, task: Task, page: Observation) -> Decision:
        """One step on the way to the item: through the search box, or by browsing."""
        if task.kind == "order_status":
            names = ("My Orders", *SHOP_STYLES["account_label"])
        elif (
            self.search_every
            and int(str(task.task_id).rsplit("-", 1)[-1]) % self.search_every == 0
            and task.kind != "subscribe"
        ):
            box = page.find("searchbox")
            return Decision(str(Action("type", box.id, target_of(task))), "Search.")
        elif task.site == "shopping":
            collection = task.instantiation_dict["collection"]
            names = ("Next",) if page.find("heading", collection) else (collection,)
        else:
            names = (task.instantiation_dict.get("forum", ""), *FORUM_STYLES["forums_label"])
        link = next(e for name in names if (e := page.find("link", name)))
        return click(link)


def target_of(task: Task) -> str:
    """The name of the item that a generated task is about, as its link and its page's heading show it."""
    row = task.instantiation_dict
    return f"Order {row['id']}" if task.kind == "order_status" else row.get("title") or row["name"]


def click(element: Element) -> Decision:
    """A click, and the thought that names its element: who has just written a name finds its id by looking back."""
    verb = "Press" if element.role == "button" else "Open"
    return Decision(str(Action("click", element.id)), f"{verb} '{element.name}'.")


def _pressed(episode: Trajectory) -> bool:
    return bool(episode.steps) and episode.steps[-1].thought.startswith("Press")


def _button(page: Observation, labels: Sequence[str]) -> Element:
    return next(e for e in page.elements if e.role == "button" and e.name in labels)
