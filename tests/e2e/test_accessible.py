"""Every tab, one below the other, light and dark, under axe-core's rules: contrast, names and roles for whoever does not see the page."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.helpers.server import Server

pytestmark = pytest.mark.e2e
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
GRADIOS = 'aria-label="Empty value"'
"""What a plot of Gradio is before its first figure: a div that may not have a name. Not ours to mend."""


def test_every_tab_passes_an_audit(page_server: Server, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{page_server.url}/?__theme=light")
    expect(page.locator("#cards .gl-card").first).to_be_visible()
    for name in page.locator("#tabs [role=tab]").all_inner_texts():  # a tab is laid out once it is opened
        page.get_by_role("tab", name=name, exact=True).click()
        expect(page.locator("#tabs [role=tabpanel]:visible")).to_be_visible()
    page.add_style_tag(content="#tabs [role=tabpanel] { display: block !important }")
    expect(page.locator("#tabs [role=tabpanel]:visible")).to_have_count(
        page.locator("#tabs [role=tab]").count()
    )
    found = broken(page, RULES)
    page.evaluate("document.body.classList.add('dark')")  # where nothing but the colours is another
    found += broken(page, ["color-contrast"])
    context.close()
    assert found == []


def broken(page: Page, rules: list[str]) -> list[str]:
    """The rules that the page breaks now, and what breaks them."""
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    violations: list[dict[str, Any]] = Axe().run(page, options=options).response["violations"]
    return [
        f"{violation['id']}: {node['target'][0]}: {node['failureSummary']}"
        for violation in violations
        for node in violation["nodes"]
        if GRADIOS not in node["html"]
    ]
