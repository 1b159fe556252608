"""Blocks that are picked from a criterion's scores become the blocks to drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.errors import ConfigError
from ghostlab.results.run import RunResult
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service.service import Service
from ghostlab.ui.sidebar.picker import BY_HAND
from ghostlab.ui.sidebar.sidebar import Sidebar
from ghostlab.ui.tabs.overview.scores import taken


def bind(
    service: Service,
    sidebar: Sidebar,
    shown: Component,
    picker: Mapping[str, Component],
    quiet: dict[str, Any],
) -> None:
    """Wire the list of candidates and the clicks on their dots.

    Args:
        service: Finds the shown result.
        sidebar: Gets the blocks.
        shown: Holds the id of the shown result.
        picker: ``take``, the list, and ``clicked``, which tells of clicks.
        quiet: Settings of an event that shows no progress.
    """
    chooser, drop = sidebar.controls["chooser"], sidebar.controls["drop"]

    def listed(label: str | None, shown_id: str, kind: str, asked: str) -> list[str]:
        with told_to_user():
            return pick(service.result(shown_id), label, asked if kind == BY_HAND else None)

    def clicked(point: gr.SelectData, shown_id: str, kind: str, asked: str) -> list[str]:
        return listed(str(point.value), shown_id, kind, asked)

    picker["take"].input(listed, [picker["take"], shown, chooser, drop], [chooser, drop], **quiet)
    picker["clicked"].select(clicked, [shown, chooser, drop], [chooser, drop], **quiet)


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
