"""The records that a result is made of, from what the run worked with."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

from ghostlab.analysis.atlas import survey
from ghostlab.analysis.boundary import pool
from ghostlab.analysis.operator import describe
from ghostlab.calibration.calibrate import Calibration
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut
from ghostlab.export.stock import kind_reason
from ghostlab.lab.run import MeasuredFit
from ghostlab.lab.session import Prepared
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.pruning.base import CriterionScores
from ghostlab.results.atlas import Atlas
from ghostlab.results.operator import OperatorReport
from ghostlab.results.records import (
    Baseline,
    CutInfo,
    ModelInfo,
    RecoveryRun,
    Scores,
    SelectionInfo,
)
from ghostlab.results.windows import TextInfo
from ghostlab.text.windows import Windows

GEMMA = (
    "Gemma models predict badly without a start token (BOS), and not every held-out window has one, so that "
    "these perplexities say little. Set bos to always."
)
_PACKAGES = ("ghostlab", "torch", "transformers", "datasets", "numpy", "gguf", "safetensors")


def recovery_run(measured: MeasuredFit, baseline: Baseline) -> RecoveryRun:
    """The record of one fit, its maps taken apart."""
    fit, reports = measured.fit, list(measured.reports.values())
    ridges = [block.ridge for block in fit.blocks.values()]
    return RecoveryRun(
        method=fit.spec.method,
        rank=fit.spec.rank,
        ridge=ridges[0] if len(set(ridges)) == 1 else None,
        ridges=ridges,
        parameters_added=measured.added,
        boundary=pool(reports),
        label=fit.label,
        gap_closed=gap_closed(measured.scores, baseline),
        blocks=reports,
        operators=[_operator(measured, block) for block in fit.maps],
        details={str(block): fitted.details for block, fitted in fit.blocks.items() if fitted.details},
        warnings=list(fit.warnings),
        not_stock=kind_reason(measured.variant) or "",
        **vars(measured.scores),
    )


def _operator(measured: MeasuredFit, block: Block) -> OperatorReport:
    """The map that takes the place of a block, on tokens as its fit saw and counted them."""
    fitted, data = measured.fit.blocks[block], measured.fit.data[block]
    ours = not fitted.first_apart
    report = describe(
        block,
        measured.fit.maps[block],
        data.moments().all(first=ours),
        measured.moments[block].all(first=ours),
        ridge=fitted.ridge or 0.0,
        sample=measured.samples[block],
        tokenizer=data.model.tokenizer,
    )
    return replace(report, weight=data.weighting, first_apart=fitted.first_apart)


def gap_closed(scores: Scores, baseline: Baseline) -> float:
    """Share of the loss in log-likelihood that came back: 0 as pruned, 1 as the original."""
    pruned = baseline.pruned.perplexity.value
    lost = math.log(pruned / baseline.original.perplexity.value)
    back = math.log(pruned / scores.perplexity.value)
    return back / lost if lost else 0.0


def model_info(model: Model, cut: Cut) -> ModelInfo:
    """The original model, and what the cut takes from it."""
    dropped = sum(
        parameter.numel() for index in cut.dropped for parameter in model.decoder.blocks[index].parameters()
    )
    return ModelInfo(
        name=model.name,
        family=model.family,
        layers=model.depth,
        hidden_size=model.width,
        parameters=model.parameters,
        parameters_dropped=dropped,
        dtype=model.dtype,
        device=str(model.device),
        note=model.note,
    )


def text_info(prepared: Prepared) -> TextInfo:
    """What was fitted and evaluated on."""
    calib, held_out = prepared.calibration, prepared.held_out.windows
    licences = dict.fromkeys((prepared.text.licence, prepared.held_out_text.licence))
    return TextInfo(
        calibration=prepared.text.title,
        held_out=prepared.held_out_text.title,
        licence="; ".join(licences),
        calibration_tokens=calib.tokens,
        held_out_tokens=held_out.ids.numel(),
        length=held_out.length,
        bos=held_out.bos,
        folds=calib.folds,
        rule=held_out.rule,
        calibration_bos=calib.windows.rule.bos,
    )


def warnings(model: Model, held_out: Windows) -> list[str]:
    """What makes the figures of a whole run doubtful."""
    needs_bos = model.family.startswith("gemma") and held_out.rule.bos != "every window"
    return [GEMMA] if needs_bos else []


def cut_info(cut: Cut, depth: int) -> CutInfo:
    """The cut in every notation that people use."""
    return CutInfo(
        blocks=[(block.start, block.stop) for block in cut],
        dropped=list(cut.dropped),
        keep_ranges=list(cut.keep_ranges(depth)),
        description=cut.describe(depth),
    )


def make_atlas(config: RunConfig, calib: Calibration, lengths: Sequence[int], progress: Progress) -> Atlas:
    """Survey every block; see :func:`ghostlab.analysis.atlas.survey`."""
    found = survey(calib, lengths, progress)
    census = found.census
    return Atlas(
        config=config,
        model=calib.model.name,
        layers=calib.model.depth,
        fitted=census.fitted,
        tried=census.tested,
        special=int(census.special.sum()),
        blocks=found.blocks,
        seconds=0.0,
        versions=versions(),
    )


def selection_info(config: RunConfig, scores: CriterionScores) -> SelectionInfo:
    """How the criterion saw every candidate that it scored."""
    scored = [(b, v) for b, v in zip(scores.candidates, scores.values, strict=True) if math.isfinite(v)]
    return SelectionInfo(
        criterion=config.select or "",
        convention=scores.convention,
        labels=[str(block) for block, _ in scored],
        scores=[value for _, value in scored],
        chosen=str(scores.cut),
    )


def versions() -> dict[str, str]:
    """Versions of what the figures depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree that is not installed
            continue
    return found


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
