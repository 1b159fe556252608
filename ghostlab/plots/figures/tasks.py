"""What is left of a model's zero-shot accuracy."""

from __future__ import annotations

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure, of_each
from ghostlab.plots.formats import interval, percent, plural
from ghostlab.plots.rows import Row, Rows
from ghostlab.results.records import Metric
from ghostlab.results.statistics import ALPHA
from ghostlab.results.zeroshot import TaskInfo, ZeroShot

LEGEND = (
    "Accuracy in %: ± is the standard error; after the slash, the choice is made by likelihood per "
    "character (acc_norm), where the task has that. A star marks a significant difference from the original "
    f"(McNemar, p < {ALPHA})."
)
FEW = 100
"""Fewer questions in all cannot rank variants: one answer more moves their mean by over a point."""


def _zero_shot(row: Row) -> ZeroShot:
    found = row.result.zero_shot
    assert found is not None
    return found


def common_tasks(rows: Rows) -> list[str]:
    """Tasks that count for all rows: asked of each, its original above chance (unless it is on none)."""
    tasks = [[task.name for task in _zero_shot(row).informative()] for row in rows]
    return [name for name in tasks[0] if all(name in names for names in tasks)]


def _retention(row: Row, names: list[str]) -> Metric:
    """Share of the original's accuracy that a row keeps on these tasks."""
    found = _zero_shot(row)
    return found.retained(row.variant, without=[task.name for task in found.tasks if task.name not in names])


def _comparable(rows: Rows) -> Rows:
    """Rows that were asked tasks which count for all of them; of a comparison both or none."""
    known = [
        row
        for row in rows
        if not row.is_original and row.result.zero_shot and row.variant in row.result.zero_shot.variants
    ]
    pair = any(row.side for row in rows)
    return known if known and not (pair and len(known) < len(rows)) and common_tasks(known) else []


def retained(rows: Rows) -> go.Figure:
    """Retained performance with its 95 % interval, over the tasks that count."""
    names = common_tasks(rows)
    kept = [_retention(row, names) for row in rows]
    bars = [
        style.bars(
            [metric.value],
            [row.name],
            f"{row.name}: %{{x:.1%}} {interval(metric)}",
            marker={"color": row.role.colour, "opacity": 0.75},
            error_x=style.error_bar([metric], color=style.INK),
            text=[percent(metric.value)],
            textposition="inside",
            insidetextanchor="start",
        )
        for row, metric in zip(rows, kept, strict=True)
    ]
    title = f"share of the original's accuracy<br>({plural(len(names), 'task')})"
    x = style.share_axis(title, [metric.high for metric in kept], whole=True)
    made = style.by_row(bars, len(bars), x, extra=16, showlegend=False)
    style.guide(made, "x", 1, "original")
    return made


def compare_retained(rows: Rows) -> str:
    """What each side keeps on the tasks of both."""
    names = common_tasks(rows)
    lead = f"Share of the original's accuracy retained over {plural(len(names), 'task')}"
    return of_each(lead, lambda row: _share(_retention(row, names)))(rows)


def _share(kept: Metric) -> str:
    return f"{percent(kept.value)} [{percent(kept.low)}, {percent(kept.high)}]"


def say_retained(rows: Rows) -> str:
    """What the best recovery and plain dropping retain, and on how many tasks the loss is significant.

    Tasks on which the original guesses count apart: neither the first figures nor the best come from them.
    """
    found, names = _zero_shot(rows[0]), common_tasks(rows)
    kept = {row.variant: _retention(row, names) for row in rows}
    recovered = [row.variant for row in rows if row.run is not None] or list(kept)
    best = max(recovered, key=lambda name: kept[name].value)
    pair = list(dict.fromkeys((best, "pruned") if "pruned" in kept else (best,)))
    guessed = found.at_chance()
    over = plural(len(names), "task")
    if 0 < len(guessed) < len(found.tasks):
        over = f"the {over} on which the original is above chance,"
    dropping = "".join(f", plain dropping {percent(kept[name].value)}" for name in pair[1:])
    tests = [found.paired(best, name) for name in names]
    worse = sum(test.difference.value < 0 and test.p < ALPHA for test in tests)
    loss = f"significantly worse on {worse} of them" if worse else "on none of them is it significantly worse"
    doubts = f"{_guessing(found, guessed, pair)}{_few(found, list(kept.values()))}{_left_out(found)}"
    return (
        f"Over {over} {best} retains {_share(kept[best])} of the original's accuracy{dropping}; {loss} than "
        f"the original (McNemar, p < {ALPHA}).{doubts}"
    )


def _guessing(found: ZeroShot, guessed: list[str], pair: list[str]) -> str:
    """Tasks on which the original is not above chance, and what is retained when they count too."""
    if not guessed:
        return ""
    right = {task.name: found.accuracy(found.variants[0], task.name).value for task in found.tasks}
    tasks = ", ".join(
        f"{task.name} ({percent(right[task.name])}, chance {percent(task.chance)})"
        for task in found.tasks
        if task.name in guessed
    )
    text = f" {tasks} {'is' if len(guessed) == 1 else 'are'} not above chance for the original"
    if len(guessed) == len(found.tasks):
        return f" But{text}: these figures say nothing."
    best, *dropping = (percent(found.retained(name).value) for name in pair)
    kept = "".join(f", plain dropping {share}" for share in dropping)
    return f"{text}; with {'it' if len(guessed) == 1 else 'them'} {pair[0]} would retain {best}{kept}."


def _few(found: ZeroShot, kept: list[Metric]) -> str:
    """What so few questions cannot tell; nothing where they tell variants apart."""
    questions = sum(task.documents for task in found.informative())
    if all(metric.low <= 1 <= metric.high for metric in kept):
        return (
            f" But {plural(questions, 'question')} cannot tell any variant from the original: every interval "
            "holds 100 %."
        )
    if questions < FEW:
        return f" But {plural(questions, 'question')} are too few to tell the variants apart."
    return ""


def _left_out(found: ZeroShot) -> str:
    names = ", ".join(found.left_out)
    return f" Left out because their data cannot be reached: {names}." if names else ""


def table(found: ZeroShot) -> list[list[str]]:
    """Rows of text: the tasks as head, then each variant's accuracies in %.

    After the stroke the length-normalised accuracy where a task has it; a star where the variant differs
    significantly from the first.
    """
    head = ["variant", *(f"{task.name} ({task.documents})" for task in found.tasks), "mean"]
    return [head, *([name, *_cells(found, name)] for name in found.variants)]


def _cells(found: ZeroShot, name: str) -> list[str]:
    cells = []
    for task in found.tasks:
        plain, normed = found.acc[name][task.name], found.acc_norm[name].get(task.name)
        star = "*" if name != found.variants[0] and found.paired(name, task.name).p < ALPHA else ""
        text = f"{100 * plain.value:.1f} ± {100 * plain.stderr:.1f}{star}"
        cells.append(text if normed is None else f"{text} / {100 * normed.value:.1f}")
    means = [f"{100 * found.average(name, which):.1f}" for which in ("acc", "acc_norm")]
    return [*cells, " / ".join(means)]


def about(task: TaskInfo) -> str:
    """What was asked of a task, and where it came from."""
    where = "installed" if task.source == "shipped" else task.source
    note = f", {task.note}" if task.note else ""
    chance = "" if task.chance is None else f", chance {percent(task.chance)}"
    return f"{task.name}, first {task.documents} of the {task.split} split ({where}{note}{chance})"


def _reason(rows: Rows) -> str:
    if any(row.side for row in rows):
        return f"{rows[0].name} and {rows[1].name} were not asked the same zero-shot tasks."
    found = rows[0].result.zero_shot if rows else None
    if found is None:
        return "No zero-shot tasks were asked yet."
    mean = percent(found.average(found.variants[0]))
    return f"{found.variants[0]} answers {mean} of the questions correctly, mean over tasks."


FIGURES = (
    Figure(
        "retained",
        "Retained performance",
        "Each bar is the share of the original's accuracy on zero-shot tasks that a variant keeps, averaged "
        "over tasks. Chance is not taken off: a task on which the original guesses is retained by any model "
        "and says nothing, so such tasks are left out of the bars unless there are no others.",
        r"\mathrm{RP} = \frac1n \sum_{i=1}^n \frac{\mathrm{acc}_i}{\mathrm{acc}_i^{\text{original}}}",
        "Retained performance: ShortGPT (arXiv 2403.03853); tasks of lm-evaluation-harness",
        draw=retained,
        say=say_retained,
        select=_comparable,
        nothing=_reason,
        compare=compare_retained,
    ),
)
