"""Operator: what the fitted map is. Its symmetric and antisymmetric part, and its eigenvalues."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from ghostlab.plots import operator as figures
from ghostlab.plots import sentences, style
from ghostlab.records import OperatorReport
from ghostlab.results import RunResult
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.panels import Choice, Drawing, Panel
from ghostlab.ui.tabs.view import Page, Tab

_NONE = (
    "**{}** puts no linear map in the place of the blocks (it drops them plainly, keeps a layer, or changes "
    "the weights of one), so there is nothing to take apart; choose another recovery above."
)


def _panel(
    title: str,
    draw_one: Callable[[OperatorReport, str], list[go.Figure]],
    sentence: Callable[[OperatorReport], str],
    count: int = 1,
) -> Panel:
    """A panel on the operator of the chosen recovery and block, with a word when there is none."""

    def draw(result: RunResult, at: Choice) -> Drawing:
        block = at.block or 0
        if not result.runs or block >= len(result.runs[at.run].operators):
            return _why(result, at.run), [style.empty("No linear map to show.") for _ in range(count)]
        report = result.runs[at.run].operators[block]
        colour = style.roles(result.runs)[at.run].colour
        return sentence(report), draw_one(report, colour)

    return Panel(title, draw, count)


def _why(result: RunResult, run: int) -> str:
    """Why there is no operator."""
    return _NONE.format(style.roles(result.runs)[run].name) if result.runs else "No recovery was fitted."


def _first(result: RunResult) -> int:
    """The recovery with the lowest perplexity of those that have an operator."""
    known = [index for index, run in enumerate(result.runs) if run.operators]
    return min(known, key=lambda index: result.runs[index].perplexity.value, default=0)


def _maps(report: OperatorReport, _: str) -> list[go.Figure]:
    return [figures.heat_map(report, "symmetric"), figures.heat_map(report, "antisymmetric")]


def _energy(report: OperatorReport, _: str) -> list[go.Figure]:
    return [figures.energy_split(report)]


def _eigenvalues(report: OperatorReport, colour: str) -> list[go.Figure]:
    return [figures.eigenvalues(report, colour)]


def _cost(result: RunResult, at: Choice) -> Drawing:
    block = at.block or 0
    return sentences.symmetry_cost(result.runs, block), [figures.symmetry_cost(result.runs, block)]


PANELS = [
    _panel("Energy of S and A", _energy, sentences.energy_split),
    Panel("What symmetry costs", _cost),
    _panel("The two parts: S (symmetric) and A (antisymmetric)", _maps, sentences.heat_map, count=2),
    _panel("Eigenvalues of W in the complex plane", _eigenvalues, sentences.eigenvalues),
]


def build(page: Page) -> Tab:
    """Four figures on one recovery's map."""
    return panels.build(page, "operator", PANELS, by_run=True, by_block=True, first=_first)
