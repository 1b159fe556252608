"""What a map does to single tokens and channels, against numpy and scikit-learn."""

from __future__ import annotations

import pytest
import torch

from ghostlab.analysis.directions import top_directions
from ghostlab.analysis.tokens import TokenSample, state_plane
from ghostlab.calibration.moments import Moments
from ghostlab.calibration.solve import solve
from ghostlab.model.replacement import AffineMap
from tests.helpers.lm import tiny_tokenizer
from tests.unit.test_analysis import WIDTH, data

pytestmark = pytest.mark.unit


def some_tokens() -> TokenSample:
    """Three windows of 40 tokens with changing states; one token of them is massive."""
    generator = torch.Generator().manual_seed(8)
    ids = torch.randint(3, 96, (3, 40), generator=generator)
    before = torch.randn(3, 40, WIDTH, generator=generator)
    before[1, 7] *= 300
    sample = TokenSample(ids)
    after = before + torch.randn(3, 40, WIDTH, generator=generator)
    sample.add(slice(0, 2), before[:2], after[:2])
    sample.add(slice(2, 3), before[2:], after[2:])
    return sample


def test_top_directions_are_singular_ones_in_the_activation_metric() -> None:
    x, d = data(0)
    matrix = solve(x.T @ x, x.T @ d, 1.0)
    sample = some_tokens()
    found = top_directions(AffineMap(matrix), Moments.of(x, d), sample, tiny_tokenizer())
    values, right = torch.linalg.svd(x @ matrix.float().double())[1:]
    assert len(found) == 6
    assert [one.share for one in found] == pytest.approx(
        (values.square() / values.square().sum())[:6].tolist(), rel=1e-6
    )
    for index, one in enumerate(found):
        channel, share = one.writes[0]
        assert channel == int(right[index].abs().argmax())
        assert share == pytest.approx(float(right[index, channel] ** 2), abs=1e-4)
        moved = sample.before.double() @ matrix @ right[index]
        assert abs(one.tokens[0].value) == pytest.approx(float(moved.abs().max()), rel=1e-3)
        assert one.tokens[0].massive, "the massive token moves farthest along every direction"
    window, position = 1, 7
    assert found[0].tokens[0].token == f"w{int(sample.ids[window, position])}"
    assert found[0].tokens[0].before.split() == [f"w{i}" for i in sample.ids[1, 4:7].tolist()]
    assert top_directions(AffineMap(bias=torch.ones(WIDTH)), Moments.of(x, d)) == []


def test_the_plane_is_that_of_ordinary_tokens_and_holds_every_state() -> None:
    sample = some_tokens()
    replacement = AffineMap(0.1 * torch.eye(WIDTH), first=torch.full((WIDTH,), 5.0))
    found = state_plane(sample, replacement)
    assert found is not None
    assert (len(found.ordinary.after), len(found.massive.after)) == (119, 1)
    ordinary = ~sample.massive
    both = torch.cat([sample.before[ordinary], sample.after[ordinary]]).double()
    centre = both.mean(0)
    axes = torch.linalg.svd(both - centre)[2][:2]
    recovered = torch.where(sample.first[:, None], sample.before + 5, 1.1 * sample.before)
    for kind, states in (
        ("before", sample.before),
        ("after", sample.after),
        ("recovered", recovered),
    ):
        expected = (states[ordinary].double() - centre) @ axes.T
        shown = torch.tensor(getattr(found.ordinary, kind), dtype=torch.float64)
        torch.testing.assert_close(shown.abs(), expected.abs(), rtol=1e-3, atol=1e-3)
    spread = torch.linalg.svdvals(both - centre).square()
    assert found.variance == pytest.approx((spread[:2] / spread.sum()).tolist(), rel=1e-4)


def test_a_sample_does_not_depend_on_the_batches() -> None:
    generator = torch.Generator().manual_seed(2)
    before, after = (torch.randn(40, 50, WIDTH, generator=generator) for _ in range(2))
    ids = torch.zeros(40, 50, dtype=torch.long)
    whole, parts = TokenSample(ids), TokenSample(ids)
    whole.add(slice(0, 40), before, after)
    for start in range(0, 40, 16):
        rows = slice(start, min(start + 16, 40))
        parts.add(rows, before[rows], after[rows])
    assert torch.equal(whole.after, parts.after)
    assert torch.equal(whole.places, parts.places)
    assert len(whole.places) == 40 * 26, "spread evenly, rounded up"
