"""The customer's account: dashboard, name, address book, newsletter; and letters to the shop."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping

from flask import Flask, redirect, request

from dynaweb_lite.sites.webarena.shopping.orders import NEWEST_FIRST
from dynaweb_lite.sites.webarena.shopping.page import missing_fields, one_or_404, paged, render, say, text_of

ON_PAGE, RECENT = 4, 4
STATES = dict(
    pair.split("=")
    for pair in (
        "AL=Alabama;AK=Alaska;AZ=Arizona;AR=Arkansas;CA=California;CO=Colorado;CT=Connecticut;DE=Delaware;"
        "DC=District of Columbia;FL=Florida;GA=Georgia;HI=Hawaii;ID=Idaho;IL=Illinois;IN=Indiana;IA=Iowa;KS=Kansas;"
        "KY=Kentucky;LA=Louisiana;ME=Maine;MD=Maryland;MA=Massachusetts;MI=Michigan;MN=Minnesota;MS=Mississippi;"
        "MO=Missouri;MT=Montana;NE=Nebraska;NV=Nevada;NH=New Hampshire;NJ=New Jersey;NM=New Mexico;NY=New York;"
        "NC=North Carolina;ND=North Dakota;OH=Ohio;OK=Oklahoma;OR=Oregon;PA=Pennsylvania;RI=Rhode Island;"
        "SC=South Carolina;SD=South Dakota;TN=Tennessee;TX=Texas;UT=Utah;VT=Vermont;VA=Virginia;WA=Washington;"
        "WV=West Virginia;WI=Wisconsin;WY=Wyoming"
    ).split(";")
)
COUNTRIES = ("United States", "Canada", "United Kingdom")
FIELDS = "firstname lastname company telephone street_1 street_2 city region postcode country_id".split()
REQUIRED = {
    "firstname": "First Name", "lastname": "Last Name", "telephone": "Phone Number", "street_1": "Street Address",
    "city": "City", "region": "State/Province", "postcode": "Zip/Postal Code",
}  # fmt: skip
COLUMNS = "first last company phone street1 street2 city region postcode country".split()
_EMAIL = re.compile(r"[^@\s]+@[\w-]+(\.[\w-]+)+")


def add_routes(app: Flask, database: Callable) -> None:
    _add_dashboard(app, database)
    _add_address_book(app, database)
    _add_newsletter(app, database)
    _add_contact(app, database)


def default_address(db: sqlite3.Connection, kind: str) -> sqlite3.Row | None:
    return db.execute(f"SELECT * FROM address WHERE is_{kind}").fetchone()


def _add_dashboard(app: Flask, database: Callable) -> None:
    @app.get("/customer/account/")
    def dashboard():
        with database() as db:
            orders = db.execute(f"{NEWEST_FIRST} LIMIT ?", (RECENT,)).fetchall()
            addresses = {kind: default_address(db, kind) for kind in ("billing", "shipping")}
            return render(db, "account", "My Account", orders=orders, addresses=addresses)

    @app.get("/customer/account/edit/")
    def edit_name():
        with database() as db:
            customer = db.execute("SELECT * FROM customer").fetchone()
            return render(db, "account_edit", "Edit Account Information", form=customer)

    @app.post("/customer/account/editPost/")
    def save_name():
        with database() as db:
            for problem in (problems := missing_fields(request.form, {"first": "First Name", "last": "Last Name"})):
                say(db, problem, "error")
            if problems:
                return render(db, "account_edit", "Edit Account Information", form=request.form)
            db.execute("UPDATE customer SET first = ?, last = ?", text_of(request.form, "first", "last"))
            say(db, "You saved the account information.")
        return redirect("/customer/account/")


def _add_address_book(app: Flask, database: Callable) -> None:
    @app.get("/customer/address/")
    def address_book():
        with database() as db:
            others = db.execute("SELECT * FROM address WHERE NOT (is_billing OR is_shipping) ORDER BY id").fetchall()
            defaults = {kind: default_address(db, kind) for kind in ("billing", "shipping")}
            return render(db, "addresses", "Address Book", defaults=defaults, page=paged(others, ON_PAGE))

    @app.get("/customer/address/new/")
    def new_address():
        with database() as db:
            customer = db.execute("SELECT * FROM customer").fetchone()
            form = {"firstname": customer["first"], "lastname": customer["last"], "country_id": COUNTRIES[0]}
            return address_form(db, form)

    @app.get("/customer/address/edit/id/<int:address_id>/")
    def edit_address(address_id: int):
        with database() as db:
            row = one_or_404(db, "address", address_id)
            return address_form(db, {f: row[c] for f, c in zip(FIELDS, COLUMNS, strict=True)}, row)

    @app.post("/customer/address/formPost/")
    @app.post("/customer/address/formPost/id/<int:address_id>/")
    def save_address(address_id: int | None = None):
        with database() as db:
            row = one_or_404(db, "address", address_id) if address_id else None
            for problem in (problems := address_problems(request.form)):
                say(db, problem, "error")
            if problems:
                return address_form(db, request.form, row)
            write_address(db, row, request.form)
            say(db, "You saved the address.")
        return redirect("/customer/address/")

    @app.post("/customer/address/delete/id/<int:address_id>/")
    def delete_address(address_id: int):
        with database() as db:
            row = one_or_404(db, "address", address_id)
            if row["is_billing"] or row["is_shipping"]:
                say(db, "A default address cannot be deleted.", "error")
            else:
                db.execute("DELETE FROM address WHERE id = ?", (address_id,))
                say(db, "You deleted the address.")
        return redirect("/customer/address/")


def address_form(db: sqlite3.Connection, form: Mapping[str, str], row: sqlite3.Row | None = None) -> str:
    title = "Edit Address" if row else "Add New Address"
    return render(db, "address_edit", title, form=form, row=row, countries=COUNTRIES)


def address_problems(form: Mapping[str, str]) -> list[str]:
    """What is wrong with a typed address, one message each."""
    problems = missing_fields(form, REQUIRED)
    region, postcode, country = text_of(form, "region", "postcode", "country_id")
    if country not in COUNTRIES:
        problems.append("Please select a country.")
    if country == COUNTRIES[0] and region and not state_name(region):
        problems.append("Please enter a state of the United States, as in California or CA.")
    if country == COUNTRIES[0] and postcode and not re.fullmatch(r"\d{5}(-\d{4})?", postcode):
        problems.append("Please enter a zip code of five digits.")
    return problems


def state_name(text: str) -> str:
    """The full name of a state, written out or by its two letters in any case; empty for anything else."""
    return STATES.get(text.upper()) or next((name for name in STATES.values() if name.lower() == text.lower()), "")


def write_address(db: sqlite3.Connection, row: sqlite3.Row | None, form: Mapping[str, str]) -> None:
    """Save a checked address; a new default takes the place of the one before."""
    values = dict(zip(COLUMNS, text_of(form, *FIELDS), strict=True))
    values["region"] = state_name(values["region"]) or values["region"]
    for kind in ("billing", "shipping"):
        is_default = f"default_{kind}" in form or bool(row and row[f"is_{kind}"])
        if is_default:
            db.execute(f"UPDATE address SET is_{kind} = 0")
        values[f"is_{kind}"] = int(is_default)
    if row:
        sets = ", ".join(f"{column} = ?" for column in values)
        db.execute(f"UPDATE address SET {sets} WHERE id = ?", (*values.values(), row["id"]))
    else:
        db.execute(f"INSERT INTO address VALUES (NULL{', ?' * len(values)})", tuple(values.values()))


def _add_newsletter(app: Flask, database: Callable) -> None:
    @app.get("/newsletter/manage/")
    def newsletter():
        with database() as db:
            return render(db, "newsletter", "Newsletter Subscription")

    @app.post("/newsletter/manage/save/")
    def save_newsletter():
        with database() as db:
            subscribed = "is_subscribed" in request.form
            db.execute("UPDATE customer SET subscribed = ?", (subscribed,))
            say(db, "You have subscribed to the newsletter." if subscribed else "You no longer get the newsletter.")
        return redirect("/customer/account/")

    @app.post("/newsletter/subscriber/new/")
    def subscribe():
        email = request.form.get("email", "").strip()
        with database() as db:
            if not _EMAIL.fullmatch(email):
                say(db, "Please enter a valid email address, as in name@example.com.", "error")
            else:
                db.execute("UPDATE customer SET subscribed = 1 WHERE lower(email) = lower(?)", (email,))
                db.execute("INSERT OR IGNORE INTO subscriber VALUES (?)", (email.lower(),))
                say(db, "Thank you for subscribing to our newsletter.")
        return redirect("/")


def _add_contact(app: Flask, database: Callable) -> None:
    @app.get("/contact/")
    def contact():
        with database() as db:
            customer = db.execute("SELECT * FROM customer").fetchone()
            form = {"name": f"{customer['first']} {customer['last']}", "email": customer["email"]}
            return render(db, "contact", "Contact Us", form=form)

    @app.post("/contact/index/post/")
    def send_letter():
        form = request.form
        with database() as db:
            labels = {"name": "Name", "email": "Email", "comment": "What’s on your mind?"}
            problems = missing_fields(form, labels)
            if form.get("email", "").strip() and not _EMAIL.fullmatch(form["email"].strip()):
                problems.append("Please enter a valid email address, as in name@example.com.")
            for problem in problems:
                say(db, problem, "error")
            if problems:
                return render(db, "contact", "Contact Us", form=form)
            db.execute("INSERT INTO letter VALUES (?, ?, ?, ?)", text_of(form, "name", "email", "telephone", "comment"))
            say(db, "Thank you for your message. We will answer soon.")
        return redirect("/contact/")
