"""Tagged text of other makers: LitBank, columns as CoNLL's, JNLPBA in IOB2 and in standoff."""

import gzip

import pytest

from cdlm_lab.data.tagged import (
    TaggedDocument,
    TaggedSentence,
    TagReading,
    read_jnlpba_iob2,
    read_jnlpba_standoff,
    read_litbank,
    read_litbank_folder,
    read_ner_conll,
    spans_of,
)

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


IOB1 = (
    "-DOCSTART- -X- -X- O\n\n"
    "Ann NNP I-NP I-PER\nLee NNP I-NP I-PER\nBo NNP I-NP B-PER\nslept VBD I-VP O\n. . O O\n\n"
    "Ghent NNP I-NP I-LOC\n\n"
    "-DOCSTART- -X- O O\nAt IN I-PP O\nhome NN I-NP O"
)
IOB2 = IOB1.replace("Ann NNP I-NP I-PER", "Ann NNP I-NP B-PER").replace("I-LOC", "B-LOC")


@pytest.mark.parametrize(("text", "mended"), [(IOB1, 2), (IOB2, 0), (IOB2.replace(" ", "\t"), 0)])
def test_documents(write, text, mended):
    reading = TagReading()
    first, second = read_ner_conll(str(write("eng.testa", text)), reading=reading)
    assert (first.id, second.id) == ("eng.testa:0", "eng.testa:1")
    assert first.sentences == (
        TaggedSentence(words=("Ann", "Lee", "Bo", "slept", "."), tags=("B-PER", "I-PER", "B-PER", "O", "O")),
        TaggedSentence(words=("Ghent",), tags=("B-LOC",)),
    )
    assert second.sentences == (TaggedSentence(words=("At", "home"), tags=("O", "O")),)
    assert reading.mended == mended


def test_ontonotes_is_one_document(write):
    text = "The\tDT\t(NP*\tB-WORK_OF_ART\n4 1/2\tCD\t*)\tI-WORK_OF_ART\n\nsaid\tVBD\t*\tO\n"
    (document,) = read_ner_conll(write("onto.train.ner", text), reading=TagReading(stray="refuse"))
    assert document.id == "onto.train.ner:0"
    assert document.sentences == (
        TaggedSentence(words=("The", "4 1/2"), tags=("B-WORK_OF_ART", "I-WORK_OF_ART")),
        TaggedSentence(words=("said",), tags=("O",)),
    )


def test_complaints_of_conll(write, refused):
    path = write("a.txt", "a NN O\nb\n")
    remedy = "write the word, white space and its tag"
    with refused(path, f"2: row: one column instead of a word and its tag; {remedy}"):
        list(read_ner_conll(path))
    path = write("a.txt", "a\tNN\tO\nb\tNN\n")
    with refused(path, "2: tag: 'NN' is not a tag; write O, or B- or I- and a label"):
        list(read_ner_conll(path))
    path = write("a.txt", "-DOCSTART- O\n\na O\n-DOCSTART- O\n")
    remedy = "delete the line, or write the document below it"
    with refused(path, f"4: document: no sentence follows; {remedy}"):
        list(read_ner_conll(path))
    path = write("a.txt", IOB1)
    remedy = 'write B- for I-, or read with stray="accept"'
    with refused(path, f"3: tag: 'I-PER' follows no span of its label; {remedy}"):
        list(read_ner_conll(path, reading=TagReading(stray="refuse")))


def test_one_document_at_a_time(write):
    documents = read_ner_conll(write("a.txt", "-DOCSTART- O\n\na O\n\n-DOCSTART- O\n\nb\n"))
    assert next(documents).sentences[0].words == ("a",)
    with pytest.raises(ValueError, match=r"a.txt:7: field row: one column"):
        next(documents)


JNLPBA_IOB2 = (
    "###MEDLINE:91\n\nLevels\tO\nof\tO\nIL-2\tB-protein\nreceptors\tI-protein\n\nWe\tO\nsaw\tO\nnone\tO\n.\tO\n\n"
    "###MEDLINE:92\n\nCD4\tI-DNA\n"
)
FIRST = TaggedDocument(
    id="91",
    sentences=(
        TaggedSentence(
            words=("Levels", "of", "IL-2", "receptors"), tags=("O", "O", "B-protein", "I-protein")
        ),
        TaggedSentence(words=("We", "saw", "none", "."), tags=("O",) * 4),
    ),
)
TITLE = "Levels of IL-2 receptors"


def test_iob2(write):
    reading = TagReading()
    first, second = read_jnlpba_iob2(str(write("a.iob2", JNLPBA_IOB2)), reading=reading)
    assert first == FIRST
    assert second.id == "92"
    assert second.sentences == (TaggedSentence(words=("CD4",), tags=("B-DNA",)),)
    assert reading.mended == 1
    packed = write("a.iob2.gz", gzip.compress(JNLPBA_IOB2.encode()))
    assert list(read_jnlpba_iob2(packed)) == [first, second]


def test_iob2_without_marks(write):
    (only,) = read_jnlpba_iob2(write("Eval1.iob2", JNLPBA_IOB2.partition("\n\n")[2].partition("#")[0]))
    assert (only.id, only.sentences) == ("Eval1", FIRST.sentences)
    before, after = read_jnlpba_iob2(write("b.iob2", "a\tO\n###MEDLINE: 91 \nb\tO\n"))
    assert (before.id, before.sentences[0].words) == ("b", ("a",))
    assert (after.id, after.sentences[0].words) == ("91", ("b",))


def test_an_abstract_that_comes_twice(write):
    part = "###MEDLINE:91\n\na\tO\n\n"
    found = read_jnlpba_iob2(write("a.iob2", f"{part}###MEDLINE:92\nb\tO\n\n{part}{part}"))
    assert [document.id for document in found] == ["91", "92", "91-2", "91-3"]


def test_iob2_complaints(write, refused):
    path = write("a.iob2", "###MEDLINE:91\n\na\tO\nb\n")
    with refused(path, "4: row: one column instead of 2; write the word, a tab and its tag"):
        list(read_jnlpba_iob2(path))
    path = write("a.iob2", "###MEDLINE: \n\na\tO\n")
    with refused(path, "1: document: no name of the abstract; write it after ###MEDLINE:"):
        list(read_jnlpba_iob2(path))
    path = write("a.iob2", "###MEDLINE:1\n\n###MEDLINE:2\n\na\tO\n")
    remedy = "delete the line, or write the document below it"
    with refused(path, f"1: document: no sentence follows; {remedy}"):
        list(read_jnlpba_iob2(path))
    path = write("a.iob2", "a\tB-RNA\n")
    with refused(path, "1: tag: 'B-RNA' is not a known tag; the labels are DNA"):
        list(read_jnlpba_iob2(path, reading=TagReading(labels=("DNA",))))


@pytest.fixture
def abstract(write, tmp_path):
    """abstract(text, annotations, name): the folder of what was written so far."""

    def _abstract(text: str, annotations: str, name: str = "91"):
        write(f"{name}.txt", text)
        write(f"{name}.ann", annotations)
        return tmp_path

    return _abstract


def test_both_forms_agree(abstract, write):
    folder = abstract(f"{TITLE}\nWe saw none.\n", "T1\tprotein 10 24\tIL-2 receptors\n")
    assert list(read_jnlpba_standoff(str(folder))) == [FIRST]


def test_words_are_cut_at_names(abstract):
    folder = abstract(
        "pre-IL2a, IL3.", "T1\tDNA 4 7\tIL2\nT2\tRNA 4 5\tI\nR1\tx Arg1:T1\n#1\tnote\nT3\tRNA 10 13\tIL3\n"
    )
    (document,) = read_jnlpba_standoff(folder)
    assert document.sentences == (
        TaggedSentence(
            words=("pre-", "IL2", "a", ",", "IL3", "."), tags=("O", "B-DNA", "O", "O", "B-RNA", "O")
        ),
    )


def test_no_sentence_ends_in_a_name(abstract):
    text = "We grew it. It lived. It died.\nThe end."
    cut = [s.words[-2:] for s in next(read_jnlpba_standoff(abstract(text, ""))).sentences]
    assert cut == [("it", "."), ("lived", "."), ("died", "."), ("end", ".")]
    # A name from the first sentence into the second, and one across the line end.
    names = "T1\tX 8 14\tit. It\nT2\tY 25 34\tdied. The\n"
    found = next(read_jnlpba_standoff(abstract(text, names))).sentences
    assert [" ".join(sentence.words) for sentence in found] == [
        "We grew it . It lived .",
        "It died . The end .",
    ]
    assert [[(s.label, s.first, s.stop) for s in spans_of(sentence.tags)] for sentence in found] == [
        [("X", 2, 5)],
        [("Y", 1, 4)],
    ]


def test_a_folder_of_standoff(abstract):
    abstract("b", "", name="b")
    folder = abstract("a\n\n\u2003a \u00a0 b\n", "\n", name="a")
    found = list(read_jnlpba_standoff(folder))
    assert [document.id for document in found] == ["a", "b"]
    assert [sentence.words for sentence in found[0].sentences] == [("a",), ("a", "b")]
    assert all(tag == "O" for sentence in found[0].sentences for tag in sentence.tags)


@pytest.mark.parametrize(
    ("annotation", "what", "remedy"),
    [
        ("T1\tprotein 10 14;15 24\tIL-2 receptors",
         "'T1\\tprotein 10 14;15 24\\tIL-2 receptors' is not a name in one piece",
         "write T1, a tab, label, first character and end, a tab, and the text"),
        ("T1 protein 10 14 IL-2", "'T1 protein 10 14 IL-2' is not a name in one piece",
         "write T1, a tab, label, first character and end, a tab, and the text"),
        ("version https://git-lfs.github.com/spec/v1",
         "'version https://git-lfs.github.com/spec/v1' is not a name in one piece",
         "write T1, a tab, label, first character and end, a tab, and the text"),
        ("<!DOCTYPE html>", "'<!DOCTYPE html>' is not a name in one piece",
         "write T1, a tab, label, first character and end, a tab, and the text"),
        ("T1\tprotein 11 15\tIL-2", "'IL-2' is not what stands at 11 to 15",
         "count characters from 0, line ends as one"),
        ("T1\tprotein 9 10\t ", "' ' is not what stands at 9 to 10",
         "count characters from 0, line ends as one"),
    ],
)  # fmt: skip
def test_standoff_complaints(abstract, refused, annotation, what, remedy):
    folder = abstract(TITLE, f"T0\tDNA 0 6\tLevels\n{annotation}\n")
    with refused(folder / "91.ann", f"2: T: {what}; {remedy}"):
        list(read_jnlpba_standoff(folder))


def test_what_else_brat_writes_is_passed_over(abstract):
    rows = ("R1\tA Arg1:T1 Arg2:T2\t", "E1\tB:T1", "A1\tC T1", "M1\tD T1", "N1\tE T1 x\tf", "#1\tNote T1\tg")
    other, name = "\n".join([*rows, "*\tSame T1 T2", "\n"]), "T1\tDNA 0 6\tLevels\n"
    first = next(read_jnlpba_standoff(abstract(TITLE, name)))
    assert next(read_jnlpba_standoff(abstract(TITLE, other + name + other))) == first


def test_an_annotation_without_its_text(abstract, refused, write):
    folder = abstract(TITLE, "")
    path = write("92.ann", "")
    remedy = "give the folder that has a .txt and an .ann for each abstract"
    with refused(path, f"1: file: there is no 92.txt beside it; {remedy}"):
        read_jnlpba_standoff(folder)


def test_more_standoff_complaints(abstract, refused, tmp_path):
    remedy = "give the folder that has a .txt and an .ann for each abstract"
    with refused(tmp_path, f"1: folder: no .txt files in it; {remedy}"):
        read_jnlpba_standoff(tmp_path)
    path = abstract(TITLE, "T1\tX 0 9\tLevels of\nT2\tY 7 14\tof IL-2\n") / "91.ann"
    what = "names cross (TagSpan(label='Y', first=1, stop=3) shares words with another span)"
    with refused(path, f"1: T: {what}; put the one inside the other, or leave one of them"):
        list(read_jnlpba_standoff(tmp_path))
    with refused(path, "1: tag: 'B-X' is not a known tag; the labels are DNA"):
        list(read_jnlpba_standoff(tmp_path, reading=TagReading(labels=("DNA",))))
    path.unlink()
    with refused(path, "1: file: there is no such file; check the spelling of the path"):
        list(read_jnlpba_standoff(tmp_path))
