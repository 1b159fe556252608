"""Singular values of a fitted map, and its error at every rank from one decomposition."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.calibration.moments import Moments
from ghostlab.records import RankCurve

MOST_POINTS = 48


def svd_curve(
    matrix: Tensor, bias: Tensor | None, train: Moments, held_out: Moments
) -> tuple[Tensor, RankCurve]:
    """Singular values of M, and the explained share of its truncated SVD at ranks 0 .. C.

    With M_r = sum_i s_i u_i v_i' and orthonormal v_i, the error at rank r is
    t - sum_{i<=r} (2 s_i u_i'R v_i - s_i^2 u_i'G u_i): one SVD and two products give the whole curve.
    With a bias, X and D are first taken about the training mean, where the bias of each rank is zero.

    Args:
        matrix: M, [C, C], float64.
        bias: b, or ``None``.
        train, held_out: Moments of calibration and of held-out tokens.

    Returns:
        Singular values [C], descending, and the curve at a thinned set of ranks.
    """
    left, values, right = torch.linalg.svd(matrix)
    x, change = train.x / train.count, train.change / train.count
    gaps = (train.total, held_out.total)
    if bias is not None:
        train, held_out = train.about(x, change), held_out.about(x, change)
    ranks = thin(matrix.shape[0])
    at = torch.tensor(ranks)
    shares = []
    for moments, gap in zip((train, held_out), gaps, strict=True):
        linear = (left.T @ moments.cross * right).sum(1)
        quadratic = (left * (moments.gram @ left)).sum(0)
        gain = (2 * values * linear - values.square() * quadratic).cumsum(0)
        error = moments.total - torch.cat([gain.new_zeros(1), gain])
        shares.append((1 - error[at] / gap).tolist() if gap else [0.0] * len(ranks))
    return values, RankCurve(ranks, explained=shares[1], explained_train=shares[0])


def thin(width: int) -> list[int]:
    """At most ``MOST_POINTS`` ranks from 0 to ``width``, dense where ranks are low."""
    steps = torch.linspace(0, 1, MOST_POINTS) ** 2 * width
    return sorted({0, 1, width, *(int(step) for step in steps.round())})


def cumulative_energy(values: Tensor) -> Tensor:
    """Share of ||M||_F^2 in the first r singular values, for r = 1 .. C."""
    energy = values.square()
    whole = energy.sum()
    return energy.cumsum(0) / whole if whole else torch.ones_like(energy)
