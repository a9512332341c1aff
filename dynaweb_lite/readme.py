"""What README.md quotes is written from assets/results, between markers; a test compares the two.

<!-- quickstart: quickstart.json -->
… written here …
<!-- end of quickstart -->
"""

from __future__ import annotations

import json
from collections.abc import Callable

from dynaweb_lite.presets import ASSETS, RESULTS
from dynaweb_lite.score import format_table

README = ASSETS.parent / "README.md"


def update_readme() -> None:
    """Write all sections of README.md anew."""
    README.write_text(with_results(README.read_text(encoding="utf-8")), encoding="utf-8")


def with_results(readme: str) -> str:
    """The README with its sections written anew. Raises ValueError when it lacks the markers of one."""
    for name, section in SECTIONS.items():
        begin, end = f"<!-- {name}: {name}.json -->\n", f"<!-- end of {name} -->"
        if begin not in readme or end not in readme:
            raise ValueError(f"README.md has no place for {name}: {begin.strip()} … {end}")
        head, rest = readme.split(begin)
        readme = head + begin + section() + end + rest.split(end, 1)[1]
    return readme


def _read(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _made(made: dict) -> str:
    preset = f"preset {made['preset']}, " if "preset" in made else ""
    return f"Made {made['date']} at commit {made['commit']}: {preset}{made['device']}."


def quickstart_section() -> str:
    """Score table, fidelity in one line, and where the numbers come from."""
    results, fidelity = _read("quickstart"), _read("quickstart_fidelity")
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
            _made(made),
            "",
        ]
    )


def replicas_section() -> str:
    """A line a site: how many of WebArena's tasks run on its replica, and how they were proven."""
    results = _read("webarena_replicas")
    rows = results["rows"]
    lines = [
        "| site | tasks | of them in WebArena-Lite | solution | nothing | mistake |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for site in [*dict.fromkeys(row["site"] for row in rows), "all"]:
        part = [row for row in rows if site in (row["site"], "all")]
        means = [f"{sum(row[run] for row in part) / len(part):.2f}" for run in ("solution", "nothing", "wrong")]
        lines.append(f"| {site} | {len(part)} | {sum(row['lite'] for row in part)} | {' | '.join(means)} |")
    return "\n".join([*lines, "", f"Mean scores in real Chromium. {_made(results['made'])}", ""])


def bench_section() -> str:
    """A line a measurement, as ratios."""
    results = _read("bench")
    lines = ["| what | ours | other | times as fast |", "| --- | --- | --- | --- |"]
    for row in results["rows"]:
        ours, other = (f"{row[key]:{',.0f' if row[key] >= 100 else '.3g'}} {row['unit']}" for key in ("ours", "other"))
        lines.append(f"| {row['name']} | {ours} | {other} | {row['ratio']:.3g} |")
    return "\n".join([*lines, "", _made(results["made"]), ""])


def world_model_section() -> str:
    """One step ahead by split, and after five and ten free-running steps, beside the baselines; findings first."""
    from dynaweb_lite.world_model_report import findings

    results = _read("world_model")
    shown = [r for r in results["rows"] if r["split"] != "free-running" or r["step"] in (5, 10)]
    lines = [
        "| method | transitions | step | n | changed-lines F1 [95 %] | exact |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in shown:
        interval = f"{r['changed_f1']:.3f} [{r['low']:.3f}, {r['high']:.3f}]"
        lines.append(f"| {r['method']} | {r['split']} | {r['step']} | {r['n']} | {interval} | {r['exact']:.3f} |")
    return "\n".join([*(f"- {text}" for text in findings(results)), "", *lines, "", _made(results["made"]), ""])


SECTIONS: dict[str, Callable[[], str]] = {
    "quickstart": quickstart_section,
    "webarena_replicas": replicas_section,
    "bench": bench_section,
    "world_model": world_model_section,
}
