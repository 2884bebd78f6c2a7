"""Links between documents: pairs made of them, a user's own collection, and passages around citations."""

import gzip
import json
from collections import Counter

import pytest

from cdlm_lab.data.document_links import (
    DocumentLink,
    citing_passages,
    is_linked_collection,
    pairs_from_links,
    read_linked_collection,
)
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


DOCUMENTS = [
    {"id": "a", "text": "We follow B. It is new."},
    {"id": "b", "sentences": ["A title", " An earlier\nwork."]},
    {"id": "c", "sentences": ["Other things."]},
]
COLLECTION_LINKS = [{"first": "b", "second": "a", "sentences": [1, 0, 1]}, {"first": "a", "second": "b"}]


@pytest.fixture
def collection(write, tmp_path):
    """collection(documents, links): a folder of both."""

    def _collection(documents=DOCUMENTS, links=COLLECTION_LINKS):
        for name, records in (("documents.jsonl", documents), ("links.jsonl", links)):
            write(name, "\n".join(json.dumps(record) for record in records) + "\n")
        return tmp_path

    return _collection


def test_documents_and_links_in_order(collection) -> None:
    documents, links = read_linked_collection(collection())
    assert {name: one.sentences for name, one in documents.items()} == {
        "a": ("We follow B.", "It is new."),
        "b": ("A title", "An earlier work."),
        "c": ("Other things.",),
    }
    assert [(link.documents, link.in_first) for link in links] == [(("b", "a"), (0, 1)), (("a", "b"), None)]


def test_compressed_files_are_found(write, tmp_path) -> None:
    assert not is_linked_collection(tmp_path)
    for name, records in (("documents.jsonl", DOCUMENTS), ("links.jsonl", COLLECTION_LINKS)):
        write(f"{name}.gz", gzip.compress("\n".join(map(json.dumps, records)).encode()))
    assert is_linked_collection(tmp_path)
    assert len(read_linked_collection(tmp_path)[1]) == 2


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"text": "x"}], '1: id: missing; add "id" to the record'),
        ([{"id": "a"}], '1: text: missing; add "text" to the record'),
        ([{"id": "a", "text": " \n"}], "1: text: it is empty; fill it in, or delete the record"),
        ([{"id": "", "text": "x."}], "1: id: it is empty; fill it in, or delete the record"),
        ([{"id": "a", "sentences": ["x", " "]}], "1: sentences[1]: it is empty; leave it out"),
        ([*DOCUMENTS, {"id": "a", "text": "x"}],
         "4: id: 'a' is there already; give every document its own id"),
    ],
)  # fmt: skip
def test_documents_that_cannot_be(collection, refused, documents, message) -> None:
    folder = collection(documents)
    with refused(folder / "documents.jsonl", message):
        read_linked_collection(folder)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ({"first": "z", "second": "a"}, "3: first: there is no document 'z'; add it, or delete the line"),
        ({"first": "a", "second": "a"}, "3: second: a document linked with itself; delete the line"),
        ({"first": "a", "second": "b"}, "3: second: the same link is there already; give each link once"),
        (
            {"first": "a", "second": "c", "sentences": [0]},
            "3: sentences: document 'a' is given as a text; give it as sentences, so that their numbers "
            "are sure",
        ),
        (
            {"first": "b", "second": "c", "sentences": [0, 2]},
            "3: sentences[1]: 2 is no sentence of 'b', which has 2; count them from 0",
        ),
        (
            {"first": "b", "second": "c", "sentences": [True]},
            "3: sentences[0]: true or false where a whole number belongs; write it as 3",
        ),
    ],
)
def test_links_that_cannot_be(collection, refused, link, message) -> None:
    folder = collection(links=[*COLLECTION_LINKS, link])
    with refused(folder / "links.jsonl", message):
        read_linked_collection(folder)


def test_a_file_that_is_missing(collection) -> None:
    folder = collection()
    (folder / "links.jsonl").unlink()
    with pytest.raises(ValueError, match=r"links\.jsonl.*no such file; put documents\.jsonl and links"):
        read_linked_collection(folder)


def paper(name: str, sentences: int = 20) -> PairDocument:
    return PairDocument(id=name, sentences=tuple(f"{name} sentence {n}" for n in range(sentences)))


PAPERS = {name: paper(name) for name in "ABCDE"}


def passages_link(first: str, second: str, *citing: int) -> DocumentLink:
    return DocumentLink(first=first, second=second, source="made up", in_first=citing or None)


def made(*links: DocumentLink, length: int = 5, opening: int = 3, seed: int = 0, **more):
    return citing_passages(PAPERS, links, length=length, opening=opening, seed=seed, **more)


def test_the_passage_holds_the_citing_sentence_and_says_where() -> None:
    for seed in range(50):
        found = made(passages_link("A", "B", 9), seed=seed)
        (one,) = found.links
        passage = found.documents[one.first]
        assert len(passage.sentences) == 5
        assert [passage.sentences[number] for number in one.in_first] == ["A sentence 9"]
        assert found.paper_of == {one.first: "A"}
        assert one.first.startswith("A[")


def test_every_place_of_the_citation_is_as_likely_as_any_other() -> None:
    places = Counter(made(passages_link("A", "B", 9), seed=seed).links[0].in_first for seed in range(2_000))
    assert set(places) == {(number,) for number in range(5)}
    assert min(places.values()) > 320  # 400 each; five standard deviations are 90


@pytest.mark.parametrize(("citing", "possible"), [(0, {0}), (1, {0, 1}), (19, {4}), (18, {3, 4})])
def test_at_the_ends_of_a_paper_passages_stay_inside_and_whole(citing: int, possible: set[int]) -> None:
    drawn = [made(passages_link("A", "B", citing), seed=seed) for seed in range(60)]
    assert {one.links[0].in_first[0] for one in drawn} == possible
    assert {len(one.documents[one.links[0].first].sentences) for one in drawn} == {5}


def test_all_citing_sentences_of_the_passage_are_aligned_and_no_others() -> None:
    found = made(passages_link("A", "B", 7, 8, 19), length=3, seed=4)
    (one,) = found.links
    texts = found.documents[one.first].sentences
    assert {texts[number] for number in one.in_first} == {
        text for text in texts if text.rpartition(" ")[2] in ("7", "8", "19")
    }


def test_a_short_paper_is_its_own_passage() -> None:
    found = made(passages_link("A", "B", 2), length=99)
    assert found.links[0].first == "A[0:20]"
    assert found.links[0].in_first == (2,)


def test_the_cited_paper_is_its_opening_under_its_own_name() -> None:
    assert made(passages_link("A", "B", 2)).documents["B"].sentences == tuple(
        f"B sentence {n}" for n in range(3)
    )
    assert made(passages_link("A", "B", 2), opening=0).documents["B"] == PAPERS["B"]


def test_links_whose_citing_sentence_is_unknown_are_left_out() -> None:
    assert [one.second for one in made(passages_link("A", "B"), passages_link("A", "C", 3)).links] == ["C"]


def test_no_paper_that_the_whole_paper_is_linked_with_becomes_a_negative() -> None:
    links = [passages_link("A", "B", 2), passages_link("A", "C", 15), passages_link("E", "D", 3)]
    for seed in range(20):
        found = made(*links, seed=seed, known=[passages_link("E", "A")])
        pairs = pairs_from_links(found.documents, found.links, known=found.known, seed=seed)
        unrelated = [(found.paper_of[pair.first.id], pair.second.id) for pair in pairs if not pair.related]
        assert unrelated[:2] == [("A", "D"), ("A", "D")]  # B and C are cited by A, though by another passage
        assert {first for first, _ in unrelated} == {"A", "E"}


def test_the_draws_do_not_depend_on_the_other_links() -> None:
    alone, beside = (
        made(passages_link("A", "B", 9)),
        made(passages_link("C", "D", 4), passages_link("A", "B", 9)),
    )
    assert alone.links[0] == beside.links[1]


@pytest.mark.parametrize(("length", "opening"), [(0, 3), (5, -1)])
def test_lengths_that_cannot_be(length: int, opening: int) -> None:
    with pytest.raises(ValueError, match=f"length is {length} and opening {opening}"):
        made(passages_link("A", "B", 1), length=length, opening=opening)


def test_a_citing_sentence_outside_the_paper() -> None:
    with pytest.raises(ValueError, match="link A>B: sentence 20 lies outside"):
        made(passages_link("A", "B", 20))
