"""What a map does to single directions and tokens: its top directions, and states in a plane."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure
from ghostlab.plots.figures.maps import has, why_empty
from ghostlab.plots.formats import percent
from ghostlab.plots.rows import Rows, operators
from ghostlab.results.operator import Direction, Excitement, Points, StatePlane

_TOKENS_ON_HOVER = 3


def directions(rows: Rows) -> go.Figure:
    """Share of the map's effect along each of its top directions; channels and tokens on hovering."""
    ((row, report),) = operators(rows)
    shares = [one.share for one in report.directions]
    bars = style.share_bars(
        shares,
        [f"no. {number}" for number in range(1, len(shares) + 1)],
        "%{y}: %{text} of the change<br>%{customdata}",
        marker_color=row.role.colour,
        customdata=[_hover(one) for one in report.directions],
    )
    x = style.share_axis("share of the map's change of states<br>(calibration tokens)", shares)
    return style.by_row([bars], len(shares), x, extra=-30).update_yaxes(title_text="direction")


def channels(shares: list[tuple[int, float]]) -> str:
    """``12 (40 %), 301 (9 %)``."""
    return ", ".join(f"{channel} ({percent(share)})" for channel, share in shares)


def description(one: Direction, quote: Callable[[Excitement], str]) -> str:
    """A direction with its channels and the tokens that move along it, each as ``quote`` puts it."""
    tokens = ", ".join(map(quote, one.tokens))
    moves = f"; moves farthest: {tokens}" if tokens else ""
    return f"writes to channels {channels(one.writes)}; reads {channels(one.reads)}{moves}"


def _hover(one: Direction) -> str:
    lines = [f"writes to {channels(one.writes)}", f"reads {channels(one.reads)}"]
    tokens = [repr(token.token) for token in one.tokens[:_TOKENS_ON_HOVER]]
    return "<br>".join([*lines, f"moves most: {', '.join(tokens)}"] if tokens else lines)


def say_directions(rows: Rows) -> str:
    """How much of the map's effect its first direction holds, where it points, and which token it moves."""
    ((_, report),) = operators(rows)
    first, *rest = report.directions
    channel, square = first.writes[0]
    text = (
        f"{percent(first.share)} of what the map does to calibration tokens is along one direction, which "
        f"points to channel {channel} with {percent(square)} of its square"
    )
    if rest:
        share = percent(sum(one.share for one in rest))
        text += f"; the next holds {share}" if len(rest) == 1 else f"; the next {len(rest)} hold {share}"
    if not first.tokens:
        return f"{text}."
    total, massive = len(first.tokens), sum(token.massive for token in first.tokens)
    which = {0: "none is massive", total: "all are massive"}.get(massive, f"{massive} massive")
    return f"{text}. Of the {total} held-out tokens that it moves farthest, {which}."


def _planes(rows: Rows) -> list[StatePlane]:
    return [report.plane for _, report in operators(rows) if report.plane is not None]


def state_plane(rows: Rows, tokens: Literal["ordinary", "massive"] = "ordinary") -> go.Figure:
    """States before the block, after it, and recovered; a thin line from each recovered one to its target.

    The plane holds most of what ordinary tokens vary in; massive ones lie far outside and are drawn apart.
    """
    role, (plane,) = rows[0].role, _planes(rows)
    points: Points = getattr(plane, tokens)
    if not points.after:
        return style.empty(f"No token of the sample is {tokens}.")
    misses = [
        point
        for found, target in zip(points.recovered, points.after, strict=True)
        for point in (found, target, (None, None))
    ]
    x, y = zip(*misses, strict=True)
    lines = style.thread(x, y, line={"color": style.GUIDE, "width": 0.8})
    kinds = (
        ("before (what dropping leaves)", points.before, style.PRUNED.colour, "x-thin-open", 5),
        ("after (original)", points.after, style.ORIGINAL.colour, "square", 6),
        (f"recovered by {role.name}", points.recovered, role.colour, role.symbol, 6),
    )
    first, second = (percent(share) for share in plane.variance)
    return style.figure(
        [lines, *(_dots(*kind) for kind in kinds)],
        height=430,
        x={"title": f"first component ({first} of variance)"},
        y={"title": f"second component ({second})"},
        showlegend=True,
        legend={"font": {"size": 12}},
    )


def _dots(name: str, points: list[tuple[float, float]], colour: str, symbol: str, size: int) -> go.Scatter:
    marker = {"color": colour, "symbol": symbol, "size": size, "opacity": 0.75, "line": {"color": colour}}
    x, y = zip(*points, strict=True)
    return style.dots(x, y, f"{name}: (%{{x:.3~g}}, %{{y:.3~g}})", marker, name=name)


def say_state_plane(rows: Rows) -> str:
    """How near the recovered states come to the original's, in the plane and for both kinds of tokens."""
    (plane,) = _planes(rows)
    text = f"The plane holds {percent(sum(plane.variance))} of the variance of ordinary tokens"
    left, massive = _left(plane.ordinary), _left(plane.massive)
    if left is None:
        return f"{text}."
    text += f"; in it their recovered states miss the original's by {percent(left)} of what dropping does"
    return f"{text}." if massive is None else f"{text}, those of massive tokens by {percent(massive)}."


def _left(points: Points) -> float | None:
    """Root mean square distance recovered to original, over that of dropping; in the plane."""
    if not points.after:
        return None
    after, before, recovered = (np.asarray(p) for p in (points.after, points.before, points.recovered))
    gap = float(np.square(before - after).sum())
    return math.sqrt(float(np.square(recovered - after).sum()) / gap) if gap else None


FIGURES = (
    Figure(
        "directions",
        "Where the map does most: its top directions on the data",
        "Large entries of a matrix may act on channels that are nearly silent. These directions are ordered "
        "by how far they move real tokens instead. Each one listens to some channels, writes to others, "
        "and is most excited by the tokens that are listed.",
        r"(M^\top G M)\, v_k = \sigma_k^2 v_k, \qquad G = X^\top X, \qquad "
        r"\text{share}_k = \sigma_k^2 \big/ \textstyle\sum_j \sigma_j^2",
        "Singular vectors weighted by activations: SVD-LLM (arXiv 2403.07378)",
        draw=directions,
        say=say_directions,
        select=has(lambda report: report.directions),
        nothing=why_empty("Directions were not recorded for this map."),
        heading="Top directions of {}",
    ),
    Figure(
        "state_plane",
        "Single tokens: ordinary ones, then massive ones",
        "Each token's state has hundreds of numbers; this is its shadow on the plane in which ordinary "
        "tokens vary most. A cross is where dropping leaves the token, a square where the original puts it, "
        "and a thin line shows by how far the recovered one misses. Distances outside the plane are not "
        "seen.",
        r"(a, b) = (h - \bar h)\,[p_1, p_2], \qquad \mathrm{Cov}(h)\, p_k = \lambda_k p_k, \quad "
        r"\lambda_1 \ge \lambda_2 \ge \dots",
        "Principal components: Pearson 1901. Massive activations: Sun et al. (arXiv 2402.17762)",
        draw=state_plane,
        beside=lambda rows: state_plane(rows, "massive"),
        say=say_state_plane,
        select=has(lambda report: report.plane),
        nothing=why_empty("States of single tokens were not recorded."),
        heading="States recovered by {}: ordinary, massive",
    ),
)
