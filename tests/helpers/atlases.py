"""A realistic :class:`Atlas` by formula: for the tests of figures and pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ghostlab.config import RunConfig
from ghostlab.results.atlas import Atlas, AtlasBlock

LAYERS, MASSIVE, BEST = 12, 2, 6


def make_atlas(lengths: Sequence[int] = (1, 2, 3, 5)) -> Atlas:
    """Twelve layers: the block around layer 6 is the best of each length, layer 2 makes massive activations.

    A map fitted on all tokens leaves six times the error of ``ghost_sink`` across that layer.
    """
    return _make(tuple(lengths))


@lru_cache(maxsize=8)
def _make(lengths: tuple[int, ...]) -> Atlas:
    spans = [(s, s + n) for s in range(LAYERS) for n in lengths if s + n <= LAYERS]
    measured = {n: min(LAYERS - n, max(0, BEST - n // 2)) for n in lengths}
    blocks = [_block(start, stop, measured[stop - start] == start) for start, stop in spans]
    return Atlas(RunConfig(seed=3), "tiny", LAYERS, 9000, 1800, 70, blocks, 4.25, {"python": "3"})


def _block(start: int, stop: int, best: bool) -> AtlasBlock:
    length = stop - start
    error = 0.02 * length * (1 + abs(start + length // 2 - BEST))
    plain = error * (6.0 if start <= MASSIVE < stop else 1.1)
    return AtlasBlock(
        start=start,
        stop=stop,
        cosine=1 - error / 4,
        angle=error / 5,
        gap=plain * 3,
        scalar=plain * 2.5,
        symmetric=plain * 1.25,
        ghost=plain,
        ghost_sink=error,
        effective_rank=4.0 * length,
        kl=0.3 * length if best else None,
    )
