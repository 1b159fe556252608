"""How an error reaches the user."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr

from ghostlab.errors import GhostlabError

_LOG = logging.getLogger(__name__)


@contextmanager
def told_to_user() -> Iterator[None]:
    """Show our own errors as they are; log any other with an id and show only that."""
    try:
        yield
    except GhostlabError as error:
        raise gr.Error(str(error), title="This cannot run", duration=20, print_exception=False) from error
    except Exception as error:
        code = secrets.token_hex(3)
        _LOG.exception("an event failed; id %s", code)
        raise gr.Error(f"Internal error (id {code}).", print_exception=False) from error
