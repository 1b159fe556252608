"""Perplexity: where in the held-out text the loss sits, and whether differences are real."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from ghostlab.plots import perplexity as figures
from ghostlab.plots import sentences, windows
from ghostlab.plots.kinds import by_kind
from ghostlab.results import RunResult
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.panels import Choice, Drawing, Panel
from ghostlab.ui.tabs.view import Page, Tab


def _panel(
    title: str, figure: Callable[[RunResult], go.Figure], sentence: Callable[[RunResult], str]
) -> Panel:
    def draw(result: RunResult, _: Choice) -> Drawing:
        return sentence(result), [figure(result)]

    return Panel(title, draw)


PANELS = [
    _panel("Share of the gap closed", figures.gap_closed, sentences.gap_closed),
    _panel(
        "Against the pruned model, window by window", windows.window_differences, sentences.window_differences
    ),
    _panel("Hard and easy windows", windows.window_distribution, sentences.window_distribution),
    _panel("By position in the window", figures.by_position, sentences.by_position),
    _panel("By kind of token", by_kind, sentences.by_kind),
]


def build(page: Page) -> Tab:
    """Five figures on likelihood."""
    return panels.build(page, "perplexity", PANELS)
