"""``ghostlab methods``: every recovery operator, every criterion and every built-in text, a line each."""

from __future__ import annotations

import typer

from ghostlab.cli.show import print_table


def methods_command() -> None:
    """List the operators for --recover, the criteria for --select and the texts for --text."""
    from ghostlab.pruning.registry import CRITERIA
    from ghostlab.recovery.registry import OPERATORS
    from ghostlab.text.corpora import CORPORA

    operators = [[m.name, m.adds, ", ".join(m.options), m.summary] for m in OPERATORS.values()]
    print_table(["--recover", "adds", "options", "what it does"], operators)
    typer.echo("")
    criteria = [[c.name, c.unit, ", ".join(c.options), c.summary] for c in CRITERIA.values()]
    print_table(["--select", "scores", "options", "what it does"], criteria)
    typer.echo("")
    texts = [[corpus.name, corpus.licence, corpus.about] for corpus in CORPORA.values()]
    print_table(["--text", "licence", "what it is"], texts)
    typer.echo(
        "\nOptions follow the name: --recover ghost,rank=64,ridge=1e-4 --select shortgpt,convention=flat"
        "\nWhether ghostlab export --stock can make an ordinary checkpoint of a recovery, its run says."
    )
