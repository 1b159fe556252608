"""Put altered copies of a finished run's maps into the model, and measure what that does.

Nothing is fitted again: maps come from the result, the parts and ranks of them from linear algebra. The
workbench keeps the original's states where the variants part from it, so that each probe costs the blocks
after the cut and the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ghostlab.analysis.altered import alter, needs_moments
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.capture import LESS_MEMORY
from ghostlab.calibration.moments import Moments
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut
from ghostlab.errors import ConfigError, ResultError, memory_errors
from ghostlab.evaluation.generate import generate
from ghostlab.evaluation.scoreboard import score
from ghostlab.evaluation.writer import Sampling
from ghostlab.export.folder import unpack
from ghostlab.lab.requests import ProbeRequest, Work
from ghostlab.lab.session import Workbench
from ghostlab.model.model import Model
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.progress import Progress
from ghostlab.recovery.fitting import fit_data
from ghostlab.recovery.registry import resolve
from ghostlab.results.generation import Generation, OnText
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import Scores
from ghostlab.results.run import RunResult
from ghostlab.text.documents import Text

Seen = dict[Block, Moments]


def probe(bench: Workbench, request: ProbeRequest, work: Work) -> list[Probe]:
    """Measure altered copies of a recovery's maps on the run's held-out windows, all in one pass.

    Raises:
        ConfigError: If there is no such recovery, it has no map alone, or an alteration is impossible.
        ResultError: If the result's operators are not at hand.
        Cancelled: Between two batches or tokens.
    """
    result, label, asked, progress = request.result, request.label, request.alterations, work.steps
    config = result.config
    maps = _maps(result, label)
    for how in asked:
        how.check(result.model.hidden_size)
    with memory_errors(LESS_MEMORY):
        model = bench.model(config, progress.part(0.0, 0.1))
        cut = Cut(tuple(Block(start, stop) for start, stop in result.cut.blocks))
        by_data = any(needs_moments(map_, how) for map_ in _affine(maps) for how in asked)
        seen: Seen = {}
        if by_data:
            calib = bench.calibration(config, model, *_texts(bench, config, progress.part(0.1, 0.12)))
            seen = fitted_on(calib, config, label, maps, progress.part(0.12, 0.3))
        pruned = model.without(cut)
        variants = [model.without(cut, _altered(maps, how, seen)) for how in asked]
        scores = _scores(bench, config, model, variants, progress.part(0.3 if by_data else 0.1, 0.8))
        said: list[Generation | None] = [None] * len(asked)
        if len(asked) == 1 and config.new_tokens:
            named = {"original": model, label: variants[0]}
            said = list(_continue(config, named, progress.part(0.8, 1.0), work.on_text))
    progress.at(1.0, "Done")
    return [
        Probe(
            label=label,
            alteration=how,
            parameters_added=variant.parameters - pruned.parameters,
            perplexity=found.perplexity,
            kl=found.kl,
            top1_agreement=found.top1_agreement,
            window_nll=found.window_nll,
            prompt=config.prompt if generation else "",
            generation=generation,
        )
        for how, variant, found, generation in zip(asked, variants, scores, said, strict=True)
    ]


def _maps(result: RunResult, label: str) -> dict[Block, Replacement]:
    """The replacements of a recovery, each a map alone."""
    named = [run.label for run in result.runs]
    if label not in named:
        raise ConfigError(f"This run has no recovery '{label}'.", f"It has: {', '.join(named) or 'none'}.")
    if not result.operators:
        raise ResultError("This result holds no operators.", "Run its configuration again.")
    found = unpack(result.operators, f"{label}/")
    if not found or any(replacement.map is None or replacement.weights for replacement in found.values()):
        raise ConfigError(
            f"{label} puts no linear map alone in the place of the blocks.",
            "Probe a recovery with an Operator tab, for example ghost.",
        )
    return found


def _affine(maps: dict[Block, Replacement]) -> list[AffineMap]:
    return [replacement.map for replacement in maps.values() if replacement.map is not None]


def _altered(maps: dict[Block, Replacement], how: Alteration, seen: Seen) -> dict[Block, Replacement]:
    """The same replacements with altered maps."""
    made: dict[Block, Replacement] = {}
    for block, replacement in maps.items():
        assert replacement.map is not None
        made[block] = replace(replacement, map=alter(replacement.map, how, seen.get(block)))
    return made


def fitted_on(
    calib: Calibration, config: RunConfig, label: str, maps: dict[Block, Replacement], progress: Progress
) -> Seen:
    """Moments of the tokens that each map was fitted on, as its fit saw and counted them.

    Args:
        calib: The run's calibration; its states are at hand if the run was made a short while ago.
        config: The run's configuration.
        label: The recovery.
        maps: Its replacements, each a map alone.
        progress: Told about passes; obeyed when stopped.
    """
    cut = Cut(tuple(maps))
    (spec,) = (s for s in resolve(config.recover, config.rank, config.ridge) if s.label == label)
    seen: Seen = {}
    for block, step in zip(maps, progress.shares(len(maps)), strict=True):
        data = fit_data(calib, cut, block, spec, maps, order=config.order, progress=step)
        map_ = maps[block].map
        seen[block] = data.moments().all(first=map_ is None or map_.first is None)
    return seen


def _scores(
    bench: Workbench, config: RunConfig, model: Model, variants: Sequence[Model], progress: Progress
) -> list[Scores]:
    fitted, shown = _texts(bench, config, progress.part(0.0, 0.05))
    held_out = bench.held_out(config, model, fitted, shown)
    return score(held_out, variants, seed=config.seed, progress=progress.part(0.05, 1.0))[1:]


def _texts(bench: Workbench, config: RunConfig, progress: Progress) -> tuple[Text, Text]:
    """What the run was fitted on, and what it was shown on."""
    fitted = bench.text(config.text, progress.part(0.0, 0.5))
    return fitted, bench.text(config.held_out_text or config.text, progress.part(0.5, 1.0))


def _continue(
    config: RunConfig, named: dict[str, Model], progress: Progress, on_text: OnText | None
) -> list[Generation]:
    """What the altered model, the second of ``named``, makes of the run's prompt under the run's settings."""
    return generate(
        named,
        config.prompt,
        Sampling(config.new_tokens, config.temperature, config.top_p, config.seed),
        prompt_format=config.prompt_format,
        only=list(named)[1:],
        on_text=on_text,
        progress=progress,
    )
