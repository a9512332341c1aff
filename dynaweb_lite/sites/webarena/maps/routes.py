"""Routes between any two places: length, time and turns. What WebArena's tasks ask for is in the data, the rest follows
from the straight line: a detour factor and a speed for each way to travel, and the streets that lie along it."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass

from dynaweb_lite.sites.webarena.maps.geo import Point, flat, metres_between
from dynaweb_lite.sites.webarena.maps.search import where

ENGINES = {
    "fossgis_osrm_bike": ("bicycle", "Bicycle (OSRM)"),
    "fossgis_osrm_car": ("car", "Car (OSRM)"),
    "fossgis_osrm_foot": ("foot", "Foot (OSRM)"),
}
"""What the form sends: (way to travel, label), in the order of OpenStreetMap's list."""
DEFAULT_ENGINE = "fossgis_osrm_car"
DETOURS = {"bicycle": 1.28, "foot": 1.24}
"""How much longer than the straight line a way is."""
LONG_METRES, MAX_TURNS = 25_000, 6


@dataclass(frozen=True)
class Turn:
    """One instruction, and how far it leads."""

    text: str
    metres: float


@dataclass(frozen=True)
class Route:
    """A route: its length, its duration, its turns, and the points that the picture joins."""

    metres: float
    seconds: float
    turns: tuple[Turn, ...]
    points: tuple[Point, ...]


def find_route(db: sqlite3.Connection, start: sqlite3.Row, end: sqlite3.Row, mode: str) -> Route:
    """The route by "car", "bicycle" or "foot"; as long one way as back."""
    metres, seconds = length_and_time(db, start, end, mode)
    stops = _along(db, start, end, metres > LONG_METRES)
    points = (where(start), *(where(stop) for stop in stops), where(end))
    legs = [metres_between(a, b) for a, b in zip(points, points[1:], strict=False)]
    scale = metres / (sum(legs) or 1)
    verbs = [_turn(*points[i : i + 3]) for i in range(len(stops))]
    texts = [f"Start on {_street(start)}" if start["street"] else f"Start in {start['name']}"]
    texts += [f"{verb} {_onto(stop)}" for verb, stop in zip(verbs, stops, strict=True)]
    turns = [Turn(text, leg * scale) for text, leg in zip(texts, legs, strict=True)]
    return Route(metres, seconds, (*turns, Turn(f"Arrive at {end['name'] or end['street']}", 0)), points)


def length_and_time(db: sqlite3.Connection, start: sqlite3.Row, end: sqlite3.Row, mode: str) -> tuple[float, float]:
    """Metres and seconds of a route, whichever end comes first."""
    known = db.execute(
        "SELECT metres, seconds FROM route WHERE mode = ? AND ((start = ? AND end = ?) OR (end = ? AND start = ?))",
        (mode, start["id"], end["id"], start["id"], end["id"]),
    ).fetchone()
    if known:
        return known["metres"], known["seconds"]
    straight = metres_between(where(start), where(end))
    metres = straight * DETOURS.get(mode, 1.18 + 0.16 / (1 + straight / 20_000))  # cars go the straighter the farther
    return metres, seconds_for(metres, mode)


def seconds_for(metres: float, mode: str) -> float:
    """Time for a distance: 5 km/h on foot, 15 by bicycle; a car is slow in town and near 100 km/h far from it."""
    km = metres / 1000
    if mode == "car":
        return 40 + 3600 * km / (25 + 75 * km / (km + 40))
    return 3600 * km / (5 if mode == "foot" else 15)


def _along(db: sqlite3.Connection, start: sqlite3.Row, end: sqlite3.Row, is_long: bool) -> list[sqlite3.Row]:
    """Streets, or towns on a long way, that lie near the straight line, in the order in which they are passed."""
    origin, goal = where(start), flat(where(end), where(start))
    length = math.hypot(*goal) or 1
    wanted = "kind IN ('city', 'town')" if is_long else "street != '' AND kind NOT IN ('city', 'town')"
    passed, seen = [], {_street(start), _street(end), start["name"], end["name"]}
    for place in db.execute(f"SELECT * FROM place WHERE {wanted} ORDER BY id"):
        east, north = flat(where(place), origin)
        share = (east * goal[0] + north * goal[1]) / length**2
        aside = abs(east * goal[1] - north * goal[0]) / length
        if 0.1 < share < 0.9 and aside < (0.1 if is_long else 0.2) * length:
            passed.append((share, place))
    kept: list[tuple[float, sqlite3.Row]] = []
    for share, place in sorted(passed, key=lambda pair: pair[0]):
        name = place["name"] if is_long else _street(place)
        if name not in seen and (not kept or share - kept[-1][0] > 0.8 / MAX_TURNS):
            seen.add(name)
            kept.append((share, place))
    return [place for _, place in kept]


def _street(place: sqlite3.Row) -> str:
    return place["street"].rpartition(", ")[2] or place["name"]


def _onto(place: sqlite3.Row) -> str:
    return f"towards {place['name']}" if place["kind"] in ("city", "town") else f"onto {_street(place)}"


def _turn(before: Point, here: Point, after: Point) -> str:
    """What the change of direction at a point is called."""
    (x1, y1), (x2, y2) = flat(here, before), flat(after, here)
    angle = math.degrees(math.atan2(x1 * y2 - y1 * x2, x1 * x2 + y1 * y2))
    if abs(angle) < 12:
        return "Continue"
    return f"{'Slight' if abs(angle) < 35 else 'Turn'} {'left' if angle > 0 else 'right'}"
