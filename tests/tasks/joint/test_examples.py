"""Questions with candidates and claims with evidence: orders, sequences, data sets and batches."""

import hashlib
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.records import CandidateSet, EvidencedClaim
from cdlm_lab.examples.passes import Passes
from cdlm_lab.examples.tokens import SpecialTokens, encode_pieces
from cdlm_lab.tasks.joint import examples as candidate_examples
from cdlm_lab.tasks.joint.examples import (
    EncodedTexts,
    JointCollate,
    JointExamples,
    JointLayout,
    PairedClaimCollate,
    cascade_scores,
    fixed_order,
    joint_sequence,
    top_k,
)

NAN = np.nan


def test_the_fixed_order_is_that_of_the_hashes():
    texts = ["Ada won.", "Bo came second.", "It rained."]
    by_hand = sorted(range(3), key=lambda n: hashlib.sha256(f"q1\0{texts[n]}".encode()).hexdigest())
    result = fixed_order(texts, key="q1")
    assert result.tolist() == by_hand == [0, 2, 1], "the same on every machine"
    assert result.dtype == np.int64
    assert fixed_order([], key="q1").shape == (0,)
    assert fixed_order(["same"] * 4, key="q").tolist() == [0, 1, 2, 3]
    orders = {tuple(fixed_order(["a", "b", "c", "d"], key=f"q{n}")) for n in range(50)}
    assert len(orders) > 15, "24 there are"
    assert fixed_order(["a\ud800", "b"], key="q").tolist() in ([0, 1], [1, 0]), "half a pair of JSON"


@given(st.lists(st.text(max_size=3), unique=True, max_size=7), st.randoms(use_true_random=False))
def test_the_fixed_order_does_not_depend_on_the_order_of_the_file(texts, random):
    moved = random.sample(texts, len(texts))
    first, second = fixed_order(texts, key="q"), fixed_order(moved, key="q")
    assert [texts[n] for n in first] == [moved[n] for n in second]
    assert sorted(first) == list(range(len(texts)))


def test_groups_have_each_candidate_once():
    order = [3, 0, 4, 1, 2]
    for k, groups in ((2, [[3, 0], [4, 1], [2]]), (5, [order]), (9, [order])):
        assert [group.tolist() for group in candidate_examples.chunks(np.array(order), k=k)] == groups
    assert candidate_examples.chunks(np.array([]), k=2) == []


def test_the_first_k_and_their_ties():
    scores = np.array([0.2, 0.9, 0.2, 0.5, 0.2])
    assert top_k(scores, np.array([0, 1, 2, 3, 4]), k=3).tolist() == [1, 3, 0]
    assert top_k(scores, np.array([4, 3, 2, 1, 0]), k=3).tolist() == [1, 3, 4], "the order decides ties alone"
    assert top_k(scores, np.array([2, 4, 0, 1, 3]), k=9).tolist() == [1, 3, 2, 4, 0]
    assert top_k(np.array([0.0, -0.0]), np.array([1, 0]), k=1).tolist() == [1], "zeros are equal"


def test_a_cascade_by_hand():
    pairwise = np.array([0.9, 0.8, 0.2, 0.2, 0.7, 0.1])
    result = cascade_scores(pairwise, np.array([-5.0, 3.0, NAN, NAN, -5.0, NAN]))
    # candidate 1, then 0 and 4 tied, below all of them 2 and 3 tied, then 5
    assert result.dtype == np.float64
    assert result[1] > result[0] == result[4] > result[2] == result[3] > result[5]


@given(st.lists(st.tuples(st.integers(-1, 1), st.none() | st.integers(-1, 1)), min_size=1, max_size=6))
def test_any_two_of_a_cascade_are_ordered_by_its_definition(candidates):
    pairwise = np.array([first for first, _ in candidates], dtype=float)
    joint = np.array([NAN if second is None else second for _, second in candidates], dtype=float)
    keys = [(1, b) if b is not None else (0, a) for a, b in candidates]
    result = cascade_scores(pairwise, joint)
    for first, key in zip(result, keys, strict=True):
        for second, other in zip(result, keys, strict=True):
            assert (first > second) == (key > other)
            assert (first == second) == (key == other)


SPECIAL = SpecialTokens(
    start=1, end=2, cls=3, sep=4, pad=0, mask=5, all_special=frozenset(range(6)), vocabulary_size=100
)
LAYOUT = JointLayout(sentences=4, length=4)
COMPACT = JointLayout(sentences=4, length=4, positions="compact")
CANDIDATES = st.lists(st.none() | st.lists(st.integers(6, 99), max_size=6), min_size=3, max_size=3)


def passes_of(**settings) -> Passes:
    return Passes(**{"items": 1, "seed": 0, "stream": 1, **settings})


def written(*pieces) -> candidate_examples.JointSequence:
    return joint_sequence(pieces, layout=LAYOUT, special=SPECIAL)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: passes_of(items=0), "there are no examples to make"),
        (lambda: passes_of(seed=-1), "seed is -1; it must be at least 0"),
        (lambda: passes_of(size=0), "size is 0; it must be at least 1"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()


def test_a_sequence_by_hand():
    # The question is too long by two pieces, candidate 1 fits to the piece, 2 is absent and 3 has no piece.
    result = written([10, 11, 12, 13, 14], np.array([20, 21, 22], dtype=np.int32), None, [])
    arrays = {
        name: getattr(result, name)
        for name in ("input_ids", "token_type_ids", "position_ids", "starts", "cut")
    }
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "input_ids": [3, 10, 11, 12, 4, 20, 21, 22, 4],
        "token_type_ids": [0, 0, 0, 0, 1, 1, 1, 1, 3],
        "position_ids": [0, 1, 2, 3, 4, 5, 6, 7, 12],  # sentence 3 starts at 3 * 4
        "starts": [0, 4, -1, 8],
        "cut": [2, 0, 0, 0],
    }
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}
    assert result.sentence.tolist() == result.token_type_ids.tolist()
    # short sentences leave gaps in strided positions and none in compact ones
    pieces = ([10], [20, 21], [30], None)
    strided, compact = (joint_sequence(pieces, layout=each, special=SPECIAL) for each in (LAYOUT, COMPACT))
    assert strided.position_ids.tolist() == [0, 1, 4, 5, 6, 8, 9]
    assert compact.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 6]
    for name in ("input_ids", "token_type_ids", "starts", "cut"):
        assert getattr(strided, name).tolist() == getattr(compact, name).tolist()


def padded_positions(pieces: list) -> list[int]:
    """Compute positions by the paper's definition: pad each sentence to L, number all, drop the padding."""
    numbers = []
    for sentence, one in enumerate(pieces):
        row = [] if one is None else ["front", *one][: LAYOUT.length]
        padded = row + ["pad"] * (LAYOUT.length - len(row))
        first = sentence * LAYOUT.length
        numbers += [place for place, token in enumerate(padded, start=first) if token != "pad"]
    return numbers


@given(st.lists(st.integers(6, 99), max_size=6), CANDIDATES)
def test_a_sequence_is_the_padded_one_without_padding(question, candidates):
    pieces = [question, *candidates]
    result = written(*pieces)
    assert result.position_ids.tolist() == padded_positions(pieces)
    assert (result.token_type_ids == result.position_ids // LAYOUT.length).all()
    for number, one in enumerate(pieces):
        own = result.input_ids[result.sentence == number].tolist()
        assert own == ([] if one is None else [3 if number == 0 else 4, *one[:3]])
        assert result.cut[number] == (0 if one is None else len(one) - len(own) + 1)
        start = result.starts[number]
        assert start == -1 if one is None else result.position_ids[start] == number * LAYOUT.length


def in_words(ids: np.ndarray | torch.Tensor, tokenizer) -> str:
    return " ".join(tokenizer.convert_ids_to_tokens(ids.tolist()))


FOUR = JointLayout(sentences=4, length=4)


def question(name: str, *candidates: str, right: tuple[int, ...] = (0,)) -> CandidateSet:
    correct = tuple(number in right for number in range(len(candidates)))
    return CandidateSet(id=name, question=f"w1 {name}", candidates=candidates, correct=correct)


def claim(name: str, text: str, *evidence: str, label: str | None = None) -> EvidencedClaim:
    return EvidencedClaim(id=name, text=text, evidence=evidence, label=label, group="g")


def test_texts_are_tokenised_one_by_one_the_question_or_claim_first(tokenizer):
    result = encode_pieces(["w1  w2", " w3\n", "   ", "[SEP] w4"], tokenizer)
    first = tokenizer.convert_tokens_to_ids("w1")
    assert [ids.tolist() for ids in result[:3]] == [[first, first + 1], [first + 2], []]
    assert tokenizer.sep_token_id not in result[3], "it is somebody's text"
    assert result[3][-1] == first + 3
    assert {ids.dtype for ids in result} == {np.dtype(np.int32)}
    assert encode_pieces([], tokenizer) == []
    of_question = EncodedTexts([question("w2", "w3", "w4 w5")], tokenizer)["w2"]
    assert [in_words(ids, tokenizer) for ids in of_question] == ["w1 w2", "w3", "w4 w5"]
    of_claim = EncodedTexts([claim("c", "w6", "w7", "w8 w9")], tokenizer)["c"]
    assert [in_words(ids, tokenizer) for ids in of_claim] == ["w6", "w7", "w8 w9"]


# Groups of three: 3 + 2, 1, and 3 candidates.
SETS = [
    question("w100", "w10", "w11", "w12 w13 w14 w15", "w16", "w17", right=(1, 3)),
    question("w101", "w20"),
    question("w102", "w30", "w31", "w32", right=()),
]
CLAIMS = [
    claim("a", "w1", "w2 w3", "w4", label="refuted"),
    claim("b", "w5", label="not enough info"),
    claim("c", "w6 w7", "w8"),
    claim("d", "w9", "w1", "w2", "w3", "w4", label="supported"),
]


@pytest.fixture
def make(tokenizer, special):
    def _make(**settings) -> JointExamples:
        settings = {"records": SETS, "layout": FOUR, "shuffle": False, **settings}
        encoded = EncodedTexts(settings["records"], tokenizer)
        return JointExamples(encoded=encoded, special=special, **settings)

    return _make


@pytest.fixture
def claims(tokenizer, special) -> JointExamples:
    encoded = EncodedTexts(CLAIMS, tokenizer)
    return JointExamples(records=CLAIMS, encoded=encoded, layout=FOUR, special=special, shuffle=False)


def owners(examples: JointExamples, start: int, stop: int) -> list[tuple[int, list[int]]]:
    return [(number, group.tolist()) for number, group in map(examples.owner, range(start, stop))]


def sizes(examples: JointExamples) -> list[int]:
    return [len(group) for _, group in owners(examples, 0, len(examples))]


def same(first: dict, second: dict) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[key], second[key]) for key in first)


def test_an_example_by_hand(make, tokenizer):
    one = make(records=[question("w104", "w30", "w31 w32 w33 w34", right=(1,))])[0]
    order = fixed_order(["w30", "w31 w32 w33 w34"], key="w104").tolist()
    assert order == [1, 0], "so that the candidates stand in another order than in the set"
    assert in_words(one.pop("input_ids"), tokenizer) == "[CLS] w1 w104 [SEP] w31 w32 w33 [SEP] w30"
    assert {array.dtype for array in one.values()} == {np.dtype(np.int64)}
    assert {name: array.tolist() for name, array in one.items()} == {
        "token_type_ids": [0, 0, 0, 1, 1, 1, 1, 2, 2],
        "position_ids": [0, 1, 2, 4, 5, 6, 7, 8, 9],
        "starts": [0, 3, 7, -1],
        "labels": [1, 0, -100],
    }


def test_for_testing_each_candidate_is_read_once_in_the_fixed_order(make):
    examples = make()
    assert len(examples) == 4
    result = owners(examples, 0, 4)
    assert [number for number, _ in result] == [0, 0, 1, 2]
    assert result[0][1] + result[1][1] == fixed_order(SETS[0].candidates, key="w100").tolist()
    assert sizes(examples) == [3, 2, 1, 3]
    for index, (number, group) in enumerate(result):
        labels = [int(SETS[number].correct[candidate]) for candidate in group]
        assert examples[index]["labels"].tolist() == labels + [-100] * (3 - len(group))
    assert examples.describe(0).cut.sum() + examples.describe(1).cut.sum() == 1, "w15 of the third candidate"


def test_labels_and_the_order_of_the_file_do_not_decide_the_order_for_testing(make):
    one = SETS[0]
    other = replace(one, correct=tuple(not right for right in one.correct))
    turned = replace(one, candidates=one.candidates[::-1], correct=one.correct[::-1])
    plain, flipped, reversed_ = (make(records=[each]) for each in (one, other, turned))
    for index in range(2):
        ids = plain[index]["input_ids"].tolist()
        assert ids == flipped[index]["input_ids"].tolist() == reversed_[index]["input_ids"].tolist()
        assert plain[index]["labels"].tolist() == reversed_[index]["labels"].tolist()
        assert plain[index]["labels"].tolist() != flipped[index]["labels"].tolist()


def test_training_reads_each_candidate_once_in_each_pass_in_another_order(make):
    examples = make(shuffle=True, size=10, seed=5)
    passes = [owners(examples, 0, 4), owners(examples, 4, 8)]
    for result in passes:
        pairs = sorted((number, candidate) for number, group in result for candidate in group)
        assert pairs == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert sorted(passes[0]) != sorted(passes[1]), "not only the groups move, their candidates do"


def test_claims_by_hand(claims, tokenizer):
    result = [claims[index] for index in range(4)]
    assert [in_words(one["input_ids"], tokenizer) for one in result] == [
        "[CLS] w1 [SEP] w2 w3 [SEP] w4",
        "[CLS] w5",
        "[CLS] w6 w7 [SEP] w8",
        "[CLS] w9 [SEP] w1 [SEP] w2 [SEP] w3",  # there is room for three
    ]
    labels, starts = [1, 2, -100, 0], [[0, 2, 5, -1], [0, -1, -1, -1], [0, 3, -1, -1], [0, 2, 4, 6]]
    assert [one["labels"].tolist() for one in result] == labels
    assert [LABELS[number] for number in (1, 2, 0)] == ["refuted", "not enough info", "supported"]
    assert [one["starts"].tolist() for one in result] == starts
    batch = JointCollate(0)(result)
    assert (batch["labels"].tolist(), batch["starts"].tolist()) == (labels, starts)


def test_a_batch_by_hand(make, tokenizer):
    two = [make()[index] for index in (2, 3)]
    batch = JointCollate(tokenizer.pad_token_id)(two)
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}
    text = in_words(batch.pop("input_ids")[0], tokenizer)
    assert text == "[CLS] w1 w101 [SEP] w20 [PAD] [PAD] [PAD] [PAD]"
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "attention_mask": [[1] * 5 + [0] * 4, [1] * 9],
        "position_ids": [[0, 1, 2, 4, 5, 0, 0, 0, 0], [0, 1, 2, 4, 5, 8, 9, 12, 13]],
        "token_type_ids": [[0, 0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 2, 2, 3, 3]],
        "starts": [[0, 3, -1, -1], [0, 3, 5, 7]],
        "labels": [[1, -100, -100], [0, 0, 0]],
    }
    # another padding id than zero, and labels of tokens
    batch = JointCollate(77)([one | {"mlm_labels": one["input_ids"]} for one in two])
    assert batch["input_ids"][0, 5:].tolist() == [77] * 4
    assert batch["mlm_labels"][0].tolist() == two[0]["input_ids"].tolist() + [-100] * 4


@pytest.mark.parametrize("positions", ["strided", "compact"])
def test_a_pair_is_what_the_claim_is_with_that_evidence_alone(claims, tokenizer, special, positions):
    wide = replace(claims, layout=replace(FOUR, positions=positions))
    alone = [
        replace(claim, id=f"{claim.id}{number}", evidence=(evidence,))
        for claim in CLAIMS
        for number, evidence in enumerate(claim.evidence[:3] or ("",))
    ]
    layout = JointLayout(sentences=2, length=4, positions=positions)
    narrow = replace(claims, records=alone, encoded=EncodedTexts(alone, tokenizer), layout=layout)
    pairs = PairedClaimCollate(0, wide.layout)([wide[index] for index in range(4)])
    expected = JointCollate(0)([narrow[index] for index in range(len(narrow))])
    rows = torch.arange(len(alone)) != 2  # of claim b, which has no evidence: there it has a blank one
    for key in ("input_ids", "attention_mask", "token_type_ids", "position_ids", "starts"):
        assert torch.equal(pairs[key][rows], expected[key][rows])
    assert pairs["claim"].tolist() == [0, 0, 1, 2, 3, 3, 3]
