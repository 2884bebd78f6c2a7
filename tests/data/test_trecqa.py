"""TREC-QA in token files and in what looks like XML: both by hand, every complaint, the published counts."""

import gzip
import tarfile
from pathlib import Path

import pytest

from cdlm_lab.data.candidates import clean_sets, counts_of, read_trecqa, trecqa_files
from cdlm_lab.data.files import check_files, read_card
from cdlm_lab.data.records import CandidateSet

CARD = Path(__file__).resolve().parents[2] / "data" / "trecqa" / "README.md"
TOKENS = {
    "a.toks": "who swims ?\nwho swims ?\nwho swims ?\n",
    "b.toks": "orn & lee swim .\nnobody -lrb- here -rrb-\nlee swims .\n",
    "sim.txt": "1\n0\n1\n",
    "id.txt": "7.1\n7.1\n7.2\n",
}
XML = """<QApairs id='7.1'>
<question>
Who\tswims\t?
WP\tVBZ\t.
</question>
<positive>
Orn\t&\tLee\tswim\t.
NNP\tCC\tNNP\tVB\t.
Orn\t
1\t
</positive>
<negative>
Nobody\t-LRB-\there\t-RRB-
<positive>\tNN
</negative>
</QApairs>
<QApairs id="7.3">
<question>
Why\t?
</question>
</QApairs>

<QApairs id='7.2'>
<question>
Who\tswims\t?
</question>
<positive>
Lee\tswims\t.\t
</positive>
</QApairs>
"""
SETS = [
    CandidateSet(
        id="7.1",
        question="Who swims ?",
        candidates=("Orn & Lee swim .", "Nobody -LRB- here -RRB-"),
        correct=(True, False),
    ),
    # The same question under another id is another set.
    CandidateSet(id="7.2", question="Who swims ?", candidates=("Lee swims .",), correct=(True,)),
]


@pytest.fixture
def tokens(write, tmp_path):
    """tokens(folder, name=text): token files in a folder, some with other contents."""

    def _tokens(folder, **changed):
        contents = TOKENS | {name.replace("_", "."): text for name, text in changed.items()}
        for name, text in contents.items():
            write(f"{folder}/{name}", text)
        return tmp_path / folder

    return _tokens


def lower(found):
    return [
        (one.id, one.question.lower(), tuple(map(str.lower, one.candidates)), one.correct) for one in found
    ]


def test_both_forms_are_the_same_pairs(write, tokens):
    assert list(read_trecqa(write("TEST.xml", XML))) == SETS
    packed = gzip.compress(XML.replace("\n", "\r\n").encode())
    assert list(read_trecqa(str(write("TEST.xml.gz", packed)))) == SETS
    found = list(read_trecqa(tokens("test")))
    assert lower(found) == lower(SETS)
    assert found[0].candidates[0] == "orn & lee swim ."


def test_questions_without_candidates(write, complains):
    path = write("TEST.xml", XML)
    assert [one.id for one in read_trecqa(path, empty="drop")] == ["7.1", "7.2"]
    remedy = "give it some, or leave it out"
    with complains(path, 17, "candidate", "question '7.3' has no candidates", remedy):
        list(read_trecqa(path, empty="refuse"))
    with pytest.raises(ValueError, match=r"^empty is 'keep'; choose drop or refuse$"):
        read_trecqa(path, empty="keep")


@pytest.mark.parametrize(
    ("changed", "name", "line", "field", "what", "remedy"),
    [
        (
            {"sim_txt": "1\n0\n"},
            "sim.txt",
            3,
            "file",
            "line 3 is missing, which a.toks has",
            "lines of the four files belong together; copy them again",
        ),
        (
            {"b_toks": TOKENS["b.toks"] + "one more .\n"},
            "a.toks",
            4,
            "file",
            "line 4 is missing, which b.toks has",
            "lines of the four files belong together; copy them again",
        ),
        ({"sim_txt": "1\nno\n1\n"}, "sim.txt", 2, "label", "'no' is no label", "write one of 0, 1"),
        (
            {"b_toks": "a\n\nc\n"},
            "b.toks",
            2,
            "candidate",
            "it is empty",
            "fill it in, or leave it out",
        ),
        ({"a_toks": "a\na\n \n"}, "a.toks", 3, "question", "it is empty", "fill it in"),
        ({"id_txt": "1\n1\n\n"}, "id.txt", 3, "id", "it is empty", "fill it in"),
        (
            {"id_txt": "1\n2\n1\n"},
            "id.txt",
            3,
            "id",
            "'1' is the id of line 1 already, of another question or of other rows",
            "put the rows of a question together, and give each question its own id",
        ),
        ({"a_toks": "\n"}, "a.toks", 1, "file", "the file is empty", "fill it, or take it out of the corpus"),
    ],
)
def test_complaints_about_token_files(tokens, complains, changed, name, line, field, what, remedy):
    folder = tokens("test", **changed)
    with complains(folder / name, line, field, what, remedy):
        list(read_trecqa(folder))


def test_a_missing_token_file(tokens, complains):
    folder = tokens("test")
    (folder / "sim.txt").unlink()
    remedy = "check the spelling of the path"
    with complains(folder / "sim.txt", 1, "file", "there is no such file", remedy):
        list(read_trecqa(folder))


CLOSE = "copy the file again, or close it"
TAGS = "write one of <QApairs id='...'>, <question>, <positive>, <negative>, </QApairs>"


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "what", "remedy"),
    [
        ("</positive>\n", "", 6, "tag", "<positive> does not close", CLOSE),
        ("</negative>\n", "", 12, "tag", "<negative> does not close", CLOSE),
        # Not closed either, though an end of its name follows.
        (
            "</positive>\n<negative>",
            "<positive>\nLee\n</positive>\n<negative>",
            6,
            "tag",
            "<positive> does not close",
            CLOSE,
        ),
        (
            "</QApairs>\n<QApairs id=",
            "<QApairs id=",
            1,
            "tag",
            "<QApairs id='7.1'> does not close",
            CLOSE,
        ),
        ("Lee\tswims\t.\t\n</positive>\n</QApairs>", "Lee", 27, "tag", "<positive> does not close", CLOSE),
        (
            "\t.\t\n</positive>\n</QApairs>",
            "\n</positive>",
            23,
            "tag",
            "<QApairs id='7.2'> does not close",
            CLOSE,
        ),
        (
            "<QApairs id='7.1'>\n",
            "",
            2,
            "question",
            "it stands outside a question",
            "put it between <QApairs id='...'> and </QApairs>",
        ),
        (
            "<QApairs id='7.2'>\n",
            "</QApairs>\n",
            23,
            "</QApairs>",
            "it stands outside a question",
            "put it between <QApairs id='...'> and </QApairs>",
        ),
        ("<QApairs id='7.1'>", "<QApairs>", 1, "tag", "'<QApairs>' where a tag belongs", TAGS),
        ("<negative>", "<neutral>", 12, "tag", "'<neutral>' where a tag belongs", TAGS),
        ("Who\tswims\t?\nWP\tVBZ\t.\n", "", 1, "question", "it is empty", "fill it in"),
        (
            "<question>\nWho\tswims\t?\n</question>\n<positive>\nLee",
            "<positive>\nLee",
            23,
            "question",
            "it is empty",
            "fill it in",
        ),
        (
            "Nobody\t-LRB-\there\t-RRB-\n<positive>\tNN\n",
            "",
            13,
            "candidate",
            "it is empty",
            "fill it in, or leave it out",
        ),
        (
            "id='7.2'",
            "id='7.1'",
            23,
            "id",
            "'7.1' is the id of line 1 already, of another question or of other rows",
            "put the rows of a question together, and give each question its own id",
        ),
    ],
)
def test_complaints_about_xml(write, complains, old, new, line, field, what, remedy):
    assert XML.count(old) >= 1
    path = write("TEST.xml", XML.replace(old, new, 1))
    with complains(path, line, field, what, remedy):
        list(read_trecqa(path))


def test_files_of_a_folder(write, tokens, tmp_path):
    assert trecqa_files(tmp_path) == {}
    (tmp_path / "train").mkdir()
    assert trecqa_files(tmp_path) == {}  # any folder may be called so
    files = {split: write(f"{split.upper()}.xml", XML) for split in ("train", "dev")}
    assert trecqa_files(str(tmp_path)) == files
    files["train"] = write("TRAIN-ALL.xml.gz", b"")
    assert trecqa_files(tmp_path) == files
    files = {"test": tokens("raw-test")}
    assert trecqa_files(tmp_path) == files  # the forms are not mixed
    files |= {"test": tokens("clean-test"), "dev": tokens("raw-dev"), "train": tokens("train")}
    assert trecqa_files(tmp_path) == files
    files |= {"dev": tokens("clean-dev"), "train": tokens("train-all")}
    assert trecqa_files(tmp_path) == files


@pytest.fixture(scope="module")
def real_files(real_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trecqa")
    for name in ("trecqa_toks", "trecqa_xml"):
        with tarfile.open(real_data("trecqa") / f"{name}.tar.gz") as archive:
            archive.extractall(folder / name, filter="data")
    return folder / "trecqa_toks" / "TrecQA", folder / "trecqa_xml"


def test_the_real_files_are_those_of_the_card(real_files):
    tokens, xml = real_files
    card = read_card(CARD)
    checked = [name for folder in real_files for name in check_files(card, folder)]
    assert sorted(checked) == sorted(card.checksums)
    for split, path in trecqa_files(tokens).items():
        counts = counts_of(read_trecqa(path))
        found = (counts.questions, counts.candidates, counts.right)
        kind = "train" if split == "train" else f"clean {split}"
        kinds = ("questions", "candidates", "right candidates")
        assert found == tuple(card.counts[f"{kind} {what}"] for what in kinds)
        if split != "train":
            # The clean questions of the XML are those of the token files, pair by pair.
            clean = clean_sets(read_trecqa(trecqa_files(xml)[split]))
            assert lower(clean) == lower(read_trecqa(path))
            assert [one.candidates for one in clean] != [one.candidates for one in read_trecqa(path)]


def test_the_card_has_the_published_counts():
    counts = read_card(CARD).counts
    assert (counts["clean dev questions"], counts["clean dev candidates"]) == (65, 1117)
    assert (counts["clean test questions"], counts["clean test candidates"]) == (68, 1442)
