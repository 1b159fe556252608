"""The table of operators in the docs says what the registry says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghostlab.recovery.registry import OPERATORS

pytestmark = pytest.mark.unit
PAGE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")


def rows() -> dict[str, list[str]]:
    """Cells of each row by method."""
    lines = [line.strip("| \n").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[1:] for cells in lines}


def test_every_method_has_its_row_in_the_order_of_the_registry() -> None:
    assert list(rows()) == list(OPERATORS)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_a_row_says_what_the_registry_says(name: str) -> None:
    method = OPERATORS[name]
    formula, adds, expresses, source = rows()[name]
    assert (formula, adds, source) == (f"$`{method.formula}`$", method.adds, method.source)
    assert len(expresses) > 10


@pytest.mark.parametrize(
    "option", sorted({option for method in OPERATORS.values() for option in method.options})
)
def test_every_option_is_explained(option: str) -> None:
    explained = PAGE[PAGE.index("## Options") : PAGE.index("## Notes")]
    assert f"`{option}`" in explained or f"{option}=" in explained
