"""Pictures of the app on its stored example, for the README.

    python benchmarks/screenshots.py      # half a minute; needs Chromium, as the browser tests do

Writes assets/screenshots. Open them before you commit them.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "assets" / "screenshots"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
WIDE, PHONE = (1280, 900), (400, 860)


@dataclass(frozen=True)
class Shot:
    """A tab from the top of the element ``at``, or of the page."""

    name: str
    tab: str
    at: str = ""
    theme: str = "light"
    size: tuple[int, int] = WIDE


SHOTS = (
    Shot("overview", "Overview"),
    Shot("operator", "Operator", "#operator-block"),
    Shot("generate", "Generate", "#columns"),
    Shot("tasks", "Tasks", theme="dark"),
    Shot("atlas", "Atlas", "#atlas-words", "dark"),
    Shot("phone", "Overview", size=PHONE),
)


def main() -> None:
    """Open the app, take each picture."""
    chromium = os.environ.get("BROWSER_PATH") or shutil.which("chromium")
    with serving() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for shot in SHOTS:
            picture = Image.open(io.BytesIO(taken(browser, url, shot))).convert("RGB")
            path = FOLDER / f"{shot.name}.webp"
            picture.save(path, quality=82, method=6)
            print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB")
        browser.close()


@contextmanager
def serving() -> Iterator[str]:
    """The app in a process of its own, until it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            time.sleep(0.5)
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                continue
        yield url
    finally:
        server.terminate()
        server.wait()


def taken(browser: Browser, url: str, shot: Shot) -> bytes:
    """The picture as PNG."""
    width, height = shot.size
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(f"{url}/?__theme={shot.theme}")
    page.locator("#cards .gl-card").first.wait_for()
    open_tab(page, shot.tab)
    if shot.at:
        page.evaluate("at => document.querySelector(at)?.scrollIntoView()", shot.at)
    page.wait_for_timeout(3000)  # figures draw themselves
    picture = page.screenshot()
    context.close()
    return picture


def open_tab(page: Page, name: str) -> None:
    """Open a tab, which a narrow page may keep in its menu."""
    tab = page.get_by_role("tab", name=name, exact=True)
    if tab.count() and tab.first.is_visible():
        tab.first.click()
        return
    page.locator("#tabs .overflow-menu > button").first.click()
    page.locator("#tabs .overflow-dropdown button", has_text=name).first.click()


if __name__ == "__main__":
    main()
