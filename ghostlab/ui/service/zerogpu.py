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
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any, cast

from ghostlab.errors import BusyError, Cancelled, GhostlabError
from ghostlab.lab.requests import Answer, GenerateRequest, ProbeRequest, Request, Work
from ghostlab.progress import CancelToken
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.ui.service.laboratory import Laboratory, load, real

PULSE = 0.5
"""Seconds: the host looks whether to stop only when something is said, so that something always is."""
News = tuple[str, tuple[Any, ...]]
"""Name of a callback and its arguments; or ``done``, ``refused``, ``broken`` or ``pulse``."""
_LOG = logging.getLogger(__name__)


def seconds(_: Settings, request: Request[Any], *__: Any) -> int:
    """How long the GPU is asked for; the host takes it off the visitor's daily allowance as it is used."""
    return 45 if isinstance(request, GenerateRequest | ProbeRequest) else 90


def compute(settings: Settings, request: Request[Any], callbacks: Sequence[str]) -> Iterator[News]:
    """Do one thing in a laboratory and say how it goes; stops soon after it is closed.

    Args:
        settings: The host's; the device is chosen here, where there is a GPU.
        request: Results in it may hold operators as bytes.
        callbacks: Names of those that are listened to.
    """
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    cancel = CancelToken()
    sinks: dict[str, Any] = {name: partial(_say, news, name) for name in callbacks}

    def work() -> None:
        try:
            answer = _lab(settings).call(_unpacked(request), Work(cancel=cancel, **sinks))
            _say(news, "done", answer)
        except GhostlabError as error:
            _say(news, "refused", error)
        except BaseException as error:
            _LOG.exception("%s failed in the GPU's process", type(request).__name__)
            _say(news, "broken", type(error).__name__)

    thread = _thread(work)
    try:
        for word in _pulsed(news):
            yield word
            if word[0] in ("done", "refused", "broken"):
                break
    finally:
        cancel.cancel()
        thread.join()  # the GPU is given back only when nothing computes on it any more


@dataclass(frozen=True)
class LentGpu:
    """A :class:`Laboratory` whose work is done by :func:`compute`.

    Attributes:
        borrowed: :func:`compute`, as the host decorated it.
        refusal: What the host raises, with a ``message``, where no GPU is free or the visitor's allowance is
            used up.
    """

    borrowed: Callable[..., Iterator[News]]
    settings: Settings
    refusal: type[Exception]

    def call(self, request: Request[Answer], work: Work | None = None) -> Answer:
        """As :meth:`Laboratory.call`."""
        load()  # before the fork, which inherits what is imported and any lock that is half way
        work = work or Work()
        cancel, sinks = work.cancel, work.callbacks
        until = 0.0
        with self._listening(self.settings, _packed(request), tuple(sinks)) as news:
            for name, values in news:
                if name == "done":
                    return cast(Answer, _unpacked(values[0]))
                if name == "refused":
                    raise values[0]
                if name == "broken":
                    raise RuntimeError(f"{values[0]} in the GPU's process")
                if name in sinks:
                    sinks[name](*map(_unpacked, values))
                if cancel is not None and cancel.cancelled:
                    # what was said before the stop is still heard: it may be a result
                    until = until or time.monotonic() + PULSE
                    if name == "pulse" or time.monotonic() > until:
                        raise Cancelled
        raise AssertionError("news has no end")

    @contextmanager
    def _listening(self, *arguments: Any) -> Iterator[Iterator[News]]:
        """What the GPU's process says, word by word, and a pulse where it says nothing.

        The host answers only once it lends a GPU, which may take minutes; it is asked in a thread of its own,
        so that a stop is obeyed meanwhile. What comes of the question then is closed as soon as it speaks.
        """
        news: queue.SimpleQueue[News] = queue.SimpleQueue()
        lent, enough = threading.Event(), threading.Event()

        def listen() -> None:
            try:
                with closing(cast(Any, self.borrowed(*arguments))) as words:
                    for word in words:
                        lent.set()
                        news.put(word)
                        if enough.is_set():
                            return
                news.put(("broken", ("an end without a word",)))
            except self.refusal as error:
                reason = getattr(error, "message", str(error))
                news.put(("refused", (BusyError(f"The host lends no GPU: {reason}", "Try again later."),)))
            except BaseException as error:
                _LOG.exception("the host failed to lend a GPU")
                news.put(("broken", (type(error).__name__,)))

        thread = _thread(listen)  # the host knows its visitor by the context
        try:
            yield _pulsed(news)
        finally:
            enough.set()
            if lent.is_set():
                thread.join()  # the next job finds the GPU free


def _thread(work: Callable[[], None]) -> threading.Thread:
    """Start work in a thread that carries the caller's context variables."""
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    return thread


@cache
def _lab(settings: Settings) -> Laboratory:
    """The laboratory of this process, which keeps the model for the next call."""
    return real(settings)


def _pulsed(news: queue.SimpleQueue[News]) -> Iterator[News]:
    """Word by word, and a pulse where nothing is said."""
    while True:
        try:
            yield news.get(timeout=PULSE)
        except queue.Empty:
            yield "pulse", ()


def _say(news: queue.SimpleQueue[News], name: str, *given: Any) -> None:
    news.put((name, tuple(map(_packed, given))))


def _packed(value: Any) -> Any:
    """The value fit for another process: tensors as bytes, for shared memory ends with its owner."""
    if isinstance(value, Request):
        return _each(value, _packed)
    if not isinstance(value, RunResult) or not value.operators:
        return value
    from safetensors.torch import save

    held = {name: tensor.cpu().contiguous() for name, tensor in value.operators.items()}
    return replace(value, operators={"packed": save(held)})


def _unpacked(value: Any) -> Any:
    """The value as it was before :func:`_packed`."""
    if isinstance(value, Request):
        return _each(value, _unpacked)
    if not isinstance(value, RunResult) or "packed" not in value.operators:
        return value
    from safetensors.torch import load

    return replace(value, operators=load(value.operators["packed"]))


def _each(request: Request[Any], change: Callable[[Any], Any]) -> Request[Any]:
    """The request with each of its fields changed."""
    return replace(request, **{field.name: change(getattr(request, field.name)) for field in fields(request)})
