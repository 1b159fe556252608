"""Stands in for the host's package ``spaces``: the decorated generator runs in a forked process, one at a time.

As there: arguments and news are pickled, the process is kept for the next call, it looks whether to stop after
each thing that is said, and what it changes is lost to the server.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from typing import Any

END = "end"


def GPU(task: Callable[..., Iterator[Any]], duration: Callable[..., int]) -> Callable[..., Iterator[Any]]:
    """Decorate the one function; a second one is refused."""
    assert "torch" not in sys.modules, "spaces comes before torch"
    assert not hasattr(GPU, "task"), "one function only: two would not share a loaded model"
    GPU.task = task
    context = multiprocessing.get_context("fork")
    asked, said, stop = context.SimpleQueue(), context.SimpleQueue(), context.Event()

    def worker() -> None:
        while True:
            given = asked.get()
            stop.clear()
            news = task(*given)
            for item in news:
                if stop.is_set():
                    news.close()
                    break
                said.put(item)
            said.put(END)

    @functools.cache
    def process() -> Any:
        made = context.Process(target=worker, daemon=True)
        made.start()
        return made

    def lent(*given: Any) -> Iterator[Any]:
        print(f"a GPU was lent for {duration(*given)} s", flush=True)
        process()
        asked.put(given)
        try:
            while (item := said.get()) != END:
                yield item
        except GeneratorExit:
            stop.set()
            while said.get() != END:
                pass
            raise

    return lent


def gradio_auto_wrap(handler: Any) -> Any:
    """Gradio asks for this on every Space; unless told otherwise it changes nothing."""
    return handler
