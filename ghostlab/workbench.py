"""What a lab keeps at hand between runs: the models, texts and calibrations that were used last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration, budget, calibrate, check_length
from ghostlab.config import RunConfig
from ghostlab.model.lm import Model
from ghostlab.model.load import load_model
from ghostlab.progress import Progress
from ghostlab.settings import Settings
from ghostlab.text.corpora import load_text
from ghostlab.text.documents import Text
from ghostlab.text.windows import HELD_OUT_SEED, make_windows

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
        """The original model of a run."""
        key = (config.model, config.revision, config.dtype)

        def load() -> Model:
            return load_model(
                config.model,
                revision=config.revision,
                dtype=config.dtype,
                settings=self.settings,
                progress=progress,
            )

        return _recall(self._models, key, self.settings.limits.kept_models, load)

    def text(self, source: str, progress: Progress) -> Text:
        """A text source, divided into calibration and held-out part."""
        return _recall(
            self._texts,
            (source,),
            KEPT_TEXTS,
            lambda: load_text(source, settings=self.settings, progress=progress),
        )

    def calibration(self, config: RunConfig, model: Model, text: Text) -> Calibration:
        """The calibration of ``model`` on ``text``; runs that differ in the cut share its passes."""
        key = (model.fingerprint, config.text, config.sequences, config.length, config.bos, config.seed)
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
            ),
        )
        calib.batch = config.batch
        return calib

    def held_out(self, config: RunConfig, model: Model, text: Text) -> Activations:
        """What the original does on evaluation windows: from the held-out part of ``text``, or from all of a
        text of their own."""
        own = config.held_out_text not in {None, config.text}
        check_length(model, config.length)

        def prepare() -> Activations:
            windows = make_windows(
                text.whole if own else text.held_out,
                model.tokenizer,
                count=config.held_out,
                length=config.length,
                bos=config.bos,
                seed=HELD_OUT_SEED,
            )
            return Activations(model, windows, budget=budget(self.settings), rounded=False)

        key = (model.fingerprint, text.name, own, config.held_out, config.length, config.bos)
        held_out = _recall(self._held_out, key, KEPT_CALIBRATIONS, prepare)
        held_out.batch = config.batch
        return held_out


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
