"""Pieces of HTML: what they say in every state, and that they let no markup of others through."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ghostlab.jobs.record import JobView
from ghostlab.plots import html as templates
from ghostlab.plots.html import TEMPLATES, macro
from ghostlab.results.run import RunResult
from ghostlab.ui import html, theme
from ghostlab.ui.tabs import downloads, overview, tables
from ghostlab.ui.tabs.generate import columns_of, lead_of
from tests.helpers.results import MULTIPLIES, make_result

pytestmark = pytest.mark.unit
RESULT = make_result()
VIEW: JobView[RunResult] = JobView(
    "id", "run", "", "running", 1, 0.5, "Fitting", 0, 65.0, 30.0, {}, None, "", False
)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (VIEW, ["Fitting", "50 %", "1 min 05 s so far", "about 30 s left", 'aria-valuenow="50"']),
        (replace(VIEW, remaining=None), ["estimating time left"]),
        (replace(VIEW, stopping=True), ["Stopping after this step"]),
        (replace(VIEW, state="waiting", position=1), ["Waiting for the machine", "1 run is ahead"]),
        (replace(VIEW, state="waiting", position=3), ["3 runs are ahead"]),
        (replace(VIEW, state="done"), ["Done in 1 min 05 s"]),
        (replace(VIEW, state="failed", error="No <b>."), ["Failed: No &lt;b&gt;."]),
        (replace(VIEW, state="stopped"), ["Stopped after", "The result below is the earlier one."]),
        (replace(VIEW, state="stopped", result=RESULT), ["Finished parts are kept."]),
    ],
)
def test_progress_says_what_happens_in_every_state(view: JobView[RunResult], words: list[str]) -> None:
    shown = html.progress(view)
    assert all(word in shown for word in words), shown
    assert ("progressbar" in shown) == (not view.finished)


def test_source_names_the_exact_run_and_whether_it_is_the_example() -> None:
    shown = html.source(RESULT, example=True)
    assert "Example run" in shown
    assert RESULT.cut.description in shown
    assert f"{RESULT.config.sequences} × {RESULT.config.length} tokens" in shown
    assert "Your run" in html.source(RESULT, example=False)
    assert "No run yet" in html.source(None, example=True)


def test_columns_show_what_is_written_and_nothing_of_an_earlier_text() -> None:
    fresh = replace(RESULT, generations=[])
    view = replace(VIEW, result=fresh, texts={"original": " <i>so</i> far"})
    shown = columns_of(fresh, view)
    assert "&lt;i&gt;so&lt;/i&gt; far" in shown
    assert shown.count("reading the prompt") == len(RESULT.runs) + 1
    assert 'aria-busy="true"' in shown
    stopped = columns_of(fresh, replace(view, state="stopped"))
    assert "nothing generated yet" in stopped
    assert " far" in stopped
    finished = re.sub(r"<[^>]*>", "", columns_of(RESULT, replace(view, state="done", result=RESULT)))
    assert all(made.text.strip() in finished.replace("▸", "") for made in RESULT.generations)


def test_columns_take_their_colours_one_by_one_as_they_are_finished() -> None:
    half = replace(RESULT, generations=RESULT.generations[:2])
    view = replace(VIEW, result=half, texts={"original": "old", "pruned": "old", "ghost": " so far"})
    shown = columns_of(half, view)
    columns = shown.split("<article")[1:]
    assert ["gl-token" in column for column in columns] == [True, True, False, False]
    assert "old" not in shown
    assert "</span> so far</p>" in columns[2]
    assert "reading the prompt" in columns[3]
    assert 'aria-busy="true"' in shown
    assert "leaves the original&#39;s path at token 1 of 6" in columns[1]
    assert "20 layers share the original&#39;s prompt" in columns[1]
    assert 'aria-busy="true"' not in columns_of(RESULT, replace(view, result=RESULT))


def test_the_lead_says_how_the_prompt_was_put_and_is_empty_before_the_first_text() -> None:
    assert lead_of(replace(RESULT, generations=[])) == ""
    assert lead_of(RESULT).startswith("The prompt was continued as it stands. ")
    asked = [replace(made, prompt_format="chat") for made in RESULT.generations]
    assert "as a chat message" in lead_of(replace(RESULT, generations=asked))
    assert 'class="gl-prompt gl-asked"' in columns_of(replace(RESULT, generations=asked), None)


def test_headline_and_table_hold_the_numbers_of_the_result() -> None:
    shown = overview.headline(RESULT)
    assert "Original" in shown
    assert "Pruned" in shown
    assert all(f"({run.label})</span>" in shown for run in RESULT.runs)
    table = tables.variants(RESULT).data
    assert list(table["Variant"]) == ["original", "pruned", *(run.label for run in RESULT.runs)]
    numeric = table.drop(columns="Variant")
    assert all(kind.kind in "fi" for kind in numeric.dtypes), "columns must sort as numbers"
    assert not numeric.isna().any().any(), "what has no number would sort as 0"
    assert table["Perplexity"][0] == RESULT.baseline.original.perplexity.value


def test_the_overview_says_which_recoveries_can_be_ordinary_checkpoints() -> None:
    result = make_result(("ghost", "mean_shift", "affine"))
    named = replace(result.runs[1], label="mean_shift, rank 4")
    lines = downloads.as_stock(replace(result, runs=[result.runs[0], named, result.runs[2]])).splitlines()
    assert lines[-2:] == [
        f"- **ghost**, **affine**: no. {MULTIPLIES}",
        "- **mean_shift, rank 4**: yes, `ghostlab export --result result/ --method 'mean_shift, rank 4' "
        "--stock --out stock/`",
    ]


def test_warnings_are_listed_once_and_escaped() -> None:
    noisy = replace(RESULT, warnings=["few <tokens>", "few <tokens>"])
    assert html.warnings(noisy).count("few &lt;tokens&gt;") == 1
    silent = replace(RESULT, warnings=[], runs=[replace(run, warnings=[]) for run in RESULT.runs])
    assert html.warnings(silent) == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.26, "0.3 s"), (42.4, "42 s"), (200, "3 min 20 s"), (3900, "1 h 05 min")]
)
def test_durations_read_naturally(seconds: float, text: str) -> None:
    assert html.duration(seconds) == text


NASTY = "\"'><script>alert(1)</script>"
PIECE = SimpleNamespace(
    **dict.fromkeys(
        [
            "job",
            "state",
            "status",
            "about",
            "act",
            "title",
            "value",
            "note",
            "colour",
            "name",
            "prompt",
            "body",
        ],
        NASTY,
    ),
    **dict.fromkeys(["classes", "tip", "text", "space"], NASTY),
    facts=[NASTY],
    chat=True,
    leaves=True,
)
MACROS: dict[str, dict[str, tuple[Any, ...]]] = {
    "ui/templates/page.html": {
        "tone": (NASTY,),
        "header": (NASTY,),
        "head": (NASTY, NASTY, [NASTY]),
        "tour": (NASTY,),
        "notice": (NASTY,),
        "footer": (NASTY, NASTY),
        "source": (NASTY, [NASTY], True),
        "progress": (NASTY, NASTY, [NASTY], 50.0, False),
        "queue": ([PIECE],),
        "cards": ([PIECE],),
        "warnings": ([NASTY],),
        "columns": ([PIECE], NASTY, NASTY, True, True),
        "facts": ([NASTY],),
        "differences": ([NASTY], [(NASTY, NASTY, NASTY)]),
        "no_differences": (NASTY,),
        "picker": ({NASTY: (NASTY, NASTY)},),
    },
    "plots/templates/tokens.html": {"mark": (), "text": ([PIECE],), "legend": ([NASTY],)},
}
"""Template -> macro -> values that would be markup."""


@pytest.mark.parametrize("template", MACROS)
def test_no_template_lets_markup_of_others_through(template: str) -> None:
    assert {name for name in vars(TEMPLATES.get_template(template).module) if name[0] != "_"} == set(
        MACROS[template]
    ), "give every macro nasty values here"
    for name, values in MACROS[template].items():
        shown = macro(template, name, *values)
        assert "alert(1)</script>" not in shown, name
        assert NASTY[:3] not in shown, name
        assert ("&lt;script&gt;alert(1)" in shown) == bool(values), name


def test_every_template_of_the_page_is_tested_so() -> None:
    folder = Path(templates.__file__).parents[1]
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("templates/*.html")}
    assert {name for name in found if not name.startswith("report/")} == set(MACROS)


def test_the_stylesheets_know_every_class_that_is_used() -> None:
    """Of all templates, and of the components that Python makes."""
    folder = Path(templates.__file__).parents[1]
    css = "".join(Path(path).read_text(encoding="utf-8") for path in theme.STYLES)
    sources = [
        *folder.glob("ui/templates/*.html"),
        *folder.glob("plots/templates/*.html"),
        *folder.glob("ui/**/*.py"),
    ]
    used = {
        name
        for path in sources
        for name in re.findall(r"(?<![\w-])gl-[a-z0-9]+(?:-[a-z0-9]+)*(?![\w-]|\{)", path.read_text("utf-8"))
    }
    used |= {f"gl-s{level}" for level in (1, 2, 3)} | {"gl-here", "gl-special", "gl-blank"}
    assert {name for name in used if not re.search(rf"\.{name}(?![\w-])", css)} == set()
