"""Moments against the matrices that they are moments of."""

from __future__ import annotations

import pytest
import torch

from ghostlab.calibration.moments import BlockMoments, Moments, massive_tokens, total
from ghostlab.cut import Block

pytestmark = pytest.mark.unit


def data(n: int = 200, width: int = 6, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, width, generator=generator, dtype=torch.float64) + 0.7
    return x, x @ torch.randn(width, width, generator=generator, dtype=torch.float64) - 0.3


def assert_same(a: Moments, b: Moments) -> None:
    for name in ("count", "x", "change", "gram", "cross", "power"):
        torch.testing.assert_close(
            torch.as_tensor(getattr(a, name)), torch.as_tensor(getattr(b, name)), rtol=1e-10, atol=1e-9
        )


def test_sums_and_differences() -> None:
    x, d = data()
    whole, part, rest = Moments.of(x, d), Moments.of(x[:50], d[:50]), Moments.of(x[50:], d[50:])
    assert_same(part + rest, whole)
    assert_same(whole - rest, part)
    assert_same(total([part, rest]), whole)


def test_moments_about_any_point() -> None:
    x, d = data()
    px, pd = torch.linspace(-1, 1, 6).double(), torch.linspace(2, 3, 6).double()
    assert_same(Moments.of(x, d).about(px, pd), Moments.of(x - px, d - pd))
    assert_same(Moments.of(x, d).centred(), Moments.of(x - x.mean(0), d - d.mean(0)))


@pytest.mark.parametrize("with_bias", [False, True])
def test_residual_of_any_affine_map(with_bias: bool) -> None:
    x, d = data()
    matrix = torch.randn(6, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    bias = torch.linspace(-1, 1, 6).double() if with_bias else None
    direct = (x @ matrix + (0 if bias is None else bias) - d).square().sum()
    assert Moments.of(x, d).residual(matrix, bias) == pytest.approx(float(direct), rel=1e-10)


def test_state_power() -> None:
    x, d = data()
    moments = Moments.of(x, d)
    assert moments.state_power == pytest.approx(float((x + d).square().sum()), rel=1e-12)
    assert moments.total == pytest.approx(float(d.square().sum()), rel=1e-12)


def test_block_moments_keep_special_tokens_apart_and_lose_none() -> None:
    generator = torch.Generator().manual_seed(2)
    before = torch.randn(4, 9, 6, generator=generator)
    after = before + torch.randn(4, 9, 6, generator=generator)
    after[2, 5] *= 500  # a massive activation in the middle of a window
    fold = torch.tensor([0, 0, 1, 1])
    collected = BlockMoments.empty(Block(1, 3), folds=2, width=6)
    collected.add(before[:3], after[:3], fold[:3])
    collected.add(before[3:], after[3:], fold[3:])
    for index, moments in enumerate(collected.folds()):
        x, y = before[fold == index].flatten(0, 1), after[fold == index].flatten(0, 1)
        expected = Moments.of(x, y - x)
        torch.testing.assert_close(moments.gram, expected.gram, rtol=1e-6, atol=1e-4)
        torch.testing.assert_close(moments.cross, expected.cross, rtol=1e-6, atol=1e-4)
        assert moments.count == expected.count
    special = torch.cat(collected.special_first)
    assert special.tolist().count(True) == 4
    assert special.tolist().count(False) == 1
    assert total(collected.ordinary).count == 4 * 9 - 5


def test_massive_tokens_by_the_median_of_their_window() -> None:
    states = torch.ones(2, 7, 4)
    after = states.clone()
    after[1, 3] = 40
    found = massive_tokens(states, after)
    assert found.nonzero().tolist() == [[1, 3]]
