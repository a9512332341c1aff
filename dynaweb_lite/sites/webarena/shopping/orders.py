"""The customer's orders: history in pages, one order, ordering again."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, redirect

from dynaweb_lite.sites.webarena.shopping.checkout import put_in_cart
from dynaweb_lite.sites.webarena.shopping.page import one_or_404, options_of, paged, render, say

ON_PAGE, ITEMS_ON_PAGE = 8, 5
NEWEST_FIRST = "SELECT * FROM bill ORDER BY created DESC, id DESC"


def add_routes(app: Flask, database: Callable) -> None:
    @app.get("/sales/order/history/")
    def history():
        with database() as db:
            return render(db, "orders", "My Orders", page=paged(db.execute(NEWEST_FIRST).fetchall(), ON_PAGE))

    @app.get("/sales/order/view/order_id/<int:order_id>/")
    def order(order_id: int):
        with database() as db:
            row = one_or_404(db, "bill", order_id)
            items = db.execute("SELECT * FROM order_item WHERE order_id = ? ORDER BY id", (order_id,)).fetchall()
            return render(db, "order", f"Order # {order_id:09d}", order=row, page=paged(items, ITEMS_ON_PAGE))

    @app.post("/sales/order/reorder/order_id/<int:order_id>/")
    def reorder(order_id: int):
        with database() as db:
            one_or_404(db, "orders", order_id)
            items = db.execute(
                "SELECT order_item.*, in_stock FROM order_item JOIN product ON product.id = product_id "
                "WHERE order_id = ? ORDER BY order_item.id",
                (order_id,),
            ).fetchall()
            for item in items:
                if item["in_stock"]:
                    put_in_cart(db, item["product_id"], options_of(item["options"]), item["quantity"])
                else:
                    say(db, f"{item['name']} is out of stock.", "error")
        return redirect("/checkout/cart/")
