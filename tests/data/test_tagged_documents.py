"""Spans and tags of tagged documents: worked sentences, and that each is the other backwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.tagged import (
    TaggedDocument,
    TaggedSentence,
    TagSpan,
    labels_of,
    outermost,
    spans_of,
    tag_set,
    tags_of,
)


def span(label: str, first: int, stop: int) -> TagSpan:
    return TagSpan(label=label, first=first, stop=stop)


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O O", []),
        ("B-X I-X O B-Y", [("X", 0, 2), ("Y", 3, 4)]),
        ("B-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("B-X I-Y I-Y", [("X", 0, 1), ("Y", 1, 3)]),
        ("I-X O I-X I-X", [("X", 0, 1), ("X", 2, 4)]),
        ("B-cell_line I-cell_line", [("cell_line", 0, 2)]),
        ("B-a-b I-a-b I-a", [("a-b", 0, 2), ("a", 2, 3)]),
    ],
)
def test_spans_of(tags, spans):
    assert spans_of(tags.split()) == tuple(span(*found) for found in spans)


@st.composite
def apart(draw: st.DrawFn) -> tuple[list[TagSpan], int]:
    """Spans that share no word, and the length of their sentence."""
    edges = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
    pairs = zip(edges[::2], edges[1::2], strict=False)
    return [span(draw(st.sampled_from("XY")), first, stop) for first, stop in pairs], 12


@given(apart())
def test_tags_are_spans_backwards(given_spans):
    spans, length = given_spans
    tags = tags_of(spans, length)
    assert len(tags) == length
    assert list(spans_of(tags)) == spans


def test_tags_of():
    assert tags_of([span("X", 3, 4), span("Y", 1, 3)], 5) == ("O", "B-Y", "I-Y", "B-X", "O")
    assert tags_of([], 0) == ()
    with pytest.raises(ValueError, match=r"first=1, stop=3\) shares words with another span"):
        tags_of([span("X", 0, 2), span("Y", 1, 3)], 3)
    for first, stop in ((2, 4), (-1, 1), (2, 2)):
        with pytest.raises(ValueError, match="does not fit a sentence of 3 words"):
            tags_of([span("X", first, stop)], 3)


def test_outermost():
    inner, same, outer, crossing = span("A", 1, 2), span("B", 0, 3), span("C", 0, 3), span("D", 2, 5)
    assert outermost([inner, same, outer]) == (same,)
    assert outermost([outer, same, inner]) == (outer,)
    assert outermost([crossing, outer]) == (outer, crossing)
    assert outermost([span("A", 4, 5), crossing, span("E", 5, 6), inner]) == (
        inner,
        crossing,
        span("E", 5, 6),
    )
    assert outermost([]) == ()


@given(st.lists(st.builds(span, st.sampled_from("XY"), st.integers(0, 5), st.integers(6, 9))))
def test_outermost_by_definition(spans):
    kept = outermost(spans)
    places = [(one.first, one.stop) for one in kept]
    assert places == sorted(
        {
            (one.first, one.stop)
            for one in spans
            if not any(
                other.first <= one.first
                and one.stop <= other.stop
                and (other.first, other.stop) != (one.first, one.stop)
                for other in spans
            )
        }
    )
    assert all(one is next(x for x in spans if (x.first, x.stop) == (one.first, one.stop)) for one in kept)


def test_labels_and_labelled_sentences():
    document = TaggedDocument(
        id="d",
        sentences=(
            TaggedSentence(words=("a",)),
            TaggedSentence(words=("a", "b"), tags=("B-Y", "B-X")),
            TaggedSentence(words=(), tags=()),
        ),
    )
    assert document.labelled == (1, 2)
    assert labels_of([document, document]) == ("X", "Y")
    assert tag_set(["X", "Y"]) == ("O", "B-X", "I-X", "B-Y", "I-Y")
