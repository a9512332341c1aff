"""What the map shows, as a function of a seed: seed 0 holds the places that WebArena's tasks ask for, and fillers."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from dynaweb_lite.sites.webarena.maps.places import KINDS, Place, words_of
from dynaweb_lite.sites.webarena.maps.world import FILLER_KINDS, Builder, Line, Quarter, Region, grid, make_region

FACTS = Path(__file__).parent.parent / "data" / "maps.json"
TODAY, USER = "12 June 2023", "mapper_mia"
STATES = {
    "CA": "California",
    "CT": "Connecticut",
    "MA": "Massachusetts",
    "ME": "Maine",
    "MI": "Michigan",
    "NJ": "New Jersey",
    "NY": "New York",
    "OH": "Ohio",
    "OR": "Oregon",
    "PA": "Pennsylvania",
    "RI": "Rhode Island",
    "VA": "Virginia",
    "WV": "West Virginia",
}
SCHEMA = """
CREATE TABLE place (id TEXT PRIMARY KEY, kind TEXT, name TEXT, street TEXT, area TEXT, label TEXT, lat REAL, lon REAL,
  weight INTEGER, town TEXT, state TEXT, tags TEXT, aliases TEXT, what TEXT, words TEXT);
CREATE TABLE line (kind TEXT, name TEXT, points TEXT, south REAL, west REAL, north REAL, east REAL);
CREATE TABLE route (start TEXT, end TEXT, mode TEXT, metres REAL, seconds REAL);
CREATE TABLE border (id TEXT PRIMARY KEY, name TEXT, one TEXT, other TEXT);
CREATE TABLE note (id INTEGER PRIMARY KEY, place TEXT, lat REAL, lon REAL, opened TEXT, is_open INTEGER);
CREATE TABLE comment (note INTEGER, author TEXT, written TEXT, action TEXT, text TEXT);
CREATE TABLE start (place TEXT);
"""
NOTE_TEXTS = (
    "This place has closed for good.",
    "The opening hours here are out of date.",
    "The entrance is on the other side of the building.",
    "There is a new bicycle rack in front of the door.",
    "The house number does not match the sign.",
    "The phone number leads to somebody else.",
    "The footpath behind this place is missing on the map.",
    "This has moved two doors down the street.",
    "The name on the sign is spelled differently.",
    "The parking spaces in front are for customers only.",
    "The wheelchair ramp is missing on the map.",
    "This street is one-way now.",
)
MAPPERS = "atlas_ann bicycle_ben contour_cy dotted_dee eastwind_el footpath_flo".split()


def make_database(seed: int) -> sqlite3.Connection:
    """The map's database for a seed, in memory."""
    region = make_region(seed)
    if seed == 0:
        _add_facts(region)
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(SCHEMA)
    db.executemany("INSERT INTO place VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", map(_row, region.places))
    db.executemany("INSERT INTO line VALUES (?,?,?,?,?,?,?)", map(_line_row, region.lines))
    borders = [(f"way/{33_100_000 + i * 271}", f"{a}–{b} border", a, b) for i, (a, b) in enumerate(region.borders)]
    db.executemany("INSERT INTO border VALUES (?,?,?,?)", borders)
    if seed == 0:
        db.executemany("INSERT INTO route VALUES (?,?,?,?,?)", _facts()["routes"])
    first = region.towns[0] if seed else next(p for p in region.places if p.label.startswith("Pittsburgh, "))
    db.execute("INSERT INTO start VALUES (?)", (first.id,))
    _add_notes(db, region.places, random.Random(f"notes-{seed}"))
    db.commit()
    return db


def _row(place: Place) -> tuple:
    kind = KINDS[place.kind]
    known_as = [place.name, *place.aliases, *(place.tags.get(key, "") for key in ("alt_name", "short_name"))]
    told = [*kind.words, *(place.tags.get(key, "") for key in ("cuisine", "description", "operator", "iata"))]
    what = sorted(set(words_of(" ".join(known_as + told))))
    words = sorted(set(what) | set(words_of(f"{place.street} {place.area} {place.state}")))
    aliases = "|".join(" ".join(words_of(name)) for name in known_as if name)
    seen = (place.id, place.kind, place.name, place.street, place.area, place.label, place.lat, place.lon)
    rest = (kind.weight, place.town, place.state, json.dumps(place.all_tags))
    return (*seen, *rest, aliases, " ".join(what), " ".join(words))


def _line_row(line: Line) -> tuple:
    lats, lons = zip(*line.points, strict=True)
    return line.kind, line.name, json.dumps(line.points), min(lats), min(lons), max(lats), max(lons)


def _facts() -> dict:
    return json.loads(FACTS.read_text(encoding="utf-8"))


def _add_facts(region: Region) -> None:
    """What WebArena's tasks ask for, with businesses in the quarters around it so that it must be searched."""
    facts = _facts()
    areas = facts["areas"]
    for place_id, kind, name, street, area, lat, lon, tags, aliases in facts["places"]:
        tail, town, state = areas.get(area, (area, "", ""))
        state = STATES.get(state) or next((name for name in tail.split(", ") if name in STATES.values()), "")
        region.places.append(Place(place_id, kind, name, street, tail, lat, lon, tags, tuple(aliases), town, state))
    region.borders += map(tuple, facts["borders"])
    region.lines += [Line(kind, name, tuple(map(tuple, points))) for kind, name, points in facts["lines"]]
    region.places += _fillers(region, facts)


def _fillers(region: Region, facts: dict) -> Iterable[Place]:
    rng = random.Random("pittsburgh")
    builder = Builder(rng, 6_200_000_000, 412)
    builder.names = {p.name for p in region.places}
    for area, lat, lon, streets in facts["quarters"]:
        tail, town, state = facts["areas"][area]
        quarter = Quarter(tail.split(", ")[0], tail, town, STATES[state], (lat, lon), grid(rng, streets, (lat, lon)))
        region.lines += [Line("road", s.name, (s.start, s.end)) for s in quarter.streets]
        yield from builder.fill(quarter, FILLER_KINDS)


def _add_notes(db: sqlite3.Connection, places: list[Place], rng: random.Random) -> None:
    """Notes that mappers left at businesses; some are resolved."""
    shops = [p for p in places if p.id.startswith("node/") and p.kind not in ("house", "bus_stop", "bridge", "airport")]
    for number, place in enumerate(rng.sample(shops, 18), start=1):
        is_open, author, mender = rng.random() < 0.8, *rng.sample(MAPPERS, 2)
        opened = f"{rng.randrange(1, 29)} {rng.choice(('March', 'April', 'May'))} 2023"
        db.execute(
            "INSERT INTO note VALUES (?,?,?,?,?,?)", (number, place.label, place.lat, place.lon, opened, int(is_open))
        )
        text = NOTE_TEXTS[number % len(NOTE_TEXTS)]
        db.execute("INSERT INTO comment VALUES (?,?,?,?,?)", (number, author, opened, "opened", text))
        if not is_open:
            done = (number, mender, "3 June 2023", "resolved", "Fixed, thank you.")
            db.execute("INSERT INTO comment VALUES (?,?,?,?,?)", done)
