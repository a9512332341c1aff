"""WebArena's 812 tasks from an installed package, unchanged, and those of them that run on the replicas."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynaweb_lite.sites.webarena import MODULES
from dynaweb_lite.tasks import Task, TaskError, load_tasks

PATH_VARIABLE = "DYNAWEB_WEBARENA"
PACKAGES = {
    "webarena": ("libwebarena", "webarena", "test.raw.json"),
    "webarena-lite": ("browsergym-webarenalite", "browsergym", "webarenalite/test_webarena_lite.raw.json"),
}
"""Name of a set: (package on PyPI, its import name, the file in it)."""
SOLUTIONS = Path(__file__).parent / "sites" / "webarena" / "solutions"


def task_file(name: str = "webarena") -> Path:
    """The JSON file of WebArena or WebArena-Lite: DYNAWEB_WEBARENA (a file), else the installed package's.

    Nothing of the package is imported. Raises TaskError that says what to install.
    """
    if name == "webarena" and (path := os.environ.get(PATH_VARIABLE)):
        return Path(path)
    package, module, file = PACKAGES[name]
    spec = importlib.util.find_spec(module)
    for folder in spec.submodule_search_locations if spec else ():
        if (found := Path(folder) / file).exists():
            return found
    raise TaskError(
        f"{name}'s tasks are not installed: `pip install --no-deps {package}`, or set {PATH_VARIABLE} to their file"
    )


def webarena_tasks(path: str | Path | None = None) -> list[Task]:
    """All tasks of WebArena, from a file or the installed package, unchanged. Raises TaskError."""
    return load_tasks(path or task_file())


def lite_ids() -> set[int]:
    """The ids, as in WebArena, of the tasks that are also in WebArena-Lite. Raises TaskError."""
    rows = json.loads(task_file("webarena-lite").read_text(encoding="utf-8"))
    return {row["old_task_id"] for row in rows}


@dataclass(frozen=True)
class Replicated:
    """A real task that runs on the replicas, and how that is shown.

    `note`: what the replica simplifies; `reads`: facts that the solution must have seen; `mistake`: what `wrong` does.
    """

    task_id: int
    site: str
    note: str
    solution: tuple[str, ...]
    wrong: tuple[str, ...]
    mistake: str
    reads: tuple[str, ...] = ()


def replicated(sites: Iterable[str] = MODULES, ids: Sequence[int] = ()) -> list[Replicated]:
    """The real tasks of the sites that run on the replicas, or those of the given ids. Raises TaskError for another."""
    rows = [row for site in sites for row in _read_solutions(site)]
    if unknown := set(ids) - {row.task_id for row in rows}:
        elsewhere = "" if set(sites) == set(MODULES) else " on " + ", ".join(sites)
        raise TaskError(f"no replica{elsewhere} for task {', '.join(map(str, sorted(unknown)))}")
    return [row for row in rows if not ids or row.task_id in ids]


def _read_solutions(site: str) -> list[Replicated]:
    if not (path := SOLUTIONS / f"{site}.json").exists():
        return []
    return [
        Replicated(int(task_id), site, **{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
        for task_id, row in json.loads(path.read_text(encoding="utf-8"))["tasks"].items()
    ]


def replicated_tasks(rows: Sequence[Replicated] | None = None) -> list[Task]:
    """WebArena's own tasks for those that run on the replicas, unchanged. Raises TaskError."""
    by_id = {task.task_id: task for task in webarena_tasks()}
    return [by_id[row.task_id] for row in (replicated() if rows is None else rows)]
