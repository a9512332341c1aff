"""The command `score`: which tasks it plays and where, what it keeps, and how it goes on."""

import json
import socket
from argparse import Namespace

import pytest

from dynaweb_lite import score_command
from dynaweb_lite.browser import RealWeb
from dynaweb_lite.cli import main
from dynaweb_lite.score_command import make_plan, make_policy
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.tasks import REPLICA_HOSTS, TaskError
from dynaweb_lite.trajectory import load_trajectories
from dynaweb_lite.webarena_tasks import replicated

IDS = {"shopping": "465", "reddit": "399", "gitlab": "419", "shopping_admin": "488"}


def options(**changed):
    chosen = {"tasks": "practice", "ids": None, "limit": None, "live": False, "ground": None}
    return Namespace(**chosen | changed)


def test_where_tasks_are_played(monkeypatch):
    assert make_plan(options()).place == "replicas (practice)"
    plan = make_plan(options(tasks="webarena"))
    assert plan.place == "replicas (webarena)" and len(plan.tasks) == len(replicated())
    lite = make_plan(options(tasks="webarena-lite", limit=40))
    assert len(lite.tasks) == 40 and lite.tasks[0].extra["old_task_id"] in {row.task_id for row in replicated()}
    with pytest.raises(TaskError, match="own sites: set WA_SHOPPING"):
        make_plan(options(tasks="webarena", live=True, ids=["465"]))
    monkeypatch.setenv("WA_SHOPPING", "http://shop.example")
    assert make_plan(options(tasks="webarena", ids=["465"])).place == "your own sites"
    assert make_plan(options(tasks="webarena", ids=["465"], ground="webarena")).place == "replicas (webarena)"
    assert make_plan(options()).ground == "practice"  # made for the replicas, and for nothing else
    with pytest.raises(TaskError, match="own sites: set WA_REDDIT"):
        make_plan(options(tasks="webarena", ids=["399"]))
    with pytest.raises(TaskError, match="take one of them"):
        make_plan(options(live=True, ground="practice"))


def test_what_cannot_be_played_is_named(tmp_path, monkeypatch):
    without = next(str(i) for i in range(812) if i not in {row.task_id for row in replicated()})
    for name, ids, message in (
        ("webarena", [without], f"no replica for task {without}: set the WA_"),
        ("webarena", ["99999"], "no task 99999 among these"),
        ("nonsense", None, "no tasks called 'nonsense': name one of practice, generated, webarena"),
    ):
        with pytest.raises(TaskError, match=message):
            make_plan(options(tasks=name, ids=ids))
    (tmp_path / "mine.json").write_text("[")
    assert main(["score", "--tasks", str(tmp_path / "mine.json")]) == 1
    assert main(["score", "--policy", str(tmp_path), "--run", str(tmp_path / "run")]) == 1  # no adapter there
    tasks = make_plan(options()).tasks[:1]
    assert make_policy("expert", "", tasks).tasks and make_policy("nothing", "", tasks)


def test_scores_are_kept_and_finished_tasks_are_not_played_again(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, folder = tmp_path / "rows.json", tmp_path / "runs" / "score" / "webarena-expert-webarena"
    command = ["score", "--tasks", "webarena", "--policy", "expert", "--contexts", "2", "--out", str(out)]

    class Stopped(score_command.ScriptPolicy):
        def act(self, episodes, observations):
            if (folder / "results.jsonl").exists():
                raise KeyboardInterrupt
            return super().act(episodes, observations)

    with monkeypatch.context() as patch:
        patch.setattr(score_command, "ScriptPolicy", Stopped)
        assert main([*command, "--ids", *IDS.values()]) == 130
    shown = capsys.readouterr()
    assert "2 of 4 tasks so far" in shown.out and "the same command goes on from here" in shown.err
    assert not out.exists()
    assert main([*command, "--ids", *IDS.values()]) == 0
    assert len(load_trajectories(folder / "trajectories.jsonl")) == 4  # each played once
    shown = capsys.readouterr().out
    assert "never WebArena scores" in shown and "1.000 [0.510, 1.000]" in shown and "evaluator" in shown
    rows = {row["tasks"]: row for row in json.loads(out.read_text())["rows"]}
    assert set(rows) == {"all", *IDS} and rows["all"]["n"] == 4 and rows["gitlab"]["success"] == 1
    assert all(row["evaluator"] == "right" and row["broke_down"] == row["not_scorable"] == 0 for row in rows.values())
    with monkeypatch.context() as patch:
        patch.setattr(RealWeb, "reset", lambda *_: pytest.fail("played again"))
        assert main([*command, "--ids", *IDS.values()]) == 0
    assert main([*command, "--max-steps", "5"]) == 1
    assert "holds a run with other settings" in capsys.readouterr().err


def test_tasks_without_a_judge_are_counted_apart(tmp_path, capsys):
    row = {"task_id": 5, "sites": ["map"], "start_url": "__MAP__", "intent": "x"}
    row["eval"] = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["nice"]}}
    (tmp_path / "mine.json").write_text(json.dumps([row]))
    command = ["score", "--tasks", str(tmp_path / "mine.json"), "--policy", "nothing", "--run", str(tmp_path / "run")]
    assert main([*command, "--strict", "webarena"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("map"))
    assert line.split() == ["map", "0", "none", "scored", "1", "0", "webarena"]


def test_the_same_command_runs_on_the_users_own_sites(tmp_path, capsys, monkeypatch):
    with SiteServer(ground="webarena", login=True) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for site in IDS:
            path = "/admin" if site == "shopping_admin" else ""
            name = REPLICA_HOSTS[site].removesuffix(".test")
            monkeypatch.setenv(f"WA_{site.upper()}", f"http://{name}.localhost:{server.port}{path}")
        address = f"http://git.localhost:{server.port}"
        monkeypatch.setenv("WA_GITLAB", f"http://git.localhost:{closed.getsockname()[1]}")
        command = ["score", "--tasks", "webarena", "--policy", "expert", "--run", str(tmp_path / "run")]
        command += ["--logins", str(tmp_path / "logins.json"), "--ids", *IDS.values()]
        assert main(command) == 1
        shown = capsys.readouterr().out
        assert "on your own sites" in shown and "light replicas" not in shown
        assert "broken down: 1" in shown and "gitlab: WA_GITLAB" in shown and "CONNECTION_REFUSED" in shown
        assert "all                 4  0.750" in shown
        monkeypatch.setenv("WA_GITLAB", address)
        assert main(command) == 0
        assert "all                 4  1.000" in capsys.readouterr().out
        assert len(load_trajectories(tmp_path / "run" / "trajectories.jsonl")) == 4
