"""What is left of a model's zero-shot accuracy."""

from __future__ import annotations

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.formats import interval, percent, plural
from ghostlab.plots.style import Role
from ghostlab.results.records import Metric
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import TaskInfo, Which, ZeroShot

LEGEND = (
    "Accuracy in %: ± is the standard error; after the stroke the choice is taken by likelihood per "
    "character (acc_norm), where the task has that. A star marks what differs from the original by more than "
    "chance (McNemar, p < 0.05)."
)


def retained(result: RunResult, which: Which = "acc") -> go.Figure:
    """Retained performance of every variant but the first, with its 95 % interval.

    Tasks on which the first is not above chance do not count, unless there are no others.
    """
    found = result.zero_shot
    if found is None or not found.tasks or len(found.variants) < 2:
        return style.empty("No zero-shot tasks were asked yet.")
    looks = {role.name: role for role in (style.ORIGINAL, style.PRUNED, *style.roles(result.runs))}
    rows = [(looks.get(name, style.PRUNED), name) for name in found.variants[1:]]
    told = found.told(which)
    aside = [task.name for task in found.tasks if task not in told]
    kept = [found.retained(name, which, without=aside) for _, name in rows]
    return bars([(role, name, metric) for (role, name), metric in zip(rows, kept, strict=True)], len(told))


def bars(rows: list[tuple[Role, str, Metric]], tasks: int) -> go.Figure:
    """Retained performance of named variants over so many tasks."""
    made = style.figure(
        [_bar(*row) for row in rows],
        height=style.bars_height(len(rows)),
        x={
            "title": f"share of the original's accuracy, {plural(tasks, 'task')}",
            "tickformat": ".0%",
            "range": style.share_range([metric.high for *_, metric in rows], whole=True),
        },
        y={"autorange": "reversed"},
        showlegend=False,
    )
    style.guide(made, "x", 1, "original")
    return made


def _bar(role: Role, name: str, metric: Metric) -> go.Bar:
    return go.Bar(
        x=[metric.value],
        y=[name],
        orientation="h",
        marker={"color": role.colour, "opacity": 0.75},
        error_x={
            "type": "data",
            "array": [metric.high - metric.value],
            "arrayminus": [metric.value - metric.low],
            "color": style.INK,
        },
        text=[percent(metric.value)],
        textposition="inside",
        insidetextanchor="start",
        hovertemplate=f"{name}: %{{x:.1%}} {interval(metric)}<extra></extra>",
    )


def table(found: ZeroShot, sure: float = 0.05) -> list[list[str]]:
    """Rows of text: the tasks as head, then each variant's accuracies in %.

    After the stroke the length-normalised accuracy where a task has it; a star where the variant differs
    from the first with a smaller probability of chance than ``sure``.
    """
    head = ["variant", *(f"{task.name} ({task.documents})" for task in found.tasks), "mean"]
    return [head, *([name, *_cells(found, name, sure)] for name in found.variants)]


def about(task: TaskInfo) -> str:
    """What was asked of a task, and where it came from."""
    where = "installed" if task.source == "shipped" else task.source
    note = f", {task.note}" if task.note else ""
    chance = "" if task.chance is None else f", chance {percent(task.chance)}"
    return f"{task.name}, first {task.documents} of the {task.split} split ({where}{note}{chance})"


def _cells(found: ZeroShot, name: str, sure: float) -> list[str]:
    cells = []
    for task in found.tasks:
        plain, normed = found.acc[name][task.name], found.acc_norm[name].get(task.name)
        star = "*" if name != found.variants[0] and found.paired(name, task.name).p < sure else ""
        text = f"{100 * plain.value:.1f} ± {100 * plain.stderr:.1f}{star}"
        cells.append(text if normed is None else f"{text} / {100 * normed.value:.1f}")
    means = [f"{100 * found.average(name, which):.1f}" for which in ("acc", "acc_norm")]
    return [*cells, " / ".join(means)]
