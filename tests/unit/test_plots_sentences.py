"""Numbers as people read them, and sentences that say what this result says."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from ghostlab.plots import formats
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures import pairs
from ghostlab.plots.formats import percent
from ghostlab.results.compare import best_first
from ghostlab.results.compare import sides as compared
from ghostlab.results.operator import RankCurve
from ghostlab.results.records import Metric
from tests.helpers.figures import said, with_map
from tests.helpers.results import make_result, with_selection

pytestmark = pytest.mark.unit
TOLD = [name for name in pairs.NAMES if name not in ("paired_windows", "by_kind", "retained")]
"""What can be said of each side by itself, whatever the other lacks."""


@pytest.fixture(scope="module")
def result():
    """Numbers of the README: 25.2 -> 656, ghost 78.1."""
    made = make_result()
    original = replace(made.baseline.original, perplexity=Metric(25.2, 23.0, 27.5))
    pruned = replace(made.baseline.pruned, perplexity=Metric(656.0, 600.0, 720.0))
    ghost = replace(made.runs[0], perplexity=Metric(78.1, 70.0, 87.0), gap_closed=0.656)
    return replace(made, baseline=replace(made.baseline, original=original, pruned=pruned), runs=[ghost])


def told_of(name, runs):
    return said(name, replace(make_result(), runs=runs))


def told_of_map(name, report):
    return FIGURES[name].sentence(with_map(report))


def between(name, one, other):
    return FIGURES[name].comparison(pairs.sides(one, other))


def ending_at(result, value, low, high, gap=0.5):
    first = result.runs[0]
    scale = first.bits_per_byte.value / math.log(first.perplexity.value)  # bits per byte and nat per token
    bits = Metric(*(scale * math.log(end) for end in (value, low, high)))
    run = replace(
        first, label="affine", perplexity=Metric(value, low, high), bits_per_byte=bits, gap_closed=gap
    )
    return replace(result, runs=[*result.runs, run])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (25.234, "25.2"),
        (656.4, "656"),
        (1234.0, "1,234"),
        (0.01234, "0.0123"),
        (1.2e-4, "0.00012"),
        (-2.0e-4, "−0.0002"),
        (1.2e-7, "1.2e−7"),
        (-3.5, "−3.50"),
        (0.0, "0"),
        (4.2e9, "4.2e9"),
        (math.nan, "—"),
        (None, "—"),
    ],
)
def test_number(value, text):
    assert formats.number(value) == text


def test_counts_and_shares():
    assert formats.count(331776) == "331,776"
    numbers = {0: "0", 999: "999", 1728: "1.7 k", 9951: "10 k", 295_488: "295 k", 8_396_800: "8.4 M"}
    assert {value: formats.short(value) for value in numbers} == numbers
    assert formats.count(3_200_000) == "3.2 M"
    assert formats.count(1_400_000_000) == "1.4 B"
    assert formats.percent(0.656) == "66 %"
    assert formats.percent(0.0132) == "1.3 %"
    assert formats.percent(-0.12) == "−12 %"
    assert formats.percent(0.9999) == "99.9 %"
    assert formats.percent(1.0) == "100 %"
    assert formats.percent(-0.0001) == "0 %"
    assert formats.percent(math.inf) == "—"
    assert formats.change(1.34) == "by 34 %"
    assert formats.change(26.03) == "26-fold"
    assert formats.points(0.01) == "1 point"
    assert formats.points(0.124) == "12 points"
    assert formats.points(-0.0001) == "0 points"
    assert formats.points(-0.034) == "−3.4 points"
    assert formats.count(-1152) == "−1,152"
    assert formats.count(math.nan) == formats.points(math.nan) == "—"
    assert formats.short(-19_000) == "−19 k"
    assert formats.plural(1, "block") == "1 block"


def test_perplexity_tells_cost_and_recovery(result):
    assert said("perplexity", result) == (
        "Dropping 5 of 30 layers raises perplexity 26-fold, from 25.2 to 656; ghost brings it back to 78.1, "
        "closing 66 % of the gap in log-likelihood."
    )


def test_perplexity_names_the_runner_up_and_whether_it_is_significantly_worse(result):
    def beside(shifts):
        ghost, affine = ending_at(result, 80.0, 72.0, 90.0).runs
        window_nll = [nll + shift for nll, shift in zip(ghost.window_nll, shifts, strict=False)]
        return said("perplexity", replace(result, runs=[ghost, replace(affine, window_nll=window_nll)]))

    assert beside([0.1, -0.09] * 8).endswith(
        "; next comes affine with 80.0, not significantly worse (paired 95 %)."
    )
    # their own intervals overlap, but it loses on every window
    assert beside([0.02, 0.03] * 8).endswith(
        "; next comes affine with 80.0, significantly worse (paired 95 %)."
    )
    assert beside([0.02] * 3).endswith("; next comes affine with 80.0."), "windows that cannot be paired"
    better = said("perplexity", ending_at(result, 50.0, 45.0, 55.0))
    assert "; affine brings it back to 50.0, closing 50 %" in better


def test_perplexity_when_no_recovery_helps(result):
    worse = replace(result.runs[0], perplexity=Metric(900.0, 800.0, 1000.0), gap_closed=-0.1)
    assert said("perplexity", replace(result, runs=[worse])).endswith(
        "; ghost does not help: it ends at 900."
    )
    both = ending_at(replace(result, runs=[worse]), 950.0, 900.0, 990.0)
    assert said("perplexity", both).endswith("; no recovery helps, and the best, ghost, ends at 900.")


def test_perplexity_without_a_figure_to_tell(result):
    broken = replace(result.runs[0], perplexity=Metric(math.nan, math.nan, math.nan))
    assert said("perplexity", replace(result, runs=[])).endswith("; no recovery was fitted.")
    assert "no recovery gives a finite perplexity" in said("perplexity", replace(result, runs=[broken]))


def test_perplexity_when_dropping_costs_little_or_helps(result):
    def after(value, low, high):
        original = result.baseline.original
        scored = [nll + shift for nll, shift in zip(original.window_nll, [0.3, -0.2] * 8, strict=True)]
        pruned = replace(result.baseline.pruned, perplexity=Metric(value, low, high), window_nll=scored)
        return replace(result, baseline=replace(result.baseline, pruned=pruned), runs=[])

    assert said("perplexity", after(26.0, 24.0, 28.0)).startswith(
        "Dropping 5 of 30 layers raises perplexity by 3.2 %, from 25.2 to 26.0, not significantly (paired 95 %)"
    )
    assert "lowers perplexity by 21 %, from 25.2 to 20.0, not significantly" in said(
        "perplexity", after(20.0, 18.0, 22.0)
    )


def test_gap_closed_orders_recoveries_and_admits_a_loss(result):
    assert said("gap_closed", ending_at(result, 80.0, 72.0, 90.0, gap=0.64)) == (
        "ghost closes 66 % of the gap in log-likelihood, affine 64 %."
    )
    lost = replace(result, runs=[replace(result.runs[0], gap_closed=-0.12)])
    assert said("gap_closed", lost).startswith("Nothing is regained: ghost closes −12 %")


def test_windows_count_the_wins():
    result = make_result()
    base = result.baseline.pruned.window_nll
    shifted = [value + (0.5 if index < 3 else -1.0) for index, value in enumerate(base)]
    text = said("window_differences", replace(result, runs=[replace(result.runs[0], window_nll=shifted)]))
    assert text == (
        "ghost needs 0.719 nats per token fewer than the pruned model on average "
        "(95 % interval 0.438 to 1.00) and is better on 13 of 16 windows."
    )


def test_a_difference_is_real_chance_or_cannot_be_told():
    result = make_result()
    _, ghost, affine, _ = compared(result)
    nll = ghost.run.window_nll

    def against(shifts):
        window_nll = [value + shift for value, shift in zip(nll, shifts, strict=True)]
        return replace(affine, run=replace(affine.run, window_nll=window_nll))

    real = pairs.verdict(against([0.1, 0.2] * 8), ghost)
    assert real.startswith("ghost needs 0.150 nats per token fewer than affine: its perplexity is ")
    assert "; significant on this text: the 95 % interval over 16 paired windows, 0." in real
    assert real.endswith(" nats, excludes 0.")
    for ends in (
        (ghost, against([0.1, -0.1] * 7 + [0.1, 0.1])),
        (against([0.1, -0.1] * 7 + [0.1, 0.1]), ghost),
    ):
        assert "; not significant: the 95 % interval over 16 paired windows goes from " in pairs.verdict(
            *ends
        )
    assert pairs.verdict(ghost, ghost) == "ghost and ghost score the same on every window."
    other = compared(make_result(seed=3))[1]
    text = pairs.verdict(ghost, other)
    assert "not measured on the same windows" in text
    assert "but not the same ones" in text


def test_sentences_on_two_sides_speak_of_both():
    """With the figures of each, in their order; what plain dropping lacks is said by definition."""
    pruned, ghost, affine, original = compared(make_result())
    for one, other in ((ghost, affine), (affine, ghost), (pruned, ghost), (ghost, original)):
        for told in (*(between(name, one, other) for name in TOLD), pairs.say_generated(one, other)):
            assert one.name in told, told
            assert other.name in told, told
    shares = [percent(side.run.boundary.explained) for side in (ghost, affine)]
    assert (
        f"On all held-out tokens: ghost {shares[0]} (55 % on ordinary tokens); affine {shares[1]} ("
        in between("explained", ghost, affine)
    )
    assert "pruned all of it at the first position" in between("position_error", pruned, ghost)
    assert between("singular_values", pruned, ghost).startswith(
        "Greatest singular value: pruned has no fitted map; "
    )
    wins = np.less(ghost.run.boundary.channel_error, affine.run.boundary.channel_error).sum()
    assert f"ghost leaves less in {wins} of 96 channels" in between("channel_error", ghost, affine)
    curve = RankCurve([1, 2, 4, 8], [0.1, 0.5, 0.68, 0.7], [0.1, 0.5, 0.7, 0.8])
    operator = replace(ghost.run.operators[0], truncated_svd=curve)
    steep = replace(ghost, run=replace(ghost.run, operators=[operator]))
    assert "ghost 4 of 8 (68 % of the gap explained); affine" in between("rank_curve", steep, affine)
    assert between("perplexity", ghost, original).endswith(", as the original.")
    better = Metric(0.9 * original.run.perplexity.value, 0.0, 99.0)
    beyond = replace(ghost, run=replace(ghost.run, perplexity=better))
    assert "10 % below the original's" in between("perplexity", beyond, affine)
    elsewhere = replace(compared(make_result(seed=2))[1], name="other")
    assert re.search(
        r"ghost [\d.]+, [\d.]+-fold the original's [\d.]+; other ", between("perplexity", ghost, elsewhere)
    )


def test_the_best_is_the_same_in_every_sentence():
    """Fewest bits per byte, wherever it is asked; what is not finite is never the best."""
    result = make_result()
    first, second = result.runs
    lost = replace(first, label="lost", bits_per_byte=Metric(math.nan, math.nan, math.nan))
    for runs in ([lost, first, second], [second, lost, first]):
        assert [run.label for run in best_first(runs, lambda run: run)] == ["ghost", "affine"]
        shown = replace(result, runs=runs)
        assert "; ghost brings it back to" in said("perplexity", shown)
        assert "; ghost leaves" in said("by_position", shown)
        assert said("window_differences", shown).startswith("ghost needs")
        assert "; ghost still loses most" in said("by_kind", shown)


def test_windows_spread_from_easy_to_hard():
    text = said("window_distribution", make_result())
    assert text.startswith("The original's perplexity goes from ")
    assert "most on window " in text
    runner_up = said("window_differences", make_result())
    assert re.search(
        r"it beats affine on \d+, by [\d.]+ nats on average \((not )?significant, paired 95 %\)", runner_up
    )


def test_boundary_sentences_compare_with_calibration_and_ordinary_tokens():
    run = make_result().runs[0]
    report = replace(
        run.boundary, explained=0.62, explained_ordinary=0.55, explained_train=0.7, relative_error=0.2
    )
    runs = [replace(run, boundary=replace(report, relative_error_ordinary=0.3))]
    assert told_of("explained", runs) == (
        "ghost explains 62 % of the gap on held-out tokens (55 % on ordinary ones), and 8 points more on the "
        "tokens it was fitted on."
    )
    assert "off by 20 % of its size, by 30 % on ordinary tokens" in told_of("relative_error", runs)
    worse = [replace(run, boundary=replace(report, explained=-0.3, explained_train=None))]
    assert told_of("explained", worse) == (
        "No recovery comes closer than plain dropping; ghost explains −30 %."
    )


def test_channel_and_position_sentences_tell_what_is_left_of_the_gap():
    run = make_result().runs[0]
    report = replace(run.boundary, channel_error=[0.2, 0.4, 1.5], position_error=[0.9, 0.3, 0.4, 0.2])
    runs = [replace(run, boundary=report)]
    assert told_of("channel_error", runs) == (
        "ghost leaves 40 % of the gap in the median channel and 150 % in the worst, channel 2; "
        "1 channel would be closer if merely dropped."
    )
    assert told_of("position_error", runs) == (
        "ghost leaves 90 % of the gap at the first position and 30 % at the median of the rest."
    )


def test_the_largest_tile_keeps_its_sign_and_names_its_channels(result):
    report = result.runs[0].operators[0]
    tiles = [[0.001] * 40 for _ in range(40)]
    tiles[10][10] = -0.011
    told = told_of_map(
        "heat_map",
        replace(report, tile=9, symmetric_map=tiles, antisymmetric_map=[[0.0] * 40] * 40, singular_values=[]),
    )
    assert told.endswith(
        "the largest is −0.0110, in S from channels 90–98 to 90–98, beyond the colour scale, which ends at ±0.00100."
    )


def test_another_recovery_that_leaves_far_less_at_the_first_position_is_named(result):
    ghost, affine = ending_at(result, 80.0, 72.0, 90.0).runs
    ghost = replace(ghost, boundary=replace(ghost.boundary, explained=0.7, position_error=[0.15, 0.3, 0.3]))

    def beside(first):
        other = replace(affine.boundary, explained=0.6, position_error=[first, 0.3, 0.3])
        return told_of("position_error", [ghost, replace(affine, boundary=other)])

    assert beside(0.02).endswith("at the median of the rest; affine leaves least at the first, 2.0 %.")
    assert beside(0.14).endswith("at the median of the rest.")
    assert beside(math.nan).endswith("at the median of the rest.")


def test_symmetry_cost_in_points():
    run = make_result().runs[0]

    def told(explained, symmetric):
        split = replace(run.operators[0].split, explained=explained, explained_symmetric=symmetric)
        return told_of("symmetry_cost", [replace(run, operators=[replace(run.operators[0], split=split)])])

    for weight, apart, tokens in (
        ("none", False, "all held-out tokens"),
        ("relative", True, "held-out tokens after the first, each relative to its size"),
    ):
        one = replace(run.operators[0], weight=weight, first_apart=apart)
        assert f"of the gap explained ({tokens})" in told_of("symmetry_cost", [replace(run, operators=[one])])
    assert "leaving the symmetric set is worth 8 points of explained gap: 62 % against 54 %" in told(
        0.62, 0.54
    )
    assert "costs next to nothing" in told(0.62, 0.619)
    assert "symmetric operator does better than ghost" in told(0.5, 0.6)
    assert "No recovery" in told(math.nan, 0.5)


def test_energy_split_warns_when_the_parts_cancel():
    report = make_result().runs[0].operators[0]
    split = replace(
        report.split,
        frobenius={"symmetric": 0.37, "antisymmetric": 0.63},
        activation={"symmetric": 22.0, "antisymmetric": 21.0},
    )
    text = told_of_map("energy_split", replace(report, split=split))
    assert text.startswith(
        "63 % of the map's weight energy is antisymmetric; on calibration tokens S and A together hold 43 "
    )
    assert "cancel" in text


def test_eigenvalues_count_growth_and_turning():
    report = make_result().runs[0].operators[0]
    turning = replace(report, eigenvalues_real=[0.0, 0.0, 1.5, 0.5], eigenvalues_imag=[0.9, -0.9, 0.0, 0.0])
    assert told_of_map("eigenvalues", turning) == (
        "1 of 4 eigenvalues of W lies outside the unit circle (largest modulus 1.50); "
        "50 % are complex, turning by up to 90°."
    )
    real = replace(report, eigenvalues_real=[0.5, 0.9], eigenvalues_imag=[0.0, 0.0])
    assert "all are real" in told_of_map("eigenvalues", real)


def test_rank_curve_tells_the_least_sufficient_rank_and_overfitting():
    run = make_result().runs[0]
    curve = RankCurve([0, 8, 32, 96], [0.0, 0.5, 0.60, 0.55], [0.0, 0.5, 0.7, 0.8])
    runs = [replace(run, operators=[replace(run.operators[0], truncated_svd=curve)])]
    assert told_of("rank_curve", runs) == (
        "Rank 32 of ghost (6,144 parameters) explains 60 % of the gap (all held-out tokens); "
        "the full rank, 96, explains 55 %, less than rank 32 with 60 %."
    )


@pytest.mark.parametrize(
    ("reduced", "says"),
    [
        ([0.0, 0.58, 0.55], "Reduced rank does better than truncated SVD of ghost by up to 8 points: "
         "58 % against 50 % at rank 8."),
        ([0.0, 0.45, 0.55], "Truncated SVD does better than reduced rank of ghost by up to 5 points: "
         "50 % against 45 % at rank 8."),
        ([0.0, 0.501, 0.55], "Reduced rank and truncated SVD of ghost do equally well at every rank."),
    ],
)  # fmt: skip
def test_rank_curve_tells_which_factorisation_is_better(reduced, says):
    run = make_result().runs[0]
    plain, best = (RankCurve([0, 8, 96], values, []) for values in ([0.0, 0.5, 0.55], reduced))
    report = replace(run.operators[0], truncated_svd=plain, reduced_rank=best)
    assert told_of("rank_curve", [replace(run, operators=[report])]).endswith(f". {says}")


def test_spectrum_counts_directions():
    run = make_result().runs[0]
    report = replace(
        run.operators[0], cumulative_energy=[0.6, 0.8, 0.95, 1.0], singular_values=[8.0, 2.0, 1.0]
    )
    runs = [replace(run, operators=[report])]
    assert (
        told_of("cumulative_energy", runs)
        == "1 of 4 directions holds half of the energy of ghost, 3 hold 90 %."
    )
    assert "8.00 (4.00 times the median one)" in told_of("singular_values", runs)


def test_selection_names_the_rival(result):
    assert said("scores", with_selection(result)) == (
        "streamline drops 20:25 with a score of 0.0200; the next candidate has 0.0210."
    )
    assert said("scores", result).startswith("The blocks were named by hand")


def test_no_sentence_fails_on_nothing(result):
    bare = replace(result.runs[0], operators=[], window_nll=[], position_nll=[], gap_closed=math.nan)
    for runs in ([], [bare]):
        partial = replace(result, runs=runs)
        told = [
            said(name, partial)
            for name in ("gap_closed", "by_position", "window_differences", "window_distribution")
        ]
        told += [
            told_of(name, runs)
            for name in ("symmetry_cost", "singular_values", "cumulative_energy", "rank_curve")
        ]
        assert all(text.endswith(".") for text in told)
        assert not any("nan" in text for text in told)
