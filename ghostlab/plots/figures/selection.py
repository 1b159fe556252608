"""How a criterion chose the blocks to drop."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from ghostlab.cut import parse_cut
from ghostlab.errors import CutError
from ghostlab.plots import style
from ghostlab.plots.figure import Figure
from ghostlab.plots.formats import number
from ghostlab.plots.rows import Rows, where
from ghostlab.results.records import SelectionInfo


def in_cut(selection: SelectionInfo) -> list[bool]:
    """Which of ``selection.labels`` lie inside the chosen cut."""
    return [_inside(label, selection.chosen) for label in selection.labels]


def _inside(label: str, cut: str) -> bool:
    try:
        return set(parse_cut(label).dropped) <= set(parse_cut(cut).dropped)
    except CutError:
        return label == cut


def by_score(selection: SelectionInfo) -> list[tuple[str, float]]:
    """Candidates with a score, the one that would be dropped first coming first."""
    scored = zip(selection.labels, selection.scores, strict=True)
    return sorted((pair for pair in scored if math.isfinite(pair[1])), key=lambda pair: pair[1])


def _short(label: str) -> str:
    """``7`` for the single block ``7:8``."""
    start, _, stop = label.partition(":")
    single = start.isdecimal() and stop.isdecimal() and int(stop) == int(start) + 1
    return start if single else label


def _selection(rows: Rows) -> SelectionInfo:
    selection = rows[0].result.selection
    assert selection is not None
    return selection


def scores(rows: Rows) -> go.Figure:
    """The criterion's score of every candidate, the chosen ones marked; ``customdata`` is the block."""
    selection = _selection(rows)
    labels = [_short(label) for label in selection.labels]
    candidates = list(zip(labels, selection.scores, selection.labels, in_cut(selection), strict=True))
    groups = (
        ("chosen", True, {"color": style.PRUNED.colour, "symbol": "diamond", "size": 11}),
        ("kept", False, {"color": style.SYMMETRIC, "symbol": "circle", "size": 7}),
    )
    dots = [
        style.dots(
            [short for short, _, _, mark in candidates if mark is wanted],
            [score for _, score, _, mark in candidates if mark is wanted],
            f"%{{x}}: %{{y:.4~g}} ({name})",
            marker,
            customdata=[label for _, _, label, mark in candidates if mark is wanted],
            name=name,
        )
        for name, wanted, marker in groups
    ]
    known = [score if math.isfinite(score) else None for score in selection.scores]
    path = style.thread(labels, known, line={"color": style.GRID, "width": 1.5})
    order = {"type": "category", "categoryorder": "array", "categoryarray": labels}
    x = {"title": "candidate (lower is dropped first)", **order}
    y = {"title": f"{selection.criterion} score", **style.wide_axis(selection.scores)}
    return style.curves([path, *dots], x, y)


def say_scores(rows: Rows) -> str:
    """What the criterion chose and how clear the choice was."""
    info = _selection(rows)
    marks = dict(zip(info.labels, in_cut(info), strict=True))
    ours = [score for label, score in by_score(info) if marks[label]]
    others = [score for label, score in by_score(info) if not marks[label]]
    text = f"{info.criterion} drops {info.chosen}"
    if not (ours and others):
        return f"{text}."
    return f"{text} with a score of {number(ours[-1])}; the next candidate has {number(others[0])}."


FIGURES = (
    Figure(
        "scores",
        "How the blocks were chosen",
        "A criterion gives each layer, or each block of layers, a score that guesses how little it would be "
        "missed, without trying every cut. ShortGPT's, for one, asks how much a layer turns the states "
        "that pass through: one that hardly turns them should be safe to drop. The sidebar explains the "
        "criterion that is chosen, and all others.",
        r"\text{for example}\quad \mathrm{BI}_\ell = 1 - \overline{\cos(x_{\ell}, x_{\ell+1})}",
        "ShortGPT (arXiv 2403.03853); Gromov et al. (arXiv 2403.17887)",
        draw=scores,
        say=say_scores,
        select=where(lambda row: row.result.selection and style.finite(row.result.selection.scores)),
        nothing="The blocks were named by hand, or the criterion gave no scores.",
    ),
)
