"""How an evaluation text was cut into windows: a perplexity means nothing without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WindowRule:
    """How the evaluation text was cut into windows.

    Attributes:
        protocol: Whose rules they are; empty for Ghostlab's own.
        join: What stands between documents; ``None`` if no window reaches over two of them.
        bos: Where BOS stands: in ``every window``, at the ``start of the text``, or ``nowhere``.
        order: ``shuffled sections``, ``consecutive`` windows of the text, or spans of ``random documents``.
    """

    protocol: str = ""
    join: str | None = "\n\n"
    bos: str = "nowhere"
    order: str = "shuffled sections"
