"""Forms of smaller records: reviews, content pages, cart price rules, customers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from flask import Flask, abort, redirect, request

from dynaweb_lite.sites.webarena.shopping_admin.lists import PENDING_REVIEWS, REVIEW_STATUSES, REVIEWS, RULES
from dynaweb_lite.sites.webarena.shopping_admin.pages import parse_amount, render, say
from dynaweb_lite.sites.webarena.shopping_admin.stock import GROUPS

RULE_ACTIONS = {
    "by_percent": "Percent of product price discount",
    "by_fixed": "Fixed amount discount",
    "cart_fixed": "Fixed amount discount for whole cart",
    "buy_x_get_y": "Buy X get Y free",
}
RULE_GROUPS = ("NOT LOGGED IN", *GROUPS)
PENDING = 2


def row_of(db: sqlite3.Connection, table: str, id_: int) -> sqlite3.Row | None:
    return db.execute(f"SELECT * FROM {table} WHERE id = ?", (id_,)).fetchone()


def update(db: sqlite3.Connection, table: str, id_: int, values: dict) -> None:
    """Write some fields of a record."""
    assignments = ", ".join(f"{key} = ?" for key in values)
    db.execute(f"UPDATE {table} SET {assignments} WHERE id = ?", (*values.values(), id_))


def missing_fields(values: dict, **labels: str) -> list[str]:
    """A sentence for each of the fields that is empty."""
    return [f"{label} is a required field." for key, label in labels.items() if not values[key]]


def add_records(app: Flask, database: Callable) -> None:
    """Serve the forms of all these records."""
    add_reviews(app, database)
    add_content_pages(app, database)
    add_rules(app, database)
    add_customers(app, database)


def add_reviews(app: Flask, database: Callable) -> None:
    @app.route("/admin/review/product/edit/id/<int:review_id>/", methods=["GET", "POST"])
    def edit_review(review_id: int):
        with database() as db:
            review = row_of(db, "review", review_id)
            if review is None:
                return render(db, "review_missing", "Edit Review"), 404
            values, errors = dict(review), []
            if request.method == "POST":
                values |= {key: request.form.get(key, "").strip() for key in ("nickname", "title", "detail")}
                for key, field, known in (("status", "status_id", REVIEW_STATUSES), ("stars", "stars", range(1, 6))):
                    chosen = request.form.get(field, "")
                    values[key] = int(chosen) if chosen.isdecimal() and int(chosen) in known else review[key]
                errors = missing_fields(values, nickname="Nickname", title="Summary of Review", detail="Review")
                if not errors:
                    update(db, "review", review_id, values)
                    say(db, "You saved the review.")
                    return redirect(request.path)
            product = row_of(db, "product", review["product_id"])
            return render(
                db, "review", "Edit Review", review=values, product=product, statuses=REVIEW_STATUSES, errors=errors
            ), 400 if errors else 200

    @app.post("/admin/review/product/delete/id/<int:review_id>/")
    def delete_review(review_id: int):
        with database() as db:
            review = row_of(db, "review", review_id) or abort(404)
            db.execute("DELETE FROM review WHERE id = ?", (review_id,))
            say(db, "The review has been deleted.")
        return redirect((PENDING_REVIEWS if review["status"] == PENDING else REVIEWS).path)


def add_content_pages(app: Flask, database: Callable) -> None:
    @app.route("/admin/cms/page/edit/page_id/<int:page_id>/", methods=["GET", "POST"])
    def edit_page(page_id: int):
        with database() as db:
            page = row_of(db, "page", page_id) or abort(404)
            values, errors = dict(page), []
            if request.method == "POST":
                values |= {key: request.form.get(key, "").strip() for key in ("title", "content")}
                values |= {"url_key": request.form.get("identifier", "").strip()}
                values["active"] = int("is_active" in request.form)
                errors = missing_fields(values, title="Page Title", url_key="URL Key")
                if not errors:
                    update(db, "page", page_id, values)
                    say(db, "You saved the page.")
                    return redirect(request.path)
            return render(db, "page", page["title"], page=values, errors=errors), 400 if errors else 200


def read_rule(form) -> tuple[dict, list[str]]:
    """The fields of a rule's form and what is wrong with them."""
    values = {key: form.get(key, "").strip() for key in ("name", "description", "coupon_code")}
    values |= {"active": int("is_active" in form), "website_ids": "Main Website"}
    values["customer_group_ids"] = ",".join(g for g in RULE_GROUPS if f"group[{g}]" in form)
    values |= {
        "simple_action": form.get("simple_action", ""),
        "discount_amount": form.get("discount_amount", "").strip(),
    }
    errors = missing_fields(values, name="Rule Name", customer_group_ids="Customer Groups")
    if values["simple_action"] not in RULE_ACTIONS:
        errors.append("Please choose an action.")
    amount = parse_amount(values["discount_amount"])
    if amount is None:
        errors.append("Discount Amount must be a number.")
    elif values["simple_action"] == "by_percent" and amount > 100:
        errors.append("A discount in percent is at most 100.")
    else:
        values["discount_amount"] = f"{amount:g}"
    return values, errors


def add_rules(app: Flask, database: Callable) -> None:
    @app.route("/admin/sales_rule/promo_quote/new/", methods=["GET", "POST"], defaults={"rule_id": 0})
    @app.route("/admin/sales_rule/promo_quote/edit/id/<int:rule_id>/", methods=["GET", "POST"])
    def edit_rule(rule_id: int):
        with database() as db:
            blank = {"name": "", "description": "", "coupon_code": "", "active": 1, "customer_group_ids": ""}
            blank |= {"simple_action": "by_percent", "discount_amount": ""}
            rule = (row_of(db, "rule", rule_id) or abort(404)) if rule_id else blank
            values, errors = read_rule(request.form) if request.method == "POST" else (dict(rule), [])
            if request.method == "GET" or errors:
                title = rule["name"] if rule_id else "New Cart Price Rule"
                return render(
                    db, "rule", title, rule=values, errors=errors, actions=RULE_ACTIONS, groups=RULE_GROUPS
                ), 400 if errors else 200
            rule_id = rule_id or db.execute("INSERT INTO rule (priority) VALUES (0)").lastrowid
            update(db, "rule", rule_id, values)
            say(db, "You saved the rule.")
        return redirect(RULES.path)

    @app.post("/admin/sales_rule/promo_quote/delete/id/<int:rule_id>/")
    def delete_rule(rule_id: int):
        with database() as db:
            row_of(db, "rule", rule_id) or abort(404)
            db.execute("DELETE FROM rule WHERE id = ?", (rule_id,))
            say(db, "You deleted the rule.")
        return redirect(RULES.path)


def add_customers(app: Flask, database: Callable) -> None:
    @app.route("/admin/customer/index/edit/id/<int:customer_id>/", methods=["GET", "POST"])
    def edit_customer(customer_id: int):
        with database() as db:
            customer = row_of(db, "customer", customer_id) or abort(404)
            values, errors = dict(customer), []
            if request.method == "POST":
                values |= {key: request.form.get(key, "").strip() for key in ("name", "email", "phone", "group_name")}
                errors = missing_fields(values, name="Name", email="Email")
                if values["email"] and "@" not in values["email"]:
                    errors.append(f"{values['email']!r} is no e-mail address.")
                if values["group_name"] not in GROUPS:
                    errors.append("Please choose a group.")
                if not errors:
                    update(db, "customer", customer_id, values)
                    say(db, "You saved the customer.")
                    return redirect(request.path)
            counts = db.execute(
                "SELECT status, count(*) AS n, sum(total) AS total FROM orders WHERE customer_id = ? GROUP BY status",
                (customer_id,),
            ).fetchall()
            return render(
                db, "customer", customer["name"], customer=values, counts=counts, groups=GROUPS, errors=errors
            ), 400 if errors else 200
