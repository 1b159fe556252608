"""The steps of a run that decide what is cut and what takes its place."""

from __future__ import annotations

from ghostlab.assembly import selection_info
from ghostlab.calibration.calibrate import Calibration
from ghostlab.config import RunConfig
from ghostlab.cut import Cut, parse_cut
from ghostlab.progress import Progress
from ghostlab.pruning.selection import score
from ghostlab.records import SelectionInfo
from ghostlab.recovery.fitting import Fit, fit
from ghostlab.recovery.registry import resolve


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
