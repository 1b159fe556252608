"""``ghostlab evaluate``: zero-shot tasks for a model, for several, or for every variant of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ghostlab.cli.run import followed, written
from ghostlab.cli.show import print_table
from ghostlab.errors import ConfigError
from ghostlab.results.records import Metric
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import ALPHA
from ghostlab.results.zeroshot import SUITES, TaskInfo, ZeroShot, parse_tasks
from ghostlab.settings import Settings

_TASKS = f"Tasks of lm-evaluation-harness with commas, or a suite: {', '.join(SUITES)}."


def evaluate_command(
    *,
    tasks: Annotated[str, typer.Option("--tasks", help=_TASKS)],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="'embedded', a hub id, or a folder, also of a recovered model. Repeat it to compare with "
            "the first.",
        ),
    ] = None,
    result: Annotated[
        Path | None, typer.Option("--result", help="Folder of 'ghostlab run --out': all its variants.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Ask only the first so many questions of each task.")
    ] = None,
    hub: Annotated[
        bool,
        typer.Option("--hub", help="Fetch all data from the hub, in the papers' splits."),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="JSON file for the figures.")] = None,
) -> None:
    """Let models answer zero-shot tasks: accuracy, standard error, and whether a difference is real."""
    if (result is None) == (not model):
        raise ConfigError("Evaluate either models or a run.", "Give one of --model and --result.")
    asked = parse_tasks(tasks)
    source = list(model or []) if result is None else RunResult.load(result)
    from ghostlab.lab.lab import Lab

    with followed() as (sink, token):
        found = Lab(Settings.from_env()).evaluate(
            source, asked, limit=limit, hub=hub, progress=sink, cancel=token
        )
    with written(out, found.save):
        show(found)


def show(found: ZeroShot) -> None:
    """Print accuracies (acc, and acc_norm after a stroke) by variant and task, then what was left out."""
    guessed = found.at_chance()
    head = ["variant", *(task.name for task in found.tasks), "mean", "retained"]
    head += [f"without {', '.join(guessed)}"] * bool(guessed)
    rows = [_row(found, variant) for variant in found.variants]
    title = (
        f"{found.model}: accuracy in % and its standard error; after the slash, the length-normalised one. "
        f"* differs from {found.variants[0]} with p < {ALPHA} (McNemar)"
    )
    print_table(head, rows, title, numbers=True)
    for task in found.tasks:
        typer.echo(_about(task))
    for name in guessed:
        typer.echo(
            f"{name} is not above chance for {found.variants[0]}: what is retained of it says nothing."
        )
    for task_name, reason in found.left_out.items():
        typer.echo(f"Left out: {task_name}, {reason}")


def _about(task: TaskInfo) -> str:
    where = "installed data" if task.source == "shipped" else task.source
    note = f", {task.note}" if task.note else ""
    chance = "" if task.chance is None else f", chance {task.chance:.0%}"
    return f"{task.name}: {task.documents} questions, {task.split} split, {where}{note}{chance}"


def _row(found: ZeroShot, variant: str) -> list[str]:
    cells = [_cell(found, variant, task.name) for task in found.tasks]
    means = f"{found.average(variant):.1%} / {found.average(variant, 'acc_norm'):.1%}"
    kept = f"{_interval(found.retained(variant))} / {_interval(found.retained(variant, 'acc_norm'))}"
    guessed = found.at_chance()
    known = [_interval(found.retained(variant, without=guessed))] * bool(guessed)
    return [variant, *cells, means, kept, *known]


def _cell(found: ZeroShot, variant: str, task: str) -> str:
    plain = found.acc[variant][task]
    text = f"{100 * plain.value:.1f} ±{100 * plain.stderr:.1f}"
    if variant != found.variants[0] and found.paired(variant, task).p < ALPHA:
        text += "*"
    normed = found.acc_norm[variant].get(task)
    return text if normed is None else f"{text} / {100 * normed.value:.1f}"


def _interval(metric: Metric) -> str:
    return f"{metric.value:.1%} [{metric.low:.0%}, {metric.high:.0%}]"
