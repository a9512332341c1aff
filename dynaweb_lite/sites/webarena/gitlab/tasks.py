"""Templates of further tasks on the code host: finding out, going somewhere, changing something."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from urllib.parse import quote

from dynaweb_lite.sites.webarena.generator import Instance, Template, address, answer, content
from dynaweb_lite.sites.webarena.gitlab.pages import day
from dynaweb_lite.sites.webarena.gitlab.schema import ME, ROLES

SITE = "__GITLAB__"
LAST_NOTE = (
    "document.querySelector('#notes-list').lastElementChild.querySelector('.timeline-discussion-body').outerText"
)
STATE = "document.querySelector('.crumbs .tag').outerText"
DUE_DATE = "document.querySelector('[data-testid=\"sidebar-due-date\"]').outerText"
PROFILE = "document.querySelector('.user-profile').outerText"
COMMENTS = ("I will take a look tomorrow.", "Fixed on the main branch.", "Please add a test.", "This can wait.")
PLANS = ("Documentation sprint", "Winter cleaning", "Second beta", "Design review", "Bug bash")

PROJECTS = """SELECT p.id, p.path, p.branch, p.namespace || '/' || p.path AS full_path,
  coalesce(u.name, n.name) || ' / ' || p.name AS title, p.namespace || ' ' || p.path AS words,
  coalesce((SELECT max(role) FROM member m WHERE m.username = 'byteblaze'
            AND (m.project_id = p.id OR m.grp = p.namespace)), 0) AS my_role
  FROM project p LEFT JOIN user u ON u.username = p.namespace LEFT JOIN grp n ON n.path = p.namespace ORDER BY p.id"""


def _projects(db: sqlite3.Connection, rng: random.Random, role: int = 0) -> list[sqlite3.Row]:
    """Projects in which my role is at least `role`, in random order."""
    found = [p for p in db.execute(PROJECTS).fetchall() if p["my_role"] >= role]
    return rng.sample(found, len(found))


def _to(project: sqlite3.Row, *steps: str) -> tuple[str, ...]:
    """A script that finds a project by its name, and its further steps."""
    return (f"type [searchbox 'Search GitLab'] [{project['words']}] [1]", f"click [link '{project['title']}']", *steps)


def _items(db: sqlite3.Connection, rng: random.Random, kind: str, role: int = 0) -> Iterable[tuple]:
    """Open issues or merge requests of others, one or two a project, each with its project."""
    of_project = "SELECT * FROM item WHERE project_id = ? AND kind = ? AND state = 'opened' AND author != ? ORDER BY id"
    for project in _projects(db, rng, role):
        rows = db.execute(of_project, (project["id"], kind, ME)).fetchall()
        titles = [item["title"].lower() for item in rows]
        fit = [item for item in rows if sum(item["title"].lower() in title for title in titles) == 1]
        yield from ((project, item) for item in rng.sample(fit, min(2, len(fit))))


def _to_item(project: sqlite3.Row, item: sqlite3.Row, *steps: str) -> tuple[str, ...]:
    kinds = "Issues" if item["kind"] == "issue" else "Merge requests"
    search = f"type [searchbox 'Search'] [{item['title']}] [1]"
    return _to(project, f"click [link '{kinds}']", search, f"click [link '{item['title']}']", *steps)


def _item_url(project: sqlite3.Row, item: sqlite3.Row) -> str:
    kinds = "issues" if item["kind"] == "issue" else "merge_requests"
    return f"{SITE}/{project['full_path']}/-/{kinds}/{item['iid']}"


def _commits_in_month(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project in _projects(db, rng):
        rows = db.execute(
            """SELECT a.name, substr(c.created, 1, 7) AS month FROM git_commit c JOIN author a ON a.id = c.author_id
               WHERE c.project_id = ? AND c.branch = ? ORDER BY c.id""",
            (project["id"], project["branch"]),
        ).fetchall()
        (name, month), count = rng.choice(Counter((r["name"], r["month"]) for r in rows).most_common(6))
        values = {"author": name, "project": project["full_path"]}
        values["month"] = datetime.fromisoformat(f"{month}-01").strftime("%B %Y")
        steps = ("click [link 'Commits']", f"type [textbox 'Author'] [{name}] [1]", f"stop [{count}]")
        made.append(Instance(values, answer(str(count)), _to(project, *steps)))
    return made


def _top_contributor(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project in _projects(db, rng):
        ranked = db.execute(
            """SELECT a.email, count(*) AS commits FROM git_commit c JOIN author a ON a.id = c.author_id
               WHERE c.project_id = ? AND c.branch = ? GROUP BY a.id ORDER BY commits DESC LIMIT 2""",
            (project["id"], project["branch"]),
        ).fetchall()
        if len(ranked) < 2 or ranked[0]["commits"] > ranked[1]["commits"]:
            email = ranked[0]["email"]
            script = _to(project, "click [link 'Contributors']", f"stop [{email}]")
            made.append(Instance({"project": project["full_path"]}, answer(email), script))
    return made


def _reviewer(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"title": item["title"], "project": project["full_path"]},
            answer(item["reviewer"]),
            _to_item(project, item, f"stop [{item['reviewer']}]"),
        )
        for project, item in _items(db, rng, "merge")
        if item["reviewer"]
    ]


def _milestone_due(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project in _projects(db, rng):
        for row in db.execute("SELECT * FROM milestone WHERE project_id = ?", (project["id"],)):
            due = day(row["due_date"])
            values = {"milestone": row["title"], "project": project["full_path"]}
            made.append(Instance(values, answer(due), _to(project, "click [link 'Milestones']", f"stop [{due}]")))
    return made


def _labelled(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project in _projects(db, rng):
        names = [r["name"] for r in db.execute("SELECT name FROM label WHERE project_id = ?", (project["id"],))]
        label = rng.choice(names)
        url = f"{SITE}/{project['full_path']}/-/issues/?label_name%5B%5D={quote(label)}"
        script = _to(project, "click [link 'Labels']", f"click [link '{label}']", "stop []")
        made.append(Instance({"label": label, "project": project["full_path"]}, address(url), script))
    return made


def _file(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project in _projects(db, rng):
        of_project = "SELECT path FROM file WHERE project_id = ? AND branch = ? ORDER BY path"
        paths = [r["path"] for r in db.execute(of_project, (project["id"], project["branch"]))]
        path = rng.choice([p for p in paths if p != "README.md"])
        *folders, name = path.split("/")
        clicks = [f"click [link '{folder}/']" for folder in folders] + [f"click [link '{name}']"]
        url = f"{SITE}/{project['full_path']}/-/blob/{project['branch']}/{path}"
        values = {"file": path, "project": project["full_path"]}
        made.append(Instance(values, address(url), _to(project, *clicks, "stop []")))
    return made


def _open_issue(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"title": item["title"], "project": project["full_path"]},
            address(_item_url(project, item)),
            _to_item(project, item, "stop []"),
        )
        for project, item in _items(db, rng, "issue")
    ]


def _others(db: sqlite3.Connection, rng: random.Random) -> list[sqlite3.Row]:
    """People whose name and user name stand in nobody else's, in random order."""
    people = db.execute("SELECT * FROM user WHERE username != ? ORDER BY id", (ME,)).fetchall()
    texts = [f"{u['name']} {u['username']}".lower() for u in db.execute("SELECT * FROM user")]
    fit = [u for u in people if sum(u["name"].lower() in text for text in texts) == 1]
    return rng.sample(fit, len(fit))


def _to_user(user: sqlite3.Row, *steps: str) -> tuple[str, ...]:
    name = user["name"]
    return (f"type [searchbox 'Search GitLab'] [{name}] [1]", "click [link 'Users…']", f"click [link '{name}']", *steps)


def _followers(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"name": user["name"]},
            address(f"{SITE}/users/{user['username']}/followers"),
            _to_user(user, "click [link 'Followers…']", "stop []"),
        )
        for user in _others(db, rng)
    ]


def _follow(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    followed = {r["followee"] for r in db.execute("SELECT followee FROM follow WHERE follower = ?", (ME,))}
    return [
        Instance(
            {"name": user["name"]},
            content((f"{SITE}/users/{ME}/following", PROFILE, [f"@{user['username']}"])),
            _to_user(user, "click [button 'Follow']", "stop []"),
        )
        for user in _others(db, rng)
        if user["username"] not in followed
    ]


def _comment(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project, item in _items(db, rng, "issue"):
        text = rng.choice(COMMENTS)
        steps = (f"type [textbox 'Write a comment'] [{text}] [0]", "click [button 'Comment']", "stop []")
        values = {"comment": text, "title": item["title"], "project": project["full_path"]}
        check = content((_item_url(project, item), LAST_NOTE, text))
        made.append(Instance(values, check, _to_item(project, item, *steps)))
    return made


def _close(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    return [
        Instance(
            {"title": item["title"], "project": project["full_path"]},
            content((_item_url(project, item), STATE, "Closed")),
            _to_item(project, item, "click [button 'Close issue']", "stop []"),
        )
        for project, item in _items(db, rng, "issue", role=20)
    ]


def _due_date(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project, item in _items(db, rng, "issue", role=20):
        date = f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        steps = (
            "click [link 'Edit']",
            f"type [textbox 'Due date'] [{date}] [0]",
            "click [button 'Save changes']",
            "stop []",
        )
        values = {"title": item["title"], "project": project["full_path"], "date": day(date)}
        check = content((_item_url(project, item), DUE_DATE, f"Due date: {day(date)}"))
        made.append(Instance(values, check, _to_item(project, item, *steps)))
    return made


def _invite(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made, people = [], _others(db, rng)
    for project in _projects(db, rng, role=40):
        there = "SELECT username FROM member WHERE project_id = ? OR grp = substr(?, 1, instr(?, '/') - 1)"
        path = project["full_path"]
        members = {r["username"] for r in db.execute(there, (project["id"], path, path))}
        user = rng.choice([u for u in people if u["username"] not in members])
        role = rng.choice([name for name in ROLES.values() if name != "Owner"])
        check = f"func:gitlab_get_project_memeber_role(__page__, '{user['username']}')"
        typed = f"type [textbox 'Username or name'] [{user['name']}] [0]"
        steps = (typed, f"select [combobox 'Select a role'] [{role}]", "click [button 'Invite members']", "stop []")
        values = {"name": user["name"], "project": path, "role": role}
        wanted = content((f"{SITE}/{path}/-/project_members", check, [role]))
        made.append(Instance(values, wanted, _to(project, "click [link 'Members']", *steps)))
    return made


def _milestone(db: sqlite3.Connection, rng: random.Random) -> list[Instance]:
    made = []
    for project in _projects(db, rng, role=20):
        title, month = rng.choice(PLANS), rng.randint(7, 11)
        dates = f"2023-{month:02}-{rng.randint(1, 28):02}", f"2023-{month + 1:02}-{rng.randint(1, 28):02}"
        highest = "SELECT coalesce(max(iid), 0) + 1 FROM milestone WHERE project_id = ?"
        url = f"{SITE}/{project['full_path']}/-/milestones/{db.execute(highest, (project['id'],)).fetchone()[0]}"
        fields = zip(("Title", "Start Date", "Due Date"), (title, *dates), strict=True)
        typed = [f"type [textbox '{name}'] [{text}] [0]" for name, text in fields]
        clicks = ("click [link 'Milestones']", "click [link 'New milestone']")
        values = {"title": title, "project": project["full_path"], "start": day(dates[0]), "end": day(dates[1])}
        check = content(
            (url, "document.querySelector('#content-body').outerText", [title]),
            (url, "document.querySelector('.block.start_date').outerText", f"Start date: {day(dates[0])}"),
            (url, "document.querySelector('.block.due_date').outerText", f"Due date: {day(dates[1])}"),
        )
        script = _to(project, *clicks, *typed, "click [button 'Create milestone']", "stop []")
        made.append(Instance(values, check, script))
    return made


TEMPLATES = [
    Template(
        "gitlab_commits_in_month",
        "information",
        "How many commits did {{author}} make to the default branch of {{project}} in {{month}}?",
        _commits_in_month,
    ),
    Template(
        "gitlab_top_contributor",
        "information",
        "What is the e-mail address of the contributor with the most commits to the default branch of {{project}}?",
        _top_contributor,
    ),
    Template(
        "gitlab_reviewer",
        "information",
        'Who is asked to review the merge request "{{title}}" of {{project}}? Answer with the user name.',
        _reviewer,
    ),
    Template(
        "gitlab_milestone_due",
        "information",
        'When is the milestone "{{milestone}}" of {{project}} due? Write the date as the site does, like Mar 5, 2023.',
        _milestone_due,
        held_out=True,
    ),
    Template("gitlab_labelled", "navigation", "List the issues of {{project}} with the label {{label}}", _labelled),
    Template("gitlab_file", "navigation", "Open the file {{file}} of {{project}} on its default branch", _file),
    Template("gitlab_open_issue", "navigation", 'Open the issue "{{title}}" of {{project}}', _open_issue),
    Template("gitlab_followers", "navigation", "Show who follows {{name}}", _followers),
    Template("gitlab_follow", "change", "Follow {{name}}", _follow),
    Template("gitlab_comment", "change", 'Comment "{{comment}}" on the issue "{{title}}" of {{project}}', _comment),
    Template("gitlab_close", "change", 'Close the issue "{{title}}" of {{project}}', _close),
    Template(
        "gitlab_due_date", "change", 'Set the due date of the issue "{{title}}" of {{project}} to {{date}}', _due_date
    ),
    Template("gitlab_invite", "change", "Invite {{name}} to {{project}} with the role {{role}}", _invite),
    Template(
        "gitlab_milestone",
        "change",
        'Create the milestone "{{title}}" in {{project}}, from {{start}} to {{end}}',
        _milestone,
        held_out=True,
    ),
]
