"""Models of the Hugging Face hub, fetched in two steps: what describes a model, then its weights.

A page that only draws a model's layers fetches its configuration alone.

Only safetensors are ever fetched. A model that is already in the hub's cache needs no network.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    snapshot_download,
)
from huggingface_hub.errors import (
    DryRunError,
    GatedRepoError,
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm import tqdm  # type: ignore[import-untyped]

from ghostlab.errors import GatedModelError, GhostlabError, ModelError, ModelNotFoundError
from ghostlab.model.memory import as_size, check_disk
from ghostlab.progress import SILENT, Progress

_DESCRIPTION = ["*.json", "*.model", "*.txt", "*.jinja"]
_WEIGHTS = ["model*.safetensors"]
CONFIG_SECONDS = 3.0
"""How long a page waits for a model's configuration."""
MOST_CONFIG_BYTES = 1 << 20
"""A configuration takes a few kB."""


def fetch(
    repo: str, revision: str | None, approve: Callable[[Path], None], progress: Progress = SILENT
) -> Path:
    """The folder of a hub model in the hub's cache, downloaded as far as it is not there.

    Args:
        repo: Hub id, ``org/name``.
        revision: Branch, tag or commit; ``None`` for the default branch.
        approve: Called with the folder as soon as it holds the configuration and before any weight is
            fetched; raises to refuse the model.
        progress: Told the bytes as they arrive; a stop ends the download.

    Raises:
        GatedModelError: If a licence must be accepted first.
        ModelNotFoundError: If there is no such model or revision, or no network to fetch it.
        MemoryLimitError: If the disk cannot hold the weights.
    """
    try:
        progress.at(0.0, f"Looking up {repo}")
        folder = _snapshot(repo, revision, _DESCRIPTION)
        approve(folder)
        check_disk(Path(constants.HF_HUB_CACHE), _missing_bytes(repo, revision))
        return _snapshot(repo, revision, _DESCRIPTION + _WEIGHTS, tqdm_class=_bars_to(progress, repo))
    except GhostlabError:
        raise
    except Exception as error:  # the hub's client lets errors of several HTTP libraries through
        raise _explain(repo, revision, error) from error


def fetch_config(
    repo: str, revision: str | None, cache: Path, seconds: float = CONFIG_SECONDS
) -> Path | None:
    """The folder of a hub model's ``config.json`` alone, which says how many layers it has.

    Args:
        repo, revision: As for :func:`fetch`.
        cache: Where to keep it. In the hub's own cache the model would look half downloaded.
        seconds: How long to wait for the hub at most.

    Returns:
        ``None`` if the hub is not to be asked or does not answer in time.

    Raises:
        GatedModelError, ModelNotFoundError: As :func:`fetch`, and if the model has no configuration.
    """
    if constants.HF_HUB_OFFLINE:
        return None
    answer: queue.SimpleQueue[Path | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put(_config(repo, revision, cache, seconds))
        except Exception as error:
            answer.put(error)

    threading.Thread(target=ask, name="config", daemon=True).start()
    try:
        found = answer.get(timeout=seconds)
    except queue.Empty:
        return None
    if isinstance(found, Path):
        return found
    if isinstance(found, RemoteEntryNotFoundError):
        raise ModelNotFoundError(f"{repo} has no config.json.", "Use a model for Transformers.") from found
    if isinstance(found, GhostlabError):
        raise found
    if isinstance(found, RepositoryNotFoundError | RevisionNotFoundError | HFValidationError):
        raise _explain(repo, revision, found) from found
    return None


def _config(repo: str, revision: str | None, cache: Path, seconds: float) -> Path:
    url = hf_hub_url(repo, "config.json", revision=revision)
    if (get_hf_file_metadata(url, timeout=seconds).size or 0) > MOST_CONFIG_BYTES:
        raise ModelNotFoundError(f"config.json of {repo} is too large for one.", "Use another model.")
    options: dict[str, Any] = {"etag_timeout": seconds, "tqdm_class": _bars_to(SILENT, repo)}
    return Path(hf_hub_download(repo, "config.json", revision=revision, cache_dir=cache, **options)).parent


def _snapshot(repo: str, revision: str | None, patterns: list[str], **options: Any) -> Path:
    options.setdefault("tqdm_class", _bars_to(SILENT, repo))
    return Path(snapshot_download(repo, revision=revision, allow_patterns=patterns, **options))


def _missing_bytes(repo: str, revision: str | None) -> int:
    """Bytes of weights that are not in the cache yet; 0 when the hub cannot be asked."""
    try:
        files = snapshot_download(
            repo,
            revision=revision,
            allow_patterns=_WEIGHTS,
            dry_run=True,
            tqdm_class=_bars_to(SILENT, repo),
        )
    except DryRunError:
        return 0
    return sum(file.file_size or 0 for file in files if file.will_download)


def _bars_to(progress: Progress, repo: str) -> type[Any]:
    """A class of progress bars that print nothing and report the bytes written to ``progress``."""

    class Reporter(tqdm):  # type: ignore[misc]
        reached = 0.0

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            self._bytes = kwargs.get("unit") == "B"
            super().__init__(*args, **{**kwargs, "disable": True})
            self.total, self.n = kwargs.get("total"), kwargs.get("initial", 0)

        def update(self, n: float | None = 1) -> bool | None:
            progress.check()
            self.n += n or 0
            total = int(self.total or 0)
            share = self.n / total if self._bytes and total else 0.0
            if share > Reporter.reached + 0.002:
                Reporter.reached = share
                progress.at(share, f"Downloading {repo} ({as_size(int(self.n))} of {as_size(total)})")
            return None

    return Reporter


def _explain(repo: str, revision: str | None, error: Exception) -> ModelError:
    if isinstance(error, GatedRepoError):
        return GatedModelError(
            f"{repo} is gated.",
            f"Accept its licence at https://huggingface.co/{repo} and set HF_TOKEN.",
        )
    if isinstance(error, RevisionNotFoundError):
        return ModelNotFoundError(
            f"{repo} has no revision '{revision}'.", "Give a branch, a tag or a commit."
        )
    if isinstance(error, RepositoryNotFoundError | HFValidationError):
        return ModelNotFoundError(
            f"There is no model '{repo}' on the hub (or it is private).",
            "Check the id, or set HF_TOKEN; a local folder or file is given by its path.",
        )
    return ModelNotFoundError(
        f"{repo} is not in the local cache and the hub cannot be reached ({type(error).__name__}).",
        "Check the network, or use 'embedded' or a local folder.",
    )
