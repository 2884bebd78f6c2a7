"""Rules for all kinds of examples: how texts become tokens, how a data set is read, what a batch is."""

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerFast

from cdlm_lab.data.records import (
    Cluster,
    CoreferenceDocument,
    Document,
    DocumentPair,
    EvidencedClaim,
    MultihopQuestion,
    PairDocument,
    Paragraph,
    Paragraphed,
)
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.storyworld.task_sets import (
    read_storyworld_candidates,
    read_storyworld_claims,
    read_storyworld_pairs,
    read_storyworld_questions,
    read_storyworld_tags,
    read_storyworld_topics,
)
from cdlm_lab.examples.cached_corpus import encode_cluster, tokenise_clusters, tokenise_paragraphs
from cdlm_lab.examples.collate import Collate, batches_by_length, batches_by_tokens, like_lengths_together
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.passes import Passes
from cdlm_lab.examples.tokens import (
    EncodedDocuments,
    Vocabulary,
    encode_document,
    encode_pieces,
    from_tokenizer,
    tokenise_words,
)
from cdlm_lab.tasks.coreference.examples import (
    MentionPairExamples,
    group_mentions,
    marks_from_tokenizer,
    mentions_in,
    sampled_pairs,
)
from cdlm_lab.tasks.joint.examples import (
    EncodedTexts,
    JointCollate,
    JointExamples,
    JointLayout,
    PairedClaimCollate,
)
from cdlm_lab.tasks.joint.paragraph_examples import ParagraphTasks
from cdlm_lab.tasks.matching.examples import (
    MatchExamples,
    PairCollate,
    SentencePairExamples,
    SentencesById,
    SentenceWords,
    encode_sentences,
)
from cdlm_lab.tasks.multihop.examples import (
    EncodedParagraph,
    EncodedQuestions,
    QuestionCollate,
    QuestionExamples,
    encode_question,
    question_marks_of,
)
from cdlm_lab.tasks.tagging.examples import TagExamples, split_long

# ---- texts and their tokens ----


def of_words(text: str, name: str = "d") -> CoreferenceDocument:
    words = tuple(text.split())
    spans = {"sentences": ((0, len(words)),), "validated": ()}
    return CoreferenceDocument(id=name, topic="t", subtopic="s", tokens=words, **spans)


def multihop(text: str, name: str = "q", *, title: str = "w1", sentence: str = "w1") -> MultihopQuestion:
    paragraphs = (Paragraph(title=title, sentences=(sentence,)),)
    return MultihopQuestion(id=name, text=text, paragraphs=paragraphs)


def of_cluster(text: str, tokenizer: Any) -> Sequence[int]:
    row, _ = encode_cluster(Cluster(id="c", documents=(Document(id="d", text=text),)), tokenizer)
    return row["input_ids"][0]


def of_paragraph(tokenizer: Any, **texts: str) -> EncodedParagraph:
    return encode_question(multihop("", **texts), tokenizer).paragraphs[0]


ENCODERS: dict[str, Callable[[str, Any], Sequence[int]]] = {
    "pieces": lambda text, tokenizer: encode_pieces([text], tokenizer)[0],
    "words": lambda text, tokenizer: tokenise_words(text.split(), tokenizer)[0],
    "document of words": lambda text, tokenizer: encode_document(of_words(text), tokenizer).input_ids,
    "sentences": lambda text, tokenizer: (
        encode_sentences(PairDocument(id="d", sentences=(text,)), tokenizer).input_ids
    ),
    "question": lambda text, tokenizer: encode_question(multihop(text), tokenizer).question_ids,
    "title": lambda text, tokenizer: of_paragraph(tokenizer, title=text).title_ids,
    "sentence of a paragraph": lambda text, tokenizer: of_paragraph(tokenizer, sentence=text).ids,
    "cluster": of_cluster,
    "vocabulary": lambda text, tokenizer: Vocabulary.of_tokenizer(tokenizer).numbers(text, most=99) - 2,
}
AS_WRITTEN = ("cluster", "vocabulary")  # their texts are read from their first character on


@pytest.fixture(params=ENCODERS)
def encode(request) -> Callable[[str, Any], Sequence[int]]:
    return ENCODERS[request.param]


def test_special_tokens_in_a_text_are_text_and_none_is_added(encode, question_tokenizer):
    ids_of = question_tokenizer.convert_tokens_to_ids
    special = set(question_tokenizer.all_special_ids) - {question_tokenizer.unk_token_id}
    marks = {ids_of(mark) for mark in ("<doc-s>", "</doc-s>", "[s]", "<t>")}
    ids = [int(n) for n in encode("w1 [MASK] [SEP] <doc-s> </doc-s> [s] <t> w2", question_tokenizer)]
    assert not (special | marks) & set(ids)
    assert question_tokenizer.convert_ids_to_tokens([ids[0], ids[-1]]) == ["w1", "w2"]
    again = question_tokenizer("[MASK]", add_special_tokens=False)["input_ids"]
    assert again == [question_tokenizer.mask_token_id], "the tokenizer is as it was"


@pytest.mark.parametrize("name", sorted(set(ENCODERS) - set(AS_WRITTEN)))
def test_the_first_word_is_what_it_is_within_a_text(name, shipped_question_tokenizer):
    tokenizer = copy.deepcopy(shipped_question_tokenizer)
    tokenizer.backend_tokenizer.pre_tokenizer.add_prefix_space = False
    alone, twice = (list(ENCODERS[name](text, tokenizer)) for text in ("fire", "fire fire"))
    assert twice == alone * 2
    assert alone == tokenizer(" fire", add_special_tokens=False)["input_ids"]


# ---- records by their ids ----


def claim(text: str, name: str) -> EvidencedClaim:
    return EvidencedClaim(id=name, text=text, evidence=(), label=None, group="g")


BY_ID = {
    "records": (EncodedTexts, claim),
    "multihop questions": (EncodedQuestions, multihop),
    "documents": (EncodedDocuments, of_words),
}


@pytest.mark.parametrize("name", BY_ID)
def test_records_are_encoded_once_and_only_when_read(name, tokenizer):
    make, record = BY_ID[name]
    one, other = record("w1", "a"), record("w3", "b")
    calls = []

    def counting(*texts, **options):
        calls.append(texts)
        return tokenizer(*texts, **options)

    counting.unk_token_id = tokenizer.unk_token_id
    encoded = make([one, other, one], counting)
    assert (len(encoded), list(encoded), "a" in encoded, "x" in encoded) == (2, ["a", "b"], True, False)
    assert not calls
    assert encoded["a"] is encoded["a"]
    assert len(calls) == 1
    with pytest.raises(KeyError):
        encoded["x"]


@pytest.mark.parametrize("name", BY_ID)
def test_two_records_of_one_id_are_named(name, tokenizer):
    make, record = BY_ID[name]
    message = f"there are two different {name.split()[-1]} a; name them apart"
    with pytest.raises(ValueError, match=f"^{message}$"):
        make([record("w1", "a"), record("w2", "a")], tokenizer)


# ---- data sets ----


@dataclass(frozen=True)
class Made:
    """A data set, the kind of items that its index counts, and its collate function."""

    examples: Any
    kind: str
    collate: Callable[..., dict[str, torch.Tensor]] | None


@pytest.fixture(scope="module")
def marked(shipped_question_tokenizer) -> PreTrainedTokenizerFast:
    """A tokenizer with the special tokens of questions and of mentions."""
    marked = copy.deepcopy(shipped_question_tokenizer)
    marked.add_tokens(["<m>", "</m>"], special_tokens=True)
    return marked


@pytest.fixture(scope="module")
def data_sets(marked, tmp_path_factory) -> dict[str, Made]:
    cache_dir = tmp_path_factory.mktemp("cache")
    return of_pairs(marked) | of_sentences(marked) | of_corpora(marked, cache_dir=cache_dir)


def of_pairs(marked: PreTrainedTokenizerFast) -> dict[str, Made]:
    special, collate = from_tokenizer(marked), Collate(marked.pad_token_id)
    topics = list(read_storyworld_topics("dev", 2, stories_per_topic=2))
    groups = group_mentions(topics, "event", "topic")
    sample = sampled_pairs(groups, negatives_per_positive=1, seed=0, epoch=0)
    mention_pairs = MentionPairExamples(
        mentions=mentions_in(groups),
        pairs=sample.pairs[:12],
        labels=sample.labels[:12],
        documents=EncodedDocuments([one for topic in topics for one in topic.documents], marked),
        marks=marks_from_tokenizer(marked),
        context="sentences",
        special=special,
        max_length=200,
    )
    pairs: list[DocumentPair] = list(read_storyworld_pairs("dev", 5))
    documents = SentencesById(pairs, marked)
    document_pairs = MatchExamples(pairs=pairs, documents=documents, special=special, max_length=900)
    words = SentenceWords(vocabulary=Vocabulary.of_tokenizer(marked), most_sentences=5, most_words=7)
    return {
        "mention pairs": Made(mention_pairs, "pair", collate),
        "document pairs": Made(document_pairs, "pair", collate),
        "sentence pairs": Made(SentencePairExamples(pairs=pairs, encode=words), "", PairCollate()),
    }


def of_sentences(marked: PreTrainedTokenizerFast) -> dict[str, Made]:
    special, pad = from_tokenizer(marked), marked.pad_token_id
    questions = list(read_storyworld_questions("dev", 4, sentences=2, paragraphs=2))
    question_examples = QuestionExamples(
        questions=questions,
        encoded=EncodedQuestions(questions, marked),
        special=special,
        marks=question_marks_of(marked),
        max_length=200,
    )
    joint = {"layout": JointLayout(sentences=4, length=16), "special": special, "seed": 1}
    sets, claims = list(read_storyworld_candidates("dev", 3)), list(read_storyworld_claims("dev", 3))
    candidates = JointExamples(records=sets, encoded=EncodedTexts(sets, marked), **joint)
    evidence = JointExamples(records=claims, encoded=EncodedTexts(claims, marked), **joint)
    documents = list(read_storyworld_tags("dev", 2))
    split = [split_long(one, pieces=lambda words: [1] * len(words), most=30) for one in documents]
    tags = sorted({tag for one in documents for sentence in one.sentences for tag in sentence.tags or ()})
    return {
        "questions": Made(question_examples, "question", QuestionCollate(pad)),
        "candidates": Made(candidates, "example", JointCollate(pad)),
        "claims": Made(evidence, "example", JointCollate(pad)),
        "tagging": Made(TagExamples(split, tags, most=4), "example", None),
    }


def of_corpora(marked: PreTrainedTokenizerFast, *, cache_dir: Path) -> dict[str, Made]:
    settings, pad = {"special": from_tokenizer(marked), "size": 20}, marked.pad_token_id
    clusters = [story.cluster for story in stories(stop=8)]
    corpus = tokenise_clusters(lambda: iter(clusters), marked, cache_dir=cache_dir, fingerprint="c")
    documents = CrossDocumentExamples(corpus=corpus, packing="equal_share", max_length=200, **settings)
    paragraphs = [
        Paragraphed(id=one.id, paragraphs=tuple(tuple(p.split(". ")) for p in one.text.split("\n")))
        for cluster in clusters
        for one in cluster.documents
    ]
    sentences = tokenise_paragraphs(lambda: iter(paragraphs), marked, cache_dir=cache_dir, fingerprint="p")
    tasks = ParagraphTasks(corpus=sentences, layout=JointLayout(sentences=6, length=16), **settings)
    return {
        "clusters": Made(documents, "example", Collate(pad)),
        "paragraphs": Made(tasks, "example", JointCollate(pad)),
    }


NAMES = (
    "mention pairs", "document pairs", "sentence pairs", "questions", "candidates", "claims", "tagging",
    "clusters", "paragraphs",
)  # fmt: skip
COLLATED = tuple(name for name in NAMES if name != "tagging")


@pytest.fixture
def made(request, data_sets) -> Made:
    return data_sets[request.param]


def plain(example: Any) -> list[tuple[str, Any, Any]]:
    """Return name, dtype and values of an example's arrays."""
    fields = example if isinstance(example, dict) else {k: getattr(example, k) for k in example.__slots__}
    return [(key, np.asarray(each).dtype, np.asarray(each).tolist()) for key, each in fields.items()]


@pytest.mark.parametrize("made", NAMES, indirect=True)
def test_examples_are_the_same_in_any_order_of_access_in_copies_and_in_worker_processes(made):
    count = min(len(made.examples), 10)
    first = [plain(made.examples[index]) for index in range(count)]
    again = copy.deepcopy(made.examples)
    assert [plain(again[index]) for index in reversed(range(count))] == first[::-1]
    loader = DataLoader(made.examples, batch_size=None, sampler=range(count), num_workers=2, collate_fn=plain)
    assert list(loader) == first
    assert len({str(one) for one in first}) > 1


@pytest.mark.parametrize("made", [name for name in NAMES if name != "sentence pairs"], indirect=True)
def test_indices_outside(made):
    count = len(made.examples)
    names = ("__getitem__", "describe", "length_of")
    for read in [getattr(made.examples, name) for name in names if hasattr(made.examples, name)]:
        for index in (-1, count):
            message = f"there is no {made.kind} {index}; there are {count}, counted from 0"
            with pytest.raises(IndexError, match=f"^{message}$"):
                read(index)


@pytest.mark.parametrize("made", ["mention pairs", "document pairs", "candidates", "claims"], indirect=True)
def test_lengths_are_known_without_writing_a_sequence(made):
    lengths = [made.examples.length_of(index) for index in range(len(made.examples))]
    assert lengths == [len(made.examples[index]["input_ids"]) for index in range(len(made.examples))]
    assert len(set(lengths)) > 1


@pytest.mark.parametrize("made", ["mention pairs", "tagging"], indirect=True)
def test_another_order(made):
    turned = made.examples.in_order(np.array([2, 0, 2]))
    assert [plain(turned[n]) for n in range(3)] == [plain(made.examples[n]) for n in (2, 0, 2)]
    assert len(turned) == 3
    for name in ("encoded", "documents"):  # nothing is tokenised again
        assert getattr(turned, name, None) is getattr(made.examples, name, None)
    for index in (-1, len(made.examples)):
        with pytest.raises(IndexError, match=f"there is no {made.kind} {index}"):
            made.examples.in_order([0, index])


def paragraph_of(examples: ParagraphTasks, index: int) -> tuple[int, int]:
    """Return the document's row and the paragraph's index of an example's first sentence."""
    first = examples.describe(index).sentences[0]
    ends = np.cumsum(examples.corpus[first.row]["paragraph_sizes"])
    return first.row, int(np.searchsorted(ends, first.number, side="right"))


ITEM_OF: dict[str, Callable[[Any, int], Any]] = {  # of an example: a pass has each item once
    "clusters": lambda examples, index: examples.describe(index).row,
    "paragraphs": paragraph_of,
    "candidates": lambda examples, index: examples.owner(index)[0],
    "claims": lambda examples, index: examples.owner(index)[0],
}


@pytest.mark.parametrize("made", ITEM_OF, indirect=True)
def test_each_pass_has_every_item_once_in_an_order_of_its_own(made, request):
    item = ITEM_OF[request.node.callspec.params["made"]]
    one = replace(made.examples, size=None)
    count = len(one)
    longer, other = replace(one, size=3 * count + 2), replace(one, seed=one.seed + 1)
    assert len(longer) == 3 * count + 2
    as_alone, of_seed = ([plain(each[index]) for index in range(count)] for each in (one, other))
    assert [plain(longer[index]) for index in range(count)] == as_alone != of_seed
    passes = [[item(longer, n) for n in range(start, start + count)] for start in (0, count, 2 * count)]
    assert Counter(passes[0]) == Counter(passes[1]) == Counter(passes[2])
    assert passes[0] != passes[1] != passes[2] != passes[0]
    for changes, message in (({"seed": -1}, "seed is -1; it must"), ({"size": 0}, "size is 0;")):
        with pytest.raises(ValueError, match=f"^{message}"):
            replace(one, **changes)


def test_passes_have_each_item_once_in_a_new_order():
    passes, other = (Passes(items=5, seed=3, stream=stream, size=12) for stream in (1, 2))
    items = [passes.item(index) for index in reversed(range(12))][::-1]
    assert [epoch for epoch, _ in items] == [0] * 5 + [1] * 5 + [2] * 2
    assert len(passes._orders) == 2, "those of the last two passes are remembered"
    assert [other.item(index) for index in range(12)] != items
    plain = Passes(items=2, seed=0, stream=1, size=3, shuffle=False)
    assert [plain.item(index) for index in range(3)] == [(0, 0), (0, 1), (1, 0)]
    assert (len(plain), len(Passes(items=2, seed=0, stream=1))) == (3, 2)


# ---- batches ----


@pytest.mark.parametrize("made", COLLATED, indirect=True)
def test_a_row_alone_is_the_row_in_a_batch(made):
    examples = [made.examples[index] for index in range(4)]
    batch = made.collate(examples)
    assert {values.dtype for values in batch.values()} <= {torch.int64, torch.bool, torch.float32}
    for number, example in enumerate(examples):
        for key, values in made.collate([example]).items():
            row = batch[key][number]
            inside = tuple(slice(0, size) for size in values[0].shape)
            assert torch.equal(row[inside], values[0]), key
            filling = torch.ones(row.shape, dtype=torch.bool)
            filling[inside] = False
            assert len(row[filling].unique()) <= 1, key
            if key == "attention_mask":
                assert not row[filling].any()


@pytest.mark.parametrize("made", COLLATED, indirect=True)
def test_a_batch_owns_its_numbers(made):
    example = made.examples[0]
    locked = {key: np.array(values) for key, values in example.items()}
    for values in locked.values():
        values.flags.writeable = False
    for values in made.collate([locked]).values():
        values.zero_()
    assert plain(locked) == plain(example)


def incomplete(
    name: str, example: dict[str, np.ndarray]
) -> Iterator[tuple[list[dict[str, np.ndarray]], str]]:
    """Yield examples that cannot be collated, and the error message."""
    needed = "first" if name == "sentence pairs" else "input_ids"
    yield [], "no examples to collate"
    less = {key: values for key, values in example.items() if not key.endswith("labels")}
    less.pop("answer_positions", None)
    yield [example, less], f"examples[1] has the keys {sorted(less)}, but examples[0] {sorted(example)}"
    without = {key: values for key, values in example.items() if key != needed}
    yield [without], f"examples[0] has the keys {sorted(without)}; they must be "
    odd = example | {"odd": np.zeros(3)}
    yield [odd], f"examples[0] has the keys {sorted(odd)}; they must be "


@pytest.mark.parametrize("name", [*COLLATED, "claims in pairs"])
def test_what_is_no_batch(name, data_sets):
    made = data_sets[name.removesuffix(" in pairs")]
    collate = PairedClaimCollate(0, made.examples.layout) if name == "claims in pairs" else made.collate
    less = {key: values for key, values in made.examples[0].items() if not key.endswith("labels")}
    less.pop("answer_positions", None)
    assert "labels" not in collate([less]), "they may be left out of all"
    for examples, message in incomplete(name, made.examples[0]):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            collate(examples)


def example(length: int, **changes) -> dict[str, np.ndarray]:
    values = {
        "input_ids": np.arange(10, 10 + length),
        "labels": np.full(length, 3),
        "global_attention_mask": np.ones(length, dtype=np.int64),
        "cross_document": np.ones(length, dtype=bool),
    }
    return values | changes


def test_the_matrices_of_a_small_batch():
    batch = Collate(pad_token_id=1)([example(2), example(4), example(1)])
    assert {key: value.int().tolist() for key, value in batch.items()} == {
        "input_ids": [[10, 11, 1, 1], [10, 11, 12, 13], [10, 1, 1, 1]],
        "attention_mask": [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]],
        "labels": [[3, 3, -100, -100], [3, 3, 3, 3], [3, -100, -100, -100]],
        "global_attention_mask": [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]],
        "cross_document": [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]],
    }
    assert batch.pop("cross_document").dtype == torch.bool
    assert {value.dtype for value in batch.values()} == {torch.int64}


@pytest.mark.parametrize(
    ("label", "dtype"),
    [
        (1.0, torch.float32),
        (np.array(1, dtype=np.float32), torch.float32),
        (np.float64(1), torch.float32),
        (np.array(1, dtype=np.int32), torch.int64),
    ],
)
def test_pairs_of_mentions_have_one_label_of_its_own_kind(label, dtype):
    given = [
        {"input_ids": [5, 7, 9], "mention_mask": [[0, 1, 0], [0, 0, 1]], "labels": label},
        {"input_ids": [5, 9], "mention_mask": [[1, 0], [0, 1]], "labels": label},
    ]
    batch = Collate(pad_token_id=0)(given)
    assert {key: value.tolist() for key, value in batch.items()} == {
        "input_ids": [[5, 7, 9], [5, 9, 0]],
        "attention_mask": [[1, 1, 1], [1, 1, 0]],
        "mention_mask": [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0]]],
        "labels": [1, 1],
    }
    assert (batch["mention_mask"].dtype, batch["labels"].dtype) == (torch.bool, dtype)


ONE = np.float32(1)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([example(3), example(3, labels=np.ones(2))], r"\[1\]\['labels'\] has shape \(2,\), but there are 3"),
        ([example(3, mention_mask=np.ones(3))], r"shape \(3,\), but there are 3 input_ids; it must be \(2,"),
        ([example(3, labels=ONE), example(3)], r"\[1\]\['labels'\] has shape \(3,\), .*; it must be \(\)"),
        ([example(3), example(3, labels=ONE)], r"\[1\]\['labels'\] has shape \(\), .*; it must be \(3,\)"),
    ],
)
def test_bad_examples(examples, message):
    with pytest.raises(ValueError, match=message):
        Collate(pad_token_id=0)(examples)


def test_batches_hold_every_example_once_and_waste_little():
    assert batches_by_length([10, 40, 10, 40, 30], [1, 2, 3, 4, 9], 2) == [[3, 1], [4, 2], [0]]
    assert batches_by_length([], [], 4) == []
    lengths = np.random.default_rng(0).integers(1, 1000, size=503).tolist()
    batches, again = (batches_by_length(lengths, [length // 7 for length in lengths], 8) for _ in range(2))
    assert sorted(index for batch in batches for index in batch) == list(range(503))
    assert [len(batch) for batch in batches] == [8] * 62 + [7]
    assert sum(max(lengths[i] for i in batch) * len(batch) for batch in batches) < 1.05 * sum(lengths)
    assert batches == again
    for arguments, message in (
        (([1, 2], [1], 2), "there are 2 lengths but 1 global_counts"),
        (([1], [1], 0), "batch_size is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            batches_by_length(*arguments)


def test_batches_of_short_examples_are_larger_and_none_has_more_tokens():
    lengths = [int(one) for one in np.random.default_rng(0).integers(1, 1000, size=503)]
    batches = batches_by_tokens(lengths, [0] * 503, 8)
    assert sorted(index for batch in batches for index in batch) == list(range(503))
    one_by_one = batches_by_length(lengths, [0] * 503, 1)
    assert [index for batch in batches for index in batch] == [index for (index,) in one_by_one]
    tokens = [max(lengths[i] for i in batch) * len(batch) for batch in batches]
    assert max(tokens) <= 8 * max(lengths)
    assert min(tokens[:-1]) > 7 * max(lengths) / 2
    assert sum(tokens) < 1.1 * sum(lengths)
    assert len(batches) < 40 < len(batches_by_length(lengths, [0] * 503, 8))
    assert batches_by_tokens([], [], 4) == []
    assert batches_by_tokens([0, 0], [0, 0], 1) == [[0], [1]]


def test_the_examples_of_an_update_are_sorted_by_length_and_stay_in_it():
    lengths = np.random.default_rng(0).integers(1, 50, 103).tolist()
    order = like_lengths_together(lengths, 8)
    for first in range(0, 103, 8):
        update = order[first : first + 8]
        assert sorted(update) == list(range(first, min(first + 8, 103)))
        assert [lengths[n] for n in update] == sorted(lengths[n] for n in update)
    with pytest.raises(ValueError, match="batch_size is 0; it must be at least 1"):
        like_lengths_together(lengths, 0)
