"""LinearPatch: channels scaled by ratios of magnitudes, as they are (LP-D) or after a rotation (LP-R)."""

from ghostlab.recovery.base import LOW_RANK, BlockFit, FitData, Operator, RecoverySpec


def fit_diagonal(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = diag(d) - I."""
    from ghostlab.model.replacement import AffineMap
    from ghostlab.recovery.linear import block_fit
    from ghostlab.recovery.scaling import absolute_ratios

    scale, note = absolute_ratios(data)
    return block_fit(data, AffineMap(diagonal=scale - 1), details=note)


def fit_rotated(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = Q diag(d) Q' - I, with d from rotated states; symmetric."""
    from ghostlab.recovery.hadamard import rotation
    from ghostlab.recovery.linear import fit_matrix
    from ghostlab.recovery.scaling import absolute_ratios, rotated

    seen = data.moments().all()
    turn, made = rotation(seen.width)
    scale, note = absolute_ratios(data, turn)
    matrix = rotated((scale - 1).to(seen.gram.device), turn.to(seen.gram.device))
    spread = float(scale.std() / scale.mean())  # near 0, the operator is little more than a scalar
    details = {"rotation": made, "scale_mean": float(scale.mean()), "scale_spread": spread}
    return fit_matrix(data, spec, matrix, seen, details={**details, **note})


DIAGONAL = Operator(
    name="linearpatch_diag",
    title="LinearPatch, diagonal",
    summary="Scales every channel by its mean magnitude after the block over that before it.",
    formula=r"\hat y = x\,\mathrm{diag}(d),\quad"
    r" d_c = \frac1K\sum_k \frac{\sum_t \lvert y^{(k)}_{tc}\rvert}{\sum_t \lvert x^{(k)}_{tc}\rvert}",
    expresses="a scaling of each channel; magnitudes matched, not errors minimised",
    source="LinearPatch (2505.24680), LP-D",
    group="baseline",
    fit=fit_diagonal,
    adds="C",
)

ROTATED = Operator(
    name="linearpatch",
    title="LinearPatch",
    summary="Scales channels by ratios of mean magnitudes in a Hadamard-rotated basis, fused to one matrix.",
    formula=r"\hat y = xP,\quad P = Q\,\mathrm{diag}(d)\,Q^\top,\quad"
    r" d_c = \frac1K\sum_k \frac{\sum_t \lvert (y^{(k)}Q)_{tc}\rvert}{\sum_t \lvert (x^{(k)}Q)_{tc}\rvert}",
    expresses="a scaling in a rotated basis, so a symmetric matrix; magnitudes matched",
    source="LinearPatch (2505.24680), LP-R",
    group="baseline",
    fit=fit_rotated,
    options=LOW_RANK,
)
