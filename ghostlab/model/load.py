"""Load a model from where it is: the embedded one, a hub id, a local folder or a ``.gguf`` file.

Whatever the source, the weights are in the end read by plain Transformers from a folder of safetensors. Code
that comes with a model is never run, and memory is checked before any weight is read or fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ghostlab.errors import GhostlabError, ModelError, UnsupportedModelError, memory_errors
from ghostlab.model.catalog import EMBEDDED, embedded_gguf
from ghostlab.model.device import pick_device, pick_dtype, quiet_transformers
from ghostlab.model.gguf import convert
from ghostlab.model.hub import fetch
from ghostlab.model.model import Model
from ghostlab.model.outline import kind_of
from ghostlab.model.preflight import (
    Place,
    check_files,
    check_memory,
    has_operators,
    measure,
    read_config,
)
from ghostlab.progress import SILENT, Progress
from ghostlab.settings import Settings


def load_model(
    source: str = EMBEDDED,
    *,
    revision: str | None = None,
    dtype: str = "auto",
    pruned_only: bool = False,
    settings: Settings | None = None,
    progress: Progress = SILENT,
) -> Model:
    """Load a decoder language model, ready to be run and cut: in evaluation mode and without gradients.

    Args:
        source: ``embedded``, a hub id (``org/name``), a local folder or a ``.gguf`` file.
        revision: Branch, tag or commit of a hub model.
        dtype: ``auto`` (float32 on a CPU, bfloat16 on a GPU), ``float32``, ``bfloat16`` or ``float16``.
        pruned_only: Accept a recovered model that Ghostlab saved, and leave its operators out.
        settings: Host settings; read from the environment when not given.
        progress: Reports each stage; a stop takes effect between two of them.

    Raises:
        ModelNotFoundError: No model at that place, or no network to fetch it.
        GatedModelError: The hub asks for a licence to be accepted first.
        RemoteCodeError: The model needs code of its own.
        UnsupportedModelError: Not a decoder, or of a family that cannot be cut exactly.
        MemoryLimitError: It does not fit.
        ModelError: Its files are incomplete or damaged, or not safetensors.
    """
    settings = settings or Settings.from_env()
    device = pick_device(settings.device)
    number = pick_dtype(dtype, device)
    if revision is not None and kind_of(source, settings) != "hub":
        raise ModelError(
            f"'{source}' has no revision '{revision}'.",
            "Only models of the hub have revisions; leave it out.",
        )

    def approve(folder: Path) -> int:
        config = read_config(folder)
        if has_operators(config) and not pruned_only:
            raise ModelError(
                f"{folder.name} is a recovered model, and its operators would be left out.",
                "Load it with ghostlab.load_recovered, or export it as an ordinary checkpoint (--stock).",
            )
        parameters = measure(config, folder.name).total
        check_memory(parameters, number, device, most=settings.limits.parameters)
        return parameters

    with quiet_transformers():
        place = _locate(source, revision, settings, approve, progress.part(0.0, 0.8))
        progress.at(0.8, f"Loading {place.name}: tokenizer")
        check_files(place.folder)
        tokenizer = _read_tokenizer(place.folder)
        progress.at(0.86, f"Loading {place.name}: weights")
        with memory_errors("Choose a smaller model, dtype bfloat16, or free memory."):
            hf, ignored = _read_weights(place.folder, number, device)
        progress.at(1.0, f"Loaded {place.name}")
    notes = [place.note] if place.note else []
    if ignored:
        notes.append(f"{ignored} tensors of the checkpoint do not belong to this architecture")
    return Model(hf, tokenizer, name=place.name, note="; ".join(notes))


def _locate(
    source: str, revision: str | None, settings: Settings, approve: Callable[[Path], int], progress: Progress
) -> Place:
    """Bring the model to a local folder; ``approve`` refuses it before its weights are read or fetched."""
    kind = kind_of(source, settings)
    if kind == "hub":
        return Place(fetch(source, revision, approve, progress, settings.limits.hub_bytes), source)
    if kind == "folder":
        folder = Path(source).expanduser()
        place = Place(folder, folder.resolve().name)
    else:
        path = embedded_gguf() if kind == "embedded" else Path(source).expanduser()
        place = convert(path, settings.cache, progress)
    approve(place.folder)
    return place


def _read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # many kinds: JSON, regular expressions, missing classes, packages
        raise ModelError(
            f"The tokenizer in {folder} cannot be read ({type(error).__name__}: {_first_line(error)}).",
            "It needs a valid tokenizer.json and tokenizer_config.json, and no code of its own.",
        ) from error
    return tokenizer


def _read_weights(folder: Path, dtype: torch.dtype, device: torch.device) -> tuple[PreTrainedModel, int]:
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            device_map=None if device.type == "cpu" else {"": device},
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except (GhostlabError, MemoryError, torch.OutOfMemoryError):
        raise
    except ImportError as error:
        raise UnsupportedModelError(f"{folder.name} needs a package that is missing: {error}") from error
    except Exception as error:  # safetensors, OS and shape errors alike: the files do not hold the model
        if "memory" in str(error).lower():
            raise
        raise ModelError(
            f"The weights in {folder} cannot be read ({type(error).__name__}: {_first_line(error)}).",
            "Fetch or save the model again.",
        ) from error
    missing = sorted(info["missing_keys"])
    if missing:
        raise ModelError(
            f"The weights in {folder} lack {len(missing)} tensors, for example {missing[0]}.",
            "The files must hold a whole causal language model; fetch or save it again.",
        )
    model.eval()
    model.requires_grad_(False)
    return model, len(info["unexpected_keys"])


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
