"""The GPU that a host lends to one function: everything passes through pickle, as between processes."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
import torch

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError
from ghostlab.jobs.record import JobView
from ghostlab.lab.requests import GenerateRequest, ProbeRequest, RunRequest, Work
from ghostlab.progress import Progress
from ghostlab.results.probe import Alteration
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.ui.service import requests, zerogpu
from ghostlab.ui.service.service import Finding, Service
from tests.helpers.fakelab import FakeLab
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit
SETTINGS = Settings(device="lent")
WEIGHT = torch.arange(6.0).reshape(3, 2).t()


class FittingLab(FakeLab):
    """With operators that are tensors; remembers those it is given back."""

    def run(self, request: RunRequest, work: Work) -> RunResult:
        assert work.on_result is not None
        keep, fitted = work.on_result, {"ghost/20:25/dense": WEIGHT}
        fitting = replace(work, on_result=lambda result: keep(replace(result, operators=fitted)))
        return replace(super().run(request, fitting), operators=fitted)


def lent(*given: Any) -> Iterator[Any]:
    """As the host's decorator: what goes in and out is pickled; closing it closes the function."""
    work = zerogpu.compute(*pickle.loads(pickle.dumps(given)))
    try:
        for news in work:
            yield pickle.loads(pickle.dumps(news))
    finally:
        work.close()  # type: ignore[attr-defined]


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> FittingLab:
    made = FittingLab()
    monkeypatch.setattr(zerogpu, "_lab", lambda _: made)
    return made


@pytest.fixture
def service(lab: FittingLab, tmp_path: Path) -> Service:
    return Service(
        SETTINGS, zerogpu.LentGpu(lent, SETTINGS, gr.Error), make_result().save(tmp_path / "example")
    )


def finish(service: Service, job_id: str) -> JobView[Finding]:
    return list(service.jobs.follow(job_id))[-1]


def test_every_kind_of_job_is_done_as_in_a_laboratory_of_ones_own(service: Service, lab: FittingLab) -> None:
    run_id = requests.run(service, "ann", RunConfig(sequences=8))
    view = finish(service, run_id)
    assert (view.state, view.texts) == ("done", {"original": " once"})
    assert torch.equal(service.result(run_id).operators["ghost/20:25/dense"], WEIGHT)
    again = requests.generate(service, "ann", run_id, "Again", "raw", 3, 0.0, 1.0)
    assert finish(service, again).state == "done"
    assert [made.text for made in service.result(again).generations] == [" again"]
    assert torch.equal(lab.of(GenerateRequest)[0].result.operators["ghost/20:25/dense"], WEIGHT)
    probed = finish(service, requests.probe(service, "ann", run_id, "ghost", [Alteration(alpha=0.5)]))
    assert probed.state == "done"
    assert lab.of(ProbeRequest)[0].alterations == (Alteration(alpha=0.5),)
    scores = requests.scores(service, "ann", RunConfig(drop=None, select="taylor"))
    assert finish(service, scores).state == "done"
    survey = finish(service, requests.atlas(service, "ann", RunConfig(sequences=8), "1-2"))
    assert survey.state == "done"


def test_a_stop_reaches_the_work_and_what_was_measured_is_kept(service: Service, lab: FittingLab) -> None:
    entered = threading.Event()
    stopped = threading.Event()

    def wait(progress: Progress) -> None:
        entered.set()
        try:
            while True:
                progress.check()
        finally:
            stopped.set()

    lab.before = wait
    run_id = requests.run(service, "ann", RunConfig())
    assert entered.wait(10)
    service.jobs.cancel(run_id)
    assert finish(service, run_id).state == "stopped"
    assert stopped.is_set(), "the GPU is given back only after the work has ended"
    assert service.result(run_id).operators


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (ConfigError("Too long.", "Shorten it."), "Too long. Shorten it."),
        (KeyError("/secret"), "Internal error (id "),
        (MemoryError(), "Internal error (id "),
    ],
)
def test_what_goes_wrong_there_is_told_as_if_it_were_here(
    service: Service, lab: FittingLab, problem: Exception, told: str
) -> None:
    def fail(_: Progress) -> None:
        raise problem

    lab.before = fail
    view = finish(service, requests.run(service, "ann", RunConfig()))
    assert view.state == "failed"
    assert view.error.startswith(told)
    assert "secret" not in view.error


def test_a_host_without_a_free_gpu_is_no_internal_error(tmp_path: Path) -> None:
    def refused(*_: Any) -> Iterator[Any]:
        raise gr.Error("You have exceeded your GPU quota", title="ZeroGPU quota exceeded")
        yield

    service = Service(SETTINGS, zerogpu.LentGpu(refused, SETTINGS, gr.Error), tmp_path)
    view = finish(service, requests.run(service, "ann", RunConfig()))
    assert view.error == "The host lends no GPU: You have exceeded your GPU quota Try again later."


def test_a_stop_is_obeyed_while_the_host_has_no_gpu_to_lend(tmp_path: Path) -> None:
    asked, granted, closed = threading.Event(), threading.Event(), threading.Event()

    def late(*_: Any) -> Iterator[Any]:
        asked.set()
        granted.wait(10)
        try:
            while True:
                yield "pulse", ()
        finally:
            closed.set()

    service = Service(SETTINGS, zerogpu.LentGpu(late, SETTINGS, gr.Error), tmp_path)
    run_id = requests.run(service, "ann", RunConfig())
    assert asked.wait(10)
    service.jobs.cancel(run_id)
    assert finish(service, run_id).state == "stopped"
    granted.set()
    assert closed.wait(10), "a GPU that comes too late is given back at once"
