"""Serve the replicas until Ctrl-C, for a person with a browser."""

from __future__ import annotations

import threading
import webbrowser

from dynaweb_lite.sites.server import SiteServer


def addresses(server: SiteServer) -> dict[str, str]:
    """Where a person finds each site: browsers send *.localhost to this machine by themselves."""
    paths = {"shop-admin.test": "/admin/"}
    return {
        host: f"http://{host.removesuffix('.test')}.localhost:{server.port}{paths.get(host, '/')}"
        for host in server.hosts
    }


def serve(seed: int = 0, port: int = 8000, ground: str = "webarena", show: bool = False) -> None:
    """Serve on a port of this machine and print the addresses; `show` opens the first in the default browser.

    All who look share one state, which ends with the command. Raises OSError for a port that is taken.
    """
    with SiteServer(seed, port, ground) as server:
        found = addresses(server)
        for host, url in found.items():
            print(f"{host.removesuffix('.test'):<12} {url}", flush=True)
        print("Ctrl-C stops.", flush=True)
        if show:
            webbrowser.open(found.get("home.test", next(iter(found.values()))))
        threading.Event().wait()
