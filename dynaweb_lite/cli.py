"""Commands: python -m dynaweb_lite quickstart | build-base | setup-browser | world-model | sites | tasks | score."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns its exit status. Errors that a person can mend are one line, not a traceback."""
    parser = argparse.ArgumentParser(prog="dynaweb_lite", description="Dyna for web agents, end to end.")
    commands = parser.add_subparsers(dest="command", required=True)
    quick = commands.add_parser("quickstart", help="the whole loop in one go; writes a report")
    quick.add_argument("--full", action="store_true", help="collect everything, three seeds, all test tasks")
    quick.add_argument("--run", type=Path, help="folder of the run (default: runs/quickstart or runs/full)")
    quick.add_argument("--seeds", type=seed, nargs="+", help="training seeds instead of the preset's")
    quick.add_argument(
        "--jobs",
        type=int,
        choices=range(1, 65),
        metavar="N",
        default=1,
        help="seeds trained side by side, each in its own process",
    )
    quick.add_argument("--fresh", action="store_true", help="remove the folder's earlier run first")
    quick.add_argument("--publish", action="store_true", help="copy the results and the first seed's models to assets/")
    base = commands.add_parser("build-base", help="build the tiny base model from nothing, about half an hour")
    base.add_argument("--out", type=Path, help="folder (default: assets/tiny-base)")
    model = commands.add_parser("world-model", help="train a world model, or measure it from all sides")
    model.add_argument("--report", action="store_true", help="the whole study; writes a report")
    model.add_argument(
        "--data", help="your transitions or NNetNav's rows: a JSONL or parquet file, or a name on the hub"
    )
    model.add_argument(
        "--form", choices=("edit script", "described"), default="edit script", help="with --data: form of Δ"
    )
    model.add_argument("--annotate", action="store_true", help="with --data: a language model writes reason and Δ")
    model.add_argument("--base", help="with --data: the model to train (default: the tiny base)")
    model.add_argument("--run", type=Path, help="folder of the run (default: runs/world-model)")
    model.add_argument("--fresh", action="store_true", help="remove the folder's earlier run first")
    model.add_argument("--publish", action="store_true", help="with --report: copy the results to assets/")
    commands.add_parser("setup-browser", help="find a Chromium, or install one")
    sites = commands.add_parser("sites", help="serve the replicas for a person to look at")
    sites.add_argument("--ground", choices=("webarena", "practice"), default="webarena", help="which replicas")
    sites.add_argument("--seed", type=seed, default=0, help="seed of their content; 0 is the canonical one")
    sites.add_argument("--port", type=port, default=8000, help="port on this machine (default: 8000; 0: any free one)")
    sites.add_argument("--open", action="store_true", help="open the home page in the default browser")
    tasks = commands.add_parser("tasks", help="list WebArena's tasks that run on the replicas, or prove that they do")
    tasks.add_argument("--verify", action="store_true", help="play solution, idler and mistake of each task")
    tasks.add_argument("--generated", action="store_true", help="the tasks made from templates instead of WebArena's")
    tasks.add_argument("--seed", type=seed, default=0, help="with --generated: seed of the sites' content")
    tasks.add_argument("--site", help="only those of one site, such as gitlab")
    tasks.add_argument("--ids", type=int, nargs="+", help="only these of WebArena's tasks")
    tasks.add_argument("--direct", action="store_true", help="with --verify: without a browser, faster, and no proof")
    tasks.add_argument("--trace", action="store_true", help="with --verify: print every page and action")
    add_score(commands)
    options = parser.parse_args(arguments)
    try:
        return COMMANDS[options.command](options)
    except KeyboardInterrupt:
        print(f"\nstopped; {STOPPED[options.command]}", file=sys.stderr)
        return 130
    except known_errors() as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def add_score(commands: argparse._SubParsersAction) -> None:
    """The command `score` and its options."""
    parser = commands.add_parser("score", help="play tasks with a policy, and print success rates by site")
    parser.add_argument(
        "--tasks",
        default="practice",
        metavar="FILE_OR_NAME",
        help="practice, generated, webarena, webarena-lite, or a file in WebArena's schema (default: practice)",
    )
    parser.add_argument(
        "--policy",
        default="dynaweb",
        metavar="FOLDER_OR_NAME",
        help="an adapter in assets/ or another folder of an adapter or a model; base, expert, random, nothing",
    )
    parser.add_argument("--base", help="the model below the adapter (default: assets/tiny-base)")
    parser.add_argument("--ids", nargs="+", metavar="ID", help="only these tasks")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N tasks")
    parser.add_argument("--live", action="store_true", help="on your own sites, which WA_* variables name")
    parser.add_argument("--ground", choices=("practice", "webarena"), help="on replicas, although WA_* are set")
    parser.add_argument("--strict", choices=("webarena",), default="", help="score as WebArena's own evaluators do")
    parser.add_argument("--max-steps", type=positive, metavar="N", help="actions an episode may take")
    parser.add_argument("--contexts", type=positive, default=8, metavar="N", help="episodes side by side (default: 8)")
    parser.add_argument("--logins", type=Path, metavar="FILE", help="keep the cookies of live logins in this file")
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="where results are kept (default: in runs/score)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table's rows to this JSON file")


def positive(text: str) -> int:
    """A whole number above 0. Raises ValueError for anything else."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def port(text: str) -> int:
    """A port, 0 for any free one. Raises ValueError for a number that is none."""
    if not 0 <= int(text) < 2**16:
        raise ValueError
    return int(text)


def seed(text: str) -> int:
    """A seed that every library takes. Raises ValueError for any other."""
    if not 0 <= int(text) < 2**31:
        raise ValueError
    return int(text)


def known_errors() -> tuple[type[Exception], ...]:
    """Errors whose message says what to do. Imported late: `setup-browser` must not wait for torch."""
    from dynaweb_lite.chromium import BrowserError
    from dynaweb_lite.tasks import TaskError

    if "torch" not in sys.modules:
        return BrowserError, TaskError, OSError
    from dynaweb_lite.endpoint import EndpointError
    from dynaweb_lite.gspo import TrainingDiverged
    from dynaweb_lite.importers import ImportFailure
    from dynaweb_lite.language_model import ModelError
    from dynaweb_lite.live import LoginError
    from dynaweb_lite.runs import RunError

    known = (BrowserError, TaskError, ModelError, RunError, LoginError, TrainingDiverged, EndpointError, ImportFailure)
    return (*known, OSError)


def quickstart(options: argparse.Namespace) -> int:
    from dynaweb_lite.presets import TINY, TINY_QUICK
    from dynaweb_lite.publish import publish
    from dynaweb_lite.quickstart import Loop
    from dynaweb_lite.runs import RunError, quiet_libraries

    quiet_libraries()

    preset = TINY if options.full else TINY_QUICK
    if options.seeds:
        preset = replace(preset, seeds=tuple(dict.fromkeys(options.seeds)))
    folder = options.run or Path("runs") / ("full" if options.full else "quickstart")
    if options.fresh and folder.exists():
        if not (folder / "started.json").exists():
            raise RunError(f"{folder} is not the folder of a run, so --fresh does not remove it")
        shutil.rmtree(folder)
    Loop(preset, folder, options.jobs).run()
    if options.publish:
        publish(folder)
    return 0


def build_base(options: argparse.Namespace) -> int:
    from dynaweb_lite.presets import ASSETS
    from dynaweb_lite.tiny_base import build_base

    build_base(options.out or ASSETS / "tiny-base")
    return 0


def setup_browser(_options: argparse.Namespace) -> int:
    from dynaweb_lite import install_chromium

    return install_chromium.main()


def world_model(options: argparse.Namespace) -> int:
    from dynaweb_lite import world_model_command
    from dynaweb_lite.presets import TINY

    options.base = options.base or TINY.model
    return world_model_command.main(options)


def serve_sites(options: argparse.Namespace) -> int:
    from dynaweb_lite.sites.serve import serve

    serve(options.seed, options.port, options.ground, options.open)
    return 0


def tasks(options: argparse.Namespace) -> int:
    from dynaweb_lite import verify

    return verify.main(options)


def score_tasks(options: argparse.Namespace) -> int:
    from dynaweb_lite import score_command
    from dynaweb_lite.presets import TINY

    options.base = options.base or TINY.model
    return score_command.main(options)


STOPPED = {
    "quickstart": "what is done is kept, and the same command goes on from here",
    "build-base": "the model that was there is as it was; a build starts from nothing",
    "world-model": "what is done is kept, and the same command goes on from here",
    "setup-browser": "run it again to go on",
    "sites": "what was done on the sites is forgotten",
    "tasks": "nothing was written",
    "score": "what is done is kept, and the same command goes on from here",
}
COMMANDS = {
    "quickstart": quickstart,
    "build-base": build_base,
    "world-model": world_model,
    "setup-browser": setup_browser,
    "sites": serve_sites,
    "tasks": tasks,
    "score": score_tasks,
}
