"""Batches of pairs of documents: what they look like, what the matcher makes of them, what cannot be one."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.examples.document_pairs import PairCollate, SentencePairExamples, SentenceWords
from cdlm_lab.examples.tokens import Vocabulary
from cdlm_lab.models.matching import DocumentMatcher, HierarchicalConfig

collate = PairCollate()


def example(first: object, second: object, label: float | None = None, dtype: type = np.int64) -> dict:
    sides = {"first": np.array(first, dtype=dtype), "second": np.array(second, dtype=dtype)}
    return sides if label is None else sides | {"labels": np.array(label, dtype=np.float32)}


def test_words():
    """The example of the docstring."""
    batch = collate([example([[5, 7], [6, 0]], [[8]], 1.0), example([[9]], [[4, 3]], 0.0)])
    assert batch.keys() == {"inputs", "sentence_mask", "labels"}
    assert batch["inputs"].dtype == torch.int64
    assert batch["inputs"].tolist() == [
        [[[5, 7], [6, 0]], [[8, 0], [0, 0]]],
        [[[9, 0], [0, 0]], [[4, 3], [0, 0]]],
    ]
    assert batch["sentence_mask"].dtype == torch.bool
    assert batch["sentence_mask"].tolist() == [[[True, True], [True, False]], [[True, False], [True, False]]]
    assert batch["labels"].dtype == torch.float32
    assert batch["labels"].tolist() == [1, 0]


def test_the_longest_of_either_side_counts():
    batch = collate([example([[1]], [[2], [3], [4]]), example([[5, 6, 7]], [[8]])])
    assert batch.keys() == {"inputs", "sentence_mask"}
    assert batch["inputs"].shape == (2, 2, 3, 3)
    assert batch["sentence_mask"].sum(-1).tolist() == [[1, 3], [1, 1]]
    assert batch["inputs"][0, 1].tolist() == [[2, 0, 0], [3, 0, 0], [4, 0, 0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_vectors(dtype: type):
    batch = collate([example([[0.5, 1], [0, 0]], [[2, 3]], 1.0, dtype)])
    assert batch["inputs"].dtype == torch.float32
    assert batch["inputs"].tolist() == [[[[0.5, 1], [0, 0]], [[2, 3], [0, 0]]]]
    assert batch["sentence_mask"].tolist() == [[[True, True], [True, False]]]  # a vector of zeros is there


def test_examples_are_copied():
    one = example([[1.0]], [[2.0]], dtype=np.float32)
    one["first"].flags.writeable = False
    collate([one])["inputs"].zero_()
    assert one["first"].tolist() == [[1]]


SENTENCES = ("Rain fell.", "So?", "It rained on and on, and then it rained.", "Rain, rain!", "The end")
SIZES = ((3, 1), (2, 5), (1, 1), (4, 2))  # sentences of the documents of each pair


def examples_for(encoder: str) -> SentencePairExamples:
    vocabulary = Vocabulary.of_sentences(SENTENCES, least=1)
    encode = SentenceWords(vocabulary=vocabulary, most_sentences=9, most_words=7)
    if encoder == "vectors":
        table = np.random.default_rng(0).normal(size=(len(vocabulary), 6)).astype(np.float32)
        words = encode
        encode = lambda document: table[words(document)].mean(1)  # noqa: E731
    documents = [
        [PairDocument(id=f"{n}{side}", sentences=SENTENCES[-size:]) for side, size in enumerate(sizes)]
        for n, sizes in enumerate(SIZES)
    ]
    pairs = [
        DocumentPair(id=f"{n}", first=first, second=second, related=n % 2 == 0, aligned=None, cluster="c")
        for n, (first, second) in enumerate(documents)
    ]
    return SentencePairExamples(pairs=pairs, encode=encode)


def matcher_for(encoder: str) -> DocumentMatcher:
    torch.manual_seed(0)
    cda = "deep" if encoder == "gru" else "shallow"
    config = HierarchicalConfig(
        encoder=encoder, cda=cda, vocabulary_size=30, word_size=5, vector_size=6, hidden_size=4,
        initializer_range=0.4,
    )  # fmt: skip
    return DocumentMatcher(config).eval()


@pytest.mark.parametrize("encoder", ["gru", "vectors"])
@torch.no_grad()
def test_a_pair_alone_is_the_pair_in_its_batch(encoder: str):
    model, examples = matcher_for(encoder), examples_for(encoder)
    together = model(**collate(list(examples)))
    losses = []
    for n, one in enumerate(examples):
        alone = model(**collate([one]))
        torch.testing.assert_close(alone.logits[0], together.logits[n])
        for side, size in enumerate(SIZES[n]):
            torch.testing.assert_close(alone.attention[0, side, :size], together.attention[n, side, :size])
            assert not together.attention[n, side, size:].any()
        losses.append(alone.loss)
    torch.testing.assert_close(torch.stack(losses).mean(), together.loss)
    assert together.logits.std() > 1e-3  # pairs that are all the same would show nothing


@pytest.mark.parametrize("encoder", ["gru", "vectors"])
@torch.no_grad()
def test_filling_is_inert(encoder: str):
    """More filling, and for vectors other filling, changes nothing."""
    model, batch = matcher_for(encoder), collate(list(examples_for(encoder)))
    before = model(**batch).logits
    inputs, mask = batch["inputs"], batch["sentence_mask"]
    if encoder == "vectors":
        inputs = inputs.masked_fill(~mask[..., None], 99.0)
    else:
        inputs = torch.nn.functional.pad(inputs, (0, 2, 0, 3))
        mask = torch.nn.functional.pad(mask, (0, 3))
    torch.testing.assert_close(model(inputs, mask).logits, before)


WORDS = example([[5, 7]], [[8]])


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "no examples to collate"),
        (
            [WORDS, WORDS | {"labels": np.float32(1)}],
            "examples[1] has the keys ['first', 'labels', 'second'], but examples[0] ['first', 'second']",
        ),
        (
            [{"first": WORDS["first"]}],
            "examples[0] has the keys ['first']; they must be first, second, and maybe labels",
        ),
        (
            [WORDS | {"id": np.array(1)}],
            "examples[0] has the keys ['first', 'id', 'second']; they must be first, second, "
            "and maybe labels",
        ),
        (
            [WORDS, example([[1]], [[0.5, 1]], dtype=np.float32)],
            "examples[1]['first'] is float32, but examples[0]['first'] int64; encode all documents alike",
        ),
        (
            [WORDS | {"second": np.ones((1, 2), dtype=np.float32)}],
            "examples[0]['second'] is float32, but examples[0]['first'] int64; encode all documents alike",
        ),
        (
            [example([[1, 2]], [[1, 2, 3]], dtype=np.float32)],
            "examples[0]['second'] has vectors of size 3, but examples[0]['first'] 2; "
            "encode all documents alike",
        ),
        (
            [example([1, 2], [[3]])],
            "examples[0]['first'] has shape (2,); it must be (sentences, words or size)",
        ),
    ],
)
def test_what_is_no_batch(examples: list, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        collate(examples)
