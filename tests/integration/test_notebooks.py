"""The notebooks, from the first cell to the last, on the embedded model, with fewer tokens than they show.

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
    smaller: ClassVar[dict[str, str]]
    """What stands in the notebook -> what is run instead."""

    def test_it_runs(self, tmp_path: Path) -> None:
        book = nbformat.read(FOLDER / f"{self.name}.ipynb", as_version=4)
        for shown, run in self.smaller.items():
            changed = [cell for cell in book.cells if cell.cell_type == "code" and shown in cell.source]
            assert changed, f"{shown} is no longer there"
            for cell in changed:
                cell.source = cell.source.replace(shown, run)
        ran = NotebookClient(book, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
        code = [cell for cell in ran.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        assert sum(bool(cell.outputs) for cell in code) > len(code) // 2


class TestChooseBlocksAndRank(_Notebook):
    name = "03_choose_blocks_and_rank"
    smaller: ClassVar = {
        '"sequences": 32, "length": 128, "held_out": 8': '"sequences": 16, "length": 64, "held_out": 4',
        "lengths=(1, 2, 3, 4, 5, 6)": "lengths=(1, 6)",
        '("streamline", "shortgpt", "reverse_order")': '("streamline", "shortgpt")',
        "(16, 64, 256)": "(64, 256)",
    }


class TestBringYourOwnModel(_Notebook):
    name = "04_bring_your_own_model"
    smaller: ClassVar = {
        '"sequences": 24, "length": 128, "held_out": 6': '"sequences": 16, "length": 64, "held_out": 4',
        "limit=20": "limit=5",
    }


class TestFiveMinutes(_Notebook):
    name = "01_five_minutes"
    smaller: ClassVar = {'{"sequences": 6, "length": 128}': '{"sequences": 4, "length": 64}'}


class TestWhatSymmetryCosts(_Notebook):
    name = "02_what_symmetry_costs"
    smaller: ClassVar = {
        "sequences=48": "sequences=16",
        "length=128": "length=64",
        "held_out=8": "held_out=4",
        "    gl.Alteration(alpha=0.75),\n": "",
    }


def test_no_notebook_is_left_out() -> None:
    assert {kind.name for kind in _Notebook.__subclasses__()} == {
        path.stem for path in FOLDER.glob("*.ipynb")
    }
