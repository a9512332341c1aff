"""Commands: python -m dynaweb_lite quickstart | build-base | setup-browser | sites | tasks."""

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
    commands.add_parser("setup-browser", help="find a Chromium, or install one")
    sites = commands.add_parser("sites", help="serve the replicas for a person to look at")
    sites.add_argument("--ground", choices=("webarena", "practice"), default="webarena", help="which replicas")
    sites.add_argument("--seed", type=seed, default=0, help="seed of their content; 0 is the canonical one")
    sites.add_argument("--port", type=int, default=8000, help="port on this machine (default: 8000; 0: any free one)")
    sites.add_argument("--open", action="store_true", help="open the home page in the default browser")
    tasks = commands.add_parser("tasks", help="list WebArena's tasks that run on the replicas, or prove that they do")
    tasks.add_argument("--verify", action="store_true", help="play solution, idler and mistake of each task")
    tasks.add_argument("--generated", action="store_true", help="the tasks made from templates instead of WebArena's")
    tasks.add_argument("--seed", type=seed, default=0, help="with --generated: seed of the sites' content")
    tasks.add_argument("--site", help="only those of one site, such as gitlab")
    tasks.add_argument("--ids", type=int, nargs="+", help="only these of WebArena's tasks")
    tasks.add_argument("--direct", action="store_true", help="without a browser: faster, and no proof")
    tasks.add_argument("--trace", action="store_true", help="with --verify: print every page and action")
    options = parser.parse_args(arguments)
    try:
        return COMMANDS[options.command](options)
    except KeyboardInterrupt:
        print(f"\nstopped; {STOPPED[options.command]}", file=sys.stderr)
        return 130
    except known_errors() as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


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
    from dynaweb_lite.gspo import TrainingDiverged
    from dynaweb_lite.language_model import ModelError
    from dynaweb_lite.runs import RunError

    return BrowserError, TaskError, ModelError, RunError, TrainingDiverged, OSError


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


def serve_sites(options: argparse.Namespace) -> int:
    from dynaweb_lite.sites.serve import serve

    serve(options.seed, options.port, options.ground, options.open)
    return 0


def tasks(options: argparse.Namespace) -> int:
    from dynaweb_lite import verify

    return verify.main(options)


STOPPED = {
    "quickstart": "what is done is kept, and the same command goes on from here",
    "build-base": "the model that was there is as it was; a build starts from nothing",
    "setup-browser": "run it again to go on",
    "sites": "what was done on the sites is forgotten",
    "tasks": "nothing was written",
}
COMMANDS = {
    "quickstart": quickstart,
    "build-base": build_base,
    "setup-browser": setup_browser,
    "sites": serve_sites,
    "tasks": tasks,
}
