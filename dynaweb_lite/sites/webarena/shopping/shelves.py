"""The shop's goods as a function of a seed: products on every shelf, what they cost, and what people say of them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
ON_SHELF, SOLD_OUT_SHARE = 8, 0.04
FIRST_REVIEW = date(2021, 4, 5)


@dataclass
class Product:
    """A product before it has an id. Prices in cents; `reviews` hold (stars, nickname, title, text), oldest first."""

    name: str
    url_key: str
    sku: str
    cents: int
    category: str
    about: str
    options: dict[str, list[str]] = field(default_factory=dict)
    reviews: list[tuple[int, str, str, str]] = field(default_factory=list)
    in_stock: bool = True
    known: bool = False


def read_data(name: str) -> dict:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def slug(name: str) -> str:
    """A name as Magento spells it in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


class Shelves:
    """Makes products with words from data/shopping_shelves.json and one random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.words = rng, read_data("shopping_shelves")
        heads, tails = self.words["brand_heads"].split(), self.words["brand_tails"].split()
        self.brands = rng.sample([head + tail for head in heads for tail in tails], 30)
        self.people = [*self._list("nicknames"), *(f"{n} {c}." for n in self._list("first_names", " ") for c in "BKMS")]

    def _list(self, key: str, by: str = "; ") -> list[str]:
        return self.words[key].split(by)

    @property
    def categories(self) -> list[tuple[str, str]]:
        """(path, name) of every category, in the menu's order."""
        return [(path, name) for path, name, *_ in self.words["categories"]]

    def fill(self) -> list[Product]:
        """`ON_SHELF` products for each category that has a shelf."""
        made: dict[str, Product] = {}
        for path, _, *shelf in self.words["categories"]:
            if shelf:
                terms, nouns = shelf[0], shelf[1].split("; ")
                for n in range(ON_SHELF):
                    product = self._product(path, terms, nouns[n % len(nouns)])
                    made.setdefault(product.url_key, product)
        return list(made.values())

    def _product(self, path: str, terms: str, noun: str) -> Product:
        low, high, details, *size = terms.split()
        rng = self.rng
        quality, detail = rng.choice(self._list("qualities")), rng.choice(self.words["details"][details].split("; "))
        name = f"{rng.choice(self.brands)} {quality} {noun}, {detail}"
        cents = 100 * round(rng.triangular(int(low), int(high), int(low))) + rng.choice((-1, -5, 0, 49, 25))
        return Product(
            name, slug(name), self.sku(), cents, path, self._about(noun),
            {"Size": self.words["options"][size[0]].split("; ")} if size else {},
            self.reviews(self._stars()), rng.random() > SOLD_OUT_SHARE,
        )  # fmt: skip

    def _about(self, noun: str) -> str:
        rng = self.rng
        weight, months = rng.randint(2, 40) / 10, rng.choice((6, 12, 24, 36))
        country = rng.choice(self._list("countries"))
        return (
            f"{noun}, {rng.choice(self._list('purposes'))}.\nWeight: {weight} pounds\nWarranty: {months} months\n"
            f"Made in: {country}"
        )

    def sku(self) -> str:
        return "B0" + "".join(self.rng.choices("0123456789BCDFGHJKLMNPQRSTVWXYZ", k=8))

    def _stars(self) -> list[int]:
        """Stars of a product's reviews. No product with five reviews or more is without a flaw."""
        stars = self.rng.choices((5, 4, 3, 2, 1), (5, 4, 2, 1, 1), k=self.rng.choice((0, 0, 1, 2, 3, 4, 6, 7)))
        return [*stars[:-1], 3] if len(stars) > 4 and set(stars) == {5} else stars

    def reviews(self, stars: Sequence[int]) -> list[tuple[int, str, str, str]]:
        """A review for each number of stars, by different people, under different titles where there are enough."""
        pools = {int(n): self.rng.sample(texts, len(texts)) for n, texts in self.words["reviews"].items()}
        people = self.rng.sample(self.people, len(stars))
        texts = [(pools[n].pop() if len(pools[n]) > 1 else pools[n][0]) for n in stars]
        return [(n, person, *text) for n, person, text in zip(stars, people, texts, strict=True)]

    def known(self, row: dict) -> Product:
        """A product that WebArena's tasks name, from data/shopping.json."""
        reviews = [tuple(r) for r in row["reviews"]] if "reviews" in row else self.reviews(row["stars"])
        return Product(
            row["name"], row.get("key") or slug(row["name"]), row.get("sku") or self.sku(), round(row["price"] * 100),
            row["category"], row["about"], row.get("options", {}), reviews, known=True,
        )  # fmt: skip

    def customer(self) -> dict:
        """Who is logged in: first and last name, email, address (street, street 2, city, state, zip)."""
        rng, places = self.rng, self.words["cities"]
        first, last = rng.choice(self._list("first_names", " ")), rng.choice(self._list("last_names", " "))
        address = [rng.choice(self._list("streets")), "", *rng.choice(places)]
        email = f"{first}.{last}@example.com".lower()
        return {"first": first, "last": last, "email": email, "address": address}


def review_dates(count: int, rng: random.Random) -> list[str]:
    """Ascending dates, as 2022-05-31, for so many reviews of a product."""
    return sorted(str(FIRST_REVIEW + timedelta(days=rng.randrange(760))) for _ in range(count))
