"""One's own data of every task, as notebooks/README.md shows them; splits; the cache of converted corpora."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import datasets
import pandas as pd
import pytest
from readme_examples import EXAMPLES

from cdlm_lab.batch.command import main
from cdlm_lab.data import reading
from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.convert import tagged
from cdlm_lab.data.files import DataError
from cdlm_lab.data.reading import FORMATS, KIND, open_records, read_records
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, PassedOver
from cdlm_lab.data.splits import SPLITS, dealt
from cdlm_lab.data.tags import SHARED, spans_of, tagged_mentions

OWN = {name: one for name, one in EXAMPLES.items() if one.form == one.task and one.task in KIND}
PUBLISHED = {name: one for name, one in EXAMPLES.items() if one.form != one.task}
COUNTS = {
    "scisumm": 3,
    "benchmark": 3,
    "cattan": 2,
    "jsonlines": 2,
    "spans": 4,
    "linked_spans": 4,
    "fever": 2,
    "fm2": 2,
    "fever_symmetric": 2,
}
COUNTS |= {"asnq": 2, "tagged test.conll": 2, "tagged test.iob2": 2}  # records of test; else 1


def every(task: str, corpus: Path, split: str = "test") -> list:
    return list(read_records(task, corpus, "" if task == "collection" else split))


@pytest.mark.parametrize("name", OWN)
def test_rows_of_the_readme_are_read_and_come_back_from_what_is_written(name, tmp_path):
    example = OWN[name]
    some = every(example.task, example.written(tmp_path))
    assert len(some) == {"candidates test.jsonl 2": 2, "collection documents.jsonl": 6}.get(name, 3)
    assert main(["convert", example.task, str(tmp_path), str(tmp_path / "out")]) == 0
    assert every(example.task, tmp_path / "out") == some


@pytest.mark.parametrize("name", PUBLISHED)
def test_formats_of_the_readme_are_read_and_converted(name, tmp_path):
    form, task, folder = PUBLISHED[name].form, PUBLISHED[name].task, PUBLISHED[name].written(tmp_path)
    assert open_records(task, folder).format == form
    split = "symmetric" if form == "fever_symmetric" else "test"
    some = every(task, folder, split)
    assert len(some) == COUNTS.get(name, COUNTS.get(form, 1))
    if form != "fever_symmetric":  # which has no splits of its own
        assert main(["convert", form, str(folder), str(tmp_path / "out")]) == 0
        assert every(task, tmp_path / "out") == some


def test_every_format_has_an_example():
    assert {one.form for one in EXAMPLES.values()} == {
        *(form.name for form in FORMATS if form.name not in ("fever_wiki", "table")),  # refused; one's own
        *KIND,
        "clusters",
    }


def test_clusters_of_the_readme(tmp_path):
    found = {name: one for name, one in EXAMPLES.items() if one.task == "clusters"}
    for name, one in found.items():
        folder = one.written(tmp_path / name)
        corpus = folder if len(one.files) > 1 else folder / next(iter(one.files))
        for split in SPLITS:
            assert all(len(cluster.documents) == 2 for cluster in open_corpus(str(corpus), split=split))


@pytest.mark.parametrize("name", [name for name in OWN if "collection" not in name])
def test_other_containers_hold_the_same(name, tmp_path):
    task, (lines,) = OWN[name].task, OWN[name].files.values()
    rows = list(map(json.loads, lines.splitlines()))
    folders = {name: tmp_path / name for name in ("jsonl", "json", "parquet")}
    for folder in folders.values():
        folder.mkdir()
    (folders["jsonl"] / "test.jsonl").write_text(lines, encoding="utf-8")
    (folders["json"] / "test.json").write_text(json.dumps(rows), encoding="utf-8")
    expected = every(task, folders["jsonl"])
    assert every(task, folders["json"]) == expected
    if task in ("candidates", "claims"):  # their values are of one type each
        table = datasets.Dataset.from_list(rows)
        table.to_parquet(folders["parquet"] / "test.parquet")
        assert every(task, folders["parquet"]) == expected
        datasets.DatasetDict(test=table).save_to_disk(tmp_path / "saved")
        assert every(task, tmp_path / "saved") == expected


def test_a_table_of_candidates_as_csv(tmp_path):
    rows = {"question": ["a?", "a?", "b?"], "candidate": ['x "y", z', "n", "m"], "label": [1, 0, 1]}
    pd.DataFrame(rows).to_csv(tmp_path / "dev.csv", index=False)
    first, second = every("candidates", tmp_path, "dev")
    assert (first.candidates, first.correct, second.id) == (('x "y", z', "n"), (True, False), "1")


FAULTS = {
    "pairs": [{"first": "a.", "second": "b."}, {"first": 3, "second": "b", "related": True}],
    "questions": [{"question": "a"}, {"question": "a", "paragraphs": {"t": "x"}, "supporting": [["u", 0]]}],
    "tagging": [
        {"text": "abc", "names": [{"start": 2, "end": 9, "label": "X"}]},
        {"sentences": [{"words": 1}]},
        {"sentences": [{"words": ["a"], "tags": ["B-\ud83d"]}]},
    ],
    "candidates": [{"question": "a", "candidates": ["b"], "correct": []}, {"question": "a", "candidates": 1}],
    "claims": [{"claim": "a", "label": "maybe"}, {"claim": ""}],
    "coreference": [
        {"text": "ab", "mentions": [{"start": 0, "end": 5, "cluster": 1}]},
        {"text": "ab", "mentions": [{"start": 0, "end": 2, "cluster": ""}]},
        {"text": ""},
    ],
}


@pytest.mark.parametrize(("task", "row"), [(task, row) for task, rows in FAULTS.items() for row in rows])
def test_a_faulty_row_is_named_by_its_line(task, row, tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"^{re.escape(str(path))}:1: field .*; "):
        every(task, tmp_path)


def test_small_corpora_are_dealt_by_rank_and_large_ones_by_hash():
    shares = {"train": 0.9, "validation": 0.05, "test": 0.05}
    for count in (3, 10, 40):
        split_of = dealt([f"c{n}" for n in range(count)], shares)
        assert set(split_of.values()) == set(shares)
    many = dealt([f"c{n}" for n in range(3000)], shares)
    assert all(many[name] == split for name, split in dealt([f"c{n}" for n in range(1000)], shares).items())


def test_a_corpus_is_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "train.conll").write_text("Orn B-PER\nDram I-LOC\n")
    read: Callable[..., object] = tagged.read_files
    calls: list[object] = []
    form = next(one for one in reading.FORMATS if one.name == "tagged")
    counting = form._replace(read=lambda *given, **more: calls.append(given) or read(*given, **more))
    monkeypatch.setattr(reading, "FORMATS", (counting,))
    for _ in range(2):
        lost = PassedOver()
        (one,) = read_records("tagging", tmp_path, "train", passed_over=lost)
        assert one.id == "train.conll:0"
        assert lost.count(tagged.STRAY) == 1
    assert len(calls) == 1
    (tmp_path / "train.conll").write_text("Orn B-PER\n")
    assert len(every("tagging", tmp_path, "train")) == 1
    assert len(calls) == 2


def test_the_real_ucdcr(real_data):
    folder = real_data("ucdcr")
    assert open_records("coreference", folder).format == "ucdcr"
    documents = every("coreference", folder)
    kinds = [mention.kind for document in documents for mention in document.mentions]
    assert (len(documents), kinds.count("event"), kinds.count("entity")) == (210, 1777, 1952)


# ---- the mentions of a coreference corpus as tags ----


def mention(first: int, stop: int, kind: str = "event", sentence: int = 0) -> CoreferenceMention:
    place = {"document": "a", "tokens": (first, stop), "sentence": sentence}
    return CoreferenceMention(id=f"{kind} {first} {stop}", kind=kind, cluster="c", **place)


def test_a_word_has_the_tag_of_the_event_then_of_the_longer_mention():
    mentions = [mention(0, 3, "entity"), mention(1, 2), mention(3, 5, "entity"), mention(4, 5, "entity")]
    document = CoreferenceDocument(
        id="a",
        topic="t",
        subtopic="t",
        tokens=("The", "burnt", "mill", "old", "Telk", "It", "fell"),
        sentences=((0, 5), (5, 6), (6, 7)),
        validated=(0, 2),
        mentions=(*mentions, mention(6, 7, sentence=2)),
    )
    lost = PassedOver()
    tags = [sentence.tags for sentence in tagged_mentions(document, lost).sentences]
    assert tags == [("O", "B-event", "O", "B-entity", "I-entity"), None, ("B-event",)]
    assert lost.count(SHARED) == 2


@pytest.mark.parametrize(
    "name",  # columns and spans are read as those of tags, and rows of `clusters` have no kinds
    [
        name
        for name, one in EXAMPLES.items()
        if one.task == "coreference" and not name.startswith(("conll", "jsonl", "linked"))
    ],
)
def test_mentions_of_every_coreference_corpus_are_read_as_tags(name, tmp_path):
    folder = EXAMPLES[name].written(tmp_path)
    lost = PassedOver()
    tagged_documents = list(read_records("tagging", folder, "test", passed_over=lost))
    documents = every("coreference", folder)
    tags = [one.sentences[number].tags for one in tagged_documents for number in one.labelled]
    spans = sum(len(spans_of(of_sentence)) for of_sentence in tags)
    assert spans + lost.count(SHARED) == sum(len(one.mentions) for one in documents) > 0
    assert [one.id for one in tagged_documents] == [one.id for one in documents]
    assert main(["convert", "tagging", str(folder), str(tmp_path / "out")]) == 0
    assert every("tagging", tmp_path / "out") == tagged_documents
