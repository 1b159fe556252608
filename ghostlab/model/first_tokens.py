"""Which token is the first attended one of its sequence, known at the model's entry and nowhere else.

Massive activations are born at the first token that a sequence attends to: position 0, or the first one
after the padding on the left. Blocks do not know which that is; the model's entry does, from attention mask
and cache.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ghostlab.errors import ModelError


class FirstTokens:
    """Holds, during a forward pass, the mask [B, T] of first attended tokens among the tokens being run."""

    def __init__(self) -> None:
        self.mask: Tensor | None = None

    def __call__(self, stack: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Forward pre-hook of the stack: read mask and cache length from its arguments."""
        tokens = kwargs.get("input_ids")
        tokens = kwargs.get("inputs_embeds") if tokens is None else tokens
        tokens = args[0] if tokens is None else tokens
        cache = kwargs.get("past_key_values", kwargs.get("cache"))
        seen = 0 if cache is None else int(cache.get_seq_length())
        self.mask = first_attended(tokens.shape[:2], kwargs.get("attention_mask"), seen, tokens.device)


def first_attended(
    shape: torch.Size, mask: Any = None, seen: int = 0, device: torch.device | None = None
) -> Tensor:
    """Mask [B, T] of the first attended token of each sequence.

    Args:
        shape: ``(B, T)`` of the tokens being run.
        mask: Attention mask [B, seen + T], 1 for tokens; ``None`` if all are; or what Transformers makes of
            it for a static cache: [B or 1, 1, T, K], true or 0 where a query attends to a key, or several of
            these by kind of layer.
        seen: Tokens in the cache already.

    Raises:
        ModelError: If the mask is of another kind.
    """
    batch, length = shape
    columns = torch.arange(seen, seen + length, device=device)
    attended = _attended(mask)
    if attended is None:
        return (columns == 0).expand(batch, length)
    first = attended.to(device=device, dtype=torch.int8).argmax(dim=1)
    return (columns[None, :] == first[:, None]).expand(batch, length)


def _attended(mask: Any) -> Tensor | None:
    """Which keys are attended to, [B or 1, K]; ``None`` if all are."""
    if isinstance(mask, dict):  # by kind of layer; windows of sliding layers may be shorter than the sequence
        mask = mask.get("full_attention", next(iter(mask.values()), None))
    if mask is None or (isinstance(mask, Tensor) and mask.ndim == 2):
        return mask
    if isinstance(mask, Tensor) and mask.ndim == 4:
        seen_by = mask if mask.dtype == torch.bool else mask == 0
        return seen_by.flatten(1, 2).any(dim=1)
    shape = f" of shape {list(mask.shape)}" if isinstance(mask, Tensor) else ""
    raise ModelError(
        f"Cannot find first tokens in an attention mask that is a {type(mask).__name__}{shape}.",
        "Its shape must be [batch, tokens] or [batch, heads, queries, keys].",
    )
