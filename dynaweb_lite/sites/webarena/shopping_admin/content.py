"""The shop's database: all that the panel shows, a function of the seed. Seed 0 is WebArena's shop, scaled down."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence

from dynaweb_lite.sites.webarena.shopping_admin.facts import MONTHS, facts_of
from dynaweb_lite.sites.webarena.shopping_admin.history import (
    COUPON,
    COUPON_PERCENT,
    History,
    Order,
    make_reviews,
    make_search_terms,
)
from dynaweb_lite.sites.webarena.shopping_admin.stock import (
    CUSTOMER_FIELDS,
    PRODUCT_FIELDS,
    make_customers,
    make_products,
)

SCHEMA = f"""
CREATE TABLE store (name TEXT);
CREATE TABLE message (id INTEGER PRIMARY KEY, text TEXT, kind TEXT);
CREATE TABLE product ({", ".join(PRODUCT_FIELDS).replace("id,", "id INTEGER PRIMARY KEY,", 1)});
CREATE TABLE customer ({", ".join(CUSTOMER_FIELDS).replace("id,", "id INTEGER PRIMARY KEY,", 1)});
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id, name, email, created, status, before_hold, subtotal, shipping,
  tax, discount, coupon, total);
CREATE TABLE address (id INTEGER PRIMARY KEY, order_id, kind, name, street, street2, city, region, postcode, phone);
CREATE TABLE item (order_id, product_id, name, sku, price, qty);
CREATE TABLE invoice (id INTEGER PRIMARY KEY, order_id, created, total);
CREATE TABLE shipment (id INTEGER PRIMARY KEY, order_id, created);
CREATE TABLE track (id INTEGER PRIMARY KEY, shipment_id, carrier, number, created);
CREATE TABLE refund (id INTEGER PRIMARY KEY, order_id, created, amount);
CREATE TABLE comment (id INTEGER PRIMARY KEY, order_id, created, status, text, notified);
CREATE TABLE review (id INTEGER PRIMARY KEY, product_id, created, status, nickname, author, title, detail, stars);
CREATE TABLE search_term (id INTEGER PRIMARY KEY, words, results, uses, recency);
CREATE TABLE page (id INTEGER PRIMARY KEY, title, url_key, content, active);
CREATE TABLE rule (id INTEGER PRIMARY KEY, name, description, active, website_ids, customer_group_ids, coupon_code,
  simple_action, discount_amount, priority);
CREATE TABLE theme (id INTEGER PRIMARY KEY, title, path, parent);
CREATE TABLE viewed (product_id, day, views);
CREATE INDEX item_order ON item (order_id);
CREATE INDEX address_order ON address (order_id);
"""
PAGES = (
    ("404 Not Found", "no-route", "The page you asked for is gone. Try the search, or go back to the start."),
    ("Home Page", "home", "New arrivals, our favorite bags, and everything for the mat."),
    ("Enable Cookies", "enable-cookies", "The cart needs cookies. Here is how to switch them on in your browser."),
    ("Privacy Policy", "privacy-policy-cookie-restriction-mode", "What we keep about you, for how long, and why."),
    ("About us", "about-us", "We sew, test and run. This is who we are and where we work."),
    ("Customer Service", "customer-service", "Returns within 30 days, exchanges for free, answers within a day."),
)
RULES = (
    ("Buy 3 tee shirts and get the 4th free", "The cheapest of four tees is free", 1, "", "buy_x_get_y", 1),
    ("Spend $50 or more - shipping is free!", "Free shipping from $50", 0, "", "by_percent", 0),
    ("20% OFF Every $200-plus purchase!", "A fifth off large orders", 0, "", "by_percent", 20),
    ("15% with a code from the newsletter", "Once for each reader", 1, COUPON, "by_percent", COUPON_PERCENT),
)
THEMES = (
    (1, "Magento Blank", "Magento/blank", ""),
    (2, "Magento Backend", "Magento/backend", ""),
    (3, "Magento Luma", "Magento/luma", "Magento Blank"),
)


def make_database(seed: int) -> sqlite3.Connection:
    """The database of a seed, in memory."""
    rng = random.Random(f"shopping_admin-{seed}")
    facts = facts_of(seed, rng)
    products, customers = make_products(facts, rng), make_customers(facts, rng)
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(SCHEMA)
    insert(db, "store", [(facts["store"],)])
    insert(db, "product", [tuple(row.values()) for row in products])
    insert(db, "customer", [tuple(row.values()) for row in customers])
    add_orders(db, History(facts, products, customers, rng).orders, rng)
    insert(db, "review", make_reviews(facts, products, customers, rng))
    insert(db, "search_term", make_search_terms(facts, products, rng))
    insert(db, "viewed", make_views(products, rng))
    insert(db, "page", [(n, *page, 1) for n, page in enumerate(PAGES, 1)])
    groups = "General,Wholesale,Retailer"
    insert(db, "rule", [(n, *rule[:3], "Main Website", groups, *rule[3:], n) for n, rule in enumerate(RULES, 1)])
    insert(db, "theme", THEMES)
    db.commit()
    return db


def insert(db: sqlite3.Connection, table: str, rows: Iterable[Sequence]) -> None:
    """Write whole rows into a table."""
    rows = list(rows)
    db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def add_orders(db: sqlite3.Connection, orders: list[Order], rng: random.Random) -> None:
    """Orders with their addresses and items; invoices, shipments and refunds for those that got so far."""
    done = [o for o in orders if o.status in ("complete", "processing", "closed")]
    shipped = [o for o in orders if o.status == "complete"]
    refunded = [o for o in orders if o.status == "closed"]
    partly = rng.sample([o for o in shipped if len(o.lines) > 1], 9)
    insert(db, "orders", map(order_row, orders))
    insert(db, "address", address_rows(orders))
    insert(db, "item", [item for order in orders for item in item_rows(order)])
    insert(db, "invoice", [(n, o.id, o.created, o.total) for n, o in enumerate(done, 1)])
    insert(db, "shipment", [(n, o.id, o.created) for n, o in enumerate(shipped, 1)])
    amounts = [(o, o.total) for o in refunded] + [(o, first_price(o)) for o in partly]
    insert(db, "refund", [(n, o.id, o.created, amount) for n, (o, amount) in enumerate(amounts, 1)])


def first_price(order: Order) -> float:
    product, _ = order.lines[0]
    return product["special"] or product["price"]


def order_row(order: Order) -> tuple:
    c, extra = order.customer, order.extra
    tax, discount, coupon = extra.get("tax", 0.0), extra.get("discount", 0.0), extra.get("coupon", "")
    sums = (round(order.subtotal, 2), order.shipping, tax, discount, coupon, order.total)
    return (order.id, c["id"], c["name"], c["email"], order.created, order.status, "", *sums)


def address_rows(orders: list[Order]) -> list[tuple]:
    """Two for each order, alike at first."""
    rows = []
    for order in orders:
        c = order.customer
        place = (c["name"], c["street"], "", c["city"], c["region"], c["postcode"], c["phone"])
        rows += [(len(rows) + n, order.id, kind, *place) for n, kind in enumerate(("billing", "shipping"), 1)]
    return rows


def item_rows(order: Order) -> list[tuple]:
    return [(order.id, p["id"], p["name"], p["sku"], p["special"] or p["price"], n) for p, n in order.lines]


def make_views(products: list[dict], rng: random.Random) -> list[tuple]:
    """How often products were looked at, by day."""
    visible = [p for p in products if p["parent_id"] is None]
    return [
        (rng.choice(visible)["id"], f"{month}-{rng.randint(1, 28):02}", rng.randint(1, 9))
        for month in MONTHS
        for _ in range(8)
    ]
