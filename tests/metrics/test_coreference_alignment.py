"""Clusterings side by side: input that is refused, overlaps counted, the best alignment in little memory."""

import random
import re
import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.metrics.coreference import (
    checked_clusters,
    joined_topics,
    largest_total,
    overlaps,
    parts_by_topic,
    score,
    total_parts,
)

# (clusters, error, message after "key")
REFUSED = [
    ("ab", TypeError, " is 'ab', a str; it must be a list of clusters"),
    (b"ab", TypeError, " is b'ab', a bytes; it must be a list of clusters"),
    (None, TypeError, " is None, a NoneType; it must be a list of clusters"),
    ({1: ["a"]}, TypeError, " is {1: ['a']}, a dict; it must be a list of clusters; pass its .values()"),
    (["ab", "c"], TypeError, "[0] is 'ab', a str; it must be a list of mentions"),
    ([["a"], 7], TypeError, "[1] is 7, a int; it must be a list of mentions"),
    ([{"a": 1}], TypeError, "[0] is {'a': 1}, a dict; it must be a list of mentions; pass its .values()"),
    ([["a"], [["b"]]], TypeError, "[1] has the mention ['b'], which is not hashable; make mentions tuples, "),
    ([["a"], []], ValueError, "[1] is empty; leave out clusters without mentions"),
    ([["x"], ["a", "b", "a"]], ValueError, "[1] has the mention 'a' twice; name each mention once"),
]


@pytest.mark.parametrize(("clusters", "error", "message"), REFUSED)
def test_refused_input(clusters, error, message):
    for side, of_sides in (("key", (clusters, [["m"]])), ("response", ([["m"]], clusters))):
        with pytest.raises(error, match="^" + re.escape(side + message)):
            score(*of_sides)


def test_a_mention_in_two_clusters_is_named_with_both():
    message = (
        "mention ('d', 3) is in response[0] = [('d', 1), ('d', 3)] and in response[2] = [('d', 3)]; "
        "a mention belongs to one cluster"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        score([[("d", 1)]], [[("d", 1), ("d", 3)], [("d", 2)], [("d", 3)]])


def test_a_long_cluster_is_shortened_in_an_error():
    with pytest.raises(
        ValueError, match=r"mention 500 is in key\[0\] = \[0, 1, .*\.\.\.\] and in key\[1\]"
    ) as error:
        score([range(1000), [500]], [])
    assert len(str(error.value)) < 200


def test_singletons_are_checked_before_they_are_dropped():
    with pytest.raises(ValueError, match="mention 'a' is in key"):
        score([["a", "b"], ["a"]], [], singletons=False)


def test_checked_clusters_are_lists():
    assert checked_clusters(({n} for n in (1, 2)), side="key") == [[1], [2]]


def test_overlaps():
    found = overlaps([["ab"], list("cde")], [list("dxe"), list("c")])
    assert found.key_sizes.tolist() == [1, 3]
    assert found.response_sizes.tolist() == [3, 1]
    pairs = zip(found.key.tolist(), found.response.tolist(), found.common.tolist(), strict=True)
    assert sorted(pairs) == [(1, 0, 2), (1, 1, 1)]
    assert found.sum_by_key(found.common).tolist() == [0, 3]
    assert found.exchanged().sum_by_key(found.common).tolist() == [2, 1]
    without = overlaps([list("ab"), list("c")], [list("ac"), list("b")], singletons=False)
    assert (without.key_sizes.tolist(), without.response_sizes.tolist()) == ([2], [2])
    assert without.common.tolist() == [1]


def test_topics_that_share_clusters_are_joined():
    # Mentions are (topic, number). The key joins 3 and 4, one system 1 and 2, the other 2 and 3.
    key = [[(1, 0)], [(2, 0)], [(3, 0), (4, 0)], [(5, 0)]]
    systems = [[(1, 0), (2, 0)], [(5, 0)]], [[(2, 0), (3, 0)]]
    unit = joined_topics(key, *systems, topic=lambda mention: mention[0])
    assert [unit((topic, 9)) for topic in range(1, 6)] == 4 * [{1, 2, 3, 4}] + [{5}]
    for system in systems:
        parts = parts_by_topic(key, system, topic=unit)
        assert list(parts) == [{1, 2, 3, 4}, {5}]
        assert total_parts(parts.values())["ceaf_e"].score == score(key, system)["ceaf_e"]
    with pytest.raises(KeyError):
        unit((6, 0))
    with pytest.raises(ValueError, match=r"^clusterings\[1\]\[0\] is empty"):
        joined_topics(key, [[]], topic=str)


@given(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 5)), st.integers(0, 20)))
def test_largest_total_tries_every_alignment(weight_of):
    numbers = np.array(list(weight_of), dtype=int).reshape(-1, 2)
    found = largest_total(numbers[:, 0], numbers[:, 1], np.array(list(weight_of.values()), dtype=float))
    assert found == max(
        sum(weight_of.get(pair, 0) for pair in enumerate(p)) for p in permutations(range(6), 5)
    )


def test_components_are_aligned_one_at_a_time():
    # 4,000 clusters a side in chains of four: one table would take 8 * 4000 * 4000 = 128 million bytes.
    key = [[(n, 0), (n, 1), (n, 2)] for n in range(4000)]
    response = [[(n, 0), (n, 1), (n - 1 if n % 4 else n, 2 if n % 4 else 3)] for n in range(4000)]
    random.Random(0).shuffle(response)
    score(key[:4], response[:4])  # pays for imports and caches
    tracemalloc.start()
    found = score(key, response)["ceaf_e"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.f1 == pytest.approx(2 / 3)
    assert peak < 20e6
