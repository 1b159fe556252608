"""How colours look: contrast, and distance to eyes that lack one kind of cone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
SIGHT: dict[str, Vector] = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
"""Linear RGB -> what is seen of it, at full severity: Machado, Oliveira and Fernandes 2009."""
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str) -> Vector:
    """``#rrggbb`` as linear RGB."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    """Relative luminance, 0 to 1."""
    return float(_XYZ[1] @ linear(colour))


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG, 1 to 21."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def distance(one: str, other: str, sight: str = "normal") -> float:
    """Euclidean distance in CIELAB (CIE76) as an eye of :data:`SIGHT` sees both."""
    return float(np.linalg.norm(_lab(one, sight) - _lab(other, sight)))


def _lab(colour: str, sight: str) -> Vector:
    t = _XYZ @ np.clip(SIGHT[sight] @ linear(colour), 0, 1) / _WHITE
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
