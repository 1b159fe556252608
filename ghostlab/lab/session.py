"""What a lab keeps at hand between runs: the models, texts and calibrations that were used last."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration, budget, calibrate, check_length
from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, MemoryLimitError, TextError
from ghostlab.model.load import load_model
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.settings import Settings
from ghostlab.text.corpora import load_text, sources_of
from ghostlab.text.documents import Documents, Text
from ghostlab.text.windows import HELD_OUT_SEED, Windows, bos_place, make_windows

KEPT_TEXTS = 4
KEPT_CALIBRATIONS = 2

Value = TypeVar("Value")
Shelf = dict[tuple[object, ...], Value]


class Workbench:
    """Loads what a configuration names, and remembers the last few of each kind."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._models: Shelf[Model] = {}
        self._texts: Shelf[Text] = {}
        self._calibrations: Shelf[Calibration] = {}
        self._held_out: Shelf[Activations] = {}

    def model(self, config: RunConfig, progress: Progress) -> Model:
        """The original model of a run.

        What is at hand of others makes room first; if memory still does not suffice, all of it does.
        """
        key = (config.model, config.revision, config.dtype)

        def load() -> Model:
            self._forget_states()
            return load_model(
                config.model,
                revision=config.revision,
                dtype=config.dtype,
                settings=self.settings,
                progress=progress,
            )

        most = self.settings.limits.kept_models
        try:
            return _recall(self._models, key, most, load)
        except MemoryLimitError:
            if not self._models:
                raise
            self._models.clear()
            return _recall(self._models, key, most, load)

    def _forget_states(self) -> None:
        """Let go of states of models that are not at hand any more: they would hold the weights in memory."""
        known = {id(model) for model in self._models.values()}
        for shelf in (self._calibrations, self._held_out):
            for key, states in list(shelf.items()):
                if id(states.model) not in known:
                    del shelf[key]
        gc.collect()  # modules and their hooks refer to each other

    def text(self, source: str, progress: Progress) -> Text:
        """A text source, divided into calibration and held-out part; a file that changed is read again."""
        return _recall(
            self._texts,
            (source, _file_states(source, self.settings)),
            KEPT_TEXTS,
            lambda: load_text(source, settings=self.settings, progress=progress),
        )

    def calibration(
        self, config: RunConfig, model: Model, text: Text, shown: Text | None = None
    ) -> Calibration:
        """The calibration of ``model`` on ``text``, to be shown on ``shown`` if that is another text.

        Runs that differ in the cut share its passes.
        """
        read = text.calibration  # and not its name, which texts of other content may have too
        like = (shown or text).held_out
        place = bos_place(like, model.tokenizer, config.bos)
        key = (model.fingerprint, read, config.sequences, config.length, place, config.seed)
        calib = _recall(
            self._calibrations,
            key,
            KEPT_CALIBRATIONS,
            lambda: calibrate(
                model,
                text,
                sequences=config.sequences,
                length=config.length,
                seed=config.seed,
                bos=config.bos,
                settings=self.settings,
                shown=like,
            ),
        )
        calib.batch = config.batch
        return calib

    def held_out(self, config: RunConfig, model: Model, fitted: Text, shown: Text) -> Activations:
        """What the original does on evaluation windows.

        They are of the held-out part of ``shown``, or, if the configuration names it for that, of all of it
        that is not in the calibration part of ``fitted``.

        Raises:
            TextError: If a window exceeds the model's context, or too little is left.
            ConfigError: If all that there is is more than the host allows.
        """
        check_length(model, config.length)
        named = config.held_out_text not in {None, config.text}
        read = _unseen(shown.whole, fitted.calibration) if named else shown.held_out

        def prepare() -> Activations:
            windows = make_windows(
                read,
                model.tokenizer,
                count=config.held_out or None,
                length=config.length,
                bos=config.bos,
                seed=HELD_OUT_SEED,
            )
            self._check_tokens(config, windows)
            return Activations(model, windows, budget=budget(self.settings), rounded=False)

        key = (model.fingerprint, read, config.held_out, config.length, config.bos)
        held_out = _recall(self._held_out, key, KEPT_CALIBRATIONS, prepare)
        held_out.batch = config.batch
        return held_out

    def _check_tokens(self, config: RunConfig, windows: Windows) -> None:
        """How many windows "all" are is known only now; other numbers were checked before the run."""
        tokens = config.sequences * config.length + windows.ids.numel()
        allowed = self.settings.limits.tokens
        if tokens > allowed:
            raise ConfigError(
                f"All {windows.count:,} held-out sequences of {windows.length} tokens, with those to fit on, "
                f"are {tokens:,} tokens; this host allows {allowed:,}.",
                "Give a number of held-out sequences.",
                "held_out",
            )


def _unseen(documents: Documents, fitted: Documents) -> Documents:
    """``documents`` without those that were fitted on; a paper's text stays as the paper cuts it."""
    seen = set(fitted.texts)
    if documents.protocol is not None or seen.isdisjoint(documents.texts):
        return documents
    left = tuple(text for text in documents.texts if text not in seen)
    if not left:
        raise TextError(
            f"Every document of {documents.name} was fitted on, so nothing is left to evaluate on.",
            "Evaluate on another text, or leave held_out_text out: a fifth is then held out.",
        )
    return replace(documents, texts=left)


def _file_states(source: str, settings: Settings) -> tuple[tuple[int, int], ...]:
    """Time and size of each local file that a source names, alone or in a mixture."""
    if not settings.limits.local_paths:
        return ()
    try:
        paths = [Path(name).expanduser() for name in sources_of(source, settings)]
        files = [path for path in paths if path.is_file()]
        return tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except (OSError, RuntimeError):  # no possible name of a file; whoever reads it says so
        return ()


def _recall(shelf: Shelf[Value], key: tuple[object, ...], most: int, make: Callable[[], Value]) -> Value:
    """The value of ``key``, made if it is new; the one unused for longest makes room before."""
    if key in shelf:
        value = shelf.pop(key)
    else:
        while len(shelf) >= most:
            del shelf[next(iter(shelf))]
        value = make()
    shelf[key] = value
    return value
