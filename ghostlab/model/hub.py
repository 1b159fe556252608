"""Models of the Hugging Face hub, fetched in two steps: what describes a model, then its weights.

Only safetensors are ever fetched. A model that is already in the hub's cache needs no network.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import constants, snapshot_download
from huggingface_hub.errors import (
    DryRunError,
    GatedRepoError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm import tqdm  # type: ignore[import-untyped]

from ghostlab.errors import GatedModelError, GhostlabError, ModelError, ModelNotFoundError
from ghostlab.model.memory import as_size, check_disk
from ghostlab.progress import SILENT, Progress

_DESCRIPTION = ["*.json", "*.model", "*.txt", "*.jinja"]
_WEIGHTS = ["model*.safetensors"]


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
