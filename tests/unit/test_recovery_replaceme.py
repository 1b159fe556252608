"""ReplaceMe: the transform against lstsq and descent, exact merging, refusals."""

from __future__ import annotations

from functools import cache

import pytest
import torch

import ghostlab as gl
from ghostlab.calibration.calibrate import Calibration
from ghostlab.cut import Block
from ghostlab.errors import Cancelled, ConfigError, UnsupportedModelError
from ghostlab.model.projections import find_projections, weight_of
from ghostlab.model.replacement import Replacement
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.recovery.data import FitData
from ghostlab.recovery.mlp import MlpBefore
from ghostlab.recovery.replaceme_cosine import steps
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import WIDTH

pytestmark = pytest.mark.unit
START, STOP = 2, 4
FAMILIES = ["llama", "gpt2", "granite", "falcon", "opt", "phi"]
"""Plain, Conv1D with bias, scaled residual, parallel, no MLP module of its own, parallel with bias."""
BLOCK = Block(START, STOP)
CUT = gl.parse_cut(f"{START}:{STOP}")


@cache
def calibration(family: str) -> Calibration:
    return Calibration(tiny_lm(family), tiny_windows(12, 16))


def states(family: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """M, x_s - c M and x_e [N, C], float64, with M seen by a hook of the test's own."""
    calib = calibration(family)
    seen: list[torch.Tensor] = []
    path = find_projections(calib.model).mlp
    module = calib.model.decoder.blocks[START - 1].get_submodule(path)
    handle = module.register_forward_hook(lambda _m, _a, out: seen.append(out.clone()))
    trace = calib.model.decoder.trace(calib.windows.ids, {START, STOP})
    handle.remove()
    output = seen[0].reshape(-1, WIDTH).double()
    scale = calib.model.hf.config.residual_multiplier if family == "granite" else 1.0
    before, after = (trace.states[b].flatten(0, 1).double() for b in (START, STOP))
    return scale * output, before - scale * output, after


def transform(family: str, replacement: Replacement) -> torch.Tensor:
    """T, read back from the new weights."""
    model = calibration(family).model
    path = find_projections(model).mlp
    old = weight_of(model.decoder.blocks[START - 1].get_submodule(path)).double()
    new = replacement.weights[f"{path}.weight"].double()
    return torch.linalg.lstsq(old, new if family == "gpt2" else new.T).solution


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weight", ["none", "relative"])
def test_least_squares_equals_lstsq(family: str, weight: str) -> None:
    output, rest, target = states(family)
    root = (
        target.square().mean(-1, keepdim=True).rsqrt() if weight == "relative" else torch.ones(1, 1).double()
    )
    expected = torch.linalg.lstsq(root * output, root * (target - rest)).solution
    fitted = gl.fit(calibration(family), CUT, f"replaceme_ls,ridge=0,weight={weight}").blocks[BLOCK]
    assert fitted.replacement is not None
    assert fitted.replacement.layer == START - 1
    torch.testing.assert_close(transform(family, fitted.replacement), expected, rtol=1e-2, atol=1e-3)
    error = (output @ expected + rest - target).square().sum()
    gap = (target - rest - output).square().sum()
    assert fitted.explained_train == pytest.approx(1 - float(error / gap), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_edited_layer_hands_over_what_was_fitted(family: str) -> None:
    """State at the survivor after the block = rest + M T, biases and all, from the model as it is applied."""
    calib = calibration(family)
    fitted = gl.fit(calib, CUT, "replaceme_ls,ridge=1e-2")
    recovered = gl.apply(calib.model, CUT, fitted)
    assert recovered.parameters == gl.apply(calib.model, CUT).parameters, "nothing is added"
    assert recovered.first_change == START - 1
    found = recovered.decoder.trace(calib.windows.ids, {START}).states[START].flatten(0, 1).double()
    output, rest, target = states(family)
    replacement = fitted.replacements[BLOCK]
    torch.testing.assert_close(found, rest + output @ transform(family, replacement), rtol=1e-3, atol=1e-3)
    gap = (target - rest - output).square().sum()
    share = 1 - float((found - target).square().sum() / gap)
    assert fitted.blocks[BLOCK].explained_train == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_identity_changes_nothing(family: str) -> None:
    before = MlpBefore(FitData(calibration(family), BLOCK), "test")
    replacement = before.replacement(torch.zeros(WIDTH, WIDTH).double())
    assert all(
        torch.equal(value, before.data.model.decoder.blocks[START - 1].get_parameter(path))
        for path, value in replacement.weights.items()
    )


@pytest.mark.parametrize("family", ["llama", "granite"])
def test_cosine_is_adam_on_the_papers_loss(family: str) -> None:
    output, rest, target = (part.float() for part in states(family))
    t = torch.eye(WIDTH, requires_grad=True)
    adam = torch.optim.Adam([t], lr=1e-3)
    for _ in range(20):  # 192 tokens are one batch
        loss = (1 - torch.cosine_similarity(output @ t, target - rest, dim=-1)).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    fitted = gl.fit(calibration(family), CUT, "replaceme_cosine,lr=1e-3,epochs=20").blocks[BLOCK]
    assert fitted.replacement is not None
    torch.testing.assert_close(
        transform(family, fitted.replacement), t.detach().double(), rtol=1e-2, atol=1e-3
    )
    losses = fitted.details["cosine_distance"]
    assert losses[-1] == pytest.approx(float(loss.detach()), abs=1e-4)
    assert losses == sorted(losses, reverse=True)
    error = (output @ t.detach() + rest - target).square().sum()
    gap = (target - rest - output).square().sum()
    assert fitted.explained_train == pytest.approx(1 - float(error / gap), abs=1e-3)


def test_the_papers_settings_are_the_defaults() -> None:
    fitted = gl.fit(calibration("llama"), CUT, "replaceme_cosine").blocks[BLOCK]
    assert (fitted.details["epochs"], fitted.details["lr"]) == (10, 1e-4)


def test_steps_are_of_equal_size_and_lose_no_token() -> None:
    parts = [torch.arange(a, b).float()[:, None] for a, b in ((0, 5), (5, 6), (6, 20), (20, 23))]
    found = list(steps(((part, -part) for part in parts), tokens=4))
    assert [len(a) for a, _ in found] == [4] * 5 + [3]
    assert torch.equal(torch.cat([a for a, _ in found]), torch.arange(23).float()[:, None])
    assert all(torch.equal(a, -b) for a, b in found)


@pytest.mark.parametrize("name", ["replaceme_ls", "replaceme_cosine"])
def test_refusals_say_why(name: str) -> None:
    with pytest.raises(ConfigError, match=r"none precedes 0:2"):
        gl.fit(calibration("llama"), gl.parse_cut("0:2"), name)
    normed = Calibration(tiny_lm("opt", do_layer_norm_before=False, word_embed_proj_dim=16), tiny_windows())
    with pytest.raises(UnsupportedModelError, match="normalise the residual stream itself"):
        gl.fit(normed, CUT, name)


def test_stopping_is_obeyed_between_epochs() -> None:
    token = CancelToken()
    seen: list[float] = []

    def listen(update: ProgressUpdate) -> None:
        seen.append(update.fraction)
        if update.fraction > 0.5:
            token.cancel()

    with pytest.raises(Cancelled):
        gl.fit(calibration("llama"), CUT, "replaceme_cosine,epochs=4", progress=Progress(listen, token))
    assert seen == sorted(seen), "progress never goes back"


def test_sequential_fits_see_the_patched_layer_before() -> None:
    cut = gl.parse_cut("1:2,3:5")
    parallel, sequential = (
        gl.fit(calibration("llama"), cut, "replaceme_ls", order=order) for order in ("parallel", "sequential")
    )
    first, second = cut.blocks
    key = "mlp.down_proj.weight"
    assert torch.equal(parallel.replacements[first].weights[key], sequential.replacements[first].weights[key])
    assert not torch.equal(
        parallel.replacements[second].weights[key], sequential.replacements[second].weights[key]
    )
    calib = calibration("llama")
    recovered = gl.apply(calib.model, cut, sequential)
    state = recovered.decoder.trace(calib.windows.ids, {2}).states[2]
    target = calib.model.decoder.trace(calib.windows.ids, {5}).states[5]
    calls = gl.apply(calib.model, cut, gl.fit(calib, cut, "replaceme_ls")).decoder.trace(
        calib.windows.ids, {2}
    )
    assert (state - target).square().sum() < (calls.states[2] - target).square().sum()
