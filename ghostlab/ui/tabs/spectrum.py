"""Spectrum & rank: how many directions the fitted map needs."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from ghostlab.plots import sentences
from ghostlab.plots.figures import spectrum as figures
from ghostlab.results.run import RunResult
from ghostlab.ui.tabs import panels, ranks
from ghostlab.ui.tabs.panels import Choice, Drawing, Panel
from ghostlab.ui.tabs.view import Outputs, Page, Tab


def _panel(name: str, figure: Callable[..., go.Figure], sentence: Callable[..., str]) -> Panel:
    def draw(result: RunResult, at: Choice) -> Drawing:
        block = at.block or 0
        return sentence(result.runs, block), [figure(result.runs, block)]

    return Panel(name, draw)


PANELS = [
    _panel("singular_values", figures.singular_values, sentences.singular_values),
    _panel("cumulative_energy", figures.cumulative_energy, sentences.cumulative_energy),
    _panel("rank_curve", figures.rank_curve, sentences.rank_curve),
]


def build(page: Page) -> Tab:
    """Three figures on the singular values and on truncation, and ranks to be put into the model."""
    drawn = panels.build(page, "spectrum", PANELS, by_block=True).figures
    taken = ranks.build(page)
    figures = Outputs(
        [*drawn.components, *taken.figures.components],
        lambda result: [*drawn.render(result), *taken.figures.render(result)],
    )
    return Tab(figures, taken.words, controls=taken.controls)
