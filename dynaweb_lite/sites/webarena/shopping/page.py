"""What all pages of the shop share: header and messages, money and dates, lists in pages, reading what forms send."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote, urlencode

from flask import abort, render_template, request

MAX_QUANTITY = 1000
LARGEST_ID = 2**63 - 1
"""SQLite has no larger numbers."""


def render(db: sqlite3.Connection, template: str, title: str, **values) -> str:
    """A page from templates/shopping, with the messages that wait for the customer and the count of the cart."""
    messages = db.execute("SELECT kind, text FROM message").fetchall()
    db.execute("DELETE FROM message")
    pieces = db.execute("SELECT coalesce(sum(quantity), 0) FROM cart").fetchone()[0]
    customer = db.execute("SELECT * FROM customer").fetchone()
    return render_template(
        f"shopping/{template}.html", title=title, messages=messages, pieces=pieces, customer=customer, **values
    )


def say(db: sqlite3.Connection, text: str, kind: str = "") -> None:
    """A message for the next page; `kind` "error" for bad news."""
    db.execute("INSERT INTO message VALUES (?, ?)", (kind, text))


def one_or_404(db: sqlite3.Connection, table: str, key: int | str, column: str = "id") -> sqlite3.Row:
    """The row of a table with this key; the page of missing things if there is none."""
    if isinstance(key, int) and key > LARGEST_ID:
        abort(404)
    return db.execute(f"SELECT * FROM {table} WHERE {column} = ?", (key,)).fetchone() or abort(404)


def money(cents: int) -> str:
    return f"${cents / 100:,.2f}"


def short_date(day: str) -> str:
    """2023-05-07 as 5/7/23."""
    found = date.fromisoformat(day)
    return f"{found.month}/{found.day}/{found.year % 100:02d}"


def long_date(day: str) -> str:
    """2023-05-07 as May 7, 2023."""
    found = date.fromisoformat(day)
    return f"{found:%B} {found.day}, {found.year}"


def options_of(text: str) -> dict[str, str]:
    """Chosen options as the database keeps them."""
    return json.loads(text or "{}")


def tile(product_id: int) -> str:
    """A picture for a product: a data address of a small drawing in a color of its own."""
    hue = product_id * 47 % 360
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 60">'
        f'<rect width="80" height="60" fill="hsl({hue},38%,82%)"/>'
        f'<path d="M40 10 62 20v21L40 51 18 41V20z" fill="hsl({hue},40%,62%)"/>'
        f'<path d="M18 20 40 30v21L18 41z" fill="hsl({hue},40%,52%)"/>'
        f'<path d="M18 20 40 10l22 10-22 10z" fill="hsl({hue},45%,72%)"/></svg>'
    )
    return "data:image/svg+xml," + quote(drawing, safe="/ ='")


FILTERS = {"money": money, "short_date": short_date, "long_date": long_date, "options": options_of, "tile": tile}


@dataclass(frozen=True)
class Paged:
    """The part of a list that is on one page. `first` and `end` count its rows from 1."""

    rows: Sequence
    number: int
    last: int
    total: int
    size: int

    @property
    def first(self) -> int:
        return (self.number - 1) * self.size + 1

    @property
    def end(self) -> int:
        return self.first + len(self.rows) - 1

    def address(self, number: int) -> str:
        return here(p=number)


def paged(rows: Sequence, size: int) -> Paged:
    """The page of a list that the address asks for by `p`; the nearest one where there is no such page."""
    last = max(1, -(-len(rows) // size))
    number = min(max(1, request.args.get("p", 1, type=int)), last)
    return Paged(rows[(number - 1) * size : number * size], number, last, len(rows), size)


def here(path: str = "", **changes) -> str:
    """This page's address with some of its query changed; None drops a key, and so does page 1."""
    query = {key: value for key, value in request.args.items() if key != "p"} | changes
    kept = {key: value for key, value in query.items() if value is not None and (key, value) != ("p", 1)}
    return (path or request.path) + (f"?{urlencode(kept)}" if kept else "")


def quantity_of(form: Mapping[str, str], key: str = "qty") -> int | None:
    """A number of pieces from a form, 1 where the field is missing; None when it is not a number from 1 to 1000."""
    text = form.get(key, "1").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) and 1 <= int(text) <= MAX_QUANTITY else None


def text_of(form: Mapping[str, str], *keys: str) -> list[str]:
    """Fields of a form without white space around them, empty where they are missing."""
    return [form.get(key, "").strip() for key in keys]


def missing_fields(form: Mapping[str, str], labels: Mapping[str, str]) -> list[str]:
    """A message for each of the required fields (name: label) that is empty."""
    return [f"{label} is a required field." for key, label in labels.items() if not form.get(key, "").strip()]
