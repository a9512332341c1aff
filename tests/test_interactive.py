"""Views that answer: both modes of the stepper, clicks that ask the model, and their static twins and pictures."""

import struct

import ipywidgets as widgets
import pytest
from lxml import html as lxml_html

from dynaweb_lite.actions import Action
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.fidelity import NothingChanges
from dynaweb_lite.interactive import FREE_RUNNING, Stepper, WhatIf, outcomes
from dynaweb_lite.picture import html_to_png
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.views import Pair, stepper_html, what_if_html


@pytest.fixture(scope="module")
def home():
    """The shop's home page, a world to ask, and a task that starts there."""
    web = DirectWeb(SiteServer(0))
    task = next(t for t in generate_tasks(0, "validation") if t.site == "shopping")
    return web.reset([task])[0], web, task


def text(markup):
    return " ".join(lxml_html.fromstring(f"<div>{markup}</div>").text_content().split())


def test_outcomes_set_the_real_page_beside_the_imagined_one(home):
    page, web, task = home
    pairs = outcomes(page, NothingChanges(), web, task)
    cart = next(pair for pair in pairs if pair.real.title == "Cart")
    assert cart.before == page and cart.imagined == page and "You have no items" in cart.real.text
    assert len(pairs) == sum(e.role in ("link", "button", "searchbox") for e in page.elements)
    again = outcomes(page, NothingChanges(), web, task)
    assert [p.real.text for p in again] == [p.real.text for p in pairs]  # questions change nothing


def test_a_click_asks_the_model_and_the_site(home):
    page, web, task = home
    view = WhatIf(page, NothingChanges(), web, task)
    link = page.find("link", "My Cart")
    (button,) = view.controls[link.id]
    assert isinstance(button, widgets.Button) and button.description == "My Cart"
    button.click()
    said = text(view.answer.value)
    assert (
        "click [2] link 'My Cart'" in said and "You have no items" in said and "expected that nothing changes" in said
    )
    heading = page.find("heading")
    assert heading.id not in view.controls


def test_typing_asks_too(home):
    page, web, task = home
    view = WhatIf(page, NothingChanges(), web, task)
    field, send = view.controls[page.find("searchbox").id]
    field.value = "nothing like this"
    send.click()
    assert "Your search returned no results." in text(view.answer.value)


def test_the_static_twin_holds_every_outcome(home):
    page, web, task = home
    pairs = outcomes(page, NothingChanges(), web, task)
    root = lxml_html.fromstring(f"<div>{what_if_html(page, pairs).body}</div>")
    labels, inputs = list(root.iter("label")), list(root.iter("input"))
    assert [i.get("id") for i in inputs] == [label.get("for") for label in labels] and len(labels) == len(pairs)
    assert "My Cart" in [label.text_content() for label in labels]
    sections = list(root.iter("section"))
    for label, section in zip(labels, sections, strict=True):
        assert "link" not in label.get("class") or label.text_content() in section.text_content()
    heading = page.find("heading").name
    assert heading in root.find_class("key")[0].text_content()


def test_the_stepper_switches_between_teacher_forced_and_free_running(home):
    page, web, task = home
    forced = outcomes(page, NothingChanges(), web, task)[:3]
    free = [Pair("", p.before, p.action, p.real, p.real) for p in forced]
    box, static = Stepper(forced, free), text(stepper_html(forced, free).body)
    assert "nothing changes" in text(box.page.value)
    box.mode.value = FREE_RUNNING
    assert "The imagined page equals the real page." in text(box.page.value)
    box.slider.value = 2
    assert "Step 3 of 3" in text(box.page.value)
    assert static.count("Step 3 of 3") == 2 and "3, free-running" in static


def test_views_become_pictures_in_light_and_dark(home):
    page, web, task = home
    view = what_if_html(page, outcomes(page, NothingChanges(), web, task, [Action("click", 2)]))
    light, dark = html_to_png(view), html_to_png(view, dark=True)
    assert light[:8] == dark[:8] == b"\x89PNG\r\n\x1a\n" and light != dark
    width, height = struct.unpack(">II", light[16:24])
    assert width == 1100 and height > 300
