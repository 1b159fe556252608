"""Scores of the chosen criterion on the block picker: drawn once there are some, computed on a button."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError
from ghostlab.results.atlas import (
    SCORE_SETTINGS,
    Atlas,
    BlockScores,
    same_scores,
    scores_config,
    scores_from_atlas,
)
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.ui.page import Page, on
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service, View
from ghostlab.ui.sidebar import controls
from ghostlab.ui.sidebar.picker import scores as bars

SETTINGS = (*SCORE_SETTINGS, "pasted")
"""The sidebar's controls that decide a criterion's scores."""


def read(values: Sequence[Any]) -> RunConfig:
    """The configuration whose scores the controls :data:`SETTINGS` ask for.

    Raises:
        ConfigError: If a value is of the wrong kind.
    """
    return scores_config(controls.read_some(dict(zip(SETTINGS, values, strict=True)), SCORE_SETTINGS))


def known(service: Service, config: RunConfig, found: str, shown: str, mapped: str) -> SelectionInfo | None:
    """The scores that a configuration's criterion gives, if this server has computed them for this page.

    Args:
        found: Id of the page's latest scores; empty for none.
        shown: Id of the shown result; a run whose criterion chose has scores, too.
        mapped: Id of the shown atlas; empty for the example's.
    """
    scoring = service.find(found, BlockScores)
    if scoring is not None and same_scores(scoring.config, config):
        return scoring.selection
    result = service.find(shown, RunResult)
    if result is not None and result.selection is not None and same_scores(result.config, config):
        return result.selection
    atlas = service.find(mapped, Atlas)
    return scores_from_atlas(atlas, config) if atlas is not None else None


def resumed(config: RunConfig | None, job: View | None) -> RunConfig | None:
    """A configuration with the settings of a scoring job, if there is one."""
    if job is None:
        return config
    asked = RunConfig.from_query(job.about)
    return replace(
        config or RunConfig(), drop=None, **{name: getattr(asked, name) for name in SCORE_SETTINGS}
    )


def bind(page: Page, picker: gr.HTML, button: gr.Button) -> None:
    """Let the button compute scores, and the picker show them anew whenever what they depend on changes."""
    service, drop, found = page.service, page.controls["drop"], page.found["scores"]
    settings = [page.controls[name] for name in SETTINGS]
    depends = [found, page.shown, page.found["atlas"], *settings]

    def find(found: str, shown: str, mapped: str, values: Sequence[Any]) -> SelectionInfo | None:
        try:
            return known(service, read(values), found, shown, mapped)
        except GhostlabError:  # told when Score or Run is pressed; a number is just being typed
            return None

    def draw(found: str, shown: str, mapped: str, *values: Any) -> gr.HTML:
        return gr.HTML(scores=bars(find(found, shown, mapped, values)))

    def take(found: str, shown: str, mapped: str, *values: Any) -> Any:
        info = find(found, shown, mapped, values)
        return info.chosen if found and info else gr.skip()

    def queue(owner: str, *values: Any) -> str:
        return requests.scores(service, owner, read(values))

    on([component.change for component in depends], draw, depends, picker, trigger_mode="always_last")
    on(found.change, take, depends, drop)
    page.on_start(button.click, queue, settings)
