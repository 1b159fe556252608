"""Overview: the headline numbers, perplexity with intervals, the table, the criterion's scores, downloads."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ghostlab.cut import Cut, parse_cut
from ghostlab.errors import ConfigError, CutError
from ghostlab.plots import formats as fmt
from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures.selection import by_score
from ghostlab.plots.rows import rows
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.records import Metric, RecoveryRun, SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.ui import explain, html, theme
from ghostlab.ui.page import Outputs, Page, Tab, on
from ghostlab.ui.sidebar.picker import BY_HAND, choose
from ghostlab.ui.tabs import downloads, panels, tables

_LEGEND = (
    "Low to high is the 95 % bootstrap interval. KL (nats per token) and top-1 "
    "agreement are against the original; *explained* is the share of the dropped layers' effect on the state "
    "that is restored, over all held-out tokens; *added* counts parameters beyond the pruned model's. The "
    "menu \N{VERTICAL ELLIPSIS} of a column sorts."
)


def build(page: Page) -> Tab:
    """Cards, figure, table, warnings, command, links and files."""
    cards = gr.HTML(elem_id="cards")
    lead = gr.Markdown(elem_classes="gl-lead", elem_id="lead")
    warnings = gr.HTML(elem_id="warnings")
    explain.what_is_this("perplexity")
    plot = panels.plot("Perplexity", "overview-perplexity")
    legend = panels.prose(elem_id="figures-legend")
    table = panels.table("All figures", "figures-table", column_widths=tables.VARIANT_WIDTHS, max_height=420)
    scores = _scores(page)
    files = downloads.build(page)

    def render(result: RunResult) -> list[Any]:
        warned = html.warnings(result)
        return [
            headline(result),
            fmt.unbroken(FIGURES["perplexity"].sentence(rows(result))),
            gr.HTML(value=warned, visible=bool(warned)),
            *FIGURES["perplexity"].figures(rows(result)),
            f"### All figures\nMeasured on held-out text: {result.text.windows}. {_LEGEND}",
            tables.variants(result),
        ]

    return Tab(Outputs([cards, lead, warnings, plot, legend, table], render) + scores, files)


# -- cards -----------------------------------------------------------------------------------------------


def headline(result: RunResult) -> str:
    """Original, pruned, every recovery, and what was saved, as cards."""
    original, pruned = result.baseline.original.perplexity, result.baseline.pruned.perplexity
    grey, orange, *tones = style.colours(len(result.runs))
    ratio = pruned.value / original.value if original.value else float("nan")
    return html.piece(
        "cards",
        [
            _card("Original", original, "", grey),
            _card("Pruned", pruned, f"; {fmt.fold(ratio)} the original", orange),
            *(_recovery_card(run, tone) for run, tone in zip(result.runs, tones, strict=True)),
            _saved_card(result),
        ],
    )


def _card(title: str, metric: Metric, more: str, colour: str) -> html.Card:
    note = f"perplexity (95 %: {fmt.number(metric.low)} to {fmt.number(metric.high)}){more}"
    return html.Card(title, fmt.number(metric.value), note, colour)


def _recovery_card(run: RecoveryRun, colour: str) -> html.Card:
    entry = OPERATORS.get(run.method)
    title = run.label if entry is None else explain.full_name(entry, run.label)
    return _card(title, run.perplexity, f"; {fmt.percent(run.gap_closed)} of the gap closed", colour)


def _saved_card(result: RunResult) -> html.Card:
    model, dropped = result.model, len(result.cut.dropped)
    share = model.parameters_dropped / model.parameters if model.parameters else 0.0
    stay = f"{model.layers - dropped} of {model.layers} layers stay"
    note = f"{fmt.percent(share)} of {fmt.count(model.parameters)}; {stay}"
    return html.Card("Parameters saved", fmt.count(model.parameters_dropped), note)


# -- scores of the criterion -----------------------------------------------------------------------------


def _scores(page: Page) -> Outputs:
    """The criterion's scores as a chart and as a list, which both choose blocks; hidden without one."""
    with gr.Column(visible=False, elem_id="choice") as box:
        words = panels.prose()
        explain.what_is_this("scores")
        plot = panels.plot("Scores of the criterion", "scores")
        candidate = gr.Dropdown(
            [], value=None, label="Drop another candidate", info="Like a click on its dot; sorted by score.",
            interactive=True, elem_id="take",
        )  # fmt: skip
        clicks = gr.HTML("", js_on_load=theme.static("scores.js"), elem_id="clicked")
    drop = [page.controls["chooser"], page.controls["drop"]]

    def take(label: str | None, shown: str, kind: str, blocks: str) -> list[str]:
        return pick(page.service.result(shown), label, blocks if kind == BY_HAND else None)

    def take_clicked(point: gr.SelectData, shown: str, kind: str, blocks: str) -> list[str]:
        return take(str(point.value), shown, kind, blocks)

    def render(result: RunResult) -> list[Any]:
        info = result.selection
        if info is None:
            return [gr.Column(visible=False), "", None, gr.Dropdown(choices=[], value=None)]
        choices = [(f"{label}: {fmt.number(score)}", label) for label, score in by_score(info)]
        figure = FIGURES["scores"]
        return [
            gr.Column(visible=True),
            f"{panels.words(figure, rows(result))} {_hint(info)}",
            *figure.figures(rows(result)),
            gr.Dropdown(choices=choices, value=None),
        ]

    on(candidate.input, take, [candidate, page.shown, *drop], drop)
    on(clicks.select, take_clicked, [page.shown, *drop], drop)
    return Outputs([box, words, plot, candidate], render)


def pick(result: RunResult, label: str | None, blocks: str | None) -> list[str]:
    """Values of the sidebar's choice and of its blocks to drop after a candidate was chosen.

    Args:
        label: The candidate, as in the result's scores.
        blocks: Those in the sidebar; ``None`` when the criterion decides.

    Raises:
        ConfigError: If there is no such candidate.
    """
    info = result.selection
    if info is None or label not in info.labels:
        raise ConfigError("That block is not among those shown.", "Choose one from the chart.")
    return choose(blocks_after(info, label, blocks))


def _hint(info: SelectionInfo) -> str:
    if _single(info):
        return "Click a layer to add it to the blocks that the next run drops, or to keep it."
    return "Click another block to drop it in the next run."


def _single(info: SelectionInfo) -> bool:
    """Whether candidates are single layers of which several go."""
    return len(parse_cut(info.chosen).dropped) > 1 and all(
        len(parse_cut(label).dropped) == 1 for label in info.labels
    )


def blocks_after(info: SelectionInfo, label: str, blocks: str | None) -> str:
    """The blocks to drop after ``label`` was chosen; arguments as of :func:`pick`.

    A block replaces what was chosen; a single layer is taken into it, or out of it.
    """
    if not _single(info):
        return label
    try:
        before = set(parse_cut(blocks or info.chosen).dropped)
    except CutError:
        before = set(parse_cut(info.chosen).dropped)
    after = before ^ set(parse_cut(label).dropped)
    return str(Cut.of_layers(after)) if after else label
