"""Parts of records stand in the text as given where their offsets say, whatever white space, marks and
invisible characters it holds."""

import json

import pytest

from cdlm_lab.data import marked, native, tags
from cdlm_lab.data.files import JsonRecord
from cdlm_lab.data.records import PairDocument, characters
from cdlm_lab.data.words import split_sentences, visible_word

TEXT = "Blast in Telk\n\n  Two miners, Ann Lee's\n  brothers, died.  More\u00a0follows\ton Mon\u00adday. \n"


def rows(*fields):
    return (JsonRecord(path="own.jsonl", line=1, fields=one) for one in fields)


def test_words_of_a_tagged_text():
    at = TEXT.index("Ann")
    document = tags.tagged_text("a", TEXT, [tags.TagSpan(label="PER", first=at, stop=at + 7)])
    (sentence,) = (one for one in document.sentences if "B-PER" in one.tags)
    for one in document.sentences:
        assert [TEXT[start:end] for start, end in one.offsets] == list(one.words)
    (name,) = tags.spans_of(sentence.tags)
    assert TEXT[slice(*characters(sentence.offsets, name.first, name.stop))] == "Ann Lee"


def test_sentences_of_a_document():
    document = native.pair_document("a", TEXT)
    assert document.sentences == tuple(split_sentences(TEXT))
    found = [TEXT[start:end] for start, end in document.offsets]
    assert [" ".join(one.split()) for one in found] == [" ".join(one.split()) for one in document.sentences]
    assert [characters(document.offsets, n, n + 1) for n in range(len(found))] == list(document.offsets)
    with pytest.raises(ValueError, match=r"^document a: 1 offsets of 2 parts; give one for each, or none$"):
        PairDocument(id="a", sentences=("One.", "Two."), offsets=((0, 4),))


def test_places_in_a_paragraph_are_places_in_the_text():
    for text in (TEXT, f"  {TEXT}", "One."):
        made = native.paragraph("Telk", text)
        assert len(made.text) == len(text)
        assert [" ".join(one.split()) for one in made.sentences] == [
            " ".join(one.split()) for one in split_sentences(text)
        ]
        assert all(a == b or (a == " " and b.isspace()) for a, b in zip(made.text, text, strict=True))


HEADING = "\ufeff== report ==\n"
PLAIN = "A <m>fire at the <M>old\tmill</m></m>\nbroke out.\n\nThe <m>bla\u00adze</m> spread.\n"


@pytest.mark.parametrize("text", [HEADING + PLAIN, PLAIN], ids=["heading", "plain"])
def test_mentions_of_a_typed_text(text):
    topic = marked.parse_marked_documents(text, kind="event")
    (document,) = topic.documents
    found = [text[start:end] for start, end in document.offsets]
    assert tuple(map(visible_word, found)) == document.tokens
    spans = [characters(document.offsets, *one.tokens) for one in document.mentions]
    assert [text[start:end] for start, end in spans] == [
        "fire at the <M>old\tmill",
        "old\tmill",
        "bla\u00adze",
    ]
    (same,) = marked.marked_texts({"a": text}, kind="event").documents
    assert [text[start:end] for start, end in same.offsets][-len(found) :] == found


def test_mentions_of_ones_own_rows():
    place = TEXT.index("miners")
    mention = {"start": place, "end": place + 6, "cluster": "men"}
    (document,) = native.read_coreference(rows({"id": "a", "text": TEXT, "mentions": [mention]}))
    (one,) = document.mentions
    assert characters(document.offsets, *one.tokens) == (place, place + 6)


def test_a_record_without_a_text_has_no_places():
    given = json.loads('{"sentences": [{"words": ["Orn", "slept"], "tags": ["B-PER", "O"]}]}')
    (document,) = native.read_tagged(rows(given))
    assert characters(document.sentences[0].offsets, 0, 1) is None
