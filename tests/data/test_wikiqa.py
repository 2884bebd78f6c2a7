"""WikiQA's files: rows by hand, every complaint, and the published counts where somebody has the data."""

import gzip
import lzma
from pathlib import Path

import pytest

from cdlm_lab.data.candidates import HEADER, clean_sets, counts_of, read_wikiqa, wikiqa_files
from cdlm_lab.data.files import check_files, read_card
from cdlm_lab.data.records import CandidateSet

CARD = Path(__file__).resolve().parents[2] / "data" / "wikiqa" / "README.md"
HEAD = "\t".join(HEADER) + "\n"
ROWS = (
    "Q1\twhat is a kiln\tD1\tKiln\tD1-0\tA kiln is an oven.\t1\n"
    'Q1\twhat is a kiln\tD1\tKiln\tD1-1\t"Kiln" is an old word, 5" long.\t0\n'
    'Q2\twho was "Orn\tD2\tOrn\tD2-0\t"He swam.\t0\n'
)
SETS = [
    CandidateSet(
        id="Q1",
        question="what is a kiln",
        candidates=("A kiln is an oven.", '"Kiln" is an old word, 5" long.'),
        correct=(True, False),
    ),
    CandidateSet(id="Q2", question='who was "Orn', candidates=('"He swam.',), correct=(False,)),
]


def test_rows(write):
    assert list(read_wikiqa(str(write("a.tsv", HEAD + ROWS)))) == SETS
    # Windows' line ends, a blank line, no line end at the end.
    other = (HEAD + ROWS).replace("\n", "\r\n").replace("Q2", "\r\nQ2").rstrip()
    assert list(read_wikiqa(write("b.tsv.gz", gzip.compress(other.encode())))) == SETS
    assert list(read_wikiqa(write("b.tsv.xz", lzma.compress(other.encode())))) == SETS


def test_one_question_at_a_time(write):
    questions = read_wikiqa(write("a.tsv", HEAD + ROWS + "Q3\n"))
    assert next(questions) == SETS[0]
    with pytest.raises(ValueError, match=r"a.tsv:5: field row: 1 columns"):
        next(questions)


@pytest.mark.parametrize(
    ("text", "line", "field", "what", "remedy"),
    [
        (ROWS, 1, "header", "not the header of WikiQA", f"begin with {', '.join(HEADER)}, tabs between"),
        (
            HEAD + ROWS.replace("D2-0\t", "D2-0 "),
            4,
            "row",
            "6 columns instead of 7",
            "put a tab between two columns",
        ),
        (
            HEAD + ROWS.replace("swam.", "swam\t."),
            4,
            "row",
            "8 columns instead of 7",
            "put a tab between two columns",
        ),
        (HEAD + ROWS.replace("\t1\n", "\t1.0\n"), 2, "label", "'1.0' is no label", "write one of 0, 1"),
        (HEAD + ROWS.replace('"He swam.', " "), 4, "candidate", "it is empty", "fill it in, or leave it out"),
        (
            HEAD + ROWS + ROWS[: ROWS.index("\n")],
            5,
            "id",
            "'Q1' is the id of line 2 already, of another question or of other rows",
            "put the rows of a question together, and give each question its own id",
        ),
        (
            HEAD + ROWS.replace("kiln\tD1\tKiln\tD1-1", "kilt\tD1\tKiln\tD1-1"),
            3,
            "id",
            "'Q1' is the id of line 2 already, of another question or of other rows",
            "put the rows of a question together, and give each question its own id",
        ),
        (HEAD, 1, "file", "no questions", "add some, or leave the file out"),
    ],
)
def test_complaints(write, complains, text, line, field, what, remedy):
    path = write("a.tsv", text)
    with complains(path, line, field, what, remedy):
        list(read_wikiqa(path))


def test_files_of_a_folder(write, tmp_path):
    assert wikiqa_files(tmp_path) == {}
    write("WikiQA.tsv", HEAD + ROWS)
    test = write("WikiQA-test.tsv.gz", b"")
    train = write("WikiQA-train.tsv", HEAD + ROWS)
    assert wikiqa_files(str(tmp_path)) == {"train": train, "test": test}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_real_files_are_those_of_the_card(real_data, tmp_path, split):
    card = read_card(CARD)
    path = wikiqa_files(real_data("wikiqa"))[split]
    found = list(read_wikiqa(path))
    for kind, sets in (("", found), ("clean ", clean_sets(found))):
        counts = counts_of(sets)
        assert counts.questions == card.counts[f"{kind}{split} questions"]
        assert counts.candidates == card.counts[f"{kind}{split} candidates"]
        assert counts.right == card.counts[f"{kind}{split} right candidates"]
    name = f"WikiQA-{split}.tsv"
    (tmp_path / name).write_bytes(gzip.decompress(path.read_bytes()))
    assert check_files(card, tmp_path) == [name]


def test_the_card_has_the_published_counts():
    counts = read_card(CARD).counts
    clean = [counts[f"clean {split} questions"] for split in ("train", "dev", "test")]
    assert clean == [857, 122, 237]
    # 3,047 questions, 29,258 sentences, 1,473 of them right (Yang et al. 2015).
    for what, total in (("questions", 3047), ("candidates", 29258), ("right candidates", 1473)):
        assert sum(counts[f"{split} {what}"] for split in ("train", "dev", "test")) == total
