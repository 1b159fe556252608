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


def scores_of(
    service: Service, config: RunConfig, scores_id: str, run_id: str, atlas_id: str
) -> SelectionInfo | None:
    """The scores that a configuration's criterion gives, if this server has computed them for this page.

    Args:
        scores_id: Of the page's latest scores; empty for none.
        run_id: Of the result that is shown; a run whose criterion chose has scores, too.
        atlas_id: Of the atlas that is shown; empty for the example's.
    """
    scoring = service.find(scores_id, BlockScores)
    if scoring is not None and same_scores(scoring.config, config):
        return scoring.selection
    result = service.find(run_id, RunResult)
    if result is not None and result.selection is not None and same_scores(result.config, config):
        return result.selection
    atlas = service.find(atlas_id, Atlas)
    return scores_from_atlas(atlas, config) if atlas is not None else None


def resumed(config: RunConfig | None, job: View | None) -> RunConfig | None:
    """A configuration with the settings of a scoring job, if there is one."""
    if job is None:
        return config
    scored = RunConfig.from_query(job.about)
    settings = {name: getattr(scored, name) for name in SCORE_SETTINGS}
    return replace(config or RunConfig(), drop=None, **settings)


def bind(page: Page, picker: gr.HTML, button: gr.Button) -> None:
    """Let the button compute scores, and the picker show them anew whenever what they depend on changes."""
    service, job = page.service, page.found["scores"]
    settings = [page.controls[name] for name in SETTINGS]
    inputs = [job, page.shown, page.found["atlas"], *settings]

    def find(scores_id: str, run_id: str, atlas_id: str, *values: Any) -> SelectionInfo | None:
        try:
            return scores_of(service, read(values), scores_id, run_id, atlas_id)
        except GhostlabError:  # told when Score or Run is pressed; a number is just being typed
            return None

    def draw(*values: Any) -> gr.HTML:
        return gr.HTML(scores=bars(find(*values)))

    def take(scores_id: str, *more: Any) -> Any:
        info = find(scores_id, *more)
        return info.chosen if scores_id and info else gr.skip()

    def queue(owner: str, *values: Any) -> str:
        return requests.scores(service, owner, read(values))

    on([component.change for component in inputs], draw, inputs, picker, trigger_mode="always_last")
    on(job.change, take, inputs, page.controls["drop"])
    page.on_start(button.click, queue, settings)
