"""LitBank's nested columns: the outermost spans of sentences by hand, and every complaint."""

import pytest

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, TagReading, read_litbank, read_litbank_folder

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
DOCUMENT = TaggedDocument(
    id="1_maids_brat",
    sentences=(
        TaggedSentence(words=("CHAPTER",), tags=("O",)),
        TaggedSentence(
            words=("the", "maid", "of", "Ann", "slept", "in", "Ghent", "'s", "inn", "Ann", "Lee"),
            tags=("B-PER", *("I-PER",) * 3, "O", "O", "B-FAC", "I-FAC", "I-FAC", "B-PER", "I-PER"),
        ),
    ),
)


def test_outermost_spans(write):
    assert read_litbank(str(write("1_maids_brat.tsv", NESTED))) == DOCUMENT
    # A document has as many columns as it needs, and the tabs at the end of a line are more or fewer.
    wider = NESTED.replace("\t\n", "\tO\tO\t\t\n")
    assert read_litbank(write("1_maids_brat.tsv", wider)) == DOCUMENT
    assert read_litbank(write("1_maids_brat.tsv", NESTED.replace("\t\n", "\n"))) == DOCUMENT


def test_one_place_with_two_labels(write):
    for columns, tag in (("B-ORG\tB-PER", "B-ORG"), ("B-PER\tB-ORG", "B-PER")):
        assert read_litbank(write("a.tsv", f"house\t{columns}\t\n")).sentences[0].tags == (tag,)


def test_spans_side_by_side_stay_apart(write):
    # The inner span of the first column may not end the outer one of the second.
    text = "a\tB-X\tO\t\nb\tB-X\tB-X\t\nc\tI-X\tI-X\t\nd\tO\tI-X\t\ne\tB-X\tB-Y\t\n"
    (sentence,) = read_litbank(write("a.tsv", text)).sentences
    assert sentence.tags == ("B-X", "B-X", "I-X", "I-X", "B-X")


def test_stray_tags_in_every_column(write, refused):
    path = write("a.tsv", "a\tO\tI-X\t\nb\tI-Y\tI-X\t\nc\tB-Y\tO\t\n")
    reading = TagReading()
    assert read_litbank(path, reading=reading).sentences[0].tags == ("B-X", "I-X", "B-Y")
    assert reading.mended == 2
    remedy = 'write B- for I-, or read with stray="accept"'
    with refused(path, f"2: tag: 'I-Y' follows no span of its label; {remedy}"):
        read_litbank(path, reading=TagReading(stray="refuse"))
    with refused(path, "1: tag: 'I-X' is not a known tag; the labels are Y"):
        read_litbank(path, reading=TagReading(labels=("Y",)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a\tO\nb\t\n",
            "2: row: one column instead of a word and its tag; write the word, a tab and its tag",
        ),
        ("\tO\tO\t\n", "1: word: an empty word; write it, or delete the line"),
        (
            "a\tO\n\nb\tO\tO\t\nc\tO\t\n",
            "4: row: 2 columns where the sentence begins with 3; write O where a word is in no span",
        ),
        (
            "x\tO\t\n\na\tB-X\tO\nb\tI-X\tB-Y\nc\tO\tI-Y\n",
            "3: tag: spans cross (TagSpan(label='Y', first=1, stop=3) shares words with another span); "
            "put the one inside the other, or leave one of them",
        ),
    ],
)
def test_complaints(write, refused, text, message):
    path = write("a.tsv", text)
    with refused(path, message):
        read_litbank(path)


def test_a_folder(write, tmp_path, refused):
    with refused(tmp_path, "1: folder: no .tsv files in it; give the folder entities/tsv"):
        read_litbank_folder(tmp_path)
    write("b.tsv", "b\tI-X\t\n")
    write("a.tsv", "a\tI-X\t\n")
    write("a.ann", "")
    reading = TagReading()
    assert [document.id for document in read_litbank_folder(str(tmp_path), reading=reading)] == ["a", "b"]
    assert reading.mended == 2
