"""Data from elsewhere: NNetNav's rows, and plain rows of page, action and next page.

    cleaned = import_nnetnav("stanfordnlp/nnetnav-wa", limit=5000)      from the Hugging Face hub
    cleaned = import_transitions("my_rows.jsonl")                       {observation, action, next_observation}
    print(cleaned)                                                      what was dropped, and why

A source is a JSONL or parquet file, a folder of them, a name on the hub, a data set of the `datasets` library, or any
iterable of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from datasets import load_dataset
from tqdm.auto import tqdm

from dynaweb_lite.cleaning import Cleaned, Reason, place_action, read_action
from dynaweb_lite.nnetnav import clean_nnetnav
from dynaweb_lite.observation import Observation, ObservationError, one_line
from dynaweb_lite.trajectory import Transition
from dynaweb_lite.webarena_tree import MAX_ELEMENTS, ImportedPage, read_tree

Source = str | Path | Iterable[Mapping]
FILE_TYPES = (".jsonl", ".json", ".parquet")


class ImportFailure(ValueError):
    """A source cannot be read; the message says what to do."""


def import_nnetnav(
    source: Source, split: str = "train", limit: int | None = None, max_elements: int = MAX_ELEMENTS
) -> Cleaned:
    """Transitions and expert trajectories of NNetNav rows {prompt, output, task_name}; `limit` counts rows.

    Raises ImportFailure when the source cannot be read.
    """
    return clean_nnetnav(_counted(source, split, limit), max_elements)


def import_transitions(
    source: Source, split: str = "train", limit: int | None = None, max_elements: int = MAX_ELEMENTS
) -> Cleaned:
    """Transitions of rows {observation, action, next_observation}, and url, title, next_url, next_title where given.

    Pages are trees of WebArena or BrowserGym or in our own form. A page whose text and row name no address has an
    empty one, except that a next page of the same title keeps the address. Raises ImportFailure.
    """
    cleaned, seen = Cleaned(), set()
    for number, row in enumerate(_counted(source, split, limit), 1):
        cleaned.rows += 1
        found = Reason.NOT_JSON if row is None else _transition(row, max_elements, seen)
        if isinstance(found, Reason):
            cleaned.drop(found, number)
            continue
        transition, unreadable = found
        cleaned.transitions.append(transition)
        cleaned.unreadable_lines += unreadable
    return cleaned


def _transition(row: Mapping, max_elements: int, seen: set[int]) -> tuple[Transition, int] | Reason:
    texts = tuple(row.get(name) for name in ("observation", "action", "next_observation"))
    if not all(isinstance(text, str) for text in texts):
        return Reason.HALF_ROW
    if (key := hash(texts)) in seen:
        return Reason.DUPLICATE
    seen.add(key)
    try:
        page = read_tree(texts[0], _text(row, "url"), _text(row, "title"), max_elements)
        following = _next_page(row, page.observation, max_elements)
    except ObservationError:
        return Reason.NO_PAGE
    action = read_action(texts[1])
    if action is None:
        return Reason.UNPARSABLE
    placed = place_action(action, page)
    if isinstance(placed, Reason):
        return placed
    if placed.kind == "stop":
        return Reason.STOP
    unreadable = page.unreadable_lines + following.unreadable_lines
    return Transition(page.observation, str(placed), following.observation), unreadable


def _next_page(row: Mapping, page: Observation, max_elements: int) -> ImportedPage:
    text, url, title = row["next_observation"], _text(row, "next_url"), _text(row, "next_title")
    following = read_tree(text, url, title, max_elements)
    if following.observation.url or following.observation.title != page.title:
        return following
    return read_tree(text, page.url, title, max_elements)


def _text(row: Mapping, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _counted(source: Source, split: str, limit: int | None) -> Iterator[Mapping | None]:
    return iter(tqdm(islice(read_rows(source, split), limit), desc="importing", unit="row", total=limit))


def read_rows(source: Source, split: str = "train") -> Iterator[Mapping | None]:
    """The rows of a source, None for each line that is no JSON object. Raises ImportFailure when it cannot be read."""
    if not isinstance(source, str | Path):
        yield from (row if isinstance(row, Mapping) else None for row in source)
    elif Path(source).suffix in FILE_TYPES:
        yield from _file_rows(Path(source))
    elif files := sorted(Path(source).glob(f"{split}*.jsonl")) if Path(source).is_dir() else []:
        for file in files:  # line by line, so that a damaged line costs no other
            yield from _file_rows(file)
    else:
        yield from _load(str(source), split)


def _file_rows(path: Path) -> Iterator[Mapping | None]:
    if not path.is_file():
        raise ImportFailure(f"no file {path}")
    if path.suffix == ".parquet":
        yield from _load("parquet", "train", data_files=str(path))
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        if file.read(1) == "[":
            raise ImportFailure(f"{path} is one JSON array: write one object a line")
        file.seek(0)
        yield from (_json_row(line) for line in file if line.strip())


def _json_row(line: str) -> Mapping | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _load(name: str, split: str, **arguments: str) -> Iterator[Mapping]:
    """Rows through the `datasets` library, streamed: nothing is kept on disk."""
    try:
        yield from load_dataset(name, split=split, streaming=True, **arguments)
    except (OSError, ValueError) as error:
        why = f"cannot read {name!r} ({split}) as a file, a folder or a data set of the hub"
        raise ImportFailure(f"{why}: {one_line(str(error))[:300]}") from error
