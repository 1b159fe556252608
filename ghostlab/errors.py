"""Errors that a person can act on: what was wrong, and what would be right.

Every room raises these for bad input. The command line prints them in one line and exits with
``exit_code``; the app shows them as a notice. Any other exception that reaches a user is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class GhostlabError(Exception):
    """Base of all errors meant for the user: one sentence of cause, which names the offending value, and one
    of remedy, which may be empty."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class ConfigError(GhostlabError):
    """A setting of a run is out of range or contradicts another.

    ``setting`` is the field of :class:`~ghostlab.config.RunConfig` that is wrong, where it is one.
    """

    def __init__(self, message: str, hint: str = "", setting: str = "") -> None:
        super().__init__(message, hint)
        self.setting = setting


class CutError(GhostlabError):
    """The blocks to drop are malformed, overlap, or do not fit the model."""


class TextError(GhostlabError):
    """A text source is unknown, unreadable or too short."""


class TaskError(GhostlabError):
    """A zero-shot task is unknown, its data cannot be read, or its harness is not installed."""


class ModelError(GhostlabError):
    """A model cannot be used; the subclasses say why."""


class ModelNotFoundError(ModelError):
    """No model at that path or hub id, or no network to fetch it."""


class GatedModelError(ModelError):
    """The hub asks for a licence to be accepted first."""


class RemoteCodeError(ModelError):
    """The model needs code of its own to run, which Ghostlab never executes."""


class UnsupportedModelError(ModelError):
    """The architecture is not among the families that Ghostlab can cut exactly."""


class NumericsError(GhostlabError):
    """NaN or infinity appeared where numbers were expected."""


class MemoryLimitError(GhostlabError):
    """The run does not fit in memory; the hint says what to lower."""


class ResultError(GhostlabError):
    """A saved result or operator file is missing, damaged or does not match."""


class StockError(GhostlabError):
    """A recovery cannot be an ordinary checkpoint; the message says why."""


class BusyError(GhostlabError):
    """The server has as many jobs waiting as it accepts."""


class Cancelled(GhostlabError):
    """The user stopped the work."""

    exit_code = 130

    def __init__(self, message: str = "Stopped.", hint: str = "") -> None:
        super().__init__(message, hint)


LESS_MEMORY = "Lower batch, length or the number of sequences, or choose a smaller model."


@contextmanager
def memory_errors(hint: str = LESS_MEMORY) -> Iterator[None]:
    """Turn an allocator's failure into a :class:`MemoryLimitError` that says what to lower."""
    try:
        yield
    except MemoryError as error:
        raise MemoryLimitError("Out of memory.", hint) from error
    except RuntimeError as error:  # torch.OutOfMemoryError is one; the CPU allocator raises a plain one
        text = str(error).lower()
        if "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text:
            raise MemoryLimitError("Out of memory.", hint) from error
        raise
