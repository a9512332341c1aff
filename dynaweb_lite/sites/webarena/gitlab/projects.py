"""Projects of the code host: lists, the project's own page, new projects, stars, forks and members."""

from __future__ import annotations

import re

from flask import Flask, abort, redirect, request

from dynaweb_lite.sites.webarena.gitlab.pages import (
    HTTP_BASE,
    PROJECTS,
    SSH_BASE,
    UserNotFound,
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
    resolve_users,
    row,
    rows,
    slug,
    value,
    without_empty_parameters,
)
from dynaweb_lite.sites.webarena.gitlab.repository import (
    commit_file,
    copy_repository,
    entries_of,
    files_of,
    last_commit,
)
from dynaweb_lite.sites.webarena.gitlab.schema import ME, NOW, ROLES, VISIBILITIES

SORTS = {
    "latest_activity_desc": ("Last updated", "p.updated DESC, p.id"),
    "name_asc": ("Name", "p.path COLLATE NOCASE, p.id"),
    "created_desc": ("Last created", "p.created DESC, p.id"),
    "stars_desc": ("Most stars", "p.stars DESC, p.id"),
}
TEMPLATES = {
    "rails": ("Ruby on Rails", "A Rails application to start from"),
    "express": ("NodeJS Express", "An Express application to start from"),
    "android": ("Android", "An Android application to start from"),
    "iosswift": ("iOS (Swift)", "A Swift application for iOS to start from"),
    "plainhtml": ("Pages/Plain HTML", "Example plain HTML site using GitLab Pages: https://pages.gitlab.io/plain-html"),
    "jekyll": ("Pages/Jekyll", "Example Jekyll site using GitLab Pages: https://pages.gitlab.io/jekyll"),
    "hugo": ("Pages/Hugo", "Example Hugo site using GitLab Pages: https://pages.gitlab.io/hugo"),
}
"""Project templates: what the form calls them, and the description of a project that is made from one."""


def register(app: Flask) -> None:
    """Add the pages to the application."""
    app.get("/")(your_projects)
    app.get("/dashboard/projects")(your_projects)
    app.get("/dashboard/projects/starred")(starred_projects)
    app.get("/explore")(explore)
    app.get("/explore/projects")(explore)
    app.get("/projects/new")(new_project)
    app.post("/projects")(create_project)
    app.get("/<namespace>/<path>", strict_slashes=False)(show_project)
    app.post("/<namespace>/<path>/-/toggle_star")(toggle_star)
    app.get("/<namespace>/<path>/-/forks/new")(new_fork)
    app.post("/<namespace>/<path>/-/forks")(create_fork)
    app.get("/<namespace>/<path>/-/project_members")(members)
    app.post("/<namespace>/<path>/-/project_members")(invite)
    app.get("/<namespace>/<path>/-/project_members/<username>/edit")(edit_member)
    app.post("/<namespace>/<path>/-/project_members/<username>")(update_member)


def listing(heading: str, current: str, condition: str, empty: str):
    """A list of projects that the address may filter by name and sort."""
    if clean := without_empty_parameters(request.path):
        return clean
    sort = asked("sort", "latest_activity_desc")
    order = SORTS.get(sort, SORTS["latest_activity_desc"])[1]
    seen = "(p.visibility != 'private' OR my_role > 0)"
    found = rows(f"SELECT * FROM ({PROJECTS}) p WHERE {seen} AND {condition} ORDER BY {order}")
    name = asked("name").lower()
    found = [p for p in found if name in f"{p['namespace_name']} / {p['name']} {p['full_path']}".lower()]
    sorts = [(key, label) for key, (label, _) in SORTS.items()]
    values = {"part": paginate(found), "sorts": sorts, "sort": sort, "name": asked("name"), "empty": empty}
    return page("projects", heading, heading=heading, current=current, **values)


def your_projects():
    if request.path == "/" and value("SELECT value FROM setting WHERE key = 'homepage'") == "starred":
        return starred_projects()
    return listing("Projects", "yours", "my_role > 0", "You are in no project that fits.")


def starred_projects():
    return listing("Starred projects", "starred", "starred", "You have starred no project that fits.")


def explore():
    return listing("Explore projects", "explore", "1", "No project fits.")


def namespaces() -> list[str]:
    """Where I may put a project: under my name, and in the groups that I own."""
    mine = "SELECT grp FROM member WHERE username = ? AND role = 50 AND grp IS NOT NULL ORDER BY grp"
    return [ME, *(r["grp"] for r in rows(mine, ME))]


def new_project():
    kind = asked("form")
    if kind not in ("blank_project", "create_from_template"):
        return page("project_start", "New project")
    return project_form(kind, "")


def project_form(kind: str, error: str):
    title = "Create blank project" if kind == "blank_project" else "Create from template"
    template_names = [(key, name) for key, (name, _) in TEMPLATES.items()]
    return page("project_new", title, kind=kind, error=error, namespaces=namespaces(), templates=template_names)


def check_new(name: str, namespace: str, path: str, visibility: str) -> str:
    """What is wrong with a project that is about to be made, or an empty string."""
    if not name:
        return "Project name can't be blank."
    if not re.fullmatch(r"[\w .+-]+", name):
        return "Project name can hold only letters, digits, underscores, dots, dashes and spaces."
    if namespace not in namespaces() or visibility not in VISIBILITIES:
        return "Choose where the project belongs and who can see it."
    if not re.fullmatch(r"[A-Za-z0-9_][\w.-]*", path, flags=re.ASCII):
        return "The project slug can hold only letters, digits, underscores, dots and dashes."
    if row("SELECT 1 FROM project WHERE namespace = ? AND path = ?", namespace, path):
        return f"Path {path} has already been taken."
    return ""


def create_project():
    kind, name = form("form"), form("name")
    namespace, path, visibility = form("namespace") or ME, form("path") or slug(name), form("visibility")
    error = check_new(name, namespace, path, visibility)
    template = TEMPLATES.get(form("template"))
    if kind == "create_from_template" and template is None:
        error = error or "Choose a template."
    if error:
        return project_form("create_from_template" if kind == "create_from_template" else "blank_project", error), 422
    description = form("description") or (template[1] if template else "")
    values = {"namespace": namespace, "path": path, "name": name, "description": description, "visibility": visibility}
    project_id = insert("project", **values, created=NOW, updated=NOW)
    if namespace == ME:
        insert("member", project_id=project_id, username=ME, role=50, since=NOW)
    project = project_or_404(namespace, path)
    readme = f"# {name}\n\n{description}\n"
    if template:
        commit_file(project, "main", "README.md", readme, f"Initialized from '{template[0]}' project template")
    elif form("readme"):
        commit_file(project, "main", "README.md", readme, "Initial commit")
    return back(f"/{namespace}/{path}", f"Project '{name}' was successfully created.")


def show_project(namespace: str, path: str):
    project = project_or_404(namespace, path)
    branch = project["branch"]
    files = files_of(project, branch)
    readme = next((f["content"] for name, f in files.items() if name.lower() == "readme.md"), "")
    origin = row(PROJECTS + "WHERE p.id = ?", project["fork_of"]) if project["fork_of"] else None
    clone = [("SSH", f"{SSH_BASE}/{project['full_path']}.git"), ("HTTP", f"{HTTP_BASE}/{project['full_path']}.git")]
    values = {"branch": branch, "entries": entries_of(project, branch, ""), "readme": readme, "origin": origin}
    commit = last_commit(project, branch)
    return project_page("project", "Project", project, clone=clone, commit=commit, **values)


def toggle_star(namespace: str, path: str):
    project = project_or_404(namespace, path)
    if project["starred"]:
        change("DELETE FROM star WHERE username = ? AND project_id = ?", ME, project["id"])
    else:
        insert("star", username=ME, project_id=project["id"])
    change("UPDATE project SET stars = stars + ? WHERE id = ?", -1 if project["starred"] else 1, project["id"])
    return back(f"/{project['full_path']}")


def new_fork(namespace: str, path: str, error: str = ""):
    project = project_or_404(namespace, path)
    return project_page("fork", "Fork project", project, namespaces=namespaces(), error=error)


def create_fork(namespace: str, path: str):
    project = project_or_404(namespace, path)
    name, target = form("name"), form("namespace")
    new_path, visibility = form("path") or slug(name), form("visibility")
    if error := check_new(name, target, new_path, visibility):
        return new_fork(namespace, path, error), 422
    values = {"description": project["description"], "branch": project["branch"], "fork_of": project["id"]}
    values |= {"namespace": target, "path": new_path, "name": name, "visibility": visibility}
    fork_id = insert("project", **values, created=NOW, updated=NOW)
    if target == ME:
        insert("member", project_id=fork_id, username=ME, role=50, since=NOW)
    copy_repository(project["id"], fork_id)
    change("UPDATE project SET forks = forks + 1 WHERE id = ?", project["id"])
    return back(f"/{target}/{new_path}", "The project was successfully forked.")


def members(namespace: str, path: str, error: str = "", status: int = 200):
    project = project_or_404(namespace, path)
    found = rows(
        """SELECT m.*, u.name FROM member m JOIN user u USING (username)
           WHERE m.project_id = ? OR m.grp = ? ORDER BY u.name COLLATE NOCASE""",
        project["id"],
        project["namespace"],
    )
    values = {"part": paginate(found, 9), "error": error, "roles": roles_i_may_give(project)}
    return project_page("members", "Members", project, **values), status


def roles_i_may_give(project) -> list[tuple[int, str]]:
    return [(role, name) for role, name in ROLES.items() if project["my_role"] >= max(role, 40)]


def invite(namespace: str, path: str):
    project = project_or_404(namespace, path)
    require(project, 40)
    role = form("role")
    if role not in [str(r) for r, _ in roles_i_may_give(project)]:
        return members(namespace, path, "Choose a role.", 422)
    try:
        names = resolve_users(form("users"))
    except UserNotFound as error:
        return members(namespace, path, str(error), 422)
    if not names:
        return members(namespace, path, "Say whom to invite.", 422)
    there = {r["username"] for r in rows("SELECT username FROM member WHERE project_id = ?", project["id"])}
    if taken := there & set(names):
        return members(namespace, path, f"Already a member: {', '.join(sorted(taken))}.", 422)
    for username in names:
        insert("member", project_id=project["id"], username=username, role=int(role), since=NOW)
    return back(f"/{project['full_path']}/-/project_members", "Members were successfully added.")


def direct_member(namespace: str, path: str, username: str):
    """The project and its member, where I may change that; else a page that says why not."""
    project = project_or_404(namespace, path)
    require(project, 40)
    found = row(
        "SELECT m.*, u.name FROM member m JOIN user u USING (username) WHERE m.project_id = ? AND m.username = ?",
        project["id"],
        username,
    )
    if found is None or found["username"] == ME or found["role"] > project["my_role"]:
        abort(404)
    return project, found


def edit_member(namespace: str, path: str, username: str):
    project, member = direct_member(namespace, path, username)
    return project_page("member", "Edit member", project, member=member, roles=roles_i_may_give(project))


def update_member(namespace: str, path: str, username: str):
    project, member = direct_member(namespace, path, username)
    key = (project["id"], member["username"])
    if form("remove"):
        change("DELETE FROM member WHERE project_id = ? AND username = ?", *key)
    elif form("role") in [str(r) for r, _ in roles_i_may_give(project)]:
        change("UPDATE member SET role = ? WHERE project_id = ? AND username = ?", int(form("role")), *key)
    else:
        return redirect(f"/{project['full_path']}/-/project_members/{username}/edit", 303)
    return back(f"/{project['full_path']}/-/project_members", "Members were successfully updated.")
