"""The best scaling in a Hadamard-rotated basis by least squares: what LinearPatch's form can do at most."""

from ghostlab.recovery.base import LOW_RANK, WEIGHTED, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = Q diag(d) Q', d_k = <XQ_k, DQ_k> / ||XQ_k||^2."""
    from ghostlab.recovery.hadamard import rotation
    from ghostlab.recovery.linear import fit_matrix
    from ghostlab.recovery.scaling import channel_ratios, rotated

    seen = data.moments().all()
    turn, made = rotation(seen.width)
    turn = turn.to(seen.gram.device)
    along, power = (((matrix @ turn) * turn).sum(0) for matrix in (seen.cross, seen.gram))
    excess, note = channel_ratios(along, power)
    return fit_matrix(data, spec, rotated(excess, turn), seen, details={"rotation": made, **note})


OPERATOR = Operator(
    name="hadamard_ls",
    title="Rotated diagonal, least squares",
    summary="LinearPatch's form with the scales of least squared error.",
    formula=r"\hat y = xQ\,\mathrm{diag}(d)\,Q^\top,\quad"
    r" d_k = \frac{\langle XQ_k, YQ_k\rangle}{\lVert XQ_k\rVert^2}",
    expresses="a scaling in a rotated basis, the best one",
    source="Least squares on LinearPatch's rotated form",
    group="constrained",
    fit=fit,
    options={**LOW_RANK, **WEIGHTED},
)
