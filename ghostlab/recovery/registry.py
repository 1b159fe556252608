"""The recovery methods, in the order in which they are offered."""

from __future__ import annotations

from ghostlab.errors import ConfigError
from ghostlab.recovery import affine, drop, ghost
from ghostlab.recovery.base import Method

METHODS: dict[str, Method] = {method.name: method for method in (drop.METHOD, ghost.METHOD, affine.METHOD)}


def find_method(name: str) -> Method:
    """The method of that name.

    Raises:
        ConfigError: If there is none; lists those there are.
    """
    if name not in METHODS:
        raise ConfigError(f"There is no recovery '{name}'.", f"Choose from: {', '.join(METHODS)}.")
    return METHODS[name]
