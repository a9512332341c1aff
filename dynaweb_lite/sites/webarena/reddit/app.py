"""The forum site, a replica of WebArena's Postmill: its pages to read. What its forms do is in reddit_forms.py."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, abort, redirect, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from dynaweb_lite.sites.webarena import new_app
from dynaweb_lite.sites.webarena.reddit.content import USER
from dynaweb_lite.sites.webarena.reddit.forms import add_forms
from dynaweb_lite.sites.webarena.reddit.pages import (
    find_comment,
    find_forum,
    find_submission,
    page_number,
    render,
    render_error,
)
from dynaweb_lite.sites.webarena.reddit.queries import (
    COMMENTS_PAGE,
    FORUM_ORDERS,
    SORTS,
    TIMED,
    TIMES,
    comments_of,
    history,
    list_forums,
    list_submissions,
    list_subscribed,
    paged,
    search,
    subscriptions,
    thread,
)
from dynaweb_lite.sites.webarena.reddit.text import FUNCTIONS

FORUMS_PAGE, ALL_FORUMS_PAGE = 10, 48


def make_app(database: Callable) -> Flask:
    """The forum site's application; `database()` is a context manager that yields the session's database."""
    app = new_app(__name__)
    app.jinja_env.globals.update(FUNCTIONS)
    _add_front_pages(app, database)
    _add_forum_pages(app, database)
    _add_submission_pages(app, database)
    _add_people(app, database)
    add_forms(app, database)

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException):
        with database() as db:
            return render_error(db, error)

    return app


def _order(sort: str) -> dict:
    """The order and the span of time that a listing is asked for. Ends the request with 404 for an unknown order."""
    if sort not in SORTS:
        abort(404)
    time = request.args.get("t", "day")
    return {"sort": sort, "time": time if time in TIMES else "day"}


def _choices(base: str, order: dict) -> dict:
    """What a listing's menus show: orders, and spans of time where the order looks at one."""
    times = TIMES if order["sort"] in TIMED else {}
    return {
        **order,
        "base": base,
        "sorts": [(key, label) for key, (label, _) in SORTS.items()],
        "times": [(key, label) for key, (_, label) in times.items()],
    }


def _add_front_pages(app: Flask, database: Callable) -> None:
    @app.get("/")
    @app.get("/<any(hot,new,top,controversial,most_commented):sort>")
    def home(sort: str = "hot"):
        with database() as db:
            order = _order(sort)
            found = list_submissions(db, number=page_number(), **order)
            side = subscriptions(db) if request.path == "/" else None
            return render(db, "front", "Postmill", page=found, subscribed=side, scope="all", **_choices("/", order))

    @app.get("/subscribed")
    @app.get("/subscribed/<sort>")
    def subscribed(sort: str = "hot"):
        with database() as db:
            order = _order(sort)
            found = list_subscribed(db, number=page_number(), **order)
            choices = _choices("/subscribed/", order)
            return render(db, "front", "Subscribed", page=found, subscribed=None, scope="subscribed", **choices)

    @app.get("/search")
    def find():
        query = request.args.get("q", "").strip()
        with database() as db:
            return render(db, "search", "Search", query=query, page=search(db, query, page_number()))


def _add_forum_pages(app: Flask, database: Callable) -> None:
    @app.get("/forums")
    @app.get("/forums/<any(by_title,by_subscribers,by_submissions):order>")
    def forums(order: str = "by_title"):
        with database() as db:
            found = list_forums(db, order, page_number(), FORUMS_PAGE)
            return render(db, "forums", "Forums", page=found, order=order, orders=FORUM_ORDERS)

    @app.get("/forums/all")
    def all_forums():
        with database() as db:
            found = list_forums(db, "by_title", page_number(), ALL_FORUMS_PAGE)
            return render(db, "all_forums", "All forums", page=found)

    @app.get("/f/<name>")
    @app.get("/f/<name>/<any(hot,new,top,controversial,most_commented):sort>")
    def forum(name: str, sort: str = "hot"):
        with database() as db:
            row = find_forum(db, name)
            if row["name"] != name:
                return redirect(request.full_path.rstrip("?").replace(f"/f/{name}", f"/f/{row['name']}", 1))
            order = _order(sort)
            found = list_submissions(db, number=page_number(), forum=name, **order)
            return render(db, "forum", row["title"], forum=row, page=found, **_choices(f"/f/{name}/", order))


def _add_submission_pages(app: Flask, database: Callable) -> None:
    @app.get("/f/<name>/<int:number>/")
    @app.get("/f/<name>/<int:number>/<slug>")
    def submission(name: str, number: int, slug: str = "-"):
        with database() as db:
            row = find_submission(db, name, number)
            comments = thread(comments_of(db, "d.submission_id = ?", number))
            found = paged(comments, page_number(), COMMENTS_PAGE)
            return render(db, "submission", row["title"], forum=find_forum(db, name), submission=row, page=found)

    @app.get("/f/<name>/<int:number>/-/comment/<int:comment_id>")
    def comment(name: str, number: int, comment_id: int):
        with database() as db:
            row, forum = find_comment(db, number, comment_id), find_forum(db, name)
            replies = paged(
                thread(comments_of(db, "d.submission_id = ?", number), comment_id), page_number(), COMMENTS_PAGE
            )
            return render(db, "comment", f"Comment by {row['author']}", forum=forum, comment=row, page=replies)

    @app.get("/submission_images/<name>")
    def image(name: str):
        with database() as db:
            row = db.execute("SELECT * FROM listing WHERE url LIKE '%' || ? ORDER BY created", (f"/{name}",)).fetchone()
            return render(db, "image", row["title"], submission=row) if row else abort(404)


def _add_people(app: Flask, database: Callable) -> None:
    @app.get("/user/<name>")
    @app.get("/user/<name>/<any(submissions,comments):what>")
    def user(name: str, what: str = "overview"):
        with database() as db:
            row = db.execute("SELECT * FROM user WHERE name = ?", (name,)).fetchone() or abort(404)
            found = history(db, name, what, page_number())
            counts = {
                kind: db.execute(f"SELECT COUNT(*) FROM {kind} WHERE author = ?", (name,)).fetchone()[0]
                for kind in ("submission", "comment")
            }
            own = row["name"] == USER
            return render(db, "user", row["name"], user=row, page=found, what=what, counts=counts, own=own)

    @app.get("/notifications")
    def notifications() -> str | Response:
        with database() as db:
            rows = comments_of(db, "d.id IN (SELECT comment_id FROM notification WHERE NOT seen)")
            return render(db, "notifications", "Notifications", rows=rows)
