"""``ghostlab run``: one run of the whole pipeline, a table on stdout, files in ``--out``."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ghostlab.cli.options import build_config, with_settings
from ghostlab.cli.show import print_result
from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, ResultError
from ghostlab.lab import requests
from ghostlab.progress import CancelToken, ProgressSink, ProgressUpdate
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings

REPORT_FILE = "report.html"


@with_settings()
def run_command(
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for result.json, operators.safetensors and report.html."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="JSON file with settings, or a result.json to repeat; flags go over it."
        ),
    ] = None,
    **flags: Any,
) -> None:
    """Cut a model, fit the replacements, and measure what was lost and what came back."""
    run_to_folder(build_config(config, flags), out, Settings.from_env())


def run_to_folder(config: RunConfig, out: Path | None, settings: Settings) -> RunResult:
    """Run ``config``, write the files of ``--out`` if asked for, and print its table and warnings.

    Raises:
        GhostlabError: If the configuration, an input or the folder cannot be used; checked before computing
            where that is possible.
        Cancelled: After Ctrl-C.
    """
    requests.check(config, settings)
    if out is not None:
        _prepare(out)
    from ghostlab.lab.lab import Lab

    with followed() as (sink, token):
        result = Lab(settings).run(config, progress=sink, cancel=token)
    with written(out, partial(_save, result)):
        print_result(result)
    return result


def _prepare(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--out '{out}' cannot be made a folder.", "Name one that you may write to."
        ) from error


def _save(result: RunResult, out: Path) -> None:
    from ghostlab.report import write_report

    result.save(out)
    write_report(result, out / REPORT_FILE)


@contextmanager
def followed() -> Iterator[tuple[ProgressSink, CancelToken]]:
    """Work that shows its progress and that Ctrl-C stops."""
    token = CancelToken()
    with _interrupt_cancels(token), _progress_bar() as sink:
        yield sink, token


@contextmanager
def written(out: Path | None, save: Callable[[Path], object]) -> Iterator[None]:
    """Let ``save`` write what ``--out`` names, if anything, before the block prints; then say where it is.

    Raises:
        ResultError: If it cannot be written.
    """
    try:
        if out is not None:
            save(out)
    except OSError as error:
        raise ResultError(f"'{out}' could not be written: {error.strerror}.") from error
    yield
    if out is not None:
        typer.echo(f"Wrote {out}")


@contextmanager
def _interrupt_cancels(token: CancelToken) -> Iterator[None]:
    """The first Ctrl-C asks the run to stop between two steps; a second one interrupts at once."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        token.cancel()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress_bar() -> Iterator[ProgressSink]:
    """A bar on stderr that vanishes at the end; silent where stderr is not a terminal."""
    console = Console(stderr=True)
    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("Starting", total=1.0)

        def sink(update: ProgressUpdate) -> None:
            bar.update(task, completed=update.fraction, description=update.message)

        yield sink
