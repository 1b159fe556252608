"""The atlas: one cell per block, and how the error of each operator grows with the length of the block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import geometric_mean, median
from typing import Any, TypeVar

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure
from ghostlab.plots.formats import fold, is_finite, number, percent, plural
from ghostlab.results.atlas import Atlas, AtlasBlock

SCALE = [[0.0, "#414487"], [0.25, "#2e708e"], [0.5, "#1fa088"], [0.75, "#5ec962"], [1.0, "#b5de2b"]]
"""Viridis without its ends, which would sink into a dark or a white page."""
_CELL = 30
"""Pixels per row of the map."""
_FEWEST_ROWS = 3
"""A map of one or two lengths is as high as one of three: its axis needs the room."""
_MOST_LENGTHS = 4
"""So many best blocks a sentence names: the first, the last and some between."""
Cell = TypeVar("Cell")
_PARTED = 1.5
"""From this ratio of errors on, two operators are said to part."""


# -- what is known of a block ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """Something measured of every block that the map can show.

    Attributes:
        of: Takes it from a block; ``None`` where it was not measured.
        spell: A value in words, with its unit.
        bar: Title of the colour bar.
        most: What the outlined block of a length has.
        low: Whether less is better.
    """

    of: Callable[[AtlasBlock], float | None]
    spell: Callable[[float], str]
    bar: str
    most: str
    low: bool = True


def gain(block: AtlasBlock) -> float | None:
    """How many times the error of ``ghost_sink`` the map that was fitted on all tokens leaves."""
    return block.ghost / block.ghost_sink if block.ghost_sink > 0 else None


def _error(name: str, title: str) -> Measure:
    return Measure(
        attrgetter(name),
        percent,
        f"error {title}, ‖Y′ − Y‖ / ‖Y‖",
        f"the least error {title} on ordinary held-out tokens",
    )


MEASURES = {
    "Error after ghost_sink": _error("ghost_sink", "after ghost_sink"),
    "Error after ghost": _error("ghost", "after ghost"),
    "Error after symmetric": _error("symmetric", "after symmetric"),
    "Error after scalar": _error("scalar", "after scalar"),
    "Error of plain dropping": _error("gap", "of plain dropping"),
    "What ghost_sink gains over ghost": Measure(
        gain, fold, "error of ghost over that of ghost_sink", "the most to gain from ghost_sink", False
    ),
    "Cosine": Measure(
        attrgetter("cosine"), number, "mean cosine of states before and after", "the highest cosine", False
    ),
    "Angular distance": Measure(
        attrgetter("angle"), number, "mean angle of the last token, in units of π", "the smallest angle"
    ),
    "Effective rank": Measure(
        attrgetter("effective_rank"), number, "effective rank of the correction, directions",
        "the correction of lowest rank",
    ),
    "KL after ghost_sink": Measure(
        attrgetter("kl"), number, "KL after ghost_sink, nats per token",
        "the only KL measured (nats per token), as the block with the least error after ghost_sink",
    ),
}  # fmt: skip
"""What can be shown, by name; the first is shown first."""
FIRST = next(iter(MEASURES))
OPERATORS = {"plain dropping": "gap", "ghost": "ghost", "ghost_sink": "ghost_sink", "symmetric": "symmetric",
             "scalar": "scalar"}  # fmt: skip
"""Name for people -> attribute of a block."""


def best(atlas: Atlas, of: Callable[[AtlasBlock], float | None], low: bool = True) -> list[AtlasBlock]:
    """The block of each length whose measure is lowest, or highest; lengths that lack it are left out."""
    known = [block for block in atlas.blocks if is_finite(of(block))]
    lengths = sorted({block.length for block in known})
    pick = min if low else max
    return [pick((b for b in known if b.length == n), key=lambda block: of(block) or 0.0) for n in lengths]


def label(block: AtlasBlock) -> str:
    """``20:25``."""
    return f"{block.start}:{block.stop}"


def span(atlas: Atlas) -> str:
    """Its block lengths: ``1 to 10``."""
    return " to ".join(str(length) for length in atlas.lengths[:: max(len(atlas.lengths) - 1, 1)])


def words(atlas: Atlas, block: AtlasBlock) -> list[str]:
    """A title and all measures of a block, in words with their units."""
    last = "" if block.length == 1 else f"\N{EN DASH}{block.stop - 1}"
    errors = [f"{name}: {percent(getattr(block, field))}" for name, field in OPERATORS.items()]
    noun = "Layers" if last else "Layer"
    return [
        f"{noun} {block.start}{last} ({block.length} of {atlas.layers}), block {label(block)}",
        "Error of the state after it, ordinary held-out tokens",
        *errors,
        "Before against after",
        f"mean cosine: {number(block.cosine)}",
        f"angle, last token: {number(block.angle)} π",
        "Correction of ghost_sink",
        f"effective rank: {number(block.effective_rank)} directions",
        "KL: not measured" if block.kl is None else f"KL: {number(block.kl)} nats per token",
    ]


# -- the map ---------------------------------------------------------------------------------------------


def block_map(atlas: Atlas, name: str = FIRST) -> go.Figure:
    """Start by length, coloured by one of :data:`MEASURES`; bright is good to drop.

    ``customdata`` of a cell is its block (``20:25``), ``text`` its measures in words, one a line.
    The best block of each length is outlined.
    """
    measure, lengths = MEASURES[name], atlas.lengths
    known = style.finite(map(measure.of, atlas.blocks))
    if not known:
        return style.empty(f"{name} was not measured.")
    cells = {(block.start, block.length): block for block in atlas.blocks}
    log = style.axis_type(known) == "log"

    def grid(show: Callable[[AtlasBlock], Cell], otherwise: Cell) -> list[list[Cell]]:
        """What to show of each block, by length and start; ``otherwise`` where there is none."""
        rows = [[cells.get((start, length)) for start in range(atlas.layers)] for length in lengths]
        return [[otherwise if block is None else show(block) for block in row] for row in rows]

    def place(block: AtlasBlock) -> float | None:
        """Where a block lies on the colour scale: its value, or the exponent of that."""
        value = measure.of(block)
        if value is None or not math.isfinite(value):
            return None
        return math.log10(value) if log else value

    paint = go.Heatmap(
        z=grid(place, None),
        text=grid(
            lambda block: "<br>".join(words(atlas, block)),
            f"No such block: the model has {plural(atlas.layers, 'layer')}.",
        ),
        customdata=grid(label, ""),
        hovertemplate="%{text}<extra></extra>",
        colorscale=SCALE,
        reversescale=measure.low,
        xgap=1,
        ygap=1,
        colorbar=_bar(measure, known, log),
    )
    ground = go.Heatmap(  # seen where a measure is missing
        z=grid(lambda _: 0, None),
        colorscale=[[0, style.GRID], [1, style.GRID]],
        showscale=False,
        hoverinfo="skip",
        xgap=1,
        ygap=1,
    )
    made = style.figure(
        [ground, paint] if len(known) < len(atlas.blocks) else [paint],
        height=150 + _CELL * max(len(lengths), _FEWEST_ROWS),
        x={"title": "start: first dropped layer", "fixedrange": True, "showgrid": False, "automargin": False},
        y={
            "title": "dropped layers",
            "tickvals": list(range(len(lengths))),
            "ticktext": [str(length) for length in lengths],
            "fixedrange": True,
            "showgrid": False,
        },
        dragmode=False,
        margin={"t": 104, "b": 56},  # room for the bar: what it asks for itself would move the axis titles
    )
    return made.update_layout(shapes=_outlines(best(atlas, measure.of, measure.low), lengths))


_TICKS: dict[Callable[[float], str], dict[str, str]] = {
    percent: {"tickformat": "~%"},
    number: {"tickformat": "~g"},
    fold: {"tickformat": "~g", "ticksuffix": "-fold"},
}


def _bar(measure: Measure, values: Sequence[float], log: bool) -> dict[str, Any]:
    """A colour bar above the map, which leaves a narrow page its width."""
    ticks: dict[str, Any] = {"nticks": 5, **_TICKS[measure.spell]}
    if log:
        marks = _log_marks(min(values), max(values))
        most = 3 if max(len(measure.spell(mark)) for mark in marks) > 6 else 5
        marks = marks[:: -(-len(marks) // most)]
        ticks = {
            "tickvals": [math.log10(mark) for mark in marks],
            "ticktext": [measure.spell(mark) for mark in marks],
        }
    return style.colour_bar(measure.bar, y=1.02, len=1.0, thickness=12, **ticks)


def _log_marks(low: float, high: float) -> list[float]:
    """Marks 1, 2, 5, 10, ...; only 1, 10, 100 from three decades on: a colour bar has no log axis."""
    steps = (1, 2, 5) if high < 1e3 * low else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [mark for power in decades for step in steps if low <= (mark := step * 10.0**power) <= high]


def _outlines(blocks: Sequence[AtlasBlock], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """A dark line within a light one: seen on every colour of the scale and on either page."""
    places = [(block.start, lengths.index(block.length)) for block in blocks]
    return [
        {
            "type": "rect",
            "x0": start - 0.5,
            "x1": start + 0.5,
            "y0": row - 0.5,
            "y1": row + 0.5,
            "line": {"color": colour, "width": width},
        }
        for start, row in places
        for colour, width in (("#ffffff", 4.0), ("#111111", 1.6))
    ]


def say_block_map(atlas: Atlas, name: str = FIRST) -> str:
    """Which block is the best of each length, and where ``ghost`` and ``ghost_sink`` part."""
    measure = MEASURES[name]
    blocks = best(atlas, measure.of, measure.low)
    if not blocks:
        return f"{name} was not measured on any block."
    some = np.unique(np.linspace(0, len(blocks) - 1, _MOST_LENGTHS).round().astype(int))
    words = [
        f"{label(block)} of {plural(block.length, 'layer')} ({measure.spell(measure.of(block) or 0.0)})"
        for block in map(blocks.__getitem__, some)
    ]
    return f"Of each length the outlined block has {measure.most}: {', '.join(words)}.{_parting(atlas)}"


def _parting(atlas: Atlas) -> str:
    """The layer whose presence in a block sets the errors of ``ghost`` and ``ghost_sink`` apart the most."""
    known = []
    for layer in range(atlas.layers):
        inside: list[float] = []
        outside: list[float] = []
        for block in atlas.blocks:
            if ratio := gain(block):
                (inside if block.start <= layer < block.stop else outside).append(ratio)
        if inside and outside:  # by geometric means: too large counts as much as too small
            contrast = geometric_mean(inside) / geometric_mean(outside)
            known.append((contrast, layer, median(inside), median(outside)))
    if not known:
        return ""
    contrast, layer, inside_ratio, outside_ratio = max(known)
    if contrast < _PARTED:
        most = max(gain(block) or 0.0 for block in atlas.blocks)
        return f" Nowhere does ghost leave more than {number(most, 2)} times the error of ghost_sink."
    return (
        f" Where the block contains layer {layer}, ghost leaves {number(inside_ratio, 2)} times the error of "
        f"ghost_sink, elsewhere {number(outside_ratio, 2)} times (medians): massive activations begin or end "
        "there."
    )


# -- errors by length ------------------------------------------------------------------------------------


def by_length(atlas: Atlas) -> go.Figure:
    """Error of the best block of each length, for each operator its own best."""
    if not atlas.blocks:
        return style.empty("The atlas holds no block.")
    plain, *fitted = OPERATORS
    roles = [replace(style.PRUNED, name=plain), *style.roles(fitted)]
    traces, seen = [], []
    for role, field in zip(roles, OPERATORS.values(), strict=True):
        blocks = best(atlas, attrgetter(field))
        errors = [getattr(block, field) for block in blocks]
        seen += errors
        look: dict[str, Any] = {"mode": "lines+markers", "marker": {"symbol": role.symbol, "size": 8}}
        look["customdata"] = [f"{percent(y)} at {label(b)}" for y, b in zip(errors, blocks, strict=True)]
        places, hover = [block.length for block in blocks], "%{x} layers: %{customdata}"
        traces.append(style.curve(role, places, errors, hover, **look))
    title = "least error ‖Y′ − Y‖ / ‖Y‖<br>(ordinary held-out tokens)"
    y = {"title": title, **style.wide_axis(seen), "tickformat": ".0%"}
    return style.curves(traces, {"title": "length: dropped layers", "tickvals": atlas.lengths}, y)


def say_by_length(atlas: Atlas) -> str:
    """What ``ghost_sink`` and plain dropping leave of the shortest and of the longest blocks."""
    plain, sink = (best(atlas, attrgetter(field)) for field in ("gap", "ghost_sink"))
    if not plain:
        return "The atlas holds no block."
    ends = list(zip(sink, plain, strict=True))
    text = "; ".join(
        f"of {plural(one.length, 'layer')} ghost_sink leaves {percent(one.ghost_sink)} ({label(one)}) and "
        f"plain dropping {percent(other.gap)} ({label(other)})"
        for one, other in ends[:: max(len(ends) - 1, 1)]
    )
    return f"{text[0].upper()}{text[1:]}. Each operator at its own best block."


FIGURES = (
    Figure(
        "block_map",
        "Atlas",
        "Each cell is one block that could be dropped: its column says where it begins, its row how many "
        "layers it has. The colour says how far the state after it would be from the true one. All cells "
        "come from one reading of the text, because what least squares needs of it are only sums of "
        "products.",
        r"\text{error}_{s:e} = \frac{\lVert \hat Y_{s:e} - Y_e \rVert_F}{\lVert Y_e \rVert_F}",
        "Scanning all blocks by angular distance: Gromov et al. (arXiv 2403.17887), figure 4",
        draw=block_map,
        say=say_block_map,
    ),
    Figure(
        "by_length",
        "Error by length",
        "The more layers go at once, the more there is to make up for. Each curve takes, at every length, "
        "the block that its own operator restores best. The distance between two curves is what the better "
        "operator is worth; where they run together, the simpler one is enough.",
        r"\min_{s}\ \frac{\lVert \hat Y_{s:s+n} - Y_{s+n} \rVert_F}{\lVert Y_{s+n} \rVert_F}",
        "Best block per length: Gromov et al. (arXiv 2403.17887), LLM-Streamline (arXiv 2403.19135)",
        draw=by_length,
        say=say_by_length,
    ),
)
