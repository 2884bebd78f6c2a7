"""Vocabularies of words and of subwords: numbers, counts, folders, and folders that are damaged."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.examples.tokens import FILLING, UNKNOWN, Vocabulary, pieces_of
from cdlm_lab.models.matching import DocumentMatcher, HierarchicalConfig

WORDS = ("rain", ".", "été", "don", "'")


@pytest.fixture
def words() -> Vocabulary:
    return Vocabulary.of_words(WORDS)


@pytest.fixture
def subwords(tokenizer) -> Vocabulary:
    """Of [PAD] [UNK] [CLS] [SEP] [MASK] w0 to w299 <doc-s> </doc-s>, in this order."""
    return Vocabulary.of_tokenizer(tokenizer)


def numbers(vocabulary: Vocabulary, sentence: str, most: int = 99) -> list[int]:
    found = vocabulary.numbers(sentence, most=most)
    assert found.dtype == np.int64
    return found.tolist()


def test_the_two_numbers_in_front():
    assert (FILLING, UNKNOWN) == (0, 1)


def test_pieces():
    assert pieces_of(" Don't!? \n3.50 snake_case ÉTÉ\u00a0– €5\u2028") == [
        "don", "'", "t", "!", "?", "3", ".", "50", "snake_case", "été", "–", "€", "5"
    ]  # fmt: skip


def test_words(words):
    assert len(words) == 7
    assert numbers(words, "Rain. Don't go,  ÉTÉ rain") == [2, 3, 5, 6, 1, 1, 1, 4, 2]
    assert numbers(words, "Rain. Don't go", most=3) == [2, 3, 5]
    assert numbers(words, "") == numbers(words, " \n") == [UNKNOWN]


def test_subwords(subwords, tokenizer):
    assert len(subwords) == len(set(tokenizer.get_vocab().values())) + 2 == 309
    assert numbers(subwords, "w0 w7 unheard") == [7, 14, 3]  # ids 5, 12 and 1, that of [UNK]
    assert numbers(subwords, "w0 w7 w1", most=2) == [7, 14]
    assert numbers(subwords, "") == numbers(subwords, " \n") == [UNKNOWN]
    assert len(numbers(subwords, "w1 " * 40)) == 40  # the tokenizer's model_max_length is 16


def test_special_tokens_in_a_text_are_text(subwords):
    assert numbers(subwords, "[MASK]") == [3, 3, 3]  # [ and MASK and ], all unknown
    assert numbers(subwords, "w3 <doc-s>") == [10, 3, 3, 3, 3, 3]  # < and doc and - and s and >


def test_numbers_of_subwords_reach_the_highest_id(subwords, tokenizer):
    highest = max(tokenizer.get_vocab().values())
    assert len(subwords) == highest + 2 + 1


def test_words_of_sentences():
    sentences = ["B a c. A b", "a: C!", "b d"]
    assert Vocabulary.of_sentences(sentences).words == ("a", "b", "c")
    assert Vocabulary.of_sentences(sentences, least=3).words == ("a", "b")
    assert Vocabulary.of_sentences(sentences, least=1).words == ("a", "b", "c", "!", ".", ":", "d")
    assert numbers(Vocabulary.of_sentences(sentences), "d c a") == [1, 4, 2]


@pytest.mark.parametrize("sort", ["words", "subwords"])
def test_save_and_load(sort, request, tmp_path: Path):
    vocabulary = request.getfixturevalue(sort)
    vocabulary.save_pretrained(tmp_path / "new" / "folder")
    again = Vocabulary.load(tmp_path / "new" / "folder")
    text = "Rain. ÉTÉ w3 w298 [MASK] <doc-s>"
    assert numbers(again, text) == numbers(vocabulary, text)
    assert again.words == vocabulary.words
    assert len(again) == len(vocabulary)


@pytest.mark.parametrize("sort", ["words", "subwords"])
def test_a_vocabulary_lies_beside_its_model(sort, request, tmp_path: Path, caplog):
    vocabulary = request.getfixturevalue(sort)
    model = DocumentMatcher(HierarchicalConfig(encoder="gru", vocabulary_size=len(vocabulary), word_size=2))
    vocabulary.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    assert numbers(Vocabulary.load(tmp_path), "w3 rain") == numbers(vocabulary, "w3 rain")
    assert not caplog.records
    assert DocumentMatcher.from_pretrained(tmp_path).config.vocabulary_size == len(vocabulary)


def test_words_that_json_must_escape(tmp_path: Path):
    strange = ('"', "\\", "\u2028", "\ud800", "ß")
    Vocabulary.of_words(strange).save_pretrained(tmp_path)
    assert Vocabulary.load(tmp_path).words == strange


def complaint(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        Vocabulary.load(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(folder))
    return text


def test_nothing_to_load(tmp_path: Path):
    assert "vocabulary.json:1: field file: there is no such file" in complaint(tmp_path / "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "neither words nor subwords"),
        ('{"sort": "letters"}', "neither words nor subwords"),
        ('{"sort": "words"}', "neither words nor subwords"),
        ('{"sort": "words", "words": ["a", 1]}', "neither words nor subwords"),
        ('{"sort": "words", "words": ["a", "a"]}', "word 'a' is there 2 times"),
        ('{"sort": "words", "words": []}', "a vocabulary without words"),
        ("", "the file is empty"),
    ],
)
def test_damaged_words(tmp_path: Path, content: str, message: str):
    (tmp_path / "vocabulary.json").write_text(content, encoding="utf-8")
    assert message in complaint(tmp_path)


@pytest.mark.parametrize("damage", ["missing", "cut off"])
def test_damaged_subwords(tmp_path: Path, subwords, damage: str):
    subwords.save_pretrained(tmp_path)
    file = tmp_path / "tokenizer.json"
    file.unlink() if damage == "missing" else file.write_text(file.read_text()[:99])
    assert "field folder: no tokenizer can be read from it (" in complaint(tmp_path)


def test_what_cannot_be_made(words):
    for call, message in (
        (lambda: Vocabulary.of_words(["a", "b", "a"]), "word 'a' is there 2 times; give each once"),
        (lambda: Vocabulary.of_words([]), "a vocabulary without words; give at least one"),
        (lambda: Vocabulary.of_sentences(["a b"], least=0), "least is 0; it must be at least 1"),
        (lambda: Vocabulary.of_sentences(["a b"]), "none of 2 words occurs 2 times; lower least"),
        (lambda: words.numbers("rain", most=0), "most is 0; it must be at least 1"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            call()
