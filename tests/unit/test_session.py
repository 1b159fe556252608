"""What a lab remembers between runs is never taken for something else."""

from __future__ import annotations

import json
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ghostlab.config import RunConfig
from ghostlab.cut import Block
from ghostlab.errors import MemoryLimitError, TextError
from ghostlab.lab import session as module
from ghostlab.lab.session import Prepared, Session, Shelf
from ghostlab.model.model import Model
from ghostlab.progress import SILENT
from ghostlab.settings import Settings
from ghostlab.text.corpora import PASTE
from tests.helpers.lm import tiny_lm

pytestmark = pytest.mark.unit


def test_two_pasted_texts_have_each_their_own_calibration() -> None:
    session, model = Session(Settings()), tiny_lm()
    ids = []
    for word in ("w7", "w8", "w7"):
        config = RunConfig(
            text=PASTE + "\n\n".join([f"{word} w9 " * 60] * 60), sequences=4, length=16, held_out=2
        )
        ids.append(_prepared(session, model, config).calibration.windows.ids)
    assert not torch.equal(ids[0], ids[1])
    assert torch.equal(ids[0], ids[2])


def _config(text: str, held_out_text: str | None = None) -> RunConfig:
    return RunConfig(text=text, held_out_text=held_out_text, sequences=4, length=16, held_out=2)


def _prepared(session: Session, model: Model, config: RunConfig) -> Prepared:
    text = session.text(config.text, SILENT)
    return Prepared(session, config, model, text, session.text(config.held_out_text or config.text, SILENT))


def _held_out(session: Session, model: Model, config: RunConfig) -> torch.Tensor:
    return _prepared(session, model, config).held_out.windows.ids


def _written(path: Path, word: str, first: int = 0) -> str:
    rows = [{"text": f"{word} w{number} " * 60} for number in range(first, first + 40)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def test_texts_of_one_name_are_evaluated_each_on_its_own_windows(tmp_path: Path) -> None:
    """Two pasted texts, and two files of one name in different folders, as two visitors may hand in."""
    session, model = Session(Settings()), tiny_lm()
    pasted = [PASTE + "\n\n".join([f"{word} w9 " * 60] * 60) for word in ("w7", "w8")]
    one, other = _held_out(session, model, _config(pasted[0])), _held_out(session, model, _config(pasted[1]))
    assert not torch.equal(one, other)
    files = []
    for word in ("w7", "w8"):
        (tmp_path / word).mkdir()
        files.append(_written(tmp_path / word / "notes.jsonl", word))
    one, other = _held_out(session, model, _config(files[0])), _held_out(session, model, _config(files[1]))
    assert not torch.equal(one, other)


def test_a_file_that_was_edited_is_read_again(tmp_path: Path) -> None:
    session = Session(Settings())
    source = _written(tmp_path / "notes.jsonl", "w7")
    before = session.text(source, SILENT)
    assert session.text(source, SILENT) is before
    _written(tmp_path / "notes.jsonl", "w81")
    assert session.text(source, SILENT).whole.texts[0].startswith("w81")


def test_nothing_that_was_fitted_on_is_evaluated_on(tmp_path: Path) -> None:
    session, model = Session(Settings()), tiny_lm()
    both = _written(tmp_path / "both.jsonl", "w7")
    part = _written(tmp_path / "part.jsonl", "w7", first=20)  # 20 documents of both, 20 of its own
    fitted, shown = session.text(both, SILENT), session.text(part, SILENT)
    left = module._unseen(shown.whole, fitted.calibration)
    assert 20 < len(left) < 40
    assert set(left.texts).isdisjoint(fitted.calibration.texts)
    assert _held_out(session, model, _config(both, part)).shape == (2, 16)
    with pytest.raises(TextError, match="Every document"):
        module._unseen(fitted.calibration, fitted.calibration)


def test_a_full_shelf_lets_the_oldest_go_before_the_next_is_made() -> None:
    class Heavy:
        pass

    shelf: Shelf[Heavy] = Shelf(2)
    alive: list[weakref.ref[Heavy]] = []

    def make() -> Heavy:
        assert sum(one() is not None for one in alive) < 2, "no room is made before loading"
        made = Heavy()
        alive.append(weakref.ref(made))
        return made

    for name in ("a", "b", "a", "c", "a", "d"):
        shelf.recall((name,), make)
    assert list(shelf) == [("a",), ("d",)], "the one used last stays"
    assert len(alive) == 4


def test_a_model_that_goes_takes_its_states_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, weakref.ref[Model]] = {}

    def load(name: str, **_: object) -> Model:
        others = [other for other, model in made.items() if model() is not None]
        assert len(others) < 2, "no room is made before loading"
        model = tiny_lm()
        made[name] = weakref.ref(model)
        return model

    monkeypatch.setattr(module, "load_model", load)
    session = Session(Settings())
    config = _config(PASTE + "\n\n".join(["w7 w9 " * 60] * 60))
    for name in ("a", "b", "c"):
        own = replace(config, model=name)
        model = session.model(own, SILENT)
        prepared = _prepared(session, model, own)
        prepared.calibration.moments([Block(1, 2)])
        assert len(prepared.held_out.windows.ids)
        del prepared
        del model
    assert [model() is not None for model in made.values()] == [False, True, True]


def test_a_model_that_does_not_fit_beside_others_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[Model]] = []

    def load(name: str, **_: object) -> Model:
        if name == "huge" or (name == "large" and any(model() is not None for model in kept)):
            raise MemoryLimitError("It does not fit.", "Choose a smaller one.")
        model = tiny_lm()
        kept.append(weakref.ref(model))
        return model

    monkeypatch.setattr(module, "load_model", load)
    session = Session(Settings())
    for name in ("small", "large"):
        session.model(RunConfig(model=name), SILENT)
    with pytest.raises(MemoryLimitError):
        session.model(RunConfig(model="huge"), SILENT)
    assert session.model(RunConfig(model="small"), SILENT) is not None
