"""The whole loop on a thimbleful of everything, through the real browser, with the shipped base model."""

import json
from dataclasses import replace

import pytest

from dynaweb_lite import cli
from dynaweb_lite.presets import RESULTS, TINY, TINY_QUICK
from dynaweb_lite.quickstart import METHODS, Loop
from dynaweb_lite.readme import README, with_results
from dynaweb_lite.rl import RLSettings
from dynaweb_lite.runs import Clock, RunError, open_run
from dynaweb_lite.sft import SFTSettings

SMALL = replace(
    TINY,
    explorations=4,
    exploration_steps=4,
    contexts=4,
    world_model=SFTSettings(max_updates=4, batch_size=8),
    cloning=(SFTSettings(max_updates=3, batch_size=8), SFTSettings(max_updates=1, batch_size=8)),
    rl=RLSettings(updates=2, groups_per_update=2, group_size=4, max_dream_steps=3, eval_every=2),
    seeds=(0,),
    test_tasks=5,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that was stopped while it scored, and went on."""
    folder = tmp_path_factory.mktemp("runs") / "a run with spaces"
    stopped = Loop(SMALL, folder)
    stopped.score = lambda method, seed: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    trained = {path: path.stat().st_mtime_ns for path in folder.rglob("adapter_model.safetensors")}
    report = Loop(SMALL, folder).run()
    return folder, trained, report


def test_a_stopped_run_goes_on_without_training_again(finished):
    folder, trained, _ = finished
    kept = {"world_model-0", "sft-0/0", "sft-0/1", "dreams_only-0/best", "dynaweb-0/best"}
    assert kept <= {str(path.parent.relative_to(folder)) for path in trained}
    assert all(path.stat().st_mtime_ns == when for path, when in trained.items() if "last" not in path.parts)


def test_results_hold_every_method_and_the_paired_difference(finished):
    results = json.loads((finished[0] / "results.json").read_text())
    rows = {r["method"]: r for r in results["rows"] if r["tasks"] == "all"}
    assert set(METHODS) | {"dynaweb - sft"} <= set(rows)
    assert all(rows[m]["n"] == 5 and rows[m]["low"] <= rows[m]["success"] <= rows[m]["high"] for m in METHODS)
    assert rows["dynaweb"]["real_steps"] >= 4 * 4 + 39 * 2 and rows["dynaweb"]["dream_steps"] > 0
    assert results["made"]["peak_memory_mb"] < 4096


def test_the_report_shows_results_and_imagined_pages(finished):
    page = finished[2].read_text(encoding="utf-8")
    assert "dynaweb" in page and "data:image/png;base64," in page and "nothing changes" in page
    assert "http://" not in page.replace("http://shop.test", "").replace("http://forum.test", "").replace(
        "http://www.w3.org", ""
    )


def test_a_folder_with_other_settings_is_refused(finished, capsys):
    with pytest.raises(RunError, match="other settings"):
        open_run(finished[0], replace(SMALL, max_steps=3))
    assert cli.main(["quickstart", "--run", str(finished[0])]) == 1
    assert "--fresh" in capsys.readouterr().err


@pytest.mark.parametrize("nonsense", [["--seeds", "-1"], ["--seeds", "x"], ["--jobs", "0"]])
def test_nonsense_is_refused_before_anything_begins(nonsense, tmp_path):
    with pytest.raises(SystemExit):
        cli.main(["quickstart", "--run", str(tmp_path / "run"), *nonsense])
    assert not (tmp_path / "run").exists()


def test_fresh_removes_nothing_but_runs(tmp_path, capsys):
    (tmp_path / "config.json").write_text("{}")
    assert cli.main(["quickstart", "--run", str(tmp_path), "--fresh"]) == 1
    assert "is not the folder of a run" in capsys.readouterr().err and (tmp_path / "config.json").exists()


def test_the_clock_learns_the_machines_pace(tmp_path, capsys):
    clock = Clock(tmp_path, {"a": 1.0, "b": 10.0})
    with clock.phase("a"):
        clock.seconds["a"] = 120.0
    with clock.phase("b"):
        pass
    assert "[2/2] b   (about 20 min left)" in capsys.readouterr().out
    assert Clock(tmp_path, {}).total_seconds == pytest.approx(120, abs=1)


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="at least one seed"):
        replace(TINY, seeds=())


def test_the_quick_preset_tries_a_setting_of_the_full_one():
    assert set(TINY_QUICK.cloning) <= set(TINY.cloning) and TINY_QUICK.model == TINY.model


def test_readme_quotes_the_measured_results():
    if not (RESULTS / "quickstart.json").exists():
        pytest.skip("no results measured yet")
    text = README.read_text(encoding="utf-8")
    assert with_results(text) == text
