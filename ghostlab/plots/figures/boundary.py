"""How well each recovery restores the state that the first surviving layer receives (held-out)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure, of_each
from ghostlab.plots.formats import count, is_finite, percent, plural, points
from ghostlab.plots.rows import Row, Rows, greatest, states, where
from ghostlab.results.compare import ORIGINAL
from ghostlab.results.records import BoundaryReport

_ALL, _ORDINARY, _FITTED = "all tokens", "ordinary tokens", "calibration (fitted on)"
_MARKERS = {_ALL: ("circle", 9), _ORDINARY: ("diamond-open", 15), _FITTED: ("line-ns-open", 14)}
_NOT_FITTED = "No recovery was fitted to this block."


def _best(rows: Rows) -> tuple[Row, BoundaryReport]:
    """The one that explains most."""
    return greatest(states(rows), lambda report: report.explained)


# -- one number per recovery ----------------------------------------------------------------------------


def explained(rows: Rows) -> go.Figure:
    """All and ordinary held-out tokens, and the calibration tokens that it was fitted on."""
    measures = {_ALL: "explained", _ORDINARY: "explained_ordinary", _FITTED: "explained_train"}
    made = _dots(rows, measures, "explained share of the gap<br>(held-out text)")
    ends = style.finite(value for trace in made.data for value in trace.x)
    style.clip_low(made, -1.0)
    made.update_xaxes(range=[max(min(0.0, *ends), -1.0) - 0.03, max(1.0, *ends) + 0.05])
    style.guide(made, "x", 1)
    style.guide(made, "x", 0)
    return made


def relative_error(rows: Rows) -> go.Figure:
    """All and ordinary held-out tokens."""
    measures = {_ALL: "relative_error", _ORDINARY: "relative_error_ordinary"}
    made = _dots(rows, measures, "relative error ‖Y′ − Y‖ / ‖Y‖<br>(held-out text)")
    return made.update_xaxes(rangemode="tozero")


def _dots(rows: Rows, measures: dict[str, str], title: str) -> go.Figure:
    """One row per recovery, one symbol per measure."""
    traces = [trace for label, name in measures.items() for trace in _measure(rows, label, name)]
    legend = {"itemsizing": "constant", "font": {"size": 12}}  # on a phone a line for each measure
    made = style.by_row(traces, len(rows), {"title": title, "tickformat": ".0%"}, extra=60, legend=legend)
    return made.update_yaxes(type="category")


def _measure(rows: Rows, label: str, name: str) -> list[go.Scatter]:
    """The dots of one measure, and a grey entry for them in the legend."""
    known = [(row.role, x) for row, report in states(rows) if is_finite(x := getattr(report, name))]
    if not known:
        return []
    symbol, size = _MARKERS[label]
    marker = {
        "symbol": symbol,
        "size": size,
        "line": {"width": 2 if symbol.endswith("open") else 0},
        "color": [role.colour for role, _ in known],
    }
    dots = style.dots(
        [value for _, value in known],
        [role.name for role, _ in known],
        f"%{{y}}, {label}: %{{customdata}}",
        marker,
        name=label,
        legendgroup=label,
        showlegend=False,
        customdata=[percent(value) for _, value in known],
    )
    return [dots, style.key(label, dots).update(y=[known[0][0].name])]


def say_explained(rows: Rows) -> str:
    """How much of what the block does is restored, and how much less than on the fitted tokens."""
    row, report = _best(rows)
    text = (
        f"{row.name} explains {percent(report.explained)} of the gap on held-out tokens "
        f"({percent(report.explained_ordinary)} on ordinary ones)"
    )
    if report.explained <= 0:
        share = percent(report.explained)
        text = f"No recovery comes closer than plain dropping; {row.name} explains {share}"
    if report.explained_train is None or not math.isfinite(report.explained_train):
        return f"{text}."
    lost = report.explained_train - report.explained
    if lost < 0.005:
        return f"{text}, no less than on the tokens it was fitted on."
    return f"{text}, and {points(lost)} more on the tokens it was fitted on."


def _explained(row: Row) -> str:
    if row.state is None:
        return ""
    return f"{percent(row.state.explained)} ({percent(row.state.explained_ordinary)} on ordinary tokens)"


def say_relative_error(rows: Rows) -> str:
    """How far off the restored state is, and whether massive activations flatter it."""
    row, report = min(states(rows), key=lambda pair: pair[1].relative_error)
    every, ordinary = report.relative_error, report.relative_error_ordinary
    text = f"With {row.name} the restored state of held-out tokens is off by {percent(every)} of its size"
    if not math.isfinite(ordinary):
        return f"{text}."
    if ordinary > 1.05 * every:
        return f"{text}, by {percent(ordinary)} on ordinary tokens: massive activations flatter it."
    if ordinary < 0.95 * every:
        return (
            f"{text}, by only {percent(ordinary)} on ordinary tokens: most of the error is on massive ones."
        )
    return f"{text}, and by as much on ordinary tokens alone."


# -- curves ----------------------------------------------------------------------------------------------


def channel_error(rows: Rows) -> go.Figure:
    """Share of the gap left in each channel (1 is plain dropping), worst first."""
    traces = []
    for row, report in states(rows):
        order = np.argsort(report.channel_error)[::-1]
        errors, hover = np.asarray(report.channel_error)[order], "channel %{customdata}: %{y:.3~g}"
        traces.append(style.along(row.role, errors, hover, customdata=order))
    return _left_figure(traces, "share of the gap left, all tokens", "channels, worst first", style.log_ticks)


def say_channel_error(rows: Rows) -> str:
    """What is left of the gap in the median and in the worst channel."""
    row, report = _best(rows)
    errors = np.asarray(report.channel_error)
    worst, beyond = int(np.nanargmax(errors)), int((errors > 1).sum())
    text = (
        f"{row.name} leaves {percent(float(np.nanmedian(errors)))} of the gap in the median channel "
        f"and {percent(float(errors[worst]))} in the worst, channel {worst}"
    )
    return f"{text}; {plural(beyond, 'channel')} would be closer if merely dropped." if beyond else f"{text}."


def compare_channel_error(rows: Rows) -> str:
    """What each leaves of the gap in the median channel, and which leaves less in more channels."""
    of_both = of_each("Share of the gap left in the median channel", lambda row: _left(row, "channel_error"))
    text = of_both(rows)
    ours, theirs = (style.finite(report.channel_error) for _, report in states(rows))
    if not ours or len(ours) != len(theirs):
        return text
    wins = int(np.less(ours, theirs).sum())
    return f"{text[:-1]}; {rows[0].name} leaves less in {count(wins)} of {count(len(ours))} channels."


def _left(row: Row, name: str, part: slice = slice(None)) -> str:
    """What one leaves of the gap, in the middle; plain dropping leaves all, the original none."""
    errors = style.finite(getattr(row.state, name)[part])
    if errors:
        return percent(float(np.median(errors)))
    method = row.run.method if row.run else ""
    return {"drop": "all of it", ORIGINAL: "nothing"}.get(method, "an unknown share")


def position_error(rows: Rows) -> go.Figure:
    """Share of the gap left at each position (1 is plain dropping); ordinary tokens alone as thin lines."""
    known, hover = states(rows), "position %{x}: %{y:.3~g}"
    traces = [style.along(row.role, report.position_error, hover, 0) for row, report in known]
    ordinary = [
        style.along(
            row.role,
            report.position_error_ordinary,
            hover,
            0,
            name=f"{row.name}, ordinary tokens",
            line={"color": row.role.colour, "width": 1.2, "dash": "dot"},
            showlegend=False,
            legendgroup=_ORDINARY,
        )
        for row, report in known
        if style.finite(report.position_error_ordinary)
    ]
    keys = [style.key(_ORDINARY, ordinary[0])] if ordinary else []
    made = [*ordinary, *traces, *keys]
    return _left_figure(made, "share of the gap left, held-out", "position in the window", style.wide_axis)


def _left_figure(
    traces: list[go.Scatter], y: str, x: str, scale: Callable[[Iterable[float | None]], dict[str, Any]]
) -> go.Figure:
    """Curves of what is left of the gap, with a line for plain dropping."""
    values = [value for trace in traces for value in trace.y]
    made = style.curves(traces, {"title": x}, {"title": y, **scale(values)})
    style.guide(made, "y", 1, "plain dropping")
    return made


def say_position_error(rows: Rows) -> str:
    """What is left of the gap at the first position and at the rest, and who leaves far less at the first."""
    row, report = _best(rows)
    first, rest = report.position_error[0], float(np.nanmedian(report.position_error[1:]))
    text = (
        f"{row.name} leaves {percent(first)} of the gap at the first position and {percent(rest)} at the "
        "median of the rest"
    )
    others = [(other.position_error[0], each.name) for each, other in states(rows) if each is not row]
    left, name = min((pair for pair in others if math.isfinite(pair[0])), default=(math.inf, ""))
    return f"{text}; {name} leaves least at the first, {percent(left)}." if left < 0.5 * first else f"{text}."


def _first_and_rest(row: Row) -> str:
    first, rest = (_left(row, "position_error", part) for part in (slice(1), slice(1, None)))
    return f"{first} at the first position, {rest} at the median of the rest"


FIGURES = (
    Figure(
        "explained",
        "Explained share of the gap",
        "The first layer after the cut expects the state Y. Plain dropping hands it X, and the recovery "
        "hands it something in between. This is the share of the squared distance from X to Y that the "
        "recovery covers, over all held-out tokens and over ordinary ones alone: 0 is no better than "
        "dropping, 100 % is a perfect restoration, and less than 0 would be worse than doing nothing. A map "
        "that explains much more of the text that it was fitted on than of other text has learned that text "
        "by heart.",
        r"\text{explained} = 1 - \frac{\lVert \hat Y - Y \rVert_F^2}{\lVert Y - X \rVert_F^2}",
        "The coefficient of determination R² of least squares, taken on the change Y − X",
        draw=explained,
        say=say_explained,
        select=where(lambda row: row.state is not None and is_finite(row.state.explained)),
        nothing=_NOT_FITTED,
        compare=of_each("On all held-out tokens", _explained),
    ),
    Figure(
        "relative_error",
        "Relative error",
        "How far the recovered state is from the true one, as a share of the true one's own length. A few "
        "tokens, often the first of a text, carry *massive activations*: values hundreds of times larger "
        "than all others. They dominate any such sum, so ordinary tokens are shown apart.",
        r"\text{error} = \frac{\lVert \hat Y - Y \rVert_F}{\lVert Y \rVert_F}",
        "Massive activations: Sun et al. (arXiv 2402.17762)",
        draw=relative_error,
        say=say_relative_error,
        select=where(lambda row: row.state is not None and is_finite(row.state.relative_error)),
        nothing=_NOT_FITTED,
    ),
    Figure(
        "channel_error",
        "Error per channel",
        "The state of a token is a list of numbers, its channels. Here the gap that is left is taken for "
        "each channel alone and sorted, the worst first. Above 1, that channel would have been closer to "
        "the truth had the block merely been dropped: the map gave it up to serve others.",
        r"e_c = \frac{\sum_t (\hat y_{tc} - y_{tc})^2}{\sum_t (y_{tc} - x_{tc})^2}",
        "Outlying channels: Dettmers et al. (arXiv 2208.07339)",
        draw=channel_error,
        say=say_channel_error,
        select=where(lambda row: row.state is not None and style.finite(row.state.channel_error)),
        nothing="Error per channel was not recorded.",
        compare=compare_channel_error,
    ),
    Figure(
        "position_error",
        "Error per position",
        "The same share of the gap for each position in the window. The first position is special: models "
        "use it as an *attention sink*, and its state is unlike every other. A map that must serve both "
        "kinds of tokens pays for it, which is why `ghost_sink` treats the first token apart.",
        r"e_t = \frac{\sum_i \lVert \hat y_{it} - y_{it} \rVert^2}{\sum_i \lVert y_{it} - x_{it} \rVert^2}",
        "Attention sinks: Xiao et al. (arXiv 2309.17453). Massive activations: Sun et al. (arXiv 2402.17762)",
        draw=position_error,
        say=say_position_error,
        select=where(lambda row: row.state is not None and len(style.finite(row.state.position_error)) > 1),
        nothing="Error per position was not recorded.",
        compare=of_each("Share of the gap left", _first_and_rest),
    ),
)
