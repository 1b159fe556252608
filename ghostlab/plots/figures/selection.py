"""How a criterion chose the blocks to drop."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from ghostlab.cut import parse_cut
from ghostlab.errors import CutError
from ghostlab.plots import style
from ghostlab.results.records import SelectionInfo


def chosen(selection: SelectionInfo) -> list[bool]:
    """Which of ``selection.labels`` lie inside the chosen cut."""
    return [_inside(label, selection.chosen) for label in selection.labels]


def _inside(label: str, cut: str) -> bool:
    try:
        return set(parse_cut(label).dropped) <= set(parse_cut(cut).dropped)
    except CutError:
        return label == cut


def ranked(selection: SelectionInfo) -> list[tuple[str, float]]:
    """Candidates with a score, the one that would be dropped first coming first."""
    rows = zip(selection.labels, selection.scores, strict=True)
    known = [row for row in rows if math.isfinite(row[1])]
    return sorted(known, key=lambda row: row[1])


def _short(label: str) -> str:
    """``7`` for the single block ``7:8``."""
    start, _, stop = label.partition(":")
    single = start.isdigit() and stop.isdigit() and int(stop) == int(start) + 1
    return start if single else label


def scores(selection: SelectionInfo | None) -> go.Figure:
    """The criterion's score of every candidate, the chosen ones marked; ``customdata`` is the block."""
    if selection is None:
        return style.empty("The blocks were named by hand: no criterion was asked.")
    if not style.finite(selection.scores):
        return style.empty(f"{selection.criterion} gave no scores.")
    marks, labels = chosen(selection), [_short(label) for label in selection.labels]
    groups = (
        ("chosen", True, style.PRUNED.colour, "diamond", 11),
        ("kept", False, style.SYMMETRIC, "circle", 7),
    )
    dots = [
        go.Scatter(
            x=[label for label, mark in zip(labels, marks, strict=True) if mark is wanted],
            y=[score for score, mark in zip(selection.scores, marks, strict=True) if mark is wanted],
            customdata=[label for label, mark in zip(selection.labels, marks, strict=True) if mark is wanted],
            name=name,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": size},
            hovertemplate=f"%{{x}}: %{{y:.4~g}} ({name})<extra></extra>",
        )
        for name, wanted, colour, symbol, size in groups
    ]
    path = go.Scatter(
        x=labels,
        y=[score if math.isfinite(score) else None for score in selection.scores],
        mode="lines",
        line={"color": style.GRID, "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )
    return style.figure(
        [path, *dots],
        height=style.LINE_HEIGHT,
        x={
            "title": "candidate (lower is dropped first)",
            "type": "category",
            "categoryorder": "array",
            "categoryarray": labels,
        },
        y={
            "title": f"{selection.criterion} score",
            **style.wide_axis(selection.scores),
        },
        showlegend=True,
    )
