"""The real app in a process of its own, and headless Chromium looking at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.helpers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
expect.set_options(timeout=20_000)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
QUIET_ENV = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "GRADIO_SERVER_NAME": "127.0.0.1",
}


@dataclass
class Watched:
    """A page with what went wrong on it and where its requests went."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def moved_on(self) -> None:
        """To be called after leaving a page: its complaints of its own broken-off streams do not count."""
        own = [error for error in self.errors if "AbortError" in error or "errored out" in error]
        assert self.errors == own
        self.errors.clear()

    def strangers(self) -> set[str]:
        """Addresses outside this machine that the page asked for."""
        urls = map(urlsplit, self.requests)
        return {u.geturl() for u in urls if u.scheme not in ("data", "blob") and u.hostname != "127.0.0.1"}


@dataclass(frozen=True)
class Server:
    """A running app."""

    url: str
    seconds: float
    log: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("app")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    env = {**os.environ, **QUIET_ENV, "GRADIO_SERVER_PORT": str(port), "GRADIO_TEMP_DIR": str(folder)}
    log = folder / "log.txt"
    with log.open("wb") as out:
        start = time.monotonic()
        process = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=env, stdout=out, stderr=out)
        try:
            _wait_for(url, process, log)
            yield Server(url, time.monotonic() - start, log)
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def watched(
    browser: Browser, server: Server, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Watched]:
    """A fresh visitor; whatever a test does, no error and no request to elsewhere is allowed."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    seen = Watched(context.new_page(), server.url)
    seen.page.set_default_timeout(20_000)
    yield seen
    if seen.page.url.startswith("http"):
        seen.page.screenshot(path=tmp_path / f"{request.node.name[:60]}.png")
    context.close()
    assert seen.errors == []
    assert seen.strangers() == set()
