"""Batches of the two taggers: what is where, each context once; and with them the taggers themselves, from
documents to a training."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, tag_set
from cdlm_lab.examples.tagging import SplitDocument, TagExamples
from cdlm_lab.models.frozen import WordEncodings, load_word_encoder
from cdlm_lab.models.tagging import (
    DynamicCollate,
    StaticCollate,
    StaticTagger,
    StaticTaggerConfig,
    TaggerHead,
    load_dynamic_tagger,
    new_static_tagger,
)
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.trainer import train

TAGS = tag_set(("PER",))
FORM = {"max_length": 12, "window": 12}
CLS, SEP, PAD, UNK, FIRST = 1, 2, 0, 3, 5  # word w<n> has the id n + 5


def sentence(words: str, tags: str | None = None) -> TaggedSentence:
    return TaggedSentence(words=tuple(words.split()), tags=None if tags is None else tuple(tags.split()))


def split(name: str, *sentences: TaggedSentence) -> SplitDocument:
    document = TaggedDocument(id=name, sentences=sentences)
    return SplitDocument(document=document, origin=tuple(range(len(sentences))))


DOCUMENTS = (
    split(
        "novel",
        sentence("w1 w2 w3 w4"),
        sentence("w2 strange", "B-PER O"),
        sentence("w9 w9"),
        sentence("w3 w1 w3", "O B-PER I-PER"),
    ),
    split("paper", sentence("w1", "B-PER"), sentence("w5 w6 w7 w8 w5", "O O O B-PER O"), sentence("w1 w7")),
)


@pytest.fixture
def examples() -> TagExamples:
    return TagExamples(DOCUMENTS, TAGS, most=2, target=False)


@pytest.fixture
def tokenizer(bert: Path) -> PreTrainedTokenizerFast:
    return load_dynamic_tagger(bert, head=TaggerHead(tags=TAGS), **FORM)[1]


@pytest.fixture(scope="module")
def encodings(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> WordEncodings:
    encoder = load_word_encoder(bert, layers=2, max_tokens=12)
    kept = WordEncodings(encoder, tmp_path_factory.mktemp("encodings"))
    kept.ensure(one.words for split in DOCUMENTS for one in split.document.sentences)
    return kept


def all_of(examples: TagExamples) -> list:
    return [examples[number] for number in range(len(examples))]


# Without the word itself: w2 of "w2 strange" is in sentence 0; "w3 w1 w3" has w3 in itself and in sentence 0.
ROWS = [(0, 0), (0, 3), (1, 0), (1, 1), (1, 2)]  # document and sequence of each row of the context
NONE = [-1, -1]
PLACES = [
    [[[0, 1], NONE], [NONE, NONE], *[[NONE, NONE]] * 3],
    [[[1, 2], [0, 2]], [[0, 0], NONE], [[1, 0], [0, 2]], *[[NONE, NONE]] * 2],
    [[[4, 0], NONE], *[[NONE, NONE]] * 4],
    [[[3, 4], NONE], [NONE, NONE], [[4, 1], NONE], [NONE, NONE], [[3, 0], NONE]],
]


def flat(places: list) -> list[list[int]]:
    return [one for words in places for of_word in words for one in of_word]


def test_a_static_batch(encodings: WordEncodings, examples: TagExamples):
    batch = StaticCollate(encodings, DOCUMENTS)(all_of(examples))
    assert {name: (values.dtype, tuple(values.shape)) for name, values in batch.items()} == {
        "targets": (torch.float32, (4, 5, 64)),
        "attention_mask": (torch.bool, (4, 5)),
        "labels": (torch.int64, (4, 5)),
        "context": (torch.float32, (9, 64)),
        "places": (torch.int64, (4, 5, 2)),
        "buckets": (torch.int64, (4, 5, 2)),
    }
    assert batch["attention_mask"].sum(1).tolist() == [2, 3, 1, 5]
    assert batch["labels"].tolist() == [
        [1, 0, -100, -100, -100],
        [0, 1, 2, -100, -100],
        [1, -100, -100, -100, -100],
        [0, 0, 0, 1, 0],
    ]
    for actual, expected in zip(batch["places"].flatten(0, 2).tolist(), flat(PLACES), strict=True):
        if expected == NONE:
            assert actual == -1
            continue
        document, place = ROWS[expected[0]]
        vectors = encodings.rows(DOCUMENTS[document].document.sentences[place].words)
        assert np.array_equal(batch["context"][actual].numpy(), vectors[expected[1]].astype(np.float32))
    used = [place for place in batch["places"].flatten().tolist() if place >= 0]
    assert set(used) == set(range(9)), "each word that is attended to once, and no other"
    assert len(used) > 9
    assert batch["buckets"][1, :3].tolist() == [[0, 3], [3, 0], [0, 3]]
    assert np.array_equal(batch["targets"][2, :1].numpy(), encodings.rows(("w1",)).astype(np.float32))


def test_whole_sentences_have_the_same_words_at_the_places(encodings: WordEncodings, examples: TagExamples):
    single = StaticCollate(encodings, DOCUMENTS)(all_of(examples))
    whole = StaticCollate(encodings, DOCUMENTS, whole_sentences=True)(all_of(examples))
    assert whole["context_lengths"].tolist() == [4, 3, 5, 2]  # nobody attends to "w1" itself
    assert whole["context"].shape == (14, 64)
    present = single["places"] >= 0
    assert torch.equal(whole["places"] >= 0, present)
    actual, expected = (batch["context"][batch["places"][present]] for batch in (whole, single))
    assert torch.equal(actual, expected)
    assert np.array_equal(whole["context"][:4].numpy(), encodings.rows(("w1", "w2", "w3", "w4")))
    assert torch.equal(whole["buckets"], single["buckets"])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("most", [0, 2])
def test_a_batch_that_attends_to_nothing(encodings: WordEncodings, most: int, whole: bool):
    alone = (split("a", sentence("w1 w2", "O O")),)
    examples = TagExamples(alone, TAGS, most=most, target=False)
    batch = StaticCollate(encodings, alone, whole_sentences=whole)([examples[0]])
    assert batch["context"].shape == (0, 64)
    assert batch["places"].shape == (1, 2, most)
    order = "sentence" if whole else "target"
    tagger = new_static_tagger(StaticTaggerConfig(size=64, tags=TAGS, hidden_size=4, context_order=order))
    assert tagger(**batch).loss.isfinite()


def test_a_batch_for_a_tagger_without_context(
    encodings: WordEncodings, tokenizer: PreTrainedTokenizerFast, examples: TagExamples
):
    static = StaticCollate(encodings, DOCUMENTS, context=False)(all_of(examples))
    assert set(static) == {"targets", "attention_mask", "labels"}
    dynamic = DynamicCollate(tokenizer, DOCUMENTS, context=False)(all_of(examples))
    assert not {"places", "buckets"} & set(dynamic)
    assert len(dynamic["input_ids"]) == 4, "the sentences to be tagged alone"
    assert dynamic["target_rows"].tolist() == [0, 1, 2, 3]


def test_a_dynamic_batch(tokenizer: PreTrainedTokenizerFast, examples: TagExamples):
    batch = DynamicCollate(tokenizer, DOCUMENTS)([examples[number] for number in (1, 0, 2, 3)])
    rows = [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (1, 2)]
    assert batch["input_ids"].tolist()[:3] == [
        [CLS, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4, SEP, PAD],
        [CLS, FIRST + 2, UNK, SEP, PAD, PAD, PAD],
        [CLS, FIRST + 3, FIRST + 1, FIRST + 3, SEP, PAD, PAD],
    ]
    assert len(batch["input_ids"]) == len(rows)
    assert batch["attention_mask"].sum(1).tolist() == [6, 4, 5, 3, 7, 4]
    assert batch["words"].tolist()[1] == [-1, 0, 1, -1, -1, -1, -1]
    assert batch["target_rows"].tolist() == [2, 1, 3, 4]
    assert batch["word_mask"].sum(1).tolist() == [3, 2, 1, 5]
    assert batch["labels"][1].tolist() == [1, 0, -100, -100, -100]
    row = {number: rows.index(sequence) for number, sequence in enumerate(ROWS)} | {-1: -1}
    expected = [[[[row[at], word] for at, word in one] for one in PLACES[number]] for number in (1, 0, 2, 3)]
    assert batch["places"].tolist() == expected
    assert {values.dtype for name, values in batch.items() if name != "word_mask"} == {torch.int64}


def test_pieces_are_of_their_words(examples: TagExamples):
    """With a tokenizer that cuts words, as all real ones do."""
    head = TaggerHead(tags=TAGS, hidden_size=4)
    tagger, tokenizer = load_dynamic_tagger("tiny", head=head, max_length=32, window=8)
    batch = DynamicCollate(tokenizer, DOCUMENTS)(all_of(examples))
    numbers = [number for number in batch["words"][1].tolist() if number >= 0]
    assert sorted(numbers) == numbers
    assert set(numbers) == {0, 1}
    assert numbers.count(1) > 1, "strange is of several pieces"
    tagger(**batch).loss.backward()


def test_a_sequence_too_long_for_the_model_is_named(bert: Path):
    tokenizer = load_dynamic_tagger(bert, head=TaggerHead(tags=TAGS), max_length=6, window=6)[1]
    examples = TagExamples(DOCUMENTS, TAGS, most=2)
    collate = DynamicCollate(tokenizer, DOCUMENTS)
    collate([examples[0]])
    with pytest.raises(
        ValueError, match=r"document paper, sequence 1 has 5 pieces, but the model has room for 4; split"
    ):
        collate([examples[3]])


def test_no_examples_are_refused(encodings: WordEncodings, tokenizer: PreTrainedTokenizerFast):
    for collate in (StaticCollate(encodings, DOCUMENTS), DynamicCollate(tokenizer, DOCUMENTS)):
        with pytest.raises(ValueError, match="no examples to collate"):
            collate([])


@pytest.mark.parametrize("kind", ["bilstm", "sentence", "linear", "baseline", "dynamic"])
def test_an_example_alone_is_the_example_in_its_batch(
    bert: Path, encodings: WordEncodings, examples: TagExamples, kind: str
):
    """Its own context then, and its own padding."""
    if kind == "dynamic":
        head = TaggerHead(tags=TAGS, hidden_size=4)
        tagger, tokenizer = load_dynamic_tagger(bert, head=head, **FORM)
        collate = DynamicCollate(tokenizer, DOCUMENTS)
    else:
        context = kind != "baseline"
        sort = {"context": context, "context_encoder": "linear" if kind == "linear" else "bilstm"}
        sort["context_order"] = "sentence" if kind == "sentence" else "target"
        config = StaticTaggerConfig(size=64, tags=TAGS, hidden_size=4, **sort)
        tagger = new_static_tagger(config)
        collate = StaticCollate(encodings, DOCUMENTS, context=context, whole_sentences=config.whole_sentences)
    together = tagger(**collate(all_of(examples)))
    for number, example in enumerate(all_of(examples)):
        alone = tagger(**collate([example]))
        words = len(example.words)
        torch.testing.assert_close(alone.logits[0], together.logits[number, :words], rtol=1e-4, atol=1e-5)


def trained(encodings: WordEncodings, examples: TagExamples, folder: Path, micro: int) -> StaticTagger:
    config = StaticTaggerConfig(size=64, tags=TAGS, hidden_size=4, dropout=0.0)
    tagger = new_static_tagger(config)
    result = train(
        model=tagger,
        train_examples=examples,
        validation_examples=examples,
        collate=StaticCollate(encodings, DOCUMENTS),
        config=TrainingConfig(
            steps=2, batch_size=4, micro_batch_size=micro, evaluate_every=2, save_every=2, log_every=1,
            seed=0, learning_rate=0.01, warmup_steps=0, adam_epsilon=1e-3, precision="float32",
        ),
        output_dir=folder,
        on_log=lambda record: None,
    )  # fmt: skip
    assert result.tokens == 2 * 11, "words of the sentences that were tagged"
    return tagger


def test_accumulated_updates_are_those_of_full_batches(
    encodings: WordEncodings, examples: TagExamples, tmp_path: Path
):
    """By the project's own training: sentences of 2, 3, 1 and 5 words, one, two or four at a time."""
    twice = examples.in_order([0, 1, 2, 3, 0, 1, 2, 3])
    whole = trained(encodings, twice, tmp_path / "whole", 4)
    start = new_static_tagger(whole.config).state_dict()
    for micro in (2, 1):
        parts = trained(encodings, twice, tmp_path / str(micro), micro)
        for name, weight in whole.state_dict().items():
            torch.testing.assert_close(parts.state_dict()[name], weight, rtol=1e-3, atol=1e-5, msg=name)
    moved = [name for name, weight in whole.state_dict().items() if not torch.equal(weight, start[name])]
    assert len(moved) == len(start)
