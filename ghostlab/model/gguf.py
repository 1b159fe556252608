"""GGUF files, dequantised once into a plain Transformers model and kept as safetensors in the cache.

Transformers attaches a quantiser to a model that it read from GGUF and refuses to save it; the model is
therefore rebuilt from its configuration and takes the dequantised tensors over. Values are kept in float32,
so that nothing is rounded a second time.

The folder in the cache is named by the SHA-256 of the file, and has its name only once it is whole.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from gguf import GGUFReader
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    GgufConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from ghostlab.errors import ModelError, ModelNotFoundError, UnsupportedModelError
from ghostlab.model.device import quiet_transformers
from ghostlab.model.preflight import Place, check_disk, check_memory, measure
from ghostlab.progress import SILENT, Progress
from ghostlab.storage import file_sha256, read_json, whole, write_text

_QUANT = re.compile(r"[.-]((?:IQ|Q|TQ|MXFP)\d\w*|B?F16|F32)$", re.IGNORECASE)
_PART = re.compile(r"-\d{5}-of-\d{5}$")
MARKER = "ghostlab.json"
"""Lists the sizes of the files of a converted model; written last."""


def convert(path: Path, cache: Path, progress: Progress = SILENT) -> Place:
    """The plain model made from the GGUF file ``path``; converted on first use, then taken from ``cache``.

    Raises:
        ModelError: If the file is damaged, of an architecture that Transformers cannot read, or too large for
            memory or disk, or if the cache cannot be written; the subclass says which.
    """
    _check_file(path)
    digest = remembered_sha256(path, cache / "models" / "sources.json")
    folder = cache / "models" / digest[:16]

    def build(target: Path) -> None:
        with quiet_transformers():
            _convert(path, target, progress)

    if not is_whole(folder):
        build_once(folder, build, progress)
    return Place(folder, *describe(path))


def describe(path: Path) -> tuple[str, str]:
    """Model name and note from a file name: ``X.Q4_1.gguf`` is X with 'Q4_1 weights, dequantised'."""
    match = _QUANT.search(path.stem)
    if match is None:
        return path.stem, "GGUF weights, dequantised"
    return path.stem[: match.start()], f"{match[1].upper()} weights, dequantised"


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise ModelNotFoundError(f"There is no file {path}.", "Give the path of a .gguf file.")
    with path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ModelNotFoundError(f"{path.name} is not a GGUF file.", "It must begin with the bytes GGUF.")
    if _PART.search(path.stem):
        raise ModelNotFoundError(
            f"{path.name} is one part of a split model.", "Join the parts first: llama-gguf-split --merge."
        )


def _convert(path: Path, target: Path, progress: Progress) -> None:
    """Write config, weights and tokenizer of ``path`` into ``target``; stages are spaced as measured."""
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    label = f"Converting {path.name}"
    try:
        progress.at(0.0, f"{label}: reading its header")
        config = AutoConfig.from_pretrained(**where)
        # Dequantised tensors and the model that they are copied into exist together for a moment.
        parameters = measure(config, path.name).total
        check_memory(parameters, torch.float32, torch.device("cpu"), copies=2)
        check_disk(target, int(parameters * 4.1))
        progress.at(0.3, f"{label}: reading its tokenizer")
        tokenizer = AutoTokenizer.from_pretrained(**where)
        progress.at(0.5, f"{label}: dequantising its weights")
        model = _dense_model(where, config)
    except (ValueError, KeyError, IndexError, OSError, NotImplementedError) as error:
        raise _reading_error(path, error) from error
    _check_biases(path, model)
    progress.at(0.9, f"{label}: writing the plain model")
    tokenizer.model_max_length = config.max_position_embeddings  # GGUF leaves 1e30
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _dense_model(where: dict[str, str], config: PreTrainedConfig) -> PreTrainedModel:
    """The dequantised model without a quantiser, so that it can be saved like any other."""
    dequantise = GgufConfig(dequantize=True)
    packed = AutoModelForCausalLM.from_pretrained(
        **where, config=config, dtype=torch.float32, quantization_config=dequantise
    )
    plain = copy.deepcopy(packed.config)
    if hasattr(plain, "quantization_config"):
        del plain.quantization_config
    with torch.device("meta"):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(plain, dtype=torch.float32)
    model.load_state_dict(packed.state_dict(), strict=True, assign=True)
    model.tie_weights()
    ids = {name: getattr(plain, name, None) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    model.generation_config = GenerationConfig(**ids)
    return model


def _check_biases(path: Path, model: PreTrainedModel) -> None:
    """Transformers skips tensors of a GGUF file that it has no place for, without a word."""
    in_file = sum(tensor.name.endswith(".bias") for tensor in GGUFReader(path).tensors)
    in_model = sum(name.endswith(".bias") for name, _ in model.named_parameters())
    if in_file > in_model:
        raise UnsupportedModelError(
            f"{path.name} holds {in_file} biases, of which Transformers reads {in_model}.",
            "Use the model's folder of safetensors instead.",
        )


def _reading_error(path: Path, error: Exception) -> ModelError:
    if "not supported" in str(error):
        return UnsupportedModelError(
            f"{path.name} cannot be read: {error}", "Use a Llama, Mistral, Qwen, Gemma or Phi model."
        )
    return ModelError(
        f"{path.name} is damaged or incomplete ({type(error).__name__}: {error}).", "Fetch it again."
    )


# -- the cache of converted models -------------------------------------------------------------------------


def remembered_sha256(path: Path, memo: Path) -> str:
    """SHA-256 of ``path``, read from the JSON file ``memo`` while size and time of the file are as then."""
    key, status, entries = str(path.resolve()), path.stat(), read_json(memo) or {}
    entry = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
    before = entries.get(key)
    if isinstance(before, dict) and {**before, **entry} == before:
        return str(before["sha256"])
    digest = file_sha256(path)
    with suppress(OSError):  # a shortcut only; build_once says so if the cache cannot be written
        write_text(memo, json.dumps({**entries, key: {**entry, "sha256": digest}}, indent=1))
    return digest


def is_whole(folder: Path) -> bool:
    """Whether a converted model is there, with every file of the size that was written."""
    files = (read_json(folder / MARKER) or {}).get("files") or {}
    try:
        return bool(files) and all((folder / n).stat().st_size == f["size"] for n, f in files.items())
    except (OSError, TypeError, KeyError):
        return False


def build_once(folder: Path, build: Callable[[Path], None], progress: Progress) -> None:
    """Let ``build`` fill ``folder``, which is absent or damaged.

    Safe against a crash (see :func:`~ghostlab.storage.whole`) and against a second process, which waits for
    the lock and finds the work done.

    Raises:
        ModelError: If the cache folder cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.with_name(f"{folder.name}.lock"), progress):
            if is_whole(folder):
                return
            for left in folder.parent.glob(f"{folder.name}.*.part"):  # by a crash; nobody works on it now
                shutil.rmtree(left, ignore_errors=True)
            with whole(folder) as partial:
                partial.mkdir()
                build(partial)
                files = {path.name: {"size": path.stat().st_size} for path in partial.iterdir()}
                (partial / MARKER).write_text(json.dumps({"files": files}, indent=1))
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"The converted model cannot be kept in {folder.parent}: {reason}.",
            "Make the folder writable, free disk space, or set GHOSTLAB_CACHE to another folder.",
        ) from error


def _lock(path: Path, progress: Progress) -> AbstractContextManager[object]:
    """The lock file, held until the block ends; while another process has it, wait but obey a stop."""
    while True:
        try:
            return FileLock(path).acquire(timeout=0.5)
        except Timeout:
            progress.at(0.0, "Another process is converting this model; waiting for it")
