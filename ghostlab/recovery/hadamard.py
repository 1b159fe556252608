"""Orthogonal matrices whose entries all have the same size: Hadamard matrices of nearly any width.

Built from Sylvester's doubling, Paley's two constructions over fields of p or p^2 elements, and Kronecker
products of these; where none reaches a width, a seeded random orthogonal matrix takes over. A massive channel
is spread evenly over all channels by such a rotation.
"""

from __future__ import annotations

from functools import cache
from math import isqrt

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import hadamard
from torch import Tensor

Signs = NDArray[np.int8]
Factor = tuple[str, int]
"""A construction and its order: ``("Sylvester", 16)``."""


def rotation(width: int) -> tuple[Tensor, str]:
    """An orthogonal Q [C, C] in float64, and how it was made, for example ``Sylvester 16 x Paley II 36``."""
    factors = plan(width)
    if factors is None:
        return _random_orthogonal(width), "random orthogonal (seed 0)"
    words = " x ".join(f"{name} {order}" for name, order in factors)
    return torch.from_numpy(hadamard_matrix(factors).astype(np.float64)) / width**0.5, words


@cache
def plan(order: int) -> tuple[Factor, ...] | None:
    """Which factors make a Hadamard matrix of ``order``; ``None`` if these constructions do not reach it.

    As much as possible is left to Sylvester, as in LinearPatch: 576 is 16 x 36.
    """
    two = order & -order
    if two == order:
        return (("Sylvester", order),)
    while two >= 1:
        core = _paley(order // two)
        if core is not None:
            return (core,) if two == 1 else (("Sylvester", two), core)
        two //= 2
    for left in range(12, isqrt(order) + 1, 4):
        first, second = plan(left), plan(order // left) if order % left == 0 else None
        if first and second:
            return (*first, *second)
    return None


def hadamard_matrix(factors: tuple[Factor, ...]) -> Signs:
    """The Kronecker product of the factors: entries 1 and -1, H H' = n I."""
    made = np.ones((1, 1), dtype=np.int8)
    for name, order in factors:
        made = np.kron(made, _MAKERS[name](order)).astype(np.int8)
    return made


def _paley(order: int) -> Factor | None:
    if order % 4:
        return None
    if (order - 1) % 4 == 3 and _root(order - 1):
        return "Paley I", order
    if (order // 2 - 1) % 4 == 1 and _root(order // 2 - 1):
        return "Paley II", order
    return None


def _sylvester(order: int) -> Signs:
    signs: Signs = hadamard(order, dtype=np.int8)
    return signs


def _paley_one(order: int) -> Signs:
    """I + S with S skew and bordered by ones: a Hadamard matrix of order q + 1, q = 3 mod 4."""
    signs = np.ones((order, order), dtype=np.int8)
    signs[1:, 0] = -1
    signs[1:, 1:] = _jacobsthal(order - 1) + np.eye(order - 1, dtype=np.int8)
    return signs


def _paley_two(order: int) -> Signs:
    """A symmetric conference matrix with 0, 1, -1 replaced by 2 x 2 blocks: order 2 (q + 1), q = 1 mod 4."""
    conference = np.ones((order // 2, order // 2), dtype=np.int8)
    conference[0, 0] = 0
    conference[1:, 1:] = _jacobsthal(order // 2 - 1)
    off, on = np.array([[1, 1], [1, -1]], np.int8), np.array([[1, -1], [-1, -1]], np.int8)
    signs: Signs = np.kron(conference, off) + np.kron(np.eye(order // 2, dtype=np.int8), on)
    return signs


def _jacobsthal(q: int) -> Signs:
    """Quadratic character of a - b for all elements a, b of the field of q = p or p^2 elements."""
    p = _root(q)
    # a + p b stands for a + b w with w^2 = n, a non-residue: the field of p^2 elements
    low, high = np.arange(q) % p, np.arange(q) // p
    residues = set((np.arange(p) ** 2 % p).tolist())
    n = next((x for x in range(2, p) if x not in residues), 0)
    squares = (low**2 + n * high**2) % p + p * (2 * low * high % p)
    character = np.full(q, -1, dtype=np.int8)
    character[squares] = 1
    character[0] = 0
    difference = (low[:, None] - low) % p + p * ((high[:, None] - high) % p)
    signs: Signs = character[difference]
    return signs


@cache
def _root(q: int) -> int:
    """p if q is an odd prime p or its square, else 0."""
    p = isqrt(q) if isqrt(q) ** 2 == q else q
    prime = p > 2 and p % 2 == 1 and all(p % d for d in range(3, isqrt(p) + 1, 2))
    return p if prime else 0


def _random_orthogonal(width: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    q, r = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))
    uniform: Tensor = q * r.diagonal().sign()  # without this, QR's choice of signs would bias it
    return uniform


_MAKERS = {"Sylvester": _sylvester, "Paley I": _paley_one, "Paley II": _paley_two}
