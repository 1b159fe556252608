"""The steps of a run: what is cut, what takes its place, how all variants do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from ghostlab.analysis.boundary import BoundaryErrors
from ghostlab.analysis.tokens import TokenSample
from ghostlab.calibration.activations import Activations, Batch
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.moments import BlockMoments
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.evaluation.scoreboard import Scoreboard
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.pruning.base import CriterionScores
from ghostlab.pruning.registry import score
from ghostlab.recovery.data import FitData
from ghostlab.recovery.fitting import Fit, apply, fit
from ghostlab.recovery.registry import resolve
from ghostlab.results.records import Baseline, BoundaryReport, Scores


def decide(config: RunConfig, calib: Calibration, progress: Progress) -> tuple[Cut, CriterionScores | None]:
    """The cut, as given or as the criterion chooses it."""
    if config.select is None:
        cut = parse_cut(config.drop or "")
        cut.check(calib.model.depth)
        return cut, None
    scores = score(calib, config.select, config.count, progress)
    return scores.cut, scores


def fit_all(config: RunConfig, calib: Calibration, cut: Cut, progress: Progress) -> list[Fit]:
    """Every recovery that the run asks for, fitted."""
    specs = resolve(config.recover, config.rank, config.ridge)
    shares = progress.shares(len(specs))
    return [
        fit(calib, cut, spec, order=config.order, progress=share)
        for spec, share in zip(specs, shares, strict=True)
    ]


def variants_of(model: Model, cut: Cut, fits: Sequence[Fit]) -> dict[str, Model]:
    """``original``, ``pruned``, and a variant for the label of each fit."""
    pruned = apply(model, cut)
    recovered = {f.label: apply(model, cut, f) if f.replacements else pruned for f in fits}
    return {"original": model, "pruned": pruned, **recovered}


@dataclass(frozen=True)
class MeasuredFit:
    """What the held-out windows say of one recovery.

    Attributes:
        variant: The model with it.
        added: Parameters that this model has more than the pruned one.
        reports: The boundary after each block.
        moments: Of each map, held-out moments as its fit saw the calibration tokens: see ``FitData.view``.
        samples: Some held-out tokens with their states around each block.
    """

    fit: Fit
    variant: Model
    added: int
    scores: Scores
    reports: Mapping[Block, BoundaryReport]
    moments: Mapping[Block, BlockMoments]
    samples: Mapping[Block, TokenSample]


Watcher = tuple[set[int], Callable[[Batch], None]]
"""The boundaries at which it needs the original's states, and what takes these in, batch by batch."""


def measure(
    config: RunConfig,
    variants: Mapping[str, Model],
    fits: Sequence[Fit],
    held_out: Activations,
    progress: Progress,
) -> tuple[Baseline, list[MeasuredFit]]:
    """Measure all variants on the same windows: one pass over the original's states feeds every figure.

    Args:
        config: Gives the seed of the intervals.
        variants: As :func:`variants_of` makes them.
        fits: The recoveries, all of the same cut.
        held_out: The original on the held-out windows.
    """
    model, pruned = variants["original"], variants["pruned"]
    assert pruned.cut is not None
    distinct = list({id(variant): variant for variant in variants.values() if variant is not model}.values())
    board = Scoreboard(model, distinct)
    samples = {block: TokenSample(held_out.windows.ids) for block in pruned.cut}
    errors = {(f.label, block): BoundaryErrors() for f in fits for block in pruned.cut}
    seen = {data.view: data for data in (f.data[block] for f in fits for block in f.maps)}
    moments = {  # of one fold, as nothing is fitted on them
        view: BlockMoments.empty(data.block, 1, model.width, model.device, data.weighting)
        for view, data in seen.items()
    }
    watchers: list[Watcher] = [
        (board.boundaries, partial(board.add, progress=progress)),
        *(_watch_moments(moments[view], data) for view, data in seen.items()),
        *(_watch_tokens(sample, block) for block, sample in samples.items()),
        *(_watch_errors(errors[f.label, block], model, f, block) for f in fits for block in pruned.cut),
    ]
    boundaries = set().union(*(places for places, _ in watchers))
    for batch in held_out.batches(boundaries, progress, "Evaluating on held-out text"):
        for _, take_in in watchers:
            take_in(batch)
    found = board.scores(held_out.windows, config.seed)
    scores = {id(variant): own for variant, own in zip((model, *distinct), found, strict=True)}
    recoveries = [
        MeasuredFit(
            fit=f,
            variant=variants[f.label],
            added=variants[f.label].parameters - pruned.parameters,
            scores=scores[id(variants[f.label])],
            reports={
                block: errors[f.label, block].report(f.blocks[block].explained_train) for block in pruned.cut
            },
            moments={block: moments[f.data[block].view] for block in f.maps},
            samples={block: samples[block] for block in f.maps},
        )
        for f in fits
    ]
    return Baseline(scores[id(model)], scores[id(pruned)]), recoveries


def _watch_errors(errors: BoundaryErrors, model: Model, fit: Fit, block: Block) -> Watcher:
    """One replacement alone, on the original's states: not to depend on other blocks of the cut."""
    own = {b: replacement for b, replacement in fit.replacements.items() if b == block}
    variant = model.without(Cut((block,)), own)

    def take_in(batch: Batch) -> None:
        states = batch.trace.states
        errors.add(states[block.start], states[block.stop], variant.resume(batch.trace, block.stop))

    return {block.start, block.stop, variant.first_change}, take_in


def _watch_moments(moments: BlockMoments, data: FitData) -> Watcher:
    """Held-out tokens as a fit saw those of the calibration."""

    def take_in(batch: Batch) -> None:
        fold = batch.ids.new_zeros(len(batch.ids), device="cpu")
        moments.add(data.before(batch.trace), batch.trace.states[data.block.stop], fold)

    patched = set() if data.patched is None else {data.patched.first_change}
    return {data.block.start, data.block.stop} | patched, take_in


def _watch_tokens(sample: TokenSample, block: Block) -> Watcher:
    def take_in(batch: Batch) -> None:
        states = batch.trace.states
        sample.add(batch.rows, states[block.start], states[block.stop])

    return {block.start, block.stop}, take_in


@contextmanager
def timed(clock: dict[str, float], stage: str) -> Iterator[None]:
    """Add the seconds of the body to ``clock``."""
    begun = time.perf_counter()
    yield
    clock[stage] = round(time.perf_counter() - begun, 3)
