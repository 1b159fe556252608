"""Several texts as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghostlab.errors import TextError
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.text.corpora import load_text
from ghostlab.text.documents import Documents, Protocol, Text
from ghostlab.text.mixture import Part, mix, parse_mixture

pytestmark = pytest.mark.unit

PUBLIC = Settings("public", limits=PUBLIC_LIMITS)


def test_the_form_of_a_mixture() -> None:
    assert parse_mixture("wikipedia+novels") == [Part("wikipedia", 1.0), Part("novels", 1.0)]
    assert parse_mixture("0.75*wikipedia + .25 * hf:a/b:test") == [
        Part("wikipedia", 0.75),
        Part("hf:a/b:test", 0.25),
    ]
    for wrong in ("wikipedia+", "0*wikipedia+novels", "1.2.3*a+b"):
        with pytest.raises(TextError, match="Invalid mixture"):
            parse_mixture(wrong)
    with pytest.raises(TextError, match="twice"):
        parse_mixture("a+2*a")


def made(name: str, count: int, size: int) -> Text:
    def part(mark: str) -> Documents:
        texts = tuple(f"{name} {mark} {i} ".ljust(size, "x") for i in range(count))
        return Documents(name, texts, Protocol("GPTQ", "\n\n"))

    return Text(name, name.title(), f"licence of {name}", part("c"), part("h"), part("w"))


def test_shares_are_those_of_the_weights_in_every_part() -> None:
    one, other = made("one", 40, 100), made("other", 50, 300)
    found = mix([one, other], [Part("one", 1.0), Part("other", 3.0)], "one+3*other")
    for part in (found.calibration, found.held_out, found.whole):
        ours = sum(len(text) for text in part if text.startswith("one"))
        assert ours / part.characters == pytest.approx(0.25, abs=0.01)
        assert ours == 4000, "as much as the shares allow"
        assert part.protocol is None
    assert found.calibration.texts[40:42] == other.calibration.texts[:2]
    assert found.licence == "licence of one; licence of other"
    assert found.title == "1*one + 3*other"
    assert not set(found.calibration) & set(found.held_out)


def test_built_in_texts_mix_and_files_with_a_plus_are_files(tmp_path: Path) -> None:
    found = load_text("wikipedia+novels", settings=PUBLIC)
    assert found.name == "wikipedia+novels"
    assert found.title == "Wikipedia articles (SQuAD) + Novels (LAMBADA)"
    novels = set(load_text("novels").calibration)
    ours = sum(len(text) for text in found.calibration if text in novels)
    assert ours / found.calibration.characters == pytest.approx(0.5, abs=0.02)
    path = tmp_path / "a+b.txt"
    path.write_text("One paragraph of text.\n\n" * 20)
    assert load_text(str(path)).name == "a+b.txt"
    with pytest.raises(TextError, match="not a text that this server offers"):
        load_text(f"wikipedia+{path}", settings=PUBLIC)
