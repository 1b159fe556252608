"""Registries: built-ins on first use, plug-ins whole and broken, what is listed and documented without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ghostlab.errors import ConfigError
from ghostlab.pruning import registry as pruning
from ghostlab.recovery import registry as recovery
from ghostlab.registry import PLUGGABLE, Registry

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
HERE = "tests.unit.test_registry"


@dataclass(frozen=True)
class Tool:
    name: str


HAMMER = Tool("hammer")
SAWS = (Tool("rip_saw"), Tool("fret_saw"))
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes the package NAME of one module CODE with the entry points POINTS, as pip would leave it."""
    before = set(sys.modules)

    def make(name: str, points: str, code: str) -> None:
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[test.tools]\n{points}\n")
        (tmp_path / f"{name}.py").write_text(f"from {HERE} import Tool\n{code}\n")

    monkeypatch.syspath_prepend(str(tmp_path))
    yield make
    for module in set(sys.modules) - before:
        del sys.modules[module]


def tools() -> Registry[Tool]:
    return Registry("tool", Tool, (f"{HERE}:HAMMER", f"{HERE}:SAWS"), group="test.tools")


def test_built_ins_come_in_the_order_offered() -> None:
    assert list(tools()) == ["hammer", "rip_saw", "fret_saw"]
    assert tools()["hammer"] is tools().find("hammer") is HAMMER
    assert len(tools()) == 3
    assert tools().problems == ()


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    registry = Registry("tool", Tool, ("nowhere.at_all:TOOL",))
    with pytest.raises(ModuleNotFoundError):
        list(registry)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="There is no tool 'hamer'") as caught:
        tools().find("hamer")
    assert caught.value.hint == "Choose from: hammer, rip_saw, fret_saw."


def test_plug_ins_follow_the_built_ins(install: Install) -> None:
    install("workshop", "b = workshop:AXES\na = workshop:FILE", "FILE = Tool('file')\nAXES = (Tool('axe'),)")
    assert list(tools()) == ["hammer", "rip_saw", "fret_saw", "file", "axe"]
    assert tools().problems == ()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("OTHER = 1", "AttributeError: module 'broken' has no attribute 'TOOL'"),
        ("TOOL = 'drill'", "broken:TOOL is str, not Tool"),
        ("TOOL = Tool('hammer')", "the name 'hammer' is taken"),
        ("TOOL = (Tool('drill'), Tool('drill'))", "the name 'drill' is taken"),
        ("TOOL = Tool('drill,rank=2')", "the name 'drill,rank=2' is not made of letters"),
        ("raise ValueError('two\\nlines.')", "ValueError: two lines"),
    ],
)
def test_a_broken_plug_in_is_left_out_and_named(code: str, reason: str, install: Install) -> None:
    install("broken", "drill = broken:TOOL", code)
    install("fine", "file = fine:TOOL", "TOOL = Tool('file')")
    registry = tools()
    assert list(registry) == ["hammer", "rip_saw", "fret_saw", "file"]
    (problem,) = registry.problems
    assert problem.startswith(f"The tool plug-in 'drill' of package 'broken' was left out: {reason}")
    assert problem.endswith(".")
    assert not problem.endswith("..")
    assert "\n" not in problem


def test_a_registry_without_a_group_takes_no_plug_ins(install: Install) -> None:
    install("workshop", "a = workshop:FILE", "FILE = Tool('file')")
    assert "file" not in Registry("tool", Tool, (f"{HERE}:HAMMER",))


def test_operators_and_criteria_are_listed_without_torch() -> None:
    code = """
import sys
from ghostlab.pruning.registry import CRITERIA, table as criteria
from ghostlab.recovery.registry import OPERATORS, table as operators
for entry in (*OPERATORS.values(), *CRITERIA.values()):
    assert entry.title and entry.summary and entry.formula and entry.source
    assert all(option.help for option in entry.options.values()), entry.name
assert len(operators().splitlines()) == len(OPERATORS) + 2
assert len(criteria().splitlines()) == len(CRITERIA) + 2
print(*{"torch", "transformers", "scipy", "sklearn"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(("page", "table"), [("operators", recovery.table), ("criteria", pruning.table)])
def test_the_tables_in_the_docs_are_current(page: str, table: Callable[[], str]) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert table() in text, f"paste the table of  ghostlab methods --markdown  into docs/{page}.md"


def test_every_option_of_an_operator_is_explained_in_the_docs() -> None:
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    explained = page[page.index("## Options") : page.index("## Notes")]
    for option in {option for operator in recovery.OPERATORS.values() for option in operator.options}:
        assert f"`{option}`" in explained or f"{option}=" in explained, option


def test_no_two_entries_are_described_alike() -> None:
    for registry in (recovery.OPERATORS, pruning.CRITERIA):
        for words in ("title", "summary", "formula"):
            assert len({getattr(entry, words) for entry in registry.values()}) == len(registry)


def test_broken_plug_ins_of_every_room_are_collected(install: Install, tmp_path: Path) -> None:
    install("broken", "drill = broken:TOOL", "TOOL = 1 / 0")
    groups = ("operators", "criteria", "corpora")
    points = "\n".join(f"[ghostlab.{group}]\ndrill = broken:TOOL" for group in groups)
    (tmp_path / "broken-1.0.dist-info" / "entry_points.txt").write_text(points)
    code = "from ghostlab.registry import problems; print(*problems(), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = done.stdout.splitlines()
    assert len(found) == len(PLUGGABLE)
    assert all("was left out: ZeroDivisionError" in line for line in found)
