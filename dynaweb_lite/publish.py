"""Copy what a run has made into assets/: its results, its recorded pages, and the first seed's adapters."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from dynaweb_lite.presets import ASSETS, RESULTS
from dynaweb_lite.runs import RunError
from dynaweb_lite.score import format_table

FILES = ("experts.jsonl", "explorations.jsonl", "results.json", "fidelity.json")
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
README = ASSETS.parent / "README.md"
BEGIN, END = "<!-- results: quickstart.json -->\n", "<!-- end of results -->"


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
    text = README.read_text(encoding="utf-8")
    README.write_text(with_results(text), encoding="utf-8")


def with_results(readme: str) -> str:
    """The README with its table and provenance written anew from assets/results. Raises ValueError without markers."""
    if BEGIN not in readme or END not in readme:
        raise ValueError(f"README.md has no place for results: {BEGIN.strip()} … {END}")
    head, rest = readme.split(BEGIN)
    return head + BEGIN + results_section() + END + rest.split(END)[1]


def results_section() -> str:
    """Score table, fidelity in one line, and where the numbers come from."""
    results = json.loads((RESULTS / "quickstart.json").read_text(encoding="utf-8"))
    fidelity = json.loads((RESULTS / "quickstart_fidelity.json").read_text(encoding="utf-8"))
    made, judge = results["made"], fidelity["judge"]
    kinds = {
        "all": fidelity,
        "unseen page and action": fidelity["unseen"],
        "nothing changes": fidelity["nothing_changes"],
    }
    measures = {"changed_f1": "changed-lines F1", "changed_f1_moved": "where pages change", "exact": "page exact"}
    lines = [f"| world model, one step | n | {' | '.join(measures.values())} |", "| --- | --- | --- | --- | --- |"]
    for name, found in kinds.items():
        lines.append(f"| {name} | {found['n']} | " + " | ".join(f"{found[key]:.3f}" for key in measures) + " |")
    gain = next(row for row in results["rows"] if row["method"] == "dynaweb - sft")
    by_seed = ", ".join(f"{value:+.3f}" for value in gain["by_seed"])
    low, high = gain["over_seeds"]
    return "\n".join(
        [
            format_table(results["rows"]),
            "",
            f"DynaWeb − SFT by seed: {by_seed}; Student's t over the seeds alone: [{low:+.3f}, {high:+.3f}].",
            "",
            *lines,
            "",
            f"The judge agrees with the truth on {judge['agreement']:.3f} of {judge['n']} verdicts (false yes "
            f"{judge['false_positive_rate']:.3f}, false no {judge['false_negative_rate']:.3f}).",
            f"Made {made['date']} at commit {made['commit']}: preset {made['preset']}, {made['device']}.",
            "",
        ]
    )
