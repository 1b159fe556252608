"""Every family: wherever the block, whatever stands in for it, in both precisions, cached and padded.

One matrix, family x {first, middle, last block} x operator x precision; in it one thing is checked: tokens
generated with a cache, behind padding on the left and past the windows of attention, have the logits of one
plain forward pass over the whole. That pass is checked, for a plain drop, against blocks run by hand; more of that
is in ``test_decoder.py``.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForSeq2SeqLM

import ghostlab as gl
from ghostlab.calibration.calibrate import Calibration
from ghostlab.errors import ConfigError, UnsupportedModelError
from ghostlab.model.decoder import Decoder
from ghostlab.model.families import FAMILIES
from ghostlab.model.model import Model
from ghostlab.recovery.fitting import Fit
from ghostlab.recovery.registry import OPERATORS
from ghostlab.spec import RecoverySpec
from tests.helpers.lm import check_generation, tiny_lm, tiny_windows
from tests.helpers.tiny import FAMILY_OPTIONS, tiny_ids
from tests.unit.test_decoder import by_hand

pytestmark = pytest.mark.unit
IDS = tiny_ids(2, 24)
BLOCKS = {"first": "0:1", "middle": "2:3", "last": "3:6"}
ASKED = ("drop", "ghost_sink", "refit_layer,first=offset", "replaceme_ls")
NORMED = {"gemma2", "gemma3_text", "olmo2"}
OTHERS = sorted(set(OPERATORS) - {RecoverySpec.parse(name).method for name in ASKED})
"""Each block of each family gets one of these too, in rotation."""

REWRITES = {"replaceme_ls", "replaceme_cosine", "refit_layer", "ghost_layer"}
"""Methods that give a layer new weights."""

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 4e-2}


@cache
def model(family: str, dtype: torch.dtype) -> Model:
    return tiny_lm(family, dtype=dtype)


@cache
def calibration(family: str) -> Calibration:
    return Calibration(model(family, torch.float32), tiny_windows(count=3))


@cache
def fit(family: str, cut: gl.Cut, method: str) -> Fit | None:
    """The recovery; ``None`` where it is impossible, if the reason given is the right one."""
    name = method.partition(",")[0]
    if name in {"replaceme_ls", "replaceme_cosine"} and cut.blocks[0].start == 0:
        with pytest.raises(ConfigError, match="none precedes"):
            gl.fit(calibration(family), cut, method)
        return None
    if name in REWRITES and family in NORMED:
        with pytest.raises(UnsupportedModelError, match="normalise what they add"):
            gl.fit(calibration(family), cut, method)
        return None
    return gl.fit(calibration(family), cut, RecoverySpec.parse(method))


def other(family: str, where: str, dtype: torch.dtype) -> list[str]:
    """The operator that comes on top in this cell, if one does."""
    cell = sorted(FAMILY_OPTIONS).index(family) * len(BLOCKS) + list(BLOCKS).index(where)
    return [with_options(OTHERS[cell % len(OTHERS)])] if dtype == torch.float32 else []


def with_options(name: str) -> str:
    """The operator, with as little to do as it can have."""
    return f"{name},epochs=2" if name == "replaceme_cosine" else name


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["fp32", "bf16"])
@pytest.mark.parametrize("where", BLOCKS)
@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
def test_cached_and_padded_equals_plain(family: str, where: str, dtype: torch.dtype) -> None:
    cut = gl.parse_cut(BLOCKS[where])
    seen = []
    for method in (*ASKED, *other(family, where, dtype)):
        fitted = fit(family, cut, method)
        if fitted is not None:
            hf = gl.apply(model(family, dtype), cut, fitted).hf
            check_generation(hf, IDS, TOLERANCE[dtype])
            seen.append(hf(IDS, use_cache=False).logits)
    assert all(torch.isfinite(logits).all() for logits in seen)
    assert not any(torch.equal(logits, seen[0]) for logits in seen[1:]), "a recovery must change something"
    if dtype == torch.float32:
        expected = by_hand(model(family, dtype).hf, IDS, BLOCKS[where], recovered=False)
        torch.testing.assert_close(seen[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "gemma2"])
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_recovery_runs(name: str, family: str) -> None:
    cut = gl.parse_cut("1:3,5:6")
    fitted = fit(family, cut, with_options(name))
    if fitted is not None:
        original = model(family, torch.float32)
        recovered, pruned = gl.apply(original, cut, fitted).hf, gl.apply(original, cut).hf
        check_generation(recovered, IDS, TOLERANCE[torch.float32])
        same = torch.equal(recovered(IDS, use_cache=False).logits, pruned(IDS, use_cache=False).logits)
        assert same == (name == "drop"), "a recovery must change something"


def test_every_listed_family_is_tested_and_every_operator_comes_round() -> None:
    assert set(FAMILY_OPTIONS) == set(FAMILIES)
    cells = product(FAMILY_OPTIONS, BLOCKS, TOLERANCE)
    assert {RecoverySpec.parse(name).method for cell in cells for name in other(*cell)} == set(OTHERS)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("t5", "an encoder-decoder"),
        ("mixtral", "a mixture of experts"),
        ("qwen3_moe", "a mixture of experts"),
        ("deepseek_v3", "a mixture of experts"),
        ("gpt_oss", "a mixture of experts"),
        ("mamba", "recurrent or state-space layers"),
        ("jamba", "recurrent or state-space layers"),
        ("falcon_h1", "recurrent or state-space layers"),
        ("recurrent_gemma", "recurrent or state-space layers"),
        ("qwen3_next", "recurrent or state-space layers"),
        ("rwkv", "recurrent or state-space layers"),
    ],
)
def test_other_kinds_of_models_are_refused_by_name(family: str, kind: str) -> None:
    with torch.device("meta"):
        made = (AutoModelForSeq2SeqLM if family == "t5" else AutoModelForCausalLM).from_config(
            CONFIG_MAPPING[family]()
        )
    with pytest.raises(UnsupportedModelError, match=f"'{family}' are not supported: it (is|has) {kind}"):
        Decoder(made)
