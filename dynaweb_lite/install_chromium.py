"""Get a Chromium that starts: what is there, else Playwright's own download, else Debian's packages.

python -m dynaweb_lite setup-browser
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dynaweb_lite.chromium import BrowserError, find_chromium

Runner = Callable[[Sequence[str], float], bool]

PLAYWRIGHT = (sys.executable, "-m", "playwright")
DEBIAN_PACKAGES = ("chromium", "chromium-headless-shell")


def run(command: Sequence[str], timeout_seconds: float) -> bool:
    """Run a command with its output shown; False when it fails, is missing or takes longer than its time."""
    print("+", " ".join(command), flush=True)
    try:
        return subprocess.run(command, timeout=timeout_seconds, stdin=subprocess.DEVNULL).returncode == 0
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  {error}", file=sys.stderr)
        return False


def starts(chromium: Path) -> bool:
    """Whether this Chromium runs at all: one without its system libraries is found, but does not start."""
    try:
        answer = subprocess.run([str(chromium), "--version"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def working_chromium() -> Path | None:
    """The Chromium for headless work that `find_chromium` picks, if it starts."""
    found = find_chromium(headless=True)
    return found if found and starts(found) else None


def ways(is_root: bool, has_apt: bool) -> list[list[Sequence[str]]]:
    """Ways to get Chromium, in order; each is a list of commands. System packages only as root with apt-get."""
    own = [*PLAYWRIGHT, "install", "chromium"]
    if not (is_root and has_apt):
        return [[own]]
    return [
        [own],
        [[*PLAYWRIGHT, "install-deps", "chromium"]],
        [["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *DEBIAN_PACKAGES]],
    ]


def install(runner: Runner = run, timeout_seconds: float = 900.0) -> Path | None:
    """Make sure a working Chromium is there. Returns its path, or None when every way failed."""
    if found := working_chromium():
        return found
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    own_failed = False
    for commands in ways(is_root, shutil.which("apt-get") is not None):
        if "install-deps" in commands[0] and own_failed:
            continue
        ran = all(runner(command, timeout_seconds) for command in commands)
        own_failed = own_failed or not ran
        if found := working_chromium():
            return found
    return None


def main(runner: Runner = run) -> int:
    """Command-line entry: 0 when Chromium works, else 1 and the sentences that fix it."""
    try:
        chromium = install(runner)
    except BrowserError as error:
        print(error, file=sys.stderr)
        return 1
    if chromium:
        print(f"Chromium: {chromium}")
        return 0
    found = find_chromium(headless=True)
    print(f"Chromium at {found} does not start." if found else "No Chromium found.", file=sys.stderr)
    print(
        "One of these gives you one:\n"
        f"  {' '.join(PLAYWRIGHT)} install chromium && sudo {' '.join(PLAYWRIGHT)} install-deps chromium\n"
        f"  sudo apt-get install {' '.join(DEBIAN_PACKAGES)}\n"
        "then run the same command again.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
