"""What a project keeps: branches, commits and files, and the pages that show and change them."""

from __future__ import annotations

import hashlib
import re
import sqlite3

from flask import Flask, Response, abort, request

from dynaweb_lite.sites.webarena.gitlab.pages import (
    asked,
    back,
    change,
    form,
    full_sha,
    insert,
    paginate,
    project_or_404,
    project_page,
    require,
    row,
    rows,
    value,
    without_empty_parameters,
)
from dynaweb_lite.sites.webarena.gitlab.schema import ME, NOW

BRANCH_NAME = re.compile(r"(?!/)[\w./-]+(?<!/)", flags=re.ASCII)
COMMITS = "SELECT c.*, a.name AS author, a.email FROM git_commit c JOIN author a ON a.id = c.author_id "


def register(app: Flask) -> None:
    """Add the pages to the application."""
    base = "/<namespace>/<path>/-"
    app.get(f"{base}/tree/<path:rest>")(tree)
    app.get(f"{base}/blob/<path:rest>")(blob)
    app.get(f"{base}/raw/<path:rest>")(raw)
    app.get(f"{base}/new/<path:rest>")(new_file)
    app.post(f"{base}/create/<path:rest>")(create_file)
    app.get(f"{base}/edit/<path:rest>")(edit_file)
    app.post(f"{base}/update/<path:rest>")(update_file)
    app.get(f"{base}/commits", strict_slashes=False)(commits)
    app.get(f"{base}/commits/<path:rest>")(commits)
    app.get(f"{base}/commit/<sha>")(commit)
    app.get(f"{base}/graphs/<path:rest>")(contributors)
    app.get(f"{base}/branches")(branches)
    app.get(f"{base}/branches/new")(new_branch)
    app.post(f"{base}/branches")(create_branch)


def branch_names(project: sqlite3.Row) -> list[str]:
    """The default branch first, the others by name."""
    found = rows(
        "SELECT name FROM branch WHERE project_id = ? ORDER BY name != ?, name", project["id"], project["branch"]
    )
    return [r["name"] for r in found]


def chain_of(project: sqlite3.Row, branch: str) -> list[str]:
    """A branch and those that it is based on, in turn."""
    chain = []
    while branch and branch not in chain:
        chain.append(branch)
        branch = value("SELECT base FROM branch WHERE project_id = ? AND name = ?", project["id"], branch)
    return chain


def split_ref(project: sqlite3.Row, rest: str) -> tuple[str, str]:
    """The branch and the path that the end of an address names; names of branches may hold slashes. 404 for others."""
    for name in sorted(branch_names(project), key=len, reverse=True):
        if f"{rest}/".startswith(f"{name}/"):
            return name, rest[len(name) :].strip("/")
    return abort(404)


def files_of(project: sqlite3.Row, branch: str) -> dict[str, sqlite3.Row]:
    """Files of a branch by path: its own, and those of the branches below it."""
    files: dict[str, sqlite3.Row] = {}
    for name in reversed(chain_of(project, branch)):
        found = rows("SELECT * FROM file WHERE project_id = ? AND branch = ?", project["id"], name)
        files |= {r["path"]: r for r in found}
    return files


def entries_of(project: sqlite3.Row, branch: str, folder: str) -> list[dict]:
    """What lies in a folder, folders first, each with the last commit that touched it."""
    prefix = f"{folder}/" if folder else ""
    newest: dict[tuple, int] = {}
    for path, file in files_of(project, branch).items():
        if path.startswith(prefix):
            name, slash, _ = path[len(prefix) :].partition("/")
            key = ("blob" if not slash else "tree", name)
            newest[key] = max(newest.get(key, 0), file["commit_id"])
    entries = []
    for (kind, name), commit_id in sorted(newest.items(), key=lambda pair: (pair[0][0] != "tree", pair[0][1].lower())):
        found = row(COMMITS + "WHERE c.id = ?", commit_id)
        url = f"/{project['full_path']}/-/{kind}/{branch}/{prefix}{name}"
        entries.append({"name": name, "kind": kind, "url": url, "message": found["message"], "date": found["created"]})
    return entries


def history(project: sqlite3.Row, branch: str) -> list[sqlite3.Row]:
    """Commits of a branch, newest first."""
    chain = chain_of(project, branch)
    marks = ", ".join("?" * len(chain))
    where = f"WHERE c.project_id = ? AND c.branch IN ({marks}) ORDER BY c.created DESC, c.id DESC"
    return rows(COMMITS + where, project["id"], *chain)


def last_commit(project: sqlite3.Row, branch: str) -> dict | None:
    found = history(project, branch)[:1]
    return {**found[0], "full_sha": full_sha(found[0]["sha"])} if found else None


def commit_file(project: sqlite3.Row, branch: str, path: str, content: str, message: str) -> str:
    """Commit a file to a branch, which is made where there is none; returns the commit's short name."""
    base = project["branch"] if branch != project["branch"] else ""
    change("INSERT OR IGNORE INTO branch (project_id, name, base) VALUES (?,?,?)", project["id"], branch, base)
    name, email = row("SELECT name, email FROM user WHERE username = ?", ME)
    change("INSERT OR IGNORE INTO author (name, email) VALUES (?,?)", name, email)
    author = value("SELECT id FROM author WHERE name = ? AND email = ?", name, email)
    number = value("SELECT max(id) FROM git_commit") or 0
    sha = hashlib.sha1(f"{number}{path}".encode()).hexdigest()[:8]
    values = {"project_id": project["id"], "branch": branch, "sha": sha, "author_id": author, "created": NOW}
    commit_id = insert("git_commit", **values, message=message, path=path)
    replace = "INSERT OR REPLACE INTO file (project_id, branch, path, content, commit_id) VALUES (?,?,?,?,?)"
    change(replace, project["id"], branch, path, content, commit_id)
    change("UPDATE project SET updated = ? WHERE id = ?", NOW, project["id"])
    return sha


def copy_repository(source: int, target: int) -> None:
    """Give a fork the branches, commits and files of the project that it comes from."""
    top = value("SELECT coalesce(max(id), 0) FROM git_commit")
    change("INSERT INTO branch SELECT ?, name, base FROM branch WHERE project_id = ?", target, source)
    change(
        """INSERT INTO git_commit SELECT id + ?, ?, branch, sha, author_id, created, message, path FROM git_commit
           WHERE project_id = ?""",
        top,
        target,
        source,
    )
    change(
        "INSERT INTO file SELECT ?, branch, path, content, commit_id + ? FROM file WHERE project_id = ?",
        target,
        top,
        source,
    )


def located(namespace: str, path: str, rest: str) -> tuple[sqlite3.Row, str, str]:
    project = project_or_404(namespace, path)
    return project, *split_ref(project, rest)


def tree(namespace: str, path: str, rest: str):
    project, branch, folder = located(namespace, path, rest)
    entries = entries_of(project, branch, folder)
    if folder and not entries:
        abort(404)
    readme = files_of(project, branch).get(f"{folder}/README.md" if folder else "README.md")
    values = {"entries": entries, "readme": readme["content"] if readme else "", "branches": branch_names(project)}
    return project_page("tree", folder or "Files", project, branch=branch, folder=folder, **values)


def file_or_404(namespace: str, path: str, rest: str):
    project, branch, name = located(namespace, path, rest)
    if (file := files_of(project, branch).get(name)) is None:
        abort(404)
    return project, branch, name, file["content"]


def blob(namespace: str, path: str, rest: str):
    project, branch, name, content = file_or_404(namespace, path, rest)
    return project_page("blob", name, project, branch=branch, name=name, content=content)


def raw(namespace: str, path: str, rest: str):
    *_, content = file_or_404(namespace, path, rest)
    return Response(content, mimetype="text/plain")


def new_file(namespace: str, path: str, rest: str, error: str = ""):
    project = project_or_404(namespace, path)
    require(project, 30)
    is_first = not branch_names(project) and rest == project["branch"]
    branch, folder = (rest, "") if is_first else split_ref(project, rest)
    name = request.form.get("file_name", f"{folder}/" if folder else "")
    values = {"branch": branch, "name": name, "content": request.form.get("content", ""), "error": error}
    return project_page("file_edit", "New file", project, is_new=True, rest=rest, **values)


def create_file(namespace: str, path: str, rest: str):
    project = project_or_404(namespace, path)
    require(project, 30)
    name = form("file_name").strip("/")
    branch = rest if not branch_names(project) else split_ref(project, rest)[0]
    problem = check_file(name, form("branch_name") or branch)
    if not problem and name in files_of(project, branch):
        problem = "A file with this name already exists."
    if problem:
        return new_file(namespace, path, rest, problem), 422
    return save(project, branch, name, f"Add {name}")


def edit_file(namespace: str, path: str, rest: str, error: str = ""):
    project, branch, name, content = file_or_404(namespace, path, rest)
    require(project, 30)
    values = {"branch": branch, "name": name, "content": request.form.get("content", content), "error": error}
    return project_page("file_edit", f"Edit {name}", project, is_new=False, rest=rest, **values)


def update_file(namespace: str, path: str, rest: str):
    project, branch, name, _ = file_or_404(namespace, path, rest)
    require(project, 30)
    if problem := check_file(name, form("branch_name") or branch):
        return edit_file(namespace, path, rest, problem), 422
    return save(project, branch, name, f"Update {name}")


def check_file(name: str, branch: str) -> str:
    if not all(part.strip() and part != ".." for part in name.split("/")) or re.search(r"[\x00-\x1f?#%\\]", name):
        return "Give the file a name, with slashes between folders and without ? # % and backslashes."
    return "" if BRANCH_NAME.fullmatch(branch) else "This is no name for a branch."


def save(project: sqlite3.Row, branch: str, name: str, default_message: str):
    target = form("branch_name") or branch
    text = request.form.get("content", "").replace("\r\n", "\n")
    commit_file(project, target, name, text, form("commit_message") or default_message)
    return back(f"/{project['full_path']}/-/blob/{target}/{name}", "Your changes have been successfully committed.")


def commits(namespace: str, path: str, rest: str = ""):
    project = project_or_404(namespace, path)
    if clean := without_empty_parameters(request.path):
        return clean
    if not rest and not branch_names(project):
        return project_page("commits", "Commits", project, branch=project["branch"], part=paginate([]), days=[])
    branch, _ = split_ref(project, rest or project["branch"])
    author, words = asked("author").lower(), asked("search").lower()
    found = [c for c in history(project, branch) if author in f"{c['author']} {c['email']}".lower()]
    part = paginate([c for c in found if words in c["message"].lower()], 10)
    days: dict[str, list] = {}
    for c in part.rows:
        days.setdefault(c["created"][:10], []).append({**c, "full_sha": full_sha(c["sha"])})
    return project_page("commits", "Commits", project, branch=branch, part=part, days=list(days.items()))


def commit(namespace: str, path: str, sha: str):
    project = project_or_404(namespace, path)
    found = row(COMMITS + "WHERE c.project_id = ? AND c.sha = ?", project["id"], sha[:8])
    if found is None or not full_sha(found["sha"]).startswith(sha):
        abort(404)
    user = row("SELECT * FROM user WHERE name = ?", found["author"])
    exists = found["path"] in files_of(project, found["branch"])
    title = f"{found['message']} ({found['sha']})"
    return project_page("commit", title, project, commit=found, full=full_sha(found["sha"]), user=user, exists=exists)


def contributors(namespace: str, path: str, rest: str):
    project, branch, _ = located(namespace, path, rest)
    counts: dict[tuple[str, str], int] = {}
    for c in history(project, branch):
        counts[c["author"], c["email"]] = counts.get((c["author"], c["email"]), 0) + 1
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    values = {"part": paginate(ranked), "total": sum(counts.values()), "branches": branch_names(project)}
    return project_page("contributors", "Contributors", project, branch=branch, **values)


def branches(namespace: str, path: str):
    project = project_or_404(namespace, path)
    wanted = asked("search").lower()
    found = [{"name": name, "commit": last_commit(project, name)} for name in branch_names(project)]
    part = paginate([b for b in found if wanted in b["name"].lower()])
    return project_page("branches", "Branches", project, part=part)


def new_branch(namespace: str, path: str, error: str = ""):
    project = project_or_404(namespace, path)
    require(project, 30)
    return project_page("branch_new", "New branch", project, branches=branch_names(project), error=error)


def create_branch(namespace: str, path: str):
    project = project_or_404(namespace, path)
    require(project, 30)
    name, base = form("branch_name"), form("ref")
    if not BRANCH_NAME.fullmatch(name) or base not in branch_names(project):
        return new_branch(namespace, path, "This is no name for a branch."), 422
    if name in branch_names(project):
        return new_branch(namespace, path, "Branch already exists."), 422
    insert("branch", project_id=project["id"], name=name, base=base)
    return back(f"/{project['full_path']}/-/tree/{name}", f"You created the branch {name}.")
