"""Every recovery on every family: fits, runs with and without cache, saves and loads; or says why it cannot."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch

import ghostlab as gl
from ghostlab.calibration.calibrate import Calibration
from ghostlab.errors import UnsupportedModelError
from ghostlab.model.lm import Model
from ghostlab.recovery.registry import METHODS
from ghostlab.spec import RecoverySpec
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import FAMILY_OPTIONS, tiny_ids
from tests.unit.test_decoder import cached_logits

pytestmark = pytest.mark.unit
IDS = tiny_ids(2, 10)
CUT = gl.parse_cut("1:3,5:6")
NORMED = {"gemma2", "gemma3_text", "olmo2"}
REWRITES = {"replaceme_ls", "replaceme_cosine", "refit_layer", "ghost_layer"}
"""Methods that give a layer new weights."""


@cache
def calibration(family: str) -> Calibration:
    return Calibration(tiny_lm(family), tiny_windows())


@cache
def pruned_logits(family: str) -> torch.Tensor:
    return gl.apply(calibration(family).model, CUT).hf(IDS, use_cache=False).logits


def quick(name: str) -> RecoverySpec:
    return RecoverySpec.parse("replaceme_cosine,epochs=2" if name == "replaceme_cosine" else name)


def generated(model: Model, ids: torch.Tensor, *, padding: int) -> torch.Tensor:
    """Tokens after ``ids``, which stand behind ``padding`` tokens of padding."""
    batch, length = ids.shape
    padded = torch.cat([torch.zeros(batch, padding, dtype=torch.long), ids], 1)
    mask = (torch.arange(padding + length) >= padding).long().expand(batch, -1)
    made = model.hf.generate(
        padded, attention_mask=mask, max_new_tokens=3, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return made[:, padding + length :]


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_recovery_on_every_family(name: str, family: str, tmp_path: Path) -> None:
    calib = calibration(family)
    model = calib.model
    if name in REWRITES and family in NORMED:
        with pytest.raises(UnsupportedModelError, match="normalise what they add"):
            gl.fit(calib, CUT, quick(name))
        return
    fitted = gl.fit(calib, CUT, quick(name))
    recovered = gl.apply(model, CUT, fitted)
    logits = recovered.hf(IDS, use_cache=False).logits
    assert torch.isfinite(logits).all()
    assert torch.equal(logits, pruned_logits(family)) == (name == "drop"), "a recovery must change something"
    torch.testing.assert_close(cached_logits(recovered.hf, IDS, 6), logits, rtol=1e-4, atol=1e-4)
    if any(standin.map is not None and standin.map.first is not None for standin in fitted.standins.values()):
        assert torch.equal(generated(recovered, IDS, padding=4), generated(recovered, IDS, padding=0))
    again = gl.load_recovered(recovered.save(tmp_path / "out"))
    assert torch.equal(again.hf(IDS, use_cache=False).logits, logits)
    assert again.parameters == recovered.parameters
