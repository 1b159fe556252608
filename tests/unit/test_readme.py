"""What the README tells people to type is accepted by the code as it is."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ghostlab
from ghostlab.cli import main
from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


EXPORT = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")


def _blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def _commands() -> list[str]:
    blocks = [*_blocks("sh"), *_blocks("sh", EXPORT)]
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(("ghostlab run", "ghostlab export"))]


class _Reached(GhostlabError):
    exit_code = 77


@pytest.mark.parametrize("line", _commands())
def test_lines_reach_the_lab(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def lab(_settings: object) -> None:
        raise _Reached("The flags were accepted.")

    module = ModuleType("ghostlab.lab")
    module.Lab = lab  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ghostlab.lab", module)
    monkeypatch.chdir(tmp_path)
    make_result().save(tmp_path / "result")
    assert main(shlex.split(line)[1:]) == _Reached.exit_code


def test_there_are_run_lines_and_make_lines_to_check() -> None:
    assert len(_commands()) >= 6
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\w+)", "\n".join(_blocks("sh")), flags=re.MULTILINE)
    assert targets == ["app", "test"]
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_the_python_example_uses_only_the_public_api() -> None:
    code = _blocks("python")[0]
    used = {
        node.attr
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gl"
    }
    assert {"load_model", "calibrate", "fit", "apply", "run"} <= used
    assert used <= set(ghostlab.__all__)
    assert RunConfig(drop="20:25") == RunConfig()
