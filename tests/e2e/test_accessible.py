"""Every tab, light and dark, under axe-core's rules: contrast, names and roles for whoever does not see the page."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e
OPTIONS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
GRADIOS = 'aria-label="Empty value"'
"""What a plot of Gradio is before its first figure: a div that may not have a name. Not ours to mend."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_tab_passes_an_audit(theme: str, server: Server, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{server.url}/?__theme={theme}")
    expect(page.locator("#cards .gl-card").first).to_be_visible()
    found: dict[str, list[str]] = {}
    for name in page.locator("#tabs [role=tab]").all_inner_texts():
        page.get_by_role("tab", name=name, exact=True).click()
        expect(page.locator("#tabs [role=tabpanel]:visible")).to_be_visible()
        for rule, places in broken(page).items():
            found.setdefault(rule, []).extend(f"{name}: {place}" for place in places)
    context.close()
    assert found == {}


def broken(page: Page) -> dict[str, list[str]]:
    """Rules that the page breaks now, each with what breaks it."""
    violations: list[dict[str, Any]] = Axe().run(page, options=OPTIONS).response["violations"]
    found: dict[str, list[str]] = {}
    for violation in violations:
        for node in violation["nodes"]:
            if GRADIOS not in node["html"]:
                found.setdefault(violation["id"], []).append(f"{node['target'][0]}: {node['failureSummary']}")
    return found
