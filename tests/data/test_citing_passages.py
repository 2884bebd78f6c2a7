"""Passages around citations: where they lie, what is aligned in them, and what must not be a negative."""

from collections import Counter

import pytest

from cdlm_lab.data.document_links import DocumentLink, citing_passages, pairs_from_links
from cdlm_lab.data.document_pairs import PairDocument


def paper(name: str, sentences: int = 20) -> PairDocument:
    return PairDocument(id=name, sentences=tuple(f"{name} sentence {n}" for n in range(sentences)))


PAPERS = {name: paper(name) for name in "ABCDE"}


def link(first: str, second: str, *citing: int) -> DocumentLink:
    return DocumentLink(first=first, second=second, source="made up", in_first=citing or None)


def made(*links: DocumentLink, length: int = 5, opening: int = 3, seed: int = 0, **more):
    return citing_passages(PAPERS, links, length=length, opening=opening, seed=seed, **more)


def test_the_passage_holds_the_citing_sentence_and_says_where() -> None:
    for seed in range(50):
        found = made(link("A", "B", 9), seed=seed)
        (one,) = found.links
        passage = found.documents[one.first]
        assert len(passage.sentences) == 5
        assert [passage.sentences[number] for number in one.in_first] == ["A sentence 9"]
        assert found.paper_of == {one.first: "A"}
        assert one.first.startswith("A[")


def test_every_place_of_the_citation_is_as_likely_as_any_other() -> None:
    places = Counter(made(link("A", "B", 9), seed=seed).links[0].in_first for seed in range(2_000))
    assert set(places) == {(number,) for number in range(5)}
    assert min(places.values()) > 320  # 400 each; five standard deviations are 90


@pytest.mark.parametrize(("citing", "possible"), [(0, {0}), (1, {0, 1}), (19, {4}), (18, {3, 4})])
def test_at_the_ends_of_a_paper_passages_stay_inside_and_whole(citing: int, possible: set[int]) -> None:
    drawn = [made(link("A", "B", citing), seed=seed) for seed in range(60)]
    assert {one.links[0].in_first[0] for one in drawn} == possible
    assert {len(one.documents[one.links[0].first].sentences) for one in drawn} == {5}


def test_all_citing_sentences_of_the_passage_are_aligned_and_no_others() -> None:
    found = made(link("A", "B", 7, 8, 19), length=3, seed=4)
    (one,) = found.links
    texts = found.documents[one.first].sentences
    assert {texts[number] for number in one.in_first} == {
        text for text in texts if text.rpartition(" ")[2] in ("7", "8", "19")
    }


def test_a_short_paper_is_its_own_passage() -> None:
    found = made(link("A", "B", 2), length=99)
    assert found.links[0].first == "A[0:20]"
    assert found.links[0].in_first == (2,)


def test_the_cited_paper_is_its_opening_under_its_own_name() -> None:
    assert made(link("A", "B", 2)).documents["B"].sentences == tuple(f"B sentence {n}" for n in range(3))
    assert made(link("A", "B", 2), opening=0).documents["B"] == PAPERS["B"]


def test_links_whose_citing_sentence_is_unknown_are_left_out() -> None:
    assert [one.second for one in made(link("A", "B"), link("A", "C", 3)).links] == ["C"]


def test_no_paper_that_the_whole_paper_is_linked_with_becomes_a_negative() -> None:
    links = [link("A", "B", 2), link("A", "C", 15), link("E", "D", 3)]
    for seed in range(20):
        found = made(*links, seed=seed, known=[link("E", "A")])
        pairs = pairs_from_links(found.documents, found.links, known=found.known, seed=seed)
        unrelated = [(found.paper_of[pair.first.id], pair.second.id) for pair in pairs if not pair.related]
        assert unrelated[:2] == [("A", "D"), ("A", "D")]  # B and C are cited by A, though by another passage
        assert {first for first, _ in unrelated} == {"A", "E"}


def test_the_draws_do_not_depend_on_the_other_links() -> None:
    alone, beside = made(link("A", "B", 9)), made(link("C", "D", 4), link("A", "B", 9))
    assert alone.links[0] == beside.links[1]


@pytest.mark.parametrize(("length", "opening"), [(0, 3), (5, -1)])
def test_lengths_that_cannot_be(length: int, opening: int) -> None:
    with pytest.raises(ValueError, match=f"length is {length} and opening {opening}"):
        made(link("A", "B", 1), length=length, opening=opening)


def test_a_citing_sentence_outside_the_paper() -> None:
    with pytest.raises(ValueError, match="link A>B: sentence 20 lies outside"):
        made(link("A", "B", 20))
