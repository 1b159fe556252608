"""Altered copies of a fitted map: its symmetric or antisymmetric part, a rank of it, another strength."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ghostlab.analysis.symmetry import split
from ghostlab.calibration.moments import Moments
from ghostlab.model.replacement import AffineMap
from ghostlab.recovery.lowrank import Factors, reduced_rank, truncated_svd
from ghostlab.results.probe import Alteration


@dataclass(frozen=True)
class _Form:
    """M' as it is to be stored: dense, as factors, or as a diagonal."""

    dense: Tensor | None = None
    factors: Factors | None = None
    diagonal: Tensor | None = None


def needs_moments(replacement: AffineMap, how: Alteration) -> bool:
    """Whether :func:`alter` needs moments: for a reduced rank, and to refit a bias to a changed M."""
    changed = how.part != "whole" or how.rank is not None
    by_data = how.rank is not None and how.factor == "reduced_rank"
    return by_data or (changed and replacement.bias is not None)


def alter(replacement: AffineMap, how: Alteration, seen: Moments | None = None) -> AffineMap:
    """x -> x + alpha (x M' + b'), with M' the part and rank of M that ``how`` names.

    b' is the best bias for M' on the fitted tokens, b + mean(x) (M - M'), so that a changed part or rank does
    not pay for a shift that a bias would mend. The offset of first tokens stays as it was fitted. Both are
    scaled by alpha, so that alpha = 0 is plain dropping.

    Args:
        replacement: The fitted map.
        how: What to keep of it.
        seen: Moments that it was fitted on, where :func:`needs_moments` says so.
    """
    form, bias = _Form(replacement.dense, _factors(replacement), replacement.diagonal), replacement.bias
    if how.part != "whole" or how.rank is not None:
        matrix = replacement.matrix()
        form, kept = _reformed(matrix, how, seen, bias is not None)
        if bias is not None:
            assert seen is not None
            bias = bias.double() + (seen.x / seen.count).to(bias.device) @ (matrix - kept)
    scaled = how.alpha
    return AffineMap(
        _times(form.dense, scaled),
        factors=None if form.factors is None else (form.factors[0] * scaled, form.factors[1]),
        diagonal=_times(form.diagonal, scaled),
        bias=_times(bias, scaled),
        first=_times(replacement.first, scaled),
    )


def _factors(replacement: AffineMap) -> Factors | None:
    return None if replacement.down is None or replacement.up is None else (replacement.down, replacement.up)


def _times(tensor: Tensor | None, scale: float) -> Tensor | None:
    return None if tensor is None else tensor * scale


def _reformed(matrix: Tensor, how: Alteration, seen: Moments | None, bias: bool) -> tuple[_Form, Tensor]:
    """The part and rank of M, as it is stored and as a matrix."""
    symmetric, antisymmetric = split(matrix)
    part = {"whole": matrix, "symmetric": symmetric, "antisymmetric": antisymmetric}[how.part]
    if how.rank is None or how.rank >= len(matrix):
        return _Form(dense=part), part
    if how.factor == "reduced_rank":
        assert seen is not None
        about = seen.centred() if bias else seen
        gram, cross = about.gram.to(part.device), about.cross.to(part.device)
        factors = reduced_rank(part, 2 * cross - gram @ part, how.rank, quick=True)
    else:
        factors = truncated_svd(part, how.rank, quick=True)
    kept = factors[0] @ factors[1]
    cheap = 2 * how.rank < len(matrix)  # from there on factors are more numbers than the matrix itself
    return (_Form(factors=factors) if cheap else _Form(dense=kept)), kept
