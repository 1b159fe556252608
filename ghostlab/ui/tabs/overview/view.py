"""Overview: the headline numbers, perplexity with intervals, the table, and what to take along."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr
import pandas as pd
from pandas.io.formats.style import Styler

from ghostlab.plots import formats as fmt
from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.rows import rows
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.records import Metric, RecoveryRun
from ghostlab.results.run import RunResult
from ghostlab.ui import explain, html
from ghostlab.ui.tabs.overview import scores, share
from ghostlab.ui.tabs.view import Outputs, Page, Tab

_COLUMNS = {
    "variant": "Variant",
    "perplexity": "Perplexity",
    "perplexity_low": "low",
    "perplexity_high": "high",
    "bits_per_byte": "Bits/byte",
    "kl": "KL",
    "top1_agreement": "Top-1",
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
_SHARES = ["Top-1", "Gap closed", "Explained"]


def build(_: Page) -> Tab:
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
    choice = scores.build()
    taken = share.build()

    def render(result: RunResult) -> list[Any]:
        warned = html.warnings(result)
        return [
            headline(result),
            fmt.unbroken(FIGURES["perplexity"].sentence(rows(result))),
            gr.HTML(value=warned, visible=bool(warned)),
            *FIGURES["perplexity"].figures(rows(result)),
            f"### All figures\nMeasured on held-out text: {result.text.windows}. {_LEGEND}",
            table_of(result),
            *choice.render(result),
        ]

    figures = [cards, lead, warnings, plot, legend, table, *choice.components]
    controls = {"take": choice.take, "clicked": choice.clicked}
    words = Outputs(
        [taken.command, taken.stock], lambda result: [result.config.to_command(), share.as_stock(result)]
    )
    return Tab(Outputs(figures, render), words, controls=controls, parts=taken)


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
    name = run.label or run.method
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
