"""Host settings from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghostlab.errors import ConfigError
from ghostlab.settings import PUBLIC_LIMITS, Limits, Settings

pytestmark = pytest.mark.unit


def test_defaults_are_local() -> None:
    settings = Settings.from_env({})
    assert (settings.profile, settings.device, settings.limits) == ("local", "auto", Limits())
    assert settings.cache == Path.home() / ".cache" / "ghostlab"


def test_everything_can_be_named() -> None:
    env = {"GHOSTLAB_PROFILE": "public", "GHOSTLAB_CACHE": "~/ghosts", "GHOSTLAB_DEVICE": "cuda:1"}
    settings = Settings.from_env(env)
    assert settings == Settings("public", Path.home() / "ghosts", "cuda:1", PUBLIC_LIMITS)


def test_the_users_cache_folder_is_respected() -> None:
    assert Settings.from_env({"XDG_CACHE_HOME": "/var/c"}).cache == Path("/var/c/ghostlab")


def test_a_space_is_public_unless_told_otherwise() -> None:
    assert Settings.from_env({"SPACE_ID": "a/b"}).profile == "public"
    assert Settings.from_env({"SPACE_ID": "a/b", "GHOSTLAB_PROFILE": "local"}).profile == "local"


def test_public_is_nowhere_more_generous_than_local() -> None:
    assert not PUBLIC_LIMITS.local_paths
    for name in ("tokens", "new_tokens", "kept_models", "recoveries", "upload_bytes"):
        assert getattr(PUBLIC_LIMITS, name) < getattr(Limits(), name)
    assert Limits().parameters is None
    assert PUBLIC_LIMITS.parameters


def test_the_port_is_a_port() -> None:
    assert Settings.from_env({}).port is None
    assert Settings.from_env({"GRADIO_SERVER_PORT": "7861", "SPACE_ID": "a/b"}).port == 7861
    for word in ("0", "65536", "-1", "http", "78 61"):
        with pytest.raises(ConfigError, match="GRADIO_SERVER_PORT is"):
            Settings.from_env({"GRADIO_SERVER_PORT": word})


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ConfigError, match="'local' or 'public'"):
        Settings.from_env({"GHOSTLAB_PROFILE": "private"})
