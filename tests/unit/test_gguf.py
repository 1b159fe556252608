"""GGUF files become plain models: exactly, once, and never by halves."""

import json
import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from ghostlab.errors import Cancelled, MemoryLimitError, ModelError, ModelNotFoundError, UnsupportedModelError
from ghostlab.model import gguf as gguf_module
from ghostlab.model.gguf import MARKER, build_once, convert, describe, is_whole, remembered_sha256
from ghostlab.model.load import load_model
from ghostlab.progress import SILENT, CancelToken, Progress, ProgressUpdate
from ghostlab.settings import Settings
from tests.helpers.folders import tiny_config
from tests.helpers.gguf_files import random_llama, write_gguf

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def original() -> LlamaForCausalLM:
    return random_llama(tiny_config())


@pytest.fixture(scope="module")
def file(original: LlamaForCausalLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.F32.gguf", original)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Counts how often a file is really converted."""
    done: list[Path] = []
    real: Callable[..., None] = gguf_module._convert

    def counting(path: Path, target: Path, progress: Progress) -> None:
        done.append(path)
        real(path, target, progress)

    monkeypatch.setattr(gguf_module, "_convert", counting)
    return done


def test_the_converted_model_computes_what_the_original_does(
    original: LlamaForCausalLM, file: Path, cache: Path
) -> None:
    model = load_model(str(file), settings=Settings(cache=cache, device="cpu"))
    ids = model.tokenizer("The lighthouse turned", return_tensors="pt").input_ids
    with torch.no_grad():
        torch.testing.assert_close(model.hf(ids).logits, original(ids).logits)
    assert (model.name, model.note) == ("tiny", "F32 weights, dequantised")
    assert model.tokenizer.model_max_length == original.config.max_position_embeddings


def test_biases_that_would_be_left_out_are_noticed(tmp_path: Path, cache: Path) -> None:
    config = tiny_config()
    config.mlp_bias = True  # as in a stock export of mean_shift
    file = write_gguf(tmp_path / "biased.F32.gguf", random_llama(config))
    with pytest.raises(UnsupportedModelError, match="biases, of which Transformers reads 0"):
        convert(file, cache)
    assert not list(cache.glob("models/*/config.json"))


def test_it_is_plain_and_can_be_saved_again(file: Path, cache: Path, tmp_path: Path) -> None:
    folder = convert(file, cache).folder
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert not hasattr(model.config, "quantization_config")
    model.save_pretrained(tmp_path / "again")
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "again")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "again").state_dict()
    assert all(torch.equal(again[name], tensor) for name, tensor in model.state_dict().items())


def test_it_is_converted_once(file: Path, cache: Path, conversions: list[Path]) -> None:
    first, second = convert(file, cache), convert(file, cache)
    assert first == second
    assert len(conversions) == 1


@pytest.mark.parametrize("damage", ["truncate", "delete", "marker"])
def test_a_damaged_entry_is_rebuilt(file: Path, cache: Path, conversions: list[Path], damage: str) -> None:
    folder = convert(file, cache).folder
    weights = folder / "model.safetensors"
    good = weights.read_bytes()
    if damage == "truncate":
        weights.write_bytes(good[:-64])
    elif damage == "delete":
        (folder / "tokenizer.json").unlink()
    else:
        (folder / MARKER).write_text("{")
    assert not is_whole(folder)
    assert convert(file, cache).folder == folder
    assert weights.read_bytes() == good
    assert len(conversions) == 2


def test_a_copied_cache_is_trusted(file: Path, cache: Path, conversions: list[Path]) -> None:
    folder = convert(file, cache).folder
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    assert convert(file, cache).folder == folder
    assert len(conversions) == 1


def test_an_entry_with_the_checksums_of_earlier_versions_is_used(
    file: Path, cache: Path, conversions: list[Path]
) -> None:
    marker = convert(file, cache).folder / MARKER
    files = json.loads(marker.read_text())["files"]
    files = {name: {**entry, "mtime_ns": 1, "sha256": "ab"} for name, entry in files.items()}
    marker.write_text(json.dumps({"format": 1, "notes": {"source": file.name}, "files": files}))
    convert(file, cache)
    assert len(conversions) == 1


def test_a_changed_file_is_another_model(original: LlamaForCausalLM, cache: Path, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", original)
    before = convert(path, cache).folder
    other = random_llama(tiny_config())
    other.lm_head.weight.data += 1
    write_gguf(path, other)
    assert convert(path, cache).folder != before


def test_a_crash_or_a_stop_leaves_nothing_that_is_taken_for_a_model(file: Path, cache: Path) -> None:
    token = CancelToken()

    def stop(update: ProgressUpdate) -> None:
        if "dequantising" in update.message:
            token.cancel()

    with pytest.raises(Cancelled):
        convert(file, cache, Progress(stop, token))
    assert not [path for path in (cache / "models").iterdir() if path.is_dir()]
    digest = remembered_sha256(file, cache / "models" / "sources.json")
    crashed = cache / "models" / f"{digest[:16]}.1.1.part"
    crashed.mkdir()
    assert convert(file, cache).folder.is_dir()
    assert not crashed.exists()


def test_two_at_once_do_the_work_once(file: Path, cache: Path, conversions: list[Path]) -> None:
    results: list[Path] = []
    threads = [threading.Thread(target=lambda: results.append(convert(file, cache).folder)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert len(results) == 3
    assert len(conversions) == 1


def test_a_killed_process_blocks_nobody(tmp_path: Path) -> None:
    entry = tmp_path / "models" / "abc"

    def killed(target: Path) -> None:
        (target / "half").write_text("half")
        os._exit(9)

    process = multiprocessing.get_context("fork").Process(target=build_once, args=(entry, killed, SILENT))
    process.start()
    process.join(60)
    assert process.exitcode == 9
    assert not is_whole(entry)

    build_once(entry, lambda target: (target / "whole").write_text("whole"), SILENT)
    assert is_whole(entry)
    assert sorted(path.name for path in entry.iterdir()) == [MARKER, "whole"]
    assert not list(entry.parent.glob("*.part"))


def test_the_hash_of_a_source_is_remembered_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, memo = tmp_path / "x", tmp_path / "memo.json"
    path.write_bytes(b"one")
    first = remembered_sha256(path, memo)
    path.write_bytes(b"other")
    assert remembered_sha256(path, memo) != first
    path.write_bytes(b"one")
    assert remembered_sha256(path, memo) == first
    monkeypatch.setattr(gguf_module, "file_sha256", lambda path: "hashed again")
    assert remembered_sha256(path, memo) == first


def test_a_cache_that_cannot_be_written_names_the_remedy(file: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    with pytest.raises(ModelError, match="GHOSTLAB_CACHE"):
        convert(file, blocked)


def test_memory_is_checked_before_anything_is_dequantised(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ghostlab.model.preflight.available_bytes", lambda device: 1000)
    with pytest.raises(MemoryLimitError, match="free"):
        convert(file, cache)


def test_what_is_not_a_usable_gguf_file(file: Path, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no file"):
        convert(tmp_path / "none.gguf", cache)
    text = tmp_path / "text.gguf"
    text.write_text("hello, I am text")
    with pytest.raises(ModelNotFoundError, match="not a GGUF"):
        convert(text, cache)
    part = tmp_path / "big-00001-of-00003.gguf"
    part.write_bytes(file.read_bytes())
    with pytest.raises(ModelNotFoundError, match="split"):
        convert(part, cache)
    short = tmp_path / "short.gguf"
    short.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ModelError, match="damaged"):
        convert(short, cache)


def test_an_architecture_that_cannot_be_read_is_named(cache: Path, file: Path, tmp_path: Path) -> None:
    strange = tmp_path / "strange.gguf"
    strange.write_bytes(file.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0lambo"))
    with pytest.raises(UnsupportedModelError, match="lambo"):
        convert(strange, cache)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", ("SmolLM2-135M-Instruct", "Q4_1 weights, dequantised")),
        ("tinyllama-1.1b-chat-v1.0.q4_k_m.gguf", ("tinyllama-1.1b-chat-v1.0", "Q4_K_M weights, dequantised")),
        ("gemma-3-270m-IQ4_XS.gguf", ("gemma-3-270m", "IQ4_XS weights, dequantised")),
        ("Model-BF16.gguf", ("Model", "BF16 weights, dequantised")),
        ("qwen2.gguf", ("qwen2", "GGUF weights, dequantised")),
    ],
)
def test_names_of_files(name: str, expected: tuple[str, str]) -> None:
    assert describe(Path(name)) == expected
