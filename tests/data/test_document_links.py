"""Pairs of links: what is drawn for unrelated, that it depends on the seed alone, and what is refused."""

from collections import Counter

import pytest

from cdlm_lab.data.document_links import DocumentLink, pairs_from_links
from cdlm_lab.data.document_pairs import PairDocument, check_splits, split_without_leaks

TOPICS = ("boats sail on water", "trains run on rails", "planes fly in air")


def papers(count: int = 12) -> dict[str, PairDocument]:
    """c0 ... cite and r0 ... are cited; 0, 3, 6 ... of either are about boats."""
    return {
        f"{kind}{number}": PairDocument(
            id=f"{kind}{number}", sentences=(f"{TOPICS[number % 3]}.", f"It is the {kind} {number}.")
        )
        for kind in "cr"
        for number in range(count)
    }


def link(first: str, second: str, **gold) -> DocumentLink:
    return DocumentLink(first=first, second=second, source="test", **gold)


LINKS = [
    link(f"c{number}", f"r{number}", in_first=(0,), in_second=(1,), gold="by hand") for number in range(12)
]


def test_related_pairs():
    first, *_ = pairs_from_links(papers(), LINKS, negatives_per_positive=0)
    assert (first.id, first.cluster, first.related, first.aligned) == ("c0>r0", "c0", True, (0,))
    assert first.documents == ("c0", "r0")
    first, *_ = pairs_from_links(papers(), LINKS, negatives_per_positive=0, backwards=True)
    assert (first.id, first.aligned, first.documents) == ("r0>c0", (1,), ("r0", "c0"))
    (unknown,) = pairs_from_links(papers(), [link("c0", "r0")], negatives_per_positive=0)
    assert unknown.aligned is None


@pytest.mark.parametrize("hard", ["random", "similar"])
def test_unrelated_pairs(hard):
    links = [*LINKS, link("c0", "r1"), link("r2", "c0")]
    pairs = list(
        pairs_from_links(papers(), links, negatives_per_positive=3, hard=hard, known=[link("c0", "r3")])
    )
    assert len({pair.id for pair in pairs}) == len(pairs) == 4 * len(links)
    assert [pair.related for pair in pairs] == [True, False, False, False] * len(links)
    for related, *others in zip(*[iter(pairs)] * 4, strict=True):
        assert {pair.first.id for pair in others} == {related.first.id}
        assert {pair.cluster for pair in others} == {related.cluster}
        assert len({pair.second.id for pair in others}) == 3
        assert all(pair.aligned == () for pair in others)
    drawn = {pair.second.id for pair in pairs if pair.first.id == "c0" and not pair.related}
    assert not drawn & {"c0", "r0", "r1", "r2", "r3"}
    assert {pair.second.id for pair in pairs} <= {link.second for link in links}


def test_draws_depend_on_the_seed_and_the_link():
    def drawn(links, seed, hard="random"):
        pairs = pairs_from_links(papers(), links, seed=seed, hard=hard, similar_among=4)
        return {pair.id for pair in pairs if not pair.related}

    for hard in ("random", "similar"):
        assert drawn(LINKS, 1, hard) == drawn(LINKS, 1, hard) == drawn(LINKS[::-1], 1, hard)
        assert drawn(LINKS, 1, hard) != drawn(LINKS, 2, hard)


def test_similar_documents_are_similar():
    pairs = pairs_from_links(papers(), LINKS, hard="similar", similar_among=3)
    topics = [{int(name[1:]) % 3 for name in pair.documents} for pair in pairs]
    assert all(len(topic) == 1 for topic in topics)


def test_documents_are_drawn_as_often_as_they_are_cited():
    links = [link(f"c{number}", "r0") for number in range(8)]
    links += [link(f"c{number}", f"r{number - 7}") for number in (8, 9)]
    drawn = Counter(
        pair.second.id
        for seed in range(300)
        for pair in pairs_from_links(papers(), links, seed=seed)
        if pair.first.id == "c8" and not pair.related
    )
    assert set(drawn) == {"r0", "r2"}
    assert drawn["r0"] / 300 == pytest.approx(8 / 9, abs=0.06)  # r0 has 8 of the 9 others


def test_pairs_of_split_links():
    splits = split_without_leaks(LINKS, shares={"train": 0.5, "test": 0.5}, seed=0)
    check_splits({name: pairs_from_links(papers(), links, seed=0) for name, links in splits.items()})


@pytest.mark.parametrize(
    ("links", "options", "complaint"),
    [
        (LINKS, {"hard": "harder"}, "hard is 'harder'; choose one of random, similar"),
        (LINKS, {"negatives_per_positive": -1}, "negatives_per_positive is -1; it must be at least 0"),
        (LINKS, {"hard": "similar", "similar_among": 0}, "similar_among is 0; it must be at least 1"),
        ([LINKS[0], LINKS[0]], {}, "link c0>r0 is given twice; give each link once"),
        ([link("c0", "x")], {}, "link c0>x: no document x; add it, or leave the link out"),
        ([link("c0", "r0", in_first=(2,))], {}, "link c0>r0: sentence 2 lies outside: document c0 has 2"),
        ([link("c0", "r0", in_second=(9,))], {}, "link c0>r0: sentence 9 lies outside: document r0 has 2"),
        (LINKS[:2], {"negatives_per_positive": 2},
         "link c0>r0: 1 documents to draw from; lower negatives_per_"),
    ],
)  # fmt: skip
def test_what_is_refused(links, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        list(pairs_from_links(papers(), links, **options))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"first": "a", "second": "a"}, "link a>a: a document linked with itself; leave it out"),
        ({"in_first": ()}, r"link a>b: in_first is \(\); write each once, ascending, from 0, or None"),
        ({"in_second": (2, 1)}, r"link a>b: in_second is \(2, 1\)"),
        ({"in_second": (1, 1)}, r"link a>b: in_second is \(1, 1\)"),
        ({"in_first": (-1, 1)}, r"link a>b: in_first is \(-1, 1\)"),
    ],
)
def test_links_are_checked(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        DocumentLink(**({"first": "a", "second": "b", "source": "x"} | arguments))
