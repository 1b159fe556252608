"""Operator: what the fitted map is. Its symmetric and antisymmetric part, and its eigenvalues."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from ghostlab.plots import sentences, style
from ghostlab.plots.figures import insight
from ghostlab.plots.figures import maps as figures
from ghostlab.plots.style import Role
from ghostlab.results.operator import Excitement, OperatorReport
from ghostlab.results.run import RunResult
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.operator import switches
from ghostlab.ui.tabs.panels import Choice, Drawing, Panel
from ghostlab.ui.tabs.view import Outputs, Page, Tab

_NONE = (
    "**{}** puts no linear map in the place of the layers (it drops them plainly, keeps one, or changes the "
    "weights of one), so there is nothing to take apart; choose another recovery above."
)


def _panel(
    name: str,
    draw_one: Callable[[OperatorReport, Role], list[go.Figure]],
    sentence: Callable[[OperatorReport], str],
    count: int = 1,
) -> Panel:
    """A panel on the operator of the chosen recovery and block, with a word when there is none."""

    def draw(result: RunResult, at: Choice) -> Drawing:
        block = at.block or 0
        if not result.runs or block >= len(result.runs[at.run].operators):
            return _why(result, at.run), [style.empty("No linear map to show.") for _ in range(count)]
        report = result.runs[at.run].operators[block]
        return sentence(report), draw_one(report, style.roles(result.runs)[at.run])

    return Panel(name, draw, count)


def _why(result: RunResult, run: int) -> str:
    """Why there is no operator."""
    return _NONE.format(style.roles(result.runs)[run].name) if result.runs else "No recovery was fitted."


def _maps(report: OperatorReport, _: Role) -> list[go.Figure]:
    return [figures.heat_map(report, "symmetric"), figures.heat_map(report, "antisymmetric")]


def _energy(report: OperatorReport, _: Role) -> list[go.Figure]:
    return [figures.energy_split(report)]


def _eigenvalues(report: OperatorReport, role: Role) -> list[go.Figure]:
    return [figures.eigenvalues(report, role.colour)]


def _directions(report: OperatorReport, role: Role) -> list[go.Figure]:
    return [insight.directions(report, role.colour)]


def _told_directions(report: OperatorReport) -> str:
    """The sentence, and below it each direction with its channels and tokens."""
    told = (insight.told(one, _quoted) for one in report.directions)
    lines = [f"{number}. {words}" for number, words in enumerate(told, start=1)]
    return "\n".join([sentences.directions(report), "", *lines])


def _quoted(token: Excitement) -> str:
    """The token in its context, as code, so that nothing of it is read as Markdown."""
    before, own = (part.replace("`", "'").replace("\n", "⏎") for part in (token.before, token.token))
    mark = " (massive)" if token.massive else ""
    own = own if own.strip() else "␣"
    return f"`{before}`**`{own}`**{mark}" if before.strip() else f"**`{own}`**{mark}"


def _planes(report: OperatorReport, role: Role) -> list[go.Figure]:
    return [insight.state_plane(report, role), insight.state_plane(report, role, "massive")]


def _cost(result: RunResult, at: Choice) -> Drawing:
    block = at.block or 0
    return sentences.symmetry_cost(result.runs, block), [figures.symmetry_cost(result.runs, block)]


PANELS = [
    _panel("energy_split", _energy, sentences.energy_split),
    Panel("symmetry_cost", _cost),
    _panel("heat_map", _maps, sentences.heat_map, count=2),
    _panel("eigenvalues", _eigenvalues, sentences.eigenvalues),
    _panel("directions", _directions, _told_directions),
    _panel("state_plane", _planes, sentences.state_plane, count=2),
]


def build(page: Page) -> Tab:
    """Figures on one recovery's map, and switches that put a part of it into the model."""
    looked_at = panels.build(page, "operator", PANELS, by_run=True, by_block=True, first=switches.best)
    tried = switches.build()
    drawn = looked_at.figures
    figures = Outputs(
        [*drawn.components, *tried.figures.components],
        lambda result: [*drawn.render(result), *tried.figures.render(result)],
    )
    return Tab(figures, tried.words, controls={"recovery": drawn.components[0], **tried.controls})
