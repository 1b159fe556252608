"""All figures by name, and those of a result or of a comparison in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from ghostlab.plots.figure import Figure
from ghostlab.plots.figures import (
    atlas,
    boundary,
    directions,
    kinds,
    likelihood,
    maps,
    pairs,
    probes,
    selection,
    spectrum,
    tasks,
    windows,
)
from ghostlab.plots.rows import Rows, operators, rows
from ghostlab.plots.tokens import GENERATED
from ghostlab.results.compare import Side
from ghostlab.results.operator import Direction
from ghostlab.results.probe import Probe
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot

_THEMES = (
    likelihood, windows, kinds, boundary, maps, spectrum, directions, probes, selection, tasks, atlas, pairs
)  # fmt: skip
FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in (*(each for theme in _THEMES for each in theme.FIGURES), GENERATED)
}
"""A new figure is one object in ``FIGURES`` of its theme; it is shown where its name is listed."""

LIKELIHOOD = ("gap_closed", "window_differences", "window_distribution", "by_position", "by_kind")
STATE = ("explained", "relative_error", "channel_error", "position_error")
OPERATOR = ("energy_split", "symmetry_cost", "heat_map", "eigenvalues", "directions", "state_plane")
SPECTRUM = ("singular_values", "cumulative_energy", "rank_curve")


@dataclass(frozen=True)
class Panel:
    """One figure of a result: what it is called, what it says, its plot or two, and what stands below them.

    These are directions one by one, zero-shot answers as a table, or continuations by altered maps.
    """

    name: str
    title: str
    sentence: str
    figures: list[go.Figure]
    directions: Sequence[Direction] = ()
    answers: ZeroShot | None = None
    probes: Sequence[Probe] = ()


@dataclass(frozen=True)
class Section:
    """Panels on one theme."""

    title: str
    panels: list[Panel]


def sections(result: RunResult) -> list[Section]:
    """Every section that has something to show."""
    made = [
        ("What was lost and what came back", _panels(("perplexity", *LIKELIHOOD), rows(result))),
        ("Choice of blocks", _panels(["scores"], rows(result))),
    ]
    several = len(result.cut.blocks) > 1
    blocks = [
        (f", block {start}:{stop}" if several else "", rows(result, block if several else None))
        for block, (start, stop) in enumerate(result.cut.blocks)
    ]
    made += [(f"Restored state{name}", _panels(STATE, given)) for name, given in blocks]
    for name, given in blocks:
        made.append((f"The fitted map{name}", _panels(OPERATOR, given)))
        made.append((f"Spectrum and rank{name}", _panels(SPECTRUM, given)))
    altered = {probe.label for probe in result.probes if probe.alteration.rank is None}
    probed = [row for row in rows(result) if row.variant in altered]
    made += [
        ("Altered maps in the model", [*_panels(["strengths"], probed), *_panels(["ranks"], rows(result))]),
        ("Zero-shot tasks", _panels(["retained"], rows(result))),
    ]
    return [Section(title, panels) for title, panels in made if panels]


def _panels(names: Iterable[str], given: Rows) -> list[Panel]:
    """Panels of the figures that have something to show: those on single recoveries, row by row, come first.

    Why something was left out of a map is worth a panel too, and so are answers of the original alone.
    """
    figures = [FIGURES[name] for name in names]
    places = [(figure, [row]) for row in given for figure in figures if figure.heading]
    places += [(figure, list(given)) for figure in figures if not figure.heading]
    return [_panel(figure, each) for figure, each in places if figure.select(each) or _known(figure, each)]


def _known(figure: Figure, given: Rows) -> bool:
    """Whether there is something to say although there is nothing to draw."""
    if figure.name == "retained":
        return given[0].result.zero_shot is not None
    return bool(figure.heading) and any(report.notes for _, report in operators(given))


def _panel(figure: Figure, given: Rows) -> Panel:
    row = given[-1]
    extra: dict[str, dict[str, Any]] = {
        "directions": {"directions": row.operator.directions if row.operator else ()},
        "retained": {"answers": row.result.zero_shot},
        "strengths": {"probes": row.probes},
    }
    title = figure.heading.format(row.name) if figure.heading else figure.title
    words, drawn = figure.sentence(given), figure.figures(given)
    return Panel(figure.name, title, words, drawn, **extra.get(figure.name, {}))


def comparison(one: Side, other: Side) -> list[Panel]:
    """Every figure of :data:`ghostlab.plots.figures.pairs.NAMES` on both sides, in order."""
    both, with_ends = pairs.sides(one, other), pairs.with_ends(one, other)
    made = []
    for figure in (FIGURES[name] for name in pairs.NAMES):
        given = with_ends if figure.name == "perplexity" else both
        made.append(Panel(figure.name, figure.title, figure.comparison(both), figure.figures(given)))
    return made
