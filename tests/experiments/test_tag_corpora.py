"""Which documents notebook 07 tags: of storyworld or of a folder in Doc-ARC's format; drawn, cut, refused."""

from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.data.storyworld.task_sets import read_storyworld_tags
from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.experiments.document_tagging import TagCorpus, read_tagged
from cdlm_lab.parameters import ParameterError

LABELLED = "Orn\tB-PER\nslept\tO\n"


def context(*words: str) -> str:
    return "".join(f"\n{word}\tNULL\n" for word in words)


def write(folder: Path, split: str, *texts: str) -> None:
    """Documents 00.tsv, 01.tsv, ..."""
    (folder / split).mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / split / f"{number:02}.tsv").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "dev", "test"):
        write(tmp_path, split, *[LABELLED + context("Orn")] * 6)
    return tmp_path


def ids(documents: tuple[TaggedDocument, ...]) -> list[str]:
    return [document.id for document in documents]


def test_documents_of_storyworld_are_its_stories() -> None:
    read = read_tagged(TagCorpus(train_documents=3, held_out_documents=2))
    assert list(read.documents) == ["train", "dev", "test"]
    for split, count in (("train", 3), ("dev", 2), ("test", 2)):
        assert read.documents[split] == tuple(read_storyworld_tags(split, count))
    assert read.mended == {"train": 0, "dev": 0, "test": 0}
    assert set(read.labels) <= {"DATE", "FAC", "LOC", "MISC", "NUM", "ORG", "PER"}
    assert "PER" in read.labels


def test_a_folder_in_doc_arcs_format(folder: Path) -> None:
    write(folder, "test", LABELLED, "Dram\tB-LOC\n")
    read = read_tagged(TagCorpus(corpus=str(folder)))
    assert read.documents["train"][0] == TaggedDocument(
        id="00",
        sentences=(
            TaggedSentence(words=("Orn", "slept"), tags=("B-PER", "O")),
            TaggedSentence(words=("Orn",)),
        ),
    )
    assert ids(read.documents["dev"]) == ["00", "01", "02", "03", "04", "05"]
    assert read.labels == ("LOC", "PER")  # of all splits: only test has a LOC


def test_drawn_documents_are_the_same_each_time_and_in_order(folder: Path) -> None:
    few = TagCorpus(corpus=str(folder), train_documents=4, held_out_documents=2)
    read = read_tagged(few)
    assert {split: len(found) for split, found in read.documents.items()} == {
        "train": 4,
        "dev": 2,
        "test": 2,
    }
    for found in read.documents.values():
        assert ids(found) == sorted(set(ids(found)))
    assert read_tagged(few) == read
    # They are drawn, and not the first ones everywhere.
    assert {tuple(ids(found)) for found in read.documents.values()} != {
        ("00", "01", "02", "03"),
        ("00", "01"),
    }
    assert ids(read_tagged(TagCorpus(corpus=str(folder), train_documents=9)).documents["train"]) == [
        "00",
        "01",
        "02",
        "03",
        "04",
        "05",
    ]


def test_context_is_kept_where_it_is_near_to_a_label(folder: Path) -> None:
    """Labelled sentences 2 and 5: sentence 0 is 2 away from one, 1, 3, 4 and 6 are 1 away, 7 is 2 away."""
    middle = f"\n{LABELLED}"
    text = context("a", "b") + middle + context("c", "d") + middle + context("e", "f")
    write(folder, "dev", *[text] * 6)

    def kept(most: int) -> list[str]:
        read = read_tagged(TagCorpus(corpus=str(folder), most_context=most))
        return ["".join(sentence.words) for sentence in read.documents["dev"][0].sentences]

    own = "Ornslept"
    assert kept(0) == ["a", "b", own, "c", "d", own, "e", "f"]
    assert kept(1) == ["b", own, own]
    assert kept(3) == ["b", own, "c", "d", own]
    assert kept(4) == ["b", own, "c", "d", own, "e"]
    assert kept(5) == ["a", "b", own, "c", "d", own, "e"]  # a and f are as near; a comes first
    assert kept(99) == kept(0)


def test_all_labelled_sentences_stay(folder: Path) -> None:
    write(folder, "test", *[f"{LABELLED}\n{LABELLED}"] * 6)  # no context at all
    read = read_tagged(TagCorpus(corpus=str(folder), most_context=1))
    assert [len(document.sentences) for document in read.documents["test"]] == [2] * 6


def test_stray_tags_are_counted_or_refused_where_they_stand(folder: Path) -> None:
    write(folder, "dev", LABELLED, "slept\tO\n\nVale\tI-LOC\nOrn\tI-PER\n")
    read = read_tagged(TagCorpus(corpus=str(folder)))
    assert read.mended == {"train": 0, "dev": 2, "test": 0}
    assert read.documents["dev"][1].sentences[1].tags == ("B-LOC", "B-PER")
    with pytest.raises(DataError, match=r"dev/01\.tsv:3.*'I-LOC' follows no span of its label") as raised:
        read_tagged(TagCorpus(corpus=str(folder), stray_tags="refuse"))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_one_document_is_read_by_sentences(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conll").write_text("Orn B-PER\nslept O\n\nDram B-LOC\n\nHe O\n")
    read = read_tagged(TagCorpus(corpus=str(tmp_path), held_out_documents=2))
    assert {split: len(found) for split, found in read.documents.items()} == {
        "train": 3,
        "dev": 2,
        "test": 2,
    }
    assert read.divided == {"train": 3, "dev": 3, "test": 3}


def test_folders_that_cannot_be_used(folder: Path) -> None:
    settings = TagCorpus(corpus=str(folder))
    write(folder, "test", *["slept\tO\n"] * 6)
    with pytest.raises(ParameterError, match="whose test has no span; all labelled words have the tag O"):
        read_tagged(settings)
    for file in (folder / "test").iterdir():
        file.rename(folder / "dev" / f"more_{file.name}")
    write(folder, "test", LABELLED)
    with pytest.raises(ParameterError, match="whose test has one document to read; it needs two: "):
        read_tagged(settings)
    with pytest.raises(ParameterError, match="and 0 or at least 2 as train_documents"):
        read_tagged(TagCorpus(corpus=str(folder), train_documents=1))
    with pytest.raises(ParameterError, match="which is no folder; write storyworld, or a folder with"):
        read_tagged(TagCorpus(corpus=str(folder / "nowhere")))


def test_values_that_cannot_be() -> None:
    for given, message in (
        ({"train_documents": -1}, "train_documents is -1; write 0 for all, or how many"),
        ({"held_out_documents": -2}, "held_out_documents is -2; write 0 for all"),
        ({"most_context": -1}, "most_context is -1; write 0 for all"),
        ({"stray_tags": "mend"}, "stray_tags is 'mend'; choose one of accept, refuse"),
        ({"train_documents": "six"}, "train_documents"),
    ):
        with pytest.raises(ParameterError, match=message) as raised:
            TagCorpus(**given)
        assert "\n" not in str(raised.value)
