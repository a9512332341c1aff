"""Tables of the code host, and the words for its roles and visibilities."""

from __future__ import annotations

ME = "byteblaze"
"""The user who is logged in: WebArena's."""
NOW, YESTERDAY = "2023-06-12 09:00", "2023-06-11"
"""When everything that is done on the site happens, and the last day of what happened before."""

ROLES = {10: "Guest", 20: "Reporter", 30: "Developer", 40: "Maintainer", 50: "Owner"}
VISIBILITIES = {
    "private": "Project access must be granted explicitly to each user.",
    "internal": "The project can be accessed by any logged in user.",
    "public": "The project can be accessed without any authentication.",
}

SCHEMA = """
CREATE TABLE user (username TEXT PRIMARY KEY COLLATE NOCASE, id INTEGER, name TEXT, email TEXT DEFAULT '',
  bio TEXT DEFAULT '', location TEXT DEFAULT '', organization TEXT DEFAULT '', website TEXT DEFAULT '',
  pronouns TEXT DEFAULT '', status TEXT DEFAULT '', busy INTEGER DEFAULT 0, joined TEXT);
CREATE TABLE grp (path TEXT PRIMARY KEY COLLATE NOCASE, id INTEGER, name TEXT, description TEXT DEFAULT '',
  visibility TEXT DEFAULT 'public');
CREATE TABLE project (id INTEGER PRIMARY KEY, namespace TEXT COLLATE NOCASE, path TEXT COLLATE NOCASE, name TEXT,
  description TEXT DEFAULT '', visibility TEXT DEFAULT 'public', stars INTEGER DEFAULT 0, forks INTEGER DEFAULT 0,
  branch TEXT DEFAULT 'main', created TEXT, updated TEXT, fork_of INTEGER, UNIQUE (namespace, path));
CREATE TABLE star (username TEXT COLLATE NOCASE, project_id INTEGER, PRIMARY KEY (username, project_id));
CREATE TABLE follow (follower TEXT COLLATE NOCASE, followee TEXT COLLATE NOCASE, PRIMARY KEY (follower, followee));
CREATE TABLE member (project_id INTEGER, grp TEXT COLLATE NOCASE, username TEXT COLLATE NOCASE, role INTEGER,
  since TEXT);
CREATE TABLE branch (project_id INTEGER, name TEXT, base TEXT, PRIMARY KEY (project_id, name));
CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT, email TEXT, UNIQUE (name, email));
CREATE TABLE git_commit (id INTEGER PRIMARY KEY, project_id INTEGER, branch TEXT, sha TEXT, author_id INTEGER,
  created TEXT, message TEXT, path TEXT);
CREATE TABLE file (project_id INTEGER, branch TEXT, path TEXT, content TEXT, commit_id INTEGER,
  PRIMARY KEY (project_id, branch, path));
CREATE TABLE label (project_id INTEGER, name TEXT, description TEXT DEFAULT '', PRIMARY KEY (project_id, name));
CREATE TABLE milestone (id INTEGER PRIMARY KEY, project_id INTEGER, iid INTEGER, title TEXT,
  description TEXT DEFAULT '', start_date TEXT DEFAULT '', due_date TEXT DEFAULT '', state TEXT DEFAULT 'active');
CREATE TABLE item (id INTEGER PRIMARY KEY, kind TEXT, project_id INTEGER, iid INTEGER, title TEXT,
  description TEXT DEFAULT '', author TEXT COLLATE NOCASE, state TEXT DEFAULT 'opened', created TEXT, updated TEXT,
  assignee TEXT DEFAULT '' COLLATE NOCASE, reviewer TEXT DEFAULT '' COLLATE NOCASE, milestone_id INTEGER,
  due_date TEXT DEFAULT '', source TEXT DEFAULT '', target TEXT DEFAULT '', UNIQUE (project_id, kind, iid));
CREATE TABLE item_label (item_id INTEGER, label TEXT, PRIMARY KEY (item_id, label));
CREATE TABLE note (id INTEGER PRIMARY KEY, item_id INTEGER, author TEXT COLLATE NOCASE, body TEXT, created TEXT);
CREATE TABLE todo (id INTEGER PRIMARY KEY, item_id INTEGER, author TEXT, action TEXT, created TEXT,
  done INTEGER DEFAULT 0);
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT);
"""
"""Issues and merge requests are both items, told apart by `kind`. A commit is on its branch and those based on it."""
