"""Errors for people: one sentence of cause, one of remedy, and an exit code."""

from __future__ import annotations

import pytest
import torch

from ghostlab import errors
from ghostlab.errors import Cancelled, GhostlabError, MemoryLimitError, memory_errors

pytestmark = pytest.mark.unit


def test_text_joins_cause_and_remedy() -> None:
    assert str(GhostlabError("It is 3.", "It must be 4.")) == "It is 3. It must be 4."
    assert str(GhostlabError("It is 3.")) == "It is 3."


def test_exit_codes() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, GhostlabError)]
    assert len(classes) > 10
    assert {c.exit_code for c in classes if c is not Cancelled} == {2}
    assert Cancelled.exit_code == 130


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_allocator_failures_say_what_to_lower(error: Exception) -> None:
    with pytest.raises(MemoryLimitError, match="Lower --batch") as caught, memory_errors("Lower --batch."):
        raise error
    assert caught.value.__cause__ is error


def test_a_real_refusal_of_the_cpu_allocator_is_recognised() -> None:
    with pytest.raises(MemoryLimitError), memory_errors("Lower it."):
        torch.empty(2**55, dtype=torch.float64)


def test_other_failures_pass_through() -> None:
    with pytest.raises(RuntimeError, match="shape"), memory_errors("Lower it."):
        raise RuntimeError("shape mismatch")
