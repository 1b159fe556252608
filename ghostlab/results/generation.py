"""What variants wrote, token by token: plain frozen records, part of a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Token:
    """A token that a variant wrote, as two models see it after the same words.

    Attributes:
        text: Its piece of the text, a special token by its name; empty where it only begins a character that
            a later token completes.
        log_probability: Log-probability that the variant itself gave it, in nats, at temperature 1.
        original: The same by the original.
        instead: What the original finds likeliest in this place; empty where that is this token.
    """

    text: str
    log_probability: float
    original: float
    instead: str = ""

    @property
    def surprise(self) -> float:
        """How much less likely the original finds it than the variant does: a difference in nats."""
        return self.log_probability - self.original


@dataclass(frozen=True)
class Generation:
    """One variant's continuation of the prompt.

    Attributes:
        tokens: How many were written.
        seconds: From the prompt to the last token, of this variant's own computing: others write meanwhile.
        first_seconds: The same to the first token, without the blocks that had run for the original.
        shared_blocks: Blocks of this variant that had run on the prompt for the original.
        leaves: The first token, from 0, that is not the original's greedy choice; ``None`` if all are.
        prompt_format: How the prompt was put: ``raw`` or ``chat``.
        written: The tokens; empty where the writing was stopped.
    """

    variant: str
    text: str
    tokens: int
    seconds: float
    first_seconds: float = 0.0
    shared_blocks: int = 0
    leaves: int | None = None
    prompt_format: Literal["raw", "chat"] = "raw"
    written: list[Token] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Tokens per second after the first one; 0 if unknown."""
        took = self.seconds - self.first_seconds
        return (self.tokens - 1) / took if took > 0 else 0.0


OnText = Callable[[str, str], None]
"""Called with a variant's name and its whole continuation so far."""
OnGenerations = Callable[[list[Generation]], None]
"""Called with the continuations that are judged, after each one; when stopped, with what is written."""
