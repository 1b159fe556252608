"""Which blocks are dropped: half-open ranges ``s:e`` of 0-based decoder layers.

``20:25`` removes layers 20, 21, 22, 23 and 24; ``27`` is short for ``27:28``. People see
"drop layers 20–24 (5 of 30)", mergekit users the ranges that are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ghostlab.errors import CutError

_PART = re.compile(r"([0-9]{1,6})(?:\s*:\s*([0-9]{1,6}))?")


@dataclass(frozen=True, order=True)
class Block:
    """Layers ``start .. stop-1``; the replacement maps what ``start`` received to what ``stop`` receives."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many layers are removed."""
        return self.stop - self.start

    def __str__(self) -> str:
        return f"{self.start}:{self.stop}"


@dataclass(frozen=True)
class Cut:
    """Disjoint, sorted blocks to drop, given in any order; neighbours that touch are joined into one.

    Raises:
        CutError: If a block is empty or two blocks overlap.
    """

    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        joined: list[Block] = []
        for block in sorted(self.blocks):
            if block.start < 0 or block.size < 1:
                raise CutError(
                    f"Block {block} is empty.", "A block is start:stop with start < stop, for example 20:25."
                )
            if joined and block.start < joined[-1].stop:
                raise CutError(
                    f"Blocks {joined[-1]} and {block} overlap.",
                    f"Write {joined[-1].start}:{max(joined[-1].stop, block.stop)} instead.",
                )
            if joined and block.start == joined[-1].stop:
                block = Block(joined.pop().start, block.stop)  # noqa: PLW2901 - the joined run
            joined.append(block)
        object.__setattr__(self, "blocks", tuple(joined))

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __str__(self) -> str:
        return ",".join(map(str, self.blocks))

    @property
    def dropped(self) -> tuple[int, ...]:
        """Indices of all removed layers, ascending."""
        return tuple(index for block in self.blocks for index in range(block.start, block.stop))

    def kept(self, depth: int) -> tuple[int, ...]:
        """Indices of the layers that stay, of a model with ``depth`` layers."""
        gone = set(self.dropped)
        return tuple(index for index in range(depth) if index not in gone)

    def keep_ranges(self, depth: int) -> tuple[tuple[int, int], ...]:
        """The kept layers as half-open ranges: what mergekit calls ``layer_range``."""
        edges = [0, *(edge for block in self.blocks for edge in (block.start, block.stop)), depth]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return tuple((low, high) for low, high in pairs if low < high)

    def describe(self, depth: int) -> str:
        """For people: ``drop layers 20–24 (5 of 30)``."""
        runs = [str(b.start) if b.size == 1 else f"{b.start}\N{EN DASH}{b.stop - 1}" for b in self.blocks]
        noun = "layer" if len(self.dropped) == 1 else "layers"
        return f"drop {noun} {', '.join(runs)} ({len(self.dropped)} of {depth})"

    def check(self, depth: int) -> None:
        """Raise :class:`CutError` unless this cut fits a model of ``depth`` layers and leaves one."""
        if not self.blocks:
            raise CutError("Nothing is dropped.", "Give at least one block, for example 20:25.")
        if self.blocks[-1].stop > depth:
            raise CutError(
                f"Block {self.blocks[-1]} lies outside the model.",
                f"It has {depth} layers, 0 to {depth - 1}; the last one is {depth - 1}:{depth}.",
            )
        if len(self.dropped) == depth:
            raise CutError(f"This drops all {depth} layers.", "Keep at least one layer.")

    @classmethod
    def of_layers(cls, layers: Iterable[int]) -> Cut:
        """The cut that removes the given layers."""
        return cls(tuple(Block(layer, layer + 1) for layer in sorted(set(layers))))


def parse_cut(text: str) -> Cut:
    """Read ``"20:25"``, ``"10:12, 20:25"`` or ``"12,13,27"``.

    Raises:
        CutError: If the text is not a list of blocks, a block is empty, or two overlap.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise CutError("No blocks to drop are given.", "Write for example 20:25, or 10:12,20:25.")
    blocks = []
    for part in parts:
        match = _PART.fullmatch(part)
        if match is None:
            raise CutError(
                f"'{part}' is not a block.", "Write start:stop (stop not included), for example 20:25."
            )
        start = int(match[1])
        blocks.append(Block(start, int(match[2]) if match[2] else start + 1))
    return Cut(tuple(blocks))
