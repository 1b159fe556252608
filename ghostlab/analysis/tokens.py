"""Some held-out tokens whose states around a block are kept: to look at one by one, and in a plane."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from sklearn.decomposition import PCA
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ghostlab.calibration.moments import massive_tokens
from ghostlab.model.replacement import AffineMap
from ghostlab.results.operator import Points, StatePlane

MOST_TOKENS = 1024
"""Ordinary tokens that are kept, spread evenly over the windows; massive ones are few and all kept."""
CONTEXT = 3
"""Tokens of text shown before a token."""
SHOWN = 200
"""Tokens of each kind that are drawn; the plane is fitted to all ordinary ones."""
Array = npt.NDArray[np.float64]


class TokenSample:
    """States of some tokens before and after one block.

    Args:
        ids: Token ids of all windows, [W, T].
    """

    def __init__(self, ids: Tensor) -> None:
        self.ids = ids.cpu()
        self._per_window = -(-MOST_TOKENS // len(ids))
        self._before: list[Tensor] = []
        self._after: list[Tensor] = []
        self._massive: list[Tensor] = []
        self._places: list[Tensor] = []

    def add(self, rows: slice, before: Tensor, after: Tensor) -> None:
        """Take in the states [B, T, C] of windows ``rows``; the same tokens whatever the batches are."""
        massive = massive_tokens(before, after)
        take = massive.clone()
        for index, row in enumerate(range(rows.start, rows.start + len(before))):
            order = torch.randperm(before.shape[1], generator=torch.Generator().manual_seed(row))
            take[index, order[: self._per_window].to(take.device)] = True
        window, position = take.nonzero(as_tuple=True)
        self._before.append(before[window, position].float().cpu())
        self._after.append(after[window, position].float().cpu())
        self._massive.append(massive[window, position].cpu())
        self._places.append(torch.stack([window.cpu() + rows.start, position.cpu()], dim=1))

    @cached_property
    def before(self) -> Tensor:
        """States before the block, [N, C], float32."""
        return torch.cat(self._before)

    @cached_property
    def after(self) -> Tensor:
        """States after the block, [N, C], float32."""
        return torch.cat(self._after)

    @cached_property
    def massive(self) -> Tensor:
        """Which tokens carry massive activations, [N]."""
        return torch.cat(self._massive)

    @cached_property
    def places(self) -> Tensor:
        """Window and position of each token, [N, 2]."""
        return torch.cat(self._places)

    @property
    def first(self) -> Tensor:
        """Which tokens are the first of their window, [N]."""
        return self.places[:, 1] == 0

    def excerpt(self, tokenizer: PreTrainedTokenizerBase, index: int) -> tuple[str, str]:
        """The text just before token ``index`` of the sample, and its own."""
        window, position = self.places[index].tolist()
        ids = self.ids[window]
        before = str(tokenizer.decode(ids[max(position - CONTEXT, 0) : position]))
        return before, str(tokenizer.decode(ids[position : position + 1]))


@torch.no_grad()
def state_plane(sample: TokenSample, replacement: AffineMap) -> StatePlane | None:
    """Those tokens before and after the block and recovered, in the plane of two principal components.

    ``None`` with fewer than three ordinary tokens.

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
