import sqlite3


def make_database(seed: int) -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)
