"""Measure all variants of a run on the same held-out windows, from the original's states on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ghostlab.analysis.boundary import BoundaryErrors
from ghostlab.analysis.tokens import TokenSample
from ghostlab.calibration.activations import Activations
from ghostlab.calibration.moments import BlockMoments
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut
from ghostlab.evaluation.scoreboard import Scoreboard
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.recovery.data import FitData, View
from ghostlab.recovery.fitting import Fit
from ghostlab.results.records import BoundaryReport, Scores


@dataclass(frozen=True)
class Measured:
    """What the held-out windows said.

    Attributes:
        original, pruned: Scores of the two models that recoveries lie between.
        recovered: Scores of each fit, in order.
        boundary: For each fit, a report per block.
        moments: Held-out moments, as each fit of a map saw the calibration tokens: see ``FitData.view``.
        samples: Some held-out tokens with their states around each block.
        added: Parameters that each recovered model has more than the pruned one.
    """

    original: Scores
    pruned: Scores
    recovered: Sequence[Scores]
    boundary: Sequence[Sequence[BoundaryReport]]
    moments: dict[View, BlockMoments]
    samples: dict[Block, TokenSample]
    added: Sequence[int]


def measure(
    config: RunConfig,
    variants: dict[str, Model],
    fits: Sequence[Fit],
    held_out: Activations,
    progress: Progress,
) -> Measured:
    """The original's states on the held-out windows feed likelihoods, boundary errors and moments.

    Args:
        config: Gives the seed of the intervals.
        variants: Models by name: ``original``, ``pruned``, and one for the label of each fit.
        fits: The recoveries, all of the same cut.
        held_out: What the original does on the held-out windows.
    """
    model, pruned = variants["original"], variants["pruned"]
    cut = pruned.cut
    assert cut is not None
    recovered = [variants[f.label] for f in fits]
    distinct = list({id(variant): variant for variant in (pruned, *recovered)}.values())
    board = Scoreboard(model, distinct)
    errors = [[BoundaryErrors() for _ in cut] for _ in fits]
    seen = {f.data[block].view: f.data[block] for f in fits for block in f.maps}
    moments = {view: _empty(data) for view, data in seen.items()}
    samples = {block: TokenSample(held_out.windows.ids) for block in cut}
    # each replacement alone, on the original's states: what it makes of one block is not to depend on others
    alone = [{block: _alone(model, f, block) for block in cut} for f in fits]
    edges = {edge for block in cut for edge in (block.start, block.stop)}
    edges |= {variant.first_change for per_block in alone for variant in per_block.values()}
    edges |= {data.patched.first_change for data in seen.values() if data.patched is not None}
    fold = held_out.windows.fold * 0
    for batch in held_out.batches(board.boundaries | edges, progress, "Evaluating on held-out text"):
        board.add(batch, progress)
        states = batch.trace.states
        for view, data in seen.items():
            before = data.before(batch.trace)
            moments[view].add(before, states[data.block.stop], fold[batch.rows])
        for number, block in enumerate(cut):
            before, after = states[block.start], states[block.stop]
            samples[block].add(batch.rows, before, after)
            for per_block, variants_alone in zip(errors, alone, strict=True):
                per_block[number].add(before, after, variants_alone[block].resume(batch.trace, block.stop))
    original, *scores = board.scores(held_out.windows, config.seed)
    by_variant = {id(variant): found for variant, found in zip(distinct, scores, strict=True)}
    return Measured(
        original,
        by_variant[id(pruned)],
        [by_variant[id(variant)] for variant in recovered],
        [
            [e.report(f.blocks[block].explained_train) for e, block in zip(per_block, cut, strict=True)]
            for per_block, f in zip(errors, fits, strict=True)
        ],
        moments,
        samples,
        [variant.parameters - pruned.parameters for variant in recovered],
    )


def _empty(data: FitData) -> BlockMoments:
    """Held-out moments to be filled; of one fold, as nothing is fitted on them."""
    return BlockMoments.empty(data.block, 1, data.model.width, data.model.device, data.weighting)


def _alone(model: Model, fit: Fit, block: Block) -> Model:
    replacement = fit.replacements.get(block)
    return model.without(Cut((block,)), {} if replacement is None else {block: replacement})
