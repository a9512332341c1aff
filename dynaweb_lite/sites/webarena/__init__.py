"""Replicas of WebArena's six applications and its home page, rich enough for WebArena's own tasks.

For each site: `<site>.py` the application, `<site>_content.py` what it shows as a function of a seed (seed 0 holds the
facts that WebArena's tasks ask for), `<site>_tasks.py` templates of further tasks, `solutions/<site>.json` the real
tasks that run here, each with a solution and a plausible mistake, and templates/<site>/ its pages.
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
"""Each site of WebArena, and the stem of the modules that replicate it."""


@dataclass(frozen=True)
class Site:
    """An application, made from a context manager that yields the session's database; and the seeded database."""

    app: Callable[[Callable], Flask]
    database: Callable[[int], sqlite3.Connection]


@functools.cache
def load_sites() -> dict[str, Site]:
    """All replicas by site; imported when first asked for."""
    sites = {}
    for site, stem in MODULES.items():
        app = importlib.import_module(f"{__name__}.{stem}").make_app
        sites[site] = Site(app, importlib.import_module(f"{__name__}.{stem}_content").make_database)
    return sites
