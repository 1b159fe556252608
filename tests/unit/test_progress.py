"""Progress stays in its range, moves forward through nested parts, and obeys the token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ghostlab.errors import Cancelled
from ghostlab.progress import SILENT, CancelToken, Progress, ProgressUpdate, shared_context

pytestmark = pytest.mark.unit


def test_nested_parts_cover_the_whole_without_going_back() -> None:
    heard: list[ProgressUpdate] = []
    whole = Progress(heard.append)
    for part in (whole.part(0.0, 0.25), whole.part(0.25, 1.0)):
        for half in (part.part(0.0, 0.5), part.part(0.5, 1.0)):
            assert list(half.each("abc", "Reading")) == ["a", "b", "c"]
    fractions = [update.fraction for update in heard]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert heard[-1].message == "Reading (3/3)"
    assert fractions[3] == pytest.approx(0.125)


def test_fractions_outside_are_clamped_to_the_part() -> None:
    heard: list[ProgressUpdate] = []
    part = Progress(heard.append).part(0.2, 0.4)
    part.at(-1.0, "early")
    part.at(7.0, "late")
    assert [update.fraction for update in heard] == pytest.approx([0.2, 0.4])


def test_a_token_stops_the_next_step_and_every_part() -> None:
    token = CancelToken()
    steps = Progress(cancel=token).part(0.5, 1.0).each(range(10), "Work")
    assert [next(steps), next(steps)] == [0, 1]
    token.cancel()
    with pytest.raises(Cancelled):
        next(steps)
    with pytest.raises(Cancelled):
        Progress(cancel=token).check()


def test_silence_without_listener_or_token() -> None:
    assert list(SILENT.over(iter([1, 2]), 2, "quiet")) == [1, 2]
    assert list(SILENT.each([], "nothing")) == []


def test_a_shared_context_lasts_from_the_first_thread_to_the_last() -> None:
    seen: list[str] = []

    @shared_context
    @contextmanager
    def quiet() -> Iterator[None]:
        seen.append("quiet")
        yield
        seen.append("back")

    first, second = quiet(), quiet()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert seen == ["quiet"], "the second is still inside"
    second.__exit__(None, None, None)
    assert seen == ["quiet", "back"]
    with pytest.raises(KeyError), quiet():
        raise KeyError
    assert seen == ["quiet", "back"] * 2, "an error does not leave it on"
