"""Write a model folder whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError

from ghostlab.errors import ResultError
from ghostlab.model.device import quiet_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CARD = "README.md"


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A new folder to fill, which takes its name only when the body is done; after an error nothing is left.

    Raises:
        ResultError: If ``folder`` exists and is not empty, or cannot be written.
    """
    target = Path(folder)
    try:
        if target.exists() and any(target.iterdir()):
            raise ResultError(f"'{target}' is not empty.", "Name a new folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise ResultError(f"'{target}' cannot be written: {error.strerror}.") from error
    try:
        yield partial
        partial.chmod(0o755)  # mkdtemp makes it private
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ResultError(f"'{target}' could not be written: {reason}.", "Is the disk full?") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_checkpoint(
    hf: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path, *, card: str, shard: str
) -> None:
    """Config, weights in safetensors of at most ``shard`` each, tokenizer and model card."""
    with quiet_transformers():
        hf.save_pretrained(folder, max_shard_size=shard)
        tokenizer.save_pretrained(folder)
    (folder / CARD).write_text(card, encoding="utf-8")
