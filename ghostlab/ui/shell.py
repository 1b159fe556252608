"""The components of the page that belong to no tab, and what its events have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

Update = dict[Any, Any]
"""Component -> new value; what is left out stays as it is."""
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "concurrency_limit": None}
FOLD_ON_PHONE = """() => {
  if (innerWidth < 768) document.querySelector("#sidebar.open .toggle-button")?.click();
}"""


@dataclass(frozen=True)
class Shell:
    """The components that belong to no tab.

    Attributes:
        job: Id of the job that is watched.
        shown: Id of the job whose result is shown; empty for the example.
        drawn: Id of the job whose figures are drawn; that of ``shown`` or of an earlier one with the same.
        source: Which run is shown, for people.
        status: How the watched job goes.
        where: The query of the page's address while it is watched.
        known: Jobs of this page, in the browser; see :mod:`ghostlab.ui.queue`.
        agenda: The same as a list for people.
    """

    job: Component
    shown: Component
    drawn: Component
    source: Component
    status: Component
    where: Component
    known: Component
    agenda: Component


def near(name: str, *, phone: bool = False) -> gr.HTML:
    """A second place that tells how the watched job goes, beside the buttons that start it.

    Args:
        name: Prefix of its id.
        phone: Whether it is only needed on a phone, where the place on top is out of sight.
    """
    kinds = ["gl-near", "gl-near-phone"] if phone else ["gl-near"]
    return gr.HTML(elem_id=f"{name}-progress", elem_classes=kinds)
