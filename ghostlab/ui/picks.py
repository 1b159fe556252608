"""Blocks that are picked from a criterion's scores become the blocks to drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from ghostlab.errors import ConfigError
from ghostlab.results.run import RunResult
from ghostlab.ui.page import Page, on
from ghostlab.ui.sidebar.picker import BY_HAND
from ghostlab.ui.tabs.overview.scores import taken


def bind(page: Page, picker: Mapping[str, Any]) -> None:
    """Wire the list of candidates and the clicks on their dots.

    Args:
        page: Its sidebar gets the blocks.
        picker: ``take``, the list, and ``clicked``, which tells of clicks.
    """
    chooser, drop = page.controls["chooser"], page.controls["drop"]

    def listed(label: str | None, shown: str, kind: str, asked: str) -> list[str]:
        return pick(page.service.result(shown), label, asked if kind == BY_HAND else None)

    def clicked(point: gr.SelectData, shown: str, kind: str, asked: str) -> list[str]:
        return listed(str(point.value), shown, kind, asked)

    on(picker["take"].input, listed, [picker["take"], page.shown, chooser, drop], [chooser, drop])
    on(picker["clicked"].select, clicked, [page.shown, chooser, drop], [chooser, drop])


def pick(result: RunResult, label: str | None, asked: str | None) -> list[str]:
    """Values of the chooser and of the blocks to drop.

    Args:
        result: The result whose scores are shown.
        label: The candidate, as in its scores.
        asked: Blocks that are named already; ``None`` when the criterion decides.

    Raises:
        ConfigError: If there is no such candidate.
    """
    info = result.selection
    if info is None or label not in info.labels:
        raise ConfigError("That block is not among those shown.", "Choose one of the chart.")
    return named(taken(info, label, asked))


def named(blocks: str) -> list[str]:
    """Values of the same controls that name these blocks."""
    gr.Info(f"Blocks to drop: {blocks}. Press Run to measure them.", title="Chosen", duration=5)
    return [BY_HAND, blocks]
