"""Tagged text of other makers: LitBank, columns as CoNLL's, JNLPBA in IOB2 and in standoff."""

import pytest

from cdlm_lab.data.convert import tagged
from cdlm_lab.data.convert.tagged import STRAY
from cdlm_lab.data.records import PassedOver, TaggedDocument, TaggedSentence
from cdlm_lab.data.tags import spans_of


def sentence(words: str, tags: str) -> TaggedSentence:
    return TaggedSentence(words=tuple(words.split("|")), tags=tuple(tags.split()))


NESTED = (
    "CHAPTER\tO\tO\tO\t\n"
    "\n"
    "the\tO\tB-PER\tO\t\n"
    "maid\tO\tI-PER\tO\t\n"
    "of\tO\tI-PER\tO\t\n"
    "Ann\tB-PER\tI-PER\tO\t\n"
    "slept\tO\tO\tO\t\n"
    "in\tO\tO\tO\t\n"
    "Ghent\tB-GPE\tO\tB-FAC\t\n"
    "'s\tO\tB-PER\tI-FAC\t\n"
    "inn\tB-FAC\tO\tI-FAC\t\n"
    "Ann\tB-PER\tB-PER\tO\t\n"
    "Lee\tO\tI-PER\tO\t\n"
)
OUTERMOST = (
    sentence("CHAPTER", "O"),
    sentence("the|maid|of|Ann|slept|in|Ghent|'s|inn|Ann|Lee",
             "B-PER I-PER I-PER I-PER O O B-FAC I-FAC I-FAC B-PER I-PER"),
)  # fmt: skip


def test_outermost_spans(write):
    # A document has as many columns as it needs, and the tabs at the end of a line are more or fewer.
    for text in (NESTED, NESTED.replace("\t\n", "\tO\tO\t\t\n"), NESTED.replace("\t\n", "\n")):
        document = tagged.read_book(write("1_maids_brat.tsv", text), PassedOver())
        assert document == TaggedDocument(id="1_maids_brat", sentences=OUTERMOST)


@pytest.mark.parametrize(("text", "tags", "mended"), [
    # one place with two labels
    ("house\tB-ORG\tB-PER\t\n", "B-ORG", 0),
    ("house\tB-PER\tB-ORG\t\n", "B-PER", 0),
    # The inner span of the first column may not end the outer one of the second.
    ("a\tB-X\tO\t\nb\tB-X\tB-X\t\nc\tI-X\tI-X\t\nd\tO\tI-X\t\ne\tB-X\tB-Y\t\n", "B-X B-X I-X I-X B-X", 0),
    ("a\tO\tI-X\t\nb\tI-Y\tI-X\t\nc\tB-Y\tO\t\n", "B-X I-X B-Y", 2),
])  # fmt: skip
def test_one_sentence_of_litbank(write, text, tags, mended):
    reading = PassedOver()
    (only,) = tagged.read_book(write("a.tsv", text), reading).sentences
    assert only.tags == tuple(tags.split())
    assert reading.count(STRAY) == mended


# Words with white space and signs that are no columns of their own; some are numbers.
SPACED = (
    "New\u00a0York", "東京\u3000都", "a\u2028b", "x\u0085y", "\u2009½", "प्रधानमंत्री",
    "סוף\u200fפסוק", "7", "Zu\u0308rich",
)  # fmt: skip


@pytest.mark.parametrize(("name", "form"), [
    ("a.conll", "{w}\t{t}\n"), ("a.conll", "{w} {t}\n"), ("a.conll", "{n}\t{w}\t{t}\n"),
    ("a.iob2", "{w}\t{t}\n"), ("a.tsv", "{w}\t{t}\t\n"),
])  # fmt: skip
def test_only_the_white_space_of_the_format_parts_columns(write, name, form):
    """Words keep other white space; the number of a token in front of a word is none."""
    rows = "".join(form.format(w=word, t="B-LOC", n=n) for n, word in enumerate(SPACED, start=1))
    path, reading = write(name, f"{rows}\n{form.format(w='Telk', t='O', n=1)}"), PassedOver()
    if name == "a.tsv":
        document = tagged.read_book(path, reading)
    else:
        (document,) = tagged.read_columns(path, reading)
    assert [sentence.words for sentence in document.sentences] == [SPACED, ("Telk",)]
    assert document.sentences[0].tags == ("B-LOC",) * len(SPACED)


IOB1 = (
    "-DOCSTART- -X- -X- O\n\n"
    "Ann NNP I-NP I-PER\nLee NNP I-NP I-PER\nBo NNP I-NP B-PER\nslept VBD I-VP O\n. . O O\n\n"
    "Ghent NNP I-NP I-LOC\n\n"
    "-DOCSTART- -X- O O\nAt IN I-PP O\nhome NN I-NP O"
)
IOB2 = IOB1.replace("Ann NNP I-NP I-PER", "Ann NNP I-NP B-PER").replace("I-LOC", "B-LOC")


@pytest.mark.parametrize(("text", "mended"), [(IOB1, 2), (IOB2, 0), (IOB2.replace(" ", "\t"), 0)])
def test_columns(write, text, mended):
    reading = PassedOver()
    first, second = tagged.read_columns(write("eng.testa", text), reading)
    assert (first.id, second.id) == ("eng.testa:0", "eng.testa:1")
    assert first.sentences == (
        sentence("Ann|Lee|Bo|slept|.", "B-PER I-PER B-PER O O"),
        sentence("Ghent", "B-LOC"),
    )
    assert second.sentences == (sentence("At|home", "O O"),)
    assert reading.count(STRAY) == mended


ABSTRACTS = (
    "###MEDLINE:91\n\nLevels\tO\nof\tO\nIL-2\tB-protein\nreceptors\tI-protein\n\nWe\tO\nsaw\tO\nnone\tO\n.\tO\n\n"
    "###MEDLINE:92\n\nCD4\tI-DNA\n"
)
LEVELS = (
    sentence("Levels|of|IL-2|receptors", "O O B-protein I-protein"),
    sentence("We|saw|none|.", "O O O O"),
)


def abstracts(path, reading=None):
    return [(one.id, one.sentences) for one in tagged.read_columns(path, reading or PassedOver())]


def test_iob2(write):
    reading = PassedOver()
    path = write("a.iob2", ABSTRACTS)
    assert abstracts(path, reading) == [("91", LEVELS), ("92", (sentence("CD4", "B-DNA"),))]
    assert reading.count(STRAY) == 1
    path.write_text(ABSTRACTS.partition("\n\n")[2].partition("#")[0])  # without marks
    assert abstracts(path) == [("a", LEVELS)]
    path.write_text("a\tO\n###MEDLINE: 91 \nb\tO\n")
    assert abstracts(path) == [("a", (sentence("a", "O"),)), ("91", (sentence("b", "O"),))]
    part = "###MEDLINE:91\n\na\tO\n\n"
    path.write_text(f"{part}###MEDLINE:92\nb\tO\n\n{part}{part}")
    assert [name for name, _ in abstracts(path)] == ["91", "92", "91-2", "91-3"]


NONE = "document: no sentence follows; delete the line, or write the document below it"
WORD = "one column instead of a word and its tag; write both, with a tab or a space between them"


@pytest.mark.parametrize(("read", "text", "message"), [
    (tagged.read_book, "a\tO\nb\t\n", f"2: row: {WORD}"),
    (tagged.read_book, "a\tO\n\nb\tO\tO\t\nc\tO\t\n",
     "4: row: 2 columns where the sentence begins with 3; write O where a word is in no span"),
    (tagged.read_book, "x\tO\t\n\na\tB-X\tO\nb\tI-X\tB-Y\nc\tO\tI-Y\n",
     "3: tag: spans cross (TagSpan(label='Y', first=1, stop=3) shares words with another span); "
     "put the one inside the other, or leave one of them"),
    (tagged.read_columns, "a NN O\nb\n", f"2: row: {WORD}"),
    (tagged.read_columns, "-DOCSTART- O\n\na O\n-DOCSTART- O\n", f"4: {NONE}"),
    (tagged.read_columns, "###MEDLINE:91\n\na\tO\nb\n",
     f"4: row: {WORD}"),
])  # fmt: skip
def test_complaints(write, refused, read, text, message):
    path = write("a.tsv", text)
    with refused(path, message):
        list(read(path, PassedOver()))


TITLE = "Levels of IL-2 receptors"


@pytest.fixture
def abstract(write, tmp_path):
    """abstract(text, annotations, name): the folder of what was written so far."""

    def _abstract(text: str, annotations: str, name: str = "91"):
        write(f"{name}.txt", text)
        write(f"{name}.ann", annotations)
        return tmp_path

    return _abstract


def standoff(folder, lost=None) -> list[TaggedDocument]:
    names = sorted(folder.glob("*.ann"))
    return list(tagged.read_files(names, passed_over=lost or PassedOver()))


def test_standoff(abstract):
    names = "T1\tprotein 10 24\tIL-2 receptors\n"
    folder = abstract(f"{TITLE}\nWe saw none.\n", names)
    assert standoff(folder) == [TaggedDocument(id="91", sentences=LEVELS)]  # both forms agree
    # What else brat writes is passed over.
    rows = ("R1\tA Arg1:T1 Arg2:T2\t", "E1\tB:T1", "A1\tC T1", "M1\tD T1", "N1\tE T1 x\tf", "#1\tNote T1\tg")
    other = "\n".join([*rows, "*\tSame T1 T2", "\n"])
    again = standoff(abstract(TITLE, other + names + other))
    assert again[0].sentences == LEVELS[:1]
    # Words are cut at names.
    abstract("pre-IL2a, IL3.", "T1\tDNA 4 7\tIL2\nT2\tRNA 4 5\tI\nT3\tRNA 10 13\tIL3\n")
    (only,) = standoff(folder)[0].sentences
    assert only == sentence("pre-|IL2|a|,|IL3|.", "O B-DNA O O B-RNA O")
    abstract("b", "", name="b")
    abstract("a\n\n\u2003a \u00a0 b\n", "\n", name="a")
    last = standoff(folder)[1:]
    assert [(one.id, one.sentences) for one in last] == [
        ("a", (sentence("a", "O"), sentence("a|b", "O O"))),
        ("b", (sentence("b", "O"),)),
    ]


def test_no_sentence_ends_in_a_name(abstract):
    text = "We grew it. It lived. It died.\nThe end."
    document = standoff(abstract(text, ""))[0]
    cut = [one.words[-2:] for one in document.sentences]
    assert cut == [("it", "."), ("lived", "."), ("died", "."), ("end", ".")]
    # A name from the first sentence into the second, and one across the line end.
    names = "T1\tX 8 14\tit. It\nT2\tY 25 34\tdied. The\n"
    first, second = standoff(abstract(text, names))[0].sentences
    assert " ".join(first.words) == "We grew it . It lived ."
    assert " ".join(second.words) == "It died . The end ."
    places = [(one.label, one.first, one.stop) for part in (first, second) for one in spans_of(part.tags)]
    assert places == [("X", 2, 5), ("Y", 1, 4)]


PIECE = "is not a name; write T1, a tab, label, first character and end, a tab, and the text"
STANDS = "count characters from 0, line ends as one"


@pytest.mark.parametrize(("annotation", "message"), [
    ("T1 protein 10 14 IL-2", f"2: T: 'T1 protein 10 14 IL-2' {PIECE}"),
    ("T1\tprotein 11 15\tIL-2", f"2: T: 'IL-2' is not what stands at 11 to 15; {STANDS}"),
    ("T1\tX 0 9\tLevels of\nT2\tY 7 14\tof IL-2",
     "1: T: names cross (TagSpan(label='Y', first=1, stop=3) shares words with another span); put the "
     "one inside the other, or leave one of them"),
])  # fmt: skip
def test_complaints_of_standoff(abstract, refused, annotation, message):
    folder = abstract(TITLE, f"T0\tDNA 0 6\tLevels\n{annotation}\n")
    with refused(folder / "91.ann", message):
        standoff(folder)


def test_standoff_that_is_not_whole(abstract, refused, write):
    lost = PassedOver()
    write("93.txt", TITLE)
    folder = abstract(TITLE, "")
    assert [one.id for one in standoff(folder, lost)] == ["91"]
    assert lost.lines() == [f"text without an .ann file: 1 (first: {folder / '93.txt'})"]
    write("92.ann", "")
    with refused(folder / "92.txt", "1: file: there is no such file; check the spelling of the path"):
        standoff(folder)


def test_a_name_in_pieces_is_its_first_to_its_last_word(abstract):
    """brat writes so what a line break, or other words, divide."""
    lost = PassedOver()
    folder = abstract(TITLE, "T1\tprotein 0 6;15 24\tLevels receptors\n")
    (only,) = standoff(folder, lost)[0].sentences
    assert only.tags == ("B-protein", *["I-protein"] * (len(only.words) - 1))
    assert lost.count("name in pieces, read from its first to its last word") == 1
