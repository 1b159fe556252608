"""Token windows of one length, drawn from documents, for calibration and for evaluation.

Documents are first dealt to folds, so that no two folds share one; within a fold long documents are cut into
sections, the sections are shuffled, joined and tokenised as far as needed, and the tokens cut into windows.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from ghostlab.config import BosPolicy
from ghostlab.errors import TextError
from ghostlab.text.documents import PARAGRAPH, Documents, sections

SECTION = 3000
"""Characters of a section: a window of 256 tokens fits about three times, so windows see many documents."""

HELD_OUT_SEED = 0
"""Held-out windows are the same whatever the seed of a run, so that runs can be compared."""

CHARACTERS_PER_TOKEN = 5.0
"""Rather more than English prose needs, so that one call of the tokenizer nearly always suffices."""


@dataclass(frozen=True)
class Windows:
    """Windows of tokens; nothing is padded.

    Attributes:
        ids: Token ids, ``[count, length]``.
        fold: Fold of each window, ``[count]``, ascending.
        bytes: UTF-8 bytes of the text of the predicted tokens of each window, ``[count]``.
        bos: Whether every window begins with the tokenizer's BOS token.
        name: What the text is.
    """

    ids: torch.Tensor
    fold: torch.Tensor
    bytes: torch.Tensor
    bos: bool
    name: str

    @property
    def count(self) -> int:
        """Number of windows."""
        return int(self.ids.shape[0])

    @property
    def length(self) -> int:
        """Tokens per window, BOS included."""
        return int(self.ids.shape[1])

    @property
    def predicted(self) -> int:
        """Tokens that are predicted in each window: all but the first."""
        return self.length - 1


def make_windows(
    documents: Documents,
    tokenizer: PreTrainedTokenizerBase,
    *,
    count: int,
    length: int,
    bos: BosPolicy = "auto",
    seed: int | None = 0,
    folds: int = 1,
    fewer_ok: bool = False,
) -> Windows:
    """Cut ``count`` windows of ``length`` tokens out of ``documents``.

    Args:
        documents: The texts; of several folds each has documents of its own. Where there are fewer documents
            than folds, their sections are dealt out instead.
        tokenizer: The model's tokenizer.
        count: Windows in all, dealt to the folds as evenly as possible.
        length: Tokens per window, BOS included; at least 2.
        bos: ``auto`` follows the tokenizer's own convention; with BOS every window begins with it.
        seed: Order of documents and sections; ``None`` keeps the order of the source, undivided.
        folds: Number of folds.
        fewer_ok: Return the windows that there are when the text is too short for ``count``.

    Raises:
        TextError: If the text is too short, or BOS is demanded of a tokenizer that has none.
    """
    with_bos = uses_bos(tokenizer, bos)
    size = length - with_bos
    dealt = _deal(documents, min(folds, count), seed)
    quotas = [count // len(dealt) + (i < count % len(dealt)) for i in range(len(dealt))]
    filled = [
        _cut(texts, tokenizer, size, quota, with_bos) for texts, quota in zip(dealt, quotas, strict=True)
    ]
    found = [len(counts) for _, counts in filled]
    if sum(found) == 0 or (not fewer_ok and found != quotas):
        raise _too_short(documents, count, length, min(found) * len(found), len(found))
    ids = torch.cat([tokens for tokens, _ in filled])
    if with_bos:
        ids = torch.cat([torch.full((len(ids), 1), int(tokenizer.bos_token_id)), ids], dim=1)
    fold = torch.repeat_interleave(torch.arange(len(found)), torch.tensor(found))
    return Windows(ids, fold, torch.cat([counts for _, counts in filled]), with_bos, documents.name)


def uses_bos(tokenizer: PreTrainedTokenizerBase, policy: BosPolicy) -> bool:
    """Whether windows begin with BOS under ``policy``; ``auto`` asks what the tokenizer does with a text.

    Raises:
        TextError: If the policy is ``always`` and the tokenizer has no BOS token.
    """
    if policy == "never":
        return False
    token = tokenizer.bos_token_id
    if policy == "always":
        if token is None:
            raise TextError("This model's tokenizer has no BOS token.", "Set bos to auto or never.")
        return True
    return token is not None and tokenizer("a").input_ids[:1] == [token]


def _too_short(documents: Documents, count: int, length: int, fit: int, folds: int) -> TextError:
    apart = f" in {folds} folds" if folds > 1 else ""
    return TextError(
        f"The text '{documents.name}' is too short: {fit} of {count} windows of {length} tokens fit{apart}.",
        "Lower the number of sequences or their length, or use a longer text.",
    )


# -- documents to folds -----------------------------------------------------------------------------------


def _deal(documents: Documents, folds: int, seed: int | None) -> list[list[str]]:
    """For each fold the pieces of text to read, in order. Folds share no document and are of similar size."""
    if seed is None and folds == 1:
        return [list(documents)]
    order = random.Random(seed)
    units = list(documents)
    if len(units) < folds:
        units = [piece for text in units for piece in sections(text, SECTION)]
    if seed is not None:
        order.shuffle(units)
    dealt: list[list[str]] = [[] for _ in range(folds)]
    sizes = [0] * folds
    for unit in units:
        smallest = sizes.index(min(sizes))
        dealt[smallest].append(unit)
        sizes[smallest] += len(unit)
    if seed is None:
        return dealt
    return [_shuffled_sections(texts, order) for texts in dealt]


def _shuffled_sections(texts: list[str], order: random.Random) -> list[str]:
    pieces = [piece for text in texts for piece in sections(text, SECTION)]
    order.shuffle(pieces)
    return pieces


# -- text to windows --------------------------------------------------------------------------------------


def _cut(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, size: int, quota: int, with_bos: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to ``quota`` windows of ``size`` text tokens, and the bytes of the predicted ones of each.

    With BOS all text tokens of a window are predicted, without it all but the first.
    """
    tokens, ends = _tokenise(PARAGRAPH.join(texts), tokenizer, quota * size)
    found = min(quota, len(tokens) // size)
    before = torch.cat([torch.zeros(1, dtype=torch.long), ends])  # bytes of text in front of each token
    first = torch.arange(found) * size
    counts = before[first + size] - before[first + (0 if with_bos else 1)]
    return tokens[: found * size].view(found, size), counts


def _tokenise(
    text: str, tokenizer: PreTrainedTokenizerBase, wanted: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """At least ``wanted`` tokens of ``text`` where it has them, and the bytes up to each one's end."""
    tokens = ends = torch.zeros(0, dtype=torch.long)
    start = 0
    while len(tokens) < wanted and start < len(text):
        stop = start + math.ceil((wanted - len(tokens)) * CHARACTERS_PER_TOKEN)
        space = text.find(" ", stop)  # words stay whole, and keep the space in front of them
        chunk = text[start:] if space < 0 else text[start:space]
        more_tokens, more_ends = _encode(chunk, tokenizer)
        ends = torch.cat([ends, more_ends + (ends[-1] if len(ends) else 0)])
        tokens = torch.cat([tokens, more_tokens])
        start += len(chunk)
    return tokens, ends


def _encode(text: str, tokenizer: PreTrainedTokenizerBase) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens of ``text`` without special ones, and for each the UTF-8 bytes of the text up to its end."""
    options: dict[str, Any] = {"add_special_tokens": False, "verbose": False}
    if not tokenizer.is_fast:
        tokens = tokenizer(text, **options).input_ids
        lengths = [len(tokenizer.decode([token]).encode()) for token in tokens]
        return torch.tensor(tokens, dtype=torch.long), torch.tensor(lengths, dtype=torch.long).cumsum(0)
    encoded = tokenizer(text, return_offsets_mapping=True, **options)
    ends = torch.tensor([end for _, end in encoded.offset_mapping], dtype=torch.long)
    return torch.tensor(encoded.input_ids, dtype=torch.long), _bytes_before(text)[ends]


def _bytes_before(text: str) -> torch.Tensor:
    """UTF-8 bytes in front of each character of ``text``, and of all of it, ``[characters + 1]``."""
    code = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    lengths = 1 + (code >= 0x80).astype(np.int64) + (code >= 0x800) + (code >= 0x10000)
    return torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
