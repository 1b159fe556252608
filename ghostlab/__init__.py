"""Ghostlab: drop layers of a decoder LLM, fit the linear map that takes their place, see what comes back.

The public API is loaded on first use, so that importing the package stays cheap and never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import calibrate
    from ghostlab.config import RunConfig
    from ghostlab.cut import Block, Cut, parse_cut
    from ghostlab.errors import GhostlabError
    from ghostlab.evaluation.scoreboard import perplexity
    from ghostlab.evaluation.zeroshot import evaluate
    from ghostlab.export.folder import load_recovered, save, save_stock
    from ghostlab.lab.lab import Lab, run
    from ghostlab.model.load import load_model
    from ghostlab.progress import CancelToken, Progress
    from ghostlab.pruning.registry import select
    from ghostlab.recovery.fitting import apply, fit
    from ghostlab.results.atlas import Atlas
    from ghostlab.results.compare import compare
    from ghostlab.results.probe import Alteration
    from ghostlab.results.run import RunResult
    from ghostlab.results.zeroshot import ZeroShot
    from ghostlab.settings import Settings
    from ghostlab.spec import RecoverySpec
    from ghostlab.text.corpora import load_text

_HOMES = {
    "Alteration": "results.probe",
    "Atlas": "results.atlas",
    "Block": "cut",
    "CancelToken": "progress",
    "Cut": "cut",
    "GhostlabError": "errors",
    "Lab": "lab.lab",
    "Progress": "progress",
    "RecoverySpec": "spec",
    "RunConfig": "config",
    "RunResult": "results.run",
    "Settings": "settings",
    "ZeroShot": "results.zeroshot",
    "apply": "recovery.fitting",
    "calibrate": "calibration.calibrate",
    "compare": "results.compare",
    "evaluate": "evaluation.zeroshot",
    "fit": "recovery.fitting",
    "load_model": "model.load",
    "load_recovered": "export.folder",
    "load_text": "text.corpora",
    "parse_cut": "cut",
    "perplexity": "evaluation.scoreboard",
    "run": "lab.lab",
    "save": "export.folder",
    "save_stock": "export.folder",
    "select": "pruning.registry",
}

__all__ = [
    "Alteration",
    "Atlas",
    "Block",
    "CancelToken",
    "Cut",
    "GhostlabError",
    "Lab",
    "Progress",
    "RecoverySpec",
    "RunConfig",
    "RunResult",
    "Settings",
    "ZeroShot",
    "__version__",
    "apply",
    "calibrate",
    "compare",
    "evaluate",
    "fit",
    "load_model",
    "load_recovered",
    "load_text",
    "parse_cut",
    "perplexity",
    "run",
    "save",
    "save_stock",
    "select",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ghostlab' has no attribute '{name}'")
    value = getattr(import_module(f"ghostlab.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
