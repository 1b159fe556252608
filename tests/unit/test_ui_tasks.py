"""The Tasks tab: its job, what it shows, what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, GhostlabError
from ghostlab.lab.requests import EvaluateRequest
from ghostlab.plots import catalog
from ghostlab.plots.figures import tasks as figures
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import Accuracy
from ghostlab.settings import PUBLIC_LIMITS, Limits, Settings
from ghostlab.ui.page import Page
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs import tasks as tab
from tests.helpers.fakelab import FakeLab
from tests.helpers.figures import drawn, said
from tests.helpers.results import make_result
from tests.helpers.zeroshot import make_zero_shot

pytestmark = pytest.mark.unit

TASKS = ("arc_easy", "boolq", "copa")


@pytest.fixture
def asked() -> RunResult:
    return replace(make_result(), zero_shot=make_zero_shot(["original", "pruned", "ghost", "affine"], TASKS))


@pytest.fixture(autouse=True)
def harness(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests need none: the laboratory is made up."""
    monkeypatch.setattr(requests, "require_harness", lambda: None)


def test_bars_and_table_are_the_figures_of_the_tasks(asked: RunResult) -> None:
    found = asked.zero_shot
    assert found is not None
    figure = drawn("retained", asked)
    assert [trace.y[0] for trace in figure.data] == ["pruned", "ghost", "affine"]
    assert [trace.x[0] for trace in figure.data] == pytest.approx([0.5, 0.875, 0.875])
    kept = found.retained("pruned")
    bar = figure.data[0]
    assert bar.x[0] + bar.error_x.array[0] == pytest.approx(kept.high)
    assert bar.x[0] - bar.error_x.arrayminus[0] == pytest.approx(kept.low)
    head, first, second, *_ = figures.table(found)
    assert head == ["variant", "arc_easy (60)", "boolq (60)", "copa (60)", "mean"]
    assert first == ["original", "80.0 ± 5.0 / 80.0", "80.0 ± 5.0", "80.0 ± 5.0", "80.0 / 80.0"]
    assert second[1] == "40.0 ± 5.0* / 40.0"


def test_the_sentence_follows_from_the_answers(asked: RunResult) -> None:
    told = said("retained", asked)
    assert told.startswith("Over 3 tasks ghost retains 88 % [")
    assert "plain dropping 50 %; significantly worse on 3 of them than the original" in told
    assert told.endswith("Left out because their data cannot be reached: race.")
    few = make_zero_shot(["original", "pruned", "ghost"], TASKS[:1])
    assert "But 60 questions are too few to tell the variants apart." in said(
        "retained", replace(asked, zero_shot=few)
    )
    equal = make_zero_shot(["original", "pruned"], TASKS)
    for scores in (equal.acc, equal.acc_norm):
        scores["pruned"] = scores["original"]
    assert "But 180 questions cannot tell any variant from the original" in said(
        "retained", replace(asked, zero_shot=equal)
    )
    assert "But" not in told
    same = make_zero_shot(["original"], TASKS)
    alone = replace(asked, zero_shot=replace(same, left_out={}))
    assert said("retained", alone) == "original answers 80 % of the questions correctly, mean over tasks."
    assert said("retained", make_result()) == "No zero-shot tasks were asked yet."


def test_tasks_that_the_original_guesses_lead_neither_sentence_nor_bars(asked: RunResult) -> None:
    found = asked.zero_shot
    assert found is not None
    guess, luck = [1] * 16 + [0] * 44, [0] * 15 + [1] * 45
    for table in (found.acc, found.acc_norm):
        table["original"]["boolq"] = Accuracy(16 / 60, 0.06, guess)
        table["affine"]["boolq"] = Accuracy(45 / 60, 0.06, luck)
        table["affine"]["copa"] = Accuracy(40 / 60, 0.06, [1] * 40 + [0] * 20)
    told = said("retained", asked)
    assert told.startswith("Over the 2 tasks on which the original is above chance, ghost retains 88 % ["), (
        "affine would be the best with boolq"
    )
    assert (
        "boolq (27 %, chance 50 %) is not above chance for the original; with it ghost would retain" in told
    )
    bars = {trace.y[0]: trace.x[0] for trace in drawn("retained", asked).data}
    assert bars["ghost"] == pytest.approx(0.875)
    assert bars["affine"] == pytest.approx((7 / 8 + 40 / 48) / 2)
    nothing = replace(found, tasks=found.tasks[1:2])
    assert (
        "But boolq (27 %, chance 50 %) is not above chance for the original: these figures say nothing."
        in (said("retained", replace(asked, zero_shot=nothing)))
    )


def test_the_papers_splits_are_asked_of_the_hub_where_the_host_allows_it(tmp_path: Path) -> None:
    lab = FakeLab()
    service = Service(Settings(), lab, make_result().save(tmp_path))
    job = requests.tasks(service, "ann", "", ["race"], 5, True)
    assert list(service.jobs.follow(job))[-1].state == "done"
    other = requests.tasks(service, "ann", "", ["race"], 5, False)
    assert list(service.jobs.follow(other))[-1].state == "done"
    assert [request.hub for request in lab.of(EvaluateRequest)] == [True, False]
    closed = Service(Settings(limits=replace(Limits(), hub_models=False)), lab, make_result().save(tmp_path))
    with pytest.raises(ConfigError, match="reads no data from the hub"):
        requests.tasks(closed, "ann", "", ["race"], 5, True)
    for host, allowed in ((service, True), (closed, False)):
        with gr.Blocks() as demo:
            tab.build(Page(demo, host))
        (hub,) = (block for block in demo.blocks.values() if block.elem_id == "tasks-hub")
        assert hub.visible is allowed


def test_answers_stay_with_the_result(asked: RunResult, tmp_path: Path) -> None:
    assert RunResult.load(asked.save(tmp_path)).zero_shot == asked.zero_shot
    assert catalog.sections(asked)[-1].title == "Zero-shot tasks"
    alone = replace(asked, zero_shot=make_zero_shot(["original"], TASKS))
    assert catalog.sections(alone)[-1].panels[0].answers == alone.zero_shot, "a table, if nothing to draw"
    assert "Zero-shot tasks" not in [section.title for section in catalog.sections(make_result())]


def test_a_job_adds_the_answers_to_the_shown_result(tmp_path: Path) -> None:
    lab = FakeLab()
    service = Service(Settings(), lab, make_result().save(tmp_path / "example"))
    first = requests.run(service, "ann", RunConfig())
    list(service.jobs.follow(first))
    job = requests.tasks(service, "ann", first, ["arc_easy", "boolq"], 20.0, False)
    assert list(service.jobs.follow(job))[-1].state == "done"
    assert [(r.tasks, r.limit) for r in lab.of(EvaluateRequest)] == [(("arc_easy", "boolq"), 20)]
    after = service.result(job)
    assert after.runs is service.result(first).runs, "figures that did not change are not sent again"
    assert after.zero_shot is not None
    again = requests.tasks(service, "ann", "", ["shift-llm"], 5, False)
    assert list(service.jobs.follow(again))[-1].state == "done"
    assert lab.asked[-1] == make_result().config, "the example has no operators: it is run again first"
    assert len(lab.of(EvaluateRequest)[-1].tasks) == 7


def test_what_cannot_be_asked_is_refused_before_it_waits(tmp_path: Path) -> None:
    service = Service(Settings("public", limits=PUBLIC_LIMITS), FakeLab(), make_result().save(tmp_path))
    for names, limit, reason in (
        (["mmlu"], 10, "'mmlu' is not offered here"),
        ([], 10, "No task is given"),
        (["piqa"], None, "number of questions is empty"),
        (["piqa"], 0, "limit is 0"),
        (["ghosted-layers"], 50, "9 tasks of 50 questions are more than this server allows"),
    ):
        with pytest.raises(ConfigError, match=reason):
            requests.tasks(service, "ann", "", names, limit, False)
    with pytest.raises(GhostlabError, match="no longer on this server"):
        requests.tasks(service, "ann", "gone", ["piqa"], 10, False)


def test_the_tab_is_empty_until_asked(asked: RunResult) -> None:
    words, plot, legend, table, about = tab.render(make_result())
    assert (words, legend, about) == ("", "", "")
    assert not plot.visible
    assert not table.visible
    words, plot, legend, table, about = tab.render(asked)
    assert isinstance(table, gr.Dataframe)
    assert plot.visible
    assert table.visible
    assert "arc_easy, first 60 of the validation split (installed, chance 25 %)" in about
