"""Replicas of WebArena's six applications and its home page, rich enough for WebArena's own tasks.

A folder for each site: `app.py` the application, `content.py` what it shows as a function of a seed (seed 0 holds the
facts that WebArena's tasks ask for), `tasks.py` templates of further tasks. Beside them templates/<site>/, its pages,
and solutions/<site>.json, the real tasks that run here, each with a solution and a plausible mistake.
"""

from __future__ import annotations

import functools
import importlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

MODULES = {
    "shopping": "shopping",
    "shopping_admin": "shopping_admin",
    "reddit": "reddit",
    "gitlab": "gitlab",
    "map": "maps",
    "wikipedia": "wikipedia",
    "homepage": "homepage",
}
"""Each site of WebArena, and the folder that replicates it."""


@dataclass(frozen=True)
class Site:
    """An application, made from a context manager that yields the session's database; and the seeded database."""

    app: Callable[[Callable], Flask]
    database: Callable[[int], sqlite3.Connection]


@functools.cache
def load_sites() -> dict[str, Site]:
    """All replicas by site; imported when first asked for."""
    sites = {}
    for site, folder in MODULES.items():
        app = importlib.import_module(f"{__name__}.{folder}.app").make_app
        sites[site] = Site(app, importlib.import_module(f"{__name__}.{folder}.content").make_database)
    return sites


def new_app(name: str) -> Flask:
    """A Flask application whose templates and style sheets lie beside the sites' folders."""
    from flask import Flask

    return Flask(name, template_folder="../templates", static_folder="../static")
