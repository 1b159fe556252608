"""Singular values of a fitted map, and its error at every rank from one decomposition."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.calibration.moments import Moments
from ghostlab.recovery.lowrank import LEADING, output_directions, singular
from ghostlab.results.operator import RankCurve

MOST_POINTS = 48


def svd_curve(
    matrix: Tensor, bias: Tensor | None, train: Moments, held_out: Moments
) -> tuple[Tensor, RankCurve]:
    """Singular values of M, and the explained share of its truncated SVD at ranks 0 .. C.

    Of a wide map only the leading singular values are computed; its curve leaps from there to the full rank.

    Args:
        matrix: M, [C, C], float64.
        bias: b, or ``None``; given, each rank has the bias that belongs to it.
        train: Moments of the calibration tokens that M was fitted on.
        held_out: Moments of held-out tokens.

    Returns:
        Singular values, descending, and the curve at a thinned set of ranks.
    """
    left, values, right = singular(matrix, LEADING)
    return values, _curve(left * values, right.T, bias, train, held_out, whole=matrix)


def reduced_rank_curve(matrix: Tensor, bias: Tensor | None, train: Moments, held_out: Moments) -> RankCurve:
    """The same for reduced-rank regression, M_r = M V_r V_r': the best of each rank for the activations."""
    seen = train if bias is None else train.centred()
    # R itself for a least-squares M, where G M = R; see recovery.linear.fit_matrix for all others
    directions = output_directions(matrix, 2 * seen.cross - seen.gram @ matrix, LEADING)
    return _curve(matrix @ directions, directions, bias, train, held_out, whole=matrix)


def _curve(
    down: Tensor,
    up: Tensor,
    bias: Tensor | None,
    train: Moments,
    held_out: Moments,
    *,
    whole: Tensor,
) -> RankCurve:
    """Explained share of M_r = sum_{i<=r} d_i u_i', columns of ``down`` and orthonormal ``up`` [C, r].

    The error at rank r is t - sum_{i<=r} (2 d_i'R u_i - d_i'G d_i): one product gives the whole curve. With a
    bias b, that of M_r is b + m (M - M_r) with m the mean of X in training, so that X is taken about m and D
    about m M + b, where the bias of each rank is zero. Where not all directions are given, the last point is
    that of M itself, ``whole``.
    """
    gaps = (train.total, held_out.total)
    if bias is not None:
        mean = train.x / train.count
        change = mean @ whole + bias
        train, held_out = train.about(mean, change), held_out.about(mean, change)
    ranks, partial = thin(down.shape[1]), down.shape[1] < len(whole)
    at = torch.tensor(ranks, device=down.device)
    shares = []
    for moments, gap in zip((train, held_out), gaps, strict=True):
        gain = ((2 * moments.cross @ up - moments.gram @ down) * down).sum(0).cumsum(0)
        error = (moments.total - torch.cat([gain.new_zeros(1), gain]))[at].tolist()
        error += [moments.residual(whole)] if partial else []
        shares.append([1 - each / gap if gap else 0.0 for each in error])
    ranks += [len(whole)] if partial else []
    return RankCurve(ranks, explained=shares[1], explained_train=shares[0])


def thin(width: int) -> list[int]:
    """At most ``MOST_POINTS`` ranks from 0 to ``width``, dense where ranks are low."""
    steps = torch.linspace(0, 1, MOST_POINTS) ** 2 * width
    return sorted({0, 1, width, *(int(step) for step in steps.round())})


def cumulative_energy(values: Tensor, whole: float | None = None) -> Tensor:
    """Share of ||M||_F^2 (``whole``; default that of all ``values``) in the first r singular values."""
    energy = values.square()
    whole = float(energy.sum()) if whole is None else whole
    return energy.cumsum(0) / whole if whole else torch.ones_like(energy)
