"""Orders: the page of one, and what is done to it: cancel, hold, ship, comment, correct an address."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from flask import Flask, abort, redirect, request

from dynaweb_lite.sites.webarena.shopping_admin.facts import WORDS
from dynaweb_lite.sites.webarena.shopping_admin.lists import ORDER_STATUSES
from dynaweb_lite.sites.webarena.shopping_admin.pages import NOW, money, order_number, render, say

CARRIERS = ("Custom Value", "DHL", "Federal Express", "United Parcel Service", "United States Postal Service")
OPEN = ("pending", "processing")
"""Statuses in which an order can be canceled, held or shipped."""
RECENT = 2
"""Comments that an order's page shows; the rest is in its history."""
ADDRESS_FIELDS = {
    "name": "Name",
    "street": "Street Address",
    "street2": "Street Address, Second Line",
    "city": "City",
    "region": "State/Province",
    "postcode": "Zip/Postal Code",
    "phone": "Phone Number",
}
OPTIONAL = ("street2",)


def order_or_404(db: sqlite3.Connection, order_id: int) -> sqlite3.Row:
    return db.execute("SELECT * FROM orders WHERE id = ?", (order_id,)).fetchone() or abort(404)


def order_url(order_id: int) -> str:
    return f"/admin/sales/order/view/order_id/{order_id}/"


def events(db: sqlite3.Connection, order: sqlite3.Row) -> list[tuple[str, str]]:
    """All that happened to an order, as (time, sentence), the newest first."""
    rows = [(order["created"], 0, "Order placed.")]
    for table, sentence in (("invoice", "Invoice #{} created"), ("shipment", "Shipment #{} created")):
        for row in db.execute(f"SELECT id, created FROM {table} WHERE order_id = ?", (order["id"],)):
            rows.append((row["created"], 1, sentence.format(order_number(row["id"]))))
    for row in db.execute("SELECT created, amount FROM refund WHERE order_id = ?", (order["id"],)):
        rows.append((row["created"], 2, f"Refunded {money(row['amount'])}"))
    tracks = "SELECT track.* FROM track JOIN shipment ON shipment.id = shipment_id WHERE order_id = ? ORDER BY track.id"
    for row in db.execute(tracks, (order["id"],)):
        rows.append((row["created"], 2, f"Tracking number {row['number']} for {row['carrier']} assigned"))
    for row in db.execute("SELECT created, text FROM comment WHERE order_id = ? ORDER BY id", (order["id"],)):
        rows.append((row["created"], 3, row["text"]))
    return [(time, text) for time, _, text in sorted(rows, key=lambda row: row[:2], reverse=True)]


def shipments_of(db: sqlite3.Connection, order_id: int) -> list[sqlite3.Row]:
    return db.execute("SELECT * FROM shipment WHERE order_id = ? ORDER BY id", (order_id,)).fetchall()


def read_region(text: str) -> str | None:
    """A state's full name, from the name or its two letters; None for anything else."""
    known = {name.lower(): name for name in WORDS["states"].values()}
    return WORDS["states"].get(text.strip().upper()) or known.get(text.strip().lower())


def read_address(form) -> tuple[dict[str, str], list[str]]:
    """The fields of an address form and what is wrong with them."""
    values = {key: form.get(key, "").strip() for key in ADDRESS_FIELDS}
    errors = [f"{label} is a required field." for key, label in ADDRESS_FIELDS.items()
              if not values[key] and key not in OPTIONAL]  # fmt: skip
    if values["region"] and not read_region(values["region"]):
        errors.append(f"{values['region']!r} is no state: write its name or its two letters.")
    return values, errors


def add_track(db: sqlite3.Connection, shipment_id: int, form) -> str:
    """Write down a tracking number, if one was given. Returns what is wrong with it, or an empty string."""
    carrier, number = form.get("carrier", ""), form.get("number", "").strip()
    if not number:
        return ""
    if carrier not in CARRIERS:
        return "Please choose a carrier."
    db.execute(
        "INSERT INTO track (shipment_id, carrier, number, created) VALUES (?, ?, ?, ?)",
        (shipment_id, carrier, number, NOW),
    )
    return ""


def add_orders(app: Flask, database: Callable) -> None:
    """Serve orders, their history, addresses, invoices and shipments."""
    add_order_pages(app, database)
    add_order_actions(app, database)
    add_shipments(app, database)


def add_order_pages(app: Flask, database: Callable) -> None:
    @app.get("/admin/sales/order/view/order_id/<int:order_id>/")
    def order_page(order_id: int):
        with database() as db:
            order = order_or_404(db, order_id)
            addresses = db.execute("SELECT * FROM address WHERE order_id = ? ORDER BY id", (order_id,)).fetchall()
            items = db.execute("SELECT * FROM item WHERE order_id = ? ORDER BY rowid", (order_id,)).fetchall()
            comments = db.execute(
                "SELECT * FROM comment WHERE order_id = ? ORDER BY id DESC LIMIT ?", (order_id, RECENT)
            ).fetchall()
            shipments = shipments_of(db, order_id)
            return render(
                db, "order", f"#{order_number(order_id)}", order=order, addresses=addresses, items=items,
                comments=comments, statuses=ORDER_STATUSES, is_open=order["status"] in OPEN, shipments=shipments,
            )  # fmt: skip

    @app.get("/admin/sales/order/commentsHistory/order_id/<int:order_id>/")
    @app.get("/admin/sales/order/commentsHistory/order_id/<int:order_id>/active_tab/<tab>/")
    def order_history(order_id: int, tab: str = ""):
        with database() as db:
            order = order_or_404(db, order_id)
            title = f"Comments History of #{order_number(order_id)}"
            return render(db, "order_history", title, order=order, events=events(db, order)[:20])

    @app.route("/admin/sales/order/address/address_id/<int:address_id>/", methods=["GET", "POST"])
    def order_address(address_id: int):
        with database() as db:
            row = db.execute("SELECT * FROM address WHERE id = ?", (address_id,)).fetchone() or abort(404)
            values, errors = read_address(request.form) if request.method == "POST" else (dict(row), [])
            if request.method == "GET" or errors:
                title = f"Edit Order #{order_number(row['order_id'])} {row['kind'].title()} Address"
                return render(
                    db, "order_address", title, row=row, values=values, errors=errors, fields=ADDRESS_FIELDS,
                    optional=OPTIONAL,
                ), 400 if errors else 200  # fmt: skip
            values["region"] = read_region(values["region"])
            assignments = ", ".join(f"{key} = ?" for key in values)
            db.execute(f"UPDATE address SET {assignments} WHERE id = ?", (*values.values(), address_id))
            say(db, "You updated the order address.")
        return redirect(order_url(row["order_id"]))

    @app.get("/admin/sales/invoice/view/invoice_id/<int:invoice_id>/")
    def invoice_page(invoice_id: int):
        with database() as db:
            invoice = db.execute("SELECT * FROM invoice WHERE id = ?", (invoice_id,)).fetchone() or abort(404)
            order = order_or_404(db, invoice["order_id"])
            items = db.execute("SELECT * FROM item WHERE order_id = ? ORDER BY rowid", (order["id"],)).fetchall()
            return render(
                db, "invoice", f"Invoice #{order_number(invoice_id)}", invoice=invoice, order=order, items=items
            )


def add_order_actions(app: Flask, database: Callable) -> None:
    def change(order_id: int, before: tuple[str, ...], after: str, message: str):
        """Give an order another status, where its own allows that."""
        with database() as db:
            order = order_or_404(db, order_id)
            if order["status"] in before:
                status = after or order["before_hold"]
                db.execute(
                    "UPDATE orders SET status = ?, before_hold = ? WHERE id = ?", (status, order["status"], order_id)
                )
                say(db, message)
            else:
                say(db, f"An order that is {ORDER_STATUSES[order['status']]} cannot be changed so.", "error")
        return redirect(order_url(order_id))

    @app.post("/admin/sales/order/cancel/order_id/<int:order_id>/")
    def cancel(order_id: int):
        return change(order_id, OPEN, "canceled", "You canceled the order.")

    @app.post("/admin/sales/order/hold/order_id/<int:order_id>/")
    def hold(order_id: int):
        return change(order_id, OPEN, "holded", "You put the order on hold.")

    @app.post("/admin/sales/order/unhold/order_id/<int:order_id>/")
    def unhold(order_id: int):
        return change(order_id, ("holded",), "", "You released the order from holding status.")

    @app.post("/admin/sales/order/addComment/order_id/<int:order_id>/")
    def comment(order_id: int):
        text = request.form.get("history[comment]", "").strip()
        told = int("history[is_customer_notified]" in request.form)
        with database() as db:
            order = order_or_404(db, order_id)
            if text:
                db.execute(
                    "INSERT INTO comment (order_id, created, status, text, notified) VALUES (?, ?, ?, ?, ?)",
                    (order_id, NOW, order["status"], text, told),
                )
                say(db, "You added the comment." + (" The customer was told by e-mail." if told else ""))
            else:
                say(db, "The comment is missing. Enter and try again.", "error")
        return redirect(order_url(order_id))


def add_shipments(app: Flask, database: Callable) -> None:
    @app.route("/admin/admin/order_shipment/new/order_id/<int:order_id>/", methods=["GET", "POST"])
    def new_shipment(order_id: int):
        with database() as db:
            order = order_or_404(db, order_id)
            if order["status"] not in OPEN or shipments_of(db, order_id):
                say(db, "This order cannot be shipped, or was shipped already.", "error")
                return redirect(order_url(order_id))
            error = ""
            if request.method == "POST":
                made = db.execute("INSERT INTO shipment (order_id, created) VALUES (?, ?)", (order_id, NOW)).lastrowid
                if not (error := add_track(db, made, request.form)):
                    db.execute("UPDATE orders SET status = 'processing' WHERE id = ?", (order_id,))
                    say(db, "The shipment has been created.")
                    return redirect(order_url(order_id))
                db.execute("DELETE FROM shipment WHERE id = ?", (made,))
            items = db.execute("SELECT * FROM item WHERE order_id = ? ORDER BY rowid", (order_id,)).fetchall()
            return render(
                db, "shipment_new", f"New Shipment for #{order_number(order_id)}", order=order, items=items,
                error=error, carriers=CARRIERS, form=request.form,
            ), 400 if error else 200  # fmt: skip

    @app.route("/admin/admin/order_shipment/view/shipment_id/<int:shipment_id>/", methods=["GET", "POST"])
    def shipment_page(shipment_id: int):
        with database() as db:
            shipment = db.execute("SELECT * FROM shipment WHERE id = ?", (shipment_id,)).fetchone() or abort(404)
            error = ""
            if request.method == "POST":
                error = add_track(db, shipment_id, request.form)
                if not request.form.get("number", "").strip():
                    error = "Please enter a tracking number."
                if not error:
                    say(db, "The tracking number has been added.")
                    return redirect(request.path)
            order = order_or_404(db, shipment["order_id"])
            tracks = db.execute("SELECT * FROM track WHERE shipment_id = ? ORDER BY id", (shipment_id,)).fetchall()
            return render(
                db, "shipment", f"Shipment #{order_number(shipment_id)}", shipment=shipment, order=order, tracks=tracks,
                error=error, carriers=CARRIERS, form=request.form,
            ), 400 if error else 200  # fmt: skip
