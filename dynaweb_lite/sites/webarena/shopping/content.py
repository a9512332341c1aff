"""What the shop shows, as a function of a seed: goods, reviews, the customer and what they have ordered.

Seed 0 is One Stop Market with Emma Lopez, and holds the facts of data/shopping.json that WebArena's tasks ask for,
among made-up goods. Other seeds have made-up goods, customers and orders only. Money is in cents, a date reads
2023-05-17.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from dynaweb_lite.sites.webarena.shopping.shelves import Product, Shelves, read_data, review_dates

TODAY = "2023-06-12"
SHIPPING_CENTS = 500
"""Flat rate, for each piece."""
PHONE = "6505551212"
ORDERS_OF_OTHERS, CHEAP_CENTS = 24, 12_000

SCHEMA = f"""
CREATE TABLE customer (first TEXT, last TEXT, email TEXT, subscribed INTEGER);
CREATE TABLE category (path TEXT PRIMARY KEY, parent TEXT, name TEXT, position INTEGER);
CREATE TABLE product (id INTEGER PRIMARY KEY, url_key TEXT UNIQUE, sku TEXT UNIQUE, name TEXT, cents INTEGER,
  category TEXT, about TEXT, options TEXT, in_stock INTEGER);
CREATE TABLE review (id INTEGER PRIMARY KEY, product_id INTEGER, stars INTEGER, nickname TEXT, title TEXT, detail TEXT,
  created TEXT, approved INTEGER, is_own INTEGER);
CREATE INDEX review_of ON review (product_id);
CREATE VIEW rated AS SELECT product.*, count(review.id) AS reviews, CAST(round(avg(stars) * 20) AS INTEGER) AS rating
  FROM product LEFT JOIN review ON product_id = product.id AND approved GROUP BY product.id;
CREATE TABLE address (id INTEGER PRIMARY KEY, first TEXT, last TEXT, company TEXT, phone TEXT, street1 TEXT,
  street2 TEXT, city TEXT, region TEXT, postcode TEXT, country TEXT, is_billing INTEGER, is_shipping INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, created TEXT, status TEXT, address TEXT, billing TEXT);
CREATE TABLE order_item (id INTEGER PRIMARY KEY, order_id INTEGER, product_id INTEGER, name TEXT, sku TEXT,
  cents INTEGER, quantity INTEGER, options TEXT);
CREATE INDEX item_of ON order_item (order_id);
CREATE VIEW bill AS SELECT orders.*, sum(cents * quantity) AS subtotal, sum(quantity) * {SHIPPING_CENTS} AS shipping,
  sum((cents + {SHIPPING_CENTS}) * quantity) AS total
  FROM orders JOIN order_item ON order_id = orders.id GROUP BY orders.id;
CREATE TABLE cart (id INTEGER PRIMARY KEY, product_id INTEGER, options TEXT, quantity INTEGER,
  UNIQUE (product_id, options));
CREATE TABLE wish (id INTEGER PRIMARY KEY, product_id INTEGER UNIQUE);
CREATE TABLE checkout (address_id INTEGER);
CREATE TABLE subscriber (email TEXT PRIMARY KEY);
CREATE TABLE letter (name TEXT, email TEXT, phone TEXT, comment TEXT);
CREATE TABLE message (kind TEXT, text TEXT);
CREATE TABLE token (value TEXT);
"""


def make_database(seed: int) -> sqlite3.Connection:
    """The shop's seeded database, in memory."""
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(SCHEMA)
    rng = random.Random(f"shopping-{seed}")
    shelves = Shelves(rng)
    facts = read_data("shopping") if seed == 0 else {}
    products = shelves.fill() + [shelves.known(row) for row in facts.get("products", ())]
    rng.shuffle(products)
    customer = facts.get("customer") or shelves.customer()
    _insert(db, "category", [(p, p.rpartition("/")[0], name, i) for i, (p, name) in enumerate(shelves.categories)])
    _insert_goods(db, products, rng)
    _insert_customer(db, customer)
    _insert_orders(db, facts.get("orders") or list(_made_orders(rng)), products, customer, rng)
    in_stock = [i for i, p in enumerate(products, 1) if p.in_stock and not p.known and not p.options]
    _insert(db, "wish", enumerate(rng.sample(in_stock, 2), 1))
    db.commit()
    return db


def _insert(db: sqlite3.Connection, table: str, rows) -> None:
    for row in rows:
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _insert_goods(db: sqlite3.Connection, products: Sequence[Product], rng: random.Random) -> None:
    for number, p in enumerate(products, 1):
        options = json.dumps(p.options)
        _insert(db, "product", [(number, p.url_key, p.sku, p.name, p.cents, p.category, p.about, options, p.in_stock)])
        for (stars, *texts), created in zip(p.reviews, review_dates(len(p.reviews), rng), strict=True):
            _insert(db, "review", [(None, number, stars, *texts, created, 1, 0)])


def _insert_customer(db: sqlite3.Connection, customer: dict) -> None:
    first, last, email, address = (customer[key] for key in ("first", "last", "email", "address"))
    _insert(db, "customer", [(first, last, email, 0)])
    _insert(db, "address", [(26, first, last, "", PHONE, *address, "United States", 1, 1)])


def _made_orders(rng: random.Random) -> Iterator[tuple]:
    """Orders in the form of data/shopping.json, each of one to three of the cheaper goods."""
    day, numbers = date(2022, 2, 10), rng.sample(range(110, 190), ORDERS_OF_OTHERS)
    for n, number in enumerate(numbers):
        day += timedelta(days=rng.randint(8, 28))
        newest = n >= ORDERS_OF_OTHERS - 2
        status = rng.choices(("Complete", "Canceled", "Pending"), (1, 3, 6) if newest else (8, 2, 0))[0]
        yield (
            number,
            str(min(day, date(2023, 5, 28) + timedelta(days=n - ORDERS_OF_OTHERS))),
            status,
            [rng.randint(1, 3)],
        )


def _insert_orders(db, orders: Sequence, products: Sequence[Product], customer: dict, rng: random.Random) -> None:
    name = f"{customer['first']} {customer['last']}"
    street, _, city, region, postcode = customer["address"]
    address = f"{name}, {street}, {city}, {region}, {postcode}, United States"
    for number, created, status, items in orders:
        _insert(db, "orders", [(number, created, status, address, address)])
        for index, options in _items(items, products, rng):
            p = products[index]
            row = (None, number, index + 1, p.name, p.sku, p.cents, 1, json.dumps(options))
            _insert(db, "order_item", [row])


def _items(items: Sequence, products: Sequence[Product], rng: random.Random) -> Iterator[tuple[int, dict]]:
    """(index of the product, options): an item is an SKU, an SKU with options, or a number of goods at random."""
    by_sku = {p.sku: i for i, p in enumerate(products)}
    cheap = [i for i, p in enumerate(products) if not p.known and p.cents < CHEAP_CENTS]
    for item in items:
        if isinstance(item, int):
            for index in rng.sample(cheap, item):
                yield index, {key: rng.choice(values) for key, values in products[index].options.items()}
        else:
            sku, options = (item, {}) if isinstance(item, str) else item
            yield by_sku[sku], options
