"""The map's picture: a server-drawn SVG of what lies around, for people; readers of the accessibility tree skip it."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from dynaweb_lite.sites.webarena.maps.geo import Point, flat, format_distance, offset
from dynaweb_lite.sites.webarena.maps.places import KINDS
from dynaweb_lite.sites.webarena.maps.search import where

WIDTH, HEIGHT, MAX_DOTS, MAX_NAMES, LETTER = 720, 560, 120, 16, 6.3
HALF_METRES = {
    "state": 260_000,
    "city": 5_000,
    "town": 2_600,
    "village": 2_600,
    "national_park": 9_000,
    "airport": 4_000,
}
BORDER, SMALLEST, FAR_METRES = 1.35, 350, 2_000
DRAWN_TO = {"river": 90_000, "motorway": 60_000, "main": 12_000, "park": 12_000, "road": 6_000}
"""Half-widths in metres up to which a kind of line is worth drawing."""
Box = tuple[float, float, float]
"""Where a name stands on the picture: its middle [x, y], and half its width."""
ROUND_METRES = [step * 10**power for power in range(1, 6) for step in (1, 2, 5)]


@dataclass(frozen=True)
class View:
    """What a picture shows: a center, and metres from it to the nearer edge."""

    center: Point
    half_metres: float

    def zoomed(self, levels: int) -> View:
        """The same center, each level twice as near."""
        return View(self.center, max(60.0, min(3_000_000.0, self.half_metres / 2**levels)))

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """South, west, north and east of what the picture shows."""
        south, west = offset(self.center, -self.half_metres, -self.half_metres * WIDTH / HEIGHT)
        return south, west, 2 * self.center[0] - south, 2 * self.center[1] - west

    def project(self, point: Point) -> tuple[float, float]:
        """A point of the globe on the picture [x, y]."""
        scale = HEIGHT / 2 / self.half_metres
        east, north = flat(point, self.center)
        return round(WIDTH / 2 + east * scale, 1), round(HEIGHT / 2 - north * scale, 1)


def view_of(place: sqlite3.Row) -> View:
    """A view that fits a place and its neighbourhood."""
    return View(where(place), HALF_METRES.get(place["kind"], 700))


def view_around(points: Sequence[Point]) -> View:
    """A view that holds all points, with a border."""
    lats, lons = [p[0] for p in points], [p[1] for p in points]
    center = (min(lats) + max(lats)) / 2, (min(lons) + max(lons)) / 2
    spans = [flat(point, center) for point in points]
    half = max(max(abs(north), abs(east) * HEIGHT / WIDTH) for east, north in spans)
    return View(center, max(SMALLEST, half * BORDER))


def draw(db: sqlite3.Connection, view: View, pins: Sequence[Point] = (), path: Sequence[Point] = ()) -> Markup:
    """The SVG of a view, with pins (lettered when there is a path) and a route."""
    taken: list[Box] = []
    parts = [f'<rect class="land" width="{WIDTH}" height="{HEIGHT}"/>', *_lines(db, view, taken)]
    if path:
        parts.append(_polyline("path", [view.project(p) for p in path]))
    parts += _places(db, view, {(round(lat, 5), round(lon, 5)) for lat, lon in pins}, taken)
    parts += [_pin(view.project(point), "AB"[i] if path else "") for i, point in enumerate(pins)]
    parts.append(_scale_bar(view))
    far = ' class="far"' if view.half_metres > FAR_METRES else ""
    return Markup(f'<svg{far} viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>')


def _lines(db: sqlite3.Connection, view: View, taken: list[Box]) -> Iterable[str]:
    """Rivers and parks below, then roads, then names along those that are long enough on the picture."""
    named: set[str] = set()
    drawn = [kind for kind, half in DRAWN_TO.items() if view.half_metres <= half]
    marks, (south, west, north, east) = ", ".join("?" * len(drawn)), view.edges
    rows = db.execute(
        f"SELECT kind, name, points FROM line WHERE kind IN ({marks}) AND south < ? AND north > ? AND west < ? AND "
        "east > ? ORDER BY CASE kind WHEN 'park' THEN 0 WHEN 'river' THEN 1 WHEN 'road' THEN 2 WHEN 'main' THEN 3 "
        "ELSE 4 END, rowid",
        (*drawn, north, south, east, west),
    ).fetchall()
    texts = []
    for row in rows:
        points = [view.project(point) for point in json.loads(row["points"])]
        yield (
            f'<polygon class="park" points="{_pairs(points)}"/>'
            if row["kind"] == "park"
            else _polyline(row["kind"], points)
        )
        if row["name"] not in named and (text := _along(row["name"], row["kind"], points, taken)):
            named.add(row["name"])
            texts.append(text)
    yield from texts


def _pairs(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _polyline(kind: str, points: Iterable[tuple[float, float]]) -> str:
    return f'<polyline class="{kind}" points="{_pairs(points)}"/>'


def _along(name: str, kind: str, points: Sequence[tuple[float, float]], taken: list[Box]) -> str:
    """A line's name on the first of its stretches that has room for it; parks have it in their middle."""
    if kind == "park":
        return ""
    for (x1, y1), (x2, y2) in zip(points, points[1:], strict=False):
        x, y, length = (x1 + x2) / 2, (y1 + y2) / 2, math.hypot(x2 - x1, y2 - y1)
        if length > LETTER * len(name) + 12 and 40 < x < WIDTH - 40 and 20 < y < HEIGHT - 20:
            turn = math.degrees(math.atan((y2 - y1) / (x2 - x1))) if x1 != x2 else 90
            taken.append((x, y, LETTER * len(name) / 2 * math.cos(math.radians(turn))))
            place = f"translate({x:.0f} {y + 4:.0f}) rotate({turn:.0f})"
            return f'<text class="name {kind}-name" transform="{place}">{escape(name)}</text>'
    return ""


def _places(db: sqlite3.Connection, view: View, pinned: set[Point], taken: list[Box]) -> Iterable[str]:
    """Dots in the colour of their kind, and names of the weightiest where no other name is; what is pinned first."""
    seen = []
    south, west, north, east = view.edges
    for place in db.execute(
        "SELECT id, kind, name, lat, lon, weight FROM place WHERE lat BETWEEN ? AND ? AND lon BETWEEN ? AND ? "
        "ORDER BY weight DESC, id",
        (south, north, west, east),
    ):
        x, y = view.project(where(place))
        if 6 < x < WIDTH - 6 and 6 < y < HEIGHT - 6 and _is_worth(place, view):
            seen.append(((round(place["lat"], 5), round(place["lon"], 5)) not in pinned, x, y, place))
    seen.sort(key=lambda row: row[0])
    room = MAX_NAMES + len(taken)
    for _, x, y, place in seen[:MAX_DOTS]:
        yield f'<circle class="dot {KINDS[place["kind"]].group}" cx="{x}" cy="{y}" r="4"/>'
        half = LETTER * len(place["name"]) / 2
        is_free = all(abs(y + 16 - b) > 15 or abs(x - a) > half + h for a, b, h in taken)
        if place["name"] and is_free and len(taken) < room and half < x < WIDTH - half:
            taken.append((x, y + 16, half))
            yield f'<text class="name" x="{x}" y="{y + 16:.0f}">{escape(place["name"])}</text>'


def _is_worth(place: sqlite3.Row, view: View) -> bool:
    """Whether a place is drawn at this width: single shops only near, states only far."""
    if place["kind"] == "state":
        return view.half_metres > 90_000
    if place["kind"] in ("city", "town", "village"):
        return 1_500 < view.half_metres
    return view.half_metres < (1_600 if place["weight"] < 3 else 12_000)


def _pin(spot: tuple[float, float], letter: str) -> str:
    x, y = spot
    drop = f"M{x} {y}c-4 -12 -11 -15 -11 -24a11 11 0 0 1 22 0c0 9 -7 12 -11 24z"
    inside = f'<text class="letter" x="{x}" y="{y - 20:.0f}">{letter}</text>'
    hole = f'<circle class="hole" cx="{x}" cy="{y - 24:.1f}" r="4"/>'
    return f'<path class="pin" d="{drop}"/>{inside if letter else hole}'


def _scale_bar(view: View) -> str:
    """A bar of a round length in the corner."""
    pixel = view.half_metres * 2 / HEIGHT
    metres = max((m for m in ROUND_METRES if m / pixel < 130), default=ROUND_METRES[0])
    end = 16 + metres / pixel
    line = _polyline(
        "scale", [(16, HEIGHT - 26), (16, HEIGHT - 18), (round(end), HEIGHT - 18), (round(end), HEIGHT - 26)]
    )
    text = format_distance(metres).replace(".0km", "km")
    return f'{line}<text class="name left" x="20" y="{HEIGHT - 24}">{text}</text>'
