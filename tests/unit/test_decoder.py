"""Replay of spans, cutting and replacements on every supported family, against the ordinary forward pass."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from ghostlab.cut import Block, parse_cut
from ghostlab.errors import CutError, UnsupportedModelError
from ghostlab.model.decoder import Decoder
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.model.surgery import attach, clone, keep_only, without_maps
from tests.helpers.lm import tiny_lm
from tests.helpers.tiny import DEPTH, FAMILY_OPTIONS, WIDTH, tiny_ids, tiny_model

pytestmark = pytest.mark.unit
CUTS = ("0:2,3:4", "1:3,4:6")
families = pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))


def random_replacements(cut_text: str) -> dict[Block, Replacement]:
    generator = torch.Generator().manual_seed(3)
    return {
        block: Replacement(
            AffineMap(
                0.1 * torch.randn(WIDTH, WIDTH, generator=generator),
                bias=0.1 * torch.randn(WIDTH, generator=generator),
            )
        )
        for block in parse_cut(cut_text)
    }


def variant(model: PreTrainedModel, cut_text: str, *, recovered: bool) -> PreTrainedModel:
    cut = parse_cut(cut_text)
    cut_model = keep_only(model, cut.kept(DEPTH))
    if recovered:
        attach(cut_model, cut.kept(DEPTH), random_replacements(cut_text))
    return cut_model


def by_hand(model: PreTrainedModel, ids: torch.Tensor, cut_text: str, *, recovered: bool) -> torch.Tensor:
    """Logits of a variant by running the original's blocks one by one, skipping and mapping as the cut says."""
    decoder = Decoder(model)
    trace = decoder.trace(ids, range(DEPTH + 1))
    replacements = random_replacements(cut_text) if recovered else {}
    state, position = trace.states[0], 0
    for block in parse_cut(cut_text):
        state = decoder.run_span(state, position, block.start, trace)
        if block in replacements:
            fitted = replacements[block].map
            m, b = fitted.matrix().float(), fitted.bias
            state = state + state @ m + b
        position = block.stop
    state = decoder.run_span(state, position, DEPTH, trace)
    return decoder.run_head(decoder.run_tail(state))


def cached_logits(model: PreTrainedModel, ids: torch.Tensor, split: int) -> torch.Tensor:
    """Logits of a prompt of ``split`` tokens and then of one token at a time."""
    out = model(ids[:, :split], use_cache=True)
    parts = [out.logits]
    for t in range(split, ids.shape[1]):
        out = model(ids[:, t : t + 1], cache=out.past_key_values, use_cache=True)
        parts.append(out.logits)
    return torch.cat(parts, dim=1)


@families
def test_replaying_any_span_equals_the_forward_pass(family: str) -> None:
    model, ids = tiny_model(family), tiny_ids()
    decoder = Decoder(model)
    mask = torch.ones_like(ids)
    mask[1, :7] = 0
    padded = decoder.trace(ids, range(DEPTH + 1), mask=mask)
    state = decoder.run_span(padded.states[1], 1, DEPTH, padded)
    logits = decoder.run_head(decoder.run_tail(state))
    assert torch.equal(logits[mask.bool()], model(ids, attention_mask=mask).logits[mask.bool()])
    trace = decoder.trace(ids, range(DEPTH + 1))
    for start, stop in ((0, 6), (0, 1), (2, 5), (5, 6), (3, 3)):
        state = decoder.run_span(trace.states[start], start, stop, trace)
        assert torch.equal(state, trace.states[stop])
    logits = decoder.run_head(decoder.run_tail(trace.states[DEPTH]))
    assert torch.equal(logits, model(ids).logits)


@families
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("recovered", [False, True])
def test_a_variant_equals_the_blocks_run_by_hand(family: str, cut: str, recovered: bool) -> None:
    model, ids = tiny_model(family), tiny_ids()
    before = model(ids).logits
    expected = by_hand(model, ids, cut, recovered=recovered)
    cut_model = variant(model, cut, recovered=recovered)
    torch.testing.assert_close(cut_model(ids, use_cache=False).logits, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(expected, before, atol=1e-3), (
        "the cut must matter for this test to mean anything"
    )
    assert torch.equal(model(ids).logits, before), "the original must not change"


@families
def test_config_is_trimmed_and_blocks_renumbered(family: str) -> None:
    model = tiny_model(family)
    cut_model = variant(model, "0:2,3:4", recovered=False)
    assert cut_model.config.num_hidden_layers == 3
    assert model.config.num_hidden_layers == DEPTH
    for name, value in vars(model.config).items():
        if isinstance(value, list) and len(value) == DEPTH:
            assert getattr(cut_model.config, name) == [value[i] for i in (2, 4, 5)]
    indices = {
        m.layer_idx: None
        for m in Decoder(cut_model).blocks.modules()
        if isinstance(getattr(m, "layer_idx", None), int)
    }
    assert list(indices) in ([0, 1, 2], [])
    type(model.config).from_dict(
        cut_model.config.to_dict()
    )  # strict configs refuse lists of the wrong length


def test_variants_share_every_weight() -> None:
    model = tiny_model()
    cut_model = variant(model, "1:5", recovered=True)
    own = {id(p) for p in model.parameters()}
    assert all(id(p) in own for p in cut_model.parameters())


def test_replacements_can_be_taken_out_again() -> None:
    model, ids = tiny_model(), tiny_ids()
    recovered = variant(model, "1:3,5:6", recovered=True)
    bare = without_maps(recovered)
    assert torch.equal(bare(ids).logits, variant(model, "1:3,5:6", recovered=False)(ids).logits)
    assert not torch.equal(bare(ids).logits, recovered(ids).logits)


def test_replacements_follow_the_precision_of_the_state() -> None:
    model = variant(tiny_model(dtype=torch.bfloat16), "2:4", recovered=True)
    logits = model(tiny_ids()).logits
    assert logits.dtype == torch.bfloat16
    reference = variant(tiny_model(), "2:4", recovered=True)(tiny_ids()).logits
    assert (logits.float() - reference).abs().mean() < 0.05 * reference.abs().mean()


def test_trace_stops_after_the_last_boundary() -> None:
    model = tiny_model()
    seen: list[int] = []
    for index, block in enumerate(Decoder(model).blocks):
        block.register_forward_hook(lambda *_, index=index: seen.append(index))
    trace = Decoder(model).trace(tiny_ids(), {1, 3})
    assert seen == [0, 1, 2]
    assert set(trace.states) == {1, 3}
    assert all(not b._forward_pre_hooks for b in Decoder(model).blocks), "hooks must be removed"


def test_lists_inside_the_blocks_are_not_taken_for_the_stack() -> None:
    model = tiny_model("stablelm", qk_layernorm=True)  # holds a norm for each of its 4 heads
    cut_model = variant(model, "1:3", recovered=False)
    assert Decoder(cut_model).layout.blocks == "model.layers"
    ids = tiny_ids()
    expected = by_hand(model, ids, "1:3", recovered=False)
    torch.testing.assert_close(cut_model(ids, use_cache=False).logits, expected, rtol=1e-4, atol=1e-5)


def test_position_dependent_blocks_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="position"):
        Decoder(tiny_model("gpt2", scale_attn_by_inverse_layer_idx=True))


@pytest.mark.parametrize(("cut", "says"), [("4:7", "outside"), ("0:6", "all 6")])
def test_impossible_cuts_are_refused(cut: str, says: str) -> None:
    with pytest.raises(CutError, match=says):
        tiny_lm().without(parse_cut(cut))


def test_clone_is_another_structure() -> None:
    model = tiny_model()
    twin = clone(model)
    twin.config.num_hidden_layers = 99
    assert model.config.num_hidden_layers == DEPTH
    assert isinstance(twin, nn.Module)
    assert twin is not model
