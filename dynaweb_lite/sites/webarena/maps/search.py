"""Finding places: by words of their names and addresses, by coordinates, and "restaurants near …" by distance."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from dynaweb_lite.sites.webarena.maps.geo import Point, metres_between
from dynaweb_lite.sites.webarena.maps.places import KINDS, words_of

MAX_HITS, NEAR_METRES, HERE_METRES = 40, 250_000, 3_000
_NEAR = re.compile(r"(.+?)\s+(?:near(?:by)?(?: to)?|around|close to|closest to|nearest to)\s+(.+)", re.IGNORECASE)
_POINT = re.compile(r"\s*(-?\d{1,2}(?:\.\d+)?)\s*[,; ]\s*(-?\d{1,3}(?:\.\d+)?)\s*")


@dataclass(frozen=True)
class Hits:
    """Places found, best or nearest first; `problem` says why there are none."""

    places: list[sqlite3.Row]
    problem: str = ""


def search(db: sqlite3.Connection, query: str) -> Hits:
    """What the search box finds."""
    if not words_of(query):
        return Hits([], "Please enter the name or address of a place.")
    if point := parse_point(query):
        return Hits(nearest(point, _rows(db), HERE_METRES)[:MAX_HITS])
    if match := _NEAR.fullmatch(query.strip()):
        anchor = find_place(db, match[2])
        if anchor is None:
            return Hits([], f"No place found for “{match[2]}”.")
        around = [p for p in of_sort(db, match[1]) if p["id"] != anchor["id"] and p["name"]]
        found = nearest(where(anchor), around, NEAR_METRES)[:MAX_HITS]
        return Hits(found, "" if found else f"No {match[1]} found near {anchor['name'] or anchor['street']}.")
    return Hits(best(db, query)[:MAX_HITS], "No results found")


def find_place(db: sqlite3.Connection, query: str) -> sqlite3.Row | None:
    """The first that the search would find for an address, a name or coordinates."""
    if point := parse_point(query):
        return next(iter(nearest(point, _rows(db), HERE_METRES)), None)
    return next(iter(best(db, query)), None)


def parse_point(text: str) -> Point | None:
    """Coordinates, as in "40.4442, -79.9427"; None for anything else."""
    match = _POINT.fullmatch(text)
    if not match or abs(float(match[1])) > 90 or abs(float(match[2])) > 180:
        return None
    return float(match[1]), float(match[2])


def best(db: sqlite3.Connection, query: str) -> list[sqlite3.Row]:
    """Places that have all words of the query in name, kind or address; the best fitting and weightiest first."""
    wanted = words_of(query)
    head = words_of(query.split(",")[0])

    def rank(place: sqlite3.Row) -> tuple:
        named = place["aliases"].split("|")
        fits = [
            words_of(place["label"]) == wanted,
            " ".join(wanted) in named,
            " ".join(head) in named,
            set(wanted) <= {word for name in named for word in name.split()},
        ]
        return [not fit for fit in fits], -place["weight"], place["name"], place["id"]

    return sorted(_with_words(db, "words", wanted), key=rank) if wanted else []


def of_sort(db: sqlite3.Connection, what: str) -> list[sqlite3.Row]:
    """Those of a kind where `what` names one, else those that have all its words in name, kind, cuisine or operator."""
    wanted = words_of(what)
    kinds = [key for key, kind in KINDS.items() if any(words_of(phrase) == wanted for phrase in kind.words)]
    if kinds:
        marks = ", ".join("?" * len(kinds))
        return db.execute(f"SELECT * FROM place WHERE kind IN ({marks})", kinds).fetchall()
    return _with_words(db, "what", wanted)


def nearest(point: Point, places: Sequence[sqlite3.Row], limit_metres: float) -> list[sqlite3.Row]:
    """Places within a limit as the crow flies, the nearest first."""
    by_distance = sorted((metres_between(point, where(place)), place["id"], place) for place in places)
    return [place for metres, _, place in by_distance if metres <= limit_metres]


def where(place: sqlite3.Row) -> Point:
    return place["lat"], place["lon"]


def _rows(db: sqlite3.Connection) -> list[sqlite3.Row]:
    return db.execute("SELECT * FROM place").fetchall()


def _with_words(db: sqlite3.Connection, column: str, words: Sequence[str]) -> list[sqlite3.Row]:
    """Places whose column of words has all of these."""
    has = " AND ".join([f"instr(' ' || {column} || ' ', ?)"] * len(words)) or "1"
    return db.execute(f"SELECT * FROM place WHERE {has}", [f" {word} " for word in words]).fetchall()
