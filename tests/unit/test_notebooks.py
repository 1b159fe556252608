"""The notebooks: they run from top to bottom, and what is committed of them is whole.

They run in this process on a tiny model in the place of the embedded one. With GHOSTLAB_TESTS=all (``make
test-all``) they run as they are, on the real one.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import gguf
import nbformat
import plotly.io
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from transformers import LlamaConfig

from tests.helpers.folders import tiny_config
from tests.helpers.gguf_files import random_llama, write_gguf

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WHOLE = os.environ.get("GHOSTLAB_TESTS") == "all"
SMALLER = {
    "01_five_minutes": {"24 * 128": "24 * 32", "24, 128": "24, 32", '"length": 128': '"length": 32'},
    "02_what_symmetry_costs": {"sequences=48": "sequences=12", "length=128": "length=32"},
    "03_choose_blocks_and_rank": {
        '"sequences": 32, "length": 128': '"sequences": 12, "length": 32',
        "(16, 64, 256)": "(2, 8, 16)",
    },
    "04_bring_your_own_model": {'"sequences": 24, "length": 128': '"sequences": 12, "length": 32'},
}
"""What stands in a notebook -> what the tiny model is given: windows that are shorter, ranks below its width."""


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As deep as the embedded model, so that the notebooks can drop the same blocks."""
    config: LlamaConfig = tiny_config(num_hidden_layers=30, max_position_embeddings=512)
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", random_llama(config))


@pytest.fixture
def workplace(tiny_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: None) -> Path:
    """A folder to run in; the embedded model is the tiny one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plotly.io.renderers, "default", "json")
    if not WHOLE:
        # asked anew for each module of 30 layers: seconds
        monkeypatch.setattr("gguf.get_tensor_name_map", cache(gguf.get_tensor_name_map))
        monkeypatch.setattr("ghostlab.model.load.embedded_gguf", lambda: tiny_gguf)
        monkeypatch.setenv("GHOSTLAB_CACHE", str(tiny_gguf.parent / "cache"))  # converted once
    return tmp_path


@pytest.mark.timeout(1200 if WHOLE else 120)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, workplace: Path) -> None:
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    for shown, run in {} if WHOLE else SMALLER[path.stem].items():
        assert any(shown in cell for cell in cells), f"{shown} is no longer there"
        cells = [cell.replace(shown, run) for cell in cells]
    shell = InteractiveShell.instance()
    shell.reset(new_session=True)
    answered = 0
    for cell in cells:
        with capture_output() as said:
            ran = shell.run_cell(cell, store_history=True)
        ran.raise_error()
        answered += bool(said.stdout or said.outputs)
    assert answered > len(cells) // 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_was_run_and_shows_what_it_found(path: Path) -> None:
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
