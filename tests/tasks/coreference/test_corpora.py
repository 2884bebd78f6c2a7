"""Which files of a corpus notebook 03 reads, how it is divided, which documents are searched together."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import PassedOver, mentions_of
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference.corpus import read_corpus
from cdlm_lab.tasks.coreference.experiment import Settings, read_topics, searched_together

SETTINGS = Settings(kind="entity", train_stories=3, held_out_stories=2)
DOCUMENTS = ("0_a", "0_b", "1_a", "1_b", "2_a", "2_b")


def conll(*names: str) -> str:
    """A section for each document, with a mention that is twice there and a chain of its own."""
    return "".join(
        f"#begin document {name}\n{name}\t0\t0\tIt\t(x)|(x)\n"
        f"{name}\t0\t1\tfell\t(only_{name})\n\n#end document\n"
        for name in names
    )


def of(folder: Path, **changes: object) -> Settings:
    return replace(SETTINGS, corpus=str(folder), **changes)


@pytest.mark.parametrize("form", ["{split}.conll", "{split}/a_conll", "{name}/dataset.conll"])
def test_a_folder_of_conll_files(tmp_path: Path, form: str):
    for number, (split, name) in enumerate((("train", "train"), ("dev", "val"), ("test", "test"))):
        file = tmp_path / form.format(split=split, name=name)
        file.parent.mkdir(exist_ok=True)
        file.write_text(conll(f"{number}_a", f"{number}_b"))
    for number, split in enumerate(("train", "dev", "test")):
        passed_over = PassedOver()
        (topic,) = read_topics(of(tmp_path), split, passed_over)
        assert topic.id == f"{number}"
        assert [document.id for document in topic.documents] == [f"{number}_a", f"{number}_b"]
        (line,) = passed_over.lines()
        assert line.startswith("mention that is there already, in the same chain: 2 (")
        _, (group,) = searched_together(of(tmp_path), [topic], split)
        assert len(group.mentions) == 4


@pytest.mark.parametrize("file", ["", "all.conll"])
def test_a_corpus_without_splits_is_divided_by_topics(tmp_path: Path, file: str):
    (tmp_path / "all.conll").write_text(conll(*DOCUMENTS))
    divided = of(tmp_path / file, dev_topics="1", test_topics="2")
    result = {split: [t.id for t in read_topics(divided, split)] for split in ("train", "dev", "test")}
    assert result == {"train": ["0"], "dev": ["1"], "test": ["2"]}


@pytest.mark.parametrize(
    ("dev", "test", "split", "message"),
    [
        ("1", "", "train", r"name some of its 3 topics as test_topics.*\(0, 1, 2\)"),
        ("1", "1 2", "train", "1 is in dev_topics and in test_topics"),
        ("0 1", "2", "train", "take all topics"),
        ("9", "2", "dev", "dev_topics names 9, but the topics are 0, 1, 2"),
    ],
)
def test_topics_that_divide_nothing(tmp_path: Path, dev: str, test: str, split: str, message: str):
    (tmp_path / "all.conll").write_text(conll(*DOCUMENTS))
    with pytest.raises(ParameterError, match=message):
        read_topics(of(tmp_path, dev_topics=dev, test_topics=test), split)


def test_a_corpus_that_is_divided_by_nobody_is_dealt_by_topics(tmp_path: Path):
    (tmp_path / "all.conll").write_text(conll(*(f"{n}_{name}" for n in range(9) for name in "ab")))
    dealt = [[topic.id for topic in read_topics(of(tmp_path), split)] for split in ("train", "dev", "test")]
    assert sorted(topic for its in dealt for topic in its) == [str(n) for n in range(9)]
    assert all(dealt)


@pytest.mark.parametrize(
    ("files", "folder", "split", "message"),
    [
        ("", "no", "train", "no such file or folder; give a folder with train.jsonl"),
        ("", "", "train", r"no coreference that can be read; .*ecb_plus, cattan, conll"),
        ("train test", "", "dev", "it has no split dev, but test, train"),
    ],
)
def test_what_no_corpus_is(tmp_path: Path, files: str, folder: str, split: str, message: str):
    for name in files.split():
        (tmp_path / f"{name}.conll").write_text(conll("0_a"))
    with pytest.raises(DataError, match=message):
        read_topics(of(tmp_path / folder), split)


def test_json_with_one_kind_of_mentions(tmp_path: Path):
    """The other kind's file may be missing; topics may be numbers; places are taken once."""
    (tmp_path / "train.json").write_text(json.dumps({"a": [[0, 0, "It", True]], "b": [[0, 0, "It", True]]}))
    entities = [
        {"doc_id": name, "tokens_ids": [0], "cluster_id": cluster, "topic": 5}
        for name, cluster in (("a", 1), ("a", 2), ("b", 1))
    ]
    (tmp_path / "train_entities.json").write_text(json.dumps(entities))
    passed_over = PassedOver()
    topics = read_topics(of(tmp_path), "train", passed_over)
    assert [topic.id for topic in topics] == ["5"]
    places = [(mention.document, mention.cluster) for mention in mentions_of(topics)]
    assert places == [("a", "1"), ("b", "1")]
    (line,) = passed_over.lines()
    assert line == "mention in the place of another one, which counts: 1 (first: token 0 of a)"
    with pytest.raises(
        DataError, match="no file of event mentions beside it; add it, or set kind to 'entity'"
    ):
        read_topics(of(tmp_path, kind="event"), "train")


@pytest.mark.parametrize("kind", ["event", "entity"])
def test_storyworld_loses_nothing(kind: str):
    passed_over = PassedOver()
    result = read_topics(replace(SETTINGS, kind=kind), "dev", passed_over)
    assert result == read_corpus("storyworld", "dev", stories=2)
    assert passed_over.counts == {}


@pytest.fixture
def predicted(tmp_path: Path) -> Path:
    """A corpus of two topics a split, and predicted topics of test that lie across them."""
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conll").write_text(conll(*(f"{name}{split}" for name in DOCUMENTS[:4])))
    groups = [["0_atest", "1_btest"], ["0_btest", "1_atest"]]
    (tmp_path / "predicted_topics_test.json").write_text(json.dumps(groups))
    return tmp_path


def groups_of(settings: Settings, split: str) -> tuple[str, list[list[str]]]:
    described, groups = searched_together(settings, read_topics(settings, split), split)
    return described, [sorted({mention.document for mention in one.mentions}) for one in groups]


def test_predicted_topics_are_taken_where_they_are_listed(predicted: Path):
    described, groups = groups_of(of(predicted), "test")
    assert described == "predicted topics of predicted_topics_test.json"
    assert groups == [["0_atest", "1_btest"], ["0_btest", "1_atest"]]
    for split in ("train", "dev"):  # not listed: as the released code, the corpus's topics
        described, groups = groups_of(of(predicted), split)
        assert described.startswith("topic")
        assert groups == [[f"0_a{split}", f"0_b{split}"], [f"1_a{split}", f"1_b{split}"]]
    # asked for another level, or without a file
    by_topic = [["0_atest", "0_btest"], ["1_atest", "1_btest"]]
    assert groups_of(of(predicted, topic_level="topic"), "test")[1] == by_topic
    file = predicted / "predicted_topics_test.json"
    moved = file.rename(predicted / "elsewhere.json")
    assert groups_of(of(predicted), "test")[0] == "topic"
    assert groups_of(of(predicted, predicted_topics=str(moved)), "test")[0].endswith("elsewhere.json")
    file.write_text('[["0_atest", "0_btest", "1_atest"]]')
    with pytest.raises(DataError, match="document 1_btest is in no group, one of 1 such"):
        groups_of(of(predicted), "test")
    assert searched_together(of(predicted, kind="event"), [], "train") == ("the corpus has none", [])


def test_predicted_topics_must_be_in_a_file():
    settings = replace(SETTINGS, kind="event", topic_level="predicted")
    with pytest.raises(ParameterError, match=r"storyworld has no predicted_topics\*\.json; name a file"):
        groups_of(settings, "dev")


def test_chains_are_asked_for_and_what_was_taken_is_said(tmp_path: Path):
    """A corpus numbered in each document is refused; with `chains` it is read, and the reading has a note."""
    form = "#begin document ({name});\n{name}\t0\t0\tIt\t(1)\n{name}\t0\t1\tfell\t(2)\n#end document\n"
    for split in ("train", "dev", "test"):
        text = "".join(form.format(name=f"{name}{split}") for name in DOCUMENTS[:4])
        (tmp_path / f"{split}.conll").write_text(text)
    with pytest.raises(DataError, match=r"\.conll:5: field chains: chain 1 is in 0_a\w+ and in 0_b"):
        read_topics(of(tmp_path), "train")
    for chains, within, topics in (
        ("document", "a document", 4), ("topic", "a topic", 2), ("corpus", "the corpus", 2),
    ):  # fmt: skip
        passed_over = PassedOver()
        assert len(read_topics(of(tmp_path, chains=chains), "dev", passed_over)) == topics
        assert passed_over.notes == [f"equal names are one chain within {within}"]
    with pytest.raises(ParameterError, match="chains is 'topic', but storyworld names its chains itself"):
        read_topics(replace(SETTINGS, chains="topic"), "train")


def test_copies_of_an_editor_are_not_read(tmp_path: Path):
    """What JupyterLab and macOS leave beside a file does not take its place, whatever its name."""
    (tmp_path / "dev.conll").write_text(conll("0_a", "0_b"))
    for copy in (".ipynb_checkpoints/dev-checkpoint.conll", "._dev.conll"):
        (tmp_path / copy).parent.mkdir(exist_ok=True)
        (tmp_path / copy).write_text(conll("0_stale"))
    (topic,) = read_topics(of(tmp_path), "dev")
    assert [document.id for document in topic.documents] == ["0_a", "0_b"]
    hidden = tmp_path / ".corpus"  # a folder that is given by name is read
    hidden.mkdir()
    (hidden / "all.conll").write_text(conll(*DOCUMENTS))
    assert len(read_topics(of(hidden, dev_topics="1", test_topics="2"), "dev")) == 1


def test_own_documents_are_read_as_any_format(tmp_path: Path):
    row = {"id": "a", "topic": "t", "text": "It fell.", "mentions": [{"start": 0, "end": 2, "cluster": "x",
           "kind": "entity"}]}  # fmt: skip
    (tmp_path / "dev.jsonl").write_text(json.dumps(row))
    (topic,) = read_topics(of(tmp_path), "dev")
    assert (topic.id, topic.documents[0].tokens) == ("t", ("It", "fell", "."))
