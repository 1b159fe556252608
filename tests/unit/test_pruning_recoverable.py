"""Recoverable error against refits fold by fold, and the divergence after recovery against a built variant."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.moments import massive_tokens
from ghostlab.calibration.solve import RELATIVE_RIDGES
from ghostlab.cut import Block, Cut
from ghostlab.pruning.registry import score
from ghostlab.recovery.fitting import apply, fit
from tests.helpers.lm import tiny_lm, tiny_windows

pytestmark = pytest.mark.unit

COUNT = 2


def calibration(folds: int = 3, family: str = "llama") -> Calibration:
    return Calibration(tiny_lm(family), tiny_windows(12, 24, folds=folds), batch=5)


def error_by_hand(calib: Calibration, block: Block) -> float:
    """Ridge as least squares with extra rows, refitted for every fold and every ridge; numpy's lstsq."""
    trace = calib.model.decoder.trace(calib.windows.ids, {block.start, block.stop})
    x, y = (trace.states[b].double() for b in (block.start, block.stop))
    later = torch.ones(x.shape[:2], dtype=torch.bool)
    later[:, 0] = False
    ordinary = later & ~massive_tokens(x, y)
    errors = np.zeros(len(RELATIVE_RIDGES))
    for fold in range(calib.folds):
        inside = (calib.windows.fold == fold)[:, None]
        train, test = later & ~inside, ordinary & inside
        a, d = x[train].numpy(), (y - x)[train].numpy()
        weight = 1 / y[train].square().mean(-1).numpy()
        centre, shift = (np.average(part, axis=0, weights=weight) for part in (a, d))
        root = np.sqrt(weight)[:, None]
        scale = np.square(root * (a - centre)).sum() / a.shape[1]
        for number, ridge in enumerate(RELATIVE_RIDGES):
            rows = np.vstack([root * (a - centre), math.sqrt(ridge * scale) * np.eye(a.shape[1])])
            matrix = np.linalg.lstsq(
                rows, np.vstack([root * (d - shift), np.zeros((a.shape[1],) * 2)]), rcond=None
            )[0]
            missed = (x[test].numpy() - centre) @ matrix + shift - (y - x)[test].numpy()
            errors[number] += (np.square(missed).sum(1) / y[test].square().mean(-1).numpy()).sum()
    return math.sqrt(errors.min() / (int(ordinary.sum()) * y.shape[-1]))


def test_recoverable_is_the_error_of_refits_fold_by_fold() -> None:
    calib = calibration()
    found = score(calib, "recoverable", COUNT)
    assert str(found.candidates[0]) == "0:2"
    assert str(found.candidates[-1]) == "4:6"
    assert found.values == pytest.approx([error_by_hand(calib, b) for b in found.candidates], rel=1e-4)
    assert found.cut.blocks == (min(zip(found.values, found.candidates, strict=True))[1],)
    assert "3 folds" in found.convention


def test_recoverable_with_one_fold_looks_at_the_fitted_tokens_and_says_so() -> None:
    found = score(calibration(folds=1), "recoverable", COUNT)
    assert "on the fitted tokens" in found.convention
    assert all(0 < value < 1 for value in found.values)


def test_moments_of_many_blocks_do_not_depend_on_how_many_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score(calibration(), "recoverable", COUNT).values
    monkeypatch.setattr("ghostlab.calibration.calibrate.MOMENT_BYTES", 1)
    assert score(calibration(), "recoverable", COUNT).values == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_recoverable_kl_is_that_of_the_recovered_variant_on_unseen_windows(family: str) -> None:
    calib = calibration(family=family)
    found = score(calib, "recoverable_kl,candidates=3,windows=99", COUNT)
    errors = score(calib, "recoverable", COUNT).values
    shortlist = sorted(range(len(errors)), key=errors.__getitem__)[:3]
    windows, test = calib.windows, calib.windows.fold == calib.folds - 1
    train = Calibration(
        calib.model, type(windows)(windows.ids[~test], windows.fold[~test], windows.bytes[~test], False, "")
    )
    original = calib.model.hf(windows.ids[test]).logits[:, :-1].double().log_softmax(-1)
    expected = {}
    for index in shortlist:
        cut = Cut((found.candidates[index],))
        recovered = apply(calib.model, cut, fit(train, cut, "ghost_sink"))
        other = recovered.hf(windows.ids[test]).logits[:, :-1].double().log_softmax(-1)
        expected[index] = float((original.exp() * (original - other)).sum(-1).mean())
    scored = {index: value for index, value in enumerate(found.values) if math.isfinite(value)}
    assert scored == pytest.approx(expected, rel=2e-3, abs=5e-7)
    assert found.cut.blocks == (found.candidates[min(expected, key=expected.__getitem__)],)
    assert "not fitted on" in found.convention
