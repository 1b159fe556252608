"""Every tab, light and dark, under axe-core's rules: contrast, names and roles for whoever does not see the page."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.helpers.server import Server

pytestmark = pytest.mark.e2e
RULES = {"light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "dark": ["color-contrast"]}
"""In the dark nothing but the colours is another."""
GRADIOS = 'aria-label="Empty value"'
"""What a plot of Gradio is before its first figure: a div that may not have a name. Not ours to mend."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_tab_passes_an_audit(theme: str, page_server: Server, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{page_server.url}/?__theme={theme}")
    expect(page.locator("#cards .gl-card").first).to_be_visible()
    places: dict[str, list[str]] = {}
    options = {"runOnly": RULES[theme], "resultTypes": ["violations"]}
    for name in page.locator("#tabs [role=tab]").all_inner_texts():
        page.get_by_role("tab", name=name, exact=True).click()
        panel = page.locator("#tabs [role=tabpanel]:visible")
        expect(panel).to_be_visible()
        part = f"[id='{panel.get_attribute('id')}']" if places else None  # what is around the tabs once
        places[name] = broken(page, part, options)
    context.close()
    assert {name: found for name, found in places.items() if found} == {}


def broken(page: Page, part: str | None, options: dict[str, Any]) -> list[str]:
    """The rules that a part of the page, or all of it, breaks now, and what breaks them."""
    violations: list[dict[str, Any]] = Axe().run(page, part, options=options).response["violations"]
    return [
        f"{violation['id']}: {node['target'][0]}: {node['failureSummary']}"
        for violation in violations
        for node in violation["nodes"]
        if GRADIOS not in node["html"]
    ]
