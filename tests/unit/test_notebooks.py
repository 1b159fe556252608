"""What is committed of the notebooks: whole outputs with pictures, no error, nothing of the machine they ran on."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_run_from_top_to_bottom_and_shows_what_it_found(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not any(output.output_type == "error" or output.get("name") == "stderr" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not re.search(r"site-packages|/(home|root|tmp|work|Users)/", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    words = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", words) if "://" not in target]
    assert [target for target in targets if not (path.parent / target.partition("#")[0]).exists()] == []


def test_the_readme_names_every_notebook() -> None:
    linked = re.findall(r"\]\(notebooks/(\w+\.ipynb)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert linked == [path.name for path in NOTEBOOKS]
    assert len(linked) == 4
