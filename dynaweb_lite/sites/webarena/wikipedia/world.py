"""Articles about the map's invented region: its towns, universities, teams, bridges, people and films."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dynaweb_lite.sites.webarena.maps.places import Place
from dynaweb_lite.sites.webarena.maps.words import FIRST_NAMES, SURNAMES
from dynaweb_lite.sites.webarena.maps.world import Region

ANIMALS = "Badgers Falcons Herons Otters Ravens Stags Swifts Wolves Bisons Lynxes".split()
SPORTS = "basketball|baseball|handball|ice hockey".split("|")
TRADES = "glass clocks paper bells bicycles ceramics rope cheese lanterns pianos".split()
FIELDS = "mathematics|botany|astronomy|bridge building|medicine|linguistics".split("|")
IDEAS = "Principle Method Theorem Effect Notation Conjecture".split()
FILM_STARTS = "Last First Silent Crooked Borrowed Painted Hollow Winter".split()
FILM_ENDS = "Ferry Orchard Letter Station Garden Bridge Harvest Window".split()


@dataclass(frozen=True)
class Article:
    """A page: facts for its table, paragraphs, and sections; [[Title]] and [[Title|text]] are links.

    `place` is the id of what it is about on the map, `topic` what kind of thing an invented one is about.
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    text: tuple[str, ...] = ()
    sections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    place: str = ""
    topic: str = ""


def region_name(region: Region) -> str:
    return f"{region.rivers[0].split()[0]} Valley"


def region_articles(region: Region, seed: int) -> list[Article]:
    """All articles about a region, in a fixed order."""
    rng = random.Random(f"articles-{seed}")
    writer = Writer(region, rng)
    articles = [*writer.towns(), *writer.universities(), *writer.people(), *writer.teams()]
    articles += [*writer.bridges(), *writer.museums(), *writer.films(), *writer.rivers()]
    return [writer.overview(articles), *articles]


class Writer:
    """Writes one article after the other; names of people and films are used once."""

    def __init__(self, region: Region, rng: random.Random):
        self.region, self.rng, self.valley = region, rng, region_name(region)
        names = [f"{first} {last}" for first in FIRST_NAMES for last in SURNAMES]
        self.names = iter(rng.sample(names, 60))
        self.town_names = [town.name for town in region.towns]
        self.schools = [p for p in region.places if p.kind == "university" and p.town in self.town_names]

    def of_kind(self, kind: str) -> list[Place]:
        return [p for p in self.region.places if p.kind == kind and p.town in self.town_names]

    def towns(self) -> Iterator[Article]:
        for town, trade in zip(self.region.towns, self.rng.sample(TRADES, len(self.region.towns)), strict=True):
            number = self.region.towns.index(town)
            river = self.region.rivers[number % 2]
            population = f"{int(town.tags['population']):,}"
            facts = (
                ("State", self.region.state),
                ("County", town.area.split(",")[0]),
                ("Founded", str(self.rng.randrange(1690, 1890))),
                ("Population", population),
                ("Mayor", next(self.names)),
            )
            text = (
                f"{town.name} is a town on the [[{river}]] in the [[{self.valley}]], {self.region.state}.",
                f"It has long been known for its {trade}.",
            )
            sights = [
                p for p in self.region.places if p.town == town.name and p.kind in ("museum", "university", "bridge")
            ]
            lines = tuple(f"[[{p.name}]]" for p in sights)
            yield Article(town.name, facts, text, (("Sights", lines),), town.id, "town")

    def universities(self) -> Iterator[Article]:
        for school in self.schools:
            facts = (
                ("Town", school.town),
                ("Established", str(self.rng.randrange(1790, 1960))),
                ("Founder", next(self.names)),
                ("Students", f"{self.rng.randrange(1_200, 24_000, 10):,}"),
            )
            text = (f"{school.name} is a university in [[{school.town}]].", f"It was founded by {facts[2][1]}.")
            yield Article(school.name, facts, text, (), school.id, "university")

    def people(self) -> Iterator[Article]:
        for number in range(9):
            name, school = next(self.names), self.schools[number % len(self.schools)]
            born, town = self.rng.randrange(1840, 1960), self.rng.choice(self.town_names)
            study, idea = self.rng.choice(FIELDS), f"{name.split()[1]} {self.rng.choice(IDEAS)}"
            facts = (("Born", f"{born}, {town}"), ("Field", study.capitalize()), ("Alma mater", school.name))
            text = (
                f"{name} was born in [[{town}]] and became known in {study} for the {idea}.",
                f"As a student {name.split()[0]} attended [[{school.name}]].",
            )
            yield Article(name, facts, text, (), school.id, "person")

    def teams(self) -> Iterator[Article]:
        stadiums, animals = self.of_kind("stadium"), self.rng.sample(ANIMALS, len(self.region.towns))
        for stadium, animal in zip(stadiums, animals, strict=True):
            sport, team = self.rng.choice(SPORTS), f"{stadium.town} {animal}"
            seats, opened = f"{self.rng.randrange(4_000, 42_000, 50):,}", self.rng.randrange(1925, 2015)
            facts = (
                ("Sport", sport.capitalize()),
                ("Town", stadium.town),
                ("Founded", str(self.rng.randrange(1890, 1990))),
                ("Head coach", next(self.names)),
            )
            text = (
                f"The {team} are a {sport} team from [[{stadium.town}]].",
                f"Home games are at the [[{stadium.name}]].",
            )
            yield Article(team, facts, text, (), stadium.id, "team")
            facts = (("Town", stadium.town), ("Opened", str(opened)), ("Capacity", seats), ("Tenant", team))
            text = (f"The {stadium.name} is a venue in [[{stadium.town}]]. The [[{team}]] play there.",)
            yield Article(stadium.name, facts, text, (), stadium.id, "stadium")

    def bridges(self) -> Iterator[Article]:
        for bridge in self.of_kind("bridge"):
            river = self.region.rivers[self.town_names.index(bridge.town) % 2]
            facts = (
                ("Town", bridge.town),
                ("Crosses", river),
                ("Length", bridge.tags["length"].replace(" m", " metres")),
                ("Opened", bridge.tags["start_date"]),
                ("Designer", next(self.names)),
            )
            text = (f"The {bridge.name} crosses the [[{river}]] in [[{bridge.town}]].",)
            yield Article(bridge.name, facts, text, (), bridge.id, "bridge")

    def museums(self) -> Iterator[Article]:
        for museum in self.of_kind("museum"):
            visitors = f"{self.rng.randrange(9_000, 400_000, 500):,}"
            facts = (
                ("Town", museum.town),
                ("Opened", str(self.rng.randrange(1880, 2010))),
                ("Visitors a year", visitors),
                ("Director", next(self.names)),
            )
            text = (f"{museum.name} is a museum in [[{museum.town}]].",)
            yield Article(museum.name, facts, text, (), museum.id, "museum")

    def films(self) -> Iterator[Article]:
        titles = [f"The {start} {end}" for start in FILM_STARTS for end in FILM_ENDS]
        places = self.of_kind("museum") + self.schools
        for title, place in zip(self.rng.sample(titles, 6), self.rng.sample(places, 6), strict=True):
            director = next(self.names)
            facts = (("Year", str(self.rng.randrange(1960, 2022))), ("Director", director))
            text = (f"{title} is a film directed by {director}.",)
            filming = (f"Most of it was shot at [[{place.name}]] in [[{place.town}]].",)
            yield Article(title, facts, text, (("Filming", filming),), place.id, "film")

    def rivers(self) -> Iterator[Article]:
        for number, river in enumerate(self.region.rivers):
            towns = [name for i, name in enumerate(self.town_names) if i % 2 == number]
            facts = (("Length", f"{self.rng.randrange(90, 700)} kilometres"), ("State", self.region.state))
            text = (f"The {river} is a river of the [[{self.valley}]].",)
            yield Article(river, facts, text, (("Towns on the river", tuple(f"[[{t}]]" for t in towns)),), "", "river")

    def overview(self, articles: list[Article]) -> Article:
        """The region's own article, which lists the rest."""
        kinds = (("town", "Towns"), ("university", "Universities"), ("team", "Sports teams"), ("bridge", "Bridges"))
        sections = tuple(
            (heading, tuple(f"[[{a.title}]]" for a in articles if a.topic == topic)) for topic, heading in kinds
        )
        text = (f"The {self.valley} is a region of {self.region.state} with {len(self.town_names)} towns.",)
        return Article(self.valley, (("State", self.region.state),), text, sections, "", "region")
