"""Plain dropping: the state before the block is handed on as it is."""

from __future__ import annotations

from ghostlab.recovery.base import BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Nothing is fitted."""
    return BlockFit(None)


METHOD = Method(
    name="drop",
    title="Drop",
    summary="Removes the blocks and puts nothing in their place.",
    formula=r"\hat y = x",
    source="ShortGPT (2403.03853), LLM-Streamline 'None' (2403.19135)",
    group="baseline",
    fit=fit,
    adds="0",
)
