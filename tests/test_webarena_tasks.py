"""Scripts, WebArena's task files, generated tasks, and the proof that tasks run on the replicas."""

import json
from collections import Counter

import pytest

from dynaweb_lite.cli import main
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.observation import parse_observation
from dynaweb_lite.presets import RESULTS
from dynaweb_lite.scripted import ScriptError, ScriptPolicy, resolve_step
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.webarena import MODULES
from dynaweb_lite.sites.webarena.generator import (
    EXPERTS,
    KINDS,
    SPLITS,
    Template,
    answer,
    content,
    generate_tasks,
    load_templates,
)
from dynaweb_lite.tasks import TaskError
from dynaweb_lite.verify import PARTS, play, texts_of, verify, verify_generated
from dynaweb_lite.webarena_tasks import (
    SOLUTIONS,
    lite_ids,
    replicated,
    replicated_tasks,
    task_file,
    webarena_tasks,
)

PAGE = parse_observation(
    "Tab 0 (current): Home | http://shop.test/\n[1] link 'Mug'\n[2] link \"Bob's Mug\"\n[3] link 'Mug'\n"
    "[4] searchbox 'Search' value: ''"
)


def proofs_of(rows):
    return verify(rows, replicated_tasks(rows), DirectWeb(SiteServer(ground="webarena")))


def test_steps_name_elements_by_role_name_number_and_prefix():
    assert resolve_step("click [link 'Mug' #2]", PAGE).action == "click [3]"
    assert resolve_step("click [link 'Bob's Mug']", PAGE).action == "click [2]"
    assert resolve_step("click [link 'Bob…']", PAGE).action == "click [2]"
    typed = resolve_step("type [searchbox 'Search'] [it's [1]] [1]", PAGE)
    assert typed.action == "type [4] [it's [1]] [1]" and typed.thought == "Type the searchbox 'Search'."
    assert resolve_step("stop [Mug]", PAGE).action == "stop [Mug]"
    for step, message in (("click [link 'Mug' #3]", "2 of 3"), ("click [button 'Mug']", "0 of 1 × button 'Mug'")):
        with pytest.raises(ScriptError, match=message):
            resolve_step(step, PAGE)


def test_a_script_that_does_not_fit_stops_and_says_where():
    tasks = replicated_tasks()[:1]
    episodes, errors = play(tasks, [("click [link 'No such link']",)], DirectWeb(SiteServer(ground="webarena")))
    assert episodes[0].terminated and episodes[0].reward == 0 and len(episodes[0].steps) == 1
    assert "step 1: 0 of 1 × link 'No such link'" in errors[tasks[0].task_id]


def test_a_refused_action_is_noted():
    tasks = replicated_tasks()[:1]
    policy = ScriptPolicy({tasks[0].task_id: ("click [999]", "stop []")})
    from dynaweb_lite.worlds import rollout

    rollout(policy, DirectWeb(SiteServer(ground="webarena")), tasks, 3)
    assert "999" in policy.errors[tasks[0].task_id]


def test_webarena_is_read_from_the_installed_package_or_a_path(tmp_path, monkeypatch):
    tasks = webarena_tasks()
    assert len(tasks) == 812 and [t.task_id for t in tasks] == list(range(812)) and len(lite_ids()) == 165
    rows = json.loads(task_file().read_text(encoding="utf-8"))
    assert all(task.eval == row["eval"] for task, row in zip(tasks, rows, strict=True))
    (tmp_path / "mine.json").write_text(json.dumps(rows[:3]), encoding="utf-8")
    monkeypatch.setenv("DYNAWEB_WEBARENA", str(tmp_path / "mine.json"))
    assert len(webarena_tasks()) == 3


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TaskError, match="pip install --no-deps libwebarena"):
        webarena_tasks()


def test_the_list_is_as_broad_as_promised():
    rows, tasks = replicated(), replicated_tasks()
    counts = Counter(row.site for row in rows)
    assert len(rows) >= 120 and len({row.task_id for row in rows}) == len(rows)
    assert (
        all(counts[site] >= 15 for site in ("shopping", "shopping_admin", "reddit", "gitlab")) and counts["map"] >= 10
    )
    assert sum(row.task_id in lite_ids() for row in rows) >= 40
    assert {kind for task in tasks for kind in task.eval["eval_types"]} == {"string_match", "url_match", "program_html"}
    assert all(task.site == row.site for row, task in zip(rows, tasks, strict=True))


def test_every_row_says_what_it_simplifies_and_answers_rest_on_what_was_seen():
    for row, task in zip(replicated(), replicated_tasks(), strict=True):
        assert row.note and row.mistake and row.solution[-1].startswith("stop ["), row.task_id
        assert row.wrong[-1].startswith("stop [") and row.wrong != row.solution, row.task_id
        assert row.reads or "string_match" not in task.eval["eval_types"], row.task_id


def test_templates_left_out_are_named_with_a_reason():
    all_tasks = webarena_tasks()
    template = {task.task_id: task.extra["intent_template_id"] for task in all_tasks}
    taken = {template[row.task_id] for row in replicated()}
    for site in MODULES:
        templates = {template[task.task_id] for task in all_tasks if task.site == site}
        if not templates:
            continue
        data = json.loads((SOLUTIONS / f"{site}.json").read_text(encoding="utf-8"))
        left_out = {t for row in data["left_out"] for t in row["templates"]}
        assert all(row["why"] for row in data["left_out"])
        assert left_out - taken == templates - taken, site


@pytest.mark.parametrize("site", [site for site in MODULES if site != "homepage"])
def test_solutions_score_and_idlers_and_mistakes_do_not(site):
    proofs = proofs_of(replicated([site]))
    assert proofs and {p.task_id: p.problems for p in proofs if not p.holds} == {}


def test_the_proof_catches_what_it_should():
    row = replicated(["gitlab"])[0]
    tasks, world = replicated_tasks([row]), DirectWeb(SiteServer(ground="webarena"))

    def problems(**changes):
        return " ".join(verify([type(row)(**{**vars(row), **changes})], tasks, world)[0].problems)

    assert problems() == ""
    assert "scores [1.0, 0.0, 1.0]" in problems(wrong=row.solution)
    assert "scores [0.0, 0.0, 0.0]" in problems(solution=row.wrong)
    assert "never seen: 'a pink elephant'" in problems(reads=("a pink elephant",))
    assert "solution: step 1" in problems(solution=("click [link 'pink elephant']", "stop []"))


def test_published_proofs_are_of_the_tasks_in_the_list():
    rows = json.loads((RESULTS / "webarena_replicas.json").read_text(encoding="utf-8"))["rows"]
    assert {row["task_id"] for row in rows} == {row.task_id for row in replicated()}
    assert all([row[part] for part in PARTS] == [1.0, 0.0, 0.0] for row in rows)


def test_an_unknown_id_or_site_is_named():
    with pytest.raises(TaskError, match="no replica for task 99999"):
        replicated(ids=[99999])
    assert main(["tasks", "--site", "amazon"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ids", "44", "--site", "map"], "no replica on map for task 44"),
        (["--direct"], "--direct does nothing without --verify"),
        (["--seed", "3"], "--seed does nothing without --generated"),
        (["--generated", "--ids", "44"], "leave out one of the two"),
    ],
)
def test_options_that_do_nothing_are_refused(arguments, said, capsys):
    assert main(["tasks", *arguments]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("port", ["70000", "-5", "http"])
def test_a_port_that_is_none_is_refused(port, capsys):
    with pytest.raises(SystemExit):
        main(["sites", "--port", port])
    assert "invalid port value" in capsys.readouterr().err


@pytest.mark.parametrize("site", [site for site in MODULES if site != "homepage"])
@pytest.mark.parametrize(("seed", "each"), [(0, 8), (1, 2)])
def test_experts_solve_generated_tasks_and_idlers_none(site, seed, each):
    """`each` of every template; `tasks --generated --verify` plays them all."""
    tasks = [t for t in generate_tasks(seed, sites=[site]) if int(str(t.task_id).rsplit("-", 1)[1]) < each]
    proofs = verify_generated(tasks, DirectWeb(SiteServer(seed, ground="webarena")))
    assert proofs and {p.task_id: p.problems for p in proofs if not p.holds} == {}


def test_generated_splits_hold_unseen_instances_and_unseen_templates():
    tasks = generate_tasks(0)
    names = {split: {t.extra["template"] for t in tasks if t.split == split} for split in SPLITS}
    held_out = {t.name for site in MODULES for t in load_templates(site) if t.held_out}
    assert len(names["test"]) >= 30 and names["expert"] == names["train"] == names["validation"]
    assert names["test"] - names["train"] == held_out and len(held_out) >= 6
    assert {t.kind for t in tasks} == set(KINDS)
    keys = [(t.extra["template"], json.dumps(t.instantiation_dict, sort_keys=True)) for t in tasks]
    assert len(keys) == len(set(keys)) and len({t.task_id for t in tasks}) == len(tasks)
    counts = Counter((t.extra["template"], t.split) for t in tasks)
    assert all(counts[name, "expert"] == EXPERTS for name in names["expert"])
    assert all("{{" not in t.intent for t in tasks)


def test_generated_tasks_are_a_function_of_the_seed():
    one, two = generate_tasks(0), generate_tasks(1)
    assert [t.to_json() for t in one] == [t.to_json() for t in generate_tasks(0)]
    assert {t.intent for t in one} != {t.intent for t in two}
    with pytest.raises(ValueError, match="unknown split"):
        generate_tasks(0, "exam")


def test_what_a_template_may_be():
    with pytest.raises(ValueError, match="kind 'guess'"):
        Template("x", "guess", "", lambda db, rng: [])
    assert answer("4")["reference_answers"] == {"exact_match": "4"}
    made = content(("last", "", ["a"]), ("__GITLAB__/x", "document.querySelector('h1').outerText", "b"), url="__MAP__/")
    assert made["eval_types"] == ["url_match", "program_html"] and made["reference_url"] == "__MAP__/"
    assert [row["required_contents"] for row in made["program_html"]] == [{"must_include": ["a"]}, {"exact_match": "b"}]


def test_facts_are_looked_for_in_titles_names_and_values():
    assert texts_of(PAGE) == ["Home", "Mug", "", "Bob's Mug", "", "Mug", "", "Search", ""]
