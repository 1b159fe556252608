"""Some held-out tokens whose states around a block are kept, to look at one by one."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ghostlab.calibration.moments import massive_tokens

MOST_TOKENS = 1024
"""Ordinary tokens that are kept, spread evenly over the windows; massive ones are few and all kept."""
CONTEXT = 3
"""Tokens of text shown before a token."""


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
