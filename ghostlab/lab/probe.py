"""Put altered copies of a finished run's maps into the model, and measure what that does.

Nothing is fitted again: maps come from the result, the parts and ranks of them from linear algebra. The
session keeps the original's states where the variants part from it, so that each probe costs the blocks
after the cut and the head.
"""

from __future__ import annotations

from collections.abc import Sequence

from ghostlab.analysis.altered import alter, needs_moments
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.moments import Moments
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut
from ghostlab.errors import ConfigError, memory_errors
from ghostlab.evaluation.generate import generate
from ghostlab.evaluation.scoreboard import score
from ghostlab.lab.requests import ProbeRequest, Work
from ghostlab.lab.session import Session
from ghostlab.lab.variants import PRUNED, Replacements, cut_of, recovery, replacements_of, same_model
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.progress import Progress
from ghostlab.recovery.fitting import fit_data
from ghostlab.recovery.registry import resolve
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import RecoveryRun
from ghostlab.results.run import RunResult

Seen = dict[Block, Moments]
"""Moments of the tokens that the map of each block was fitted on."""


def probe(session: Session, request: ProbeRequest, work: Work) -> list[Probe]:
    """Measure altered copies of a recovery's maps; see :class:`~ghostlab.lab.requests.ProbeRequest`.

    Raises:
        ConfigError: If there is no such recovery, it has no map alone, or an alteration is impossible.
        ResultError: If the result's operators are not at hand.
        Cancelled: Between two batches or tokens.
    """
    result, alterations, progress = request.result, request.alterations, work.steps
    config, run = result.config, recovery(result, request.label)
    label = request.label if run is None else run.label
    maps = _maps(result, run)
    for how in alterations:
        how.check(result.model.hidden_size)
    with memory_errors():
        prepared = session.prepare(config, progress.part(0.0, 0.12))
        model, cut = same_model(result, prepared.model), cut_of(result)
        seen: Seen = {}
        if any(needs_moments(map_, how) for map_ in maps.values() for how in alterations):
            seen = fitted_on(prepared.calibration, config, label, maps, progress.part(0.12, 0.3))
        variants = [model.without(cut, _altered(maps, how, seen)) for how in alterations]
        scoring = progress.part(0.3 if seen else 0.12, 0.8)
        scores = score(prepared.held_out, variants, seed=config.seed, progress=scoring)[1:]
        texts: Sequence[Generation | None] = [None] * len(variants)
        if len(variants) == 1 and config.new_tokens:
            both = {"original": model, label: variants[0]}
            texts = generate(
                both,
                config,
                only=[label],
                on_text=work.on_text,
                on_generations=work.on_generations,
                progress=progress.part(0.8, 1.0),
            )
    progress.at(1.0, "Done")
    pruned = model.without(cut)
    return [
        Probe(
            label=label,
            alteration=how,
            parameters_added=variant.parameters - pruned.parameters,
            perplexity=found.perplexity,
            kl=found.kl,
            top1_agreement=found.top1_agreement,
            window_nll=found.window_nll,
            prompt=config.prompt if text else "",
            generation=text,
        )
        for how, variant, found, text in zip(alterations, variants, scores, texts, strict=True)
    ]


def _maps(result: RunResult, run: RecoveryRun | None) -> dict[Block, AffineMap]:
    """The maps of a recovery, each alone in the place of its block."""
    replacements = replacements_of(result, run)
    maps = {block: r.map for block, r in replacements.items() if r.map is not None and not r.weights}
    if not maps or len(maps) < len(replacements):
        raise ConfigError(
            f"'{PRUNED if run is None else run.label}' does not replace the blocks by linear maps alone.",
            "Probe a recovery with an Operator tab, for example ghost.",
        )
    return maps


def _altered(maps: dict[Block, AffineMap], how: Alteration, seen: Seen) -> Replacements:
    return {block: Replacement(alter(map_, how, seen.get(block))) for block, map_ in maps.items()}


def fitted_on(
    calib: Calibration, config: RunConfig, label: str, maps: dict[Block, AffineMap], progress: Progress
) -> Seen:
    """Moments of the tokens that each map was fitted on, as its fit saw and counted them.

    The states of the run's calibration ``calib`` are at hand if the run was made a short while ago.
    """
    cut, replacements = Cut(tuple(maps)), {block: Replacement(map_) for block, map_ in maps.items()}
    (spec,) = (s for s in resolve(config.recover, config.rank, config.ridge) if s.label == label)
    seen: Seen = {}
    for (block, map_), step in zip(maps.items(), progress.shares(len(maps)), strict=True):
        data = fit_data(calib, cut, block, spec, replacements, order=config.order, progress=step)
        seen[block] = data.moments().all(first=map_.first is None)
    return seen
