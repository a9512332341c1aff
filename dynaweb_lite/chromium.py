"""Finding Chromium, and the switches that it is started with."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import playwright

PATH_VARIABLE = "DYNAWEB_CHROMIUM"
SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HEADLESS_NAMES = ("chromium-headless-shell", "chrome-headless-shell")
FLAGS = (
    "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,Translate,"
    "RenderDocument,ProactivelySwapBrowsingInstance"
).split()
"""The last two features give each page a frame and a view of its own: without them a page opens a fifth faster."""
NOT_FOUND = (
    "no Chromium found. Run `python -m dynaweb_lite setup-browser`, or `playwright install chromium`, or on Debian and "
    f"Ubuntu `apt-get install chromium-headless-shell`, or set {PATH_VARIABLE} to the path of one"
)


class BrowserError(RuntimeError):
    """Chromium is missing or does not start; the message says what to run."""


def find_chromium(path: str | Path | None = None, headless: bool = True) -> Path | None:
    """The Chromium to start, or None: `path`, else DYNAWEB_CHROMIUM, else Playwright's own, else an installed one.

    For headless work the headless shell is preferred: it does the same a third faster. Raises BrowserError when a path
    that was asked for by name does not exist.
    """
    for chosen in filter(None, (path, os.environ.get(PATH_VARIABLE))):
        if not Path(chosen).exists():
            raise BrowserError(f"{chosen} does not exist; correct the path or unset {PATH_VARIABLE}")
        return Path(chosen)
    names = HEADLESS_NAMES + SYSTEM_NAMES if headless else SYSTEM_NAMES
    installed = (Path(found) for name in names if (found := shutil.which(name)))
    return next((p for p in (*playwrights_own(headless), *installed)), None)


def playwrights_own(headless: bool) -> Iterator[Path]:
    """Chromium as `playwright install chromium` leaves it, of the revision that this Playwright wants."""
    listing = Path(playwright.__file__).parent / "driver" / "package" / "browsers.json"
    rows = json.loads(listing.read_text(encoding="utf-8"))["browsers"] if listing.exists() else []
    revisions = {row["name"]: row["revision"] for row in rows}
    for name in ("chromium-headless-shell", "chromium") if headless else ("chromium",):
        folder = browsers_folder() / f"{name.replace('-', '_')}-{revisions.get(name)}"
        for program in ("headless_shell", "chrome-headless-shell", "chrome", "Chromium", "Google Chrome for Testing"):
            for found in (*folder.glob(f"**/{program}"), *folder.glob(f"**/{program}.exe")):
                if found.is_file() and os.access(found, os.X_OK):
                    yield found


def browsers_folder() -> Path:
    """Where Playwright keeps its downloads."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if named == "0":
        return Path(playwright.__file__).parent / "driver" / "package" / ".local-browsers"
    places = {"darwin": "Library/Caches", "win32": "AppData/Local"}
    return Path(named) if named else Path.home() / places.get(sys.platform, ".cache") / "ms-playwright"


def switches(replica_hosts: Iterable[str] = (), port: int = 0) -> list[str]:
    """Command-line switches; with replica hosts, those lead to the port on loopback and other names nowhere."""
    flags = [*FLAGS]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")
    if rules := [f"MAP {host} 127.0.0.1:{port}" for host in replica_hosts]:
        flags.append("--host-resolver-rules=" + ", ".join([*rules, "MAP * ~NOTFOUND"]))
    return flags
