"""The shop, a light replica of WebArena's shopping site, with its URL layout."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, abort, redirect, render_template, request

from dynaweb_lite.sites.content import SHOP_SIZE

HITS = 5


def shop_app(database: Callable) -> Flask:
    """The shop's application; `database()` is a context manager that yields the session's database."""
    app = Flask(__name__)

    def page(db, template: str, title: str, **values) -> str:
        style = dict(db.execute("SELECT key, value FROM style").fetchall())
        return render_template(
            f"shop/{template}.html", title=title, style=style, query=request.args.get("q", ""), **values
        )

    @app.get("/")
    def home():
        with database() as db:
            featured = db.execute("SELECT * FROM product ORDER BY rating DESC, id LIMIT 4").fetchall()
            return page(db, "listing", "Home", heading="Featured Products", products=featured)

    @app.get("/<name>.html")
    def product_or_collection(name: str):
        with database() as db:
            product = db.execute("SELECT * FROM product WHERE slug = ?", (name,)).fetchone()
            if product:
                return page(db, "product", product["name"], product=product)
            rows = db.execute("SELECT * FROM product WHERE lower(collection) = ? ORDER BY id", (name,)).fetchall()
            if not rows:
                return page(db, "missing", "Not Found"), 404
            number = max(1, request.args.get("p", 1, type=int))
            shown = rows[(number - 1) * SHOP_SIZE.page : number * SHOP_SIZE.page]
            more = f"/{name}.html?p={number + 1}" if len(rows) > number * SHOP_SIZE.page else ""
            return page(db, "listing", rows[0]["collection"], heading=rows[0]["collection"], products=shown, more=more)

    @app.get("/catalogsearch/result/")
    def search():
        terms = request.args.get("q", "").lower().split()
        with database() as db:
            rows = db.execute("SELECT * FROM product ORDER BY id").fetchall()
            hits = [r for r in rows if terms and set(terms) <= set(r["name"].lower().split())][:HITS]
            empty = "Your search returned no results." if terms else "Please enter a search term."
            return page(db, "listing", "Search", heading="Search Results", products=hits, empty=empty)

    @app.post("/checkout/cart/add/<int:product_id>")
    def add_to_cart(product_id: int):
        with database() as db:
            product = product_or_404(db, product_id)
            db.execute(
                "INSERT INTO cart VALUES (?, 1) ON CONFLICT DO UPDATE SET quantity = quantity + 1", (product_id,)
            )
            after = db.execute("SELECT value FROM style WHERE key = 'after_add'").fetchone()[0]
        targets = {
            "stay": f"/{product['slug']}.html?added=1",
            "cart": "/checkout/cart/",
            "confirm": f"/checkout/added/{product_id}/",
        }
        return redirect(targets[after])

    @app.get("/checkout/added/<int:product_id>/")
    def added(product_id: int):
        with database() as db:
            return page(db, "added", "Added", product=product_or_404(db, product_id))

    @app.get("/checkout/cart/")
    def cart():
        with database() as db:
            rows = db.execute("SELECT * FROM cart JOIN product ON id = product_id ORDER BY product.id").fetchall()
            return page(db, "cart", "Cart", rows=rows)

    @app.post("/checkout/cart/delete/<int:product_id>")
    def remove(product_id: int):
        with database() as db:
            db.execute("DELETE FROM cart WHERE product_id = ?", (product_id,))
        return redirect("/checkout/cart/")

    @app.post("/wishlist/index/add/<int:product_id>")
    def add_to_wish_list(product_id: int):
        with database() as db:
            product_or_404(db, product_id)
            db.execute("INSERT OR IGNORE INTO wish VALUES (?)", (product_id,))
        return redirect("/wishlist/")

    @app.get("/wishlist/")
    def wish_list():
        with database() as db:
            rows = db.execute("SELECT * FROM wish JOIN product ON id = product_id ORDER BY product.id").fetchall()
            return page(db, "wishlist", "Wish List", rows=rows)

    @app.get("/customer/account/")
    def account():
        with database() as db:
            return page(db, "account", "Account")

    @app.get("/sales/order/history/")
    def orders():
        with database() as db:
            rows = db.execute("SELECT * FROM orders ORDER BY id DESC").fetchall()
            return page(db, "orders", "Orders", rows=rows)

    @app.get("/sales/order/view/order_id/<int:order_id>/")
    def order(order_id: int):
        with database() as db:
            row = db.execute("SELECT * FROM orders WHERE id = ?", (order_id,)).fetchone()
            return page(db, "order", f"Order {order_id}", order=row) if row else (page(db, "missing", "Not Found"), 404)

    @app.errorhandler(404)
    def missing(_error):
        with database() as db:
            return page(db, "missing", "Not Found"), 404

    def product_or_404(db, product_id: int):
        return db.execute("SELECT * FROM product WHERE id = ?", (product_id,)).fetchone() or abort(404)

    return app
