"""What all pages of the code host share: the request's database, projects and rights, flash messages, pagination."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from flask import Flask, abort, g, redirect, render_template, request
from markupsafe import Markup, escape
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from dynaweb_lite.sites.webarena.gitlab.schema import ME, ROLES, VISIBILITIES

PER_PAGE = 8
SSH_BASE = "ssh://git@metis.lti.cs.cmu.edu:2222"
HTTP_BASE = "http://metis.lti.cs.cmu.edu:8023"
"""Where WebArena's tasks say that projects are cloned from."""


def use_database(app: Flask, database) -> None:
    """Give each request the session's database as `g.db`, committed at its end or rolled back after an error."""

    @app.before_request
    def open_database() -> None:
        if request.endpoint != "static":
            g.stack = ExitStack()
            g.db = g.stack.enter_context(database())

    @app.teardown_request
    def close_database(error: BaseException | None) -> None:
        if stack := g.pop("stack", None):
            stack.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)

    @app.errorhandler(404)
    def missing(_error: HTTPException):
        return page("missing", "Not Found"), 404

    @app.errorhandler(403)
    def forbidden(_error: HTTPException):
        return page("forbidden", "Forbidden"), 403


def rows(sql: str, *values) -> list[sqlite3.Row]:
    return g.db.execute(sql, values).fetchall()


def row(sql: str, *values) -> sqlite3.Row | None:
    return g.db.execute(sql, values).fetchone()


def value(sql: str, *values):
    """The first column of the first row, or None."""
    found = g.db.execute(sql, values).fetchone()
    return found[0] if found else None


def change(sql: str, *values) -> int:
    """Run a statement that changes the database; returns the id of the new row, if there is one."""
    return g.db.execute(sql, values).lastrowid


def insert(table: str, **columns) -> int:
    return change(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", *columns.values()
    )


def form(name: str) -> str:
    """A field of the form that was sent, without white space around it and with plain line ends."""
    return request.form.get(name, "").replace("\r\n", "\n").strip()


def asked(name: str, default: str = "") -> str:
    """A parameter of the address."""
    return request.args.get(name, "").strip() or default


def flash(message: str) -> None:
    """Say something on the next page."""
    change("UPDATE setting SET value = ? WHERE key = 'flash'", message)


def page(template: str, title: str, **values) -> str:
    """A page of templates/gitlab/ with what every page needs: what is said once, and who is logged in."""
    message = value("SELECT value FROM setting WHERE key = 'flash'")
    if message:
        flash("")
    user = row("SELECT * FROM user WHERE username = ?", ME)
    shared = {"title": title, "flash": message, "me": user, "day": day, "markdown": markdown, "ROLES": ROLES}
    return render_template(f"gitlab/{template}.html", **shared, VISIBILITIES=VISIBILITIES, **values)


def back(address: str, message: str = "") -> Response:
    """Redirect after a form was sent."""
    if message:
        flash(message)
    return redirect(address, 303)


def without_empty_parameters(address: str) -> Response | None:
    """A redirect to the same page without the parameters that a form left empty; None when there are none."""
    pairs = list(request.args.items(multi=True))
    kept = [(key, text) for key, text in pairs if text.strip()]
    return None if kept == pairs else redirect(f"{address}?{urlencode(kept)}" if kept else address, 302)


@dataclass(frozen=True)
class Part:
    """One page of a long list, and the addresses of the pages beside it."""

    rows: list
    total: int
    number: int = 1
    last: int = 1

    def url(self, number: int) -> str:
        pairs = [(key, text) for key, text in request.args.items(multi=True) if key != "page"]
        return f"{request.path}?{urlencode([*pairs, ('page', number)])}"


def paginate(found: Sequence, size: int = PER_PAGE) -> Part:
    """The part of a list that the address asks for with `page`; a number out of range means the nearest page."""
    last = max(1, -(-len(found) // size))
    wanted = request.args.get("page", "1")
    number = min(max(int(wanted), 1), last) if wanted.isdecimal() and len(wanted) < 9 else 1
    return Part(list(found[(number - 1) * size : number * size]), len(found), number, last)


PROJECTS = f"""SELECT p.*, coalesce(u.name, n.name, p.namespace) AS namespace_name,
  p.namespace || '/' || p.path AS full_path,
  coalesce((SELECT max(role) FROM member m WHERE m.username = '{ME}'
            AND (m.project_id = p.id OR m.grp = p.namespace)), 0) AS my_role,
  EXISTS (SELECT 1 FROM star s WHERE s.project_id = p.id AND s.username = '{ME}') AS starred
  FROM project p LEFT JOIN user u ON u.username = p.namespace LEFT JOIN grp n ON n.path = p.namespace """
"""Projects with the name of their namespace, my role in them, and whether I have starred them."""


def project_or_404(namespace: str, path: str) -> sqlite3.Row:
    """A project by its path; capitals do not count. A private one without me in it is not there."""
    project = row(PROJECTS + "WHERE p.namespace = ? AND p.path = ?", namespace, path)
    if project is None or (project["visibility"] == "private" and not project["my_role"]):
        abort(404)
    return project


def require(project: sqlite3.Row, role: int) -> None:
    """Refuse with a page when my role in a project is below `role`."""
    if project["my_role"] < role:
        abort(403)


def project_page(template: str, title: str, project: sqlite3.Row, **values) -> str:
    name = f"{project['namespace_name']} / {project['name']}"
    return page(template, f"{title} · {name}", project=project, url=f"/{project['full_path']}", **values)


class UserNotFound(ValueError):
    """No user, or more than one, fits what was typed; the message says so."""


def find_user(text: str) -> sqlite3.Row:
    """The user meant by a user name, a full name or a part of one. Raises UserNotFound."""
    wanted = text.strip().removeprefix("@")
    for condition in ("username = ?", "name = ? COLLATE NOCASE"):
        if len(found := rows(f"SELECT * FROM user WHERE {condition}", wanted)) == 1:
            return found[0]
    found = [
        u
        for u in rows("SELECT * FROM user ORDER BY username")
        if wanted.lower() in f"{u['name']} {u['username']}".lower()
    ]
    if wanted and len(found) == 1:
        return found[0]
    if wanted and found:
        names = ", ".join(f"@{u['username']} ({u['name']})" for u in found[:5])
        raise UserNotFound(f"Several users match “{wanted}”: {names}.")
    raise UserNotFound(f"No user matches “{wanted}”.")


def resolve_users(text: str) -> list[str]:
    """User names for a list of users with commas between. Raises UserNotFound."""
    parts = [part for part in text.split(",") if part.strip()]
    return list(dict.fromkeys(find_user(part)["username"] for part in parts))


def full_sha(short: str) -> str:
    """The forty digits of a commit known by its first eight."""
    return short + hashlib.sha1(short.encode()).hexdigest()[:32]


def day(moment: str) -> str:
    """A date or moment as the pages write it: Mar 5, 2023."""
    return datetime.fromisoformat(moment).strftime("%b %d, %Y").replace(" 0", " ") if moment else ""


def valid_date(text: str) -> bool:
    """Whether a text is a date as YYYY-MM-DD."""
    try:
        return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", text)) and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def markdown(text: str) -> Markup:
    """Headings, lists, code blocks and paragraphs of Markdown; all else as it stands, escaped."""
    blocks = re.split(r"(```.*?```)|\n\s*\n", text.strip(), flags=re.DOTALL)
    return Markup("").join(_block(block.strip()) for block in blocks if block and block.strip())


def _block(block: str) -> Markup:
    if block.startswith("```"):
        return Markup("<pre>{}</pre>").format(block.strip("`").split("\n", 1)[-1])
    if heading := re.match(r"(#{1,5}) +(.*)", block):
        rest = block[heading.end() :].strip()
        level = len(heading[1]) + 1
        return Markup("<h{0}>{1}</h{0}>").format(level, heading[2]) + (_block(rest) if rest else Markup(""))
    lines = block.split("\n")
    if all(re.match(r"[-*] ", line) for line in lines):
        return Markup("<ul>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(li[2:]) for li in lines))
    return Markup("<p>{}</p>").format(Markup("<br>").join(escape(line) for line in lines))


def slug(name: str) -> str:
    """A name as a path: what is neither letter, digit, dot nor underscore becomes a hyphen."""
    return re.sub(r"[^\w.]+", "-", name.strip(), flags=re.ASCII).strip("-.")
