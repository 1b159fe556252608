"""Refitted layers: exact where they can be, at their optimum elsewhere, sound in every family."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import ghostlab as gl
from ghostlab.calibration.calibrate import Calibration
from ghostlab.cut import Block
from ghostlab.errors import ConfigError, UnsupportedModelError
from ghostlab.model.model import Model
from ghostlab.model.projections import find_projections
from ghostlab.recovery.data import FitData
from ghostlab.recovery.keep import screening_batches
from ghostlab.recovery.refit import Setup, outputs, refit
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import FAMILY_OPTIONS, tiny_ids
from tests.unit.test_decoder import cached_logits

pytestmark = pytest.mark.unit
NORMED = {"gemma2", "gemma3_text", "olmo2"}
PLAIN = sorted(set(FAMILY_OPTIONS) - NORMED)


def calibration(family: str = "llama", count: int = 24) -> Calibration:
    return Calibration(tiny_lm(family), tiny_windows(count=count, length=24), batch=8)


def setup(model: Model, *, beside: bool = False, weighted: bool = True, ridge: str = "1e-12") -> Setup:
    return Setup(find_projections(model), beside=beside, weighted=weighted, ridge=ridge)


@pytest.mark.parametrize("family", PLAIN)
def test_a_block_of_one_layer_gives_that_layer_back(family: str) -> None:
    """The exact solution is the layer's own weights."""
    calib = calibration(family, count=60)
    data = FitData(calib, Block(2, 3))
    fitted = refit(data, 2, setup(calib.model))
    layer = calib.model.decoder.blocks[2]
    for before, after, output in outputs(data, fitted):
        assert not torch.equal(before, after)
        torch.testing.assert_close(output[:, 1:], after[:, 1:], rtol=1e-3, atol=1e-3)
    for path, weight in fitted.weights.items():
        if path.endswith("weight"):  # the biases of the two projections may trade places
            torch.testing.assert_close(weight.float(), layer.get_parameter(path), rtol=2e-2, atol=2e-2)


def test_the_attention_solve_is_least_squares() -> None:
    calib = calibration()
    data, block = FitData(calib, Block(1, 4)), calib.model.decoder.blocks[2]
    asked = replace(setup(calib.model, weighted=False, ridge="0"), attention="alone")
    fitted = refit(data, 2, asked)
    heads, change = [], []
    for rows, states in calib.states({1, 4}):
        block.self_attn.o_proj.register_forward_pre_hook(
            lambda _, args: heads.append(args[0][:, 1:].flatten(0, 1))
        )
        args, kwargs = calib.calls(rows, 4).calls[2]
        block(states[1], *args, **kwargs)
        block.self_attn.o_proj._forward_pre_hooks.clear()
        change.append((states[4] - states[1])[:, 1:].flatten(0, 1))
    expected = torch.linalg.lstsq(torch.cat(heads).double(), torch.cat(change).double()).solution
    torch.testing.assert_close(
        fitted.weights["self_attn.o_proj.weight"].T.double(), expected, rtol=1e-3, atol=1e-3
    )


def test_the_mlp_solve_is_at_its_minimum_given_the_attention() -> None:
    """No small change of W_d lowers the error: its gradient by autograd is zero."""
    calib = calibration()
    data = FitData(calib, Block(1, 4))
    fitted = refit(data, 2, setup(calib.model, weighted=False, ridge="0"))
    layer = calib.model.decoder.blocks[2]
    weight = fitted.weights["mlp.down_proj.weight"].float().requires_grad_(True)
    loss = torch.zeros(())
    for rows, states in calib.states({1, 4}):
        args, kwargs = calib.calls(rows, 4).calls[2]
        changed = {"self_attn.o_proj.weight": fitted.weights["self_attn.o_proj.weight"].float()}
        parameters = {**dict(layer.named_parameters()), **changed, "mlp.down_proj.weight": weight}
        output = torch.func.functional_call(layer, parameters, (states[1], *args), kwargs)
        loss = loss + (output - states[4])[:, 1:].square().sum()
    loss.backward()
    scale = float(loss.detach()) ** 0.5 * weight.detach().norm()
    assert float(weight.grad.norm()) < 1e-3 * float(scale)


@pytest.mark.parametrize("beside", [False, True])
def test_a_map_beside_never_hurts_on_the_fitted_tokens(beside: bool) -> None:
    calib = calibration(count=60)
    data = FitData(calib, Block(1, 5))
    errors = [refit(data, 2, setup(calib.model, beside=b, ridge="1e-9")) for b in (False, True)]
    left = []
    for fitted in errors:
        missed = sum(float((o - y)[:, 1:].square().sum()) for _, y, o in outputs(data, fitted))
        left.append(missed)
    assert left[1] < left[0]


@pytest.mark.parametrize("method", ["refit_layer", "ghost_layer"])
@pytest.mark.parametrize("first", ["auto", "offset", "layer"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "gpt_neox", "opt", "granite"])
def test_the_variant_does_what_was_fitted(method: str, first: str, family: str, tmp_path: Path) -> None:
    calib = calibration(family)
    cut = gl.parse_cut("1:4")
    fitted = gl.fit(calib, cut, f"{method},first={first},layer=2")
    (block_fit,) = fitted.blocks.values()
    recovered = gl.apply(calib.model, cut, fitted)
    assert recovered.depth == 4
    assert recovered.kept == (0, 2, 4, 5)
    # what is explained on the calibration tokens, measured again through the model itself
    missed = gap = 0.0
    for rows, states in calib.states({1, 4}):
        state = recovered.resume(replace(calib.calls(rows, 6), states=states), 4)
        missed += float((state - states[4]).double().square().sum())
        gap += float((states[4] - states[1]).double().square().sum())
    assert block_fit.explained_train == pytest.approx(1 - missed / gap, abs=1e-4)
    ids = tiny_ids()
    full = recovered.hf(ids, use_cache=False).logits
    torch.testing.assert_close(cached_logits(recovered.hf, ids, 12), full, rtol=1e-4, atol=1e-4)
    again = gl.load_recovered(recovered.save(tmp_path / "out"))
    torch.testing.assert_close(again.hf(ids, use_cache=False).logits, full, rtol=0, atol=0)


def test_parameters_of_the_kept_layer_are_counted() -> None:
    calib = calibration()
    cut = gl.parse_cut("1:4")
    pruned = gl.apply(calib.model, cut)
    recovered = gl.apply(calib.model, cut, gl.fit(calib, cut, "refit_layer,layer=1,first=layer"))
    layer = sum(p.numel() for p in calib.model.decoder.blocks[1].parameters())
    assert recovered.parameters - pruned.parameters == layer


def test_auto_takes_the_layer_with_the_least_error() -> None:
    calib = calibration(count=40)
    fitted = gl.fit(calib, gl.parse_cut("1:4"), "refit_layer")
    details = fitted.blocks[Block(1, 4)].details
    screened = details["screened"]
    assert set(screened) == {"1", "2", "3"}
    assert str(details["layer"]) == min(screened, key=screened.__getitem__)


@pytest.mark.parametrize("layer", ["5", "\N{SUPERSCRIPT TWO}", "-1", "x"])
def test_a_layer_outside_the_block_is_refused(layer: str) -> None:
    with pytest.raises(ConfigError, match="1 to 3"):
        gl.fit(calibration(), gl.parse_cut("1:4"), f"refit_layer,layer={layer}")


@pytest.mark.parametrize(
    ("folds", "size", "chosen"),
    [
        ([0] * 8 + [1] * 8, 2, {0, 4}),  # every fourth of eight batches, two folds among them
        ([0] * 14 + [1] * 2, 2, {0, 4, 7}),  # a small second fold would be missed
        ([1] + [0] * 15, 1, {0, 4, 8, 12}),
        ([0] * 16, 2, {0, 4}),  # there is no second fold
        ([0, 1], 8, {0}),
        ([0, 0, 1], 1, {0, 1, 2}),
    ],
)
def test_candidates_are_compared_on_two_folds_where_there_are_two(
    folds: list[int], size: int, chosen: set[int]
) -> None:
    found = screening_batches(torch.tensor(folds), size)
    assert found == chosen
    seen = {fold for batch in found for fold in folds[batch * size : (batch + 1) * size]}
    assert len(seen) >= min(2, len(set(folds)))


def test_a_ridge_that_nothing_can_validate_is_mentioned() -> None:
    calib = Calibration(tiny_lm("llama"), tiny_windows(count=2, length=24, folds=1), batch=8)
    (fitted,) = gl.fit(calib, gl.parse_cut("1:3"), "refit_layer").blocks.values()
    assert any("fixed at 1e-4" in warning for warning in fitted.warnings)


@pytest.mark.parametrize("family", sorted(NORMED))
def test_families_that_normalise_are_refused_with_the_reason(family: str) -> None:
    with pytest.raises(UnsupportedModelError, match="normalise"):
        gl.fit(calibration(family), gl.parse_cut("1:4"), "refit_layer")
