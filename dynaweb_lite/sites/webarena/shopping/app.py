"""One Stop Market, a light replica of WebArena's shop (Magento with its Luma theme) and of its URL layout."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, redirect

from dynaweb_lite.sites.webarena import new_app
from dynaweb_lite.sites.webarena.shopping import account, catalog, checkout, orders, rest, reviews
from dynaweb_lite.sites.webarena.shopping.page import FILTERS, render

PARTS = (catalog, reviews, checkout, account, orders, rest)


def make_app(database: Callable) -> Flask:
    """The shop's application; `database()` is a context manager that yields the session's database."""
    app = new_app(__name__)
    app.jinja_env.filters.update(FILTERS)
    for part in PARTS:
        part.add_routes(app, database)

    @app.errorhandler(404)
    def missing(_error):
        with database() as db:
            return render(db, "missing", "404 Not Found"), 404

    @app.errorhandler(405)
    def not_a_page(_error):
        return redirect("/")

    return app
