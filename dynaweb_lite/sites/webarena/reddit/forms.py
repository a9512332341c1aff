"""What the forms of the forum site do: vote, subscribe, write, edit, delete."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from urllib.parse import urlsplit

from flask import Flask, abort, redirect, request

from dynaweb_lite.sites.webarena.reddit.content import USER
from dynaweb_lite.sites.webarena.reddit.pages import find_comment, find_forum, find_submission, go_back, render
from dynaweb_lite.sites.webarena.reddit.queries import leave_notice, tick
from dynaweb_lite.sites.webarena.reddit.text import comment_url, submission_url

SUBMISSION_FIELDS = {"title": 300, "url": 2_000, "body": 25_000}
COMMENT_FIELDS, BIOGRAPHY_FIELDS = {"comment": 10_000}, {"biography": 300}
FORUM_FIELDS = {"name": 25, "title": 100, "description": 300, "sidebar": 1_500}
"""Fields of each form and the most characters that each may have."""


def add_forms(app: Flask, database: Callable) -> None:
    """Add the addresses that change something, and the pages with their forms."""
    _add_votes(app, database)
    _add_submission_forms(app, database)
    _add_comment_forms(app, database)
    _add_forum_forms(app, database)
    _add_account_forms(app, database)


def _field(name: str) -> str:
    """What was filled in, without outer white space, with plain line ends."""
    return request.form.get(name, "").replace("\r\n", "\n").strip()


def _too_long(values: dict, limits: dict[str, int]) -> list[str]:
    """A sentence for each value with more characters than it may have."""
    return [f"The {key} has more than {limit} characters." for key, limit in limits.items() if len(values[key]) > limit]


def _add_votes(app: Flask, database: Callable) -> None:
    def choose(db: sqlite3.Connection, table: str, number: int) -> None:
        choice = request.form.get("choice", type=int)
        if choice not in (-1, 0, 1):
            abort(400)
        db.execute(f"UPDATE {table} SET vote = ? WHERE id = ?", (choice, number))

    @app.post("/sv/<int:number>")
    def vote_submission(number: int):
        with database() as db:
            row = db.execute("SELECT * FROM submission WHERE id = ?", (number,)).fetchone() or abort(404)
            choose(db, "submission", number)
        return go_back(submission_url(row))

    @app.post("/cv/<int:number>")
    def vote_comment(number: int):
        sql = "SELECT c.*, s.forum FROM comment c JOIN submission s ON s.id = c.submission_id WHERE c.id = ?"
        with database() as db:
            row = db.execute(sql, (number,)).fetchone() or abort(404)
            choose(db, "comment", number)
        return go_back(comment_url(row))

    @app.post("/f/<name>/<any(subscribe,unsubscribe):what>")
    def subscribe(name: str, what: str):
        with database() as db:
            forum = find_forum(db, name)["name"]
            db.execute("UPDATE forum SET subscribed = ? WHERE name = ?", (int(what == "subscribe"), forum))
        return go_back(f"/f/{forum}")


def _check_submission(values: dict) -> list[str]:
    """What is wrong with a submission, in sentences."""
    errors = _too_long(values, SUBMISSION_FIELDS)
    if not values["title"]:
        errors.append("A submission needs a title.")
    split = urlsplit(values["url"])
    if values["url"] and not (split.scheme in ("http", "https") and split.netloc):
        errors.append("This is not a valid URL: it must begin with http:// or https://.")
    return errors


def _submission_fields() -> dict:
    values = {key: _field(f"submission[{key}]") for key in SUBMISSION_FIELDS}
    return values | {"title": " ".join(values["title"].split())}


def _add_submission_forms(app: Flask, database: Callable) -> None:
    @app.route("/submit", methods=["GET", "POST"])
    @app.route("/submit/<name>", methods=["GET", "POST"])
    def submit(name: str = ""):
        with database() as db:
            forum = find_forum(db, name) if name else None
            values = _submission_fields() | {
                "forum": request.form.get("submission[forum]", forum["id"] if forum else "")
            }
            errors: list[str] = []
            if request.method == "POST":
                chosen = db.execute("SELECT * FROM forum WHERE id = ?", (values["forum"],)).fetchone()
                errors = _check_submission(values) + ([] if chosen else ["Choose a forum."])
                if not errors:
                    return redirect(submission_url(_add_submission(db, chosen["name"], values)))
            forums = db.execute("SELECT id, name FROM forum ORDER BY name COLLATE NOCASE").fetchall()
            return render(
                db, "submit", "Create submission", forum=forum, forums=forums, values=values, errors=errors, edits=None
            )

    @app.route("/f/<name>/<int:number>/-/edit", methods=["GET", "POST"])
    def edit_submission(name: str, number: int):
        with database() as db:
            row = _own(find_submission(db, name, number))
            values, errors = dict(row), []
            if request.method == "POST":
                values = _submission_fields() | ({} if row["url"] else {"url": ""})
                if row["url"].startswith("/"):  # a picture stays what it is
                    values["url"] = ""
                errors = _check_submission(values)
                if not errors:
                    _save_submission(db, row, values)
                    return redirect(submission_url(find_submission(db, name, number)))
            return render(
                db, "submit", "Edit submission", forum=find_forum(db, name), values=values, errors=errors, edits=row
            )

    @app.post("/f/<name>/<int:number>/-/delete")
    def delete_submission(name: str, number: int):
        with database() as db:
            row = _own(find_submission(db, name, number))
            db.execute("DELETE FROM comment WHERE submission_id = ?", (number,))
            db.execute("DELETE FROM submission WHERE id = ?", (number,))
            leave_notice(db, "The submission was deleted.")
        return redirect(f"/f/{row['forum']}")


def _own(row: sqlite3.Row) -> sqlite3.Row:
    """The row if the user is its author; else the request ends with 403."""
    return row if row["author"] == USER else abort(403)


def _add_submission(db: sqlite3.Connection, forum: str, values: dict) -> sqlite3.Row:
    sql = (
        "INSERT INTO submission (forum, title, url, body, author, created, ups, downs, vote) VALUES (?,?,?,?,?,?,0,0,1)"
    )
    row = (forum, values["title"], values["url"], values["body"], USER, tick(db))
    return find_submission(db, forum, db.execute(sql, row).lastrowid)


def _save_submission(db: sqlite3.Connection, row: sqlite3.Row, values: dict) -> None:
    changed = (values["title"], values["url"] or row["url"], values["body"], tick(db), row["id"])
    db.execute("UPDATE submission SET title = ?, url = ?, body = ?, edited = ? WHERE id = ?", changed)
    leave_notice(db, "The submission was updated.")


def _check_comment(text: str) -> list[str]:
    """What is wrong with a comment, in sentences."""
    return _too_long({"comment": text}, COMMENT_FIELDS) if text else ["A comment cannot be empty."]


def _add_comment_forms(app: Flask, database: Callable) -> None:
    def write(db: sqlite3.Connection, submission_id: int, parent_id: int | None, text: str) -> None:
        if errors := _check_comment(text):
            leave_notice(db, errors[0])
            return
        sql = (
            "INSERT INTO comment (submission_id, parent_id, author, body, created, points, vote) VALUES (?,?,?,?,?,0,1)"
        )
        db.execute(sql, (submission_id, parent_id, USER, text, tick(db)))

    @app.post("/f/<name>/<int:number>/-/comment")
    def comment_on(name: str, number: int):
        with database() as db:
            row = find_submission(db, name, number)
            write(db, number, None, _field(f"reply_to_submission_{number}[comment]"))
        return redirect(submission_url(row))

    @app.post("/f/<name>/<int:number>/-/comment/<int:comment_id>")
    def reply_to(name: str, number: int, comment_id: int):
        with database() as db:
            row = find_comment(db, number, comment_id)
            write(db, number, comment_id, _field(f"reply_to_comment_{comment_id}[comment]"))
        return redirect(comment_url(row))

    @app.route("/f/<name>/<int:number>/-/comment/<int:comment_id>/edit", methods=["GET", "POST"])
    def edit_comment(name: str, number: int, comment_id: int):
        with database() as db:
            row, errors = _own(find_comment(db, number, comment_id)), []
            text = row["body"]
            if request.method == "POST":
                text = _field("comment[comment]")
                if not (errors := _check_comment(text)):
                    db.execute("UPDATE comment SET body = ?, edited = ? WHERE id = ?", (text, tick(db), comment_id))
                    return redirect(comment_url(row))
            return render(db, "edit_comment", "Edit comment", comment=row, text=text, errors=errors)

    @app.post("/f/<name>/<int:number>/-/comment/<int:comment_id>/delete")
    def delete_comment(name: str, number: int, comment_id: int):
        with database() as db:
            _own(find_comment(db, number, comment_id))
            if db.execute("SELECT 1 FROM comment WHERE parent_id = ?", (comment_id,)).fetchone():
                db.execute("UPDATE comment SET body = '[deleted]', author = '[deleted]' WHERE id = ?", (comment_id,))
            else:
                db.execute("DELETE FROM comment WHERE id = ?", (comment_id,))
            leave_notice(db, "The comment was deleted.")
            submission = find_submission(db, name, number)
        return redirect(submission_url(submission))


def _check_forum(db: sqlite3.Connection, values: dict, is_new: bool) -> list[str]:
    """What is wrong with a forum, in sentences."""
    errors = _too_long(values, FORUM_FIELDS)
    if is_new and not re.fullmatch(r"\w{3,25}", values["name"], re.ASCII):
        errors.append("The name must have 3 to 25 letters, digits or underscores.")
    elif is_new and db.execute("SELECT 1 FROM forum WHERE name = ?", (values["name"],)).fetchone():
        errors.append("There is a forum of this name already.")
    return errors + [f"A forum needs a {key}." for key in ("title", "description") if not values[key]]


def _add_forum_forms(app: Flask, database: Callable) -> None:
    def fields() -> dict:
        return {key: _field(f"forum[{key}]") for key in FORUM_FIELDS}

    @app.route("/create_forum", methods=["GET", "POST"])
    def create_forum():
        with database() as db:
            values, errors = fields(), []
            if request.method == "POST" and not (errors := _check_forum(db, values, is_new=True)):
                sql = (
                    "INSERT INTO forum (name, title, description, sidebar, subscribers, created, subscribed, moderated)"
                    " VALUES (?,?,?,?,0,?,1,1)"
                )
                db.execute(sql, (*(values[key] for key in FORUM_FIELDS), tick(db)))
                return redirect(f"/f/{values['name']}")
            return render(db, "edit_forum", "Create new forum", values=values, errors=errors)

    @app.route("/f/<name>/edit", methods=["GET", "POST"])
    def edit_forum(name: str):
        with database() as db:
            forum = find_forum(db, name)
            if not forum["moderated"]:
                abort(403)
            values, errors = dict(forum), []
            if request.method == "POST":
                values = fields() | {"name": forum["name"]}
                if not (errors := _check_forum(db, values, is_new=False)):
                    changed = (values["title"], values["description"], values["sidebar"], forum["name"])
                    db.execute("UPDATE forum SET title = ?, description = ?, sidebar = ? WHERE name = ?", changed)
                    leave_notice(db, "The forum was updated.")
                    return redirect(f"/f/{forum['name']}")
            return render(db, "edit_forum", "Edit forum", forum=forum, values=values, errors=errors)


def _add_account_forms(app: Flask, database: Callable) -> None:
    @app.route(f"/user/{USER}/edit_biography", methods=["GET", "POST"])
    def edit_biography():
        with database() as db:
            text, errors = db.execute("SELECT biography FROM user WHERE name = ?", (USER,)).fetchone()[0], []
            if request.method == "POST":
                text = _field("user_biography[biography]")
                if not (errors := _too_long({"biography": text}, BIOGRAPHY_FIELDS)):
                    db.execute("UPDATE user SET biography = ? WHERE name = ?", (text, USER))
                    return redirect(f"/user/{USER}")
            return render(db, "edit_biography", "Edit biography", text=text, errors=errors)

    @app.post("/notifications/clear")
    def clear_notifications():
        with database() as db:
            db.execute("UPDATE notification SET seen = 1")
        return redirect("/notifications")
