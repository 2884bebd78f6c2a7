"""Tagged documents: records, tags, lines, Doc-ARC's format, folders of three splits, and plain passages."""

from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.convert import tagged
from cdlm_lab.data.convert.tagged import STRAY, Line
from cdlm_lab.data.files import DataError
from cdlm_lab.data.reading import read_records
from cdlm_lab.data.records import PassedOver, TaggedDocument, TaggedSentence
from cdlm_lab.data.tags import TagSpan, labels_of, outermost, spans_of, tag_set, tags_of


def span(label: str, first: int, stop: int) -> TagSpan:
    return TagSpan(label=label, first=first, stop=stop)


@pytest.mark.parametrize(("tags", "spans"), [
    ("", []),
    ("B-X I-X O B-Y", [("X", 0, 2), ("Y", 3, 4)]),
    ("B-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
    ("B-X I-Y I-Y", [("X", 0, 1), ("Y", 1, 3)]),
    ("I-X O I-X I-X", [("X", 0, 1), ("X", 2, 4)]),
    ("B-a-b I-a-b I-a", [("a-b", 0, 2), ("a", 2, 3)]),
])  # fmt: skip
def test_spans_of(tags, spans):
    assert spans_of(tags.split()) == tuple(span(*one) for one in spans)


@st.composite
def apart(draw: st.DrawFn) -> tuple[list[TagSpan], int]:
    """Draw spans that do not overlap; return them and the length of their sentence."""
    edges = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
    pairs = zip(edges[::2], edges[1::2], strict=False)
    return [span(draw(st.sampled_from("XY")), first, stop) for first, stop in pairs], 12


@given(apart())
def test_tags_are_spans_backwards(given_spans):
    spans, length = given_spans
    tags = tags_of(spans, length)
    assert len(tags) == length
    assert list(spans_of(tags)) == spans


def test_tags_of():
    assert tags_of([span("X", 3, 4), span("Y", 1, 3)], 5) == ("O", "B-Y", "I-Y", "B-X", "O")
    assert tags_of([], 0) == ()
    with pytest.raises(ValueError, match=r"first=1, stop=3\) shares words with another span"):
        tags_of([span("X", 0, 2), span("Y", 1, 3)], 3)
    for first, stop in ((2, 4), (-1, 1), (2, 2)):
        with pytest.raises(ValueError, match="does not fit a sentence of 3 words"):
            tags_of([span("X", first, stop)], 3)


@given(st.lists(st.builds(span, st.sampled_from("XY"), st.integers(0, 5), st.integers(6, 9))))
def test_outermost_by_definition(spans):
    def within(one: tuple[int, int], other: tuple[int, int]) -> bool:
        return one != other and other[0] <= one[0] and one[1] <= other[1]

    places = [(one.first, one.stop) for one in spans]
    outer = sorted({one for one in places if not any(within(one, other) for other in places)})
    assert outermost(spans) == tuple(spans[places.index(one)] for one in outer)  # of equal ones the first


def test_labels_and_labelled_sentences():
    both = TaggedSentence(words=("a", "b"), tags=("B-Y", "B-X"))
    sentences = (TaggedSentence(words=("a",)), both, TaggedSentence(words=(), tags=()))
    document = TaggedDocument(id="d", sentences=sentences)
    assert document.labelled == (1, 2)
    assert labels_of([document, document]) == ("X", "Y")
    assert tag_set(["X", "Y"]) == ("O", "B-X", "I-X", "B-Y", "I-Y")


PATH = Path("x.tsv")


def iob2(tags: str, reading: PassedOver, labels: tuple[str, ...] | None = None) -> str:
    column = [(Line(PATH, number, ""), tag) for number, tag in enumerate(tags.split(), start=7)]
    return " ".join(tagged.iob2_tags(column, reading, labels=labels))


@pytest.mark.parametrize(("tags", "expected", "mended"), [
    ("I-X I-X O I-X", "B-X I-X O B-X", 2),  # IOB1
    ("I-X B-X I-X", "B-X B-X I-X", 1),
    ("B-X I-Y I-X", "B-X B-Y B-X", 2),
    ("S-X B-X I-X E-X E-X O", "B-X B-X I-X I-X B-X O", 1),  # BIOES
    ("U-X U-X B-Y L-Y I-Y", "B-X B-X B-Y I-Y B-Y", 1),  # BILOU; the last one ends nothing
])  # fmt: skip
def test_every_span_starts_with_b(tags, expected, mended):
    reading = PassedOver()
    assert iob2(tags, reading) == iob2(tags, reading, ("X", "Y", "a-b")) == expected
    assert reading.count(STRAY) == 2 * mended


NO_TAGS = ("X", "B", "B-", "I-", "E-", "o", "b-X", "NULL", "O-X")
NO_TAG = "is not a tag; write O, or B- or I- and a label"


@pytest.mark.parametrize(("tags", "labels", "message"), [
    *((f"O {tag}", None, f"8: tag: {tag!r} {NO_TAG}") for tag in NO_TAGS),
    ("x" * 99, None, f"7: tag: '{'x' * 40}' {NO_TAG}"),
    ("O I-Z", ("X", "Y"), "8: tag: 'I-Z' is not a known tag; the labels are X, Y"),
    ("B-Z", (), "7: tag: 'B-Z' is not a known tag; the labels are "),
])  # fmt: skip
def test_faulty_tags(refused, tags, labels, message):
    reading = PassedOver()
    with refused(PATH, message):
        iob2(tags, reading, labels)
    assert reading.count(STRAY) == 0


def numbered(block: list[Line]) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in block]


def test_documents_and_sentences(write, refused):
    text = "\r\n\na\nb\r\n \t\n# id 1f x=en\n-DOCSTART-\nc\n###MEDLINE:1\n\n# O\n\nd\n-DOCSTART-x\nf"
    parts = {head[1:]: list(map(numbered, some)) for head, some in tagged.documents_of(write("a.txt", text))}
    assert parts == {
        (1, ""): [[(3, "a"), (4, "b")]],
        (7, "-DOCSTART-"): [[(8, "c")]],
        (9, "###MEDLINE:1"): [[(11, "# O")], [(13, "d")]],
        (14, "-DOCSTART-x"): [[(15, "f")]],
    }
    remedy = "delete the line, or write the document below it"
    for text, line in (("-DOCSTART-\n\n-DOCSTART-\na\n", 1), ("-DOCSTART-\na\n-DOCSTART-\n\n", 3)):
        with refused(path := write("b.txt", text), f"{line}: document: no sentence follows; {remedy}"):
            list(tagged.documents_of(path))


def test_columns(refused):
    assert Line(PATH, 3, " . . .\t x\t").columns() == [". . .", "x", ""]
    assert Line(PATH, 3, "a\u00a0b\tc").columns() == ["a\u00a0b", "c"]
    assert Line(PATH, 3, "a  b ").columns() == ["a", "b"]
    assert Line(PATH, 3, "7 a b").columns(numbered=True) == ["a", "b"]
    remedy = "instead of a word and its tag; write both, with a tab or a space between them"
    for text, what in (("word", "one column"), ("1 word", "a number and one column")):
        with refused(PATH, f"3: row: {what} {remedy}"):
            Line(PATH, 3, text).columns(numbered=text != "word")
    with refused(PATH, "3: word: an empty word; write it, or delete the line"):
        Line(PATH, 3, "\u3000\tO").columns()


TEXT = "Ann\tB-PER\nLee\tI-PER\nslept\tO\n\n. . .\tNULL\nShe\tNULL\n\nIn\tO\nGhent\tI-GPE"
SENTENCES = (
    TaggedSentence(words=("Ann", "Lee", "slept"), tags=("B-PER", "I-PER", "O")),
    TaggedSentence(words=(". . .", "She")),
    TaggedSentence(words=("In", "Ghent"), tags=("O", "B-GPE")),
)


def test_a_document(write):
    reading = PassedOver()
    # No line end or an end and a blank line: the last sentence is there.
    for end in ("", "\n", "\n\n", "\r\n \n\n"):
        path = write("train/1_ann.v2.tsv", TEXT + end)
        (document,) = tagged.read_files([path], passed_over=reading)
        assert document == TaggedDocument(id="1_ann.v2", sentences=SENTENCES)
    assert reading.count(STRAY) == 4
    assert document.labelled == (0, 2)


TWO = "one column instead of a word and its tag; write both, with a tab or a space between them"
MIXED = "tag: NULL and other tags in one sentence; label all of its words or none"


@pytest.mark.parametrize(("text", "message"), [
    ("a\tO\nb\n", f"2: row: {TWO}"),
    ("a\tO\n\n\tO\n", "3: word: an empty word; write it, or delete the line"),
    ("a\tO\n\nb\tNULL\nc\tO\n", f"4: {MIXED}"),
    ("a\tNULL\n\nb\tNULL\n",
     "1: tag: no sentence has labels, all tags are NULL; label a sentence (O is a label), or take the "
     "file out"),
])  # fmt: skip
def test_complaints(write, refused, text, message):
    path = write("train/a.tsv", text)
    with refused(path, message):
        list(tagged.read_files([path], passed_over=PassedOver()))


@pytest.fixture
def corpus(write, tmp_path):
    for name in ("train/b.tsv", "train/a.tsv", "development/c.tsv", "train/d.tsv.gz"):
        write(name, f"{name.partition('.')[0][-1]}\tI-X\n")
    write("train/notes.txt", "none")
    return tmp_path


def test_labels_of_the_list(corpus, write, refused):
    assert tagged.labels_listed(corpus) is None
    tags = write("x.tagset", "O\t0\nI-Y\t1\nB-Y\t2\n\nB-Z\t3\n")
    assert tagged.labels_listed(corpus) == ("Y", "Z")
    with refused(corpus / "train" / "a.tsv", "1: tag: 'I-X' is not a known tag; the labels are Y, Z"):
        next(tagged.read_files([corpus / "train" / "a.tsv"], passed_over=PassedOver()))
    write("x.tagset", "O\t0\nperson\t1\n")
    with refused(tags, f"2: tag: 'person' {NO_TAG}"):
        tagged.labels_listed(corpus)
    write("y.tagset", "O\t0\n")
    remedy = "leave the one that fits the files"
    with refused(corpus, f"1: folder: several lists of tags (x.tagset, y.tagset); {remedy}"):
        next(tagged.read_files([corpus / "train" / "a.tsv"], passed_over=PassedOver()))


START = "-DOCSTART- -X- -X- O\n\n"
CONLL = f"{START}Orn NNP I-NP I-PER\nslept VBD I-VP O\n\n{START}Dram NNP I-NP B-LOC\n"
IOB2 = "###MEDLINE:91\n\nOrn\tB-PER\nslept\tO\n\n###MEDLINE:92\n\nDram\tB-LOC\n"
DOCARC = "Orn\tB-PER\nslept\tO\n\nHe\tNULL\n"
LITBANK = "Orn\tB-PER\tO\tO\t\nof\tI-PER\tO\tO\t\nDram\tI-PER\tB-GPE\tO\t\n"


def test_splits(corpus, write, refused):
    def names(split: str) -> str:
        return "".join(one.id for one in read_records("tagging", corpus, split, passed_over=lost))

    lost = PassedOver()
    assert (names("train"), lost.count(STRAY)) == ("abd", 3)
    assert names("dev") == names("validation") == "c"
    with refused(write("train/a.tsv.gz", b""), "1: file: a.tsv is the same document; leave one of them"):
        names("train")


@pytest.mark.parametrize("name", ["val/a.conll", "devel.conll", "eng.testa", "valid.iob2", "dev.tsv"])
def test_names_of_split_files(write, tmp_path, name):
    write("train.conll", "Orn B-PER\n")
    write(name, "Dram\tB-LOC\n")
    assert [one.sentences[0].words for one in read_records("tagging", tmp_path, "dev")] == [("Dram",)]


@pytest.fixture
def folder(write, tmp_path):
    """`folder(files)` writes files and returns their folder."""

    def _folder(files: dict[str, str]) -> Path:
        for name, text in files.items():
            write(name, text)
        return tmp_path

    return _folder


def read(folder: Path, **options: object) -> dict[str, list[tuple[str, ...]]]:
    """Read the tags of each training document, sentence by sentence."""
    documents = read_records("tagging", folder, "train", **options)
    return {one.id: [sentence.tags for sentence in one.sentences if sentence.tags] for one in documents}


@pytest.mark.parametrize(("files", "expected"), [
    ({"train/b.tsv": DOCARC, "train/a.tsv": DOCARC, "x.tagset": "B-PER\t1"},
     {"a": [("B-PER", "O")], "b": [("B-PER", "O")]}),
    ({"train/book.tsv": LITBANK}, {"book": [("B-PER", "I-PER", "I-PER")]}),  # what nests is its outermost
    ({"train.conll": CONLL}, {"train.conll:0": [("B-PER", "O")], "train.conll:1": [("B-LOC",)]}),
    ({"train/b.conll": "Orn B-PER\n", "train/a.conll": "Dram B-LOC\n"},
     {"a.conll:0": [("B-LOC",)], "b.conll:0": [("B-PER",)]}),
    ({"train.iob2": IOB2}, {"91": [("B-PER", "O")], "92": [("B-LOC",)]}),
    ({"train/91.txt": "Orn slept", "train/91.ann": "T1\tPER 0 3\tOrn\n"}, {"91": [("B-PER", "O")]}),
])  # fmt: skip
def test_forms(folder, files, expected):
    reading = PassedOver()
    path = folder({**files, "dev/c.tsv": DOCARC})
    documents = read(path, passed_over=reading)
    assert documents == expected
    assert list(documents) == list(expected)
    assert reading.count(tagged.DIVIDED) == 0
    assert reading.count(STRAY) == ("train.conll" in files)


def test_none_or_two_forms(folder):
    path = folder({"dev.conll": CONLL})
    with pytest.raises(DataError, match=r"it has no split train, but dev; give a folder with train\.jsonl"):
        read(path)
    folder({"train.conll": CONLL, "train/a.tsv": DOCARC})
    with pytest.raises(DataError, match=r"train is there in the forms \.tsv and \.conll"):
        read(path)


def passages(folder, split: str = "train") -> dict[str, str]:
    some = list(tagged.read_passages(folder, split))
    assert all([document.id for document in cluster.documents] == [cluster.id] for cluster in some)
    return {cluster.id: cluster.documents[0].text for cluster in some}


def sentences(*lengths: int) -> str:
    """Write sentences with these numbers of words, `w0`, `w1`, ..., of which the first is labelled."""
    numbers, tags = count(), ["O"] + ["NULL"] * (len(lengths) - 1)
    return "\n".join(
        "".join(f"w{next(numbers)}\t{tag}\n" for _ in range(length))
        for length, tag in zip(lengths, tags, strict=True)
    )


def words(first: int, stop: int) -> str:
    return " ".join(f"w{number}" for number in range(first, stop))


def test_passages_are_whole_sentences_unless_they_are_long(write, tmp_path, monkeypatch):
    write("train/b.tsv", sentences(30, 49, 1, 1, 80, 79))
    write("train/a.tsv", "Ann\tB-PER\nLee\tI-PER\n\n. . .\tNULL\nslept\tNULL\n")
    write("dev/c.tsv", sentences(5, 185, 3))
    assert list(passages(tmp_path).items()) == [
        ("a/1", "Ann Lee . . . slept"),
        ("b/1", words(0, 80)),  # 30 + 49 + 1 are just as many as there may be
        ("b/2", words(80, 81)),  # 1 + 80 are one too many
        ("b/3", words(81, 161)),
        ("b/4", words(161, 240)),
    ]
    ends = (0, 5, 85, 165, 193)  # the last has the end of the long one, 25 words, and the next
    parts = [words(first, stop) for first, stop in pairwise(ends)]
    assert list(passages(tmp_path, "validation").values()) == parts
    # Labels are not read, and a document may have none.
    write("x.tagset", "O\t0\nB-Y\t1\n")
    write("test/a.tsv", "a\tI-X\nb\tNULL\nc\twhatever\n\nd\tNULL\n")
    write("test/b.tsv", "e\tNULL\n")
    assert list(passages(tmp_path, "test").values()) == ["a b c d", "e"]
    monkeypatch.setattr(tagged, "PASSAGE_WORDS", 2)
    assert list(passages(tmp_path, "test").values()) == ["a b", "c d", "e"]


def test_it_is_a_corpus(write, tmp_path, refused):
    file = write("train/a.tsv", sentences(80, 80) + "\n\ttab\n")
    corpus = str(tmp_path)
    assert [cluster.id for cluster in open_corpus(corpus, split="train", size=1)] == ["a/1"]  # one at a time
    with pytest.raises(ValueError, match=rf"{file}:163: field word: an empty word"):
        list(open_corpus(corpus, split="train"))
    file.write_text(sentences(80, 2))
    remedy = "choose another split, or add clusters"
    with pytest.raises(ValueError, match=rf"field split: no cluster of the split test; {remedy}"):
        list(open_corpus(corpus, split="test"))


def test_a_split_of_one_document_is_read_sentence_by_sentence(folder):
    """Tweets are published like this: no line marks where a document begins."""
    path, lost = folder({"train.conll": "Orn B-PER\nslept O\n\nDram B-LOC\n\nHe O\n"}), PassedOver()
    tags = [("B-PER", "O")], [("B-LOC",)], [("O",)]
    assert read(path, passed_over=lost) == {f"train.conll:0:{n}": one for n, one in enumerate(tags)}
    assert lost.count(tagged.DIVIDED) == 3
