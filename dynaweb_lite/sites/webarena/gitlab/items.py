"""Issues and merge requests of the code host: lists with filters, the two forms, comments, and the dashboards."""

from __future__ import annotations

import sqlite3

from flask import Flask, abort, request

from dynaweb_lite.sites.webarena.gitlab.pages import (
    asked,
    back,
    change,
    find_user,
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
    without_empty_parameters,
)
from dynaweb_lite.sites.webarena.gitlab.repository import branch_names
from dynaweb_lite.sites.webarena.gitlab.schema import ME, NOW

KINDS = {"issues": "issue", "merge_requests": "merge"}
NOUNS = {"issue": "issue", "merge": "merge request"}
SORTS = {
    "created_date": ("Created date", "i.created DESC, i.id DESC"),
    "created_asc": ("Created date, oldest first", "i.created, i.id"),
    "updated_desc": ("Updated date", "i.updated DESC, i.id DESC"),
    "due_date": ("Due date", "i.due_date = '', i.due_date, i.id"),
}
ITEMS = """SELECT i.*, p.namespace || '/' || p.path AS full_path, coalesce(a.name, i.author) AS author_name,
  coalesce(s.name, '') AS assignee_name, coalesce(r.name, '') AS reviewer_name, m.title AS milestone,
  m.iid AS milestone_iid, (SELECT group_concat(label, ', ') FROM item_label l WHERE l.item_id = i.id) AS labels
  FROM item i JOIN project p ON p.id = i.project_id LEFT JOIN user a ON a.username = i.author
  LEFT JOIN user s ON s.username = i.assignee LEFT JOIN user r ON r.username = i.reviewer
  LEFT JOIN milestone m ON m.id = i.milestone_id """


def register(app: Flask) -> None:
    """Add the pages to the application."""
    kinds = '<any(issues, "merge_requests"):kinds>'
    base = f"/<namespace>/<path>/-/{kinds}"
    app.get(f"/dashboard/{kinds}", strict_slashes=False)(dashboard)
    app.get(base, strict_slashes=False)(project_list)
    app.post(base)(create)
    app.get(f"{base}/new")(new)
    app.get(f"{base}/<int:iid>")(show)
    app.post(f"{base}/<int:iid>")(update)
    app.get(f"{base}/<int:iid>/edit")(edit)
    app.post(f"{base}/<int:iid>/state")(set_state)
    app.post(f"{base}/<int:iid>/assign_me")(assign_me)
    app.post(f"{base}/<int:iid>/notes")(comment)


def address(item: sqlite3.Row) -> str:
    kinds = "issues" if item["kind"] == "issue" else "merge_requests"
    return f"/{item['full_path']}/-/{kinds}/{item['iid']}"


def filtered(kind: str, project: sqlite3.Row | None = None) -> list[sqlite3.Row]:
    """Issues or merge requests that the address asks for, in its state or, when it names none, the open ones."""
    where, values = ["i.kind = ?"], [kind]
    if project is not None:
        where.append("i.project_id = ?")
        values.append(project["id"])
    for word in asked("search").split():
        where.append("(instr(lower(i.title), ?) OR instr(lower(i.description), ?))")
        values += [word.lower()] * 2
    for column in ("author", "assignee", "reviewer"):
        if name := asked(f"{column}_username") or asked(f"{column}_username[]"):
            where.append(f"i.{column} {'!=' if name == 'Any' else '='} ?")
            values.append("" if name in ("None", "Any") else name.removeprefix("@"))
    for label in filter(None, request.args.getlist("label_name[]")):
        some = "EXISTS (SELECT 1 FROM item_label l WHERE l.item_id = i.id"
        where.append(
            f"NOT {some})" if label == "None" else f"{some})" if label == "Any" else f"{some} AND lower(label) = ?)"
        )
        values += [] if label in ("None", "Any") else [label.lower()]
    if title := asked("milestone_title"):
        where.append("m.title = ? COLLATE NOCASE")
        values.append(title)
    order = SORTS.get(asked("sort"), SORTS["created_date"])[1]
    return rows(f"{ITEMS} WHERE {' AND '.join(where)} ORDER BY {order}", *values)


def tabs(kind: str, found: list[sqlite3.Row]) -> tuple[list[dict], list[sqlite3.Row]]:
    """The tabs above a list, with counts, and the rows of the current one."""
    names = ["opened", "merged", "closed", "all"] if kind == "merge" else ["opened", "closed", "all"]
    state = asked("state") if asked("state") in names else "opened"
    made = []
    for name in names:
        part = [item for item in found if name in ("all", item["state"])]
        label = f"{'Open' if name == 'opened' else name.capitalize()} {len(part)}"
        made.append({"state": name, "label": label, "current": name == state, "rows": part})
    return made, next(tab["rows"] for tab in made if tab["current"])


def list_values(kind: str, found: list[sqlite3.Row]) -> dict:
    made, shown = tabs(kind, found)
    current = next(tab["state"] for tab in made if tab["current"])
    kept = [(k, v) for k, v in request.args.items(multi=True) if k not in ("state", "page")]
    sorts = [(key, label) for key, (label, _) in SORTS.items()]
    values = {"kind": kind, "tabs": made, "state": current, "kept": kept, "part": paginate(shown), "sorts": sorts}
    return values | {"sort": asked("sort", "created_date"), "address": address, "args": request.args}


def project_list(namespace: str, path: str, kinds: str):
    project = project_or_404(namespace, path)
    base = f"/{project['full_path']}/-/{kinds}/"
    if clean := without_empty_parameters(base):
        return clean
    kind = KINDS[kinds]
    values = list_values(kind, filtered(kind, project))
    title = "Issues" if kind == "issue" else "Merge requests"
    return project_page("items", title, project, kinds=kinds, base=base, heading=title, **values)


def dashboard(kinds: str):
    base = f"/dashboard/{kinds}"
    if clean := without_empty_parameters(base):
        return clean
    kind = KINDS[kinds]
    people = [f"{column}_username" for column in ("author", "assignee", "reviewer")]
    is_asked = any(asked(key) or asked(f"{key}[]") for key in [*people, "search"])
    values = list_values(kind, filtered(kind) if is_asked else [])
    title = "Issues" if kind == "issue" else "Merge requests"
    return page("dashboard_items", title, kinds=kinds, base=base, heading=title, is_asked=is_asked, **values)


def item_or_404(namespace: str, path: str, kinds: str, iid: int) -> tuple[sqlite3.Row, sqlite3.Row]:
    project = project_or_404(namespace, path)
    item = row(ITEMS + "WHERE i.project_id = ? AND i.kind = ? AND i.iid = ?", project["id"], KINDS[kinds], iid)
    return (project, item) if item else abort(404)


def may_edit(project: sqlite3.Row, item: sqlite3.Row) -> bool:
    return project["my_role"] >= 20 or item["author"] == ME


def show(namespace: str, path: str, kinds: str, iid: int, error: str = "", status: int = 200):
    project, item = item_or_404(namespace, path, kinds, iid)
    notes = rows(
        """SELECT n.*, coalesce(u.name, n.author) AS name FROM note n LEFT JOIN user u ON u.username = n.author
           WHERE n.item_id = ? ORDER BY n.id""",
        item["id"],
    )
    values = {"kinds": kinds, "item": item, "notes": notes, "error": error, "noun": NOUNS[item["kind"]]}
    values["branches"] = branch_names(project)
    rights = {"may_edit": may_edit(project, item), "may_merge": project["my_role"] >= 30}
    title = f"{item['title']} ({'#' if item['kind'] == 'issue' else '!'}{iid})"
    return project_page("item", title, project, here=address(item), **values, **rights), status


def new(namespace: str, path: str, kinds: str, error: str = "", status: int = 200):
    """The form of a new issue; for a merge request, first the choice of its branches."""
    project = project_or_404(namespace, path)
    if kinds == "issues":
        return item_form(project, kinds, None, error), status
    require(project, 30)
    names = branch_names(project)
    source, target = (chosen(f"merge_request[{side}_branch]") for side in ("source", "target"))
    if source and target:
        error = error or check_branches(project, source, target)
        if source in names and target in names and not (error and request.method == "GET"):
            return item_form(project, kinds, None, error, source, target), status
    values = {"branches": names, "source": source, "target": target or project["branch"], "error": error}
    return project_page("merge_branches", "New merge request", project, **values), status


def chosen(name: str) -> str:
    return form(name) if request.method == "POST" else asked(name)


def check_branches(project: sqlite3.Row, source: str, target: str) -> str:
    """What is wrong with a pair of branches, or an empty string."""
    if source not in (names := branch_names(project)) or target not in names:
        return "Choose two branches of this project."
    if source == target:
        return "You must select different branches."
    same = """SELECT iid FROM item WHERE project_id = ? AND kind = 'merge' AND state = 'opened'
              AND source = ? AND target = ?"""
    if iid := value(same, project["id"], source, target):
        return f"Another open merge request already exists for this source branch: !{iid}."
    return ""


def item_form(
    project, kinds: str, item: sqlite3.Row | None, error: str = "", source: str = "", target: str = ""
) -> str:
    """The form for a new item (`item` is None) or an old one, with what was typed when it comes back with an error."""
    labels = [r["name"] for r in rows("SELECT name FROM label WHERE project_id = ? ORDER BY name", project["id"])]
    milestones = rows("SELECT * FROM milestone WHERE project_id = ? AND state = 'active' ORDER BY iid", project["id"])
    old = dict(item) if item else {"title": source.replace("-", " ").capitalize()}
    fields = ("title", "description", "assignee", "reviewer", "due_date", "milestone_id")
    typed = {name: form(name) if request.method == "POST" else old.get(name) or "" for name in fields}
    on = request.form.getlist("labels") if request.method == "POST" else (old.get("labels") or "").split(", ")
    noun = NOUNS[KINDS[kinds]]
    values = {"kinds": kinds, "item": item, "labels": labels, "milestones": milestones, "typed": typed, "on": on}
    values |= {"error": error, "source": source, "target": target, "noun": noun, "is_member": project["my_role"] >= 20}
    heading = f"Edit {noun}" if item else f"New {noun}"
    return project_page("item_form", heading, project, heading=heading, **values)


def read_form(project: sqlite3.Row) -> dict:
    """Columns from the form that was sent. Raises ValueError that says what is wrong."""
    columns: dict = {"title": " ".join(form("title").split()), "description": form("description")}
    if not columns["title"]:
        raise ValueError("Title can't be blank.")
    if project["my_role"] < 20:
        return columns
    for name in ("assignee", "reviewer"):
        if name in request.form:
            columns[name] = find_user(form(name))["username"] if form(name) else ""
    if (due := form("due_date")) and not valid_date(due):
        raise ValueError("Due date must be a date as YYYY-MM-DD.")
    if "due_date" in request.form:
        columns["due_date"] = due
    milestones = {str(r["id"]) for r in rows("SELECT id FROM milestone WHERE project_id = ?", project["id"])}
    if "milestone_id" in request.form:
        columns["milestone_id"] = int(form("milestone_id")) if form("milestone_id") in milestones else None
    return columns


def set_labels(project: sqlite3.Row, item_id: int) -> None:
    known = {r["name"] for r in rows("SELECT name FROM label WHERE project_id = ?", project["id"])}
    change("DELETE FROM item_label WHERE item_id = ?", item_id)
    for label in dict.fromkeys(request.form.getlist("labels")):
        if label in known:
            insert("item_label", item_id=item_id, label=label)


def create(namespace: str, path: str, kinds: str):
    project = project_or_404(namespace, path)
    kind = KINDS[kinds]
    branches: dict[str, str] = {}
    try:
        if kind == "merge":
            require(project, 30)
            branches = {side: form(f"merge_request[{side}_branch]") for side in ("source", "target")}
            if problem := check_branches(project, branches["source"], branches["target"]):
                raise ValueError(problem)
        columns = read_form(project)
    except ValueError as error:
        return new(namespace, path, kinds, str(error), 422)
    iid = (value("SELECT max(iid) FROM item WHERE project_id = ? AND kind = ?", project["id"], kind) or 0) + 1
    values = {"kind": kind, "project_id": project["id"], "iid": iid, "author": ME, "created": NOW, "updated": NOW}
    item_id = insert("item", **values, **columns, **branches)
    if project["my_role"] >= 20:
        set_labels(project, item_id)
    return back(f"/{project['full_path']}/-/{kinds}/{iid}")


def edit(namespace: str, path: str, kinds: str, iid: int, error: str = "", status: int = 200):
    project, item = item_or_404(namespace, path, kinds, iid)
    if not may_edit(project, item):
        abort(403)
    return item_form(project, kinds, item, error), status


def update(namespace: str, path: str, kinds: str, iid: int):
    project, item = item_or_404(namespace, path, kinds, iid)
    if not may_edit(project, item):
        abort(403)
    try:
        columns = read_form(project)
    except ValueError as error:
        return edit(namespace, path, kinds, iid, str(error), 422)
    marks = ", ".join(f"{name} = ?" for name in columns)
    change(f"UPDATE item SET {marks}, updated = ? WHERE id = ?", *columns.values(), NOW, item["id"])
    if project["my_role"] >= 20:
        set_labels(project, item["id"])
    return back(address(item), "Changes were saved.")


def set_state(namespace: str, path: str, kinds: str, iid: int):
    project, item = item_or_404(namespace, path, kinds, iid)
    state = form("state")
    allowed = {"opened": ["closed", "merged"] if kinds == "merge_requests" else ["closed"], "closed": ["opened"]}
    if not may_edit(project, item) or (state == "merged" and project["my_role"] < 30):
        abort(403)
    if state not in allowed.get(item["state"], []):
        abort(404)
    change("UPDATE item SET state = ?, updated = ? WHERE id = ?", state, NOW, item["id"])
    return back(address(item), f"This {NOUNS[item['kind']]} is now {'open' if state == 'opened' else state}.")


def assign_me(namespace: str, path: str, kinds: str, iid: int):
    project, item = item_or_404(namespace, path, kinds, iid)
    require(project, 20)
    change("UPDATE item SET assignee = ?, updated = ? WHERE id = ?", ME, NOW, item["id"])
    return back(address(item))


def comment(namespace: str, path: str, kinds: str, iid: int):
    _, item = item_or_404(namespace, path, kinds, iid)
    if not form("note"):
        return show(namespace, path, kinds, iid, "Note can't be blank.", 422)
    insert("note", item_id=item["id"], author=ME, body=form("note"), created=NOW)
    change("UPDATE item SET updated = ? WHERE id = ?", NOW, item["id"])
    return back(address(item))
