"""The best rotation with one scale: the only linear maps that an RMS norm lets through."""

from ghostlab.recovery.base import LOW_RANK, WEIGHTED, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """W = a U V' from X'Y = G + R = U S V', a = tr S / tr G; M = W - I."""
    import torch

    from ghostlab.recovery.linear import fit_matrix

    seen = data.moments().all()
    left, values, right = torch.linalg.svd(seen.gram + seen.cross)
    power = float(seen.gram.trace())
    alpha = float(values.sum()) / power if power else 1.0
    matrix = alpha * left @ right - torch.eye(seen.width, dtype=left.dtype, device=left.device)
    return fit_matrix(data, spec, matrix, seen, free=True, details={"alpha": alpha})


OPERATOR = Operator(
    name="procrustes",
    title="Rotation and scale",
    summary="The orthogonal matrix times one number with the least squared error.",
    formula=r"\hat y = \alpha\, x U V^\top,\quad X^\top Y = U S V^\top,\quad"
    r" \alpha = \frac{\mathrm{tr}\,S}{\mathrm{tr}\,G}",
    expresses="a rotation or reflection and one magnification",
    source="Orthogonal Procrustes problem (Schönemann 1966)",
    group="constrained",
    fit=fit,
    options={**LOW_RANK, **WEIGHTED},
)
