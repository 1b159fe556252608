"""The affine replacement: arithmetic, factors, storage."""

from __future__ import annotations

import pytest
import torch

from ghostlab.errors import ResultError
from ghostlab.model.replacement import AffineMap

pytestmark = pytest.mark.unit


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_dense_and_factored_maps_agree(generator: torch.Generator) -> None:
    down, up = torch.randn(8, 3, generator=generator), torch.randn(3, 8, generator=generator)
    bias, x = torch.randn(8, generator=generator), torch.randn(2, 5, 8, generator=generator)
    dense, factored = AffineMap(down @ up, bias=bias), AffineMap(factors=(down, up), bias=bias)
    torch.testing.assert_close(dense(x), factored(x))
    torch.testing.assert_close(dense(x), x + x @ down @ up + bias)
    assert dense.parameters_added == 8 * 8 + 8
    assert factored.parameters_added == 2 * 8 * 3 + 8
    assert (dense.rank, factored.rank) == (None, 3)


def test_rounding_touches_only_the_correction(generator: torch.Generator) -> None:
    x = 1000 * torch.randn(4, 8, generator=generator)
    assert torch.equal(AffineMap(torch.zeros(8, 8))(x.bfloat16()), x.bfloat16())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("factored", [False, True])
def test_storage_round_trip(generator: torch.Generator, bias: bool, factored: bool) -> None:
    b = torch.randn(6, generator=generator) if bias else None
    factors = (torch.randn(6, 2, generator=generator), torch.randn(2, 6, generator=generator))
    replacement = AffineMap(factors=factors, bias=b) if factored else AffineMap(torch.randn(6, 6), bias=b)
    again = AffineMap.from_tensors(replacement.tensors())
    x = torch.randn(3, 6, generator=generator)
    assert torch.equal(again(x), replacement(x))


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"dense": torch.zeros(4, 5)},
        {"dense": torch.zeros(4, 4), "bias": torch.zeros(3)},
        {"down": torch.zeros(4, 2)},
        {"down": torch.zeros(4, 2), "up": torch.zeros(3, 4)},
        {"dense": torch.zeros(4, 4), "evil": torch.zeros(1)},
    ],
)
def test_damaged_tensors_are_refused(tensors: dict[str, torch.Tensor]) -> None:
    with pytest.raises(ResultError):
        AffineMap.from_tensors(tensors)
