"""What the map knows of a place, and the kinds of places: their tags, labels and the words that people search with."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    """A kind of place: OpenStreetMap's tag, the label in results, search words in the singular, weight in rankings."""

    tag: str
    label: str
    words: tuple[str, ...]
    group: str
    weight: int = 1


KINDS = {
    "city": Kind("place=city", "City", ("city",), "area", 9),
    "town": Kind("place=town", "Town", ("town",), "area", 8),
    "state": Kind("boundary=administrative", "State Boundary", ("state",), "area", 7),
    "village": Kind("place=village", "Village", ("village",), "area", 6),
    "university": Kind("amenity=university", "University", ("university", "college"), "study", 5),
    "airport": Kind("aeroway=aerodrome", "Airport", ("airport",), "move", 5),
    "national_park": Kind("boundary=national_park", "National Park", ("national park",), "green", 5),
    "park": Kind("leisure=park", "Park", ("park",), "green", 4),
    "stadium": Kind("leisure=stadium", "Stadium", ("stadium", "arena"), "sight", 4),
    "museum": Kind("tourism=museum", "Museum", ("museum",), "sight", 4),
    "concert_hall": Kind("amenity=theatre", "Theatre", ("theatre", "theater", "concert hall"), "sight", 4),
    "hospital": Kind("amenity=hospital", "Hospital", ("hospital",), "health", 4),
    "bridge": Kind("man_made=bridge", "Bridge", ("bridge",), "move", 4),
    "attraction": Kind("tourism=attraction", "Attraction", ("attraction", "sight"), "sight", 3),
    "memorial": Kind("historic=memorial", "Memorial", ("memorial",), "sight", 3),
    "library": Kind("amenity=library", "Library", ("library",), "study", 3),
    "cinema": Kind("amenity=cinema", "Cinema", ("cinema", "movie theater"), "sight", 3),
    "conference_centre": Kind("amenity=conference_centre", "Conference Centre", ("conference center",), "study", 3),
    "building": Kind("building=yes", "Building", ("building",), "study", 3),
    "laboratory": Kind("office=research", "Research Office", ("laboratory", "lab"), "study", 2),
    "school": Kind("amenity=school", "School", ("school",), "study", 2),
    "police": Kind("amenity=police", "Police", ("police", "police station"), "health", 2),
    "government": Kind("office=government", "Government Office", ("government office",), "health", 2),
    "post_office": Kind("amenity=post_office", "Post Office", ("post office",), "shop", 2),
    "hotel": Kind("tourism=hotel", "Hotel", ("hotel",), "stay", 2),
    "supermarket": Kind("shop=supermarket", "Supermarket", ("supermarket", "grocery", "grocery store"), "shop", 2),
    "department_store": Kind("shop=department_store", "Department Store", ("department store",), "shop", 2),
    "wholesale": Kind("shop=wholesale", "Wholesale", ("wholesale",), "shop", 2),
    "electronics": Kind("shop=electronics", "Electronics Shop", ("electronics", "electronics store"), "shop", 2),
    "convenience": Kind("shop=convenience", "Convenience Store", ("convenience store",), "shop", 2),
    "pharmacy": Kind("amenity=pharmacy", "Pharmacy", ("pharmacy", "drugstore"), "health", 2),
    "bank": Kind("amenity=bank", "Bank", ("bank",), "shop", 2),
    "restaurant": Kind("amenity=restaurant", "Restaurant", ("restaurant",), "food", 2),
    "fast_food": Kind("amenity=fast_food", "Fast Food", ("fast food",), "food", 2),
    "cafe": Kind("amenity=cafe", "Cafe", ("cafe", "coffee shop"), "food", 2),
    "bar": Kind("amenity=bar", "Bar", ("bar", "pub"), "food", 2),
    "fuel": Kind("amenity=fuel", "Fuel", ("gas station", "petrol station", "fuel"), "move", 2),
    "parking": Kind("amenity=parking", "Parking", ("parking", "parking lot", "car park"), "move", 1),
    "bus_stop": Kind("highway=bus_stop", "Bus Stop", ("bus stop",), "move", 1),
    "heliport": Kind("aeroway=heliport", "Heliport", ("heliport",), "move", 1),
    "house": Kind("building=house", "House", ("house",), "area", 1),
}

AREAS = ("city", "town", "village", "state")


@dataclass(frozen=True)
class Place:
    """A node, way or relation. `street` is the first part of its address, `area` the rest."""

    id: str
    kind: str
    name: str
    street: str
    area: str
    lat: float
    lon: float
    tags: dict[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    town: str = ""
    state: str = ""

    @property
    def label(self) -> str:
        """The whole address line, as a search result shows it."""
        return ", ".join(part for part in (self.name, self.street, self.area) if part)

    @property
    def all_tags(self) -> dict[str, str]:
        """The tags as OpenStreetMap writes them, by key."""
        number, _, street = self.street.rpartition(", ")
        postcode = re.search(r"\b\d{5}\b", self.area)
        key, value = KINDS[self.kind].tag.split("=")
        tags = {"name": self.name, key: value, "addr:housenumber": number, "addr:street": street}
        tags |= {"addr:city": self.town, "addr:state": self.state, "addr:postcode": postcode[0] if postcode else ""}
        return {key: text for key, text in sorted((tags | self.tags).items()) if text}


STOP_WORDS = frozenset("the of a an in at and on for to".split())
SHORT_FORMS = {
    "ave": "avenue",
    "st": "street",
    "blvd": "boulevard",
    "rd": "road",
    "dr": "drive",
    "ln": "lane",
    "univ": "university",
    "intl": "international",
    "centre": "center",
    "pa": "pennsylvania",
    "ny": "new york",
    "nyc": "new york",
    "nj": "new jersey",
    "ma": "massachusetts",
    "usa": "united states",
}


def words_of(text: str) -> list[str]:
    """The words of a text as the search compares them: no accents, capitals, short forms, plurals or little words."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower().replace("'", "")
    found = " ".join(SHORT_FORMS.get(word, word) for word in re.findall(r"[a-z0-9]+", plain)).split()
    return [singular(word) for word in found if word not in STOP_WORDS]


def singular(word: str) -> str:
    """A plural's singular, by its ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
