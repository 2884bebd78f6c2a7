"""Named entities in CoNLL's columns: files by hand in IOB1, IOB2 and OntoNotes' form, and complaints."""

import pytest

from cdlm_lab.data.tagged import TaggedSentence, TagReading, read_ner_conll

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


def test_complaints(write, refused):
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
