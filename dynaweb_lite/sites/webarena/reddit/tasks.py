"""Templates of further tasks on the forum site: finding out, going somewhere, changing something."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator

from dynaweb_lite.sites.webarena.generator import Instance, Template, address, answer, content
from dynaweb_lite.sites.webarena.reddit.content import USER
from dynaweb_lite.sites.webarena.reddit.queries import HISTORY_PAGE, history, search
from dynaweb_lite.sites.webarena.reddit.text import submission_url

SITE = "__REDDIT__"
VOTE = "document.querySelector('div.submission__vote').querySelector('form').getAttribute('class')"
QUESTIONS = (
    "What would you do first",
    "Which ones last longest",
    "How much should I spend",
    "Is it worth the trouble",
    "Where do you buy yours",
    "Who can explain this to a beginner",
)
REMARKS = ("This is what I was looking for.", "I am not so sure about that.", "Thank you for sharing.", "More, please!")
OPEN_FORUMS = ("click [link 'Forums']", "click [link 'Alphabetical']")


def _to(forum: str, *steps: str) -> tuple[str, ...]:
    """A script that opens a forum from the front page, and its further steps."""
    return (*OPEN_FORUMS, f"click [link '{forum}']", *steps)


def _forums(db: sqlite3.Connection) -> list[sqlite3.Row]:
    return db.execute("SELECT * FROM forum ORDER BY name").fetchall()


def _first(db: sqlite3.Connection, forum: str, order: str) -> sqlite3.Row | None:
    """The first submission of a forum by a number; None where another has the same number or the user wrote it."""
    rows = db.execute(f"SELECT * FROM listing WHERE forum = ? ORDER BY {order} DESC LIMIT 2", (forum,)).fetchall()
    return None if rows[0][order] == rows[1][order] or rows[0]["author"] == USER else rows[0]


def _firsts(db: sqlite3.Connection, order: str) -> Iterator[sqlite3.Row]:
    return (row for forum in _forums(db) if (row := _first(db, forum["name"], order)))


def _searchable(db: sqlite3.Connection, rng: random.Random, count: int) -> list[sqlite3.Row]:
    """Submissions of others that a search for their title shows on its first page, in any order."""
    rows = db.execute(
        "SELECT * FROM listing WHERE author <> ? AND title NOT LIKE '%[%' ORDER BY id", (USER,)
    ).fetchall()
    found = (row for row in rng.sample(rows, len(rows)) if _is_found(db, row))
    return [row for row, _ in zip(found, range(count), strict=False)]


def _is_found(db: sqlite3.Connection, row: sqlite3.Row) -> bool:
    hits = [hit["title"] for kind, hit in search(db, row["title"], 1).rows if kind == "submission"]
    return hits.count(row["title"]) == 1


def _by_search(row: sqlite3.Row, *steps: str) -> tuple[str, ...]:
    """A script that searches for a submission, opens it, and goes on."""
    return (f"type [searchbox 'Search query'] [{row['title']}] [1]", f"click [link '{row['title']}']", *steps)


def _points(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"title": row["title"], "forum": row["forum"]},
            answer(str(row["score"])),
            _by_search(row, f"stop [{row['score']}]"),
        )
        for row in _searchable(db, rng, 24)
    ]


def _top_author(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    steps = ("click [link 'Top']", "click [link 'All time']")
    return [
        Instance({"forum": row["forum"]}, answer(row["author"]), _to(row["forum"], *steps, f"stop [{row['author']}]"))
        for row in _firsts(db, "score")
    ]


def _disliked_comments(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    found = []
    for row in _firsts(db, "created"):
        scores = [s for (s,) in db.execute("SELECT score FROM discussion WHERE author = ?", (row["author"],))]
        count = sum(score < 0 for score in scores)
        pages = max(len(scores) - 1, 0) // HISTORY_PAGE
        steps = ("click [link 'New']", f"click [link '{row['author']}']", "click [link 'Comments']")
        script = _to(row["forum"], *steps, *["click [link 'Next page']"] * pages, f"stop [{count}]")
        found.append(Instance({"forum": row["forum"]}, answer(str(count)), script))
    return found


def _most_commented(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    steps = ("click [link 'Most commented']", "click [link 'All time']")
    return [
        Instance(
            {"forum": row["forum"]},
            address(SITE + submission_url(row)),
            _to(row["forum"], *steps, f"click [link '{row['title']}']", "stop []"),
        )
        for row in _firsts(db, "comments")
    ]


def _newest_author(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"forum": row["forum"]},
            address(f"{SITE}/user/{row['author']}"),
            _to(row["forum"], "click [link 'New']", f"click [link '{row['author']}']", "stop []"),
        )
        for row in _firsts(db, "created")
    ]


def _subscribe(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    button = "document.querySelector('.subscribe-button').outerText"
    return [
        Instance(
            {"description": forum["description"]},
            content((f"{SITE}/f/{forum['name']}", button, "Unsubscribe")),
            _to(forum["name"], "click [button 'Subscribe']", "stop []"),
        )
        for forum in _forums(db)
        if not forum["subscribed"]
    ]


def _vote_newest(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"forum": row["forum"]},
            content((SITE + submission_url(row), VOTE, ["vote--user-upvoted"])),
            _to(
                row["forum"],
                "click [link 'New']",
                f"click [link '{row['title']}']",
                "click [button 'Upvote']",
                "stop []",
            ),
        )
        for row in _firsts(db, "created")
    ]


def _comment(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    found = []
    for row in _searchable(db, rng, 24):
        text = rng.choice(REMARKS)
        steps = (f"type [textbox 'Comment'] [{text}] [0]", "click [button 'Post']", "stop []")
        first = "document.querySelector('.comment__body').outerText"
        checks = content((SITE + submission_url(row), first, text))
        found.append(Instance({"title": row["title"], "text": text}, checks, _by_search(row, *steps)))
    return found


def _ask(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    found = []
    for forum in _forums(db):
        question = f"{rng.choice(QUESTIONS)} in {rng.randint(2, 9)} weeks"
        inner = "document.querySelector('.submission__inner').outerText"
        checks = content(
            ("func:reddit_get_post_url('__last_url__')", inner, [question]), url=f"{SITE}/f/{forum['name']}"
        )
        steps = (
            "click [link 'Submit']",
            f"type [textbox 'Title'] [{question}] [0]",
            "click [button 'Create submission']",
            "stop []",
        )
        found.append(Instance({"question": question, "forum": forum["name"]}, checks, _to(forum["name"], *steps)))
    return found


def _writer_total(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    found = []
    for row in _firsts(db, "created"):
        (count,) = db.execute("SELECT COUNT(*) FROM submission WHERE author = ?", (row["author"],)).fetchone()
        steps = ("click [link 'New']", f"click [link '{row['author']}']", f"stop [{count}]")
        found.append(Instance({"forum": row["forum"]}, answer(str(count)), _to(row["forum"], *steps)))
    return found


def _vote_all(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    pairs = db.execute(
        "SELECT author, forum FROM submission WHERE author <> ? GROUP BY 1, 2 HAVING COUNT(*) > 1 ORDER BY 1, 2",
        (USER,),
    ).fetchall()
    return [made for author, forum in pairs if (made := _vote_all_of(db, author, forum))]


def _vote_all_of(db: sqlite3.Connection, author: str, forum: str) -> Instance | None:
    """Voting down what a person submitted to a forum, from the person's page; None where that has several pages."""
    page = history(db, author, "submissions", 1)
    rows = [row for _, row in page.rows]
    goals = [row for row in rows if row["forum"] == forum]
    starts = [row for row in goals if "[" not in row["title"] and _is_found(db, row)]
    if page.has_next or not starts:
        return None
    votes = [f"click [button 'Downvote' #{rows.index(row) + 1 - n}]" for n, row in enumerate(goals)]
    steps = (f"click [link '{author}']", "click [link 'Submissions']", *votes, "stop []")
    checks = content(*((SITE + submission_url(row), VOTE, ["vote--user-downvoted"]) for row in goals))
    return Instance({"author": author, "forum": forum}, checks, _by_search(starts[0], *steps))


TEMPLATES = [
    Template(
        "reddit-points",
        "information",
        'How many points does the post "{{title}}" in the {{forum}} forum have?',
        _points,
    ),
    Template(
        "reddit-top-author",
        "information",
        "Tell me who wrote the post with the most points of all time in the {{forum}} forum.",
        _top_author,
    ),
    Template(
        "reddit-disliked-comments",
        "information",
        "How many comments with a score below zero has the author of the newest post in the {{forum}} forum written?",
        _disliked_comments,
    ),
    Template(
        "reddit-most-commented",
        "navigation",
        "Open the post with the most comments of all time in the {{forum}} forum.",
        _most_commented,
    ),
    Template(
        "reddit-newest-author",
        "navigation",
        "Show me the profile of the person who wrote the newest post in the {{forum}} forum.",
        _newest_author,
    ),
    Template("reddit-subscribe", "change", 'Subscribe to the forum described as "{{description}}"', _subscribe),
    Template("reddit-vote-newest", "change", "Upvote the newest post in the {{forum}} forum.", _vote_newest),
    Template("reddit-comment", "change", 'Comment "{{text}}" on the post "{{title}}".', _comment),
    Template("reddit-ask", "change", 'Post my question "{{question}}" in the {{forum}} forum.', _ask),
    Template(
        "reddit-writer-total",
        "information",
        "How many submissions has the author of the newest post in the {{forum}} forum made in all?",
        _writer_total,
        held_out=True,
    ),
    Template(
        "reddit-vote-all",
        "change",
        "Downvote all posts that {{author}} has submitted to the {{forum}} forum.",
        _vote_all,
        held_out=True,
    ),
]
