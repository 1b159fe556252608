"""The directions in which a map does most: singular directions in the metric of the activations.

With G = X'X, the singular value decomposition G^(1/2) M = U S V' orders the directions v of the output by how
far tokens are moved along them, ||X M v||. V holds the eigenvectors of M'GM; a token x moves by x u along v,
with u = M v. Few are asked for, so that they are found by randomised iteration (scikit-learn) at any width.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ghostlab.analysis.tokens import TokenSample
from ghostlab.calibration.moments import Moments
from ghostlab.model.replacement import AffineMap
from ghostlab.results.operator import Direction, Excitement

DIRECTIONS = 6
CHANNELS = 3
TOKENS = 5
PASSES = 8


def top_directions(
    replacement: AffineMap,
    train: Moments,
    sample: TokenSample | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> list[Direction]:
    """The directions along which the map moves calibration tokens most; none for a map without M.

    Args:
        replacement: The map.
        train: Moments of the tokens it was fitted on.
        sample, tokenizer: Tokens among which the most excited are looked for, and how to read them.
    """
    matrix = replacement.matrix().cpu()
    gram = train.gram.cpu()
    gain = matrix.T @ gram @ matrix
    whole = float(gain.trace())
    if not whole > 0:
        return []
    most = min(DIRECTIONS, train.width)
    vectors, values, _ = randomized_svd(gain.numpy(), most, n_iter=PASSES, random_state=0)
    outward = torch.from_numpy(np.ascontiguousarray(vectors))
    inward = matrix @ outward
    loud = gram.diagonal()[:, None] * inward.square()
    excited = _excited(inward, sample, tokenizer)
    return [
        Direction(
            share=float(values[k] / whole),
            writes=_greatest(outward[:, k].square()),
            reads=_greatest(loud[:, k] / loud[:, k].sum()),
            tokens=excited[k],
        )
        for k in range(most)
        if values[k] > 1e-12 * whole
    ]


def _greatest(shares: Tensor) -> list[tuple[int, float]]:
    top = shares.topk(min(CHANNELS, len(shares)))
    return [(int(i), round(float(v), 4)) for v, i in zip(top.values, top.indices, strict=True)]


def _excited(
    inward: Tensor, sample: TokenSample | None, tokenizer: PreTrainedTokenizerBase | None
) -> list[list[Excitement]]:
    """For each direction (column of ``inward``) the tokens of the sample that move farthest along it."""
    if sample is None or tokenizer is None:
        return [[] for _ in range(inward.shape[1])]
    moved = sample.before.double() @ inward
    return [_farthest(along, sample, tokenizer) for along in moved.T]


def _farthest(along: Tensor, sample: TokenSample, tokenizer: PreTrainedTokenizerBase) -> list[Excitement]:
    """The tokens that move farthest, each text once."""
    found: dict[str, Excitement] = {}
    for index in along.abs().argsort(descending=True).tolist():
        before, token = sample.excerpt(tokenizer, index)
        value = float(f"{along[index]:.3e}")
        found.setdefault(token, Excitement(before, token, value, bool(sample.massive[index])))
        if len(found) == TOKENS:
            break
    return list(found.values())
