"""Products and customers as rows of the database, made from the facts of a seed."""

from __future__ import annotations

import random
import re
from itertools import product as pairs

from dynaweb_lite.sites.webarena.shopping_admin.facts import SIZES, WORDS, invent_people

PRODUCT_FIELDS = (
    "id name sku type parent_id category size color price special qty in_stock status sale description slug".split()
)
CUSTOMER_FIELDS = "id name email phone street city region postcode group_name since".split()
GROUPS = ("General", "Wholesale", "Retailer")
ENABLED, DISABLED = 1, 2
OFF_SHARE = 0.2
"""What the catalogue price rule takes off the pants that `cheaper` names."""


def slug_of(name: str) -> str:
    """The last part of a product's address in the store."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def make_products(facts: dict, rng: random.Random) -> list[dict]:
    """All products: gear, and garments with a simple product for each size and color before them."""
    rows = [_product(id_, name, sku, price, rng, category="Gear") for id_, name, sku, price in facts["gear"]]
    for configurable in facts["configurables"]:
        rows += _garment(configurable, facts, rng)
    return rows


def _garment(configurable: list, facts: dict, rng: random.Random) -> list[dict]:
    id_, name, sku, price, shape, colors, category = configurable
    special = round(price * (1 - OFF_SHARE), 2) if sku in facts["cheaper"] else None
    variants = list(pairs(SIZES[shape], colors.split()))
    rows = []
    for number, (size, color) in enumerate(variants, id_ - len(variants)):
        row = _product(number, f"{name}-{size}-{color}", f"{sku}-{size}-{color}", price, rng, category=category)
        row |= {"parent_id": id_, "size": size, "color": color, "special": special, "description": ""}
        if sku in facts["round_stock"]:
            row["qty"] = 100
        row["qty"] = facts["stock"].get(row["sku"], row["qty"])
        rows.append(row | {"in_stock": int(row["qty"] > 0)})
    parent = _product(id_, name, sku, price, rng, category=category, type="configurable", qty=None)
    return [*rows, parent | {"special": special}]


def _product(id_: int, name: str, sku: str, price: float, rng: random.Random, **values) -> dict:
    """A product in stock, with a description of our own."""
    words = f"Made of {rng.choice(WORDS['fabrics'])}" if values["category"] != "Gear" else "Built to last"
    row = dict.fromkeys(PRODUCT_FIELDS) | {
        "id": id_, "name": name, "sku": sku, "price": float(price), "slug": slug_of(name), "type": "simple",
        "qty": rng.choice((100, 100, 100, rng.randint(24, 95))), "in_stock": 1, "status": ENABLED, "sale": 0,
        "description": f"{words} for {rng.choice(WORDS['uses'])}. Comes in a bag of recycled paper.",
    }  # fmt: skip
    return row | values


def make_customers(facts: dict, rng: random.Random) -> list[dict]:
    """Those that the facts name, and others up to their count."""
    known = facts["customers"]
    others = invent_people(rng, facts["customer_count"] - len(known), {person[0] for person in known})
    rows = []
    for number, person in enumerate([*known, *others], 1):
        group = GROUPS[0] if rng.random() < 0.85 else rng.choice(GROUPS[1:])
        since = f"2021-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} 10:{rng.randint(10, 59)}:00"
        rows.append(dict(zip(CUSTOMER_FIELDS, [number, *person, group, since], strict=True)))
    return rows
