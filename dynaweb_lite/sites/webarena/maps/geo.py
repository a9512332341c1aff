"""Distances on the globe, and how the map writes them."""

from __future__ import annotations

import math

EARTH_METRES = 6_371_000
Point = tuple[float, float]
"""Latitude and longitude in degrees."""


def metres_between(a: Point, b: Point) -> float:
    """Great-circle distance of two points in metres."""
    (lat1, lon1), (lat2, lon2) = [(math.radians(p[0]), math.radians(p[1])) for p in (a, b)]
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_METRES * math.asin(math.sqrt(half))


def offset(point: Point, north: float, east: float) -> Point:
    """The point so many metres north and east of another, rounded to a decimetre or so."""
    lat, lon = point
    degree = EARTH_METRES * math.pi / 180
    return round(lat + north / degree, 6), round(lon + east / (degree * math.cos(math.radians(lat))), 6)


def flat(point: Point, origin: Point) -> tuple[float, float]:
    """Metres east and north of an origin on a flat map; good enough for what fits on one picture."""
    degree = EARTH_METRES * math.pi / 180
    east = (point[1] - origin[1]) * degree * math.cos(math.radians(origin[0]))
    return east, (point[0] - origin[0]) * degree


def format_distance(metres: float) -> str:
    """As OpenStreetMap's directions do: 748m, 1.7km, 914km."""
    if metres < 1000:
        return f"{round(metres)}m"
    return f"{metres / 1000:.1f}km" if metres < 10_000 else f"{round(metres / 1000)}km"


def format_time(seconds: float) -> str:
    """Hours and minutes, as in 0:09 or 5:47."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours}:{minutes:02d}"
