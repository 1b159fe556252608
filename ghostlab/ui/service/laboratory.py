"""Whoever computes for the app: the real laboratory with torch, or in a test something lighter."""

from __future__ import annotations

import threading
from typing import Protocol

from ghostlab.lab.requests import Answer, Request, Work
from ghostlab.settings import Settings

_LOADING = threading.Lock()
_loaded = threading.Event()


class Laboratory(Protocol):
    """What the app needs of :class:`ghostlab.lab.lab.Lab`."""

    def call(self, request: Request[Answer], work: Work | None = None) -> Answer:
        """Do what is requested."""


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


def real(settings: Settings) -> Laboratory:
    """A laboratory that computes."""
    load()
    from ghostlab.lab.lab import Lab

    return Lab(settings)
