"""Comparing two recoveries: paired over windows, exactly antisymmetric, silent where nothing can be said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ghostlab.errors import ResultError
from ghostlab.results.compare import compare, differences, likelihood, same_windows, sides
from ghostlab.results.statistics import difference, paired
from ghostlab.ui.tabs.tables import run_frame
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


def series(seed: int, windows: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    hard = rng.normal(4.0, 1.0, windows)
    return hard + rng.normal(0.05, 0.1, windows), hard + rng.normal(0.0, 0.1, windows)


def test_the_paired_interval_agrees_with_a_bootstrap_written_otherwise() -> None:
    one, other = series(0)
    shifts, rng = one - other, np.random.default_rng(99)
    means = [rng.choice(shifts, len(shifts), replace=True).mean() for _ in range(20_000)]
    low, high = np.quantile(means, [0.025, 0.975])
    found = difference(one, other)
    width = high - low
    assert found.value == pytest.approx(shifts.mean(), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05 * width)
    apart = paired(lambda a: a, [one]).high - paired(lambda a: a, [one]).low
    assert width < apart / 3, "pairing takes out what makes a window hard for both"


@pytest.mark.parametrize("seed", range(5))
def test_exchanging_the_sides_negates_everything_exactly(seed: int) -> None:
    one, other = series(seed)
    forth, back = difference(one, other), difference(other, one)
    assert (forth.value, forth.low, forth.high) == (-back.value, -back.high, -back.low)
    assert difference(one, one).low == difference(one, one).high == 0.0


def test_every_figure_of_two_sides_is_exchanged_exactly() -> None:
    result = make_result()
    pruned, ghost, affine, original = sides(result)
    assert [side.name for side in sides(result)] == ["pruned", "ghost", "affine", "original"]
    for forth, back in zip(differences(ghost, affine), differences(affine, ghost), strict=True):
        assert (forth.one, forth.other) == (back.other, back.one)
        for ours, theirs in ((forth.difference, back.difference), (forth.low, back.high)):
            assert ours == (None if theirs is None else -theirs)
    rows = {row.figure: row for row in differences(ghost, pruned)}
    assert rows["Gap closed"].difference == pytest.approx(result.runs[0].gap_closed)
    shares = rows["Gap closed"]
    assert shares.low is not None
    assert shares.low < result.runs[0].gap_closed < shares.high
    nats = rows["Nats per token"]
    found = likelihood(ghost, pruned)
    assert found is not None
    assert (nats.difference, nats.low, nats.high) == pytest.approx((found.value, found.low, found.high))
    assert rows["Bits per byte"].low is None, "its windows are not kept"
    for name, kept in (("KL to the original", "window_kl"), ("Top-5 agreement", "window_top5")):
        ours, theirs = (getattr(side.run.agreement, kept) for side in (ghost, pruned))
        interval = difference(ours, theirs)
        assert (rows[name].low, rows[name].high) == (interval.low, interval.high)
    assert rows["Explained (fitted on)"].difference is None
    assert rows["Parameters added"].difference == result.runs[0].parameters_added

    whole = {row.figure: row for row in differences(ghost, original)}
    found = difference(ghost.run.window_nll, result.baseline.original.window_nll)
    nats = whole["Nats per token"]
    assert (nats.difference, nats.low, nats.high) == pytest.approx((found.value, found.low, found.high))
    assert whole["Gap closed"].other == 1.0
    kl = difference(ghost.run.agreement.window_kl, [0.0] * len(result.baseline.original.window_nll))
    assert whole["KL to the original"].low == pytest.approx(kl.low)
    assert whole["Layers dropped"].other == whole["Parameters dropped"].other == 0


def test_only_the_same_model_on_the_same_windows_is_paired() -> None:
    one = make_result()
    rounded = [nll + 0.01 for nll in one.baseline.original.window_nll]
    other = make_result(seed=3)
    assert same_windows(one, one)
    assert same_windows(one, _original(one, rounded)), "bfloat16 and float32"
    assert not same_windows(one, other), "the same text by name and length, other windows"
    assert not same_windows(one, _original(one, rounded[:-1]))
    assert not same_windows(one, replace(one, model=replace(one.model, name="other")))
    unkept = _original(one, [])
    assert not same_windows(unkept, unkept)
    assert "original" not in [side.name for side in sides(unkept)], "nothing can be paired with it"
    rows = differences(sides(one)[1], sides(other)[1])
    assert all(row.low is None for row in rows)
    assert rows[0].difference == one.runs[0].perplexity.value - other.runs[0].perplexity.value


def _original(result, window_nll):
    original = replace(result.baseline.original, window_nll=window_nll)
    return replace(result, baseline=replace(result.baseline, original=original))


def test_a_result_compares_by_label_and_names_those_it_has() -> None:
    result = make_result()
    rows = compare(result, make_result(blocks=2), "ghost", "pruned")
    assert {row.figure: row.difference for row in rows}["Layers dropped"] == -2
    with pytest.raises(
        ResultError, match=r"This run has no recovery 'magic'\. Choose from: pruned, ghost, affine, original"
    ):
        compare(result, result, "magic", "ghost")


def test_the_table_holds_numbers_that_sort_as_numbers() -> None:
    result = make_result()
    frame = run_frame([("first", side) for side in sides(result)])
    assert list(frame["no"]) == [1, 2, 3, 4]
    assert list(frame.sort_values("perplexity")["recovery"]) == ["original", "ghost", "affine", "pruned"]
    assert all(frame[name].dtype.kind in "fi" for name in frame.columns[5:12])
    assert frame["gap_closed"][1] == result.runs[0].gap_closed


def test_the_weight_of_a_result_counts_shared_parts_once() -> None:
    class Tensor:
        nbytes = 4096

    result = replace(make_result(), operators={"ghost/0.M": Tensor()})
    again = replace(result, generations=[])
    both = {**result.weight(), **again.weight()}
    assert 4096 in both.values()
    assert len(both) == 2
    assert sum(both.values()) > 4096 + 100_000
