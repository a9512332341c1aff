"""Tasks in WebArena's JSON schema, unchanged, and where their sites live."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

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


TABS = " |AND| "
"""Parts the addresses of a task that begins with several tabs; the first is in front."""
FIELDS: dict[str, tuple[type, ...]] = {
    "task_id": (int, str),
    "sites": (list, tuple),
    "start_url": (str,),
    "intent": (str,),
    "eval": (dict,),
}
"""What every task must have, and of which type."""

_TOKEN = re.compile(r"__[A-Z]+(?:_[A-Z]+)*__")
_addresses: ContextVar[Mapping[str, str] | None] = ContextVar("addresses", default=None)


class TaskError(ValueError):
    """A task file misses a field or names an unknown site, or a site has no address; the message says which."""


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

    @property
    def start_urls(self) -> list[str]:
        """Where its tabs begin, the first in front."""
        return self.start_url.split(TABS)

    @property
    def visited_sites(self) -> list[str]:
        """The sites of WebArena that the task names, in `sites`, its start page or its check."""
        tokens = _TOKEN.findall(json.dumps([self.start_url, self.eval]))
        named = dict.fromkeys([*self.sites, *(SITE_TOKENS[t] for t in tokens if t in SITE_TOKENS)])
        return [site for site in named if site in REPLICA_HOSTS]

    @classmethod
    def from_json(cls, row: dict) -> Task:
        """Read one task. Raises TaskError naming the field that is missing or wrong, or the unknown site."""
        check_row(row)
        known = {key: row[key] for key in cls.__dataclass_fields__ if key in row and key != "extra"}
        extra = {key: value for key, value in row.items() if key not in cls.__dataclass_fields__}
        return cls(**{**known, "sites": tuple(row["sites"]), "extra": extra})

    def to_json(self) -> dict:
        """The task as WebArena writes it; fields of other projects come back as they were."""
        own = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "extra"}
        return {**own, "sites": list(self.sites), **self.extra}


def check_row(row: object) -> None:
    """Raise TaskError when this is no task, naming the field that is missing or wrong, or the unknown site."""
    if not isinstance(row, dict):
        raise TaskError(f"a task is a JSON object, not {type(row).__name__}")
    name = f"task {row.get('task_id', '?')}"
    if missing := [key for key in FIELDS if key not in row]:
        raise TaskError(f"{name} has no {', '.join(missing)}")
    for key, types in FIELDS.items():
        if not isinstance(row[key], types):
            raise TaskError(f"{name}: {key} is {type(row[key]).__name__}, not {types[0].__name__}")
    if not row["sites"] or not all(isinstance(site, str) for site in row["sites"]):
        raise TaskError(f"{name}: sites must name at least one site")
    known_tokens(json.dumps([row["start_url"], row["eval"]]), name)


def known_tokens(text: str, place: str) -> None:
    """Raise TaskError when a text holds a placeholder that stands for no site."""
    if unknown := sorted(set(_TOKEN.findall(text)) - set(SITE_TOKENS)):
        raise TaskError(f"{place}: unknown site {', '.join(unknown)}; known: {', '.join(SITE_TOKENS)}")


def load_tasks(path: str | Path) -> list[Task]:
    """Tasks of a JSON file (a list of WebArena rows).

    Raises TaskError that names the file, and the row where one is at fault: no file, no JSON, no tasks, a field that
    is missing or wrong, an unknown site, an id that stands twice.
    """
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise TaskError(f"{path} is no whole JSON file: {error}") from error
    if not isinstance(rows, list) or not rows:
        raise TaskError(f"{path} holds no tasks: it must be a list of one or more")
    tasks: dict[int | str, Task] = {}
    for number, row in enumerate(rows, 1):
        try:
            task = Task.from_json(row)
        except TaskError as error:
            raise TaskError(f"{path}, row {number}: {error}") from error
        if task.task_id in tasks:
            raise TaskError(f"{path}, row {number}: task_id {task.task_id} stands twice")
        tasks[task.task_id] = task
    return list(tasks.values())


def variable(site: str) -> str:
    """The environment variable that names the user's own copy of a site."""
    return f"WA_{site.upper()}"


def replica_urls() -> dict[str, str]:
    """Base URL of each replica, without a final slash."""
    return {site: f"http://{host}{REPLICA_PATHS.get(site, '')}" for site, host in REPLICA_HOSTS.items()}


def live_urls() -> dict[str, str]:
    """Base URL of each site that a WA_* variable names, without a final slash; empty when none is set.

    Raises TaskError that names a variable whose value is no address.
    """
    urls = {site: os.environ.get(variable(site), "").strip().rstrip("/") for site in REPLICA_HOSTS}
    for site, url in urls.items():
        if url and not (urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname):
            raise TaskError(f"{variable(site)} is {url!r}, not an address such as http://localhost:7770")
    return {site: url for site, url in urls.items() if url}


def site_urls() -> dict[str, str]:
    """Base URL of each site: of `sites_at` inside it, else of the WA_* variables where any is set, else the replicas'.

    The user's own sites and the replicas never mix: where one WA_* variable is set, the other sites have no address.
    """
    chosen = _addresses.get()
    return dict(chosen) if chosen is not None else live_urls() or replica_urls()


@contextmanager
def sites_at(urls: Mapping[str, str]) -> Iterator[None]:
    """Inside this context the sites lie at these base URLs, whatever WA_* variables are set."""
    token = _addresses.set(urls)
    try:
        yield
    finally:
        _addresses.reset(token)


def resolve_url(url: str) -> str:
    """A URL with WebArena's placeholders replaced.

    Raises TaskError for an unknown placeholder, and for a site without an address, naming its WA_* variable.
    """
    if not (tokens := set(_TOKEN.findall(url))):
        return url
    known_tokens(url, repr(url))
    bases = site_urls()
    for token in tokens:
        url = url.replace(token, base_url(SITE_TOKENS[token], bases))
    return url if urlsplit(url).path or "?" in url else url + "/"


def base_url(site: str, bases: Mapping[str, str]) -> str:
    """Where a site lies. Raises TaskError that names its WA_* variable when it has no address."""
    if site not in bases:
        others = "others are set" if bases else "none of the WA_ variables is"
        raise TaskError(f"{site} has no address: set {variable(site)} ({others})")
    return bases[site]
