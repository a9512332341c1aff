"""The project around the package: set-up commands, version ranges, what a fresh clone needs."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from dynaweb_lite import install_chromium
from dynaweb_lite.chromium import BrowserError

ROOT = Path(__file__).parents[1]


def requirements(name):
    lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    return {r.name.lower(): r for r in map(Requirement, (x for x in lines if x and not x.startswith("-")))}


def test_constraints_lie_within_the_requirements():
    pinned = requirements("constraints.txt")
    for name, requirement in requirements("requirements.txt").items():
        pin = str(pinned[name].specifier).removeprefix("==")
        assert Version(pin) in requirement.specifier, f"{name}: {pin} is outside {requirement.specifier}"


def test_what_is_installed_is_what_was_tested():
    for name, requirement in requirements("requirements.txt").items():
        assert Version(version(name)).public in requirement.specifier, name
    assert Version("1.16") not in requirements("requirements.txt")["trl"].specifier
    assert Version("5.0") not in requirements("requirements.txt")["datasets"].specifier


def test_constraints_name_no_local_builds():
    assert "+" not in "".join(str(r.specifier) for r in requirements("constraints.txt").values())


def test_every_module_imports_only_what_is_required():
    required = {
        *requirements("requirements.txt"),
        "tokenizers",
        "safetensors",
        "werkzeug",
    }  # the last ones come with others
    optional = {"unsloth"}
    for path in (ROOT / "dynaweb_lite").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
        names |= {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
        unknown = {name.split(".")[0] for name in names} - required - optional - sys.stdlib_module_names
        assert unknown <= {"dynaweb_lite"}, f"{path.name} imports {unknown}, which requirements.txt does not name"


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(target, *arguments):
    return subprocess.run(
        ["make", "-n", "-B", target, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@needs_make
def test_make_sets_up_before_it_runs():
    for target, command in (("test", "-m pytest"), ("quickstart", "dynaweb_lite quickstart")):
        steps = make(target, "VENV=absent")
        order = ["-m venv absent", "-r requirements.txt -c constraints.txt", "-e .", "setup-browser", command]
        places = [steps.index(step) for step in order]
        assert places == sorted(places), steps


@needs_make
def test_make_says_what_it_can_do():
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.search(r"\.PHONY: (.*)", (ROOT / "Makefile").read_text())[1].split()
    for target in set(targets) - {"help", "setup"}:
        assert f"make {target} " in shown


def test_ci_runs_the_documented_test_command():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text() and "set -euo pipefail" in script.read_text()


def test_package_names_its_license_and_finds_itself():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert version("dynaweb-lite") == project["version"]


def test_readme_gives_the_same_commands():
    readme = (ROOT / "README.md").read_text()
    for command in ("make quickstart", "make test", "pip install -r requirements.txt -c constraints.txt"):
        assert command in readme


def test_readme_s_file_tree_names_every_module():
    readme = (ROOT / "README.md").read_text().split("## Find your way")[1].split("```")[1]
    modules = [f for f in (ROOT / "dynaweb_lite").glob("*.py") if not f.name.startswith("__")]
    modules += [f for f in (ROOT / "dynaweb_lite" / "sites").glob("*.py") if not f.name.startswith("__")]
    assert [f.name for f in modules if f.name not in readme] == []
    known = {f.name for f in (ROOT / "dynaweb_lite").rglob("*.py")} | {"build.py", "environment.py"}
    assert {name for name in re.findall(r"\w+\.py", readme)} <= known


@pytest.fixture
def machine(monkeypatch):
    """A machine with apt-get on which one command, known by some words, brings Chromium, and downloads fail."""

    def prepare(brings: str, root: bool = True):
        ran: list[str] = []

        def runner(command, timeout_seconds):
            ran.append(" ".join(command))
            return brings in ran[-1] or "apt-get" in ran[-1]

        def working():
            return Path("/chromium") if any(brings in command for command in ran) else None

        monkeypatch.setattr(install_chromium, "working_chromium", working)
        monkeypatch.setattr(install_chromium.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(install_chromium.os, "geteuid", lambda: 0 if root else 1000)
        return runner, ran

    return prepare


def test_playwrights_own_chromium_comes_first(machine):
    runner, ran = machine("playwright install chromium")
    assert install_chromium.install(runner) == Path("/chromium")
    assert len(ran) == 1 and ran[0].endswith("-m playwright install chromium")


def test_debian_packages_are_the_way_out_for_root(machine):
    runner, ran = machine("apt-get install")
    assert install_chromium.install(runner) == Path("/chromium")
    assert ran[1:] == ["apt-get update", "apt-get install -y --no-install-recommends chromium chromium-headless-shell"]


def test_a_person_without_root_is_told_what_to_run(machine, monkeypatch, capsys):
    runner, ran = machine("apt-get install", root=False)
    monkeypatch.setattr(install_chromium, "find_chromium", lambda headless: None)
    assert install_chromium.main(runner) == 1
    assert len(ran) == 1
    told = capsys.readouterr().err
    assert "No Chromium found" in told and "apt-get install chromium" in told and "install-deps" in told


def test_a_wrong_path_is_an_error_that_names_it(monkeypatch, capsys):
    monkeypatch.setenv("DYNAWEB_CHROMIUM", "/nowhere/chromium")
    assert install_chromium.main() == 1
    assert "/nowhere/chromium does not exist" in capsys.readouterr().err
    with pytest.raises(BrowserError):
        install_chromium.working_chromium()


def test_a_chromium_that_does_not_start_is_not_taken(tmp_path):
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    assert not install_chromium.starts(broken)
    broken.write_text("#!/bin/sh\necho Chromium 1\n")
    assert install_chromium.starts(broken)
    assert not install_chromium.starts(tmp_path / "absent")
