"""What the app does after the page, with a laboratory that computes nothing."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, CutError, ResultError, TextError
from ghostlab.jobs.record import JobView
from ghostlab.lab.requests import GenerateRequest
from ghostlab.progress import Progress
from ghostlab.results.probe import Alteration
from ghostlab.results.run import RunResult
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.spec import RecoverySpec
from ghostlab.text import uploads
from ghostlab.text.corpora import load_text
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service
from tests.helpers.documents import DOCUMENTS
from tests.helpers.fakelab import FakeLab
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit
NEXT: tuple[Any, ...] = ("raw", 3, 0.5, 0.9)
"""Prompt format, new tokens, temperature and top p."""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return make_result().save(tmp_path / "example")


def finish(service: Service, job_id: str) -> JobView[RunResult]:
    return list(service.jobs.follow(job_id))[-1]


def test_a_run_is_a_job_whose_result_can_be_found_by_its_id(example: Path) -> None:
    service = Service(Settings(), FakeLab(), example)
    config = RunConfig(sequences=8)
    job_id = requests.run(service, "ann", config)
    assert finish(service, job_id).state == "done"
    assert service.result(job_id).config == config
    assert service.result("").config == make_result().config
    with pytest.raises(ResultError, match="no longer on this server"):
        service.result("unknown")
    assert service.find("unknown", RunResult) is None


def test_generation_keeps_the_figures_and_tells_the_truth_about_its_configuration(example: Path) -> None:
    lab = FakeLab()
    service = Service(Settings(), lab, example)
    first = requests.run(service, "ann", RunConfig(sequences=8, seed=7))
    finish(service, first)
    second = requests.generate(service, "ann", first, "Again", *NEXT)
    assert finish(service, second).state == "done"
    before, after = service.result(first), service.result(second)
    assert after.runs is before.runs, "figures that did not change must not be sent again"
    assert [made.text for made in after.generations] == [" again"]
    assert after.config == replace(
        before.config, prompt="Again", prompt_format="raw", new_tokens=3, temperature=0.5, top_p=0.9
    )
    assert lab.of(GenerateRequest)[0].result.config == after.config
    assert [made.text for made in before.generations] == [" once"]


def test_generation_from_the_example_runs_its_configuration_first(example: Path) -> None:
    lab = FakeLab()
    service = Service(Settings(), lab, example)
    finish(service, requests.generate(service, "ann", "", "Again", *NEXT))
    assert lab.asked == [
        replace(
            make_result().config,
            prompt="Again",
            prompt_format="raw",
            new_tokens=3,
            temperature=0.5,
            top_p=0.9,
        )
    ]


def test_bad_requests_are_refused_before_anything_is_queued(example: Path) -> None:
    lab = FakeLab()
    service = Service(Settings("public", limits=PUBLIC_LIMITS), lab, example)
    with pytest.raises(CutError, match="overlap"):
        requests.run(service, "ann", RunConfig(drop="3:6,5:8"))
    with pytest.raises(ConfigError, match="more than this server allows"):
        requests.run(service, "ann", RunConfig(sequences=4096))
    with pytest.raises(ConfigError, match="'Prompt' is empty"):
        requests.generate(service, "ann", "", "  ", *NEXT)
    with pytest.raises(ConfigError, match="'New tokens' is 0"):
        requests.generate(service, "ann", "", "Hello", "raw", 0, 0.5, 0.9)
    for config, problem in (
        (RunConfig(recover=(RecoverySpec("magic"),)), "There is no .* 'magic'"),
        (RunConfig(recover=(RecoverySpec.parse("drop,rank=2"),)), "no option 'rank'"),
        (RunConfig(drop=None, select="magic"), "There is no criterion 'magic'"),
        (RunConfig(drop=None, select="shortgpt,windows=2"), "no option 'windows'"),
    ):
        with pytest.raises(ConfigError, match=problem):
            requests.run(service, "ann", config)
    assert lab.asked == []


def test_a_cut_that_cannot_fit_a_known_model_is_refused_before_anything_is_queued(
    example: Path, tmp_path: Path
) -> None:
    lab = FakeLab()
    service = Service(Settings(), lab, example)
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 4, "hidden_size": 8}', encoding="utf-8")
    for model, drop, problem in (
        ("embedded", "40:50", "Block 40:50 lies outside the model. It has 30 layers, 0 to 29"),
        ("embedded", "0:30", "This drops all 30 layers. Keep at least one"),
        (str(tmp_path), "2:5", "Block 2:5 lies outside the model. It has 4 layers"),
    ):
        with pytest.raises(CutError, match=problem):
            requests.run(service, "ann", RunConfig(model=model, drop=drop))
    assert lab.asked == []
    unseen = RunConfig(model="some/unseen-model", drop="40:50")
    finish(service, requests.run(service, "ann", unseen))
    finish(service, requests.run(service, "ann", RunConfig(drop=None, select="shortgpt")))
    assert lab.asked[0] == unseen


def test_a_stop_while_generating_keeps_the_figures(example: Path) -> None:
    entered = threading.Event()

    def wait(progress: Progress) -> None:
        entered.set()
        while True:
            progress.check()

    service = Service(Settings(), FakeLab(wait), example)
    job_id = requests.run(service, "ann", RunConfig())
    assert entered.wait(10)
    service.jobs.cancel(job_id)
    service.jobs.cancel(job_id)
    assert finish(service, job_id).state == "stopped"
    assert service.result(job_id).runs


def test_a_damaged_example_does_not_stop_the_app(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{", encoding="utf-8")
    assert Service(Settings(), FakeLab(), tmp_path).example is None
    with pytest.raises(ResultError, match="Press Run first"):
        Service(Settings(), FakeLab(), tmp_path / "absent").result("")


# -- uploaded texts -----------------------------------------------------------------------------------------


@pytest.fixture(params=["local", "public"])
def host(request: pytest.FixtureRequest, tmp_path: Path, example: Path) -> Service:
    settings = Settings(cache=tmp_path / "cache")
    if request.param == "public":
        settings = replace(settings, profile="public", limits=PUBLIC_LIMITS)
    return Service(settings, FakeLab(), example)


def a_file(folder: Path, name: str = "notes.txt", text: str = "\n\n".join(DOCUMENTS[:30])) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_an_uploaded_text_is_used_by_its_own_page_only(host: Service, tmp_path: Path) -> None:
    sent = a_file(tmp_path, "my nötes.md")
    source, about = host.uploads.take(sent, "ann")
    assert about.startswith("my n_tes.md: 1 document, ")
    assert not sent.exists(), "only the copy with the secret name stays"
    config = RunConfig(text=source, sequences=8)
    assert finish(host, requests.run(host, "ann", config)).state == "done"
    assert load_text(source, settings=host.settings).name == "my n_tes.md"
    mixture = RunConfig(text=f"wikipedia+2*{source}")
    for borrowed in (config, RunConfig(held_out_text=source), mixture):
        with pytest.raises(TextError, match="uploaded on another page"):
            requests.run(host, "eve", borrowed)
    handed = host.jobs.put("file", replace(make_result(), config=config, operators={}))
    label = make_result().runs[0].label
    with pytest.raises(TextError, match="uploaded on another page"):  # it would be run again
        requests.probe(host, "eve", handed, label, [Alteration()])
    with pytest.raises(TextError, match="uploaded on another page"):
        requests.tasks(host, "eve", handed, ["piqa"], 5, False)


def test_what_cannot_be_used_is_told_at_once_and_not_kept(host: Service, tmp_path: Path) -> None:
    for name, text, told in (
        ("a.pdf", "x", "not a supported kind"),
        ("a.txt", "x" * (host.settings.limits.upload_bytes + 1), "too large for this host"),
        ("a.jsonl", "{broken", "Line 1 of a.jsonl is not JSON"),
        ("a.txt", "short", "cannot be divided"),
    ):
        with pytest.raises(TextError, match=told):
            host.uploads.take(a_file(tmp_path, name, text), "ann")
    assert list((host.settings.cache / "uploads").rglob("a.*")) == []


def test_a_public_host_takes_no_file_that_unpacks(tmp_path: Path) -> None:
    assert ".parquet" in uploads.suffixes(Settings())
    assert ".parquet" not in uploads.suffixes(Settings("public", limits=PUBLIC_LIMITS))


def test_old_uploads_make_room(host: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "KEPT", 3)
    sources = []
    for order in range(4):
        sources.append(host.uploads.take(a_file(tmp_path), "ann")[0])
        folder = uploads.find(sources[-1], host.settings).parent
        os.utime(folder, (folder.stat().st_mtime - 100 + order,) * 2)
    with pytest.raises(TextError, match="was not found"):
        uploads.find(sources[0], host.settings)
    monkeypatch.setattr(uploads, "KEPT", 9)
    kept = [uploads.find(source, host.settings).parent for source in sources[1:]]
    os.utime(kept[1], (0, 0))
    host.uploads.take(a_file(tmp_path), "ann")
    assert [folder.exists() for folder in kept] == [True, False, True], "one is older than a day"


@pytest.mark.parametrize(
    "name", ["upload:../x", "upload:notes.txt/..", "upload:", "upload:a/b/c", "upload:../../etc/passwd"]
)
def test_the_name_of_an_upload_leads_nowhere_else(name: str) -> None:
    with pytest.raises(TextError, match="was not found"):
        uploads.find(name, Settings())


def test_two_uploads_at_once_make_room_once(
    host: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "KEPT", 2)
    paths = [a_file(tmp_path, f"{number}.txt") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        sources = [source for source, _ in pool.map(lambda path: host.uploads.take(path, "ann"), paths)]
    assert len(set(sources)) == 8
    assert len(host.uploads._owners) == 2
