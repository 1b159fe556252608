"""``ghostlab models`` and ``ghostlab methods``: what there is to choose from, a line each."""

from __future__ import annotations

from typing import Annotated

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


def methods_command(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The tables of docs/operators.md and docs/criteria.md.")
    ] = False,
) -> None:
    """List the operators for --recover, the criteria for --select and the texts for --text."""
    from ghostlab.pruning import registry as criteria
    from ghostlab.recovery import registry as operators
    from ghostlab.registry import problems
    from ghostlab.text.corpora import CORPORA

    if markdown:
        typer.echo(f"{operators.table()}\n\n{criteria.table()}")
        return
    rows = [[m.name, m.adds, ", ".join(m.options), m.summary] for m in operators.OPERATORS.values()]
    print_table(["--recover", "adds", "options", "what it does"], rows)
    typer.echo("")
    rows = [[c.name, c.unit, ", ".join(c.options), c.summary] for c in criteria.CRITERIA.values()]
    print_table(["--select", "scores", "options", "what it does"], rows)
    typer.echo("")
    rows = [[corpus.name, corpus.licence, corpus.about] for corpus in CORPORA.values()]
    print_table(["--text", "licence", "what it is"], rows)
    typer.echo(
        "\nOptions follow the name: --recover ghost,rank=64,ridge=1e-4 --select shortgpt,convention=flat"
        "\nA run says which of its recoveries ghostlab export --stock can write as ordinary checkpoints."
    )
    for problem in problems():
        typer.echo(f"Warning: {problem}")
