"""What the forum site reads from its database: listings, threads, histories, searches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dynaweb_lite.sites.webarena.reddit.content import DAY, NOW

PAGE, COMMENTS_PAGE, HISTORY_PAGE = 6, 6, 7
"""Submissions, comments of a thread and lines of a history that fit on a page of 60 lines."""

SORTS = {
    "hot": ("Hot", f"score * ABS(score) / (2.0 + ({NOW} - created) / {DAY}.0) DESC"),
    "new": ("New", "created DESC"),
    "top": ("Top", "score DESC"),
    "controversial": ("Controversial", "(ups + downs) * MIN(ups, downs) / (1.0 + MAX(ups, downs)) DESC"),
    "most_commented": ("Most commented", "comments DESC"),
}
"""Orders of submissions by their name in URLs: label and SQL. Hot: points, worth less with age."""
TIMES = {"day": (1, "Past day"), "week": (7, "Past week"), "month": (31, "Past month"), "year": (366, "Past year")}
TIMES["all"] = (100_000, "All time")
TIMED = ("top", "controversial", "most_commented")
"""Orders that look at a span of time; the past day unless the query says otherwise."""

FORUM_ORDERS = {
    "by_title": ("Title", "title COLLATE NOCASE"),
    "by_subscribers": ("Subscribers", "subscribers + subscribed DESC, title COLLATE NOCASE"),
    "by_submissions": ("Submissions", "submissions DESC, title COLLATE NOCASE"),
}


@dataclass(frozen=True)
class Page:
    """One page of a list: its rows, its number from 1, and whether another follows."""

    rows: Sequence
    number: int
    has_next: bool


def paged(rows: Sequence, number: int, size: int) -> Page:
    """The number-th page of rows (1 for a number below it)."""
    number = max(number, 1)
    return Page(rows[(number - 1) * size : number * size], number, len(rows) > number * size)


def list_submissions(db: sqlite3.Connection, sort: str, time: str, number: int, **equal: str) -> Page:
    """Submissions in an order, as far back as `time` says, whose columns equal the given values."""
    conditions, values = [f"{column} = ?" for column in equal], list(equal.values())
    if sort in TIMED:
        conditions.append("created >= ?")
        values.append(NOW - TIMES[time][0] * DAY)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return paged(
        db.execute(f"SELECT * FROM listing {where} ORDER BY {SORTS[sort][1]}, id DESC", values).fetchall(), number, PAGE
    )


def list_subscribed(db: sqlite3.Connection, sort: str, time: str, number: int) -> Page:
    """Submissions of the forums that the user is subscribed to."""
    since = NOW - TIMES[time][0] * DAY if sort in TIMED else 0
    sql = "SELECT * FROM listing WHERE forum IN (SELECT name FROM forum WHERE subscribed) AND created >= ?"
    return paged(db.execute(f"{sql} ORDER BY {SORTS[sort][1]}, id DESC", (since,)).fetchall(), number, PAGE)


def list_forums(db: sqlite3.Connection, order: str, number: int, size: int) -> Page:
    """Forums with their number of submissions."""
    sql = "SELECT *, (SELECT COUNT(*) FROM submission s WHERE s.forum = forum.name) AS submissions FROM forum"
    return paged(db.execute(f"{sql} ORDER BY {FORUM_ORDERS[order][1]}").fetchall(), number, size)


def comments_of(db: sqlite3.Connection, condition: str, *values: object) -> list[sqlite3.Row]:
    """Comments with the title and forum of their submission, newest first."""
    return db.execute(
        "SELECT d.*, s.title, s.forum FROM discussion d JOIN submission s ON s.id = d.submission_id"
        f" WHERE {condition} ORDER BY d.created DESC, d.id DESC",
        values,
    ).fetchall()


def thread(rows: Iterable[sqlite3.Row], root: int | None = None) -> list[dict]:
    """Comments below `root` as read from top to bottom, each with its depth and the author that it answers."""
    children: dict[int | None, list[sqlite3.Row]] = {}
    for row in rows:
        children.setdefault(row["parent_id"], []).append(row)
    authors = {row["id"]: row["author"] for group in children.values() for row in group}
    found: list[dict] = []

    def walk(parent: int | None, depth: int) -> None:
        for row in children.get(parent, ()):
            found.append(dict(row) | {"depth": min(depth, 4), "answers": authors.get(parent, "")})
            walk(row["id"], depth + 1)

    walk(root, 0)
    return found


def search(db: sqlite3.Connection, query: str, number: int) -> Page:
    """Submissions, then comments, that hold every word of the query; those with the words in their title come first."""
    words = [f"%{_literal(word)}%" for word in query.split()]
    if not words:
        return Page([], 1, False)

    def match(columns: str, order: str, source: str) -> list[sqlite3.Row]:
        where = " AND ".join([f"({columns}) LIKE ? ESCAPE '\\'"] * len(words))
        return db.execute(f"SELECT * FROM {source} WHERE {where} ORDER BY {order}", words).fetchall()

    titled = match("title", "score DESC, id", "listing")
    known = {row["id"] for row in titled}
    others = [
        r for r in match("title || ' ' || body || ' ' || forum", "score DESC, id", "listing") if r["id"] not in known
    ]
    said = "(SELECT d.*, s.title, s.forum FROM discussion d JOIN submission s ON s.id = d.submission_id)"
    found = [("submission", row) for row in titled + others]
    return paged(found + [("comment", row) for row in match("body", "created DESC", said)], number, HISTORY_PAGE)


def _literal(word: str) -> str:
    """A word in which the wildcards of LIKE stand for themselves."""
    for sign in "\\%_":
        word = word.replace(sign, f"\\{sign}")
    return word


def history(db: sqlite3.Connection, name: str, what: str, number: int) -> Page:
    """What a person wrote, newest first: "submissions", "comments", or "overview" for both."""
    rows: list[tuple[str, sqlite3.Row]] = []
    if what != "comments":
        rows += [("submission", r) for r in db.execute("SELECT * FROM listing WHERE author = ?", (name,))]
    if what != "submissions":
        rows += [("comment", row) for row in comments_of(db, "d.author = ?", name)]
    return paged(sorted(rows, key=lambda pair: (-pair[1]["created"], -pair[1]["id"])), number, HISTORY_PAGE)


def subscriptions(db: sqlite3.Connection) -> list[str]:
    """Names of the forums that the user is subscribed to."""
    return [row["name"] for row in db.execute("SELECT name FROM forum WHERE subscribed ORDER BY name COLLATE NOCASE")]


def unread(db: sqlite3.Connection) -> int:
    """How many notifications the user has not seen."""
    return db.execute("SELECT COUNT(*) FROM notification WHERE NOT seen").fetchone()[0]


def take_notice(db: sqlite3.Connection) -> str:
    """The message that the last form left for the next page; it is shown once."""
    row = db.execute("SELECT text FROM notice").fetchone()
    if row is not None:
        db.execute("DELETE FROM notice")
    return row["text"] if row else ""


def leave_notice(db: sqlite3.Connection, text: str) -> None:
    """Leave a message for the next page."""
    db.execute("DELETE FROM notice")
    db.execute("INSERT INTO notice VALUES (?)", (text,))


def tick(db: sqlite3.Connection) -> int:
    """The time of something that is written now: a second after the newest, so that nothing depends on a clock."""
    newest = db.execute(
        "SELECT MAX(created) FROM (SELECT created FROM submission UNION ALL SELECT created FROM comment)"
    )
    return max(NOW, newest.fetchone()[0] or 0) + 1
