"""The tables of the tabs. Numbers stay numbers, so that columns sort as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from ghostlab.plots import formats as fmt
from ghostlab.results.compare import Difference, Kind, Side
from ghostlab.results.probe import Probe
from ghostlab.results.records import METRICS, Metric, MetricInfo
from ghostlab.results.run import RunResult


def _head(metric: MetricInfo) -> str:
    return metric.short[0].upper() + metric.short[1:]


# -- the variants of a run -------------------------------------------------------------------------------

_VARIANT = {
    "variant": "Variant",
    "perplexity": "Perplexity",
    "perplexity_low": "low",
    "perplexity_high": "high",
    **{each.name: _head(each) for each in METRICS[1:]},
    "gap_closed": "Gap closed",
    "explained": "Explained",
    "parameters_added": "Added",
}
VARIANT_WIDTHS = ["112px", "102px", "72px", "72px", "94px", "68px", "72px", "102px", "94px", "90px"]
_SHARES = [*(_head(each) for each in METRICS if each.share), "Gap closed", "Explained"]


def variants(result: RunResult) -> Styler:
    """One row per variant, with all headline figures."""
    frame: pd.DataFrame = result.to_frame()
    known = {name: label for name, label in _VARIANT.items() if name in frame}
    frame = frame[list(known)].rename(columns=known)
    formats: dict[str, Any] = dict.fromkeys(frame.columns[1:], fmt.number)
    formats |= dict.fromkeys(_SHARES, fmt.percent)
    if "Added" in frame:
        frame["Added"] = pd.to_numeric(frame["Added"])
        formats["Added"] = fmt.count
    return _style(frame, formats)


# -- probes ----------------------------------------------------------------------------------------------

_PROBE: dict[str, Callable[[Probe], object]] = {
    "Recovery": lambda probe: probe.label,
    "Put in": lambda probe: probe.alteration.name,
    "Perplexity": lambda probe: probe.perplexity.value,
    "low": lambda probe: probe.perplexity.low,
    "high": lambda probe: probe.perplexity.high,
    "KL": lambda probe: probe.kl.value,
    "Top-1": lambda probe: probe.top1_agreement.value,
    "Added": lambda probe: probe.parameters_added,
}
PROBE_WIDTHS = ["108px", "272px", "102px", "68px", "68px", "66px", "70px", "92px"]


def probes(made: Sequence[Probe]) -> Styler:
    """One row per probe, the latest first."""
    columns = {name: [read(probe) for probe in reversed(made)] for name, read in _PROBE.items()}
    formats: dict[str, Any] = dict.fromkeys(("Perplexity", "low", "high", "KL"), fmt.number)
    return _style(pd.DataFrame(columns), {**formats, "Top-1": fmt.percent, "Added": fmt.count})


# -- runs ------------------------------------------------------------------------------------------------

_RUN = {
    "no": "No.",
    "run": "Run",
    "cut": "Cut",
    "recovery": "Recovery",
    "perplexity": "Perplexity",
    "gap_closed": "Gap",
    "kl": "KL",
    "top1_agreement": "Top-1",
    "explained_ordinary": "Expl.",
    "parameters_added": "Added",
    "model": "Model",
}
RUN_WIDTHS = ["44px", "88px", "104px", "132px", "152px", "68px", "64px", "74px", "68px", "74px", "168px"]
"""Without the last one, which only several models need, they fit beside the sidebar."""


def run_frame(rows: Iterable[tuple[str, Side]]) -> pd.DataFrame:
    """One row per side under the name of its run, all figures as plain numbers; numbered from 1."""
    frame: pd.DataFrame = pd.DataFrame(
        [{"no": number, "run": name, **_run(side)} for number, (name, side) in enumerate(rows, 1)]
    )
    return frame


def _run(side: Side) -> dict[str, Any]:
    result, run = side.result, side.run
    return {
        "model": result.model.name,
        "cut": ",".join(f"{start}:{stop}" for start, stop in result.cut.blocks),
        "recovery": run.label,
        "perplexity": run.perplexity.value,
        "perplexity_low": run.perplexity.low,
        "perplexity_high": run.perplexity.high,
        "gap_closed": run.gap_closed,
        "kl": run.kl.value,
        "top1_agreement": run.top1_agreement.value,
        "explained_ordinary": run.boundary.explained_ordinary,
        "parameters_added": run.parameters_added,
        "text": result.text.held_out,
        "windows": len(run.window_nll),
    }


def runs(frame: pd.DataFrame) -> Styler:
    """The table of :func:`run_frame` as the page shows it.

    Perplexity stands with its 95 % interval, and the model only where there are several.
    """
    names = [name for name in _RUN if name != "model" or frame["model"].nunique() > 1]
    formats: dict[str, Any] = dict.fromkeys(("Gap", "Top-1", "Expl."), fmt.percent)
    formats |= {"No.": str, "Cut": _breakable, "KL": fmt.number, "Added": fmt.short}
    styler = _style(frame[names].rename(columns=_RUN), formats)
    ends = frame[["perplexity", "perplexity_low", "perplexity_high"]].itertuples(index=False)
    for place, row in enumerate(ends):
        interval = fmt.interval(Metric(*row))
        styler = styler.format(lambda _, text=interval: text, subset=pd.IndexSlice[[place], ["Perplexity"]])
    return styler


def _breakable(blocks: str) -> str:
    """With room to break a line at."""
    return blocks.replace(",", ", ")


# -- two sides -------------------------------------------------------------------------------------------

PAIR_WIDTHS = ["26%", "21%", "21%", "32%"]
"""Shares, so that the table fits a phone."""
_FORMATS: Mapping[Kind, Any] = {"number": fmt.number, "share": fmt.percent, "count": fmt.count}


def pair(rows: Sequence[Difference], one: str, other: str) -> Styler:
    """Both sides and their difference with its paired 95 % interval, each figure in its own format."""
    names = ["Figure", one, other if other != one else f"{other} (again)", "Difference (95 %)"]
    values = [[row.figure, row.one, row.other, row.difference] for row in rows]
    frame = pd.DataFrame(values, columns=names)
    frame[names[1:]] = frame[names[1:]].astype(float)
    styler: Styler = frame.style
    for place, row in enumerate(rows):
        styler = styler.format(_FORMATS[row.kind], subset=pd.IndexSlice[[place], names[1:3]])
        styler = styler.format(partial(_difference, row=row), subset=pd.IndexSlice[[place], names[3:]])
    return styler


def _difference(value: float, row: Difference) -> str:
    """A difference and the ends of its interval, where there is one."""
    spell: Callable[[float], str] = fmt.points if row.kind == "share" else _FORMATS[row.kind]
    if row.low is None or row.high is None:
        return spell(value)
    low, high = (spell(end).partition(" point")[0] for end in (row.low, row.high))
    return f"{spell(value)} ({low} to {high})"


def _style(frame: pd.DataFrame, formats: Mapping[str, Any]) -> Styler:
    styler: Styler = frame.style.format({name: formats[name] for name in formats if name in frame})
    return styler
