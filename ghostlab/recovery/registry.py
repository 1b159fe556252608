"""The recovery methods, in the order in which they are offered."""

from __future__ import annotations

from collections.abc import Iterable

from ghostlab.errors import ConfigError
from ghostlab.recovery import (
    affine,
    diag_ls,
    drop,
    ghost,
    ghost_layer,
    ghost_sink,
    hadamard_ls,
    linearpatch,
    linearpatch_diag,
    lra,
    mean_shift,
    procrustes,
    refit_layer,
    replaceme_cosine,
    replaceme_ls,
    scalar,
    symmetric,
)
from ghostlab.recovery.base import Method
from ghostlab.spec import RecoverySpec

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        drop.METHOD,
        mean_shift.METHOD,
        scalar.METHOD,
        linearpatch_diag.METHOD,
        linearpatch.METHOD,
        diag_ls.METHOD,
        hadamard_ls.METHOD,
        procrustes.METHOD,
        symmetric.METHOD,
        replaceme_ls.METHOD,
        replaceme_cosine.METHOD,
        lra.METHOD,
        ghost.METHOD,
        affine.METHOD,
        ghost_sink.METHOD,
        refit_layer.METHOD,
        ghost_layer.METHOD,
    )
}


def find_method(name: str) -> Method:
    """The method of that name.

    Raises:
        ConfigError: If there is none; lists those there are.
    """
    if name not in METHODS:
        raise ConfigError(f"There is no recovery '{name}'.", f"Choose from: {', '.join(METHODS)}.")
    return METHODS[name]


def resolve(
    specs: Iterable[RecoverySpec], rank: int | None = None, ridge: str = "auto"
) -> list[RecoverySpec]:
    """Specs with the run's rank and ridge filled in where a method takes them and the spec names none.

    Raises:
        ConfigError: If a method is unknown or an option does not apply to it.
    """
    found = []
    for spec in specs:
        method = find_method(spec.method)
        method.check(spec)
        takes = method.options
        found.append(spec.filled(rank if "rank" in takes else None, ridge if "ridge" in takes else "auto"))
    return found
