"""Tasks generated over the replicas' content, in WebArena's schema: asking, opening and changing something.

A template is one kind of task; its instances are the site's products, posts, forums or orders. Instances are divided
into train (of which some come with experts), validation and test, kind by kind, so that every split holds every kind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dynaweb_lite.sites import words
from dynaweb_lite.sites.content import DATABASES
from dynaweb_lite.tasks import Task

EXPERTS_PER_KIND = 3
TRAIN_SHARE, VALIDATION_SHARE = 0.2, 0.2
SPLITS = ("expert", "train", "validation", "test")


@dataclass(frozen=True)
class Template:
    """One kind of task. `rows`: a query whose rows are the instances; `intent` and `evaluate` take a row as a dict."""

    kind: str
    site: str
    rows: str
    intent: str
    evaluate: Callable[[dict], dict]


def _answer(field: str) -> Callable[[dict], dict]:
    return lambda row: _eval(["string_match"], answers={"exact_match": str(row[field])})


def _opens(url: str) -> Callable[[dict], dict]:
    return lambda row: _eval(["url_match"], url=url.format(**row))


def _shows(url: str, selector: str, content: str) -> Callable[[dict], dict]:
    def evaluate(row: dict) -> dict:
        check = {
            "url": url.format(**row),
            "locator": f'document.querySelector("{selector}").outerText',
            "required_contents": {"must_include": [content.format(**row)]},
        }
        return _eval(["program_html"], program=[check])

    return evaluate


def _eval(types: list[str], answers: dict | None = None, url: str = "", program: list[dict] | None = None) -> dict:
    return {"eval_types": types, "reference_answers": answers, "reference_url": url, "program_html": program or []}


_PRODUCT, _POST = "SELECT * FROM product", "SELECT * FROM post"
_POST_URL = "__REDDIT__/f/{forum}/{id}/{slug}"
TEMPLATES = [
    Template("price", "shopping", _PRODUCT, "What is the price of '{name}'", _answer("price")),
    Template("rating", "shopping", _PRODUCT, "What is the rating of '{name}'", _answer("rating_text")),
    Template("brand", "shopping", _PRODUCT, "What is the brand of '{name}'", _answer("brand")),
    Template("open_product", "shopping", _PRODUCT, "Show the page of '{name}'", _opens("__SHOPPING__/{slug}.html")),
    Template(
        "add_to_cart",
        "shopping",
        _PRODUCT,
        "Add to the cart '{name}'",
        _shows("__SHOPPING__/checkout/cart/", ".cart", "{name}"),
    ),
    Template(
        "wish",
        "shopping",
        _PRODUCT,
        "Add to the wish list '{name}'",
        _shows("__SHOPPING__/wishlist/", ".wishlist", "{name}"),
    ),
    Template(
        "order_status", "shopping", "SELECT * FROM orders", "What is the status of 'Order {id}'", _answer("status")
    ),
    Template("author", "reddit", _POST, "Who is the author of '{title}'", _answer("author")),
    Template("points", "reddit", _POST, "How many points has '{title}'", _answer("points")),
    Template("open_post", "reddit", _POST, "Show the post '{title}'", _opens(_POST_URL)),
    Template("upvote", "reddit", _POST, "Upvote the post '{title}'", _shows(_POST_URL, ".vote", "Retract")),
    Template(
        "comment", "reddit", _POST, "Comment '{comment}' on '{title}'", _shows(_POST_URL, ".comments", "{comment}")
    ),
    Template(
        "subscribe",
        "reddit",
        "SELECT * FROM forum",
        "Subscribe to '{name}'",
        _shows("__REDDIT__/f/{name}", ".subscribe", "Unsubscribe"),
    ),
]
KINDS = {t.kind: t for t in TEMPLATES}
STARTS = {"shopping": "__SHOPPING__", "reddit": "__REDDIT__"}


def _instances(template: Template, seed: int) -> list[dict]:
    """Rows of the seeded database, as dicts with the few fields that are not columns."""
    db = DATABASES[template.site](seed)
    cursor = db.execute(template.rows)
    columns = [c[0] for c in cursor.description]
    rows = [dict(zip(columns, values, strict=True)) for values in cursor]
    rng = random.Random(f"{template.kind}-{seed}")
    taken = {
        i: {c for (c,) in db.execute("SELECT body FROM comment WHERE post_id = ?", (i,))} for i in _ids(template, rows)
    }
    for row in rows:
        if "rating" in row:
            row["rating_text"] = f"{row['rating']}%"
        if template.kind == "comment":
            row["comment"] = rng.choice([c for c in words.COMMENTS if c not in taken[row["id"]]])
    rng.shuffle(rows)
    return rows


def _ids(template: Template, rows: list[dict]) -> list[int]:
    return [row["id"] for row in rows] if template.kind == "comment" else []


def _splits(count: int) -> Iterable[str]:
    """The split of each of `count` shuffled instances: experts first, then shares of the rest."""
    rest = count - EXPERTS_PER_KIND
    train, validation = round(rest * TRAIN_SHARE), max(1, round(rest * VALIDATION_SHARE))
    counts = (EXPERTS_PER_KIND, train, validation, rest - train - validation)
    return [split for split, n in zip(SPLITS, counts, strict=True) for _ in range(n)]


def generate_tasks(seed: int = 0, *splits: str) -> list[Task]:
    """The tasks of a site seed, those of the named splits (all when none is named), in a mixed, fixed order.

    Raises ValueError for an unknown split.
    """
    if unknown := set(splits) - set(SPLITS):
        raise ValueError(f"unknown split {sorted(unknown)}; there are {', '.join(SPLITS)}")
    tasks = []
    for template in TEMPLATES:
        rows = _instances(template, seed)
        for number, (row, split) in enumerate(zip(rows, _splits(len(rows)), strict=True)):
            if not splits or split in splits:
                tasks.append(_task(template, seed, number, row, split))
    random.Random(seed).shuffle(tasks)
    return tasks


def _task(template: Template, seed: int, number: int, row: dict, split: str) -> Task:
    return Task(
        task_id=f"{template.kind}-{seed}-{number}",
        sites=(template.site,),
        start_url=STARTS[template.site],
        intent=template.intent.format(**row),
        eval=template.evaluate(row),
        intent_template=template.intent.replace("{", "{{").replace("}", "}}"),
        instantiation_dict={key: value for key, value in row.items() if value is not None},
        kind=template.kind,
        split=split,
    )
