"""What the block picker draws: outlines of models, told without torch or counted, and a criterion's scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from ghostlab.errors import ModelNotFoundError
from ghostlab.model.catalog import CATALOG, Outline
from ghostlab.model.outline import config_folder, read_plain, stored
from ghostlab.model.preflight import measure
from ghostlab.results.records import SelectionInfo
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.ui.sidebar import picker
from tests.helpers import catalog
from tests.helpers.results import LAYERS, make_result, with_selection
from tests.helpers.tiny import DEPTH, FAMILY_OPTIONS, tiny_model

pytestmark = pytest.mark.unit
PUBLIC = Settings("public", limits=PUBLIC_LIMITS)


def a_folder(folder: Path, **config: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def drawn(model: str, settings: Settings = Settings()) -> list[dict[str, object]]:  # noqa: B008
    return [html.props for html in picker.look(model, None, settings)]


def test_the_stored_outlines_are_those_of_the_models_in_the_catalogue() -> None:
    for source, counted in catalog.measured().items():
        assert stored(source) == counted, "run  python -m tests.helpers.catalog"
    assert all(stored(entry.source) == entry.outline for entry in CATALOG)
    assert stored("org/unknown") is None


@pytest.mark.parametrize("family", FAMILY_OPTIONS)
def test_every_family_is_counted_block_by_block(family: str) -> None:
    model = tiny_model(family)
    outline = measure(model.config, "tiny")
    assert len(outline.blocks) == DEPTH
    assert outline.total == model.num_parameters()
    assert all(0 < part < whole for part, whole in zip(outline.attention, outline.blocks, strict=True))
    assert sum(outline.blocks) + model.get_input_embeddings().weight.numel() <= outline.total
    assert outline.head == model.get_output_embeddings().weight.numel()
    marked = family in {"gemma2", "gemma3_text"}
    assert bool(outline.layer_types) == marked


def test_a_configuration_alone_tells_number_width_and_types(tmp_path: Path) -> None:
    types = ["sliding_attention", "full_attention"]
    for name, config, plain in (
        (
            "a",
            {"num_hidden_layers": 2, "hidden_size": 8, "layer_types": types},
            Outline("m", 2, 8, tuple(types)),
        ),
        ("b", {"n_layer": 12, "n_embd": 768}, Outline("m", 12, 768)),
        ("c", {"num_hidden_layers": 2, "hidden_size": 8, "layer_types": types[:1] * 2}, Outline("m", 2, 8)),
    ):
        assert read_plain(a_folder(tmp_path / name, **config), "m") == plain


def test_what_does_not_say_how_many_blocks_it_has_is_told(tmp_path: Path) -> None:
    for name, config in (("none", {}), ("many", {"n_layer": 10**9}), ("text", {"n_layer": "six"})):
        (shown,) = drawn(str(a_folder(tmp_path / name, **config)))
        assert shown["outline"] is None
        assert f"config.json of {name} does not say how many layers" in str(shown["note"])
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "config.json").write_text("[1]")
    assert "does not say" in str(drawn(str(tmp_path / "list"))[0]["note"])
    bad = tiny_model().config
    bad.num_attention_heads, bad.head_dim = 0, None
    bad.to_json_file(tmp_path / "list" / "config.json", use_diff=False)
    plain, told = drawn(str(tmp_path / "list"))
    assert plain["outline"] is not None
    assert "config.json" in str(told["note"])
    assert "There is no model in" in str(drawn(str(tmp_path))[0]["note"])


def test_a_folder_is_drawn_at_once_and_counted_after(tmp_path: Path) -> None:
    model = tiny_model("gemma3_text")
    model.config.save_pretrained(tmp_path / "mine")
    plain, counted = (shown["outline"] for shown in drawn(str(tmp_path / "mine")))
    assert plain == {**Outline("mine", DEPTH, 32, tuple(model.config.layer_types)).to_dict()}
    assert counted == measure(model.config, "mine").to_dict()


def test_a_hub_model_is_drawn_from_the_cache_where_the_hub_is_not_to_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert config_folder("org/name", None, PUBLIC) is None
    assert drawn("org/a--b")[0]["note"] == "'org/a--b' is not a hub id. Give org/name."
    assert "once it has been loaded" in str(drawn("org/name")[0]["note"])
    model = tmp_path / "models--org--name"
    a_folder(model / "snapshots" / "abc", n_layer=4, n_embd=8)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("abc")
    assert config_folder("org/name", None, PUBLIC) == model / "snapshots" / "abc"
    assert drawn("org/name")[0]["outline"] == Outline("org/name", 4, 8).to_dict()


def test_a_public_host_looks_at_no_folder(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "secret", n_layer=4, n_embd=8)
    with pytest.raises(ModelNotFoundError, match="reads no local files"):
        config_folder(str(folder), None, PUBLIC)
    (shown,) = drawn(str(folder), settings=PUBLIC)
    assert shown["outline"] is None


def test_scores_are_bars_where_their_block_starts() -> None:
    info = with_selection(make_result()).selection
    assert info is not None
    bars = picker.scores(info)
    assert bars is not None
    assert [height is None for height in bars["heights"]] == [False] * 26 + [True] * (LAYERS - 26)
    assert min(h for h in bars["heights"] if h is not None) == bars["heights"][20] == pytest.approx(0.06)
    assert bars["heights"][0] == pytest.approx(1)
    assert bars["words"][20] == "streamline score of 20:25 0.0200"
    assert bars["chosen"] == "20:25"
    assert bars["legend"] == "streamline from that layer on: shortest goes first"


def test_scores_of_layers_that_are_missing_or_equal() -> None:
    info = SelectionInfo("x", "words", ["0:1", "1:2", "2:3"], [3.0, float("nan"), 3.0], "0:1")
    bars = picker.scores(info)
    assert bars is not None
    assert bars["heights"] == [pytest.approx(0.06), None, pytest.approx(0.06)]
    assert bars["words"] == ["x score 3.00", "", "x score 3.00"]
    assert bars["legend"] == "x: shortest goes first"
