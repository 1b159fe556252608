"""A person at the real app: the example, a small run and what can be made of it, a criterion on their own text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from ghostlab.cut import Cut, parse_cut
from ghostlab.errors import CutError
from tests.e2e.conftest import Watched
from tests.e2e.pages import RUN_MS, SMALL, figures_have_size, open_example, tab
from tests.helpers.documents import DOCUMENTS
from tests.helpers.server import ROOT

pytestmark = pytest.mark.e2e
FIGURES = {
    "Overview": 1,
    "Boundary error": 4,
    "Operator": 9,
    "Spectrum & rank": 5,
    "Perplexity": 5,
    "Compare": 12,
    "Atlas": 2,
}


def test_the_page_can_be_used_at_once_and_shows_the_finished_example(watched: Watched) -> None:
    page = open_example(watched)
    expect(page.locator("#run")).to_be_enabled()
    expect(page.locator("#source")).to_contain_text("Example run")
    expect(page.locator("#cards")).to_contain_text("Pruned")
    expect(page.locator("#command")).to_contain_text("ghostlab run --model embedded")
    for name, count in FIGURES.items():
        tab(page, name)
        figures_have_size(page, count)
    tab(page, "Generate")
    every_figure_says_what_it_is(page)
    tab(page, "Operator")
    before = page.locator("#operator-eigenvalues-words").inner_text()
    page.locator("#operator-recovery").get_by_label("ghost", exact=True).check()
    expect(page.locator("#operator-eigenvalues-words")).not_to_have_text(before)
    tab(page, "Generate")
    expect(page.locator("#columns article")).to_have_count(4)
    the_strip_and_the_field_say_the_same(page)
    the_strip_follows_the_model(page)
    the_strip_shows_what_a_criterion_sees_before_anything_runs(page)
    expect(page.locator("#source")).to_contain_text("Example run")
    the_map_follows_the_pointer_and_names_a_block(page)


def every_figure_says_what_it_is(page: Page) -> None:
    """On all tabs that were opened: a formula that is set, not spelled out, once the words are unfolded."""
    tab(page, "Overview")
    page.locator(".gl-what summary:visible").first.click()
    expect(page.locator(".gl-what .katex:visible").first).to_be_in_viewport()
    explanations = page.locator(".gl-what details")
    assert explanations.count() > sum(FIGURES.values()) - FIGURES["Compare"]  # texts have one too
    expect(explanations.filter(has=page.locator(".katex"))).to_have_count(explanations.count())
    expect(page.locator(".katex-error")).to_have_count(0)


def the_map_follows_the_pointer_and_names_a_block(page: Page) -> None:
    """Of the example: rows are 1 to 10 layers, columns the 30 first layers. A drag takes nothing."""
    tab(page, "Atlas")
    expect(page.locator("#atlas-source")).to_contain_text("Example, computed in advance")
    frame = page.locator("#atlas-map .nsewdrag")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    assert box is not None

    def at(start: int, length: int) -> tuple[float, float]:
        return box["x"] + box["width"] * (start + 0.5) / 30, box["y"] + box["height"] * (10.5 - length) / 10

    told, drop = page.locator("#atlas-told"), page.locator("#drop input")
    page.mouse.move(*at(4, 3))
    expect(told).to_contain_text("block 4:7")
    page.mouse.down()
    page.mouse.move(*at(11, 6), steps=4)
    expect(told).to_contain_text("Layers 11–16 (6 of 30), block 11:17")
    page.mouse.up()
    page.mouse.move(*at(12, 5))
    expect(drop).to_have_value("20:25")
    page.mouse.click(*at(12, 5))
    expect(drop).to_have_value("12:17")


WRITTEN = ("20:25", "10:12,20:25", "12,13, 27", " 7 : 9 ", "25:20", "20-25", "3:5,4:6", "28:31", "0:30", "")
"""What a person may write as the blocks of 30 to drop, right and wrong."""


def dropped(page: Page) -> list[int]:
    blocks = page.locator("#picker .gl-block[aria-pressed=true]")
    return [int(number) for number in blocks.locator("span").all_inner_texts()]


def the_strip_and_the_field_say_the_same(page: Page) -> None:
    """Click, drag, keys and words; asking the server nothing."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "queue/join" in request.url else None)
    drop, said = page.locator("#drop input"), page.locator("#picker .gl-said")
    blocks = page.locator("#picker .gl-block")
    expect(blocks).to_have_count(30)
    assert dropped(page) == [20, 21, 22, 23, 24]
    blocks.nth(27).click()
    expect(drop).to_have_value("20:25, 27")
    blocks.nth(22).click()
    expect(drop).to_have_value("20:22, 23:25, 27")
    blocks.nth(8).hover()
    page.mouse.down()
    blocks.nth(11).hover()
    assert dropped(page)[:4] == [8, 9, 10, 11]
    expect(drop).to_have_value("20:22, 23:25, 27")  # nothing is taken over before the end of the drag
    page.mouse.up()
    expect(drop).to_have_value("8:12, 20:22, 23:25, 27")
    expect(blocks.nth(8)).to_be_focused()
    for key in ("ArrowLeft", "ArrowDown", "Space"):
        page.keyboard.press(key)
    expect(drop).to_have_value("8:12, 17, 20:22, 23:25, 27")
    expect(blocks.nth(17)).to_have_attribute("aria-label", re.compile("^Layer 17, dropped; attention 885 k"))
    for words in WRITTEN:
        drop.fill(words)
        wanted, told = _cut_of(words)
        expect(page.locator("#picker .gl-block[aria-pressed=true]")).to_have_count(len(wanted))
        assert dropped(page) == wanted
        expect(said).to_have_class(re.compile("gl-wrong") if told else re.compile("gl-said$"))
    drop.fill("20:25")
    model = json.loads((ROOT / "assets/examples/default/result.json").read_text("utf-8"))["model"]
    gone, all = model["parameters_dropped"], model["parameters"]
    share = f"−{gone / 1e6:.1f} M of {all / 1e6:.0f} M ({gone / all:.1%}".replace("%", "")
    expect(page.locator("#picker [data-fact=parameters]")).to_contain_text(share)
    expect(page.locator("#picker [data-fact=memory]")).to_contain_text(f"−{gone * 4 / 1e6:.1f} MB at 32")
    expect(page.locator("#picker [data-fact=speed]")).to_contain_text(
        f"×{all / (all - gone):.2f}"
    )  # tied head
    expect(page.locator("#picker [data-fact=keep]")).to_contain_text("[0, 20] [25, 30]")
    assert asked == []


def _cut_of(words: str) -> tuple[list[int], bool]:
    """What the server makes of it: the blocks, and whether it would refuse them."""
    try:
        cut: Cut = parse_cut(words) if words else Cut(())
        cut.check(30)
    except CutError as error:
        return (list(range(30)), True) if "all 30" in str(error) else ([], bool(words))
    return list(cut.dropped), False


def the_strip_follows_the_model(page: Page) -> None:
    """Another model's blocks are drawn without loading it; what is shown of the run stays."""
    box, blocks = page.locator("#model input"), page.locator("#picker .gl-block")
    for model, count in (("google/gemma-3-1b-pt", 26), ("no/such-model", 0), ("embedded", 30)):
        box.fill(model)
        box.press("Enter")
        expect(blocks).to_have_count(count)
        sliding = page.locator("#picker .gl-sliding")
        expect(sliding).to_have_count(22 if count == 26 else 0)
    expect(page.locator("#cards .gl-card")).to_have_count(5)


def the_strip_shows_what_a_criterion_sees_before_anything_runs(page: Page) -> None:
    """Scores that the example's atlas tells are drawn at once, those of other settings never."""
    page.locator("#chooser").get_by_text("A criterion").click()
    bars, said = page.locator("#picker .gl-block s"), page.locator("#picker .gl-said")
    for criterion, count in (("shortgpt", 30), ("taylor", 0), ("angular", 30)):
        page.locator("#select input").fill(criterion)
        page.locator("#select input").press("Enter")
        expect(bars).to_have_count(count)
        expect(said).to_contain_text("criterion chooses" if count else "Score blocks shows how")
        if count:
            expect(page.locator("#picker .gl-scored")).to_contain_text(criterion)
    page.locator("#chooser").get_by_text("Blocks I name").click()


def tick_and_read_about(page: Page, operator: str) -> None:
    """Tick one more operator and open the explanations, whose formulas must be set, not spelled out."""
    page.get_by_label(re.compile(rf"\({operator}\)$")).check()
    page.get_by_role("button", name="What are these?").click()
    words = page.locator("#operators-words")
    expect(words).to_contain_text(operator)
    expect(words.locator(".katex").first).to_be_visible()
    expect(words.locator(".katex-error")).to_have_count(0)
    page.get_by_role("button", name="What are these?").click()


def a_part_of_the_map_is_heard(page: Page) -> None:
    """Put the symmetric part alone into the model, then a rank by letting the slider go."""
    page.locator("#operator-recovery").get_by_label("ghost", exact=True).check()
    page.locator("#probe-part").get_by_label("S only").check()
    page.locator("#probe").click()
    expect(page.locator("#probe-texts article")).to_have_count(3, timeout=RUN_MS)
    expect(page.locator("#probe-words")).to_contain_text("S only has")
    expect(page.locator("#probes-table")).to_contain_text("S only")
    expect(page.locator("#probe")).to_be_enabled()
    tab(page, "Spectrum & rank")
    rank = page.locator("#rank-kept input[type=number]")
    rank.fill("64")
    rank.press("Enter")
    expect(page.locator("#rank-words")).to_contain_text("Rank 64 by reduced rank explains")
    page.locator("#rank-kept input[type=range]").click()  # let go in the middle
    expect(page.locator("#rank-words")).to_contain_text("Measured: perplexity", timeout=RUN_MS)
    expect(page.locator("#ranks-words")).to_contain_text("By reduced rank, rank 28")
    expect(page.locator("#rank-measure")).to_be_enabled()
    page.locator("#rank-use").click()
    expect(page.get_by_text(re.compile("Rank of every operator: 28"))).to_be_visible()


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
    run = parse_qs(urlsplit(page.url).query)["run"][0]
    expect(page.locator("#run-link input")).to_have_value(re.compile(f"run={re.escape(run)}&.*sequences=8"))
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
    another_configuration_waits_in_the_list(page)
    expect(page.locator("#status .gl-progress")).to_be_visible()
    expect(page).to_have_url(re.compile(r"run="))
    expect(page.locator("#source")).to_contain_text("Example run")  # the earlier result stays meanwhile
    expect(page.locator("#status")).to_contain_text("Done in", timeout=RUN_MS)
    expect(page.locator("#source")).to_contain_text("Your run")
    expect(page.locator("#source")).to_contain_text("8 × 64 tokens")
    expect(page.locator("#run")).to_contain_text("Run")
    for name, count in FIGURES.items():
        tab(page, name)
        figures_have_size(page, count)
    tab(page, "Operator")
    page.locator("#operator-recovery").get_by_label("refit_layer, layer 22").check()
    expect(page.locator("#operator-energy_split-words")).to_contain_text(
        "refit_layer, layer 22 puts none in the place"
    )
    a_part_of_the_map_is_heard(page)
    tab(page, "Generate")
    columns = page.locator("#columns article")
    expect(columns).to_have_count(5)
    expect(columns.first).to_contain_text("4 tokens")
    expect(page.locator("#generate-lead")).to_contain_text("sent as a chat message")

    an_atlas_is_computed(page)
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
    expect(columns.nth(4)).to_contain_text("20 layers share the original's prompt")
    expect(columns.nth(4).locator(".gl-token[data-tip*='original: log-probability']")).to_have_count(4)
    expect(page.locator("#columns .gl-leaves").nth(1)).to_be_visible()

    link = page.url
    page.reload()
    expect(page.locator("#source")).to_contain_text("Your run")
    watched.moved_on()
    expect(page.locator("#sequences input")).to_have_value("8")
    tab(page, "Generate")
    expect(page.locator("#columns article").first).to_contain_text("Once upon a time")
    assert page.url == link
    tab(page, "Atlas")
    expect(page.locator("#atlas-source")).to_contain_text("3 blocks of 28 layers")
    a_result_can_be_taken_along_and_brought_back(page)


def another_configuration_waits_in_the_list(page: Page) -> None:
    """Queued while the first computes, told where it stands, and stopped there."""
    expect(page.locator("#run")).to_contain_text("Queue")
    page.locator("#sequences input").fill("9")
    page.locator("#run").click()
    rows = page.locator("#agenda li")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("Computing")
    expect(rows.nth(1)).to_contain_text("Next")
    expect(rows.nth(1)).to_contain_text("Sequences 9")
    rows.nth(1).get_by_role("button", name="Stop").click()
    expect(rows).to_have_count(0)
    page.locator("#sequences input").fill("8")


def an_atlas_is_computed(page: Page) -> None:
    tab(page, "Atlas")
    page.locator("#atlas-lengths input, #atlas-lengths textarea").fill("28")
    page.locator("#atlas-start").click()
    expect(page.locator("#atlas-source")).to_contain_text("3 blocks of 28 layers", timeout=RUN_MS)
    figures_have_size(page, 2)
    expect(page.locator("#source")).to_contain_text("Your run")


def hand_over_a_text(page: Page, folder: Path) -> None:
    """A bad file is told, a good one becomes the text."""
    page.get_by_role("button", name="Use a text of your own").click()
    bad, good = folder / "bad.jsonl", folder / "mine.jsonl"
    bad.write_text("{broken")
    good.write_text("\n".join(json.dumps({"text": text}) for text in DOCUMENTS))
    _chosen(page, bad)
    expect(page.get_by_text("Line 1 of bad.jsonl is not JSON")).to_be_visible()
    _chosen(page, good)
    expect(page.locator("#text input")).to_have_value(re.compile(r"^upload:mine\.jsonl/[\w-]{22}$"))


def _chosen(page: Page, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.locator("#upload").click()
    chooser.value.set_files(path)


def the_scores_name_the_blocks(page: Page) -> None:
    """On the strip, on the chart and in the list; the first click of all takes over from the criterion."""
    drop, blocks = page.locator("#drop input"), page.locator("#picker .gl-block")
    expect(drop).to_be_hidden()
    expect(page.locator("#picker .gl-said")).to_contain_text("The criterion chooses")
    expect(blocks.first).to_have_attribute("aria-label", re.compile(r"shortgpt score \d"))
    chosen = dropped(page)
    assert len(chosen) == 2
    spare = next(block for block in range(28) if block not in chosen)
    blocks.nth(spare).click()
    expect(drop).to_be_visible()
    assert parse_cut(drop.input_value()).dropped == tuple(sorted([*chosen, spare]))
    expect(page.locator("#chooser").get_by_label("Blocks I name")).to_be_checked()
    page.locator("#scores .scatterlayer .point").last.hover(force=True)
    page.mouse.down()
    page.mouse.up()
    expect(blocks.nth(29)).to_have_attribute("aria-pressed", str(29 not in chosen).lower())
    named = drop.input_value()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        page.locator("#take input").press(key)
    expect(drop).not_to_have_value(named)


def test_a_criterion_can_choose_the_blocks_on_a_text_of_ones_own(watched: Watched, tmp_path: Path) -> None:
    page = open_example(watched, "sequences=4&length=32&held_out=2&new_tokens=0&recover=ghost")
    hand_over_a_text(page, tmp_path)
    page.locator("#chooser").get_by_text("A criterion").click()
    page.locator("#select input").click()
    page.get_by_role("option", name="shortgpt").click()
    expect(page.locator("#criterion-words")).to_contain_text("turn their input the least")
    page.locator("#count input").fill("2")
    page.locator("#score").click()
    expect(page.locator("#picker .gl-block s")).to_have_count(30, timeout=RUN_MS)
    expect(page.locator("#picker .gl-said")).to_contain_text("(2 of 30)")
    expect(page.locator("#score")).to_be_enabled()
    page.locator("#run").click()
    expect(page.locator("#status")).to_contain_text("Done in", timeout=RUN_MS)
    expect(page.locator("#source")).to_contain_text("(2 of 30)")
    expect(page.locator("#source")).to_contain_text("tokens of mine.jsonl")
    expect(page.get_by_role("heading", name="How the blocks were chosen")).to_be_visible()
    the_scores_name_the_blocks(page)
