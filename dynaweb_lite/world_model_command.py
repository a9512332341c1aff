"""The command `world-model`: train one from recorded pages or from data of yours, or run the whole study.

python -m dynaweb_lite world-model                       train the shipped model again, and measure it
python -m dynaweb_lite world-model --data rows.jsonl     train on your own transitions, or on NNetNav's rows
python -m dynaweb_lite world-model --report              the study: tables, figures, report.html
"""

from __future__ import annotations

import random
import shutil
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from dynaweb_lite.annotators import EndpointAnnotator, annotate
from dynaweb_lite.change_forms import FORMS, ChangeForm
from dynaweb_lite.cleaning import Cleaned
from dynaweb_lite.drift import free_running_pairs, teacher_forced_pairs
from dynaweb_lite.endpoint import Endpoint
from dynaweb_lite.fidelity import NearestTransition, NothingChanges
from dynaweb_lite.importers import import_nnetnav, import_transitions, read_rows
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.presets import RESULTS, TINY
from dynaweb_lite.readme import update_readme
from dynaweb_lite.runs import RunError, quiet_libraries
from dynaweb_lite.sft import train_sft
from dynaweb_lite.world_model import WorldModel, training_examples
from dynaweb_lite.world_model_report import SHOWN, findings, table_text, write_report
from dynaweb_lite.world_model_study import (
    AGAIN,
    MODEL,
    NEAREST,
    NOTHING,
    RESULTS_FILE,
    Split,
    WorldModelStudy,
    one_step_rows,
    silent,
)

ANNOTATOR = "DYNAWEB_ANNOTATOR"
HELD_OUT_SHARE = 0.1


def main(options: Namespace) -> int:
    """Run the command; returns its exit status. Raises RunError and the errors of the parts."""
    quiet_libraries()
    folder = options.run or Path("runs") / ("world-model-data" if options.data else "world-model")
    if options.fresh and folder.exists():
        if not (folder / "started.json").exists() and not (folder / "data.txt").exists():
            raise RunError(f"{folder} is not the folder of a run, so --fresh does not remove it")
        shutil.rmtree(folder)
    if options.data:
        return train_on_data(options, folder)
    study = WorldModelStudy(TINY, folder)
    if not options.report:
        return train_again(study)
    results = study.run()
    walk, model = study.walks[0], WorldModel(study.trained(MODEL).merged())
    pairs, dreamt = teacher_forced_pairs(walk, model), free_running_pairs(walk, silent(model))
    path = write_report(results, folder, pairs, dreamt)
    print("\n" + "\n".join(findings(results)) + f"\n\nreport: {path}")
    if options.publish:
        shutil.copy2(folder / RESULTS_FILE, RESULTS / "world_model.json")
        update_readme()
    return 0


def train_again(study: WorldModelStudy) -> int:
    """Train on the recorded pages as the shipped model was, and measure both on the explorations that were held out."""
    predictors = {name: WorldModel(study.trained(name).merged()) for name in (AGAIN, MODEL)}
    rows = one_step_rows(predictors | study.baselines(), [Split("held out", study.held_out)])
    print(table_text(rows, SHOWN))
    return 0


def train_on_data(options: Namespace, folder: Path) -> int:
    """Import, clean, annotate, train and measure on a tenth that is held out."""
    cleaned = imported(options.data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.txt").write_text(f"{options.data}\n{cleaned}\n", encoding="utf-8")
    print(cleaned)
    if len(cleaned.transitions) < 2:
        raise RunError(f"{options.data} holds too few transitions to train on: see the table above")
    order = random.Random(0).sample(cleaned.transitions, len(cleaned.transitions))
    cut = max(1, round(HELD_OUT_SHARE * len(order)))
    held_out, training = order[:cut], order[cut:]
    form: ChangeForm = FORMS[options.form]
    written = None
    if options.annotate:
        if (endpoint := Endpoint.from_environment(ANNOTATOR)) is None:
            raise RunError(f"--annotate asks a language model: set {ANNOTATOR}_URL and {ANNOTATOR}_MODEL")
        written = annotate(training, EndpointAnnotator(endpoint), folder / "annotations.jsonl").get
    examples = training_examples(training, form=form, annotate=written)
    lm = train_sft(LanguageModel.load(options.base), examples, folder / "adapter", replace(TINY.world_model, seed=0))
    model = WorldModel(lm.merged(), form)
    predictors = {MODEL: model, NEAREST: NearestTransition(training), NOTHING: NothingChanges()}
    print(table_text(one_step_rows(predictors, [Split("held out", held_out)]), SHOWN))
    print(f"unparsable: {model.counts['unparsable']} of {model.counts['predictions']}; adapter: {folder / 'adapter'}")
    return 0


def imported(source: str) -> Cleaned:
    """NNetNav's rows or plain transitions, told apart by the first row that is one."""
    rows: Iterator[Mapping | None] = read_rows(source)
    first = list(islice(rows, 50))
    is_nnetnav = any(row and "prompt" in row and "output" in row for row in first)
    return (import_nnetnav if is_nnetnav else import_transitions)(chain(first, rows))
