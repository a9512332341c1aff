"""BrowserGym in an environment and a process of its own: it pins an old Playwright, which cannot live beside ours."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENT = "browsergym-miniwob==0.14.3"
MAX_PYTHON = (3, 12)  # the newest for which the old Playwright's greenlet has wheels
WORKER = Path(__file__).with_name("browsergym_worker.py")


class BenchmarkError(RuntimeError):
    """The benchmark cannot go on; the message says what to do."""


def ready_environment(folder: Path) -> Path:
    """The Python of a virtual environment with BrowserGym, made in `folder` where it is missing.

    Raises BenchmarkError when there is no Python for it, or no network the first time.
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == REQUIREMENT:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    print(f"installing {REQUIREMENT} into {folder} (once, about 300 MB and a minute)", flush=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT]
    for command in ([find_python(), "-m", "venv", folder], install):
        made = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if made.returncode:
            said = [line for line in (made.stderr + made.stdout).splitlines() if line.strip()]
            raise BenchmarkError(
                f"BrowserGym could not be installed: {said[-1].strip() if said else 'pip failed'}\n"
                "It comes from PyPI, so the first run needs the network; without it: --skip-browsergym"
            )
    stamp.write_text(REQUIREMENT, encoding="utf-8")
    return python


def find_python() -> str:
    """A Python that BrowserGym's old Playwright can be installed for. Raises BenchmarkError when there is none."""
    if sys.version_info[:2] <= MAX_PYTHON:
        return sys.executable
    for name in ("python3.12", "python3.11"):
        if found := shutil.which(name):
            return found
    raise BenchmarkError("BrowserGym's Playwright 1.44 needs Python 3.11 or 3.12: install one beside this Python")


class BrowserGym:
    """A BrowserGym environment in its process. A context manager; `ask` sends one request and waits for the answer."""

    def __init__(self, python: Path, task: str, pages_url: str, chromium: Path, **keywords: float) -> None:
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        command = [str(python), str(WORKER), task, str(chromium), json.dumps(keywords)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            encoding="utf-8",
            env=os.environ | {"MINIWOB_URL": pages_url},
            start_new_session=True,  # an interrupt is for this program, which then ends that one in good order
        )

    def ask(self, **request: object) -> dict:
        """The worker's answer. Raises BenchmarkError with the last line that it wrote when it has ended."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            self.close_process()
            self.log.seek(0)
            said = self.log.read().strip().splitlines()
            raise BenchmarkError(f"BrowserGym stopped: {said[-1] if said else 'without a word'}")
        return json.loads(line)

    def close(self) -> None:
        """End the worker and its browsers."""
        self.close_process()
        self.log.close()

    def close_process(self) -> None:
        """Let the worker close its browsers; end all of them where that takes too long."""
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> BrowserGym:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
