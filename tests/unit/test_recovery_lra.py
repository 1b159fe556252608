"""SHIFT-LLM's adapters: the fit of each layer, exact merging, rank, and both readings of the bias."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from sklearn.linear_model import Ridge

import ghostlab as gl
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.moments import Moments
from ghostlab.model.replacement import AffineMap
from ghostlab.recovery.lra import Adapter, merge, with_ones
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import WIDTH

pytestmark = pytest.mark.unit
START, STOP = 2, 5


@cache
def calibration() -> Calibration:
    return Calibration(tiny_lm(), tiny_windows(12, 16))


def layer_states() -> list[torch.Tensor]:
    """Original states [N, C] at boundaries START .. STOP, float64."""
    calib = calibration()
    trace = calib.model.decoder.trace(calib.windows.ids, range(START, STOP + 1))
    return [trace.states[b].flatten(0, 1).double() for b in range(START, STOP + 1)]


def fitted_map(text: str) -> AffineMap:
    (fitted,) = gl.fit(calibration(), gl.parse_cut(f"{START}:{STOP}"), text).replacements.values()
    assert fitted.map is not None
    return fitted.map


def random_adapters(rank: int | None) -> list[Adapter]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    adapters = []
    for _ in range(4):
        factors = None if rank is None else (normal(9, rank), normal(rank, 9))
        adapters.append(
            Adapter(normal(9, 9) if factors is None else factors[0] @ factors[1], normal(9), factors)
        )
    return adapters


@pytest.mark.parametrize("rank", [None, 2])
def test_merging_is_exact(rank: int | None) -> None:
    adapters = random_adapters(rank)
    merged = merge(adapters)
    state = start = torch.randn(20, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for adapter in adapters:
        state = state + state @ adapter.matrix + adapter.bias
    scale = float(state.abs().max())
    assert (start + start @ merged.matrix + merged.bias - state).abs().max() < 1e-10 * scale
    if rank is not None:
        assert merged.factors is not None
        down, up = merged.factors
        assert down.shape == (9, 4 * rank)
        assert (start + start @ down @ up + merged.bias - state).abs().max() < 1e-10 * scale


@pytest.mark.parametrize("bias", ["free", "penalised"])
def test_each_layer_is_fitted_to_the_originals_states(bias: str) -> None:
    expected = None
    for x, y in zip(layer_states()[:-1], layer_states()[1:], strict=True):
        d = (y - x).numpy()
        if bias == "free":
            ridge = 1e-3 * float((x - x.mean(0)).square().sum()) / WIDTH
            found = Ridge(alpha=ridge, solver="svd").fit(x.numpy(), d)
            matrix, offset = torch.from_numpy(found.coef_.T), torch.from_numpy(found.intercept_)
        else:
            augmented = torch.cat([x, torch.ones(len(x), 1).double()], 1)
            ridge = 1e-3 * float(augmented.square().sum()) / (WIDTH + 1)
            theta = torch.from_numpy(
                Ridge(alpha=ridge, fit_intercept=False, solver="svd").fit(augmented.numpy(), d).coef_.T
            )
            matrix, offset = theta[:-1], theta[-1]
        step = Adapter(matrix, offset)
        expected = step if expected is None else merge([expected, step])
    found_map = fitted_map(f"lra,ridge=1e-3,bias={bias}")
    assert expected is not None
    assert found_map.bias is not None
    torch.testing.assert_close(found_map.matrix(), expected.matrix, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(found_map.bias.double(), expected.bias, rtol=1e-3, atol=1e-5)


def test_the_two_readings_of_the_bias_differ() -> None:
    free, penalised = (fitted_map(f"lra,ridge=1e-1,bias={bias}") for bias in ("free", "penalised"))
    assert free.bias is not None
    assert penalised.bias is not None
    assert penalised.bias.norm() < free.bias.norm()


def test_of_one_layer_it_is_the_affine_map() -> None:
    calib, cut = calibration(), gl.parse_cut("3:4")
    (lra,), (affine,) = (
        gl.fit(calib, cut, f"{name},ridge=1e-3").replacements.values() for name in ("lra", "affine")
    )
    assert torch.equal(lra.map.matrix(), affine.map.matrix())
    assert torch.equal(lra.map.bias, affine.map.bias)


def test_a_direct_fit_has_no_more_training_error() -> None:
    calib, cut = calibration(), gl.parse_cut(f"{START}:{STOP}")
    (composed,), (direct,) = (
        gl.fit(calib, cut, f"{name},ridge=0").blocks.values() for name in ("lra", "affine")
    )
    assert composed.explained_train <= direct.explained_train


def test_too_few_tokens_are_warned_of_as_for_one_map() -> None:
    cut = gl.parse_cut(f"{START}:{STOP}")
    lra, affine = (
        gl.fit(Calibration(tiny_lm(), tiny_windows(2, 16)), cut, f"{name},ridge=1e-3").warnings
        for name in ("lra", "affine")
    )
    assert lra == affine
    assert lra[0].startswith(f"Only 32 calibration tokens for a width of {WIDTH}")
    assert gl.fit(calibration(), cut, "lra,ridge=1e-3").warnings == ()


@pytest.mark.parametrize("factor", ["truncated_svd", "reduced_rank"])
@pytest.mark.parametrize("bias", ["free", "penalised"])
def test_a_rank_is_one_of_each_layer(factor: str, bias: str) -> None:
    layers = STOP - START
    low = fitted_map(f"lra,rank=3,factor={factor},bias={bias}")
    assert low.rank == 3 * layers
    assert low.parameters_added == 2 * WIDTH * 3 * layers + WIDTH
    assert torch.linalg.matrix_rank(low.matrix(), rtol=1e-5) == 3 * layers
    high = fitted_map(f"lra,rank=6,factor={factor},bias={bias}")
    assert high.rank is None, "factors of rank 18 would be larger than the matrix"


def test_the_rank_is_truncated_before_merging() -> None:
    steps = []
    for x, y in zip(layer_states()[:-1], layer_states()[1:], strict=True):
        centred, d = x - x.mean(0), y - x
        matrix = torch.linalg.lstsq(centred, d - d.mean(0)).solution
        left, values, right = torch.linalg.svd(matrix)
        matrix = left[:, :3] * values[:3] @ right[:3]
        steps.append(Adapter(matrix, d.mean(0) - x.mean(0) @ matrix))
    expected = merge(steps)
    torch.testing.assert_close(
        fitted_map("lra,rank=3,ridge=0").matrix(), expected.matrix, rtol=1e-3, atol=1e-4
    )


def test_augmented_moments_are_those_of_augmented_states() -> None:
    x, y = layer_states()[:2]
    found = with_ones(Moments.of(x, y - x))
    expected = Moments.of(torch.cat([x, torch.ones(len(x), 1).double()], 1), y - x)
    for name in ("x", "gram", "cross", "change", "power"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))


def test_sequential_fits_start_from_the_patched_state() -> None:
    cut = gl.parse_cut("1:2,3:5")
    parallel, sequential = (
        gl.fit(calibration(), cut, "lra", order=order) for order in ("parallel", "sequential")
    )
    first, second = cut.blocks
    assert torch.equal(parallel.replacements[first].map.matrix(), sequential.replacements[first].map.matrix())
    assert not torch.equal(
        parallel.replacements[second].map.matrix(), sequential.replacements[second].map.matrix()
    )
