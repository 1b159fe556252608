"""A person at the real app: the example, a small run, Stop, reload, bad input, phone and dark page."""

from __future__ import annotations

import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Server, Watched

pytestmark = pytest.mark.e2e
RUN_MS = 150_000
SMALL = "sequences=8&length=64&held_out=4&new_tokens=4&recover=ghost"
FIGURES = {
    "Overview": 1,
    "Boundary error": 4,
    "Operator": 5,
    "Spectrum & rank": 3,
    "Perplexity": 4,
    "Compare": 8,
}


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


def open_example(watched: Watched, query: str = "") -> Page:
    page = watched.page
    page.goto(f"{watched.url}/?{query}")
    expect(page.locator("#cards .gl-card").first).to_be_visible()
    return page


def test_the_page_is_usable_in_seconds_and_shows_the_finished_example(
    watched: Watched, server: Server
) -> None:
    start = time.monotonic()
    page = open_example(watched)
    expect(page.locator("#run")).to_be_enabled()
    waited = server.seconds + time.monotonic() - start
    assert waited < 30, f"{waited:.1f} s; 6 s on an idle machine"
    expect(page.locator("#source")).to_contain_text("Example run")
    expect(page.locator("#cards")).to_contain_text("Pruned")
    expect(page.locator("#command")).to_contain_text("ghostlab run --model embedded")
    for name, count in FIGURES.items():
        tab(page, name)
        figures_have_size(page, count)
    tab(page, "Operator")
    before = page.locator("#operator-3-words").inner_text()
    page.locator("#operator-recovery").get_by_label("ghost", exact=True).check()
    expect(page.locator("#operator-3-words")).not_to_have_text(before)
    tab(page, "Generate")
    expect(page.locator("#columns article")).to_have_count(4)


def everything_is_offered(page: Page) -> None:
    """Operators and criteria are listed once torch is loaded, which takes a cold machine a while."""
    expect(page.get_by_label("mean_shift", exact=True)).to_be_visible(timeout=RUN_MS)


def tick_and_read_about(page: Page, operator: str) -> None:
    """Tick one more operator and open the explanations, whose formulas must be set, not spelled out."""
    everything_is_offered(page)
    page.get_by_label(operator, exact=True).check()
    page.get_by_role("button", name="What are these?").click()
    words = page.locator("#operators-words")
    expect(words).to_contain_text(operator)
    expect(words.locator(".katex").first).to_be_visible()
    expect(words.locator(".katex-error")).to_have_count(0)
    page.get_by_role("button", name="What are these?").click()


def the_example_and_the_run_can_be_compared(page: Page) -> None:
    """Both are listed; a click after sorting takes the row that is seen, and all of it can be exported."""
    tab(page, "Compare")
    cells = page.locator("#runs-table [role=gridcell]")
    expect(cells.filter(has_text="Run 1").first).to_be_visible()
    header = page.locator("#runs-table th", has_text="Perplexity")
    header.hover()
    header.get_by_label("Open cell menu").click()
    page.get_by_role("menuitem", name="Sort ascending").click()
    pruned = cells.filter(has_text="pruned").first
    row = pruned.locator("xpath=..").inner_text().split()
    pruned.click()
    run = "Run 1" if "Run" in row else "Example"
    expect(page.locator("#compare-second input")).to_have_value(f"{run}: pruned")
    expect(page.locator("#verdict")).to_contain_text("pruned")
    expect(page.locator("#pair-table")).to_contain_text("Nats per token")
    with page.expect_download() as export:
        page.locator("#compare-csv").click()
    assert export.value.path().read_text(encoding="utf-8").startswith("no,run,model,cut,recovery,perplexity")


def a_result_can_be_taken_along_and_brought_back(page: Page) -> None:
    """Links, a report, an SVG of a figure, and the result's own file, which opens as a run of its own."""
    tab(page, "Overview")
    expect(page.locator("#run-link input")).to_have_value(page.url)
    query = parse_qs(urlsplit(page.locator("#config-link input").input_value()).query)
    assert query["drop"] == ["20:25"]
    assert query["sequences"] == ["8"]
    files = {}
    for name in ("report", "result", "operators"):
        with page.expect_download() as download:
            page.locator(f"#get-{name}").click()
        assert re.search(r"/[0-9a-f]{64}/ghostlab-", download.value.url), "not to be guessed"
        files[name] = download.value.path().read_bytes()
    assert b"plotly.js v" in files["report"]
    assert len(files["operators"]) > 4 * 576**2
    page.locator("#overview-perplexity .js-plotly-plot").hover()
    with page.expect_download() as figure:
        page.locator('#overview-perplexity [data-title="Download as SVG"]').click()
    assert figure.value.path().read_bytes().startswith(b"<svg")
    given = {"name": "result.json", "mimeType": "application/json", "buffer": files["result"]}
    chooser = page.locator("input[type=file][accept*=json]")
    chooser.set_input_files(given)
    expect(page.locator("#source")).to_contain_text("From a file")
    chooser.set_input_files({**given, "buffer": b"{}"})
    expect(page.locator("[data-testid=toast-body]").first).to_contain_text("neither a result nor settings")
    chooser.set_input_files({**given, "buffer": b'{"sequences": 9}'})
    expect(page.locator("#sequences input")).to_have_value("9")


def test_a_small_run_goes_to_its_end_and_is_found_again_by_its_link(watched: Watched) -> None:
    page = open_example(watched, SMALL)
    expect(page.locator("#sequences input")).to_have_value("8")
    tick_and_read_about(page, "mean_shift")
    page.locator("#typed input, #typed textarea").fill("refit_layer, layer=22")
    page.locator("#run").click()
    expect(page.locator("#run")).to_be_disabled()
    expect(page.locator("#status .gl-progress")).to_be_visible()
    expect(page).to_have_url(re.compile(r"run="))
    expect(page.locator("#source")).to_contain_text("Example run")  # the earlier result stays meanwhile
    expect(page.locator("#status")).to_contain_text("Done in", timeout=RUN_MS)
    expect(page.locator("#source")).to_contain_text("Your run")
    expect(page.locator("#source")).to_contain_text("8 × 64 tokens")
    expect(page.locator("#run")).to_be_enabled()
    for name, count in FIGURES.items():
        tab(page, name)
        figures_have_size(page, count)
    tab(page, "Operator")
    page.locator("#operator-recovery").get_by_label("refit_layer, layer 22").check()
    expect(page.locator("#operator-0-words")).to_contain_text(
        "refit_layer, layer 22 puts no linear map in the place"
    )
    tab(page, "Generate")
    columns = page.locator("#columns article")
    expect(columns).to_have_count(5)
    expect(columns.first).to_contain_text("4 tokens")

    the_example_and_the_run_can_be_compared(page)
    tab(page, "Generate")
    page.locator("#generate-prompt textarea").fill("Once upon a time")
    page.locator("#generate-format input").fill("raw")
    page.keyboard.press("Enter")
    page.locator("#generate").click()
    expect(columns.first).to_contain_text("Once upon a time", timeout=RUN_MS)
    expect(page.locator("#generate-lead")).to_contain_text("continued as it stands", timeout=RUN_MS)
    expect(page.locator("#status")).to_contain_text("Done in", timeout=RUN_MS)
    expect(columns.nth(4)).to_contain_text(re.compile("at token [1-4] of 4|all 4 tokens"))
    expect(columns.nth(4)).to_contain_text("20 blocks share the original's prompt")
    expect(columns.nth(4).locator(".gl-token[title*='original: log-probability']")).to_have_count(4)
    expect(page.locator("#columns .gl-leaves").nth(1)).to_be_visible()
    expect(page.locator("#generate-lead")).to_contain_text("put as a chat message")

    link = page.url
    page.reload()
    expect(page.locator("#source")).to_contain_text("Your run")
    watched.moved_on()
    expect(page.locator("#sequences input")).to_have_value("8")
    tab(page, "Generate")
    expect(page.locator("#columns article").first).to_contain_text("Once upon a time")
    assert page.url == link
    a_result_can_be_taken_along_and_brought_back(page)


def test_a_reload_in_the_middle_reattaches_and_stop_keeps_what_was_measured(
    watched: Watched, browser: Browser
) -> None:
    page = open_example(watched, SMALL.replace("new_tokens=4", "new_tokens=900"))
    page.locator("#run").click()
    expect(page).to_have_url(re.compile(r"run="))
    page.reload()
    expect(page.locator("#stop")).to_be_enabled()
    watched.moved_on()
    expect(page.locator("#status [role=progressbar]")).to_be_visible()
    expect(page.locator("#source")).to_contain_text("Your run", timeout=RUN_MS)
    tab(page, "Generate")
    column = page.locator("#columns article").first
    expect(column).not_to_contain_text("waiting for its turn", timeout=RUN_MS)

    other = browser.new_context()
    stranger = other.new_page()
    stranger.goto(watched.url)
    expect(stranger.locator("#source")).to_contain_text("Example run")
    expect(stranger.locator("#stop")).to_be_disabled()
    tab(stranger, "Compare")
    runs = stranger.locator("#runs-table [role=gridcell]")
    expect(runs.filter(has_text="Example").first).to_be_visible()
    expect(runs.filter(has_text="Run 1")).to_have_count(0)
    other.close()

    page.locator("#generate-stop").click()
    page.locator("#stop").click(force=True)
    expect(page.locator("#status")).to_contain_text("Stopped after", timeout=15_000)
    expect(page.locator("#status")).to_contain_text("What was finished is kept")
    expect(page.locator("#source")).to_contain_text("Your run")
    expect(page.locator("#run")).to_be_enabled()
    tab(page, "Overview")
    figures_have_size(page, 1)


def test_bad_input_is_answered_in_one_sentence_and_loses_nothing(watched: Watched) -> None:
    page = open_example(watched, SMALL)
    drop = page.locator("#drop input")
    drop.fill("25:20")
    page.locator("#run").click()
    expect(page.locator("#drop")).to_contain_text("A block is start:stop with start < stop")
    assert any("422" in error for error in watched.errors)  # the browser's own word for a refused form
    watched.errors.clear()
    assert "run" not in parse_qs(urlsplit(page.url).query)

    drop.fill("20:25")
    page.locator("#sequences input").fill("0")
    page.locator("#run").click()
    expect(page.locator("#sequences")).to_contain_text("sequences is 0. It must be at least 1.")
    watched.errors.clear()

    page.locator("#sequences input").fill("8")
    drop.fill("28:31")
    page.locator("#run").click()
    expect(page.locator("#status")).to_contain_text("Block 28:31 lies outside the model", timeout=RUN_MS)
    expect(page.locator("[data-testid=toast-body]").first).to_contain_text("lies outside the model")
    expect(page.locator("#source")).to_contain_text("Example run")
    expect(page.locator("#cards .gl-card")).not_to_have_count(0)
    expect(page.locator("#run")).to_be_enabled()

    drop.fill("20:25")
    page.locator("#model input").fill("no/such-model")
    page.locator("#model input").press("Enter")
    page.locator("#run").click()
    expect(page.locator("#status .gl-failed")).to_contain_text("no/such-model", timeout=RUN_MS)

    page.get_by_role("button", name="More settings").click()
    page.locator("#ridge input").fill("much")
    page.locator("#run").click()
    expect(page.get_by_text("Ridge 'much' is not understood")).to_be_visible()


def the_scores_name_the_blocks(page: Page) -> None:
    """A click on the last dot adds the last layer to the two that were chosen; the list adds the third best."""
    drop = page.locator("#drop input")
    expect(drop).to_be_hidden()
    page.locator("#scores .scatterlayer .point").last.hover(force=True)
    page.mouse.down()
    page.mouse.up()
    expect(drop).to_have_value(re.compile(r",29:30$"))
    expect(page.locator("#chooser").get_by_label("Blocks I name")).to_be_checked()
    named = drop.input_value()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        page.locator("#take input").press(key)
    expect(drop).not_to_have_value(named)


def test_a_criterion_can_choose_the_blocks(watched: Watched) -> None:
    page = open_example(watched, "sequences=4&length=32&held_out=2&new_tokens=0&recover=ghost")
    everything_is_offered(page)
    page.locator("#chooser").get_by_text("A criterion").click()
    page.locator("#select input").click()
    page.get_by_role("option", name="shortgpt").click()
    expect(page.locator("#criterion-words")).to_contain_text("turn their input the least")
    page.locator("#count input").fill("2")
    page.locator("#run").click()
    expect(page.locator("#status")).to_contain_text("Done in", timeout=RUN_MS)
    expect(page.locator("#source")).to_contain_text("(2 of 30)")
    expect(page.get_by_text("How the blocks were chosen")).to_be_visible()
    the_scores_name_the_blocks(page)


def test_an_unknown_run_and_a_broken_link_are_said_and_the_example_is_shown(watched: Watched) -> None:
    page = open_example(watched, "run=no-such-run")
    expect(page.get_by_text("That run is no longer on this server")).to_be_visible()
    page = open_example(watched, "sequences=many")
    watched.moved_on()
    expect(page.get_by_text("sequences is 'many'")).to_be_visible()
    expect(page.locator("#sequences input")).to_have_value("64")


def test_a_phone_sees_the_result_first_and_can_open_the_settings(server: Server, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 400, "height": 860}, color_scheme="dark")
    seen = Watched(context.new_page(), server.url)
    page = open_example(seen, "__theme=dark")
    expect(page.locator("#sidebar")).not_to_have_class(re.compile(r"\bopen\b"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    figures_have_size(page, 1)
    page.locator("#sidebar .toggle-button").click()
    expect(page.locator("#run")).to_be_in_viewport()
    assert seen.errors == []
    assert seen.strangers() == set()
    context.close()
