"""Finding goods: home page, categories, search, and the page of a product."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence

from flask import Flask, abort, redirect, request

from dynaweb_lite.sites.webarena.shopping.page import here, one_or_404, paged, render, say

ON_PAGE, FEATURED = 9, 6
ORDERS = {"position": "Position", "relevance": "Relevance", "name": "Product Name", "price": "Price"}
SORT_KEYS = {"name": lambda p: p["name"].lower(), "price": lambda p: (p["cents"], p["id"])}
_WORD = re.compile(r"[a-z0-9]+")
_PRICE = re.compile(r"(\d{0,7}(?:\.\d{1,2})?)-(\d{0,7}(?:\.\d{1,2})?)")
_AMOUNT = re.compile(r"\$?\s*(\d{1,7}(?:\.\d{1,2})?)")


def add_routes(app: Flask, database: Callable) -> None:
    @app.get("/")
    def home():
        with database() as db:
            rows = db.execute(
                "SELECT * FROM rated WHERE reviews > 2 AND in_stock ORDER BY id LIMIT ?",
                (FEATURED,),
            ).fetchall()
            return render(db, "home", "One Stop Market", categories=children(db, ""), products=rows)

    @app.get("/<path:path>.html")
    def category_or_product(path: str):
        with database() as db:
            category = db.execute("SELECT * FROM category WHERE path = ?", (path,)).fetchone()
            return category_page(db, category) if category else product_page(db, path)

    @app.get("/catalogsearch/result/")
    @app.get("/catalogsearch/result/index/")
    def search():
        query = " ".join(request.args.get("q", "").split())
        with database() as db:
            title = f"Search results for: '{query}'" if query else "Search results"
            rows = find(db, query)
            return listing(db, rows, title, "relevance", query=query, hits=len(rows), **search_context())

    @app.get("/catalogsearch/")
    def search_root():
        return redirect("/")


def search_context() -> dict:
    """A sorted search has `index/` in its address, as in Magento."""
    return {"path": "/catalogsearch/result/index/", "category": None, "trail": [], "children": []}


def children(db: sqlite3.Connection, path: str) -> list[sqlite3.Row]:
    return db.execute("SELECT * FROM category WHERE parent = ? ORDER BY position", (path,)).fetchall()


def trail_of(db: sqlite3.Connection, path: str) -> list[sqlite3.Row]:
    """The categories from the top down to a path, itself included."""
    parts = path.split("/")
    return [one_or_404(db, "category", "/".join(parts[: n + 1]), "path") for n in range(len(parts))]


def category_page(db: sqlite3.Connection, category: sqlite3.Row):
    path = category["path"]
    rows = db.execute(
        "SELECT * FROM rated WHERE category = ? OR category LIKE ? ORDER BY id", (path, f"{path}/%")
    ).fetchall()
    trail = trail_of(db, path)
    title = " - ".join(c["name"] for c in reversed(trail))
    return listing(
        db, rows, title, "position", category=category, trail=trail, children=children(db, path), path=f"/{path}.html"
    )


def listing(db: sqlite3.Connection, rows: Sequence, title: str, default: str, path: str, **values):
    """Products, filtered by price and sorted as the address says. Searches descend unless told, categories ascend."""
    ascending = request.args.get("product_list_dir", "asc" if default == "position" else "desc") != "desc"
    order = request.args.get("product_list_order", default)
    orders = {key: name for key, name in ORDERS.items() if key in (default, "name", "price")}
    if "price_from" in request.args or "price_to" in request.args:
        if answer := price_from_form(db, path):
            return answer
    low, high = price_range(request.args.get("price", ""))
    rows = [p for p in rows if low <= p["cents"] and (high is None or p["cents"] <= high)]
    if order in SORT_KEYS:
        rows.sort(key=SORT_KEYS[order], reverse=not ascending)
    elif ascending != (default == "position"):
        rows.reverse()
    kept = {key: value for key, value in request.args.items() if key not in ("p", "price_from", "price_to")}
    return render(
        db, "listing", title, page=paged(rows, ON_PAGE), orders=orders, order=order, ascending=ascending, kept=kept,
        turn=here(path, product_list_dir="desc" if ascending else "asc"), low=low, high=high, path=path,
        by_price="price" in kept and (low, high) != (0, None), clear=here(path, price=None), **values,
    )  # fmt: skip


def price_from_form(db: sqlite3.Connection, path: str):
    """To the address that filters by the two amounts that were typed; None, with a message, where they are none."""
    texts = [request.args.get(key, "").strip() for key in ("price_from", "price_to")]
    found = [_AMOUNT.fullmatch(text) for text in texts]
    low, high = [match[1] if match else "" for match in found]
    if any(text and not match for text, match in zip(texts, found, strict=True)) or not (low or high):
        say(db, "Please enter prices as plain numbers, as in 20 or 19.99.", "error")
        return None
    if low and high and float(low) > float(high):
        say(db, "The lower price must not be above the higher one.", "error")
        return None
    return redirect(here(path, price=f"{low or 0}-{high}", price_from=None, price_to=None))


def price_range(text: str) -> tuple[int, int | None]:
    """The cents of an address's price=0-25; everything where it says something else."""
    match = _PRICE.fullmatch(text)
    if not match or text in ("", "-"):
        return 0, None
    low, high = [round(float(part) * 100) if part.strip(".") else None for part in match.groups()]
    return low or 0, high


def find(db: sqlite3.Connection, query: str) -> list[sqlite3.Row]:
    """Products with all words of the query, the best first; with any of them when none has all."""
    wanted = set(words(query))
    if not wanted:
        return []
    scored = []
    for product in db.execute("SELECT * FROM rated ORDER BY id"):
        name = set(words(product["name"]))
        rest = set(words(f"{product['about']} {product['sku']}"))
        if found := wanted & (name | rest):
            scored.append((len(found), len(wanted & name), product))
    most = len(wanted) if any(n == len(wanted) for n, _, _ in scored) else 1
    ranked = sorted((s for s in scored if s[0] >= most), key=lambda s: (-s[0], -s[1], s[2]["id"]))
    return [product for _, _, product in ranked]


def words(text: str) -> list[str]:
    """Lower-case words without a plural's s."""
    return [w[:-1] if len(w) > 3 and w.endswith("s") else w for w in _WORD.findall(text.lower())]


def product_page(db: sqlite3.Connection, url_key: str) -> str:
    product = db.execute("SELECT * FROM rated WHERE url_key = ?", (url_key,)).fetchone() or abort(404)
    lead, *facts = product["about"].split("\n")
    return render(
        db, "product", product["name"], product=product, trail=trail_of(db, product["category"]),
        options=json.loads(product["options"]), lead=lead, facts=[fact.split(": ", 1) for fact in facts],
    )  # fmt: skip
