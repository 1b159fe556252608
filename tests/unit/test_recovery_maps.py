"""Scalings, LinearPatch, symmetric and orthogonal maps: each against an independent route."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from scipy.linalg import orthogonal_procrustes

from ghostlab.calibration.solve import RELATIVE_RIDGES, best_symmetric
from ghostlab.errors import ConfigError
from ghostlab.model.replacement import AffineMap
from ghostlab.recovery.base import BlockFit
from ghostlab.recovery.data import FitData
from ghostlab.recovery.hadamard import rotation
from ghostlab.recovery.registry import OPERATORS, resolve
from ghostlab.spec import RecoverySpec
from tests.helpers.given import GivenData

pytestmark = pytest.mark.unit
WINDOWS, LENGTH, WIDTH = 12, 10, 12
Weight = pytest.mark.parametrize("weight", ["none", "relative"])


@pytest.fixture
def given() -> GivenData:
    """States with channels of very different size and one massive first token."""
    generator = torch.Generator().manual_seed(0)
    scale = torch.logspace(-1, 1, WIDTH)
    before = torch.randn(WINDOWS, LENGTH, WIDTH, generator=generator) * scale + 0.3
    before[:, 0] *= 8
    mix = torch.eye(WIDTH) + 0.3 * torch.randn(WIDTH, WIDTH, generator=generator)
    noise = torch.randn(WINDOWS, LENGTH, WIDTH, generator=generator)
    return GivenData(before, before @ mix + 0.5 + noise, folds=3)


def tokens(given: GivenData, weight: str = "none") -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """X, Y [N, C] and the square roots of the tokens' weights [N, 1], float64."""
    x, y = given.given[1].flatten(0, 1).double(), given.given[2].flatten(0, 1).double()
    root = (
        y.square().mean(-1, keepdim=True).rsqrt() if weight == "relative" else torch.ones(len(y), 1).double()
    )
    return x, y, root


def run(data: FitData, text: str) -> BlockFit:
    (spec,) = resolve([RecoverySpec.parse(text)])
    data.weighting = OPERATORS[spec.method].weighting(spec)
    return OPERATORS[spec.method].fit(data, spec)


def fitted_map(fitted: BlockFit) -> AffineMap:
    assert fitted.replacement is not None
    assert fitted.replacement.map is not None
    return fitted.replacement.map


def descend(loss: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor) -> torch.Tensor:
    """Where gradient descent on ``loss`` ends."""
    at = start.double().clone().requires_grad_()
    optimiser = torch.optim.LBFGS([at], max_iter=2000, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss(at)
        value.backward()
        return value

    optimiser.step(closure)
    return at.detach()


MAPS = sorted(
    set(OPERATORS) - {"drop", "lra", "replaceme_ls", "replaceme_cosine", "refit_layer", "ghost_layer"}
)


@pytest.mark.parametrize("name", MAPS)
def test_the_training_error_is_that_of_the_map(given: GivenData, name: str) -> None:
    fitted = run(given, name)
    first = torch.zeros(WINDOWS, LENGTH, dtype=torch.bool)
    first[:, 0] = True
    before, after = given.given[1], given.given[2]
    error = (fitted_map(fitted)(before, first) - after).double().square().sum()
    assert fitted.explained_train == pytest.approx(
        1 - float(error / (after - before).double().square().sum()), abs=1e-5
    )


@Weight
def test_mean_shift_is_the_weighted_mean_change(given: GivenData, weight: str) -> None:
    x, y, root = tokens(given, weight)
    expected = torch.linalg.lstsq(root, root * (y - x)).solution[0]
    bias = fitted_map(run(given, f"mean_shift,weight={weight}")).bias
    torch.testing.assert_close(bias, expected.float(), rtol=1e-5, atol=1e-5)


@Weight
def test_scalar_and_diagonal_by_least_squares(given: GivenData, weight: str) -> None:
    x, y, root = tokens(given, weight)
    scalar = run(given, f"scalar,weight={weight}")
    alpha = torch.linalg.lstsq((root * x).reshape(-1, 1), (root * y).reshape(-1, 1)).solution.item()
    assert scalar.details == {"estimator": "ls", "alpha": pytest.approx(alpha, rel=1e-5)}
    torch.testing.assert_close(
        fitted_map(scalar).matrix(), (alpha - 1) * torch.eye(WIDTH).double(), rtol=1e-4, atol=1e-6
    )
    channels = [torch.linalg.lstsq(root * x[:, [c]], root * y[:, [c]]).solution.item() for c in range(WIDTH)]
    diagonal = fitted_map(run(given, f"diag_ls,weight={weight}")).matrix() + torch.eye(WIDTH)
    torch.testing.assert_close(diagonal, torch.tensor(channels).double().diag(), rtol=1e-4, atol=1e-5)


def test_scalar_by_norms(given: GivenData) -> None:
    x, y, _ = tokens(given)
    before, after = x.norm(dim=1), y.norm(dim=1)
    norm, ratio = run(given, "scalar,estimator=norm"), run(given, "scalar,estimator=ratio")
    assert norm.details["alpha"] == pytest.approx(float(after.mean() / before.mean()), rel=1e-5)
    assert ratio.details["alpha"] == pytest.approx(float((after / before).mean()), rel=1e-5)
    with pytest.raises(ConfigError, match="weighs all tokens alike"):
        run(given, "scalar,estimator=norm,weight=relative")


def published_linearpatch(given: GivenData, q: torch.Tensor) -> torch.Tensor:
    """P as the published procedure makes it: one window after the other, everything in the rotated basis."""
    ratios = []
    for x, y in zip(given.given[1].double(), given.given[2].double(), strict=True):
        x_rot, y_rot = x @ q, y @ q
        ratios.append(y_rot.abs().mean(dim=0) / x_rot.abs().mean(dim=0))
    d = sum(ratios) / len(ratios)
    return q @ torch.diag(d) @ q.T


def test_linearpatch_follows_the_published_procedure(given: GivenData) -> None:
    q, made = rotation(WIDTH)
    rotated, plain = run(given, "linearpatch"), run(given, "linearpatch_diag")
    assert rotated.details["rotation"] == made == "Paley I 12"
    eye = torch.eye(WIDTH).double()
    patch = fitted_map(rotated).matrix() + eye
    torch.testing.assert_close(patch, published_linearpatch(given, q), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        fitted_map(plain).matrix() + eye, published_linearpatch(given, eye), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(patch, patch.T)
    # one public code base takes d from states that are not rotated; that is another matrix
    unrotated = q @ published_linearpatch(given, eye).diagonal().diag() @ q.T
    assert (patch - unrotated).abs().max() > 0.1


def test_linearpatch_at_a_width_without_hadamard_matrix() -> None:
    generator = torch.Generator().manual_seed(1)
    before = torch.randn(4, 30, 7, generator=generator)
    given = GivenData(before, 2 * before)
    fitted = run(given, "linearpatch")
    assert "random orthogonal" in fitted.details["rotation"]
    torch.testing.assert_close(fitted_map(fitted).matrix(), torch.eye(7).double(), rtol=1e-5, atol=1e-5)


def test_dead_channels_are_left_alone(given: GivenData) -> None:
    for boundary in (1, 2):
        given.given[boundary][:, :, 3] = 0
    for name in ("linearpatch_diag", "diag_ls", "symmetric,ridge=0"):
        matrix = fitted_map(run(given, name)).matrix()
        assert torch.isfinite(matrix).all()
        assert matrix[3, 3].abs() < 1e-6


@pytest.mark.parametrize("name", ["linearpatch", "hadamard_ls"])
def test_a_rotated_channel_of_rounding_errors_is_left_alone(given: GivenData, name: str) -> None:
    q, _ = rotation(WIDTH)
    axis = q[:, 2].float()  # as LayerNorm takes the mean out of embeddings
    given.given[1] -= (given.given[1] @ axis)[..., None] * axis
    left = (given.given[1].double() @ q[:, 2]).abs()
    assert 0 < left.max() < 1e-5, "there must be rounding errors to be misled by"
    fitted = run(given, name)
    assert fitted.details["empty_channels"] == [2]
    matrix = fitted_map(fitted).matrix()
    assert matrix.abs().max() < 10
    assert (matrix @ q[:, 2]).abs().max() < 1e-6
    others = torch.arange(WIDTH) != 2
    assert ((q.T @ matrix @ q).diagonal()[others].abs() > 1e-4).all(), "no other channel is"


@Weight
def test_rotated_scaling_is_where_descent_ends(given: GivenData, weight: str) -> None:
    x, y, root = tokens(given, weight)
    q, _ = rotation(WIDTH)
    d = descend(lambda d: (root * (x @ (q * d) @ q.T - y)).square().mean(), torch.ones(WIDTH))
    found = fitted_map(run(given, f"hadamard_ls,weight={weight}")).matrix()
    torch.testing.assert_close(found + torch.eye(WIDTH), (q * d) @ q.T, rtol=1e-4, atol=1e-4)


@Weight
def test_procrustes_equals_scipy_and_no_rotation_nearby_is_better(given: GivenData, weight: str) -> None:
    x, y, root = tokens(given, weight)
    fitted = run(given, f"procrustes,weight={weight}")
    turn, scale = orthogonal_procrustes((root * x).numpy(), (root * y).numpy())
    alpha = scale / float((root * x).square().sum())
    assert fitted.details["alpha"] == pytest.approx(alpha, rel=1e-5)
    found = fitted_map(fitted).matrix() + torch.eye(WIDTH)
    torch.testing.assert_close(found, alpha * torch.from_numpy(turn), rtol=1e-4, atol=1e-5)
    least = (root * (x @ found - y)).square().sum()
    skew = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for step in (1e-3, -1e-3):
        nearby = found @ torch.linalg.matrix_exp(step * (skew - skew.T))
        assert (root * (x @ nearby - y)).square().sum() > least
        assert (root * (x @ found * (1 + step) - y)).square().sum() > least


@Weight
@pytest.mark.parametrize("ridge", ["0", "0.1"])
def test_the_best_symmetric_map_is_where_descent_ends(given: GivenData, weight: str, ridge: str) -> None:
    x, y, root = tokens(given, weight)
    added = float(ridge) * float((root * x).square().sum()) / WIDTH

    def loss(raw: torch.Tensor) -> torch.Tensor:
        m = (raw + raw.T) / 2
        return ((root * (x @ m - (y - x))).square().sum() + added * m.square().sum()) / float(
            root.square().sum()
        )

    raw = descend(loss, torch.zeros(WIDTH, WIDTH))
    found = fitted_map(run(given, f"symmetric,ridge={ridge},weight={weight}")).matrix()
    torch.testing.assert_close(found, (raw + raw.T) / 2, rtol=1e-3, atol=1e-4)


def test_the_ridge_of_the_symmetric_map_is_validated_for_symmetric_maps(given: GivenData) -> None:
    x, y, _ = tokens(given)
    fold = given.fold.repeat_interleave(LENGTH)
    errors = []
    for relative in RELATIVE_RIDGES:
        error = 0.0
        for index in range(3):
            tx, td = x[fold != index], (y - x)[fold != index]
            added = relative * float(tx.square().sum()) / WIDTH
            matrix = best_symmetric(tx.T @ tx, tx.T @ td, added)
            error += float((x[fold == index] @ matrix - (y - x)[fold == index]).square().sum())
        errors.append(error)
    gap = float((y - x).square().sum())
    fitted = run(given, "symmetric")
    assert fitted.details["ridge_curve"] == pytest.approx([1 - error / gap for error in errors], abs=1e-5)
    assert fitted.ridge == RELATIVE_RIDGES[errors.index(min(errors))]


def test_the_families_contain_each_other(given: GivenData) -> None:
    """The error falls along every chain of ever larger families of maps, each fitted by least squares."""
    chains = (
        ("scalar", "diag_ls", "symmetric", "ghost", "affine"),
        ("scalar", "hadamard_ls", "symmetric", "ghost"),
        ("scalar", "procrustes", "ghost"),
        ("linearpatch", "hadamard_ls"),
        ("linearpatch_diag", "diag_ls"),
        ("mean_shift", "affine"),
    )
    shares = {
        name: run(given, f"{name},ridge=0" if "ridge" in OPERATORS[name].options else name).explained_train
        for name in {name for chain in chains for name in chain}
    }
    for small, large in (pair for chain in chains for pair in pairwise(chain)):
        assert shares[small] <= shares[large] + 1e-9


@pytest.mark.parametrize(
    "name", ["ghost", "affine", "ghost_sink", "symmetric", "procrustes", "hadamard_ls", "linearpatch"]
)
def test_reduced_rank_never_has_more_error_than_truncated_svd(given: GivenData, name: str) -> None:
    ridge = ",ridge=0" if "ridge" in OPERATORS[name].options else ""
    ridge += ",weight=none" if name == "ghost_sink" else ""  # training error is counted alike for all tokens
    full = run(given, name + ridge).explained_train
    best = []
    for rank in range(1, WIDTH + 1):
        found = [
            run(given, f"{name}{ridge},rank={rank},factor={how}") for how in ("reduced_rank", "truncated_svd")
        ]
        assert {fitted_map(fit).rank for fit in found} == {rank}
        assert found[0].explained_train >= found[1].explained_train - 1e-6
        best.append(found[0].explained_train)
    assert best[-1] == pytest.approx(full, abs=1e-5)
    if name in {"ghost", "affine", "ghost_sink"}:  # of other maps, a lower rank may be better than the whole
        assert best == sorted(best)


def test_ghost_sink_is_affine_where_no_token_is_first(given: GivenData) -> None:
    """Given the same ordinary tokens and a mask that marks none as first, both do the same."""
    sink = fitted_map(run(given, "ghost_sink,ridge=1e-3,weight=none"))
    rest = GivenData(given.given[1][:, 1:], given.given[2][:, 1:], folds=3)
    affine = fitted_map(run(rest, "affine,ridge=1e-3"))
    states = given.given[1]
    nowhere = torch.zeros(states.shape[:2], dtype=torch.bool)
    torch.testing.assert_close(sink(states, nowhere), affine(states), rtol=1e-5, atol=1e-4)
    nowhere[:, 0] = True
    assert not torch.allclose(sink(states, nowhere), affine(states), atol=0.1)


@pytest.mark.parametrize("name", ["ghost", "symmetric", "procrustes"])
def test_matrices_warn_of_too_few_tokens_and_only_then(given: GivenData, name: str) -> None:
    assert not any("Only" in warning for warning in run(given, name).warnings)
    states = [given.given[edge][:2, :5] for edge in (1, 2)]
    (scarce,) = (w for w in run(GivenData(*states, folds=2), name).warnings if w.startswith("Only"))
    assert scarce.startswith(f"Only 10 calibration tokens for a width of {WIDTH}: below {2 * WIDTH} ")


def test_diagonal_maps_are_stored_and_counted_as_such(given: GivenData) -> None:
    replacement = fitted_map(run(given, "diag_ls"))
    assert replacement.parameters_added == WIDTH
    again = AffineMap.from_tensors(replacement.tensors())
    assert torch.equal(again(given.given[1]), replacement(given.given[1]))
    torch.testing.assert_close(
        replacement(given.given[1]), given.given[1] @ (replacement.matrix().float() + torch.eye(WIDTH))
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("scalar,estimator=median", "ls, norm, ratio"),
        ("replaceme_cosine,epochs=2.5", "Use a positive whole number"),
        ("replaceme_cosine,epochs=1001", "whole number up to 1000, for example 10"),
        ("replaceme_cosine,lr=0", "Use a positive number"),
        ("mean_shift,rank=3", "no option 'rank'"),
    ],
)
def test_options_are_checked(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        resolve([RecoverySpec.parse(text)])
