"""A run's folder: its configuration, where its numbers come from, and the clock of its phases."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
import torch
from transformers.utils.logging import disable_progress_bar

from dynaweb_lite.presets import Preset

STARTED, MEMORY = "started.json", "memory.json"
MEMORY_SECONDS = 3.0
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
        raise RunError(f"{folder} holds a run with other settings: start anew with --fresh, or take another --run")
    if not path.exists():
        write_json(path, config)
    now = {"date": datetime.now(UTC).date().isoformat(), "commit": commit(), "model": fingerprint(preset.model)}
    path = folder / STARTED
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else now
    if before.get("model", now["model"]) != now["model"]:
        raise RunError(f"{folder} holds a run of another base model: start anew with --fresh, or take another --run")
    commits = dict.fromkeys([*before["commit"].split(", "), now["commit"]])
    if not path.exists() or len(commits) > len(before["commit"].split(", ")):
        write_json(path, {**before, "model": now["model"], "commit": ", ".join(commits)})


def fingerprint(model: str) -> str:
    """A short hash of a model folder's weights; the name itself where it is no folder."""
    weights = Path(model) / "model.safetensors"
    return hashlib.sha256(weights.read_bytes()).hexdigest()[:12] if weights.exists() else model


def commit() -> str:
    """The commit of this code, with a plus where files have changed since; 'unknown' outside a checkout."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=here, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return name.stdout.strip() or "unknown"


def provenance(folder: Path, preset: Preset, seconds: float) -> dict:
    """Where numbers come from: date, commits, model, preset, device, versions, seconds, memory.

    A run that was stopped and went on names every commit that it ran at.

    Memory is that of all the run's processes together, the browser's too, in MB; memory that they share counts once.
    """
    return {
        **json.loads((folder / STARTED).read_text(encoding="utf-8")),
        "preset": preset.name,
        "device": device_name(),
        "seconds": round(seconds),
        **({"peak_memory_mb": peak} if (peak := read_peak(folder)) else {}),
        "versions": {name: version(name).split("+")[0] for name in PACKAGES},
    }


def device_name() -> str:
    """What computed, in words that name no machine."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return gpu or f"CPU, {os.cpu_count()} cores, {platform.machine()}"


def memory_mb() -> float:
    """Memory of this process and all that it has started, in MB; shared pages count once, where the system tells."""
    total = 0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            full = process.memory_full_info()
            total += getattr(full, "pss", full.uss)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total / 2**20


def read_peak(folder: Path) -> int:
    path = folder / MEMORY
    return json.loads(path.read_text(encoding="utf-8"))["peak_mb"] if path.exists() else 0


@contextmanager
def watch_memory(folder: Path) -> Iterator[None]:
    """Note in memory.json the most memory that the run has taken at once, over all its starts."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(MEMORY_SECONDS):
            if (now := round(memory_mb())) > read_peak(folder):
                write_json(folder / MEMORY, {"peak_mb": now})

    thread = threading.Thread(target=watch, daemon=True, name="memory")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Clock:
    """Prints phases with the time left, and remembers in phases.json what each has cost over all starts of the run."""

    def __init__(self, folder: Path, expected_minutes: dict[str, float]):
        self.path, self.expected = folder / "phases.json", expected_minutes
        self.seconds: dict[str, float] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.begun: list[str] = []

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
    disable_progress_bar()  # "Loading weights", at every one of dozens of loads
    for name in ("transformers", "trl", "peft", "waitress", "accelerate"):
        logging.getLogger(name).setLevel(logging.ERROR)
