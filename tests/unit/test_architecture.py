"""The shape of the code: a one-way road without circles, one room for gradio, light imports, short files."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ghostlab"
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

ROAD = [
    *("errors", "progress", "settings", "storage", "cut", "registry", "spec", "config", "checks", "results"),
    *(
        "model",
        "text",
        "calibration",
        "recovery",
        "pruning",
        "analysis",
        "evaluation",
        "export",
        "plots",
        "report",
    ),
    *("lab", "jobs", "ui", "cli", "__main__"),
]
"""A room imports from itself and from rooms to its left."""
LIGHT = ROAD[: ROAD.index("model")]
"""Rooms that load nothing heavy."""
HEAVY = {"torch", "transformers", "gradio", "datasets", "pandas", "sklearn"}
MOST_LINES = 400


def _imports(path: Path) -> Iterator[str]:
    """Full names of everything imported anywhere in the file, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module(name: str) -> str | None:
    """The module of this package that an imported name is, or lies in."""
    known = (name, name.rpartition(".")[0])
    return next((module for module in known if module in FILES and module != "ghostlab"), None)


ARROWS = {
    name: {module for module in map(_module, _imports(path)) if module and module != name}
    for name, path in FILES.items()
    if name != "ghostlab"  # the public API names every room, lazily
}


def _room(module: str) -> str:
    return module.split(".")[1]


def test_every_module_has_its_place() -> None:
    assert {_room(name) for name in ARROWS} <= set(ROAD), "place the new room on the road"


def test_imports_go_one_way() -> None:
    wrong = [
        f"{name} -> {used}"
        for name, uses in ARROWS.items()
        for used in uses
        if ROAD.index(_room(used)) > ROAD.index(_room(name))
    ]
    assert wrong == []


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(ARROWS).prepare()  # raises CycleError with the circle


def test_only_the_ui_imports_gradio() -> None:
    gradio = {
        name for name in ARROWS for used in _imports(FILES[name]) if used.split(".")[0].startswith("gradio")
    }
    assert {_room(name) for name in gradio} == {"ui"}
    assert not any(name.startswith("ghostlab.ui.service") for name in gradio)


def test_files_are_short() -> None:
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_light_rooms_load_nothing_heavy() -> None:
    light = [name for name in ARROWS if _room(name) in LIGHT]
    code = f"import sys, ghostlab.cli, {', '.join(light)}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
