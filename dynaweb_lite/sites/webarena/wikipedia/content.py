"""What the encyclopedia holds, as a function of a seed: articles about the map's region, and in seed 0 those that
WebArena's tasks lead to, among others on neighbouring subjects."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

from dynaweb_lite.sites.webarena.maps.places import words_of
from dynaweb_lite.sites.webarena.maps.world import make_region
from dynaweb_lite.sites.webarena.wikipedia.world import Article, region_articles

FACTS = Path(__file__).parent.parent / "data" / "wikipedia.json"
SCHEMA = """
CREATE TABLE article (title TEXT PRIMARY KEY, topic TEXT, place TEXT, facts TEXT, text TEXT, sections TEXT,
  plain TEXT, title_words TEXT, words TEXT);
CREATE TABLE redirect (title TEXT PRIMARY KEY, target TEXT);
"""
LINK = re.compile(r"\[\[([^\]|]*)(?:\|([^\]]*))?\]\]")


def make_database(seed: int) -> sqlite3.Connection:
    """The encyclopedia's database for a seed, in memory."""
    articles = region_articles(make_region(seed), seed)
    redirects: dict[str, str] = {}
    if seed == 0:
        written = json.loads(FACTS.read_text(encoding="utf-8"))
        redirects = written["redirects"]
        articles = [_from_json(row) for row in written["articles"]] + articles
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(SCHEMA)
    db.executemany("INSERT INTO article VALUES (?,?,?,?,?,?,?,?,?)", map(_row, articles))
    db.executemany("INSERT INTO redirect VALUES (?,?)", redirects.items())
    db.commit()
    return db


def plain_text(text: str) -> str:
    """A paragraph without the marks of its links."""
    return LINK.sub(lambda match: match[2] or match[1], text)


def _from_json(row: dict) -> Article:
    facts = tuple((key, value) for key, value in row.get("facts", ()))
    sections = tuple((heading, tuple(lines)) for heading, lines in row.get("sections", ()))
    return Article(row["title"], facts, tuple(row["text"]), sections)


def _row(article: Article) -> tuple:
    told = [*article.text, *(line for heading, lines in article.sections for line in (heading, *lines))]
    plain = " ".join(map(plain_text, told))
    shown = " ".join(f"{key} {value}" for key, value in article.facts)
    parts = (json.dumps(article.facts), json.dumps(article.text), json.dumps(article.sections))
    words = " ".join(sorted(set(words_of(f"{article.title} {shown} {plain}"))))
    return (article.title, article.topic, article.place, *parts, plain, " ".join(words_of(article.title)), words)
