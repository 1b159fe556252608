"""Ridge, minimum norm, cross-validation: each closed form against an independent route."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Ridge

from ghostlab.calibration.moments import Moments, total
from ghostlab.calibration.solve import RELATIVE_RIDGES, choose_ridge, solve
from ghostlab.errors import ConfigError, NumericsError
from ghostlab.recovery.linear import fit_linear
from ghostlab.recovery.lowrank import reduced_rank, truncated_svd
from ghostlab.recovery.registry import OPERATORS, resolve
from ghostlab.spec import RecoverySpec
from tests.helpers.given import GivenData

pytestmark = pytest.mark.unit
WIDTH = 7


def data(n: int, seed: int = 0, noise: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scale = torch.logspace(0, 2, WIDTH, dtype=torch.float64)
    x = torch.randn(n, WIDTH, generator=generator, dtype=torch.float64) * scale + 1
    true = (
        torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
        / scale[:, None]
    )
    return x, x @ true + 2 + noise * torch.randn(n, WIDTH, generator=generator, dtype=torch.float64)


def folds_of(x: torch.Tensor, d: torch.Tensor, count: int) -> list[Moments]:
    return [Moments.of(a, b) for a, b in zip(x.chunk(count), d.chunk(count), strict=True)]


def block_data(x: torch.Tensor, d: torch.Tensor, folds: int, windows: int = 10) -> GivenData:
    before = x.reshape(windows, -1, WIDTH)
    return GivenData(before, before + d.reshape(windows, -1, WIDTH), folds=folds)


def test_minimum_norm_equals_lstsq_with_full_rank() -> None:
    x, d = data(100)
    expected = torch.linalg.lstsq(x, d, driver="gelsd").solution
    torch.testing.assert_close(solve(x.T @ x, x.T @ d, 0.0), expected, rtol=1e-8, atol=1e-10)


def test_minimum_norm_with_fewer_tokens_than_channels() -> None:
    x, d = data(4)
    expected = torch.linalg.pinv(x) @ d
    torch.testing.assert_close(solve(x.T @ x, x.T @ d, 0.0), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e4])
def test_ridge_equals_scikit_learn(ridge: float) -> None:
    x, d = data(60)
    expected = Ridge(alpha=ridge, fit_intercept=False, solver="svd").fit(x.numpy(), d.numpy()).coef_.T
    torch.testing.assert_close(
        solve(x.T @ x, x.T @ d, ridge), torch.from_numpy(expected), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.5])
def test_affine_fit_equals_scikit_learn_with_intercept(ridge: float) -> None:
    x, d = data(200)
    x, d = x.float(), d.float()  # what a model hands over
    fitted = fit_linear(block_data(x, d, folds=2), RecoverySpec("affine", ridge=str(ridge)), bias=True)
    x, d = x.double(), ((x + d) - x).double()
    scale = float((x - x.mean(0)).square().sum()) / WIDTH
    reference = Ridge(alpha=max(ridge * scale, 1e-12), solver="svd").fit(x.numpy(), d.numpy())
    assert fitted.replacement is not None
    replacement = fitted.replacement.map
    assert replacement is not None
    assert replacement.bias is not None
    torch.testing.assert_close(
        replacement.matrix(), torch.from_numpy(reference.coef_.T), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(
        replacement.bias.double(), torch.from_numpy(reference.intercept_), rtol=1e-4, atol=1e-3
    )
    error = torch.from_numpy(reference.predict(x.numpy())) - d
    assert fitted.explained_train == pytest.approx(
        1 - float(error.square().sum() / d.square().sum()), abs=1e-5
    )


def test_gradient_descent_ends_where_the_closed_form_is() -> None:
    x, d = data(80)
    x = x / x.square().mean(0).sqrt()
    ridge = 3.0
    matrix = torch.zeros(WIDTH, WIDTH, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([matrix], max_iter=500, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = (x @ matrix - d).square().sum() + ridge * matrix.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    torch.testing.assert_close(matrix.detach(), solve(x.T @ x, x.T @ d, ridge), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("centre", [False, True])
def test_cross_validation_equals_refitting_without_each_fold(centre: bool) -> None:
    x, d = data(40, noise=30.0)
    folds = folds_of(x, d, 4)
    chosen = choose_ridge("auto", folds, centre=centre)
    shares = []
    for relative in RELATIVE_RIDGES:
        error = gap = 0.0
        for index in range(4):
            keep = torch.arange(40) // 10 != index
            tx, td, vx, vd = x[keep], d[keep], x[~keep], d[~keep]
            mx, md = (tx.mean(0), td.mean(0)) if centre else (0 * tx[0], 0 * td[0])
            gram = (tx - mx).T @ (tx - mx)
            matrix = torch.linalg.solve(
                gram + relative * gram.trace() / WIDTH * torch.eye(WIDTH).double(), (tx - mx).T @ (td - md)
            )
            error += float(((vx - mx) @ matrix - (vd - md)).square().sum())
            gap += float((vd - md).square().sum())
        shares.append(1 - error / gap)
    assert chosen.curve == pytest.approx(shares, rel=1e-6, abs=1e-8)
    assert chosen.relative == RELATIVE_RIDGES[max(range(len(shares)), key=shares.__getitem__)]


def test_ridge_settings() -> None:
    x, d = data(50)
    folds = folds_of(x, d, 2)
    scale = float(total(folds).gram.trace()) / WIDTH
    assert choose_ridge("abs:0.5", folds, centre=False).added == 0.5
    assert choose_ridge("1e-3", folds, centre=False).added == pytest.approx(1e-3 * scale)
    assert choose_ridge("auto", folds[:1], centre=False).warning
    with pytest.raises(ConfigError, match="not understood"):
        choose_ridge("plenty", folds, centre=False)


def test_few_tokens_are_warned_about() -> None:
    x, d = data(10)
    fitted = fit_linear(block_data(x, d, 2, windows=2), RecoverySpec("ghost"), bias=False)
    assert any("Only 10 calibration tokens" in warning for warning in fitted.warnings)
    x, d = data(100)
    assert not fit_linear(block_data(x, d, 2), RecoverySpec("ghost"), bias=False).warnings


def test_moments_that_are_no_numbers_are_refused() -> None:
    gram = torch.eye(3).double()
    gram[0, 0] = torch.nan
    with pytest.raises(NumericsError):
        solve(gram, torch.eye(3).double(), 0.0)


def test_truncated_svd_is_the_best_of_its_rank() -> None:
    matrix = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = torch.linalg.svdvals(matrix)
    for rank in (1, 3, 6):
        down, up = truncated_svd(matrix, rank)
        assert down.shape == (6, rank)
        error = torch.linalg.norm(matrix - down @ up)
        assert float(error) == pytest.approx(float(values[rank:].square().sum().sqrt()), abs=1e-12)
    with pytest.raises(ConfigError, match="at most 6"):
        truncated_svd(matrix, 7)


def test_a_low_rank_affine_fit_has_the_bias_that_belongs_to_it() -> None:
    x, d = data(200)
    collected = block_data(x.float(), d.float(), 2)
    fitted = fit_linear(collected, RecoverySpec("affine", rank=2, ridge="0"), bias=True)
    assert fitted.replacement is not None
    replacement = fitted.replacement.map
    assert replacement is not None
    assert replacement.parameters_added == 2 * WIDTH * 2 + WIDTH
    residual = x + d - replacement(x.float()).double()
    assert residual.mean(0).abs().max() < 1e-3, "the mean must be met whatever the rank"


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_registry_entries_are_complete(name: str) -> None:
    method = OPERATORS.find(name)
    assert method.name == name
    assert all((method.title, method.summary, method.formula, method.source))


def test_unknown_methods_are_listed_against() -> None:
    with pytest.raises(ConfigError, match="ghost"):
        OPERATORS.find("ghots")


def test_reduced_rank_is_the_best_of_its_rank_for_the_activations() -> None:
    x, d = data(60)
    gram, cross, ridge = x.T @ x, x.T @ d, 2.0
    full = solve(gram, cross, ridge)

    def loss(m: torch.Tensor) -> float:
        return float((x @ m - d).square().sum() + ridge * m.square().sum())

    # an independent route: whiten, then Eckart-Young on the whitened solution
    root = torch.linalg.cholesky(gram + ridge * torch.eye(WIDTH).double()).T
    left, values, right = torch.linalg.svd(root @ full)
    for rank in range(1, WIDTH + 1):
        down, up = reduced_rank(full, cross, rank)
        best = torch.linalg.solve(root, left[:, :rank] * values[:rank] @ right[:rank])
        torch.testing.assert_close(down @ up, best, rtol=1e-6, atol=1e-8)
        assert loss(down @ up) == pytest.approx(loss(full) + float(values[rank:].square().sum()), rel=1e-9)
        other = truncated_svd(full, rank)
        assert loss(down @ up) <= loss(other[0] @ other[1]) * (1 + 1e-12)


def test_weights_equal_repeating_tokens() -> None:
    x, d = data(20)
    weight = torch.arange(20).double() % 3 + 1
    repeated = Moments.of(x.repeat_interleave(weight.long(), 0), d.repeat_interleave(weight.long(), 0))
    weighted = Moments.of(x, d, weight)
    torch.testing.assert_close(weighted.gram, repeated.gram)
    torch.testing.assert_close(weighted.cross, repeated.cross)
    assert weighted.count == repeated.count
    assert weighted.total == pytest.approx(repeated.total)


def test_relative_weighting_minimises_the_relative_error() -> None:
    x, d = data(100)
    given = block_data(x, d, 2)
    given.weighting = "relative"
    fitted = fit_linear(given, RecoverySpec("ghost", ridge="0"), bias=False)
    w = (1 / (x + d).square().mean(-1)).sqrt()[:, None]
    expected = torch.linalg.lstsq(w * x, w * d).solution
    torch.testing.assert_close(fitted.replacement.map.matrix(), expected, rtol=1e-4, atol=1e-5)


def test_first_tokens_apart() -> None:
    x, d = data(100)
    given = block_data(x, d, 2)
    fitted = fit_linear(
        given, RecoverySpec.parse("ghost_sink,ridge=0,weight=none"), bias=True, first_apart=True
    )
    rest = torch.arange(100) % 10 != 0
    ones = torch.ones(90, 1).double()
    expected = torch.linalg.lstsq(torch.cat([x[rest], ones], 1), d[rest]).solution
    replacement = fitted.replacement.map
    torch.testing.assert_close(replacement.matrix(), expected[:-1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(replacement.first.double(), d[~rest].mean(0), rtol=1e-5, atol=1e-5)
    first = torch.zeros(10, 10, dtype=torch.bool)
    first[:, 0] = True
    before = given.given[1].float()
    error = (replacement(before, first) - given.given[2]).double().square().sum()
    assert fitted.explained_train == pytest.approx(1 - float(error / d.square().sum()), abs=1e-6)


def test_options_are_checked_against_the_method() -> None:
    with pytest.raises(ConfigError, match="no option 'rank'"):
        resolve([RecoverySpec("drop", rank=3)])
    with pytest.raises(ConfigError, match="reduced_rank, truncated_svd"):
        resolve([RecoverySpec.parse("ghost,factor=best")])
    with pytest.raises(ConfigError, match="no option 'tank'"):
        resolve([RecoverySpec.parse("ghost,tank=3")])
    assert resolve([RecoverySpec("drop"), RecoverySpec("ghost")], 5, "0") == [
        RecoverySpec("drop"),
        RecoverySpec("ghost", 5, "0"),
    ]
