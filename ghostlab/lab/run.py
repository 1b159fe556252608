"""The steps of a run: what is cut, what takes its place, how all variants do, what they then write."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from ghostlab.analysis.boundary import BoundaryErrors
from ghostlab.analysis.tokens import TokenSample
from ghostlab.calibration.activations import Activations, Batch
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.moments import BlockMoments
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.evaluation.generate import generate
from ghostlab.evaluation.scoreboard import Scoreboard
from ghostlab.evaluation.writer import Sampling
from ghostlab.lab.requests import Work
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.pruning.base import CriterionScores
from ghostlab.pruning.registry import score
from ghostlab.recovery.data import FitData, View
from ghostlab.recovery.fitting import Fit, apply, fit
from ghostlab.recovery.registry import resolve
from ghostlab.results.generation import Generation
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


class _Watcher(Protocol):
    """Takes in the original's states at its boundaries, batch by batch."""

    @property
    def boundaries(self) -> set[int]: ...

    def add(self, batch: Batch, progress: Progress) -> None: ...


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
    samples = {block: _Sample(block, held_out) for block in pruned.cut}
    errors = {(f.label, block): _Errors(model, f, block) for f in fits for block in pruned.cut}
    moments: dict[View, _Moments] = {}
    for data in (f.data[block] for f in fits for block in f.maps):
        moments.setdefault(data.view, _Moments(data))
    watchers: list[_Watcher] = [board, *moments.values(), *samples.values(), *errors.values()]
    boundaries = set().union(*(watcher.boundaries for watcher in watchers))
    for batch in held_out.batches(boundaries, progress, "Evaluating on held-out text"):
        for watcher in watchers:
            watcher.add(batch, progress)
    found = board.scores(held_out.windows, config.seed)
    scores = {id(variant): own for variant, own in zip((model, *distinct), found, strict=True)}
    recoveries = [
        MeasuredFit(
            fit=f,
            variant=variants[f.label],
            added=variants[f.label].parameters - pruned.parameters,
            scores=scores[id(variants[f.label])],
            reports={block: errors[f.label, block].report() for block in pruned.cut},
            moments={block: moments[f.data[block].view].moments for block in f.maps},
            samples={block: samples[block].tokens for block in f.maps},
        )
        for f in fits
    ]
    return Baseline(scores[id(model)], scores[id(pruned)]), recoveries


class _Errors:
    """Errors of one replacement alone, on the original's states: not to depend on other blocks of the cut."""

    def __init__(self, model: Model, fit: Fit, block: Block) -> None:
        self.block, self.train = block, fit.blocks[block].explained_train
        own = {b: replacement for b, replacement in fit.replacements.items() if b == block}
        self.variant = model.without(Cut((block,)), own)
        self.boundaries = {block.start, block.stop, self.variant.first_change}
        self._errors = BoundaryErrors()

    def add(self, batch: Batch, _: Progress) -> None:
        states = batch.trace.states
        recovered = self.variant.resume(batch.trace, self.block.stop)
        self._errors.add(states[self.block.start], states[self.block.stop], recovered)

    def report(self) -> BoundaryReport:
        return self._errors.report(self.train)


class _Moments:
    """Held-out moments of what a fit saw; of one fold, as nothing is fitted on them."""

    def __init__(self, data: FitData) -> None:
        self.data = data
        self.moments = BlockMoments.empty(data.block, 1, data.model.width, data.model.device, data.weighting)
        patched = set() if data.patched is None else {data.patched.first_change}
        self.boundaries = {data.block.start, data.block.stop} | patched

    def add(self, batch: Batch, _: Progress) -> None:
        fold = batch.ids.new_zeros(len(batch.ids), device="cpu")
        self.moments.add(self.data.before(batch.trace), batch.trace.states[self.data.block.stop], fold)


class _Sample:
    """Some tokens around one block."""

    def __init__(self, block: Block, held_out: Activations) -> None:
        self.block, self.boundaries = block, {block.start, block.stop}
        self.tokens = TokenSample(held_out.windows.ids)

    def add(self, batch: Batch, _: Progress) -> None:
        states = batch.trace.states
        self.tokens.add(batch.rows, states[self.block.start], states[self.block.stop])


def continue_all(
    config: RunConfig,
    variants: Mapping[str, Model],
    progress: Progress,
    work: Work,
    only: Collection[str] | None = None,
) -> list[Generation]:
    """Each variant's continuation of the prompt, all of them growing side by side."""
    if config.new_tokens == 0:
        return []
    return generate(
        variants,
        config.prompt,
        Sampling(config.new_tokens, config.temperature, config.top_p, config.seed),
        prompt_format=config.prompt_format,
        only=only,
        on_text=work.on_text,
        on_generations=work.on_generations,
        progress=progress,
    )


@contextmanager
def timed(clock: dict[str, float], stage: str) -> Iterator[None]:
    """Add the seconds of the body to ``clock``."""
    begun = time.perf_counter()
    yield
    clock[stage] = round(time.perf_counter() - begun, 3)
