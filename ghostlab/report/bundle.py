"""The files of a result for taking along: report, JSON, tables, operators, and all of them in one archive."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ghostlab.errors import ResultError
from ghostlab.plots.rows import recoveries, rows
from ghostlab.report import write_report
from ghostlab.results.run import OPERATOR_FILE, RESULT_FILE, RunResult

if TYPE_CHECKING:
    import pandas as pd

_README = """Files of a Ghostlab run.

report.html            every figure, interactive; opens in a browser without a network
result.json            everything measured; 'ghostlab run --config result.json' repeats the run
operators.safetensors  the fitted maps (absent when this result was stored without them)
figures.csv            every variant with every metric, its interval, and what was fitted
windows.csv            nats per token of every variant in every held-out window
positions.csv          nats per token by position in the window, and the share of the gap left there
channels.csv           share of the gap left in each channel
ranks.csv              explained share of the gap against the rank kept, per dropped block

The same run:
{command}
"""


def tables(result: RunResult) -> dict[str, pd.DataFrame]:
    """File name -> table, numbers at full precision."""
    import pandas as pd

    likelihood = {row.name: row.scores for row in rows(result)}
    fitted = {row.name: run for row, run in recoveries(rows(result))}
    windows = {name: scores.window_nll for name, scores in likelihood.items()}
    positions: dict[str, Sequence[float | None]] = {name: s.position_nll for name, s in likelihood.items()}
    for name, run in fitted.items():
        positions[f"{name}, share of the gap left"] = run.boundary.position_error
    channels = {name: run.boundary.channel_error for name, run in fitted.items()}
    return {
        "figures.csv": result.to_frame(),
        "windows.csv": _columns("window", windows),
        "positions.csv": _columns("position", positions),
        "channels.csv": _columns("channel", channels),
        "ranks.csv": pd.DataFrame(_ranks(result)),
    }


def _columns(index: str, columns: Mapping[str, Sequence[float | None]]) -> pd.DataFrame:
    """Columns of unequal length side by side, numbered from 0."""
    import pandas as pd

    frame: pd.DataFrame = pd.DataFrame(zip_longest(*columns.values()), columns=list(columns))
    frame.insert(0, index, range(len(frame)))
    return frame


def _ranks(result: RunResult) -> list[dict[str, object]]:
    return [
        {
            "recovery": row.name,
            "block": f"{report.block[0]}:{report.block[1]}",
            "factorisation": kind,
            "rank": rank,
            "explained": curve.explained[place],
            "explained_train": curve.explained_train[place],
        }
        for row, run in recoveries(rows(result))
        for report in run.operators
        for kind, curve in (("truncated SVD", report.truncated_svd), ("reduced rank", report.reduced_rank))
        if curve is not None
        for place, rank in enumerate(curve.ranks)
    ]


def _json(result: RunResult, path: Path) -> None:
    with _saved(result, path.parent) as folder:
        (folder / RESULT_FILE).replace(path)


def _operators(result: RunResult, path: Path) -> None:
    if not result.operators:
        raise ResultError(
            "This result was stored without its operators.", "Press Run to fit them again, then download."
        )
    with _saved(result, path.parent) as folder:
        (folder / OPERATOR_FILE).replace(path)


@contextmanager
def _saved(result: RunResult, place: Path) -> Iterator[Path]:
    """The result as ``--out`` stores it, operators and their checksum included, in a folder that passes."""
    with TemporaryDirectory(dir=place) as name:
        yield result.save(name)


def _tables(result: RunResult, path: Path) -> None:
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, table in tables(result).items():
            archive.writestr(name, table.to_csv(index=False))


def _everything(result: RunResult, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, _saved(result, path.parent) as folder:
        archive.writestr("README.txt", _README.format(command=result.config.to_command()))
        write_report(result, folder / "report.html")
        for part in sorted(folder.iterdir()):
            archive.write(part, part.name)
    _tables(result, path)


FILES: Mapping[str, Callable[[RunResult, Path], object]] = {
    "report.html": write_report,
    RESULT_FILE: _json,
    "tables.zip": _tables,
    OPERATOR_FILE: _operators,
    "everything.zip": _everything,
}
"""Name of a file -> what writes it."""


def write(result: RunResult, name: str, folder: Path) -> Path:
    """Write the file ``name`` of :data:`FILES` into ``folder``, an existing folder of its own.

    The file is called after the run, so that downloads of several runs lie side by side.

    Raises:
        ResultError: If the result does not hold what the file is made of, or the disk is full.
    """
    path = folder / f"ghostlab-{result.config.key}-{name}"
    try:
        FILES[name](result, path)
    except OSError as error:
        raise ResultError(f"{name} could not be written: {error.strerror}.") from error
    return path
