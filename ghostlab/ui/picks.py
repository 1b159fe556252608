"""Blocks that are picked from a criterion's scores become the blocks to drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.errors import ConfigError
from ghostlab.results import RunResult
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.controls import BY_HAND, by_kind
from ghostlab.ui.service import Service
from ghostlab.ui.sidebar import Sidebar
from ghostlab.ui.tabs.scores import taken


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
    chooser, drop, *_ = touched = touched_by(sidebar)

    def listed(label: str | None, shown_id: str, kind: str, asked: str) -> list[Any]:
        with told_to_user():
            return pick(service.result(shown_id), label, asked if kind == BY_HAND else None)

    def clicked(point: gr.SelectData, shown_id: str, kind: str, asked: str) -> list[Any]:
        return listed(str(point.value), shown_id, kind, asked)

    picker["take"].input(listed, [picker["take"], shown, chooser, drop], touched, **quiet)
    picker["clicked"].select(clicked, [shown, chooser, drop], touched, **quiet)


def touched_by(sidebar: Sidebar) -> list[Component]:
    """What :func:`named` gives values for: the chooser, the blocks, and what a criterion would need."""
    controls = sidebar.controls
    return [
        controls["chooser"],
        controls["drop"],
        controls["select"],
        sidebar.criteria.box,
        controls["count"],
    ]


def pick(result: RunResult, label: str | None, asked: str | None) -> list[Any]:
    """Updates of the chooser, the blocks to drop, and what a criterion would need.

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


def named(blocks: str) -> list[Any]:
    """Updates of the same controls that name these blocks."""
    gr.Info(f"Blocks to drop: {blocks}. Press Run to measure them.", title="Chosen", duration=5)
    _, *unneeded = by_kind(BY_HAND)
    return [BY_HAND, gr.Textbox(value=blocks, visible=True), *unneeded]
