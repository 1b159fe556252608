"""The command ``ghostlab``: the same pipeline as the app and the library, from a shell.

Only this module decides exit codes: 0 done, 1 unexpected, 2 bad input, 130 stopped by the user. Importing it
stays light; a command loads torch when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Annotated

import typer

from ghostlab import __version__
from ghostlab.cli.atlas import atlas_command
from ghostlab.cli.doctor import doctor_command
from ghostlab.cli.evaluate import evaluate_command
from ghostlab.cli.export import export_command
from ghostlab.cli.lists import methods_command, models_command
from ghostlab.cli.options import with_flags
from ghostlab.cli.run import run_command
from ghostlab.errors import Cancelled, GhostlabError
from ghostlab.settings import Settings

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base of what typer raises for a wrong flag. Newer versions of typer carry a copy of click inside."""


cli = typer.Typer(
    name="ghostlab",
    help="Drop layers of a decoder LLM, fit the linear map that stands in for them, see what came back.",
    add_completion=False,
    rich_markup_mode=None,
)
cli.command("run")(run_command)
cli.command("atlas")(atlas_command)
cli.command("evaluate")(evaluate_command)
cli.command("export")(export_command)
cli.command("models")(models_command)
cli.command("methods")(methods_command)
cli.command("doctor")(doctor_command)


@cli.command("app")
def app_command(
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on [default: this machine only].")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = None,
    public: Annotated[
        bool, typer.Option("--public", help="For strangers: no local paths, and every run is capped.")
    ] = False,
) -> None:
    """Open the app in the browser."""
    settings = Settings.from_env({**os.environ, "GHOSTLAB_PROFILE": "public"} if public else os.environ)
    from ghostlab.ui.app import launch

    launch(settings, host=host, port=port)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ghostlab {__version__}")
        raise typer.Exit


@cli.callback()
def _root(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    context.obj.debug = debug


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: ``sys.argv[1:]``) and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    flags = SimpleNamespace(debug=False)
    try:
        code = typer.main.get_command(cli).main(words, "ghostlab", standalone_mode=False, obj=flags)
    except GhostlabError as error:
        return _fail(with_flags(error), error.exit_code)
    except UsageError as error:
        message: str = error.format_message()  # type: ignore[attr-defined]
        return _fail(f"{message.rstrip('.?')}. See ghostlab --help.", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("Stopped.", 130)
    except Exception as error:
        if flags.debug:
            raise
        return _fail(
            f"Unexpected {type(error).__name__}: {error} (ghostlab --debug ... shows the traceback)", 1
        )
    if code == Cancelled.exit_code:  # typer answers Ctrl-C by itself, without a word
        return _fail("Stopped.", code)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    print("ghostlab:", " ".join(message.split()), file=sys.stderr)
    return code
