"""A plain drop as a mergekit recipe: passthrough slices of the blocks that are kept."""

from __future__ import annotations

from pathlib import Path

from transformers import CONFIG_MAPPING

from ghostlab.errors import ConfigError
from ghostlab.export.checkpoint import whole_folder
from ghostlab.model.catalog import EMBEDDED, EMBEDDED_ORIGIN
from ghostlab.model.surgery import per_block_lists
from ghostlab.results.run import RunResult

RECIPE = "mergekit.yaml"


def recipe(result: RunResult) -> str:
    """The recipe as YAML; ``mergekit-yaml`` makes the pruned checkpoint of it.

    Raises:
        ConfigError: If the model is a ``.gguf`` file, which mergekit does not read.
    """
    source, note = result.config.model, ""
    if source == EMBEDDED:
        source, note = EMBEDDED_ORIGIN, "# The run used 4-bit weights of this model, dequantised.\n"
    elif source.endswith(".gguf"):
        raise ConfigError(
            f"mergekit does not read '{source}'.", "Export the pruned model as stock instead: --stock."
        )
    if warned := caution(result):
        note += f"# {warned}\n"
    lines = [f"# {result.model.name}: {result.cut.description}", "slices:"]
    if result.config.revision:
        source += f"@{result.config.revision}"
    for low, high in result.cut.keep_ranges:
        lines += [
            "  - sources:",
            f"      - model: {_quoted(source)}",
            f"        layer_range: [{low}, {high}]",
        ]
    lines += ["merge_method: passthrough"]
    if result.config.dtype != "auto":
        lines += [f"dtype: {result.config.dtype}"]
    return note + "\n".join(lines) + "\n"


def caution(result: RunResult) -> str:
    """What may go wrong with the recipe of this model, in one line; empty if nothing is known to."""
    family, depth = result.model.family, result.model.layers
    known = family in CONFIG_MAPPING
    lists = per_block_lists(CONFIG_MAPPING[family](num_hidden_layers=depth), depth) if known else []
    if not lists:
        return ""
    return (
        f"mergekit may leave {' and '.join(lists)} in config.json as long as the uncut model's; what it "
        "makes then does not load, or runs layers as the wrong kind. Take the entries of dropped layers out, "
        "or export with --stock instead."
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


def _quoted(text: str) -> str:
    """A YAML string in single quotes."""
    return "'" + text.replace("'", "''") + "'"
