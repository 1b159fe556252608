"""What the commands print: one table per subject."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from ghostlab.results.records import METRICS, Metric, RecoveryRun, Scores
from ghostlab.results.run import RunResult

_PIPED_WIDTH = 500
"""Columns when stdout is no terminal, so that a table piped to a file does not fold."""

_HEAD = ("variant", *(each.short for each in METRICS), "explained", "gap closed", "parameters")


def stdout() -> Console:
    """The console that tables go to."""
    console = Console()
    return console if console.is_terminal else Console(width=_PIPED_WIDTH)


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", numbers: bool = False
) -> None:
    """Print ``rows`` under ``head``; with ``numbers`` every column but the first is right-aligned."""
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for index, name in enumerate(head):
        table.add_column(name, justify="right" if numbers and index else "left", no_wrap=not index)
    for row in rows:
        table.add_row(*row)
    stdout().print(table, markup=False)


def print_result(result: RunResult) -> None:
    """Print the figures of every variant (held-out, with 95 % intervals), the windows, then the warnings."""
    model = result.model
    kept = model.parameters - model.parameters_dropped
    rows = [
        ["original", *_scores(result.baseline.original), "", "", _millions(model.parameters)],
        ["pruned", *_scores(result.baseline.pruned), "", "", _millions(kept)],
        *([run.label, *_recovery(run, kept)] for run in result.runs),
    ]
    print_table(_HEAD, rows, f"{model.name}: {result.cut.description}", numbers=True)
    measured = f"Measured on {result.text.held_out}: {result.text.windows}."
    stdout().print(measured, markup=False, highlight=False)
    for warning in result.all_warnings():
        stdout().print(f"Warning: {warning}", markup=False, highlight=False)


def _recovery(run: RecoveryRun, kept: int) -> list[str]:
    shares = [f"{run.boundary.explained:.1%}", f"{run.gap_closed:.1%}"]
    return [*_scores(run), *shares, _millions(kept + run.parameters_added)]


def _millions(count: int) -> str:
    return f"{count / 1e6:,.1f} M"


def _scores(scores: Scores | RecoveryRun) -> list[str]:
    interval = f"{_short(scores.perplexity.value)} {_interval(scores.perplexity)}"
    others = [(getattr(scores, each.name).value, each.share) for each in METRICS[1:]]
    return [interval, *(f"{value:.1%}" if share else f"{value:.3f}" for value, share in others)]


def _interval(metric: Metric) -> str:
    return f"[{_short(metric.low)}, {_short(metric.high)}]"


def _short(value: float) -> str:
    """Four significant digits: 24.31, 1,204, 3.1e+07."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}"
