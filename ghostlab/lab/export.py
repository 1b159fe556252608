"""Make a folder of a finished run: the recovered model, an ordinary checkpoint, or a mergekit recipe.

Nothing is fitted again: the operators come from the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ghostlab.errors import ConfigError, memory_errors
from ghostlab.export.card import model_card
from ghostlab.export.mergekit import write_recipe
from ghostlab.export.stock import stock_reason
from ghostlab.lab.requests import ExportForm, ExportRequest, Work
from ghostlab.lab.session import Session
from ghostlab.lab.variants import PRUNED, cut_of, original, recovery, replacements_of
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.results.records import RecoveryRun
from ghostlab.results.run import RunResult

FORMS: tuple[ExportForm, ...] = get_args(ExportForm)


def export(session: Session, request: ExportRequest, work: Work) -> Path:
    """Write one variant of a run; see :class:`~ghostlab.lab.requests.ExportRequest`.

    Raises:
        ConfigError: If there is no such recovery or form, or a mergekit recipe would need an operator.
        StockError: If the recovery cannot be an ordinary checkpoint, saying why.
        ResultError: If the operators are not at hand or not those of this model, or the folder is in use.
    """
    result, label, form, progress = request.result, request.label, request.form, work.steps
    if form not in FORMS:
        raise ConfigError(f"Unknown export form '{form}'.", f"Choose from: {', '.join(FORMS)}.")
    run = recovery(result, label)
    if form == "mergekit":
        if not _is_drop(run):
            raise ConfigError(
                f"mergekit recipes cannot contain operators, so not '{label}'.",
                f"Export '{PRUNED}', or '{label}' as a stock or recovered model.",
            )
        return write_recipe(result, request.folder)
    with memory_errors("Choose dtype bfloat16, or free memory."):
        variant = _variant(session, result, run, progress.part(0.0, 0.7))
        progress.at(0.7, "Writing the model")
        card = model_card(variant, stock=form == "stock", result=result, run=run)
        write = variant.save_stock if form == "stock" else variant.save
        written = write(request.folder, card=card)
    progress.at(1.0, "Done")
    return written


def reason_not_stock(session: Session, result: RunResult, label: str, progress: Progress) -> str | None:
    """Why a recovery of a run cannot be an ordinary checkpoint, in one sentence; ``None`` if it can.

    Raises:
        GhostlabError: As :func:`export`.
    """
    run = recovery(result, label)
    return None if _is_drop(run) else stock_reason(_variant(session, result, run, progress))


def _is_drop(run: RecoveryRun | None) -> bool:
    return run is None or run.method == "drop"


def _variant(session: Session, result: RunResult, run: RecoveryRun | None, progress: Progress) -> Model:
    replacements = replacements_of(result, run)
    return original(session, result, progress).without(cut_of(result), replacements)
