"""From a finished run to a folder: what is written, what is refused, and the command that does it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from transformers import AutoModelForCausalLM

import ghostlab as gl
from ghostlab.cli import main
from ghostlab.errors import ConfigError, ResultError, StockError
from ghostlab.export import mergekit
from ghostlab.export.card import model_card
from ghostlab.export.folder import unpack
from ghostlab.lab.lab import Lab
from ghostlab.model.model import Model
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from tests.helpers.lm import tiny_lm
from tests.helpers.tiny import tiny_ids

pytestmark = pytest.mark.unit
RECOVERIES = ("ghost", "mean_shift", "replaceme_ls", "ghost,rank=4", "drop", "scalar")


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny_lm()


@pytest.fixture(scope="module")
def lab(model: Model) -> Lab:
    """A lab whose only model is a tiny one."""
    made = Lab(Settings())
    made._session.model = lambda *_: model  # type: ignore[method-assign]
    return made


@pytest.fixture(scope="module")
def result(lab: Lab) -> RunResult:
    words = np.random.default_rng(0).integers(3, 96, 6000)
    text = "paste:" + "\n\n".join(" ".join(f"w{word}" for word in part) for part in words.reshape(20, -1))
    config = gl.RunConfig(
        model="org/tiny",
        text=text,
        drop="1:3,4:5",
        recover=tuple(gl.RecoverySpec.parse(name) for name in RECOVERIES),
        sequences=12,
        length=32,
        held_out=4,
        new_tokens=0,
    )
    return lab.run(config)


def test_a_recovered_folder_is_the_model_of_the_run(
    lab: Lab, model: Model, result: RunResult, tmp_path: Path
) -> None:
    folder = lab.export(result, "ghost, rank 4", tmp_path / "out")
    again = gl.load_recovered(folder)
    expected = model.without(gl.parse_cut("1:3,4:5"), unpack(result.operators, "ghost, rank 4/"))
    assert torch.equal(again.hf(tiny_ids()).logits, expected.hf(tiny_ids()).logits)
    card = (folder / "README.md").read_text()
    run = result.runs[3]
    for said in (
        f"{run.perplexity.value:.4g}",
        f"{run.gap_closed:.1%}",
        f"{run.kl.value:.4g}",
        "base_model: org/tiny",
        "4 windows of 32 tokens from shuffled sections of its documents; no start token",
        "not with published tables",
    ):
        assert said in card
    assert f"```sh\n{result.config.to_command()}\n```" in card
    assert yaml.safe_load(card.split("---")[1])["tags"] == ["ghostlab", "pruned"]


@pytest.mark.parametrize(
    ("source", "base", "licence"),
    [
        ("embedded", "HuggingFaceTB/SmolLM2-135M-Instruct", "apache-2.0"),
        ("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B", "llama3.2"),
        ("org/tiny", "org/tiny", None),
        ("./models/mine", None, None),
    ],
)
def test_a_card_names_the_model_of_the_hub_that_it_is_made_of(
    model: Model, result: RunResult, source: str, base: str | None, licence: str | None
) -> None:
    asked = replace(result, config=replace(result.config, model=source))
    told = yaml.safe_load(model_card(model, result=asked).split("---")[1])
    assert (told.get("base_model"), told.get("license")) == (base, licence)


@pytest.mark.parametrize("label", ["mean_shift", "scalar", "replaceme_ls", "drop", "pruned"])
def test_a_stock_folder_needs_nothing(
    lab: Lab, model: Model, result: RunResult, label: str, tmp_path: Path
) -> None:
    assert lab.stock_reason(result, label) is None
    folder = lab.export(result, label, tmp_path / "out", form="stock")
    plain = AutoModelForCausalLM.from_pretrained(folder)
    expected = model.without(gl.parse_cut("1:3,4:5"), unpack(result.operators, f"{label}/"))
    with torch.no_grad():
        torch.testing.assert_close(
            plain(tiny_ids()).logits, expected.hf(tiny_ids()).logits, rtol=1e-5, atol=1e-5
        )
    assert "ordinary checkpoint" in (folder / "README.md").read_text()


def test_what_cannot_be_stock_says_why(lab: Lab, result: RunResult, tmp_path: Path) -> None:
    reason = lab.stock_reason(result, "ghost, rank 4")
    assert reason is not None
    with pytest.raises(StockError) as caught:
        lab.export(result, "ghost, rank 4", tmp_path / "out", form="stock")
    assert caught.value.message == reason
    assert not (tmp_path / "out").exists()
    assert [run.not_stock for run in result.runs] == [reason, "", "", reason, "", ""], "the run says so too"


def test_mergekit_gets_the_kept_ranges(lab: Lab, result: RunResult, tmp_path: Path) -> None:
    folder = lab.export(result, "pruned", tmp_path / "out", form="mergekit")
    recipe = yaml.safe_load((folder / "mergekit.yaml").read_text())
    assert recipe["merge_method"] == "passthrough"
    slices = [source for part in recipe["slices"] for source in part["sources"]]
    assert [part["layer_range"] for part in slices] == [[0, 1], [3, 4], [5, 6]]
    assert {part["model"] for part in slices} == {"org/tiny"}
    with pytest.raises(ConfigError, match="cannot contain operators"):
        lab.export(result, "mean_shift", tmp_path / "more", form="mergekit")


def test_the_embedded_model_is_named_as_mergekit_can_find_it(
    lab: Lab, result: RunResult, tmp_path: Path
) -> None:
    def export(source: str) -> Path:
        asked = replace(result, config=replace(result.config, model=source))
        return lab.export(asked, "pruned", tmp_path / "out", form="mergekit")

    with pytest.raises(ConfigError, match=r"does not read 'some\.gguf'"):
        export("some.gguf")
    assert "HuggingFaceTB/SmolLM2-135M-Instruct" in (export("embedded") / "mergekit.yaml").read_text()


@pytest.mark.parametrize(
    ("family", "lists"),
    [("llama", ""), ("smollm3", "no_rope_layers and layer_types"), ("qwen2", "layer_types")],
)
def test_mergekit_users_are_told_of_lists_that_it_leaves_as_they_are(
    result: RunResult, family: str, lists: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = replace(result, model=replace(result.model, family=family)).save(tmp_path / "result")
    assert main(["export", "--result", str(saved), "--mergekit", "--out", str(tmp_path / "recipe")]) == 0
    text = (tmp_path / "recipe" / "mergekit.yaml").read_text()
    assert yaml.safe_load(text)["merge_method"] == "passthrough"
    for told in (text, capsys.readouterr().out):
        assert (f"mergekit may leave {lists} in config.json" in told) == bool(lists)
        assert ("--stock" in told) == bool(lists)


@pytest.mark.parametrize(
    "broken", ["x\nmerge_method: ties", "x\r- y", "x\u2028y\x85z", "a: 'b' # c\x00", "---\n..."]
)
def test_names_with_line_breaks_break_neither_the_recipe_nor_the_card(
    model: Model, result: RunResult, broken: str
) -> None:
    changed = replace(
        result,
        config=replace(result.config, model=f"org/{broken}", revision=broken),
        model=replace(result.model, name=broken),
        cut=replace(result.cut, description=broken),
        runs=[replace(result.runs[0], label=broken)],
    )
    recipe = yaml.safe_load(mergekit.recipe(changed).replace("\x00", ""))
    assert set(recipe) == {"slices", "merge_method"}
    assert recipe["merge_method"] == "passthrough"
    sources = {source["model"] for part in recipe["slices"] for source in part["sources"]}
    assert sources == {f"org/{broken}@{broken}"}
    named = Model(model.hf, model.tokenizer, name=f"org/{broken}", note=broken)
    for card in (model_card(named), model_card(named, result=changed, run=changed.runs[0])):
        metadata = ModelCard(card).data.to_dict()
        assert set(metadata) == {"library_name", "pipeline_tag", "tags"}, "not an id of the hub"
        headings = [line for line in card.splitlines() if line.startswith("#")]
        assert len(headings) in (2, 4)


def test_labels_that_are_none_are_refused(lab: Lab, result: RunResult, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no recovery 'affine'"):
        lab.export(result, "affine", tmp_path / "out")
    with pytest.raises(ConfigError, match="Unknown export form 'zip'"):
        lab.export(result, "ghost", tmp_path / "out", form="zip")  # type: ignore[arg-type]
    twice = replace(
        result, runs=[replace(run, label=f"{run.label} {n}") for n, run in enumerate(result.runs)]
    )
    with pytest.raises(ConfigError, match="2 recoveries 'ghost'"):
        lab.export(twice, "ghost", tmp_path / "out")


def test_a_result_without_operators_says_how_to_get_them(lab: Lab, result: RunResult, tmp_path: Path) -> None:
    bare = replace(result, operators={})
    with pytest.raises(ResultError, match="holds no operators for 'ghost'") as caught:
        lab.export(bare, "ghost", tmp_path / "out")
    assert f"{result.config.to_command()} --out" in str(caught.value)
    assert lab.export(bare, "drop", tmp_path / "out").is_dir(), "a drop needs none"


def test_another_model_of_the_same_name_is_noticed(lab: Lab, result: RunResult, tmp_path: Path) -> None:
    other = replace(result, model=replace(result.model, layers=7))
    with pytest.raises(ResultError, match="another model now: 6 layers"):
        lab.export(other, "ghost", tmp_path / "out")
    strange = replace(result, operators={k.replace("1:3", "0:3"): t for k, t in result.operators.items()})
    with pytest.raises(ResultError, match="not those of this result"):
        lab.export(strange, "ghost", tmp_path / "out")


def test_the_command(
    lab: Lab,
    result: RunResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved = result.save(tmp_path / "result")
    monkeypatch.setattr("ghostlab.lab.lab.Lab", lambda _: lab)

    def export(line: str) -> int:
        return main(["export", "--result", str(saved), *shlex.split(line.replace("OUT", str(tmp_path)))])

    assert export("--method 'ghost, rank 4' --out OUT/recovered") == 0
    assert export("--method mean_shift --stock --out OUT/stock") == 0
    assert export("--mergekit --out OUT/recipe") == 0
    assert "recipe" in capsys.readouterr().out
    for name, file in {
        "recovered": "ghostlab.json",
        "stock": "config.json",
        "recipe": "mergekit.yaml",
    }.items():
        assert (tmp_path / name / file).is_file()
    assert export("--method ghost --stock --mergekit --out OUT/x") == 2
    assert export("--method nonsense --out OUT/x") == 2
    assert export("--method mean_shift --out OUT/stock") == 2
    assert "not empty" in capsys.readouterr().err
