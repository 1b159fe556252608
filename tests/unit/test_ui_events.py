"""What a page is sent while it follows a job: enough, and nothing twice."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr
import pytest
from gradio.helpers import special_args

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, ResultError
from ghostlab.results.records import SelectionInfo
from ghostlab.settings import Settings
from ghostlab.ui import address
from ghostlab.ui import events as events_module
from ghostlab.ui.app import assemble
from ghostlab.ui.events import Events
from ghostlab.ui.page import Outputs, Tab, user_errors
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service
from ghostlab.ui.sidebar import controls
from ghostlab.ui.sidebar.picker import BY_HAND
from ghostlab.ui.tabs import overview
from ghostlab.ui.tabs.downloads import without_operators
from tests.helpers.fakelab import FakeLab
from tests.helpers.results import make_result, with_selection

pytestmark = pytest.mark.unit


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Events:
    monkeypatch.setattr(events_module.gr, "Warning", lambda text, **_: told.append(text))
    told: list[str] = []
    service = Service(Settings(), FakeLab(), make_result().save(tmp_path / "example"))
    with gr.Blocks() as demo:
        made = assemble(demo, service)
    made.told = told  # type: ignore[attr-defined]
    return made


def by_id(page: Events, elem_id: str) -> Any:
    return next(block for block in page.page.demo.blocks.values() if block.elem_id == elem_id)


def visitor() -> Any:
    return SimpleNamespace(session_hash="ann")


def newcomer(query: str = "") -> Any:
    """Who opens a page: each time it is another session."""
    pairs = parse_qsl(query)
    return SimpleNamespace(session_hash="new", query_params=SimpleNamespace(multi_items=lambda: pairs))


def pressed(page: Events) -> str:
    values = [control.value for control in page.page.controls.values()]  # type: ignore[attr-defined]
    job_id: str = page.run(visitor(), "", *values)[page.page.job]
    return job_id


def followed(page: Events, job_id: str, shown: str) -> list[dict[Any, Any]]:
    async def watch() -> list[dict[Any, Any]]:
        return [update async for update in page.watch(visitor(), job_id, shown, [])]

    return asyncio.run(watch())[1:]


def sent(updates: list[dict[Any, Any]], component: Any) -> list[Any]:
    return [update[component] for update in updates if component in update]


def test_a_run_is_shown_and_drawn_once_and_its_figures_never_travel_with_the_stream(page: Events) -> None:
    job_id = pressed(page)
    updates = followed(page, job_id, "")
    assert set(sent(updates, page.page.shown)) == {job_id}
    assert sent(updates, page.page.drawn) == [job_id]
    plots = {*page.tab.figures.components, *page.tab.words.components}
    assert not any(plots & set(update) for update in updates)
    assert updates[-1][page.page.run].interactive
    assert not updates[-1][by_id(page, "stop")].interactive
    beside = page.page.progress_lines[1:]
    assert {place.elem_id for place in beside} >= {"score-progress", "atlas-progress", "generate-progress"}
    for place in beside:
        assert "Done in" in updates[-1][place]
        assert 'role="status"' not in updates[-1][place], "announced once"
    assert set(page.figures(job_id)) | set(page.words(job_id)) == plots


def test_why_there_are_no_operators_to_save_is_said() -> None:
    result = make_result()
    assert "came without its matrices" in without_operators(replace(result, operators={}))
    assert "fitted nothing" in without_operators(replace(result, operators={}, runs=[]))
    assert without_operators(replace(result, operators={"20:25": object()})) == ""


def test_generation_redraws_nothing(page: Events) -> None:
    job_id = pressed(page)
    followed(page, job_id, "")
    written = requests.generate(page.service, "ann", job_id, "Again", "raw", 3, 0.0, 1.0)
    updates = followed(page, written, job_id)
    assert sent(updates, page.page.drawn) == []
    assert sent(updates, page.page.shown)[-1] == written
    assert " again" in updates[-1][by_id(page, "columns")]


def test_a_page_that_opens_shows_the_example_or_the_run_of_its_address(page: Events) -> None:
    plain = page.open(newcomer(), [])
    assert plain[page.page.job] == ""
    assert "Example run" in plain[page.page.source]
    assert page.page.controls["model"] not in plain, "what the visitor typed before a reload is left alone"
    job_id = pressed(page)
    followed(page, job_id, "")
    again = page.open(newcomer(f"run={job_id}"), [])
    assert again[page.page.job] == job_id
    assert page.page.source not in again, "no flash of the example before the run's own result"
    bare = requests.run(page.service, "ann", RunConfig(recover=()))
    followed(page, bare, "")
    opened = page.open(newcomer(f"run={bare}"), [])
    assert all(opened[page.page.controls[name]].value == [] for name in controls.BOXES)
    asked = page.open(newcomer("sequences=9"), [])
    assert asked[page.page.controls["sequences"]] == 9


def test_a_block_map_is_watched_like_a_run_and_found_again_beside_it(page: Events) -> None:
    run = pressed(page)
    followed(page, run, "")
    job_id = requests.atlas(page.service, "ann", RunConfig(), "2-3")
    started = page.page.started(job_id)
    assert not started[by_id(page, "atlas-start")].interactive
    assert started[by_id(page, "atlas-stop")].interactive
    updates = followed(page, job_id, run)
    assert sent(updates, page.page.found["atlas"]) == [job_id]
    assert sent(updates, page.page.shown) == []
    assert updates[-1][by_id(page, "atlas-start")].interactive
    again = page.open(newcomer(f"run={run}&atlas={job_id}"), [])
    assert (again[page.page.job], again[page.page.found["atlas"]]) == (run, job_id)
    alone = page.open(newcomer(f"atlas={job_id}"), [])
    assert alone[page.page.job] == job_id
    assert "Example run" in alone[page.page.source]


def test_a_page_that_opens_while_a_map_is_made_shows_the_run_and_follows_the_map(page: Events) -> None:
    run = pressed(page)
    followed(page, run, "")
    entered, leave = threading.Event(), threading.Event()
    page.service.lab.before = lambda _: (entered.set(), leave.wait(10))  # type: ignore[attr-defined]
    job_id = requests.atlas(page.service, "ann", RunConfig(), "2")
    assert entered.wait(10)
    opened = page.open(newcomer(f"run={run}&atlas={job_id}"), [])
    leave.set()
    assert opened[page.page.job] == job_id
    assert opened[page.page.shown] == opened[page.page.drawn] == run
    assert page.page.found["atlas"] not in opened


def test_scores_are_watched_like_a_run_and_found_again_with_their_settings(page: Events) -> None:
    run = pressed(page)
    followed(page, run, "")
    asked = RunConfig(drop=None, select="taylor", count=4)
    job_id = requests.scores(page.service, "ann", asked)
    updates = followed(page, job_id, run)
    assert sent(updates, page.page.found["scores"]) == [job_id]
    assert sent(updates, page.page.shown) == sent(updates, page.page.found["atlas"]) == []
    assert updates[-1][by_id(page, "score")].interactive
    assert "Done in" in updates[-1][by_id(page, "score-progress")]
    again = page.open(newcomer(f"run={run}&scores={job_id}"), [])
    assert (again[page.page.job], again[page.page.found["scores"]]) == (run, job_id)
    select, count = (page.page.controls[name] for name in ("select", "count"))
    assert (again[select], again[count]) == ("taylor", 4)


def test_a_file_that_is_opened_ends_what_is_said_of_an_earlier_job_but_not_of_one_under_way(
    page: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module.gr, "Info", lambda text, **_: None)
    go_on, shell = threading.Event(), page.page

    def fail(_: Any) -> None:
        go_on.wait(5)
        raise ConfigError("It went wrong.")

    page.service.lab.before = fail
    job_id = pressed(page)
    file = json.dumps(make_result(seed=1).to_dict()).encode()
    during = page.accept(visitor(), file, job_id)
    assert shell.job not in during, "Stop and the status line still belong to the run"
    assert shell.status not in during
    assert during[shell.shown] == during[shell.drawn]
    assert "From a file" in during[shell.source]
    go_on.set()
    assert "Failed: It went wrong." in followed(page, job_id, "")[-1][shell.status]
    assert page.told == ["It went wrong."]
    after = page.accept(visitor(), file, job_id)
    assert (after[shell.job], after[shell.status]) == (after[shell.shown], "")
    settings = page.accept(visitor(), b'{"drop": "3:5"}', job_id)
    assert not {shell.job, shell.status, shell.shown} & set(settings)
    assert page.told == ["It went wrong."], "an old error is not told again"

    page.service.lab.before = lambda _: None
    begun = page.run(visitor(), "", *[control.value for control in page.page.controls.values()])[shell.status]
    assert "Failed" not in begun
    assert "went wrong" not in begun


def tabs_of(components: Iterable[Any]) -> set[str]:
    """The tab that components lie in; none where they lie in several."""
    found = set()
    for component in components:
        block = component
        while block is not None and not isinstance(block, gr.Tab):
            block = block.parent
        found |= {block.label} if block is not None else set()
    return found if len(found) == 1 else set()


def test_after_eviction_every_handler_of_every_tab_tells_a_sentence_or_shows_nothing(page: Events) -> None:
    whole = page.page
    ids = [whole.shown, whole.drawn, whole.found["atlas"]]
    sentences: dict[str, str] = {}
    for event in whole.demo.fns.values():
        if event.fn is None or not set(ids) & set(event.inputs):
            continue
        values = ["gone" if part in ids else getattr(part, "value", None) for part in event.inputs]
        clicked = gr.EventData(None, {"value": "3:8", "index": 0, "row_value": ["1"]})
        arguments, *_ = special_args(event.fn, values, newcomer(), clicked)
        try:
            found = event.fn(*arguments)
            if inspect.isasyncgen(found):
                asyncio.run(anext(found))
        except gr.Error as error:
            sentences |= dict.fromkeys(tabs_of(event.inputs) | tabs_of(event.outputs), str(error))
            sentences[str(event.name)] = str(error)
    assert not [sentence for sentence in sentences.values() if "Internal error" in sentence]
    own = {"Overview", "Boundary error", "Operator", "Spectrum & rank", "Generate", "Tasks", "Atlas"}
    assert own <= set(sentences), "of Compare, what is gone is said on the tab itself"


def test_a_file_is_not_drawn_when_it_is_opened_and_one_that_cannot_be_drawn_is_told(
    page: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = make_result().to_dict()
    values["runs"][0]["operators"][0]["truncated_svd"]["ranks"].clear()
    opened = page.accept(visitor(), json.dumps(values).encode(), "")
    shown = opened[page.page.shown]
    assert not set(page.tab.figures.components) & set(opened)
    with pytest.raises(ResultError, match="its figures do not fit together"):
        page.figures(shown)
    run = pressed(page)
    followed(page, run, "")
    monkeypatch.setattr(page, "tab", Tab(Outputs([], lambda _: [1 / 0])))
    with pytest.raises(ZeroDivisionError):
        page.figures(run)


def test_what_a_link_says_wrong_is_told_and_the_example_is_shown(page: Events) -> None:
    for query, sentence in (
        ("run=gone", "That run is no longer on this server"),
        ("atlas=gone", "That atlas is no longer on this server"),
        ("sequences=many", "'Sequences' is 'many'"),
    ):
        opened = page.open(newcomer(query), [])
        assert "Example run" in opened[page.page.source]
        assert sentence in page.told[-1]  # type: ignore[attr-defined]


def test_the_address_of_a_run_repeats_it_where_the_run_is_gone(page: Events) -> None:
    job_id = requests.run(page.service, "ann", RunConfig(drop="3:5", sequences=9))
    followed(page, job_id, "")
    query = address.query_of(page.service, job_id)
    assert page.open(newcomer(query), [])[page.page.job] == job_id
    elsewhere = page.open(newcomer(query.replace(job_id, "gone")), [])
    assert elsewhere[page.page.job] == ""
    assert "settings are in the sidebar" in page.told[-1]  # type: ignore[attr-defined]
    assert elsewhere[page.page.controls["drop"]] == "3:5"
    assert elsewhere[page.page.controls["sequences"]] == 9
    assert address.query_of(page.service, "gone") == ""


def test_errors_of_ours_are_shown_and_others_only_by_an_id(page: Events) -> None:
    with pytest.raises(gr.Error, match="'New tokens' is empty"), user_errors():
        requests.generate(page.service, "ann", "", "Hello", "auto", None, 0.0, 1.0)
    with pytest.raises(gr.Error, match="Internal error"), user_errors():
        raise KeyError("/secret/path")


def test_a_candidate_of_the_scores_becomes_the_blocks_to_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(gr, "Info", lambda text, **_: told.append(text))
    result = with_selection(make_result())
    assert overview.pick(result, "3:8", None) == [BY_HAND, "3:8"]
    assert told == ["Blocks to drop: 3:8. Press Run to measure them."]
    for label in ("40:45", None):
        with pytest.raises(ConfigError, match="not among those shown"):
            overview.pick(result, label, None)


def test_a_single_layer_is_taken_into_the_cut_and_out_of_it() -> None:
    labels = [f"{layer}:{layer + 1}" for layer in range(6)]
    info = SelectionInfo("shortgpt", "influence", labels, [1.0] * 6, "2:4")
    assert overview.blocks_after(info, "5:6", None) == "2:4,5:6"
    assert overview.blocks_after(info, "4:5", "2:4,5:6") == "2:6"
    assert overview.blocks_after(info, "2:3", None) == "3:4"
    assert overview.blocks_after(info, "5:6", "half-typed") == "2:4,5:6"
    assert overview.blocks_after(info, "5:6", "5:6") == "5:6", "an empty cut cannot run"


def test_the_operator_tab_begins_with_a_recovery_that_has_a_map(page: Events) -> None:
    result = make_result(("refit_layer", "ghost"))
    bare = replace(result.runs[0], operators=[])
    result = replace(result, runs=[bare, result.runs[1]])
    outputs = page.tab.figures
    shown = dict(zip([c.elem_id for c in outputs.components], outputs.render(result), strict=True))
    assert shown["operator-recovery"].value == "ghost"
