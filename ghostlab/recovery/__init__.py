"""What fills the gap: a registry of replacements, one file each."""

from ghostlab.recovery.fitting import Fit, apply, fit
from ghostlab.recovery.registry import METHODS

__all__ = ["METHODS", "Fit", "apply", "fit"]
