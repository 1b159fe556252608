"""What a tab offers the app; now in :mod:`ghostlab.ui.page`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ghostlab.ui.page import Outputs, Page, Tab


def named(tabs: Iterable[Tab], prefix: str) -> list[Any]:
    """Controls of tabs whose name begins so: each starts a job, stops it, or tells how it goes."""
    controls = [item for tab in tabs for item in tab.controls.items()]
    return [component for name, component in controls if name.startswith(prefix)]


Build = Callable[[Page], Tab]
__all__ = ["Build", "Outputs", "Page", "Tab", "named"]
