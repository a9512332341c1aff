"""What the code host's seeded content is drawn from: projects, files, titles of issues, authors, days."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from dynaweb_lite.sites.webarena.gitlab import words
from dynaweb_lite.sites.webarena.gitlab.schema import ME

MY_PROJECTS, OTHER_PROJECTS, EXTRA_PROJECTS = 9, 19, 7
"""How many projects are made up on seeds other than 0, and how many stand beside the known ones on seed 0."""


class Drawing:
    """Draws from the word pools; `people` are user names, `names` full names by user name, `groups` paths."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"gitlab-{seed}")
        self.people: list[str] = []
        self.names: dict[str, str] = {}
        self.groups: list[str] = []
        self.issue_titles = self.titles((words.SYMPTOMS, ["when"]), (words.WISHES, []))
        self.merge_titles = iter(self.shuffled(f"{deed} {part}" for deed in words.DEEDS for part in words.PARTS))

    def shuffled(self, texts: Iterable[str]) -> list[str]:
        """In random order."""
        texts = list(texts)
        self.rng.shuffle(texts)
        return texts

    def titles(self, *kinds: tuple[list[str], list[str]]) -> Iterator[str]:
        """Titles of issues, no two alike: complaints and wishes, mixed."""
        parts = [(first, *middle, *rest) for firsts, middle in kinds for first in firsts
                 for rest in itertools.product(words.OCCASIONS, words.OBJECTS)]  # fmt: skip
        return iter(self.shuffled(" ".join(part) for part in parts))

    def draw_projects(self, mine: bool) -> list[dict]:
        """Specifications, as in data/gitlab.json, of made-up projects; some of them mine on seeds other than 0."""
        chosen = self.rng.sample(words.PROJECT_NAMES, MY_PROJECTS + OTHER_PROJECTS if mine else EXTRA_PROJECTS)
        stars = self.rng.sample(range(1, 110), len(chosen))
        specs = []
        for i, (line, star_count) in enumerate(zip(chosen, stars, strict=True)):
            name, description = line.split("|")
            is_mine = mine and i < MY_PROJECTS
            owner = ME if is_mine else self.rng.choice([*self.groups, *self.people[:8]])
            start = self.rng.randint(2015, 2020)
            spec = {"id": 201 + i, "at": f"{owner}/{name}", "description": description, "stars": star_count}
            spec |= {"forks": self.rng.randint(0, 20), "period": [f"{start}-03-01", f"{start + 3}-04-30"]}
            spec["members"] = dict.fromkeys(self.rng.sample(self.people, 2), 30)
            if mine and not is_mine and i % 4 == 0:
                spec["members"][ME] = self.rng.choice((30, 40))
            spec["milestones"] = [[t, f"{start + 3}-05-01", f"{start + 3}-08-{self.rng.randint(10, 28)}"] for t in
                                  self.rng.sample(words.MILESTONES, 2)]  # fmt: skip
            specs.append(spec | {"filler": [10, 4] if mine else [5, 2]})
        return specs

    def draw_files(self, spec: dict) -> dict[str, str]:
        name = spec["at"].split("/")[1]
        owner = self.names.get(spec["at"].split("/")[0], spec["at"].split("/")[0])
        more = self.rng.sample(sorted(words.FILES), 3)
        readme = f"# {name}\n\n{spec['description']}\n\n## Contributing\n\nIssues and merge requests are welcome.\n"
        files = {"README.md": readme, **{path: words.FILES[path] for path in more}}
        license_text = spec.get("license", f"Copyright (c) {spec['period'][0][:4]} {owner}. Free to use and to change.")
        return files | ({"LICENSE": license_text} if license_text else {}) | spec.get("files", {})

    def draw_authors(self, spec: dict, people: list[str]) -> list[list]:
        """Name, e-mail and number of commits of three or four people; the numbers differ."""
        namespace = spec["at"].split("/")[0]
        first = [namespace] if namespace in self.names else []
        chosen = list(dict.fromkeys([*first, *people]))[:4]
        counts = sorted(self.rng.sample(range(2, 15), len(chosen)), reverse=True)
        return [[self.names[u], f"{u}@mail.example".lower(), n] for u, n in zip(chosen, counts, strict=True)]

    def draw_issue(self, people: list[str]) -> dict:
        assignee = self.rng.choice(people) if self.rng.random() < 0.4 else ""
        state = self.rng.choice(("opened", "opened", "opened", "closed", "closed"))
        author = self.rng.choice(self.people)
        row = {"title": next(self.issue_titles), "description": self.rng.choice(words.DESCRIPTIONS)}
        return row | {"author": author, "assignee": assignee, "state": state}

    def draw_plan(self, milestones: list[int]) -> dict:
        """For some issues a due date, a milestone, or both."""
        plan: dict = {}
        if milestones and self.rng.random() < 0.4:
            plan["milestone_id"] = self.rng.choice(milestones)
        if self.rng.random() < 0.25:
            plan["due_date"] = f"2023-{self.rng.randint(7, 12):02}-{self.rng.randint(1, 28):02}"
        return plan

    def draw_merge(self, people: list[str], branch: str) -> dict:
        title = next(self.merge_titles)
        reviewer = self.rng.choice(people) if self.rng.random() < 0.5 else ""
        state = self.rng.choice(("opened", "merged", "merged", "closed"))
        row = {"title": title, "description": self.rng.choice(words.REASONS), "author": self.rng.choice(people)}
        row |= {"reviewer": reviewer, "state": state}
        return row | {"source": "-".join(title.lower().split()), "target": branch}

    def draw_labels(self, spec: dict) -> list[str]:
        return self.rng.sample(spec["labels"], self.rng.choice((0, 1, 1, 2)))

    def at(self, day: str) -> str:
        """A moment on a day, in working hours."""
        return f"{day} {self.rng.randint(8, 18):02}:{self.rng.randint(0, 59):02}"

    def moment(self, start: str, end: str) -> str:
        days = (datetime.fromisoformat(end[:10]) - datetime.fromisoformat(start[:10])).days
        return self.at(self.days_after(start, self.rng.randint(0, max(days, 0))))

    @staticmethod
    def days_after(day: str, days: int) -> str:
        return (datetime.fromisoformat(day[:10]) + timedelta(days=days)).strftime("%Y-%m-%d")
