"""Tasks in WebArena's JSON schema, unchanged, and where their sites live."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

SITE_TOKENS = {
    "__SHOPPING__": "shopping",
    "__SHOPPING_ADMIN__": "shopping_admin",
    "__REDDIT__": "reddit",
    "__GITLAB__": "gitlab",
    "__MAP__": "map",
    "__WIKIPEDIA__": "wikipedia",
    "__HOMEPAGE__": "homepage",
}
"""WebArena's placeholders in task files, and the site that each stands for."""

REPLICA_HOSTS = {
    "shopping": "shop.test",
    "shopping_admin": "shop-admin.test",
    "reddit": "forum.test",
    "gitlab": "git.test",
    "map": "map.test",
    "wikipedia": "wiki.test",
    "homepage": "home.test",
}
"""Host names of the replicas inside the browser; no name server knows them, and they are mapped to loopback."""
REPLICA_PATHS = {"shopping_admin": "/admin"}
"""Where a replica does not begin at the root of its host."""


class TaskError(ValueError):
    """A task file misses a field or names an unknown site; the message says which."""


@dataclass(frozen=True)
class Task:
    """One task. The fields are WebArena's; `kind` and `split` are ours, empty for WebArena's own tasks.

    `eval` holds `eval_types`, `reference_answers`, `reference_url` and `program_html`, as in WebArena.
    """

    task_id: int | str
    sites: tuple[str, ...]
    start_url: str
    intent: str
    eval: dict
    intent_template: str = ""
    instantiation_dict: dict = field(default_factory=dict)
    require_login: bool = True
    kind: str = ""
    split: str = ""
    extra: dict = field(default_factory=dict, compare=False)

    def __hash__(self) -> int:
        return hash(self.task_id)

    @property
    def site(self) -> str:
        return self.sites[0]

    @classmethod
    def from_json(cls, row: dict) -> Task:
        """Read one task. Raises TaskError naming the missing field."""
        missing = [key for key in ("task_id", "sites", "start_url", "intent", "eval") if key not in row]
        if missing:
            raise TaskError(f"task {row.get('task_id', '?')} has no {', '.join(missing)}")
        known = {key: row[key] for key in cls.__dataclass_fields__ if key in row and key != "extra"}
        extra = {key: value for key, value in row.items() if key not in cls.__dataclass_fields__}
        return cls(**{**known, "sites": tuple(row["sites"]), "extra": extra})

    def to_json(self) -> dict:
        """The task as WebArena writes it; fields of other projects come back as they were."""
        own = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "extra"}
        return {**own, "sites": list(self.sites), **self.extra}


def load_tasks(path: str | Path) -> list[Task]:
    """Tasks of a JSON file (a list of WebArena rows). Raises TaskError when the file holds none."""
    rows = json.loads(Path(path).read_text(encoding="utf-8"))
    if not rows:
        raise TaskError(f"{path} holds no tasks")
    return [Task.from_json(row) for row in rows]


def site_urls() -> dict[str, str]:
    """Base URL of each site, without a final slash: the WA_* variables where set, else the replicas."""
    return {
        site: os.environ.get(f"WA_{site.upper()}", f"http://{host}{REPLICA_PATHS.get(site, '')}").rstrip("/")
        for site, host in REPLICA_HOSTS.items()
    }


def resolve_url(url: str) -> str:
    """A URL with WebArena's placeholder replaced. Raises TaskError for an unknown placeholder."""
    bases = site_urls()
    for token, site in SITE_TOKENS.items():
        if url.startswith(token):
            return bases[site] + (url[len(token) :] or "/")
    if url.startswith("__"):
        raise TaskError(f"unknown site in {url!r}; known: {', '.join(SITE_TOKENS)}")
    return url
