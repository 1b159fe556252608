"""Headless Chromium at two servers: the real app in a process of its own, and a page whose lab computes nothing.

What is about the page alone (reload, Stop, refusals, phone, audit) needs no model. With GHOSTLAB_TESTS=all
(``make test-all``) it is tried at the real app too.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from ghostlab.errors import ModelNotFoundError
from ghostlab.lab.requests import RunRequest, Work
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.ui.app import build_app
from tests.helpers.atlases import make_atlas
from tests.helpers.fakelab import FakeLab
from tests.helpers.ports import free_port
from tests.helpers.results import make_result
from tests.helpers.server import QUIET_ENV, Server

PATIENCE = 60_000
"""Milliseconds that a sound page may need where everything else runs beside it."""
expect.set_options(timeout=PATIENCE)
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
        broken_off = re.compile("AbortError|errored out|Unexpected error 404")
        own = [error for error in self.errors if broken_off.search(error)]
        assert self.errors == own
        self.errors.clear()

    def strangers(self) -> set[str]:
        """Addresses outside this machine that the page asked for."""
        urls = map(urlsplit, self.requests)
        return {u.geturl() for u in urls if u.scheme not in ("data", "blob") and u.hostname != "127.0.0.1"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield opened
        opened.close()


class SlowLab(FakeLab):
    """Has its figures at once, writes a word and goes on until it is stopped; knows the embedded model only."""

    def run(self, request: RunRequest, work: Work) -> RunResult:
        if request.config.model != "embedded":
            raise ModelNotFoundError(f"There is no model '{request.config.model}'.")
        result = replace(make_result(), config=request.config, generations=[])
        assert work.on_result is not None
        assert work.on_text is not None
        work.on_result(result)
        work.on_text("original", " once")
        while True:
            work.steps.at(0.9, "Generating")
            time.sleep(0.02)


@pytest.fixture(scope="session")
def page_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The page with a small example."""
    if os.environ.get("GHOSTLAB_TESTS") == "all":
        yield request.getfixturevalue("server")
        return
    folder = tmp_path_factory.mktemp("page")
    example = make_result(("ghost", "mean_shift")).save(folder / "example")
    make_atlas().save(example / "atlas.json")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**QUIET_ENV, "GRADIO_TEMP_DIR": str(folder / "gradio")}.items():
            patch.setenv(name, value)
        lab = SlowLab()
        demo, arguments = build_app(Settings(cache=folder / "cache"), lab, example)
        _, url, _ = demo.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, **arguments)
        yield Server(url.rstrip("/"), folder / "no log")
        demo.close()


@pytest.fixture
def watched(browser: Browser, server: Server) -> Iterator[Watched]:
    """A fresh visitor of the real app."""
    with visit(browser, server) as seen:
        yield seen


@pytest.fixture
def visitor(browser: Browser, page_server: Server) -> Iterator[Watched]:
    """A fresh visitor of the page whose lab computes nothing."""
    with visit(browser, page_server) as seen:
        yield seen


@contextmanager
def visit(browser: Browser, server: Server) -> Iterator[Watched]:
    """Whatever a test does, no error and no request to elsewhere is allowed."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    seen = Watched(context.new_page(), server.url)
    seen.page.set_default_timeout(PATIENCE)
    yield seen
    context.close()
    assert seen.errors == []
    assert seen.strangers() == set()
