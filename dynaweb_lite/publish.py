"""Copy what a run has made into assets/: its results, its recorded pages, and the first seed's adapters."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from dynaweb_lite.presets import ASSETS, RESULTS
from dynaweb_lite.readme import update_readme
from dynaweb_lite.runs import RunError

FILES = ("experts.jsonl", "explorations.jsonl", "results.json", "fidelity.json")
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")


def publish(folder: Path) -> None:
    """Copy from a finished full run. Raises RunError for any other, and names what a run has not made."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["recorded"] or config["test_tasks"] or len(config["seeds"]) < 3:
        raise RunError("only a full run is published: quickstart --full, with three seeds or more")
    seed = config["seeds"][0]
    best = json.loads((folder / f"sft-{seed}" / "tried.json").read_text(encoding="utf-8"))["best"]
    adapters = {
        "world-model": folder / f"world_model-{seed}",
        "sft": folder / f"sft-{seed}" / str(best),
        "dreams-only": folder / f"dreams_only-{seed}" / "best",
        "dynaweb": folder / f"dynaweb-{seed}" / "best",
    }
    sources = [s / f for s in adapters.values() for f in ADAPTER_FILES] + [folder / name for name in FILES]
    if missing := [str(s.relative_to(folder)) for s in sources if not s.exists()]:
        raise RunError(f"{folder} has not made {', '.join(missing)}: run it to its end first")
    for name, source in adapters.items():
        (ASSETS / name).mkdir(parents=True, exist_ok=True)
        for file in ADAPTER_FILES:
            shutil.copy2(source / file, ASSETS / name / file)
    for name in ("experts.jsonl", "explorations.jsonl"):
        shutil.copy2(folder / name, ASSETS / name)
    RESULTS.mkdir(parents=True, exist_ok=True)
    shutil.copy2(folder / "results.json", RESULTS / "quickstart.json")
    shutil.copy2(folder / "fidelity.json", RESULTS / "quickstart_fidelity.json")
    update_readme()
