"""A run as one self-contained page: report.html, which asks nothing of any other file or host.

It reads, and says so where one is missing: results.json {study, made, rows}, fidelity.json, */metrics.csv,
pairs.json [{goal, before, action, real, imagined, screenshot}] (pages as text, screenshot a base64 PNG).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from dynaweb_lite import plots
from dynaweb_lite.observation import ObservationError
from dynaweb_lite.views import CSS, Pair, stepper_html

METHOD_WORDS = {
    "base": "the base model, nothing learnt here",
    "sft": "behaviour cloning on the expert trajectories",
    "dreams_only": "reinforcement learning in dreams, no experts in the groups",
    "dynaweb": "dreams and real expert trajectories together",
}

PREDICTORS = {
    "all": "world model",
    "unseen": "world model, pages and actions unseen in training",
    "nothing_changes": "nothing changes",
}
MEASURES = {
    "changed_f1": "changed lines, F1",
    "line_f1": "all lines, F1",
    "exact": "whole page exact",
    "parsed": "reply readable",
}

PAGE_CSS = """
:root{color-scheme:light dark;--page:#fff;--text:#1c2126;--muted:#5b6670;--rule:#d5dade;--accent:#0072b2;--tint:#f2f6f9}
@media (prefers-color-scheme:dark){:root{--page:#171b1f;--text:#e4e8eb;--muted:#9aa6b0;--rule:#3a434b;--accent:#6db9e8;
--tint:#1f262c}}
body{background:var(--page);color:var(--text);font:16px/1.55 system-ui,sans-serif;margin:0 auto;max-width:1080px;
padding:32px 20px 60px}
h1{font-size:28px;line-height:1.25;margin:0 0 4px}h2{font-size:20px;margin:44px 0 8px;padding-top:14px;
border-top:1px solid var(--rule)}
p{max-width:72ch;margin:.5em 0}.finding{font-size:18px}.muted{color:var(--muted);font-size:14px}
.scroll{overflow-x:auto}
table.data{border-collapse:collapse;font-size:14px;margin:10px 0;font-variant-numeric:tabular-nums}
table.data th,table.data td{padding:5px 14px 5px 0;text-align:left;border-bottom:1px solid var(--rule)}
table.data td.number,table.data th.number{text-align:right;white-space:nowrap}
table.data th{color:var(--muted);font-weight:600}
tr.difference td{font-weight:700}
.figure{margin:12px 0}.figure svg{max-width:100%;height:auto}
.curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:8px}
.loop{display:grid;grid-template-columns:repeat(auto-fit,minmax(280px,1fr));gap:8px;list-style:none;padding:0;
margin:14px 0}.loop li{background:var(--tint);border-left:3px solid var(--accent);border-radius:4px;padding:8px 12px;
font-size:14px}.loop b{display:block}
summary{cursor:pointer}dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;font-size:14px}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
""".replace("\n", "")

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(run_dir: str | Path) -> Path:
    """Write `run_dir`/report.html from what the run left there. Missing parts are named in a sentence."""
    run_dir = Path(run_dir)
    results = read_json(run_dir / "results.json") or {}
    rows = results.get("rows", [])
    sections = [
        ("What was done", loop_section(rows)),
        ("Results on real pages", results_section(rows)),
        ("Learning curves", curves_section(run_dir)),
        ("How faithful the world model is", fidelity_section(read_json(run_dir / "fidelity.json"))),
        ("Real pages and imagined ones", pages_section(read_json(run_dir / "pairs.json"))),
        ("Where this comes from", provenance_section(results.get("made"))),
    ]
    title = f"DynaWeb Lite: {results.get('study', run_dir.name)}"
    body = "".join(f"<section><h2>{name}</h2>{content}</section>" for name, content in sections)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{PAGE_CSS}{CSS}</style></head>'
        f'<body><h1>{escape(title)}</h1><p class="finding">{escape(finding(rows))}</p>{body}</body></html>\n'
    )
    path = run_dir / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def read_json(path: Path):
    """A JSON file's content; None where it is missing or half-written."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None


def overall(rows: Sequence[Mapping], method: str) -> Mapping | None:
    """A method's row over all tasks."""
    return next((r for r in rows if r["method"] == method and r["tasks"] == "all"), None)


def finding(rows: Sequence[Mapping]) -> str:
    """The result in a sentence: DynaWeb against SFT, with the paired interval where it is known."""
    ours, baseline = overall(rows, "dynaweb"), overall(rows, "sft")
    if not (ours and baseline):
        return "No comparison of DynaWeb with its baseline is in this run yet."
    text = (
        f"DynaWeb solves {ours['success']:.0%} of {ours['n']} held-out tasks on real pages; "
        f"imitation of the same expert trajectories solves {baseline['success']:.0%}."
    )
    if paired := overall(rows, "dynaweb - sft"):
        low, high = paired["low"], paired["high"]
        sure = "above zero" if low > 0 else "below zero" if high < 0 else "not clearly different from zero"
        seeds = f"{paired['seeds']} seed{'s' * (paired['seeds'] != 1)}"
        text += f" The paired difference is {paired['success']:+.2f} [{low:+.2f}, {high:+.2f}], {sure} ({seeds})."
    return text


def loop_section(rows: Sequence[Mapping]) -> str:
    ours = overall(rows, "dynaweb") or {}
    real, dreamt = (f" ({ours[key]:,} steps)" if ours.get(key) else "" for key in ("real_steps", "dream_steps"))
    stages = [
        ("Collect", f"Explore replicas of a shop and a forum in a real browser{real}; record a few experts."),
        ("Learn the web", "A world model learns how each page changes after an action."),
        ("Imitate", "The policy copies the experts. This is also the baseline."),
        ("Dream", f"The policy acts in pages that the world model imagines{dreamt}; it judges its own last page."),
        ("Improve", "GSPO updates from dreams, with real expert trajectories in the groups."),
        ("Score", "Held-out tasks in a real browser. Nothing was chosen on them."),
    ]
    items = "".join(f"<li><b>{i}. {name}</b>{text}</li>" for i, (name, text) in enumerate(stages, 1))
    return f'<ol class="loop">{items}</ol>'


def results_section(rows: Sequence[Mapping]) -> str:
    if not rows:
        return "<p>Not scored yet: no results.json in this run.</p>"
    methods = [r for r in rows if r["tasks"] == "all" and " - " not in r["method"]]
    differences = [r for r in rows if " - " in r["method"]]
    parts = [r for r in rows if r["tasks"] != "all"]
    ours, baseline = overall(rows, "dynaweb"), overall(rows, "sft")
    title = "Success rates by method"
    if ours and baseline and baseline["success"] > 0:
        title = f"DynaWeb's success is {ours['success'] / baseline['success']:.1f} times its baseline's"
    drawn = f'<div class="figure">{plots.svg(plots.results_bars(methods, title))}</div>'
    about = "The interval of a difference is paired: the same tasks and seeds on both sides, both resampled."
    detail = f"<details><summary>By site and kind of task</summary>{rows_table(parts)}</details>" if parts else ""
    return drawn + rows_table([*methods, *differences]) + f'<p class="muted">{about}</p>{detail}'


def rows_table(rows: Sequence[Mapping]) -> str:
    """Results rows as a table; rates with their intervals, differences with signs."""
    head = ["method", "tasks", "n", "seeds", "success", "95 % interval", "real steps", "dream steps", "minutes"]
    lines = []
    for row in rows:
        difference = " - " in row["method"]
        sign = "+" if difference else ""
        words = METHOD_WORDS.get(row["method"], "paired difference" if difference else "")
        counts = [f"{row[key]:,}" if key in row else "" for key in ("real_steps", "dream_steps", "minutes")]
        interval = f"{row['low']:{sign}.3f} to {row['high']:{sign}.3f}"
        numbers = [f"{row['n']:,}", str(row["seeds"]), f"{row['success']:{sign}.3f}", interval, *counts]
        cells = "".join(f'<td class="number">{escape(n)}</td>' for n in numbers)
        name = f'<td>{escape(row["method"])} <span class="muted">{words}</span></td><td>{escape(row["tasks"])}</td>'
        lines.append(f'<tr class="{"difference" * difference}">{name}{cells}</tr>')
    heads = "".join(f'<th class="{"number" * (i > 1)}">{name}</th>' for i, name in enumerate(head))
    return f'<div class="scroll"><table class="data"><tr>{heads}</tr>{"".join(lines)}</table></div>'


def curves_section(run_dir: Path) -> str:
    figures = []
    for path in sorted(run_dir.glob("*/metrics.csv")):
        columns = plots.read_metrics(path)
        curves = {legend: columns[name] for name, legend in plots.CURVES.items() if name in columns}
        if curves:
            made = plots.learning_curves(curves, curves_title(path.parent.name, columns))
            figures.append(f'<div class="figure">{plots.svg(made)}</div>')
    return f'<div class="curves">{"".join(figures)}</div>' if figures else "<p>No metrics.csv in this run.</p>"


def curves_title(run: str, columns: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """The finding of a run's curves: where validation success started, and its best, which is kept."""
    values = columns.get("validation", [])
    if not values:
        return f"{run}: rewards, without validation"
    best = max(values, key=lambda point: point[1])
    return f"{run}: validation {values[0][1]:.2f} at first, {best[1]:.2f} at best (update {best[0]})"


def fidelity_section(fidelity: Mapping | None) -> str:
    """What `world_model.fidelity` found, its parts beside each other; a part without transitions is left out."""
    if not fidelity:
        return "<p>Not measured in this run: no fidelity.json.</p>"
    whole = {**fidelity, "all": fidelity}
    parts = {
        who: {words: whole[part][name] for name, words in MEASURES.items()}
        for part, who in PREDICTORS.items()
        if whole.get(part)
    }
    low, high = whole["changed_f1_interval"]
    made = plots.fidelity_bars(parts, f"Changed-lines F1 is {whole['changed_f1']:.2f} one step ahead")
    text = (
        f"On {whole['n']:,} held-out transitions the F1 over lines that come and go is {whole['changed_f1']:.3f} "
        f"[{low:.3f}, {high:.3f}]. “Nothing changes” repeats the page before."
    )
    return f'<div class="figure">{plots.svg(made)}</div><p class="muted">{text}</p>'


def pages_section(rows: Sequence[Mapping] | None) -> str:
    try:
        pairs = [Pair.from_json(row) for row in rows or ()]
    except (KeyError, ValueError, ObservationError) as error:
        return f"<p>pairs.json could not be read: {escape(str(error))}</p>"
    if not pairs:
        return "<p>No pages to compare in this run: no pairs.json.</p>"
    right = sum(pair.real == pair.imagined for pair in pairs)
    text = f"{right} of these {len(pairs)} imagined pages equal the real ones to the letter. Choose a step:"
    return f"<p>{text}</p>{stepper_html(pairs).body}"


def provenance_section(made: Mapping | None) -> str:
    if not made:
        return "<p>Not recorded in this run.</p>"
    items = "".join(f"<dt>{escape(str(key))}</dt><dd>{escape(str(value))}</dd>" for key, value in made.items())
    note = "Replicas stand in for WebArena's sites; these numbers are not WebArena scores."
    return f'<dl>{items}</dl><p class="muted">{note}</p>'
