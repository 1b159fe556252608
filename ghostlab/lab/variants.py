"""The variants of a finished run: built again around the original's weights, from the result's operators."""

from __future__ import annotations

from ghostlab.cut import Block, Cut
from ghostlab.errors import ConfigError, ResultError
from ghostlab.export.folder import MANIFEST, load_recovered, unpack
from ghostlab.lab.session import Session
from ghostlab.model.load import load_model
from ghostlab.model.model import Model
from ghostlab.model.replacement import Replacement
from ghostlab.progress import Progress
from ghostlab.results.records import RecoveryRun
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.storage import local_path

PRUNED = "pruned"
"""The label of the model with nothing in the place of the blocks."""
Replacements = dict[Block, Replacement]


def recovery(result: RunResult, label: str) -> RecoveryRun | None:
    """The recovery of that label, or of that method if it is the only one; ``None`` for the pruned model.

    Raises:
        ConfigError: If there is none.
    """
    if label == PRUNED:
        return None
    exact = [run for run in result.runs if run.label == label]
    found = exact or [run for run in result.runs if run.method == label]
    if len(found) == 1:
        return found[0]
    if label == "drop":
        return None
    count = f"{len(found)} recoveries" if found else "no recovery"
    labels = ", ".join([PRUNED, *(run.label for run in result.runs)])
    raise ConfigError(f"This run has {count} '{label}'.", f"It has: {labels}.")


def cut_of(result: RunResult) -> Cut:
    """The blocks that the run dropped."""
    return Cut(tuple(Block(start, stop) for start, stop in result.cut.blocks))


def original(session: Session, result: RunResult, progress: Progress) -> Model:
    """The model that a run cut.

    Raises:
        ResultError: If another model is found under its name now.
    """
    return same_model(result, session.model(result.config, progress))


def same_model(result: RunResult, model: Model) -> Model:
    """``model``, if it has the architecture of the one that a run cut; otherwise a ResultError."""
    then, now = result.model, (model.family, model.depth, model.width)
    if now != (then.family, then.layers, then.hidden_size):
        raise ResultError(
            f"'{result.config.model}' is another model now: {model.depth} layers of width {model.width} "
            f"({model.family}) instead of {then.layers} of width {then.hidden_size} ({then.family}).",
            "Run the configuration again.",
        )
    return model


def rebuild(model: Model, result: RunResult) -> dict[str, Model]:
    """Every variant of a run by name, the original ``model`` first.

    Raises:
        ResultError: If operators are not at hand.
    """
    cut = cut_of(result)
    recovered = {run.label: model.without(cut, replacements_of(result, run)) for run in result.runs}
    return {"original": model, PRUNED: model.without(cut), **recovered}


def replacements_of(result: RunResult, run: RecoveryRun | None) -> Replacements:
    """What a recovery of a result puts in the place of its blocks; nothing for plain dropping.

    Raises:
        ResultError: If the operators are not at hand, or not of this result.
    """
    if run is None:
        return {}
    found = unpack(result.operators, f"{run.label}/")
    if not found and run.method != "drop":
        raise ResultError(
            f"This result holds no operators for '{run.label}'.",
            f"They are fitted again, and stored, by: {result.config.to_command()} --out FOLDER",
        )
    if not set(found) <= set(cut_of(result)):
        raise ResultError("The operators are not those of this result.", "Run its configuration again.")
    return found


def load_any(source: str, settings: Settings, progress: Progress) -> Model:
    """A model as :func:`~ghostlab.model.load.load_model` takes it, or one that ``Model.save`` wrote."""
    folder = local_path(source) if settings.limits.local_paths else None
    if folder and (folder / MANIFEST).is_file():
        return load_recovered(folder, settings=settings)
    return load_model(source, settings=settings, progress=progress)
