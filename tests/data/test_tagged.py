"""Tagged documents: records, tags, lines, Doc-ARC's format, folders of three splits, and plain passages."""

import gzip
import lzma
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data import tagged as docarc_corpus
from cdlm_lab.data.clusters import corpus_checksum, open_corpus
from cdlm_lab.data.files import DataError
from cdlm_lab.data.tagged import (
    PASSAGE_WORDS,
    TaggedDocument,
    TaggedSentence,
    TagReading,
    TagSpan,
    columns_of,
    docarc_labels,
    iob2_tags,
    labels_of,
    line_blocks,
    marked_parts,
    outermost,
    read_docarc,
    read_docarc_passages,
    read_docarc_split,
    read_tagged_split,
    spans_of,
    tag_set,
    tags_of,
)


def span(label: str, first: int, stop: int) -> TagSpan:
    return TagSpan(label=label, first=first, stop=stop)


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O O", []),
        ("B-X I-X O B-Y", [("X", 0, 2), ("Y", 3, 4)]),
        ("B-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("B-X I-Y I-Y", [("X", 0, 1), ("Y", 1, 3)]),
        ("I-X O I-X I-X", [("X", 0, 1), ("X", 2, 4)]),
        ("B-cell_line I-cell_line", [("cell_line", 0, 2)]),
        ("B-a-b I-a-b I-a", [("a-b", 0, 2), ("a", 2, 3)]),
    ],
)
def test_spans_of(tags, spans):
    assert spans_of(tags.split()) == tuple(span(*found) for found in spans)


@st.composite
def apart(draw: st.DrawFn) -> tuple[list[TagSpan], int]:
    """Spans that share no word, and the length of their sentence."""
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


def test_outermost():
    inner, same, outer, crossing = span("A", 1, 2), span("B", 0, 3), span("C", 0, 3), span("D", 2, 5)
    assert outermost([inner, same, outer]) == (same,)
    assert outermost([outer, same, inner]) == (outer,)
    assert outermost([crossing, outer]) == (outer, crossing)
    assert outermost([span("A", 4, 5), crossing, span("E", 5, 6), inner]) == (
        inner,
        crossing,
        span("E", 5, 6),
    )
    assert outermost([]) == ()


@given(st.lists(st.builds(span, st.sampled_from("XY"), st.integers(0, 5), st.integers(6, 9))))
def test_outermost_by_definition(spans):
    kept = outermost(spans)
    places = [(one.first, one.stop) for one in kept]
    assert places == sorted(
        {
            (one.first, one.stop)
            for one in spans
            if not any(
                other.first <= one.first
                and one.stop <= other.stop
                and (other.first, other.stop) != (one.first, one.stop)
                for other in spans
            )
        }
    )
    assert all(one is next(x for x in spans if (x.first, x.stop) == (one.first, one.stop)) for one in kept)


def test_labels_and_labelled_sentences():
    document = TaggedDocument(
        id="d",
        sentences=(
            TaggedSentence(words=("a",)),
            TaggedSentence(words=("a", "b"), tags=("B-Y", "B-X")),
            TaggedSentence(words=(), tags=()),
        ),
    )
    assert document.labelled == (1, 2)
    assert labels_of([document, document]) == ("X", "Y")
    assert tag_set(["X", "Y"]) == ("O", "B-X", "I-X", "B-Y", "I-Y")


PATH = Path("x.tsv")


def read(tags: str, reading: TagReading, labels: Sequence[str] | None = None) -> str:
    return " ".join(iob2_tags(enumerate(tags.split(), start=7), path=PATH, reading=reading, labels=labels))


@pytest.mark.parametrize(
    ("tags", "iob2", "mended"),
    [
        ("O B-X I-X O", "O B-X I-X O", 0),
        ("I-X I-X O I-X", "B-X I-X O B-X", 2),  # IOB1
        ("I-X B-X I-X", "B-X B-X I-X", 1),
        ("B-X I-Y I-X", "B-X B-Y B-X", 2),
        ("B-a-b I-a-b", "B-a-b I-a-b", 0),
    ],
)
def test_every_span_starts_with_b(tags, iob2, mended):
    reading = TagReading()
    assert read(tags, reading) == iob2
    assert reading.mended == mended
    assert spans_of(tags.split()) == spans_of(iob2.split())
    assert read(tags, reading) == iob2
    assert reading.mended == 2 * mended


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])))
def test_spans_stay_and_nothing_is_left_to_mend(tags):
    once = read(" ".join(tags), TagReading())
    assert spans_of(tags) == spans_of(once.split())
    assert read(once, TagReading(stray="refuse")) == once


def test_faulty_tags(refused):
    remedy = 'write B- for I-, or read with stray="accept"'
    refusing = TagReading(stray="refuse")
    with refused(PATH, f"9: tag: 'I-Y' follows no span of its label; {remedy}"):
        read("B-X I-X I-Y", refusing)
    assert refusing.mended == 0
    for tag in ("X", "B", "B-", "I-", "E-X", "o", "b-X", "NULL", "O-X"):
        with refused(PATH, f"8: tag: {tag!r} is not a tag; write O, or B- or I- and a label"):
            read(f"O {tag}", TagReading())
    with refused(PATH, f"7: tag: '{'x' * 40}' is not a tag; write O, or B- or I- and a label"):
        read("x" * 99, TagReading())
    with pytest.raises(ValueError, match="stray is 'drop'; choose one of accept, refuse"):
        TagReading(stray="drop")


def test_known_labels(refused):
    with refused(PATH, "8: tag: 'I-Z' is not a known tag; the labels are X, Y"):
        read("O I-Z", TagReading(labels=("X", "Y")))
    assert read("O B-Z", TagReading(labels=("Z",)), ("X",)) == "O B-Z"  # the reading's go first
    with refused(PATH, "8: tag: 'B-Z' is not a known tag; the labels are X"):
        read("O B-Z", TagReading(), ("X",))
    with refused(PATH, "7: tag: 'B-Z' is not a known tag; the labels are "):
        read("B-Z", TagReading(labels=()))


def test_blocks(write):
    path = write("a.txt", "\r\n\na\nb\r\n \t\n\n#x\nc\n#y\n#z\n\nd")
    assert list(line_blocks(path)) == [
        [(3, "a"), (4, "b")],
        [(7, "#x"), (8, "c"), (9, "#y"), (10, "#z")],
        [(12, "d")],
    ]
    assert list(line_blocks(path, mark="#")) == [
        [(3, "a"), (4, "b")], [(7, "#x")], [(8, "c")], [(9, "#y")], [(10, "#z")], [(12, "d")],
    ]  # fmt: skip


def test_parts(write, refused):
    path = write("a.txt", "a\nb\n\nc\n#x 1\n\nd\n\n#y\ne\n")
    assert list(marked_parts(path, mark="#")) == [
        ((1, ""), [[(1, "a"), (2, "b")], [(4, "c")]]),
        ((5, "#x 1"), [[(7, "d")]]),
        ((9, "#y"), [[(10, "e")]]),
    ]
    remedy = "delete the line, or write the document below it"
    for text, line in (("#x\n\n#y\na\n", 1), ("#x\na\n#y\n\n", 3)):
        path = write("b.txt", text)
        with refused(path, f"{line}: document: no sentence follows; {remedy}"):
            list(marked_parts(path, mark="#"))


def test_columns(refused):
    def columns(text: str, count: int | None = None, tabs: bool = True) -> list[str]:
        return columns_of(text, path=PATH, line=3, count=count, tabs=tabs)

    assert columns(" . . .\t x\t") == [". . .", "x", ""]
    assert columns("a\u00a0b\tc", count=2) == ["a\u00a0b", "c"]
    assert columns("a  b \tc", tabs=False) == ["a", "b", "c"]
    remedy = "write the word, a tab and its tag"
    with refused(PATH, f"3: row: one column instead of 2; {remedy}"):
        columns("a O", count=2)
    with refused(PATH, f"3: row: 3 columns instead of 2; {remedy}"):
        columns("a\tb\tO", count=2)
    remedy = remedy.replace("a tab", "white space")
    with refused(PATH, f"3: row: one column instead of a word and its tag; {remedy}"):
        columns("word", tabs=False)
    with refused(PATH, "3: word: an empty word; write it, or delete the line"):
        columns("\u3000\tO", count=2)


TEXT = "Ann\tB-PER\nLee\tI-PER\nslept\tO\n\n. . .\tNULL\nShe\tNULL\n\nIn\tO\nGhent\tI-GPE"
DOCUMENT = TaggedDocument(
    id="1_ann.v2",
    sentences=(
        TaggedSentence(words=("Ann", "Lee", "slept"), tags=("B-PER", "I-PER", "O")),
        TaggedSentence(words=(". . .", "She")),
        TaggedSentence(words=("In", "Ghent"), tags=("O", "B-GPE")),
    ),
)


def test_a_document(write):
    reading = TagReading()
    # No line end or an end and a blank line: the last sentence is there.
    for end in ("", "\n", "\n\n", "\r\n \n\n"):
        assert read_docarc(str(write("1_ann.v2.tsv", TEXT + end)), reading=reading) == DOCUMENT
    assert reading.mended == 4
    assert DOCUMENT.labelled == (0, 2)
    packed = gzip.compress(TEXT.replace("\n", "\r\n").encode())
    assert read_docarc(write("1_ann.v2.tsv.gz", packed)) == DOCUMENT
    assert read_docarc(write("1_ann.v2.tsv.xz", lzma.compress(TEXT.encode()))) == DOCUMENT
    assert read_docarc(write("b.tsv", "a\tO\n")).sentences == (TaggedSentence(words=("a",), tags=("O",)),)


def test_words_are_kept_once(write):
    first, second = read_docarc(write("a.tsv", "some word\tO\n\nsome word\tNULL\n")).sentences
    assert first.words[0] is second.words[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb\n", "2: row: one column instead of 2; write the word, a tab and its tag"),
        ("a O\n", "1: row: one column instead of 2; write the word, a tab and its tag"),
        ("a\tb\tO\n", "1: row: 3 columns instead of 2; write the word, a tab and its tag"),
        ("a\tO\n\n\tO\n", "3: word: an empty word; write it, or delete the line"),
        ("a\tO\nb\t\n", "2: tag: '' is not a tag; write O, or B- or I- and a label"),
        (
            "a\tO\n\nb\tNULL\nc\tO\n",
            "4: tag: NULL and other tags in one sentence; label all of its words or none",
        ),
        (
            "a\tO\nb\tO\nc\tNULL\n",
            "3: tag: NULL and other tags in one sentence; label all of its words or none",
        ),
        (
            "a\tNULL\n\nb\tNULL\n",
            "1: tag: no sentence has labels, all tags are NULL; label a sentence (O is a label), or take "
            "the file out",
        ),
        ("\n \n", "1: file: the file is empty; fill it, or take it out of the corpus"),
    ],
)
def test_complaints(write, refused, text, message):
    path = write("a.tsv", text)
    with refused(path, message):
        read_docarc(path)


def test_stray_tags_refused(write, refused):
    path = write("a.tsv", TEXT)
    with refused(
        path, "9: tag: 'I-GPE' follows no span of its label; write B- for I-, or read with stray=\"accept\""
    ):
        read_docarc(path, reading=TagReading(stray="refuse"))


@pytest.fixture
def corpus(write, tmp_path):
    for name in ("train/b.tsv", "train/a.tsv", "development/c.tsv"):
        write(name, f"{name[-5]}\tI-X\n")
    write("train/d.tsv.gz", gzip.compress(b"d\tO\n"))
    write("train/notes.txt", "none")
    return tmp_path


def test_splits(corpus):
    reading = TagReading()
    found = list(read_docarc_split(corpus, "train", reading=reading))
    assert [(document.id, document.sentences[0].words) for document in found] == [
        ("a", ("a",)),
        ("b", ("b",)),
        ("d", ("d",)),
    ]
    assert reading.mended == 2
    for split in ("dev", "validation"):
        assert [document.id for document in read_docarc_split(str(corpus), split)] == ["c"]
    chosen = read_docarc_split(corpus, "train", chosen=lambda count: [count - 1, 0])
    assert [document.id for document in chosen] == ["d", "a"]


def test_one_document_at_a_time(corpus, write):
    documents = read_docarc_split(corpus, "train")
    write("train/b.tsv", "no tab")
    assert next(documents).id == "a"
    with pytest.raises(ValueError, match=r"b.tsv:1: field row: one column"):
        next(documents)


def test_labels_of_the_list(corpus, write, refused):
    assert docarc_labels(corpus) is None
    tags = write("x.tagset", "O\t0\nI-Y\t1\nB-Y\t2\n\nB-Z\t3\n")
    assert docarc_labels(corpus) == ("Y", "Z")
    path = corpus / "train" / "a.tsv"
    with refused(path, "1: tag: 'I-X' is not a known tag; the labels are Y, Z"):
        next(read_docarc_split(corpus, "train"))
    reading = TagReading(labels=["X"])
    assert len(list(read_docarc_split(corpus, "train", reading=reading))) == 3
    assert reading.labels == ["X"]
    write("x.tagset", "O\t0\nperson\t1\n")
    with refused(tags, "2: tag: 'person' is not a tag; write O, or B- or I- and a label"):
        docarc_labels(corpus)
    write("y.tagset", "O\t0\n")
    remedy = "leave the one that fits the files"
    with refused(corpus, f"1: folder: several lists of tags (x.tagset, y.tagset); {remedy}"):
        read_docarc_split(corpus, "train")


def test_faulty_folders(corpus, write, refused):
    with pytest.raises(ValueError, match="split is 'all'; choose one of train, dev, test"):
        read_docarc_split(corpus, "all")
    with refused(
        corpus, "1: folder: there is no folder test in it; give the folder around train, dev and test"
    ):
        read_docarc_split(corpus, "test")
    (corpus / "test").mkdir()
    remedy = "put a file for each document there"
    with refused(corpus / "test", f"1: folder: no .tsv files in it; {remedy}"):
        read_docarc_split(corpus, "test")
    second = write("train/a.tsv.gz", b"")
    with refused(second, "1: file: a.tsv is the same document; leave one of them"):
        read_docarc_split(corpus, "train")


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


def passages(folder, split: str = "train") -> list[tuple[str, str]]:
    found = list(read_docarc_passages(folder, split))
    assert all([document.id for document in cluster.documents] == [cluster.id] for cluster in found)
    return [(cluster.id, cluster.documents[0].text) for cluster in found]


def sentences(*lengths: int) -> str:
    """Sentences of so many words, `w0`, `w1`, and so on, numbered through; labelled ones first."""
    numbers = iter(range(sum(lengths)))
    tags = ["O"] + ["NULL"] * (len(lengths) - 1)
    return "\n".join(
        "".join(f"w{next(numbers)}\t{tag}\n" for _ in range(length))
        for length, tag in zip(lengths, tags, strict=True)
    )


def words(first: int, stop: int) -> str:
    return " ".join(f"w{number}" for number in range(first, stop))


def test_passages_are_whole_sentences(write, tmp_path):
    write("train/b.tsv", sentences(30, 49, 1, 1, 80, 79))
    write("train/a.tsv", "Ann\tB-PER\nLee\tI-PER\n\n. . .\tNULL\nslept\tNULL\n")
    write("dev/c.tsv", "c\tO\n")
    assert passages(tmp_path) == [
        ("a/1", "Ann Lee . . . slept"),
        ("b/1", words(0, 80)),  # 30 + 49 + 1 are just as many as there may be
        ("b/2", words(80, 81)),  # 1 + 80 are one too many
        ("b/3", words(81, 161)),
        ("b/4", words(161, 240)),
    ]
    assert passages(tmp_path, "validation") == [("c/1", "c")]


def test_long_sentences_are_cut_and_no_word_is_lost(write, tmp_path):
    write("train/a.tsv", sentences(5, 185, 3))
    assert passages(tmp_path) == [
        ("a/1", words(0, 5)),
        ("a/2", words(5, 85)),
        ("a/3", words(85, 165)),
        ("a/4", words(165, 193)),  # the end of the long one, 25 words, and the next
    ]


def test_the_length_is_the_constant(write, tmp_path, monkeypatch):
    assert PASSAGE_WORDS == 80
    monkeypatch.setattr(docarc_corpus, "PASSAGE_WORDS", 2)
    write("train/a.tsv", sentences(3, 1))
    assert [text for _, text in passages(tmp_path)] == ["w0 w1", "w2 w3"]


def test_labels_are_not_read(write, tmp_path):
    write("x.tagset", "O\t0\nB-Y\t1\n")
    write("train/a.tsv", "a\tI-X\nb\tNULL\nc\twhatever\n\nd\tNULL\n")
    write("train/b.tsv", "e\tNULL\n")  # a document that nobody labelled
    assert [text for _, text in passages(tmp_path)] == ["a b c d", "e"]


def test_one_sentence_at_a_time(write, tmp_path):
    path = write("train/a.tsv", sentences(80, 80) + "\nno tab\n")
    found = read_docarc_passages(tmp_path, "train")
    assert next(found).id == "a/1"
    with pytest.raises(ValueError, match=rf"{path}:163: field row: one column instead of 2"):
        list(found)


def test_it_is_a_corpus(write, tmp_path, refused):
    file = write("train/a.tsv", sentences(80, 1))
    corpus = str(tmp_path)
    assert [cluster.id for cluster in open_corpus(corpus, split="train", size=1)] == ["a/1"]
    first = corpus_checksum(corpus, split="train")
    write("dev/b.tsv", "x\tO\n")
    write("notes.txt", "x")
    assert corpus_checksum(corpus, split="train") == first
    assert corpus_checksum(corpus, split="validation") != first
    file.write_text(sentences(80, 2))
    assert corpus_checksum(corpus, split="train") != first
    remedy = "give the folder around train, dev and test"
    with refused(tmp_path, f"1: folder: there is no folder test in it; {remedy}"):
        list(open_corpus(corpus, split="test"))
