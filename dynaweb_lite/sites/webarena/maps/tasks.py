"""Templates of further tasks on the map: finding out, going somewhere, changing something."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator

from dynaweb_lite.sites.webarena.generator import MAX_INSTANCES, Instance, Template, address, answer, content
from dynaweb_lite.sites.webarena.maps.app import HITS, NOTES
from dynaweb_lite.sites.webarena.maps.geo import format_distance, metres_between
from dynaweb_lite.sites.webarena.maps.places import KINDS
from dynaweb_lite.sites.webarena.maps.routes import ENGINES, length_and_time
from dynaweb_lite.sites.webarena.maps.search import nearest, search, where

SITE = "__MAP__"
ENGINE = 'document.querySelector("div#content select.routing_engines").selectedIndex'
END = "document.querySelector('[name=\"route_{}\"]').value"
FIELDS = {"phone number": "phone", "website": "website", "opening hours": "opening_hours", "ZIP code": "addr:postcode"}
WAYS = {"bicycle": "by bicycle", "car": "by car", "foot": "on foot"}
NEAR_KINDS = "restaurant cafe bar hotel museum library hospital cinema".split()
COUNTED_KINDS = "restaurant cafe bar hotel pharmacy supermarket bank parking".split()
MARGIN = 1.15
"""How much farther the second must be for the first to be called the closest."""
REMARKS = (
    "The sign above the door is broken.",
    "The entrance is around the corner.",
    "There are steps at the entrance.",
    "The building is being repainted.",
    "The bench in front is gone.",
    "Dogs are welcome here.",
)


def _places(db: sqlite3.Connection, rng: random.Random) -> list[sqlite3.Row]:
    """Businesses and sights of the region's towns whose names nobody else has, in any order."""
    rows = db.execute(
        "SELECT * FROM place WHERE town IN (SELECT name FROM place WHERE kind = 'town') AND name != '' ORDER BY id"
    ).fetchall()
    names = Counter(row["name"] for row in db.execute("SELECT name FROM place"))
    return rng.sample(kept := [row for row in rows if names[row["name"]] == 1], len(kept))


def _named(place: sqlite3.Row) -> str:
    return f"{place['name']} in {place['town']}"


def _opened(place: sqlite3.Row, *steps: str) -> tuple[str, ...]:
    """A script that searches for a place, opens its page, and goes on."""
    return (*_search(place["name"]), f"click [link '{place['name']}, {place['street']}…']", *steps)


def _search(query: str) -> tuple[str, ...]:
    return (f"type [textbox 'Search'] [{query}] [1]",)


def _pairs(db: sqlite3.Connection, rng: random.Random) -> Iterator[tuple[sqlite3.Row, sqlite3.Row, str]]:
    """Two places of one town, and a way to travel."""
    by_town: dict[str, list[sqlite3.Row]] = {}
    for place in _places(db, rng):
        by_town.setdefault(place["town"], []).append(place)
    for places in by_town.values():
        for start, end in zip(places[:10:2], places[1:11:2], strict=False):
            yield start, end, rng.choice(sorted(WAYS))


def _route_script(start: sqlite3.Row, end: sqlite3.Row, way: str, *steps: str) -> tuple[str, ...]:
    label = next(label for mode, label in ENGINES.values() if mode == way)
    return (
        "click [link 'Find directions between two points']",
        f"type [textbox 'From'] [{start['name']}] [0]",
        f"type [textbox 'To'] [{end['name']}] [0]",
        f"select [combobox 'Travel by'] [{label}]",
        "click [button 'Go' #2]",
        *steps,
    )


def _tag(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for place in _places(db, rng)[:60]:
        tags = json.loads(place["tags"])
        field = rng.choice([name for name, key in FIELDS.items() if key in tags])
        text = tags[FIELDS[field]]
        made.append(Instance({"field": field, "place": _named(place)}, answer(text), _opened(place, f"stop [{text}]")))
    return made


def _distance(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for start, end, way in _pairs(db, rng):
        text = format_distance(length_and_time(db, start, end, way)[0])
        values = {"start": _named(start), "end": _named(end), "way": WAYS[way]}
        made.append(Instance(values, answer(text), _route_script(start, end, way, f"stop [{text}]")))
    return made


def _closest(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made, all_places = [], db.execute("SELECT * FROM place").fetchall()
    for place in _places(db, rng)[:60]:
        kind = rng.choice([k for k in NEAR_KINDS if k != place["kind"]])
        first, second = nearest(where(place), [p for p in all_places if p["kind"] == kind], 1e7)[:2]
        if metres_between(where(place), where(second)) < MARGIN * metres_between(where(place), where(first)):
            continue
        word = KINDS[kind].words[0]
        script = (*_search(f"{word} near {place['name']}"), f"stop [{first['name']}]")
        made.append(Instance({"kind": word, "place": _named(place)}, answer(first["name"]), script))
    return made


def _branch(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    """Pages of chains' branches, told apart by their streets."""
    rows = db.execute("SELECT * FROM place WHERE kind IN ('pharmacy', 'supermarket', 'bank', 'fuel') ORDER BY id")
    rows = [row for row in rows if row["town"]]

    def key(row: sqlite3.Row) -> tuple[str, str, str]:
        return row["name"], row["street"].rpartition(", ")[2], row["town"]

    count = Counter(map(key, rows))
    made: list[Instance] = []
    for row in rng.sample(rows, len(rows)):
        if len(made) == MAX_INSTANCES:
            break
        hits = search(db, f"{row['name']} {row['town']}").places[:HITS]
        if count[key(row)] == 1 and row["id"] in [hit["id"] for hit in hits]:
            values = dict(zip(("name", "street", "town"), key(row), strict=True))
            click = f"click [link '{row['name']}, {row['street']}…']"
            script = (*_search(f"{row['name']} {row['town']}"), click, "stop []")
            made.append(Instance(values, address(f"{SITE}/{row['id']}"), script))
    return made


def _route(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for start, end, way in _pairs(db, rng):
        values = {"start": _named(start), "end": _named(end), "way": WAYS[way]}
        index = str([mode for mode, _ in ENGINES.values()].index(way))
        ends = (("from", start), ("to", end))
        targets = [("last", END.format(key), [place["name"], place["town"]]) for key, place in ends]
        made.append(
            Instance(values, content(("last", ENGINE, index), *targets), _route_script(start, end, way, "stop []"))
        )
    return made


def _note(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for place in _places(db, rng)[:30]:
        text = rng.choice(REMARKS)
        steps = (f"type [textbox 'Note'] [{text}] [0]", "click [button 'Add Note']", "stop []")
        wanted = [f"{place['name']}, {place['street']}", text]
        check = content((f"{SITE}/notes", "document.querySelector('#notes li').outerText", wanted))
        script = _opened(place, "click [link 'Add a note here']", *steps)
        made.append(Instance({"place": _named(place), "text": text}, check, script))
    return made


def _noted(db: sqlite3.Connection) -> Iterator[tuple[sqlite3.Row, sqlite3.Row, tuple[str, ...]]]:
    """Open notes on the first pages of the list, their places, and scripts that open them."""
    rows = db.execute("SELECT * FROM note ORDER BY id DESC").fetchall()
    for number, note in enumerate(rows):
        place = db.execute("SELECT * FROM place WHERE label = ?", (note["place"],)).fetchone()
        if note["is_open"] and place:
            pages = ("click [link 'Older Notes']",) * (number // NOTES)
            yield note, place, ("click [link 'Notes']", *pages, f"click [link 'Note {note['id']}']")


def _resolve(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for note, place, opening in _noted(db):
        heading = (f"{SITE}/note/{note['id']}", "document.querySelector('#sidebar_content h1').outerText")
        values = {"place": f"{place['name']}, {place['street']}"}
        script = (*opening, "click [button 'Resolve']", "stop []")
        made.append(Instance(values, content((*heading, f"Resolved note #{note['id']}")), script))
    return made


def _remark(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for note, place, opening in _noted(db):
        text = rng.choice(REMARKS)
        last = (f"{SITE}/note/{note['id']}", "document.querySelector('#sidebar_content .card:last-child').outerText")
        steps = (f"type [textbox 'Comment'] [{text}] [0]", "click [button 'Comment']", "stop []")
        values = {"place": f"{place['name']}, {place['street']}", "text": text}
        made.append(Instance(values, content((*last, ["Commented", text])), (*opening, *steps)))
    return made


def _count(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for town in db.execute("SELECT name FROM place WHERE kind = 'town' ORDER BY id").fetchall():
        for kind in COUNTED_KINDS:
            number = db.execute(
                "SELECT count(*) FROM place WHERE kind = ? AND town = ?", (kind, town["name"])
            ).fetchone()[0]
            word = KINDS[kind].words[0]
            if number > 1 and len(search(db, f"{word} in {town['name']}").places) == number <= HITS:
                script = (*_search(f"{word} in {town['name']}"), f"stop [{number}]")
                made.append(Instance({"kind": word, "town": town["name"]}, answer(str(number)), script))
    return made


TEMPLATES = [
    Template("map_tag", "information", "What is the {{field}} of {{place}}? Answer as the map writes it.", _tag),
    Template(
        "map_distance",
        "information",
        "How long is the route from {{start}} to {{end}} {{way}}? Answer as the map writes it, such as 748m or 1.7km.",
        _distance,
    ),
    Template("map_closest", "information", "What is the name of the {{kind}} closest to {{place}}?", _closest),
    Template("map_branch", "navigation", "Open the map's page of the {{name}} on {{street}} in {{town}}.", _branch),
    Template("map_route", "navigation", "Show the route from {{start}} to {{end}} {{way}}.", _route),
    Template("map_note", "change", "Add a note to the map at {{place}} that says: {{text}}", _note),
    Template("map_resolve", "change", "Mark the map's note about {{place}} as resolved.", _resolve),
    Template("map_remark", "change", "Comment on the map's note about {{place}}: {{text}}", _remark, held_out=True),
    Template(
        "map_count",
        "information",
        "How many places of the kind {{kind}} does the map know in {{town}}? Answer with a number.",
        _count,
        held_out=True,
    ),
]
