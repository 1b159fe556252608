"""The real app in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
QUIET_ENV = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "GRADIO_SERVER_NAME": "127.0.0.1",
}


@dataclass(frozen=True)
class Server:
    """A running app."""

    url: str
    log: Path


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """``python app.py``, for as long as the block lasts; its temporary files are in ``folder``."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    env = {**os.environ, **QUIET_ENV, "GRADIO_SERVER_PORT": str(port), "GRADIO_TEMP_DIR": str(folder)}
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=env, stdout=out, stderr=out)
        try:
            _wait_for(url, process, log)
            yield Server(url, log)
        finally:
            process.terminate()
            process.wait(20)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the app did not answer: {log.read_text(encoding='utf-8')}")
