"""One look for every figure: fixed colours for fixed roles, and a template for light and dark pages.

The background is transparent and every grey is chosen to stand out from white and from near-black alike, so
that one figure serves both themes. Colours are of middle lightness and lie far apart to normal and to
colour-blind eyes; each role also has a dash and a symbol of its own, so colour is never the only cue.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from ghostlab.plots.formats import percent, short
from ghostlab.results.records import Metric

INK = "#747982"
"""Text; 4.4:1 on white and on #0b0f19, the best that one grey can do on both."""
GRID = "rgba(128,128,128,.25)"
GUIDE = "rgba(128,128,128,.75)"
SYMMETRIC, ANTISYMMETRIC = "#0c8ade", "#b87a00"
LINE_HEIGHT = 380
LOG_FACTOR = 20.0
ZERO_AT = 0.25
"""Where rank 0 stands on a log axis."""
MODEBAR = Path(__file__).with_name("modebar.js")
"""Script that a page runs once Plotly is there: figures are saved as SVG or PNG from their own bar."""

DIVERGING = [[0.0, "#2166ac"], [0.25, "#78b4d6"], [0.5, "#f7f7f7"], [0.75, "#ee9a73"], [1.0, "#b2182b"]]


@dataclass(frozen=True)
class Role:
    """How one variant is drawn everywhere."""

    name: str
    colour: str
    dash: str
    symbol: str


ORIGINAL = Role("original", "#7f8794", "2px,3px", "square")
PRUNED = Role("pruned", "#d9570a", "5px,3px", "x")
_COLOURS = (
    "#0c8ade", "#0ca27e", "#c06cba", "#9c902a", "#5460d8", "#846c48",
    "#cc243c", "#5a725a", "#187872", "#8a5ac0", "#ae8a54", "#5a789c",
)  # fmt: skip
"""Every pair, with those of original and pruned model, stays apart to eyes that lack a kind of cone too."""
_DASHES = (
    "solid",
    "10px,3px",
    "7px,3px,2px,3px",
    "10px,3px,3px,3px",
    "14px,3px,2px,3px,2px,3px",
    "3px,2px",
    "12px,4px",
)
_SYMBOLS = ("circle", "diamond", "triangle-up", "triangle-down", "star", "hexagon", "pentagon", "bowtie")
"""Cycles of 12, 7 and 8: no two of the first 168 recoveries look alike."""


def roles(names: Iterable[str]) -> list[Role]:
    """One role per name, in order; names are made distinct."""
    drawn: list[Role] = []
    for index, name in enumerate(names):
        known = any(role.name == name for role in drawn)
        look = [each[index % len(each)] for each in (_COLOURS, _DASHES, _SYMBOLS)]
        drawn.append(Role(f"{name} ({index + 1})" if known else name, *look))
    return drawn


def colours(recoveries: int) -> list[str]:
    """Of the original, the pruned model and ``recoveries`` recoveries, as in every figure."""
    return [ORIGINAL.colour, PRUNED.colour, *islice(cycle(_COLOURS), recoveries)]


_AXIS: dict[str, Any] = {
    "gridcolor": GRID,
    "linecolor": GRID,
    "zeroline": False,
    "automargin": True,
    "title": {"text": "", "standoff": 10, "font": {"size": 13}},
    "ticks": "outside",
    "ticklen": 5,
    "tickcolor": "rgba(0,0,0,0)",
    "exponentformat": "power",
    "minor": {"showgrid": False},
}
TEMPLATE = go.layout.Template(
    layout={
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "size": 13, "family": "system-ui, sans-serif"},
        "margin": {"l": 48, "r": 16, "t": 16, "b": 40},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "hoverlabel": {"bgcolor": "#20262f", "bordercolor": "#20262f", "font": {"color": "#f2f4f7"}},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": INK, "activecolor": SYMMETRIC},
        "bargap": 0.35,
    }
)


def figure(
    traces: Iterable[Any], *, height: int, x: dict[str, Any], y: dict[str, Any], **layout: Any
) -> go.Figure:
    """A figure in the house style; ``x`` and ``y`` are axis settings."""
    look = {"template": TEMPLATE, "height": height, "uirevision": "keep"}
    return go.Figure(list(traces), {**look, "xaxis": x, "yaxis": y, **layout})


def by_row(
    traces: Iterable[Any], rows: int, x: dict[str, Any], *, extra: int = 0, **layout: Any
) -> go.Figure:
    """A figure with ``rows`` rows, from top to bottom; from the ninth on they stand closer.

    ``extra`` pixels are needed besides the rows and the axis.
    """
    height = 110 + 42 * min(rows, 8) + 28 * max(rows - 8, 0) + extra
    return figure(traces, height=height, x=x, y={"autorange": "reversed"}, **layout)


def curves(
    traces: Iterable[Any], x: dict[str, Any], y: dict[str, Any], *, extra: int = 0, **layout: Any
) -> go.Figure:
    """A figure with lines, ``extra`` pixels higher; a long legend must not eat it."""
    drawn = list(traces)
    entries = sum(trace.showlegend is not False for trace in drawn)
    height = LINE_HEIGHT + 11 * max(entries - 4, 0) + extra
    return figure(drawn, height=height, x=x, y=y, showlegend=True, **layout)


def empty(reason: str) -> go.Figure:
    """A figure with nothing to show, saying why in one line."""
    note = {"text": reason, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper", "showarrow": False}
    return figure([], height=140, x={"visible": False}, y={"visible": False}, annotations=[note])


def finite(values: Iterable[float | None]) -> list[float]:
    """The finite ones."""
    return [value for value in values if value is not None and math.isfinite(value)]


def axis_type(values: Iterable[float | None]) -> Literal["log", "linear"]:
    """Log when all values are positive and the greatest exceeds :data:`LOG_FACTOR` times the least."""
    known = finite(values)
    wide = bool(known) and min(known) > 0 and max(known) > LOG_FACTOR * min(known)
    return "log" if wide else "linear"


def log_ticks(values: Iterable[float | None]) -> dict[str, Any]:
    """A log axis labelled 1, 10, 100, or 1, 2, 5, 10 when ``values`` span less than three decades."""
    known = [value for value in finite(values) if value > 0]
    narrow = bool(known) and max(known) < 1e3 * min(known)
    return {"type": "log", "dtick": "D2" if narrow else 1, "tickformat": "~g"}


def wide_axis(values: Iterable[float | None]) -> dict[str, Any]:
    """Settings of an axis that is log only where :func:`axis_type` asks for it."""
    known = finite(values)
    return log_ticks(known) if axis_type(known) == "log" else {"type": "linear"}


def symmetric_range(*maps: npt.ArrayLike) -> float:
    """One colour range +-r for several maps: the 99.5 % quantile of all absolute values, never 0.

    A few massive channels would otherwise paint everything else white.
    """
    sizes = np.abs(np.concatenate([np.asarray(m, dtype=float).ravel() for m in maps]))
    known = sizes[np.isfinite(sizes)]
    reach = float(np.quantile(known, 0.995)) if known.size else 0.0
    return reach or float(known.max(initial=0.0)) or 1.0


def bars(x: Any, y: Any, hover: str, **options: Any) -> go.Bar:
    """Bars from left to right; ``hover`` is what they say."""
    return go.Bar(x=x, y=y, orientation="h", hovertemplate=f"{hover}<extra></extra>", **options)


def share_bars(shares: Sequence[float], y: Any, hover: str, **options: Any) -> go.Bar:
    """Bars of shares, each with its value just beyond its end."""
    options = {"text": [percent(share) for share in shares], **options}
    return bars(shares, y, hover, textposition="outside", textfont_color=INK, cliponaxis=False, **options)


def dots(x: Any, y: Any, hover: str, marker: dict[str, Any], **options: Any) -> go.Scatter:
    """Dots that say ``hover``."""
    options = {"mode": "markers", "marker": marker, **options}
    return go.Scatter(x=x, y=y, hovertemplate=f"{hover}<extra></extra>", **options)


def curve(role: Role, x: Any, y: Any, hover: str, **options: Any) -> go.Scatter:
    """The line of a role; ``hover`` follows its name."""
    line = {"color": role.colour, "dash": role.dash, "width": 2}
    options = {"name": role.name, "mode": "lines", "line": line, **options}
    return go.Scatter(x=x, y=y, hovertemplate=f"{options['name']}, {hover}<extra></extra>", **options)


def along(role: Role, values: Any, hover: str, first: int = 1, **options: Any) -> go.Scatter:
    """The line of a role over ``first``, ``first + 1``, ..."""
    return curve(role, np.arange(first, first + len(values)), values, hover, **options)


def thread(x: Any, y: Any, **options: Any) -> go.Scatter:
    """A thin grey line that only guides the eye."""
    line = {"color": GUIDE, "width": 1.5}
    options = {"mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False, **options}
    return go.Scatter(x=x, y=y, **options)


def guide(made: go.Figure, axis: Literal["x", "y"], at: float, label: str = "") -> None:
    """A thin dashed line across the figure at a value worth comparing with."""
    draw = made.add_vline if axis == "x" else made.add_hline
    draw(at, line={"color": GUIDE, "dash": "dot", "width": 1.5})
    if not label:
        return
    log = made.layout[f"{axis}axis"].type == "log"
    place = math.log10(at) if log else at  # plotly places shapes by value, annotations by exponent
    note = {"text": label, "font": {"size": 12}, "showarrow": False, "yanchor": "bottom"}
    if axis == "x":
        made.add_annotation(x=place, y=1, yref="paper", **note)
    else:
        made.add_annotation(x=1, xref="paper", xanchor="right", y=place, **note)


def colour_bar(title: str, **options: Any) -> dict[str, Any]:
    """A colour bar above its map, which leaves a narrow page its width."""
    look = {"orientation": "h", "x": 0.5, "yanchor": "bottom", "outlinewidth": 0, "tickangle": 0}
    return {"title": {"text": title, "side": "top", "font": {"size": 12.5}}, **look, **options}


def error_bar(metrics: Iterable[Metric], **look: Any) -> dict[str, Any]:
    """Settings of error bars that reach over the intervals of ``metrics``."""
    known = list(metrics)
    return {
        "array": [metric.high - metric.value for metric in known],
        "arrayminus": [metric.value - metric.low for metric in known],
        **look,
    }


def rank_axes(made: go.Figure, title: str, numbers: Mapping[int, int]) -> go.Figure:
    """Ranks along a log axis, :data:`ZERO_AT` for 0, and on its upper side a number that belongs to each."""
    places = [rank or ZERO_AT for rank in numbers]
    ticks = {"type": "log", "tickvals": places, "tickangle": 0}
    lower, upper = ([short(number) for number in each] for each in (numbers, numbers.values()))
    made.add_trace(thread(places[:1], [None], xaxis="x2"))
    made.update_layout(xaxis={"title": "rank kept", "ticktext": lower, **ticks})
    look = {"overlaying": "x", "matches": "x", "side": "top", "showgrid": False, "tickfont": {"size": 11}}
    return made.update_layout(xaxis2={"title": title, "ticktext": upper, **ticks, **look})


def square_axes(x: dict[str, Any], y: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Both axes with one unit of the same length, settings of :func:`figure`."""
    fit = {"scaleanchor": "x", "scaleratio": 1, "constrain": "domain", "constraintoward": "top"}
    return {"x": {"constrain": "domain", **x}, "y": {**fit, **y}}


def share_axis(title: str, shares: Iterable[float], whole: bool = False, room: float = 0.2) -> dict[str, Any]:
    """An axis for bars of shares with their texts; up to 100 % at least when ``whole``.

    ``room`` is the part of the bars' reach that texts need beyond it on a narrow screen.
    """
    known = [0.0, *finite(shares), *([1.0] if whole else [])]
    low, high = min(known), max(known)
    beyond = room * ((high - low) or 1.0)
    ends = [low - (beyond if low < 0 else 0.0), high + beyond]
    return {"title": title, "tickformat": ".0%", "range": ends}


def key(label: str, like: go.Scatter) -> go.Scatter:
    """A grey legend entry for every trace of group ``label`` drawn like ``like``."""
    entry = go.Scatter(like).update(
        x=[None], y=[None], customdata=None, name=label, legendgroup=label, showlegend=True
    )
    part = "marker" if like.mode == "markers" else "line"
    return entry.update({part: {"color": INK}})


def clip_low(made: go.Figure, low: float) -> None:
    """Mark points left of ``low`` at the edge with their value: drawn to scale they would squash the rest."""
    for trace in made.data:
        for value, name in zip(trace.x, trace.y, strict=True):
            if value is not None and value < low:
                text = f"◄ {value:,.0%}"
                made.add_annotation(x=low, y=name, text=text, showarrow=False, xanchor="left", yshift=10)
