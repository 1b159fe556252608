"""What the page does whatever is computed: reload, Stop, refusals, a phone; at a lab that computes nothing."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from ghostlab.ui import theme
from tests.e2e.conftest import Watched
from tests.e2e.pages import RUN_MS, SMALL, figures_have_size, open_example, tab
from tests.helpers.server import Server

pytestmark = pytest.mark.e2e


def test_a_reload_in_the_middle_reattaches_and_stop_keeps_what_was_measured(
    visitor: Watched, browser: Browser
) -> None:
    page = open_example(visitor, SMALL.replace("new_tokens=4", "new_tokens=900"))
    page.locator("#run").click()
    expect(page).to_have_url(re.compile(r"run="))
    page.reload()
    expect(page.locator("#stop")).to_be_enabled()
    visitor.moved_on()
    expect(page.locator("#status [role=progressbar]")).to_be_visible()
    expect(page.locator("#source")).to_contain_text("Your run", timeout=RUN_MS)
    tab(page, "Generate")
    column = page.locator("#columns article").first
    expect(column).not_to_contain_text("reading the prompt", timeout=RUN_MS)

    other = browser.new_context()
    stranger = other.new_page()
    stranger.goto(visitor.url)
    expect(stranger.locator("#source")).to_contain_text("Example run")
    expect(stranger.locator("#stop")).to_be_disabled()
    tab(stranger, "Compare")
    runs = stranger.locator("#runs-table [role=gridcell]")
    expect(runs.filter(has_text="Example").first).to_be_visible()
    expect(runs.filter(has_text="Run 1")).to_have_count(0)
    other.close()

    page.locator("#generate-stop").click()
    page.locator("#stop").click(force=True)
    expect(page.locator("#status")).to_contain_text("Stopped after")
    expect(page.locator("#status")).to_contain_text("Finished parts are kept")
    expect(page.locator("#source")).to_contain_text("Your run")
    expect(page.locator("#run")).to_be_enabled()
    tab(page, "Overview")
    figures_have_size(page, 1)


def test_bad_input_is_answered_in_one_sentence_and_loses_nothing(visitor: Watched) -> None:
    page = open_example(visitor, SMALL)
    page.get_by_role("button", name="More settings").click()  # what is typed while a field is made is lost
    ridge = page.locator("#ridge input")
    expect(ridge).to_have_value("auto")
    drop = page.locator("#drop input")
    drop.fill("25:20")
    page.locator("#run").click()
    expect(page.locator("#drop")).to_contain_text("A block is start:stop with start < stop")
    assert any("422" in error for error in visitor.errors)  # the browser's own word for a refused form
    visitor.errors.clear()
    assert "run" not in parse_qs(urlsplit(page.url).query)

    drop.fill("20:25")
    page.locator("#sequences input").fill("0")
    page.locator("#run").click()
    expect(page.locator("#sequences")).to_contain_text("'Sequences' is 0. It must be at least 1.")
    visitor.errors.clear()

    page.locator("#sequences input").fill("8")
    drop.fill("28:31")
    page.locator("#run").click()
    expect(page.locator("#drop")).to_contain_text("Block 28:31 lies outside the model")
    visitor.errors.clear()
    expect(page.locator("#source")).to_contain_text("Example run")
    expect(page.locator("#cards .gl-card")).not_to_have_count(0)
    expect(page.locator("#run")).to_be_enabled()

    drop.fill("20:25")
    page.locator("#model input").fill("no/such-model")
    page.locator("#model input").press("Enter")
    page.locator("#run").click()
    expect(page.locator("#status .gl-failed")).to_contain_text("no/such-model", timeout=RUN_MS)

    ridge.fill("much")
    page.locator("#run").click()
    expect(page.get_by_text("Ridge 'much' is not understood")).to_be_visible()


def test_an_unknown_run_and_a_broken_link_are_said_and_the_example_is_shown(visitor: Watched) -> None:
    page = open_example(visitor, "run=no-such-run")
    expect(page.get_by_text("That run is no longer on this server")).to_be_visible()
    page = open_example(visitor, "sequences=many")
    visitor.moved_on()
    expect(page.get_by_text("'Sequences' is 'many'")).to_be_visible()
    expect(page.locator("#sequences input")).to_have_value("64")


def test_a_phone_sees_the_result_first_and_can_open_the_settings(
    page_server: Server, browser: Browser
) -> None:
    context = browser.new_context(
        viewport={"width": 400, "height": 860}, color_scheme="dark", reduced_motion="reduce"
    )
    seen = Watched(context.new_page(), page_server.url)
    page = open_example(seen, "__theme=dark")
    expect(page.locator("#sidebar")).not_to_have_class(re.compile(r"\bopen\b"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    figures_have_size(page, 1)
    the_tour_leads_from_the_blocks_to_the_texts(page)
    page.locator("#sidebar .toggle-button").click()
    expect(page.locator("#run")).to_be_in_viewport()
    assert seen.errors == []
    assert seen.strangers() == set()
    context.close()


def the_tour_leads_from_the_blocks_to_the_texts(page: Page) -> None:
    """By keys alone: each step opens its tab, points at something in sight and repeats what the page says."""
    start, box = page.get_by_role("button", name="Take the tour"), page.get_by_role("dialog")
    start.focus()
    page.keyboard.press("Enter")
    for number, step in enumerate(json.loads(theme.static("tour.json"))):
        expect(box.get_by_role("heading", name=step["title"])).to_be_focused()
        expect(box).to_contain_text(f"Step {number + 1} of 6")
        at = ", ".join(step["at"])
        expect(page.locator(f"[data-toured]:not([role=tab]):is({at})")).to_be_in_viewport()
        expect(page.locator("[role=tab][aria-selected=true]")).to_have_text(step["tab"])
        expect(box.locator(".gl-tour-says")).not_to_be_empty()
        page.keyboard.press("ArrowRight" if number < 5 else "ArrowLeft")
    expect(box).to_contain_text("Step 5 of 6")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    expect(page.locator("[data-toured]")).to_have_count(0)
    expect(start).to_be_focused()
