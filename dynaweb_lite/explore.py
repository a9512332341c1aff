"""Exploration: random walks that seek what is new, and collecting episodes into a file that survives a kill.

A fifth of the actions are odd on purpose: clicks on plain text, empty searches, typing without Enter. A world model
that has only seen sensible clicks invents what odd ones do, and a policy trained in it exploits the invention.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tqdm.auto import tqdm

from dynaweb_lite.actions import TYPING_ROLES, Action
from dynaweb_lite.observation import INTERACTIVE_ROLES, Element, Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory, Transition, load_trajectories, save_trajectories
from dynaweb_lite.worlds import Decision, Policy, World, rollout

BACK_SHARE = 0.08
FILL_SHARE = 0.6
"""How often an empty field is filled in before anything else of the page is tried."""
MAX_NAMES = 1000
MAX_BREAKDOWNS = 3
FIRST_WORDS = ("red", "table", "new", "help", "photo")


class RandomExplorer:
    """A policy that clicks what it has clicked least on this URL path, types names it has read, and never stops.

    `odd_share` of its actions are odd ones; `words` are typed until it has read names on pages.
    """

    def __init__(self, seed: int = 0, odd_share: float = 0.2, words: Sequence[str] = FIRST_WORDS) -> None:
        self.seed, self.odd_share = seed, odd_share
        self.random = random.Random(seed)
        self.names: dict[str, None] = dict.fromkeys(words)
        self.clicked: Counter[tuple[str, str, str]] = Counter()

    def act(self, episodes: Sequence[Trajectory], observations: Sequence[Observation]) -> list[Decision]:
        """One decision for each episode [B]; see `worlds.Policy`."""
        return [Decision(str(self.decide(e, o))) for e, o in zip(episodes, observations, strict=True)]

    def decide(self, episode: Trajectory, page: Observation) -> Action:
        """The next action of one episode."""
        self._read(page)
        chance = self.random.random()
        if not page.elements or (episode.steps and chance < BACK_SHARE):
            return Action("go_back")
        if self.random.random() < self.odd_share:
            return self._odd(page)
        empty = [e for e in page.elements if e.role in ("textbox", "spinbutton") and not e.get("value")]
        if empty and self.random.random() < FILL_SHARE:
            return self._type(empty[0], press_enter=False)
        return self._sensible(page)

    def remember(self, trajectories: Iterable[Trajectory]) -> None:
        """Take up where an earlier run stopped: its names and clicks count, and other random numbers follow."""
        steps = [step for trajectory in trajectories for step in trajectory.steps]
        for step in steps:
            self._read(step.observation)
            if match := re.match(r"(?:click|type|select) \[(\d+)\]", step.action):
                if element := step.observation.element(int(match[1])):
                    self._count(step.observation, element)
        self.random = random.Random(f"{self.seed} after {len(steps)}")

    def _read(self, page: Observation) -> None:
        for element in page.elements:
            name = re.sub(r"[\[\]`]", "", element.name)
            if element.role in ("link", "heading") and 2 < len(name) < 40 and len(self.names) < MAX_NAMES:
                self.names.setdefault(name)

    def _count(self, page: Observation, element: Element) -> None:
        self.clicked[self._place(page, element)] += 1

    def _place(self, page: Observation, element: Element) -> tuple[str, str, str]:
        return urlsplit(page.url).path, element.role, element.name

    def _sensible(self, page: Observation) -> Action:
        able = [e for e in page.elements if e.role in INTERACTIVE_ROLES - {"option"} and e.get("disabled") != "True"]
        if not able:
            return self._odd(page)
        weights = [1 / (1 + self.clicked[self._place(page, e)]) ** 2 for e in able]
        element = self.random.choices(able, weights)[0]
        self._count(page, element)
        if element.role == "combobox" and (options := _options(page, element)):
            return Action("select", element.id, self.random.choice(options))
        if element.role in TYPING_ROLES:
            return self._type(element, press_enter=True)
        return Action("click", element.id)

    def _odd(self, page: Observation) -> Action:
        """Something that a person rarely does, and a page must answer all the same."""
        fields = [e for e in page.elements if e.role in ("textbox", "searchbox")]
        kind = self.random.choice(["any", "any", "any", "empty", "no_enter", "scroll"])
        if fields and kind == "empty":
            return Action("type", self.random.choice(fields).id, "", press_enter=True)
        if fields and kind == "no_enter":
            return self._type(self.random.choice(fields), press_enter=False)
        if kind == "scroll":
            return self.random.choice(
                [Action("scroll", text="down"), Action("go_forward"), Action("scroll", text="up")]
            )
        return Action("click", self.random.choice(page.elements).id)

    def _type(self, element: Element, press_enter: bool) -> Action:
        if element.role == "spinbutton":
            return Action("type", element.id, str(self.random.randint(1, 9)), press_enter)
        name = self.random.choice(list(self.names))
        text = name if self.random.random() < 0.6 else self.random.choice(name.split() or [name])
        return Action("type", element.id, text, press_enter)


def _options(page: Observation, combobox: Element) -> list[str]:
    names = []
    for element in page.elements[combobox.id :]:
        if element.depth <= combobox.depth or element.role != "option":
            break
        names.append(element.name)
    return names


def collect(
    policy: Policy,
    world: World,
    tasks: Sequence[Task],
    path: str | Path,
    episodes: int,
    max_steps: int = 20,
    batch: int = 4,
    seed: int = 0,
    source: str = "exploration",
    progress: bool = True,
) -> list[Trajectory]:
    """Play until the file holds `episodes` trajectories, `batch` side by side, and return them all.

    Each batch is written when it ends, so an interrupted run keeps what it has earned and the next call goes on from
    there. Tasks come in an order drawn by `seed`, over and over. Episodes that broke down with the browser are played
    again. Raises ValueError when there are no tasks, OSError when nothing but breakdowns comes.
    """
    if not tasks:
        raise ValueError("no tasks to play: give at least one")
    done = load_trajectories(path)
    if done and isinstance(policy, RandomExplorer):
        policy.remember(done)
    order, breakdowns = random.Random(seed).sample(list(tasks), len(tasks)), 0
    with tqdm(
        total=episodes, initial=min(len(done), episodes), desc=source, unit="episode", disable=not progress
    ) as bar:
        while len(done) < episodes:
            numbers = range(len(done), min(len(done) + batch, episodes))
            played = rollout(policy, world, [order[i % len(order)] for i in numbers], max_steps, source=source)
            whole = [t for t in played if "error" not in t.provenance]
            breakdowns = 0 if whole else breakdowns + 1
            if breakdowns == MAX_BREAKDOWNS:
                raise OSError(f"the browser broke down {breakdowns} times in a row: {played[0].provenance['error']}")
            played = whole
            for trajectory in played:
                trajectory.provenance["seed"] = seed
            save_trajectories(path, played)
            done += played
            bar.update(len(played))
    return done[:episodes]


def transitions_of(trajectories: Iterable[Trajectory]) -> list[Transition]:
    """All transitions of the trajectories, in order."""
    return [transition for trajectory in trajectories for transition in trajectory.transitions()]
