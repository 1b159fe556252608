"""Recoveries as ordinary checkpoints: the maps absorbed into weights, wherever that is exact.

A decoder layer adds to the residual stream; no weight ever multiplies the stream itself. A map x + x M + b
therefore has a place in the weights only

- after the token embeddings, if the block is the first: E becomes E + E M + b (the head is untied);
- as a bias of what the layer before the block writes last, if M = 0 and the family has (or its config can
  switch on) a bias there;
- in all later layers, if it is one factor: x -> a x + b. Norms undo a factor up to their epsilon, so that
  whether they notice it is measured.
"""

from __future__ import annotations

from transformers import PreTrainedModel

from ghostlab.cut import Block
from ghostlab.errors import StockError
from ghostlab.export.absorb import bias_reason, embedding_scale, embeddings_reason, into_bias, into_embeddings
from ghostlab.export.rescale import factor_of, noticed, rescale, rescale_reason
from ghostlab.model.model import Model
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.model.surgery import place_of, without_maps

FIRST = (
    "The first token of a sequence gets an offset of its own, and no weight of a layer knows which token is "
    "first."
)
FIRST_OF_LAYER = (
    f"{FIRST} Fitted with first=layer, the kept layer takes first tokens as well and can be stock."
)
BESIDE = "A map beside the kept layer multiplies the residual stream, which no weight of a layer does."
MATRIX = (
    "The map multiplies the residual stream, which skip connections carry past every weight after the "
    "embeddings."
)


def stock_reason(variant: Model) -> str | None:
    """Why a variant cannot be an ordinary checkpoint, in one sentence; ``None`` if it can.

    Makes it, and if a factor is absorbed runs it on a few tokens; :func:`kind_reason` does neither.
    """
    try:
        stock_model(variant)
    except StockError as error:
        return error.message
    return None


def kind_reason(variant: Model) -> str | None:
    """As :func:`stock_reason`, as far as the kind of the maps and the family tell without a measurement."""
    reasons = (_reason(variant, block, replacement) for block, replacement in variant.replacements.items())
    return next((reason for reason in reasons if reason is not None), None)


def stock_model(variant: Model) -> PreTrainedModel:
    """The variant as a plain model of its family; parameters that did not change are shared.

    Raises:
        StockError: If its maps cannot be absorbed; see :func:`stock_reason`.
    """
    reason = kind_reason(variant)
    if reason is None:
        hf = plain(variant.hf)
        reason = _absorb(variant, hf)
        if reason is None:
            return hf
    raise StockError(reason, "Export it as a recovered model, with its operators beside the weights.")


def plain(hf: PreTrainedModel) -> PreTrainedModel:
    """A clone without maps and without any mention of Ghostlab's code in its config."""
    twin = without_maps(hf)
    vars(twin.config).pop("auto_map", None)
    return twin


def _reason(variant: Model, block: Block, replacement: Replacement) -> str | None:
    fitted = replacement.map
    if fitted is None:
        return None
    if replacement.keeps(block) and (_moves(fitted) or fitted.bias is not None):
        return BESIDE
    if fitted.first is not None:
        return FIRST_OF_LAYER if replacement.keeps(block) else FIRST
    before, factor = _parts(variant, block, fitted)
    reason = None if factor == 1 else rescale_reason(variant, factor)
    if reason is not None or before is None:
        return reason
    if block.start == 0:
        return embeddings_reason(variant, shift_only=not _moves(before))
    return MATRIX if _moves(before) else bias_reason(variant)


def _parts(variant: Model, block: Block, fitted: AffineMap) -> tuple[AffineMap | None, float]:
    """What of a map goes into the weights before its block, and the factor for the layers after it."""
    factor = factor_of(fitted)
    if factor is None or (block.start == 0 and embeddings_reason(variant, shift_only=False) is None):
        return (fitted if _moves(fitted) or fitted.bias is not None else None), 1.0
    return (None if fitted.bias is None else AffineMap(bias=fitted.bias / factor)), factor


def _absorb(variant: Model, hf: PreTrainedModel) -> str | None:
    """Change the weights of ``hf``; returns why its logits are not the variant's, if they are not."""
    factors = {}
    for block, replacement in variant.replacements.items():
        if replacement.map is not None:
            before, factor = _parts(variant, block, replacement.map)
            factors[place_of(block, replacement, variant.kept)[0]] = factor
            _absorb_before(variant, hf, block, before)
    if all(factor == 1 for factor in factors.values()):
        return None
    rescale(variant, hf, factors)
    return noticed(variant, hf)


def _absorb_before(variant: Model, hf: PreTrainedModel, block: Block, before: AffineMap | None) -> None:
    if before is None:
        return
    if block.start == 0:
        into_embeddings(hf, before, embedding_scale(variant) or 1.0)
    elif before.bias is not None:
        into_bias(variant, hf, variant.kept.index(block.start - 1), before.bias)


def _moves(fitted: AffineMap) -> bool:
    """Whether M is more than 0."""
    return fitted.dense is not None or fitted.down is not None or fitted.diagonal is not None
