"""The report in a real browser: every figure is drawn, nothing is fetched, nothing is logged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ghostlab.report import write_report
from tests.helpers.results import make_result, with_selection

pytestmark = pytest.mark.e2e
CHROMIUM = shutil.which("chromium")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]


@pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="chromium is not installed: apt install chromium"
)
def test_report_draws_every_figure_without_a_request(tmp_path: Path):
    from playwright.sync_api import sync_playwright

    path = write_report(with_selection(make_result()), tmp_path / "report.html")
    problems: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        page = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme="dark", has_touch=True)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda sent: problems.append(sent.url) if sent.url != path.as_uri() else None)
        page.goto(path.as_uri())
        boxes = page.locator(".figure")
        boxes.first.scroll_into_view_if_needed()
        page.wait_for_selector(".figure .main-svg")
        assert page.locator(".figure[data-drawn]").count() < boxes.count()  # the rest waits until scrolled to
        boxes.last.scroll_into_view_if_needed()
        boxes.last.locator(".main-svg").first.wait_for()
        boxes.last.hover()
        with page.expect_download() as saved:
            boxes.last.locator('[data-title="Download as SVG"]').click()
        assert saved.value.path().read_bytes().startswith(b"<svg")
        tokens_are_told_by_keyboard_and_tap(page)
        page.emulate_media(media="print")
        page.evaluate("boxes.forEach(draw)")
        sizes = page.evaluate(
            "boxes.map((box) => box.querySelector('.main-svg').getBoundingClientRect().width)"
        )
        assert len(sizes) > 15
        assert min(sizes) > 300
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(11, 15, 25)"
        browser.close()
    assert problems == []


def tokens_are_told_by_keyboard_and_tap(page: Page) -> None:
    tip, texts = page.locator("[role=tooltip]"), page.locator("blockquote:has(.gl-token)")
    first, second = (texts.nth(0).locator(".gl-token").nth(place) for place in (0, 1))
    first.focus()
    expect(tip).to_contain_text("original: log-probability")
    page.keyboard.press("ArrowRight")
    expect(second).to_be_focused()
    expect(second).to_have_attribute("aria-describedby", "gl-token-tip")
    assert [texts.nth(0).locator("[tabindex='0']").count(), first.get_attribute("aria-describedby")] == [
        1,
        None,
    ]
    page.keyboard.press("Tab")
    expect(texts.nth(1).locator(".gl-token").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    texts.nth(1).locator(".gl-token").nth(2).tap()
    expect(tip).to_contain_text("original: log-probability")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.locator("h1").tap()
    expect(tip).to_have_count(0)
