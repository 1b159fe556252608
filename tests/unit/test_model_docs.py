"""The tables of docs/families.md and docs/export.md say what the code does."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import ghostlab as gl
from ghostlab.calibration.calibrate import Calibration
from ghostlab.errors import GhostlabError, UnsupportedModelError
from ghostlab.export.absorb import bias_reason, embeddings_reason
from ghostlab.export.stock import stock_reason
from ghostlab.lab.export import FORMS
from ghostlab.model.families import FAMILIES
from ghostlab.model.model import Model
from ghostlab.model.projections import find_projections
from ghostlab.recovery.registry import OPERATORS
from tests.helpers.lm import tiny_lm, tiny_windows

pytestmark = pytest.mark.unit
DOCS = Path(__file__).parents[2] / "docs"
EXPORT = (DOCS / "export.md").read_text(encoding="utf-8")


def rows(page: str) -> dict[str, list[str]]:
    """Cells of each table row that starts with a name in backticks, by that name."""
    lines = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[1:] for cells in lines}


def rewritable(model: Model) -> str:
    try:
        find_projections(model)
    except UnsupportedModelError:
        return "no"
    return "yes"


def first_block(model: Model) -> str:
    if embeddings_reason(model, shift_only=False) is None:
        return "any map"
    return "a shift" if embeddings_reason(model, shift_only=True) is None else "no"


def test_families() -> None:
    table = rows((DOCS / "families.md").read_text(encoding="utf-8"))
    models = {family: tiny_lm(family) for family in FAMILIES}
    assert table == {
        family: [
            names,
            rewritable(models[family]),
            "yes" if bias_reason(models[family]) is None else "no",
            first_block(models[family]),
        ]
        for family, names in sorted(FAMILIES.items())
    }


@cache
def calibration(family: str) -> Calibration:
    return Calibration(tiny_lm(family), tiny_windows(count=3))


def is_stock(family: str, cut_text: str, method: str) -> bool:
    cut, calib = gl.parse_cut(cut_text), calibration(family)
    try:
        return stock_reason(gl.apply(calib.model, cut, gl.fit(calib, cut, method))) is None
    except GhostlabError:
        return False


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_which_operators_can_be_stock(name: str) -> None:
    asked = {"refit_layer": "refit_layer,first=layer", "replaceme_cosine": "replaceme_cosine,epochs=1"}
    found = [
        is_stock(family, cut, asked.get(name, name))
        for family, cut in (("mistral", "2:4"), ("llama", "2:4"), ("mistral", "0:2"))
    ]
    words = {
        (True, True, True): "yes",
        (True, True, False): "yes",
        (False, True, True): "where the family can have the bias",
        (False, False, True): "if the block starts at layer 0",
        (False, False, False): "no",
    }
    said = rows(EXPORT)[name][0]
    assert said.startswith(words[tuple(found)])


def test_every_form_and_every_operator_is_listed() -> None:
    assert set(rows(EXPORT)) == set(OPERATORS) | set(FORMS)
