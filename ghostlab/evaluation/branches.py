"""Log-likelihoods of sequences that share their beginnings, of an original and its variants at once.

The choices of a question begin alike. The shared part runs once, its keys and values are kept, and only what
differs runs for each choice. A variant starts where it parts from the original, from the original's states,
with keys and values of its own. Nothing is padded on the left, so that every family does what it does alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache

from ghostlab.errors import NumericsError, memory_errors
from ghostlab.model.decoder import Trace
from ghostlab.model.likelihood import score_next
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress

Answer = tuple[float, bool]
"""Log-likelihood of the scored tokens in nats, and whether each of them was the most likely one."""

TOKENS = 2048
"""Tokens, shared ones counted once for each sequence, that run at once: bounds keys and values in memory."""


@dataclass(frozen=True)
class Row:
    """A sequence of tokens of which the last ``scored`` are scored (at least one token is not)."""

    tokens: tuple[int, ...]
    scored: int

    @property
    def given(self) -> tuple[int, ...]:
        """What a model reads: all tokens but the last."""
        return self.tokens[:-1]


@dataclass(frozen=True)
class _Tree:
    """Rows that begin with the same ``shared`` tokens, with their places in the answer."""

    rows: tuple[Row, ...]
    places: tuple[int, ...]
    shared: int


def score_rows(
    original: Model,
    variants: Sequence[Model],
    rows: Sequence[Row],
    owners: Sequence[object],
    progress: Progress = SILENT,
) -> list[list[Answer]]:
    """Answers of the original and of each variant, one per row.

    Args:
        original: Any model.
        variants: Made from it by :meth:`~ghostlab.model.model.Model.without`.
        rows: Sequences to score.
        owners: For each row what it belongs to; neighbours of one owner are read as branches of one tree.

    Raises:
        NumericsError: If likelihoods are not numbers.
        MemoryLimitError: If a batch does not fit.
    """
    answers: list[list[Answer]] = [[(0.0, False)] * len(rows) for _ in range(1 + len(variants))]
    batches = list(_batches(_trees(rows, owners)))
    for batch in progress.each(batches, "Answering questions"):
        with memory_errors():
            found = _score(original, variants, batch)
        places = [place for tree in batch for place in tree.places]
        for column, part in zip(answers, found, strict=True):
            for place, answer in zip(places, part, strict=True):
                column[place] = answer
    return answers


def _trees(rows: Sequence[Row], owners: Sequence[object]) -> Iterator[_Tree]:
    """Neighbouring rows of one owner as one tree; rows that begin differently each as one of their own."""
    start = 0
    for stop in range(1, len(rows) + 1):
        if stop < len(rows) and owners[stop] == owners[start]:
            continue
        places = range(start, stop)
        shared = _common([rows[place].given for place in places])
        if shared:
            yield _Tree(tuple(rows[start:stop]), tuple(places), shared)
        else:
            yield from (_Tree((rows[place],), (place,), len(rows[place].given)) for place in places)
        start = stop


def _common(sequences: Sequence[Sequence[int]]) -> int:
    """Length of the longest common beginning."""
    length = 0
    for tokens in zip(*sequences, strict=False):
        if len(set(tokens)) > 1:
            break
        length += 1
    return length


def _batches(trees: Iterator[_Tree]) -> Iterator[list[_Tree]]:
    """Trees whose shared parts are of one length, as many as may run at once, the longest first."""
    batch: list[_Tree] = []
    tokens = 0
    for tree in sorted(trees, key=lambda tree: -tree.shared):
        cost = sum(len(row.given) for row in tree.rows)
        if batch and (tree.shared != batch[0].shared or tokens + cost > TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(tree)
        tokens += cost
    if batch:
        yield batch


def _score(original: Model, variants: Sequence[Model], batch: Sequence[_Tree]) -> list[list[Answer]]:
    """Answers of every model for the rows of a batch, tree by tree."""
    rows = [row for tree in batch for row in tree.rows]
    owner = torch.tensor([number for number, tree in enumerate(batch) for _ in tree.rows])
    shared = batch[0].shared
    trunk = torch.tensor([tree.rows[0].given[:shared] for tree in batch])
    branch = _padded([row.given[shared:] for row in rows])
    places, targets = _scored(rows, shared + branch.shape[1])
    wanted = {original.depth, *(variant.first_change for variant in variants)}
    traces, finals = _traces(original, wanted, trunk, branch, owner)
    found = []
    for model in (original, *variants):
        first, *second = finals if model is original else _finals(model, traces, owner)
        final = torch.cat([first[owner.to(first.device)], *second], dim=1).flatten(0, 1)
        likely, likeliest = score_next(model.decoder, final[None, places.to(final.device)], targets)
        if not torch.isfinite(likely).all():
            raise NumericsError("Likelihoods hold NaN or infinity.", "Load the model in float32.")
        found.append(_sums(likely.double(), likeliest == targets, [row.scored for row in rows]))
    return found


def _padded(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Token ids [rows, longest]; after the shorter ones comes token 0, which nothing before it sees."""
    longest = max(map(len, sequences))
    return torch.tensor([[*tokens, *[0] * (longest - len(tokens))] for tokens in sequences]).long()


def _scored(rows: Sequence[Row], length: int) -> tuple[Tensor, Tensor]:
    """Which of ``rows x length`` positions predict scored tokens, and those tokens, row by row."""
    places = [
        number * length + position
        for number, row in enumerate(rows)
        for position in range(len(row.given) - row.scored, len(row.given))
    ]
    targets = [token for row in rows for token in row.tokens[-row.scored :]]
    return torch.tensor(places), torch.tensor(targets)


def _traces(
    original: Model, boundaries: set[int], trunk: Tensor, branch: Tensor, owner: Tensor
) -> tuple[list[Trace], list[Tensor]]:
    """Passes of the original over the shared parts [trees, T] and, if there are any, over the rests.

    Also what its head is given in each: a map before the final norm knows first tokens of the last pass only.
    """
    decoder, cache = original.decoder, DynamicCache(config=original.hf.config)
    traces = [decoder.trace(trunk, boundaries, cache=cache)]
    finals = [decoder.run_tail(traces[0].states[decoder.depth])]
    if branch.shape[1]:
        cache.batch_select_indices(owner.to(original.device))
        traces.append(decoder.trace(branch, boundaries, cache=cache))
        finals.append(decoder.run_tail(traces[1].states[decoder.depth]))
    return traces, finals


def _finals(model: Model, traces: Sequence[Trace], owner: Tensor) -> Iterator[Tensor]:
    """What the head of a variant is given, for each pass of the original."""
    cache = DynamicCache(config=model.hf.config)
    for number, trace in enumerate(traces):
        if number:
            cache.batch_select_indices(owner.to(model.device))
        yield model.resume(trace, cache=cache)


def _sums(likely: Tensor, greedy: Tensor, counts: Sequence[int]) -> list[Answer]:
    parts = zip(torch.split(likely, list(counts)), torch.split(greedy, list(counts)), strict=True)
    return [(float(values.sum()), bool(hits.all())) for values, hits in parts]
