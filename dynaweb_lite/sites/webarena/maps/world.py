"""An invented region, made from a seed: towns with quarters, streets, businesses and sights, between rivers and roads.

The map shows it and the encyclopedia writes about it, so that a task can lead from one to the other.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dynaweb_lite.sites.webarena.maps.geo import Point, offset
from dynaweb_lite.sites.webarena.maps.places import Place
from dynaweb_lite.sites.webarena.maps.words import (
    ADJECTIVES,
    CHAINS,
    CUISINES,
    HOURS,
    QUARTERS,
    RIVERS,
    STATES,
    STREET_ENDS,
    STREETS,
    SURNAMES,
    THINGS,
    TOWN_ENDS,
    TOWN_STARTS,
)

TOWNS, QUARTERS_EACH, HALF_STREET_METRES = 5, 3, 420
QUARTER_KINDS = "restaurant restaurant cafe bar pharmacy supermarket bank fuel parking bus_stop".split()
TOWN_KINDS = "museum library hospital police post_office cinema school hotel hotel park".split()
FILLER_KINDS = "restaurant restaurant cafe bar pharmacy bank parking bus_stop school".split()
PATTERNS = {
    "restaurant": ("{a} {t}", "The {a} {t}", "{s}'s Table", "{t} and {t2}"),
    "cafe": ("{a} {t} Cafe", "Cafe {s}", "{t} Coffee House"),
    "bar": ("The {a} {t}", "{s}'s Tavern", "{t} Taproom"),
    "hotel": ("Hotel {s}", "The {a} {t} Inn", "{s} House"),
    "museum": ("{s} Museum", "{town} Museum of Glass", "{town} Railway Museum", "{town} History Museum"),
    "library": ("{s} Memorial Library", "{town} Public Library"),
    "hospital": ("{s} Hospital", "{town} General Hospital"),
    "police": ("{town} Police Station",),
    "post_office": ("{town} Post Office",),
    "cinema": ("{a} {t} Cinema", "{s} Picture House"),
    "school": ("{s} School", "{s} Elementary School", "{s} High School"),
    "park": ("{s} Park", "{a} {t} Park"),
    "parking": ("{street} Parking", "{street} Garage"),
    "bus_stop": ("{street} at {quarter}",),
    "stadium": ("{s} Arena", "{s} Stadium"),
    "bridge": ("{t} Bridge", "{s} Bridge"),
}


@dataclass(frozen=True)
class Street:
    """A straight street; places stand along it."""

    name: str
    start: Point
    end: Point


@dataclass(frozen=True)
class Quarter:
    """A part of a town: where it is, the end of its addresses, and its streets."""

    name: str
    area: str
    town: str
    state: str
    center: Point
    streets: tuple[Street, ...]


@dataclass(frozen=True)
class Line:
    """What the map draws beside places: a river, park, road, main road or motorway."""

    kind: str
    name: str
    points: tuple[Point, ...]


@dataclass
class Region:
    """All that was invented, and where its map begins."""

    state: str
    towns: list[Place] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    rivers: list[str] = field(default_factory=list)
    states: list[Place] = field(default_factory=list)
    borders: list[tuple[str, str]] = field(default_factory=list)


def grid(rng: random.Random, names: Sequence[str], center: Point) -> tuple[Street, ...]:
    """Streets around a center: every other name runs across, all turned by one angle."""
    angle, streets = rng.uniform(-0.4, 0.4), []
    for i, name in enumerate(names):
        shift = (i // 2 - (len(names) // 2 - 1) / 2) * HALF_STREET_METRES * 0.75
        ends = [(end * HALF_STREET_METRES, shift) if i % 2 else (shift, end * HALF_STREET_METRES) for end in (-1, 1)]
        turned = [
            (n * math.cos(angle) - e * math.sin(angle), n * math.sin(angle) + e * math.cos(angle)) for n, e in ends
        ]
        streets.append(Street(name, *(offset(center, north, east) for north, east in turned)))
    return tuple(streets)


class Builder:
    """Puts businesses into quarters: no name, number or place in the rank of ids twice."""

    def __init__(self, rng: random.Random, first_id: int, area_code: int):
        self.rng, self.next_id, self.area_code = rng, first_id, area_code
        self.names: set[str] = set()
        self.numbers: set[tuple[str, int]] = set()

    def fill(self, quarter: Quarter, kinds: Sequence[str]) -> Iterator[Place]:
        """One place of each kind, somewhere on the streets of a quarter."""
        for kind in kinds:
            street = self.rng.choice(quarter.streets)
            yield self.put(quarter, kind, self.name(kind, quarter, street), street)

    def put(self, quarter: Quarter, kind: str, name: str, street: Street, **tags: str) -> Place:
        """A place at a free number of a street."""
        number = self.number(street)
        along, side = (number % 200) / 200, 14 if number % 2 else -14
        (lat1, lon1), (lat2, lon2) = street.start, street.end
        spot = offset((lat1 + (lat2 - lat1) * along, lon1 + (lon2 - lon1) * along), side, side)
        self.next_id += self.rng.randint(3, 900)
        form = "way" if kind in ("park", "hospital", "school", "parking", "hotel", "university", "stadium") else "node"
        address = street.name if kind in ("park", "bus_stop", "parking") else f"{number}, {street.name}"
        tags = self.tags(kind, name) | tags
        place_id = f"{form}/{self.next_id}"
        return Place(place_id, kind, name, address, quarter.area, *spot, tags, (), quarter.town, quarter.state)

    def number(self, street: Street) -> int:
        """A house number of the street that nobody has yet; its last two digits and a half say how far along."""
        base = 200 * (sum(map(ord, street.name)) % 9 + 1)
        while (street.name, number := base + self.rng.randrange(200)) in self.numbers:
            pass
        self.numbers.add((street.name, number))
        return number

    def name(self, kind: str, quarter: Quarter, street: Street) -> str:
        """A chain's name where chains rule, else one that nobody has yet."""
        if kind in CHAINS:
            return self.rng.choice(CHAINS[kind])
        while True:
            thing, other = self.rng.sample(THINGS, 2)
            words = {"a": self.rng.choice(ADJECTIVES), "s": self.rng.choice(SURNAMES), "t": thing, "t2": other}
            words |= {"town": quarter.town, "quarter": quarter.name, "street": street.name}
            name = self.rng.choice(PATTERNS[kind]).format(**words)
            if name not in self.names or kind in ("police", "post_office", "bus_stop", "parking"):
                self.names.add(name)
                return name

    def tags(self, kind: str, name: str) -> dict[str, str]:
        """Phone, website, hours and the like, as far as the kind has them."""
        if kind in ("park", "bus_stop", "bridge"):
            return {}
        if kind == "parking":
            return {"capacity": str(self.rng.randrange(20, 300, 5)), "fee": self.rng.choice(("yes", "no"))}
        tags = {"phone": f"+1 {self.area_code} 555 {self.rng.randrange(10_000):04d}"}
        if kind not in ("police", "hospital", "hotel", "university", "stadium", "airport"):
            tags["opening_hours"] = self.rng.choice(HOURS if kind in ("fuel", "pharmacy") else HOURS[:-1])
        if kind in ("restaurant", "cafe"):
            tags["cuisine"] = self.rng.choice(CUISINES) if kind == "restaurant" else "coffee_shop"
        if kind in ("hotel", "museum", "restaurant", "cinema", "university") and self.rng.random() < 0.7:
            tags["website"] = f"https://{re.sub('[^a-z]+', '-', name.lower()).strip('-')}.example/"
        if kind == "hotel":
            tags["stars"] = str(self.rng.randint(2, 5))
        return tags


def make_region(seed: int) -> Region:
    """The region of a seed. That of seed 0 lies in Pennsylvania, north of what WebArena's tasks ask for."""
    rng = random.Random(f"region-{seed}")
    names = rng.sample(STATES, 7)
    region = Region("Pennsylvania" if seed == 0 else names[0])
    origin = (41.35, -77.75) if seed == 0 else (rng.uniform(37, 45), rng.uniform(-112, -90))
    region.rivers = [f"{name} River" for name in rng.sample(RIVERS, 2)]
    builder = Builder(rng, 5_000_000_000 + seed * 1_000_000, rng.randrange(220, 990))
    starts, ends = rng.sample(TOWN_STARTS, TOWNS), rng.sample(TOWN_ENDS, TOWNS)
    quarter_names = rng.sample(QUARTERS, TOWNS * QUARTERS_EACH)
    for i, name in enumerate(f"{start}{end}" for start, end in zip(starts, ends, strict=True)):
        turn = 2 * math.pi * (i + rng.uniform(-0.2, 0.2)) / TOWNS
        far = rng.uniform(9_000, 30_000)
        center = offset(origin, far * math.sin(turn), far * math.cos(turn))
        _add_town(region, builder, i, name, center, quarter_names[i * QUARTERS_EACH : (i + 1) * QUARTERS_EACH])
    _add_rivers_and_roads(region, rng)
    if seed:
        _add_states(region, names, origin)
    return region


def _add_town(region: Region, builder: Builder, number: int, name: str, center: Point, quarters: list[str]) -> None:
    rng, county = builder.rng, f"{builder.rng.choice(SURNAMES)} County"
    tail = f"{county}, {region.state}, United States"
    tags = {"population": str(rng.randrange(8_000, 190_000, 7))}
    town = Place(f"relation/{9_100_000 + number * 37}", "town", name, "", tail, *center, tags, (), "", region.state)
    region.towns.append(town)
    region.places.append(town)
    streets = rng.sample(STREETS, 5 * QUARTERS_EACH)
    made = []
    for i, quarter_name in enumerate(quarters):
        turn = 2 * math.pi * i / QUARTERS_EACH + number
        spot = offset(center, 900 * math.sin(turn), 900 * math.cos(turn))
        titles = [f"{street} {rng.choice(STREET_ENDS)}" for street in streets[i * 5 : i * 5 + 5]]
        area = f"{quarter_name}, {name}, {county}, {_postcode(region, number, i)}, United States"
        made.append(Quarter(quarter_name, area, name, region.state, spot, grid(rng, titles, spot)))
        region.lines += [Line("road", s.name, (s.start, s.end)) for s in made[-1].streets]
        kinds = [*QUARTER_KINDS, *TOWN_KINDS[i::QUARTERS_EACH]]
        region.places += builder.fill(made[-1], kinds)
    region.places += _sights(region, builder, number, name, made)
    region.lines.append(Line("main", "Ring Road", tuple(q.center for q in (*made, made[0]))))
    for park in [p for p in region.places if p.kind == "park" and p.town == name]:
        corners = [
            offset((park.lat, park.lon), north, east)
            for north, east in ((-90, -130), (-70, 140), (110, 120), (80, -120))
        ]
        region.lines.append(Line("park", park.name, tuple(corners)))


def _postcode(region: Region, town: int, quarter: int) -> str:
    base = 16_810 if region.state == "Pennsylvania" else 30_000 + sum(map(ord, region.state)) * 7
    return f"{base + town * 11 + quarter:05d}"


def _sights(region: Region, builder: Builder, number: int, town: str, quarters: list[Quarter]) -> Iterator[Place]:
    """What every town has only one of, or which only some towns have."""
    rng = builder.rng
    home, other = quarters[0], quarters[1]
    yield builder.put(home, "stadium", builder.name("stadium", home, home.streets[0]), rng.choice(home.streets))
    facts = {"length": f"{rng.randrange(120, 980)} m", "start_date": str(rng.randrange(1880, 1999))}
    yield builder.put(
        other, "bridge", builder.name("bridge", other, home.streets[0]), rng.choice(other.streets), **facts
    )
    if number % 2 == 0:
        yield builder.put(other, "university", f"{town} University", rng.choice(other.streets))
    if number == 0:
        airport = builder.put(other, "airport", f"{town} International Airport", rng.choice(other.streets))
        lat, lon = offset((airport.lat, airport.lon), 5_200, -3_900)
        yield replace(airport, lat=lat, lon=lon, street="Airport Road")


def _add_rivers_and_roads(region: Region, rng: random.Random) -> None:
    towns = [(t.lat, t.lon) for t in region.towns]
    for i, river in enumerate(region.rivers):
        bends = [offset(spot, rng.uniform(900, 1400), rng.uniform(-300, 300)) for spot in towns[i::2]]
        ends = offset(bends[0], 9_000, -6_000), offset(bends[-1], -8_000, 9_000)
        region.lines.append(Line("river", river, (ends[0], *bends, ends[1])))
    for a, b in zip(towns, towns[1:] + towns[:1], strict=True):
        middle = offset(((a[0] + b[0]) / 2, (a[1] + b[1]) / 2), rng.uniform(-1500, 1500), rng.uniform(-1500, 1500))
        region.lines.append(Line("motorway", f"Highway {rng.randrange(10, 99)}", (a, middle, b)))


def _add_states(region: Region, names: list[str], origin: Point) -> None:
    """The region's state and six around it. The first borders on all; of the others, most border on the next."""
    for i, name in enumerate(names):
        turn = 2 * math.pi * i / (len(names) - 1)
        spot = offset(origin, *((300_000 * math.sin(turn), 300_000 * math.cos(turn)) if i else (60_000, 0)))
        region.states.append(
            Place(f"relation/{160_000 + i * 113}", "state", name, "", "United States", *spot, {}, (), "", name)
        )
    ring = names[1:]
    region.borders = [(names[0], name) for name in ring]
    region.borders += [(a, b) for a, b in zip(ring, ring[1:] + ring[:1], strict=True) if (ord(a[-1]) + ord(b[0])) % 4]
    region.places += region.states
