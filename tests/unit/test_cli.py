"""The command line itself: flags, exit codes, output. The lab is a replacement; integration runs it."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ghostlab.cli import main
from ghostlab.config import FIELDS, RunConfig
from ghostlab.errors import Cancelled, ModelNotFoundError
from ghostlab.progress import CancelToken, Progress, ProgressSink
from ghostlab.results.atlas import Atlas
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from tests.helpers.atlases import make_atlas
from tests.helpers.configs import random_config
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit

Work = Callable[[Progress], None]


class FakeLab:
    """Remembers what it was asked to run; ``work`` is what happens meanwhile."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.settings: list[Settings] = []
        self.configs: list[RunConfig] = []

    def __call__(self, settings: Settings) -> FakeLab:
        self.settings.append(settings)
        return self

    def run(self, config: RunConfig, progress: ProgressSink, cancel: CancelToken) -> RunResult:
        self.configs.append(config)
        self.work(Progress(progress, cancel))
        return replace(make_result(), config=config)

    def atlas(
        self, config: RunConfig, lengths: Sequence[int], progress: ProgressSink, cancel: CancelToken
    ) -> Atlas:
        self.configs.append(config)
        self.work(Progress(progress, cancel))
        return replace(make_atlas(lengths), config=config)


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


@pytest.fixture
def install_lab(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], FakeLab]:
    def install(work: Work) -> FakeLab:
        lab = FakeLab(work)
        monkeypatch.setitem(sys.modules, "ghostlab.lab.lab", _module("ghostlab.lab.lab", Lab=lab))
        return lab

    return install


@pytest.fixture
def lab(install_lab: Callable[[Work], FakeLab], monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    def write_report(result: RunResult, path: Path) -> None:
        path.write_text(f"<html>{result.config.key}</html>")

    def write_atlas(atlas: Atlas, path: Path) -> None:
        path.write_text(f"<html>{len(atlas.blocks)} blocks</html>")

    report = _module("ghostlab.report", write_report=write_report, write_atlas=write_atlas)
    monkeypatch.setitem(sys.modules, "ghostlab.report", report)
    return install_lab(lambda progress: progress.at(0.5, "Halfway"))


def _error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; stdout must be empty."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.strip()


# -- flags -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_the_shown_command_reproduces_the_run(seed: int, lab: FakeLab) -> None:
    config = random_config(seed)
    words = shlex.split(config.to_command())
    assert words[0] == "ghostlab"
    assert main(words[1:]) == 0
    assert lab.configs == [config]


def test_without_flags_the_default_run_runs(lab: FakeLab) -> None:
    assert main(["run"]) == 0
    assert lab.configs == [RunConfig()]


def test_every_setting_has_a_flag_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("-\n", "-").split())
    for f in fields(RunConfig):
        assert f"--{f.name.replace('_', '-')} <" in text
        first_words = " ".join(FIELDS[f.name].help.split()[:4])
        assert first_words in text.replace("- ", "-"), f.name


def test_a_criterion_replaces_the_default_blocks(lab: FakeLab) -> None:
    assert main(["run", "--select", "shortgpt", "--count", "3"]) == 0
    assert (lab.configs[0].drop, lab.configs[0].select, lab.configs[0].count) == (None, "shortgpt", 3)


def test_flags_go_over_the_file(lab: FakeLab, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"select": "shortgpt", "sequences": 8, "recover": ["ghost,rank=4"]}))
    assert main(["run", "--config", str(path), "--sequences", "9", "--drop", "3:5"]) == 0
    wanted = RunConfig.from_dict({"drop": "3:5", "sequences": 9, "recover": "ghost,rank=4"})
    assert lab.configs == [wanted]
    path.write_text(json.dumps({"drop": "3:5"}))
    assert main(["run", "--config", str(path), "--select", "streamline"]) == 0
    assert (lab.configs[1].drop, lab.configs[1].select) == (None, "streamline")


def test_a_result_repeats_its_run(lab: FakeLab, tmp_path: Path) -> None:
    make_result(blocks=2, seed=5).save(tmp_path)
    assert main(["run", "--config", str(tmp_path / "result.json")]) == 0
    assert lab.configs == [make_result(blocks=2, seed=5).config]


# -- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--drop", "25:20"], "Block 25:20 is empty."),
        (["--drop", "10:15,12:20"], "overlap. Write 10:20 instead."),
        (["--drop", "x"], "'x' is not a block."),
        (["--drop", ""], "No blocks to drop"),
        (["--drop", "1:2", "--select", "shortgpt"], "Either --drop or --select decides the cut."),
        (["--length", "4"], "--length is 4. It must be at least 8."),
        (["--length", "many"], "--length is 'many'. Give a whole number, for example 256."),
        (["--bos", "perhaps"], "--bos is 'perhaps'. Choose from: auto, always, never."),
        (["--recover", "ghost,tank="], "Unknown option 'tank='."),
        (["--recover", "ghost", "--recover", "ghost"], "Name each one once."),
        (["--ridge", "-1"], "Ridge '-1' is not understood."),
        (
            ["--sequences", "100000", "--length", "100000"],
            "more than this server allows (4,000,000). Lower --sequences, --length or --held-out.",
        ),
        (["--config", "/no/such.json"], "not a readable JSON file"),
        (["--nope"], "No such option"),
        (["--text"], "requires an argument"),
        (["extra"], "extra"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    words: list[str], says: str, lab: FakeLab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *words]) == 2
    line = _error_line(capsys)
    assert line.startswith("ghostlab: ")
    assert says in line
    assert lab.configs == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not a readable JSON file"),
        ("[1]", "contains no configuration"),
        ('{"sequences": "many"}', "--sequences is 'many'. Give a whole number, for example 64."),
        ('{"sequnces": 8}', "'sequnces'"),
        ('{"schema": 1, "config": null}', "contains no configuration"),
    ],
)
def test_bad_config_files(
    content: str, says: str, lab: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    assert main(["run", "--config", str(path)]) == 2
    assert says in _error_line(capsys)
    assert lab.configs == []


def test_an_unusable_folder_is_refused_before_computing(
    lab: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["run", "--out", str(tmp_path / "file" / "result")]) == 2
    assert "cannot be made a folder" in _error_line(capsys)
    assert lab.configs == []


def test_an_unknown_command_and_a_bad_profile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prune"]) == 2
    assert "No such command 'prune'" in _error_line(capsys)
    monkeypatch.setenv("GHOSTLAB_PROFILE", "secret")
    assert main(["run"]) == 2
    assert "'local' or 'public'" in _error_line(capsys)


def test_errors_of_the_lab_keep_their_exit_code(
    install_lab: Callable[[Work], FakeLab], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Progress) -> None:
        raise ModelNotFoundError("No model at 'x'.\nLooked twice.", "Name another.")

    install_lab(fail)
    assert main(["run"]) == 2
    assert _error_line(capsys) == "ghostlab: No model at 'x'. Looked twice. Name another."


def test_the_unexpected_is_one_line_unless_debugging(
    install_lab: Callable[[Work], FakeLab], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Progress) -> None:
        raise ZeroDivisionError("by\nzero")

    install_lab(fail)
    assert main(["run"]) == 1
    line = _error_line(capsys)
    assert "ZeroDivisionError: by zero" in line
    assert "ghostlab --debug" in line
    with pytest.raises(ZeroDivisionError):
        main(["--debug", "run"])


# -- stopping --------------------------------------------------------------------------------------------


def test_ctrl_c_sets_the_token_and_exits_130(
    install_lab: Callable[[Work], FakeLab], capsys: pytest.CaptureFixture[str]
) -> None:
    reached = []

    def work(progress: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        reached.append("still running: the token is only looked at between steps")
        progress.check()
        reached.append("never")

    install_lab(work)
    before = signal.getsignal(signal.SIGINT)
    assert main(["run"]) == 130
    assert _error_line(capsys) == f"ghostlab: {Cancelled()}"
    assert len(reached) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_does_not_wait(
    install_lab: Callable[[Work], FakeLab], capsys: pytest.CaptureFixture[str]
) -> None:
    def work(_: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the second interrupt was swallowed")

    install_lab(work)
    # a worker of a parallel test run ignores the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["run"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert _error_line(capsys) == "ghostlab: Stopped."


# -- output ----------------------------------------------------------------------------------------------


def test_files_and_table(lab: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "result"
    assert main(["run", "--seed", "3", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert RunResult.load(out).config == RunConfig(seed=3)
    assert RunConfig(seed=3).key in (out / "report.html").read_text()
    result = make_result()
    lines = {line.split()[0]: line for line in printed.splitlines() if line.strip()}
    ghost = result.runs[0]
    assert f"{ghost.perplexity.value:.4g}" in lines["ghost"]
    assert f"{ghost.boundary.explained:.1%}" in lines["ghost"]
    assert f"{ghost.gap_closed:.1%}" in lines["ghost"]
    kept = result.model.parameters - result.model.parameters_dropped
    assert f"{kept / 1e6:.1f} M" in lines["pruned"]
    assert f"{(kept + ghost.parameters_added) / 1e6:.1f} M" in lines["ghost"]
    assert f"Warning: {result.warnings[0]}" in printed
    assert str(out) in printed


def test_an_atlas_prints_the_best_of_each_length_and_writes_all(
    lab: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "atlas.json"
    assert main(["atlas", "--lengths", "2,5", "--seed", "3", "--out", str(out)]) == 0
    assert lab.configs == [RunConfig(seed=3)]
    printed = capsys.readouterr().out
    rows = [line.split()[:2] for line in printed.splitlines() if line.strip()[:1] in ("2", "5")]
    assert rows == [["2", "5:7"], ["5", "4:9"]]
    assert f"Wrote {out}" in printed
    assert Atlas.load(out) == replace(make_atlas((2, 5)), config=RunConfig(seed=3))
    page = tmp_path / "atlas.html"
    assert main(["atlas", "--lengths", "2,5", "--out", str(page)]) == 0
    assert "19 blocks" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--lengths", "some"], "Write for example 1-10"), (["--drop", "3:4"], "No such option")],
)
def test_bad_input_of_an_atlas_is_one_line_and_code_2(
    words: list[str], says: str, lab: FakeLab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["atlas", *words]) == 2
    assert says in _error_line(capsys)
    assert lab.configs == []


def test_the_package_runs_as_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ghostlab", "--version"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module("ghostlab", run_name="__main__")
    assert left.value.code == 0
    assert capsys.readouterr().out.strip()


def test_no_arguments_shows_help_and_version_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "run" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ghostlab 0.")


# -- the other commands ----------------------------------------------------------------------------------


def test_app_passes_host_port_and_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[SimpleNamespace] = []

    def launch(settings: Settings, host: str | None = None, port: int | None = None) -> None:
        calls.append(SimpleNamespace(profile=settings.profile, host=host, port=port))

    monkeypatch.setitem(sys.modules, "ghostlab.ui.app", _module("ghostlab.ui.app", launch=launch))
    monkeypatch.delenv("GHOSTLAB_PROFILE", raising=False)
    monkeypatch.delenv("SPACE_ID", raising=False)
    assert main(["app"]) == 0
    assert main(["app", "--public", "--host", "0.0.0.0", "--port", "8080"]) == 0
    assert calls == [
        SimpleNamespace(profile="local", host=None, port=None),
        SimpleNamespace(profile="public", host="0.0.0.0", port=8080),
    ]
    assert main(["app", "--port", "70000"]) == 2


def test_models_lists_the_catalogue_and_the_families(capsys: pytest.CaptureFixture[str]) -> None:
    from ghostlab.model.catalog import CATALOG
    from ghostlab.model.families import FAMILIES

    assert main(["models"]) == 0
    printed = capsys.readouterr().out
    for entry in CATALOG:
        assert entry.source in printed
    for family in FAMILIES:
        assert f"  {family}: " in printed


def test_doctor_names_what_is_missing_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ghostlab.cli.doctor.EMBEDDED_PACKAGES", {"no_such_package": "embedded model"})
    monkeypatch.setenv("GHOSTLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "x").write_bytes(bytes(20_000_000))
    assert main(["doctor"]) == 1
    lines = {
        line.strip().rsplit("  ", 1)[0].split("  ")[0]: line for line in capsys.readouterr().out.splitlines()
    }
    assert "missing" in lines["embedded model"]
    assert "make setup" in lines["embedded model"]
    assert " ok " in lines["python"]
    assert "0.02 GB" in lines["cache"]


def test_doctor_knows_a_device_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GHOSTLAB_DEVICE", "warp")
    assert main(["doctor"]) == 1
    assert "'warp' is not a device." in capsys.readouterr().out


def test_doctor_does_not_mind_files_that_another_process_deletes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GHOSTLAB_CACHE", str(tmp_path))
    (tmp_path / "states").mkdir()
    (tmp_path / "states" / "gone").write_bytes(bytes(10_000_000))
    (tmp_path / "kept").write_bytes(bytes(20_000_000))
    walk = os.walk

    def listed_then_deleted(folder: Path) -> Iterator[Any]:
        for place in walk(folder):
            (tmp_path / "states" / "gone").unlink(missing_ok=True)
            yield place

    monkeypatch.setattr("ghostlab.cli.doctor.os.walk", listed_then_deleted)
    assert main(["doctor"]) in (0, 1)
    assert f"{tmp_path} (0.02 GB)" in capsys.readouterr().out


def test_plug_ins_that_were_left_out_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = "The operator plug-in 'halfway' of package 'other' was left out: ImportError: no module."
    monkeypatch.setattr("ghostlab.registry.problems", lambda: [problem])
    assert main(["methods"]) == 0
    assert f"Warning: {problem}" in capsys.readouterr().out
    assert main(["doctor"]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "plug-in" in line)
    assert " problem " in line
    assert problem in line


def test_methods_can_be_written_as_the_tables_of_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    from ghostlab.pruning.registry import CRITERIA
    from ghostlab.recovery.registry import OPERATORS

    assert main(["methods", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("") == 1
    for name in (*OPERATORS, *CRITERIA):
        assert sum(line.startswith(f"| `{name}` |") for line in lines) == 1


def test_files_are_written_before_anything_is_printed(
    lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: Any, **__: Any) -> None:
        raise BrokenPipeError("nobody reads")

    monkeypatch.setattr("ghostlab.cli.show.Console.print", closed)
    assert main(["run", "--out", str(tmp_path / "out")]) == 1
    assert RunResult.load(tmp_path / "out").config == RunConfig()
    assert main(["atlas", "--lengths", "2", "--out", str(tmp_path / "atlas.json")]) == 1
    assert Atlas.load(tmp_path / "atlas.json").lengths == [2]
