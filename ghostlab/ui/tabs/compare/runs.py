"""The table of all runs in the Compare tab: plain numbers for files, and what is shown of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from ghostlab.plots import formats as fmt
from ghostlab.results.compare import Side
from ghostlab.results.records import Metric

_COLUMNS = {
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
WIDTHS = ["44px", "88px", "104px", "132px", "152px", "68px", "64px", "74px", "68px", "74px", "168px"]
"""Of the columns. Without the last one, which only several models need, they fit beside the sidebar."""


def table(rows: Iterable[tuple[str, Side]]) -> pd.DataFrame:
    """One row per side under the name of its run, all figures as plain numbers; numbered from 1."""
    frame: pd.DataFrame = pd.DataFrame(
        [{"no": number, "run": name, **_row(side)} for number, (name, side) in enumerate(rows, 1)]
    )
    return frame


def _row(side: Side) -> dict[str, Any]:
    result, run = side.result, side.run
    return {
        "model": result.model.name,
        "cut": ",".join(f"{start}:{stop}" for start, stop in result.cut.blocks),
        "recovery": run.label or run.method,
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


def listed(frame: pd.DataFrame) -> Styler:
    """The table as it is shown; numbers stay numbers, so that columns sort as numbers.

    Perplexity stands with its 95 % interval, and the model only where there are several.
    """
    names = [name for name in _COLUMNS if name != "model" or frame["model"].nunique() > 1]
    styler: Styler = frame[names].rename(columns=_COLUMNS).style
    shares = dict.fromkeys(("Gap", "Top-1", "Expl."), fmt.percent)
    formats: dict[str, Any] = {"No.": str, "Cut": _spaced, "KL": fmt.number, "Added": fmt.short, **shares}
    styler = styler.format(formats)
    ends = frame[["perplexity", "perplexity_low", "perplexity_high"]].itertuples(index=False)
    for place, row in enumerate(ends):
        shown = fmt.interval(Metric(*row))
        styler = styler.format(lambda _, shown=shown: shown, subset=pd.IndexSlice[[place], ["Perplexity"]])
    return styler


def _spaced(blocks: str) -> str:
    """With room to break a line at."""
    return blocks.replace(",", ", ")
