"""Results: what is saved is what is read, and damage is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ghostlab.errors import ResultError
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import OPERATOR_FILE, RESULT_FILE, RunResult
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


SELECTION: dict[str, Any] = {
    "criterion": "shortgpt",
    "convention": "Block Influence",
    "labels": ["0", "1"],
    "scores": [0.5, 0.25],
    "chosen": "1:2",
}


@pytest.fixture
def result() -> RunResult:
    operators = {"ghost/20:25/M": torch.arange(6.0).reshape(2, 3).T, "ghost/20:25/b": torch.ones(2)}
    return replace(make_result(), operators=operators)


def test_a_folder_gives_everything_back(result: RunResult, tmp_path: Path) -> None:
    result.save(tmp_path / "a" / "b")
    again = RunResult.load(tmp_path / "a" / "b")
    assert again == result
    assert again.to_dict() == result.to_dict()
    assert again.operators.keys() == result.operators.keys()
    for name, tensor in result.operators.items():
        torch.testing.assert_close(again.operators[name], tensor, rtol=0, atol=0)
    assert RunResult.load(tmp_path / "a" / "b" / RESULT_FILE) == result


def test_selection_survives(result: RunResult) -> None:
    chosen = replace(result, selection=SelectionInfo(**SELECTION), operators={})
    assert RunResult.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_a_result_of_the_first_version_is_read_as_what_it_was(result: RunResult) -> None:
    values = json.loads(json.dumps(result.to_dict()))
    values["selection"] = {**SELECTION, "lower_is_better": True}
    for run in values["runs"]:
        del run["ridges"]
        for operator in run["operators"]:
            if operator["plane"]:
                points = operator["plane"]["ordinary"]
                points["behind"] = points.pop("after")
    old = RunResult.from_dict(values)
    assert old.runs == [replace(run, ridges=[]) for run in result.runs]
    assert old.selection == SelectionInfo(**SELECTION)


def test_operators_are_never_read_from_json(result: RunResult) -> None:
    assert "operators" not in result.to_dict()
    assert RunResult.from_dict({**result.to_dict(), "operators": {"ghost/1:2/M": "junk"}}).operators == {}


def test_a_result_weighs_about_what_its_numbers_take(result: RunResult) -> None:
    figures = result.weight()[id(result.runs)]
    assert 0.5 < figures / (2 * len(json.dumps(result.to_dict()))) < 2
    assert {24, 8} <= set(result.weight().values()), "tensors by themselves, for results share them"


def test_nothing_half_written_is_left_after(result: RunResult, tmp_path: Path) -> None:
    result.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {RESULT_FILE, OPERATOR_FILE}


def test_operators_of_an_earlier_run_do_not_stay(result: RunResult, tmp_path: Path) -> None:
    result.save(tmp_path)
    replace(result, operators={}).save(tmp_path)
    assert RunResult.load(tmp_path).operators == {}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": 99}, "schema 99"),
        ({"schema": None}, "schema None"),
        ({"config": None}, "damaged at config"),
        ({"baseline": {}}, "damaged at baseline"),
        ({"runs": [{}]}, "damaged at runs.0"),
        ({"model": "x"}, "damaged at model"),
    ],
)
def test_damage_is_named(result: RunResult, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    (tmp_path / RESULT_FILE).write_text(json.dumps({**result.to_dict(), **change}))
    with pytest.raises(ResultError, match=says):
        RunResult.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"3", b"null"])
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RESULT_FILE).write_bytes(content)
    with pytest.raises(ResultError):
        RunResult.load(tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="Name a folder that --out wrote"):
        RunResult.load(tmp_path / "nowhere")


def test_damaged_operators_are_refused(result: RunResult, tmp_path: Path) -> None:
    result.save(tmp_path)
    (tmp_path / OPERATOR_FILE).write_bytes(b"not tensors")
    with pytest.raises(ResultError, match="damaged"):
        RunResult.load(tmp_path)


@pytest.mark.parametrize("had_operators", [True, False])
def test_operators_of_a_save_that_was_cut_short_are_refused(
    result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, had_operators: bool
) -> None:
    before = result if had_operators else replace(result, operators={})
    before.save(tmp_path)
    later = replace(result, operators={name: 2 * tensor for name, tensor in result.operators.items()})

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", crash)  # after the operators, before result.json
        with pytest.raises(KeyboardInterrupt):
            later.save(tmp_path)
    with pytest.raises(ResultError, match="of another run"):
        RunResult.load(tmp_path)
    later.save(tmp_path)
    torch.testing.assert_close(RunResult.load(tmp_path).operators, later.operators, rtol=0, atol=0)


def test_operators_need_a_checksum_in_the_result(result: RunResult, tmp_path: Path) -> None:
    result.save(tmp_path)
    values = json.loads((tmp_path / RESULT_FILE).read_text())
    del values["operators_sha256"]
    (tmp_path / RESULT_FILE).write_text(json.dumps(values))
    with pytest.raises(ResultError, match="damaged, or of another run"):
        RunResult.load(tmp_path)
    (tmp_path / OPERATOR_FILE).unlink()
    assert RunResult.load(tmp_path).operators == {}, "a result without operators needs none"


def test_a_result_alone_is_read_without_its_operators(result: RunResult, tmp_path: Path) -> None:
    result.save(tmp_path)
    (tmp_path / OPERATOR_FILE).unlink()
    assert RunResult.load(tmp_path).operators == {}


def test_frame_has_one_row_per_variant_with_intervals(result: RunResult) -> None:
    frame = result.to_frame().set_index("variant")
    assert list(frame.index) == ["original", "pruned", *(run.label for run in result.runs)]
    ghost = result.runs[0]
    assert frame.loc["ghost", "perplexity"] == ghost.perplexity.value
    assert frame.loc["ghost", "perplexity_high"] == ghost.perplexity.high
    assert frame.loc["ghost", "explained"] == ghost.boundary.explained
    for share in ("gap_closed", "explained", "explained_ordinary"):
        assert list(frame[share][:2]) == [1.0, 0.0]
    assert list(frame["parameters_added"][:2]) == [result.model.parameters_dropped, 0]
