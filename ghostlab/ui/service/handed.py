"""Files that a user hands in: a configuration or a whole result, read with suspicion."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ghostlab import report
from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, GhostlabError, ResultError
from ghostlab.results.run import RunResult

_LOG = logging.getLogger(__name__)
_WANTED = "Open a result.json that Ghostlab wrote, or a JSON file with settings of a run."
_SETTINGS = {f.name for f in fields(RunConfig)}


def read(data: bytes, most: int) -> RunConfig | RunResult:
    """The configuration or the result that a file holds.

    Args:
        data: The file.
        most: Bytes that a file may have.

    Raises:
        GhostlabError: If it is too large, no JSON, damaged, or of something else; in one sentence.
    """
    if len(data) > most:
        raise ConfigError(
            f"The file has {len(data) / 1e6:.1f} MB; this server reads up to {most / 1e6:.0f} MB.", _WANTED
        )
    values = _object(data)
    if "schema" in values or "runs" in values:
        return _result(values)
    if not _SETTINGS & set(values):
        raise ConfigError("The file holds neither a result nor settings of a run.", _WANTED)
    return RunConfig.from_dict(values)


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        values = json.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigError("The file is no readable JSON.", _WANTED) from error
    if not isinstance(values, dict):
        raise ConfigError("The file holds no JSON object.", _WANTED)
    return values


def _result(values: Mapping[str, Any]) -> RunResult:
    """The result, once everything that is shown of it could be drawn."""
    result = RunResult.from_dict(values)
    try:
        report.render(result)
    except GhostlabError:
        raise
    except Exception as error:  # parts that do not fit together fail in as many ways as there are figures
        _LOG.info("a result that was handed in cannot be drawn: %r", error)
        raise ResultError("The result is damaged: its figures do not fit together.", _WANTED) from error
    return result
