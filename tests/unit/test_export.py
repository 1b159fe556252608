"""Saving and loading changes nothing, in Ghostlab and in plain transformers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import ghostlab as gl
from ghostlab.cut import Block
from ghostlab.errors import ModelError, ResultError
from ghostlab.export.folder import MODELLING, pack, unpack
from ghostlab.model.replacement import AffineMap, Replacement
from tests.helpers.lm import check_generation, generated, tiny_lm, trusted
from tests.helpers.tiny import FAMILY_OPTIONS, WIDTH, tiny_ids
from tests.unit.test_decoder import random_replacements

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("modules")]
CUT = "0:1,2:4,5:6"


def every_form() -> dict[Block, Replacement]:
    """A map in the front, one beside a refitted layer, one before the final norm: all parts of a map."""
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> torch.Tensor:
        return 0.2 * torch.randn(*shape, generator=generator)

    layer = {"mlp.down_proj.weight": draw(WIDTH, 64), "self_attn.o_proj.weight": draw(WIDTH, WIDTH)}
    return {
        Block(0, 1): Replacement(AffineMap(diagonal=draw(WIDTH), first=draw(WIDTH))),
        Block(2, 4): Replacement(
            AffineMap(draw(WIDTH, WIDTH), bias=draw(WIDTH), first=draw(WIDTH)), 3, layer
        ),
        Block(5, 6): Replacement(AffineMap(factors=(draw(WIDTH, 3), draw(3, WIDTH)), bias=draw(WIDTH))),
    }


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
def test_a_saved_model_is_the_same_wherever_it_is_loaded(family: str, tmp_path: Path) -> None:
    cut, ids = gl.parse_cut("0:2,4:6"), tiny_ids()
    model = tiny_lm(family, tie_word_embeddings=True)
    replacements = random_replacements("0:2,4:6")
    replacements[Block(0, 2)] = Replacement(
        AffineMap(diagonal=torch.ones(WIDTH), first=torch.full((WIDTH,), 2.0))
    )
    recovered = model.without(cut, replacements)
    folder = recovered.save(tmp_path / "out")
    again = gl.load_recovered(folder)
    logits = recovered.hf(ids).logits
    assert torch.equal(again.hf(ids).logits, logits)
    assert (again.cut, again.full_depth, again.name) == (cut, 6, recovered.name)
    theirs = trusted(folder)
    assert torch.equal(theirs(ids).logits, logits)
    for hf in (again.hf, theirs):  # first tokens are read off a 4-D mask, in some families one of several
        check_generation(hf, tiny_ids(2, 24), 1e-4, cache_implementation="static")
    plain = AutoModelForCausalLM.from_pretrained(folder)
    assert torch.equal(plain(ids).logits, model.without(cut).hf(ids).logits), "no trust: the pruned model"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_trusted_code_puts_every_form_of_map_in(dtype: torch.dtype, tmp_path: Path) -> None:
    recovered = tiny_lm(dtype=dtype).without(gl.parse_cut(CUT), every_form())
    model = trusted(recovered.save(tmp_path / "out", shard="20KB"), dtype="auto")
    assert len(list((tmp_path / "out").glob("model-*.safetensors"))) > 2
    assert model.dtype == dtype
    assert type(model).__name__ == "LlamaForCausalLM"
    again = gl.load_recovered(tmp_path / "out", dtype=str(dtype).removeprefix("torch.")).hf
    ids = tiny_ids()
    assert torch.equal(model(ids).logits, again(ids).logits)
    assert dtype != torch.float32 or torch.equal(again(ids).logits, recovered.hf(ids).logits)
    for padding in (0, 4):
        assert torch.equal(generated(model, ids, padding=padding), generated(again, ids, padding=padding))


def test_a_mask_that_hides_which_tokens_are_first_is_refused_by_both_loaders(tmp_path: Path) -> None:
    recovered = tiny_lm().without(gl.parse_cut(CUT), every_form())
    model, mask = trusted(recovered.save(tmp_path / "out")), torch.ones(3, 20, 20, dtype=torch.bool)
    with pytest.raises(ModelError, match=r"attention mask that is a Tensor of shape \[3, 20, 20\]"):
        recovered.hf(tiny_ids(), attention_mask=mask)
    with pytest.raises(ValueError, match="attention mask that is a Tensor"):
        model(tiny_ids(), attention_mask=mask)


def test_what_trusted_code_loaded_can_be_saved_again(tmp_path: Path) -> None:
    recovered = tiny_lm().without(gl.parse_cut(CUT), every_form())
    model = trusted(recovered.save(tmp_path / "out"))
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    model.save_pretrained(tmp_path / "more")
    expected = model(tiny_ids()).logits
    assert torch.equal(trusted(tmp_path / "more")(tiny_ids()).logits, expected)


def test_operators_are_never_left_out_in_silence(tmp_path: Path) -> None:
    saved = tiny_lm().without(gl.parse_cut("1:3"), random_replacements("1:3")).save(tmp_path / "out")
    with pytest.raises(ModelError, match=r"operators would be left out.*load_recovered"):
        gl.load_model(str(saved))
    assert gl.load_model(str(saved), pruned_only=True).depth == 4


def test_a_folder_without_maps_asks_for_no_trust(tmp_path: Path) -> None:
    folder = tiny_lm().without(gl.parse_cut("1:3")).save(tmp_path / "out")
    assert not (folder / MODELLING).exists()
    assert "auto_map" not in json.loads((folder / "config.json").read_text())
    assert gl.load_model(str(folder)).depth == 4
    assert "trust_remote_code" not in (folder / "README.md").read_text()


def test_the_files_beside_the_checkpoint_keep_their_format(tmp_path: Path) -> None:
    """Folders that were saved before must open: whoever changes this raises the schema and reads both."""
    recovered = tiny_lm().without(gl.parse_cut(CUT), every_form())
    recovered.note = "a note"
    folder = recovered.save(tmp_path / "out")
    manifest = json.loads((folder / "ghostlab.json").read_text(encoding="utf-8"))
    checksum = manifest.pop("operators_sha256")
    assert checksum == hashlib.sha256((folder / "operators.safetensors").read_bytes()).hexdigest()
    assert manifest == {
        "schema": 2,
        "name": "tiny llama",
        "note": "a note",
        "full_depth": 6,
        "cut": "0:1,2:4,5:6",
        "operators": ["0:1", "2:4", "5:6"],
        "stack": "model",
        "places": {
            "0:1": {"host": "model.layers.0", "beside": False, "parts": ["diagonal", "first"]},
            "2:4": {"host": "model.layers.1", "beside": True, "parts": ["bias", "dense", "first"]},
            "5:6": {"host": "model.norm", "beside": False, "parts": ["bias", "down", "up"]},
        },
    }
    shapes = {
        name: list(tensor.shape) for name, tensor in load_file(folder / "operators.safetensors").items()
    }
    assert shapes == {
        "0:1/diagonal": [WIDTH],
        "0:1/first": [WIDTH],
        "2:4/bias": [WIDTH],
        "2:4/dense": [WIDTH, WIDTH],
        "2:4/first": [WIDTH],
        "2:4/layer": [],
        "5:6/bias": [WIDTH],
        "5:6/down": [WIDTH, 3],
        "5:6/up": [3, WIDTH],
    }
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["auto_map"] == {"AutoModelForCausalLM": "modeling_ghostlab.GhostForCausalLM"}


def test_saving_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(ResultError, match="not empty"):
        tiny_lm().save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


@pytest.mark.parametrize(
    ("fails", "raises"), [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "no space"), ResultError)]
)
@pytest.mark.parametrize("stock", [False, True])
def test_an_interrupted_save_leaves_nothing(
    fails: BaseException, raises: type, stock: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_lm()
    monkeypatch.setattr(model.tokenizer, "save_pretrained", lambda *_: (_ for _ in ()).throw(fails))
    with pytest.raises(raises):
        (model.save_stock if stock else model.save)(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_packing_keeps_prefixes_apart() -> None:
    replacements = random_replacements("1:3,4:5")
    tensors = {**pack(replacements, "ghost/"), **pack(random_replacements("0:1"), "affine/")}
    found = unpack(tensors, "ghost/")
    assert set(found) == set(replacements)
    for block, replacement in replacements.items():
        assert torch.equal(found[block].map.matrix(), replacement.map.matrix())


@pytest.mark.parametrize("key", ["nonsense", "1:3,4:5/dense", "x:y/dense"])
def test_unknown_operator_names_are_refused(key: str) -> None:
    with pytest.raises(ResultError, match="not an operator"):
        unpack({key: torch.zeros(2, 2)})
