"""Decompositions and error curves, each against brute force."""

from __future__ import annotations

import pytest
import torch
from scipy.linalg import solve_continuous_lyapunov

from ghostlab.analysis import spectrum
from ghostlab.analysis.boundary import BoundaryErrors, pool
from ghostlab.analysis.operator import describe, tiles
from ghostlab.analysis.spectrum import cumulative_energy, svd_curve
from ghostlab.analysis.symmetry import split, symmetry_split
from ghostlab.calibration.moments import Moments
from ghostlab.calibration.solve import best_symmetric, solve
from ghostlab.cut import Block
from ghostlab.model.replacement import AffineMap
from ghostlab.recovery import lowrank as leading

pytestmark = pytest.mark.unit
WIDTH = 8


def data(seed: int, n: int = 120) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, WIDTH, generator=generator, dtype=torch.float64) * torch.logspace(0, 1, WIDTH).double()
    true = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(99), dtype=torch.float64)
    return x + 0.5, x @ true + 1 + torch.randn(n, WIDTH, generator=generator, dtype=torch.float64)


@pytest.fixture
def fitted() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    (x, d), (vx, vd) = data(0), data(1)
    return x, d, vx, vd, solve(x.T @ x, x.T @ d, 1.0)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_best_symmetric_solves_the_lyapunov_equation(ridge: float) -> None:
    x, d = data(0)
    h = (x.T @ x + ridge * torch.eye(WIDTH)).numpy()
    right = (x.T @ d + d.T @ x).numpy()
    expected = torch.from_numpy(solve_continuous_lyapunov(h, right))
    found = best_symmetric(x.T @ x, x.T @ d, ridge)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(found, found.T)


def test_best_symmetric_is_where_descent_over_symmetric_matrices_ends() -> None:
    x, d = data(0)
    raw = torch.zeros(WIDTH, WIDTH, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([raw], max_iter=500, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = (x @ (raw + raw.T) / 2 - d).square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    found = best_symmetric(x.T @ x, x.T @ d)
    torch.testing.assert_close((raw + raw.T).detach() / 2, found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("with_bias", [False, True])
def test_symmetry_split_by_brute_force(fitted: tuple[torch.Tensor, ...], with_bias: bool) -> None:
    x, d, vx, vd, matrix = fitted
    bias = d.mean(0) - x.mean(0) @ matrix if with_bias else None
    found = symmetry_split(matrix, bias, Moments.of(x, d), Moments.of(vx, vd), ridge=1.0)
    s, a = split(matrix)
    torch.testing.assert_close(s + a, matrix)
    torch.testing.assert_close(a, -a.T)
    assert found.frobenius["symmetric"] == pytest.approx(float(s.norm() ** 2 / matrix.norm() ** 2))
    assert sum(found.frobenius.values()) == pytest.approx(1)
    assert found.activation["antisymmetric"] == pytest.approx(
        float((x @ a).norm() ** 2 / (x @ matrix).norm() ** 2)
    )
    error = float((vx @ matrix + (0 if bias is None else bias) - vd).norm() ** 2)
    assert found.explained == pytest.approx(1 - error / float(vd.norm() ** 2))
    assert found.relative_error == pytest.approx((error / float((vx + vd).norm() ** 2)) ** 0.5)
    assert found.explained_symmetric < found.explained


@pytest.mark.parametrize("with_bias", [False, True])
def test_error_against_rank_by_brute_force(fitted: tuple[torch.Tensor, ...], with_bias: bool) -> None:
    x, d, vx, vd, matrix = fitted
    bias = d.mean(0) - x.mean(0) @ matrix if with_bias else None
    values, curve = svd_curve(matrix, bias, Moments.of(x, d), Moments.of(vx, vd))
    left, expected, right = torch.linalg.svd(matrix)
    torch.testing.assert_close(values, expected)
    assert curve.ranks[0] == 0
    assert curve.ranks[-1] == WIDTH
    for rank, share, train_share in zip(curve.ranks, curve.explained, curve.explained_train, strict=True):
        low = left[:, :rank] * expected[:rank] @ right[:rank]
        own_bias = d.mean(0) - x.mean(0) @ low if with_bias else torch.zeros(WIDTH).double()
        for states, target, found in ((vx, vd, share), (x, d, train_share)):
            error = float((states @ low + own_bias - target).norm() ** 2)
            assert found == pytest.approx(1 - error / float(target.norm() ** 2), abs=1e-9)


def test_cumulative_energy() -> None:
    assert cumulative_energy(torch.tensor([2.0, 1.0, 0.0])).tolist() == pytest.approx([0.8, 1.0, 1.0])
    assert cumulative_energy(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_tiles_are_means_of_squares() -> None:
    matrix = torch.arange(25, dtype=torch.float64).reshape(5, 5)
    found = torch.tensor(tiles(matrix, 2))
    assert found.shape == (3, 3)
    assert found[0, 0] == matrix[:2, :2].mean()
    assert found[2, 2] == matrix[4, 4]
    assert found[0, 2] == matrix[:2, 4].mean()


def test_eigenvalues_are_those_of_w(fitted: tuple[torch.Tensor, ...]) -> None:
    x, d, vx, vd, matrix = fitted
    report = describe(Block(2, 4), AffineMap(matrix), Moments.of(x, d), Moments.of(vx, vd), ridge=0.0)
    expected = torch.linalg.eigvals(torch.eye(WIDTH) + matrix.float().double())
    found = torch.complex(torch.tensor(report.eigenvalues_real), torch.tensor(report.eigenvalues_imag))
    assert sorted(found.abs().tolist()) == pytest.approx(sorted(expected.abs().tolist()), rel=1e-3)
    assert report.block == (2, 4)


def boundary_states() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    before = torch.randn(3, 10, WIDTH, generator=generator)
    after = before + torch.randn(3, 10, WIDTH, generator=generator)
    after[1, 0] *= 200  # one massive token
    return before, after


def test_boundary_errors_by_brute_force_and_in_batches() -> None:
    before, after = boundary_states()
    replacement = AffineMap(0.1 * torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(6)))
    errors = BoundaryErrors()
    errors.add(before[:2], after[:2], replacement(before[:2]))
    errors.add(before[2:], after[2:], replacement(before[2:]))
    report = errors.report(0.5)
    missed = (replacement(before) - after).double().square()
    gap = (after - before).double().square()
    ordinary = torch.ones(3, 10, dtype=torch.bool)
    ordinary[1, 0] = False
    assert report.explained == pytest.approx(1 - float(missed.sum() / gap.sum()), abs=1e-6)
    assert report.relative_error == pytest.approx(
        float((missed.sum() / after.double().square().sum()).sqrt()), rel=1e-6
    )
    assert report.relative_error_ordinary == pytest.approx(
        float((missed[ordinary].sum() / after[ordinary].double().square().sum()).sqrt()), rel=1e-6
    )
    assert report.channel_error == pytest.approx((missed.sum((0, 1)) / gap.sum((0, 1))).tolist(), rel=1e-6)
    assert report.position_error == pytest.approx((missed.sum((0, 2)) / gap.sum((0, 2))).tolist(), rel=1e-6)
    assert report.explained_train == 0.5


def test_plain_dropping_explains_nothing() -> None:
    errors = BoundaryErrors()
    before, after = boundary_states()
    errors.add(before, after, before)
    report = errors.report(0.0)
    assert report.explained == pytest.approx(0)
    assert report.position_error == pytest.approx([1.0] * 10)


def test_pooling_several_blocks() -> None:
    reports = []
    before, after = boundary_states()
    for replacement in (AffineMap(0.2 * torch.eye(WIDTH)), AffineMap(0.1 * torch.eye(WIDTH))):
        errors = BoundaryErrors()
        errors.add(before, after, replacement(before))
        reports.append(errors.report(0.2))
    assert pool(reports[:1]) is reports[0]
    assert pool(reports).relative_error == pytest.approx(
        (reports[0].relative_error + reports[1].relative_error) / 2
    )


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_wide_map_is_described_by_its_leading_directions(
    monkeypatch: pytest.MonkeyPatch, with_bias: bool
) -> None:
    (x, d), (vx, vd) = data(0), data(1)
    matrix = solve(x.T @ x, x.T @ d, 1.0)
    replacement = AffineMap(matrix, bias=d.mean(0) - x.mean(0) @ matrix if with_bias else None)
    train, held_out = Moments.of(x, d), Moments.of(vx, vd)
    whole = describe(Block(2, 4), replacement, train, held_out, ridge=0.0)
    monkeypatch.setattr(leading, "WIDE", WIDTH - 1)
    monkeypatch.setattr(spectrum, "LEADING", 2)
    wide = describe(Block(2, 4), replacement, train, held_out, ridge=0.0)
    assert wide.eigenvalues_real == []
    assert "eigenvalues were left out" in wide.notes[0]
    assert whole.notes == []
    assert wide.singular_values == pytest.approx(whole.singular_values[:2], rel=1e-3)
    assert wide.cumulative_energy == pytest.approx(whole.cumulative_energy[:2], rel=1e-3)
    for exact, found in (
        (whole.truncated_svd, wide.truncated_svd),
        (whole.reduced_rank, wide.reduced_rank),
    ):
        assert exact is not None
        assert found is not None
        assert found.ranks == [0, 1, 2, WIDTH]
        at = dict(zip(exact.ranks, exact.explained, strict=True))
        assert found.explained == pytest.approx([at[rank] for rank in found.ranks], abs=1e-6)
