"""Boundary error: how well the state that the first surviving layer receives is restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

from ghostlab.plots import sentences
from ghostlab.plots.figures import boundary as figures
from ghostlab.results.run import RunResult
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.panels import Choice, Drawing, Panel
from ghostlab.ui.tabs.view import Page, Tab


def _panel(name: str, figure: Callable[..., go.Figure], sentence: Callable[..., str]) -> Panel:
    def draw(result: RunResult, at: Choice) -> Drawing:
        where: tuple[Any, ...] = (result.runs, at.block)
        return sentence(*where), [figure(*where)]

    return Panel(name, draw)


PANELS = [
    _panel("explained", figures.explained, sentences.explained),
    _panel("relative_error", figures.relative_error, sentences.relative_error),
    _panel("channel_error", figures.channel_error, sentences.channel_error),
    _panel("position_error", figures.position_error, sentences.position_error),
]


def build(page: Page) -> Tab:
    """Four figures on the restored state; per dropped block when there are several."""
    return panels.build(page, "boundary", PANELS, by_block=True, whole=True)
