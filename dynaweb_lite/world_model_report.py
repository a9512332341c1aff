"""The world model's report: tables, figures and where they come from, one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from dynaweb_lite.plots import LOOKS, RC, figure, look, svg
from dynaweb_lite.views import CSS, Pair, stepper_html
from dynaweb_lite.world_model_study import AGAIN, MODEL, NEAREST, NOTHING

SHOWN = {"method": "method", "split": "transitions", "step": "step", "changed_f1": "changed-lines F1", "exact": "exact",
         "line_f1": "line F1", "n": "n"}  # fmt: skip


@matplotlib.rc_context(RC)
def drift_figure(rows: Sequence[Mapping]) -> Figure:
    """Changed-lines F1 after 1 to 10 imagined steps, with intervals, for every method."""
    by_method: dict[str, list[Mapping]] = {}
    for row in rows:
        if row["split"] == "free-running" and row["method"] != AGAIN:  # the twin of the shipped one
            by_method.setdefault(row["method"], []).append(row)
    last = max(row["step"] for row in by_method[MODEL])
    first, final = by_method[MODEL][0]["changed_f1"], by_method[MODEL][-1]["changed_f1"]
    made, axes = figure(f"A free-running dream goes from {first:.2f} to {final:.2f} in {last} steps")
    for number, (method, points) in enumerate(by_method.items()):
        style = LOOKS[look(method)] if method in (MODEL, NOTHING) else LOOKS["other" if method == NEAREST else "expert"]
        x = [row["step"] + 0.06 * number for row in points]
        y = [row["changed_f1"] for row in points]
        errors = [
            [row["changed_f1"] - row["low"] for row in points],
            [row["high"] - row["changed_f1"] for row in points],
        ]
        axes.errorbar(x, y, errors, label=method, capsize=2, markersize=4, **style)
    axes.set(xlabel="imagined steps since the last real page", ylabel="changed-lines F1 (0 to 1)", ylim=(-0.03, 1.03))
    made.legend(loc="outside lower left", ncols=2)
    return made


@matplotlib.rc_context(RC)
def calibration_figure(found: Mapping) -> Figure:
    """Share of exact pages by the model's own confidence."""
    made, axes = figure(f"Its own confidence tells right from wrong (area under ROC {found['auc']:.2f})")
    x = range(1, len(found["bins"]) + 1)
    axes.plot(x, [b["exact"] for b in found["bins"]], label="share of exact pages", **LOOKS["real"])
    axes.plot(x, [b["confidence"] for b in found["bins"]], label="mean confidence", **LOOKS["imagined"])
    axes.set_xticks(list(x), [f"{b['confidence']:.2f}" for b in found["bins"]])
    axes.set(
        xlabel="fifths of the predictions, by confidence (mean shown)", ylabel="share (0 to 1)", ylim=(-0.03, 1.03)
    )
    made.legend(loc="outside lower left", ncols=2)
    return made


def table(rows: Sequence[Mapping], columns: Mapping[str, str]) -> str:
    """Rows as an HTML table; numbers with three digits, intervals after the headline measure."""
    head = "".join(f"<th>{escape(title)}</th>" for title in columns.values())
    body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(row, key))}</td>' for key in columns)}</tr>" for row in rows)
    return f'<table class="lines">{"<tr>" + head + "</tr>"}{body}</table>'


def table_text(rows: Sequence[Mapping], columns: Mapping[str, str]) -> str:
    """The same as text."""
    cells = [list(columns.values()), *([_cell(row, key) for key in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def _cell(row: Mapping, key: str) -> str:
    value = row.get(key, "")
    shown = f"{value:.3f}" if isinstance(value, float) else str(value)
    return f"{shown} [{row['low']:.3f}, {row['high']:.3f}]" if key == "changed_f1" and "low" in row else shown


def findings(results: Mapping) -> list[str]:
    """What the numbers say, a sentence each."""
    one = {r["method"]: r for r in results["rows"] if r["split"] == "held out"}
    five = {r["method"]: r for r in results["rows"] if r["split"] == "free-running" and r["step"] == 5}
    exploit, speed = results["exploitation"], results["throughput"]
    return [
        f"One step ahead: changed-lines F1 {one[MODEL]['changed_f1']:.3f}, nearest transition "
        f"{one[NEAREST]['changed_f1']:.3f}, nothing changes {one[NOTHING]['changed_f1']:.3f}.",
        f"After five free-running steps: {five[MODEL]['changed_f1']:.3f}, {five[NEAREST]['changed_f1']:.3f} and "
        f"{five[NOTHING]['changed_f1']:.3f}.",
        f"Confidence orders right before wrong predictions with an area under the ROC curve of "
        f"{results['calibration']['auc']:.3f}.",
        f"Of {exploit['n']} dreams of the shipped policy, replayed in the browser, {exploit['agreement']:.2f} have the "
        f"true reward, and {exploit['page_agreement']:.2f} of their pages are the true ones.",
        f"Dreaming is {speed['ratio']:.0f} times as fast as the naive loop ({speed['ours']:.0f} against "
        f"{speed['other']:.1f} predictions a second).",
    ]


def write_report(results: Mapping, folder: Path, pairs: Sequence[Pair] = (), dreamt: Sequence[Pair] = ()) -> Path:
    """Write report.html into the folder. `pairs`, `dreamt`: one walk, teacher-forced and free-running."""
    steps = [r for r in results["rows"] if r["split"] == "free-running"]
    parts = [
        "<h1>The world model, measured</h1>",
        "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in findings(results)) + "</ul>",
        "<h2>One step ahead</h2>" + table([r for r in results["rows"] if r["split"] != "free-running"], SHOWN),
        "<h2>Drift</h2>" + svg(drift_figure(results["rows"])),
        f"<details><summary>Every step</summary>{table(steps, SHOWN)}</details>",
        "<h2>Does it know its errors?</h2>" + svg(calibration_figure(results["calibration"])),
        "<p>What is left of a dream that stops when its confidence falls below a threshold:</p>",
        table(results["stopping"], {k: k.replace("_", " ") for k in ("threshold", "kept", "changed_f1", "exact", "n")}),
        "<h2>Would the evaluators judge alike?</h2>",
        table(results["facts"], {k: k.replace("_", " ") for k in ("method", "found", "precision", "f1", "n_settled")}),
        "<h2>Odd actions</h2>" + table(results["odd_actions"], SHOWN),
        f"<h2>One walk</h2>{stepper_html(pairs, dreamt).body}" if pairs else "",
        "<h2>Where this comes from</h2>" + table([results["made"]], {k: k for k in results["made"] if k != "versions"}),
    ]
    style = (
        f"<style>{CSS} body{{margin:1.5rem auto;max-width:1080px;background:var(--back)}} svg{{max-width:100%}}</style>"
    )
    page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>World model</title>{style}'
    path = folder / "report.html"
    path.write_text(f'{page}<body class="dw">{"".join(parts)}</body></html>', encoding="utf-8")
    return path
