"""Hadamard matrices of every width that matters, and what takes over elsewhere."""

from __future__ import annotations

import pytest
import torch

from ghostlab.recovery.hadamard import hadamard_matrix, plan, rotation

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("order", [n for n in range(1, 301) if plan(n)])
def test_small_orders_whole(order: int) -> None:
    factors = plan(order)
    assert factors is not None
    signs = torch.from_numpy(hadamard_matrix(factors)).float()
    assert signs.shape == (order, order)
    assert set(signs.flatten().tolist()) <= {1.0, -1.0}
    assert torch.equal(signs @ signs.T, order * torch.eye(order))


@pytest.mark.parametrize("order", [576, 640, 768, 896, 960, 1152, 1536, 1600, 2048, 2304, 2880, 4608, 5376])
def test_widths_of_models(order: int) -> None:
    factors = plan(order)
    assert factors is not None
    signs = torch.from_numpy(hadamard_matrix(factors)).float()
    assert bool((signs.abs() == 1).all())
    probe = torch.randint(-4, 5, (order, 6), generator=torch.Generator().manual_seed(0)).float()
    assert torch.equal(signs @ (signs.T @ probe), order * probe)


def test_every_construction_is_used() -> None:
    assert plan(576) == (("Sylvester", 16), ("Paley II", 36))
    assert plan(768) == (("Sylvester", 64), ("Paley I", 12))
    assert plan(52) == (("Paley II", 52),), "over the field of 25 elements"
    assert plan(10) is plan(92) is plan(35) is None


def test_products_without_sylvester() -> None:
    factors = (("Paley II", 28), ("Paley I", 68))
    assert plan(1904) == factors
    signs = torch.from_numpy(hadamard_matrix(factors)).float()
    assert torch.equal(signs @ signs.T, 1904 * torch.eye(1904))


@pytest.mark.parametrize("width", [12, 32, 7, 92])
def test_rotations_are_orthogonal_and_repeatable(width: int) -> None:
    turn, made = rotation(width)
    torch.testing.assert_close(turn @ turn.T, torch.eye(width).double())
    assert torch.equal(turn, rotation(width)[0])
    assert made == {12: "Paley I 12", 32: "Sylvester 32"}.get(width, "random orthogonal (seed 0)")
