"""Views, figures and the report: what they say, that page text stays text, and that nothing is loaded."""

import json
import re
from dataclasses import replace

import pytest
from lxml import html as lxml_html
from playwright.sync_api import sync_playwright

from dynaweb_lite import plots
from dynaweb_lite.chromium import find_chromium
from dynaweb_lite.fidelity import score_transition, summarise
from dynaweb_lite.interactive import Stepper
from dynaweb_lite.observation import Observation, parse_observation
from dynaweb_lite.report import write_report
from dynaweb_lite.views import Html, Pair, align, side_by_side, stepper_html, verdict, wireframe

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000a49444154789c63000100000500010d0a2db4"
    "0000000049454e44ae426082"
)  # fmt: skip
ATTACK = "<script>alert(1)</script><img src=http://evil.test/x.png onerror=alert(1)>"


def page(*lines, title="My Cart", url="http://shop.test/cart/"):
    numbered = [f"[{i}] {line}" for i, line in enumerate(lines, 1)]
    return parse_observation("\n".join([f"Tab 0 (current): {title} | {url}", *numbered]))


BEFORE = page("link 'Home'", "button 'Add'")
REAL = page("link 'Home'", "heading 'My Cart'", "StaticText 'Lamp'", "StaticText 'Total: $5.00'", "button 'Checkout'")
IMAGINED = page("link 'Home'", "heading 'Your Cart'", "StaticText 'Lamp'", "button 'Checkout'", "link 'Help'")
PAIRS = [Pair("Buy 'Lamp'", BEFORE, "click [2]", REAL, IMAGINED, PNG), Pair("", REAL, "click [1]", BEFORE, BEFORE)]


def tree(markup):
    return lxml_html.fromstring(markup)


def text(markup):
    return " ".join(tree(markup).text_content().split())


def test_every_line_of_both_pages_stands_once_with_its_mark():
    rows = align(REAL, IMAGINED)
    assert [mark for mark, _, _ in rows] == ["=", "~", "=", "−", "=", "+"]
    assert [a.id for _, a, _ in rows if a] == [1, 2, 3, 4, 5]
    assert [b.id for _, _, b in rows if b] == [1, 2, 3, 4, 5]
    assert all(mark == "=" for mark, _, _ in align(REAL, REAL))


def test_verdict_counts_what_is_wrong():
    assert verdict(REAL, REAL) == "The imagined page equals the real page."
    assert verdict(REAL, IMAGINED).startswith("3 of 5 real lines are imagined as they are; 1 differs (~), 1 missed (−)")
    assert "expected that nothing changes" in verdict(REAL, BEFORE, BEFORE)
    assert "another title or address" in verdict(REAL, replace(REAL, url="http://shop.test/"))


def test_side_by_side_says_everything_in_text():
    view = side_by_side(REAL, IMAGINED, PNG, BEFORE)
    assert isinstance(view, Html) and view._repr_html_() == view.html
    rows = [[" ".join(c.text_content().split()) for c in r.iter("td")] for r in tree(view.body).iter("tr")]
    assert ["~ Δ", "[2] heading 'My Cart'", "[2] heading 'Your Cart'"] in rows
    assert ["− Δ", "[4] StaticText 'Total: $5.00'", ""] in rows
    assert ["+", "", "[5] link 'Help'"] in rows
    assert ["=", "[1] link 'Home'", "[1] link 'Home'"] in rows  # old, and as it was: no Δ
    images = [image.get("src") for image in tree(view.body).iter("img")]
    assert len(images) == 1 and images[0].startswith("data:image/png;base64,")


def test_long_runs_of_old_lines_are_folded():
    old = [f"link 'Item {i}'" for i in range(9)]
    before, after = page(*old), page(*old, "StaticText 'Added'")
    assert "… 9 lines alike …" in text(side_by_side(after, after, before=before).body)
    assert "= Δ[10] StaticText 'Added'" in text(side_by_side(after, after, before=before).body)
    assert "lines alike" not in text(side_by_side(after, page(*old[:4])).body)


def test_page_text_is_never_markup():
    evil = Observation(ATTACK, "http://shop.test/?q='\"><script>", REAL.with_error(ATTACK).elements)
    evil = replace(
        evil, elements=(replace(REAL.elements[0], name=ATTACK), *REAL.elements[1:]), last_action_error=ATTACK
    )
    for view in (side_by_side(evil, REAL, before=REAL), stepper_html([Pair(ATTACK, evil, ATTACK, REAL, evil)])):
        root = tree(f"<div>{view.html}</div>")
        assert not list(root.iter("script", "img"))
        assert not [name for e in root.iter() for name in e.attrib if name.startswith("on")]
        assert "<script>alert(1)</script>" in root.text_content()


def test_wireframe_draws_each_element_by_its_role():
    shown = page(
        "heading 'Sign in'", "textbox 'Name' value: 'Ann'", "checkbox 'News' checked: true", "radio 'Red'",
        "combobox 'Sort' value: 'Price'", "img 'Lamp'", "button ''",
    )  # fmt: skip
    boxes = [(e.get("class"), e.text_content()) for e in tree(wireframe(shown)).iter("span")]
    assert boxes == [
        ("heading", "Sign in"), ("input", "Name: Ann"), ("choice", "☑ News"), ("choice", "○ Red"),
        ("input", "Sort: Price ▾"), ("image", "picture: Lamp"), ("button", "(button)"),
    ]  # fmt: skip
    marked = tree(wireframe(shown, {1: "+"})).find(".//span[@class='heading invented']")
    assert marked.text_content() == "+Sign in"


def test_pairs_survive_json():
    assert [Pair.from_json(json.loads(json.dumps(pair.to_json()))) for pair in PAIRS] == PAIRS


def test_stepper_and_its_static_twin_show_the_same_facts():
    box, static = Stepper(PAIRS), stepper_html(PAIRS)
    sections = [s.text_content() for s in tree(f"<div>{static.body}</div>").iter("section")]
    for at, section in enumerate(sections):
        box.slider.value = at
        live = tree(box.page.value).text_content().split("}")[-1]  # without the style rules
        assert live == section
    assert len(sections) == 2 and "Step 1 of 2: click [2] button 'Add'" in sections[0]
    assert (box.back.disabled, box.forth.disabled) == (False, True)
    box.back.click()
    assert box.slider.value == 0 and box.back.disabled
    with pytest.raises(ValueError, match="nothing to step through"):
        Stepper([])


def test_tabs_work_without_scripts():
    static = stepper_html(PAIRS)
    root = tree(f"<div>{static.body}</div>")
    buttons, labels = list(root.iter("input")), list(root.iter("label"))
    assert [b.get("id") for b in buttons] == [label.get("for") for label in labels]
    assert len({b.get("name") for b in buttons}) == 1
    for i, button in enumerate(buttons, 1):
        assert f"#{button.get('id')}:checked~.step-{i}{{display:block}}" in static.html


def test_metrics_leave_out_what_is_no_number(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("update,reward,validation\n0,,0.25\n4,0.5,\n8,nan,0.5\n12,0.75")
    assert plots.read_metrics(path) == {
        "update": [(0, 0), (4, 4), (8, 8), (12, 12)],
        "reward": [(4, 0.5), (12, 0.75)],
        "validation": [(0, 0.25), (8, 0.5)],
    }
    assert plots.smooth([0, 1, 1, 1], 2) == [0, 0.5, 1, 1]


def test_figures_keep_to_the_house_look(tmp_path):
    curves = {plots.CURVES["validation"]: [(0, 0.2), (9, 0.4)],
              plots.CURVES["reward_without_experts"]: [(i, i / 20) for i in range(20)]}  # fmt: skip
    made = plots.learning_curves(curves, "Dreams help")
    real, _, imagined = made.axes[0].lines
    assert (real.get_color(), real.get_linestyle()) == ("#000000", "-")
    assert (imagined.get_color(), imagined.get_linestyle()) == ("#0072b2", "--")
    drawn = plots.svg(made)
    assert "Dreams help" in drawn and "currentColor" in drawn and "#000000" not in drawn
    assert drawn == plots.svg(plots.learning_curves(curves, "Dreams help"))
    assert plots.save(made, tmp_path / "new" / "curve.png").stat().st_size > 1000


def row(method, value, low, high, tasks="all", **more):
    numbers = {"n": 200, "success": value, "low": low, "high": high, "seeds": 3}
    return {"method": method, "tasks": tasks, "split": "test", **numbers, **more}


@pytest.fixture
def run_dir(tmp_path):
    rows = [row("sft", 0.4, 0.33, 0.47, real_steps=4000, dream_steps=0, minutes=2.5),
            row("dynaweb", 0.6, 0.53, 0.67, real_steps=4000, dream_steps=30000, minutes=6.0),
            row("dynaweb", 0.7, 0.5, 0.8, "shopping"), row("dynaweb - sft", 0.2, 0.1, 0.3)]  # fmt: skip
    (tmp_path / "results.json").write_text(
        json.dumps({"study": "quickstart", "made": {"commit": "0a1b2c", "preset": "tiny"}, "rows": rows})
    )
    part = summarise([score_transition(BEFORE, REAL, REAL)] * 9 + [score_transition(BEFORE, REAL, BEFORE)])
    fidelity = {**part, "seen": part, "unseen": {}, "nothing_changes": part}
    (tmp_path / "fidelity.json").write_text(json.dumps(fidelity))
    (tmp_path / "pairs.json").write_text(json.dumps([p.to_json() for p in PAIRS]))
    (tmp_path / "dynaweb-0").mkdir()
    (tmp_path / "dynaweb-0" / "metrics.csv").write_text("update,reward_without_experts,validation\n0,,0.4\n9,0.5,0.6\n")
    return tmp_path


def test_report_states_the_finding_and_every_part(run_dir):
    page_text = text(write_report(run_dir).read_text())
    for fact in (
        "DynaWeb solves 60% of 200 held-out tasks", "+0.20 [+0.10, +0.30], above zero (3 seeds)",
        "DynaWeb's success is 1.5 times its baseline's", "30,000", "dynaweb-0: validation 0.40 at first, 0.60 at best",
        "Changed-lines F1 is 0.90 one step ahead", "On 10 held-out transitions", "1 of these 2 imagined pages equal",
        "0a1b2c",
    ):  # fmt: skip
        assert fact in page_text, fact


def test_report_is_self_contained(run_dir):
    markup = write_report(run_dir).read_text()
    root = tree(markup)
    links = [
        v
        for e in root.iter()
        for k, v in e.attrib.items()
        if k in ("src", "href", "{http://www.w3.org/1999/xlink}href")
    ]
    assert links and all(link.startswith(("data:", "#")) for link in links)
    assert not list(root.iter("script", "link", "iframe")) and "@import" not in markup
    assert not re.search(r"url\((?!#)", markup)


def test_report_names_what_is_missing_or_half_written(tmp_path):
    (tmp_path / "results.json").write_text('{"study": "x", "rows": [')
    (tmp_path / "pairs.json").write_text('[{"goal": "no pages"}]')
    page_text = text(write_report(tmp_path).read_text())
    for sentence in (
        "Not scored yet",
        "No metrics.csv",
        "Not measured",
        "pairs.json could not be read",
        "Not recorded",
    ):
        assert sentence in page_text


def test_a_browser_shows_one_step_at_a_time_and_asks_for_nothing(run_dir):
    path, asked = write_report(run_dir), []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(headless=True), args=["--no-sandbox"])
        tab = browser.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri())
        sections = tab.locator(".steps > section")
        assert [sections.nth(i).is_visible() for i in range(2)] == [True, False]
        tab.locator(".steps > label").nth(1).click()
        assert [sections.nth(i).is_visible() for i in range(2)] == [False, True]
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.close()
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
