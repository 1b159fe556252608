"""Sentences on the atlas: which block to drop at each length, and where two operators part."""

from __future__ import annotations

from operator import attrgetter
from statistics import geometric_mean, median

from ghostlab.plots.figures.blocks import FIGURES, FIRST, OPERATORS, best, gain, label
from ghostlab.plots.formats import number, percent, plural
from ghostlab.results.atlas import Atlas, AtlasBlock

_LENGTHS_TOLD = 4
_PARTED = 1.5
"""From this ratio of errors on, two operators are said to part."""


def block_map(atlas: Atlas, name: str = FIRST) -> str:
    """Which block is the best of each length, and where ``ghost`` and ``ghost_sink`` part."""
    figure = FIGURES[name]
    blocks = best(atlas, figure.of, figure.low)
    if not blocks:
        return f"{name} was not measured on any block."
    told = [_best(block, figure.spell(figure.of(block) or 0.0)) for block in _some(blocks)]
    return f"Of each length the outlined block has {figure.most}: {', '.join(told)}.{_parting(atlas)}"


def _best(block: AtlasBlock, value: str) -> str:
    return f"{label(block)} of {plural(block.length, 'layer')} ({value})"


def _some(blocks: list[AtlasBlock]) -> list[AtlasBlock]:
    """The first, the last and some between."""
    last = len(blocks) - 1
    steps = min(last, _LENGTHS_TOLD - 1) or 1
    return [blocks[index] for index in sorted({round(last * step / steps) for step in range(steps + 1)})]


def _parting(atlas: Atlas) -> str:
    """The layer whose presence in a block sets the errors of ``ghost`` and ``ghost_sink`` apart the most."""
    ratios = [(block, ratio) for block in atlas.blocks if (ratio := gain(block))]
    splits = [_split(ratios, layer) for layer in range(atlas.layers)]
    known = [(_contrast(*split), layer) for layer, split in enumerate(splits) if all(split)]
    if not known:
        return ""
    contrast, layer = max(known)
    if contrast < _PARTED:
        most = max(ratio for _, ratio in ratios)
        return f" Nowhere does ghost leave more than {number(most, 2)} times the error of ghost_sink."
    inside, outside = (number(median(side), 2) for side in splits[layer])
    return (
        f" Where the block contains layer {layer}, ghost leaves {inside} times the error of ghost_sink, "
        f"elsewhere {outside} times (medians): massive activations begin or end there."
    )


def _split(ratios: list[tuple[AtlasBlock, float]], layer: int) -> tuple[list[float], list[float]]:
    """The ratios of blocks that contain a layer, and of the others."""
    inside = [ratio for block, ratio in ratios if block.start <= layer < block.stop]
    return inside, [ratio for block, ratio in ratios if not block.start <= layer < block.stop]


def _contrast(inside: list[float], outside: list[float]) -> float:
    """The ratio of geometric means: a block on the wrong side weighs as much as one on the right side."""
    return geometric_mean(inside) / geometric_mean(outside)


def by_length(atlas: Atlas) -> str:
    """What ``ghost_sink`` and plain dropping leave of the shortest and of the longest blocks."""
    ends = {name: best(atlas, attrgetter(field)) for name, field in OPERATORS.items()}
    plain, sink = ends["plain dropping"], ends["ghost_sink"]
    if not plain:
        return "No block was surveyed."
    text = f"{_at(sink[0], 'ghost_sink').capitalize()} and plain dropping {_at(plain[0], 'gap', short=True)}"
    if len(sink) == 1:
        return f"{text}."
    return f"{text}; {_at(sink[-1], 'ghost_sink')} and plain dropping {_at(plain[-1], 'gap', short=True)}."


def _at(block: AtlasBlock, field: str, short: bool = False) -> str:
    where = f"{percent(getattr(block, field))} ({label(block)})"
    return where if short else f"of {plural(block.length, 'layer')} {field} leaves {where}"
