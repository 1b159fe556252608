"""What the button of the Generate tab queues."""

from __future__ import annotations

from ghostlab.config import PromptFormat
from ghostlab.errors import ConfigError
from ghostlab.ui.service.service import Service


def queue(
    service: Service,
    shown: str,
    owner: str,
    prompt: str,
    prompt_format: PromptFormat,
    *amounts: float | None,
) -> str:
    """Queue the continuation of a prompt by every variant of the shown result; return the job's id.

    ``amounts`` are new tokens, temperature and top p.

    Raises:
        GhostlabError: If a value is missing or wrong, or the result is no longer here.
    """
    given = [amount for amount in amounts if amount is not None]
    if len(given) < len(amounts):
        raise ConfigError("A number is empty.", "Give new tokens, temperature and top p.")
    tokens, temperature, top_p = given
    return service.generate(
        shown,
        prompt=prompt,
        prompt_format=prompt_format,
        new_tokens=int(tokens),
        temperature=temperature,
        top_p=top_p,
        owner=owner,
    )
