"""Reviews: those of a product, writing one, and the customer's own. New ones wait for approval, as in Magento."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, redirect, request

from dynaweb_lite.sites.webarena.shopping.catalog import trail_of
from dynaweb_lite.sites.webarena.shopping.content import TODAY
from dynaweb_lite.sites.webarena.shopping.page import missing_fields, one_or_404, paged, render, say, text_of

ON_PAGE, FIRST_VALUE = 5, 16
RATING_FIELD = "ratings[4]"
FIELDS = {"nickname": "Nickname", "title": "Summary", "detail": "Review"}


def add_routes(app: Flask, database: Callable) -> None:
    def reviews_page(db, product_id: int) -> str:
        product = one_or_404(db, "rated", product_id)
        rows = db.execute(
            "SELECT * FROM review WHERE product_id = ? AND approved ORDER BY created DESC, id DESC", (product_id,)
        ).fetchall()
        return render(
            db, "reviews", f"Reviews of {product['name']}", product=product, page=paged(rows, ON_PAGE),
            trail=trail_of(db, product["category"]), form=request.form, rating_field=RATING_FIELD, first=FIRST_VALUE,
        )  # fmt: skip

    @app.get("/review/product/list/id/<int:product_id>/")
    def product_reviews(product_id: int):
        with database() as db:
            return reviews_page(db, product_id)

    @app.post("/review/product/post/id/<int:product_id>/")
    def write_review(product_id: int):
        with database() as db:
            product = one_or_404(db, "product", product_id)
            problems = missing_fields(request.form, FIELDS)
            stars = {str(FIRST_VALUE + n): n + 1 for n in range(5)}.get(request.form.get(RATING_FIELD, ""))
            if stars is None:
                problems.append("Please select one of the ratings.")
            for problem in problems:
                say(db, problem, "error")
            if problems:
                return reviews_page(db, product_id)
            row = (product_id, stars, *text_of(request.form, *FIELDS), TODAY)
            db.execute("INSERT INTO review VALUES (NULL, ?, ?, ?, ?, ?, ?, 0, 1)", row)
            say(db, "You submitted your review. It will be shown once we have looked at it.")
        return redirect(f"/{product['url_key']}.html")

    @app.get("/review/customer/")
    def own_reviews():
        with database() as db:
            rows = db.execute(
                "SELECT review.*, name, url_key FROM review JOIN product ON product.id = product_id WHERE is_own "
                "ORDER BY review.id DESC"
            ).fetchall()
            return render(db, "own_reviews", "My Product Reviews", page=paged(rows, ON_PAGE))
