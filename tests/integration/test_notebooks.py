"""The notebooks, from the first cell to the last, on the embedded model.

Each has a class of its own, so that two workers can share them (``--dist loadscope``); a parameter would keep
them together.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).parents[2] / "notebooks"


class _Notebook:
    name: ClassVar[str]

    def test_it_runs(self, tmp_path: Path) -> None:
        book = nbformat.read(FOLDER / f"{self.name}.ipynb", as_version=4)
        ran = NotebookClient(book, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
        code = [cell for cell in ran.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        assert sum(bool(cell.outputs) for cell in code) > len(code) // 2


class TestChooseBlocksAndRank(_Notebook):
    name = "03_choose_blocks_and_rank"


class TestBringYourOwnModel(_Notebook):
    name = "04_bring_your_own_model"


class TestFiveMinutes(_Notebook):
    name = "01_five_minutes"


class TestWhatSymmetryCosts(_Notebook):
    name = "02_what_symmetry_costs"


def test_no_notebook_is_left_out() -> None:
    assert {kind.name for kind in _Notebook.__subclasses__()} == {
        path.stem for path in FOLDER.glob("*.ipynb")
    }
