"""``ghostlab models``: the short list offered first, and every family that can be cut."""

from __future__ import annotations

import typer

from ghostlab.cli.show import print_table


def models_command() -> None:
    """List models to start with, and the families that any other model may be of."""
    from ghostlab.model.catalog import CATALOG
    from ghostlab.model.families import FAMILIES

    rows = [
        [
            entry.source,
            entry.family,
            str(entry.outline.layers),
            f"{entry.outline.total / 1e6:,.0f} M",
            entry.licence + (" (gated)" if entry.gated else ""),
            f"{entry.title}: {entry.note}",
        ]
        for entry in CATALOG
    ]
    print_table(["--model", "family", "blocks", "size", "licence", "about"], rows)
    typer.echo("\nAny other hub model, local folder or .gguf file of these families (model_type: known as):")
    for family, names in sorted(FAMILIES.items()):
        typer.echo(f"  {family}: {names}")
