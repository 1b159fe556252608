"""A factor of the residual stream, taken over by the layers after it; see :mod:`.stock`.

Say the stream after a block is a x. Every layer reads it through a norm, which undoes a factor up to its
epsilon, and adds to it. So the stream may as well stay x, if the layers after add 1/a of what they added;
the final norm keeps the factor from the head. Nothing else changes, not even the embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ghostlab.errors import UnsupportedModelError
from ghostlab.model.decoder import Decoder
from ghostlab.model.model import Model
from ghostlab.model.projections import NORMED, find_projections
from ghostlab.model.replacement import AffineMap

_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")
"""Norms of what a layer adds, in the families that have such."""

_FROM_ONE = {"gemma2", "gemma3_text"}
"""Families of them that store a gain as what it is above 1."""

_READERS = {"olmo2": ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")}
"""Projections that read the stream without a norm: their weights take the factor itself."""

_SAME = 1e-5
"""Relative difference of logits below which norms are said not to notice a factor."""


def factor_of(fitted: AffineMap) -> float | None:
    """a, if the map is x -> a x + b for every token but perhaps the first, else ``None``."""
    diagonal = fitted.diagonal
    if diagonal is None or not bool((diagonal == diagonal[0]).all()):
        return None
    return 1 + float(diagonal[0])


def rescale_reason(variant: Model, factor: float) -> str | None:
    """Why the layers after a block cannot take over ``factor``; ``None`` if they can.

    Whether norms notice its absence is another question: see :func:`noticed`.
    """
    if not 0 < factor < inf:
        return (
            f"The factor {factor:.3g} is not positive: norms keep the sign of a state, and of zero they keep "
            "nothing, so that no layer after the block could make up for it."
        )
    config = variant.hf.config
    if getattr(config, "apply_residual_connection_post_layernorm", False):
        return "Layers of this model add to the state that their norm returns, which loses the factor."
    try:
        if config.model_type not in NORMED:
            find_projections(variant)
    except UnsupportedModelError as error:
        return error.message
    if variant.decoder.layout.tail[0].endswith("project_out"):
        return "This model has no final norm, so that the factor would reach its head."
    return None


def rescale(variant: Model, hf: PreTrainedModel, factors: Mapping[int, float]) -> None:
    """Let the layers of ``hf`` take over factors of the stream.

    Args:
        variant: What ``hf`` is a copy of; tells where its layers write.
        hf: The model that is changed; what changes gets tensors of its own.
        factors: Boundary in ``hf`` -> a, the factor of the stream from there on; they multiply.
    """
    factor = 1.0
    for index, layer in enumerate(Decoder(hf).blocks):
        factor *= factors.get(index, 1.0)
        if factor != 1.0:
            _divide(variant, layer, factor)


def noticed(variant: Model, hf: PreTrainedModel) -> str | None:
    """By how much norms notice the factor, as a sentence; ``None`` if the logits of ``hf`` are the variant's.

    The same means: on 64 tokens within 1e-5 of the logits' norm, or within the rounding of the weights where
    that is coarser, as in bfloat16.
    """
    difference = _difference(variant.hf, hf)
    if difference <= max(_SAME, 4 * torch.finfo(variant.hf.dtype).eps):
        return None
    return (
        "The epsilon of the norms after the block is not small beside its states: without the factor the "
        f"logits differ by {difference:.1e} of their norm, and above {_SAME:.0e} that is not the same model."
    )


def _divide(variant: Model, layer: nn.Module, factor: float) -> None:
    """Let ``layer`` add 1 / ``factor`` of what it added, given that its input is 1 / ``factor`` of it too."""
    family = variant.hf.config.model_type
    if family in NORMED:
        for name in _NORMS:
            _scale(layer.get_submodule(name), "weight", 1 / factor, offset=float(family in _FROM_ONE))
        for name, module in layer.named_modules():
            if name.rpartition(".")[2] in _READERS.get(family, ()):
                _scale(module, "weight", factor)
        return
    projections = find_projections(variant)
    for path in (projections.attention, projections.mlp):
        for name in ("weight", "bias"):
            _scale(layer.get_submodule(path), name, 1 / factor)


def _scale(module: nn.Module, name: str, factor: float, *, offset: float = 0.0) -> None:
    """Multiply ``offset`` plus a parameter, if there is one, in a tensor of its own."""
    old: Tensor | None = getattr(module, name, None)
    if old is not None:
        scaled = (old.detach().float() + offset) * factor - offset
        setattr(module, name, nn.Parameter(scaled.to(old.dtype), requires_grad=False))


@torch.no_grad()
def _difference(hf: PreTrainedModel, other: PreTrainedModel) -> float:
    """Relative difference between the logits of two models, in Frobenius norm on 4 x 16 tokens."""
    ids = torch.linspace(3, hf.config.vocab_size - 1, 64).long().reshape(4, 16)
    ids = ids.to(hf.get_input_embeddings().weight.device)
    mask = torch.ones_like(ids)
    logits, others = (m(ids, attention_mask=mask, use_cache=False).logits.float() for m in (hf, other))
    return float((logits - others).norm() / logits.norm())
