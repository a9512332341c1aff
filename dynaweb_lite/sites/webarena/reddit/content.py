"""What the forum site shows, as a function of a seed: forums, people, submissions, comments.

Everything is drawn from the patterns of data/reddit.json. Seed 0 has the forums that WebArena's tasks name and, from
data/reddit_facts.json, the submissions, authors and scores that they ask for; other seeds have other forums.
"""

from __future__ import annotations

import hashlib
import random
import sqlite3
from dataclasses import dataclass, field

from dynaweb_lite.sites.webarena.reddit.words import Words, read_data

USER = "MarvelsGrantMan136"
"""WebArena's user of this site, logged in from the start."""
BIOGRAPHY = "Here for series and graphics cards."
NOW, DAY = 1_680_350_400, 86_400
"""The site's present: 1 April 2023, 12:00 UTC; the clock of the machine does not count."""
SUBSCRIBED = ("todayilearned", "explainlikeimfive", "dataisbeautiful")
OTHER_FORUMS, OWN_SHARE, PEOPLE_A_FORUM = 26, 0.04, 3
MAX_DEPTH = 3

SCHEMA = """
CREATE TABLE forum (id INTEGER PRIMARY KEY, name TEXT UNIQUE COLLATE NOCASE, title TEXT, description TEXT, sidebar TEXT,
                    subscribers INTEGER, created INTEGER, subscribed INTEGER DEFAULT 0, moderated INTEGER DEFAULT 0);
CREATE TABLE submission (id INTEGER PRIMARY KEY, forum TEXT COLLATE NOCASE, title TEXT, url TEXT, body TEXT,
                         author TEXT COLLATE NOCASE, created INTEGER, ups INTEGER, downs INTEGER,
                         vote INTEGER DEFAULT 0, edited INTEGER);
CREATE TABLE comment (id INTEGER PRIMARY KEY, submission_id INTEGER, parent_id INTEGER, author TEXT COLLATE NOCASE,
                      body TEXT, created INTEGER, points INTEGER, vote INTEGER DEFAULT 0, edited INTEGER);
CREATE TABLE user (name TEXT PRIMARY KEY COLLATE NOCASE, joined INTEGER, biography TEXT);
CREATE TABLE notification (comment_id INTEGER PRIMARY KEY, seen INTEGER DEFAULT 0);
CREATE TABLE notice (text TEXT);
CREATE INDEX by_forum ON submission (forum);
CREATE INDEX by_submission ON comment (submission_id);
CREATE VIEW listing AS SELECT *, ups - downs + vote AS score,
    (SELECT COUNT(*) FROM comment c WHERE c.submission_id = submission.id) AS comments FROM submission;
CREATE VIEW discussion AS SELECT *, points + vote AS score FROM comment;
"""
"""A score counts the reader's own vote; `ups`, `downs` and `points` do not."""


def make_database(seed: int) -> sqlite3.Connection:
    """The seeded database, in memory."""
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(SCHEMA)
    with db:
        _Maker(seed, db).make()
    return db


@dataclass
class _Maker:
    """Draws everything for one seed and writes it into its database."""

    seed: int
    db: sqlite3.Connection
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"reddit-{self.seed}")
        self.words = Words(self.rng)
        self.facts = read_data("reddit_facts") if self.seed == 0 else {"submissions": [], "histories": {}}
        self.forums = self._forums()
        authors = {row["author"] for row in self.facts["submissions"]} | set(self.facts["histories"])
        self.people = self.words.people(PEOPLE_A_FORUM * len(self.forums), authors)
        taken = {row["id"] for row in self.facts["submissions"]}
        pool = [n for n in self.rng.sample(range(10_000, 130_000), 1_000) if n not in taken]
        self.submission_ids = iter(pool)
        self.comment_ids = iter(self.rng.sample(range(2_000, 900_000), 5_000))

    def make(self) -> None:
        for number, forum in enumerate(self.forums, 10_001):
            self._add_forum(number, forum)
        by_name = {forum["name"]: forum for forum in self.forums}
        for fact in self.facts["submissions"]:
            self._add_fact(fact, by_name[fact["forum"]])
        for forum in self.forums:
            titles = self.words.titles(forum)
            for _ in range(self.rng.randint(9, 14)):
                self._add_filler(forum, next(titles))
        self._add_histories()
        self._add_people()
        self._add_notifications()

    def _forums(self) -> list[dict]:
        all_forums = read_data("reddit")["forums"]
        if self.seed == 0:
            return [forum for forum in all_forums if forum.get("canonical")]
        return self.rng.sample([forum for forum in all_forums if not forum.get("canonical")], OTHER_FORUMS)

    def _add_forum(self, number: int, forum: dict) -> None:
        sidebar = "\n".join(forum.get("rules", "Stay on topic.|Be kind.").split("|"))
        created = NOW - self.rng.randint(600, 4000) * DAY
        values = (number, forum["name"], forum["name"], forum["about"], sidebar, self.rng.randint(150, 9_500), created)
        self.db.execute(
            "INSERT INTO forum (id, name, title, description, sidebar, subscribers, created) VALUES (?,?,?,?,?,?,?)",
            values,
        )
        if forum["name"] in SUBSCRIBED or (self.seed and number <= 10_003):
            self.db.execute("UPDATE forum SET subscribed = 1 WHERE id = ?", (number,))

    def _add_submission(self, row: dict, age: float, score: int) -> dict:
        """Write a submission. The votes against are a share of the votes for, more where the score is below zero."""
        if score < 0:
            ups = self.rng.randint(0, 6)
            downs = ups - score
        else:
            downs = int(score * self.rng.choice((0.02, 0.05, 0.1, 0.3))) + self.rng.randint(0, 2)
            ups = score + downs
        own = int(row["author"] == USER)
        row = {"url": "", "body": ""} | row
        if row["url"] == "image":
            name = hashlib.sha256(f"{self.seed}-{row['id']}".encode()).hexdigest()
            row["url"] = f"/submission_images/{name}.jpg"
        created = NOW - int(age * DAY)
        self.db.execute(
            "INSERT INTO submission (id, forum, title, url, body, author, created, ups, downs, vote)"
            " VALUES (?,?,?,?,?,?,?,?,?,?)",
            (*(row[key] for key in ("id", "forum", "title", "url", "body", "author")), created, ups - own, downs, own),
        )
        return row | {"created": created, "score": score}

    def _add_fact(self, fact: dict, forum: dict) -> None:
        row = self._add_submission(fact, fact["age"], fact["score"])
        if "comments" in fact:
            self._add_given(row["id"], None, fact["comments"])
        else:
            self._add_comments(row, forum)

    def _add_given(self, submission_id: int, parent_id: int | None, comments: list[dict]) -> None:
        for row in comments:
            created = NOW - int(row["age"] * DAY)
            self._add_comment(submission_id, parent_id, row["author"], row["body"], created, row["score"], row["id"])
            self._add_given(submission_id, row["id"], row.get("replies", []))

    def _add_filler(self, forum: dict, title: str) -> None:
        rng, age = self.rng, min(1.5 + self.rng.expovariate(1 / 50), 380)
        score = min(int(rng.lognormvariate(4.0, 1.4)), 4_000) if rng.random() > 0.06 else -rng.randint(1, 40)
        author = USER if self.seed and rng.random() < OWN_SHARE else rng.choice(self.people)
        row = {"id": next(self.submission_ids), "forum": forum["name"], "title": title, "author": author}
        row = self._add_submission(row | self.words.contents(forum, title), age, score)
        self._add_comments(row, forum)

    def _add_comments(self, row: dict, forum: dict) -> None:
        """Comments under a submission, each after what it answers to."""
        count = min(int(self.rng.expovariate(1 / (2 + min(abs(row["score"]), 4_000) ** 0.5 / 25))), 16)
        told: list[tuple[int, int, int]] = []  # id, depth and time of the comments so far
        for _ in range(count):
            parents = [c for c in told if c[1] < MAX_DEPTH]
            parent, depth, after = self.rng.choice(parents) if parents and self.rng.random() < 0.4 else (None, 0, 0)
            delay = int(self.rng.expovariate(1 / DAY)) + 60
            created = min(max(after, row["created"]) + delay, NOW - 60)
            points, body = self.words.remark(forum)
            comment_id = self._add_comment(
                row["id"], parent, self.rng.choice(self.people), body, created, points, next(self.comment_ids)
            )
            told.append((comment_id, depth + 1, created))

    def _add_comment(
        self, submission_id: int, parent: int | None, author: str, body: str, created: int, points: int, number: int
    ) -> int:
        own = int(author == USER)
        self.db.execute(
            "INSERT INTO comment (id, submission_id, parent_id, author, body, created, points, vote)"
            " VALUES (?,?,?,?,?,?,?,?)",
            (number, submission_id, parent, author, body, created, points - own, own),
        )
        return number

    def _add_histories(self) -> None:
        """Comments of people whose comments a task counts, under submissions of others."""
        given = {row["id"] for row in self.facts["submissions"]}
        rows = [r for r in self.db.execute("SELECT id, created FROM submission ORDER BY id") if r[0] not in given]
        for author, comments in self.facts["histories"].items():
            places = self.rng.sample(rows, len(comments))
            for (points, body), (submission_id, after) in zip(comments, places, strict=True):
                created = self.rng.randint(after, NOW - 600)
                self._add_comment(submission_id, None, author, body, created, points, next(self.comment_ids))

    def _add_people(self) -> None:
        names = self.db.execute("SELECT author FROM submission UNION SELECT author FROM comment ORDER BY 1").fetchall()
        for (name,) in names:
            self._add_person(name, self.words.biography())
        self._add_person(USER, BIOGRAPHY)

    def _add_person(self, name: str, biography: str) -> None:
        joined = NOW - self.rng.randint(400, 2_500) * DAY
        self.db.execute("INSERT OR REPLACE INTO user VALUES (?,?,?)", (name, joined, biography))

    def _add_notifications(self) -> None:
        """The newest comments that others wrote under the user's own submissions."""
        self.db.execute(
            "INSERT INTO notification (comment_id) SELECT c.id FROM comment c JOIN submission s ON s.id = submission_id"
            " WHERE s.author = ? AND c.author <> ? AND parent_id IS NULL ORDER BY c.created DESC LIMIT 3",
            (USER, USER),
        )
