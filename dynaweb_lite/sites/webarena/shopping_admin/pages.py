"""What the panel's pages share: rendering with messages, and how dates and amounts are written and read."""

from __future__ import annotations

import re
import sqlite3
from datetime import date, datetime

from flask import Flask, render_template

NOW = "2023-06-02 09:30:00"
"""The panel's clock stands still, so that the same steps always give the same pages."""
_DATES = ("%m/%d/%Y", "%m/%d/%y", "%Y-%m-%d", "%b %d, %Y", "%B %d, %Y", "%b %d %Y")


def render(db: sqlite3.Connection, template: str, title: str, **values) -> str:
    """A page with the messages that earlier requests left for it."""
    messages = db.execute("SELECT text, kind FROM message ORDER BY id").fetchall()
    db.execute("DELETE FROM message")
    store = db.execute("SELECT name FROM store").fetchone()[0]
    return render_template(f"shopping_admin/{template}.html", title=title, store=store, messages=messages, **values)


def say(db: sqlite3.Connection, text: str, kind: str = "") -> None:
    """Leave a message for the next page; kind "error" marks what went wrong."""
    db.execute("INSERT INTO message (text, kind) VALUES (?, ?)", (text, kind))


def add_filters(app: Flask) -> None:
    """Make the formats known to the templates."""
    app.jinja_env.filters |= {
        "money": money,
        "long_date": long_date,
        "long_time": long_time,
        "order_number": order_number,
    }


def money(amount: float | None) -> str:
    """$1,234.50, and an empty string for no amount."""
    if amount is None:
        return ""
    return f"-${-amount:,.2f}" if amount < 0 else f"${amount:,.2f}"


def long_date(moment: str) -> str:
    """May 31, 2023."""
    day = datetime.fromisoformat(moment)
    return f"{day:%b} {day.day}, {day.year}"


def long_time(moment: str) -> str:
    """May 31, 2023 2:55 AM."""
    time = datetime.fromisoformat(moment)
    return f"{long_date(moment)} {time.hour % 12 or 12}:{time:%M} {time:%p}"


def order_number(order_id: int) -> str:
    """000000299."""
    return f"{order_id:09}"


def short_date(day: str) -> str:
    """5/31/23, as the report forms show a date back."""
    read = date.fromisoformat(day)
    return f"{read.month}/{read.day}/{read:%y}"


def parse_date(text: str) -> str | None:
    """An ISO date from 5/31/2023, 05/31/23, 2023-05-31 or May 31, 2023; None for other text."""
    for form in _DATES:
        try:
            return datetime.strptime(text.strip(), form).date().isoformat()
        except ValueError:
            continue
    return None


def parse_amount(text: str) -> float | None:
    """A number of at most two places that is not negative, with or without $ and commas; None for other text."""
    plain = text.strip().removeprefix("$").replace(",", "")
    return float(plain) if re.fullmatch(r"\d{1,9}(\.\d{1,2})?", plain) else None


def parse_count(text: str) -> int | None:
    """A whole number that is not negative; None for other text."""
    return int(text) if re.fullmatch(r"\d{1,9}", text.strip()) else None
