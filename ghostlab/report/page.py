"""One self-contained HTML file on a run or on an atlas, with figures as the JSON that they are drawn from.

plotly.js is in it once, and a figure is drawn when scrolled to; a content security policy forbids any
request, and colours follow the reader's light or dark theme. Whatever a template is given is escaped.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from ghostlab.plots import catalog, style, tokens
from ghostlab.plots.figures import atlas as maps
from ghostlab.plots.figures import directions, tasks
from ghostlab.plots.formats import count, number, percent, plural, unbroken
from ghostlab.plots.html import TEMPLATES, macro
from ghostlab.plots.rows import recoveries, rows
from ghostlab.results.atlas import Atlas
from ghostlab.results.records import METRICS, Metric, RecoveryRun, Scores
from ghostlab.results.run import RunResult
from ghostlab.storage import write_text

_HERE = "report/templates"
_CSS = Path(__file__).parent / "templates" / "page.css"
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


def _document(template: str, **values: Any) -> str:
    """A whole page by one of the templates beside this file."""
    return TEMPLATES.get_template(f"{_HERE}/{template}").render(
        values,
        style=_trusted(_CSS, tokens.CSS),
        scripts=_trusted(style.MODEBAR, tokens.SCRIPT),
        plotly=Markup(get_plotlyjs()),
        explanations=catalog.FIGURES,
        draw=_drawing(),
    )


def _trusted(*files: Path) -> Markup:
    """Files of this package as they are."""
    return Markup("\n".join(path.read_text(encoding="utf-8") for path in files))


def _drawing() -> Callable[[go.Figure], Markup]:
    """Puts figures into one page: a box of the figure's height and the JSON that it is drawn from."""
    numbers = itertools.count()

    def draw(figure: go.Figure) -> Markup:
        data = str(figure.to_json()).replace("<", "\\u003c")
        return macro(f"{_HERE}/parts.html", "figure", next(numbers), figure.layout.height, Markup(data))

    return draw


def _marks(markdown: str) -> Markup:
    """The two marks that explanations use: ``*emphasis*`` and code."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(markdown)))
    return Markup(re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text))


TEMPLATES.filters.update(marks=_marks, unbroken=unbroken)


def write_report(result: RunResult, path: Path) -> Path:
    """Write the report of ``result`` to ``path``, whole or not at all; missing folders are made."""
    return write_text(path, render(result))


def render(result: RunResult) -> str:
    """The report as one HTML document."""
    variants = rows(result)
    fitted = [[row.name, *_fit_cells(run)] for row, run in recoveries(variants)]
    times = {f"Time to {name}": f"{number(seconds)} s" for name, seconds in result.timings.items()}
    stock = {
        ", ".join(each.names): f"no: {each.reason}" if each.reason else each.command
        for each in result.checkpoints()
    }
    return _document(
        "run.html",
        kicker="Ghostlab report",
        title=f"{result.model.name}: {result.cut.description}",
        lead=catalog.FIGURES["perplexity"].sentence(variants),
        footer=f"Run {result.config.key}" + (f", {result.created}" if result.created else ""),
        result=result,
        warnings=result.all_warnings(),
        scores=(_SCORES, [[row.name, *_score_cells(row.scores)] for row in variants]),
        recoveries=(_RECOVERIES, fitted) if fitted else (),
        sections=catalog.sections(result),
        channels=directions.channels,
        tasks=tasks,
        tokens=tokens,
        stock=stock,
        setup=_setup(result),
        circumstances={**result.versions, **times},
    )


def _score_cells(scores: Scores) -> list[Cell]:
    cells: list[Cell] = []
    for each in METRICS:
        metric: Metric = getattr(scores, each.name)
        value, low, high = map(percent if each.share else number, (metric.value, metric.low, metric.high))
        cells.append((value, f"{low} to {high}"))
    return cells


def _fit_cells(run: RecoveryRun) -> list[Cell]:
    state = run.boundary
    return [
        percent(run.gap_closed),
        (percent(state.explained), percent(state.explained_train)),
        (percent(state.relative_error), percent(state.relative_error_ordinary)),
        ", ".join(dict.fromkeys(map(number, run.ridges or [run.ridge]))),
        count(run.parameters_added),
    ]


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
        "Windows": f"{text.windows[:1].upper()}{text.windows[1:]}.",
        "Licence of the text": text.licence,
        "Intervals": "95 %, bootstrap over evaluation windows",
        "Note": model.note,
    }
    if result.selection is not None:
        facts["Chosen by"] = f"{result.selection.criterion} ({result.selection.convention})"
    return {name: value for name, value in facts.items() if value}


def write_atlas(atlas: Atlas, path: Path) -> Path:
    """Write the report of ``atlas`` to ``path``, whole or not at all; missing folders are made."""
    return write_text(path, render_atlas(atlas))


def render_atlas(atlas: Atlas) -> str:
    """The report as one HTML document."""
    measures = maps.MEASURES.items()
    known = {name: one for name, one in measures if any(one.of(block) is not None for block in atlas.blocks)}
    return _document(
        "atlas.html",
        kicker="Ghostlab atlas",
        title=f"{atlas.model}: {plural(len(atlas.blocks), 'block')} of {maps.span(atlas)} layers",
        lead=maps.say_block_map(atlas, maps.FIRST),
        footer="; ".join(f"{name} {version}" for name, version in atlas.versions.items()),
        by_length=maps.say_by_length(atlas),
        lengths=maps.by_length(atlas),
        columns=["block", *known],
        rows=_best_blocks(atlas, list(known.values())),
        maps=[(name, maps.say_block_map(atlas, name), maps.block_map(atlas, name)) for name in known],
        setup=_atlas_setup(atlas),
    )


def _best_blocks(atlas: Atlas, known: list[maps.Measure]) -> list[list[str]]:
    """Of each length the block with the least error after ``ghost_sink``, with all that is known of it."""
    lines = []
    for block in maps.best(atlas, maps.MEASURES[maps.FIRST].of):
        values = [(measure, measure.of(block)) for measure in known]
        cells = ["" if value is None else measure.spell(value) for measure, value in values]
        lines.append([f"{maps.label(block)} ({plural(block.length, 'layer')})", *cells])
    return lines


def _atlas_setup(atlas: Atlas) -> dict[str, str]:
    config = atlas.config
    return {
        "Model": f"{atlas.model}, {plural(atlas.layers, 'layer')}",
        "Text": f"{config.text}, {config.sequences} sequences of {config.length} tokens, seed {config.seed}",
        "Maps fitted on": f"{atlas.fitted:,} ordinary tokens",
        "Errors measured on": f"{atlas.tried:,} others",
        "Time": f"{number(atlas.seconds)} s",
    }
