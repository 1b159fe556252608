"""docs/write_an_operator.md, followed word for word: files, installation, commands, Python."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ghostlab
from ghostlab.cli import main
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.run import RunResult
from ghostlab.text.documents import divide
from tests.helpers.folders import save_folder, tiny_config
from tests.helpers.lm import tiny_lm

pytestmark = pytest.mark.unit
PAGE = (Path(__file__).parents[2] / "docs" / "write_an_operator.md").read_text(encoding="utf-8")
FILES = re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", PAGE, flags=re.DOTALL)
(SHELL,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)[-1]
SMALL = "--model tiny --sequences 4 --length 32 --held-out 3 --new-tokens 2"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed the package of the page."""
    folder = tmp_path_factory.mktemp("my_operators")
    for name, content in FILES:
        (folder / name).write_text(content, encoding="utf-8")
    install = shlex.split(SHELL.splitlines()[0])
    assert install == ["pip", "install", "."]
    offline = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", "site"]
    subprocess.run([sys.executable, "-m", *install, *offline], cwd=folder, check=True)
    return folder / "site"


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    OPERATORS.__dict__.pop("_loaded", None)
    yield
    OPERATORS.__dict__.pop("_loaded", None)
    sys.modules.pop("my_operators", None)


def test_the_files_are_an_operator_in_twenty_lines() -> None:
    assert [name for name, _ in FILES] == ["my_operators.py", "pyproject.toml"]
    code = [line for line in FILES[0][1].splitlines() if line.strip()]
    assert len(code) <= 20


@pytest.mark.usefixtures("installed")
def test_the_shell_lines_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GHOSTLAB_CACHE", str(tmp_path / "cache"))
    save_folder(tmp_path / "tiny", tiny_config(num_hidden_layers=26))
    assert OPERATORS.problems == ()
    listing, run = (shlex.split(line.split("#")[0])[1:] for line in SHELL.splitlines()[1:])
    assert main(listing) == 0
    assert "damped_shift" in capsys.readouterr().out
    assert main([*run, *SMALL.split()]) == 0, capsys.readouterr().err
    result = RunResult.load(tmp_path / "result")
    assert [run.label for run in result.runs] == ["damped_shift", "damped_shift, share 1"]
    half, whole = (run.boundary.explained_train for run in result.runs)
    assert half is not None
    assert half == pytest.approx(0.75 * whole, rel=1e-4), "s (2 - s) of what the mean explains"


@pytest.mark.usefixtures("installed")
def test_the_python_lines_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_lm(num_hidden_layers=26, max_position_embeddings=256)
    words = [" ".join(f"w{3 + (7 * i + i * j) % 93}" for j in range(300)) for i in range(100)]
    text = divide(words, name="tiny", title="Tiny", licence="none")
    monkeypatch.setattr(ghostlab, "load_model", lambda *_: model)
    monkeypatch.setattr(ghostlab, "load_text", lambda *_: text)
    found: dict[str, Any] = {}
    exec(PYTHON, found)
    assert list(found["explained"]) == ["20:25"]
    assert 0 < found["explained"]["20:25"] < 1
