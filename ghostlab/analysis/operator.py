"""Everything the app shows about one fitted map, as numbers small enough for a result file."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ghostlab.analysis.directions import top_directions
from ghostlab.analysis.spectrum import cumulative_energy, reduced_rank_curve, svd_curve
from ghostlab.analysis.symmetry import split, symmetry_split
from ghostlab.analysis.tokens import TokenSample, state_plane
from ghostlab.calibration.moments import Moments
from ghostlab.cut import Block
from ghostlab.model.replacement import AffineMap
from ghostlab.recovery.lowrank import LEADING, WIDE, is_wide
from ghostlab.results.operator import OperatorReport

MAP_SIZE = 64
"""Heat maps are averaged down to at most this many tiles per side."""


def describe(
    block: Block,
    replacement: AffineMap,
    train: Moments,
    held_out: Moments,
    *,
    ridge: float,
    sample: TokenSample | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> OperatorReport:
    """Decompose the map of ``replacement``.

    Args:
        block: The block it stands in for.
        replacement: The fitted map.
        train, held_out: Moments of calibration and held-out tokens at the block.
        ridge: Ridge of the fit, relative to the mean diagonal of G.
        sample: Held-out tokens to look at one by one; without them there is no plane and no token is named.
        tokenizer: Reads them.
    """
    matrix = replacement.matrix().to(train.gram.device)
    bias = None if replacement.bias is None else replacement.bias.double().to(matrix.device)
    seen = train if bias is None else train.centred()
    added = ridge * float(seen.gram.trace()) / seen.width
    symmetric, antisymmetric = split(matrix)
    wide = is_wide(seen.width)
    eigenvalues = torch.linalg.eigvals(matrix[:0, :0] if wide else matrix) + 1
    values, curve = svd_curve(matrix, bias, train, held_out)
    best_curve = reduced_rank_curve(matrix, bias, train, held_out)
    tile = -(-seen.width // MAP_SIZE)
    return OperatorReport(
        block=(block.start, block.stop),
        split=symmetry_split(matrix, bias, train, held_out, added),
        symmetric_map=tiles(symmetric, tile),
        antisymmetric_map=tiles(antisymmetric, tile),
        tile=tile,
        eigenvalues_real=short(eigenvalues.real),
        eigenvalues_imag=short(eigenvalues.imag),
        singular_values=short(values),
        cumulative_energy=short(cumulative_energy(values, float(matrix.square().sum()) if wide else None)),
        truncated_svd=curve,
        reduced_rank=best_curve,
        bias_norm=0.0 if bias is None else float(bias.norm()),
        directions=top_directions(replacement, train, sample, tokenizer),
        plane=None if sample is None else state_plane(sample, replacement),
        notes=[_WIDE_NOTE] if wide else [],
    )


_WIDE_NOTE = (
    f"The map has more than {WIDE:,} channels: its eigenvalues were left out, and only the leading {LEADING} "
    "directions were computed, because all of them would take minutes."
)


def tiles(matrix: Tensor, tile: int) -> list[list[float]]:
    """Means over ``tile`` x ``tile`` squares; the last row and column of squares may be smaller."""
    pooled = torch.nn.functional.avg_pool2d(
        matrix[None, None], tile, ceil_mode=True, count_include_pad=False
    )[0, 0]
    return [short(row) for row in pooled]


def short(values: Tensor) -> list[float]:
    """As Python numbers of five digits: a tenth of the size on disk, and no figure shows more."""
    return [float(f"{value:.4e}") for value in values.tolist()]
