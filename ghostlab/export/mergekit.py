"""A plain drop as a mergekit recipe: passthrough slices of the blocks that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from transformers import CONFIG_MAPPING

from ghostlab.errors import ConfigError
from ghostlab.export.folder import whole_folder
from ghostlab.model.catalog import EMBEDDED, EMBEDDED_ORIGIN
from ghostlab.model.surgery import per_block_lists
from ghostlab.results.run import RunResult

RECIPE = "mergekit.yaml"


def recipe(result: RunResult) -> str:
    """The recipe as YAML; ``mergekit-yaml`` makes the pruned checkpoint from it.

    Raises:
        ConfigError: If the model is a ``.gguf`` file, which mergekit does not read.
    """
    source = result.config.model
    comments = [f"{result.model.name}: {result.cut.description}"]
    if source == EMBEDDED:
        source = EMBEDDED_ORIGIN
        comments.insert(0, "The run used 4-bit weights of this model, dequantised.")
    elif source.endswith(".gguf"):
        raise ConfigError(
            f"mergekit does not read '{source}'.", "Export the pruned model as stock instead: --stock."
        )
    if warning := caution(result):
        comments.insert(-1, warning)
    if result.config.revision:
        source += f"@{result.config.revision}"
    slices = [{"sources": [{"model": source, "layer_range": [*kept]}]} for kept in result.cut.keep_ranges]
    content: dict[str, Any] = {"slices": slices, "merge_method": "passthrough"}
    if result.config.dtype != "auto":
        content["dtype"] = result.config.dtype
    # names come from a result.json, which anybody may have written: none may end its comment
    lines = ("".join(filter(str.isprintable, " ".join(comment.split()))) for comment in comments)
    head = "".join(f"# {line}\n" for line in lines)
    body: str = yaml.safe_dump(content, sort_keys=False, default_flow_style=None)
    return head + body


def caution(result: RunResult) -> str:
    """What may go wrong with the recipe of this model, in one line; empty if nothing is known to."""
    family, depth = result.model.family, result.model.layers
    known = family in CONFIG_MAPPING
    lists = per_block_lists(CONFIG_MAPPING[family](num_hidden_layers=depth), depth) if known else []
    if not lists:
        return ""
    return (
        f"mergekit may leave {' and '.join(lists)} in config.json as long as in the full model; the result "
        "then does not load, or runs layers as the wrong kind. Remove the entries of dropped layers, or "
        "export with --stock instead."
    )


def write_recipe(result: RunResult, folder: str | Path) -> Path:
    """Write ``mergekit.yaml`` to a new or empty folder.

    Raises:
        ConfigError: As :func:`recipe`.
        ResultError: If the folder is not empty or cannot be written.
    """
    text = recipe(result)
    with whole_folder(folder) as partial:
        (partial / RECIPE).write_text(text, encoding="utf-8")
    return Path(folder)
