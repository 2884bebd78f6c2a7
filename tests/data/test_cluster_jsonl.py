"""A user's JSON lines: a record of every form, and one malformed line each."""

import json
from pathlib import Path

import pytest

from cdlm_lab.data.clusters import read_cluster_jsonl
from cdlm_lab.data.records import Cluster, Document, hashed_split

GOOD = (
    '{"id": "a", "split": "train", "documents": ["Plain\\u2028text.", {"text": "Body."}, '
    '{"id": "x", "title": "Head", "text": "Body.", "source": "?"}, {"title": null, "text": ""}, ""]}\n'
    '{"id": "b", "split": "dev", "documents": ["One alone."], "more": 1}\n'
)


def test_records(write):
    path = write("x.jsonl", GOOD)
    a, b = read_cluster_jsonl(path)
    assert a == Cluster(
        id="a",
        documents=(
            Document(id="0", text="Plain\u2028text."),
            Document(id="1", text="Body."),
            Document(id="x", text="Head\nBody.", title="Head"),
            Document(id="3", text=""),
            Document(id="4", text=""),
        ),
    )
    assert list(read_cluster_jsonl(path, split="train")) == [a]
    assert list(read_cluster_jsonl(path, split="validation")) == [b]
    assert list(read_cluster_jsonl(path, split="test")) == []


def test_without_a_split_the_hash_of_the_id_decides(write):
    ids = [f"c{index}" for index in range(300)]
    path = write("x.jsonl", "".join(json.dumps({"id": i, "documents": ["t"]}) + "\n" for i in ids))
    for split in ("train", "validation", "test"):
        found = [cluster.id for cluster in read_cluster_jsonl(path, split=split)]
        assert found == [i for i in ids if hashed_split(i) == split]
        assert found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"documents": ["t"]}', '3: id: missing; add "id" to the record'),
        ('{"id": 5, "documents": ["t"]}', "3: id: a number where a text belongs; put it in quotes"),
        ('{"id": "a", "documents": ["t"]}', "3: id: 'a' stands in line 1 already; give each record its own"),
        ('{"id": "c"}', '3: documents: missing; add "documents" to the record'),
        ('{"id": "c", "documents": "t"}', "3: documents: a text where a list belongs; write it as [...]"),
        ('{"id": "c", "documents": []}',
         "3: documents: an empty list; add what is missing, or delete the record"),
        ('{"id": "c", "documents": ["", {"text": " \\n"}]}',
         "3: documents: no document has any text; fill one in, or delete the line"),
        ('{"id": "c", "documents": ["t", null]}',
         '3: documents[1]: null where an object belongs; write each as a text in quotes, or {"text": "..."}'),
        ('{"id": "c", "documents": [{"title": "t"}]}',
         '3: documents[0].text: missing; add "text" to the record'),
        ('{"id": "c", "documents": [{"text": "t", "title": ["x"]}]}',
         "3: documents[0].title: a list where a text belongs; put it in quotes"),
        ('{"id": "c", "documents": ["t", {"id": "0", "text": "u"}]}',
         "3: documents[1].id: '0' is in this cluster already; give every document its own id"),
        ('{"id": "c", "documents": ["t"], "split": "Train"}',
         "3: split: 'Train' is not a split; write train, validation or test, or leave it out"),
        ('{"id": "c", "documents": ["\\udfff"]}',
         "3: documents[0].text: half a surrogate pair at character 0; remove the lone \\ud... escape"),
    ],
)  # fmt: skip
def test_malformed_line(write, refused, line, message):
    path = write("x.jsonl", GOOD + line + "\n")
    clusters = read_cluster_jsonl(path, split="train")
    assert next(clusters).id == "a"  # what stands before the fault is read
    with refused(path, message):
        list(clusters)


def test_empty_file(write, refused):
    path: Path = write("x.jsonl", "\n\n")
    with refused(path, "1: file: the file is empty; fill it, or take it out of the corpus"):
        list(read_cluster_jsonl(path))
