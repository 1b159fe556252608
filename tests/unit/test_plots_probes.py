"""Figures and sentences on probes, directions and single tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from ghostlab.plots import catalog
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures.probes import rank_expected
from ghostlab.plots.figures.spectrum import rank_at
from ghostlab.results.operator import RankCurve
from ghostlab.results.probe import Alteration
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import significantly_greater
from tests.helpers.figures import of, with_map
from tests.helpers.results import CHANNELS, make_probe, make_result

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def probed() -> RunResult:
    """Ranks 8 and 16 are worse than the full one on every window, 32 on half of them."""
    result = make_result()
    full = np.asarray(result.runs[0].window_nll)
    even = np.where(np.arange(len(full)) % 2, 0.1, -0.1)
    made = [
        make_probe(Alteration(rank=8), 130.0, full + 0.5),
        make_probe(Alteration(rank=32), 73.0, full + even),
        make_probe(Alteration(rank=16), 90.0, full + 0.2 + even / 10),
        make_probe(Alteration(rank=32, factor="reduced_rank"), 80.0, full + 0.1),
        make_probe(Alteration(part="symmetric"), 900.0, full + 2),
        make_probe(Alteration(part="antisymmetric"), 950.0, full + 2),
        make_probe(Alteration(alpha=0.5), 100.0, full + 0.3),
        make_probe(Alteration(rank=64), 70.0, full, label="affine"),
    ]
    return replace(result, probes=made)


def test_the_suggested_rank_is_the_lowest_within_the_noise(probed: RunResult) -> None:
    ghost, affine = probed.runs
    best = probed.rank_sweep(ghost, "truncated_svd").suggested
    assert best is not None
    assert best.alteration.rank == 32
    assert probed.rank_sweep(ghost, "reduced_rank").suggested is None
    assert probed.rank_sweep(affine, "truncated_svd").ranks == [64]
    said = FIGURES["ranks"].sentence(of(probed, "ghost"))
    assert (
        "By truncated SVD, rank 32 is the lowest measured one that is not significantly worse than the full"
        in said
    )
    assert "perplexity 73.0 against" in said
    assert f"and {CHANNELS**2 - 2 * CHANNELS * 32:,} fewer parameters" in said
    assert (
        "By reduced rank, rank 32, the only one measured, is significantly worse than the full one (paired 95 %): perp"
        in said
    )
    assert "No rank has been measured yet" in FIGURES["ranks"].sentence(
        of(replace(probed, probes=[]), "ghost")
    )


def test_a_rank_between_measured_ones_is_expected_between_their_figures(probed: RunResult) -> None:
    ghost = probed.runs[0]
    for rank, said in (
        (16, "Measured: perplexity 90.0, KL 1.80."),
        (23, "Between the ranks measured beside it: perplexity about 80.7, KL about"),
        (CHANNELS, "As fitted, perplexity is"),
    ):
        assert rank_expected(probed, ghost, rank, "truncated_svd").startswith(said)
    between = probed.rank_sweep(ghost, "truncated_svd").forecast(23)
    assert between is not None
    part = np.log(23 / 16) / np.log(32 / 16)
    assert between[0] == pytest.approx(90.0 ** (1 - part) * 73.0**part)
    assert between[1] == pytest.approx((1 - part) * 1.8 + part * 1.46)
    for result, rank in ((probed, 7), (make_result(), 16)):
        assert rank_expected(result, ghost, rank, "truncated_svd") == ""


def test_ranks_near_one_another_are_not_labelled(probed: RunResult) -> None:
    window = probed.runs[0].window_nll
    near = [make_probe(Alteration(rank=CHANNELS * part // 8), 75.0, window) for part in (5, 6, 7)]
    figure = FIGURES["ranks"].draw(of(replace(probed, probes=[*probed.probes, *near]), "ghost"))
    assert len(figure.data[0].x) == 7
    assert list(figure.layout.xaxis.tickvals) == [8, 16, 32, CHANNELS]


def test_a_difference_is_sure_only_when_its_interval_is_clear_of_zero() -> None:
    base = np.zeros(16)
    assert significantly_greater(base + 0.01, base)
    assert not significantly_greater(base, base)
    assert not significantly_greater(base - 1, base)
    assert not significantly_greater(np.array([3.0] + [-0.1] * 15), base), "one window alone decides nothing"


def test_measured_ranks_end_at_the_full_one_and_count_what_is_saved(probed: RunResult) -> None:
    ghost = probed.runs[0]
    figure, divergence = FIGURES["ranks"].figures(of(probed, "ghost"))
    plain, best, _ = figure.data
    assert list(plain.x) == [8, 16, 32, CHANNELS]
    assert list(plain.y) == [130.0, 90.0, 73.0, ghost.perplexity.value]
    assert list(best.x) == [32, CHANNELS]
    assert plain.y[0] + plain.error_y.array[0] == pytest.approx(143.0)
    assert list(figure.layout.xaxis2.tickvals) == list(figure.layout.xaxis.tickvals) == [8, 16, 32, CHANNELS]
    assert figure.layout.xaxis2.ticktext == ("7.7 k", "6.1 k", "3.1 k", "0")
    assert list(divergence.data[0].y)[-1] == ghost.kl.value
    assert "No rank" in FIGURES["ranks"].figures(of(make_result(), "ghost"))[0].layout.annotations[0].text


def test_the_report_has_what_was_measured(probed: RunResult) -> None:
    (section,) = [one for one in catalog.sections(probed) if one.title == "Altered maps in the model"]
    titles = [panel.title for panel in section.panels]
    assert titles == ["Parts and strengths of ghost", "Ranks of ghost, measured", "Ranks of affine, measured"]
    assert len(catalog.sections(probed)) == len(catalog.sections(make_result())) + 1


def test_strengths_start_at_plain_dropping_and_know_the_fitted_map(probed: RunResult) -> None:
    ghost = probed.runs[0]
    figure = FIGURES["strengths"].draw(of(probed, "ghost"))
    lines: dict[str, go.Scatter] = {trace.name: trace for trace in figure.data}
    pruned = probed.baseline.pruned.perplexity.value
    assert list(lines["whole map"].x) == [0, 0.5, 1]
    assert list(lines["whole map"].y) == [pruned, 100.0, ghost.perplexity.value]
    assert list(lines["S only"].y) == [pruned, 900.0]
    assert [trace.name for trace in FIGURES["strengths"].draw(of(make_result(), "ghost")).data] == [
        "whole map"
    ]


def test_sentences_on_strengths_name_the_latest_and_the_best(probed: RunResult) -> None:
    said = FIGURES["strengths"].sentence(of(probed, "ghost"))
    assert "whole map, strength 0.5 has 100; the best so far: whole map, rank 32 (truncated SVD)" in said
    assert "Choose what to put into" in FIGURES["strengths"].sentence(of(make_result(), "ghost"))
    assert "S alone has perplexity 900 and A alone 950, both worse than plain dropping" in said
    assert "costs 8 points of explained gap" in said
    assert "S alone" not in FIGURES["strengths"].sentence(of(probed, "affine"))


def test_a_rank_is_told_from_the_curve_between_its_points_too() -> None:
    report = replace(
        make_result().runs[0].operators[0],
        truncated_svd=RankCurve([0, 10, 20, CHANNELS], [0.0, 0.2, 0.4, 0.6], [0.0, 0.3, 0.5, 0.7]),
    )
    assert rank_at(report, 15, "truncated_svd") == (
        "Rank 15 by truncated SVD explains about 30 % of the gap (full rank 60 %; all held-out tokens) with 2,880 parameters, "
        "6,336 fewer than the full rank."
    )
    assert "rank 20" in rank_at(report, 20, "truncated_svd").lower()
    assert "as many as the full rank" in rank_at(report, 90, "truncated_svd")
    assert "not recorded" in rank_at(report, 15, "reduced_rank")


def test_directions_name_channels_and_tokens() -> None:
    report = make_result().runs[0].operators[0]
    (bars,) = FIGURES["directions"].draw(with_map(report)).data
    assert list(bars.x) == [0.7, 0.2]
    assert bars.customdata[0] == (
        "writes to 41 (60 %), 7 (10 %)<br>reads 7 (80 %), 3 (5.0 %)<br>moves most: ' light*house*', 'The'"
    )
    said = FIGURES["directions"].sentence(with_map(report))
    assert said.startswith("70 % of what the map does to calibration tokens is along one direction")
    assert "the next holds 20 %. Of the 2 held-out tokens that it moves farthest, 1 massive." in said
    assert "not recorded" in FIGURES["directions"].sentence(with_map(replace(report, directions=[])))


def test_the_plane_joins_each_recovered_state_to_its_target() -> None:
    result = make_result()
    report = result.runs[0].operators[0]
    ordinary, massive = FIGURES["state_plane"].figures(with_map(report))
    lines, before, after, recovered = ordinary.data
    assert report.plane is not None
    assert len(before.x) == len(report.plane.ordinary.before) == 60
    assert (lines.x[0], lines.x[1], lines.x[2]) == (recovered.x[0], after.x[0], None)
    assert len(massive.data[1].x) == 5
    assert FIGURES["state_plane"].sentence(with_map(report)) == (
        "The plane holds 43 % of the variance of ordinary tokens; in it their recovered states miss the "
        "original's by 50 % of what dropping does, those of massive tokens by 50 %."
    )
    none = replace(report.plane, massive=replace(report.plane.massive, before=[], after=[], recovered=[]))
    bare = replace(report, plane=none)
    assert (
        "No token of the sample"
        in FIGURES["state_plane"].figures(with_map(bare))[1].layout.annotations[0].text
    )
    assert "massive" not in FIGURES["state_plane"].sentence(with_map(bare))
