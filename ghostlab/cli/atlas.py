"""``ghostlab atlas``: figures of every block of consecutive layers, the best of each length on stdout."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ghostlab import checks
from ghostlab.cli.options import build_config, with_settings
from ghostlab.cli.run import followed, written
from ghostlab.cli.show import print_table
from ghostlab.results.atlas import ATLAS_SETTINGS, Atlas, AtlasBlock, parse_lengths
from ghostlab.settings import Settings

_HEAD = ("layers", "block", "cosine", "drop", "scalar", "symmetric", "ghost", "ghost_sink", "rank", "KL")


@with_settings(*ATLAS_SETTINGS)
def atlas_command(
    *,
    lengths: Annotated[
        str, typer.Option("--lengths", help="How many layers blocks have: 1-10 or 2,4,6.")
    ] = "1-10",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File for the figures of every block: JSON, or a page to open where its name ends in .html.",
        ),
    ] = None,
    **flags: Any,
) -> None:
    """Measure every block: what dropping it loses and what maps bring back, without evaluating each."""
    config = build_config(None, flags)
    asked, settings = parse_lengths(lengths), Settings.from_env()
    checks.check(config, settings)
    from ghostlab.lab.lab import Lab

    with followed() as (sink, token):
        found = Lab(settings).atlas(config, asked, progress=sink, cancel=token)
    with written(out, partial(_save, found)):
        show(found)


def _save(atlas: Atlas, out: Path) -> None:
    if out.suffix.lower() not in {".html", ".htm"}:
        atlas.save(out)
        return
    from ghostlab.report import write_atlas

    write_atlas(atlas, out)


def show(atlas: Atlas) -> None:
    """Print the block of each length of which ``ghost_sink`` leaves least."""
    best = [block for length in atlas.lengths if (block := atlas.best(length)) is not None]
    title = (
        f"{atlas.model}: {len(atlas.blocks)} blocks in {atlas.seconds:.0f} s. Of each length the one that "
        f"ghost_sink replaces best; errors ||Y' - Y|| / ||Y|| on {atlas.tried:,} held-out ordinary tokens"
    )
    print_table(_HEAD, [_row(block) for block in best], title, numbers=True)


def _row(b: AtlasBlock) -> list[str]:
    errors = (b.gap, b.scalar, b.symmetric, b.ghost, b.ghost_sink)
    kl = "" if b.kl is None else f"{b.kl:.3f}"
    words = [f"{error:.3f}" for error in errors]
    return [str(b.length), f"{b.start}:{b.stop}", f"{b.cosine:.3f}", *words, f"{b.effective_rank:.1f}", kl]
