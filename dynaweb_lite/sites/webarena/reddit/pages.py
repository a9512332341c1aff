"""What all pages of the forum site share: rendering, what is looked up or missing, and where a form returns to."""

from __future__ import annotations

import sqlite3

from flask import abort, redirect, render_template, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from dynaweb_lite.sites.webarena.reddit.content import USER
from dynaweb_lite.sites.webarena.reddit.queries import take_notice, unread

ERRORS = {
    403: ("Not allowed", "Only its author or a moderator may do that."),
    404: ("Page not found", "There is nothing at this address."),
    405: ("Not possible", "This address takes no such request."),
}


def render(db: sqlite3.Connection, template: str, title: str, **values: object) -> str:
    """A page of templates/reddit/, with what its header shows and the message of the last form."""
    shared = {"me": USER, "unread": unread(db), "notice": take_notice(db), "here": request.full_path.rstrip("?")}
    return render_template(f"reddit/{template}.html", title=title, **{"forum": None, **shared, **values})


def render_error(db: sqlite3.Connection, error: HTTPException) -> tuple[str, int]:
    """An error as a page of the site."""
    heading, text = ERRORS.get(error.code or 0, ("Something went wrong", "The request could not be understood."))
    return render(db, "error", heading, text=text), error.code or 500


def find_forum(db: sqlite3.Connection, name: str) -> sqlite3.Row:
    """A forum by its name, in capitals or not. Ends the request with 404 for an unknown one."""
    return db.execute("SELECT * FROM forum WHERE name = ?", (name,)).fetchone() or abort(404)


def find_submission(db: sqlite3.Connection, forum: str, submission_id: int) -> sqlite3.Row:
    """A submission of a forum. Ends the request with 404 for an unknown one."""
    sql = "SELECT * FROM listing WHERE id = ? AND forum = ?"
    return db.execute(sql, (submission_id, forum)).fetchone() or abort(404)


def find_comment(db: sqlite3.Connection, submission_id: int, comment_id: int) -> sqlite3.Row:
    """A comment under a submission, with the forum and title of that. Ends the request with 404 for an unknown one."""
    sql = (
        "SELECT d.*, s.forum, s.title FROM discussion d JOIN submission s ON s.id = d.submission_id"
        " WHERE d.id = ? AND s.id = ?"
    )
    return db.execute(sql, (comment_id, submission_id)).fetchone() or abort(404)


def page_number() -> int:
    """The page of a list that the query asks for; the first where it asks for none or for nonsense."""
    return request.args.get("page", 1, type=int)


def go_back(fallback: str) -> Response:
    """To the page of this site that the form came from, else to `fallback`."""
    url = request.form.get("next", "")
    return redirect(url if url.startswith("/") and url[1:2] not in ("/", "\\") else fallback)
