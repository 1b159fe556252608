"""What a map does to single directions and tokens: its top directions, and states in a plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.formats import percent
from ghostlab.plots.style import Role
from ghostlab.results.operator import Direction, Excitement, OperatorReport, Points

_SHOWN_TOKENS = 3


def directions(report: OperatorReport, colour: str = style.SYMMETRIC) -> go.Figure:
    """Share of the map's effect along each of its top directions; channels and tokens on hovering."""
    found = report.directions
    if not found:
        return style.empty("Directions were not recorded for this map.")
    shares = [one.share for one in found]
    bars = go.Bar(
        x=shares,
        y=[f"no. {number}" for number in range(1, len(found) + 1)],
        orientation="h",
        marker_color=colour,
        **style.bar_texts(shares),
        customdata=[_hover(one) for one in found],
        hovertemplate="%{y}: %{text} of the change<br>%{customdata}<extra></extra>",
    )
    return style.figure(
        [bars],
        height=style.bars_height(len(found)) - 30,
        x={
            "title": "share of the map's change of states<br>(calibration tokens)",
            "tickformat": ".0%",
            "range": style.share_range(shares),
        },
        y={"title": "direction", "autorange": "reversed"},
    )


def channels(shares: list[tuple[int, float]]) -> str:
    """``12 (40 %), 301 (9 %)``."""
    return ", ".join(f"{channel} ({percent(share)})" for channel, share in shares)


def told(one: Direction, quoted: Callable[[Excitement], str]) -> str:
    """A direction with its channels and the tokens that move along it, each as ``quoted`` puts it."""
    tokens = ", ".join(map(quoted, one.tokens))
    moves = f"; moves farthest: {tokens}" if tokens else ""
    return f"writes to channels {channels(one.writes)}; reads {channels(one.reads)}{moves}"


def _hover(one: Direction) -> str:
    lines = [f"writes to {channels(one.writes)}", f"reads {channels(one.reads)}"]
    tokens = [repr(token.token) for token in one.tokens[:_SHOWN_TOKENS]]
    return "<br>".join([*lines, f"moves most: {', '.join(tokens)}"] if tokens else lines)


def state_plane(
    report: OperatorReport, role: Role, tokens: Literal["ordinary", "massive"] = "ordinary"
) -> go.Figure:
    """States before the block, after it, and recovered; a thin line from each recovered one to its target.

    The plane holds most of what ordinary tokens vary in; massive ones lie far outside and are drawn apart.
    """
    plane = report.plane
    if plane is None:
        return style.empty("States of single tokens were not recorded.")
    points: Points = getattr(plane, tokens)
    if not points.after:
        return style.empty(f"No token of the sample is {tokens}.")
    misses: list[tuple[float | None, float | None]] = []
    for found, target in zip(points.recovered, points.after, strict=True):
        misses += [found, target, (None, None)]
    lines = go.Scatter(
        x=[x for x, _ in misses],
        y=[y for _, y in misses],
        mode="lines",
        line={"color": style.GUIDE, "width": 0.8},
        hoverinfo="skip",
        showlegend=False,
    )
    kinds = (
        ("before (what dropping leaves)", points.before, style.PRUNED.colour, "x-thin-open", 5),
        ("after (original)", points.after, style.ORIGINAL.colour, "square", 6),
        (f"recovered by {role.name}", points.recovered, role.colour, role.symbol, 6),
    )
    first, second = (percent(share) for share in plane.variance)
    made = style.figure(
        [lines, *(_dots(*kind) for kind in kinds)],
        height=430,
        x={"title": f"first component ({first} of variance)"},
        y={"title": f"second component ({second})"},
        showlegend=True,
    )
    return made.update_layout(legend={"font": {"size": 12}})


def _dots(name: str, points: list[tuple[float, float]], colour: str, symbol: str, size: int) -> go.Scatter:
    return go.Scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        name=name,
        mode="markers",
        marker={"color": colour, "symbol": symbol, "size": size, "opacity": 0.75, "line": {"color": colour}},
        hovertemplate=f"{name}: (%{{x:.3~g}}, %{{y:.3~g}})<extra></extra>",
    )
