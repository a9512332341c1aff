"""Templates of further tasks in the shop's panel, with experts that search, filter and fill in forms."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Sequence
from urllib.parse import urlencode

from dynaweb_lite.sites.webarena.generator import MAX_INSTANCES, Instance, Template, address, answer, content
from dynaweb_lite.sites.webarena.shopping_admin.facts import MONTHS
from dynaweb_lite.sites.webarena.shopping_admin.lists import ORDER_STATUSES
from dynaweb_lite.sites.webarena.shopping_admin.orders import CARRIERS
from dynaweb_lite.sites.webarena.shopping_admin.pages import order_number, short_date
from dynaweb_lite.sites.webarena.shopping_admin.stock import GROUPS

SITE = "__SHOPPING_ADMIN__"
ORDERS = ("click [link 'Sales']", "click [link 'Orders']")
PRODUCTS = ("click [link 'Catalog']", "click [link 'Products']")
REVIEWS = ("click [link 'Marketing']", "click [link 'All Reviews']")
CUSTOMERS = ("click [link 'Customers']", "click [link 'All Customers']")
REPORTS = {"Orders": "sales", "Shipping": "shipping", "Coupons": "coupons", "Bestsellers": "bestsellers"}
COMMENTS = (
    "the courier comes on Monday", "one piece is on back order", "gift wrap was asked for", "called back, no answer",
    "the address was checked", "please hurry with this one",
)  # fmt: skip


def rows(db: sqlite3.Connection, rng: random.Random, sql: str, *values) -> list[sqlite3.Row]:
    """As many rows of a query as a template takes, in a mixed order."""
    found = db.execute(sql, values).fetchall()
    return rng.sample(found, min(len(found), MAX_INSTANCES))


def search(words: str) -> str:
    return f"type [searchbox 'Search by keyword'] [{words}] [1]"


def american(day: str) -> str:
    """2023-05-31 as 05/31/2023."""
    return f"{day[5:7]}/{day[8:]}/{day[:4]}"


def find_order(order_id: int) -> tuple[str, ...]:
    """The way to an order's page."""
    return (*ORDERS, search(order_number(order_id)), f"click [link '{order_number(order_id)}']")


def order_totals(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"order": r["id"]},
            answer(includes=[f"{r['total']:.2f}"]),
            (*find_order(r["id"]), f"stop [${r['total']:.2f}]"),
        )
        for r in rows(db, rng, "SELECT id, total FROM orders")
    ]


def customers_by_phone(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"phone": r["phone"]},
            answer(includes=[r["email"]]),
            (*CUSTOMERS, search(r["phone"]), f"stop [{r['email']}]"),
        )
        for r in rows(db, rng, "SELECT phone, email FROM customer")
    ]


def reviews_with_word(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    """Words of review texts that stand nowhere else, so that both ways to look for them count the same."""
    reviews = db.execute(
        "SELECT lower(detail) AS detail, lower(review.title || ' ' || nickname || ' ' || name) AS rest "
        "FROM review JOIN product ON product.id = product_id"
    ).fetchall()
    words = sorted({word for r in reviews for word in re.findall(r"[a-z]{6,}", r["detail"])})
    clear = [word for word in words if not any(word in r["rest"] for r in reviews)]
    made = []
    for word in rng.sample(clear, min(len(clear), MAX_INSTANCES)):
        count = sum(word in r["detail"] for r in reviews)
        made.append(Instance({"word": word}, answer(str(count)), (*REVIEWS, search(word), f"stop [{count}]")))
    return made


def best_sellers(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    """Spans of months in one year in which one product was sold more often than any other."""
    spans = [(first, last) for first in MONTHS for last in MONTHS if first <= last and first[:4] == last[:4]]
    made = []
    for first, last in rng.sample(spans, len(spans)):
        days = (f"{first}-01", f"{last}-28")
        top = db.execute(
            "SELECT item.name, sum(qty) AS sold FROM item JOIN orders ON orders.id = order_id "
            "WHERE status <> 'canceled' AND date(created) BETWEEN ? AND ? GROUP BY 1 ORDER BY sold DESC LIMIT 2",
            days,
        ).fetchall()
        if len(made) == MAX_INSTANCES or top[0]["sold"] == top[1]["sold"]:
            continue
        name, (start, end) = top[0]["name"], map(american, days)
        script = (
            "click [link 'Reports']", "click [link 'Bestsellers']", "select [combobox 'Period'] [Year]",
            f"type [textbox 'From'] [{start}] [0]", f"type [textbox 'To'] [{end}] [0]", "click [button 'Show Report']",
            f"stop [{name}]",
        )  # fmt: skip
        made.append(Instance({"first": start, "last": end}, answer(includes=[name]), script))
    return made


def units_in_stock(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance({"sku": r["sku"]}, answer(str(r["qty"])), (*PRODUCTS, search(r["sku"]), f"stop [{r['qty']}]"))
        for r in rows(db, rng, "SELECT sku, qty FROM product WHERE qty NOT IN (0, 100)")
    ]


def filtered_orders(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for r in rows(db, rng, "SELECT name, status FROM orders GROUP BY name, status HAVING count(*) > 2"):
        label = ORDER_STATUSES[r["status"]]
        query = urlencode({"billing_name": r["name"], "status": r["status"]})
        script = (
            *ORDERS, "click [link 'Filters']", f"type [textbox 'Bill-to Name'] [{r['name']}] [0]",
            f"select [combobox 'Status'] [{label}]", "click [button 'Apply Filters']", "stop []",
        )  # fmt: skip
        made.append(Instance({"status": label, "name": r["name"]}, address(f"{SITE}/sales/order/?{query}"), script))
    return made


def product_pages(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"sku": r["sku"]},
            address(f"{SITE}/catalog/product/edit/id/{r['id']}/"),
            (*PRODUCTS, search(r["sku"]), f"click [link '{r['name']}']", "stop []"),
        )
        for r in rows(db, rng, "SELECT id, sku, name FROM product WHERE type = 'simple'")
    ]


def span_reports(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for name, part in REPORTS.items():
        for first, last in (sorted(rng.sample(MONTHS, 2)) for _ in range(4)):
            days = [f"{month}-{rng.randint(1, 28):02}" for month in (first, last)]
            written = [american(day) for day in days]
            script = (
                "click [link 'Reports']", f"click [link '{name}']", f"type [textbox 'From'] [{written[0]}] [0]",
                f"type [textbox 'To'] [{written[1]}] [0]", "click [button 'Show Report']", "stop []",
            )  # fmt: skip
            targets = [
                ("last", f"document.querySelector('[id=\"sales_report_{side}\"]').value", short_date(day))
                for side, day in zip(("from", "to"), days, strict=True)
            ]
            check = content(*targets, url=f"{SITE}/reports/report_sales/{part}/")
            made.append(Instance({"report": name, "first": written[0], "last": written[1]}, check, script))
    return made


def new_prices(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for r in rows(db, rng, "SELECT id, sku, name, price FROM product WHERE type = 'simple'"):
        price = f"{r['price'] + rng.choice((-2.5, -1.01, 1.25, 3.49, 7)):.2f}"
        check = content(
            (
                f"{SITE}/catalog/product/edit/id/{r['id']}/",
                "document.querySelector('[name=\"product[price]\"]').value",
                price,
            )
        )
        script = (
            *PRODUCTS, search(r["sku"]), f"click [link '{r['name']}']", f"type [textbox 'Price'] [{price}] [0]",
            "click [button 'Save']", "stop []",
        )  # fmt: skip
        made.append(Instance({"sku": r["sku"], "price": price}, check, script))
    return made


def shipments(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for r in rows(db, rng, "SELECT id FROM orders WHERE status = 'pending'"):
        carrier, number = rng.choice(CARRIERS[1:]), str(rng.randint(10**9, 10**10 - 1))
        wanted = f"Tracking number {number} for {carrier} assigned"
        check = content((f"{SITE}/sales/order/commentsHistory/order_id/{r['id']}/", "", [wanted]))
        script = (
            *find_order(r["id"]), "click [link 'Ship']", f"select [combobox 'Carrier'] [{carrier}]",
            f"type [textbox 'Tracking Number'] [{number}] [0]", "click [button 'Submit Shipment']", "stop []",
        )  # fmt: skip
        made.append(Instance({"order": r["id"], "carrier": carrier, "number": number}, check, script))
    return made


def order_comments(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for r in rows(db, rng, "SELECT id FROM orders"):
        text = rng.choice(COMMENTS)
        check = content(
            (
                f"{SITE}/sales/order/view/order_id/{r['id']}/",
                "document.querySelector('.note-list-comment').outerText",
                text,
            )
        )
        script = (
            *find_order(r["id"]), f"type [textbox 'Comment'] [{text}] [0]", "click [button 'Submit Comment']", "stop []"
        )  # fmt: skip
        made.append(Instance({"order": r["id"], "text": text}, check, script))
    return made


def customer_groups(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for r in rows(db, rng, "SELECT id, name, email, group_name FROM customer"):
        group = rng.choice([g for g in GROUPS if g != r["group_name"]])
        check = content(
            (
                f"{SITE}/customer/index/edit/id/{r['id']}/",
                "document.querySelector('[name=\"group_name\"]').value",
                group,
            )
        )
        script = (
            *CUSTOMERS, search(r["email"]), f"click [link '{r['name']}']", f"select [combobox 'Group'] [{group}]",
            "click [button 'Save Customer']", "stop []",
        )  # fmt: skip
        made.append(Instance({"email": r["email"], "group": group}, check, script))
    return made


def hidden_reviews(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    """Reviews that title and nickname tell from all others, also as parts of theirs."""
    reviews = db.execute("SELECT id, title, nickname, status FROM review ORDER BY id").fetchall()
    texts = [(r["title"].lower(), r["nickname"].lower()) for r in reviews]
    made = []
    for r, (title, nickname) in zip(reviews, texts, strict=True):
        if r["status"] != 1 or sum(title in t and nickname in n for t, n in texts) > 1:
            continue
        check = content(
            (f"{SITE}/review/product/edit/id/{r['id']}/", "document.querySelector('[name=\"status_id\"]').value", "3")
        )
        script = (
            *REVIEWS, "click [link 'Filters']", f"type [textbox 'Title'] [{r['title']}] [0]",
            f"type [textbox 'Nickname'] [{r['nickname']}] [0]", "click [button 'Apply Filters']",
            f"click [link '{r['title']}']", "select [combobox 'Status'] [Not Approved]", "click [button 'Save Review']",
            "stop []",
        )  # fmt: skip
        made.append(Instance({"title": r["title"], "nickname": r["nickname"]}, check, script))
    return rng.sample(made, min(len(made), MAX_INSTANCES))


TEMPLATES: Sequence[Template] = [
    Template("admin_order_total", "information", "What is the grand total of order #{{order}}?", order_totals),
    Template(
        "admin_customer_by_phone", "information", "What is the email address of the customer with the phone number "
        "{{phone}}?", customers_by_phone,
    ),
    Template(
        "admin_reviews_with_word", "information", 'How many reviews mention "{{word}}"? Answer with the number only.',
        reviews_with_word,
    ),
    Template(
        "admin_best_seller", "information", "Which product was sold most often from {{first}} to {{last}}?",
        best_sellers,
    ),
    Template(
        "admin_units_in_stock", "information", "How many units of the product with SKU {{sku}} are left? Answer with "
        "the number only.", units_in_stock, held_out=True,
    ),
    Template(
        "admin_filtered_orders", "navigation",
        "Filter the orders by the status {{status}} and the bill-to name {{name}}", filtered_orders,
    ),
    Template("admin_product_page", "navigation", "Open the edit page of the product with SKU {{sku}}", product_pages),
    Template(
        "admin_span_report", "navigation", "Show the {{report}} report from {{first}} to {{last}}", span_reports
    ),
    Template(
        "admin_new_price", "change", "Set the price of the product with SKU {{sku}} to ${{price}}", new_prices
    ),
    Template(
        "admin_shipment", "change", "Ship order #{{order}} with the {{carrier}} tracking number {{number}}", shipments
    ),
    Template("admin_order_comment", "change", 'Add the comment "{{text}}" to order #{{order}}', order_comments),
    Template(
        "admin_customer_group", "change", "Move the customer with the email address {{email}} to the group {{group}}",
        customer_groups,
    ),
    Template(
        "admin_hidden_review", "change", 'Set the review titled "{{title}}" by {{nickname}} to Not Approved',
        hidden_reviews, held_out=True,
    ),
]  # fmt: skip
