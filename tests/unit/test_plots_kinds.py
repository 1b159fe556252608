"""Losses by kind of token: drawn and told from the numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ghostlab.plots import catalog
from ghostlab.results.records import Metric
from ghostlab.results.run import RunResult
from tests.helpers.figures import drawn, said
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def result() -> RunResult:
    return make_result()


def test_bars_are_losses_with_intervals_the_right_way_round(result: RunResult) -> None:
    figure = drawn("by_kind", result)
    assert [trace.name for trace in figure.data] == ["pruned", "ghost", "affine"]
    classes = result.runs[0].agreement.classes
    bars = figure.data[1]
    assert list(bars.x) == [-kind.shift.value for kind in classes]
    for number, kind in enumerate(classes):
        top = bars.x[number] + bars.error_x.array[number]
        assert top == pytest.approx(-kind.shift.low), "the worst case is the upper end of a loss"
    assert bars.y[1] == "digit<br>(90)"


def test_the_sentence_names_kinds_and_says_what_may_be_chance(result: RunResult) -> None:
    assert said("by_kind", result) == (
        "Dropping costs most on digits (5.22 nats per token) and least on beginnings of words (3.26); "
        "ghost still loses most on digits (1.81) and has the original's favourite among its five likeliest for "
        "69 % of all tokens. Left out, with fewer than 20 tokens: the first token of a window, line breaks."
    )
    classes = [replace(kind, shift=Metric(-0.1, -0.3, 0.1)) for kind in result.runs[0].agreement.classes]
    unsure = replace(result.runs[0], agreement=replace(result.runs[0].agreement, classes=classes))
    assert "(0.100, not significant)" in said("by_kind", replace(result, runs=[unsure]))
    assert said("by_kind", replace(result, runs=[])).endswith(
        "beginnings of words (3.26). Left out, with fewer than 20 tokens: the first token of a window, line breaks."
    )


def test_results_of_earlier_versions_have_no_kinds(result: RunResult) -> None:
    values = result.to_dict()
    del values["baseline"]["pruned"]["agreement"]
    for run in values["runs"]:
        del run["agreement"]
    old = RunResult.from_dict(values)
    assert said("by_kind", old) == "Kinds of tokens were not recorded in this run."
    assert not drawn("by_kind", old).data
    titles = [panel.title for panel in catalog.sections(old)[0].panels]
    assert "By kind of token" not in titles
    assert len(catalog.sections(result)[0].panels) == len(titles) + 1
