"""What the README tells people to type is accepted by the code as it is."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ghostlab
from ghostlab.cli import main
from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError
from ghostlab.pruning.registry import CRITERIA
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.run import RunResult
from tests.helpers.folders import save_folder, tiny_config
from tests.helpers.lm import tiny_lm
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
NAMED = ("ghostlab run", "ghostlab atlas", "ghostlab evaluate", "ghostlab export")
"""Commands that compute; the others are short or, as the app, stay."""


def _blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```(?:{language})\n(.*?)```", page, flags=re.DOTALL)


def _commands() -> list[str]:
    pages = [page for name, page in PAGES.items() if name != "write_an_operator.md"]  # has a test of its own
    blocks = [block for page in (README, *pages) for block in _blocks("sh|bash", page)]
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`(ghostlab [^`]+)`", PAGES["faq.md"])
    return [line for line in dict.fromkeys(lines) if line.startswith(NAMED)]


class _Reached(GhostlabError):
    exit_code = 77


@pytest.mark.parametrize("line", _commands())
def test_lines_reach_the_lab(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def lab(_settings: object) -> None:
        raise _Reached("The flags were accepted.")

    module = ModuleType("ghostlab.lab.lab")
    module.Lab = lab  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ghostlab.lab.lab", module)
    monkeypatch.chdir(tmp_path)
    make_result().save(tmp_path / "result")
    assert main(shlex.split(line)[1:]) == _Reached.exit_code


SMALL = {
    "run": "--model tiny --sequences 4 --length 32 --held-out 3 --new-tokens 2",
    "atlas": "--model tiny --sequences 4 --length 32",
    "evaluate": "--limit 2",
}
"""What the model and the sizes of a line are replaced by, for it to take a second."""


def test_the_shell_lines_of_the_readme_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other, as somebody would type them who has a tiny model in a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GHOSTLAB_CACHE", str(tmp_path / "cache"))
    save_folder(tmp_path / "tiny", tiny_config(num_hidden_layers=26, hidden_size=64))
    block = next(block for block in _blocks("sh") if "ghostlab run" in block)
    lines = [line.split("#")[0].strip() for line in block.splitlines()]
    assert {line.split()[1] for line in lines} > {"run", "evaluate", "export", "models", "methods", "doctor"}
    for line in lines:
        words = shlex.split(f"{line} {SMALL.get(line.split()[1], '')}")
        fine = {0, 1} if words[1] == "doctor" else {0}  # 1: something that is not needed here is missing
        assert main(words[1:]) in fine, f"{line}: {capsys.readouterr().err}"
    recovered = ghostlab.load_recovered(tmp_path / "recovered")
    assert (recovered.depth, list(map(str, recovered.replacements))) == (21, ["20:25"])
    stored = RunResult.load(tmp_path / "result")
    assert [run.label for run in stored.runs] == ["ghost", "ghost_sink"]
    assert {path.name for path in tmp_path.iterdir()} >= {"atlas.json", "result", "recovered"}
    assert "arc_easy" in capsys.readouterr().out


def test_there_are_run_lines_and_make_lines_to_check() -> None:
    assert {line[: len(name)] for line in _commands() for name in NAMED if line.startswith(name)} == set(
        NAMED
    )
    assert len(_commands()) > 15
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


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a tiny model that is deep enough, with fewer tokens."""
    import ghostlab.lab.session
    from ghostlab.text.documents import divide

    model = tiny_lm(num_hidden_layers=26, max_position_embeddings=256)
    words = [" ".join(f"w{3 + (7 * i + i * j) % 93}" for j in range(300)) for i in range(100)]
    text = divide(words, name="tiny", title="Tiny", licence="none")
    for place in (ghostlab, ghostlab.lab.session):
        monkeypatch.setattr(place, "load_model", lambda *_, **__: model)
        monkeypatch.setattr(place, "load_text", lambda *_, **__: text)
    monkeypatch.setenv("GHOSTLAB_CACHE", str(tmp_path))
    small = "gl.RunConfig(sequences=8, length=32, held_out=5, new_tokens=2, "
    found: dict[str, Any] = {}
    code = _blocks("python")[0].replace("sequences=64, length=256", "sequences=8, length=64")
    exec(code.replace("gl.RunConfig(", small), found)
    assert [run.label for run in found["result"].runs] == ["ghost", "ghost_sink"]
    assert found["half"].alteration.alpha == 0.5
    assert found["row"].figure == "Layers dropped"


def test_every_operator_and_criterion_is_in_the_readme() -> None:
    tables = README[README.index("## Operators and criteria") : README.index("## Limits")]
    for name in (*OPERATORS, *CRITERIA):
        assert f"`{name}`" in tables


def test_links_between_the_documents_lead_somewhere() -> None:
    others = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for page in (*others, *(ROOT / "docs" / name for name in PAGES)):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            target, _, part = link.partition("#")
            if "://" in target or "benchmarks/" in target:
                continue
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name}: {link}"
            headings = (
                re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE) if part else []
            )
            assert not part or part in {_anchor(heading) for heading in headings}, f"{page.name}: {link}"
    linked = set(re.findall(r"\]\(docs/(\w+\.md)\)", README))
    assert linked == set(PAGES), "the index of the README names every page"


def _anchor(heading: str) -> str:
    """How a heading is addressed: lower case, hyphens for spaces, no other signs."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
