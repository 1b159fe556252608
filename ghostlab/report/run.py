"""The report of a run: every figure with its sentence and explanation, every text, what was fitted where."""

from __future__ import annotations

from pathlib import Path

from ghostlab.plots import catalog, tokens
from ghostlab.plots.figures import directions, tasks
from ghostlab.plots.formats import count, number, percent
from ghostlab.plots.rows import recoveries, rows
from ghostlab.report.page import document
from ghostlab.results.records import METRICS, Metric, RecoveryRun, Scores
from ghostlab.results.run import RunResult
from ghostlab.storage import write_text

Cell = str | tuple[str, str]
"""What a table shows: a text, or a text and the smaller one under it."""
_SCORES: list[Cell] = ["variant", *((each.label, each.unit) for each in METRICS)]
_RECOVERIES: list[Cell] = [
    "recovery",
    ("gap closed", "of log-likelihood"),
    ("explained", "held-out tokens (fitted on)"),
    ("relative error", "held-out tokens (ordinary)"),
    "ridge",
    "parameters added",
]


def write_report(result: RunResult, path: Path) -> Path:
    """Write the report of ``result`` to ``path``, whole or not at all; missing folders are made."""
    return write_text(path, render(result))


def render(result: RunResult) -> str:
    """The report as one HTML document."""
    variants = rows(result)
    fitted = [[row.name, *_fit_cells(run)] for row, run in recoveries(variants)]
    return document(
        "run.html",
        kicker="Ghostlab report",
        title=f"{result.model.name}: {result.cut.description}",
        lead=catalog.FIGURES["perplexity"].sentence(variants),
        footer=f"Run {result.config.key}" + (f", {result.created}" if result.created else ""),
        warnings=result.all_warnings(),
        scores=(_SCORES, [[row.name, *_score_cells(row.scores)] for row in variants]),
        recoveries=(_RECOVERIES, fitted) if fitted else (),
        sections=catalog.sections(result),
        channels=directions.channels,
        tasks=tasks,
        tokens=tokens,
        generations=result.generations,
        prompt=result.config.prompt,
        stock=_stock(result),
        setup=_setup(result),
        command=result.config.to_command(),
        circumstances=_circumstances(result),
    )


def _score_cells(scores: Scores | RecoveryRun) -> list[Cell]:
    return [_metric(getattr(scores, each.name), each.share) for each in METRICS]


def _metric(metric: Metric, share: bool) -> Cell:
    value, low, high = map(percent if share else number, (metric.value, metric.low, metric.high))
    return value, f"{low} to {high}"


def _fit_cells(run: RecoveryRun) -> list[Cell]:
    state = run.boundary
    return [
        percent(run.gap_closed),
        (percent(state.explained), percent(state.explained_train)),
        (percent(state.relative_error), percent(state.relative_error_ordinary)),
        ", ".join(dict.fromkeys(map(number, run.ridges or [run.ridge]))),
        count(run.parameters_added),
    ]


def _stock(result: RunResult) -> dict[str, str]:
    """Recoveries -> the command that writes them as ordinary checkpoints, or why none can."""
    return {
        ", ".join(each.names): f"no: {each.reason}" if each.reason else each.command
        for each in result.checkpoints()
    }


def _setup(result: RunResult) -> dict[str, str]:
    model, text, cut = result.model, result.text, result.cut
    share = model.parameters_dropped / model.parameters if model.parameters else 0.0
    kept = ", ".join(f"{low}:{high}" for low, high in cut.keep_ranges)
    facts = {
        "Model": f"{model.name} ({model.family}), {model.layers} layers, "
        f"{count(model.hidden_size)} channels, {count(model.parameters)} parameters, "
        f"{model.dtype} on {model.device}",
        "Cut": f"{cut.description}; {count(model.parameters_dropped)} parameters dropped ({percent(share)}); "
        f"kept {kept}",
        "Fitted on": f"{text.calibration}: {count(text.calibration_tokens)} tokens, folds: {text.folds}",
        "Evaluated on": f"{text.held_out}: {count(text.held_out_tokens)} tokens",
        "Windows": _sentence(text.windows),
        "Licence of the text": text.licence,
        "Intervals": "95 %, bootstrap over evaluation windows",
        "Note": model.note,
    }
    if result.selection is not None:
        facts["Chosen by"] = f"{result.selection.criterion} ({result.selection.convention})"
    return {name: value for name, value in facts.items() if value}


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


def _circumstances(result: RunResult) -> dict[str, str]:
    times = {f"Time to {name}": f"{number(seconds)} s" for name, seconds in result.timings.items()}
    return {**result.versions, **times}
