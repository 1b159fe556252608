"""Figures by name, drawn and told of results that are made up."""

from __future__ import annotations

from dataclasses import replace

import plotly.graph_objects as go

from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.rows import Row, rows
from ghostlab.results.operator import OperatorReport
from ghostlab.results.run import RunResult
from tests.helpers.results import make_result


def drawn(name: str, result: RunResult, block: int | None = None) -> go.Figure:
    """The first plot of a figure of a run."""
    return FIGURES[name].figures(rows(result, block))[0]


def said(name: str, result: RunResult, block: int | None = None) -> str:
    """The sentence of a figure of a run."""
    return FIGURES[name].sentence(rows(result, block))


def of(result: RunResult, label: str) -> list[Row]:
    """The one recovery of that label."""
    return [row for row in rows(result) if row.variant == label]


def with_map(report: OperatorReport) -> list[Row]:
    """The one recovery of a run whose map is ``report``."""
    result = make_result(("ghost",))
    return of(replace(result, runs=[replace(result.runs[0], operators=[report])]), "ghost")
