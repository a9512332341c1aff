"""Labels and milestones of a project, and the to-do list."""

from __future__ import annotations

import sqlite3

from flask import Flask, abort

from dynaweb_lite.sites.webarena.gitlab.items import ITEMS, address
from dynaweb_lite.sites.webarena.gitlab.pages import (
    asked,
    back,
    change,
    form,
    insert,
    page,
    paginate,
    project_or_404,
    project_page,
    require,
    row,
    rows,
    valid_date,
    value,
)


def register(app: Flask) -> None:
    """Add the pages to the application."""
    base = "/<namespace>/<path>/-"
    app.get(f"{base}/labels")(labels)
    app.get(f"{base}/labels/new")(new_label)
    app.post(f"{base}/labels")(create_label)
    app.get(f"{base}/milestones")(milestones)
    app.post(f"{base}/milestones")(create_milestone)
    app.get(f"{base}/milestones/new")(new_milestone)
    app.get(f"{base}/milestones/<int:iid>")(milestone)
    app.post(f"{base}/milestones/<int:iid>/state")(set_milestone_state)
    app.get("/dashboard/todos")(todos)
    app.post("/dashboard/todos/<int:todo_id>")(finish_todo)


def labels(namespace: str, path: str):
    project = project_or_404(namespace, path)
    found = rows(
        """SELECT l.*, (SELECT count(*) FROM item_label x JOIN item i ON i.id = x.item_id WHERE x.label = l.name
             AND i.project_id = l.project_id AND i.kind = 'issue' AND i.state = 'opened') AS open_issues
           FROM label l WHERE project_id = ? ORDER BY name""",
        project["id"],
    )
    return project_page("labels", "Labels", project, part=paginate(found, 10))


def new_label(namespace: str, path: str, error: str = ""):
    project = project_or_404(namespace, path)
    require(project, 20)
    return project_page("label_new", "New label", project, error=error)


def create_label(namespace: str, path: str):
    project = project_or_404(namespace, path)
    require(project, 20)
    name = " ".join(form("title").split())
    if not name or "," in name:
        return new_label(namespace, path, "Give the label a title without commas."), 422
    if row("SELECT 1 FROM label WHERE project_id = ? AND name = ?", project["id"], name):
        return new_label(namespace, path, "Title has already been taken."), 422
    insert("label", project_id=project["id"], name=name, description=form("description"))
    return back(f"/{project['full_path']}/-/labels")


def milestones(namespace: str, path: str):
    project = project_or_404(namespace, path)
    state = asked("state") if asked("state") in ("closed", "all") else "opened"
    wanted = {"opened": ("active",), "closed": ("closed",), "all": ("active", "closed")}[state]
    found = rows("SELECT * FROM milestone WHERE project_id = ? ORDER BY due_date = '', due_date, iid", project["id"])
    part = paginate([m for m in found if m["state"] in wanted])
    return project_page("milestones", "Milestones", project, part=part, state=state)


def new_milestone(namespace: str, path: str, error: str = "", typed: dict | None = None):
    project = project_or_404(namespace, path)
    require(project, 20)
    return project_page("milestone_new", "New milestone", project, error=error, typed=typed or {})


def create_milestone(namespace: str, path: str):
    project = project_or_404(namespace, path)
    require(project, 20)
    names = ("title", "description", "start_date", "due_date")
    typed = {name: form(name) for name in names}
    dates = [typed["start_date"], typed["due_date"]]
    error = ""
    if not typed["title"]:
        error = "Title can't be blank."
    elif not all(valid_date(d) for d in dates if d):
        error = "Dates must be written as YYYY-MM-DD."
    elif all(dates) and dates[0] > dates[1]:
        error = "Due date must be greater than start date."
    elif row("SELECT 1 FROM milestone WHERE project_id = ? AND title = ?", project["id"], typed["title"]):
        error = "Title has already been taken."
    if error:
        return new_milestone(namespace, path, error, typed), 422
    iid = (value("SELECT max(iid) FROM milestone WHERE project_id = ?", project["id"]) or 0) + 1
    insert("milestone", project_id=project["id"], iid=iid, **typed)
    return back(f"/{project['full_path']}/-/milestones/{iid}")


def milestone_or_404(namespace: str, path: str, iid: int) -> tuple[sqlite3.Row, sqlite3.Row]:
    project = project_or_404(namespace, path)
    found = row("SELECT * FROM milestone WHERE project_id = ? AND iid = ?", project["id"], iid)
    return (project, found) if found else abort(404)


def milestone(namespace: str, path: str, iid: int):
    project, found = milestone_or_404(namespace, path, iid)
    items = rows(f"{ITEMS} WHERE i.milestone_id = ? ORDER BY i.id", found["id"])
    values = {"part": paginate(items), "address": address, "closed": sum(i["state"] != "opened" for i in items)}
    return project_page("milestone", found["title"], project, milestone=found, **values)


def set_milestone_state(namespace: str, path: str, iid: int):
    project, found = milestone_or_404(namespace, path, iid)
    require(project, 20)
    state = "active" if found["state"] == "closed" else "closed"
    change("UPDATE milestone SET state = ? WHERE id = ?", state, found["id"])
    return back(f"/{project['full_path']}/-/milestones/{iid}")


def todos():
    done = asked("state") == "done"
    found = rows(
        """SELECT t.id, t.author, t.action, t.created, i.title, i.iid, i.kind,
             p.namespace || '/' || p.path AS full_path, coalesce(u.name, t.author) AS author_name
           FROM todo t JOIN item i ON i.id = t.item_id JOIN project p ON p.id = i.project_id
           LEFT JOIN user u ON u.username = t.author WHERE t.done = ? ORDER BY t.created DESC, t.id""",
        done,
    )
    waiting = value("SELECT count(*) FROM todo WHERE NOT done")
    finished = value("SELECT count(*) FROM todo WHERE done")
    values = {"part": paginate(found), "done": done, "waiting": waiting, "finished": finished, "address": address}
    return page("todos", "To-Do List", **values)


def finish_todo(todo_id: int):
    done = value("SELECT done FROM todo WHERE id = ?", todo_id)
    if done is None:
        abort(404)
    change("UPDATE todo SET done = ? WHERE id = ?", not done, todo_id)
    return back("/dashboard/todos?state=done" if done else "/dashboard/todos")
