"""What the host decides: profile, limits, cache folder, device. Read once from the environment.

A run never chooses these; a :class:`~ghostlab.config.RunConfig` only has to respect them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from ghostlab.errors import ConfigError

Profile = Literal["local", "public"]


@dataclass(frozen=True)
class Limits:
    """The most that one run may ask for, and the most that the server keeps.

    Attributes:
        tokens, batch_tokens: Tokens of all sequences, and of those in one forward pass.
        parameters: Of the model; ``None`` for as many as fit in memory.
        recoveries: Operators of a run; one counts once for each of its ranks.
        waiting_jobs, waiting_each: Jobs that may wait, in all and per visitor.
        job_seconds: How long one job may compute.
        kept_results, kept_bytes: Finished results in memory, by number and by size.
        open_pages: Pages whose state (1.5 MB) is kept, the last used ones.
        file_bytes: Size of an uploaded result or configuration.
        upload_bytes: Size of a text, uploaded or pasted, and of a prompt.
        hub_bytes: Disk for models of the hub, the last used ones; ``None`` to keep all.
    """

    tokens: int = 4_000_000
    batch_tokens: int = 4_000_000
    new_tokens: int = 1024
    parameters: int | None = None
    recoveries: int = 100
    waiting_jobs: int = 16
    waiting_each: int = 16
    job_seconds: float = math.inf
    kept_results: int = 32
    kept_bytes: int = 4 << 30
    file_bytes: int = 32 << 20
    kept_models: int = 2
    open_pages: int = 32
    upload_bytes: int = 20_000_000
    local_paths: bool = True
    hub_models: bool = True
    hub_bytes: int | None = None


PUBLIC_LIMITS = Limits(
    tokens=131_072,
    batch_tokens=16_384,
    new_tokens=128,
    parameters=1_500_000_000,
    recoveries=8,
    waiting_each=4,
    job_seconds=1800.0,
    kept_results=64,
    kept_bytes=1 << 30,
    file_bytes=8 << 20,
    kept_models=1,
    open_pages=128,
    upload_bytes=1_000_000,
    local_paths=False,
    hub_bytes=20 << 30,
)


def _default_cache(env: Mapping[str, str] = os.environ) -> Path:
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ghostlab"


@dataclass(frozen=True)
class Settings:
    """Host settings.

    Attributes:
        profile: ``local`` trusts its user; ``public`` refuses local paths and caps every run.
        cache: Folder for converted models and stored activations.
        device: ``auto`` (CUDA, then Apple MPS, then CPU) or a torch device string.
        port: Where the app must listen; ``None`` for the first free port from 7860 on.
        state_bytes: How much main memory the hidden states of one model on one text may take.
        state_disk_bytes: How much disk, under ``cache``, all hidden states together may take beyond that.
    """

    profile: Profile = "local"
    cache: Path = field(default_factory=_default_cache)
    device: str = "auto"
    limits: Limits = field(default_factory=Limits)
    port: int | None = None
    state_bytes: int = 768 << 20
    state_disk_bytes: int = 8 << 30

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read ``GHOSTLAB_PROFILE``, ``GHOSTLAB_CACHE``, ``GHOSTLAB_DEVICE`` and ``GRADIO_SERVER_PORT``; a
        Space is ``public``.

        Raises:
            ConfigError: If the profile is neither ``local`` nor ``public``, or the port is not one.
        """
        env = os.environ if env is None else env
        profile = env.get("GHOSTLAB_PROFILE") or ("public" if env.get("SPACE_ID") else "local")
        cache = Path(env["GHOSTLAB_CACHE"]).expanduser() if env.get("GHOSTLAB_CACHE") else _default_cache(env)
        port = env.get("GRADIO_SERVER_PORT") or None
        if profile not in ("local", "public"):
            raise ConfigError(f"GHOSTLAB_PROFILE is '{profile}'.", "It must be 'local' or 'public'.")
        if port and not (port.isdecimal() and 0 < int(port) < 65536):
            raise ConfigError(f"GRADIO_SERVER_PORT is '{port}'.", "It must be a port number, 1 to 65535.")
        return cls(
            profile=cast("Profile", profile),
            cache=cache,
            device=env.get("GHOSTLAB_DEVICE") or "auto",
            limits=PUBLIC_LIMITS if profile == "public" else Limits(),
            port=int(port) if port else None,
        )
