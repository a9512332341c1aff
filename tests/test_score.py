"""Scores: formulas against hand-computed values, resuming, and intervals that mean what they say."""

import json

import numpy as np
import pytest

from dynaweb_lite.explore import collect
from dynaweb_lite.observation import Observation
from dynaweb_lite.score import (
    Result,
    format_table,
    load_results,
    outcomes,
    paired_difference,
    paired_row,
    results_rows,
    score,
    student_t95,
    success,
    success_by,
    wilson,
)
from dynaweb_lite.tasks import Task, TaskError
from dynaweb_lite.worlds import Decision, WorldStep

PAGE = Observation("Page", "http://shop.test/")


class AnswerWorld:
    """Rewards the answer that the task names; counts how many episodes it was asked to begin."""

    name = "answer"

    def __init__(self):
        self.begun = 0

    def reset(self, tasks, starts=None):
        self.begun += len(tasks)
        self.tasks = list(tasks)
        return [PAGE] * len(tasks)

    def step(self, actions):
        return [a and WorldStep(PAGE, float(t.intent in a), True) for t, a in zip(self.tasks, actions, strict=True)]

    def close(self):
        pass


class Says:
    def __init__(self, answer):
        self.answer = answer

    def act(self, episodes, observations):
        return [Decision(f"stop [{self.answer}]") for _ in episodes]


class Breaks(Says):
    """Stops working after the first batch, as a killed run does."""

    def act(self, episodes, observations):
        if self.answer is None:
            raise KeyboardInterrupt
        decisions, self.answer = super().act(episodes, observations), None
        return decisions


def tasks(count=5):
    sites = ["shopping", "reddit"]
    return [Task(i, (sites[i % 2],), "__SHOPPING__", "ab"[i % 2], {}, kind="find") for i in range(count)]


def result(i, won, site="shopping", kind="find"):
    return Result(i, site, kind, won, 3, "", "", 0.1)


def test_wilson_matches_hand_computed_values():
    # Newcombe (1998), table 1: 81 of 263 -> 0.2553 to 0.3662; 0 of 20 -> 0 to 0.1611
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(20, 20)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_student_t_matches_tables():
    assert [student_t95(d) for d in (1, 2, 4)] == pytest.approx([12.706, 4.303, 2.776], abs=1e-3)
    assert [student_t95(d) for d in (11, 20, 60)] == pytest.approx([2.201, 2.086, 2.000], abs=1e-3)


def test_success_counts_parts():
    results = [result(0, 1), result(1, 0), result(2, 1, "reddit")]
    assert success(results).value == pytest.approx(2 / 3)
    assert {k: (r.successes, r.n) for k, r in success_by(results, lambda r: r.site).items()} == {
        "reddit": (1, 1),
        "shopping": (1, 2),
    }


def test_score_plays_each_task_and_keeps_their_order():
    results = score(Says("a"), AnswerWorld(), tasks(), max_steps=3, batch=2)
    assert [(r.task_id, r.site, r.success, r.answer) for r in results] == [
        (i, ["shopping", "reddit"][i % 2], 1 - i % 2, "a") for i in range(5)
    ]


def test_a_killed_score_goes_on_where_it_was(tmp_path):
    path = tmp_path / "scores.jsonl"
    with pytest.raises(KeyboardInterrupt):
        score(Breaks("a"), AnswerWorld(), tasks(), max_steps=3, batch=2, path=path)
    assert set(load_results(path)) == {0, 1}
    with path.open("a") as file:
        file.write(json.dumps({"task_id": 3, "success": 1}) + "\n" + '{"task_id": 4, "si')  # a foreign and a half row
    world = AnswerWorld()
    results = score(Says("a"), world, tasks(), max_steps=3, batch=2, path=path)
    assert world.begun == 3
    assert [r.success for r in results] == [1, 0, 1, 0, 1]
    assert score(Says("never asked"), AnswerWorld(), tasks(), 3, 2, path) == results


def test_scoring_nothing_is_an_error():
    with pytest.raises(TaskError, match="no tasks to score"):
        score(Says("a"), AnswerWorld(), [], 3, 2)


def test_paired_difference_by_hand():
    a = {0: {"x": 1, "y": 1, "only a": 1}, 1: {"x": 1, "y": 0}, 7: {"x": 1}}
    b = {0: {"x": 0, "y": 1}, 1: {"x": 0, "y": 0}}
    paired = paired_difference(a, b)
    assert (paired.difference, paired.by_seed, paired.n) == (0.5, (0.5, 0.5), 2)
    assert paired.over_seeds == (0.5, 0.5)  # both seeds say the same
    assert paired.over_tasks == (0.0, 1.0)  # task x says 1, task y says 0
    difference, low, high = paired
    assert difference == 0.5 and low <= 0.5 <= high
    assert paired_difference(a, b) == paired


def test_t_interval_by_hand():
    a = {s: {"x": v} for s, v in enumerate((0.1, 0.2, 0.3))}
    zero = {s: {"x": 0} for s in a}
    # mean 0.2, standard deviation 0.1, t(2) = 4.3027: half = 4.3027 * 0.1 / sqrt(3) = 0.2484
    assert paired_difference(a, zero).over_seeds == pytest.approx((0.2 - 0.2484, 0.2 + 0.2484), abs=1e-4)
    assert paired_difference({0: {"x": 1}}, {0: {"x": 0}}).over_seeds is None


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(100):
        a = {s: dict(enumerate(rng.random(80) < 0.6)) for s in range(5)}
        b = {s: dict(enumerate(rng.random(80) < 0.4)) for s in range(5)}
        a, b = ({s: {t: int(v) for t, v in row.items()} for s, row in side.items()} for side in (a, b))
        _, low, high = paired_difference(a, b, draws=300)
        hits += low <= 0.2 <= high
    assert 85 <= hits


def test_seeds_that_disagree_widen_the_interval():
    tasks_ = range(100)
    zero = {s: dict.fromkeys(tasks_, 0) for s in range(3)}
    same = {s: {t: int(t % 2) for t in tasks_} for s in range(3)}
    split = {s: {t: int(t < (0, 50, 100)[s]) for t in tasks_} for s in range(3)}
    agree, disagree = paired_difference(same, zero), paired_difference(split, zero)
    assert agree.difference == disagree.difference == 0.5
    assert disagree.low < agree.low - 0.2 and disagree.over_seeds[0] < agree.over_seeds[0]


def test_nothing_to_pair_is_an_error():
    with pytest.raises(ValueError, match="share no seed"):
        paired_difference({0: {"x": 1}}, {1: {"x": 1}})
    with pytest.raises(ValueError, match="share no seed"):
        paired_difference({0: {"x": 1}}, {0: {"y": 1}})


def test_rows_average_seeds_without_counting_tasks_twice():
    runs = {0: [result(0, 1), result(1, 0, "reddit")], 1: [result(0, 1), result(1, 1, "reddit")]}
    rows = results_rows("dynaweb", runs, "test", real_steps=10, dream_steps=20, minutes=1.26)
    assert [(r["tasks"], r["n"], r["success"]) for r in rows] == [
        ("all", 2, 0.75), ("reddit", 1, 0.5), ("shopping", 1, 1.0), ("reddit/find", 1, 0.5), ("shopping/find", 1, 1.0)
    ]  # fmt: skip
    assert (rows[0]["low"], rows[0]["high"]) == pytest.approx(wilson(1.5, 2), abs=1e-4)
    fields = "method tasks split n success low high seeds real_steps dream_steps minutes"
    assert list(rows[0]) == fields.split()
    assert (rows[0]["seeds"], rows[0]["minutes"]) == (2, 1.3)


def test_table_shows_rates_and_signed_differences():
    runs = {0: [result(0, 1), result(1, 0)]}
    paired = paired_difference({0: outcomes(runs[0])}, {0: {0: 0, 1: 0}})
    table = format_table([*results_rows("sft", runs, "test", 5), paired_row("dynaweb - sft", paired, "test")])
    lines = table.split("\n")
    assert len({len(line) for line in lines}) == 1 and len(lines) == 4
    assert "0.500 [0.095, 0.905]" in lines[2] and "+0.500 [" in lines[3]


class Crashing(AnswerWorld):
    """Its browser dies in the first batch and works from the second on."""

    def step(self, actions):
        if self.begun > 2:
            return super().step(actions)
        return [WorldStep(PAGE, truncated=True, info={"error": "the browser stopped"}) for _ in actions]


def test_episodes_that_break_down_with_the_browser_are_played_again(tmp_path):
    results = score(Says("a"), Crashing(), tasks(), max_steps=3, batch=2, path=tmp_path / "s.jsonl")
    assert [r.success for r in results] == [1, 0, 1, 0, 1] and not any(r.error for r in results)


def test_collecting_plays_breakdowns_again_and_gives_up_when_nothing_else_comes(tmp_path):
    played = collect(Says("a"), Crashing(), tasks(), tmp_path / "t.jsonl", 3, batch=2, progress=False)
    assert len(played) == 3 and all(t.terminated for t in played)
    broken = Crashing()
    broken.reset = lambda tasks, starts=None: [PAGE] * len(tasks)
    with pytest.raises(OSError, match="3 times in a row"):
        collect(Says("a"), broken, tasks(), tmp_path / "u.jsonl", 3, batch=2, progress=False)
