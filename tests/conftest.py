"""Settings of every test, and fixtures that several levels share.

No network, no telemetry, waiting threads that sleep. The real model and text are loaded once and read-only.
"""

from __future__ import annotations

import os

# before torch, transformers and gradio are imported by any test
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ghostlab.settings import Settings
from tests.helpers.server import Server, serving

if (
    TYPE_CHECKING
):  # torch is loaded by whoever needs it: not by the browser's tests, nor by what hands tests out
    from ghostlab.lab.lab import Lab
    from ghostlab.model.model import Model
    from ghostlab.text.documents import Text


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The user's own settings, so that the embedded model is converted once and not once per test run."""
    return Settings.from_env()


@pytest.fixture(scope="session")
def lab(settings: Settings) -> Lab:
    """A lab that keeps the embedded model and what it computed, for whoever asks it."""
    from ghostlab.lab.lab import Lab

    return Lab(settings)


@pytest.fixture(scope="session")
def embedded_model(settings: Settings) -> Model:
    """SmolLM2-135M-Instruct in float32. Never change it: cut a variant."""
    from ghostlab.model.load import load_model

    return load_model("embedded", settings=settings)


@pytest.fixture(scope="session")
def wikipedia(settings: Settings) -> Text:
    """The default text."""
    from ghostlab.text.corpora import load_text

    return load_text("wikipedia", settings=settings)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The real app, for scripts and for the browser."""
    with serving(tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture
def modules(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transformers copies code that it trusts to a cache, for which the user's own is not used."""
    cache = str(tmp_path_factory.mktemp("modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", cache)
