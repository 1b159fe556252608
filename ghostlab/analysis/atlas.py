"""Survey every block of consecutive layers at once, from one pass of the original model.

All blocks that start at a boundary share its Gram matrix, and with it one eigendecomposition per family of
maps; a block then costs nine products of C x C matrices, and no forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ghostlab.analysis.band import Census, StripPair, strips, take_census
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.solve import RELATIVE_RIDGES, RidgePath, in_eigenbasis
from ghostlab.cut import Block
from ghostlab.errors import CutError
from ghostlab.model.replacement import AffineMap
from ghostlab.progress import SILENT, Progress
from ghostlab.pruning.affine_fit import recovered_kl
from ghostlab.results.atlas import AtlasBlock

KL_WINDOWS = 4
"""Windows on which the best block of each length is run: their KL has the precision of a hint."""


@dataclass(frozen=True)
class Survey:
    """Every block's figures, and the census of the tokens they come from."""

    blocks: list[AtlasBlock]
    census: Census


def survey(calib: Calibration, lengths: Iterable[int], progress: Progress = SILENT) -> Survey:
    """Figures of every block of so many layers; see :class:`~ghostlab.results.atlas.AtlasBlock`.

    Maps are fitted on all folds but the last, errors taken on the last; each family's ridge is the best of
    :data:`~ghostlab.calibration.solve.RELATIVE_RIDGES` there. The best block of each length is then run on
    windows of the last fold, for its KL.

    Args:
        calib: The calibration.
        lengths: How many layers the blocks have.
        progress: Progress callback; raises Cancelled.

    Raises:
        CutError: If a length is below 1 or leaves no layer.
    """
    wanted, depth = sorted(set(lengths)), calib.model.depth
    if not wanted or wanted[0] < 1 or wanted[-1] >= depth:
        raise CutError(
            f"Blocks of {wanted[-1] if wanted else 0} layers cannot be taken from {depth}.",
            f"Lengths go from 1 to {depth - 1}.",
        )
    similarity = calib.similarity(progress.part(0.0, 0.25))
    cosine, angle = similarity.cosine("token"), similarity.angle("last")
    census = take_census(calib, progress.part(0.25, 0.3))
    starts = range(depth - wanted[0] + 1)
    entries: list[AtlasBlock] = []
    best: dict[int, tuple[float, Block, AffineMap]] = {}
    fitting = progress.part(0.3, 0.9)
    pairs = strips(calib, census, starts, wanted[-1], Progress(cancel=progress.cancel))
    for pair in fitting.over(pairs, len(starts), "Fitting blocks"):
        start = _Start(pair, census)
        for length in (n for n in wanted if start.start + n <= depth):
            fitting.check()
            entry, split = start.block(length, cosine, angle)
            entries.append(entry)
            if length not in best or entry.ghost_sink < best[length][0]:
                found = start.replacement(entry.stop, split)
                best[length] = (entry.ghost_sink, Block(entry.start, entry.stop), found)
    sample = calib.some(KL_WINDOWS, fold=calib.folds - 1)
    maps = {block: fitted for _, block, fitted in best.values()}
    divergence = recovered_kl(sample, maps, progress.part(0.9, 1.0))
    return Survey([replace(e, kl=divergence.get(Block(e.start, e.stop))) for e in entries], census)


@dataclass(frozen=True)
class _Test:
    """What the ordinary tokens of the last fold say of one block, about zero: R, ||D||^2 and ||Y||^2."""

    cross: Tensor
    total: float
    power: float

    def relative(self, error: float | Tensor) -> float:
        """||Y' - Y|| / ||Y|| from its squared numerator."""
        return math.sqrt(max(float(error), 0.0) / self.power) if self.power else 0.0


@dataclass(frozen=True)
class _SplitMap:
    """The best affine map of ordinary tokens: its squared error, its effective rank, its coefficients P."""

    error: float
    rank: float
    projected: Tensor
    candidate: int


class _Start:
    """What all blocks from one boundary share, and the figures of each."""

    def __init__(self, pair: StripPair, census: Census) -> None:
        self.fit, self.test = pair
        self.start = self.fit.start
        device = self.fit.products.device
        self.mean, self.fit_rows, self.test_rows, self.first = (
            part.to(device) for part in (census.mean, census.fit_rows, census.test_rows, census.first)
        )
        # ordinary tokens about their mean, for maps with a bias
        self.affine = RidgePath(self.fit.gram)
        self.affine_gram = self.affine.turn(self.test.gram)
        # all tokens as they are, for maps without
        self.rows = self._fitted_rows(self.start)
        self.gram = self.fit.gram + self.rows.T @ self.rows
        self.linear = RidgePath(self.gram)
        mean, shift = self.mean[self.start], torch.outer(self.test.sums[0], self.mean[self.start])
        self.tried_gram = self.test.gram + shift + shift.T + self.test.count * torch.outer(mean, mean)
        self.linear_gram = self.linear.turn(self.tried_gram)
        self.special = self.linear.project(self.test_rows[:, self.start].T)

    def block(self, length: int, cosine: Tensor, angle: Tensor) -> tuple[AtlasBlock, _SplitMap]:
        """The figures of the block of ``length`` layers, and its map for ordinary tokens."""
        stop, test, split = self.start + length, self._test(length), self._split(length)
        scalar, symmetric, ghost = self._plain(length, test)
        entry = AtlasBlock(
            start=self.start,
            stop=stop,
            cosine=float(cosine[self.start, stop]),
            angle=float(angle[self.start, stop]),
            gap=test.relative(test.total),
            scalar=test.relative(scalar),
            symmetric=test.relative(symmetric),
            ghost=test.relative(ghost),
            ghost_sink=test.relative(split.error),
            effective_rank=split.rank,
        )
        return entry, split

    def replacement(self, stop: int, split: _SplitMap) -> AffineMap:
        """The map of the block up to ``stop``, with the mean change of first tokens for those."""
        matrix = self.affine.map(split.projected, split.candidate)
        bias = self._step(stop) - self.mean[self.start] @ matrix
        return AffineMap(matrix, bias=bias, first=self.first[stop] - self.first[self.start])

    def _split(self, length: int) -> _SplitMap:
        """``ghost_sink``: ordinary tokens alone, about their mean, which stands for the bias."""
        projected = self.affine.project(self.fit.cross(length))
        overlap = projected @ projected.T
        cross = self.affine.project(self.test.cross(length))
        errors = self.affine.errors(projected, overlap, self.affine_gram, cross, self.test.total(length))
        best = int(errors.argmin())
        scale = self.affine.values.sqrt() * self.affine.weights[best]
        moved = overlap * torch.outer(scale, scale)  # has the eigenvalues of M'GM
        rank = float(moved.trace().square() / moved.square().sum()) if bool(moved.any()) else 0.0
        return _SplitMap(float(errors[best]), rank, projected, best)

    def _plain(self, length: int, test: _Test) -> tuple[float, float, float]:
        """Squared errors of ``scalar``, ``symmetric`` and ``ghost``, fitted on all tokens without a bias."""
        stop = self.start + length
        changes = self._fitted_rows(stop) - self.rows
        cross = self.fit.cross(length) + self.rows.T @ changes
        excess = float(cross.trace() / self.gram.trace())
        scalar = test.total - 2 * excess * float(test.cross.trace())
        scalar += excess**2 * float(self.tried_gram.trace())
        projected, seen = self.linear.project(cross), self.linear.project(test.cross)
        overlap = projected @ projected.T
        moved = self.test_rows[:, stop] - self.test_rows[:, self.start]
        everyone = self.linear.errors(
            projected,
            overlap,
            self.linear_gram + self.special @ self.special.T,
            seen + self.special @ moved,
            test.total + float(moved.square().sum()),
        )
        best = int(everyone.argmin())  # as its own validation would choose: massive tokens count
        ghost = self.linear.errors(projected, overlap, self.linear_gram, seen, test.total)[best]
        right = projected @ self.linear.vectors
        ridge = RELATIVE_RIDGES[best] * float(self.gram.trace()) / len(self.gram)
        inner = in_eigenbasis(self.linear.values, right + right.T, ridge)
        symmetric = test.total + ((self.linear_gram @ inner - 2 * seen @ self.linear.vectors) * inner).sum()
        return scalar, float(symmetric), float(ghost)

    def _test(self, length: int) -> _Test:
        strip, step = self.test, self._step(self.start + length)
        moved, mean = strip.sums[length] - strip.sums[0], self.mean[self.start + length]
        cross = strip.cross(length) + torch.outer(strip.sums[0], step)
        cross += torch.outer(self.mean[self.start], moved + strip.count * step)
        total = strip.total(length) + float((2 * moved + strip.count * step) @ step)
        power = float(strip.powers[length] + (2 * strip.sums[length] + strip.count * mean) @ mean)
        return _Test(cross, total, power)

    def _fitted_rows(self, boundary: int) -> Tensor:
        """Rows [n, C] that make moments about the mean into moments of all fitted tokens about zero."""
        mean = math.sqrt(self.fit.count) * self.mean[boundary]
        return torch.cat([mean[None], self.fit_rows[:, boundary]])

    def _step(self, stop: int) -> Tensor:
        return self.mean[stop] - self.mean[self.start]
