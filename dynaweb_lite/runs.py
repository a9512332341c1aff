"""A run's folder: its configuration, where its numbers come from, and the clock of its phases."""

from __future__ import annotations

import json
import logging
import platform
import resource
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

from dynaweb_lite.presets import Preset

STARTED = "started.json"
PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
"""This process, and the largest one of those that it started and that have ended."""
PACKAGES = ("torch", "transformers", "trl", "peft", "playwright")


class RunError(RuntimeError):
    """A run cannot start or go on; the message says what to do."""


def write_json(path: Path, value: object) -> None:
    """Write whole or not at all: a killed run leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def open_run(folder: Path, preset: Preset) -> None:
    """Begin a run or go on with it. Raises RunError when the folder holds a run with other settings."""
    config = json.loads(json.dumps(asdict(preset) | {"model": Path(preset.model).name}))
    path = folder / "config.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != config:
        raise RunError(f"{folder} holds a run with other settings: give another folder by --run, or remove it")
    if not path.exists():
        write_json(path, config)
    if not (folder / STARTED).exists():
        write_json(folder / STARTED, {"date": datetime.now(UTC).date().isoformat(), "commit": commit()})


def commit() -> str:
    """The commit of this code, with a plus where files have changed since; 'unknown' outside a checkout."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=here, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return name.stdout.strip() or "unknown"


def provenance(folder: Path, preset: Preset, seconds: float) -> dict:
    """Where numbers come from: date and commit of the run's start, preset, device, versions, seconds, and the
    memory in MB that its largest process took at its peak.
    """
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return {
        **json.loads((folder / STARTED).read_text(encoding="utf-8")),
        "preset": preset.name,
        "device": gpu or f"CPU, {torch.get_num_threads()} threads, {platform.machine()}",
        "seconds": round(seconds),
        "peak_memory_mb": max(resource.getrusage(who).ru_maxrss for who in PROCESSES) // 1024,
        "versions": {name: version(name).split("+")[0] for name in PACKAGES},
    }


class Clock:
    """Prints phases with the time left, and remembers in phases.json what each has cost over all starts of the run."""

    def __init__(self, folder: Path, expected_minutes: dict[str, float]):
        self.path, self.expected = folder / "phases.json", expected_minutes
        self.seconds: dict[str, float] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.begun: list[str] = []
        self.started = time.monotonic()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; what an interrupted one has cost counts too."""
        self.begun.append(name)
        left = sum(minutes for phase, minutes in self.expected.items() if phase not in self.begun[:-1]) * self._pace()
        print(f"\n[{len(self.begun)}/{len(self.expected)}] {name}   (about {left:.0f} min left)", flush=True)
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
            write_json(self.path, self.seconds)

    def _pace(self) -> float:
        """This machine's time over the expected one, from the phases that are over."""
        done = self.begun[:-1]
        expected = sum(self.expected.get(name, 0) for name in done) * 60
        return max(0.2, sum(self.seconds[name] for name in done) / expected) if expected else 1.0

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())


def quiet_libraries() -> None:
    """Keep advice that libraries give to their own developers out of the progress."""
    warnings.filterwarnings("ignore")
    for name in ("transformers", "trl", "peft", "waitress", "accelerate"):
        logging.getLogger(name).setLevel(logging.ERROR)
