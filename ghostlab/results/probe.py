"""Probes: an altered copy of a recovery's maps is put into the model and measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ghostlab.errors import ConfigError
from ghostlab.results.generation import Generation
from ghostlab.results.records import Metric, RecoveryRun
from ghostlab.results.statistics import significantly_greater

Part = Literal["whole", "symmetric", "antisymmetric"]
Factor = Literal["truncated_svd", "reduced_rank"]
MOST_STRENGTH = 10.0
PARTS: dict[Part, str] = {"whole": "whole map", "symmetric": "S only", "antisymmetric": "A only"}
FACTORS: dict[Factor, str] = {"truncated_svd": "truncated SVD", "reduced_rank": "reduced rank"}


@dataclass(frozen=True)
class Alteration:
    """What is put into the model instead of a fitted map: x -> x + alpha (x M' + b').

    Attributes:
        part: M, or only S = (M + M')/2, or only A = (M - M')/2.
        alpha: Strength; 0 drops the blocks plainly, 1 is as fitted.
        rank: Keep only this rank of the part; ``None`` for all of it.
        factor: How a rank is taken.
    """

    part: Part = "whole"
    alpha: float = 1.0
    rank: int | None = None
    factor: Factor = "truncated_svd"

    def check(self, width: int) -> None:
        """Raise ConfigError for what cannot be put into a model of ``width`` channels."""
        if not (math.isfinite(self.alpha) and abs(self.alpha) <= MOST_STRENGTH):
            raise ConfigError(
                f"Strength {self.alpha} cannot be used.",
                f"Use one from -{MOST_STRENGTH:g} to {MOST_STRENGTH:g}.",
            )
        if self.rank is not None and not 1 <= self.rank <= width:
            raise ConfigError(f"Rank {self.rank} is not possible.", f"Use a rank from 1 to {width}.")

    @property
    def name(self) -> str:
        """For people: ``S only, strength 0.5, rank 64``."""
        strength = "" if self.alpha == 1 else f", strength {self.alpha:g}"
        rank = "" if self.rank is None else f", rank {self.rank} ({FACTORS[self.factor]})"
        return f"{PARTS[self.part]}{strength}{rank}"


@dataclass(frozen=True)
class Probe:
    """How the model does with an altered map, on the run's held-out windows.

    Attributes:
        label: The recovery whose maps were altered.
        alteration: How.
        parameters_added: Numbers that the altered maps store.
        window_nll: Mean negative log-likelihood of each window, for paired comparisons.
        prompt: The prompt of ``generation``.
        generation: A continuation, if one was requested.
    """

    label: str
    alteration: Alteration
    parameters_added: int
    perplexity: Metric
    kl: Metric
    top1_agreement: Metric
    window_nll: list[float]
    prompt: str = ""
    generation: Generation | None = None


@dataclass(frozen=True)
class RankSweep:
    """The ranks below the full one at which a recovery's whole map was probed, lowest first.

    Attributes:
        probes: One per rank, at full strength, all by the same factorisation.
        full: The recovery as it was fitted.
        width: The full rank.
    """

    probes: list[Probe]
    full: RecoveryRun
    width: int

    @classmethod
    def of(cls, probes: Iterable[Probe], full: RecoveryRun, width: int, factor: Factor) -> RankSweep:
        """Those among ``probes`` that belong to the recovery ``full`` and to ``factor``."""
        found = {
            probe.alteration.rank: probe
            for probe in probes
            if probe.label == full.label
            and (probe.alteration.part, probe.alteration.alpha) == ("whole", 1)
            and probe.alteration.factor == factor
            and 0 < (probe.alteration.rank or 0) < width
        }
        return cls([found[rank] for rank in sorted(found, key=lambda rank: rank or 0)], full, width)

    @property
    def ranks(self) -> list[int]:
        """The ranks of the probes."""
        return [probe.alteration.rank or 0 for probe in self.probes]

    @property
    def suggested(self) -> Probe | None:
        """The lowest rank that is not significantly worse than the full one; ``None`` if all of them are."""
        full = self.full.window_nll
        return next((p for p in self.probes if not significantly_greater(p.window_nll, full)), None)

    def forecast(self, rank: int) -> tuple[float, float] | None:
        """Perplexity and KL at a rank: log perplexity, and KL, piecewise linear in the log of the rank.

        ``None`` below the lowest measured rank, and where none was measured.
        """
        if not self.probes or rank < self.ranks[0]:
            return None
        at = np.log([*self.ranks, self.width])
        scores: list[Probe | RecoveryRun] = [*self.probes, self.full]
        perplexity = np.interp(np.log(rank), at, np.log([one.perplexity.value for one in scores]))
        return float(np.exp(perplexity)), float(np.interp(np.log(rank), at, [one.kl.value for one in scores]))
