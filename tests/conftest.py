"""Settings of every test: no network, no telemetry, waiting threads that sleep."""

from __future__ import annotations

import os

# Before any test imports the libraries that read them.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
