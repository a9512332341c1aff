"""What the code host shows, as a function of a seed. Seed 0 holds data/gitlab.json, the facts of WebArena's tasks."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from pathlib import Path

from dynaweb_lite.sites.webarena.gitlab import words
from dynaweb_lite.sites.webarena.gitlab.drawing import Drawing
from dynaweb_lite.sites.webarena.gitlab.schema import ME, SCHEMA, YESTERDAY

FACTS = Path(__file__).parent.parent / "data" / "gitlab.json"
PEOPLE = 26
FORMAT = "%Y-%m-%d %H:%M"


def make_database(seed: int) -> sqlite3.Connection:
    """The seeded database, in memory."""
    maker = Maker(seed)
    maker.make(json.loads(FACTS.read_text(encoding="utf-8")) if seed == 0 else {})
    maker.db.commit()
    return maker.db


class Maker(Drawing):
    """Fills a database: people, groups, projects, and what happens between them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA page_size = 1024")  # many small tables
        self.db.executescript(SCHEMA)
        self.drawn_items: list[int] = []

    def insert(self, table: str, **row) -> int:
        keys = ", ".join(row)
        marks = ", ".join("?" * len(row))
        return self.db.execute(f"INSERT INTO {table} ({keys}) VALUES ({marks})", tuple(row.values())).lastrowid

    def make(self, facts: dict) -> None:
        self.add_people(facts)
        self.add_groups(facts)
        drawn = self.draw_projects(mine=not facts)
        for spec in [*facts.get("projects", ()), *drawn]:
            self.add_project(spec)
        self.add_forks(facts)
        self.involve_me()
        self.add_bonds()
        token = "".join(self.rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789", k=20))
        for key, value in {"feed_token": token, "flash": "", **facts.get("setting", {})}.items():
            self.insert("setting", key=key, value=value)

    def add_people(self, facts: dict) -> None:
        me = {"id": 2330, "username": ME, "name": "Byte Blaze", "email": "byteblaze@mail.example"}
        known = facts.get("users", [])
        pairs = self.rng.sample([(f, n) for f in words.FIRST_NAMES for n in words.LAST_NAMES], PEOPLE - len(known) // 3)
        taken = {user["name"].split()[0] for user in known}
        drawn = [
            {"id": 2400 + i, "username": f"{first[0]}{last}".lower() + str(i), "name": f"{first} {last}"}
            | {"bio": self.rng.choice(words.BIOS), "location": self.rng.choice(words.LOCATIONS)}
            for i, (first, last) in enumerate(pairs)
            if first not in taken
        ]
        for user in [me, *known, *drawn]:
            joined = self.moment("2014-01-01", "2022-12-31")[:10]
            self.insert("user", **{"email": f"{user['username']}@mail.example".lower(), "joined": joined, **user})
            self.names[user["username"]] = user["name"]
        self.people = [user["username"] for user in drawn]

    def add_groups(self, facts: dict) -> None:
        drawn = self.rng.sample(words.GROUP_NAMES, 2 if facts else 5)
        known = facts.get("groups", [])
        for i, group in enumerate([*known, *({"path": name.lower(), "name": name} for name in drawn)]):
            self.insert("grp", id=2600 + i, **group)
            for role, username in zip((50, 40, 30), self.rng.sample(self.people, 3), strict=True):
                self.insert("member", grp=group["path"], username=username, role=role, since="2021-03-01")
        self.groups = [name.lower() for name in drawn]

    def add_project(self, spec: dict) -> None:
        namespace, path = spec["at"].split("/")
        row = {key: spec[key] for key in ("id", "description", "stars", "forks")}
        branch = spec.get("branch", "main")
        start, end = (self.at(day) for day in spec["period"])
        self.insert(
            "project", namespace=namespace, path=path, name=path, branch=branch, created=start, updated=end, **row
        )
        members = dict(spec.get("members") or {})
        if namespace in self.names:
            members[namespace] = 50
        for username, role in members.items():
            self.insert(
                "member", project_id=row["id"], username=username, role=role, since=self.moment(*spec["period"])
            )
        people = [name for name in members if name != ME] + self.rng.sample(self.people, 4)
        self.add_code(spec, branch, people)
        self.add_planning(spec)
        self.add_items(spec, branch, people)

    def add_code(self, spec: dict, branch: str, people: list[str]) -> None:
        """Branches, commits with their authors, and files."""
        project = spec["id"]
        files = self.draw_files(spec)
        self.insert("branch", project_id=project, name=branch, base="")
        for name in spec.get("branches", ()):
            self.insert("branch", project_id=project, name=name, base=branch)
        self.add_commits(spec, branch, spec.get("authors") or self.draw_authors(spec, people), list(files))
        for name, authors in spec.get("orphans", {}).items():
            self.insert("branch", project_id=project, name=name, base="")
            self.add_commits(spec, name, authors, list(files))
        last = "SELECT max(id) FROM git_commit WHERE project_id = ? AND branch = ? AND path = ?"
        first = self.db.execute("SELECT min(id) FROM git_commit WHERE project_id = ?", (project,)).fetchone()[0]
        for path, content in files.items():
            commit_id = self.db.execute(last, (project, branch, path)).fetchone()[0] or first
            self.insert("file", project_id=project, branch=branch, path=path, content=content, commit_id=commit_id)

    def add_commits(self, spec: dict, branch: str, authors: list[list], paths: list[str]) -> None:
        """Commits in order of time. An author: name, e-mail, how many, between which days, and days of further ones."""
        moments = []
        for name, email, count, *rest in authors:
            self.db.execute("INSERT OR IGNORE INTO author (name, email) VALUES (?,?)", (name, email))
            author = self.db.execute("SELECT id FROM author WHERE name = ? AND email = ?", (name, email)).fetchone()[0]
            period = rest[:2] or spec["period"]
            moments += [(self.moment(*period), author) for _ in range(count)]
            moments += [(self.at(day), author) for day in (rest[2] if len(rest) > 2 else ())]
        for i, (created, author) in enumerate(sorted(moments)):
            path = self.rng.choice(paths)
            message = f"{self.rng.choice(words.COMMITS)} {path}" if i else "Initial commit"
            sha = f"{self.rng.getrandbits(32):08x}"
            row = {"project_id": spec["id"], "branch": branch, "sha": sha, "author_id": author}
            self.insert("git_commit", **row, created=created, message=message, path=path)

    def add_planning(self, spec: dict) -> None:
        spec["labels"] = spec.get("labels") or sorted(self.rng.sample(words.LABELS, 5))
        for name in spec["labels"]:
            self.insert("label", project_id=spec["id"], name=name)
        for iid, (title, start, due) in enumerate(spec.get("milestones", ()), 1):
            row = {"project_id": spec["id"], "iid": iid, "title": title, "start_date": start, "due_date": due}
            self.insert("milestone", **row)

    def add_items(self, spec: dict, branch: str, people: list[str]) -> None:
        """Issues and merge requests: those that are given, and made-up ones between them."""
        given = [row[0] for kind in ("issues", "merges") for row in spec.get(kind, ())]
        issues, merges = spec.get("filler", [6, 3])
        last = max([round(1.4 * (issues + merges)) + 1, *given])
        milestones = [r["id"] for r in self.db.execute("SELECT id FROM milestone WHERE project_id = ?", (spec["id"],))]
        free = self.rng.sample([n for n in range(1, last + 1) if n not in given], issues + merges)
        for iid, title, author, state, labels, *more in spec.get("issues", ()):
            row = {"title": title, "author": author, "state": state, **(more[0] if more else {})}
            self.add_item(spec, "issue", iid, last, row, labels)
        for iid, title, author, state, source, target, *more in spec.get("merges", ()):
            row = {"title": title, "author": author, "state": state, "source": source, "target": target}
            self.add_item(spec, "merge", iid, last, row | (more[0] if more else {}), [])
        for iid in free[:issues]:
            row = self.draw_issue(people) | self.draw_plan(milestones)
            self.drawn_items.append(self.add_item(spec, "issue", iid, last, row, self.draw_labels(spec)))
        for iid in free[issues:]:
            row = self.draw_merge(people, branch)
            self.drawn_items.append(self.add_item(spec, "merge", iid, last, row, self.draw_labels(spec)))

    def add_item(self, spec: dict, kind: str, iid: int, last: int, row: dict, labels: list[str]) -> int:
        start, end = (datetime.fromisoformat(day) for day in spec["period"])
        created = (start + (end - start) * (iid / (last + 1))).strftime(FORMAT)
        updated = self.moment(created[:10], min(self.days_after(created[:10], 60), YESTERDAY))
        row = {"created": created, "updated": max(updated, created), **row}
        notes = row.pop("notes", None)
        item = self.insert("item", kind=kind, project_id=spec["id"], iid=iid, **row)
        for label in labels:
            self.insert("item_label", item_id=item, label=label)
        if notes is None:
            count = self.rng.randint(0, 2)
            notes = [[self.rng.choice(self.people), self.rng.choice(words.COMMENTS)] for _ in range(count)]
        for author, body in notes:
            self.insert("note", item_id=item, author=author, body=body, created=row["updated"])
        if kind == "merge" and row["state"] == "opened":
            values = (spec["id"], row["source"], row["target"])
            self.db.execute("INSERT OR IGNORE INTO branch (project_id, name, base) VALUES (?,?,?)", values)
        return item

    def add_forks(self, facts: dict) -> None:
        find = "SELECT id FROM project WHERE namespace || '/' || path = ?"
        for spec in facts.get("projects", ()):
            if origin := spec.get("fork_of"):
                source = self.db.execute(find, (origin,)).fetchone()[0]
                self.db.execute("UPDATE project SET fork_of = ? WHERE id = ?", (source, spec["id"]))

    def involve_me(self) -> None:
        """Give me open issues, merge requests and reviews among the made-up ones, and put them on my to-do list."""
        mine = f"""SELECT i.id, i.author FROM item i JOIN member m ON m.project_id = i.project_id AND m.username = ?
                   WHERE i.kind = ? AND i.state = 'opened' AND i.author != ? AND i.assignee = '' AND i.reviewer = ''
                     AND i.id IN ({", ".join(map(str, self.drawn_items))}) ORDER BY i.id"""
        changes = [("issue", "assignee", "assigned you to"), ("merge", "assignee", "assigned you to")]
        for kind, column, action in [*changes, ("merge", "reviewer", "requested your review of")]:
            rows = self.db.execute(mine, (ME, kind, ME)).fetchall()
            for item, author in self.rng.sample(rows, min(len(rows), 4 if kind == "issue" else 3)):
                self.db.execute(f"UPDATE item SET {column} = ? WHERE id = ?", (ME, item))
                self.add_todo(item, author, action)
        asked = """SELECT id, author FROM item WHERE reviewer = ? AND state = 'opened'
                   AND id NOT IN (SELECT item_id FROM todo) ORDER BY id"""
        for item, author in self.db.execute(asked, (ME,)).fetchall():
            self.add_todo(item, author, "requested your review of")

    def add_todo(self, item: int, author: str, action: str) -> None:
        row = {"item_id": item, "author": author, "action": action}
        self.insert("todo", **row, created=self.moment("2023-05-01", YESTERDAY))

    def add_bonds(self) -> None:
        """Who follows whom, and what I have starred."""
        for follower in self.people[:10]:
            for followee in self.rng.sample([ME, *self.people], 2):
                if follower != followee:
                    self.insert("follow", follower=follower, followee=followee)
        for followee in self.rng.sample(self.people, 2):
            self.insert("follow", follower=ME, followee=followee)
        others = "SELECT id FROM project WHERE namespace != ? AND id > 200 ORDER BY id"
        for row in self.rng.sample(self.db.execute(others, (ME,)).fetchall(), 2):
            self.insert("star", username=ME, project_id=row["id"])
