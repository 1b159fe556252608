"""Make a folder of a finished run: the recovered model, an ordinary checkpoint, or a mergekit recipe.

Nothing is fitted again: the operators come from the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ghostlab.cut import Block, Cut
from ghostlab.errors import ConfigError, ResultError, memory_errors
from ghostlab.export.card import model_card
from ghostlab.export.mergekit import write_recipe
from ghostlab.export.stock import stock_reason
from ghostlab.lab.requests import ExportForm, ExportRequest
from ghostlab.lab.run import replacements_of
from ghostlab.lab.session import Workbench
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.results.records import RecoveryRun
from ghostlab.results.run import RunResult

FORMS: tuple[ExportForm, ...] = get_args(ExportForm)
PRUNED = "pruned"
"""The label of the model with nothing in the place of the blocks."""

_LESS_MEMORY = "Choose dtype bfloat16, or free memory."


def export(bench: Workbench, request: ExportRequest, progress: Progress) -> Path:
    """Write one variant of a run to a new or empty folder, whole or not at all.

    Raises:
        ConfigError: If there is no such recovery or form, or mergekit is asked for an operator.
        StockError: If the recovery cannot be an ordinary checkpoint, saying why.
        ResultError: If the operators are not at hand or not those of this model, or the folder is in use.
    """
    result, label, folder, form = request.result, request.label, request.folder, request.form
    if form not in FORMS:
        raise ConfigError(f"Unknown export form '{form}'.", f"Choose from: {', '.join(FORMS)}.")
    run = _run(result, label)
    if form == "mergekit":
        if not _is_drop(run):
            raise ConfigError(
                f"mergekit drops layers and knows no operators, so not '{label}'.",
                f"Export '{PRUNED}', or '{label}' as a stock or recovered model.",
            )
        return write_recipe(result, folder)
    with memory_errors(_LESS_MEMORY):
        variant = _variant(bench, result, run, progress.part(0.0, 0.7))
        progress.at(0.7, "Writing the model")
        card = model_card(variant, stock=form == "stock", result=result, run=run)
        write = variant.save_stock if form == "stock" else variant.save
        written = write(folder, card=card)
    progress.at(1.0, "Done")
    return written


def reason_not_stock(bench: Workbench, result: RunResult, label: str, progress: Progress) -> str | None:
    """Why a recovery of a run cannot be an ordinary checkpoint, in one sentence; ``None`` if it can.

    Raises:
        GhostlabError: As :func:`export`.
    """
    run = _run(result, label)
    return None if _is_drop(run) else stock_reason(_variant(bench, result, run, progress))


def labels(result: RunResult) -> list[str]:
    """What can be exported of a run."""
    return [PRUNED, *(run.label or run.method for run in result.runs)]


def _run(result: RunResult, label: str) -> RecoveryRun | None:
    """The recovery of that label; ``None`` for the pruned model."""
    if label == PRUNED:
        return None
    exact = [run for run in result.runs if (run.label or run.method) == label]
    found = exact or [run for run in result.runs if run.method == label]
    if len(found) == 1:
        return found[0]
    if label == "drop":
        return None
    problem = f"This run has {len(found) or 'no'} recover{'ies' if len(found) > 1 else 'y'} '{label}'."
    raise ConfigError(problem, f"It has: {', '.join(labels(result))}.")


def _is_drop(run: RecoveryRun | None) -> bool:
    return run is None or run.method == "drop"


def _variant(bench: Workbench, result: RunResult, run: RecoveryRun | None, progress: Progress) -> Model:
    cut = Cut(tuple(Block(start, stop) for start, stop in result.cut.blocks))
    replacements = {} if run is None else replacements_of(result, run)
    model = bench.model(result.config, progress)
    then, now = result.model, (model.family, model.depth, model.width)
    if now != (then.family, then.layers, then.hidden_size):
        raise ResultError(
            f"'{result.config.model}' is another model now: {model.depth} layers of width {model.width} "
            f"({model.family}) instead of {then.layers} of width {then.hidden_size} ({then.family}).",
            "Run the configuration again.",
        )
    return model.without(cut, replacements)
