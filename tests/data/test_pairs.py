"""Links between documents: pairs made of them, a user's own collection, and passages around citations."""

import json
from collections import Counter
from random import Random

import pytest

from cdlm_lab.data.pairs import (
    _drawn,
    citing_passages,
    collected,
    collection_rows,
    pairs_from_links,
    read_collection,
)
from cdlm_lab.data.records import DocumentLink, PairDocument
from cdlm_lab.data.splits import check_splits, split_without_leaks

TOPICS = ("boats sail on water", "trains run on rails", "planes fly in air")
# c0 ... cite and r0 ... are cited; 0, 3, 6 ... of either are about boats.
PAPERS = {
    f"{kind}{n}": PairDocument(id=f"{kind}{n}", sentences=(f"{TOPICS[n % 3]}.", f"It is the {kind} {n}."))
    for kind in "cr"
    for n in range(12)
}


def link(first: str, second: str, **gold) -> DocumentLink:
    return DocumentLink(first=first, second=second, source="test", **gold)


LINKS = [link(f"c{n}", f"r{n}", in_first=(0,)) for n in range(12)]


def unrelated(links, first: str = "", **options):
    """The second documents of the unrelated pairs, with one first document or any."""
    pairs = pairs_from_links(PAPERS, links, **options)
    return [pair.second.id for pair in pairs if not pair.related and pair.first.id.startswith(first)]


def test_related_pairs():
    first, *_ = pairs_from_links(PAPERS, LINKS, negatives_per_positive=0)
    assert (first.id, first.cluster, first.related, first.aligned) == ("c0>r0", "c0", True, (0,))
    assert first.documents == ("c0", "r0")
    (unknown,) = pairs_from_links(PAPERS, [link("c0", "r0")], negatives_per_positive=0)
    assert unknown.aligned is None


def test_unrelated_pairs():
    links = [*LINKS, link("c0", "r1"), link("r2", "c0")]
    form = {"negatives_per_positive": 3, "known": [link("c0", "r3")]}
    pairs = list(pairs_from_links(PAPERS, links, **form))
    assert len({pair.id for pair in pairs}) == len(pairs) == 4 * len(links)
    for related, *others in zip(*[iter(pairs)] * 4, strict=True):
        assert related.related
        assert {(pair.related, pair.first.id, pair.cluster, pair.aligned) for pair in others} == {
            (False, related.first.id, related.cluster, ())
        }
        assert len({pair.second.id for pair in others}) == 3
    assert not {"c0", "r0", "r1", "r2", "r3"} & set(unrelated(links, "c0", **form))
    assert {pair.second.id for pair in pairs} <= {link.second for link in links}


def test_draws_depend_on_the_seed_and_the_link():
    def drawn(links, seed):
        return {pair.id for pair in pairs_from_links(PAPERS, links, seed=seed) if not pair.related}

    assert drawn(LINKS, 1) == drawn(LINKS, 1) == drawn(LINKS[::-1], 1)
    assert drawn(LINKS, 1) != drawn(LINKS, 2)


def test_documents_are_drawn_as_often_as_they_are_cited():
    links = [link(f"c{n}", f"r{max(0, n - 7)}") for n in range(10)]
    drawn = Counter(name for seed in range(300) for name in unrelated(links, "c8", seed=seed))
    assert set(drawn) == {"r0", "r2"}
    assert drawn["r0"] / 300 == pytest.approx(8 / 9, abs=0.06)  # r0 has 8 of the 9 others


def test_names_are_drawn_one_by_one_as_by_sample():
    for count in range(1, 90):
        names = [str(n) for n in range(count)]
        assert list(_drawn(names, (), Random(count))) == Random(count).sample(names, count)


def test_pairs_of_split_links():
    splits = split_without_leaks(LINKS, shares={"train": 0.5, "test": 0.5}, seed=0)
    check_splits({name: pairs_from_links(PAPERS, links, seed=0) for name, links in splits.items()})


@pytest.mark.parametrize(("links", "options", "complaint"), [
    ([LINKS[0], LINKS[0]], {}, "link c0>r0 is given twice; give each link once"),
    ([link("c0", "x")], {}, "link c0>x: no document x; add it, or leave the link out"),
    ([link("c0", "r0", in_first=(2,))], {}, "link c0>r0: sentence 2 lies outside: document c0 has 2"),
    (LINKS[:2], {"negatives_per_positive": 2}, "link c0>r0: 1 documents to draw from; lower negatives_per_"),
])  # fmt: skip
def test_what_is_refused(links, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        unrelated(links, **options)


@pytest.mark.parametrize(("arguments", "complaint"), [
    ({"first": "b"}, "link b>b: a document linked with itself; leave it out"),
    ({"in_first": ()}, r"link a>b: in_first is \(\); write each once, ascending, from 0, or None"),
    ({"in_first": (2, 1)}, r"link a>b: in_first is \(2, 1\)"),
])  # fmt: skip
def test_links_are_checked(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        link(**{"first": "a", "second": "b", **arguments})


DOCUMENTS = [
    {"id": "a", "text": "We follow B. It is new."},
    {"id": "b", "sentences": ["A title", " An earlier\nwork."]},
    {"id": "c", "sentences": ["Other things."]},
]
COLLECTION_LINKS = [{"first": "b", "second": "a", "sentences": [1, 0, 1]}, {"first": "a", "second": "b"}]


def read(folder):
    return collected(read_collection(collection_rows(folder)[""]()))


@pytest.fixture
def collection(write, tmp_path):
    """collection(documents, links): a folder of both."""

    def _collection(documents=DOCUMENTS, links=COLLECTION_LINKS, ending=""):
        for name, records in (("documents.jsonl", documents), ("links.jsonl", links)):
            write(f"{name}{ending}", "\n".join(map(json.dumps, records)) + "\n")
        return tmp_path

    return _collection


def test_documents_and_links_in_order(collection, tmp_path):
    assert not collection_rows(tmp_path)
    documents, links = read(collection(ending=".gz"))
    assert {name: one.sentences for name, one in documents.items()} == {
        "a": ("We follow B.", "It is new."),
        "b": ("A title", "An earlier work."),
        "c": ("Other things.",),
    }
    assert [(link.documents, link.in_first) for link in links] == [(("b", "a"), (0, 1)), (("a", "b"), None)]


@pytest.mark.parametrize(("document", "message"), [
    ({"id": "d"}, 'text: missing; add "text" to the record'),
    ({"id": "d", "sentences": ["x", " "]}, "sentences[1]: it is empty; leave it out"),
    ({"id": "a", "text": "x"}, "id: 'a' is there already; give every document its own id"),
])  # fmt: skip
def test_documents_that_cannot_be(collection, refused, document, message):
    folder = collection([*DOCUMENTS, document])
    with refused(folder / "documents.jsonl", f"4: {message}"):
        read(folder)


@pytest.mark.parametrize(("first", "second", "sentences", "message"), [
    ("z", "a", None, "first: there is no document 'z'; add it, or delete the line"),
    ("a", "a", None, "second: a document linked with itself; delete the line"),
    ("a", "b", None, "second: the same link is there already; give each link once"),
    ("a", "c", [0],
     "sentences: document 'a' is given as a text; give it as sentences, so that their numbers are sure"),
    ("b", "c", [0, 2], "sentences[1]: 2 is no sentence of 'b', which has 2; count them from 0"),
])  # fmt: skip
def test_links_that_cannot_be(collection, refused, first, second, sentences, message):
    record = {"first": first, "second": second, "sentences": sentences}
    folder = collection(links=[*COLLECTION_LINKS, record])
    with refused(folder / "links.jsonl", f"3: {message}"):
        read(folder)


def test_a_file_that_is_missing(collection):
    folder = collection()
    (folder / "links.jsonl").unlink()
    with pytest.raises(ValueError, match=r"links\.jsonl.*no such file; put documents\.jsonl and links"):
        read(folder)


LONG = {
    name: PairDocument(id=name, sentences=tuple(f"{name} sentence {n}" for n in range(20)))
    for name in "ABCDE"
}


def cites(first: str, second: str, *citing: int) -> DocumentLink:
    return link(first, second, in_first=citing or None)


def made(*links: DocumentLink, length: int = 5, opening: int = 3, seed: int = 0, **more):
    form = {"length": length, "opening": opening, "seed": seed, **more}
    return citing_passages(LONG, links, **form)


def test_the_passage_holds_the_citing_sentence_at_any_place():
    places = Counter()
    for seed in range(2_000):
        passages = made(cites("A", "B", 9), seed=seed)
        (one,) = passages.links
        sentences = passages.documents[one.first].sentences
        assert len(sentences) == 5
        assert [sentences[number] for number in one.in_first] == ["A sentence 9"]
        assert passages.paper_of == {one.first: "A"}
        assert one.first.startswith("A[")
        places.update(one.in_first)
    assert set(places) == set(range(5))
    assert min(places.values()) > 320  # 400 each; five standard deviations are 90


@pytest.mark.parametrize(("citing", "possible"), [(0, {0}), (1, {0, 1}), (19, {4}), (18, {3, 4})])
def test_at_the_ends_of_a_paper_passages_stay_inside_and_whole(citing, possible):
    drawn = [made(cites("A", "B", citing), seed=seed) for seed in range(60)]
    assert {one.links[0].in_first[0] for one in drawn} == possible
    assert {len(one.documents[one.links[0].first].sentences) for one in drawn} == {5}


def test_what_passages_and_openings_hold():
    passages = made(cites("A", "B", 7, 8, 19), length=3, seed=4)
    (one,) = passages.links
    texts = passages.documents[one.first].sentences
    citing = {text for text in texts if text.rpartition(" ")[2] in ("7", "8", "19")}
    assert {texts[number] for number in one.in_first} == citing  # all of the passage, and no others
    (whole,) = made(cites("A", "B", 2), length=99).links  # a short paper is its own passage
    assert (whole.first, whole.in_first) == ("A[0:20]", (2,))
    assert passages.documents["B"].sentences == LONG["B"].sentences[:3]
    assert made(cites("A", "B", 2), opening=0).documents["B"] == LONG["B"]
    # Links whose citing sentence is unknown are left out, and draws do not depend on other links.
    assert [one.second for one in made(cites("A", "B"), cites("A", "C", 3)).links] == ["C"]
    assert made(cites("A", "B", 9)).links == (made(cites("C", "D", 4), cites("A", "B", 9)).links[1],)


def test_no_paper_that_the_whole_paper_is_linked_with_becomes_a_negative():
    links = [cites("A", "B", 2), cites("A", "C", 15), cites("E", "D", 3)]
    for seed in range(20):
        one = made(*links, seed=seed, known=[cites("E", "A")])
        pairs = pairs_from_links(one.documents, one.links, known=one.known, seed=seed)
        drawn = [(one.paper_of[pair.first.id], pair.second.id) for pair in pairs if not pair.related]
        assert drawn[:2] == [("A", "D"), ("A", "D")]  # B and C are cited by A, though by another passage
        assert {first for first, _ in drawn} == {"A", "E"}


@pytest.mark.parametrize(("citing", "length", "opening", "complaint"), [
    (1, 0, 3, "length is 0 and opening 3; a passage has at least 1 sentence"),
    (1, 5, -1, "length is 5 and opening -1"),
    (20, 5, 3, "link A>B: sentence 20 lies outside"),
])  # fmt: skip
def test_passages_that_cannot_be(citing, length, opening, complaint):
    with pytest.raises(ValueError, match=complaint):
        made(cites("A", "B", citing), length=length, opening=opening)
