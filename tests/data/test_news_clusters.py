"""AllSides and NeuS files: every branch by hand, and the counts of the real files."""

import gzip
import json
import lzma

import pytest

from cdlm_lab.data.clusters import news_files, read_allsides, read_neus, read_news_clusters

NEUS = (
    "TITLE=> One. ARTICLE=> First text. [SEP] TITLE=> Two. ARTICLE=> Second\u2028text. "
    "[SEP] TITLE=> Three. ARTICLE=>\n"
    "TITLE=>  ARTICLE=> Only text.\n"
)
NEUS_REMEDY = "write TITLE=> title ARTICLE=> text, with [SEP] between documents"


def allsides(cluster_id: str, *documents: tuple[str, str, str], **more: object) -> str:
    docs = [{"id": i, "title": title, "text": text, "source": "x"} for i, title, text in documents]
    return json.dumps({"cluster_id": cluster_id, "docs": docs, **more}) + "\n"


def test_allsides_records(write):
    lines = (
        allsides("a", ("1", "Head", "Body\u2028of\n\nit"), ("2", "Alone", ""), split="train")
        + "\n"
        + allsides("b", ("1", "", "No title"), split="val")
        + allsides("c", ("1", "T", "x"))
        + '{"cluster_id": "d", "split": null, "docs": [{"id": "1", "text": ""}, {"id": "2", "text": "y"}]}\n'
    )
    path = write("allsides_x.jsonl.xz", lzma.compress(lines.encode()))
    a, b, c, d = read_allsides(path)
    assert [document.text for document in a.documents] == ["Head\nBody\u2028of\n\nit", "Alone"]
    assert [document.title for document in a.documents] == ["Head", "Alone"]
    assert [document.id for document in a.documents] == ["1", "2"]
    assert b.documents[0].text == "No title"
    assert (d.documents[0].text, d.documents[0].title) == ("", None)
    assert [cluster.id for cluster in read_allsides(path, split="train")] == ["a", "c", "d"]
    assert list(read_allsides(path, split="validation")) == [b]
    assert list(read_allsides(path, split="test")) == []
    assert c.id == "c"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"cluster_id": "b"}', '2: docs: missing; add "docs" to the record'),
        ('{"cluster_id": "b", "docs": []}',
         "2: docs: an empty list; add what is missing, or delete the record"),
        ('{"cluster_id": "b", "docs": [7]}',
         "2: docs[0]: a number where an object belongs; write it as {...}"),
        ('{"cluster_id": "b", "docs": [{"id": "1"}]}', '2: docs[0].text: missing; add "text" to the record'),
        ('{"cluster_id": "b", "split": "train2", "docs": [{"id": "1", "text": ""}]}',
         "2: split: 'train2' is not a split; write train, validation or test, or leave it out"),
        (allsides("b", ("1", "", ""), ("2", "", " ")),
         "2: docs: no document has any text; fill one in, or delete the line"),
        (allsides("b", ("1", "", ""), ("1", "", "")),
         "2: docs[1].id: '1' is in this cluster already; give every document its own id"),
        (allsides("a", ("1", "", "")),
         "2: cluster_id: 'a' stands in line 1 already; give each record its own"),
    ],
)  # fmt: skip
def test_malformed_allsides_line(write, refused, line, message):
    path = write("allsides_x.jsonl", allsides("a", ("1", "T", "x")) + line)
    with refused(path, message):
        list(read_allsides(path, split="test"))  # also where no cluster of the line is asked for


def test_neus_records(write):
    path = write("neus_val.source.gz", gzip.compress(NEUS.encode()))
    first, second = read_neus(path)
    assert (first.id, second.id) == ("neus-val-0", "neus-val-1")
    assert [document.id for document in first.documents] == ["neus-val-0-0", "neus-val-0-1", "neus-val-0-2"]
    assert [document.text for document in first.documents] == [
        "One.\nFirst text.",
        "Two.\nSecond\u2028text.",
        "Three.",
    ]
    assert (second.documents[0].text, second.documents[0].title) == ("Only text.", "")
    assert list(read_neus(path, split="validation")) == [first, second]
    assert list(read_neus(path, split="train")) == []


@pytest.mark.parametrize(
    ("line", "document", "mark"),
    [
        ("TITLE=> a ARTICLE=> b [SEP] TITLE=> c", 2, "ARTICLE=>"),
        ("a ARTICLE=> b", 1, "TITLE=>"),
        ("x TITLE=> a ARTICLE=> b", 1, "TITLE=>"),
        ("TITLE=> a ARTICLE=> b [SEP]", 2, "TITLE=>"),
        ("", 1, "TITLE=>"),
    ],
)
def test_malformed_neus_line(write, refused, line, document, mark):
    path = write("neus_train.source", NEUS + line + "\n")
    with refused(path, f"3: document {document}: no {mark} where one belongs; {NEUS_REMEDY}"):
        list(read_neus(path))


def test_neus_line_without_any_text(write, refused):
    path = write("neus_train.source", NEUS + "TITLE=>  ARTICLE=> [SEP] TITLE=> ARTICLE=>\n")
    with refused(path, "3: line: no document has any text; fill one in, or delete the line"):
        list(read_neus(path))


def test_neus_name_without_split(write, refused):
    path = write("neus.source", NEUS)
    remedy = "name it neus_train.source, neus_val.source or neus_test.source"
    with refused(path, f"1: file name: the name does not say the split; {remedy}"):
        list(read_neus(path))


def test_a_folder_is_read_as_its_full_texts_or_else_as_its_openings(write, tmp_path, refused):
    remedy = "put allsides_*.jsonl or neus_<split>.source files there"
    with refused(tmp_path, f"1: folder: no news clusters here; {remedy}"):
        list(read_news_clusters(tmp_path))
    for name in ("neus_val.source", "neus_train.source", "neus_val.target"):
        write(name, NEUS)
    assert [path.name for path in news_files(tmp_path, split="train")] == ["neus_train.source"]
    clusters = [cluster.id for cluster in read_news_clusters(tmp_path)]
    assert clusters == ["neus-train-0", "neus-train-1", "neus-val-0", "neus-val-1"]
    write("allsides_b.jsonl", allsides("b", ("1", "", "x")))
    write("allsides_a.jsonl", allsides("a", ("1", "", "x"), split="test"))
    assert [cluster.id for cluster in read_news_clusters(tmp_path)] == ["a", "b"]
    assert [cluster.id for cluster in read_news_clusters(tmp_path, split="test")] == ["a"]


# Counts of the description that comes with the data: clusters of 2, 3 and 4 documents.
REAL = [
    ("allsides_fulltext_clusters.jsonl.xz", "train", {2: 743, 3: 405}),
    ("allsides_fulltext_clusters.jsonl.xz", "validation", {2: 94, 3: 67}),
    ("allsides_fulltext_clusters.jsonl.xz", "test", {2: 104, 3: 50}),
    ("allsides_weak_clusters.jsonl.xz", "train", {2: 1086, 3: 353, 4: 125}),
    ("allsides_weak_clusters.jsonl.xz", "test", {}),
    ("neus_train.source.gz", "train", {3: 2452}),
    ("neus_val.source.gz", "validation", {3: 307}),
    ("neus_test.source.gz", "test", {3: 307}),
]


@pytest.mark.parametrize(("name", "split", "sizes"), REAL)
def test_counts_of_the_real_files(real_data, name, split, sizes):
    counts: dict[int, int] = {}
    for cluster in read_news_clusters(real_data("news_clusters") / name, split=split):
        counts[len(cluster.documents)] = counts.get(len(cluster.documents), 0) + 1
        assert all(document.text.strip() for document in cluster.documents)
    assert counts == sizes


def test_first_middle_and_last_record_of_the_real_files(real_data):
    folder = real_data("news_clusters")
    full = list(read_allsides(folder / "allsides_fulltext_clusters.jsonl.xz"))
    assert len(full) == 1463
    assert (full[0].id, full[0].documents[0].id) == ("neus-train-0", "3Pna4x6u4Ksz9Upf")
    assert (
        full[0]
        .documents[0]
        .text.startswith("Trump slams John Kerry for 'shadow diplomacy' on Iran deal\nPresident")
    )
    assert len({document.id for cluster in full for document in cluster.documents}) == 3442
    train = list(read_neus(folder / "neus_train.source.gz"))
    # The same event in both files, by its number.
    assert full[0].documents[0].title in train[0].documents[0].title
    empty = sum(
        document.text == document.title
        for name in ("train", "val", "test")
        for cluster in read_neus(folder / f"neus_{name}.source.gz")
        for document in cluster.documents
    )
    assert empty == 22  # documents without a body
