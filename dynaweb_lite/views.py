"""Pages drawn for people: imagined beside real, with the differences marked in text as well as in colour.

    side_by_side(real, imagined, screenshot, before)     one page
    stepper_html(pairs, free_running)                    a whole trajectory, in tabs
    what_if_html(page, outcomes)                         what clicks on a page lead to

HTML without scripts; `interactive` has the ipywidgets views of which these are the static twins, and `html_to_png`
(`picture`) makes pictures of them.

Marks: `=` in both · `~` same kind of element, other words · `−` only in the real page (the model missed it) ·
`+` only in the imagined page (the model made it up). `Δ` beside a line: it is new on the real page after the action.
All page text is escaped: pages are untrusted.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape

from dynaweb_lite.actions import ActionError, describe_action, parse_action
from dynaweb_lite.observation import Element, Observation, parse_observation
from dynaweb_lite.state_change import changed_lines, unnumbered

MARK_WORDS = {"=": "same", "~": "differs", "−": "missed", "+": "made up"}
_CLASS = {"=": "same", "~": "differs", "−": "missed", "+": "invented"}

CSS = """
.dw{--ink:#1c2126;--soft:#5b6670;--line:#d5dade;--back:#fff;--panel:#f5f7f8;--link:#0b5cad;--differs:#8a5a00;
--missed:#b3261e;--invented:#1b6e3c;color:var(--ink);font:14px/1.45 system-ui,sans-serif;max-width:1080px}
%DARK%
.dw *{box-sizing:border-box}.dw p{margin:.35em 0}
.dw .pages{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:12px;margin:8px 0}
.dw figure{margin:0;min-width:0}.dw figcaption{font-weight:600;margin-bottom:4px}
.dw .window{border:1px solid var(--line);border-radius:8px;overflow:hidden;background:var(--back)}
.dw .bar{background:var(--panel);border-bottom:1px solid var(--line);padding:5px 10px;color:var(--soft);font-size:12px;
white-space:nowrap;overflow:hidden;text-overflow:ellipsis}.dw .bar b{color:var(--ink)}
.dw .body{padding:8px 10px;max-height:420px;overflow:auto}.dw .body>span{display:inline-block;margin:2px 5px 2px 0;
vertical-align:middle;border-radius:4px;max-width:100%;overflow-wrap:anywhere}
.dw .body>.heading{display:block;font-weight:700;font-size:15px;margin-top:6px}.dw .body>.block{display:block}
.dw .link{color:var(--link);text-decoration:underline}.dw .button,.dw .input{border:1px solid var(--soft);padding:0 8px}
.dw .button{background:var(--panel)}.dw .input{min-width:90px;color:var(--soft)}
.dw .image{border:1px dashed var(--line);
padding:2px 8px;color:var(--soft)}
.dw .window .differs,.dw .window .missed,.dw .window .invented{outline:2px solid;padding:0 4px}
.dw .differs{outline-color:var(--differs)!important}.dw .missed{outline-color:var(--missed)!important}
.dw .invented{outline-color:var(--invented)!important}
.dw sup{display:inline-block;font-weight:700;margin-right:3px;line-height:0}.dw img{width:100%;display:block}
.dw table.lines{border-collapse:collapse;width:100%;font:12px/1.5 ui-monospace,monospace;table-layout:fixed}
.dw table.lines th,.dw table.lines td{padding:1px 6px;text-align:left;vertical-align:top;border:0;
overflow-wrap:anywhere;white-space:pre-wrap;tab-size:2;background:none;color:inherit}
.dw table.lines th{font-family:system-ui,sans-serif}
.dw table.lines .mark{width:2.8em;text-align:center;font-weight:700;overflow-wrap:normal}
.dw tr.differs td{color:var(--differs)}.dw tr.missed td{color:var(--missed)}.dw tr.invented td{color:var(--invented)}
.dw tr.same td{color:var(--soft)}.dw summary{cursor:pointer;color:var(--soft)}
.dw .verdict{font-weight:600}.dw .key{color:var(--soft);font-size:12px}.dw code{font-size:13px}
.dw .steps>label{display:inline-block;padding:2px 10px;margin:0 4px 6px 0;border:1px solid var(--line);
border-radius:6px;cursor:pointer}.dw .steps>input{position:absolute;opacity:0;pointer-events:none}
.dw .steps>input:focus-visible+label{outline:2px solid var(--link)}
.dw .steps>input:checked+label{font-weight:700;border-color:var(--link)}
""".replace(
    "%DARK%",
    "\n".join(
        opening + "{--ink:#e4e8eb;--soft:#9aa6b0;--line:#3a434b;--back:#171b1f;--panel:#20262b;--link:#7fb6ef;"
        "--differs:#e3b341;--missed:#ff8a80;--invented:#6fd08f}" + closing
        for opening, closing in (
            ("@media (prefers-color-scheme:dark){.dw", "}"),
            ('[data-jp-theme-light="false"] .dw', ""),
        )
    ),
).replace("\n", "")
"""Rules for `.dw`: light by default, dark where the system or JupyterLab is."""


@dataclass(frozen=True)
class Html:
    """Markup that a notebook shows. `body` lacks the style rules, `html` has them."""

    body: str

    @property
    def html(self) -> str:
        return f"<style>{CSS}</style>{self.body}"

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True)
class Pair:
    """A real transition and what the world model imagined in its place. `screenshot`: PNG bytes of the real page."""

    goal: str
    before: Observation
    action: str
    real: Observation
    imagined: Observation
    screenshot: bytes | None = None

    def to_json(self) -> dict:
        pages = {name: getattr(self, name).text for name in ("before", "real", "imagined")}
        shot = base64.b64encode(self.screenshot).decode() if self.screenshot else None
        return {"goal": self.goal, "action": self.action, **pages, "screenshot": shot}

    @classmethod
    def from_json(cls, row: dict) -> Pair:
        """Read a pair. Raises KeyError or ObservationError when the row is not one."""
        before, real, imagined = (parse_observation(row[name]) for name in ("before", "real", "imagined"))
        shot = base64.b64decode(row["screenshot"]) if row.get("screenshot") else None
        return cls(row.get("goal", ""), before, row["action"], real, imagined, shot)


Aligned = tuple[str, Element | None, Element | None]


def align(real: Observation, imagined: Observation) -> list[Aligned]:
    """The two pages line by line: (mark, real element or None, imagined element or None), in document order."""
    old, new = [unnumbered(e) for e in real.elements], [unnumbered(e) for e in imagined.elements]
    rows: list[Aligned] = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [("=", a, b) for a, b in zip(real.elements[i:j], imagined.elements[k:m], strict=True)]
        else:
            rows += _align_changed(real.elements[i:j], imagined.elements[k:m])
    return rows


def _align_changed(real: Sequence[Element], imagined: Sequence[Element]) -> Iterator[Aligned]:
    """Within a stretch that differs, elements of equal roles in order are one element with other words."""
    matcher = SequenceMatcher(None, [e.role for e in real], [e.role for e in imagined], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield from (("~", a, b) for a, b in zip(real[i:j], imagined[k:m], strict=True))
        else:
            yield from (("−", a, None) for a in real[i:j])
            yield from (("+", None, b) for b in imagined[k:m])


def verdict(real: Observation, imagined: Observation, before: Observation | None = None) -> str:
    """One sentence: whether the imagined page is the real one, and if not, what is wrong with it."""
    if real == imagined:
        return "The imagined page equals the real page."
    marks = [mark for mark, _, _ in align(real, imagined)]
    counts = [f"{marks.count(m)} {MARK_WORDS[m]} ({m})" for m in "~−+" if marks.count(m)]
    if real.header_lines != imagined.header_lines:
        counts.insert(0, "another title or address")
    if real.cut != imagined.cut:
        counts.append(f"{imagined.cut} elements cut instead of {real.cut}")
    text = f"{marks.count('=')} of {len(real.elements)} real lines are imagined as they are; {', '.join(counts)}."
    if before is not None and before == imagined:
        text += " The model expected that nothing changes."
    return text


def wireframe(page: Observation, marks: dict[int, str] | None = None) -> str:
    """A page as boxes in a browser window: the one drawing for real and imagined pages. `marks`: element id -> mark."""
    boxes = "".join(_box(e, (marks or {}).get(e.id, "=")) for e in page.elements)
    notes = "".join(f'<p class="key">{escape(line)}</p>' for line in page.footer_lines)
    bar = f'<div class="bar"><b>{escape(page.title)}</b> · {escape(page.url)}</div>'
    return f'<div class="window">{bar}<div class="body">{boxes}{notes}</div></div>'


def _box(element: Element, mark: str) -> str:
    kind, text = look(element)
    noted = f"<sup>{mark}</sup>" if mark != "=" else ""
    state = "" if mark == "=" else " " + _CLASS[mark]
    return f'<span class="{kind}{state}" title="[{element.id}] {escape(element.label)}">{noted}{escape(text)}</span> '


def look(element: Element) -> tuple[str, str]:
    """CSS class and text of an element's box, by role."""
    name, value = element.name, element.get("value")
    match element.role:
        case "link" | "button" | "heading":
            return element.role, name or f"({element.role})"
        case "textbox" | "searchbox" | "combobox" | "listbox" | "spinbutton":
            arrow = " ▾" if element.role in ("combobox", "listbox") else ""
            return "input", f"{name}: {value or '…'}{arrow}" if name else f"{value or '…'}{arrow}"
        case "checkbox" | "radio" | "switch":
            on = "true" in (element.get("checked"), element.get("selected"))
            box = ("◉" if on else "○") if element.role == "radio" else ("☑" if on else "☐")
            return "choice", f"{box} {name}"
        case "img" | "image":
            return "image", f"picture: {name}" if name else "picture"
        case _:
            return ("block" if len(name) > 30 else "text"), name or f"({element.role})"


def lines_table(rows: Sequence[Aligned], fresh: frozenset[str] = frozenset()) -> str:
    """The aligned tree lines as a table; runs of more than four equal lines without Δ are folded into one row."""
    head = '<tr><th class="mark"></th><th>real</th><th>imagined</th></tr>'
    body, run = [], []
    for row in [*rows, None]:
        if row and row[0] == "=" and unnumbered(row[1]) not in fresh:
            run.append(row)
            continue
        folded = f'<tr class="same"><td class="mark">=</td><td colspan="2">… {len(run)} lines alike …</td></tr>'
        body += [folded] if len(run) > 4 else [_table_row(r, fresh) for r in run]
        body += [_table_row(row, fresh)] if row else []
        run = []
    return f'<table class="lines">{head}{"".join(body)}</table>'


def _table_row(row: Aligned, fresh: frozenset[str]) -> str:
    mark, real, imagined = row
    new = " Δ" if real and unnumbered(real) in fresh else ""
    cells = "".join(f"<td>{escape(e.line) if e else ''}</td>" for e in (real, imagined))
    return f'<tr class="{_CLASS[mark]}"><td class="mark">{mark}{new}</td>{cells}</tr>'


def side_by_side(
    real: Observation,
    imagined: Observation,
    screenshot: bytes | None = None,
    before: Observation | None = None,
) -> Html:
    """A real page and its imagined twin: screenshot, two drawings, and the tree lines that differ or are new.

    `screenshot`: PNG bytes of the real page. `before`: the page that the action was done on; lines that are new since
    then carry Δ. Long runs of equal lines are folded. No scripts, nothing loaded from elsewhere.
    """
    return Html(f'<div class="dw">{_comparison(real, imagined, screenshot, before)}</div>')


def _comparison(real: Observation, imagined: Observation, screenshot: bytes | None, before: Observation | None) -> str:
    rows = align(real, imagined)
    fresh = frozenset(changed_lines(before, real)[1]) if before else frozenset()
    panels = [
        ("Real page, drawn from its tree", wireframe(real, {a.id: mark for mark, a, _ in rows if a})),
        ("Imagined page, drawn the same way", wireframe(imagined, {b.id: mark for mark, _, b in rows if b})),
    ]
    if screenshot:
        data = base64.b64encode(screenshot).decode()
        shot = f'<img alt="Screenshot of the real page" src="data:image/png;base64,{data}">'
        panels.insert(0, ("Real page, screenshot", f'<div class="window">{shot}</div>'))
    figures = "".join(f"<figure><figcaption>{title}</figcaption>{body}</figure>" for title, body in panels)
    key = " · ".join(f"{mark} {word}" for mark, word in MARK_WORDS.items()) + (
        " · Δ new after the action" * bool(before)
    )
    header = "" if real.header_lines == imagined.header_lines else _headers(real, imagined)
    marked = lines_table(rows, fresh)
    opened = " open" if real != imagined else ""
    return (
        f'<p class="verdict">{escape(verdict(real, imagined, before))}</p><div class="pages">{figures}</div>'
        f"<details{opened}><summary>Line by line</summary>{header}{marked}"
        f'<p class="key">{key}</p></details>'
    )


def _headers(real: Observation, imagined: Observation) -> str:
    cells = "".join(f"<td>{escape(chr(10).join(page.header_lines))}</td>" for page in (real, imagined))
    return f'<table class="lines"><tr class="differs"><td class="mark">~</td>{cells}</tr></table>'


def pair_html(pair: Pair, number: int = 0, total: int = 0) -> str:
    """One step, without style rules: goal, action, then the two pages. `number` of `total`: in a trajectory."""
    try:
        action = describe_action(parse_action(pair.action), pair.before)
    except ActionError:
        action = pair.action
    goal = f"<p><b>Goal:</b> {escape(pair.goal)}</p>" if pair.goal else ""
    which = f"Step {number} of {total}" if number else "Action"
    step = f"<p><b>{which}:</b> <code>{escape(action)}</code> on {escape(pair.before.title)}</p>"
    return goal + step + _comparison(pair.real, pair.imagined, pair.screenshot, pair.before)


def stepper_html(pairs: Sequence[Pair], free_running: Sequence[Pair] = ()) -> Html:
    """A trajectory as tabs, by style rules alone; where those are stripped, all steps stand one below the other.

    `pairs`: each page imagined from the real one before it (teacher-forced); `free_running`: from the imagined one.
    """
    steps = [pair_html(pair, i, len(pairs)) for i, pair in enumerate(pairs, 1)]
    labels = [str(i) for i in range(1, len(pairs) + 1)]
    if free_running:
        labels = [f"{i}, teacher-forced" for i in labels]
        labels += [f"{i}, free-running" for i in range(1, len(free_running) + 1)]
        steps += [pair_html(pair, i, len(free_running)) for i, pair in enumerate(free_running, 1)]
    return Html(_tabs([(escape(label), "") for label in labels], steps))


def what_if_html(page: Observation, outcomes: Sequence[Pair]) -> Html:
    """A page as a wireframe whose elements can be clicked to see what comes, by style rules alone.

    `outcomes`: for actions on elements of `page`, what really came beside what was imagined.
    """
    number = {element_of(pair): i for i, pair in enumerate(outcomes)}
    labels = [("", "")] * len(outcomes)
    rest = []
    for element in page.elements:
        kind, text = look(element)
        if element.id in number:
            labels[number[element.id]] = (escape(text), kind)
        else:
            rest.append(f'<span class="{kind}">{escape(text)}</span>')
    sections = [pair_html(pair) for pair in outcomes]
    still = f'<p class="key">Not asked about: {" ".join(rest)}</p>' if rest else ""
    head = f"<p><b>{escape(page.title)}</b> · {escape(page.url)}: what happens when you click …</p>"
    return Html(_tabs(labels, sections, head, still))


def element_of(pair: Pair) -> int:
    """The id of the element that a pair's action touches; 0 where it touches none."""
    try:
        return parse_action(pair.action).element_id or 0
    except ActionError:
        return 0


def _tabs(labels: Sequence[tuple[str, str]], sections: Sequence[str], head: str = "", foot: str = "") -> str:
    """Sections of which one is shown at a time; labels are (markup, CSS class). Needs no script."""
    name = "dw" + hashlib.sha1("".join(sections).encode()).hexdigest()[:8]
    tabs, rules = [], []
    for i, (label, kind) in enumerate(labels, 1):
        checked = " checked" if i == 1 else ""
        tabs.append(
            f'<input type="radio" name="{name}" id="{name}-{i}"{checked}>'
            f'<label for="{name}-{i}" class="{kind}">{label}</label>'
        )
        rules.append(f"#{name}-{i}:checked~.step-{i}{{display:block}}")
    screen = f"@media screen{{.{name}>section{{display:none}}{''.join(f'.{name}>{rule}' for rule in rules)}}}"
    body = "".join(f'<section class="step-{i}">{step}</section>' for i, step in enumerate(sections, 1))
    shown = f'<div class="steps {name}">{"".join(tabs)}{foot}{body}</div>'
    return f'<style>{screen}</style><div class="dw">{head}{shown}</div>'
