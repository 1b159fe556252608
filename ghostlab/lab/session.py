"""What a lab keeps at hand between runs: the models, texts and calibrations that were used last."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration, budget, calibrate, check_length
from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, MemoryLimitError, TextError
from ghostlab.model.load import load_model
from ghostlab.model.model import Model
from ghostlab.progress import Progress
from ghostlab.settings import Settings
from ghostlab.storage import local_path
from ghostlab.text.corpora import load_text, sources_of
from ghostlab.text.documents import Documents, Text
from ghostlab.text.windows import HELD_OUT_SEED, Windows, bos_place, make_windows

KEPT_TEXTS = 4
KEPT_CALIBRATIONS = 2

Value = TypeVar("Value")


class Shelf(dict[tuple[object, ...], Value], Generic[Value]):
    """The last ``most`` values that were used, by what they were made of."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def recall(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """The value of ``key``, made if it is new; the one unused for longest makes room before."""
        if key in self:
            value = self.pop(key)
        else:
            while len(self) >= self.most:
                del self[next(iter(self))]
            value = make()
        self[key] = value
        return value


class Session:
    """Loads what a configuration names, and remembers the last few of each kind."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models: Shelf[Model] = Shelf(settings.limits.kept_models)
        self.texts: Shelf[Text] = Shelf(KEPT_TEXTS)
        self.calibrations: Shelf[Calibration] = Shelf(KEPT_CALIBRATIONS)
        self.held_out: Shelf[Activations] = Shelf(KEPT_CALIBRATIONS)

    def prepare(self, config: RunConfig, progress: Progress) -> Prepared:
        """Load a configuration's model and texts.

        Raises:
            GhostlabError: If one of them cannot be loaded.
        """
        model = self.model(config, progress.part(0.0, 0.7))
        text = self.text(config.text, progress.part(0.7, 0.85))
        held_out_text = self.text(config.held_out_text or config.text, progress.part(0.85, 1.0))
        return Prepared(self, config, model, text, held_out_text)

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

        try:
            return self.models.recall(key, load)
        except MemoryLimitError:
            if not self.models:
                raise
            self.models.clear()
            return self.models.recall(key, load)

    def text(self, source: str, progress: Progress) -> Text:
        """A text source, divided into calibration and held-out part; a file that changed is read again."""
        return self.texts.recall(
            (source, _file_states(source, self.settings)),
            lambda: load_text(source, settings=self.settings, progress=progress),
        )

    def _forget_states(self) -> None:
        """Let go of states of models that are not at hand any more: they would hold the weights in memory."""
        known = {id(model) for model in self.models.values()}
        for shelf in (self.calibrations, self.held_out):
            for key in [key for key, states in shelf.items() if id(states.model) not in known]:
                del shelf[key]
        gc.collect()  # modules and their hooks refer to each other


@dataclass(frozen=True)
class Prepared:
    """What a configuration names, loaded. Windows are cut on first use.

    Attributes:
        text: What is fitted on.
        held_out_text: What is evaluated on.
    """

    session: Session
    config: RunConfig
    model: Model
    text: Text
    held_out_text: Text

    @cached_property
    def calibration(self) -> Calibration:
        """The original on the windows to fit on; runs that differ in the cut share its passes.

        Raises:
            TextError: If the text is too short, or a window longer than the model's context.
        """
        config, model, read = self.config, self.model, self.text.calibration
        like = self.held_out_text.held_out
        place = bos_place(like, model.tokenizer, config.bos)
        # the documents and not their name, which texts of other content may have too
        key = (model.fingerprint, read, config.sequences, config.length, place, config.seed)
        calib = self.session.calibrations.recall(
            key,
            lambda: calibrate(
                model,
                self.text,
                sequences=config.sequences,
                length=config.length,
                seed=config.seed,
                bos=config.bos,
                settings=self.session.settings,
                evaluated=like,
            ),
        )
        calib.batch = config.batch
        return calib

    @cached_property
    def held_out(self) -> Activations:
        """The original on the windows to evaluate on.

        They are of the text's held-out part or, if the configuration names a text for that, of all of it
        that is not fitted on.

        Raises:
            TextError: If a window exceeds the model's context, or too little is left.
            ConfigError: If all that there is is more than the host allows.
        """
        config, model = self.config, self.model
        check_length(model, config.length)
        other = config.held_out_text not in {None, config.text}
        read = self.held_out_text.held_out
        if other:
            read = _unseen(self.held_out_text.whole, self.text.calibration)

        def cut() -> Activations:
            windows = make_windows(
                read,
                model.tokenizer,
                count=config.held_out or None,
                length=config.length,
                bos=config.bos,
                seed=HELD_OUT_SEED,
            )
            self._check_tokens(windows)
            return Activations(model, windows, budget=budget(self.session.settings), rounded=False)

        key = (model.fingerprint, read, config.held_out, config.length, config.bos)
        held_out = self.session.held_out.recall(key, cut)
        held_out.batch = config.batch
        return held_out

    def _check_tokens(self, windows: Windows) -> None:
        """How many windows "all" are is known only now; other numbers were checked before the run."""
        tokens = self.config.sequences * self.config.length + windows.ids.numel()
        allowed = self.session.settings.limits.tokens
        if tokens > allowed:
            raise ConfigError(
                f"All {windows.count:,} held-out sequences of {windows.length} tokens and the calibration "
                f"sequences have {tokens:,} tokens; this server allows {allowed:,}.",
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
        paths = map(local_path, sources_of(source, settings))
        files = [path for path in paths if path and path.is_file()]
        return tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except OSError:  # deleted just now; whoever reads it says so
        return ()
