"""How a text is divided, and its documents into sections."""

from typing import Any

import pytest

from ghostlab.errors import TextError
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.text.corpora import load_text
from ghostlab.text.documents import divide, sections
from tests.helpers.documents import DOCUMENTS

pytestmark = pytest.mark.unit

LOCAL = Settings()
PUBLIC = Settings("public", limits=PUBLIC_LIMITS)


def split(texts: list[str]) -> Any:
    return divide(texts, name="t", title="T", licence="L")


def test_no_document_is_in_both_parts_and_none_is_lost() -> None:
    text = split(DOCUMENTS + DOCUMENTS[:50])
    calibration, held_out = set(text.calibration), set(text.held_out)
    assert not calibration & held_out
    assert calibration | held_out == set(DOCUMENTS)
    assert len(text.calibration) + len(text.held_out) == len(text.whole) == 500
    assert 0.15 < len(held_out) / 500 < 0.25


def test_the_division_depends_on_nothing_but_the_document() -> None:
    held_out = set(split(DOCUMENTS).held_out)
    assert set(split(DOCUMENTS[::-1]).held_out) == held_out
    assert set(split(DOCUMENTS[:100]).held_out) == held_out & set(DOCUMENTS[:100])


def test_both_parts_keep_the_order_of_the_source() -> None:
    text = split(DOCUMENTS)
    for part in (text.calibration, text.held_out, text.whole):
        assert list(part) == sorted(part, key=DOCUMENTS.index)


def test_one_document_is_cut_once_between_paragraphs() -> None:
    paragraphs = [f"Paragraph {i}." + " word" * 40 for i in range(50)]
    text = split(["\n\n".join(paragraphs)])
    (first,), (last,) = text.calibration.texts, text.held_out.texts
    assert f"{first}\n\n{last}" == "\n\n".join(paragraphs).strip()
    assert last.startswith("Paragraph 40.")
    assert text.calibration.characters == len(first)


def test_a_document_without_paragraphs_is_cut_between_sentences() -> None:
    text = split(["This is a sentence about the sea. " * 100])
    assert text.held_out.texts[0].startswith("This is")
    assert text.calibration.texts[0].endswith("sea.")


@pytest.mark.parametrize("content", ["", "  \n\n ", "oneword" * 50])
def test_what_cannot_be_divided_is_refused(content: str) -> None:
    with pytest.raises(TextError):
        load_text(f"paste:{content}")


def test_lone_surrogates_do_not_get_through() -> None:
    text = load_text("paste:A \ud800 sign. " * 40)
    assert "\ud800" not in text.whole.texts[0]


def test_sections_are_the_document_again_and_of_about_the_size() -> None:
    document = "\n\n".join(f"Paragraph {i}. " + "word " * (i % 90) for i in range(200))
    pieces = sections(document, 1000)
    assert "".join("".join(pieces).split()) == "".join(document.split())
    assert all(400 <= len(piece) <= 1500 for piece in pieces)
    assert sections("short", 1000) == ("short",)
    assert "".join(sections("x" * 5000, 1000)) == "x" * 5000
