"""Pairs of mentions: groups, samples, the data set, and pairs for the attention analysis."""

import copy
import math
import re
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.tasks.coreference.examples import (
    MENTION_END,
    MENTION_START,
    MentionGroup,
    MentionPairExamples,
    all_pairs,
    corefer,
    group_mentions,
    marks_from_tokenizer,
    mentions_in,
    pairs_within,
    sampled_pairs,
)


def document(
    name: str, events: str, *, entities: str = "", topic: str = "1", part: str = ""
) -> CoreferenceDocument:
    """Make a document with a one-word mention per letter, in the letter's cluster, then a word `w9`."""
    letters = [(letter, "event") for letter in events] + [(letter, "entity") for letter in entities]
    mentions = tuple(
        CoreferenceMention(
            id=f"{name}:{n}", document=name, tokens=(n, n + 1), sentence=0, kind=kind, cluster=letter
        )
        for n, (letter, kind) in enumerate(letters)
    )
    return CoreferenceDocument(
        id=name,
        topic=topic,
        subtopic=topic + part,
        tokens=(*(f"w{n}" for n in range(len(letters))), "w9"),
        sentences=((0, len(letters) + 1),),
        validated=(0,),
        mentions=mentions,
    )


@pytest.fixture(scope="module")
def topics() -> list[Topic]:
    """Topic 1 has sub-topics 1x (documents a and c) and 1y (b); topic 2 has document d, without entities."""
    first = (
        document("a", "PQ", entities="E", part="x"),
        document("b", "PR", part="y"),
        document("c", "Q", part="x"),
    )
    return [
        Topic(id="1", documents=first),
        Topic(id="2", documents=(document("d", "SPS", topic="2", part="x"),)),
    ]


def shape(groups: list[MentionGroup]) -> dict[str, str]:
    return {group.id: " ".join(f"{m.document}{m.cluster}" for m in group.mentions) for group in groups}


def group(clusters: str, name: str = "g") -> MentionGroup:
    return MentionGroup(id=name, mentions=document(f"document-{name}", clusters).mentions)


def as_sets(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {(int(first), int(second)) for first, second in pairs}


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("topic", {"1": "aP aQ bP bR cQ", "2": "dS dP dS"}),
        ("subtopic", {"1x": "aP aQ cQ", "1y": "bP bR", "2x": "dS dP dS"}),
        ("predicted", {"u": "aP aQ dS dP dS", "v": "bP bR cQ"}),
    ],
)
def test_levels(topics, level, expected):
    predicted = {"a": "u", "b": "v", "c": "v", "d": "u", "of another split": "w"}
    groups = group_mentions(topics, "event", level, predicted)
    assert shape(groups) == expected
    assert shape([MentionGroup(id="", mentions=mentions_in(groups))]) == {"": " ".join(expected.values())}


def test_only_documents_with_mentions_of_the_kind_count(topics):
    assert shape(group_mentions(topics, "entity", "topic")) == {"1": "aE"}
    assert shape(group_mentions(topics, "entity", "predicted", {"a": "u"})) == {"u": "aE"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("event", "document"), "topic level is 'document'; choose one of topic, subtopic, predicted"),
        (("events", "topic"), "kind is 'events'; choose one of event, entity"),
        (("event", "predicted"), "level is 'predicted', but predicted is None; give the group of each"),
        (("event", "predicted", {"a": "u", "c": "v"}), "document b has mentions, but is in none of"),
    ],
)
def test_bad_levels(topics, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        group_mentions(topics, *arguments)
    with pytest.raises(ValueError, match="there are no entity mentions"):
        group_mentions(topics[1:], "entity", "topic")


def test_a_subtopic_in_two_topics():
    two = [Topic(id=name, documents=(document(f"d{name}", "P", topic=name),)) for name in ("1", "2")]
    assert len(group_mentions(two, "event", "subtopic")) == 2
    same = [
        Topic(id="1", documents=(document("a", "P", topic="1", part="2x"),)),
        Topic(id="12", documents=(document("b", "P", topic="12", part="x"),)),
    ]
    with pytest.raises(ValueError, match="sub-topic 12x is in topics 1 and 12; rename one"):
        group_mentions(same, "event", "subtopic")


@pytest.mark.parametrize("count", [0, 1, 2, 7, 500])
def test_all_pairs(count):
    pairs = all_pairs(count)
    assert pairs.dtype == np.int64
    assert [tuple(pair) for pair in pairs.tolist()] == list(combinations(range(count), 2))


def positive_pairs(groups):
    pairs = pairs_within(groups)
    return pairs[corefer(groups, pairs)]


GROUPS = [group("PQPPQR", "1"), group("PSSTTTU", "2")]  # 4 + 4 positive, 11 + 17 negative pairs


@pytest.mark.parametrize(
    ("ratio", "negatives"), [(0, 0), (0.2, 2), (0.3, 2), (1.5, 12), (3.5, 28), (20.0, 28), (math.inf, 28)]
)
def test_a_sample_has_all_positives_and_so_many_negatives(ratio, negatives):
    drawn = sampled_pairs(GROUPS, negatives_per_positive=ratio, seed=0, epoch=0)
    positives, others = (as_sets(drawn.pairs[drawn.labels == label]) for label in (1, 0))
    assert positives == as_sets(positive_pairs(GROUPS))
    assert others <= as_sets(pairs_within(GROUPS)) - positives
    assert (len(positives), len(others), len(drawn.pairs)) == (8, negatives, 8 + negatives)
    assert (drawn.pairs.dtype, drawn.labels.dtype) == (np.int64, np.float32)


def test_a_sample_is_a_pure_function_of_seed_and_epoch():
    def drawn(**changes):
        result = sampled_pairs(GROUPS, **{"negatives_per_positive": 1, "seed": 3, "epoch": 2, **changes})
        return result.pairs.tolist(), result.labels.tolist()

    assert drawn() == drawn()
    for change in ({"seed": 4}, {"epoch": 3}, {"seed": 2, "epoch": 3}):
        # other negatives, not only their order
        assert set(map(tuple, drawn(**change)[0])) != set(map(tuple, drawn()[0]))


def test_a_sample_is_shuffled():
    """The trainer reads in order, so positives, or the first group, must not come first."""
    assert 0 < sampled_pairs(GROUPS, negatives_per_positive=1, seed=0, epoch=0).labels[:8].sum() < 8
    places = np.mean(
        [sampled_pairs(GROUPS, negatives_per_positive=1, seed=0, epoch=n).labels for n in range(2000)], axis=0
    )
    assert places == pytest.approx(np.full(16, 0.5), abs=0.05)  # over four standard deviations of 0.011


def test_negatives_are_uniform():
    """7 of 28 are drawn each time: in 2,000 epochs each about 500 times, with standard deviation 19."""
    counts = Counter()
    for epoch in range(2000):
        drawn = sampled_pairs(GROUPS, negatives_per_positive=7 / 8, seed=1, epoch=epoch)
        counts.update(as_sets(drawn.pairs[drawn.labels == 0]))
    assert len(counts) == 28
    assert all(400 < count < 600 for count in counts.values())


@given(st.lists(st.text("PQRS", min_size=1, max_size=8), min_size=1, max_size=4))
def test_samples_against_a_slow_definition(clusters):
    groups = [group(letters, str(n)) for n, letters in enumerate(clusters)]
    mentions = list(mentions_in(groups))
    of_one_group = [
        (i, j)
        for i, j in combinations(range(len(mentions)), 2)
        if mentions[i].document == mentions[j].document
    ]
    positives = {(i, j) for i, j in of_one_group if mentions[i].cluster == mentions[j].cluster}
    assert as_sets(positive_pairs(groups)) == positives
    if not positives:
        with pytest.raises(
            ValueError, match=f"no two of the {len(mentions)} mentions corefer within a group"
        ):
            sampled_pairs(groups, seed=0, epoch=0)
        return
    drawn = sampled_pairs(groups, negatives_per_positive=math.inf, seed=0, epoch=0)
    assert as_sets(drawn.pairs) == set(of_one_group)
    assert as_sets(drawn.pairs[drawn.labels == 1]) == positives


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"negatives_per_positive": -1.0}, r"negatives_per_positive is -1.0; it must be at least 0"),
        ({"negatives_per_positive": math.nan}, r"negatives_per_positive is nan; it must be at least 0"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"epoch": -1}, "epoch is -1; it must be at least 0"),
    ],
)
def test_bad_samples(changes, message):
    with pytest.raises(ValueError, match=message):
        sampled_pairs(GROUPS, **{"seed": 0, "epoch": 0, **changes})


@pytest.fixture(scope="module")
def made(tokenizer):
    """Function that builds a data set from the documents of some topics."""
    marked = copy.deepcopy(tokenizer)
    marked.add_tokens([MENTION_START, MENTION_END], special_tokens=True)

    def made(topics, **changes) -> MentionPairExamples:
        mentions = mentions_in(group_mentions(topics, "event", "topic"))
        given = {
            "mentions": mentions,
            "pairs": all_pairs(len(mentions)),
            "documents": EncodedDocuments((d for topic in topics for d in topic.documents), marked),
            "special": from_tokenizer(marked),
            "marks": marks_from_tokenizer(marked),
            "context": "documents",
            "max_length": 64,
        }
        return MentionPairExamples(**{**given, **changes})

    made.tokenizer = marked
    return made


def test_an_example(made, topics):
    examples = made(topics, pairs=np.array([[2, 0], [0, 1]]), labels=np.array([1, 0]))
    assert len(examples) == 2
    assert [mention.id for mention in examples.pair(0)] == ["b:0", "a:0"]
    first = examples[0]
    words = made.tokenizer.convert_ids_to_tokens(first["input_ids"].tolist())
    assert " ".join(words) == (
        "[CLS] <doc-s> <m> w0 </m> w1 w9 </doc-s> <doc-s> <m> w0 </m> w1 w2 w9 </doc-s> [SEP]"
    )
    assert first["mention_mask"].argmax(axis=1).tolist() == [3, 10]
    assert first["labels"].shape == ()
    assert [float(example["labels"]) for example in examples] == [1.0, 0.0]
    kinds = {
        "input_ids": "int64",
        "global_attention_mask": "int64",
        "mention_mask": "bool",
        "labels": "float32",
    }
    assert {key: values.dtype.name for key, values in first.items()} == kinds
    assert sorted(made(topics)[0]) == ["global_attention_mask", "input_ids", "mention_mask"]
