"""The notebooks: sources in house style, notebooks built from them, every cell run in a real kernel."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("notebook_build", ROOT / "notebooks" / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)

SOURCES = build.chosen([])
NAMES = [s.stem for s in SOURCES]
BUILT = [build.NOTEBOOKS / f"{name}.ipynb" for name in NAMES]
ASSETS = ROOT / "assets"
NEEDED = (
    "tiny-base",
    "world-model",
    "sft",
    "dynaweb",
    "experts.jsonl",
    "explorations.jsonl",
    "results/quickstart.json",
)
MISSING = [name for name in NEEDED if not (ASSETS / name).exists()]
needs_assets = pytest.mark.skipif(bool(MISSING), reason=f"assets/ lacks {', '.join(MISSING)}: run the full quickstart")


def cells(path, kind):
    return [cell for cell in build.read_source(path).cells if cell.cell_type == kind]


# Sources in house style


def test_there_are_two_notebooks():
    assert NAMES[:2] == ["01_the_loop_in_miniature", "02_imagined_beside_real"]


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_cells_are_short(path):
    assert 25 <= len(build.read_source(path).cells) <= 60
    for cell in cells(path, "code"):
        lines = cell.source.splitlines()
        assert len(lines) < 25, f"{len(lines)} lines: {lines[0]}"
        assert max(map(len, lines)) <= 79, cell.source
    for cell in cells(path, "markdown"):
        assert len(cell.source.split()) < 120, cell.source


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_a_notebook_opens_and_closes_as_readers_expect(path):
    notebook = build.read_source(path)
    opening, setup = notebook.cells[:2]
    for words in ("# ", "**You ", "You build", "minutes", "CPU", "GPU", "*Needs:*"):
        assert words in opening.source
    assert setup.cell_type == "code"
    texts = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    assert "## What you saw" in texts[-1] and "**Next:**" in texts[-1]
    assert any(re.search(r"\*(Predict|Before you|Can ).*\?", t, re.DOTALL) for t in texts), "no prediction is asked for"


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_code_does_nothing_to_the_machine(path):
    code = "\n".join(c.source for c in cells(path, "code"))
    for forbidden in ("sys.path", "chdir", "expanduser", "# !", "# %", "get_ipython"):
        assert forbidden not in code
    strings = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    assert not [s for s in strings if re.match(r"/\w|~/|[A-Z]:\\", s)], "an absolute path"


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_the_setup_cell_comes_first_and_imports_only_what_python_has(path):
    setup, *others = cells(path, "code")
    names = {alias.name for n in ast.walk(ast.parse(setup.source)) if isinstance(n, ast.Import) for alias in n.names}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    assert "pip install" in setup.source
    assert not any("pip install" in cell.source for cell in others)


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_the_setup_cell_installs_nothing_where_the_package_is(path, monkeypatch):
    monkeypatch.setattr("subprocess.run", lambda *a, **k: pytest.fail(f"ran {a}"))
    exec(cells(path, "code")[0].source, {})


# Notebooks agree with their sources, and are fit to be published


def built_or_skip(path):
    if MISSING and not path.exists():
        pytest.skip(f"not built yet: assets/ lacks {', '.join(MISSING)}")
    return nbformat.read(path, as_version=4)


def test_sources_and_notebooks_agree(capsys):
    if MISSING and not any(path.exists() for path in BUILT):
        pytest.skip(f"not built yet: assets/ lacks {', '.join(MISSING)}")
    assert build.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("path", BUILT, ids=NAMES)
def test_notebooks_are_executed_to_their_end_without_errors(path):
    notebook = built_or_skip(path)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert [c.execution_count for c in code] == list(range(1, len(code) + 1))
    assert not [o for c in code for o in c.outputs if o.output_type == "error"]
    assert sum(bool(c.outputs) for c in code) > len(code) / 2


@pytest.mark.parametrize("path", BUILT, ids=NAMES)
def test_notebooks_hold_nothing_of_the_machine_they_ran_on(path):
    notebook = built_or_skip(path)
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < build.MAX_BYTES
    assert "widgets" not in notebook.metadata and build.WIDGET not in text
    for words in (str(ROOT), str(Path.home()) + "/", sys.prefix + "/", '"name": "stderr"', "iopub.execute_input"):
        assert words not in text
    assert not [c.metadata for c in notebook.cells if c.metadata]
    assert len({c.id for c in notebook.cells}) == len(notebook.cells)


@needs_assets
@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_every_cell_runs(path):
    build.execute(build.read_source(path), path.stem)


# The build itself


SMALL = """# %% [markdown]
# # A small one

# %%
import sys
import tempfile
from pathlib import Path

import ipywidgets
from tqdm.auto import tqdm

print(Path.cwd().name, list(tqdm(range(3))))
print("warning", file=sys.stderr)

# %%
ipywidgets.IntSlider()

# %%
Path.cwd(), object()
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with one small source in place of the real ones; paths below it are home paths."""
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    monkeypatch.setattr(build, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(build, "SOURCES", tmp_path / "notebooks" / "src")
    source = tmp_path / "notebooks" / "src" / "01_small.py"
    source.write_text(SMALL)
    return source


def test_building_executes_strips_and_agrees(small, capsys):
    assert build.main([]) == 0
    path = build.NOTEBOOKS / "01_small.ipynb"
    first, slider, last = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [(o.output_type, o.text) for o in first.outputs] == [("stream", "notebooks [0, 1, 2]\n")]
    assert [dict(o.data) for o in slider.outputs] == [{"text/plain": build.WIDGET_NOTE}]
    assert " ".join(last.outputs[0].data["text/plain"].split()) == "(PosixPath('…/notebooks'), <object at 0x…>)"
    assert build.main(["--check"]) == 0 and build.main(["--execute-check", "01_small"]) == 0
    before = path.read_bytes()
    assert build.main(["01_small.ipynb"]) == 0 and path.read_bytes() == before, "two builds differ"


def test_a_changed_source_is_noticed(small, capsys):
    notebook = build.strip(build.read_source(small))
    assert build.check([small]) == ["01_small.ipynb is missing; run: python notebooks/build.py 01_small"]
    build.write(notebook, build.NOTEBOOKS / "01_small.ipynb")
    assert build.check([small]) == []
    small.write_text(SMALL.replace("object()", "1"))
    assert build.check([small]) == ["01_small.ipynb: cell 4 differs from its source"]
    small.write_text(SMALL + "\n# %%\n1\n")
    assert build.check([small]) == ["01_small.ipynb has 4 cells, its source 5"]
    assert build.main(["--check"]) == 1 and "4 cells" in capsys.readouterr().err
    small.rename(small.with_name("02_other.py"))
    assert any("01_small.ipynb has no source" in p for p in build.check(build.chosen([])))


def test_a_failing_cell_fails_the_build_and_writes_nothing(small, capsys):
    small.write_text(SMALL + "\n# %%\n1 / 0\n")
    assert build.main([]) == 1
    assert "01_small: a cell failed" in (told := capsys.readouterr().err) and "ZeroDivisionError" in told
    assert not list(build.NOTEBOOKS.glob("*.ipynb*"))


def test_what_cannot_be_built_is_said(small, capsys, monkeypatch):
    assert build.main(["03_absent"]) == 1 and "no source 03_absent" in capsys.readouterr().err
    monkeypatch.setattr(build, "MAX_BYTES", 100)
    with pytest.raises(build.BuildError, match="01_small.ipynb has"):
        build.write(build.read_source(small), build.NOTEBOOKS / "01_small.ipynb")
    small.write_text("# %%\n1\n")
    assert build.main(["--check"]) == 1 and "title" in capsys.readouterr().err


def test_ids_stay_from_build_to_build_and_differ_between_notebooks():
    first = [[c.id for c in build.read_source(path).cells] for path in SOURCES]
    assert first == [[c.id for c in build.read_source(path).cells] for path in SOURCES]
    every = [i for ids in first for i in ids]
    assert len(set(every)) == len(every)


def test_long_text_beside_a_picture_is_cut():
    data = {"text/html": "<p>" + "x" * 300, "text/plain": "Html(" + "x" * 300}
    output = nbformat.v4.new_output("display_data", data)
    assert len(build.strip_output(output, 1).data["text/plain"]) == build.MAX_TWIN_CHARACTERS + 1
    assert build.strip_output(output, 1).data["text/html"] == data["text/html"]
