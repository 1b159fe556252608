"""States around a block in the plane of two principal components of ordinary tokens (scikit-learn)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from ghostlab.analysis.tokens import TokenSample
from ghostlab.model.replacement import AffineMap
from ghostlab.results.operator import Points, StatePlane

SHOWN = 200
"""Tokens of each kind that are drawn; the plane is fitted to all ordinary ones."""
Array = npt.NDArray[np.float64]


@torch.no_grad()
def state_plane(sample: TokenSample, replacement: AffineMap) -> StatePlane | None:
    """States before and after the block and recovered; ``None`` with fewer than three ordinary tokens.

    Args:
        sample: Held-out tokens with their states.
        replacement: The map.
    """
    ordinary = ~sample.massive
    if int(ordinary.sum()) < 3:
        return None
    states = [sample.before, sample.after, _recovered(sample, replacement)]
    fitted = PCA(n_components=2, random_state=0)
    fitted.fit(torch.cat([state[ordinary] for state in states[:2]]).double().numpy())
    first, second = fitted.explained_variance_ratio_
    return StatePlane(
        variance=(float(first), float(second)),
        ordinary=_points(fitted, [state[ordinary] for state in states]),
        massive=_points(fitted, [state[sample.massive] for state in states]),
    )


def _recovered(sample: TokenSample, replacement: AffineMap) -> Tensor:
    """What the map makes of the states before the block, [N, C]."""
    own = replacement.twin().cpu()
    recovered: Tensor = own(sample.before[:, None], sample.first[:, None])
    return recovered[:, 0]


def _points(fitted: PCA, states: list[Tensor]) -> Points:
    return Points(*(_projected(fitted, state[:SHOWN].double().numpy()) for state in states))


def _projected(fitted: PCA, states: Array) -> list[tuple[float, float]]:
    if not len(states):
        return []
    return [(float(f"{x:.4e}"), float(f"{y:.4e}")) for x, y in fitted.transform(states)]
