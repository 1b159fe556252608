"""Plain dropping: the state before the block is handed on as it is."""

from ghostlab.recovery.base import BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Nothing is fitted."""
    return BlockFit(None)


OPERATOR = Operator(
    name="drop",
    title="Drop",
    summary="Removes the blocks and puts nothing in their place.",
    formula=r"\hat y = x",
    expresses="nothing: the block is the identity",
    source="ShortGPT (2403.03853), LLM-Streamline 'None' (2403.19135)",
    group="baseline",
    fit=fit,
    adds="0",
)
