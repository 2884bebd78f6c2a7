"""Examples of paragraph pre-training: which sentences are drawn and how they are labelled, by hand and in all
examples; chance; masks; bad corpora.

Sentence s of paragraph p of document d reads "w<d> w<100 + p> w<200 + s>": its tokens say where it is from.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset

from cdlm_lab.data.records import Paragraphed
from cdlm_lab.examples.cached_corpus import tokenise_paragraphs
from cdlm_lab.tasks.joint import paragraph_examples as paragraph_tasks
from cdlm_lab.tasks.joint.examples import JointLayout, joint_sequence
from cdlm_lab.tasks.joint.paragraph_examples import KINDS, ParagraphTasks, TaskCounts

KEYS = ["input_ids", "token_type_ids", "position_ids", "starts", "labels", "mlm_labels"]
SIZES = [(3, 1, 2), (2, 2), (5,), (1, 1, 1), (4, 1)]  # sentences of each paragraph of each document
SOURCES = {(0, 0), (0, 2), (1, 0), (1, 1), (4, 0)}
Place = tuple[int, int, int]  # document, paragraph, sentence


def document(name: str, *paragraphs: tuple[str, ...]) -> Paragraphed:
    return Paragraphed(id=name, paragraphs=paragraphs)


def documents(sizes: list[tuple[int, ...]]) -> list[Paragraphed]:
    return [
        document(
            f"d{d}",
            *(tuple(f"w{d} w{100 + p} w{200 + s}" for s in range(size)) for p, size in enumerate(paragraphs)),
        )
        for d, paragraphs in enumerate(sizes)
    ]


@pytest.fixture
def corpus_of(tokenizer, tmp_path: Path) -> Callable[[list[Paragraphed]], Dataset]:
    def _corpus_of(made: list[Paragraphed]) -> Dataset:
        name = f"corpus{len(list(tmp_path.glob('corpus*')))}"
        return tokenise_paragraphs(lambda: iter(made), tokenizer, cache_dir=tmp_path, fingerprint=name)

    return _corpus_of


@pytest.fixture
def tasks(corpus_of, special) -> Callable[..., ParagraphTasks]:
    """`tasks(sizes or documents, k=..., ...)` makes the examples of that corpus."""

    def _tasks(made=SIZES, *, k=(1, 2, 2), length: int = 8, **changes) -> ParagraphTasks:
        made = made if isinstance(made[0], Paragraphed) else documents(made)
        layout = JointLayout(sentences=1 + sum(k), length=length)
        settings = {"corpus": corpus_of(made), "layout": layout, "special": special, "k": k}
        return ParagraphTasks(**{**settings, **changes})

    return _tasks


@pytest.fixture
def place(tokenizer) -> Callable[[np.ndarray], Place]:
    """Function that returns where a sentence is from, according to its tokens."""

    def _place(tokens: np.ndarray) -> Place:
        document, paragraph, sentence = (int(word[1:]) for word in tokenizer.decode(tokens).split())
        return document, paragraph - 100, sentence - 200

    return _place


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(first[key], second[key]) for key in KEYS)


def test_kinds_and_labels_are_true(tasks, place):
    made = tasks(size=200)
    seen = set()
    for index in range(200):
        example = made.describe(index)
        places = [place(sentence.tokens) for sentence in example.sentences]
        assert len(set(places)) == 6
        (own, paragraph, _), candidates = places[0], places[1:]
        inside = [one[:2] == (own, paragraph) for one in candidates]
        assert example.labels.tolist() == inside
        assert sum(inside) == 1
        kinds = [
            KINDS[0] if near else KINDS[1 + (one[0] != own)]
            for one, near in zip(candidates, inside, strict=True)
        ]
        assert [sentence.kind for sentence in example.sentences] == [KINDS[0], *kinds]
        counts = Counter(kinds)
        assert (counts[KINDS[1]], counts[KINDS[2]]) == (2 - example.replaced, 2 + example.replaced)
        assert example.replaced == (own == 4)  # which has one sentence in its other paragraph
        for sentence, (d, p, s) in zip(example.sentences, places, strict=True):
            assert (sentence.document_id, sentence.row) == (f"d{d}", d)
            assert sentence.number == sum(SIZES[d][:p]) + s
        seen.update(places)
    assert seen == {(d, p, s) for d, sizes in enumerate(SIZES) for p, n in enumerate(sizes) for s in range(n)}


@pytest.mark.parametrize(
    ("k", "source_documents", "sources", "short_of_hard"),
    [((1, 2, 2), 3, 5, 1), ((2, 1, 2), 2, 2, 0), ((1, 3, 2), 3, 5, 3), ((1, 0, 2), 4, 6, 0)],
)
def test_what_can_be_the_source(tasks, place, k, source_documents, sources, short_of_hard):
    made = tasks(k=k)
    numbers = {"source_documents": source_documents, "sources": sources, "short_of_hard": short_of_hard}
    assert made.counts == TaskCounts(documents=5, **numbers)
    assert len(made) == sources
    enough = {
        (d, p)
        for d, sizes in enumerate(SIZES)
        for p, size in enumerate(sizes)
        if size > k[0] and (len(sizes) > 1 or not k[1])
    }
    assert {place(made.describe(index).sentences[0].tokens)[:2] for index in range(sources)} == enough
    assert k != (1, 2, 2) or enough == SOURCES


def test_s0_and_the_positive_are_any_two_sentences_in_either_order(tasks, place):
    made = tasks([(3, 2), (1,)], k=(1, 1, 1), size=2 * 300)
    pairs = Counter()
    for example in map(made.describe, range(600)):
        positive = example.sentences[1 + example.labels.tolist().index(1)]
        first, second = place(example.sentences[0].tokens), place(positive.tokens)
        pairs[first[1:], second[2]] += 1
    of_first = {key: count for key, count in pairs.items() if key[0][0] == 0}
    assert set(of_first) == {((0, a), b) for a in range(3) for b in range(3) if a != b}
    assert min(of_first.values()) > 30  # 50 each
    assert {pairs[(1, 0), 1] + pairs[(1, 1), 0]} == {300}


def test_no_place_among_the_candidates_is_preferred(tasks):
    made = tasks(size=1000)
    examples = [made.describe(index) for index in range(1000)]
    labels = np.sum([example.labels for example in examples], axis=0)
    assert labels.sum() == 1000
    assert 150 < labels.min() <= labels.max() < 250
    for kind in KINDS[1:]:
        table = [[sentence.kind == kind for sentence in example.sentences[1:]] for example in examples]
        shares = np.mean(table, axis=0)
        assert shares.max() - shares.min() < 0.1


def negatives_of(example: paragraph_tasks.ParagraphExample, tokenizer) -> set[str]:
    return {tokenizer.decode(s.tokens) for s in example.sentences if s.kind != KINDS[0]}


def test_no_negative_is_a_copy_of_a_sentence_of_the_paragraph(tasks, tokenizer):
    paragraph = ("w1 w2", "w3 w4", "w5 w6")
    made = [
        document("a", paragraph, ("w3 w4", "w7", "w1 w2", "w8")),
        document("b", (*paragraph, "w9", "w11")),
        document("c", (*paragraph, "w10")),
    ]
    for example in map(tasks(made, size=200).describe, range(200)):
        if example.sentences[0].number <= 2:
            negatives = negatives_of(example, tokenizer)
            assert len(negatives) == 4
            assert negatives - {"w9", "w10", "w11"} == {"w7", "w8"}
    # what reads the same after the cut is a copy too
    made = [
        document("a", ("w1 w2 w3", "w4 w5 w6"), ("w1 w2 w9", "w7 w2 w3")),
        document("b", ("w4 w5 w9", "w8 w2 w3")),
    ]
    for length, copies in ((4, {"w1 w2 w9", "w4 w5 w9"}), (3, set())):
        drawn = map(tasks(made, k=(1, 1, 1), length=length, size=80).describe, range(80))
        negatives = [negatives_of(one, tokenizer) for one in drawn if one.sentences[0].number < 2]
        assert set().union(*negatives) == {"w7 w2 w3", "w8 w2 w3"} | copies


def test_no_two_negatives_are_copies_and_those_replaced_are_counted(tasks, tokenizer):
    first = document("a", ("w1", "w2"), ("w3", "w3", "w3"), ("w4",))
    made = tasks([first, document("b", ("w3", "w3", "w3", "w4", "w5", "w6"))], size=60)
    for example in map(made.describe, range(60)):
        if example.sentences[0].number < 2:  # w1 or w2
            texts = sorted(tokenizer.decode(sentence.tokens) for sentence in example.sentences)
            assert texts == ["w1", "w2", "w3", "w4", "w5", "w6"]
    first = document("a", ("w1", "w2"), ("w1", "w2", "w3"))
    made = tasks([first, document("b", ("w5", "w6", "w7", "w8"))], size=20)
    assert made.counts.short_of_hard == 0  # sentences are counted, not compared
    examples = list(map(made.describe, range(20)))
    assert {one.sentences[0].number > 1: one.replaced for one in examples} == {False: 1, True: 2}


def test_pinned(tasks, place):
    """What a seed draws must not change: a run resumed under another version would read other texts."""
    example = tasks(seed=7).describe(2)
    drawn = [(4, 0, 1), (4, 1, 0), (4, 0, 2), (1, 1, 0), (0, 1, 0), (0, 2, 0)]
    assert [place(sentence.tokens) for sentence in example.sentences] == drawn
    assert example.labels.tolist() == [0, 1, 0, 0, 0]
    assert np.flatnonzero(example.mlm_labels != -100).tolist() == [2]


def test_an_example(tasks, special):
    made = tasks()
    example, given = made[1], made.describe(1)
    assert list(example) == KEYS
    assert {values.dtype.name for values in example.values()} == {"int64"}
    sequence = joint_sequence([s.tokens for s in given.sentences], layout=made.layout, special=special)
    for key in ("token_type_ids", "position_ids", "starts"):
        assert np.array_equal(example[key], getattr(sequence, key))
    assert example["input_ids"].shape == example["mlm_labels"].shape == (6 * 4,)
    assert example["labels"].shape == (5,)
    assert example["starts"].tolist() == [0, 4, 8, 12, 16, 20]
    assert example["position_ids"][-1] == 5 * 8 + 3
    for length, cut in ((3, 1), (4, 0)):
        assert tasks(length=length).describe(0).sequence.cut.tolist() == [cut] * 6


def test_masks(tasks):
    made = tasks(size=400)
    masked = np.zeros(24)
    for index in range(400):
        example, original = made[index], made.describe(index).sequence.input_ids
        drawn = example["mlm_labels"] != -100
        assert drawn.any()
        assert not drawn[example["starts"]].any()
        assert np.array_equal(example["mlm_labels"][drawn], original[drawn])
        assert np.array_equal(example["input_ids"][~drawn], original[~drawn])
        masked += drawn
    words = np.delete(masked, np.arange(0, 24, 4)).reshape(6, 3)  # without front tokens
    assert np.all(np.abs(words.mean(axis=1) / 400 - 0.15) < 0.04)  # in each of the sentences
    # One of 18 is masked where chance drew none: 0.15 + 0.85**18 / 18.
    assert abs(words.mean() / 400 - 0.153) < 0.015


def test_sources_in_parts_are_the_sources_at_once(tasks, monkeypatch):
    sizes = [SIZES[n % 5] for n in range(23)]
    whole = tasks(sizes)
    monkeypatch.setattr(paragraph_tasks, "_ROWS_AT_ONCE", 4)
    parts = tasks(sizes)
    assert parts.counts == whole.counts
    assert whole.counts.sources == 5 * 4 + 4
    assert all(same(whole[index], parts[index]) for index in range(len(whole)))


ONE = "the corpus has one document only, and negatives are to come from others; add documents"
NO_SOURCE = "none of the 2 documents has a paragraph of 2 or more sentences and another paragraph; check"
COPIES = [document(name, ("w1", "w2"), ("w3", "w4")) for name in "ab"]


@pytest.mark.parametrize(
    ("made", "changes", "message"),
    [
        ([(2, 3)], {}, ONE),
        ([(2, 1)], {"k": (1, 2, 0)}, ONE),  # short of hard negatives
        ([(1, 1), (1,)], {}, NO_SOURCE),
        ([(4,), (9,)], {}, NO_SOURCE),
        # found when it is read, and no endless loop
        (COPIES, {}, "document '[ab]': 2 of 4 negatives not found, for other documents only repeat what is"),
        ([document("a", ("w1", "w2"), ("w1", "w2"))], {"k": (1, 2, 0)}, "'a': 2 of 2 negatives not found"),
    ],
)
def test_what_makes_no_examples(tasks, made, changes, message):
    with pytest.raises(ValueError, match=message):
        tasks(made, **changes)[0]
