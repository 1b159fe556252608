"""Models from folders: what loads, and the one sentence for what does not."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ghostlab.errors import (
    Cancelled,
    ConfigError,
    ModelError,
    ModelNotFoundError,
    RemoteCodeError,
    UnsupportedModelError,
)
from ghostlab.model.load import load_model
from ghostlab.model.outline import kind_of
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.settings import PUBLIC_LIMITS, Settings
from tests.helpers.folders import change_config, save_folder, tiny_config

pytestmark = pytest.mark.unit

CPU = Settings(device="cpu")
PUBLIC = Settings("public", device="cpu", limits=PUBLIC_LIMITS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_folder(tmp_path / "tiny-llama")


def load(folder: Path, **options: object):
    return load_model(str(folder), settings=CPU, **options)


def test_a_folder_gives_a_frozen_model_in_evaluation_mode_with_its_tokenizer(folder: Path) -> None:
    model = load(folder)
    assert model.name == "tiny-llama"
    assert not model.hf.training
    assert not any(parameter.requires_grad for parameter in model.hf.parameters())
    assert {parameter.dtype for parameter in model.hf.parameters()} == {torch.float32}
    assert model.tokenizer.decode(model.tokenizer("a lamp").input_ids) == "a lamp"


def test_the_weights_are_those_of_the_folder(folder: Path) -> None:
    saved = load_file(folder / "model.safetensors")
    loaded = load(folder).hf.state_dict()
    assert saved.keys() == loaded.keys()
    assert all(torch.equal(saved[name], loaded[name]) for name in saved)


def test_dtype_is_as_asked_and_an_unknown_one_is_refused(folder: Path) -> None:
    assert load(folder, dtype="bfloat16").hf.dtype == torch.bfloat16
    with pytest.raises(ConfigError, match="float32, bfloat16, float16"):
        load(folder, dtype="int4")


@pytest.mark.parametrize("device", ["tpu-of-mine", "cuda:99", "mps"])
def test_a_device_that_is_not_there_is_refused(folder: Path, device: str) -> None:
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has MPS")
    with pytest.raises(ConfigError, match=device):
        load_model(str(folder), settings=Settings(device=device))


def test_progress_ends_at_one_and_a_stop_is_obeyed(folder: Path) -> None:
    seen: list[ProgressUpdate] = []
    load(folder, progress=Progress(seen.append))
    assert [u.fraction for u in seen] == sorted(u.fraction for u in seen)
    assert seen[-1].fraction == 1.0
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        load(folder, progress=Progress(cancel=token))


# -- what is not a model ------------------------------------------------------------------------------------


def test_a_missing_folder_and_one_without_config_say_what_a_folder_needs(tmp_path: Path) -> None:
    for place, reason in ((tmp_path / "nowhere", "no model folder"), (tmp_path, "no config.json")):
        with pytest.raises(ModelNotFoundError, match=reason) as caught:
            load(place)
        assert "safetensors" in caught.value.hint


@pytest.mark.parametrize("content", ["{broken", "[]", "{}"])
def test_a_config_that_is_none(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelNotFoundError, match=r"config\.json"):
        load(folder)


def test_a_config_that_contradicts_itself(folder: Path) -> None:
    change_config(folder, num_attention_heads="many")
    with pytest.raises(ModelError, match="not valid"):
        load(folder)


def test_remote_code_is_never_run(folder: Path) -> None:
    (folder / "modeling_evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Evil: pass\n")
    change_config(folder, model_type="evil", auto_map={"AutoModelForCausalLM": "modeling_evil.Evil"})
    with pytest.raises(RemoteCodeError, match="evil"):
        load(folder)
    assert not (folder / "ran").exists()


def test_a_native_class_is_used_although_the_folder_has_code_too(folder: Path) -> None:
    (folder / "modeling_evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Evil: pass\n")
    change_config(folder, auto_map={"AutoModelForCausalLM": "modeling_evil.Evil"})
    assert type(load(folder).hf).__name__ == "LlamaForCausalLM"
    assert not (folder / "ran").exists()


def test_pickled_weights_are_refused(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="pickle"):
        load(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ModelNotFoundError, match="no weights"):
        load(folder)


def test_damaged_and_incomplete_weights_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match="cannot be read"):
        load(folder)
    tensors.pop("model.layers.1.mlp.up_proj.weight")
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lack 1 tensors.*up_proj"):
        load(folder)


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    change_config(folder, intermediate_size=64)
    with pytest.raises(ModelError, match="cannot be read"):
        load(folder)


def test_tensors_that_were_not_used_are_told(folder: Path) -> None:
    weights = folder / "model.safetensors"
    save_file({**load_file(weights), "model.layers.2.ghost.weight": torch.eye(4)}, weights, {"format": "pt"})
    assert "1 tensors" in load(folder).note


def test_tied_weights_are_not_missing(tmp_path: Path) -> None:
    model = load(save_folder(tmp_path / "tied", tiny_config(tie_word_embeddings=True)))
    assert model.hf.lm_head.weight.data_ptr() == model.hf.model.embed_tokens.weight.data_ptr()


def test_a_folder_without_tokenizer_or_with_a_damaged_one(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match=r"tokenizer in .* cannot be read"):
        load(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="no tokenizer"):
        load(folder)


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("mixtral", "a mixture of experts"),
        ("mamba", "recurrent or state-space layers"),
        ("gemma3", "multimodal.*Of Gemma 3, use the sizes without images, 270m or 1b"),
        ("gemma3n", "multimodal"),  # its config cannot even be made without a package for images
        ("bart", "an encoder-decoder"),
        ("vit", "not a causal language model"),
        ("bert", r" supported\. Supported are"),
        ("olmo3", r" supported\. Supported are"),
    ],
)
def test_other_kinds_of_models_are_refused_by_their_config_alone(
    tmp_path: Path, family: str, reason: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    with pytest.raises(UnsupportedModelError, match=f"'{family}' are not.*{reason}"):
        load(tmp_path)


def test_a_member_of_a_family_that_cannot_be_cut_is_refused_by_its_config_alone(tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": True}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModelError, match="scales attention by its layer's position"):
        load(tmp_path)


def test_quantised_and_unknown_architectures_are_refused(folder: Path) -> None:
    change_config(folder, quantization_config={"quant_method": "awq", "bits": 4})
    with pytest.raises(UnsupportedModelError, match="awq"):
        load(folder)
    change_config(folder, quantization_config=None, model_type="from-the-future")
    with pytest.raises(UnsupportedModelError, match="from-the-future"):
        load(folder)


def test_a_revision_belongs_to_hub_models_only(folder: Path) -> None:
    with pytest.raises(ModelError, match="revisions"):
        load(folder, revision="main")


# -- what a source is ---------------------------------------------------------------------------------------


def test_kinds_of_sources(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = {
        "embedded": "embedded",
        "org/name": "hub",
        "gpt2": "hub",
        "tiny-llama": "folder",
        "./anything": "folder",
        "a/b/c": "folder",
        str(folder): "folder",
        "weights.gguf": "gguf",
    }
    assert {source: kind_of(source, CPU) for source in kinds} == kinds


@pytest.mark.parametrize("source", ["~nobody-here/x", "a/b/" + "c" * 300, "x" * 300 + ".gguf", "a\0b"])
def test_what_cannot_be_a_path_is_refused_in_a_sentence(source: str) -> None:
    for settings in (CPU, PUBLIC):
        with pytest.raises(ModelNotFoundError, match=r"hub id|no model folder"):
            load_model(source, settings=settings)
    assert kind_of("x" * 300, CPU) == "hub", "whoever asks the hub says what is wrong with it"


def test_the_public_profile_looks_at_nothing_on_disk(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for source in (str(folder), "../tiny-llama", "./x", "weights.gguf", "~/x"):
        with pytest.raises(ModelNotFoundError, match="no local files"):
            kind_of(source, PUBLIC)
    assert kind_of("tiny-llama", PUBLIC) == "hub"
