"""Seeded content of the replicas: everything a site shows is a function of a seed. Seed 0 is the canonical site.

A style goes with the seed too: labels, order of the page, and what adding to the cart does. The canonical shop
confirms on a page of its own, which no other seed does, so that a model trained on other seeds has dynamics left to
learn.
"""

from __future__ import annotations

import itertools
import random
import sqlite3
from dataclasses import dataclass

from dynaweb_lite.sites import words

SHOP_SCHEMA = """
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, slug TEXT UNIQUE, price TEXT, rating INTEGER, brand TEXT,
                      collection TEXT, stock INTEGER);
CREATE TABLE cart (product_id INTEGER PRIMARY KEY, quantity INTEGER);
CREATE TABLE wish (product_id INTEGER PRIMARY KEY);
CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total TEXT);
CREATE TABLE style (key TEXT PRIMARY KEY, value TEXT);
"""
FORUM_SCHEMA = """
CREATE TABLE forum (name TEXT PRIMARY KEY, subscribed INTEGER DEFAULT 0);
CREATE TABLE post (id INTEGER PRIMARY KEY, forum TEXT, title TEXT, slug TEXT, body TEXT, author TEXT, points INTEGER,
                   vote INTEGER DEFAULT 0);
CREATE TABLE comment (id INTEGER PRIMARY KEY, post_id INTEGER, author TEXT, body TEXT);
CREATE TABLE style (key TEXT PRIMARY KEY, value TEXT);
"""
SHOP_STYLES = {
    "cart_label": ("My Cart", "Basket", "Shopping Bag"),
    "add_label": ("Add to Cart", "Add to Basket", "Buy"),
    "wish_label": ("Add to Wish List", "Save for Later", "Add to Favorites"),
    "account_label": ("My Account", "Profile", "Account"),
    "after_add": ("stay", "cart"),
    "menu_first": ("yes", "no"),
    "facts_order": ("price rating brand", "brand price rating", "rating brand price"),
}
SHOP_CANONICAL = {
    "cart_label": "My Cart",
    "add_label": "Add to Cart",
    "wish_label": "Add to Wish List",
    "account_label": "My Account",
    "after_add": "confirm",
    "menu_first": "no",
    "facts_order": "price rating brand",
}
FORUM_STYLES = {
    "forums_label": ("Forums", "Communities", "Boards"),
    "submit_label": ("Submit", "New Post", "Write"),
    "upvote_label": ("Upvote", "Like"),
    "reply_label": ("Post", "Reply"),
    "search_first": ("yes", "no"),
    "author_first": ("yes", "no"),
}
FORUM_CANONICAL = {key: values[0] for key, values in FORUM_STYLES.items()} | {"search_first": "no"}


@dataclass(frozen=True)
class Size:
    """How much a site holds: products or posts, collections or forums, and how many of them a page lists."""

    items: int = 40
    groups: int = 4
    page: int = 6


SHOP_SIZE, FORUM_SIZE = Size(40, 4, 6), Size(48, 8, 6)


def slugify(text: str) -> str:
    """A title as it stands in a URL: lower case, hyphens."""
    return "-".join(text.lower().split())


def _style(rng: random.Random, seed: int, choices: dict, canonical: dict) -> list[tuple[str, str]]:
    drawn = {key: rng.choice(values) for key, values in choices.items()}
    return list((canonical if seed == 0 else drawn).items())


def shop_database(seed: int) -> sqlite3.Connection:
    """A shop: products in collections, orders, an empty cart and wish list."""
    rng = random.Random(f"shop-{seed}")
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(SHOP_SCHEMA)
    names = rng.sample([f"{a} {n}" for a, n in itertools.product(words.ADJECTIVES, words.NOUNS)], SHOP_SIZE.items)
    collections = rng.sample(words.COLLECTIONS, SHOP_SIZE.groups)
    for i, name in enumerate(names, 1):
        price = f"${rng.randint(3, 99)}.{rng.choice(['00', '50', '99'])}"
        row = (i, name, slugify(name), price, rng.randint(10, 20) * 5, rng.choice(words.BRANDS))
        db.execute("INSERT INTO product VALUES (?,?,?,?,?,?,?,?)", (*row, collections[i % len(collections)], 1))
    numbers = sorted(rng.sample(range(100, 200), 6))
    totals = [f"${rng.randint(10, 99)}.{rng.choice(['00', '50', '99'])}" for _ in numbers]
    db.executemany(
        "INSERT INTO orders VALUES (?,?,?)",
        [(n, rng.choice(words.STATUSES), t) for n, t in zip(numbers, totals, strict=True)],
    )
    customer = f"{rng.choice(words.FIRST_NAMES)} {rng.choice(words.LAST_NAMES)}"
    style = [*_style(rng, seed, SHOP_STYLES, SHOP_CANONICAL), ("customer", customer)]
    db.executemany("INSERT INTO style VALUES (?,?)", [*style, ("collections", " ".join(collections))])
    db.commit()
    return db


def forum_database(seed: int) -> sqlite3.Connection:
    """A forum: posts with authors, points and comments in forums named after towns."""
    rng = random.Random(f"forum-{seed}")
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(FORUM_SCHEMA)
    forums = rng.sample(words.FORUMS, FORUM_SIZE.groups)
    db.executemany("INSERT INTO forum (name) VALUES (?)", [(f,) for f in sorted(forums)])
    parts = itertools.product(words.TITLE_STARTS, words.TITLE_MIDDLES, words.TITLE_ENDS)
    titles = rng.sample([" ".join(p) for p in parts], FORUM_SIZE.items)
    for i, title in enumerate(titles, 1):
        row = (i, forums[i % len(forums)], title, slugify(title), rng.choice(words.COMMENTS), rng.choice(words.USERS))
        db.execute("INSERT INTO post VALUES (?,?,?,?,?,?,?,0)", (*row, rng.randint(2, 99)))
        for _ in range(rng.randint(0, 1)):
            comment = (i, rng.choice(words.USERS), rng.choice(words.COMMENTS))
            db.execute("INSERT INTO comment (post_id, author, body) VALUES (?,?,?)", comment)
    style = [*_style(rng, seed, FORUM_STYLES, FORUM_CANONICAL), ("user", rng.choice(words.USERS))]
    db.executemany("INSERT INTO style VALUES (?,?)", style)
    db.commit()
    return db


DATABASES = {"shopping": shop_database, "reddit": forum_database}
