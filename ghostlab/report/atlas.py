"""The report of an atlas: the map of every figure, errors by length, and the best block of each length."""

from __future__ import annotations

from html import escape
from itertools import count
from pathlib import Path

from ghostlab.plots import explained
from ghostlab.plots.figures import atlas as figures
from ghostlab.plots.figures.blocks import FIGURES, FIRST, best, label
from ghostlab.plots.formats import number, plural
from ghostlab.plots.sentences import atlas as sentences
from ghostlab.report import page
from ghostlab.results.atlas import Atlas


def write_atlas(atlas: Atlas, path: Path) -> Path:
    """Write the report of ``atlas`` to ``path``, whole or not at all; missing folders are made."""
    return page.write(render_atlas(atlas), path)


def render_atlas(atlas: Atlas) -> str:
    """The report as one HTML document."""
    numbers = count()
    words = f"{sentences.by_length(atlas)} Each operator at its own best block."
    lengths = page.article(
        explained.title("by_length"),
        words,
        page.what_is_this("by_length") + page.figure(figures.by_length(atlas), next(numbers)),
        wide=True,
    )
    told = page.what_is_this("block_map")
    maps = page.panels(_map(atlas, name, next(numbers)) for name in _known(atlas))
    parts = [
        page.section("Errors by length", page.panels([lengths])),
        page.section("The best block of each length", _table(atlas)),
        page.section("Block maps", told + maps),
        page.section("What was measured on what", page.facts(_setup(atlas))),
    ]
    title = f"{atlas.model}: {plural(len(atlas.blocks), 'block')} of {_span(atlas)} layers"
    lead = page.words(sentences.block_map(atlas, FIRST))
    return page.document("Ghostlab block map", title, lead, parts, "; ".join(_versions(atlas)))


def _known(atlas: Atlas) -> list[str]:
    """Figures that were measured of any block."""
    return [name for name, shown in FIGURES.items() if any(shown.of(b) is not None for b in atlas.blocks)]


def _map(atlas: Atlas, name: str, index: int) -> str:
    drawn = page.figure(figures.block_map(atlas, name), index)
    return page.article(name, sentences.block_map(atlas, name), drawn)


def _table(atlas: Atlas) -> str:
    """Of each length the block with the least error after ``ghost_sink``, with all that is known of it."""
    names = _known(atlas)
    rows = []
    for block in best(atlas, FIGURES[FIRST].of, FIGURES[FIRST].low):
        values = [(FIGURES[name], FIGURES[name].of(block)) for name in names]
        cells = ["" if value is None else escape(shown.spell(value)) for shown, value in values]
        rows.append([escape(f"{label(block)} ({plural(block.length, 'layer')})"), *cells])
    return page.table([("block", ""), *((escape(name), "") for name in names)], rows)


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


def _versions(atlas: Atlas) -> list[str]:
    return [f"{name} {version}" for name, version in atlas.versions.items()]
