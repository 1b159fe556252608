"""The atlas: one cell per block, and how the error of each operator grows with the length of the block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figures.blocks import FIGURES, FIRST, OPERATORS, Figure, best, label, words
from ghostlab.plots.formats import percent, plural
from ghostlab.plots.style import Role
from ghostlab.results.atlas import Atlas, AtlasBlock

SCALE = [[0.0, "#414487"], [0.25, "#2e708e"], [0.5, "#1fa088"], [0.75, "#5ec962"], [1.0, "#b5de2b"]]
"""Viridis without its ends, which would sink into a dark or a white page."""
CELL = 30
"""Pixels per row of the map."""
_FEWEST_ROWS = 3
"""A map of one or two lengths is as high as one of three: its axis needs the room."""
_MOST_MARKS, _WIDE_MARK = 5, 6
"""Fewer marks on the colour bar where their texts are longer than so many characters."""


Rows = list[list[AtlasBlock | None]]
"""One row per length, one entry per first layer."""


def block_map(atlas: Atlas, name: str = FIRST) -> go.Figure:
    """Start by length, coloured by one of :data:`.blocks.FIGURES`; bright is good to drop.

    ``customdata`` of a cell is its block (``20:25``), ``text`` its figures in words, lines apart by ``<br>``.
    The best block of each length is outlined.
    """
    figure, lengths = FIGURES[name], atlas.lengths
    known = style.finite(map(figure.of, atlas.blocks))
    if not known:
        return style.empty(f"{name} was not measured.")
    cells = {(block.start, block.length): block for block in atlas.blocks}
    rows: Rows = [[cells.get((start, length)) for start in range(atlas.layers)] for length in lengths]
    paint = _paint(atlas, figure, rows, known)
    made = style.figure(
        [_ground(rows), paint] if len(known) < len(atlas.blocks) else [paint],
        height=150 + CELL * max(len(lengths), _FEWEST_ROWS),
        x={"title": "start: first dropped layer", "fixedrange": True, "showgrid": False, "automargin": False},
        y={
            "title": "dropped layers",
            "tickvals": list(range(len(lengths))),
            "ticktext": [str(length) for length in lengths],
            "fixedrange": True,
            "showgrid": False,
        },
        dragmode=False,
        margin={
            "t": 104,
            "b": 56,
        },  # room for the bar: what the bar itself asks for would move the axis titles
    )
    made.update_layout(shapes=_outlines(best(atlas, figure.of, figure.low), lengths))
    return made


def _paint(atlas: Atlas, figure: Figure, rows: Rows, known: Sequence[float]) -> go.Heatmap:
    """The coloured cells."""
    log = style.axis_type(known) == "log"
    return go.Heatmap(
        z=[[_place(figure, block, log) for block in row] for row in rows],
        text=[[_told(atlas, block) for block in row] for row in rows],
        customdata=[["" if block is None else label(block) for block in row] for row in rows],
        hovertemplate="%{text}<extra></extra>",
        colorscale=SCALE,
        reversescale=figure.low,
        xgap=1,
        ygap=1,
        colorbar=_bar(figure, known, log),
    )


def _ground(rows: Rows) -> go.Heatmap:
    """Blocks in grey, seen where a figure was not measured."""
    grey = [[0, style.GRID], [1, style.GRID]]
    z = [[None if block is None else 0 for block in row] for row in rows]
    return go.Heatmap(z=z, colorscale=grey, showscale=False, hoverinfo="skip", xgap=1, ygap=1)


def _place(figure: Figure, block: AtlasBlock | None, log: bool) -> float | None:
    """Where a block lies on the colour scale: its value, or the exponent of that."""
    value = None if block is None else figure.of(block)
    if value is None or not math.isfinite(value):
        return None
    return math.log10(value) if log else value


def _told(atlas: Atlas, block: AtlasBlock | None) -> str:
    if block is None:
        return f"No such block: the model has {plural(atlas.layers, 'layer')}."
    return "<br>".join(words(atlas, block))


def _bar(figure: Figure, values: Sequence[float], log: bool) -> dict[str, Any]:
    """A colour bar above the map, which leaves a narrow page its width."""
    marks = _log_marks(values) if log else _marks(values)
    wide = max(len(figure.spell(mark)) for mark in marks) > _WIDE_MARK
    marks = marks[:: -(-len(marks) // (_MOST_MARKS - 2 * wide))]
    return {
        "orientation": "h",
        "x": 0.5,
        "y": 1.02,
        "yanchor": "bottom",
        "len": 1.0,
        "thickness": 12,
        "outlinewidth": 0,
        "title": {"text": figure.bar, "side": "top", "font": {"size": 13}},
        "tickangle": 0,
        "tickvals": [math.log10(mark) for mark in marks] if log else marks,
        "ticktext": [figure.spell(mark) for mark in marks],
    }


def _log_marks(values: Sequence[float]) -> list[float]:
    """1, 2, 5, 10, ... within the values; only 1, 10, 100 from three decades on."""
    low, high = min(values), max(values)
    steps = (1, 2, 5) if high < 1e3 * low else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [mark for power in decades for step in steps if low <= (mark := step * 10.0**power) <= high]


def _marks(values: Sequence[float]) -> list[float]:
    """Round numbers within the values, about five."""
    low, high = min(values), max(values)
    if low == high:
        return [low]
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(size * times for times in (1, 2, 5, 10) if (high - low) / (size * times) <= 6)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{count * step:.6g}") for count in range(first, last + 1)]


def _outlines(blocks: Sequence[AtlasBlock], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """A dark line within a light one: seen on every colour of the scale and on either page."""
    lines = (("#ffffff", 4.0), ("#111111", 1.6))
    rows = [(block.start, lengths.index(block.length)) for block in blocks]
    return [
        {
            "type": "rect",
            "x0": start - 0.5,
            "x1": start + 0.5,
            "y0": row - 0.5,
            "y1": row + 0.5,
            "line": {"color": colour, "width": width},
        }
        for start, row in rows
        for colour, width in lines
    ]


def operator_roles() -> dict[str, Role]:
    """How each operator is drawn, by its name for people."""
    names = [name for name in OPERATORS if OPERATORS[name] != "gap"]
    plain = Role("plain dropping", style.PRUNED.colour, style.PRUNED.dash, style.PRUNED.symbol)
    return {plain.name: plain, **dict(zip(names, style.named_roles(names), strict=True))}


def by_length(atlas: Atlas) -> go.Figure:
    """Error of the best block of each length, for each operator its own best."""
    if not atlas.blocks:
        return style.empty("No block was surveyed.")
    roles, traces, seen = operator_roles(), [], []
    hover = "%{fullData.name}, %{x} layers: %{customdata[1]} at %{customdata[0]}<extra></extra>"
    for name, field in OPERATORS.items():
        blocks = best(atlas, attrgetter(field))
        errors = [getattr(block, field) for block in blocks]
        seen += errors
        traces.append(
            go.Scatter(
                x=[block.length for block in blocks],
                y=errors,
                name=name,
                mode="lines+markers",
                line=style.line(roles[name]),
                marker={"symbol": roles[name].symbol, "size": 8},
                customdata=[
                    [label(block), percent(error)] for block, error in zip(blocks, errors, strict=True)
                ],
                hovertemplate=hover,
            )
        )
    return style.figure(
        traces,
        height=style.LINE_HEIGHT,
        x={"title": "length: dropped layers", "tickvals": atlas.lengths},
        y={
            "title": "least error ‖Y′ − Y‖ / ‖Y‖<br>(ordinary held-out tokens)",
            **style.wide_axis(seen),
            "tickformat": ".0%",
        },
        showlegend=True,
    )
