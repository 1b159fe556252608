"""Look at the blocks of a model before any of them is dropped: all their figures, or a criterion's scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.capture import LESS_MEMORY
from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, memory_errors
from ghostlab.lab.records import make_atlas
from ghostlab.lab.run import decide
from ghostlab.lab.session import Workbench
from ghostlab.progress import Progress
from ghostlab.results.atlas import Atlas
from ghostlab.results.records import SelectionInfo


def survey(bench: Workbench, config: RunConfig, lengths: Sequence[int], progress: Progress) -> Atlas:
    """Figures of every block of so many layers; see :meth:`ghostlab.lab.lab.Lab.atlas`."""
    begun = time.perf_counter()
    with memory_errors(LESS_MEMORY):
        calib = _calibration(bench, replace(config, held_out_text=None), progress.part(0.0, 0.07))
        found = make_atlas(config, calib, lengths, progress.part(0.07, 1.0))
    return replace(found, seconds=round(time.perf_counter() - begun, 3))


def score(bench: Workbench, config: RunConfig, progress: Progress) -> SelectionInfo:
    """Scores of a configuration's criterion; see :meth:`ghostlab.lab.lab.Lab.score`."""
    if config.select is None:
        raise ConfigError("No criterion is named.", "Set select, for example select='shortgpt', drop=None.")
    with memory_errors(LESS_MEMORY):
        calib = _calibration(bench, config, progress.part(0.0, 0.07))
        _, selection = decide(config, calib, progress.part(0.07, 1.0))
    assert selection is not None
    progress.at(1.0, "Done")
    return selection


def _calibration(bench: Workbench, config: RunConfig, progress: Progress) -> Calibration:
    model = bench.model(config, progress.part(0.0, 0.7))
    text = bench.text(config.text, progress.part(0.7, 0.9))
    shown = bench.text(config.held_out_text or config.text, progress.part(0.9, 1.0))
    return bench.calibration(config, model, text, shown)
