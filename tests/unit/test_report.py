"""The report is one closed file that states everything and trusts no text."""

from __future__ import annotations

import html
import json
import re
from dataclasses import fields, is_dataclass, replace

import plotly.io
import pytest

from ghostlab import report
from ghostlab.config import RunConfig
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures import directions, tasks
from ghostlab.plots.figures.atlas import MEASURES
from ghostlab.results.probe import Alteration, Probe
from tests.helpers.atlases import make_atlas
from tests.helpers.results import MULTIPLIES, make_probe, make_result, with_selection
from tests.helpers.zeroshot import make_zero_shot

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def page() -> str:
    return report.render(with_selection(make_result(blocks=2)))


def test_report_states_command_texts_warnings_and_versions(page):
    result = make_result(blocks=2)
    assert result.config.to_command() in page
    for text in (
        result.text.calibration,
        result.text.held_out,
        result.warnings[0],
        "2.13.0",
        result.config.key,
    ):
        assert text in page
    assert "layers 10–11, 20–24 (7 of 30)" in page
    assert "streamline (mean cosine distance per token)" in page


def test_report_says_which_recoveries_can_be_ordinary_checkpoints():
    page = report.render(make_result(("ghost", "mean_shift", "affine")))
    facts = dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert facts["ghost, affine"] == f"no: {MULTIPLIES}"
    assert facts["mean_shift"].startswith("ghostlab export --result result/ --method mean_shift --stock ")


def test_report_table_has_every_variant_with_intervals(page):
    table = page[page.index("<table") : page.index("</table>")]
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)<small>(.*?)</small>', table)
    assert [name for name, _, _ in rows] == ["original", "pruned", "ghost", "affine"]
    assert all(" to " in interval for _, _, interval in rows)


def test_report_holds_plotly_once_and_every_figure_as_json(page):
    assert page.count("plotly.js v") == 1
    stored = re.findall(r'<script type="application/json" id="(figure-\d+)">(.*?)</script>', page, re.DOTALL)
    boxes = re.findall(r'data-figure="(figure-\d+)"', page)
    assert [name for name, _ in stored] == boxes
    assert len(boxes) > 20
    first = plotly.io.from_json(stored[0][1])
    assert first.data[0].name == "original"


def test_every_figure_of_the_report_is_explained(page):
    articles = re.findall(r"<article.*?</article>", page, re.DOTALL)
    drawn = [article for article in articles if "data-figure" in article]
    assert len(drawn) > 20
    assert all(article.count("<summary>What is this?</summary>") == 1 for article in drawn)
    told = html.unescape(page)
    assert all(name not in told or FIGURES[name].formula in told for name in ("perplexity", "heat_map"))
    assert "<i>matrix</i>" in page
    assert "<code>ghost_sink</code>" in page


def test_report_has_what_the_app_tells_of_directions_tasks_and_probes():
    nasty = "<b>"
    asked = make_zero_shot(["original", "pruned", "ghost"], ["arc_easy", "piqa"])
    spoken = make_result().generations[2]
    result = make_result()
    metric = result.runs[0].perplexity
    probe = Probe(
        result.runs[0].label, Alteration("symmetric", 0.5), 9, metric, metric, metric, [1.0],
        prompt=nasty, generation=spoken,
    )  # fmt: skip
    page = report.render(replace(result, zero_shot=asked, probes=[probe]))
    direction = result.runs[0].operators[0].directions[0]
    assert f"writes to channels {directions.channels(direction.writes)}; reads" in page
    assert f"<b>{html.escape(direction.tokens[0].token)}</b></q>" in page
    for row in tasks.table(asked):
        assert all(f">{html.escape(cell)}<" in page for cell in row)
    assert f"<h3>{probe.alteration.name}</h3>" in page
    assert "<p>&lt;b&gt;</p>" in page


def test_the_report_of_an_atlas_has_a_map_of_every_figure_and_the_best_blocks():
    atlas = make_atlas()
    page = report.render_atlas(atlas)
    assert page.count('class="figure"') == 1 + len(MEASURES)
    best = atlas.best(5)
    assert f'<th scope="row">{best.start}:{best.stop} (5 layers)</th>' in page
    assert "default-src 'none'" in page
    assert page.count("plotly.js v") == 1


def test_report_loads_nothing(page):
    head = page[: page.index("plotly.js v")]
    assert "default-src 'none'" in head
    assert not re.search(r"<(?:script|link|img)[^>]*(?:src|href)=", page[: page.index("<script>")])


FEW_WORDS = {"part", "kind", "prompt_format", "bos", "order"}
"""Fields that hold one of a few words: nothing else can be read into them."""
NASTY = "</script><script>alert(1)</script><b>&\"'"


def poisoned(value, keys=False):
    """The same records with NASTY at the end of every text in them; ``keys``: of the keys of a mapping too."""
    if isinstance(value, str):
        return value + NASTY
    if isinstance(value, list | tuple):
        return type(value)(map(poisoned, value))
    if isinstance(value, dict):
        return {poisoned(k) if keys else k: poisoned(v, keys) for k, v in value.items()}
    if not is_dataclass(value):
        return value
    if isinstance(value, RunConfig):
        return replace(value, **{name: getattr(value, name) + NASTY for name in ("model", "prompt", "text")})
    return replace(
        value,
        **{
            f.name: poisoned(getattr(value, f.name), f.name in {"acc", "acc_norm", "left_out", "versions"})
            for f in fields(value)
            if f.init and f.name not in {*FEW_WORDS, "timings"}
        },
    )


def test_report_escapes_every_text():
    result = with_selection(make_result(blocks=2))
    run = result.runs[0]
    altered = Alteration("symmetric", 0.5)
    result = replace(
        result,
        zero_shot=make_zero_shot(["original", "pruned", *(run.label for run in result.runs)], ["arc_easy"]),
        probes=[make_probe(altered, 90.0, run.window_nll, run.label)],
        generations=[
            replace(made, written=[]) if made.variant == "pruned" else made for made in result.generations
        ],
    )
    for page in (report.render(poisoned(result)), report.render_atlas(poisoned(make_atlas()))):
        assert "<script>alert" not in page
        assert "<b>&" not in page
        assert "&lt;b&gt;&amp;&#34;&#39;" in page, "nor does it end an attribute"
        assert "&lt;script&gt;alert(1)" in page
        stored = re.findall(
            r'<script type="application/json" id="figure-\d+">(.*?)</script>', page, re.DOTALL
        )
        assert len(stored) == page.count('class="figure"')
        assert all(json.loads(data) for data in stored)
    page = report.render(poisoned(result))
    shown = html.unescape(page)
    texts = [run.label, result.config.prompt, result.text.licence, result.model.name]
    texts += [result.warnings[0], result.generations[1].text, "ghostlab", result.cut.description]
    for text in texts:
        assert f"{text}{NASTY}" in shown, text


def test_report_of_a_run_without_recoveries_or_generations():
    page = report.render(replace(make_result(), runs=[], generations=[], warnings=[]))
    assert "no recovery was fitted" in page
    assert "Generated text" not in page
    assert "Restored state" not in page


def test_files_are_written_whole(tmp_path):
    result = make_result()
    path = report.write_report(result, tmp_path / "new" / "report.html")
    assert path.read_text(encoding="utf-8") == report.render(result)
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]
