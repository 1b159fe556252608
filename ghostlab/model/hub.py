"""Models of the Hugging Face hub, fetched in two steps: what describes a model, then its weights.

A page that only draws a model's layers fetches its configuration alone. Only safetensors are ever fetched,
nothing before its size is known, and on a shared host the models used longest ago make room for new ones. A
model that is already in the hub's cache needs no network.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url, snapshot_download
from huggingface_hub.errors import (
    DryRunError,
    GatedRepoError,
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm import tqdm  # type: ignore[import-untyped]

from ghostlab.errors import GatedModelError, GhostlabError, MemoryLimitError, ModelError, ModelNotFoundError
from ghostlab.model.preflight import TOKENIZER_FILES, as_size, check_disk
from ghostlab.progress import SILENT, Progress
from ghostlab.storage import make_room

_DESCRIPTION = [
    *("config.json", "generation_config.json", *TOKENIZER_FILES),
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt"),
    *("chat_template.json", "chat_template.jinja", "additional_chat_templates/*.jinja"),
]
_WEIGHTS = ["model*.safetensors", "model.safetensors.index.json"]
MOST_DESCRIPTION_BYTES = 128 << 20
"""The largest tokenizers take about 35 MB."""
MOST_BYTES_PER_PARAMETER = 8
"""Twice float32; a repository with more holds other things than its configuration describes."""
CONFIG_SECONDS = 3.0
"""How long a page waits for a model's configuration."""
MOST_CONFIG_BYTES = 1 << 20
"""A configuration takes a few kB."""
CONFIGS_BYTES = 64 << 20
"""Disk for configurations that were fetched without their models, the last used ones."""


def fetch(
    repo: str,
    revision: str | None,
    approve: Callable[[Path], int],
    progress: Progress = SILENT,
    most: int | None = None,
) -> Path:
    """The folder of a hub model in the hub's cache, downloaded as far as it is not there.

    Args:
        revision: Branch, tag or commit; ``None`` for the default branch.
        approve: Called with the folder as soon as it holds the configuration and before any weight is
            fetched; raises to refuse the model, else returns how many parameters it has.
        progress: Reports the bytes as they arrive; a stop ends the download.
        most: Bytes that all models in the hub's cache may take, the last used ones; ``None`` for any number.

    Raises:
        GatedModelError: If a licence must be accepted first.
        ModelNotFoundError: If there is no such model or revision, or no network to fetch it.
        ModelError: If its files are larger than such a model's can be.
        MemoryLimitError: If the disk cannot hold the weights.
    """
    try:
        progress.at(0.0, f"Looking up {repo}")
        sizes = _bytes(repo, revision, _DESCRIPTION)
        _check_size(repo, "configuration and tokenizer", sizes, MOST_DESCRIPTION_BYTES)
        parameters = approve(Path(_snapshot(repo, revision, _DESCRIPTION)))
        sizes = _bytes(repo, revision, _WEIGHTS)
        _check_size(repo, "weights", sizes, MOST_BYTES_PER_PARAMETER * parameters)
        own = _cache() / f"models--{repo.replace('/', '--')}"
        with suppress(OSError):  # a read-only cache can be read all the same
            os.utime(own)  # used now: others make room first
        if most is not None:
            make_room(_cache().glob("models--*"), sizes[1], most)
        check_disk(_cache(), sizes[1])
        return Path(_snapshot(repo, revision, _DESCRIPTION + _WEIGHTS, progress))
    except GhostlabError:
        raise
    except Exception as error:  # the hub's client lets errors of several HTTP libraries through
        raise _explain(repo, revision, error) from error


def fetch_config(
    repo: str, revision: str | None, cache: Path, seconds: float = CONFIG_SECONDS
) -> Path | None:
    """The folder of a hub model's ``config.json`` alone, which says how many layers it has.

    It is kept in ``cache``: in the hub's own the model would look half downloaded. ``None`` if the hub is
    not to be asked or does not answer in time.

    Raises:
        GatedModelError, ModelNotFoundError: As :func:`fetch`, and if the model has no configuration.
    """
    if constants.HF_HUB_OFFLINE:
        return None
    pool = ThreadPoolExecutor(1, thread_name_prefix="config")
    try:
        return pool.submit(_config, repo, revision, cache, seconds).result(timeout=seconds)
    except RemoteEntryNotFoundError as error:
        raise ModelNotFoundError(f"{repo} has no config.json.", "Use a model for Transformers.") from error
    except GhostlabError:
        raise
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        raise _explain(repo, revision, error) from error
    except Exception:  # too late, or out of reach in one of many ways
        return None
    finally:
        pool.shutdown(wait=False)


def _config(repo: str, revision: str | None, cache: Path, seconds: float) -> Path:
    url = hf_hub_url(repo, "config.json", revision=revision)
    if (get_hf_file_metadata(url, timeout=seconds).size or 0) > MOST_CONFIG_BYTES:
        raise ModelNotFoundError(f"config.json of {repo} is too large for one.", "Use another model.")
    make_room(cache.glob("models--*"), MOST_CONFIG_BYTES, CONFIGS_BYTES)
    options: dict[str, Any] = {"etag_timeout": seconds, "tqdm_class": _bars_to(SILENT, repo)}
    return Path(hf_hub_download(repo, "config.json", revision=revision, cache_dir=cache, **options)).parent


def _cache() -> Path:
    return Path(constants.HF_HUB_CACHE)


def _snapshot(
    repo: str, revision: str | None, patterns: list[str], progress: Progress = SILENT, **options: Any
) -> Any:
    options |= {"allow_patterns": patterns, "tqdm_class": _bars_to(progress, repo)}
    return snapshot_download(repo, revision=revision, **options)


def _bytes(repo: str, revision: str | None, patterns: list[str]) -> tuple[int, int]:
    """Bytes of the files of these names, and of those of them that are not in the cache yet.

    Both are 0 when the hub cannot be asked: nothing can be fetched then.
    """
    try:
        files = _snapshot(repo, revision, patterns, dry_run=True)
    except DryRunError:
        return 0, 0
    sizes = [(file.file_size or 0, file.will_download) for file in files]
    return sum(size for size, _ in sizes), sum(size for size, missing in sizes if missing)


def _check_size(repo: str, what: str, sizes: tuple[int, int], most: int) -> None:
    """Refuse to fetch what is larger than it can be; what is here already may stay."""
    if sizes[1] and sizes[0] > most:
        raise ModelError(
            f"The {what} of {repo} take {as_size(sizes[0])}; such a model needs at most {as_size(most)}.",
            "Use another model.",
        )


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


def _explain(repo: str, revision: str | None, error: Exception) -> GhostlabError:
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
    if _disk_is_full(error):
        return MemoryLimitError(
            f"The disk is full: {repo} could not be fetched.",
            "Free disk space, or set HF_HOME to a larger disk.",
        )
    return ModelNotFoundError(
        f"{repo} is not in the local cache and the hub cannot be reached ({type(error).__name__}).",
        "Check the network, or use 'embedded' or a local folder.",
    )


def _disk_is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, is a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False
