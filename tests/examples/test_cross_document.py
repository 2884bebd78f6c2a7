"""Examples of cross-document language modelling: chance, orders, documents, facts stated elsewhere."""

import numpy as np
import pytest

from cdlm_lab.data.records import Cluster, Document, Fact
from cdlm_lab.examples.cross_document import CrossDocumentExamples, recoverable_facts, whole_facts

KEYS = ["input_ids", "labels", "global_attention_mask", "cross_document"]


@pytest.fixture
def examples(forty, special):
    """Examples over the forty clusters of `numbered_clusters`; arguments may be changed."""

    def made(**changes) -> CrossDocumentExamples:
        return CrossDocumentExamples(**{"corpus": forty, "special": special, "max_length": 64, **changes})

    return made


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(first[key], second[key]) for key in KEYS)


def test_examples_agree_with_their_descriptions(examples, special):
    made = examples()
    assert list(made[3]) == KEYS
    assert [values.dtype.name for values in made[3].values()] == ["int64", "int64", "int64", "bool"]
    for index, example in enumerate(made):
        given = made.describe(index)
        assert len({values.shape for values in example.values()}) == 1
        masked = example["labels"] != -100
        assert (given.masked == masked).all()
        assert (given.packed.input_ids[masked] == example["labels"][masked]).all()
        assert (given.packed.input_ids[~masked] == example["input_ids"][~masked]).all()
        assert not special.is_special(given.packed.input_ids[masked]).any()
        assert given.index == index
        assert len(given.document_ids) == len(given.cluster_ids) == len(given.packed.kept_tokens)


def test_global_policies_are_compared_on_the_same_masks(examples):
    made = {policy: examples(global_policy=policy) for policy in ("masked", "prefix", "none")}
    example = made["masked"][0]
    length = len(example["labels"])
    expected = {
        "masked": example["labels"] != -100,
        "prefix": np.arange(length) < int(np.ceil(0.15 * length)),
        "none": np.zeros(length, dtype=bool),
    }
    for policy, chosen in expected.items():
        assert ((made[policy][0]["global_attention_mask"] == 1) == chosen).all()
        for index in range(40):
            for key in ("labels", "input_ids"):
                assert np.array_equal(made["masked"][index][key], made[policy][index][key])


def test_evaluation_takes_the_clusters_as_they_come_a_part_with_the_masks_of_the_whole(examples, forty):
    made, part = examples(shuffle=False), examples(shuffle=False, corpus=forty.select(range(10)))
    for index in range(40):
        given = made.describe(index)
        assert given.row == index
        assert set(given.cluster_ids) == {f"c{index}"}  # related takes all documents of one cluster
        count = (3, 4, 5)[index % 3]
        assert sorted(given.document_ids) == [f"c{index}d{number}" for number in range(count)]
    assert all(same(made[index], part[index]) for index in range(10))


def test_random_never_has_two_documents_of_one_cluster(examples):
    made, related = examples(size=200, documents="random"), examples()
    partners = set()
    for index in range(200):
        given = made.describe(index)
        assert len(set(given.cluster_ids)) == len(given.cluster_ids) == (3, 4, 5)[given.row % 3]
        assert given.cluster_ids[0] == f"c{given.row}"
        # All clusters number their facts from 0, which must not be mistaken for one fact.
        assert not given.cross_document.any()
        partners |= set(given.cluster_ids[1:])
    assert partners == {f"c{number}" for number in range(40)}
    assert all(related[index]["cross_document"].any() for index in range(40))


def test_random_with_exactly_enough_clusters_and_with_too_few(examples, forty):
    made = examples(corpus=forty.select([0, 1, 2]), documents="random", shuffle=False)
    assert sorted(made.describe(0).cluster_ids) == ["c0", "c1", "c2"]
    with pytest.raises(ValueError, match=r"'c2' has 5 documents, .* there are only 3 clusters"):
        made[2]


@pytest.mark.parametrize("marked", [True, False])
def test_what_another_document_states_too(marked: bool, tokenised, special, tokenizer):
    """`w1` is in two documents; `w2` in one only; `w3` in two, but twice in the first. Facts are marked, or
    else words count as such."""

    def document(name: str, text: str) -> Document:
        places = [(n, word) for n, word in enumerate(text.split()) if word != "w9"]
        facts = tuple(Fact(start=3 * n, end=3 * n + 2, id=word) for n, word in places)
        return Document(id=name, text=text, facts=facts if marked else ())

    texts = {"a": "w9 w1 w3 w9 w3", "b": "w3 w1 w2", "c": "w4 w4"}
    corpus = tokenised([Cluster(id="c", documents=tuple(document(n, t) for n, t in texts.items()))])
    words = {} if marked else {"words": np.zeros(len(tokenizer), dtype=np.int8)}
    given = CrossDocumentExamples(corpus=corpus, special=special, max_length=32, **words).describe(0)
    flagged = {}
    for number, name in enumerate(given.document_ids):
        own = (given.packed.document == number) & given.cross_document
        flagged[name] = tokenizer.convert_ids_to_tokens(given.packed.input_ids[own].tolist())
    assert flagged == {"a": ["w1"], "b": ["w3", "w1"], "c": []}


def test_a_fact_that_was_not_packed_does_not_count(examples):
    """Each document is a fact and 5 or more other tokens; with room for one nothing can be recovered."""
    one, two = examples(max_length=16), examples(max_length=24)
    for index in range(40):
        given = two.describe(index)
        enough = len(given.packed.packed_documents) > 1
        assert given.cross_document.sum() == (2 if enough else 0)
        assert not one.describe(index).cross_document.any()


def test_whole_facts():
    facts = np.array([0, 0, -1, 1, 1, 1, -1])
    for kept in (6, 7, 3, 2, 0):
        assert whole_facts(facts, kept=kept).tolist() == facts[:kept].tolist()
    for kept, expected in ((5, [0, 0, -1, -1, -1]), (4, [0, 0, -1, -1]), (1, [-1])):  # cut through a fact
        assert whole_facts(facts, kept=kept).tolist() == expected
    assert facts.tolist() == [0, 0, -1, 1, 1, 1, -1]


def test_recoverable_facts_by_a_second_definition():
    generator = np.random.default_rng(5)
    for _ in range(200):
        facts = [generator.integers(-1, 4, size=generator.integers(1, 12)) for _ in range(3)]
        for number, result in enumerate(recoverable_facts(facts)):
            own = facts[number].tolist()
            runs = [fact for place, fact in enumerate(own) if place == 0 or own[place - 1] != fact]
            others = {fact for other, document in enumerate(facts) if other != number for fact in document}
            expected = [fact >= 0 and fact in others and runs.count(fact) == 1 for fact in own]
            assert result.tolist() == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packing": "greedy"}, "packing policy is 'greedy'"),
        ({"global_policy": "all"}, "global policy is 'all'; choose one of masked, prefix, none"),
        ({"documents": "rand"}, "choice of documents is 'rand'; choose one of related, random$"),
        ({"max_length": 3}, "max_length is 3"),
        ({"mask_probability": 0}, "the masking probability is 0"),
        ({"corpus": lambda forty: forty.remove_columns("fact_ids")}, "the corpus has no column 'fact_ids'"),
        ({"corpus": lambda forty: forty.select([])}, "the corpus has no clusters"),
    ],
)
def test_bad_arguments(examples, forty, changes, message):
    corpus = changes["corpus"](forty) if "corpus" in changes else forty
    with pytest.raises(ValueError, match=message):
        examples(**changes | {"corpus": corpus})
