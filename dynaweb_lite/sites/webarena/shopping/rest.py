"""The endpoints of Magento's REST API that WebArena's checks read, answered from the session's own state."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable

from flask import Flask, jsonify, request

ADMIN = {"username": "admin", "password": "admin1234"}
"""WebArena's account of the shop's administrator."""
SORTS = {"created_at": "created", "increment_id": "id", "entity_id": "id"}
DENIED = "The consumer isn't authorized to access this resource."


def add_routes(app: Flask, database: Callable) -> None:
    @app.post("/rest/default/V1/integration/admin/token")
    @app.post("/rest/V1/integration/admin/token")
    def token():
        sent = request.get_json(silent=True)
        if not isinstance(sent, dict) or {key: sent.get(key) for key in ADMIN} != ADMIN:
            return jsonify(message="The account sign-in was incorrect."), 401
        with database() as db:
            number = db.execute("SELECT count(*) FROM token").fetchone()[0]
            value = hashlib.sha256(f"token {number}".encode()).hexdigest()[:32]
            db.execute("INSERT INTO token VALUES (?)", (value,))
        return jsonify(value)

    @app.get("/rest/default/V1/orders")
    @app.get("/rest/V1/orders")
    def orders():
        with database() as db:
            return jsonify(orders_found(db)) if is_admin(db) else (jsonify(message=DENIED), 401)

    @app.get("/rest/default/V1/products/<sku>/reviews")
    @app.get("/rest/V1/products/<sku>/reviews")
    def reviews(sku: str):
        with database() as db:
            if not is_admin(db):
                return jsonify(message=DENIED), 401
            return jsonify([as_review(r) for r in db.execute(REVIEWS, (sku,)).fetchall()])


REVIEWS = "SELECT review.* FROM review JOIN product ON product.id = product_id WHERE sku = ? ORDER BY review.id"


def is_admin(db: sqlite3.Connection) -> bool:
    """Whether the request carries a token that this session has given out."""
    value = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    return db.execute("SELECT 1 FROM token WHERE value = ?", (value,)).fetchone() is not None


def orders_found(db: sqlite3.Connection) -> dict:
    """The orders that searchCriteria's first sort order and page size ask for."""
    field = SORTS.get(request.args.get("searchCriteria[sortOrders][0][field]", ""), "id")
    is_descending = request.args.get("searchCriteria[sortOrders][0][direction]", "ASC").upper() == "DESC"
    way = "DESC" if is_descending else "ASC"
    rows = db.execute(f"SELECT * FROM bill ORDER BY {field} {way}, id {way}").fetchall()
    size = max(0, request.args.get("searchCriteria[pageSize]", len(rows), type=int))
    return {"items": [as_order(r) for r in rows[:size]], "total_count": len(rows)}


def as_order(row: sqlite3.Row) -> dict:
    return {
        "entity_id": row["id"],
        "increment_id": f"{row['id']:09d}",
        "created_at": f"{row['created']} 00:00:00",
        "status": row["status"].lower(),
        "grand_total": row["total"] / 100,
    }


def as_review(row: sqlite3.Row) -> dict:
    return {
        "id": row["id"],
        "nickname": row["nickname"],
        "title": row["title"],
        "detail": row["detail"],
        "created_at": f"{row['created']} 00:00:00",
        "ratings": [{"rating_name": "Rating", "percent": row["stars"] * 20, "value": row["stars"]}],
    }
