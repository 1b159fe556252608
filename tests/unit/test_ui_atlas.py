"""The Atlas tab after the page: its job, what is drawn, what a click takes, what is saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pandas as pd
import pytest

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, ResultError
from ghostlab.plots.figures.atlas import FIRST
from ghostlab.results.atlas import Atlas, atlas_config
from ghostlab.settings import Settings
from ghostlab.ui.page import Page
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import EXAMPLE, Service
from ghostlab.ui.sidebar.controls import BY_HAND
from ghostlab.ui.tabs.atlas import AtlasTab, source
from tests.helpers.atlases import make_atlas
from tests.helpers.fakelab import FakeLab

pytestmark = pytest.mark.unit
CONFIG = RunConfig(sequences=8, seed=2, drop="3:4", prompt="plays no part")


@pytest.fixture
def service(tmp_path: Path) -> Service:
    make_atlas().save(tmp_path / "atlas.json")
    return Service(Settings(), FakeLab(), tmp_path)


@pytest.fixture
def tab(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[AtlasTab]:
    monkeypatch.setattr(gr, "Info", lambda *_, **__: None)
    with gr.Blocks() as demo:
        yield AtlasTab(Page(demo, service))
    demo.close()


def mapped(service: Service, lengths: str = "2-3") -> str:
    job_id = requests.atlas(service, "ann", CONFIG, lengths)
    assert list(service.jobs.follow(job_id))[-1].state == "done"
    return job_id


def test_an_atlas_is_a_job_that_is_no_run(service: Service) -> None:
    job_id = mapped(service)
    found = service.atlas(job_id)
    assert found.lengths == [2, 3]
    assert found.config == atlas_config(CONFIG) == RunConfig(sequences=8, seed=2)
    with pytest.raises(ResultError, match="no run"):
        service.result(job_id)
    run = requests.run(service, "ann", RunConfig())
    assert list(service.jobs.follow(run))[-1].state == "done"
    for other in (run, "gone"):
        with pytest.raises(ResultError, match="no longer on this server"):
            service.atlas(other)
    assert service.atlas("").lengths == make_atlas().lengths
    with pytest.raises(ConfigError, match="1-10"):
        requests.atlas(service, "ann", CONFIG, "some")


def test_a_page_opens_on_the_example_or_on_the_atlas_of_its_address(tab: AtlasTab) -> None:
    opened = tab.open(SimpleNamespace(query_params={}))  # type: ignore[arg-type]
    assert opened[tab.lengths] == gr.skip()
    assert opened[tab.source].startswith("**Example**, computed in advance")
    job_id = mapped(tab.service)
    opened = tab.open(SimpleNamespace(query_params={"atlas": job_id}))  # type: ignore[arg-type]
    assert opened == {tab.lengths: "2-3"}, "drawn once the id of the atlas is there"
    shown = tab.show(job_id, "Cosine")
    assert set(shown) == set(tab.places)
    assert shown[tab.source].startswith(
        "**Your atlas**: tiny, 8 × 256 tokens of wikipedia, seed 2; 21 blocks of 2 to 3"
    )
    assert shown[tab.words].startswith("### Cosine")
    assert shown[tab.map].data[0].hovertemplate.startswith("%{customdata}")
    assert "<p>ghost_sink: " in shown[tab.facts]
    assert [label for _, label in shown[tab.take].choices] == ["5:7", "5:8"]
    recoloured = tab.recolour(job_id, "Cosine")
    assert set(recoloured) == set(tab.map_places)
    assert recoloured[tab.words] == shown[tab.words]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("paste:A secret.", "pasted text"), ("upload:a.txt/secret", "a.txt"), ("org/secret", "org/secret")],
)
def test_a_text_is_named_without_what_is_private(text: str, shown: str) -> None:
    config = RunConfig(text=text)
    assert f"tokens of {shown}, seed" in source(replace(make_atlas(), config=config), False)


def test_a_block_of_the_map_becomes_the_one_to_drop(tab: AtlasTab) -> None:
    job_id = mapped(tab.service)
    assert tab.choose("5:7", job_id) == [BY_HAND, "5:7"]
    for label in ("5:6", "0:99", None):
        with pytest.raises(ConfigError, match="not in the atlas"):
            tab.choose(label, job_id)


def test_what_is_saved_is_what_the_command_writes(tab: AtlasTab, tmp_path: Path) -> None:
    job_id = mapped(tab.service)
    found = tab.service.atlas(job_id)
    made = Path(tab.export("json", job_id))
    assert made.name == "atlas.json"
    assert Atlas.load(made) == found
    assert made.read_bytes() == found.save(tmp_path / "a.json").read_bytes()
    frame: Any = pd.read_csv(tab.export("csv", job_id))
    assert frame["ghost"].tolist() == [block.ghost for block in found.blocks]


def test_without_an_example_the_tab_says_what_to_press(tmp_path: Path) -> None:
    service = Service(Settings(), FakeLab(), tmp_path / "none")
    assert service.example_atlas is None
    with gr.Blocks() as demo:
        tab = AtlasTab(Page(demo, service))
    update = tab.show("", FIRST)
    assert set(update) == set(tab.places)
    assert update[tab.words] == "Press **Compute atlas**."


def test_the_example_is_of_the_default_settings() -> None:
    found = Atlas.load(EXAMPLE / "atlas.json")
    assert found.config == atlas_config(RunConfig())
    assert found.lengths == list(range(1, 11))
    assert len(found.blocks) == sum(found.layers - n + 1 for n in found.lengths)
    assert found == found.rounded(5)
    assert (EXAMPLE / "atlas.json").stat().st_size < 300_000
