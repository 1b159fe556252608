"""Scores on the block picker: whose they are, where they come from, and the job that computes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, CutError
from ghostlab.results.atlas import BlockScores, same_scores, scores_config, scores_from_atlas
from ghostlab.results.records import SelectionInfo
from ghostlab.settings import Settings
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import EXAMPLE, Service
from ghostlab.ui.sidebar import scores as scoring
from tests.helpers.atlases import LAYERS, make_atlas
from tests.helpers.fakelab import FakeLab
from tests.helpers.results import make_result, with_selection

pytestmark = pytest.mark.unit
ASKED = RunConfig(drop=None, select="streamline", seed=3)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    folder = make_result().save(tmp_path / "example")
    make_atlas().save(folder / "atlas.json")
    return Service(Settings(), FakeLab(), folder)


def at(service: Service, config: RunConfig, found: str = "", shown: str = "") -> SelectionInfo | None:
    return scoring.scores_of(service, config, found, shown, "")


def test_a_job_scores_the_blocks_and_its_scores_are_those_of_its_settings_alone(service: Service) -> None:
    asked = replace(ASKED, select="taylor", sequences=8)
    job_id = requests.scores(service, "ann", replace(asked, prompt="plays no part", recover=()))
    view = list(service.jobs.follow(job_id))[-1]
    assert (view.kind, view.state) == ("scores", "done")
    assert isinstance(view.result, BlockScores)
    assert view.result.config == asked
    assert view.result.to_dict()["selection"]["criterion"] == "taylor"
    assert RunConfig.from_query(view.about) == asked, "the page's address fills the sidebar again"
    assert at(service, replace(asked, batch=2), job_id) == view.result.selection
    for other in ({"model": "org/a"}, {"select": "sleb"}, {"text": "novels"}, {"count": 4}, {"seed": 1}):
        assert at(service, replace(asked, **other), job_id) is None
    assert at(service, asked) is None


def test_scores_of_the_shown_run_and_of_the_block_map_are_drawn_at_once(service: Service) -> None:
    result = with_selection(make_result())
    by_run = replace(result.config, drop=None, select="streamline")
    shown = service.jobs.put("file", replace(result, config=by_run))
    assert at(service, by_run, shown=shown) == result.selection
    assert at(service, by_run) is None
    told = at(service, ASKED)
    assert told == scores_from_atlas(make_atlas(), ASKED)
    assert told is not None
    assert len(told.labels) == LAYERS - 4


def test_what_cannot_be_scored_is_refused_before_anything_is_queued(service: Service) -> None:
    for change, error, says in (
        ({"select": "nothing"}, ConfigError, "no criterion 'nothing'"),
        ({"select": "taylor,windows=none"}, ConfigError, "windows"),
        ({"count": 30}, CutError, "30 of 30 layers cannot be dropped. Choose a count from 1 to 29"),
        ({"select": None, "drop": "1:2"}, ConfigError, "No criterion is chosen"),
    ):
        with pytest.raises(error, match=says):
            requests.scores(service, "ann", replace(ASKED, **change))  # type: ignore[arg-type]


def test_a_map_too_coarse_or_of_something_else_tells_no_scores() -> None:
    atlas = make_atlas()
    assert scores_from_atlas(atlas, ASKED) is not None
    for change in (
        {"count": 4},  # no block of four was surveyed
        {"count": LAYERS, "select": "shortgpt"},
        {"text": "novels"},
        {"select": "streamline,convention=last"},
        {"select": "taylor"},
    ):
        assert scores_from_atlas(atlas, replace(ASKED, **change)) is None  # type: ignore[arg-type]
    level = replace(atlas, blocks=[replace(block, cosine=0.5) for block in atlas.blocks])
    assert scores_from_atlas(level, ASKED) is None


def test_the_example_map_tells_the_scores_of_the_page_that_opens() -> None:
    example = Service(Settings(), FakeLab(), EXAMPLE).example_atlas
    assert example is not None
    for name in ("streamline", "shortgpt", "angular"):
        assert scores_from_atlas(example, RunConfig(drop=None, select=name)) is not None


def test_the_controls_say_what_is_asked() -> None:
    config = RunConfig(drop=None, select="shortgpt", count=3, revision=None, batch=2)
    values = [getattr(config, name) for name in scoring.SETTINGS if name != "pasted"]
    assert scoring.read([*values, ""]) == scores_config(config)
    assert scoring.read([*values, " Mine. "]).text == "paste:Mine."
    with pytest.raises(ConfigError, match="How many layers"):
        scoring.read(
            [
                None if name == "count" else value
                for name, value in zip(scoring.SETTINGS, [*values, ""], strict=True)
            ]
        )
    base = RunConfig(recover=(), prompt="kept")
    service = Service(Settings(), FakeLab())
    job = service.jobs.view(requests.scores(service, "ann", config))
    assert scoring.resumed(base, None) is base
    again = scoring.resumed(base, job)
    assert again is not None
    assert (again.prompt, again.select, again.drop) == ("kept", "shortgpt", None)
    assert same_scores(again, config)
