"""A Hugging Face Space, emulated: its environment, ``python app.py`` in a process, one small run.

SPACE_PYTHON names another interpreter for the app, for example one with requirements.txt alone; see space.sh.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.helpers.ports import free_port

pytestmark = pytest.mark.ui
ROOT = Path(__file__).resolve().parents[2]
SMALL = {"sequences": 4, "length": 32, "held_out": 2, "new_tokens": 2, "recover": ["ghost"]}
SECONDS = 600.0 if "SPACE_PYTHON" in os.environ else 240.0
PYTHON = os.environ.get("SPACE_PYTHON", sys.executable)
KEPT = ("PATH", "HOME", "LANG", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")
INSTALLER = ("PIP_", "UV_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY")
"""How the app's own installer gets through, where it has to install something."""


@pytest.fixture(scope="module", params=["zero"] if sys.executable == PYTHON else ["cpu", "zero"])
def space(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of the app as a Space of this hardware starts it."""
    folder = tmp_path_factory.mktemp("space")
    port = free_port()
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    env |= {name: value for name, value in os.environ.items() if name.upper().startswith(INSTALLER)}
    env |= {
        "SPACE_ID": "somebody/ghostlab",
        "SPACE_HOST": "somebody-ghostlab.hf.space",
        "SYSTEM": "spaces",
        "GRADIO_SERVER_NAME": "0.0.0.0",
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_TEMP_DIR": str(folder / "gradio"),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_OFFLINE": "1",
        "NO_PROXY": "127.0.0.1,localhost,0.0.0.0",
        "PYTHONUNBUFFERED": "1",
    }
    if request.param == "zero":
        env |= {"SPACES_ZERO_GPU": "true", "PYTHONPATH": str(ROOT / "tests" / "helpers" / "zerogpu")}
    if sys.executable != PYTHON:
        env["GHOSTLAB_CACHE"] = str(folder / "cache")
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [PYTHON, "app.py"], cwd=ROOT, env=env, stdout=out, stderr=out, start_new_session=True
        )
        try:
            yield _client(f"http://127.0.0.1:{port}", process, log)
        except BaseException:
            print(log.read_text(encoding="utf-8"))
            raise
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with the process that it forked
            process.wait(20)
    said = log.read_text(encoding="utf-8")
    only_gradios = said.count("is required to run hot-reloading")  # it misses the host's own package
    assert said.count("Traceback") == only_gradios, said
    assert ("a GPU was lent for" in said) == (request.param == "zero"), said


def _client(url: str, process: subprocess.Popen[bytes], log: Path) -> Client:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            with urllib.request.urlopen(url, timeout=5) as page:
                assert b"Ghostlab" in page.read()
                return Client(url, verbose=False, httpx_kwargs={"timeout": 120})  # torch is imported now
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text(encoding="utf-8"))


def _ended(client: Client, run_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        status: dict[str, Any] = client.predict(run_id, api_name="/status")
        if status["state"] not in ("waiting", "running"):
            return status
        time.sleep(0.2)
    raise AssertionError(status)


def test_the_first_page_opens_for_strangers_and_a_small_run_comes_to_its_end(space: Client) -> None:
    words = str(space.config)
    assert "embedded model or texts are not installed" not in words
    assert "a local folder" not in words
    run_id = space.predict(SMALL, api_name="/run")
    status = _ended(space, run_id)
    assert (status["state"], status["error"]) == ("done", "")
    result = space.predict(run_id, api_name="/result")
    assert result["runs"][0]["label"] == "ghost"
    assert [made["variant"] for made in result["generations"]] == ["original", "pruned", "ghost"]
    for change, sentence in (
        ({"new_tokens": 129}, "This server allows at most 128"),
        ({"sequences": 5000}, "more than this server allows"),
        ({"recover": [f"ghost,rank={rank}" for rank in range(1, 10)]}, "This server allows at most 8"),
    ):
        with pytest.raises(AppError, match=sentence):
            space.predict({**SMALL, **change}, api_name="/run")
    for change in ({"model": str(ROOT)}, {"text": "/etc/passwd"}):
        failed = _ended(space, space.predict({**SMALL, **change}, api_name="/run"))
        assert failed["state"] == "failed"
        assert "this server" in failed["error"]
