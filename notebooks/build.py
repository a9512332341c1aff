"""Build the notebooks that people read from the sources that people write.

    python notebooks/build.py [NAME ...]                 write NAME.ipynb from src/NAME.py, executed
    python notebooks/build.py --check [NAME ...]         do sources and notebooks agree? (fast, runs nothing)
    python notebooks/build.py --execute-check [NAME ...]  the same, and every source runs to its end (writes nothing)

Sources are percent-format Python. What changes from machine to machine is stripped from the outputs: timings, progress
bars, stderr, widget state (GitHub refuses a notebook that keeps half of it), paths, addresses in memory.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).resolve().parent
SOURCES = NOTEBOOKS / "src"
CELL_TIMEOUT_SECONDS = 600
MAX_BYTES = 500_000
MAX_TWIN_CHARACTERS = 80
WIDGET = "application/vnd.jupyter.widget-view+json"
WIDGET_NOTE = "(a widget: run this cell to use it; what it shows stands in its static twin below)"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class BuildError(RuntimeError):
    """A notebook cannot be built; the message names it and says what to do."""


def read_source(path: Path) -> NotebookNode:
    """The notebook that a percent source describes, not executed. Raises BuildError where it has no title."""
    notebook = jupytext.read(path)
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat_minor = 5
    title = re.search(r"^# (.+)$", notebook.cells[0].source if notebook.cells else "", re.MULTILINE)
    if not title:
        raise BuildError(f"{path.name}: the first cell must be text with a title, as in `# # The loop in miniature`")
    mark = hashlib.sha1(title[1].encode()).hexdigest()[:8]
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"{mark}-{number:02d}"
        cell.metadata = NotebookNode()
    return notebook


def execute(notebook: NotebookNode, name: str) -> NotebookNode:
    """Run all cells in a fresh kernel, in place. Raises BuildError with the cell and its error."""
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise BuildError(f"{name}: a cell failed\n{error}") from error
    return notebook


def strip(notebook: NotebookNode) -> NotebookNode:
    """Take out, in place, what differs between two runs or two machines; execution counts run 1..N."""
    notebook.metadata = nbformat.from_dict(METADATA)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        cell.metadata = NotebookNode()
        cell.execution_count = count
        cell.outputs = [kept for output in cell.outputs if (kept := strip_output(output, count))]
    return notebook


def strip_output(output: NotebookNode, count: int) -> NotebookNode | None:
    """One output without machine-dependent parts, None where nothing of it is worth keeping."""
    if output.output_type == "stream":
        return None if output.name == "stderr" else NotebookNode({**output, "text": anonymous(output.text)})
    if output.output_type == "error":
        return output
    data = {kind: anonymous(text) if kind.startswith("text/") else text for kind, text in output.data.items()}
    if data.pop(WIDGET, None) is not None:
        if re.search(r"\d+%\|", data.get("text/plain", "")):
            return None  # a progress bar
        data = {"text/plain": WIDGET_NOTE}
    if len(data) > 1 and len(data.get("text/plain", "")) > MAX_TWIN_CHARACTERS:
        data["text/plain"] = data["text/plain"][:MAX_TWIN_CHARACTERS] + "…"  # a second copy of a whole page view
    kept = {**output, "data": data, "metadata": {}}
    return nbformat.from_dict({**kept, "execution_count": count} if "execution_count" in kept else kept)


def anonymous(text: str) -> str:
    """Text without this machine's folders and without addresses in memory."""
    folders = {
        str(NOTEBOOKS.parent): "…",
        sys.prefix: "…",
        os.path.realpath(tempfile.gettempdir()): "…",
        str(Path.home()): "~",
    }
    for folder in sorted(folders, key=len, reverse=True):
        if folder != os.sep:
            text = re.sub(re.escape(folder) + r"(?=[/\\\s'\"):,]|$)", folders[folder], text)
    return re.sub(r"\b0x[0-9a-f]{6,}\b", "0x…", text)


def write(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook whole or not at all. Raises BuildError when it is too large to be shown."""
    text = nbformat.writes(notebook, version=4, indent=1, ensure_ascii=False) + "\n"
    nbformat.validate(nbformat.reads(text, as_version=4))
    if (size := len(text.encode())) >= MAX_BYTES:
        raise BuildError(f"{path.name} has {size:,} bytes, {MAX_BYTES:,} are allowed; show fewer or smaller pictures")
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def compare(source: Path, notebook: Path) -> Iterator[str]:
    """What differs between a source and the notebook made from it; nothing where they agree."""
    wanted = read_source(source).cells
    if not notebook.exists():
        yield f"{notebook.name} is missing; run: python notebooks/build.py {source.stem}"
        return
    found = nbformat.read(notebook, as_version=4).cells
    if len(wanted) != len(found):
        yield f"{notebook.name} has {len(found)} cells, its source {len(wanted)}"
    for number, (a, b) in enumerate(zip(wanted, found, strict=False), 1):
        if (a.id, a.cell_type, a.source) != (b.id, b.cell_type, b.source):
            yield f"{notebook.name}: cell {number} differs from its source"


def check(sources: Sequence[Path], everything: bool = True) -> list[str]:
    """All differences between sources and notebooks; with `everything`, notebooks without a source too."""
    problems = [p for source in sources for p in compare(source, NOTEBOOKS / f"{source.stem}.ipynb")]
    if everything:
        names = {source.stem for source in sources}
        problems += [f"{p.name} has no source in src/" for p in NOTEBOOKS.glob("*.ipynb") if p.stem not in names]
    return problems


def chosen(names: Sequence[str]) -> list[Path]:
    """Sources by name, all without names. Raises BuildError for a name that has none."""
    every = sorted(SOURCES.glob("[0-9][0-9]_*.py"))
    if unknown := {Path(n).stem for n in names} - {p.stem for p in every}:
        raise BuildError(f"no source {', '.join(sorted(unknown))}; there are {', '.join(p.stem for p in every)}")
    return [p for p in every if not names or p.stem in {Path(n).stem for n in names}]


def build(source: Path) -> Path:
    """Execute one source and write its notebook; returns the notebook's path."""
    path = NOTEBOOKS / f"{source.stem}.ipynb"
    write(strip(execute(read_source(source), source.stem)), path)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the notebooks from notebooks/src.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="build only these, as in 01_the_loop_in_miniature")
    parser.add_argument("--check", action="store_true", help="compare sources and notebooks; run nothing")
    parser.add_argument("--execute-check", action="store_true", help="compare, and run every source; write nothing")
    options = parser.parse_args(arguments)
    try:
        sources = chosen(options.names)
        if options.check or options.execute_check:
            problems = check(sources, everything=not options.names)
            print("\n".join(problems) or "sources and notebooks agree", file=sys.stderr if problems else sys.stdout)
            for source in sources if options.execute_check else ():
                execute(read_source(source), source.stem)
                print(f"{source.stem} runs to its end")
            return int(bool(problems))
        for source in sources:
            print(f"{source.stem} …", flush=True)
            path = build(source)
            print(f"  {path.name}: {path.stat().st_size:,} bytes")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
