"""Where a model lives, in which number format, and without Transformers' own progress bars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ghostlab.errors import ConfigError
from ghostlab.progress import shared_context

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def pick_device(name: str = "auto") -> torch.device:
    """The device that ``name`` stands for: ``auto`` is CUDA, then Apple's MPS, then the CPU.

    Raises:
        ConfigError: If there is no such device, here or at all.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"'{name}' is not a device.", "Use auto, cpu, cuda, cuda:1 or mps.") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"Device '{name}' was asked for, but this machine has no such GPU.", "Use auto.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("Device 'mps' was asked for, but this machine has none.", "Use auto.")
    return device


def exact_device(device: torch.device | str) -> torch.device:
    """Where float64 work on tensors of ``device`` is done: there, or on the CPU for Apple MPS without it."""
    device = torch.device(device)
    return torch.device("cpu") if device.type == "mps" else device


def exact(tensor: Tensor) -> Tensor:
    """The tensor in float64; see :func:`exact_device`."""
    return tensor.to(exact_device(tensor.device)).double()


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    """The number format of the weights: ``auto`` is float32 on a CPU and bfloat16 on a GPU.

    Raises:
        ConfigError: If the name is not one of ``auto``, ``float32``, ``bfloat16``, ``float16``.
    """
    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name not in DTYPES:
        raise ConfigError(f"dtype is '{name}'.", f"Use auto, {', '.join(DTYPES)}.")
    return DTYPES[name]


@shared_context
@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Switch Transformers' own bars and warnings off inside the block, and back afterwards."""
    from transformers.utils import (
        logging,  # not at the top: whoever asks for a device needs no more than torch
    )

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
