"""Each form in which a split may lie, and what is said of none or two of them."""

from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.data.tagged import TagReading, read_tagged_split

START = "-DOCSTART- -X- -X- O\n\n"
CONLL = f"{START}Orn NNP I-NP I-PER\nslept VBD I-VP O\n\n{START}Dram NNP I-NP B-LOC\n"
IOB2 = "###MEDLINE:91\n\nOrn\tB-PER\nslept\tO\n\n###MEDLINE:92\n\nDram\tB-LOC\n"
DOCARC = "Orn\tB-PER\nslept\tO\n\nHe\tNULL\n"
LITBANK = "Orn\tB-PER\tO\tO\t\nof\tI-PER\tO\tO\t\nDram\tI-PER\tB-GPE\tO\t\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def told(folder: Path, **options: object) -> list[tuple[str, list[tuple[str, ...]]]]:
    return [
        (one.id, [sentence.tags for sentence in one.sentences if sentence.tags])
        for one in read_tagged_split(folder, "train", **options)
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"train/b.tsv": DOCARC, "train/a.tsv": DOCARC, "x.tagset": "B-PER\t1"}, {"a": "PER", "b": "PER"}),
        ({"train/book.tsv": LITBANK}, {"book": "PER"}),
        ({"train.conll": CONLL}, {"train.conll:0": "PER", "train.conll:1": "LOC"}),
        ({"train/b.conll": "Orn B-PER\n", "train/a.conll": "Dram B-LOC\n"},
         {"a.conll:0": "LOC", "b.conll:0": "PER"}),
        ({"train.iob2": IOB2}, {"91": "PER", "92": "LOC"}),
        ({"train/91.txt": "Orn slept.", "train/91.ann": "T1\tPER 0 3\tOrn\n"}, {"91": "PER"}),
    ],
)  # fmt: skip
def test_forms(tmp_path: Path, files: dict[str, str], expected: dict[str, str]) -> None:
    found = told(write(tmp_path, {**files, "dev/c.tsv": DOCARC}))
    assert {name: tags[0][0] for name, tags in found} == {
        name: f"B-{label}" for name, label in expected.items()
    }
    assert [name for name, _ in found] == list(expected)


def test_what_litbank_nests_is_its_outermost_name(tmp_path: Path) -> None:
    assert told(write(tmp_path, {"train/book.tsv": LITBANK})) == [("book", [("B-PER", "I-PER", "I-PER")])]


@pytest.mark.parametrize("form", ["train.conll", "train.iob2"])
def test_some_are_chosen_and_stray_tags_counted(tmp_path: Path, form: str) -> None:
    folder = write(tmp_path, {form: CONLL if form.endswith("conll") else IOB2})
    reading = TagReading()
    found = told(folder, chosen=lambda count: [count - 1], reading=reading)
    assert [tags for _, tags in found] == [[("B-LOC",)]]
    assert reading.mended == (1 if form.endswith("conll") else 0)


def test_a_split_of_one_document_is_read_sentence_by_sentence(tmp_path: Path) -> None:
    """As tweets are published: no line says where a document begins."""
    tweets = "Orn B-PER\nslept O\n\nDram B-LOC\n\nHe O\n"
    folder, reading = write(tmp_path, {"train.conll": tweets}), TagReading()
    assert told(folder, reading=reading) == [
        ("train.conll:0:0", [("B-PER", "O")]),
        ("train.conll:0:1", [("B-LOC",)]),
        ("train.conll:0:2", [("O",)]),
    ]
    assert reading.divided == 3
    chosen = told(folder, chosen=lambda count: [count - 1])
    assert [name for name, _ in chosen] == ["train.conll:0:2"]
    for other in ({"train.conll": CONLL}, {"train.conll": "Orn B-PER\n"}):
        reading = TagReading()
        told(write(tmp_path, other), reading=reading)
        assert reading.divided == 0


def test_none_or_two_forms(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"there is no train in it; give one of train/\*\.tsv, train\.conll"
    ) as none:
        read_tagged_split(tmp_path, "train")
    folder = write(tmp_path, {"train.conll": CONLL, "train/a.tsv": DOCARC})
    with pytest.raises(DataError, match=r"train is there in the forms \.tsv and \.conll") as two:
        read_tagged_split(folder, "train")
    assert "\n" not in f"{none.value}{two.value}"
