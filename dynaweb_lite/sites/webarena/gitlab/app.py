"""A replica of GitLab: projects with code, issues and merge requests, people and groups; WebArena's URL layout."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask

from dynaweb_lite.sites.webarena import new_app
from dynaweb_lite.sites.webarena.gitlab import items, people, planning, projects, repository
from dynaweb_lite.sites.webarena.gitlab.pages import use_database


def make_app(database: Callable) -> Flask:
    """The application; `database()` is a context manager that yields the session's database."""
    app = new_app(__name__)
    use_database(app, database)
    for part in (projects, repository, items, planning, people):
        part.register(app)
    return app
