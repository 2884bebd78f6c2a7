"""WikiQA, TREC-QA and ASNQ: rows by hand, every message, folders, and the published counts."""

import gzip
import tarfile

import pytest

from cdlm_lab.data import records
from cdlm_lab.data.convert import candidates
from cdlm_lab.data.native import read_candidate_table
from cdlm_lab.data.reading import open_records, read_records
from cdlm_lab.data.records import CandidateSet, clean_sets, counts_of
from cdlm_lab.data.rows import rows_of
from cdlm_lab.data.splits import SPLIT_NAMES as NAMES

COLUMNS = ["QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label"]
WIKIQA = "\t".join(COLUMNS) + (
    "\nQ1\twhat is a kiln\tD1\tKiln\tD1-0\t A kiln is an oven.\t1 \n"
    'Q1\twhat is a kiln\tD1\tKiln\tD1-1\t"Kiln" is an old word, 5" long.\t0\n'
    'Q2\twho was "Orn\tD2\tOrn\tD2-0\t"He swam.\t0\n'
)
FIRST = WIKIQA.split("\n")[1]
ASNQ = (
    'who swims\t"Orn swims.\t4\nwho swims\tIt rained.\t1\nwho swims\tOrn is old.\t2\n'
    "who swims\tIn the river.\t3\n"
    "who runs\tLee runs.\t4\nwho swims\tLee swims.\t4\n"
)
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


def made(name, question, *pairs):
    texts, correct = zip(*pairs, strict=True)
    return CandidateSet(id=name, question=question, candidates=texts, correct=correct)


WIKIQA_SETS = [
    made("Q1", "what is a kiln", ("A kiln is an oven.", True), ('"Kiln" is an old word, 5" long.', False)),
    made("Q2", 'who was "Orn', ('"He swam.', False)),
]
SWIMS = (('"Orn swims.', True), ("It rained.", False), ("Orn is old.", False), ("In the river.", False))
ASNQ_SETS = [
    made("dev:0", "who swims", *SWIMS, ("Lee swims.", True)),  # the last line stands apart
    made("dev:1", "who runs", ("Lee runs.", True)),
]
TREC_SETS = [
    made("7.1", "Who swims ?", ("Orn & Lee swim .", True), ("Nobody -LRB- here -RRB-", False)),
    made("7.2", "Who swims ?", ("Lee swims .", True)),  # the same question under another id
]


def lower(sets):
    return [(one.id, one.question.lower(), *map(str.lower, one.candidates), *one.correct) for one in sets]


@pytest.fixture
def tokens(write, tmp_path):
    """`tokens(folder, changed)` writes token files to a folder, some with changed contents."""

    def _tokens(folder, changed=()):
        for name, text in (TOKENS | dict(changed)).items():
            write(f"{folder}/{name}", text)
        return tmp_path / folder

    return _tokens


def wikiqa(path):
    return read_candidate_table(rows_of(path))


@pytest.mark.parametrize(("read", "name", "text", "sets"), [
    (wikiqa, "a.tsv", WIKIQA, WIKIQA_SETS),
    (lambda path: candidates.read_asnq([path]), "dev.tsv", ASNQ, ASNQ_SETS),
    (candidates.read_trecqa, "TEST.xml", XML, TREC_SETS),
])  # fmt: skip
def test_files(write, read, name, text, sets):
    assert list(read(write(name, text))) == sets
    again = text.replace("\nQ2", "\n\nQ2").replace("who runs", "\nwho runs")  # blank lines say nothing
    assert list(read(write(name, again.rstrip("\n")))) == sets


def test_token_files_are_the_pairs_of_the_xml(tokens):
    pairs = list(candidates.read_trecqa(tokens("test")))
    assert lower(pairs) == lower(TREC_SETS)
    assert pairs[0].candidates[0] == "orn & lee swim ."


def test_equal_candidates_and_rows_apart_stay(write):
    twice = f'{WIKIQA}Q2\twho was "Orn\tD2\tOrn\tD2-0\t"He swam.\t0\n{FIRST}\n'
    first, second = wikiqa(write("a.tsv", twice))
    assert (len(first.candidates), second.candidates) == (3, ('"He swam.', '"He swam.'))


EMPTY, LABEL = (
    "it is empty; fill it in, or delete the record",
    "a text where true or false belongs; write 1 or 0",
)
THREE = "write a question, a tab, a sentence, a tab and a label"
OTHER = "is the id of another question already; give each question its own id"
SEVEN = "write one for each name in line 1"
BELONG = "lines of the four files belong together; copy them again"
CLOSE = "does not close; copy the file again, or close it"
TAGS = "where a tag belongs; write one of <QApairs id='...'>, <question>, <positive>, <negative>, </QApairs>"
OUTSIDE = "it stands outside a question; put it between <QApairs id='...'> and </QApairs>"


@pytest.mark.parametrize(("read", "old", "new", "message"), [
    ("wikiqa", "D2-0\t", "D2-0 ", f"4: row: 6 columns instead of 7; {SEVEN}"),
    ("wikiqa", "\t1 \n", "\t\n", f"2: Label: {LABEL}"),
    ("wikiqa", '"He swam.', " ", f"4: Sentence: {EMPTY}"),
    ("wikiqa", 'Q2\twho', "Q1\twho", f"4: id: 'Q1' {OTHER}"),
    ("asnq", "Lee runs.\t4", "Lee runs. 4", f"5: row: 2 columns instead of 3; {THREE}"),
    ("asnq", "rained.\t1", "rained.\t0", "2: label: '0' is no label; write one of 1, 2, 3, 4"),
    ("asnq", "Lee runs.", " ", f"5: candidate: {EMPTY}"),
    ("trecqa", "</positive>\n", "", f"6: tag: <positive> {CLOSE}"),
    # Not closed either, though an end of its name follows.
    ("trecqa", "</positive>\n<neg", "<positive>\nLee\n</positive>\n<neg", f"6: tag: <positive> {CLOSE}"),
    ("trecqa", "</QApairs>\n<QApairs id=", "<QApairs id=", f"1: tag: <QApairs id='7.1'> {CLOSE}"),
    ("trecqa", "\t.\t\n</positive>\n</QApairs>", "\n</positive>", f"23: tag: <QApairs id='7.2'> {CLOSE}"),
    ("trecqa", "<QApairs id='7.1'>\n", "", f"2: question: {OUTSIDE}"),
    ("trecqa", "<QApairs id='7.1'>", "<QApairs>", f"1: tag: '<QApairs>' {TAGS}"),
    ("trecqa", "Who\tswims\t?\nWP\tVBZ\t.\n", "", f"5: question: {EMPTY}"),
    ("trecqa", "Nobody\t-LRB-\there\t-RRB-\n<positive>\tNN\n", "", f"13: candidate: {EMPTY}"),
])  # fmt: skip
def test_refused_files(write, refused, read, old, new, message):
    text = {"wikiqa": WIKIQA, "asnq": ASNQ, "trecqa": XML}[read]
    assert old in text
    path = write("TEST.tsv" if read == "wikiqa" else "TEST.xml", text.replace(old, new, 1))
    with refused(path, message):
        readers = {"wikiqa": wikiqa, "asnq": lambda one: candidates.read_asnq([one])}
        list(readers.get(read, candidates.read_trecqa)(path))


@pytest.mark.parametrize(("name", "text", "file", "message"), [
    ("sim.txt", "1\n0\n", "sim.txt", f"3: file: line 3 is missing, which a.toks has; {BELONG}"),
    ("b.toks", "a\nb\nc\nd\n", "a.toks", f"4: file: line 4 is missing, which b.toks has; {BELONG}"),
    ("sim.txt", "1\nno\n1\n", "", f"2: label: {LABEL}"),
    ("b.toks", "a\n\nc\n", "", f"2: candidate: {EMPTY}"),
    ("a.toks", "a ?\nb ?\na ?\n", "", f"2: id: '7.1' {OTHER}"),
])  # fmt: skip
def test_refused_token_files(tokens, refused, name, text, file, message):
    folder = tokens("test", {name: text})
    with refused(folder / file, message):
        list(candidates.read_trecqa(folder))


def test_listed_questions_of_asnq(write, refused):
    path = write("dev.tsv", ASNQ.replace("Lee swims.\t4", "Lee swims.\t1").replace("runs\t", "runs \t"))
    listed = write("unique.test", "who flies\n who runs \n")
    assert list(candidates.read_asnq([path, listed])) == ASNQ_SETS[1:2]
    (only,) = candidates.read_asnq([path, write("unique.dev", "who swims")])
    assert (only.id, only.correct) == ("dev:0", (True, False, False, False, False))
    listed = write("unique.test", "who\n")  # half a question is none of the list
    with refused(path, "1: file: none of the listed questions is in it; give the list of this file"):
        list(candidates.read_asnq([path, listed]))


def test_clean_sets_and_counts():
    mixed, right = made("a", "?", ("s", False), ("t", True)), made("b", "?", ("s", True))
    wrong = WIKIQA_SETS[1]
    assert clean_sets(iter([wrong, mixed, right, *WIKIQA_SETS])) == [mixed, WIKIQA_SETS[0]]
    counts = dict(questions=4, candidates=5, right=2, without_right=2, without_wrong=1)  # noqa: C408
    assert counts_of(iter([mixed, right, wrong, wrong])) == records.CandidateCounts(**counts)
    assert counts_of([]).candidates == 0


def test_files_of_asnq(write, tmp_path):
    assert candidates.asnq_files(tmp_path) == {}
    train, dev = write("train.tsv.gz", ASNQ), write("dev.tsv", ASNQ)
    lists = [write(f"unique.{split}", "who runs") for split in ("dev", "test")]
    for path in lists:  # one list says nothing of the other
        path.rename(tmp_path / "away")
        assert candidates.asnq_files(tmp_path) == {"train": (train,), "validation": (dev,)}
        (tmp_path / "away").rename(path)
    listed = {"validation": (dev, lists[0]), "test": (dev, lists[1])}
    assert candidates.asnq_files(tmp_path) == {"train": (train,), **listed}
    test = write("test.tsv", ASNQ)
    assert candidates.asnq_files(tmp_path) == {"train": (train,), "validation": (dev,), "test": (test,)}
    for path in (dev, test):
        path.unlink()
    assert candidates.asnq_files(tmp_path) == {"train": (train,)}


def test_files_of_trecqa(write, tokens, tmp_path):
    (tmp_path / "train").mkdir()
    assert candidates.trecqa_files(tmp_path) == {}  # any folder may be called so
    paths = {NAMES[split]: write(f"{split.upper()}.xml", XML) for split in ("train", "dev")}
    assert candidates.trecqa_files(tmp_path) == paths
    paths["train"] = write("TRAIN-ALL.xml.gz", b"")
    assert candidates.trecqa_files(tmp_path) == paths
    paths = {}  # the forms are not mixed
    for name in ("raw-test", "clean-test", "raw-dev", "train", "clean-dev", "train-all"):
        split = name.removeprefix("raw-").removeprefix("clean-").removesuffix("-all")
        paths[NAMES[split]] = tokens(name)
        assert candidates.trecqa_files(tmp_path) == paths


@pytest.fixture
def folders(write, tmp_path, tokens):
    """Folders of each format: w: WikiQA, x: TREC-QA as XML, t: TREC-QA as tokens, a: ASNQ."""
    for split in ("train", "dev", "test"):
        write(f"w/WikiQA-{split}.tsv", WIKIQA.replace("Q", f"{split}Q").replace(f"{split}Que", "Que"))
        write(f"x/{split.upper()}.xml", XML.replace("7.", f"{split}."))
    for split in ("clean-dev", "raw-dev"):
        tokens(f"t/{split}", {"id.txt": f"{split}\n{split}\n{split}2\n"})
    write("a/dev.tsv", "who\tOrn.\t4\nwhy\tNo.\t1\nwhere\tHere.\t4\n")
    write("a/unique.dev", "who\nwhere\n")
    write("a/unique.test", "why\n")
    return {name: tmp_path / name for name in "wxta"}


def test_every_format(folders):
    def first_ids(name, *splits):
        return [next(read_records("candidates", folders[name], split)).id for split in splits]

    forms = [open_records("candidates", folders[name]).format for name in "wxta"]
    assert forms == ["wikiqa", "trecqa", "trecqa", "asnq"]
    assert first_ids("w", "train", "dev", "test") == ["trainQ1", "devQ1", "testQ1"]
    assert first_ids("x", "train", "validation", "val", "test") == ["train.1", "dev.1", "dev.1", "test.1"]
    assert first_ids("t", "dev") == ["clean-dev"]
    assert first_ids("a", "dev", "test") == ["dev:0", "dev:1"]


KINDS = ("questions", "candidates", "right candidates")


def numbers(sets):
    counts = counts_of(sets)
    return [counts.questions, counts.candidates, counts.right]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_real_wikiqa_is_that_of_the_card(real_data, card, tmp_path, split):
    described = card("wikiqa")
    folder, name = real_data("wikiqa"), f"WikiQA-{split}.tsv"
    every = list(read_records("candidates", folder, split))
    for kind, sets in (("", every), ("clean ", clean_sets(every))):
        assert numbers(sets) == [described.counts[f"{kind}{split} {what}"] for what in KINDS]
    (tmp_path / name).write_bytes(gzip.decompress((folder / f"{name}.gz").read_bytes()))
    assert described.present(tmp_path) == [name]


def test_the_real_trecqa_is_that_of_the_card(real_data, card, tmp_path):
    for name in ("trecqa_toks", "trecqa_xml"):
        with tarfile.open(real_data("trecqa") / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path / name, filter="data")
    tokens, xml = tmp_path / "trecqa_toks" / "TrecQA", tmp_path / "trecqa_xml"
    trecqa = card("trecqa")
    checked = [name for folder in (tokens, xml) for name in trecqa.present(folder)]
    assert sorted(checked) == sorted(trecqa.checksums)
    for split, path in candidates.trecqa_files(tokens).items():
        kind = {"train": "train", "validation": "clean dev", "test": "clean test"}[split]
        pairs = list(candidates.read_trecqa(path))
        assert numbers(pairs) == [trecqa.counts[f"{kind} {what}"] for what in KINDS]
        if split != "train":  # the clean questions of the XML are those of the token files, pair by pair
            clean = clean_sets(candidates.read_trecqa(candidates.trecqa_files(xml)[split]))
            assert lower(clean) == lower(pairs)
            assert [one.candidates for one in clean] != [one.candidates for one in pairs]


def test_the_cards_have_the_published_counts(card):
    counts = card("wikiqa").counts
    assert [counts[f"clean {split} questions"] for split in ("train", "dev", "test")] == [857, 122, 237]
    # 3,047 questions, 29,258 sentences, 1,473 of them right (Yang et al. 2015).
    for what, total in zip(KINDS, (3047, 29258, 1473), strict=True):
        assert sum(counts[f"{split} {what}"] for split in ("train", "dev", "test")) == total
    counts = card("trecqa").counts
    assert (counts["clean dev questions"], counts["clean dev candidates"]) == (65, 1117)
    assert (counts["clean test questions"], counts["clean test candidates"]) == (68, 1442)
