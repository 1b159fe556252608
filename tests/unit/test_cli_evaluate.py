"""``ghostlab evaluate``: what it asks of the lab, what it prints and writes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ghostlab.cli import main
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import Accuracy, TaskInfo, ZeroShot
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


def found() -> ZeroShot:
    infos = [
        TaskInfo("arc_easy", "1.0", "validation", "shipped", 20),
        TaskInfo("boolq", "2.0", "test", "org/set", 20, "without titles"),
    ]
    right, worse = [1] * 16 + [0] * 4, [1] * 6 + [0] * 14
    acc = {
        name: {"arc_easy": Accuracy(sum(c) / 20, 0.1, c), "boolq": Accuracy(0.5, 0.11, [1, 0] * 10)}
        for name, c in (("original", right), ("drop", worse))
    }
    normed = {name: {"arc_easy": Accuracy(0.25, 0.1, [1] * 5 + [0] * 15)} for name in acc}
    return ZeroShot("small", ["original", "drop"], infos, acc, normed, 20, {"race": "no network"})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    class Lab:
        def __init__(self, settings: object) -> None:
            pass

        def evaluate(self, source: Any, tasks: list[str], **options: Any) -> ZeroShot:
            calls.append((source, tasks, options["limit"], options["hub"]))
            return found()

    module = ModuleType("ghostlab.lab.lab")
    module.Lab = Lab  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ghostlab.lab.lab", module)
    return calls


def test_models_are_asked_and_the_figures_printed_and_written(
    asked: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "tasks.json"
    line = f"evaluate --model embedded --model small/ --tasks arc_easy,boolq --limit 20 --out {out}"
    assert main(line.split()) == 0
    assert asked == [(["embedded", "small/"], ["arc_easy", "boolq"], 20, False)]
    printed = capsys.readouterr().out
    assert "80.0 ±10.0 / 25.0" in printed
    assert "30.0 ±10.0* / 25.0" in printed, "ten lost, none gained: marked"
    assert "50.0 ±11.0 " in printed
    assert "68.8% [" in printed
    assert "boolq: 20 questions, test split, org/set, without titles" in printed
    assert "Left out: race, no network" in printed
    assert ZeroShot.load(out) == found()


def test_a_run_is_asked_with_all_its_variants(asked: list[tuple[Any, ...]], tmp_path: Path) -> None:
    make_result().save(tmp_path)
    assert main(["evaluate", "--result", str(tmp_path), "--tasks", "shift-llm", "--hub"]) == 0
    ((source, tasks, limit, hub),) = asked
    assert isinstance(source, RunResult)
    assert (len(tasks), limit, hub) == (7, None, True)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--tasks piqa", "Give one of --model and --result"),
        ("--tasks piqa --model a --result b", "Give one of --model and --result"),
        ("--model a --tasks ,", "No task is given"),
        ("--model a", "Missing option '--tasks'"),
        ("--result nowhere --tasks piqa", "not a readable result"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_loaded(
    line: str, reason: str, asked: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *line.split()]) == 2
    assert reason in capsys.readouterr().err
    assert not asked
