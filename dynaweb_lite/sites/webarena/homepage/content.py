"""What the home page keeps: a scratchpad, empty at first whatever the seed."""

from __future__ import annotations

import sqlite3


def make_database(seed: int) -> sqlite3.Connection:
    """The home page's database, in memory; the seed changes nothing."""
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript("CREATE TABLE pad (text TEXT); INSERT INTO pad VALUES ('');")
    return db
