"""The steps of a run: what is cut, what takes its place, what the variants then write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ghostlab import checks
from ghostlab.calibration.calibrate import Calibration
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.errors import ResultError
from ghostlab.evaluation.generate import generate
from ghostlab.evaluation.writer import Sampling
from ghostlab.export.folder import MANIFEST, load_recovered, unpack
from ghostlab.lab.records import selection_info
from ghostlab.model.load import load_model
from ghostlab.model.model import Model
from ghostlab.model.replacement import Replacement
from ghostlab.progress import Progress
from ghostlab.pruning.registry import resolve as resolve_criterion
from ghostlab.pruning.registry import score
from ghostlab.recovery.fitting import Fit, fit
from ghostlab.recovery.registry import resolve
from ghostlab.results.generation import Generation, OnGenerations, OnText
from ghostlab.results.records import RecoveryRun, SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings


def check(config: RunConfig, settings: Settings) -> None:
    """Raise a GhostlabError for everything that can be refused before anything is loaded."""
    checks.check(config, settings)
    resolve(config.recover, config.rank, config.ridge)
    if config.select is not None:
        resolve_criterion(config.select)


def decide(config: RunConfig, calib: Calibration, progress: Progress) -> tuple[Cut, SelectionInfo | None]:
    """The cut, as given or as the criterion chooses it."""
    if config.select is None:
        cut = parse_cut(config.drop or "")
        cut.check(calib.model.depth)
        return cut, None
    scores = score(calib, config.select, config.count, progress)
    return scores.cut, selection_info(config.select, scores)


def fit_all(config: RunConfig, calib: Calibration, cut: Cut, progress: Progress) -> list[Fit]:
    """Every recovery that the run asks for, fitted."""
    specs = resolve(config.recover, config.rank, config.ridge)
    share = 1 / max(len(specs), 1)
    return [
        fit(calib, cut, spec, order=config.order, progress=progress.part(i * share, (i + 1) * share))
        for i, spec in enumerate(specs)
    ]


def rebuild(model: Model, result: RunResult) -> dict[str, Model]:
    """Every variant of a finished run by name, around the weights of its original ``model``.

    Raises:
        ResultError: If operators are not at hand.
    """
    cut = Cut(tuple(Block(start, stop) for start, stop in result.cut.blocks))
    variants = {"original": model, "pruned": model.without(cut)}
    for run in result.runs:
        variants[run.label] = model.without(cut, replacements_of(result, run))
    return variants


def replacements_of(result: RunResult, run: RecoveryRun) -> dict[Block, Replacement]:
    """What a recovery of a result puts in the place of its blocks; nothing for plain dropping.

    Raises:
        ResultError: If the operators are not at hand, or not of this result.
    """
    label = run.label or run.method
    found = unpack(result.operators, f"{label}/")
    if not found and run.method != "drop":
        raise ResultError(
            f"This result holds no operators for '{label}'.",
            f"They are fitted again, and stored, by: {result.config.to_command()} --out FOLDER",
        )
    if not set(found) <= {Block(start, stop) for start, stop in result.cut.blocks}:
        raise ResultError("The operators are not those of this result.", "Run its configuration again.")
    return found


def load_any(source: str, settings: Settings, progress: Progress) -> Model:
    """A model as :func:`~ghostlab.model.load.load_model` takes it, or one that ``Model.save`` wrote."""
    if settings.limits.local_paths and (Path(source).expanduser() / MANIFEST).is_file():
        return load_recovered(Path(source).expanduser(), settings=settings)
    return load_model(source, settings=settings, progress=progress)


def continue_all(
    config: RunConfig,
    variants: dict[str, Model],
    progress: Progress,
    on_text: OnText | None,
    on_generations: OnGenerations | None,
) -> list[Generation]:
    """Each variant's continuation of the prompt, all of them growing side by side."""
    if config.new_tokens == 0:
        return []
    return generate(
        variants,
        config.prompt,
        Sampling(config.new_tokens, config.temperature, config.top_p, config.seed),
        prompt_format=config.prompt_format,
        on_text=on_text,
        on_generations=on_generations,
        progress=progress,
    )


@contextmanager
def timed(clock: dict[str, float], stage: str) -> Iterator[None]:
    """Add the seconds of the body to ``clock``."""
    begun = time.perf_counter()
    yield
    clock[stage] = round(time.perf_counter() - begun, 3)
