"""A replica of GitLab: projects with code, issues and merge requests, people and groups; WebArena's URL layout."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask

from dynaweb_lite.sites.webarena import gitlab_items, gitlab_people, gitlab_planning, gitlab_projects, gitlab_repository
from dynaweb_lite.sites.webarena.gitlab_pages import use_database


def make_app(database: Callable) -> Flask:
    """The application; `database()` is a context manager that yields the session's database."""
    app = Flask(__name__)
    use_database(app, database)
    for part in (gitlab_projects, gitlab_repository, gitlab_items, gitlab_planning, gitlab_people):
        part.register(app)
    return app
