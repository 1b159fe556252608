"""The best symmetric map: everything that LinearPatch and every scaling could reach by least squares."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.calibration.moments import Moments, total
from ghostlab.calibration.solve import RELATIVE_RIDGES, choose_ridge
from ghostlab.recovery.base import LEAST_SQUARES, BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import fit_matrix
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """The symmetric M of least error, with a ridge validated for symmetric maps."""
    folds = data.moments().folds()
    ridge = choose_ridge(spec.ridge, folds, centre=False, errors=held_out_errors)
    seen = total(folds)
    return fit_matrix(data, spec, best_symmetric(seen.gram, seen.cross, ridge.added), seen, ridge)


def best_symmetric(gram: Tensor, cross: Tensor, ridge: float = 0.0) -> Tensor:
    """The best symmetric map: argmin ||X M - D||^2 + ridge ||M||^2 over M = M'.

    It solves the Lyapunov equation H M + M H = R + R' with H = G + ridge I. In the eigenbasis of G that
    decouples to M_ij = (R + R')_ij / (h_i + h_j). Directions without tokens get 0.
    """
    values, vectors = torch.linalg.eigh(gram)
    right = vectors.T @ (cross + cross.T) @ vectors
    best: Tensor = vectors @ in_eigenbasis(values, right, ridge) @ vectors.T
    return best


def held_out_errors(train: Moments, test: Moments) -> Tensor:
    """||X M(l) - D||^2 on ``test`` for every candidate ridge, M(l) the best symmetric on ``train``."""
    values, vectors = torch.linalg.eigh(train.gram)
    right = vectors.T @ (train.cross + train.cross.T) @ vectors
    cross, gram = vectors.T @ test.cross @ vectors, vectors.T @ test.gram @ vectors
    scale = float(train.gram.trace()) / train.width
    found = []
    for ridge in RELATIVE_RIDGES:
        inner = in_eigenbasis(values, right, ridge * scale)
        found.append(test.total + ((gram @ inner - 2 * cross) * inner).sum())
    return torch.stack(found)


def in_eigenbasis(values: Tensor, right: Tensor, ridge: float) -> Tensor:
    """The best symmetric M as V'MV, from the eigenvalues of G = V diag(values) V' and right = V'(R + R')V."""
    values = values.clamp(min=0) + ridge
    sums = values[:, None] + values[None, :]
    floor = float(values.max()) * len(values) * torch.finfo(values.dtype).eps
    return torch.where(sums > 2 * floor, right / sums, torch.zeros_like(right))


METHOD = Method(
    name="symmetric",
    title="Best symmetric map",
    summary="The symmetric matrix with the least squared error; shows what leaving symmetry is worth.",
    formula=r"\hat y = x + xM,\quad M = M^\top,\quad (G + \lambda I)M + M(G + \lambda I) = R + R^\top",
    source="Lyapunov equation of symmetric least squares",
    group="constrained",
    fit=fit,
    options=LEAST_SQUARES,
)
