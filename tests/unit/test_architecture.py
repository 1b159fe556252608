"""The shape of the code: one-way road, one room for gradio, light imports, short files."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ghostlab"
MODULES = sorted(PACKAGE.rglob("*.py"))

COMMON = {
    "answers", "atlas", "checks", "checksum", "comparison", "config", "cut", "errors", "generations", "insights", "probes", "progress",
    "records", "resampling", "results", "scoring", "settings", "spec", "windowrule", "zeroshot",
}  # fmt: skip
ROAD = [
    "model",
    "text",
    "calibration",
    "pruning",
    "recovery",
    "analysis",
    "evaluation",
    "plots",
    "report",
    "bundle",
    "measure",
    "assembly",
    "steps",
    "workbench",
    "scouting",
    "probing",
    "exporting",
    "answering",
    "lab",
    "jobstate",
    "jobs",
    "ui",
    "cli",
]
"""A room imports from rooms to its left; everybody from COMMON."""

HEAVY = {"torch", "transformers", "gradio", "datasets", "pandas", "sklearn"}


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(path: Path) -> Iterator[str]:
    """Full names of everything imported anywhere in the file, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _rooms_used(path: Path) -> set[str]:
    return {name.split(".")[1] for name in _imports(path) if name.startswith("ghostlab.")}


def test_every_module_has_its_place() -> None:
    rooms = {_room(path) for path in MODULES} - {"__init__"}
    assert rooms <= COMMON | set(ROAD), "place the new room on the road"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    room = _room(path)
    if room == "__init__":
        return  # the public API names every room, lazily
    allowed = COMMON | set(ROAD[: ROAD.index(room) + 1] if room in ROAD else []) | {"__version__"}
    assert _rooms_used(path) <= allowed


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_ui_imports_gradio(path: Path) -> None:
    packages = {name.split(".")[0] for name in _imports(path)}
    assert _room(path) == "ui" or not packages & {"gradio", "gradio_client"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250


def test_light_modules_load_nothing_heavy() -> None:
    names = ["ghostlab", "ghostlab.cli", *(f"ghostlab.{name}" for name in sorted(COMMON))]
    code = f"import sys, {', '.join(names)}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
