"""What a run found: plain data that the app, the command, reports and notebooks share.

A :class:`RunResult` is JSON all the way down, except for the fitted operators, which are tensors and live
beside it in ``operators.safetensors``. Figures are drawn from it and from nothing else. Its parts are the
records of :mod:`ghostlab.results.records`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from ghostlab.config import RunConfig
from ghostlab.errors import ResultError
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Factor, Probe, RankSweep
from ghostlab.results.records import (
    METRICS,
    Baseline,
    CutInfo,
    Metric,
    ModelInfo,
    RecoveryRun,
    Scores,
    SelectionInfo,
)
from ghostlab.results.windows import TextInfo
from ghostlab.results.zeroshot import ZeroShot
from ghostlab.storage import Record, file_sha256, read_json, whole, write_text

if TYPE_CHECKING:
    import pandas as pd

RESULT_FILE = "result.json"
OPERATOR_FILE = "operators.safetensors"
_DIGEST = "operators_sha256"


_Operators = Annotated[dict[str, Any], BeforeValidator(lambda _: {}), Field(exclude=True)]
"""Tensors are in a file of their own: neither written to JSON nor read from it."""


@dataclass(frozen=True)
class Checkpoint:
    """Whether recoveries can be ordinary checkpoints.

    Attributes:
        names: Of the recoveries.
        reason: Why they cannot; empty if they can.
    """

    names: tuple[str, ...]
    reason: str

    @property
    def command(self) -> str:
        """What writes the checkpoint; empty if nothing can."""
        if self.reason:
            return ""
        return f"ghostlab export --result result/ --method {shlex.quote(self.names[0])} --stock --out stock/"


@dataclass(frozen=True)
class RunResult(Record):
    """Everything a run found. See :mod:`ghostlab.results.run`."""

    WHAT: ClassVar[str] = "result"
    config: RunConfig
    model: ModelInfo
    text: TextInfo
    cut: CutInfo
    baseline: Baseline
    runs: list[RecoveryRun]
    timings: dict[str, float]
    versions: dict[str, str]
    selection: SelectionInfo | None = None
    generations: list[Generation] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    zero_shot: ZeroShot | None = None
    warnings: list[str] = field(default_factory=list)
    created: str = ""
    schema: int = Record.SCHEMA
    operators: _Operators = field(default_factory=dict, repr=False, compare=False)
    """Name -> torch.Tensor; ``Any`` because reading a result must not need torch."""

    def save(self, folder: str | Path) -> Path:
        """Write ``result.json`` and ``operators.safetensors`` into ``folder``, each whole or not at all.

        ``result.json`` names the operators that belong to it by their SHA-256: a crash between the two files
        is noticed by :meth:`load`.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        digest = ""
        if self.operators:
            from safetensors.torch import save_file

            with whole(target / OPERATOR_FILE) as partial:
                save_file({name: tensor.contiguous() for name, tensor in self.operators.items()}, partial)
                partial.chmod(0o644)  # safetensors makes files private
                digest = file_sha256(partial)
        else:
            (target / OPERATOR_FILE).unlink(missing_ok=True)  # those of another run that was saved here
        values = {**self.to_dict(), _DIGEST: digest}
        write_text(target / RESULT_FILE, json.dumps(values, allow_nan=False))
        return target

    @classmethod
    def load(cls, folder: str | Path) -> RunResult:
        """Read a folder (or a ``result.json``) that :meth:`save` wrote.

        Raises:
            ResultError: If it is missing, damaged or of another schema, or the operators beside it are
                damaged or of another run.
        """
        path = Path(folder)
        path = path / RESULT_FILE if path.is_dir() else path
        values = read_json(path)
        if values is None:
            raise ResultError(f"'{path}' is not a readable result.", "Name a folder that --out wrote.")
        result = cls.from_dict(values)
        stored = path.with_name(OPERATOR_FILE)
        if not stored.exists():
            return result
        return replace(result, operators=_read_operators(stored, values.get(_DIGEST)))

    def rank_sweep(self, run: RecoveryRun, factor: Factor) -> RankSweep:
        """The ranks of a recovery's map that were probed."""
        return RankSweep.of(self.probes, run, self.model.hidden_size, factor)

    def checkpoints(self) -> list[Checkpoint]:
        """Whether each recovery can be an ordinary checkpoint; those kept from it by the same together."""
        together: dict[tuple[str, str], list[str]] = {}
        for run in self.runs:
            alone = "" if run.not_stock else run.label  # each that can be has a command of its own
            together.setdefault((run.not_stock, alone), []).append(run.label)
        return [Checkpoint(tuple(names), reason) for (reason, _), names in together.items()]

    def all_warnings(self) -> list[str]:
        """Every warning once, with the recoveries that it is about in front."""
        about: dict[str, list[str]] = {}
        for run in self.runs:
            for text in run.warnings:
                about.setdefault(text, []).append(run.label)
        return [*self.warnings, *(f"{', '.join(names)}: {text}" for text, names in about.items())]

    def to_frame(self) -> pd.DataFrame:
        """One row per variant (original, pruned, each recovery) with every metric and its interval.

        The original has everything, so its shares are 1 and it has the dropped parameters more than the
        pruned model, whose shares are 0.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = []
        named: list[tuple[str, Scores | RecoveryRun]] = [
            ("original", self.baseline.original),
            ("pruned", self.baseline.pruned),
            *((run.label, run) for run in self.runs),
        ]
        for name, scores in named:
            row: dict[str, Any] = {"variant": name}
            for metric in METRICS:
                figure: Metric = getattr(scores, metric.name)
                ends = {f"{metric.name}_low": figure.low, f"{metric.name}_high": figure.high}
                row |= {metric.name: figure.value, **ends}
            if isinstance(scores, RecoveryRun):
                row |= {
                    "gap_closed": scores.gap_closed,
                    "explained": scores.boundary.explained,
                    "explained_ordinary": scores.boundary.explained_ordinary,
                    "explained_train": scores.boundary.explained_train,
                    "relative_error": scores.boundary.relative_error,
                    "relative_error_ordinary": scores.boundary.relative_error_ordinary,
                    "parameters_added": scores.parameters_added,
                    "ridge": scores.ridge,
                    "rank": scores.rank,
                }
            else:
                whole = float(name == "original")
                row |= dict.fromkeys(("gap_closed", "explained", "explained_ordinary"), whole)
                row["parameters_added"] = int(whole) * self.model.parameters_dropped
            rows.append(row)
        frame: pd.DataFrame = pd.DataFrame(rows)
        return frame

    def weight(self) -> dict[int, int]:
        """Identity of each large part -> bytes in memory: results of one run share their parts."""
        tensors = {id(tensor): int(getattr(tensor, "nbytes", 0)) for tensor in self.operators.values()}
        return {id(self.runs): _bytes([self.baseline, self.runs, self.probes, self.generations]), **tensors}


def _bytes(value: Any) -> int:
    """About the memory that plain data take: a number in a list 32 bytes, and so does all that is small."""
    if isinstance(value, str):
        return 50 + len(value)
    items: Iterable[Any] = ()
    if is_dataclass(value):
        items = vars(value).values()
    elif isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, (list, tuple)):
        if value and isinstance(value[0], float):
            return 32 * len(value)
        items = value
    return 32 + sum(map(_bytes, items))


def _read_operators(path: Path, digest: object) -> dict[str, Any]:
    """The tensors of ``path``, whose SHA-256 must be the one that the result names."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    again = "Run again with the configuration in result.json."
    try:
        if file_sha256(path) != digest:
            raise ResultError(
                f"'{path}' is damaged, or of another run than the {RESULT_FILE} beside it.", again
            )
        operators: dict[str, Any] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ResultError(f"'{path}' is damaged.", again) from error
    return operators
