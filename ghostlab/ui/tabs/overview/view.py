"""Overview: the headline numbers, perplexity with intervals, the table, and downloads."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr
import pandas as pd
from pandas.io.formats.style import Styler

from ghostlab.cut import Cut, parse_cut
from ghostlab.errors import ConfigError, CutError
from ghostlab.plots import formats as fmt
from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures.selection import by_score
from ghostlab.plots.rows import rows
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.records import METRICS, Metric, MetricInfo, RecoveryRun, SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.ui import explain, html, theme
from ghostlab.ui.page import Outputs, Page, Tab, on
from ghostlab.ui.sidebar.picker import BY_HAND, choose
from ghostlab.ui.tabs.overview import files


def _head(metric: MetricInfo) -> str:
    return metric.short[0].upper() + metric.short[1:]


_COLUMNS = {
    "variant": "Variant",
    "perplexity": "Perplexity",
    "perplexity_low": "low",
    "perplexity_high": "high",
    **{each.name: _head(each) for each in METRICS[1:]},
    "gap_closed": "Gap closed",
    "explained": "Explained",
    "parameters_added": "Added",
}
_LEGEND = (
    "Low to high is the 95 % bootstrap interval. KL (nats per token) and top-1 "
    "agreement are against the original; *explained* is the share of the dropped layers' effect on the state "
    "that is restored, over all held-out tokens; *added* counts parameters beyond the pruned model's. The "
    "menu \N{VERTICAL ELLIPSIS} of a column sorts."
)
_WIDTHS = ["112px", "102px", "72px", "72px", "94px", "68px", "72px", "102px", "94px", "90px"]
_SHARES = [*(_head(each) for each in METRICS if each.share), "Gap closed", "Explained"]


def build(page: Page) -> Tab:
    """Cards, figure, table, warnings, command, links and files."""
    cards = gr.HTML(elem_id="cards")
    lead = gr.Markdown(elem_classes="gl-lead", elem_id="lead")
    warnings = gr.HTML(elem_id="warnings")
    explain.what_is_this("perplexity")
    plot = gr.Plot(show_label=False, label="Perplexity", container=False, elem_id="overview-perplexity")
    legend = gr.Markdown(elem_classes="gl-figure-title", elem_id="figures-legend")
    table = gr.Dataframe(
        interactive=False,
        column_widths=_WIDTHS,
        show_label=False,
        label="All figures",
        elem_id="figures-table",
        max_height=420,
    )
    chosen = _scores(page)
    taken = files.build(page)

    def render(result: RunResult) -> list[Any]:
        warned = html.warnings(result)
        return [
            headline(result),
            fmt.unbroken(FIGURES["perplexity"].sentence(rows(result))),
            gr.HTML(value=warned, visible=bool(warned)),
            *FIGURES["perplexity"].figures(rows(result)),
            f"### All figures\nMeasured on held-out text: {result.text.windows}. {_LEGEND}",
            table_of(result),
        ]

    return Tab(Outputs([cards, lead, warnings, plot, legend, table], render) + chosen, taken)


def _scores(page: Page) -> Outputs:
    """The criterion's scores as a chart and as a list, which both choose blocks; hidden without one."""
    with gr.Column(visible=False, elem_id="choice") as box:
        words = gr.Markdown(elem_classes="gl-figure-title")
        explain.what_is_this("scores")
        plot = gr.Plot(show_label=False, label="Scores of the criterion", container=False, elem_id="scores")
        take = gr.Dropdown(
            [], value=None, label="Drop another candidate", info="Like a click on its dot; sorted by score.",
            interactive=True, elem_id="take",
        )  # fmt: skip
        clicks = gr.HTML("", js_on_load=theme.static("scores.js"), elem_id="clicked")
    drop = [page.controls["chooser"], page.controls["drop"]]

    def take_listed(label: str | None, shown: str, kind: str, asked: str) -> list[str]:
        return pick(page.service.result(shown), label, asked if kind == BY_HAND else None)

    def take_clicked(point: gr.SelectData, shown: str, kind: str, asked: str) -> list[str]:
        return take_listed(str(point.value), shown, kind, asked)

    def render(result: RunResult) -> list[Any]:
        info = result.selection
        if info is None:
            return [gr.Column(visible=False), "", None, gr.Dropdown(choices=[], value=None)]
        listed = [(f"{label}: {fmt.number(score)}", label) for label, score in by_score(info)]
        figure = FIGURES["scores"]
        return [
            gr.Column(visible=True),
            f"### {figure.title}\n{figure.sentence(rows(result))} {_hint(info)}",
            *figure.figures(rows(result)),
            gr.Dropdown(choices=listed, value=None),
        ]

    on(take.input, take_listed, [take, page.shown, *drop], drop)
    on(clicks.select, take_clicked, [page.shown, *drop], drop)
    return Outputs([box, words, plot, take], render)


def headline(result: RunResult) -> str:
    """Original, pruned, every recovery, and what was saved, as cards."""
    original, pruned = result.baseline.original.perplexity, result.baseline.pruned.perplexity
    grey, orange, *tones = style.colours(len(result.runs))
    items = [
        html.Card("Original", fmt.number(original.value), f"perplexity (95 %: {_range(original)})", grey),
        html.Card("Pruned", fmt.number(pruned.value), _against(pruned, original), orange),
    ]
    items += [_recovery_card(run, tone) for run, tone in zip(result.runs, tones, strict=True)]
    return html.cards([*items, _saved_card(result)])


def _recovery_card(run: RecoveryRun, tone: str) -> html.Card:
    note = f"perplexity (95 %: {_range(run.perplexity)}); {fmt.percent(run.gap_closed)} of the gap closed"
    entry = OPERATORS.get(run.method)
    name = run.label
    title = name if entry is None else explain.named(entry, name)
    return html.Card(title, fmt.number(run.perplexity.value), note, tone)


def _saved_card(result: RunResult) -> html.Card:
    model, dropped = result.model, len(result.cut.dropped)
    share = model.parameters_dropped / model.parameters if model.parameters else 0.0
    stay = f"{model.layers - dropped} of {model.layers} layers stay"
    note = f"{fmt.percent(share)} of {fmt.count(model.parameters)}; {stay}"
    return html.Card("Parameters saved", fmt.count(model.parameters_dropped), note)


def _range(metric: Metric) -> str:
    return f"{fmt.number(metric.low)} to {fmt.number(metric.high)}"


def _against(metric: Metric, original: Metric) -> str:
    ratio = metric.value / original.value if original.value else float("nan")
    return f"perplexity (95 %: {_range(metric)}); {fmt.fold(ratio)} the original"


def table_of(result: RunResult) -> Styler:
    """One row per variant; numbers stay numbers, so that columns sort as numbers."""
    frame: pd.DataFrame = result.to_frame()
    known = {name: label for name, label in _COLUMNS.items() if name in frame}
    shown = frame[list(known)].rename(columns=known)
    formats: dict[str, Any] = {
        name: fmt.percent if name in _SHARES else fmt.number for name in shown.columns[1:]
    }
    if "Added" in shown:
        shown["Added"] = pd.to_numeric(shown["Added"])
        formats["Added"] = _count
    styler: Styler = shown.style.format(formats)
    return styler


def _count(value: float) -> str:
    return fmt.count(int(value)) if math.isfinite(value) else fmt.NONE


def pick(result: RunResult, label: str | None, asked: str | None) -> list[str]:
    """Values of the sidebar's choice and of its blocks to drop after a candidate was chosen.

    Args:
        result: The result whose scores are shown.
        label: The candidate, as in its scores.
        asked: Blocks that are named already; ``None`` when the criterion decides.

    Raises:
        ConfigError: If there is no such candidate.
    """
    info = result.selection
    if info is None or label not in info.labels:
        raise ConfigError("That block is not among those shown.", "Choose one from the chart.")
    return choose(blocks_after(info, label, asked))


def _hint(info: SelectionInfo) -> str:
    if _single(info):
        return "Click a layer to add it to the blocks that the next run drops, or to keep it."
    return "Click another block to drop it in the next run."


def _single(info: SelectionInfo) -> bool:
    """Whether candidates are single layers of which several go."""
    return len(parse_cut(info.chosen).dropped) > 1 and all(
        len(parse_cut(label).dropped) == 1 for label in info.labels
    )


def blocks_after(info: SelectionInfo, label: str, asked: str | None) -> str:
    """The blocks to drop after ``label`` was chosen.

    A block replaces what was chosen; a single layer is taken into it, or out of it.

    Args:
        info: The scores that were shown.
        label: The candidate.
        asked: Blocks that are named already; ``None`` when the criterion decides.
    """
    if not _single(info):
        return label
    try:
        before = set(parse_cut(asked or info.chosen).dropped)
    except CutError:
        before = set(parse_cut(info.chosen).dropped)
    after = before ^ set(parse_cut(label).dropped)
    return str(Cut.of_layers(after)) if after else label
