"""What a result says of a map is said of the tokens, weights and states that the map was fitted on."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy.linalg import solve_continuous_lyapunov
from torch import Tensor

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration
from ghostlab.config import FitOrder, RunConfig
from ghostlab.cut import Cut, parse_cut
from ghostlab.lab.probe import fitted_on
from ghostlab.lab.records import recovery_run
from ghostlab.lab.run import measure, variants_of
from ghostlab.model.model import Model
from ghostlab.progress import SILENT
from ghostlab.recovery.fitting import Fit, fit
from ghostlab.results.operator import OperatorReport
from ghostlab.spec import RecoverySpec
from tests.helpers.lm import tiny_lm, tiny_windows

pytestmark = pytest.mark.unit
CUT = parse_cut("1:2,3:5")
FIRST, SECOND = CUT.blocks
WAYS: tuple[tuple[str, FitOrder], ...] = (
    ("ghost,weight=relative,ridge=0", "parallel"),
    ("ghost_sink,ridge=0", "parallel"),
    ("ghost,ridge=0", "sequential"),
    ("ghost_sink,ridge=0", "sequential"),
)


@pytest.fixture(scope="module")
def calib() -> Calibration:
    return Calibration(tiny_lm(), tiny_windows(24, 20, folds=4), batch=8)


@pytest.fixture(scope="module")
def held_out(calib: Calibration) -> Activations:
    return Activations(calib.model, tiny_windows(8, 20, seed=2), batch=3)


def entering(model: Model, layer: int, ids: Tensor) -> Tensor:
    """What the layer at this place of the model is given, [B, T, C], float64."""
    caught: list[Tensor] = []
    place = model.hf.get_decoder().layers[layer]
    hook = place.register_forward_pre_hook(
        lambda _, args, kwargs: caught.append(args[0] if args else kwargs["hidden_states"]), with_kwargs=True
    )
    with torch.no_grad():
        model.hf(ids, use_cache=False)
    hook.remove()
    return caught[0].double()


def seen_by(fitted: Fit, model: Model, ids: Tensor, order: FitOrder) -> tuple[Tensor, Tensor, Tensor]:
    """X, D [N, C] and square roots of weights [N, 1] of the second block, from runs of whole models."""
    spec, after = fitted.spec, entering(model, SECOND.stop, ids)
    before = entering(model, SECOND.start, ids)
    if order == "sequential":
        patched = model.without(Cut((FIRST,)), {FIRST: fitted.replacements[FIRST]})
        before = entering(patched, SECOND.start - FIRST.size, ids)
    if spec.method == "ghost_sink":
        before, after = before[:, 1:], after[:, 1:]
    before, after = before.flatten(0, 1), after.flatten(0, 1)
    weighted = "relative" in str(spec) or spec.method == "ghost_sink"
    root = after.square().mean(-1, keepdim=True).rsqrt() if weighted else torch.ones(len(after), 1).double()
    return before, after - before, root


def report_of(fitted: Fit, calib: Calibration, held_out: Activations, order: FitOrder) -> OperatorReport:
    variants = variants_of(calib.model, CUT, [fitted])
    config = RunConfig(drop=str(CUT), recover=(fitted.spec,), order=order)
    baseline, (measured,) = measure(config, variants, [fitted], held_out, SILENT)
    return recovery_run(measured, baseline).operators[1]


def test_every_block_tells_its_ridge(calib: Calibration, held_out: Activations) -> None:
    alike = fit(calib, CUT, RecoverySpec("ghost", ridge="0.01"))
    second = replace(alike.blocks[SECOND], ridge=0.1)
    apart = replace(alike, blocks={**alike.blocks, SECOND: second})
    for fitted, ridge, ridges in ((alike, 0.01, [0.01, 0.01]), (apart, None, [0.01, 0.1])):
        config = RunConfig(drop=str(CUT), recover=(fitted.spec,))
        variants = variants_of(calib.model, CUT, [fitted])
        baseline, (measured,) = measure(config, variants, [fitted], held_out, SILENT)
        found = recovery_run(measured, baseline)
        assert (found.ridge, found.ridges) == (ridge, ridges), "where blocks differ none is the ridge of both"


@pytest.mark.parametrize(("text", "order"), WAYS)
def test_a_map_is_described_on_what_it_was_fitted_on(
    calib: Calibration, held_out: Activations, text: str, order: FitOrder
) -> None:
    spec = RecoverySpec.parse(text)
    fitted = fit(calib, CUT, spec, order=order)
    report = report_of(fitted, calib, held_out, order)
    (x, d, root), (vx, vd, held_root) = (
        seen_by(fitted, calib.model, windows.ids, order) for windows in (calib.windows, held_out.windows)
    )
    biased = spec.method == "ghost_sink"
    mean_x, mean_d = ((root**2 * t).sum(0) / (root**2).sum() * biased for t in (x, d))
    gram, cross = (
        (root * (x - mean_x)).T @ (root * (x - mean_x)),
        (root * (x - mean_x)).T @ (root * (d - mean_d)),
    )
    symmetric = torch.from_numpy(solve_continuous_lyapunov(gram.numpy(), (cross + cross.T).numpy()))
    free = torch.linalg.lstsq(root * (x - mean_x), root * (d - mean_d)).solution

    def explained(matrix: Tensor) -> float:
        error = held_root * (mean_d + (vx - mean_x) @ matrix - vd)
        return 1 - float(error.square().sum() / (held_root * vd).square().sum())

    assert report.split.explained == pytest.approx(explained(free), abs=1e-3)
    assert report.split.explained_symmetric == pytest.approx(explained(symmetric), abs=1e-3)
    assert report.truncated_svd.explained[-1] == pytest.approx(report.split.explained, abs=1e-9)
    assert report.reduced_rank is not None
    on_fitted = root * (mean_d + (x - mean_x) @ free - d)
    best = 1 - float(on_fitted.square().sum() / (root * d).square().sum())
    assert report.reduced_rank.explained_train[-1] == pytest.approx(best, abs=1e-4)
    assert (report.weight, report.first_apart) == ("relative" if (root != 1).any() else "none", biased)


@pytest.mark.parametrize(("text", "order"), WAYS)
def test_a_changed_map_gets_its_bias_from_what_was_fitted_on(
    calib: Calibration, text: str, order: FitOrder
) -> None:
    fitted = fit(calib, CUT, RecoverySpec.parse(text), order=order)
    config = RunConfig(drop=str(CUT), recover=(fitted.spec,), order=order)
    moments = fitted_on(calib, config, fitted.label, dict(fitted.maps), SILENT)[SECOND]
    x, _, root = seen_by(fitted, calib.model, calib.windows.ids, order)
    torch.testing.assert_close(
        moments.x / moments.count, (root**2 * x).sum(0) / (root**2).sum(), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(moments.gram, (root * x).T @ (root * x), rtol=1e-3, atol=1e-3)
