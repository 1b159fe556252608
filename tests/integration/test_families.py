"""Trained weights in other architectures: what is cut and fitted does not depend on the family's code."""

from __future__ import annotations

import pytest
import torch

import ghostlab as gl
from ghostlab.model.model import Model
from ghostlab.model.replacement import Replacement
from ghostlab.text.documents import Text
from tests.helpers.reexpress import FAMILIES, reexpress

pytestmark = pytest.mark.integration
CUT = gl.parse_cut("20:25")
TEXT = "The lighthouse was built in 1811 on a rock that the sea covers twice a day."


@pytest.fixture(scope="module")
def variants(embedded_model: Model, wikipedia: Text) -> dict[str, dict[gl.Block, Replacement]]:
    """What stands in for the blocks, by name, fitted on the Llama model."""
    calib = gl.calibrate(embedded_model, wikipedia, sequences=4, length=64)
    return {"pruned": {}, "ghost_sink": gl.fit(calib, CUT, "ghost_sink").replacements}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_same_weights_in_another_family_give_the_same_logits(
    family: str, embedded_model: Model, variants: dict[str, dict[gl.Block, Replacement]]
) -> None:
    other = Model(reexpress(embedded_model.hf, family), embedded_model.tokenizer, name=family)
    assert (other.family, other.depth, other.width) == (family, 30, 576)
    ids = embedded_model.tokenizer(TEXT, return_tensors="pt").input_ids
    seen = []
    for replacements in variants.values():
        expected = embedded_model.without(CUT, replacements).hf(ids, use_cache=False).logits
        found = other.without(CUT, replacements).hf(ids, use_cache=False).logits
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
        seen.append(expected)
    assert not torch.allclose(*seen, atol=1.0)
