"""What a shop is made from: for seed 0 the facts that WebArena's tasks ask for, for other seeds invented ones.

Both have the form of data/shopping_admin.json, so that stock and history are made by one road.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
WORDS = json.loads((DATA / "shopping_admin_words.json").read_text(encoding="utf-8"))
MONTHS = [f"{year}-{month:02}" for year, last in ((2022, 12), (2023, 5)) for month in range(1, last + 1)]
SIZES = {
    "top": ("XS", "S", "M", "L", "XL"),
    "waist": ("32", "33", "34", "36"),
    "short": ("28", "29"),
}
"""Sizes by the shape of a garment, in the order of their variants."""


def facts_of(seed: int, rng: random.Random) -> dict:
    """The facts of a seed."""
    if seed == 0:
        return json.loads((DATA / "shopping_admin.json").read_text(encoding="utf-8"))
    return invent(rng)


def invent(rng: random.Random) -> dict:
    """Facts of a shop that WebArena does not know."""
    people = invent_people(rng, 60, set())
    gear, configurables = invent_gear(rng), invent_configurables(rng)
    names = [person[0] for person in rng.sample(people, 6)]
    return {
        "store": rng.choice(WORDS["stores"]),
        "gear": gear,
        "configurables": configurables,
        "cheaper": [row[2] for row in rng.sample(configurables, 4)],
        "stock": {f"{row[2]}-{SIZES[row[4]][0]}-{row[5].split()[0]}": n for n, row in enumerate(configurables[:4])},
        "round_stock": [],
        "customers": people,
        "customer_count": len(people),
        "first_day": "2022-01-02",
        "complete_by_month": {month: rng.randint(5, 9) for month in MONTHS},
        "pending_count": 12,
        "order_count": 240,
        "complete_by_customer": dict(zip(names[:5], (9, 8, 7, 6, 5), strict=True)),
        "canceled_by_customer": {names[5]: 8},
        "orders": [],
        "sales": invent_sales(rng, gear),
        "review_days": ["2023-03-20", "2023-04-24"],
        "approved_reviews": 174,
        "reviews": [],
        "pending_reviews": [175, 176, 178, 179, 180, 181, 183, 184, 185, 186, 187, 188],
        "unreviewed": [],
        "search_terms": [[term, 20 - n] for n, term in enumerate(rng.sample(WORDS["search_words"], 16))],
    }


def invent_people(rng: random.Random, count: int, taken: set[str]) -> list[list[str]]:
    """Customers with names that are not taken: name, e-mail, phone, street, city, state, postcode."""
    pairs = [(first, last) for first in WORDS["first_names"] for last in WORDS["last_names"]]
    people = []
    for first, last in rng.sample(pairs, count + len(taken)):
        if f"{first} {last}" in taken or len(people) == count:
            continue
        city, state, postcode = rng.choice(WORDS["cities"])
        address = f"{first}.{last}@{rng.choice(WORDS['mail_hosts'])}".lower()
        phone = f"{rng.randint(201, 989)}555{rng.randint(1000, 9999)}"
        street = f"{rng.randint(2, 980)} {rng.choice(WORDS['streets'])}"
        people.append([f"{first} {last}", address, phone, street, city, state, f"{postcode}{rng.randint(10, 99)}"])
    return people


def invent_gear(rng: random.Random) -> list[list]:
    makers = rng.sample(WORDS["makers"], 18)
    rows = []
    for number, maker in enumerate(makers, 1):
        kind, low, high = WORDS["gear"][number % len(WORDS["gear"])]
        rows.append(
            [number, f"{maker} {rng.choice(WORDS['styles'])} {kind}", f"24-G{number:02}", rng.randint(low, high)]
        )
    return rows


def invent_configurables(rng: random.Random) -> list[list]:
    names = rng.sample([(maker, style) for maker in WORDS["makers"] for style in WORDS["styles"]], 22)
    rows, product_id = [], 40
    for number, (maker, style) in enumerate(names):
        kind, shape, category, low, high = WORDS["garments"][number % len(WORDS["garments"])]
        colors = sorted(rng.sample(WORDS["colors"], 3))
        product_id += len(SIZES[shape]) * len(colors) + 1
        sku = f"{category[0]}{kind[0]}{number + 1:02}"
        rows.append(
            [product_id, f"{maker} {style} {kind}", sku, rng.randint(low, high), shape, " ".join(colors), category]
        )
    return rows


def invent_sales(rng: random.Random, gear: list[list]) -> dict[str, dict[str, int]]:
    """Best sellers whose rank is clear in each year: pieces by stock-keeping unit and month."""
    skus = [row[2] for row in rng.sample(gear, 8)]
    sales = {}
    for months, group, totals in ((MONTHS[:12], skus[:3], (12, 9, 6)), (MONTHS[12:], skus[3:], (10, 9, 8, 7, 6))):
        for sku, total in zip(group, totals, strict=True):
            by_month: dict[str, int] = {}
            for _ in range(total):
                month = rng.choice(months)
                by_month[month] = by_month.get(month, 0) + 1
            sales[sku] = by_month
    return sales
