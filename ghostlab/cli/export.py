"""``ghostlab export``: a model folder from a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ghostlab.cli.run import followed
from ghostlab.errors import ConfigError
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings


def export_command(
    result: Annotated[Path, typer.Option("--result", help="Folder that 'ghostlab run --out' wrote.")],
    out: Annotated[Path, typer.Option("--out", help="New or empty folder for the model.")],
    method: Annotated[
        str, typer.Option("--method", help="Which recovery of the run: its label; 'pruned' for none.")
    ] = "pruned",
    stock: Annotated[
        bool,
        typer.Option("--stock", help="An ordinary checkpoint without code of its own, where that is exact."),
    ] = False,
    mergekit: Annotated[
        bool, typer.Option("--mergekit", help="A mergekit recipe of the kept ranges; plain drops only.")
    ] = False,
) -> None:
    """Write a recovered model, with its operators, model card and the command that repeats the run."""
    if stock and mergekit:
        raise ConfigError("--stock and --mergekit exclude each other.", "Give one of them.")
    loaded = RunResult.load(result)
    from ghostlab.lab.lab import Lab
    from ghostlab.lab.requests import ExportForm

    with followed() as (sink, token):
        form: ExportForm = "stock" if stock else "mergekit" if mergekit else "recovered"
        written = Lab(Settings.from_env()).export(loaded, method, out, form=form, progress=sink, cancel=token)
    typer.echo(f"Wrote {written}")
    if mergekit:
        from ghostlab.export.mergekit import caution

        if warned := caution(loaded):
            typer.echo(f"Note: {warned}")
