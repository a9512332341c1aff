"""The second form of Δ, baselines, drift, calibration, evaluators on imagined pages, and the command."""

import json
from argparse import Namespace
from dataclasses import replace

import pytest

from dynaweb_lite.change_forms import DESCRIBED, EDIT_SCRIPT, narrate
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.drift import carry, free_running, free_running_pairs, teacher_forced_pairs
from dynaweb_lite.experts import ExpertPolicy
from dynaweb_lite.explore import RandomExplorer, transitions_of
from dynaweb_lite.fidelity import NearestTransition, NothingChanges, fidelity
from dynaweb_lite.imagined_evaluator import EvaluatorJudge, facts_agreement, imagined_verdict, settles
from dynaweb_lite.imagined_web import ImaginedWeb
from dynaweb_lite.judge import RuleJudge
from dynaweb_lite.language_model import Generated, LanguageModel
from dynaweb_lite.observation import parse_observation
from dynaweb_lite.presets import ASSETS, RESULTS
from dynaweb_lite.readme import README
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.state_change import diff
from dynaweb_lite.trajectory import Transition, load_trajectories
from dynaweb_lite.world_model import Prediction, WorldModel, pair_key, training_examples
from dynaweb_lite.world_model_command import imported, train_on_data
from dynaweb_lite.world_model_report import calibration_figure, drift_figure, findings, write_report
from dynaweb_lite.world_model_study import (
    MODEL,
    calibration,
    naive_prediction,
    sensible,
    silent,
    split_by_page,
    stopping,
    throughput,
)
from dynaweb_lite.worlds import rollout

PAGE = parse_observation(
    "Tab 0 (current): Home | http://shop.test/\n[1] link 'Mug'\n[2] link 'Cart'\n[3] link 'Mug'\n[4] heading 'Hello'"
)
NEXT = parse_observation("Tab 0 (current): Mug | http://shop.test/mug\n[1] link 'Cart'\n[2] heading 'Mug'")


@pytest.fixture(scope="module")
def walks():
    tasks = generate_tasks(0, "validation")[:12]
    return rollout(RandomExplorer(3), DirectWeb(SiteServer(0)), tasks, 6, source="exploration")


class Oracle:
    """Predicts from the true transitions; what it has not seen stays as it is, with little confidence."""

    def __init__(self, transitions):
        self.known = {pair_key(t.observation, t.action): t.next_observation for t in transitions}

    def predict(self, pairs):
        found = [self.known.get(pair_key(*pair)) for pair in pairs]
        return [
            Prediction(page.with_error(""), "", "", confidence=0.9)
            if page
            else Prediction(pair[0], "", "", confidence=0.2)
            for page, pair in zip(found, pairs, strict=True)
        ]


class Scripted:
    """Stands in for a language model: replies by what the prompt holds, with as many tokens as characters."""

    def __init__(self, rule):
        self.rule, self.asked = rule, []

    def prompt_tokens(self, messages):
        return messages[-1]["content"]

    def generate(self, prompts, max_new_tokens, temperature=0.0, top_p=1.0, generator=None):
        self.asked.append((len(prompts), temperature))
        replies = [self.rule(p) for p in prompts]
        return [Generated(tuple(range(min(len(r), max_new_tokens))), r, (-0.5,)) for r in replies]


# Forms of Δ


def test_a_change_in_words_names_what_comes_and_what_goes():
    assert narrate(PAGE, PAGE) == ""
    words = narrate(PAGE, NEXT)
    assert words.splitlines()[0] == "Tab 0 (current): Mug | http://shop.test/mug"
    assert "link 'Mug' gone" in words and "heading 'Mug' in place of link 'Mug', heading 'Hello'" in words
    grown = parse_observation(PAGE.text + "\n[5] button 'Buy'")
    assert narrate(PAGE, grown) == "button 'Buy' after heading 'Hello'"


def test_the_edit_script_has_one_example_a_transition_and_words_have_two():
    rows = [Transition(PAGE, "click [1]", NEXT), Transition(PAGE, "click [4]", PAGE)]
    assert len(training_examples(rows)) == 2
    described = training_examples(rows, form=DESCRIBED)
    assert len(described) == 3
    second = next(e for e in described if "\nChange: " in e.messages[-1]["content"])
    assert second.reply == diff(PAGE, NEXT) and narrate(PAGE, NEXT) in second.messages[-1]["content"]


def test_words_are_applied_by_the_model_in_a_second_batch():
    def rule(prompt):
        return diff(PAGE, NEXT) if "Change: it opens" in prompt else "A click.\nit opens" if "'Mug'" in prompt else ""

    lm = Scripted(lambda p: rule(p) if "\nAction: click [4]" not in p else "Nothing changes.")
    model = WorldModel(lm, DESCRIBED, temperature=1.0)
    opened, stayed = model.predict([(PAGE, "click [1]"), (PAGE, "click [4]")])
    assert opened.observation == NEXT and opened.reason == "A click." and opened.change == "it opens"
    assert stayed.observation == PAGE and stayed.parsed
    assert lm.asked == [(2, 1.0), (1, 0.0)]


def test_what_cannot_be_applied_in_the_second_step_keeps_the_page_and_is_counted():
    lm = Scripted(lambda p: "= [1] [99]" if "Change: " in p else "A click.\nit opens")
    model = WorldModel(lm, DESCRIBED)
    (prediction,) = model.predict([(PAGE, "click [1]")])
    assert prediction.observation == PAGE and not prediction.parsed and model.unparsable == 1


@pytest.mark.parametrize("lines", [60, 4000])
def test_a_repetition_without_end_is_no_page(lines):
    """Cut off by the limit on tokens, or ended but longer than any page."""
    model = WorldModel(Scripted(lambda p: "Opens it.\n" + "\n".join(["link 'Mug'"] * lines)), max_new_tokens=600)
    if lines == 4000:
        model.max_new_tokens = 10**6
    (prediction,) = model.predict([(PAGE, "click [1]")])
    assert not prediction.parsed and prediction.observation == PAGE


def test_annotations_from_elsewhere_are_learnt_and_missing_ones_left_out():
    rows = [Transition(PAGE, "click [1]", NEXT), Transition(PAGE, "click [4]", PAGE)]
    written = {pair_key(PAGE, "click [1]"): EDIT_SCRIPT.annotate(PAGE, "click [1]", NEXT)}
    examples = training_examples(rows, annotate=lambda t: written.get(pair_key(t.observation, t.action)))
    assert [e.reply for e in examples] == [f"Opens Mug.\n{diff(PAGE, NEXT)}"]


# Baselines and splits


def test_the_nearest_transition_has_the_same_action_on_the_most_similar_page():
    far = parse_observation("Tab 0 (current): Far | http://shop.test/far\n[1] link 'Mug'\n[2] link 'Else'")
    elsewhere = parse_observation("Tab 0 (current): Elsewhere | http://shop.test/else\n[1] link 'Home'")
    nearest = NearestTransition([Transition(PAGE, "click [1]", NEXT), Transition(far, "click [1]", elsewhere)])
    almost = parse_observation(PAGE.text.replace("Hello", "Hello again"))
    assert nearest.predict([(almost, "click [1]")])[0].observation == NEXT
    assert nearest.predict([(far, "click [1]")])[0].observation == elsewhere
    assert nearest.predict([(far, "click [2]")])[0].observation == elsewhere  # no such action: the nearest page
    with pytest.raises(ValueError, match="no transitions"):
        NearestTransition([])


def test_splits_tell_memory_and_generalisation_apart(walks):
    rows = transitions_of(walks)
    by_name = {s.name: s.transitions for s in split_by_page(rows, rows[: len(rows) // 2])}
    assert sum(map(len, by_name.values())) == len(rows)
    assert set(rows[: len(rows) // 2]) <= set(by_name["seen page and action"])
    known = {t.observation.with_error("").text for t in rows[: len(rows) // 2]}
    assert not {t.observation.with_error("").text for t in by_name["unseen page"]} & known


def test_odd_actions_are_those_that_a_person_rarely_does():
    box = parse_observation(
        "Tab 0 (current): S | http://shop.test/\n[1] searchbox 'Search' value: ''\n[2] heading 'Hi'"
    )
    odd = {
        a: not sensible(Transition(box, a, box)) for a in ("type [1] [x] [1]", "type [1] [] [1]", "type [1] [x] [0]")
    }
    assert odd == {"type [1] [x] [1]": False, "type [1] [] [1]": True, "type [1] [x] [0]": True}
    assert not sensible(Transition(box, "click [2]", box)) and sensible(Transition(box, "go_back", box))


# Drift


def test_an_action_means_the_element_that_it_named():
    assert carry("click [3]", PAGE, PAGE) == "click [3]"
    assert carry("click [2]", PAGE, NEXT) == "click [1]"
    assert carry("click [4]", PAGE, NEXT) is None
    assert (
        carry("click [3]", PAGE, parse_observation(PAGE.text.replace("[1] link 'Mug'", "[1] link 'Pot'")))
        == "click [3]"
    )
    assert carry("go_back", PAGE, NEXT) == "go_back" and carry("no action", PAGE, NEXT) == "no action"


def test_a_perfect_model_does_not_drift_and_a_still_one_does(walks):
    perfect = free_running(walks, silent(Oracle(transitions_of(walks))), 6)
    still = free_running(walks, silent(NothingChanges()), 6)
    assert {s.step for s in perfect} == set(range(1, 7)) and len(perfect) == 6 * len(walks)
    right = sum(s.score.exact for s in perfect) / len(perfect)
    assert right > 0.9 > 0.5 > sum(s.score.exact for s in still) / len(still)
    first = [s for s in perfect if s.walk == 0]
    assert [s.real for s in first] == [s.next_observation for s in walks[0].steps]


def test_both_ways_of_imagining_a_walk_become_pairs(walks):
    model = Oracle(transitions_of(walks))
    forced, free = teacher_forced_pairs(walks[0], model), free_running_pairs(walks[0], silent(model))
    assert [p.real for p in forced] == [p.real for p in free] == [s.next_observation for s in walks[0].steps]
    assert forced[0].imagined.text == forced[0].real.with_error("").text


# Confidence


def test_calibration_by_hand():
    rows = [Transition(PAGE, "click [1]", NEXT)] * 4
    guesses = [Prediction(NEXT if c > 0.5 else PAGE, "", "", confidence=c) for c in (0.1, 0.4, 0.6, 0.9)]
    found = calibration(rows, guesses)
    assert found["auc"] == 1.0 and sum(b["n"] for b in found["bins"]) == 4
    swapped = [replace(g, confidence=1 - g.confidence) for g in guesses]
    assert calibration(rows, swapped)["auc"] == 0.0
    with pytest.raises(ValueError, match="all are wrong"):
        calibration(rows, [Prediction(PAGE, "", "")] * 4)


def test_dreams_that_stop_when_unsure_keep_what_is_right(walks):
    half = transitions_of(walks[::2])
    steps = free_running(walks, silent(Oracle(half)), 6)
    everything, sure = stopping(steps, (0.0, 0.5))
    assert everything["kept"] == 1.0 and 0 < sure["kept"] < 1
    assert sure["exact"] > everything["exact"]


def test_a_dream_may_stop_when_the_model_is_unsure(walks):
    rows = transitions_of(walks)
    web = ImaginedWeb(Oracle(rows[:1]), RuleJudge(lambda *item: True), min_confidence=0.5)
    tasks = generate_tasks(0, "validation")[:2]
    web.reset(tasks, [rows[0].observation] * 2)
    sure, unsure = web.step([rows[0].action, "click [1]" if rows[0].action != "click [1]" else "click [2]"])
    assert not sure.truncated and unsure.truncated and "confidence 0.20" in unsure.info["stopped"]
    with pytest.raises(ValueError, match="is over"):
        web.step([None, "stop []"])


# Evaluators on imagined pages


def test_evaluators_judge_imagined_pages_as_real_ones(walks):
    tasks = generate_tasks(0, "validation")
    solved = rollout(ExpertPolicy(tasks), DirectWeb(SiteServer(0)), tasks, 8)
    here = [t for t, e in zip(tasks, solved, strict=True) if t.kind not in ("add_to_cart", "wish")]
    ends = {e.task_id: e.steps[-1] for e in solved}
    for task in here:
        end = ends[task.task_id]
        answer = end.action[len("stop [") : -1]
        assert imagined_verdict(task, end.observation, answer), task.intent
        assert not imagined_verdict(task, PAGE, "42 bananas"), task.intent
    judge = EvaluatorJudge(here)
    first = here[0]
    end = ends[first.task_id]
    assert judge.judge([(first.intent, end.observation, end.action[6:-1]), (first.intent, PAGE, "no")]) == [1.0, 0.0]


def test_facts_found_and_facts_invented():
    tasks = [t for t in generate_tasks(0, "validation") if t.kind == "price"]
    solved = rollout(ExpertPolicy(tasks), DirectWeb(SiteServer(0)), tasks, 8)
    (task, episode), (_, other) = list(zip(tasks, solved, strict=True))[:2]
    right, wrong = episode.steps[-1].observation, other.steps[-1].observation
    assert settles(task, right) and not settles(task, wrong)
    rows = [Transition(PAGE, "click [1]", right)]
    assert facts_agreement(rows, [Prediction(right, "", "")], tasks)["f1"] == 1.0
    missed = facts_agreement(rows, [Prediction(PAGE, "", "")], tasks)
    assert (missed["found"], missed["precision"], missed["n_settled"]) == (0.0, 1.0, 1)
    made_up = facts_agreement(rows, [Prediction(wrong, "", "")], tasks)
    assert made_up["found"] == 0.0 and made_up["precision"] == 0.0


# The command


def test_a_model_is_trained_on_data_of_ones_own(tmp_path, walks, capsys, toy_model, monkeypatch):
    rows = [
        {"observation": t.observation.text, "action": t.action, "next_observation": t.next_observation.text}
        for t in transitions_of(walks)[:12]
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), '{"observation": "half'] + ["{}"]), encoding="utf-8")
    cleaned = imported(str(path))
    assert cleaned.rows == 14 and sum(cleaned.dropped.values()) == 14 - len(cleaned.transitions)
    monkeypatch.setattr("dynaweb_lite.world_model_command.LanguageModel.load", lambda base: toy_model)
    from dynaweb_lite import world_model_command
    from dynaweb_lite.presets import TINY

    quick = replace(TINY, world_model=replace(TINY.world_model, max_updates=2, batch_size=2))
    monkeypatch.setattr(world_model_command, "TINY", quick)
    options = Namespace(data=str(path), form="edit script", annotate=False, base="toy", run=None)
    assert train_on_data(options, tmp_path / "run") == 0
    told = capsys.readouterr().out
    assert "not JSON" in told and "nearest transition" in told and (tmp_path / "run" / "data.txt").exists()


def test_the_published_study_holds_what_the_issue_asks(tmp_path):
    results = json.loads((RESULTS / "world_model.json").read_text(encoding="utf-8"))
    rows = results["rows"]
    methods = {r["method"] for r in rows}
    assert {MODEL, "nothing changes", "nearest transition"} <= methods
    drift = {(r["method"], r["step"]): r for r in rows if r["split"] == "free-running"}
    assert {step for method, step in drift if method == MODEL} == set(range(1, 11))
    assert all(0 <= r["low"] <= r["changed_f1"] <= r["high"] <= 1 and r["n"] > 0 for r in rows)
    report = write_report(results, tmp_path).read_text(encoding="utf-8")
    assert all(text.split(".")[0] in report for text in findings(results)) and "<script" not in report
    assert drift_figure(rows).axes and calibration_figure(results["calibration"]).axes
    one = next(r for r in rows if r["method"] == MODEL and r["split"] == "held out")
    assert f"{one['changed_f1']:.3f}" in README.read_text(encoding="utf-8")


def test_fidelity_takes_any_predictor(walks):
    found = fidelity(NothingChanges(), transitions_of(walks))
    assert found["changed_f1"] == found["nothing_changes"]["changed_f1"] < 0.5


def test_the_naive_loop_says_what_the_batched_one_says():
    lm = LanguageModel.load(ASSETS / "tiny-base", ASSETS / "world-model").merged()
    page = load_trajectories(ASSETS / "explorations.jsonl")[0].steps[0].observation
    pairs = [(page, f"click [{i}]") for i in range(1, 5)]
    replies = [naive_prediction(lm, pair) for pair in pairs]
    said = [f"{p.reason}\n{p.change}" if p.change else p.reason for p in WorldModel(lm).predict(pairs)]
    assert replies == said and len(set(replies)) > 1
    assert throughput(lm, pairs, rounds=1)["ratio"] > 0
