"""MiniWoB++ in real Chromium: its pages, its seeds, its own reward, and whatever can go wrong in them."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dynaweb_lite import miniwob
from dynaweb_lite.miniwob import MiniWobWeb, html_folder, make_task, miniwob_tasks, page_names
from dynaweb_lite.observation import Observation
from dynaweb_lite.tasks import Task, TaskError
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import Decision, WorldStep, rollout

Script = Callable[[str, Observation, int], str]
"""What to do next: (goal, page, number of the step) -> action."""


@pytest.fixture(scope="module", autouse=True)
def installed():
    try:
        html_folder()
    except TaskError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def world(installed):
    with MiniWobWeb(contexts=4) as web:
        yield web


def quoted(goal: str) -> list[str]:
    return re.findall(r'"([^"]*)"', goal)


def click(page: Observation, role: str, name: str | None = None) -> str:
    element = page.find(role, name)
    assert element, f"no {role} {name!r} in\n{page.text}"
    return f"click [{element.id}]"


def fill(page: Observation, texts: list[str], step: int, button: str) -> str:
    """Type a text into each box, then press a button."""
    boxes = [e.id for e in page.elements if e.role in ("textbox", "spinbutton")]
    return f"type [{boxes[step]}] [{texts[step]}] [0]" if step < len(texts) else click(page, "button", button)


def choose(page: Observation, names: list[str], step: int, role: str) -> str:
    """Click each name, then Submit."""
    return click(page, role, names[step]) if step < len(names) else click(page, "button", "Submit")


def checkboxes(goal: str) -> list[str]:
    names = goal.removeprefix("Select ").removesuffix(" and click Submit.")
    return [] if names == "nothing" else names.split(", ")


def autocomplete(goal: str, page: Observation, step: int) -> str:
    start, *end = quoted(goal)
    if step == 1:  # the menu opens 0.3 s after the text
        fits = [e for e in page.elements if e.role == "StaticText" and e.name.startswith(start)]
        return f"click [{next(e.id for e in fits if not end or e.name.endswith(end[0]))}]"
    return fill(page, [start], min(step, 1), "Submit")


def menu(goal: str, page: Observation, step: int) -> str:
    path = goal.removeprefix("Select ").split(">")
    item = [e.id for e in page.elements if e.role == "menuitem" and e.name.split()[0] == path[step]][-1]
    return f"{'click' if step == len(path) - 1 else 'hover'} [{item}]"


def from_list(goal: str, page: Observation, step: int) -> str:
    name = re.match("Select (.*) from the list", goal)[1]
    return click(page, "button", "Submit") if step else f"select [{page.find('combobox').id}] [{name}]"


def arithmetic(goal: str, page: Observation, step: int) -> str:
    left, sign, right = re.findall(r"\d+|[-+x]", "".join(e.name for e in page.elements if e.role == "StaticText"))
    numbers = int(left), int(right)
    result = {"+": sum(numbers), "-": numbers[0] - numbers[1], "x": numbers[0] * numbers[1]}[sign]
    return fill(page, [str(result)], step, "Submit")


RIGHT: dict[str, Script] = {
    "click-test-2": lambda goal, page, step: click(page, "button", "ONE"),
    "click-button": lambda goal, page, step: click(page, "button", quoted(goal)[0]),
    "click-button-sequence": lambda goal, page, step: click(page, "button", ("ONE", "TWO")[step]),
    "click-link": lambda goal, page, step: click(page, "StaticText", quoted(goal)[0]),
    "click-checkboxes": lambda goal, page, step: choose(page, checkboxes(goal), step, "checkbox"),
    "click-option": lambda goal, page, step: choose(page, checkboxes(goal), step, "radio"),
    "click-tab": lambda goal, page, step: click(page, "link", re.search(r"Tab #\d", goal)[0]),
    "click-menu": menu,
    "choose-list": from_list,
    "enter-text": lambda goal, page, step: fill(page, quoted(goal)[:1], step, "Submit"),
    "enter-password": lambda goal, page, step: fill(page, quoted(goal) * 2, step, "Submit"),
    "login-user": lambda goal, page, step: fill(page, quoted(goal), step, "Login"),
    "simple-arithmetic": arithmetic,
    "use-autocomplete": autocomplete,
}
WRONG: dict[str, Script] = {
    "click-test-2": lambda goal, page, step: click(page, "button", "TWO"),
    "click-button": lambda goal, page, step: next(
        f"click [{e.id}]" for e in page.elements if e.role == "button" and e.name != quoted(goal)[0]
    ),
    "click-button-sequence": lambda goal, page, step: click(page, "button", "TWO"),
    "click-option": lambda goal, page, step: click(page, "button", "Submit"),
    "enter-text": lambda goal, page, step: fill(page, [quoted(goal)[0][:-1]], step, "Submit"),
    "enter-password": lambda goal, page, step: fill(page, [quoted(goal)[0], "other"], step, "Submit"),
    "login-user": lambda goal, page, step: fill(page, quoted(goal)[::-1], step, "Login"),
    "use-autocomplete": lambda goal, page, step: fill(page, ["Atlantis"], step, "Submit"),
}


def play(world: MiniWobWeb, tasks: list[Task], scripts: dict[str, Script], max_steps: int = 8) -> list[WorldStep]:
    """Play the tasks, four side by side, each by the script of its page; the last step of each."""
    if len(tasks) > 4:
        return [step for i in range(0, len(tasks), 4) for step in play(world, tasks[i : i + 4], scripts, max_steps)]
    pages, last = world.reset(tasks), [None] * len(tasks)
    goals = [world.goals[task.task_id] for task in tasks]
    for number in range(max_steps):
        running = [step is None or not (step.terminated or step.truncated) for step in last]
        if not any(running):
            break
        rows = zip(running, tasks, goals, pages, strict=True)
        steps = world.step([scripts[t.kind](g, p, number) if runs else None for runs, t, g, p in rows])
        last = [step or before for step, before in zip(steps, last, strict=True)]
        pages = [step.observation for step in last]
        assert not [page.last_action_error for page in pages if page.last_action_error]
    return last


@pytest.mark.parametrize("seed", [0, 5])
def test_the_right_script_earns_the_pages_own_reward(world, seed):
    tasks = [make_task(name, seed) for name in RIGHT]
    for task, step in zip(tasks, play(world, tasks, RIGHT), strict=True):
        assert (step.reward, step.terminated, step.info["raw_reward"]) == (1, True, 1), (task.task_id, step)


def test_a_wrong_script_is_no_success(world):
    tasks = [make_task(name, seed) for name in WRONG for seed in (0, 5)]
    for task, step in zip(tasks, play(world, tasks, WRONG), strict=True):
        assert (step.reward, step.terminated, step.info["raw_reward"]) == (0, True, -1), (task.task_id, step)


def test_doing_nothing_earns_nothing_and_ends_the_episode(world):
    tasks = [make_task(name, 0) for name in ("click-test-2", "login-user", "choose-list")]
    world.reset(tasks)
    for step in world.step(["stop [done]"] * 3):
        assert (step.reward, step.terminated, step.info["raw_reward"]) == (0, True, 0)
    again = world.step(["click [1]"] * 3)
    assert {(s.reward, s.terminated, s.observation.last_action_error) for s in again} == {
        (0, True, "the episode is over")
    }


def test_part_of_a_reward_counts_only_where_that_is_asked_for(world):
    task = make_task("click-checkboxes-large", 0)

    def one_short(goal, page, step):
        return choose(page, checkboxes(goal)[:-1], step, "checkbox")

    [step] = play(world, [task], {task.kind: one_short}, 16)
    assert step.terminated and step.reward == 0 and 0 < step.info["raw_reward"] < 1
    world.partial_counts = True
    try:
        assert play(world, [task], {task.kind: one_short}, 16)[0].reward == 1
    finally:
        world.partial_counts = False


def test_a_seed_is_a_page_in_every_context_and_every_run(world):
    def read(web: MiniWobWeb, tasks: list[Task]) -> list[tuple[str, str]]:
        return [(page.text, web.goals[task.task_id]) for page, task in zip(web.reset(tasks), tasks, strict=True)]

    names = ["click-link", "email-inbox", "login-user", "social-media"]
    tasks = [make_task(name, 3) for name in names]
    first, others = read(world, tasks), read(world, [make_task(name, 4) for name in names])
    assert all(one != other for one, other in zip(first, others, strict=True))
    assert read(world, tasks[::-1])[::-1] == first
    with MiniWobWeb(contexts=1) as web:
        assert [read(web, [task])[0] for task in tasks] == first


def test_goal_score_and_clock_stand_nowhere_on_the_page(world):
    [page] = world.reset([make_task("click-test-2", 0)])
    assert page.text.split("\n")[1:] == ["[1] button 'ONE'", "[2] button 'TWO'"]
    [step] = world.step(["click [1]"])
    assert step.observation.text.split("\n")[1:] == ["[1] button 'ONE'", "[2] button 'TWO'"]
    assert world.screenshot(0).startswith(b"\x89PNG")


def test_episodes_side_by_side_do_not_touch_each_other(world):
    before = world.reset([make_task("click-checkboxes", 7)] * 4)
    box = before[2].find("checkbox").id
    world.step([None, None, f"click [{box}]", None])
    after = [world.observe(i) for i in range(4)]
    assert [page.text == before[i].text for i, page in enumerate(after)] == [True, True, False, True]
    assert [page.element(box).get("checked") for page in after] == ["False", "False", "True", "False"]


def test_slowness_costs_nothing(world):
    [page] = world.reset([make_task("click-test-2", 0)])
    world.worker.run(world.episodes[0].tab.page.clock.run_for(3600_000))  # an hour; the page would end after 10 s
    [step] = world.step([click(page, "button", "ONE")])
    assert (step.reward, step.info["raw_reward"]) == (1, 1)


def test_actions_that_would_leave_the_page_do_nothing(world):
    [page] = world.reset([make_task("click-test-2", 0)])
    for action in ("goto [http://miniwob.test/miniwob/click-test.html]", "go_back", "new_tab"):
        [step] = world.step([action])
        assert "does nothing here" in step.observation.last_action_error and not step.terminated
        assert step.observation == page
    [step] = world.step(["click [99]"])
    assert "no element [99]" in step.observation.last_action_error and not step.terminated
    assert world.step(["click [1]"])[0].reward == 1


def test_tasks_carry_their_pages_goals_and_run_in_a_rollout(world):
    tasks = miniwob_tasks(["click-button", "enter-text"], seeds=range(2), world=world)
    assert [t.task_id for t in tasks] == [f"miniwob.{n}.{s}" for n in ("click-button", "enter-text") for s in (0, 1)]
    assert all(t.sites == ("miniwob",) and quoted(t.intent) for t in tasks)
    assert [Task.from_json(t.to_json()) for t in tasks] == tasks

    class Scripted:
        def act(self, episodes: list[Trajectory], observations: list[Observation]) -> list[Decision]:
            kinds = [str(e.task_id).split(".")[1] for e in episodes]
            rows = zip(kinds, episodes, observations, strict=True)
            return [Decision(RIGHT[kind](e.goal, page, len(e.steps))) for kind, e, page in rows]

    episodes = rollout(Scripted(), world, tasks, max_steps=4)
    assert [(e.reward, e.terminated, len(e.steps)) for e in episodes] == [(1, True, n) for n in (1, 1, 2, 2)]


def test_names_that_are_none_list_those_near_them(world):
    assert len(page_names()) == 125 and "click-button" in page_names() and "chase-circle" not in page_names()
    with pytest.raises(TaskError, match="no page 'click-buton'; near it: .*click-button"):
        miniwob_tasks(["click-buton"], world=world)
    with pytest.raises(TaskError, match="not of MiniWoB.*task 7"):
        world.reset([Task(7, ("shopping",), "__SHOPPING__", "buy", {"eval_types": ["string_match"]})])


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TaskError, match="pip install --no-deps miniwob==1.1.0"):
        MiniWobWeb()


PAGE = """<html><head><title>Odd</title><script src="../core/core.js"></script><script>
var genProblem = function() { START }; window.onload = function() { core.startEpisode(); }
</script></head><body><div id="wrap"><div id="query">Press Go.</div><div id="area">
<button onclick="throw new Error('handler broke')">Break</button>
<button onclick="core.endEpisode(1.0, true)">Go</button>
<form><button>Reload</button></form></div></div></body></html>"""


def test_pages_whose_scripts_throw_or_that_reload_are_survived(tmp_path, monkeypatch):
    shutil.copytree(html_folder() / "core", tmp_path / "core")
    (tmp_path / "miniwob").mkdir()
    for name, start in {"broken": "undefinedFunction()", "odd": ""}.items():
        (tmp_path / "miniwob" / f"{name}.html").write_text(PAGE.replace("START", start), encoding="utf-8")
    monkeypatch.setattr(miniwob, "html_folder", lambda: tmp_path)
    broken, odd = make_task("broken", 0), make_task("odd", 0)
    with MiniWobWeb(contexts=2) as web:
        pages = web.reset([broken, odd])
        assert "undefinedFunction is not defined" in pages[0].last_action_error
        steps = web.step(["click [1]", click(pages[1], "button", "Break")])
        assert steps[0].truncated and "undefinedFunction" in steps[0].info["error"]
        assert not steps[1].terminated and "handler broke" in steps[1].info["page_errors"][0]
        [_, step] = web.step([None, click(pages[1], "button", "Go")])
        assert step.reward == 1
        with pytest.raises(TaskError, match="miniwob.broken.0.*undefinedFunction"):
            miniwob_tasks(["broken"], world=web)
        [page] = web.reset([odd])
        [step] = web.step([click(page, "button", "Reload")])
        assert (step.reward, step.terminated, step.info["reason"]) == (0, True, "the page was left")


def test_a_dead_browser_ends_its_episodes_and_the_next_reset_works():
    with MiniWobWeb(contexts=1) as web:
        tasks = [make_task("click-test-2", seed) for seed in (0, 1)]
        web.reset(tasks)
        web.worker.run(web._browser.close())
        steps = web.step(["click [1]", "click [1]"])
        assert all(s.truncated and not s.terminated and s.reward == 0 and s.info["error"] for s in steps)
        web.reset(tasks)
        assert [step.reward for step in web.step(["click [1]", "click [1]"])] == [1, 1]


def test_the_benchmark_holds_both_sides_to_the_same_page(world, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    import environment as benchmark

    class Other:
        """Answers as BrowserGym's worker does, half a second slow at everything."""

        def ask(self, do: str, **rest: object) -> dict:
            answer = {"seconds": 0.5, "reward": 1.0, "error": ""}
            return answer | {"goal": goal, "page_seed": 3} if do == "reset" else answer

    task = make_task(benchmark.PAGE, 3)
    goal = miniwob_tasks([benchmark.PAGE], seeds=[3], world=world)[0].intent
    ours, theirs = benchmark.Times(), benchmark.Times()
    assert benchmark.play_theirs(Other(), 0, theirs) == (3, goal)
    benchmark.play_ours(world, 3, goal, ours)
    assert len(ours.step) == len(theirs.step) == len(checkboxes(goal)) + 1 and len(ours.reset) == 1
    step, reset = benchmark.rows_of("vs BrowserGym", ours, theirs)
    assert (step["name"], reset["name"]) == ("step vs BrowserGym", "reset vs BrowserGym")
    assert step["ratio"] == pytest.approx(500 / step["ours"], rel=0.05)
    assert set(step) == {"name", "ours", "other", "ratio", "unit"}
    with pytest.raises(benchmark.BenchmarkError, match="not the same page"):
        benchmark.play_ours(world, 4, goal, ours)
    assert world.goals[task.task_id] == goal
