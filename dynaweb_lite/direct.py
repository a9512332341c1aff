"""The replicas without a browser: each action is a WSGI call and a parse, about thirty times faster than Chromium.

Pages read the same to the letter as through `RealWeb` (tests/test_web.py walks both). For pre-training data, validation
and experiments; scores that are reported come from the browser.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from werkzeug.test import Client

from dynaweb_lite.accessibility import HtmlReader, read_action, read_page
from dynaweb_lite.actions import Action
from dynaweb_lite.answer_judge import Judge
from dynaweb_lite.direct_tab import Tab, tidy_url
from dynaweb_lite.evaluators import Evaluator
from dynaweb_lite.observation import Observation, one_line
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.sites.server import SESSION_COOKIE
from dynaweb_lite.tasks import Task, replica_urls, resolve_url, sites_at
from dynaweb_lite.worlds import WorldStep

if TYPE_CHECKING:
    from dynaweb_lite.sites import SiteServer

_session_numbers = itertools.count()


class DirectEpisode:
    """One episode: its task, its session on the server, its tabs, and the page that the agent sees."""

    def __init__(self, task: Task, server: SiteServer, max_elements: int) -> None:
        self.task, self.max_elements = task, max_elements
        self.session, self.hosts = f"direct-{next(_session_numbers)}", server.hosts
        self.client = Client(server.app)
        for host in self.hosts:
            self.client.set_cookie(SESSION_COOKIE, self.session, domain=host)
        self.tabs: list[Tab] = []
        self.current = 0
        self.seen, self.keys = Observation("", "about:blank"), []

    @property
    def tab(self) -> Tab:
        return self.tabs[self.current]

    def begin(self, urls: Sequence[str]) -> Observation:
        """Open these pages, a tab for each, the first in front."""
        errors = []
        for url in urls:
            self.tabs.append(Tab(self.client, self.hosts))
            errors.append(self.tabs[-1].open(url))
        return self.read("; ".join(filter(None, errors)))

    def act(self, action: Action) -> str:
        """Do an action, those on tabs included. Returns why it did nothing, or an empty string."""
        match action.kind:
            case "new_tab":
                self.tabs.append(Tab.blank(self.client, self.hosts))
                self.current = len(self.tabs) - 1
            case "tab_focus":
                if int(action.text) >= len(self.tabs):
                    return f"no tab {action.text}: tabs run 0 to {len(self.tabs) - 1}"
                self.current = int(action.text)
            case "close_tab":
                if len(self.tabs) == 1:
                    return "the last tab stays open"
                del self.tabs[self.current]
                self.current = len(self.tabs) - 1
            case _:
                return self._act_in_tab(action)
        return ""

    def _act_in_tab(self, action: Action) -> str:
        tab = self.tab
        error = tab.act(action, self.keys[action.element_id - 1] if action.element_id else None)
        if tab.opened:
            self.tabs, tab.opened = self.tabs + tab.opened, []
            self.current = len(self.tabs) - 1
        return error

    def read(self, error: str = "") -> Observation:
        """The page as it stands; afterwards `keys` maps its ids 1..n to HTML elements."""
        page = self.tab.page
        seen, self.keys = read_page(HtmlReader(page.document).tree(), page.title, page.url, self.max_elements)
        others = enumerate(self.tabs)
        beside = tuple((n, one_line(t.page.title), t.page.url) for n, t in others if n != self.current)
        self.seen = replace(seen, tab=self.current, other_tabs=beside, last_action_error=error)
        return self.seen


class DirectWeb:
    """Episodes on replicas without a browser, one after the other; a `worlds.World` for any number of tasks.

    `strict` and `judge` choose how tasks are scored (evaluators.Evaluator).
    """

    name = "direct"

    def __init__(
        self, server: SiteServer, max_elements: int = 60, strict: str = "", judge: Judge | None = None
    ) -> None:
        self.server, self.max_elements = server, max_elements
        self.evaluator = Evaluator(strict, judge)
        self.episodes: list[DirectEpisode] = []

    def reset(self, tasks: Sequence[Task], starts: Sequence[Observation] | None = None) -> list[Observation]:
        """Begin an episode for each task [B] in a state of its own, on its start pages or on the URL of `starts`."""
        self.close()
        self.episodes = [DirectEpisode(task, self.server, self.max_elements) for task in tasks]
        with sites_at(replica_urls()):
            urls = [[p.url] for p in starts] if starts else [list(map(resolve_url, t.start_urls)) for t in tasks]
        return [episode.begin(its_urls) for episode, its_urls in zip(self.episodes, urls, strict=True)]

    def step(self, actions: Sequence[str | None]) -> list[WorldStep | None]:
        """Do one action in each episode [B]; see `worlds.World.step`."""
        pairs = zip(self.episodes, actions, strict=True)
        return [None if action is None else self._step(episode, action) for episode, action in pairs]

    def observe(self, i: int) -> Observation:
        """The page of episode i."""
        return self.episodes[i].seen

    def _step(self, episode: DirectEpisode, text: str) -> WorldStep:
        action = read_action(text, episode.seen)
        if isinstance(action, Action) and action.kind == "stop":
            return self._score(episode, action.text)
        if isinstance(action, str) or action.kind in ("scroll", "hover"):
            episode.seen = episode.seen.with_error(action if isinstance(action, str) else "")
        else:
            episode.read(episode.act(action))
        return WorldStep(episode.seen)

    def _score(self, episode: DirectEpisode, answer: str) -> WorldStep:
        tab, seen = episode.tab, episode.seen.with_error("")
        try:
            with sites_at(replica_urls()):
                reward = self.evaluator.score(episode.task, answer, tab.page, lambda url: tab.fetch(tidy_url(url)))
        except NotScorable as error:
            return WorldStep(seen, terminated=True, info=error.info)
        return WorldStep(seen, reward, terminated=True)

    def close(self) -> None:
        """Forget the episodes and their state on the server."""
        for episode in self.episodes:
            self.server.drop(episode.session)
        self.episodes = []
