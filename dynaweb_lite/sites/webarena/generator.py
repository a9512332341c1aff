"""Further tasks on WebArena's ground, made from templates over the sites' own data, with experts and splits.

Same JSON schema and evaluators as WebArena's. Of each template, instances go to experts, training, validation and test;
of a template that is `held_out`, all go to the test split, so that test holds unseen instances and unseen kinds.
"""

from __future__ import annotations

import importlib
import random
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dynaweb_lite.sites.webarena import MODULES, load_sites
from dynaweb_lite.tasks import SITE_TOKENS, Task

KINDS = ("information", "navigation", "change")
SPLITS = ("expert", "train", "validation", "test")
EXPERTS, TRAIN_SHARE, VALIDATION_SHARE, MAX_INSTANCES = 2, 0.35, 0.15, 24
TOKENS = {site: token for token, site in SITE_TOKENS.items()}


@dataclass(frozen=True)
class Instance:
    """One task of a template: values of its placeholders, how it is judged, and an expert's script (scripted.py).

    `eval` comes from `answer`, `address` or `content`; `start` is a path below the site's base.
    """

    values: dict
    eval: dict
    script: tuple[str, ...]
    start: str = ""


@dataclass(frozen=True)
class Template:
    """A kind of task. `intent` has WebArena's {{placeholders}}; `instances` reads the seeded database.

    `instances(db, rng)` gives them in any order, with rows of `db` as sqlite3.Row. Raises ValueError for another kind.
    """

    name: str
    kind: str
    intent: str
    instances: Callable[[sqlite3.Connection, random.Random], Sequence[Instance]]
    held_out: bool = False
    sites: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"template {self.name}: kind {self.kind!r} is none of {', '.join(KINDS)}")


def answer(exact: str | None = None, includes: Sequence[str] = ()) -> dict:
    """Judged by the answer: equal to `exact`, or holding every part of `includes`."""
    references = {"exact_match": exact} if exact is not None else {"must_include": list(includes)}
    return _eval("string_match", reference_answers=references)


def address(url: str) -> dict:
    """Judged by where the agent stops, as in `__SHOPPING__/catalogsearch/result/?q=mug`."""
    return _eval("url_match", reference_url=url)


def content(*targets: tuple[str, str, list[str] | str], url: str = "") -> dict:
    """Judged by pages, each (url or "last", locator, wanted parts or exact text), and by where to stop: `url`."""
    rows = [
        {"url": page, "locator": locator, "required_contents": _required(wanted)} for page, locator, wanted in targets
    ]
    made = _eval("program_html", program_html=rows)
    return made | {"eval_types": ["url_match", "program_html"], "reference_url": url} if url else made


def _required(wanted: list[str] | str) -> dict:
    return {"exact_match": wanted} if isinstance(wanted, str) else {"must_include": wanted}


def _eval(kind: str, **parts) -> dict:
    return {"eval_types": [kind], "reference_answers": None, "reference_url": "", "program_html": [], **parts}


def load_templates(site: str) -> list[Template]:
    """The templates of a site; none for a site without a module of them."""
    if site == "homepage":
        return []
    return importlib.import_module(f"dynaweb_lite.sites.webarena.{MODULES[site]}.tasks").TEMPLATES


def generate_tasks(seed: int = 0, *splits: str, sites: Sequence[str] = tuple(MODULES)) -> list[Task]:
    """Tasks of a seed, those of the named splits (all when none is named), in a mixed, fixed order.

    Each has its expert's script in `extra["script"]`. Raises ValueError for an unknown split.
    """
    if unknown := set(splits) - set(SPLITS):
        raise ValueError(f"unknown split {sorted(unknown)}; there are {', '.join(SPLITS)}")
    tasks = [task for site in sites for task in _site_tasks(site, seed) if not splits or task.split in splits]
    random.Random(seed).shuffle(tasks)
    return tasks


def _site_tasks(site: str, seed: int) -> list[Task]:
    if not (templates := load_templates(site)):
        return []
    db = load_sites()[site].database(seed)
    db.row_factory = sqlite3.Row
    tasks = []
    for template in templates:
        rng = random.Random(f"{template.name}-{seed}")
        instances = list(template.instances(db, rng))
        rng.shuffle(instances)
        instances = instances[:MAX_INSTANCES]
        splits = _splits(len(instances), template.held_out)
        tasks += [_task(site, template, seed, n, *pair) for n, pair in enumerate(zip(instances, splits, strict=True))]
    return tasks


def _splits(count: int, held_out: bool) -> list[str]:
    """The split of each of `count` instances: experts first, then shares of the rest; all test when held out."""
    if held_out:
        return ["test"] * count
    rest = count - EXPERTS
    train, validation = round(rest * TRAIN_SHARE), round(rest * VALIDATION_SHARE)
    counts = (EXPERTS, train, validation, rest - train - validation)
    return [split for split, n in zip(SPLITS, counts, strict=True) for _ in range(n)]


def _task(site: str, template: Template, seed: int, number: int, instance: Instance, split: str) -> Task:
    return Task(
        task_id=f"{template.name}-{seed}-{number}",
        sites=template.sites or (site,),
        start_url=TOKENS[site] + instance.start,
        intent=re.sub(r"{{(\w+)}}", lambda m: str(instance.values[m[1]]), template.intent),
        eval=instance.eval,
        intent_template=template.intent,
        instantiation_dict=instance.values,
        kind=template.kind,
        split=split,
        extra={"script": list(instance.script), "template": template.name},
    )
