"""All figures, in one look: real black solid, imagined blue dashed, expert orange dash-dot, baseline grey dotted.

Colours are Okabe and Ito's. Backgrounds are transparent, text is a grey that reads on white and on black, black lines
wear a thin white rim. Callers pass the title, and the title says the finding.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

LOOKS = {
    "real": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "imagined": {"color": "#0072b2", "linestyle": "--", "marker": "s"},
    "expert": {"color": "#e69f00", "linestyle": "-.", "marker": "^"},
    "baseline": {"color": "#8a8a8a", "linestyle": ":", "marker": "D"},
    "other": {"color": "#009e73", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
}
"""Colour, line and marker for each origin, so that a figure reads in grey too."""

CURVES = {
    "validation": "validation success, true pages",
    "reward_with_experts": "reward in dreams, goals with experts",
    "reward_without_experts": "reward in dreams, other goals",
    "agreement": "dreams that true pages confirm",
}
"""Columns of a metrics.csv that a learning curve shows, and what its legend calls them."""

GREY = "#757575"
_RIM = [patheffects.withStroke(linewidth=3.2, foreground="#ffffff")]
RC = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "dynaweb",
}


def look(name: str) -> str:
    """The origin that a method or a column belongs to: a key of LOOKS."""
    words = name.lower()
    for origin, hints in (
        ("real", ("validation", "real")),
        ("other", ("confirm", "unseen")),
        ("expert", ("expert",)),
        ("imagined", ("dream", "imagined", "dyna", "world model")),
        ("baseline", ("sft", "base", "nothing", "untrained")),
    ):
        if any(hint in words for hint in hints):
            return origin
    return "other"


def figure(title: str, width: float = 6.4, height: float = 3.6) -> tuple[Figure, Axes]:
    """An empty figure with its title, width and height in inches; it needs no display and no pyplot."""
    made = Figure(figsize=(width, height), layout="constrained")
    made.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return made, made.add_subplot()


@matplotlib.rc_context(RC)
def svg(made: Figure) -> str:
    """The figure as SVG text to put into a page: its text and black lines take the page's own ink, dark or light."""
    stream = io.StringIO()
    made.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    for fixed, ink in ((GREY, "currentColor"), ("#000000", "currentColor"), ("#ffffff", "none")):
        text = text.replace(fixed, ink)
    return text


@matplotlib.rc_context(RC)
def save(made: Figure, path: str | Path) -> Path:
    """Write a figure (format by suffix, 150 dots an inch), background transparent."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    made.savefig(path, dpi=150, transparent=True)
    return Path(path)


def read_metrics(path: str | Path) -> dict[str, list[tuple[int, float]]]:
    """Columns of a metrics.csv as {name: [(update, value), …]}; empty and unreadable cells are left out.

    The x axis is the column `update` where there is one, else the row number.
    """
    columns: dict[str, list[tuple[int, float]]] = {}
    with Path(path).open(newline="", encoding="utf-8", errors="replace") as file:
        for number, row in enumerate(csv.DictReader(file)):
            at = _number(row.get("update"))
            for name, cell in row.items():
                if name and (value := _number(cell)) is not None:
                    columns.setdefault(name, []).append((int(number if at is None else at), value))
    return columns


def _number(cell: str | None) -> float | None:
    try:
        number = float(cell) if isinstance(cell, str) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def smooth(values: Sequence[float], window: int) -> list[float]:
    """Running means over the last `window` values, fewer at the beginning."""
    return [sum(values[max(0, i + 1 - window) : i + 1]) / min(window, i + 1) for i in range(len(values))]


@matplotlib.rc_context(RC)
def learning_curves(curves: Mapping[str, Sequence[tuple[int, float]]], title: str, window: int = 5) -> Figure:
    """Rewards and success rates over updates. `curves`: {legend: [(update, value in 0..1), …]}.

    Thin lines are the values of each update, thick ones their running mean over `window` updates; series with less
    than 2 × window points (validation) are drawn as points and a line, unsmoothed.
    """
    made, axes = figure(title)
    for name, points in curves.items():
        style = LOOKS[look(name)]
        x, y = [p[0] for p in points], [p[1] for p in points]
        if len(points) < 2 * window:
            axes.plot(x, y, label=name, markersize=5, **style)
        else:
            axes.plot(x, y, color=style["color"], linewidth=0.7, alpha=0.35)
            axes.plot(x, smooth(y, window), label=name, linewidth=2, **{**style, "marker": ""})
        if style["color"] == "#000000":
            axes.lines[-1].set_path_effects(_RIM)
    axes.set(xlabel="update (one optimiser step)", ylabel="reward, success rate (0 to 1)")
    axes.set_ylim(-0.03, 1.03)
    made.legend(loc="outside lower left", ncols=2)
    return made


def bar(axes: Axes, at: float, length: float, height: float, name: str, label: str | None = None) -> None:
    """One horizontal bar in the look of its origin; hatches tell origins apart in grey."""
    color = LOOKS[look(name)]["color"]
    hatch = {"baseline": "...", "imagined": "///", "expert": "\\\\\\"}.get(look(name), "")
    axes.barh(at, length, height=height, color=color, alpha=0.4, label=label)
    axes.barh(at, length, height=height, facecolor="none", edgecolor=color, hatch=hatch)


@matplotlib.rc_context(RC)
def results_bars(rows: Sequence[Mapping], title: str) -> Figure:
    """Success rates of methods as bars with their 95 % Wilson intervals. `rows`: score rows, one a bar."""
    made, axes = figure(title, 6.4, 1.1 + 0.45 * len(rows))
    for at, row in enumerate(reversed(rows)):
        bar(axes, at, row["success"], 0.6, row["method"])
        axes.plot([row["low"], row["high"]], [at, at], color="#000000", linewidth=1.8, path_effects=_RIM)
        axes.text(max(row["high"], row["success"]) + 0.015, at, f"{row['success']:.2f}", va="center", weight="bold")
    axes.set_yticks(range(len(rows)), [f"{r['method']} (n={r['n']}, seeds {r['seeds']})" for r in reversed(rows)])
    axes.set(xlabel="success rate on real pages, 95 % Wilson interval", xlim=(0, 1.08))
    return made


@matplotlib.rc_context(RC)
def fidelity_bars(fidelity: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Measures in 0..1 side by side, such as {"world model": {"exact page": .9}, "nothing changes": {…}}."""
    measures = list(dict.fromkeys(name for part in fidelity.values() for name in part))
    made, axes = figure(title, 6.4, 1.3 + 0.55 * len(measures))
    height = 0.7 / max(1, len(fidelity))
    for k, (who, part) in enumerate(fidelity.items()):
        for at, measure in enumerate(m for m in measures if m in part):
            y = -measures.index(measure) - k * height
            bar(axes, y, part[measure], height * 0.9, who, label=who if at == 0 else None)
            axes.text(part[measure] + 0.01, y, f"{part[measure]:.2f}", va="center")
    axes.set_yticks([-i - height * (len(fidelity) - 1) / 2 for i in range(len(measures))], measures)
    axes.set(xlabel="share of held-out transitions or F1 (0 to 1)", xlim=(0, 1.08))
    made.legend(loc="outside lower left", ncols=2)
    return made
