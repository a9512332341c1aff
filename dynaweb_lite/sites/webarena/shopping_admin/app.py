"""The admin panel of the Luma shop, a light replica of WebArena's Magento, with its URL layout below /admin."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from flask import Flask, abort, redirect

from dynaweb_lite.sites.webarena import new_app
from dynaweb_lite.sites.webarena.shopping_admin import lists
from dynaweb_lite.sites.webarena.shopping_admin.lists import add_lists
from dynaweb_lite.sites.webarena.shopping_admin.orders import add_orders, order_url
from dynaweb_lite.sites.webarena.shopping_admin.pages import add_filters, money, order_number, render
from dynaweb_lite.sites.webarena.shopping_admin.products import add_products
from dynaweb_lite.sites.webarena.shopping_admin.records import add_records
from dynaweb_lite.sites.webarena.shopping_admin.reports import REPORTS, add_reports

_REPORT = {report.title: report.path for report in REPORTS}
SECTIONS: dict[str, tuple[str, dict[str, dict[str, str]]]] = {
    "sales": ("Sales", {"Operations": {g.title: g.path for g in (lists.ORDERS, lists.INVOICES, lists.SHIPMENTS)}}),
    "catalog": ("Catalog", {"Inventory": {"Products": lists.PRODUCTS.path}}),
    "customers": ("Customers", {"Customers": {"All Customers": lists.CUSTOMERS.path}}),
    "marketing": (
        "Marketing",
        {
            "Promotions": {"Cart Price Rules": lists.RULES.path},
            "User Content": {"All Reviews": lists.REVIEWS.path, "Pending Reviews": lists.PENDING_REVIEWS.path},
            "SEO & Search": {"Search Terms Report": lists.SEARCH_TERMS.path},
        },
    ),
    "content": ("Content", {"Elements": {"Pages": lists.PAGES.path}, "Design": {"Themes": lists.THEMES.path}}),
    "reports": (
        "Reports",
        {
            "Marketing": {"Search Terms": lists.SEARCH_TERMS.path},
            "Reviews": {"By Customers": lists.REVIEWS_BY_CUSTOMER.path, "By Products": lists.REVIEWS_BY_PRODUCT.path},
            "Sales": {n: _REPORT[f"{n} Report"] for n in ("Orders", "Tax", "Shipping", "Refunds", "Coupons")},
            "Customers": {"Order Count": _REPORT["Order Count Report"]},
            "Products": {"Views": _REPORT["Product Views Report"], "Bestsellers": _REPORT["Bestsellers Report"]},
        },
    ),
}
"""The sections of the main menu: title, and the links on their pages by group."""
SHOWN = 5
"""Lines of each list on the dashboard."""


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


def bestsellers(db: sqlite3.Connection) -> list[str]:
    rows = db.execute(
        "SELECT item.name, price, sum(qty) AS sold FROM item JOIN orders ON orders.id = order_id "
        "WHERE status <> 'canceled' GROUP BY item.name ORDER BY sold DESC, item.name LIMIT ?",
        (SHOWN,),
    )
    return [f"{row['name']}, {money(row['price'])}, {row['sold']} sold" for row in rows]


def last_orders(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """(address, sentence) of the newest orders by purchase date."""
    rows = db.execute(
        "SELECT id, name, total, (SELECT sum(qty) FROM item WHERE order_id = orders.id) AS items FROM orders "
        "ORDER BY created DESC LIMIT ?",
        (SHOWN,),
    )
    return [
        (
            order_url(r["id"]),
            f"#{order_number(r['id'])} {r['name']}, {counted(r['items'], 'item')}, {money(r['total'])}",
        )
        for r in rows
    ]


def search_terms(db: sqlite3.Connection, order: str) -> list[str]:
    rows = db.execute(f"SELECT words, results, uses FROM search_term ORDER BY {order} LIMIT ?", (SHOWN,))
    return [f"{row['words']}, {counted(row['results'], 'result')}, {counted(row['uses'], 'use')}" for row in rows]


def make_app(database: Callable) -> Flask:
    """The panel's application; `database()` is a context manager that yields the session's database."""
    app = new_app(__name__)
    app.url_map.strict_slashes = False
    add_filters(app)

    @app.get("/")
    @app.get("/admin/")
    def home():
        return redirect("/admin/dashboard")

    @app.get("/admin/dashboard/")
    @app.get("/admin/admin/dashboard/")
    def dashboard():
        with database() as db:
            lifetime, average = db.execute(
                "SELECT sum(total), avg(total) FROM orders WHERE status = 'complete'"
            ).fetchone()
            blocks = {
                "Bestsellers": bestsellers(db),
                "Last Search Terms": search_terms(db, "recency"),
                "Top Search Terms": search_terms(db, "uses DESC, words"),
            }
            return render(
                db, "dashboard", "Dashboard", orders=last_orders(db), blocks=blocks, lifetime=lifetime, average=average
            )

    @app.get("/admin/section/<key>/")
    def section(key: str):
        title, groups = SECTIONS.get(key) or abort(404)
        with database() as db:
            return render(db, "section", title, groups=groups)

    @app.get("/admin/admin/system_store/")
    def stores():
        with database() as db:
            return render(db, "stores", "Stores")

    @app.get("/admin/admin/system_design_theme/edit/id/<int:theme_id>/")
    def theme(theme_id: int):
        with database() as db:
            row = db.execute("SELECT * FROM theme WHERE id = ?", (theme_id,)).fetchone() or abort(404)
            return render(db, "theme", row["title"], theme=row)

    for add in (add_lists, add_orders, add_products, add_records, add_reports):
        add(app, database)

    @app.errorhandler(404)
    @app.errorhandler(405)
    @app.errorhandler(OverflowError)  # an id too long for the database
    def missing(error):
        with database() as db:
            return render(db, "missing", "404 Error"), getattr(error, "code", 404)

    return app
