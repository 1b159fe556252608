"""The report of an atlas: the map of every figure, errors by length, and the best block of each length."""

from __future__ import annotations

from pathlib import Path

from ghostlab.plots.figures.atlas import (
    FIRST,
    MEASURES,
    Measure,
    best,
    block_map,
    by_length,
    label,
    say_block_map,
    say_by_length,
)
from ghostlab.plots.formats import number, plural
from ghostlab.report.page import document
from ghostlab.results.atlas import Atlas
from ghostlab.storage import write_text


def write_atlas(atlas: Atlas, path: Path) -> Path:
    """Write the report of ``atlas`` to ``path``, whole or not at all; missing folders are made."""
    return write_text(path, render_atlas(atlas))


def render_atlas(atlas: Atlas) -> str:
    """The report as one HTML document."""
    known = {name: one for name, one in MEASURES.items() if any(one.of(b) is not None for b in atlas.blocks)}
    return document(
        "atlas.html",
        kicker="Ghostlab atlas",
        title=f"{atlas.model}: {plural(len(atlas.blocks), 'block')} of {_span(atlas)} layers",
        lead=say_block_map(atlas, FIRST),
        footer="; ".join(f"{name} {version}" for name, version in atlas.versions.items()),
        by_length=say_by_length(atlas),
        lengths=by_length(atlas),
        columns=["block", *known],
        rows=_rows(atlas, list(known.values())),
        maps=[(name, say_block_map(atlas, name), block_map(atlas, name)) for name in known],
        setup=_setup(atlas),
    )


def _rows(atlas: Atlas, known: list[Measure]) -> list[list[str]]:
    """Of each length the block with the least error after ``ghost_sink``, with all that is known of it."""
    rows = []
    for block in best(atlas, MEASURES[FIRST].of):
        values = [(measure, measure.of(block)) for measure in known]
        cells = ["" if value is None else measure.spell(value) for measure, value in values]
        rows.append([f"{label(block)} ({plural(block.length, 'layer')})", *cells])
    return rows


def _span(atlas: Atlas) -> str:
    lengths = atlas.lengths
    return f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else str(*lengths)


def _setup(atlas: Atlas) -> dict[str, str]:
    config = atlas.config
    return {
        "Model": f"{atlas.model}, {plural(atlas.layers, 'layer')}",
        "Text": f"{config.text}, {config.sequences} sequences of {config.length} tokens, seed {config.seed}",
        "Maps fitted on": f"{atlas.fitted:,} ordinary tokens",
        "Errors taken on": f"{atlas.tried:,} others",
        "Time": f"{number(atlas.seconds)} s",
    }
