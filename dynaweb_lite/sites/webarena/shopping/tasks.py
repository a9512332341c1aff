"""Templates of further tasks on the shop: finding facts and pages, shopping, and keeping an account in order."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise

from dynaweb_lite.sites.webarena.generator import Instance, Template, address, answer, content
from dynaweb_lite.sites.webarena.shopping import catalog, orders
from dynaweb_lite.sites.webarena.shopping.page import long_date, money
from dynaweb_lite.sites.webarena.shopping.reviews import ON_PAGE as REVIEWS_ON_PAGE
from dynaweb_lite.sites.webarena.shopping.shelves import read_data

SAMPLE = 24
NEXT = "click [link 'Next']"
HISTORY = ("click [link 'My Account']", "click [link 'My Orders']")
BY_PRICE = ("select [combobox 'Sort By'] [Price]", "click [button 'Sort']")
ITEMS_OF = "SELECT i.sku, in_stock FROM order_item i JOIN product p ON p.id = product_id WHERE order_id = ?"
TO_ORDER = (
    "click [link 'Proceed to Checkout']", "click [button 'Next']", "click [button 'Place Order']", "stop []",
)  # fmt: skip
NEWEST_ORDER = "func:shopping_get_latest_order_url()"
ITEMS = 'document.querySelector(".order-details-items.ordered").outerText'
WHERE = ("billing", "shipping")
WISHES = "document.querySelector('.products-grid.wishlist').outerText"


def products(db: sqlite3.Connection, rng: random.Random, condition: str = "1") -> list[sqlite3.Row]:
    """Goods that fit a condition and whose names can be written in a script."""
    rows = db.execute(f"SELECT * FROM rated WHERE ({condition}) ORDER BY id").fetchall()
    named = [p for p in rows if not set(p["name"]) & set("[]|")]
    return rng.sample(named, min(SAMPLE, len(named)))


SIMPLE = "in_stock AND options = '{}'"


def to_product(product: sqlite3.Row) -> tuple[str, str]:
    return f"type [searchbox 'Search'] [{product['name']}] [1]", f"click [link '{product['name']}']"


def to_category(db: sqlite3.Connection, path: str) -> tuple[str, ...]:
    return tuple(f"click [link '{c['name']}']" for c in catalog.trail_of(db, path))


def shelves(db: sqlite3.Connection) -> Iterator[tuple[str, str, list[sqlite3.Row]]]:
    """(path, names from the top, goods by price) of each category without subcategories whose prices all differ."""
    leaves = "SELECT path FROM category WHERE path NOT IN (SELECT parent FROM category) ORDER BY position"
    for (path,) in db.execute(leaves).fetchall():
        goods = db.execute("SELECT * FROM rated WHERE category = ? ORDER BY cents, id", (path,)).fetchall()
        if goods[0]["cents"] < goods[1]["cents"] and goods[-2]["cents"] < goods[-1]["cents"]:
            yield path, " > ".join(c["name"] for c in catalog.trail_of(db, path)), goods


def each_order(db: sqlite3.Connection) -> Iterator[tuple[sqlite3.Row, tuple[str, ...]]]:
    """Each order and the way to the page of the history that lists it."""
    for n, order in enumerate(db.execute(orders.NEWEST_FIRST).fetchall()):
        yield order, (*HISTORY, *[NEXT] * (n // orders.ON_PAGE))


def open_order(order: sqlite3.Row) -> str:
    return f"click [link '{order['id']:09d}']"


def order_total(db, rng):
    for order, way in each_order(db):
        total = money(order["total"])
        yield Instance({"number": f"{order['id']:09d}"}, answer(exact=total), (*way, f"stop [{total}]"))


def fact(label: str) -> Callable[[sqlite3.Connection, random.Random], Iterator[Instance]]:
    """Instances that ask for what stands beside a label in the details of a product."""

    def instances(db, rng):
        for p in products(db, rng, f"about LIKE '%{label}: %'"):
            value = dict(line.split(": ", 1) for line in p["about"].split("\n")[1:])[label]
            yield Instance({"product": p["name"]}, answer(exact=value), (*to_product(p), f"stop [{value}]"))

    return instances


def review_author(db, rng):
    for p in products(db, rng, "reviews > 1"):
        rows = db.execute(
            "SELECT * FROM review WHERE product_id = ? ORDER BY created DESC, id DESC", (p["id"],)
        ).fetchall()
        titles = [r["title"] for r in rows]
        unique = [n for n, title in enumerate(titles) if titles.count(title) == 1 and '"' not in title]
        if not unique:
            continue
        n = rng.choice(unique)
        name, turn = rows[n]["nickname"], [NEXT] * (n // REVIEWS_ON_PAGE)
        script = (*to_product(p), f"click [link 'Reviews ({len(rows)})']", *turn, f"stop [{name}]")
        yield Instance({"title": titles[n], "product": p["name"]}, answer(exact=name), script)


def dearest(db, rng):
    for path, names, goods in shelves(db):
        price = money(goods[-1]["cents"])
        script = (*to_category(db, path), *BY_PRICE, "click [link 'Set Descending Direction']", f"stop [{price}]")
        yield Instance({"category": names}, answer(exact=price), script)


def sorted_shelf(db, rng):
    for path, names, _ in shelves(db):
        url = f"__SHOPPING__/{path}.html?product_list_order=price&product_list_dir=desc"
        script = (*to_category(db, path), *BY_PRICE, "click [link 'Set Descending Direction']", "stop []")
        yield Instance({"category": names}, address(url), script)


def priced_shelf(db, rng):
    for path, names, goods in shelves(db):
        low, high = sorted(rng.sample(range(5, max(60, goods[-1]["cents"] // 100), 5), 2))
        fields = [f"type [textbox 'Price {end}'] [{price}] [0]" for end, price in (("from", low), ("to", high))]
        script = (*to_category(db, path), *fields, "click [button 'Filter by Price']", "stop []")
        values = {"low": low, "high": high, "category": names}
        yield Instance(values, address(f"__SHOPPING__/{path}.html?price={low}-{high}"), script)


def cheapest_page(db, rng):
    for path, names, goods in shelves(db):
        if not set(goods[0]["name"]) & set("[]|"):
            script = (*to_category(db, path), *BY_PRICE, f"click [link '{goods[0]['name']}']", "stop []")
            yield Instance({"category": names}, address(f"__SHOPPING__/{goods[0]['url_key']}.html"), script)


def order_of_day(db, rng):
    rows = list(each_order(db))
    days = [order["created"] for order, _ in rows]
    for order, way in rows:
        if days.count(order["created"]) == 1:
            url = f"__SHOPPING__/sales/order/view/order_id/{order['id']}/"
            yield Instance({"day": long_date(order["created"])}, address(url), (*way, open_order(order), "stop []"))


def wish(db, rng):
    for p in products(db, rng, "id NOT IN (SELECT product_id FROM wish)"):
        check = content(("__SHOPPING__/wishlist/", WISHES, [p["name"]]))
        yield Instance({"product": p["name"]}, check, (*to_product(p), "click [button 'Add to Wish List']", "stop []"))


def fill_cart(db, rng):
    table = "document.querySelector('#shopping-cart-table"
    for p in products(db, rng, SIMPLE):
        pieces = rng.randint(2, 6)
        check = content(
            ("__SHOPPING__/checkout/cart/", f"{table}').outerText", [p["name"]]),
            ("__SHOPPING__/checkout/cart/", f"{table} input').value", str(pieces)),
        )
        script = (*to_product(p), f"type [spinbutton 'Qty'] [{pieces}] [0]", "click [button 'Add to Cart']", "stop []")
        yield Instance({"product": p["name"], "pieces": pieces}, check, script)


def buy_size(db, rng):
    for p in products(db, rng, "in_stock AND options LIKE '{\"Size%'"):
        size = rng.choice(json.loads(p["options"])["Size"])
        choose = (f"select [combobox 'Size'] [{size}]", "click [button 'Add to Cart']", "click [link 'My Cart…']")
        check = content((NEWEST_ORDER, ITEMS, [p["sku"], f"Size: {size}"]))
        yield Instance({"product": p["name"], "size": size}, check, (*to_product(p), *choose, *TO_ORDER))


def order_again(db, rng):
    newest = None
    for order, way in each_order(db):
        items = db.execute(ITEMS_OF, (order["id"],)).fetchall()
        skus = [item["sku"] for item in items]
        newest = newest or skus
        if not set(skus) <= set(newest) and all(item["in_stock"] for item in items):
            script = (*way, open_order(order), "click [button 'Reorder']", *TO_ORDER)
            yield Instance({"number": f"{order['id']:09d}"}, content((NEWEST_ORDER, ITEMS, skus)), script)


def move(db, rng):
    words = read_data("shopping_shelves")
    places = [(street, *city) for street in words["streets"].split("; ") for city in words["cities"]]
    for street, city, state, zip_code in rng.sample(places, 16):
        parts = [street, f"{city}, {state}, {zip_code}"]
        boxes = [f'document.querySelector(".box.box-address-{k} > .box-content").outerText' for k in WHERE]
        fields = {"Street Address: Line 1": street, "City": city, "State/Province": state, "Zip/Postal Code": zip_code}
        typed = [f"type [textbox '{label}'] [{text}] [0]" for label, text in fields.items()]
        way = ("click [link 'My Account']", "click [link 'Address Book']", "click [link 'Change Billing Address']")
        check = content(*(("__SHOPPING__/customer/address/", box, parts) for box in boxes))
        values = {"street": street, "place": f"{city}, {state} {zip_code}"}
        if street not in db.execute("SELECT street1 FROM address").fetchone():
            yield Instance(values, check, (*way, *typed, "click [button 'Save Address']", "stop []"))


def review(db, rng):
    summaries = ("Good purchase", "As expected", "Could be better", "Glad I bought it")
    names = read_data("shopping_shelves")["first_names"].split()
    for p, (name, other) in zip(products(db, rng), pairwise(rng.sample(names * 2, SAMPLE + 1)), strict=False):
        stars, summary, nickname = rng.randint(1, 5), rng.choice(summaries), f"{name}{other}"
        typed = (("Nickname", nickname), ("Summary", summary), ("Review", f"{summary}, I say."))
        script = (
            *to_product(p), "click [link 'Add Your Review']", f"click [radio '{stars} star{'s' if stars > 1 else ''}']",
            *(f"type [textbox '{label}'] [{text}] [0]" for label, text in typed),
            "click [button 'Submit Review']", "stop []",
        )  # fmt: skip
        call = "func:shopping_get_sku_latest_review"
        check = content(
            ("last", f"{call}_rating('{p['sku']}')", str(stars * 20)),
            ("last", f"{call}_author('{p['sku']}')", nickname),
        )
        values = {"product": p["name"], "stars": stars, "nickname": nickname, "summary": summary}
        yield Instance(values, check, script)


TEMPLATES = [
    Template("shop_order_total", "information", "What is the grand total of my order {{number}}?", order_total),
    Template("shop_warranty", "information", "How long is the warranty of {{product}}?", fact("Warranty")),
    Template("shop_made_in", "information", "In which country is {{product}} made?", fact("Made in")),
    Template(
        "shop_review_author", "information", 'Who wrote the review "{{title}}" of {{product}}?', review_author
    ),
    Template(
        "shop_dearest", "information", "How much is the most expensive product in {{category}}?", dearest, held_out=True
    ),
    Template(
        "shop_sorted", "navigation", "Show the products in {{category}}, the most expensive first.", sorted_shelf
    ),
    Template(
        "shop_priced", "navigation", "Show the products in {{category}} that cost from ${{low}} to ${{high}}.",
        priced_shelf,
    ),
    Template("shop_cheapest", "navigation", "Open the page of the cheapest product in {{category}}.", cheapest_page),
    Template(
        "shop_order_of_day", "navigation", "Open the order that I placed on {{day}}.", order_of_day, held_out=True
    ),
    Template("shop_wish", "change", "Add {{product}} to my wish list.", wish),
    Template("shop_cart", "change", "Put {{pieces}} pieces of {{product}} in my cart.", fill_cart),
    Template("shop_buy_size", "change", "Buy {{product}} in size {{size}}.", buy_size),
    Template("shop_order_again", "change", "Order everything from order {{number}} again.", order_again),
    Template("shop_move", "change", "I moved to {{street}}, {{place}}. Change my default address.", move),
    Template(
        "shop_review", "change",
        'Review {{product}}: {{stars}} out of 5 stars, nickname "{{nickname}}", summary "{{summary}}", any text.',
        review,
    ),
]  # fmt: skip
