"""Token windows of one length, drawn from documents, for calibration and for evaluation.

Documents are first dealt to folds, so that no two folds share one; within a fold long documents are cut into
sections, the sections are shuffled, joined and tokenised as far as needed, and the tokens cut into windows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch
from transformers import PreTrainedTokenizerBase

from ghostlab.config import BosPolicy
from ghostlab.errors import TextError
from ghostlab.results.windows import BosPlace, Order, WindowRule
from ghostlab.text.documents import PARAGRAPH, Documents, sections
from ghostlab.text.presets import Span, spans
from ghostlab.text.tokens import encode, tokenise, uses_bos

SECTION = 3000
"""Characters of a section: a window of 256 tokens fits about three times, so windows see many documents."""

EVERY = 1 << 40
"""More windows than any text holds."""

HELD_OUT_SEED = 0
"""Held-out windows are the same whatever the seed of a run, so that runs can be compared."""


@dataclass(frozen=True)
class Windows:
    """Windows of tokens; nothing is padded.

    Attributes:
        ids: Token ids, ``[count, length]``.
        fold: Fold of each window, ``[count]``, ascending.
        bytes: UTF-8 bytes of the text of the predicted tokens of each window, ``[count]``.
        bos: Whether every window begins with the tokenizer's BOS token.
    """

    ids: torch.Tensor
    fold: torch.Tensor
    bytes: torch.Tensor
    bos: bool
    name: str
    rule: WindowRule = field(default_factory=WindowRule)

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
    count: int | None,
    length: int,
    bos: BosPolicy = "auto",
    seed: int | None = 0,
    folds: int = 1,
    like: Documents | None = None,
) -> Windows:
    """Cut ``count`` windows of ``length`` tokens out of ``documents``.

    Documents with a protocol are cut by it: its first ``count`` windows, whatever seed and folds say.

    Args:
        documents: The texts; of several folds each has documents of its own. Where there are fewer documents
            than folds, their sections are dealt out instead.
        count: Windows in all, dealt to the folds as evenly as possible; ``None`` for all that there are.
        length: Tokens per window, BOS included; at least 2.
        bos: ``auto`` follows the tokenizer's own convention; with BOS every window begins with it. Under a
            protocol ``auto`` puts it where the protocol does, at the start of what is tokenised.
        seed: Order of documents and sections; ``None`` keeps the order of the source, undivided.
        like: The text that decides where BOS stands, if another than ``documents``: operators are fitted on
            windows that begin as those do that they are evaluated on.

    Raises:
        TextError: If the text is too short, or BOS is demanded of a tokenizer that has none.
    """
    place = bos_place(like or documents, tokenizer, bos)
    each = place == "every window"
    if documents.protocol is not None:
        ids, counts, rule = _by_protocol(documents, tokenizer, count, length - each, place)
        fold = torch.zeros(len(ids), dtype=torch.long)
    else:
        wanted = EVERY if count is None else count
        dealt = _deal(documents, min(folds, wanted), seed)
        quotas = [wanted // len(dealt) + (i < wanted % len(dealt)) for i in range(len(dealt))]
        parts = [
            _cut(texts, quota, place if each or number == 0 else "nowhere", tokenizer, length - each)
            for number, (texts, quota) in enumerate(zip(dealt, quotas, strict=True))
        ]
        ids, counts = (torch.cat(column) for column in zip(*parts, strict=True))
        sizes = [len(part) for part, _ in parts]
        if sum(sizes) == 0 or (count is not None and sizes != quotas):
            raise _too_short(documents, wanted, length, min(sizes) * len(sizes), len(sizes))
        fold = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        rule = WindowRule(bos=place, order="consecutive" if seed is None else "shuffled sections")
    if each:
        ids = torch.cat([torch.full((len(ids), 1), int(tokenizer.bos_token_id)), ids], dim=1)
    return Windows(ids, fold, counts, each, documents.name, rule)


def bos_place(documents: Documents, tokenizer: PreTrainedTokenizerBase, policy: BosPolicy) -> BosPlace:
    """Where BOS stands in windows of ``documents``.

    Raises:
        TextError: If the policy is ``always`` and the tokenizer has no BOS token.
    """
    if not uses_bos(tokenizer, policy):
        return "nowhere"
    return "start of the text" if documents.protocol is not None and policy == "auto" else "every window"


def _by_protocol(
    documents: Documents, tokenizer: PreTrainedTokenizerBase, count: int | None, size: int, place: BosPlace
) -> tuple[torch.Tensor, torch.Tensor, WindowRule]:
    """Windows as the paper cuts them; BOS at the start of the text is where the tokenizer itself puts it."""
    assert documents.protocol is not None

    def read(text: str) -> Span:
        tokens, ends = encode(text, tokenizer)
        sizes = ends.diff(prepend=torch.zeros(1, dtype=torch.long))
        return _after_bos(tokens, sizes, tokenizer) if place == "start of the text" else (tokens, sizes)

    parts = spans(documents, read, size, count)
    ids = torch.stack([tokens for tokens, _ in parts])
    counts = torch.stack([sizes[0 if place == "every window" else 1 :].sum() for _, sizes in parts])
    join = documents.protocol.join
    order: Order = "random documents" if join is None else "consecutive"
    return ids, counts, WindowRule(documents.protocol.name, join, place, order)


def _after_bos(
    tokens: torch.Tensor, sizes: torch.Tensor, tokenizer: PreTrainedTokenizerBase
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and their bytes with BOS in front, which has none."""
    first = torch.tensor([int(tokenizer.bos_token_id)])
    return torch.cat([first, tokens]), torch.cat([torch.zeros_like(first), sizes])


def _too_short(documents: Documents, count: int, length: int, fit: int, folds: int) -> TextError:
    apart = f" in {folds} folds" if folds > 1 else ""
    fitting = "no window" if count == EVERY else f"{fit} of {count} windows"
    return TextError(
        f"The text '{documents.name}' is too short: {fitting} of {length} tokens fit{apart}.",
        "Lower the number of sequences or their length, or use a longer text.",
    )


# -- documents to folds -----------------------------------------------------------------------------------


def _deal(documents: Documents, folds: int, seed: int | None) -> list[list[str]]:
    """For each fold the pieces of text to read, in order. Folds share no document and are of similar size."""
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
    if seed is not None:
        dealt = [[piece for text in texts for piece in sections(text, SECTION)] for texts in dealt]
        for pieces in dealt:
            order.shuffle(pieces)
    return dealt


# -- text to windows --------------------------------------------------------------------------------------


def _cut(
    texts: list[str], quota: int, place: BosPlace, tokenizer: PreTrainedTokenizerBase, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to ``quota`` windows of ``size`` tokens, and the bytes of the predicted ones of each.

    Where BOS will be put before every window, all its tokens are predicted, otherwise all but the first.
    """
    tokens, ends = tokenise(PARAGRAPH.join(texts), tokenizer, quota * size)
    if place == "start of the text":
        tokens, ends = _after_bos(tokens, ends, tokenizer)
    count = min(quota, len(tokens) // size)
    before = torch.cat([torch.zeros(1, dtype=torch.long), ends])  # bytes of text in front of each token
    first = torch.arange(count) * size
    counts = before[first + size] - before[first + (0 if place == "every window" else 1)]
    return tokens[: count * size].view(count, size), counts
