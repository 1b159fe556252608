"""What is told to a newcomer: the explanation of each figure, the steps of the tour, both names of things."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ghostlab.plots import catalog
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures import pairs
from ghostlab.pruning.registry import CRITERIA
from ghostlab.recovery.registry import OPERATORS
from ghostlab.settings import Settings
from ghostlab.ui import explain, theme
from ghostlab.ui.app import build_app
from ghostlab.ui.sidebar import controls
from ghostlab.ui.tabs import TABS
from tests.helpers.fakelab import FakeLab

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def parts() -> Iterator[list[dict[str, Any]]]:
    """The components of the page in the order in which they stand."""
    demo, _ = build_app(Settings(), FakeLab())
    yield demo.config["components"]
    demo.close()


def test_every_figure_that_is_listed_is_known_and_titles_are_distinct() -> None:
    lists = (catalog.LIKELIHOOD, catalog.STATE, catalog.OPERATOR, catalog.SPECTRUM, pairs.NAMES)
    assert {name for names in lists for name in names} <= set(FIGURES)
    assert len({each.title for each in FIGURES.values()}) == len(FIGURES)
    assert [name for name, figure in FIGURES.items() if not figure.plots] == ["generated"]


@pytest.mark.parametrize("name", FIGURES)
def test_an_explanation_is_one_short_paragraph_with_a_formula_and_a_reference(name: str) -> None:
    told = FIGURES[name]
    assert 150 < len(told.words) < 520
    assert "\n" not in told.words
    assert re.search(r"[.?]$", told.words)
    assert re.search(r"\d{4}|Matrix Analysis|R²", told.reference)
    assert not told.reference.endswith(".")
    assert told.formula.count("{") == told.formula.count("}") > 0 or "\\" in told.formula
    assert "$" not in told.words + told.formula + told.reference
    assert explain.of_figure(name).count("$$") == 2


def test_each_plot_stands_below_the_explanation_of_its_figure(parts: list[dict[str, Any]]) -> None:
    told = {explain.of_figure(name): name for name in FIGURES}
    last, below = "", {}
    for part in parts:
        value = part["props"].get("value")
        if part["type"] == "markdown" and value in told:
            last = told[value]
            assert part["props"]["latex_delimiters"] == explain.LATEX
            below.setdefault(last, 0)
        elif part["type"] == "plot":
            assert last, part["props"]["label"]
            below[last] += 1
    assert set(below) == set(FIGURES)
    assert [name for name, count in below.items() if count == 0] == ["generated"]


def test_the_tour_has_six_steps_over_things_that_are_there(parts: list[dict[str, Any]]) -> None:
    ids = {part["props"].get("elem_id") for part in parts}
    steps = json.loads(theme.static("tour.json"))
    assert len(steps) == 6
    for step in steps:
        assert step["tab"] in TABS
        for selector in (*step["at"], step["says"]):
            (name,) = re.findall(r"#([\w-]+)", selector)
            assert name in ids, selector
    script = theme.static("tour.js")
    assert "Storage" not in script
    assert "cookie" not in script


def test_operators_and_criteria_go_by_title_and_name_together() -> None:
    ghost = OPERATORS["ghost"]
    assert explain.full_name(ghost) == "Ghost layer (ghost)"
    box = controls.tick(())["recover_map"]
    assert ("Ghost layer (ghost)", "ghost") in box.choices
    assert explain.criterion(CRITERIA["shortgpt"]).startswith("**ShortGPT (Block Influence)** `shortgpt`")
