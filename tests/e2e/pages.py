"""Ways about the page that several browser tests go."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Watched

RUN_MS = 150_000
SMALL = "sequences=8&length=64&held_out=4&new_tokens=4&recover=ghost"


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def figures_have_size(page: Page, count: int) -> None:
    plots = page.locator(".js-plotly-plot:visible")
    expect(plots).to_have_count(count)
    for index in range(count):
        expect(plots.nth(index).locator(".main-svg").first).to_be_visible()
        box = plots.nth(index).bounding_box()
        assert box is not None
        assert box["width"] > 250
        assert box["height"] > 100
    # a clip path that names the page's address cuts everything away once the address changes
    clips = plots.locator("[clip-path]").evaluate_all("found => found.map(e => e.getAttribute('clip-path'))")
    assert clips
    assert [clip for clip in clips if "http" in clip] == []


def open_example(watched: Watched, query: str = "") -> Page:
    page = watched.page
    page.goto(f"{watched.url}/?{query}")
    expect(page.locator("#cards .gl-card").first).to_be_visible()
    return page
