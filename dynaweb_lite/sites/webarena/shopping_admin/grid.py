"""Grids: lists of records with keyword search, column filters, sorting, page size and pages, all in the address."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlencode

from dynaweb_lite.sites.webarena.shopping_admin.pages import long_date, money, parse_date

RANGES = ("number", "money", "date")


@dataclass(frozen=True)
class Column:
    """A column: where it comes from in SQL, how it is shown and filtered.

    `kind`: text, number, money, date, or choice (filtered by a list of `choices`, value -> label). `link` leads to the
    record, with {id} or the quoted {value} in it. A column that is not `shown` can only be filtered by.
    """

    key: str
    title: str
    sql: str
    kind: str = "text"
    choices: Mapping = field(default_factory=dict)
    link: str = ""
    shown: bool = True
    filtered: bool = True


@dataclass(frozen=True)
class Grid:
    """A list of records. `source` is SQL after FROM; `sort` a column's key, with - before it for falling order.

    `size` rows stand on a page, so many that a page stays under 60 lines. `searched` are SQL texts that keywords are
    looked for in. `new` is (label, address) of the button for a new record.
    """

    name: str
    title: str
    path: str
    source: str
    columns: tuple[Column, ...]
    sort: str
    size: int
    searched: tuple[str, ...]
    id: str = "id"
    where: str = "1"
    new: tuple[str, str] | None = None

    @property
    def shown(self) -> list[Column]:
        return [c for c in self.columns if c.shown]

    @property
    def filters(self) -> list[Column]:
        return [c for c in self.columns if c.filtered]

    @property
    def sizes(self) -> tuple[int, int]:
        return (self.size + 1) // 2, self.size


@dataclass
class Condition:
    """A filter in force: what the page says about it, and SQL with its values."""

    label: str
    sql: str
    values: tuple = ()


class GridView:
    """What a grid shows for the query of an address."""

    def __init__(self, db: sqlite3.Connection, grid: Grid, query: Mapping[str, str]) -> None:
        self.grid, self.query = grid, {k: v for k, v in query.items() if v != "" and k != "filters"}
        self.errors: list[str] = []
        self.filters = [c for column in grid.filters for c in self._conditions(column)]
        self.keyword = self._keyword()
        self.conditions = self.filters + self.keyword
        where = " AND ".join([f"({grid.where})", *(c.sql for c in self.conditions)])
        values = [v for c in self.conditions for v in c.values]
        self.count = db.execute(f"SELECT count(*) FROM {grid.source} WHERE {where}", values).fetchone()[0]
        self.size = _whole(self.query.get("limit"), grid.size)
        self.size = self.size if self.size in grid.sizes else grid.size
        self.pages = max(1, math.ceil(self.count / self.size))
        self.page = min(max(1, _whole(self.query.get("p"), 1)), self.pages)
        self.sort, self.falling = self._order()
        fields = ", ".join(f"{c.sql} AS {c.key}" for c in grid.shown)
        direction = "DESC" if self.falling else "ASC"
        rows = db.execute(
            f"SELECT {grid.id} AS id, {fields} FROM {grid.source} WHERE {where} "
            f"ORDER BY {self.sort.sql} {direction}, {grid.id} {direction} LIMIT ? OFFSET ?",
            [*values, self.size, (self.page - 1) * self.size],
        )
        self.rows = [self._cells(row) for row in rows]

    def _conditions(self, column: Column) -> list[Condition]:
        """The filters of a column that the query asks for; what cannot be read becomes an error."""
        if column.kind in RANGES:
            return [c for side in ("from", "to") if (c := self._bound(column, side))]
        value = self.query.get(column.key)
        if value is None:
            return []
        if column.kind == "choice":
            label = {str(k): v for k, v in column.choices.items()}.get(value)
            if label is None:
                self.errors.append(f"{column.title} has no {value!r}.")
                return []
            return [Condition(f"{column.title}: {label}", f"CAST({column.sql} AS TEXT) = ?", (value,))]
        return [Condition(f"{column.title}: {value}", f"{column.sql} LIKE ? ESCAPE '\\'", (_pattern(value),))]

    def _bound(self, column: Column, side: str) -> Condition | None:
        text = self.query.get(f"{column.key}_{side}")
        if text is None:
            return None
        sign = ">=" if side == "from" else "<="
        if column.kind == "date":
            if (day := parse_date(text)) is None:
                self.errors.append(f"{column.title}: {text!r} is no date; write it as 5/31/2023.")
                return None
            return Condition(f"{column.title} {side} {long_date(day)}", f"date({column.sql}) {sign} ?", (day,))
        try:
            number = float(text.replace("$", "").replace(",", ""))
        except ValueError:
            self.errors.append(f"{column.title}: {text!r} is no number.")
            return None
        return Condition(f"{column.title} {side} {text}", f"{column.sql} {sign} ?", (number,))

    def _keyword(self) -> list[Condition]:
        """Every word must stand somewhere in the searched texts."""
        words = self.query.get("search", "").split()
        texts = " || ' ' || ".join(f"coalesce({text}, '')" for text in self.grid.searched)
        if not words:
            return []
        sql = " AND ".join([f"({texts}) LIKE ? ESCAPE '\\'"] * len(words))
        return [Condition(f"Keyword: {' '.join(words)}", sql, tuple(map(_pattern, words)))]

    def _order(self) -> tuple[Column, bool]:
        columns = {c.key: c for c in self.grid.shown}
        asked = self.query.get("sort", "")
        if asked in columns:
            return columns[asked], self.query.get("dir") == "desc"
        return columns[self.grid.sort.removeprefix("-")], self.grid.sort.startswith("-")

    def _cells(self, row: sqlite3.Row) -> list[tuple[str, str]]:
        """Text and link of each cell."""
        return [
            (_shown(c, row[c.key]), c.link.format(id=row["id"], value=quote_plus(str(row[c.key]))) if c.link else "")
            for c in self.grid.shown
        ]

    def url(self, **changes) -> str:
        """This grid's address with other parts in its query; None takes one away."""
        query = self.query | {k: str(v) for k, v in changes.items()}
        query = {k: v for k, v in query.items() if changes.get(k, "") is not None}
        return self.grid.path + ("?" + urlencode(query) if query else "")

    def sort_url(self, column: Column) -> str:
        """Sorts by the column; by the other direction when it is sorted by already."""
        turned = "desc" if column is self.sort and not self.falling else "asc"
        return self.url(sort=column.key, dir=turned, p=None)

    def mark(self, column: Column) -> str:
        return (" ↓" if self.falling else " ↑") if column is self.sort else ""

    @property
    def cleared(self) -> str:
        kept = {k: v for k, v in self.query.items() if k in ("sort", "dir", "limit")}
        return self.grid.path + ("?" + urlencode(kept) if kept else "")

    @property
    def other_size(self) -> int:
        small, large = self.grid.sizes
        return small if self.size == large else large

    def kept(self, *without: str) -> list[tuple[str, str]]:
        """The query's parts that a form sends on, without its own fields and the page."""
        return [(k, v) for k, v in self.query.items() if k not in (*without, "p")]

    @property
    def filter_keys(self) -> list[str]:
        ends = ("_from", "_to")
        return [c.key + end for c in self.grid.filters for end in (ends if c.kind in RANGES else ("",))]


def _whole(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 7 else default


def _pattern(text: str) -> str:
    """Text as a part of a LIKE pattern."""
    for sign in "\\%_":
        text = text.replace(sign, "\\" + sign)
    return f"%{text}%"


def _shown(column: Column, value) -> str:
    if value is None:
        return "—"
    if column.kind == "money":
        return money(value)
    if column.kind == "date":
        return long_date(value)
    return str(column.choices.get(value, value)) if column.kind == "choice" else str(value)
