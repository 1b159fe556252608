"""What fills the gap: a registry of replacements, one file each."""

from ghostlab.recovery.fitting import Fit, apply, fit, load_recovered
from ghostlab.recovery.registry import METHODS

__all__ = ["METHODS", "Fit", "apply", "fit", "load_recovered"]
