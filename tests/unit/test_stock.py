"""Ordinary checkpoints of recoveries: the same logits in plain transformers, or the reason why not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import ghostlab as gl
from ghostlab.cut import Block
from ghostlab.errors import StockError
from ghostlab.export import stock
from ghostlab.export.stock import kind_reason, stock_reason
from ghostlab.model.model import Model
from ghostlab.model.replacement import AffineMap, Replacement
from tests.helpers.lm import tiny_lm
from tests.helpers.tiny import FAMILY_OPTIONS, WIDTH, tiny_ids

pytestmark = pytest.mark.unit
DRAWN = torch.Generator().manual_seed(7)
SHIFT = torch.randn(WIDTH, generator=DRAWN)
MATRIX = 0.3 * torch.randn(WIDTH, WIDTH, generator=DRAWN)

NO_BIAS = {"gemma", "mistral", "phi3", "qwen2", "qwen3", "stablelm"}
NORMED = {"gemma2", "gemma3_text", "olmo2"}
WITH_POSITIONS = {"gpt2", "opt"}
"""Families that add positions to their token embeddings."""


def shifted(family: str, cut: str, **options: object) -> Model:
    """A variant with a bias, and nothing else, in the place of each block."""
    model = tiny_lm(family, **options)
    found = gl.parse_cut(cut)
    return model.without(found, {block: Replacement(AffineMap(bias=SHIFT)) for block in found})


def check_stock(variant: Model, folder: Path, tolerance: float = 2e-5) -> dict[str, object]:
    """Plain transformers loads every tensor of the stock checkpoint and gives the variant's logits."""
    variant.save_stock(folder)
    plain, info = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ids = tiny_ids()
    mask = torch.ones_like(ids)
    mask[0, :5] = 0
    for options in ({}, {"attention_mask": mask}):
        with torch.no_grad():
            expected, found = (hf(ids, **options).logits[mask.bool()].float() for hf in (variant.hf, plain))
        assert float((found - expected).norm() / expected.norm()) < tolerance
    config: dict[str, object] = json.loads((folder / "config.json").read_text())
    assert "auto_map" not in config
    assert {p.suffix for p in folder.iterdir()} <= {".json", ".safetensors", ".md"}
    return config


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
def test_a_shift_goes_into_a_bias_where_the_family_can_have_one(family: str, tmp_path: Path) -> None:
    variant = shifted(family, "2:3,5:6")
    before = variant.hf(tiny_ids()).logits
    reason = stock_reason(variant)
    assert (reason is None) == (family not in NO_BIAS | NORMED)
    if reason is None:
        config = check_stock(variant, tmp_path / "out")
        assert config.get("mlp_bias", True)
    else:
        assert ("no bias" if family in NO_BIAS else "normalise what they add") in reason
        with pytest.raises(StockError, match="Export it as a recovered model"):
            variant.save_stock(tmp_path / "out")
        assert not (tmp_path / "out").exists()
    assert torch.equal(variant.hf(tiny_ids()).logits, before), "the variant must not change"


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
@pytest.mark.parametrize("tied", [False, True])
def test_a_map_of_the_first_block_goes_into_the_embeddings(family: str, tied: bool, tmp_path: Path) -> None:
    cut = gl.parse_cut("0:2")
    model = tiny_lm(family, tie_word_embeddings=tied)
    variant = model.without(cut, {Block(0, 2): Replacement(AffineMap(MATRIX, bias=SHIFT))})
    reason = stock_reason(variant)
    assert (reason is None) == (family not in WITH_POSITIONS | {"bloom"})
    if reason is None:
        assert check_stock(variant, tmp_path / "out")["tie_word_embeddings"] is False or not tied
    elif family in WITH_POSITIONS:
        assert "positions" in reason
        check_stock(shifted(family, "0:2", tie_word_embeddings=tied), tmp_path / "out")
    else:
        assert "not linear" in reason


def test_granite_scales_are_taken_along(tmp_path: Path) -> None:
    variant = shifted("granite", "0:2,3:4", embedding_multiplier=3.0, residual_multiplier=0.4)
    assert check_stock(variant, tmp_path / "out")["mlp_bias"] is True


def test_bfloat16_keeps_its_precision(tmp_path: Path) -> None:
    variant = shifted("llama", "0:1,3:4", dtype=torch.bfloat16)
    assert check_stock(variant, tmp_path / "out", tolerance=2e-2)["dtype"] == "bfloat16"


def test_layers_with_new_weights_are_ordinary_layers(tmp_path: Path) -> None:
    weights = {"mlp.down_proj.weight": 0.1 * torch.randn(WIDTH, 64, generator=DRAWN)}
    variant = tiny_lm().without(gl.parse_cut("1:3"), {Block(1, 3): Replacement(layer=2, weights=weights)})
    assert stock_reason(variant) is None
    check_stock(variant, tmp_path / "out", tolerance=1e-12)


def test_a_recovered_folder_can_be_turned_into_a_stock_one(tmp_path: Path) -> None:
    again = gl.load_recovered(shifted("llama", "2:4").save(tmp_path / "recovered"))
    check_stock(again, tmp_path / "stock")


@pytest.mark.parametrize(
    ("replacement", "reason"),
    [
        (Replacement(AffineMap(MATRIX)), stock.MATRIX),
        (Replacement(AffineMap(diagonal=SHIFT)), stock.MATRIX),
        (Replacement(AffineMap(bias=SHIFT, first=SHIFT)), stock.FIRST),
        (Replacement(AffineMap(first=SHIFT), layer=2), stock.FIRST_OF_LAYER),
        (Replacement(AffineMap(MATRIX, bias=SHIFT), layer=2), stock.BESIDE),
    ],
)
def test_the_reason_names_what_is_in_the_way(replacement: Replacement, reason: str) -> None:
    variant = tiny_lm().without(gl.parse_cut("1:3"), {Block(1, 3): replacement})
    assert stock_reason(variant) == reason


def scaled(
    family: str, cut: str, *factors: float, state: float = 100.0, bias: torch.Tensor | None = None
) -> Model:
    """A variant with a factor in the place of each block; ``state`` makes embeddings larger, as trained
    models have them beside the epsilon of their norms."""
    model = tiny_lm(family, tie_word_embeddings=False)
    model.hf.get_input_embeddings().weight.mul_(state)
    maps = [AffineMap(diagonal=torch.full((WIDTH,), factor - 1), bias=bias) for factor in factors]
    found = gl.parse_cut(cut)
    return model.without(found, dict(zip(found, map(Replacement, maps), strict=True)))


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
def test_factors_go_into_the_layers_after(family: str, tmp_path: Path) -> None:
    """Of a block in the middle and of the last one, before which only the final norm is left."""
    variant = scaled(family, "1:2,3:4,5:6", 1.6, 0.7, 1.3)
    before = variant.hf(tiny_ids()).logits
    ignored = scaled(family, "1:2,3:4,5:6", 1.0, 1.0, 1.0).hf(tiny_ids()).logits
    assert float((ignored - before).norm() / before.norm()) > 0.01, "the factors must matter"
    assert stock_reason(variant) is None
    check_stock(variant, tmp_path / "out")
    assert torch.equal(variant.hf(tiny_ids()).logits, before), "the variant must not change"


@pytest.mark.parametrize("family", ["gpt2", "granite"])
def test_shifts_and_factors_of_several_blocks_compose(family: str, tmp_path: Path) -> None:
    """A shift after a factor is added to a smaller stream, by a layer whose projections are divided."""
    for cut in ("1:2,3:4", "0:1,3:4"):
        check_stock(scaled(family, cut, 1.6, 0.7, bias=SHIFT), tmp_path / cut[:1])


def test_a_factor_is_refused_where_the_epsilon_of_norms_notices_it(tmp_path: Path) -> None:
    variant = scaled("gpt2", "2:4", 1.5, state=1.0)
    reason = stock_reason(variant)
    assert reason is not None
    assert kind_reason(variant) is None, "only a measurement can tell"
    found = re.search(r"differ by (\S+) of their norm, and above 1e-05", reason)
    assert found is not None
    assert 1e-5 < float(found[1]) < 1e-2
    with pytest.raises(StockError, match="Export it as a recovered model"):
        variant.save_stock(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("factor", [-1.2, 0.0])
def test_only_a_positive_factor_is_undone_by_norms(factor: float) -> None:
    for reason_of in (kind_reason, stock_reason):
        assert f"factor {factor:.3g} is not positive" in str(reason_of(scaled("llama", "2:4", factor)))


@pytest.mark.parametrize(
    ("family", "options", "words"),
    [
        ("bloom", {"apply_residual_connection_post_layernorm": True}, "which loses the factor"),
        (
            "opt",
            {"word_embed_proj_dim": 16, "do_layer_norm_before": False},
            "normalise the residual stream itself",
        ),
        ("opt", {"word_embed_proj_dim": 16, "_remove_final_layer_norm": True}, "no final norm"),
    ],
)
def test_members_of_a_family_that_lose_a_factor(family: str, options: dict[str, Any], words: str) -> None:
    map_ = AffineMap(diagonal=torch.full((WIDTH,), 0.2))
    variant = tiny_lm(family, **options).without(gl.parse_cut("2:4"), {Block(2, 4): Replacement(map_)})
    assert words in str(stock_reason(variant))
