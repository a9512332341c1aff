"""The encyclopedia, a replica of WebArena's Kiwix mirror of Wikipedia: landing page, articles, full-text search."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable
from urllib.parse import quote, urlencode

from flask import Flask, abort, redirect, render_template, request
from markupsafe import Markup, escape

from dynaweb_lite.sites.webarena import new_app
from dynaweb_lite.sites.webarena.maps.places import words_of
from dynaweb_lite.sites.webarena.wikipedia.content import LINK

BOOK = "wikipedia_en_all_maxi_2022-05"
LANDING = "User:The_other_Kiwix_guy/Landing"
HITS, SNIPPET, TITLE_WEIGHT = 10, 150, 3


def make_app(database: Callable) -> Flask:
    """The encyclopedia's application; `database()` is a context manager that yields the session's database."""
    app = new_app(__name__)

    @app.get("/")
    @app.get(f"/{BOOK}/")
    @app.get(f"/{BOOK}/A/")
    def root():
        return redirect(f"/{BOOK}/A/{LANDING}", 302)

    @app.get(f"/{BOOK}/A/<path:name>")
    def article(name: str):
        title = name.replace("_", " ")
        with database() as db:
            if title == LANDING.replace("_", " "):
                return page("landing", "Wikipedia", places=_sample(db, "topic = ''"), region=_sample(db, "topic != ''"))
            if target := db.execute("SELECT target FROM redirect WHERE title = ?", (title,)).fetchone():
                return redirect(path_of(target["target"]), 302)
            row = db.execute("SELECT * FROM article WHERE title = ?", (title,)).fetchone() or abort(404)
            known = {r["title"] for r in db.execute("SELECT title FROM article UNION SELECT title FROM redirect")}
        parts = {key: json.loads(row[key]) for key in ("facts", "text", "sections")}
        return page("article", row["title"], linked=lambda text: linked(text, known), **parts)

    @app.get("/search")
    def search():
        pattern, start = request.args.get("pattern", "").strip(), max(0, request.args.get("start", 0, type=int))
        with database() as db:
            hits = find(db, pattern)
        shown = [
            (row["title"], path_of(row["title"]), snippet(row["plain"], pattern)) for row in hits[start : start + HITS]
        ]
        more = {"previous": start - HITS if start else None, "next": start + HITS if len(hits) > start + HITS else None}
        urls = {name: search_url(pattern, at) if at is not None else "" for name, at in more.items()}
        return page("search", f"Search: {pattern}", hits=shown, total=len(hits), start=start, pattern=pattern, **urls)

    @app.errorhandler(404)
    @app.errorhandler(405)
    def missing(error):
        return page("missing", "Not found"), error.code

    return app


def page(template: str, title: str, **values: object) -> str:
    return render_template(
        f"wikipedia/{template}.html", title=title, book=BOOK, landing=f"/{BOOK}/A/{LANDING}", path_of=path_of, **values
    )


def path_of(title: str) -> str:
    """Where the article of a title is."""
    return f"/{BOOK}/A/{quote(title.replace(' ', '_'), safe=',()&:/')}"


def search_url(pattern: str, start: int) -> str:
    return "/search?" + urlencode({"content": BOOK, "pattern": pattern, "start": max(0, start)})


def linked(text: str, known: set[str]) -> Markup:
    """A paragraph with its links; those that lead nowhere stay text."""

    def link(match) -> str:
        title, shown = match[1], match[2] or match[1]
        target = next((name for name in (title, title[:1].upper() + title[1:]) if name in known), None)
        return f'<a href="{escape(path_of(target))}">{escape(shown)}</a>' if target else str(escape(shown))

    pieces, end = [], 0
    for match in LINK.finditer(text):
        pieces += [str(escape(text[end : match.start()])), link(match)]
        end = match.end()
    return Markup("".join([*pieces, str(escape(text[end:]))]))


def find(db: sqlite3.Connection, pattern: str) -> list[sqlite3.Row]:
    """Articles with most of the pattern's words, rare words and words of titles counting more; the best first."""
    wanted = set(words_of(pattern))
    rows = db.execute("SELECT * FROM article").fetchall()
    words = {row["title"]: set(row["words"].split()) for row in rows}
    rarity = {w: math.log(1 + len(rows) / (1 + sum(w in found for found in words.values()))) for w in wanted}
    named = {r["target"] for r in db.execute("SELECT * FROM redirect") if set(words_of(r["title"])) == wanted}
    named |= {row["title"] for row in rows if set(row["title_words"].split()) == wanted}
    found = []
    for row in rows:
        hits = wanted & words[row["title"]]
        if wanted and (row["title"] in named or 2 * len(hits) >= len(wanted)):
            in_title = set(row["title_words"].split())
            points = sum(rarity[word] * (TITLE_WEIGHT if word in in_title else 1) for word in hits)
            found.append((row["title"] not in named, -points, row["title"], row))
    return [row for *_, row in sorted(found, key=lambda item: item[:3])]


def snippet(text: str, pattern: str) -> str:
    """The part of a text around the first of the pattern's words."""
    lower = text.lower()
    at = min((i for word in pattern.lower().split() if (i := lower.find(word)) >= 0), default=0)
    begin = 0 if at < SNIPPET // 2 else lower.find(" ", at - SNIPPET // 2) + 1
    end = len(text) if len(text) <= begin + SNIPPET else text.rfind(" ", begin, begin + SNIPPET)
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


def _sample(db: sqlite3.Connection, condition: str) -> list[str]:
    """A few titles for the landing page, spread over all."""
    titles = [row["title"] for row in db.execute(f"SELECT title FROM article WHERE {condition} ORDER BY rowid")]
    step = max(1, len(titles) // 8)
    return titles[::step][:8]
