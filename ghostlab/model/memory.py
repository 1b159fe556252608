"""Does the model fit? Answered from its configuration, before any weight is read or downloaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from ghostlab.errors import MemoryLimitError

LOADING_SHARE = 0.1
"""Extra room that loading needs beside the weights, as a share of them."""

_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def count_parameters(config: PreTrainedConfig) -> int:
    """Parameters of the causal language model that ``config`` describes; tied ones count once.

    The model is built on the meta device, which allocates nothing.
    """
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())


def available_bytes(device: torch.device) -> int:
    """Free memory of ``device``; for main memory the tighter of the machine's and the container's."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = int(psutil.virtual_memory().available)
    return min([free, *_container_free()])


def _container_free() -> list[int]:
    """What the control group of this process still allows; empty where there is no limit."""
    for limit, used in _CGROUPS:
        try:
            return [int(limit.read_text()) - int(used.read_text())]
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    return []


def check_memory(
    config: PreTrainedConfig,
    dtype: torch.dtype,
    device: torch.device,
    copies: float = 1,
    most: int | None = None,
) -> None:
    """Refuse a model whose weights cannot be held, or that has more parameters than the host allows.

    Args:
        config: The model's configuration.
        dtype: Number format of the weights in memory.
        device: Where they shall lie.
        copies: How many times the weights exist at the worst moment.
        most: The most parameters that this host loads; ``None`` for any number.

    Raises:
        MemoryLimitError: Saying what is needed, what there is, and what to lower.
    """
    parameters = count_parameters(config)
    if most is not None and parameters > most:
        raise MemoryLimitError(
            f"{parameters / 1e6:,.0f} M parameters are more than this host loads ({most / 1e6:,.0f} M).",
            "Choose a smaller model, or run Ghostlab on a machine of your own.",
        )
    need = int(parameters * dtype.itemsize * (copies + LOADING_SHARE))
    have = available_bytes(device)
    if need <= have:
        return
    smaller = "use dtype bfloat16, " if dtype.itemsize > 2 else ""
    raise MemoryLimitError(
        f"{parameters / 1e6:,.0f} M parameters in {str(dtype).removeprefix('torch.')} need {as_size(need)} "
        f"of memory on {device}; {as_size(have)} are free.",
        f"Choose a smaller model, {smaller}or free memory.",
    )


def check_disk(folder: Path, need: int) -> None:
    """Refuse to write ``need`` bytes into ``folder`` when its disk has less free.

    Raises:
        MemoryLimitError: Saying what is needed and what there is.
    """
    existing = next(parent for parent in [folder, *folder.absolute().parents] if parent.exists())
    have = shutil.disk_usage(existing).free
    if need > have:
        raise MemoryLimitError(
            f"{as_size(need)} of disk are needed for the weights; {as_size(have)} are free.",
            "Free disk space, choose a smaller model, or set GHOSTLAB_CACHE or HF_HOME to a larger disk.",
        )


def as_size(count: int) -> str:
    """A byte count for people: ``1.5 GB``."""
    size = float(max(count, 0))
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
