"""Probes as jobs, and what the tabs show of them."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError
from ghostlab.jobs.record import JobView
from ghostlab.lab.requests import ProbeRequest
from ghostlab.plots.catalog import STATE
from ghostlab.results.operator import Excitement
from ghostlab.results.probe import Alteration
from ghostlab.results.records import Metric
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.ui.page import Page
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs import operator, panels, tables
from ghostlab.ui.tabs import spectrum as ranks
from ghostlab.ui.tabs.operator import swept_parts
from ghostlab.ui.tabs.spectrum import at_once, swept_ranks
from tests.helpers.fakelab import FakeLab
from tests.helpers.results import CHANNELS, make_probe, make_result

pytestmark = pytest.mark.unit


@pytest.fixture
def lab() -> FakeLab:
    return FakeLab()


@pytest.fixture
def service(lab: FakeLab, tmp_path: Path) -> Service:
    return Service(Settings(), lab, make_result().save(tmp_path / "example"))


def finish(service: Service, job_id: str) -> JobView[RunResult]:
    return list(service.jobs.follow(job_id))[-1]


def test_a_probe_is_added_to_the_result_it_was_made_of(service: Service, lab: FakeLab) -> None:
    first = requests.run(service, "ann", RunConfig())
    finish(service, first)
    asked = [Alteration(part="symmetric", rank=CHANNELS)]
    second = requests.probe(service, "ann", first, "affine", asked)
    assert finish(service, second).state == "done"
    (request,) = lab.of(ProbeRequest)
    assert request.label == "affine"
    assert request.alterations == (Alteration(part="symmetric"),), "the full rank is no rank"
    after = service.result(second)
    assert after.runs is service.result(first).runs, "figures that did not change are not sent again"
    third = requests.probe(service, "ann", second, "affine", [*asked, Alteration(alpha=0.5)])
    finish(service, third)
    assert [p.alteration.alpha for p in service.result(third).probes] == [1.0, 0.5], "each once"


def test_the_example_is_run_again_before_it_is_probed(service: Service, lab: FakeLab) -> None:
    job_id = requests.probe(service, "ann", "", None, [Alteration(alpha=0.5)])
    assert finish(service, job_id).state == "done"
    assert lab.asked == [make_result().config]
    assert lab.of(ProbeRequest)[0].label == "ghost"
    assert len(service.result(job_id).probes) == 1
    assert service.result(job_id).generations, "the texts of the run stay"


def test_what_cannot_be_probed_is_refused_before_anything_is_queued(service: Service) -> None:
    for label, how, says in (
        ("drop", Alteration(), "drop has no linear map to alter. Choose ghost or affine"),
        ("ghost", Alteration(rank=CHANNELS + 1), "is not possible"),
        ("ghost", Alteration(alpha=99), "Strength 99"),
    ):
        with pytest.raises(ConfigError, match=says):
            requests.probe(service, "ann", "", label, [how])


def test_sweeps_go_up_towards_the_full_rank_and_never_ask_for_what_is_known() -> None:
    ranks = [8, 16, 32, 64, 128, 256, 360, 432, 504]
    assert [how.rank for how in swept_ranks(576)] == [*ranks, *ranks]
    assert [
        [how.rank for how in swept_ranks(width)][: len(swept_ranks(width)) // 2] for width in (1, 8, 16)
    ] == [
        [],
        [5, 6, 7],
        [8, 10, 12, 14],
    ]
    assert Alteration() not in swept_parts()
    assert {how.part for how in swept_parts()} == {"whole", "symmetric", "antisymmetric"}


def test_tabs_show_the_latest_probe_first_and_its_text() -> None:
    result = make_result()
    window = result.runs[1].window_nll
    made = [
        make_probe(Alteration(alpha=0.5), 99.0, window),
        make_probe(Alteration(rank=8), 80.0, window, "affine"),
    ]
    probed = replace(result, probes=[*made, replace(made[0], prompt="another", alteration=Alteration())])
    frame = tables.probes(probed.probes).data
    assert list(frame["Put in"]) == [
        "whole map",
        "whole map, rank 8 (truncated SVD)",
        "whole map, strength 0.5",
    ]
    assert frame["Added"].dtype.kind == "i"
    texts = operator.texts_of(probed)
    assert texts.count("<article") == 4, "original, pruned, and the two that continue this prompt"
    assert "so it says" in texts
    assert operator.texts_of(result) == ""
    for given, run in ((result, result.runs[0]), (replace(result, probes=made), result.runs[1])):
        row = panels.recovery_with_map(given)
        assert row is not None
        assert row.run == run
    assert panels.recovery_with_map(replace(result, runs=[], probes=[])) is None
    lost = replace(result.runs[0], label="lost", perplexity=Metric(math.nan, math.nan, math.nan))
    assert [
        row.variant for row in panels.recoveries_with_map(replace(result, runs=[lost, *result.runs]))
    ] == [
        "ghost",
        "affine",
        "lost",
    ]


def test_the_slider_begins_at_the_suggested_rank_and_stays_at_one_that_was_measured_alone() -> None:
    result = make_result()
    window = result.runs[0].window_nll
    swept = [
        replace(make_probe(Alteration(rank=rank, factor="reduced_rank"), 90.0, nll), generation=None)
        for rank, nll in ((8, [one + 0.5 for one in window]), (32, window), (48, window))
    ]
    after = replace(result, probes=swept)
    alone = replace(result, probes=[*swept, make_probe(Alteration(rank=5), 120.0, window)])
    assert ranks._initial(result)[2].value == CHANNELS // 8
    assert ranks._initial(after)[2].value == ranks._initial(alone)[2].value == 32
    slider, words = ranks._after_probe(after, "ghost", "reduced_rank", 40)
    assert slider == 32
    assert words.endswith("Measured: perplexity 90.0, KL 1.80.")
    slider, words = ranks._after_probe(alone, "ghost", "truncated_svd", 5)
    assert slider == gr.skip()
    assert words.endswith("Measured: perplexity 120, KL 2.40.")


def test_a_rank_is_measured_at_once_only_where_that_takes_seconds(service: Service, lab: FakeLab) -> None:
    assert not at_once(service, "", ""), "the example has no operators"
    assert not at_once(service, "gone", "")
    entered, leave = threading.Event(), threading.Event()
    first = requests.run(service, "ann", RunConfig())
    finish(service, first)
    assert at_once(service, first, first)
    lab.before = lambda _: (entered.set(), leave.wait(10))  # type: ignore[assignment, return-value]
    second = requests.run(service, "ann", RunConfig(seed=1))
    assert entered.wait(10)
    assert not at_once(service, first, second)
    leave.set()
    finish(service, second)


def test_tabs_without_a_map_say_so(service: Service) -> None:
    bare = replace(make_result(), runs=[replace(make_result().runs[0], operators=[])])
    with gr.Blocks() as demo:
        page = Page(demo, service)
        page.controls["rank"] = gr.Number(label="Rank")
        tried, taken = operator.switches(page, gr.Radio(label="Recovery")), ranks.build(page)
    assert "has a map to alter" in tried.words.render(bare)[0]
    assert "has a map to take a rank of" in taken.words.render(bare)[0]
    assert taken.figures.render(bare)[-1] == taken.words.render(bare)[0]


def test_figures_of_a_result_that_is_gone_say_so_in_a_sentence(service: Service) -> None:
    """Whatever is chosen in a tab after the store made room for newer results."""
    with gr.Blocks() as demo:
        page = Page(demo, service)
        page.controls["rank"] = gr.Number(label="Rank")
        panels.build(page, "boundary", STATE, by_block=True)
        ranks.build(page)
    handlers = [(event.fn.__name__, event.fn) for event in demo.fns.values() if event.fn]
    asked = {"choose": ("ghost", "20:25"), "redraw": ("ghost",)}
    asked |= dict.fromkeys(("say", "follow"), ("ghost", "reduced_rank", 8))
    assert {name for name, _ in handlers} >= set(asked)
    for name, handler in handlers:
        if name in asked:
            with pytest.raises(gr.Error, match="no longer on this server"):
                handler("gone", *asked[name])


def test_tokens_are_quoted_so_that_nothing_of_them_is_markdown() -> None:
    assert operator._quote(Excitement("a `b", " *c*\n", 1.0, True)) == "`a 'b`**` *c*⏎`** (massive)"
    assert operator._quote(Excitement("", "", 1.0, False)) == "**`␣`**"
