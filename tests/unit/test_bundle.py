"""Files for taking along: whole, readable elsewhere, and honest about what is missing."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from ghostlab.errors import ResultError
from ghostlab.report import bundle
from ghostlab.results.run import RunResult
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def result() -> RunResult:
    return replace(make_result(blocks=2), operators={"ghost/0.M": torch.arange(6.0).reshape(2, 3).T})


def test_the_archive_holds_every_file_and_each_can_be_read(result: RunResult, tmp_path: Path) -> None:
    path = bundle.write(result, "everything.zip", tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [f"ghostlab-{result.config.key}-everything.zip"]
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == {
            "README.txt", "report.html", "result.json", "operators.safetensors", *bundle.tables(result),
        }  # fmt: skip
        assert result.config.to_command() in archive.read("README.txt").decode()
        assert RunResult.from_dict(json.loads(archive.read("result.json"))) == result
        archive.extract("operators.safetensors", tmp_path)
        figures = pd.read_csv(io.BytesIO(archive.read("figures.csv")))
        assert archive.read("report.html").decode().count("plotly.js v") == 1
    assert torch.equal(
        load_file(tmp_path / "operators.safetensors")["ghost/0.M"], result.operators["ghost/0.M"]
    )
    assert list(figures["variant"]) == ["original", "pruned", "ghost", "affine"]
    assert figures["perplexity_low"][2] == pytest.approx(result.runs[0].perplexity.low)
    assert figures["explained_ordinary"][2] == pytest.approx(result.runs[0].boundary.explained_ordinary)


def test_operators_of_an_archive_that_were_tampered_with_are_refused_when_it_is_opened(
    result: RunResult, tmp_path: Path
) -> None:
    with zipfile.ZipFile(bundle.write(result, "everything.zip", tmp_path)) as archive:
        archive.extractall(tmp_path / "taken")
    opened = RunResult.load(tmp_path / "taken")
    assert torch.equal(opened.operators["ghost/0.M"], result.operators["ghost/0.M"])
    named = json.loads(bundle.write(result, "result.json", tmp_path).read_text(encoding="utf-8"))
    assert named == json.loads((tmp_path / "taken" / "result.json").read_text(encoding="utf-8"))
    save_file({"ghost/0.M": torch.zeros(3, 2)}, tmp_path / "taken" / "operators.safetensors")
    with pytest.raises(ResultError, match="damaged, or of another run"):
        RunResult.load(tmp_path / "taken")


def test_tables_hold_the_numbers_that_figures_are_drawn_from(result: RunResult) -> None:
    made = bundle.tables(result)
    assert list(made["windows.csv"]["ghost"]) == result.runs[0].window_nll
    assert list(made["windows.csv"].columns) == ["window", "original", "pruned", "ghost", "affine"]
    positions = made["positions.csv"]
    assert len(positions) == len(result.runs[0].boundary.position_error)
    assert pd.isna(positions["ghost"].iloc[-1]), "a window of 256 tokens predicts 255"
    assert list(made["channels.csv"]["affine"]) == result.runs[1].boundary.channel_error
    ranks = made["ranks.csv"]
    assert set(ranks["block"]) == {"10:12", "20:25"}
    assert set(bundle.tables(replace(result, runs=[]))) == set(made)


def test_operators_that_are_not_there_are_said_to_be_missing(tmp_path: Path) -> None:
    bare = make_result()
    with pytest.raises(ResultError, match="stored without its operators"):
        bundle.write(bare, "operators.safetensors", tmp_path)
    with zipfile.ZipFile(bundle.write(bare, "everything.zip", tmp_path)) as archive:
        assert "operators.safetensors" not in archive.namelist()
    with pytest.raises(ResultError, match="could not be written"):
        bundle.write(bare, "result.json", tmp_path / "absent")


def test_the_downloaded_report_names_no_address_outside_itself(result: RunResult, tmp_path: Path) -> None:
    page = bundle.write(result, "report.html", tmp_path).read_text(encoding="utf-8")
    ours = re.sub(r"<script>/\*\*.*?plotly\.js v.*?</script>", "", page, flags=re.DOTALL)
    assert len(ours) < len(page) - 3_000_000, "plotly.js itself, which the policy below keeps from fetching"
    assert re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}", ours) == []
    assert "default-src 'none'" in ours
