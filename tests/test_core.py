"""Pages, actions, changes, trajectories and tasks: the formats that everything else speaks."""

import random

import pytest

from dynaweb_lite.actions import Action, ActionError, check_action, describe_action, parse_action
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.explore import RandomExplorer, transitions_of
from dynaweb_lite.observation import Element, Observation, ObservationError, cut_to_budget, number, parse_observation
from dynaweb_lite.presets import ASSETS
from dynaweb_lite.scripted import ScriptPolicy
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.sites.webarena.generator import generate_tasks as webarena_tasks
from dynaweb_lite.state_change import StateChangeError, apply, changed_lines, describe, diff
from dynaweb_lite.tasks import Task, TaskError, load_tasks, resolve_url
from dynaweb_lite.trajectory import Step, Trajectory, load_trajectories, save_trajectories
from dynaweb_lite.worlds import rollout


def page(*lines, title="Shop", url="http://shop.test/"):
    return Observation(title, url, number([Element(0, *line) for line in lines]))


CART = page(("link", "Home"), ("searchbox", "Search", 0, (("value", ""),)), ("heading", 'It\'s "new"'), ("img", "", 1))


def test_a_page_reads_back_as_it_was_written():
    assert CART.text.split("\n")[2] == "[2] searchbox 'Search' value: ''"
    assert parse_observation(CART.text) == CART
    noted = CART.with_error("no element [9]")
    assert parse_observation(noted.text).last_action_error == "no element [9]"


@pytest.mark.parametrize(
    "text",
    ["", "[1] link 'a'", "Tab 0 (current): A | http://a/\n[2] link 'b'", "Tab 0 (current): A | http://a/\n[1] link 'b"],
)
def test_what_is_no_page_is_refused(text):
    with pytest.raises(ObservationError):
        parse_observation(text)


def test_a_long_page_keeps_what_is_interactive_and_says_what_was_cut():
    long = page(*[("StaticText", f"line {i}") for i in range(50)], ("button", "Buy"))
    short = cut_to_budget(long, 10)
    assert [e.id for e in short.elements] == list(range(1, 11)) and short.elements[-1].name == "Buy"
    assert short.cut == 41 and "(cut: 41 more elements)" in short.text
    assert parse_observation(short.text) == short


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click [12]", Action("click", 12)),
        ("I will search.\ntype [4] [red mug] [0]", Action("type", 4, "red mug", False)),
        ("type [4] [red mug]", Action("type", 4, "red mug", True)),
        ("In summary, the next action is ```stop [$12.50]```", Action("stop", text="$12.50")),
        ("stop []", Action("stop")),
        ("stop [12]", Action("stop", text="12")),
        ("scroll [direction=down]", Action("scroll", text="down")),
        ("click('12')", Action("click", 12)),
        ("fill('4', 'red mug')", Action("type", 4, "red mug", False)),
        ("go_back()", Action("go_back")),
    ],
)
def test_actions_parse_in_every_spelling(text, action):
    assert parse_action(text) == action
    assert parse_action(str(action)) == action


@pytest.mark.parametrize("text", ["", "click", "click [x]", "buy it now", "type [3]", "```\n```"])
def test_what_is_no_action_is_refused_and_quoted(text):
    with pytest.raises(ActionError, match="not an action"):
        parse_action(text)


def test_actions_are_checked_against_the_page():
    assert "no element [9]" in check_action(Action("click", 9), CART)
    assert "cannot type into [1], a link" in check_action(Action("type", 1, "x"), CART)
    assert check_action(Action("type", 2, "x"), CART) == ""
    assert describe_action(Action("click", 1), CART) == "click [1] link 'Home'"


def test_a_change_applied_gives_the_next_page_on_thousands_of_real_transitions():
    """Walks on the practice ground, some recorded in Chromium, and experts on WebArena's ground and its rich pages."""
    walks = load_trajectories(ASSETS / "explorations.jsonl")
    for seed in (0, 7):
        tasks = generate_tasks(seed, "train")
        walks += rollout(RandomExplorer(seed), DirectWeb(SiteServer(seed)), tasks[:40], 15)
    rich = webarena_tasks(1, "expert")[:60]
    scripts = ScriptPolicy({task.task_id: task.extra["script"] for task in rich})
    walks += rollout(scripts, DirectWeb(SiteServer(1, ground="webarena")), rich, 8)
    transitions = transitions_of(walks)
    assert len(transitions) > 3000
    for t in transitions:
        assert apply(t.observation, diff(t.observation, t.next_observation)) == t.next_observation
    assert sum(t.observation != t.next_observation for t in transitions) > 2000


def test_a_change_applied_gives_the_next_page_for_random_pages():
    rng = random.Random(0)

    def random_page():
        lines = [
            (rng.choice(["link", "button"]), rng.choice("abc"), rng.randint(0, 2)) for _ in range(rng.randint(0, 8))
        ]
        return page(*lines, title=rng.choice(["A | B", "C"]), url=rng.choice(["http://a/", "http://b/?q=1"]))

    for _ in range(500):
        before, after = random_page(), random_page()
        assert apply(before, diff(before, after)) == after


@pytest.mark.parametrize("change", ["= [1] [99]", "= [3] [1]", "nonsense line", "Tab 7: broken", "link 'open"])
def test_an_edit_that_does_not_fit_is_refused(change):
    with pytest.raises(StateChangeError):
        apply(CART, change)


def test_reasons_name_the_kind_of_change():
    other = page(("link", "Home"), title="Cart", url="http://shop.test/cart")
    assert describe(CART, "click [1]", CART) == "Nothing changes."
    assert describe(CART, "click [1]", other) == "Opens Cart."
    assert changed_lines(CART, CART) == ([], [])


def test_trajectories_survive_a_write_that_was_cut_off(tmp_path):
    file = tmp_path / "t.jsonl"
    whole = Trajectory("t1", "goal", [Step(CART, "stop [1]", CART, "Done.", 1.0)], "expert", True, False, "1")
    save_trajectories(file, [whole, whole])
    file.write_bytes(file.read_bytes()[:-40])
    assert load_trajectories(file) == [whole]
    save_trajectories(file, [whole])
    assert load_trajectories(file) == [whole, whole]
    assert load_trajectories(tmp_path / "missing.jsonl") == []


def test_transitions_leave_out_stop_and_refused_actions():
    refused = CART.with_error("no element [9]")
    steps = [Step(CART, "click [9]", refused), Step(refused, "click [1]", CART), Step(CART, "stop []", CART)]
    assert [t.action for t in Trajectory("t", "g", steps).transitions()] == ["click [1]"]


def test_tasks_keep_webarenas_fields_and_name_what_is_missing(tmp_path):
    row = {
        "task_id": 7,
        "sites": ["reddit"],
        "start_url": "__REDDIT__",
        "intent": "x",
        "eval": {},
        "storage_state": "s",
    }
    task = Task.from_json(row)
    assert task.to_json()["storage_state"] == "s" and task.to_json()["sites"] == ["reddit"]
    with pytest.raises(TaskError, match="intent"):
        Task.from_json({k: v for k, v in row.items() if k != "intent"})
    (tmp_path / "none.json").write_text("[]")
    with pytest.raises(TaskError, match="no tasks"):
        load_tasks(tmp_path / "none.json")


def test_placeholders_resolve_to_replicas_or_to_the_users_own_sites(monkeypatch):
    assert resolve_url("__SHOPPING__/a.html") == "http://shop.test/a.html"
    assert resolve_url("__SHOPPING_ADMIN__") == "http://shop-admin.test/admin"
    monkeypatch.setenv("WA_REDDIT", "http://localhost:9999/")
    assert resolve_url("__REDDIT__/f/x") == "http://localhost:9999/f/x"
    with pytest.raises(TaskError, match="unknown site"):
        resolve_url("__NOWHERE__/x")
