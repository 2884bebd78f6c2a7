"""Batches of the two taggers: what is where, each context once; and with them the taggers themselves, from
documents to a training."""

from pathlib import Path

import numpy as np
import pytest
import torch
from model_cases import TAGGED, TAGS, split
from transformers import PreTrainedTokenizerFast

from cdlm_lab.encoders.frozen import WordEncodings, load_word_encoder
from cdlm_lab.tasks.tagging.examples import TagExample, TagExamples
from cdlm_lab.tasks.tagging.model import (
    DynamicCollate,
    StaticCollate,
    StaticTagger,
    StaticTaggerConfig,
    TaggerHead,
    load_dynamic_tagger,
    new_static_tagger,
)

FORM = {"max_length": 12, "window": 12}
HEAD = TaggerHead(tags=TAGS, hidden_size=4)
CLS, SEP, PAD, UNK, FIRST = 1, 2, 0, 3, 5  # word w<n> has the id n + 5


@pytest.fixture
def examples() -> TagExamples:
    return TagExamples(TAGGED, TAGS, most=2, target=False)


@pytest.fixture
def every(examples: TagExamples) -> list[TagExample]:
    return [examples[number] for number in range(len(examples))]


@pytest.fixture
def tokenizer(bert: Path) -> PreTrainedTokenizerFast:
    return load_dynamic_tagger(bert, head=HEAD, **FORM)[1]


@pytest.fixture(scope="module")
def encodings(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> WordEncodings:
    encoder = load_word_encoder(bert, layers=2, max_tokens=12)
    kept = WordEncodings(encoder, tmp_path_factory.mktemp("encodings"))
    kept.ensure(one.words for split in TAGGED for one in split.document.sentences)
    return kept


def static(**form: object) -> StaticTagger:
    return new_static_tagger(StaticTaggerConfig(size=64, tags=TAGS, hidden_size=4, **form))


# Without the word itself: w2 of "w2 strange" is in sentence 0; "w3 w1 w3" has w3 in itself and in sentence 0.
ROWS = [(0, 0), (0, 3), (1, 0), (1, 1), (1, 2)]  # document and sequence of each row of the context
NONE = [-1, -1]
PLACES = [
    [[[0, 1], NONE], [NONE, NONE], *[[NONE, NONE]] * 3],
    [[[1, 2], [0, 2]], [[0, 0], NONE], [[1, 0], [0, 2]], *[[NONE, NONE]] * 2],
    [[[4, 0], NONE], *[[NONE, NONE]] * 4],
    [[[3, 4], NONE], [NONE, NONE], [[4, 1], NONE], [NONE, NONE], [[3, 0], NONE]],
]


def test_a_static_batch(encodings: WordEncodings, every: list[TagExample]):
    batch = StaticCollate(encodings, TAGGED)(every)
    assert {name: (values.dtype, tuple(values.shape)) for name, values in batch.items()} == {
        "targets": (torch.float32, (4, 5, 64)),
        "attention_mask": (torch.bool, (4, 5)),
        "labels": (torch.int64, (4, 5)),
        "context": (torch.float32, (9, 64)),
        "places": (torch.int64, (4, 5, 2)),
        "buckets": (torch.int64, (4, 5, 2)),
    }
    assert batch["attention_mask"].sum(1).tolist() == [2, 3, 1, 5]
    filling = [-100] * 4
    expected = [[1, 0, *filling[:3]], [0, 1, 2, *filling[:2]], [1, *filling], [0, 0, 0, 1, 0]]
    assert batch["labels"].tolist() == expected
    flat = [place for words in PLACES for of_word in words for place in of_word]
    for actual, place in zip(batch["places"].flatten().tolist(), flat, strict=True):
        assert (actual == -1) == (place == NONE)
        if place != NONE:
            document, sentence = ROWS[place[0]]
            vectors = encodings.rows(TAGGED[document].document.sentences[sentence].words)
            assert np.array_equal(batch["context"][actual].numpy(), vectors[place[1]].astype(np.float32))
    used = [place for place in batch["places"].flatten().tolist() if place >= 0]
    assert set(used) == set(range(9)), "each word that is attended to once, and no other"
    assert len(used) > 9
    assert batch["buckets"][1, :3].tolist() == [[0, 3], [3, 0], [0, 3]]
    assert np.array_equal(batch["targets"][2, :1].numpy(), encodings.rows(("w1",)).astype(np.float32))
    assert not batch["targets"][~batch["attention_mask"]].any()


@pytest.mark.parametrize("most", [0, 2])
def test_a_batch_that_attends_to_nothing(encodings: WordEncodings, most: int):
    alone = (split("a", "w1 w2 | O O"),)
    examples = TagExamples(alone, TAGS, most=most, target=False)
    batch = StaticCollate(encodings, alone)([examples[0]])
    assert batch["context"].shape == (0, 64)
    assert batch["places"].shape == (1, 2, most)
    assert static()(**batch).loss.isfinite()


def test_batches_without_context_and_without_examples(encodings, tokenizer, every: list[TagExample]):
    static = StaticCollate(encodings, TAGGED, context=False)
    assert set(static(every)) == {"targets", "attention_mask", "labels"}
    dynamic = DynamicCollate(tokenizer, TAGGED, context=False)
    batch = dynamic(every)
    assert not {"places", "buckets"} & set(batch)
    assert len(batch["input_ids"]) == 4, "the sentences to be tagged alone"
    assert batch["target_rows"].tolist() == [0, 1, 2, 3]
    for collate in (static, dynamic):
        with pytest.raises(ValueError, match="no examples to collate"):
            collate([])


def test_a_dynamic_batch(tokenizer: PreTrainedTokenizerFast, every: list[TagExample]):
    order = (1, 0, 2, 3)
    batch = DynamicCollate(tokenizer, TAGGED)([every[number] for number in order])
    rows = [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (1, 2)]
    assert batch["input_ids"].tolist()[:3] == [
        [CLS, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4, SEP, PAD, PAD],
        [CLS, FIRST + 2, UNK, SEP, PAD, PAD, PAD, PAD],
        [CLS, FIRST + 3, FIRST + 1, FIRST + 3, SEP, PAD, PAD, PAD],
    ]
    assert batch["attention_mask"].sum(1).tolist() == [6, 4, 5, 3, 8, 4]
    assert batch["words"].tolist()[1] == [-1, 0, 1, -1, -1, -1, -1, -1]
    assert batch["words"].tolist()[4] == [-1, 0, 1, 2, 3, 3, 4, -1], "one word has two pieces"
    assert batch["target_rows"].tolist() == [2, 1, 3, 4]
    assert batch["word_mask"].sum(1).tolist() == [3, 2, 1, 5]
    assert batch["labels"][1].tolist() == [1, 0, -100, -100, -100]
    row = {number: rows.index(sequence) for number, sequence in enumerate(ROWS)} | {-1: -1}
    expected = [[[[row[at], word] for at, word in one] for one in PLACES[number]] for number in order]
    assert batch["places"].tolist() == expected
    assert {values.dtype for name, values in batch.items() if name != "word_mask"} == {torch.int64}


def test_a_sequence_too_long_for_the_model_is_named(bert: Path):
    tokenizer = load_dynamic_tagger(bert, head=HEAD, max_length=6, window=6)[1]
    examples, collate = TagExamples(TAGGED, TAGS, most=2), DynamicCollate(tokenizer, TAGGED)
    collate([examples[0]])
    message = r"document paper, sequence 1 has 6 pieces, but the model has room for 4; split"
    with pytest.raises(ValueError, match=message):
        collate([examples[3]])
