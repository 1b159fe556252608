"""Perplexity: where in the held-out text the loss sits, and whether differences are real."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from ghostlab.plots import sentences
from ghostlab.plots.figures import likelihood as figures
from ghostlab.plots.figures import windows
from ghostlab.plots.figures.kinds import by_kind
from ghostlab.results.run import RunResult
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.panels import Choice, Drawing, Panel
from ghostlab.ui.tabs.view import Page, Tab


def _panel(
    name: str, figure: Callable[[RunResult], go.Figure], sentence: Callable[[RunResult], str]
) -> Panel:
    def draw(result: RunResult, _: Choice) -> Drawing:
        return sentence(result), [figure(result)]

    return Panel(name, draw)


PANELS = [
    _panel("gap_closed", figures.gap_closed, sentences.gap_closed),
    _panel("window_differences", windows.window_differences, sentences.window_differences),
    _panel("window_distribution", windows.window_distribution, sentences.window_distribution),
    _panel("by_position", figures.by_position, sentences.by_position),
    _panel("by_kind", by_kind, sentences.by_kind),
]


def build(page: Page) -> Tab:
    """Five figures on likelihood."""
    return panels.build(page, "perplexity", PANELS)
