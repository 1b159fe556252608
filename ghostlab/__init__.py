"""Ghostlab: drop layers of a decoder LLM, fit the linear map that takes their place, see what comes back.

The public API is loaded on first use, so that importing the package stays cheap and never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

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

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import calibrate as calibrate
    from ghostlab.config import RunConfig as RunConfig
    from ghostlab.cut import Block as Block
    from ghostlab.cut import Cut as Cut
    from ghostlab.cut import parse_cut as parse_cut
    from ghostlab.errors import GhostlabError as GhostlabError
    from ghostlab.evaluation.scoreboard import perplexity as perplexity
    from ghostlab.evaluation.zeroshot import evaluate as evaluate
    from ghostlab.export.folder import load_recovered as load_recovered
    from ghostlab.export.folder import save as save
    from ghostlab.export.folder import save_stock as save_stock
    from ghostlab.lab.lab import Lab as Lab
    from ghostlab.lab.lab import run as run
    from ghostlab.model.load import load_model as load_model
    from ghostlab.progress import CancelToken as CancelToken
    from ghostlab.progress import Progress as Progress
    from ghostlab.pruning.registry import select as select
    from ghostlab.recovery.fitting import apply as apply
    from ghostlab.recovery.fitting import fit as fit
    from ghostlab.results.atlas import Atlas as Atlas
    from ghostlab.results.compare import compare as compare
    from ghostlab.results.probe import Alteration as Alteration
    from ghostlab.results.run import RunResult as RunResult
    from ghostlab.results.zeroshot import ZeroShot as ZeroShot
    from ghostlab.settings import Settings as Settings
    from ghostlab.spec import RecoverySpec as RecoverySpec
    from ghostlab.text.corpora import load_text as load_text
else:  # type checkers read the imports above
    __all__ = list(_HOMES)
    __all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ghostlab' has no attribute '{name}'")
    value = getattr(import_module(f"ghostlab.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_HOMES]
