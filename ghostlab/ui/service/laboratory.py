"""Whoever computes for the app; a test may give it something lighter than the real one."""

from __future__ import annotations

from typing import Protocol

from ghostlab.lab.requests import Answer, Request, Work


class Laboratory(Protocol):
    """What the app needs of :class:`ghostlab.lab.lab.Lab`."""

    def call(self, request: Request[Answer], work: Work | None = None) -> Answer:
        """Do what is requested."""
