"""Saving and loading changes nothing; damage is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

import ghostlab as gl
from ghostlab.errors import ResultError
from ghostlab.model.export import MANIFEST, OPERATORS, pack, unpack
from tests.helpers.lm import tiny_lm
from tests.helpers.tiny import FAMILY_OPTIONS, tiny_ids
from tests.unit.test_decoder import random_standins

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
@pytest.mark.parametrize("tied", [False, True])
def test_save_and_load_change_nothing(family: str, tied: bool, tmp_path: Path) -> None:
    cut = gl.parse_cut("0:2,4:6")
    recovered = tiny_lm(family, tie_word_embeddings=tied).without(cut, random_standins("0:2,4:6"))
    folder = recovered.save(tmp_path / "out")
    again = gl.load_recovered(folder)
    ids = tiny_ids()
    assert torch.equal(again.hf(ids).logits, recovered.hf(ids).logits)
    assert (again.cut, again.full_depth, again.name) == (cut, 6, recovered.name)
    plain = AutoModelForCausalLM.from_pretrained(folder)
    bare = tiny_lm(family, tie_word_embeddings=tied).without(cut)
    assert torch.equal(plain(ids).logits, bare.hf(ids).logits), "plain transformers reads the pruned model"


def test_saving_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(ResultError, match="not empty"):
        tiny_lm().save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_an_interrupted_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_lm()
    monkeypatch.setattr(
        model.tokenizer, "save_pretrained", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tiny_lm().without(gl.parse_cut("1:3"), random_standins("1:3")).save(tmp_path / "out")


def test_a_missing_operator_file_is_noticed(saved: Path) -> None:
    (saved / OPERATORS).unlink()
    with pytest.raises(ResultError, match="missing or damaged"):
        gl.load_recovered(saved)


def test_a_truncated_operator_file_is_noticed(saved: Path) -> None:
    content = (saved / OPERATORS).read_bytes()
    (saved / OPERATORS).write_bytes(content[: len(content) // 2])
    with pytest.raises(ResultError, match="missing or damaged"):
        gl.load_recovered(saved)


def test_an_operator_of_another_width_is_noticed(saved: Path) -> None:
    save_file({"1:3/dense": torch.zeros(16, 16)}, saved / OPERATORS)
    with pytest.raises(ResultError, match="do not fit"):
        gl.load_recovered(saved)


def test_an_operator_of_another_block_is_noticed(saved: Path) -> None:
    tensors = load_file(saved / OPERATORS)
    save_file({key.replace("1:3", "2:4"): tensor for key, tensor in tensors.items()}, saved / OPERATORS)
    with pytest.raises(ResultError, match="manifest"):
        gl.load_recovered(saved)


@pytest.mark.parametrize("change", [{"cut": 5}, {"schema": 9}, {"full_depth": "six"}])
def test_a_tampered_manifest_is_noticed(saved: Path, change: dict[str, object]) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps({**manifest, **change}))
    with pytest.raises(ResultError, match=r"ghostlab\.json"):
        gl.load_recovered(saved)


def test_packing_keeps_prefixes_apart() -> None:
    standins = random_standins("1:3,4:5")
    tensors = {**pack(standins, "ghost/"), **pack(random_standins("0:1"), "affine/")}
    found = unpack(tensors, "ghost/")
    assert set(found) == set(standins)
    for block, standin in standins.items():
        assert torch.equal(found[block].map.matrix(), standin.map.matrix())


@pytest.mark.parametrize("key", ["nonsense", "1:3,4:5/dense", "x:y/dense"])
def test_unknown_operator_names_are_refused(key: str) -> None:
    with pytest.raises(ResultError, match="no operator"):
        unpack({key: torch.zeros(2, 2)})
