"""Views that answer: a stepper over a trajectory, and a page whose elements ask the world model what would happen.

Plain ipywidgets, versions 7.7 (Colab) and 8 alike. Static twins: `views.stepper_html`, `views.what_if_html`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import ipywidgets as widgets

from dynaweb_lite.actions import TYPING_ROLES, Action
from dynaweb_lite.observation import INTERACTIVE_ROLES, Element, Observation
from dynaweb_lite.tasks import Task
from dynaweb_lite.views import Html, Pair, look, pair_html
from dynaweb_lite.world_model import Predictor
from dynaweb_lite.worlds import World

TEACHER_FORCED, FREE_RUNNING = "teacher-forced", "free-running"
MODES = {
    TEACHER_FORCED: "each page is imagined from the real page before it",
    FREE_RUNNING: "each page is imagined from the imagined page before it",
}


def Stepper(pairs: Sequence[Pair], free_running: Sequence[Pair] = ()):  # noqa: N802 (a widget, used like a class)
    """A trajectory step by step: buttons and a slider; with `free_running` pairs, a switch between the two modes.

    Returns a VBox; its `.slider.value` (0-based) is the step shown. Raises ValueError without pairs.
    """
    if not pairs:
        raise ValueError("nothing to step through: no pairs of real and imagined pages")
    shown = {TEACHER_FORCED: pairs, FREE_RUNNING: free_running}
    slider = widgets.IntSlider(value=0, min=0, max=len(pairs) - 1, description="step", continuous_update=False)
    back, forth = (widgets.Button(description=text) for text in ("◀ back", "next ▶"))
    mode = widgets.ToggleButtons(options=list(MODES), tooltips=list(MODES.values()))
    page = widgets.HTML()

    def show(_change=None) -> None:
        rows = shown[mode.value]
        at = min(slider.value, len(rows) - 1)
        page.value = _drawn(pair_html(rows[at], at + 1, len(rows)))
        back.disabled, forth.disabled = at == 0, at == len(rows) - 1

    back.on_click(lambda _: setattr(slider, "value", max(0, slider.value - 1)))
    forth.on_click(lambda _: setattr(slider, "value", min(slider.max, slider.value + 1)))
    slider.observe(show, "value")
    mode.observe(show, "value")
    show()
    box = widgets.VBox([widgets.HBox([back, slider, forth]), *([mode] if free_running else []), page])
    box.slider, box.page, box.back, box.forth, box.mode = slider, page, back, forth, mode
    return box


def WhatIf(page: Observation, model: Predictor, web: World, task: Task):  # noqa: N802 (a widget, used like a class)
    """A page whose elements can be clicked: shows what the model expects of the click, beside what really happens.

    The real page is opened anew at its address for every question, in the site's seeded state. Returns a VBox; its
    `.controls` holds a list of each asked element's widgets by id, `.answer` the last answer.
    """
    answer = widgets.HTML("<p>Click something: the model says what it expects, and the real site answers.</p>")

    def ask(action: Action) -> None:
        answer.value = "<p>asking …</p>"
        (pair,) = outcomes(page, model, web, task, [action])
        answer.value = _drawn(pair_html(pair))

    controls: dict[int, list] = {}
    rows = []
    for element in page.elements:
        controls[element.id] = _controls(element, ask)
        drawn = controls[element.id] or [widgets.HTML(_drawn(_still(element)))]
        rows.append(widgets.HBox(drawn, layout=widgets.Layout(margin=f"0 0 0 {element.depth}em")))
    frame = widgets.VBox(rows, layout=widgets.Layout(border="1px solid", padding="8px", max_width="1080px"))
    box = widgets.VBox([frame, answer])
    box.controls, box.answer = {key: found for key, found in controls.items() if found}, answer
    return box


def outcomes(
    page: Observation, model: Predictor, web: World, task: Task, actions: Sequence[Action] | None = None
) -> list[Pair]:
    """What each action on a page leads to, really and as imagined; a click on each interactive element by default.

    Every action starts from the page's address in the seeded state of the sites, side by side.
    """
    if actions is None:
        able = [e for e in page.elements if e.role in INTERACTIVE_ROLES - {"option"} and e.get("disabled") != "True"]
        actions = [Action("click", e.id) for e in able]
    real = web.reset([task] * len(actions), [page] * len(actions))
    imagined = model.predict([(start, str(action)) for start, action in zip(real, actions, strict=True)])
    steps = web.step([str(action) for action in actions])
    return [
        Pair("", start, str(action), step.observation, guess.observation)
        for start, action, step, guess in zip(real, actions, steps, imagined, strict=True)
    ]


def _controls(element: Element, ask: Callable[[Action], None]) -> list:
    """Widgets that ask about an element; none where nothing can be asked."""
    if element.role not in INTERACTIVE_ROLES - {"option"} or element.get("disabled") == "True":
        return []
    text = look(element)[1]
    if element.role in TYPING_ROLES:
        field = widgets.Text(value=element.get("value"), placeholder=element.name)
        send = widgets.Button(description=f"type into {element.name}"[:40], tooltip=element.label)
        send.on_click(lambda _: ask(Action("type", element.id, field.value)))
        return [field, send]
    button = widgets.Button(description=text[:60], tooltip=element.label, layout=widgets.Layout(width="auto"))
    button.on_click(lambda _: ask(Action("click", element.id)))
    return [button]


def _still(element: Element) -> str:
    kind, text = look(element)
    return f'<div class="body"><span class="{kind}">{escape(text)}</span></div>'


def _drawn(body: str) -> str:
    return Html(f'<div class="dw">{body}</div>').html
