"""The map, a replica of WebArena's OpenStreetMap: search, objects, directions and notes, with a drawn picture."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from flask import Flask, abort, redirect, render_template, request

from dynaweb_lite.sites.webarena import new_app
from dynaweb_lite.sites.webarena.maps.content import TODAY, USER
from dynaweb_lite.sites.webarena.maps.geo import Point, format_distance, format_time
from dynaweb_lite.sites.webarena.maps.picture import View, draw, view_around, view_of
from dynaweb_lite.sites.webarena.maps.places import KINDS
from dynaweb_lite.sites.webarena.maps.routes import DEFAULT_ENGINE, ENGINES, Route, find_route
from dynaweb_lite.sites.webarena.maps.search import find_place, search, where

HITS, NOTES = 10, 8
MAX_ZOOM = 5
MAX_TEXT = 2_000


def make_app(database: Callable) -> Flask:
    """The map's application; `database()` is a context manager that yields the session's database."""
    app = new_app(__name__)
    app.jinja_env.filters |= {"distance": format_distance, "time": format_time}

    @app.get("/")
    def home():
        with database() as db:
            towns = db.execute(
                "SELECT * FROM place WHERE kind IN ('city', 'town') "
                "ORDER BY CAST(json_extract(tags, '$.population') AS INTEGER) DESC LIMIT 10"
            ).fetchall()
            return page(db, "home", "Home", towns=towns)

    @app.get("/search")
    def find():
        query, number = request.args.get("query", ""), page_number()
        with database() as db:
            hits = search(db, query)
            shown = hits.places[(number - 1) * HITS : number * HITS]
            more = "/search?" + urlencode({"query": query, "page": number + 1})
            values = {"places": shown, "more": more if len(hits.places) > number * HITS else "", "kinds": KINDS}
            spots = [where(place) for place in shown]
            view = view_around(spots) if spots else None
            problem = hits.problem or "No results found"
            return page(db, "search", "Search", view, spots, query=query, problem=problem, **values)

    @app.get("/<any(node,way,relation):form>/<int:number>")
    def show(form: str, number: int):
        with database() as db:
            place = db.execute("SELECT * FROM place WHERE id = ?", (f"{form}/{number}",)).fetchone()
            if place is None:
                return border(db, form, number)
            values = {"form": form.title(), "number": number, "place": place, "tags": json.loads(place["tags"])}
            if place["kind"] == "state":
                values["borders"] = db.execute(
                    "SELECT * FROM border WHERE ? IN (one, other) ORDER BY id", (place["name"],)
                ).fetchall()
            title = f"{form.title()}: {place['name'] or place['street']} ({number})"
            return page(db, "place", title, view_of(place), [where(place)], **values)

    def border(db: sqlite3.Connection, form: str, number: int):
        row = db.execute("SELECT * FROM border WHERE id = ?", (f"{form}/{number}",)).fetchone() or abort(404)
        states = db.execute(
            "SELECT * FROM place WHERE kind = 'state' AND name IN (?, ?) ORDER BY name", (row["one"], row["other"])
        ).fetchall()
        view = view_around([where(state) for state in states])
        return page(db, "border", f"Way: {row['name']} ({number})", view, border=row, number=number, states=states)

    @app.get("/directions")
    def directions():
        texts, engine = asked_ends(), request.args.get("engine", DEFAULT_ENGINE)
        engine = engine if engine in ENGINES else DEFAULT_ENGINE
        with database() as db:
            ends = [find_place(db, text) if text else None for text in texts]
            problems = problems_of(texts, ends)
            route = find_route(db, *ends, ENGINES[engine][0]) if not problems and all(ends) else None
            texts = [end["label"] if end else text for end, text in zip(ends, texts, strict=True)]
            back = {"engine": engine, "route_from": texts[1], "route_to": texts[0]}
            values = {"start_text": texts[0], "end_text": texts[1], "engine": engine, "engines": ENGINES}
            values |= {"problems": problems, "route": route, "reversed": "/directions?" + urlencode(back)}
            return page(db, "directions", "Directions", *seen(route, ends), **values)

    @app.get("/notes")
    def notes():
        number = page_number()
        with database() as db:
            rows = db.execute(
                "SELECT note.*, text FROM note JOIN comment ON note = id AND action = 'opened' "
                "ORDER BY id DESC LIMIT ? OFFSET ?",
                (NOTES + 1, (number - 1) * NOTES),
            ).fetchall()
            spots = [(row["lat"], row["lon"]) for row in rows[:NOTES]]
            values = {"notes": rows[:NOTES], "page": number, "more": len(rows) > NOTES}
            return page(db, "notes", "Notes", view_around(spots) if spots else None, spots, **values)

    @app.route("/note/new", methods=("GET", "POST"))
    def new_note():
        with database() as db:
            place = db.execute("SELECT * FROM place WHERE id = ?", (request.args.get("place"),)).fetchone()
            if place is None:
                abort(404)
            text = request.form.get("text", "").strip()
            problem = problem_of(text) if request.method == "POST" else ""
            if request.method == "POST" and not problem:
                values = (place["label"], *where(place), TODAY)
                made = db.execute("INSERT INTO note (place, lat, lon, opened, is_open) VALUES (?,?,?,?,1)", values)
                comment(db, made.lastrowid, "opened", text)
                return redirect(f"/note/{made.lastrowid}?done=opened", 303)
            values = {"place": place, "text": text, "problem": problem}
            return page(db, "new_note", "New Note", view_of(place), [where(place)], **values)

    @app.route("/note/<int:number>", methods=("GET", "POST"))
    def note(number: int):
        with database() as db:
            row = db.execute("SELECT * FROM note WHERE id = ?", (number,)).fetchone() or abort(404)
            text, action = request.form.get("text", "").strip(), request.form.get("action", "commented")
            problem = ""
            if request.method == "POST":
                problem = problem_of(text) if text or action == "commented" else ""
                if action not in NOTE_STATES[row["is_open"]]:
                    return redirect(f"/note/{number}", 303)
                if not problem:
                    db.execute(
                        "UPDATE note SET is_open = ? WHERE id = ?", (NOTE_STATES[row["is_open"]][action], number)
                    )
                    comment(db, number, action, text)
                    return redirect(f"/note/{number}?done={action}", 303)
            comments = db.execute("SELECT * FROM comment WHERE note = ? ORDER BY rowid", (number,)).fetchall()
            spot = row["lat"], row["lon"]
            values = {"note": row, "comments": comments[-8:], "problem": problem}
            return page(db, "note", f"Note #{number}", View(spot, 700), [spot], **values)

    @app.get("/about")
    def about():
        with database() as db:
            return page(db, "about", "About")

    @app.errorhandler(404)
    @app.errorhandler(405)
    def missing(error):
        with database() as db:
            return page(db, "missing", "File not found"), error.code

    return app


NOTE_STATES = {1: {"commented": 1, "resolved": 0}, 0: {"reopened": 1}}
"""What can be done to an open and to a resolved note, and whether it is open afterwards."""
MESSAGES = {
    "opened": "Your note was added.",
    "commented": "Your comment was added.",
    "resolved": "The note is resolved.",
    "reopened": "The note is open again.",
}


def page(
    db: sqlite3.Connection,
    template: str,
    title: str,
    view: View | None = None,
    pins: Sequence[Point] = (),
    path: Sequence[Point] = (),
    **values: object,
) -> str:
    """A page with its picture: the given view, or the map's first town, as near as the address says."""
    zoom = max(-MAX_ZOOM, min(MAX_ZOOM, request.args.get("zoom", 0, type=int)))
    if view is None:
        view = view_of(db.execute("SELECT place.* FROM place JOIN start ON id = place").fetchone())
    values |= {f"zoom_{name}": zoom_url(zoom + step) for name, step in (("in", 1), ("out", -1))}
    picture = draw(db, view.zoomed(zoom), pins, path)
    message = MESSAGES.get(request.args.get("done", ""), "")
    return render_template(f"map/{template}.html", title=title, picture=picture, message=message, **values)


def zoom_url(zoom: int) -> str:
    """This page with another zoom."""
    pairs = [(key, value) for key, value in request.args.items(multi=True) if key not in ("zoom", "done")]
    return f"{request.path}?" + urlencode([*pairs, ("zoom", max(-MAX_ZOOM, min(MAX_ZOOM, zoom)))])


def page_number() -> int:
    return max(1, request.args.get("page", 1, type=int))


def asked_ends() -> list[str]:
    """What the address asks a route between: names, or OpenStreetMap's `route=lat,lon;lat,lon`."""
    points = request.args.get("route", "").split(";")
    return [
        request.args.get(key, point).strip()
        for key, point in zip(("route_from", "route_to"), [*points, ""], strict=False)
    ]


def problems_of(texts: Sequence[str], ends: Sequence[sqlite3.Row | None]) -> list[str]:
    """Why there is no route; nothing is wrong yet with an empty form."""
    if not any(texts):
        return []
    problems = [f"No place found for “{text}”." for text, end in zip(texts, ends, strict=True) if text and end is None]
    if not all(texts) and "route_from" in request.args and "route_to" in request.args:
        problems.append("Please fill in both ends of the route.")
    if all(ends) and ends[0]["id"] == ends[1]["id"]:
        problems.append("Both ends of the route are the same place.")
    return problems


def seen(route: Route | None, ends: Sequence[sqlite3.Row | None]) -> tuple[View | None, list[Point], Sequence[Point]]:
    """What the picture shows: the route, or the ends that are known."""
    pins = [where(end) for end in ends if end is not None]
    points = route.points if route else pins
    return (view_around(points) if points else None), pins, (route.points if route else ())


def problem_of(text: str) -> str:
    """What is wrong with a note's text, or nothing."""
    if not text:
        return "Please write something."
    return f"Please stay below {MAX_TEXT} characters." if len(text) > MAX_TEXT else ""


def comment(db: sqlite3.Connection, note: int, action: str, text: str) -> None:
    db.execute("INSERT INTO comment VALUES (?,?,?,?,?)", (note, USER, TODAY, action, text))
