"""All replicas on one loopback port, told apart by host name; the state of each browser context is its own.

There are two grounds: "practice", a shop and a forum small enough for the tiny model, and "webarena", the six
applications on which WebArena's own tasks run. State is an in-memory SQLite database for each session and site, copied
from the seeded one. A reset is a copy: milliseconds.
"""

from __future__ import annotations

import functools
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flask import Flask, request
from waitress.server import create_server

from dynaweb_lite.sites.content import DATABASES
from dynaweb_lite.sites.forum import forum_app
from dynaweb_lite.sites.login import FORMS, LoginWall
from dynaweb_lite.sites.shop import shop_app
from dynaweb_lite.sites.webarena import load_sites
from dynaweb_lite.tasks import REPLICA_HOSTS

SESSION_COOKIE = "dynaweb_session"
NO_SCRIPTS = ("Content-Security-Policy", "script-src 'none'")
"""Replicas run no scripts, and browsers are told so: a page can leave nothing in a browser but cookies."""
logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a short queue is no news
CONNECTIONS = 900
"""A context keeps up to six connections open to each site; a server that takes no more of them hangs all contexts."""
GROUNDS = ("practice", "webarena")
PRACTICE: dict[str, Callable[[Callable], Flask]] = {"shopping": shop_app, "reddit": forum_app}


def apps_of(ground: str) -> dict[str, Callable[[Callable], Flask]]:
    """The applications of a ground by site. Raises ValueError for an unknown ground."""
    if ground not in GROUNDS:
        raise ValueError(f"unknown ground {ground!r}; there are {', '.join(GROUNDS)}")
    return PRACTICE if ground == "practice" else {site: s.app for site, s in load_sites().items()}


@functools.cache
def seeded(ground: str, site: str, seed: int) -> bytes:
    """The seeded database of a site as bytes, made once a process."""
    make = DATABASES[site] if ground == "practice" else load_sites()[site].database
    return make(seed).serialize()


class Sessions:
    """The databases of one site, one a session, made when first asked for and dropped or reset one by one."""

    def __init__(self, ground: str, site: str, seed: int):
        self.ground, self.site, self.seed = ground, site, seed
        self._databases: dict[str, tuple[sqlite3.Connection, threading.Lock]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """The database of the request's session, held alone and committed at the end."""
        db, lock = self._get(request.cookies.get(SESSION_COOKIE, "default"))
        with lock, db:
            yield db

    def _get(self, session: str) -> tuple[sqlite3.Connection, threading.Lock]:
        with self._lock:
            if session not in self._databases:
                db = sqlite3.connect(":memory:", check_same_thread=False)
                db.deserialize(seeded(self.ground, self.site, self.seed))
                db.row_factory = sqlite3.Row
                self._databases[session] = (db, threading.Lock())
            return self._databases[session]

    def drop(self, session: str) -> None:
        """Forget a session; its next request finds the seeded state."""
        with self._lock:
            self._databases.pop(session, None)


class SiteServer:
    """The replicas behind one port of 127.0.0.1 (0: any free one). A context manager; `start` may be called twice.

    With `login`, sites that have a login ask for WebArena's accounts, and forget one after `login_seconds`.
    Raises ValueError for an unknown ground.
    """

    is_script_free = True

    def __init__(
        self, seed: int = 0, port: int = 0, ground: str = "practice", login: bool = False, login_seconds: float = 3600.0
    ):
        self.seed, self.port, self.ground = seed, port, ground
        apps = apps_of(ground)
        self.sessions = {site: Sessions(ground, site, seed) for site in apps}
        self._apps = {REPLICA_HOSTS[site]: make(self.sessions[site].database) for site, make in apps.items()}
        style = "site.css" if ground == "practice" else "webarena.css"
        guarded = {site: REPLICA_HOSTS[site] for site in apps if login and site in FORMS}
        self.walls = {s: LoginWall(self._apps[host], s, login_seconds, style) for s, host in guarded.items()}
        self._apps |= {host: self.walls[site] for site, host in guarded.items()}
        self.hosts = list(self._apps)
        self._server = None

    def app(self, environ: dict, start_response: Callable) -> list[bytes]:
        """The WSGI application of all sites: the Host header decides, as in shop.test, or shop.localhost for people.

        Unknown hosts get a 404.
        """
        host = environ.get("HTTP_HOST", "").split(":")[0]
        if host.endswith(".localhost"):
            host = host.removesuffix("localhost") + "test"
        if host not in self._apps:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            port = environ.get("SERVER_PORT", "")
            known = ", ".join(f"{h.removesuffix('.test')}.localhost:{port}" for h in self.hosts)
            return [f"No site called {host}; there are: {known}".encode()]

        def start(status: str, headers: list, *rest: object) -> object:
            return start_response(status, [*headers, NO_SCRIPTS], *rest)

        return self._apps[host](environ, start)

    def start(self) -> SiteServer:
        """Listen in a background thread. Raises OSError that names the port when it is taken."""
        if self._server is None:
            try:
                self._server = create_server(
                    self.app,
                    host="127.0.0.1",
                    port=self.port,
                    threads=8,
                    connection_limit=CONNECTIONS,
                    asyncore_use_poll=True,
                )
            except OSError as error:
                raise OSError(f"port {self.port} is taken: choose another, or 0 for any free one") from error
            self.port = self._server.effective_port
            threading.Thread(target=self._server.run, daemon=True, name="sites").start()
        return self

    def reset(self, session: str) -> None:
        """Give a session the seeded state again, on every site."""
        for sessions in self.sessions.values():
            sessions.drop(session)

    drop = reset

    def expire_logins(self) -> None:
        """End all logins now, as the real sites do after a while."""
        for wall in self.walls.values():
            wall.expire()

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> SiteServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
