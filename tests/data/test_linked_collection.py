"""A collection of one's own in two JSONL files, and what is said of mistakes in them."""

import gzip
import json

import pytest

from cdlm_lab.data.document_links import is_linked_collection, read_linked_collection

DOCUMENTS = [
    {"id": "a", "text": "We follow B. It is new."},
    {"id": "b", "sentences": ["A title", " An earlier\nwork."]},
    {"id": "c", "sentences": ["Other things."]},
]
LINKS = [{"first": "b", "second": "a", "sentences": [1, 0, 1]}, {"first": "a", "second": "b"}]


@pytest.fixture
def collection(write, tmp_path):
    """collection(documents, links): a folder of both."""

    def _collection(documents=DOCUMENTS, links=LINKS):
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
    for name, records in (("documents.jsonl", DOCUMENTS), ("links.jsonl", LINKS)):
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
    folder = collection(links=[*LINKS, link])
    with refused(folder / "links.jsonl", message):
        read_linked_collection(folder)


def test_a_file_that_is_missing(collection) -> None:
    folder = collection()
    (folder / "links.jsonl").unlink()
    with pytest.raises(ValueError, match=r"links\.jsonl.*no such file; put documents\.jsonl and links"):
        read_linked_collection(folder)
