"""Which blocks go: a registry of selection criteria, one file each."""

from ghostlab.pruning.registry import CRITERIA, score, select

__all__ = ["CRITERIA", "score", "select"]
