"""All figures of a result in reading order, each with its title and its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from ghostlab.plots import sentences
from ghostlab.plots.explained import title
from ghostlab.plots.figures import boundary, insight, kinds, probes, selection, spectrum, tasks, windows
from ghostlab.plots.figures import likelihood as perplexity
from ghostlab.plots.figures import maps as operator
from ghostlab.plots.style import Role
from ghostlab.results.operator import Direction, OperatorReport
from ghostlab.results.probe import FACTORS, Probe
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot


@dataclass(frozen=True)
class Panel:
    """One figure with what it is called and what it says.

    Attributes:
        name: Its id in :data:`~ghostlab.plots.explained.FIGURES`.
        figures: Usually one; two when they belong side by side.
        heading: Its title where that is not the figure's own, as where there are several of its kind.
        directions: What is to be told of directions, one by one.
        answers: Zero-shot answers to be given as a table.
        probes: Altered maps whose continuations are to be shown.
    """

    name: str
    sentence: str
    figures: list[go.Figure]
    heading: str = ""
    directions: Sequence[Direction] = ()
    answers: ZeroShot | None = None
    probes: Sequence[Probe] = ()

    @property
    def title(self) -> str:
        """Its heading."""
        return self.heading or title(self.name)


@dataclass(frozen=True)
class Section:
    """Panels on one theme."""

    title: str
    panels: list[Panel]


def sections(result: RunResult) -> list[Section]:
    """Every section that has something to show."""
    made = [_likelihood(result)]
    if result.selection is not None:
        words = sentences.selection(result.selection)
        panel = Panel("scores", words, [selection.scores(result.selection)])
        made.append(Section("Choice of blocks", [panel]))
    if result.runs:
        made += [_boundary(result, block) for block in range(len(result.cut.blocks))]
    return [*made, *_operators(result), *_probed(result), *_asked(result)]


def _asked(result: RunResult) -> list[Section]:
    """What the variants answered, where they were asked."""
    if result.zero_shot is None:
        return []
    panel = Panel("retained", sentences.tasks(result), [tasks.retained(result)], answers=result.zero_shot)
    return [Section("Zero-shot tasks", [panel])]


def _likelihood(result: RunResult) -> Section:
    panels = [
        Panel("perplexity", sentences.perplexity(result), [perplexity.perplexity(result)]),
        Panel("gap_closed", sentences.gap_closed(result), [perplexity.gap_closed(result)]),
        Panel(
            "window_differences",
            sentences.window_differences(result),
            [windows.window_differences(result)],
        ),
        Panel(
            "window_distribution",
            sentences.window_distribution(result),
            [windows.window_distribution(result)],
        ),
        Panel("by_position", sentences.by_position(result), [perplexity.by_position(result)]),
    ]
    if result.baseline.pruned.agreement:
        panels.append(Panel("by_kind", sentences.by_kind(result), [kinds.by_kind(result)]))
    return Section("What was lost and what came back", panels if result.runs else [panels[0], *panels[3:]])


def _boundary(result: RunResult, block: int) -> Section:
    runs, part = result.runs, None if len(result.cut.blocks) == 1 else block
    panels = [
        Panel("explained", sentences.explained(runs, part), [boundary.explained(runs, part)]),
        Panel(
            "relative_error",
            sentences.relative_error(runs, part),
            [boundary.relative_error(runs, part)],
        ),
        Panel("channel_error", sentences.channel_error(runs, part), [boundary.channel_error(runs, part)]),
        Panel(
            "position_error",
            sentences.position_error(runs, part),
            [boundary.position_error(runs, part)],
        ),
    ]
    return Section(f"Restored state{_of_block(result, block)}", panels)


def _operators(result: RunResult) -> list[Section]:
    made = []
    for block in range(len(result.cut.blocks)):
        rows = operator.reports(result.runs, block)
        if not rows:
            continue
        panels = [panel for role, report in rows for panel in _operator(role, report)]
        cost = sentences.symmetry_cost(result.runs, block)
        panels.append(Panel("symmetry_cost", cost, [operator.symmetry_cost(result.runs, block)]))
        made.append(Section(f"The fitted map{_of_block(result, block)}", panels))
        made.append(_spectrum(result, block))
    return made


def _operator(role: Role, report: OperatorReport) -> list[Panel]:
    name, colour = role.name, role.colour
    maps = [operator.heat_map(report, "symmetric"), operator.heat_map(report, "antisymmetric")]
    return [
        Panel("heat_map", sentences.heat_map(report), maps, f"S and A of {name}"),
        Panel(
            "energy_split",
            sentences.energy_split(report),
            [operator.energy_split(report)],
            f"Energy of {name}",
        ),
        Panel(
            "eigenvalues",
            sentences.eigenvalues(report),
            [operator.eigenvalues(report, colour)],
            f"Eigenvalues of {name}",
        ),
        *_closer(role, report),
    ]


def _closer(role: Role, report: OperatorReport) -> list[Panel]:
    """What the map does to single directions and tokens, where that was recorded."""
    panels = []
    if report.directions:
        bars = insight.directions(report, role.colour)
        words = sentences.directions(report)
        panels.append(
            Panel("directions", words, [bars], f"Top directions of {role.name}", directions=report.directions)
        )
    if report.plane:
        planes = [insight.state_plane(report, role), insight.state_plane(report, role, "massive")]
        words = sentences.state_plane(report)
        panels.append(
            Panel("state_plane", words, planes, f"States recovered by {role.name}: ordinary, massive")
        )
    return panels


def _spectrum(result: RunResult, block: int) -> Section:
    panels = [
        Panel(
            name,
            getattr(sentences, name)(result.runs, block),
            [getattr(spectrum, name)(result.runs, block)],
        )
        for name in ("singular_values", "cumulative_energy", "rank_curve")
    ]
    return Section(f"Spectrum and rank{_of_block(result, block)}", panels)


def _probed(result: RunResult) -> list[Section]:
    """What altered maps did to the model, where any were measured."""
    panels = []
    for run in result.runs:
        found = [probe for probe in result.probes if probe.label == run.label]
        if any(probe.alteration.rank is None for probe in found):
            words = sentences.strengths(result, run) + sentences.parts(result, run)
            drawn = [probes.strengths(result, run)]
            panels.append(
                Panel("strengths", words, drawn, f"Parts and strengths of {run.label}", probes=found)
            )
        if any(result.rank_sweep(run, factor).probes for factor in FACTORS):
            drawn = [probes.ranks(result, run), probes.ranks(result, run, "kl")]
            panels.append(
                Panel("ranks", sentences.ranks(result, run), drawn, f"Ranks of {run.label}, measured")
            )
    return [Section("Altered maps in the model", panels)] if panels else []


def _of_block(result: RunResult, block: int) -> str:
    """``, block 20:25`` when there are several to tell apart."""
    if len(result.cut.blocks) == 1:
        return ""
    start, stop = result.cut.blocks[block]
    return f", block {start}:{stop}"
