"""Cart, wish list and checkout."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping

from flask import Flask, redirect, request

from dynaweb_lite.sites.webarena.shopping.content import SHIPPING_CENTS, TODAY
from dynaweb_lite.sites.webarena.shopping.page import one_or_404, paged, quantity_of, render, say

ON_PAGE = 5
CART = "SELECT cart.*, name, url_key, sku, cents, in_stock FROM cart JOIN product ON product.id = product_id"
BAD_QUANTITY = "Please enter a quantity from 1 to 1000."


def add_routes(app: Flask, database: Callable) -> None:
    _add_cart(app, database)
    _add_wish_list(app, database)
    _add_checkout(app, database)


def chosen(product: Mapping, form: Mapping[str, str]) -> dict[str, str] | None:
    """The options chosen in a form; None when one of the product's is missing."""
    options = {key: form.get(f"options[{key}]", "") for key in json.loads(product["options"])}
    known = json.loads(product["options"])
    return options if all(options[key] in values for key, values in known.items()) else None


def put_in_cart(db: sqlite3.Connection, product_id: int, options: dict[str, str], quantity: int) -> None:
    row = (product_id, json.dumps(options, sort_keys=True), quantity)
    db.execute(
        "INSERT INTO cart VALUES (NULL, ?, ?, ?) ON CONFLICT DO UPDATE SET quantity = quantity + excluded.quantity", row
    )


def totals(rows) -> dict[str, int]:
    """Subtotal, shipping and total of a cart, in cents."""
    subtotal, pieces = sum(r["cents"] * r["quantity"] for r in rows), sum(r["quantity"] for r in rows)
    return {"subtotal": subtotal, "shipping": pieces * SHIPPING_CENTS, "total": subtotal + pieces * SHIPPING_CENTS}


def _add_cart(app: Flask, database: Callable) -> None:
    @app.get("/checkout/cart/")
    def cart():
        with database() as db:
            rows = db.execute(f"{CART} ORDER BY cart.id").fetchall()
            return render(db, "cart", "Shopping Cart", page=paged(rows, ON_PAGE), totals=totals(rows))

    @app.post("/checkout/cart/add/product/<int:product_id>/")
    def add_to_cart(product_id: int):
        with database() as db:
            product = one_or_404(db, "product", product_id)
            options, quantity = chosen(product, request.form), quantity_of(request.form)
            if options is None:
                say(db, "You need to choose options for your item.", "error")
            elif quantity is None:
                say(db, BAD_QUANTITY, "error")
            elif not product["in_stock"]:
                say(db, f"{product['name']} is out of stock.", "error")
            else:
                put_in_cart(db, product_id, options, quantity)
                say(db, f"You added {product['name']} to your shopping cart.")
        return redirect(f"/{product['url_key']}.html")

    @app.post("/checkout/cart/updatePost/")
    def update_cart():
        with database() as db:
            for row in db.execute("SELECT id FROM cart").fetchall():
                key = f"cart[{row['id']}][qty]"
                if key not in request.form:
                    continue
                if (quantity := quantity_of(request.form, key)) is None:
                    say(db, BAD_QUANTITY, "error")
                    break
                db.execute("UPDATE cart SET quantity = ? WHERE id = ?", (quantity, row["id"]))
        return redirect("/checkout/cart/")

    @app.post("/checkout/cart/delete/id/<int:item_id>/")
    def remove_from_cart(item_id: int):
        with database() as db:
            db.execute("DELETE FROM cart WHERE id = ?", (item_id,))
        return redirect("/checkout/cart/")


def _add_wish_list(app: Flask, database: Callable) -> None:
    @app.get("/wishlist/")
    def wish_list():
        with database() as db:
            rows = db.execute(
                "SELECT rated.*, wish.id AS wish_id FROM wish JOIN rated ON rated.id = product_id ORDER BY wish.id DESC"
            ).fetchall()
            return render(db, "wishlist", "My Wish List", page=paged(rows, ON_PAGE))

    @app.post("/wishlist/index/add/")
    def add_wish():
        with database() as db:
            product = one_or_404(db, "product", request.form.get("product", ""))
            db.execute("INSERT OR IGNORE INTO wish VALUES (NULL, ?)", (product["id"],))
            say(db, f"{product['name']} has been added to your wish list.")
        return redirect("/wishlist/")

    @app.post("/wishlist/index/remove/item/<int:wish_id>/")
    def remove_wish(wish_id: int):
        with database() as db:
            wish = one_or_404(db, "wish", wish_id)
            db.execute("DELETE FROM wish WHERE id = ?", (wish_id,))
            say(db, f"{one_or_404(db, 'product', wish['product_id'])['name']} has been removed from your wish list.")
        return redirect("/wishlist/")

    @app.post("/wishlist/index/cart/item/<int:wish_id>/")
    def wish_to_cart(wish_id: int):
        with database() as db:
            product = one_or_404(db, "product", one_or_404(db, "wish", wish_id)["product_id"])
            if json.loads(product["options"]) or not product["in_stock"]:
                problem = "You need to choose options for your item." if product["in_stock"] else "It is out of stock."
                say(db, problem, "error")
                return redirect(f"/{product['url_key']}.html")
            put_in_cart(db, product["id"], {}, 1)
            db.execute("DELETE FROM wish WHERE id = ?", (wish_id,))
            say(db, f"You added {product['name']} to your shopping cart.")
        return redirect("/wishlist/")


def _add_checkout(app: Flask, database: Callable) -> None:
    @app.get("/checkout/")
    def shipping():
        with database() as db:
            rows = db.execute(CART).fetchall()
            if not rows:
                return redirect("/checkout/cart/")
            addresses = db.execute("SELECT * FROM address ORDER BY is_shipping DESC, id").fetchall()
            chosen = db.execute("SELECT address_id FROM checkout").fetchone()
            return render(
                db, "shipping", "Checkout", addresses=addresses, totals=totals(rows), chosen=chosen and chosen[0]
            )

    @app.post("/checkout/shipping/")
    def choose_shipping():
        with database() as db:
            address = one_or_404(db, "address", request.form.get("address", ""))
            db.execute("DELETE FROM checkout")
            db.execute("INSERT INTO checkout VALUES (?)", (address["id"],))
        return redirect("/checkout/payment/")

    @app.get("/checkout/payment/")
    def payment():
        with database() as db:
            rows, address = db.execute(f"{CART} ORDER BY cart.id").fetchall(), shipping_address(db)
            if not rows or not address:
                return redirect("/checkout/")
            return render(db, "payment", "Checkout", rows=rows, address=address, totals=totals(rows))

    @app.post("/checkout/payment/")
    def place_order():
        with database() as db:
            if (number := place(db)) is None:
                return redirect("/checkout/")
        return redirect(f"/checkout/onepage/success/?order={number}")

    @app.get("/checkout/onepage/success/")
    def success():
        with database() as db:
            order = one_or_404(db, "orders", request.args.get("order", 0, type=int))
            return render(db, "success", "Thank you for your purchase!", order=order)


def shipping_address(db: sqlite3.Connection) -> sqlite3.Row | None:
    return db.execute("SELECT address.* FROM checkout JOIN address ON address.id = address_id").fetchone()


def place(db: sqlite3.Connection) -> int | None:
    """Turn the cart into an order; its number, or None when there is no cart or no address."""
    rows, address = db.execute(f"{CART} ORDER BY cart.id").fetchall(), shipping_address(db)
    if not rows or not address:
        return None
    billing = db.execute("SELECT * FROM address ORDER BY is_billing DESC, id").fetchone()
    number = db.execute("SELECT max(id) + 1 FROM orders").fetchone()[0]
    lines = [address_line(a) for a in (address, billing)]
    db.execute("INSERT INTO orders VALUES (?, ?, 'Pending', ?, ?)", (number, TODAY, *lines))
    for r in rows:
        row = (number, r["product_id"], r["name"], r["sku"], r["cents"], r["quantity"], r["options"])
        db.execute("INSERT INTO order_item VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
    db.execute("DELETE FROM cart")
    db.execute("DELETE FROM checkout")
    return number


def address_line(address: Mapping) -> str:
    """An address on one line, with the name before it."""
    parts = [f"{address['first']} {address['last']}"]
    parts += [address[key] for key in ("street1", "street2", "city", "region", "postcode", "country")]
    return ", ".join(part for part in parts if part)
