"""People and groups of the code host: profiles, who follows whom, groups and their members, my settings, search."""

from __future__ import annotations

import hashlib
import re
import sqlite3

from flask import Flask, abort, redirect

from dynaweb_lite.sites.webarena.gitlab.items import ITEMS, address
from dynaweb_lite.sites.webarena.gitlab.pages import (
    PROJECTS,
    UserNotFound,
    asked,
    back,
    change,
    form,
    insert,
    page,
    paginate,
    resolve_users,
    row,
    rows,
    slug,
    value,
)
from dynaweb_lite.sites.webarena.gitlab.schema import ME, NOW, ROLES, VISIBILITIES

SCOPES = {"projects": "Projects", "issues": "Issues", "merge_requests": "Merge requests", "users": "Users"}
PROFILE = ("name", "pronouns", "bio", "location", "organization", "website", "email", "status")
SEEN = "(p.visibility != 'private' OR my_role > 0)"


def register(app: Flask) -> None:
    """Add the pages to the application."""
    app.get("/search")(search)
    app.get("/dashboard/groups")(my_groups)
    app.get("/explore/groups")(all_groups)
    app.get("/groups/new")(new_group)
    app.post("/groups")(create_group)
    app.get("/groups/<path>")(group)
    app.get("/groups/<path>/-/group_members")(group_members)
    app.post("/groups/<path>/-/group_members")(invite_to_group)
    app.get("/-/profile")(edit_profile)
    app.post("/-/profile")(save_profile)
    app.get("/-/profile/preferences")(preferences)
    app.post("/-/profile/preferences")(save_preferences)
    app.get("/-/profile/personal_access_tokens")(tokens)
    app.post("/-/profile/reset_feed_token")(reset_feed_token)
    app.get("/users/<username>/<any(activity, projects, starred, followers, following):tab>")(profile)
    app.post("/users/<username>/<any(follow, unfollow):deed>")(follow)
    app.get("/<username>", strict_slashes=False)(profile_or_group)


def user_or_404(username: str) -> sqlite3.Row:
    return row("SELECT * FROM user WHERE username = ?", username) or abort(404)


def profile_or_group(username: str):
    found = row("SELECT path FROM grp WHERE path = ?", username)
    return group(username) if found else profile(username, "overview")


def profile(username: str, tab: str):
    user = user_or_404(username)
    name = user["username"]
    lists = {
        "overview": lambda: activity(name),
        "activity": lambda: activity(name),
        "projects": lambda: rows(
            f"SELECT * FROM ({PROJECTS}) p WHERE p.namespace = ? AND {SEEN} ORDER BY p.path", name
        ),
        "starred": lambda: starred(name),
        "followers": lambda: people_where("follow f ON f.follower = u.username WHERE f.followee = ?", name),
        "following": lambda: people_where("follow f ON f.followee = u.username WHERE f.follower = ?", name),
    }
    counts = {
        "followers": value("SELECT count(*) FROM follow WHERE followee = ?", name),
        "following": value("SELECT count(*) FROM follow WHERE follower = ?", name),
    }
    is_followed = value("SELECT 1 FROM follow WHERE follower = ? AND followee = ?", ME, name)
    values = {"user": user, "tab_name": tab, "counts": counts, "is_followed": is_followed, "address": address}
    return page("profile", f"{user['name']} (@{name})", part=paginate(lists[tab](), 10), **values)


def activity(username: str) -> list[dict]:
    """What a user did, newest first: what they opened and what they commented on."""
    opened = rows(f"{ITEMS} WHERE i.author = ?", username)
    noted = rows(
        f"SELECT n.created AS moment, x.* FROM note n JOIN ({ITEMS}) x ON x.id = n.item_id WHERE n.author = ?", username
    )
    done = [{"action": "Opened", "moment": i["created"], "item": i} for i in opened]
    done += [{"action": "Commented on", "moment": i["moment"], "item": i} for i in noted]
    return sorted(done, key=lambda d: d["moment"], reverse=True)


def starred(username: str) -> list[sqlite3.Row]:
    joined = "JOIN star x ON x.project_id = p.id WHERE x.username = ?"
    return rows(f"SELECT p.* FROM ({PROJECTS}) p {joined} AND {SEEN} ORDER BY x.rowid DESC", username)


def people_where(condition: str, *values) -> list[sqlite3.Row]:
    return rows(f"SELECT u.* FROM user u JOIN {condition} ORDER BY f.rowid DESC", *values)


def follow(username: str, deed: str):
    user = user_or_404(username)
    if user["username"] == ME:
        return redirect(f"/{ME}", 303)
    change("DELETE FROM follow WHERE follower = ? AND followee = ?", ME, user["username"])
    if deed == "follow":
        insert("follow", follower=ME, followee=user["username"])
    return back(f"/{user['username']}")


def edit_profile(error: str = ""):
    return page("profile_edit", "Edit Profile", error=error)


def save_profile():
    values = {name: " ".join(form(name).split()) for name in PROFILE}
    website = values["website"]
    if not values["name"]:
        return edit_profile("Name can't be blank."), 422
    if website and not re.fullmatch(r"(https?://)?[\w-]+(\.[\w-]+)+(/\S*)?", website):
        return edit_profile("Website url is not a valid URL."), 422
    if website and "://" not in website:
        values["website"] = f"https://{website}"
    marks = ", ".join(f"{name} = ?" for name in values)
    change(f"UPDATE user SET {marks}, busy = ? WHERE username = ?", *values.values(), bool(form("busy")), ME)
    return back("/-/profile", "Profile was successfully updated.")


def preferences():
    return page("preferences", "Preferences", homepage=value("SELECT value FROM setting WHERE key = 'homepage'"))


def save_preferences():
    homepage = "starred" if form("homepage") == "starred" else "yours"
    change("INSERT OR REPLACE INTO setting VALUES ('homepage', ?)", homepage)
    return back("/-/profile/preferences", "Preferences saved.")


def tokens():
    return page("tokens", "Access Tokens", feed_token=value("SELECT value FROM setting WHERE key = 'feed_token'"))


def reset_feed_token():
    old = value("SELECT value FROM setting WHERE key = 'feed_token'")
    made = hashlib.sha1(old.encode()).hexdigest()[:20]
    change("UPDATE setting SET value = ? WHERE key = 'feed_token'", made)
    return back("/-/profile/personal_access_tokens", "Feed token was reset.")


def group_list(heading: str, condition: str, *values):
    found = rows(f"SELECT n.* FROM grp n WHERE {condition} ORDER BY n.name COLLATE NOCASE", *values)
    wanted = asked("filter").lower()
    return page("groups", heading, heading=heading, part=paginate([n for n in found if wanted in n["name"].lower()]))


def my_groups():
    return group_list("Groups", "n.path IN (SELECT grp FROM member WHERE username = ?)", ME)


def all_groups():
    return group_list("Explore groups", "n.visibility = 'public'")


def group_or_404(path: str) -> tuple[sqlite3.Row, int]:
    """A group and my role in it; a private one without me is not there."""
    found = row("SELECT * FROM grp WHERE path = ?", path) or abort(404)
    role = value("SELECT role FROM member WHERE grp = ? AND username = ?", path, ME) or 0
    return abort(404) if found["visibility"] == "private" and not role else (found, role)


def group(path: str):
    found, role = group_or_404(path)
    projects = rows(f"SELECT * FROM ({PROJECTS}) p WHERE p.namespace = ? AND {SEEN} ORDER BY p.path", found["path"])
    return page("group", found["name"], group=found, role=role, part=paginate(projects))


def new_group(error: str = ""):
    return page("group_new", "New group", error=error)


def create_group():
    name = " ".join(form("name").split())
    path, visibility = form("path") or slug(name), form("visibility")
    error = ""
    if not name:
        error = "Group name can't be blank."
    elif not re.fullmatch(r"[A-Za-z0-9_][\w.-]*", path, flags=re.ASCII) or visibility not in VISIBILITIES:
        error = "The group URL can hold only letters, digits, underscores, dots and dashes."
    elif row("SELECT 1 FROM grp WHERE path = ? UNION SELECT 1 FROM user WHERE username = ?", path, path):
        error = "Group URL has already been taken."
    if error:
        return new_group(error), 422
    number = (value("SELECT max(id) FROM grp") or 0) + 1
    insert("grp", id=number, path=path, name=name, description=form("description"), visibility=visibility)
    insert("member", grp=path, username=ME, role=50, since=NOW)
    return back(f"/{path}", f"Group '{name}' was successfully created.")


def group_members(path: str, error: str = "", status: int = 200):
    found, role = group_or_404(path)
    members = rows(
        "SELECT m.*, u.name FROM member m JOIN user u USING (username) WHERE m.grp = ? ORDER BY u.name COLLATE NOCASE",
        path,
    )
    roles = list(ROLES.items()) if role == 50 else []
    values = {"group": found, "role": role, "part": paginate(members, 12), "error": error, "roles": roles}
    return page("group_members", f"Members · {found['name']}", **values), status


def invite_to_group(path: str):
    found, role = group_or_404(path)
    if role < 50:
        abort(403)
    if form("role") not in map(str, ROLES):
        return group_members(path, "Choose a role.", 422)
    try:
        names = resolve_users(form("users"))
    except UserNotFound as error:
        return group_members(path, str(error), 422)
    there = {r["username"] for r in rows("SELECT username FROM member WHERE grp = ?", path)}
    if not names or there & set(names):
        taken = ", ".join(sorted(there & set(names)))
        return group_members(path, f"Already a member: {taken}." if names else "Say whom to invite.", 422)
    for username in names:
        insert("member", grp=found["path"], username=username, role=int(form("role")), since=NOW)
    return back(f"/groups/{found['path']}/-/group_members", "Members were successfully added.")


def search():
    text = asked("search")
    scope = asked("scope") if asked("scope") in SCOPES else "projects"
    found = {key: search_in(key, text.lower().split()) if text else [] for key in SCOPES}
    tabs = [
        {"scope": key, "label": f"{label} {len(found[key])}", "current": key == scope} for key, label in SCOPES.items()
    ]
    return page("search", "Search", text=text, scope=scope, tabs=tabs, part=paginate(found[scope]), address=address)


def search_in(scope: str, words: list[str]) -> list[sqlite3.Row]:
    """Rows of a scope that hold every word."""
    if scope == "projects":
        found = rows(f"SELECT * FROM ({PROJECTS}) p WHERE {SEEN} ORDER BY p.stars DESC, p.id")
        texts = [f"{p['namespace_name']} {p['full_path']} {p['description']}" for p in found]
    elif scope == "users":
        found = rows("SELECT * FROM user ORDER BY name COLLATE NOCASE")
        texts = [f"{u['name']} {u['username']}" for u in found]
    else:
        kind = "issue" if scope == "issues" else "merge"
        found = rows(f"{ITEMS} WHERE i.kind = ? ORDER BY i.created DESC", kind)
        texts = [f"{i['title']} {i['description']}" for i in found]
    return [r for r, text in zip(found, texts, strict=True) if all(word in text.lower() for word in words)]
