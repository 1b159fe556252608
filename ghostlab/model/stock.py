"""Recoveries as ordinary checkpoints: the maps absorbed into weights, wherever that is exact.

A decoder block adds to the residual stream; no weight ever multiplies the stream itself. A map x + x M + b
therefore has a place in the weights only

- behind the token embeddings, if the block is the first: E becomes E + E M + b (the head is untied);
- as a bias of what the layer before the block writes last, if M = 0 and the family has (or its config can
  switch on) a bias there.

A scalar M = (a - 1) I is no exception: norms undo a factor of the stream up to their epsilon, which would
have to become epsilon / a^2 in every later norm, and a config has one for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.errors import StockError
from ghostlab.model.absorb import bias_reason, embedding_scale, embeddings_reason, into_bias, into_embeddings
from ghostlab.model.surgery import without_maps

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ghostlab.cut import Block
    from ghostlab.model.standin import AffineMap, StandIn
    from ghostlab.model.variant import Variant

FIRST = (
    "The first token of a sequence gets an offset of its own, and no weight of a layer knows which token is "
    "first."
)
FIRST_OF_LAYER = (
    f"{FIRST} Fitted with first=layer, the kept layer takes first tokens as well and can be stock."
)
BESIDE = "A map beside the kept layer multiplies the residual stream, which no weight of a layer does."
MATRIX = (
    "The map multiplies the residual stream, which skip connections carry past every weight behind the "
    "embeddings."
)
SCALAR = (
    "A factor of the residual stream would need every later norm to have an epsilon of its own, and a config "
    "has one for all."
)


def stock_reason(variant: Variant) -> str | None:
    """Why a variant cannot be an ordinary checkpoint, in one sentence; ``None`` if it can."""
    reasons = (_reason(variant, block, standin) for block, standin in variant.standins.items())
    return next((reason for reason in reasons if reason is not None), None)


def stock_model(variant: Variant) -> PreTrainedModel:
    """The variant as a plain model of its family; parameters that did not change are shared.

    Raises:
        StockError: If its maps cannot be absorbed; see :func:`stock_reason`.
    """
    reason = stock_reason(variant)
    if reason is not None:
        raise StockError(reason, "Export it as a recovered model, with its operators beside the weights.")
    hf = plain(variant.hf)
    for block, standin in variant.standins.items():
        if standin.map is None:
            continue
        if block.start == 0:
            into_embeddings(hf, standin.map, embedding_scale(variant) or 1.0)
        elif standin.map.bias is not None:
            into_bias(variant, hf, variant.kept.index(block.start - 1), standin.map.bias)
    return hf


def plain(hf: PreTrainedModel) -> PreTrainedModel:
    """A clone without maps and without any mention of Ghostlab's code in its config."""
    twin = without_maps(hf)
    vars(twin.config).pop("auto_map", None)
    return twin


def _reason(variant: Variant, block: Block, standin: StandIn) -> str | None:
    fitted = standin.map
    if fitted is None:
        return None
    moves = fitted.dense is not None or fitted.down is not None or fitted.diagonal is not None
    if standin.keeps(block) and (moves or fitted.bias is not None):
        return BESIDE
    if fitted.first is not None:
        return FIRST_OF_LAYER if standin.keeps(block) else FIRST
    if block.start == 0:
        return embeddings_reason(variant, shift_only=not moves)
    if moves:
        return SCALAR if _is_scalar(fitted) else MATRIX
    return bias_reason(variant)


def _is_scalar(fitted: AffineMap) -> bool:
    diagonal = fitted.diagonal
    return diagonal is not None and bool((diagonal == diagonal[0]).all())
