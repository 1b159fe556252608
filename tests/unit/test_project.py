"""The project's own files agree with each other, and nothing large or foreign is tracked."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
WEIGHTS_AND_TEXTS = {
    ".safetensors",
    ".gguf",
    ".bin",
    ".pt",
    ".pth",
    ".pkl",
    ".npy",
    ".npz",
    ".arrow",
    ".parquet",
}


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def _lines(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there are no tracked files to look at")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_a_space_installs_what_the_project_declares() -> None:
    assert _lines("requirements.txt") == _project()["dependencies"]


def test_the_readme_tells_a_space_what_to_run() -> None:
    _, front, rest = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    told = yaml.safe_load(front)
    (gradio,) = (r for r in map(Requirement, _lines("constraints.txt")) if r.name == "gradio")
    assert f"=={told['sdk_version']}" == str(gradio.specifier), "the Space runs the version that is tested"
    assert (told["sdk"], told["license"]) == ("gradio", "apache-2.0")
    assert (ROOT / told["app_file"]).is_file()
    assert Version(told["python_version"]) in SpecifierSet(_project()["requires-python"])
    assert len(told["short_description"]) <= 60
    assert re.fullmatch(r"[\w-]+/[\w.-]+", *told["models"])
    assert rest.lstrip().startswith("# Ghostlab")


def test_tested_versions_lie_in_the_declared_ranges_and_cover_them() -> None:
    pins = {canonicalize_name(r.name): r for r in map(Requirement, _lines("constraints.txt"))}
    project = _project()
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    for requirement in map(Requirement, declared):
        pin = pins[canonicalize_name(requirement.name)]
        (exact,) = pin.specifier
        assert exact.operator == "=="
        assert Version(exact.version) in requirement.specifier, requirement.name


def test_every_library_that_is_imported_is_declared() -> None:
    project = _project()
    lines = [*project["dependencies"], *project["optional-dependencies"]["zeroshot"]]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    homes = packages_distributions()
    for path in (ROOT / "ghostlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            else:
                continue
            tops = {name.split(".")[0] for name in names} - {"ghostlab", *sys.stdlib_module_names}
            for top in tops:
                owners = {canonicalize_name(home) for home in homes.get(top, [top])}
                assert owners & declared, f"{path.name} imports {top}, which pyproject.toml does not declare"


def test_every_row_on_robustness_names_tests_that_are_there() -> None:
    lines = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.endswith("| proof |")]
    assert rows
    for row in rows:
        proofs = re.findall(r"`(\w+/test_\w+)\.py::(\w+)`", row)
        assert proofs, row
        for name, test in proofs:
            assert f"def {test}(" in (ROOT / "tests" / f"{name}.py").read_text(encoding="utf-8"), test


def test_citation_and_changelog_are_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = _project()
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert cited["authors"] == project["authors"]
    assert all({"type", "title", "authors"} <= set(reference) for reference in cited["references"])
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+?)\]", changes, re.MULTILINE)[0] in (project["version"], "Unreleased")


def test_assets_are_pinned_by_hash() -> None:
    lines = _lines("assets.txt")
    assert len(lines) == 2
    assert all(re.fullmatch(r"[\w-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_nothing_large_is_tracked() -> None:
    large = [str(path) for path in _tracked() if path.exists() and path.stat().st_size > 1_000_000]
    assert large == []


def test_no_weights_or_corpora_are_tracked() -> None:
    assert [str(path) for path in _tracked() if path.suffix in WEIGHTS_AND_TEXTS] == []
