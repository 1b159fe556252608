"""``ghostlab`` as a process on the embedded model: files, contract of result.json, exit codes, sentences."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from ghostlab.cli import main
from ghostlab.config import RunConfig
from ghostlab.results.run import RunResult
from tests.helpers.folders import save_folder, tiny_config

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "ghostlab"]
SMALL = ["--sequences", "8", "--length", "64", "--held-out", "4", "--new-tokens", "4"]
METRICS = ("perplexity", "bits_per_byte", "kl", "top1_agreement")


def ghostlab(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*COMMAND, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the printed text of one small run with two recoveries."""
    out = tmp_path_factory.mktemp("cli") / "result"
    recover = ["--recover", "ghost", "--recover", "affine,rank=16"]
    done = ghostlab("run", "--drop", "20:22,27", *recover, *SMALL, "--seed", "7", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    return out, done.stdout


@pytest.fixture(scope="module")
def values(finished: tuple[Path, str]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((finished[0] / "result.json").read_text())
    return loaded


def _assert_metrics(scores: dict[str, Any]) -> None:
    for name in METRICS:
        metric = scores[name]
        assert set(metric) == {"value", "low", "high"}
        assert all(math.isfinite(number) for number in metric.values())
        assert metric["low"] <= metric["value"] <= metric["high"]


def test_out_holds_the_three_files(finished: tuple[Path, str]) -> None:
    assert {path.name for path in finished[0].iterdir()} == {
        "result.json",
        "operators.safetensors",
        "report.html",
    }
    assert "<html" in (finished[0] / "report.html").read_text(encoding="utf-8").lower()


def test_result_json_tells_what_was_run(values: dict[str, Any]) -> None:
    assert values["schema"] == 1
    config = RunConfig.from_dict(values["config"])
    assert (config.drop, config.seed, config.sequences) == ("20:22,27", 7, 8)
    model = values["model"]
    assert model["name"]
    assert (model["family"], model["layers"], model["hidden_size"]) == ("llama", 30, 576)
    assert model["parameters"] == 134_515_008
    assert values["cut"]["blocks"] == [[20, 22], [27, 28]]
    assert values["cut"]["dropped"] == [20, 21, 27]
    assert {"torch", "transformers"} <= set(values["versions"])
    assert values["timings"]
    assert all(seconds >= 0 for seconds in values["timings"].values())


def test_result_json_tells_what_was_lost(values: dict[str, Any]) -> None:
    assert {"original", "pruned"} <= set(values["baseline"])
    for scores in values["baseline"].values():
        _assert_metrics(scores)
    original, pruned = values["baseline"]["original"], values["baseline"]["pruned"]
    assert original["kl"]["value"] == pytest.approx(0, abs=1e-6)
    assert original["top1_agreement"]["value"] == 1
    assert pruned["perplexity"]["value"] > original["perplexity"]["value"]
    assert pruned["kl"]["value"] > 0
    for scores in (original, pruned):
        per_window = sum(scores["window_nll"]) / len(scores["window_nll"])
        assert math.exp(per_window) == pytest.approx(scores["perplexity"]["value"], rel=0.02)


def test_result_json_tells_what_came_back(values: dict[str, Any]) -> None:
    assert [run["method"] for run in values["runs"]] == ["ghost", "affine"]
    for run in values["runs"]:
        assert {"method", "rank", "ridge", "parameters_added"} <= set(run)
        _assert_metrics(run)
        boundary = run["boundary"]
        assert {"explained", "explained_train", "relative_error", "relative_error_ordinary"} <= set(boundary)
        assert boundary["explained"] <= 1
        assert boundary["relative_error"] > 0
        assert len(run["blocks"]) == 2
    ghost, affine = values["runs"]
    assert (ghost["rank"], affine["rank"]) == (None, 16)
    assert ghost["parameters_added"] == 2 * 576 * 576
    assert 0 < affine["parameters_added"] < ghost["parameters_added"]


def test_operators_are_plain_tensors_of_the_models_width(finished: tuple[Path, str]) -> None:
    with safe_open(finished[0] / "operators.safetensors", "pt") as stored:
        shapes = [tuple(stored.get_tensor(name).shape) for name in stored.keys()]  # noqa: SIM118
    assert (576, 576) in shapes
    assert all(576 in shape for shape in shapes)


def test_the_library_reads_what_the_command_wrote(finished: tuple[Path, str]) -> None:
    result = RunResult.load(finished[0])
    assert result.operators
    assert {"original", "pruned"} <= {generation.variant for generation in result.generations}


def test_the_table_and_the_warning_about_few_tokens(finished: tuple[Path, str]) -> None:
    out, printed = finished
    result = RunResult.load(out)
    assert f"{result.runs[0].perplexity.value:.4g}"[:4] in printed.replace(",", "")
    assert "Warning: " in printed  # 512 tokens are fewer than twice 576 channels
    assert str(out) in printed


BAD_INPUT = {
    "cut outside": ("--drop 28:31", "30 layers"),
    "all blocks": ("--drop 0:30", "all 30"),
    "empty block": ("--drop 5:5", "empty"),
    "overlap": ("--drop 3:6,5:8", "overlap"),
    "text too short": ("--text short.txt", "short"),
    "unknown text": ("--text no-such-text", "no-such-text"),
    "window too long": ("--length 9000 --sequences 1", "8192"),
    "unknown model": ("--model nobody/nothing-here", "nobody/nothing-here"),
    "not a model": ("--model ./folder", "folder"),
    "remote code": ("--model ./remote", "code"),
    "unknown recovery": ("--recover magic", "ghost"),
    "unknown criterion": ("--select magic", "shortgpt"),
    "count too large": ("--select shortgpt --count 30", "30"),
    "rank too small": ("--rank 0", "--rank is 0"),
}
"""What is wrong -> flags, and a word that the sentence must contain."""


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text that is too short, a folder without a model, and a model that brings code."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "short.txt").write_text("Only a few words.\n")
    (folder / "folder").mkdir()
    remote = folder / "remote"
    remote.mkdir()
    code = {"AutoConfig": "configuration_x.XConfig", "AutoModelForCausalLM": "modeling_x.XModel"}
    (remote / "config.json").write_text(json.dumps({"model_type": "x_of_its_own", "auto_map": code}))
    for name in ("configuration_x.py", "modeling_x.py"):
        (remote / name).write_text("raise SystemExit('code of the model was run')\n")
    return folder


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_one_clear_line_and_code_2(
    name: str, bad_files: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    flags, word = BAD_INPUT[name]
    monkeypatch.chdir(bad_files)
    code = main(["run", *SMALL, *flags.split()])
    out, err = capfd.readouterr()
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1, err
    assert err.startswith("ghostlab: ")
    assert word in err


def test_ctrl_c_stops_with_130(tmp_path: Path) -> None:
    """At a terminal, in the middle of the calibration of a tiny model, which goes on for seconds."""
    folder, out = save_folder(tmp_path / "tiny", tiny_config(max_position_embeddings=512)), tmp_path / "out"
    words = ["run", "--model", str(folder), "--drop", "1:2", "--sequences", "3000", "--batch", "1"]
    words += ["--length", "32", "--out", str(out)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "200"}
    ours, theirs = pty.openpty()
    with subprocess.Popen([*COMMAND, *words], cwd=ROOT, env=env, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while b"Collecting moments" not in seen:
            seen += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while part := os.read(ours, 4096):
                seen += part
        assert process.wait(60) == 130, seen
    os.close(ours)
    assert seen.decode().count("ghostlab: Stopped.") == 1
    assert list(out.iterdir()) == []


def test_an_atlas_holds_every_block_with_its_figures(tmp_path: Path) -> None:
    out = tmp_path / "atlas.json"
    assert main(["atlas", "--lengths", "24,28", "--sequences", "8", "--length", "64", "--out", str(out)]) == 0
    values = json.loads(out.read_text())
    assert RunConfig.from_dict(values["config"]) == RunConfig(sequences=8, length=64)
    blocks = {(block["start"], block["stop"]): block for block in values["blocks"]}
    assert set(blocks) == {(s, s + n) for n in (24, 28) for s in range(31 - n)}
    errors = ("gap", "scalar", "symmetric", "ghost", "ghost_sink")
    figures = ("cosine", "angle", *errors, "effective_rank")
    assert all(math.isfinite(block[name]) for block in blocks.values() for name in figures)
    assert sum(block["kl"] is not None for block in blocks.values()) == 2
    assert blocks[3, 27]["ghost_sink"] < blocks[3, 27]["gap"]


def test_doctor_finds_the_embedded_model(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["embedded", "model", "ok"] in [line[:3] for line in lines]
