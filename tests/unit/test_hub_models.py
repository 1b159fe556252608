"""Models of the hub, fetched by the real client from a server of ours."""

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants

from ghostlab.config import RunConfig
from ghostlab.errors import (
    Cancelled,
    CutError,
    GatedModelError,
    MemoryLimitError,
    ModelError,
    ModelNotFoundError,
    RemoteCodeError,
    UnsupportedModelError,
)
from ghostlab.model import hub as hub_module
from ghostlab.model import load as load_module
from ghostlab.model.load import load_model
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.storage import folder_bytes
from ghostlab.ui.service import requests
from ghostlab.ui.sidebar import picker
from tests.helpers.fake_hub import fake_hub
from tests.helpers.folders import change_config, save_folder

pytestmark = pytest.mark.unit

CPU = Settings(device="cpu")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub with a good, a gated, a coded, a pickled and an unsupported model; yields what was asked of it."""
    good = save_folder(tmp_path / "good")
    (good / "pytorch_model.bin").write_bytes(b"never fetched")
    coded = save_folder(tmp_path / "coded")
    change_config(coded, model_type="evil", auto_map={"AutoModelForCausalLM": "x.Evil"})
    pickled = save_folder(tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    empty, huge = tmp_path / "empty", tmp_path / "huge"
    for folder in (empty, huge):
        folder.mkdir()
    (huge / "config.json").write_bytes(b" " * (hub_module.MOST_CONFIG_BYTES + 1))
    mixed = save_folder(tmp_path / "mixed")
    change_config(mixed, model_type="mixtral", num_local_experts=2)
    repos: dict[str, Path | str] = {
        "org/mixed": mixed,
        "org/good": good,
        "org/coded": coded,
        "org/pickled": pickled,
        "org/gated": "GatedRepo",
        "org/empty": empty,
        "org/huge": huge,
    }
    with fake_hub(repos) as (address, requested):
        _point_to(address, tmp_path / "cache", monkeypatch)
        yield requested


def _point_to(address: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_a_hub_model_is_fetched_loaded_and_needs_no_network_the_next_time(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[ProgressUpdate] = []
    model = load_model("org/good", settings=CPU, progress=Progress(seen.append))
    assert model.name == "org/good"
    assert any("Downloading" in update.message for update in seen)
    assert not any(path.endswith(".bin") for path in hub)
    _point_to("http://127.0.0.1:9", tmp_path / "cache", monkeypatch)
    again = load_model("org/good", settings=CPU)
    first, second = model.hf.state_dict(), again.hf.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_reasons_why_a_hub_model_is_refused(hub: list[str]) -> None:
    with pytest.raises(GatedModelError, match=r"licence.*HF_TOKEN"):
        load_model("org/gated", settings=CPU)
    with pytest.raises(ModelNotFoundError, match="no model 'org/unknown'"):
        load_model("org/unknown", settings=CPU)
    with pytest.raises(ModelNotFoundError, match="no revision 'v9'"):
        load_model("org/good", revision="v9", settings=CPU)
    with pytest.raises(RemoteCodeError):
        load_model("org/coded", settings=CPU)
    with pytest.raises(ModelError, match="safetensors"):
        load_model("org/pickled", settings=CPU)


def test_a_family_is_refused_before_weights_are_fetched(hub: list[str]) -> None:
    with pytest.raises(UnsupportedModelError, match="mixture of experts"):
        load_model("org/mixed", settings=CPU)
    assert any("config.json" in path for path in hub)
    assert not any("safetensors" in path for path in hub)


def test_without_network_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _point_to("http://127.0.0.1:9", tmp_path / "cache", monkeypatch)
    with pytest.raises(ModelNotFoundError, match="cannot be reached"):
        load_model("org/good", settings=CPU)


def test_memory_is_checked_before_weights_are_fetched(
    hub: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryLimitError("too large")

    monkeypatch.setattr(load_module, "check_memory", refuse)
    with pytest.raises(MemoryLimitError):
        load_model("org/good", settings=CPU)
    assert any("config.json" in path for path in hub)
    assert not any("safetensors" in path for path in hub)


def cached(folder: Path, pattern: str) -> list[Path]:
    return [path for path in (folder / "cache").rglob(pattern) if path.is_file()]


def test_only_files_of_a_model_are_fetched(hub: list[str], tmp_path: Path) -> None:
    (tmp_path / "good" / "data").mkdir()
    for name in ("data/big.json", "notes.json", "notes.txt"):
        (tmp_path / "good" / name).write_text("[]")
    load_model("org/good", settings=CPU)
    fetched = {path.name for path in (tmp_path / "cache").glob("models--org--good/snapshots/*/**/*")}
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= fetched
    assert not any("big" in name or "notes" in name or "data" in name for name in fetched)


def test_too_large_a_description_is_refused_before_it_is_fetched(hub: list[str], tmp_path: Path) -> None:
    with (tmp_path / "good" / "tokenizer.json").open("r+b") as file:
        file.truncate(hub_module.MOST_DESCRIPTION_BYTES + 1)
    with pytest.raises(ModelError, match=r"tokenizer of org/good take 134 MB.*at most 134 MB"):
        load_model("org/good", settings=CPU)
    assert not cached(tmp_path, "*.json")


def test_more_weights_than_the_configuration_says_are_refused_before_they_are_fetched(
    hub: list[str], tmp_path: Path
) -> None:
    with (tmp_path / "good" / "model-extra.safetensors").open("wb") as file:
        file.truncate(1 << 26)
    with pytest.raises(ModelError, match=r"weights of org/good take 67\.\d MB; such a model needs at most"):
        load_model("org/good", settings=CPU)
    assert not cached(tmp_path, "*.safetensors")


def test_models_used_longest_ago_make_room_on_a_shared_host(hub: list[str], tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def kept() -> set[str]:
        return {path.name.removeprefix("models--org--") for path in cache.glob("models--*")}

    def load(name: str, most: int | None) -> None:
        load_model(f"org/{name}", settings=replace(CPU, limits=replace(CPU.limits, hub_bytes=most)))

    load("good", None)
    one = folder_bytes(cache / "models--org--good")
    for name in ("second", "third"):
        shutil.copytree(cache / "models--org--good", cache / f"models--org--{name}", symlinks=True)
    for age, name in enumerate(("third", "good", "second")):
        os.utime(cache / f"models--org--{name}", (age, age))
    load("good", None)
    assert kept() == {"good", "second", "third"}, "elsewhere nothing is deleted"
    load("good", 2 * one + one // 2)
    assert kept() == {"good", "second"}, "the one in use counts as used last"


def test_configurations_make_room_for_one_another(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub_module.fetch_config("org/good", None, tmp_path / "ours")
    monkeypatch.setattr(hub_module, "CONFIGS_BYTES", hub_module.MOST_CONFIG_BYTES)
    assert hub_module.fetch_config("org/mixed", None, tmp_path / "ours")
    assert [path.name for path in (tmp_path / "ours").glob("models--*")] == ["models--org--mixed"]


@pytest.mark.usefixtures("hub")
def test_a_full_disk_is_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise RuntimeError("Data processing error") from error

    monkeypatch.setattr(hub_module, "snapshot_download", refuse)
    with pytest.raises(MemoryLimitError, match=r"disk is full.*HF_HOME"):
        load_model("org/good", settings=CPU)


def test_a_stop_ends_the_download(hub: list[str]) -> None:
    token = CancelToken()

    def stop(update: ProgressUpdate) -> None:
        if "Downloading" in update.message:
            token.cancel()

    with pytest.raises(Cancelled):
        load_model("org/good", settings=CPU, progress=Progress(stop, token))


def test_a_folder_of_the_same_name_is_not_taken_for_a_hub_model_in_public(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = Settings.from_env({"GHOSTLAB_PROFILE": "public", "GHOSTLAB_DEVICE": "cpu"})
    save_folder(tmp_path / "org" / "private")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError, match="no model 'org/private'"):
        load_model("org/private", settings=public)


def drawn(model: str, settings: Settings, revision: str | None = None) -> list[dict[str, Any]]:
    return [html.props for html in picker.look(model, revision, settings)]


def test_the_layers_of_a_model_are_drawn_from_its_configuration_alone(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(cache=tmp_path / "ours")
    looking, plain, counted = drawn("org/good", settings)
    assert looking["note"] == "Looking org/good up on the hub\N{HORIZONTAL ELLIPSIS}"
    assert plain["outline"]["layers"] == counted["outline"]["layers"] == len(counted["outline"]["blocks"]) > 1
    assert hub
    assert all(path.endswith("/resolve/main/config.json") for path in hub)
    assert not (tmp_path / "cache").exists(), "the hub's own cache holds whole models"
    asked = len(hub)
    assert drawn("org/good", settings) == [plain, counted]
    assert len(hub) == asked, "what was fetched once is not fetched again"
    with pytest.raises(CutError, match="It has"):
        requests.check(RunConfig(model="org/good", drop="90:91"), settings)
    _point_to("http://127.0.0.1:9", tmp_path / "cache", monkeypatch)
    assert "once it has been loaded" in drawn("org/coded", settings)[-1]["note"]


@pytest.mark.parametrize(
    ("model", "revision", "sentence"),
    [
        ("org/gated", None, "org/gated is gated. Accept its licence"),
        ("org/absent", None, "There is no model 'org/absent' on the hub"),
        ("org/good", "nope", "org/good has no revision 'nope'"),
        ("org/empty", None, "org/empty has no config.json"),
        ("org/huge", None, "too large"),
        ("org/coded", None, "org/coded (evil) runs only with code of its own"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_why_no_layers_are_drawn_is_said(
    model: str, revision: str | None, sentence: str, tmp_path: Path
) -> None:
    told = drawn(model, Settings(cache=tmp_path / "ours"), revision)[-1]
    assert told["outline"] is None
    assert sentence in told["note"]


def test_the_hub_is_asked_only_where_it_may_be_and_no_longer_than_a_page_waits(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = replace(PUBLIC_LIMITS, hub_models=False)
    (told,) = drawn("org/good", Settings("public", tmp_path / "ours", limits=closed))
    assert "fetches no models from the hub" in told["note"]
    leave = threading.Event()
    monkeypatch.setattr(hub_module, "_config", lambda *_: leave.wait(10))
    assert hub_module.fetch_config("org/good", None, tmp_path / "ours", seconds=0.05) is None
    leave.set()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "once it has been loaded" in drawn("org/good", Settings(cache=tmp_path / "ours"))[-1]["note"]
    assert hub_module.fetch_config("org/good", None, tmp_path / "ours") is None
    assert hub == []
