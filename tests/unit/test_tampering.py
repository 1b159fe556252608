"""Saved folders that are damaged, or that somebody altered who also knows of the checksum, are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import ghostlab as gl
from ghostlab.errors import ResultError
from ghostlab.export.folder import MANIFEST, OPERATORS
from ghostlab.model.model import Model
from ghostlab.storage import file_sha256
from tests.helpers.lm import tiny_lm, trusted
from tests.helpers.tiny import WIDTH
from tests.unit.test_decoder import random_replacements

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("modules")]


@pytest.fixture(scope="module")
def original() -> Model:
    return tiny_lm().without(gl.parse_cut("1:3"), random_replacements("1:3"))


@pytest.fixture
def saved(original: Model, tmp_path: Path) -> Path:
    return original.save(tmp_path / "out")


def rewrite_operators(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Put other operators in, by somebody who also knows of the checksum."""
    save_file(tensors, folder / OPERATORS)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["operators_sha256"] = file_sha256(folder / OPERATORS)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_missing_operator_file_is_noticed(saved: Path) -> None:
    (saved / OPERATORS).unlink()
    with pytest.raises(ResultError, match="missing or damaged"):
        gl.load_recovered(saved)


def test_a_truncated_operator_file_is_noticed(saved: Path) -> None:
    content = (saved / OPERATORS).read_bytes()
    (saved / OPERATORS).write_bytes(content[: len(content) // 2])
    with pytest.raises(ResultError, match="not the file that was saved"):
        gl.load_recovered(saved)


def test_other_numbers_in_the_operator_file_are_noticed_by_both_loaders(saved: Path) -> None:
    tensors = load_file(saved / OPERATORS)
    save_file({key: 2 * tensor for key, tensor in tensors.items()}, saved / OPERATORS)
    with pytest.raises(ResultError, match="not the file that was saved"):
        gl.load_recovered(saved)
    with pytest.raises(ValueError, match="not the file that was saved"):
        trusted(saved)


def test_an_operator_of_another_width_is_noticed(saved: Path) -> None:
    rewrite_operators(saved, {"1:3/dense": torch.zeros(16, 16)})
    with pytest.raises(ResultError, match="do not fit"):
        gl.load_recovered(saved)


def test_an_operator_of_another_block_is_noticed(saved: Path) -> None:
    tensors = load_file(saved / OPERATORS)
    rewrite_operators(saved, {key.replace("1:3", "2:4"): tensor for key, tensor in tensors.items()})
    with pytest.raises(ResultError, match="manifest"):
        gl.load_recovered(saved)


def test_a_map_without_its_matrix_is_noticed_by_both_loaders(saved: Path) -> None:
    rewrite_operators(saved, {"1:3/bias": load_file(saved / OPERATORS)["1:3/bias"]})
    with pytest.raises(ResultError, match="operators lack parts"):
        gl.load_recovered(saved)
    with pytest.raises(ValueError, match=r"made of \['bias'\] instead of \['bias', 'dense'\]"):
        trusted(saved)


@pytest.mark.parametrize(
    ("part", "tensor", "says"),
    [
        ("dense", torch.full((WIDTH, WIDTH), float("nan")), "'dense' holds NaN"),
        ("dense", torch.ones(WIDTH, WIDTH, dtype=torch.int32), r"'dense' holds torch\.int32"),
        ("bias", torch.full((WIDTH,), float("inf")), "'bias' holds NaN or infinity"),
        ("bias", torch.zeros(WIDTH - 1), "its tensors are"),
        ("layer", torch.tensor(3), "no layer 3 to rewrite"),
        ("layer", torch.tensor([1, 2]), "no layer"),
        ("weight:mlp.down_proj.weight", torch.full((2, 2), float("nan")), "down_proj.weight' holds NaN"),
    ],
)
def test_parts_that_no_fit_can_have_made_are_noticed(
    saved: Path, part: str, tensor: torch.Tensor, says: str
) -> None:
    rewrite_operators(saved, {**load_file(saved / OPERATORS), f"1:3/{part}": tensor})
    with pytest.raises(ResultError, match=says):
        gl.load_recovered(saved)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"cut": "nonsense"},
            r"ghostlab\.json contains an invalid cut 'nonsense': 'nonsense' is not a block",
        ),
        (
            {"places": {"1:3": {"host": "model.layers.2", "beside": False, "parts": ["bias", "dense"]}}},
            "where they do not belong",
        ),
        ({"operators": [], "operators_sha256": ""}, "not the file that was saved"),
        ({"operators": [1, "1:3"]}, "not those of the manifest"),
    ],
)
def test_a_manifest_that_contradicts_the_operators_is_noticed(
    saved: Path, change: dict[str, object], says: str
) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps({**manifest, **change}))
    with pytest.raises(ResultError, match=says):
        gl.load_recovered(saved)


@pytest.mark.parametrize("change", [{"cut": 5}, {"schema": 9}, {"full_depth": "six"}])
def test_a_tampered_manifest_is_noticed(saved: Path, change: dict[str, object]) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps({**manifest, **change}))
    with pytest.raises(ResultError, match=r"ghostlab\.json"):
        gl.load_recovered(saved)
