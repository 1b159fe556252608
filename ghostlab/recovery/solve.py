"""The solver under the name that recoveries use; see :mod:`ghostlab.calibration.solve`."""

from ghostlab.calibration.solve import RELATIVE_RIDGES, UNVALIDATED_RIDGE, Ridge, choose_ridge, solve

__all__ = ["RELATIVE_RIDGES", "UNVALIDATED_RIDGE", "Ridge", "choose_ridge", "solve"]
