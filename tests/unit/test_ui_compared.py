"""The Compare tab, links and files, without a browser: what is listed, compared, renamed, handed in and out."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pandas as pd
import pytest

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, GhostlabError, ResultError
from ghostlab.results.records import Metric
from ghostlab.settings import Limits, Settings
from ghostlab.ui.page import Page, Update
from ghostlab.ui.service import files
from ghostlab.ui.service.files import Outbox
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs import downloads, tables
from ghostlab.ui.tabs.compare import MOST, Compare, entries
from tests.helpers.fakelab import FakeLab
from tests.helpers.figures import said
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit
EXAMPLE = {"id": "", "name": "Example", "query": ""}


@pytest.fixture
def tab(tmp_path: Path) -> Compare:
    limits = Limits(kept_results=2)
    service = Service(Settings(limits=limits), FakeLab(), make_result().save(tmp_path / "example"))
    with gr.Blocks() as demo:
        return Compare(Page(demo, service))


def shown(tab: Compare, stored: Any) -> Update:
    return tab.show(stored, None, None)


def chosen(tab: Compare, update: Update) -> tuple[Any, Any]:
    """The two rows that are compared after an update."""
    values = (update[tab.first], update[tab.second])
    first, second = (value.value if isinstance(value, gr.Dropdown) else value for value in values)
    return first, second


def given(tab: Compare, **changes: Any) -> str:
    return tab.service.jobs.put("file", replace(make_result(seed=1), **changes))


def test_a_run_enters_the_list_once_and_its_rows_are_numbers(tab: Compare) -> None:
    job_id = given(tab)
    stored = tab.add([EXAMPLE], job_id)
    assert tab.add(stored, job_id) == stored
    assert [run["name"] for run in stored] == ["Example", "Run 1"]
    assert tab.add(stored, "") == stored, "the example is there already"
    page = shown(tab, stored)
    assert list(page[tab.table].data["No."]) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert page[tab.table].data["Perplexity"].dtype.kind == "f"
    assert not page[tab.gone].visible
    assert chosen(tab, page) == ("Example: ghost", "Example: affine")
    assert page[tab.run].value == "Run 1"
    assert page[tab.verdict].startswith("ghost needs")
    other = tab.compare(stored, "Example: ghost", "Run 1: ghost")
    assert "not measured on the same windows" in other[tab.verdict]


def test_figures_stand_with_their_interval_and_the_model_where_there_are_several(tab: Compare) -> None:
    frame = shown(tab, [EXAMPLE])[tab.table]
    assert list(frame.data.columns)[-1] == "Added", "one model goes without saying"
    run = make_result().runs[0].perplexity
    assert f">{run.value:.1f} ({run.low:.1f} to {run.high:.1f})<" in frame.to_html()
    model = replace(make_result().model, name="another")
    table = shown(tab, tab.add([EXAMPLE], given(tab, model=model)))[tab.table]
    assert list(table.data["Model"])[-1] == "another"
    assert len(table.data.columns) == len(tables.RUN_WIDTHS)


def test_compare_begins_with_the_best_and_the_runner_up_that_overview_names(tab: Compare) -> None:
    """Recoveries, even where none helps; what is not finite is left out."""
    pruned = make_result().baseline.pruned.bits_per_byte.value
    ghost, affine = make_result().runs
    worse = [
        replace(run, bits_per_byte=Metric(pruned + by, 0.0, 9.0)) for run, by in ((ghost, 2), (affine, 1))
    ]
    lost = replace(ghost, label="lost", bits_per_byte=Metric(float("nan"), 0.0, 0.0))
    job_id = given(tab, runs=[lost, *worse])
    stored = [{"id": job_id, "name": "Run", "query": ""}]
    assert chosen(tab, shown(tab, stored)) == ("Run: affine", "Run: ghost")
    words = said("perplexity", tab.service.result(job_id))
    assert "affine" in words
    assert "next comes ghost" in words


def test_a_click_replaces_the_row_that_was_chosen_earlier(tab: Compare) -> None:
    pair = ("Example: ghost", "Example: affine")
    clicked = SimpleNamespace(row_value=[1, "Example"])
    taken = tab.take([EXAMPLE], *pair, clicked)  # type: ignore[arg-type]
    assert chosen(tab, taken) == ("Example: affine", "Example: pruned")
    assert set(taken) == {tab.first, tab.second, *tab.comparison}
    for row in ([3], [9], ["x"], [], None):
        same = tab.take([EXAMPLE], *pair, SimpleNamespace(row_value=row))  # type: ignore[arg-type]
        assert same == {tab.first: gr.skip()}
    update = tab.compare([EXAMPLE], *pair)
    verdict, table = update[tab.verdict], update[tab.pair]
    assert verdict.startswith(("ghost needs", "affine needs")), "one run: no need to name it"
    assert list(table.data.columns[:3]) == ["Figure", "ghost", "affine"]
    assert set(update) == set(tab.comparison), "every panel"
    assert None not in update.values()
    shown = table.to_html()
    assert re.search(
        r"Gap closed</td>(\s*<td[^>]*>\d\d %</td>){2}\s*<td[^>]*>[\d.]+ points \([\d.]+ to [\d.]+\)<", shown
    )
    for second in (None, "Example: ghost"):
        nothing = tab.compare([EXAMPLE], "Example: ghost", second)
        assert nothing.pop(tab.verdict) == "Choose two different rows."
        assert set(nothing.values()) == {None}
    assert "no run to compare" in tab.compare([], None, None)[tab.verdict]


def test_runs_are_renamed_and_removed_under_names_that_stay_apart(tab: Compare) -> None:
    stored = tab.add([EXAMPLE], given(tab))
    renamed, field = tab.rename(stored, "Run 1", "  longer   text ")
    assert (renamed[1]["name"], field) == ("longer text", "")
    assert "longer text: ghost" in tab.rows(renamed)
    for name, new, problem in (
        ("Run 1", "Example", "already a run named 'Example'"),
        ("Run 1", "  ", "new name is empty"),
        (None, "x", "No run is chosen"),
    ):
        with pytest.raises(ConfigError, match=problem):
            tab.rename(stored, name, new)
    assert tab.remove(stored, "Example") == stored[1:]


def test_a_name_is_no_markup_and_the_last_run_stays(tab: Compare) -> None:
    renamed, _ = tab.rename([EXAMPLE], "Example", "a <b>*x*</b> " * 9)
    name = renamed[0]["name"]
    assert len(name) <= 24
    assert not set("<>*") & set(name)
    with pytest.raises(ConfigError, match="only run"):
        tab.remove(renamed, name)


def test_an_evicted_run_is_said_to_be_gone_and_how_to_have_it_again(tab: Compare) -> None:
    config = replace(RunConfig(), drop="3:5")
    stored = tab.add([EXAMPLE], given(tab, config=config))
    for _ in range(2):
        given(tab)
    words = shown(tab, stored)[tab.gone]
    assert words.visible
    assert "made room for newer ones" in words.value
    assert "?model=embedded&text=wikipedia&drop=3%3A5&recover=ghost" in words.value
    assert list(tab.rows(stored)) == [
        "Example: pruned",
        "Example: ghost",
        "Example: affine",
        "Example: original",
    ]
    stored[1]["id"], stored[1]["query"] = "never", "sequences=<script>"
    assert shown(tab, stored)[tab.gone].value == "**Run 1**: That result is no longer on this server."


@pytest.mark.parametrize("stored", [None, "x", [1], [{"id": 3, "name": "", "query": ""}], [{"id": "a"}], {}])
def test_what_a_browser_sends_instead_of_a_list_is_left_out(stored: Any) -> None:
    assert entries(stored) == []
    many = [{"id": str(n), "name": "n" * 99, "query": ""} for n in range(99)]
    assert len(entries(many)) == MOST
    assert entries(many)[-1].name == "n" * 24


def test_export_holds_every_row_and_its_configuration(tab: Compare) -> None:
    frame = pd.read_csv(tab.export("csv", [EXAMPLE]))
    assert frame["perplexity"][1] == pytest.approx(make_result().runs[0].perplexity.value)
    items = json.loads(Path(tab.export("json", [EXAMPLE])).read_text(encoding="utf-8"))
    assert [item["recovery"] for item in items] == ["pruned", "ghost", "affine", "original"]
    assert RunConfig.from_dict(items[0]["config"]) == make_result().config
    with pytest.raises(ResultError, match="no run to export"):
        tab.export("csv", [])


def test_files_lie_in_folders_of_unguessable_names_and_are_swept() -> None:
    box = Outbox()

    def write(folder: Path) -> Path:
        (folder / "a.txt").write_text("x", encoding="utf-8")
        return folder / "a.txt"

    old, new = box.make(write), box.make(write)
    assert old != new
    assert len(old.parent.name) >= 16
    assert old.parent.stat().st_mode & 0o077 == 0
    os.utime(old.parent, (time.time() - files.KEPT - 1,) * 2)
    box.make(write)
    assert not old.exists()
    assert new.exists()


def _file(change: Callable[[dict[str, Any]], object]) -> bytes:
    values = make_result().to_dict()
    change(values)
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not readable JSON"),
        (b"\xff\xfe\x00", "not readable JSON"),
        (b"[" * 200_000, "not readable JSON"),
        (b"[1]", "no JSON object"),
        (b'{"name": "package"}', "neither a result nor settings"),
        (b'{"sequences": "many"}', "'Sequences' is 'many'"),
        (b"x" * 3_000_000, "3.0 MB; this server reads up to 2 MB"),
        (_file(lambda values: values.update(schema=99)), "schema 99"),
        (_file(lambda values: values.pop("runs")), "damaged at runs"),
    ],
)
def test_a_foreign_or_damaged_file_is_refused_in_one_sentence(data: bytes, problem: str) -> None:
    with pytest.raises(GhostlabError, match=problem):
        files.read(data, 2_000_000)


def test_a_configuration_and_a_result_are_told_apart_and_read_back(tab: Compare) -> None:
    config = RunConfig(drop="3:5", sequences=9)
    assert files.read(json.dumps(config.to_dict()).encode(), 10_000) == config
    found, job_id = tab.service.open_file(_file(lambda _: None))
    assert found == make_result().config
    assert tab.service.result(job_id) == make_result()
    assert tab.service.open_file(b'{"drop": "3:5"}') == (RunConfig(drop="3:5"), "")


def test_a_link_names_what_it_is_about_and_rebuilds_it_unless_it_is_too_long() -> None:
    for config in (RunConfig(), RunConfig(drop=None, select="shortgpt"), RunConfig(recover=(), seed=3)):
        query = downloads.link_query(config)
        assert query.startswith("model=embedded&text=wikipedia&drop=")
        assert RunConfig.from_query(query) == config
    assert downloads.link_query(RunConfig(text="paste:" + "word " * 600)) == ""


@pytest.mark.parametrize(
    ("headers", "root", "expected"),
    [
        ({}, "", "http://127.0.0.1:7860"),
        ({"x-forwarded-host": "lab.example", "x-forwarded-proto": "https"}, "", "https://lab.example"),
        (
            {"x-forwarded-host": "a.example, b.internal", "x-forwarded-proto": "https,http"},
            "",
            "https://a.example",
        ),
        ({"x-forwarded-host": "lab.example"}, "/ghost/", "http://lab.example/ghost"),
        ({}, "https://lab.example/ghost", "https://lab.example/ghost"),
    ],
)
def test_links_are_those_of_the_visitors_browser(
    headers: dict[str, str], root: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_ROOT_PATH", root)
    url = SimpleNamespace(netloc="127.0.0.1:7860", scheme="http", path="/gradio_api/queue/join")
    assert downloads.address(SimpleNamespace(headers=headers, url=url)) == expected  # type: ignore[arg-type]


def test_what_differs_is_a_short_table_and_both_texts_stand_side_by_side(tab: Compare) -> None:
    config = replace(make_result().config, sequences=9, prompt="<b>" + "long " * 99)
    stored = tab.add([EXAMPLE], given(tab, config=config))
    update = tab.compare(stored, "Example: ghost", "Run 1: affine")
    settings, words, texts = (update[part] for part in (tab.settings, tab.texts_words, tab.texts))
    assert settings.count("<tr>") == 3, "head, sequences, prompt"
    assert "<td>9</td>" in settings
    assert "&lt;b&gt;" in settings
    assert len(settings) < 900
    assert "Example: ghost" in words
    assert "Run 1: affine" in words
    assert texts.count("<article") == 2
    alike = tab.compare(stored, "Example: ghost", "Example: affine")[tab.settings]
    assert "with the same settings" in alike
