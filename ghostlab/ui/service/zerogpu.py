"""ZeroGPU: a host that lends its GPU to one function at a time, in a process forked for it.

What goes into that process and what comes out is pickled, and whatever the process changes is lost to the
server. So there is one function, :func:`compute`, for everything that computes: it keeps its own
:class:`ghostlab.lab.lab.Lab`, and says as it goes what a laboratory says through callbacks. :class:`LentGpu`,
in the server, turns that back into callbacks. Written after the source of ``spaces`` 0.51.
"""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, cast

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.errors import BusyError, Cancelled, GhostlabError
from ghostlab.progress import CancelToken
from ghostlab.results.atlas import Atlas
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot
from ghostlab.settings import Settings
from ghostlab.ui import registry
from ghostlab.ui.service.laboratory import Laboratory

PULSE = 0.5
"""Seconds: the host looks whether to stop only when something is said, so that something always is."""
News = tuple[str, tuple[Any, ...]]
"""Name of a callback and its arguments; or ``done``, ``refused``, ``broken`` or ``pulse``."""
_LOG = logging.getLogger(__name__)
_labs: dict[Settings, Laboratory] = {}


def seconds(_: Settings, method: str, *__: Any) -> int:
    """How long the GPU is asked for; the host takes it off the visitor's daily allowance as it is used."""
    return 90 if method in ("run", "atlas", "score", "evaluate") else 45


def compute(
    settings: Settings, method: str, args: Sequence[Any], options: Mapping[str, Any], told: Sequence[str]
) -> Iterator[News]:
    """Do one thing in a laboratory and say how it goes; stops soon after it is closed.

    Args:
        settings: The host's; the device is chosen here, where there is a GPU.
        method, args, options: What to call; results may hold operators as bytes.
        told: Names of the callbacks that are listened to.
    """
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    cancel = CancelToken()
    sinks = {name: partial(_say, news, name) for name in told}

    def work() -> None:
        try:
            found = getattr(_lab(settings), method)(*map(_unpacked, args), **options, **sinks, cancel=cancel)
            _say(news, "done", found)
        except GhostlabError as error:
            _say(news, "refused", error)
        except BaseException as error:
            _LOG.exception("%s failed in the GPU's process", method)
            _say(news, "broken", type(error).__name__)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        name = ""
        while name not in ("done", "refused", "broken"):
            try:
                name, given = news.get(timeout=PULSE)
            except queue.Empty:
                name, given = "pulse", ()
            yield name, given
    finally:
        cancel.cancel()
        thread.join()  # the GPU is given back only when nothing computes on it any more


class LentGpu:
    """A :class:`Laboratory` whose work is done by :func:`compute`.

    Args:
        borrowed: :func:`compute`, as the host decorated it.
        settings: Handed over with each call.
    """

    def __init__(self, borrowed: Callable[..., Iterator[News]], settings: Settings) -> None:
        self._borrowed = borrowed
        self._settings = settings

    def run(self, config: RunConfig, **options: Any) -> RunResult:
        """As :meth:`Laboratory.run`."""
        return cast(RunResult, self._call("run", (config,), options))

    def generate(self, result: RunResult, **options: Any) -> Sequence[Generation]:
        """As :meth:`Laboratory.generate`."""
        return cast(Sequence[Generation], self._call("generate", (result,), options))

    def atlas(self, config: RunConfig, lengths: Sequence[int], **options: Any) -> Atlas:
        """As :meth:`Laboratory.atlas`."""
        return cast(Atlas, self._call("atlas", (config, lengths), options))

    def score(self, config: RunConfig, **options: Any) -> SelectionInfo:
        """As :meth:`Laboratory.score`."""
        return cast(SelectionInfo, self._call("score", (config,), options))

    def evaluate(self, source: RunResult, tasks: Sequence[str], **options: Any) -> ZeroShot:
        """As :meth:`Laboratory.evaluate`."""
        return cast(ZeroShot, self._call("evaluate", (source, tasks), options))

    def probe(self, result: RunResult, label: str, *asked: Alteration, **options: Any) -> Sequence[Probe]:
        """As :meth:`Laboratory.probe`."""
        return cast(Sequence[Probe], self._call("probe", (result, label, *asked), options))

    def _call(self, method: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
        registry.load()  # before the fork, which inherits what is imported and any lock that is half way
        cancel: CancelToken | None = options.pop("cancel", None)
        sinks = {name: value for name, value in options.items() if callable(value)}
        plain = {name: value for name, value in options.items() if name not in sinks and value is not None}
        asked = (self._settings, method, [_packed(arg) for arg in args], plain, tuple(sinks))
        until = 0.0
        with _Listener(self._borrowed, asked) as heard:
            for name, given in heard:
                if name == "done":
                    return _unpacked(given[0])
                if name == "refused":
                    raise given[0]
                if name == "broken":
                    raise RuntimeError(f"{given[0]} in the GPU's process")
                if name in sinks:
                    sinks[name](*map(_unpacked, given))
                if cancel is not None and cancel.cancelled:
                    # what was said before the stop is still heard: it may be a result
                    until = until or time.monotonic() + PULSE
                    if name == "pulse" or time.monotonic() > until:
                        raise Cancelled
        raise RuntimeError("the GPU's process ended without a word")


class _Listener:
    """What the GPU's process says, word by word, and a pulse where it says nothing.

    The host answers only once it lends a GPU, which may take minutes; it is asked in a thread of its own, so
    that a stop is obeyed meanwhile. What comes of the question then is closed as soon as it speaks.
    """

    def __init__(self, borrowed: Callable[..., Iterator[News]], asked: tuple[Any, ...]) -> None:
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._lent = False
        self._enough = threading.Event()
        carried = contextvars.copy_context()  # the host knows its visitor by it
        self._thread = threading.Thread(target=carried.run, args=(self._listen, borrowed, asked), daemon=True)

    def __enter__(self) -> Iterator[News]:
        self._thread.start()
        return self._words()

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        if self._lent:
            self._thread.join()  # the next job finds the GPU free

    def _words(self) -> Iterator[News]:
        while True:
            try:
                name, given = self._news.get(timeout=PULSE)
            except queue.Empty:
                name, given = "pulse", ()
            else:
                self._lent = True
            if name == "end":
                return
            if name == "busy":
                raise BusyError(f"The host lends no GPU: {given[0]}", "Try again later.")
            yield name, given

    def _listen(self, borrowed: Callable[..., Iterator[News]], asked: tuple[Any, ...]) -> None:
        try:
            with closing(cast(Any, borrowed(*asked))) as heard:
                for word in heard:
                    self._news.put(word)
                    if self._enough.is_set():
                        break
            self._news.put(("end", ()))
        except gr.Error as error:  # the host's own: no GPU is free, or the visitor's allowance is used up
            self._news.put(("busy", (error.message,)))
        except BaseException as error:
            _LOG.exception("the host failed to lend a GPU")
            self._news.put(("broken", (type(error).__name__,)))


def _lab(settings: Settings) -> Laboratory:
    """The laboratory of this process, which keeps the model for the next call."""
    if settings not in _labs:
        registry.load()
        from ghostlab.lab.lab import Lab

        _labs[settings] = Lab(settings)
    return _labs[settings]


def _say(news: queue.SimpleQueue[News], name: str, *given: Any) -> None:
    news.put((name, tuple(map(_packed, given))))


def _packed(value: Any) -> Any:
    """The value fit for another process: tensors as bytes, for shared memory ends with its owner."""
    if not isinstance(value, RunResult) or not value.operators:
        return value
    from safetensors.torch import save

    held = {name: tensor.cpu().contiguous() for name, tensor in value.operators.items()}
    return replace(value, operators={"packed": save(held)})


def _unpacked(value: Any) -> Any:
    """The value as it was before :func:`_packed`."""
    if not isinstance(value, RunResult) or "packed" not in value.operators:
        return value
    from safetensors.torch import load

    return replace(value, operators=load(value.operators["packed"]))
