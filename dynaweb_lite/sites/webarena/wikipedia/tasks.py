"""Templates of further tasks on the encyclopedia, alone and together with the map. It cannot be edited, so none changes
anything."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator

from dynaweb_lite.sites.webarena.generator import Instance, Template, address, answer, content
from dynaweb_lite.sites.webarena.wikipedia.app import path_of

SITE, MAP = "__WIKIPEDIA__", "__MAP__"
QUESTIONS = {
    ("town", "Founded"): "In which year was {title} founded?",
    ("town", "Mayor"): "Who is the mayor of {title}?",
    ("town", "Population"): "How many people live in {title}?",
    ("university", "Founder"): "Who founded {title}?",
    ("university", "Students"): "How many students does {title} have?",
    ("team", "Head coach"): "Who is the head coach of the {title}?",
    ("stadium", "Capacity"): "What is the capacity of the {title}?",
    ("bridge", "Designer"): "Who designed the {title}?",
    ("bridge", "Opened"): "In which year did the {title} open?",
    ("museum", "Director"): "Who is the director of {title}?",
    ("film", "Director"): "Who directed the film {title}?",
    ("film", "Year"): "In which year did the film {title} come out?",
    ("person", "Field"): "In which field did {title} become known?",
}
"""What the tables of articles tell, by topic and key."""
RIDDLES = {
    "person": "the university that {title} attended",
    "team": "the home venue of the {title}",
    "film": "the place where most of the film {title} was shot",
}
"""What an article's place is to its subject."""
OWN_PAGES = "('university', 'stadium', 'museum')"
ENGINE = 'document.querySelector("div#content select.routing_engines").selectedIndex'
END = "document.querySelector('[name=\"route_{}\"]').value"
TO_MAP = ("goto [http://home.test/]", "click [link 'OpenStreetMap']")


def _read(title: str, *steps: str) -> tuple[str, ...]:
    """A script that searches for an article, opens it, and goes on."""
    return (f"type [searchbox 'Search 'Wikipedia''] [{title}] [1]", f"click [link '{title}']", *steps)


def _fact(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for row in db.execute("SELECT * FROM article WHERE topic != '' ORDER BY title").fetchall():
        facts = [(key, text) for key, text in json.loads(row["facts"]) if (row["topic"], key) in QUESTIONS]
        if facts:
            key, text = rng.choice(facts)
            question = QUESTIONS[row["topic"], key].format(title=row["title"])
            made.append(Instance({"question": question}, answer(text), _read(row["title"], f"stop [{text}]")))
    return made


def _riddles(db: sqlite3.Connection) -> Iterator[tuple[str, str, str, str]]:
    """(description, article that solves it, title of the place, id of the place on the map)."""
    for row in db.execute("SELECT * FROM article WHERE topic IN ('person', 'team', 'film') ORDER BY title").fetchall():
        place = db.execute(
            f"SELECT title FROM article WHERE place = ? AND topic IN {OWN_PAGES}", (row["place"],)
        ).fetchone()
        yield RIDDLES[row["topic"]].format(title=row["title"]), row["title"], place["title"], row["place"]


def _article(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"description": description},
            address(SITE + path_of(place)),
            _read(clue, f"click [link '{place}']", "stop []"),
        )
        for description, clue, place, _ in _riddles(db)
    ]


def _on_map(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for description, clue, place, place_id in _riddles(db):
        steps = (*TO_MAP, f"type [textbox 'Search'] [{place}] [1]", f"click [link '{place}, …']", "stop []")
        made.append(Instance({"description": description}, address(f"{MAP}/{place_id}"), _read(clue, *steps)))
    return made


def _way_to(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    rows = db.execute("SELECT title, facts FROM article WHERE topic = 'town' ORDER BY title").fetchall()
    towns = {row["title"]: dict(json.loads(row["facts"])) for row in rows}
    made = []
    for description, clue, place, _ in _riddles(db):
        for town in rng.sample(sorted(towns), 2):
            label = f"{town}, {towns[town]['County']}, {towns[town]['State']}, United States"
            targets = (
                ("last", ENGINE, "1"),
                ("last", END.format("from"), label),
                ("last", END.format("to"), [f"{place}, "]),
            )
            steps = (
                *(*TO_MAP, "click [link 'Find directions between two points']", f"type [textbox 'From'] [{town}] [0]"),
                *(f"type [textbox 'To'] [{place}] [0]", "click [button 'Go' #2]", "stop []"),
            )
            values = {"town": town, "description": description}
            made.append(Instance(values, content(*targets), _read(clue, *steps)))
    return made


TEMPLATES = [
    Template("wiki_fact", "information", "{{question}} Answer as the encyclopedia writes it.", _fact),
    Template("wiki_article", "navigation", "Open the encyclopedia's article about {{description}}.", _article),
    Template(
        "wiki_on_map",
        "navigation",
        "Open the map's page of {{description}}; the encyclopedia tells which that is.",
        _on_map,
        sites=("wikipedia", "map"),
    ),
    Template(
        "wiki_way_to",
        "navigation",
        "On the map, show the route by car from {{town}} to {{description}}; the encyclopedia tells which that is.",
        _way_to,
        held_out=True,
        sites=("wikipedia", "map"),
    ),
]
