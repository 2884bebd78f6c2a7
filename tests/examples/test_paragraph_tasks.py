"""Examples of paragraph pre-training: which sentences are drawn and how they are labelled, by hand and in all
examples; chance; masks; bad corpora.

Sentence s of paragraph p of document d reads "w<d> w<100 + p> w<200 + s>": its tokens say where it is from.
"""

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from torch.utils.data import DataLoader

from cdlm_lab.data.clusters import Paragraphed
from cdlm_lab.examples import paragraph_tasks
from cdlm_lab.examples.cached_corpus import tokenise_paragraphs
from cdlm_lab.examples.candidates import JointLayout, joint_sequence
from cdlm_lab.examples.paragraph_tasks import KINDS, ParagraphTasks, TaskCounts

KEYS = ["input_ids", "token_type_ids", "position_ids", "starts", "labels", "mlm_labels"]
SIZES = [(3, 1, 2), (2, 2), (5,), (1, 1, 1), (4, 1)]  # sentences of each paragraph of each document
SOURCES = {(0, 0), (0, 2), (1, 0), (1, 1), (4, 0)}
Place = tuple[int, int, int]  # document, paragraph, sentence


def documents(sizes: list[tuple[int, ...]]) -> list[Paragraphed]:
    return [
        Paragraphed(
            id=f"d{d}",
            paragraphs=tuple(
                tuple(f"w{d} w{100 + p} w{200 + s}" for s in range(size)) for p, size in enumerate(paragraphs)
            ),
        )
        for d, paragraphs in enumerate(sizes)
    ]


@pytest.fixture
def corpus_of(tokenizer, tmp_path: Path) -> Callable[[list[Paragraphed]], Dataset]:
    def _corpus_of(made: list[Paragraphed]) -> Dataset:
        number = len(list(tmp_path.glob("corpus*")))
        return tokenise_paragraphs(
            lambda: iter(made), tokenizer, cache_dir=tmp_path, fingerprint=f"corpus{number}"
        )

    return _corpus_of


@pytest.fixture
def tasks(corpus_of, special) -> Callable[..., ParagraphTasks]:
    """tasks(sizes or documents, k=..., ...): examples of that corpus."""

    def _tasks(made=SIZES, *, k=(1, 2, 2), length: int = 8, **changes) -> ParagraphTasks:
        made = made if isinstance(made[0], Paragraphed) else documents(made)
        return ParagraphTasks(
            **{
                "corpus": corpus_of(made),
                "layout": JointLayout(sentences=1 + sum(k), length=length),
                "special": special,
                "k": k,
                **changes,
            }
        )

    return _tasks


@pytest.fixture
def place(tokenizer) -> Callable[[np.ndarray], Place]:
    """Where a sentence is from, by its tokens."""

    def _place(tokens: np.ndarray) -> Place:
        document, paragraph, sentence = (int(word[1:]) for word in tokenizer.decode(tokens).split())
        return document, paragraph - 100, sentence - 200

    return _place


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(first[key], second[key]) for key in KEYS)


class TestDrawing:
    def test_kinds_and_labels_are_true(self, tasks, place):
        made = tasks(size=200)
        seen = set()
        for index in range(200):
            example = made.describe(index)
            places = [place(sentence.tokens) for sentence in example.sentences]
            assert len(set(places)) == 6
            (document, paragraph, _), candidates = places[0], places[1:]
            inside = [result[:2] == (document, paragraph) for result in candidates]
            assert example.labels.tolist() == inside
            assert sum(inside) == 1
            kinds = [
                KINDS[0] if result[:2] == (document, paragraph) else KINDS[1 + (result[0] != document)]
                for result in candidates
            ]
            assert [sentence.kind for sentence in example.sentences] == [KINDS[0], *kinds]
            counts = Counter(kinds)
            assert counts[KINDS[1]] == 2 - example.replaced
            assert counts[KINDS[2]] == 2 + example.replaced
            assert example.replaced == (document == 4)  # which has one sentence in its other paragraph
            for sentence, result in zip(example.sentences, places, strict=True):
                assert (sentence.document_id, sentence.row) == (f"d{result[0]}", result[0])
                assert sentence.number == sum(SIZES[result[0]][: result[1]]) + result[2]
            seen.update(places)
        assert seen == {
            (d, p, s) for d, sizes in enumerate(SIZES) for p, n in enumerate(sizes) for s in range(n)
        }

    @pytest.mark.parametrize(
        ("k", "counts"),
        [
            ((1, 2, 2), TaskCounts(documents=5, source_documents=3, sources=5, short_of_hard=1)),
            ((2, 1, 2), TaskCounts(documents=5, source_documents=2, sources=2, short_of_hard=0)),
            ((1, 3, 2), TaskCounts(documents=5, source_documents=3, sources=5, short_of_hard=3)),
            ((1, 0, 2), TaskCounts(documents=5, source_documents=4, sources=6, short_of_hard=0)),
        ],
    )
    def test_what_can_be_the_source(self, tasks, place, k, counts):
        made = tasks(k=k)
        assert made.counts == counts
        assert len(made) == counts.sources
        result = {place(made.describe(index).sentences[0].tokens)[:2] for index in range(len(made))}
        enough = {
            (d, p)
            for d, sizes in enumerate(SIZES)
            for p, size in enumerate(sizes)
            if size > k[0] and (len(sizes) > 1 or not k[1])
        }
        assert result == enough
        assert k != (1, 2, 2) or enough == SOURCES

    def test_a_pass_has_each_source_once_in_an_order_of_its_own(self, tasks, place):
        made = tasks(size=5 * 40)
        orders = [
            tuple(place(made.describe(epoch * 5 + n).sentences[0].tokens)[:2] for n in range(5))
            for epoch in range(40)
        ]
        assert all(set(order) == SOURCES for order in orders)
        assert len(set(orders)) > 20
        assert [made.describe(index).epoch for index in (0, 4, 5, 199)] == [0, 0, 1, 39]

    def test_s0_and_the_positive_are_any_two_sentences_in_either_order(self, tasks, place):
        made = tasks([(3, 2), (1,)], k=(1, 1, 1), size=2 * 300)
        pairs = Counter()
        for index in range(600):
            example = made.describe(index)
            positive = example.sentences[1 + example.labels.tolist().index(1)]
            first, second = place(example.sentences[0].tokens), place(positive.tokens)
            pairs[first[1:], second[2]] += 1
        result = {key: count for key, count in pairs.items() if key[0][0] == 0}
        assert set(result) == {((0, a), b) for a in range(3) for b in range(3) if a != b}
        assert min(result.values()) > 30  # 50 each
        assert {pairs[(1, 0), 1] + pairs[(1, 1), 0]} == {300}

    def test_no_place_among_the_candidates_is_preferred(self, tasks):
        made = tasks(size=1000)
        examples = [made.describe(index) for index in range(1000)]
        labels = np.sum([example.labels for example in examples], axis=0)
        assert labels.sum() == 1000
        assert 150 < labels.min() <= labels.max() < 250
        for kind in KINDS[1:]:
            table = [[sentence.kind == kind for sentence in example.sentences[1:]] for example in examples]
            shares = np.mean(table, axis=0)
            assert shares.max() - shares.min() < 0.1

    def test_other_documents_are_drawn_alike_however_long(self, tasks):
        made = tasks([(2, 2), (1,), (97,)], k=(1, 1, 1), size=600)
        rows = Counter(s.row for n in range(600) for s in made.describe(n).sentences if s.kind == KINDS[2])
        assert set(rows) == {1, 2}
        assert 250 < rows[1] < 350

    def test_it_goes_on_until_it_has_other_documents_for_all(self, tasks):
        made = tasks([(2, 1), (1,), (1,)], k=(1, 2, 1))
        example = made.describe(0)
        assert (made.counts.short_of_hard, example.replaced) == (1, 1)
        assert sorted(s.document_id for s in example.sentences) == ["d0", "d0", "d0", "d1", "d2"]


class TestCopies:
    def test_no_negative_is_a_copy_of_a_sentence_of_the_paragraph(self, tasks, tokenizer):
        paragraph = ("w1 w2", "w3 w4", "w5 w6")
        made = tasks(
            [
                Paragraphed(id="a", paragraphs=(paragraph, ("w3 w4", "w7", "w1 w2", "w8"))),
                Paragraphed(id="b", paragraphs=((*paragraph, "w9", "w11"),)),
                Paragraphed(id="c", paragraphs=((*paragraph, "w10"),)),
            ],
            size=200,
        )
        for index in range(200):
            example = made.describe(index)
            if example.sentences[0].number > 2:
                continue
            negatives = {tokenizer.decode(s.tokens) for s in example.sentences if s.kind != KINDS[0]}
            assert len(negatives) == 4
            assert negatives - {"w9", "w10", "w11"} == {"w7", "w8"}

    def test_what_reads_the_same_after_the_cut_is_a_copy_too(self, tasks, tokenizer):
        made = [
            Paragraphed(id="a", paragraphs=(("w1 w2 w3", "w4 w5 w6"), ("w1 w2 w9", "w7 w2 w3"))),
            Paragraphed(id="b", paragraphs=(("w4 w5 w9", "w8 w2 w3"),)),
        ]

        def negatives(length: int) -> set[str]:
            drawn = tasks(made, k=(1, 1, 1), length=length, size=80)
            return {
                tokenizer.decode(sentence.tokens)
                for example in map(drawn.describe, range(80))
                if example.sentences[0].number < 2
                for sentence in example.sentences[1:]
                if sentence.kind != KINDS[0]
            }

        assert negatives(4) == {"w1 w2 w9", "w7 w2 w3", "w4 w5 w9", "w8 w2 w3"}
        assert negatives(3) == {"w7 w2 w3", "w8 w2 w3"}

    def test_no_two_negatives_are_copies(self, tasks, tokenizer):
        made = tasks(
            [
                Paragraphed(id="a", paragraphs=(("w1", "w2"), ("w3", "w3", "w3"), ("w4",))),
                Paragraphed(id="b", paragraphs=(("w3", "w3", "w3", "w4", "w5", "w6"),)),
            ],
            size=60,
        )
        for example in map(made.describe, range(60)):
            if example.sentences[0].number < 2:  # w1 or w2
                texts = sorted(tokenizer.decode(sentence.tokens) for sentence in example.sentences)
                assert texts == ["w1", "w2", "w3", "w4", "w5", "w6"]

    def test_hard_negatives_that_are_copies_are_replaced_and_counted(self, tasks):
        made = tasks(
            [
                Paragraphed(id="a", paragraphs=(("w1", "w2"), ("w1", "w2", "w3"))),
                Paragraphed(id="b", paragraphs=(("w5", "w6", "w7", "w8"),)),
            ],
            size=20,
        )
        assert made.counts.short_of_hard == 0  # sentences are counted, not compared
        replaced = {
            example.sentences[0].number > 1: example.replaced for example in map(made.describe, range(20))
        }
        assert replaced == {False: 1, True: 2}

    def test_other_documents_of_nothing_but_copies_are_an_error_and_no_endless_loop(self, tasks):
        copies = [Paragraphed(id=name, paragraphs=(("w1", "w2"), ("w3", "w4"))) for name in "ab"]
        message = r"document '[ab]': 2 of 4 negatives not found, for other documents only repeat what is th"
        with pytest.raises(ValueError, match=message):
            tasks(copies)[0]


class TestChance:
    def test_pinned(self, tasks, place):
        """What a seed draws must stay: a run that is resumed under another version would see other texts."""
        example = tasks(seed=7).describe(2)
        assert [place(sentence.tokens) for sentence in example.sentences] == [
            (4, 0, 1),
            (4, 1, 0),
            (4, 0, 2),
            (1, 1, 0),
            (0, 1, 0),
            (0, 2, 0),
        ]
        assert example.labels.tolist() == [0, 1, 0, 0, 0]
        assert np.flatnonzero(example.mlm_labels != -100).tolist() == [2]

    def test_sizes_seeds_and_passes(self, tasks):
        one, more = tasks(), tasks(size=37)
        assert (len(one), len(more)) == (5, 37)
        assert all(same(one[index], more[index]) for index in range(5))
        other = tasks(size=37, seed=1)
        assert not any(same(more[index], other[index]) for index in range(37))
        keys = [example["input_ids"].tobytes() for example in map(more.__getitem__, range(37))]
        assert len(set(keys)) == 37

    def test_masks_do_not_change_what_is_drawn(self, tasks):
        few, many = tasks(size=20), tasks(size=20, mask_probability=0.9)
        for index in range(20):
            assert np.array_equal(
                few.describe(index).sequence.input_ids, many.describe(index).sequence.input_ids
            )

    def test_workers_and_copies_see_the_same(self, tasks):
        made = tasks(size=12)
        alone = [made[index] for index in range(12)]
        loader = DataLoader(made, batch_size=None, num_workers=2)
        assert all(
            same(one, {key: value.numpy() for key, value in two.items()})
            for one, two in zip(alone, loader, strict=True)
        )
        copied = pickle.loads(pickle.dumps(made))  # noqa: S301 (our own bytes)
        assert all(same(alone[index], copied[index]) for index in range(12))


class TestExample:
    def test_names_kinds_and_shapes(self, tasks, special):
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

    def test_masks(self, tasks, special):
        made = tasks(size=400)
        masked = np.zeros(24)
        for index in range(400):
            example, given = made[index], made.describe(index)
            drawn = example["mlm_labels"] != -100
            original = given.sequence.input_ids
            assert drawn.any()
            assert not drawn[example["starts"]].any()
            assert np.array_equal(example["mlm_labels"][drawn], original[drawn])
            assert np.array_equal(example["input_ids"][~drawn], original[~drawn])
            masked += drawn
        words = np.delete(masked, np.arange(0, 24, 4)).reshape(6, 3)  # without front tokens
        assert np.all(np.abs(words.mean(axis=1) / 400 - 0.15) < 0.04)  # in each of the sentences
        # One of 18 is masked where chance drew none: 0.15 + 0.85**18 / 18.
        assert abs(words.mean() / 400 - 0.153) < 0.015

    def test_the_preview_says_what_was_cut(self, tasks):
        assert tasks(length=3).describe(0).sequence.cut.tolist() == [1] * 6
        assert tasks(length=4).describe(0).sequence.cut.tolist() == [0] * 6


class TestCorpus:
    def test_sources_in_parts_are_the_sources_at_once(self, tasks, monkeypatch):
        sizes = [SIZES[n % 5] for n in range(23)]
        whole = tasks(sizes)
        monkeypatch.setattr(paragraph_tasks, "_ROWS_AT_ONCE", 4)
        parts = tasks(sizes)
        assert parts.counts == whole.counts
        assert whole.counts.sources == 5 * 4 + 4
        assert all(same(whole[index], parts[index]) for index in range(len(whole)))

    def test_a_selection_is_a_corpus(self, corpus_of, tasks, place):
        corpus = corpus_of(documents(SIZES))
        made = tasks(corpus=corpus.select([4, 2, 1]), size=40)
        assert made.counts == TaskCounts(documents=3, source_documents=2, sources=3, short_of_hard=1)
        drawn = [sentence for index in range(40) for sentence in made.describe(index).sentences]
        assert {(sentence.row, place(sentence.tokens)[0]) for sentence in drawn} == {(0, 4), (1, 2), (2, 1)}

    def test_only_the_documents_drawn_from_are_read(self, tasks, monkeypatch):
        rows = []
        read = paragraph_tasks.read_document
        monkeypatch.setattr(
            paragraph_tasks, "read_document", lambda corpus, row: rows.append(row) or read(corpus, row)
        )
        made = tasks([(2, 3)] * 90)
        assert rows == []
        for index in range(10):
            assert [s.kind for s in made.describe(index).sentences].count(KINDS[2]) == 2
        assert len(rows) <= 10 * 3 + 3  # a document may be drawn again, and its sentence with it


class TestBadInput:
    def test_one_document(self, tasks):
        message = "the corpus has one document only, and negatives are to come from others; add documents"
        with pytest.raises(ValueError, match=message):
            tasks([(2, 3)])
        with pytest.raises(ValueError, match=message):
            tasks([(2, 1)], k=(1, 2, 0))  # short of hard negatives
        assert tasks([(2, 3)], k=(1, 2, 0))[0]["labels"].sum() == 1

    def test_one_document_whose_hard_negatives_are_copies(self, tasks):
        made = tasks([Paragraphed(id="a", paragraphs=(("w1", "w2"), ("w1", "w2")))], k=(1, 2, 0))
        with pytest.raises(ValueError, match="document 'a': 2 of 2 negatives not found"):
            made[0]

    @pytest.mark.parametrize("sizes", [[(1, 1), (1,)], [(4,), (9,)]])
    def test_no_paragraph_that_can_be_the_source(self, tasks, sizes):
        message = (
            "none of the 2 documents has a paragraph of 2 or more sentences and another paragraph; check"
        )
        with pytest.raises(ValueError, match=message):
            tasks(sizes)

    @pytest.mark.parametrize("k", [(0, 2, 2), (1, 0, 0), (1, -1, 2)])
    def test_wrong_k(self, tasks, k):
        with pytest.raises(
            ValueError, match=r"k is \(.*\); give \(k_1, k_2, k_3\), k_1 at least 1 and a neg"
        ):
            tasks(k=k, layout=JointLayout(sentences=6))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"layout": JointLayout(sentences=5)}, r"the layout has 5 sentences; k \(1, 2, 2\) makes 6"),
            ({"seed": -1}, "seed is -1"),
            ({"size": 0}, "size is 0"),
            ({"mask_probability": 0.0}, "masking probability is 0.0"),
            (
                {"corpus": Dataset.from_dict({"document_id": ["a"]})},
                "no column 'input_ids'; make it with tok",
            ),
        ],
    )
    def test_other_values(self, tasks, changes, message):
        with pytest.raises(ValueError, match=message):
            tasks(**changes)
