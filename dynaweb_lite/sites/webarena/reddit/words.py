"""Titles, texts and names of the forum site, drawn from the patterns of data/reddit.json."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

MAX_SLUG = 60
POINTS = (0, 1, 1, 1, 2, 3, 5, 8, 13, 30, 55)
HARSH_SHARE = 0.12


@functools.cache
def read_data(name: str) -> dict:
    """A data file of this site, read once a process."""
    return json.loads((Path(__file__).parent.parent / "data" / f"{name}.json").read_text(encoding="utf-8"))


def slugify(title: str) -> str:
    """A title as it stands in a URL: words and hyphens, cut after the last word that fits."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    if len(slug) > MAX_SLUG:
        slug = slug[: MAX_SLUG + 1].rpartition("-")[0] or slug[:MAX_SLUG]
    return slug or "-"


class Words:
    """Draws words with one random generator. A forum is an entry of `forums` in the data."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.data = read_data("reddit")
        self.known_titles: set[str] = set()

    def _pick(self, key: str) -> str:
        return self.rng.choice(self.data[key].split("|"))

    def fill(self, pattern: str, forum: dict) -> str:
        """A pattern with its placeholders filled in; {Things} and {Place} begin with a capital."""
        values = {
            "things": self.rng.choice(forum["things"].split("|")),
            "place": self._pick("places"),
            "month": self._pick("months"),
            "day": self._pick("days"),
            "street": self.rng.choice(forum.get("streets", "Main").split("|")),
            "city": forum.get("city", forum["name"].capitalize()),
            "n": self.rng.randint(3, 40),
        }
        values |= {key.capitalize(): values[key][:1].upper() + values[key][1:] for key in ("things", "place")}
        return pattern.format(**values)

    def titles(self, forum: dict) -> Iterator[str]:
        """Titles for a forum without end, none of them twice on the site."""
        patterns = list(self.data["topics"][forum["topic"]])
        self.rng.shuffle(patterns)
        for pattern in itertools.cycle(patterns):
            title = self.fill(pattern, forum)
            if title not in self.known_titles:
                self.known_titles.add(title)
                yield title

    def contents(self, forum: dict, title: str) -> dict:
        """A picture, a link or a text, as is usual in the forum."""
        topic, chance = forum["topic"], self.rng.random()
        if topic in ("pictures", "charts", "battles") or (topic == "jokes" and chance < 0.5):
            return {"url": "image"}
        if (topic == "news" and chance < 0.85) or (topic in ("culture", "research", "city") and chance < 0.25):
            return {"url": f"https://{self._pick('hosts')}/{slugify(title)[:30].strip('-')}"}
        bodies = self.rng.sample(self.data["bodies"], self.rng.randint(0, 3))
        return {"body": " ".join(self.fill(body, forum) for body in bodies)}

    def remark(self, forum: dict) -> tuple[int, str]:
        """Points and text of a comment; what is harsh is not liked."""
        if self.rng.random() < HARSH_SHARE:
            return -self.rng.randint(1, 15), self.fill(self.rng.choice(self.data["harsh"]), forum)
        opener, remark = self.rng.choice(self.data["openers"]), self.rng.choice(self.data["remarks"])
        return self.rng.choice(POINTS), self.fill(f"{opener} {remark}", forum)

    def biography(self) -> str:
        """What a person says about itself; half say nothing."""
        forum = self.rng.choice(self.data["forums"])
        return self.fill(self.rng.choice(self.data["biographies"]), forum) if self.rng.random() < 0.5 else ""

    def people(self, count: int, taken: set[str]) -> list[str]:
        """Names for as many people, none of those taken."""
        heads, tails = self.data["name_heads"].split("|"), self.data["name_tails"].split("|")
        names = [f"{head}_{tail}" for head in heads for tail in tails]
        return self.rng.sample([name for name in names if name not in taken], count)
