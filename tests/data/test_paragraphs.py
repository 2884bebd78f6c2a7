"""Documents as paragraphs of sentences: where a paragraph ends, what is dropped, and all of a corpus."""

from __future__ import annotations

import json

import pytest

from cdlm_lab.data.clusters import LEAST_CHARACTERS, Paragraphed, paragraph_documents, paragraphed
from cdlm_lab.data.records import Document
from cdlm_lab.data.storyworld.stories import stories

ONE = "The mill stood by the river."
TWO = "It burned down on Monday."
THREE = "Nobody was hurt in the fire."
FOUR = "The miller will build it again."


def paragraphs(text: str, **fields) -> tuple[tuple[str, ...], ...]:
    found = paragraphed(Document(id="a", text=text, **fields))
    assert found.id == "a"
    return found.paragraphs


def test_paragraphs_end_at_line_breaks_one_or_more():
    assert paragraphs(f"{ONE} {TWO}\n{THREE}\n\n \n{FOUR}\n") == ((ONE, TWO), (THREE,), (FOUR,))
    assert paragraphs(f"\r\n{ONE} {TWO}\r\n\r\n{THREE}") == ((ONE, TWO), (THREE,))


@pytest.mark.parametrize("inside", ["\u2028", "\x85", "\u2029", "\t", "\xa0"])
def test_no_other_white_space_ends_one_and_all_of_it_becomes_single(inside):
    assert paragraphs(f"The mill{inside} stood by the river. {TWO}") == ((ONE, TWO),)


def test_short_sentences_are_dropped_and_with_them_paragraphs():
    assert LEAST_CHARACTERS == 20
    assert paragraphs(f"It is 19 in letter. {ONE} It is 20 in letters.\nBy our editor.\n{TWO}") == (
        (ONE, "It is 20 in letters."),
        (TWO,),
    )
    assert paragraphs("Short.\n\nBy our editor.") == ()
    assert paragraphs("") == ()


def test_sentences_of_the_source_are_kept():
    """sentencex would make four of the first line; the third stands where it starts."""
    text = "Mill of St. Ives. Burnt. No\none was hurt in the fire.\nThe miller will. Build it again."
    spans = ((0, 24), (25, 53), (54, 87))
    assert [text[start:end] for start, end in spans][1] == "No\none was hurt in the fire."
    assert paragraphs(text, sentences=spans) == (
        ("Mill of St. Ives. Burnt.", "No one was hurt in the fire."),
        ("The miller will. Build it again.",),
    )
    assert paragraphs(text, sentences=spans[2:]) == (("The miller will. Build it again.",),)


class TestTitle:
    TITLE = "A fire in the old mill by the river"

    def test_a_first_line_that_is_the_title_is_none(self):
        assert paragraphs(f"{self.TITLE}\n{ONE}", title=self.TITLE) == ((ONE,),)
        assert paragraphs(self.TITLE, title=self.TITLE) == ()

    def test_only_the_first_line_and_only_all_of_it(self):
        assert paragraphs(f"{ONE}\n{self.TITLE}", title=self.TITLE) == ((ONE,), (self.TITLE,))
        assert paragraphs(f"{self.TITLE} again\n{ONE}", title=self.TITLE) == (
            (f"{self.TITLE} again",),
            (ONE,),
        )
        assert paragraphs(f"{self.TITLE}\n{ONE}") == ((self.TITLE,), (ONE,))
        assert paragraphs(f"{ONE}\n{TWO}", title="") == ((ONE,), (TWO,))

    def test_with_sentences_of_the_source(self):
        end = len(self.TITLE)
        spans = ((0, end), (end + 1, end + 1 + len(ONE)))
        assert paragraphs(f"{self.TITLE}\n{ONE}", title=self.TITLE, sentences=spans) == ((ONE,),)


class TestCorpus:
    def test_every_document_of_every_cluster_in_order(self, write):
        records = [
            {"id": "c0", "documents": [f"{ONE}\n{TWO}", "Short."], "split": "train"},
            {"id": "c1", "documents": [{"id": "x", "title": "Mill", "text": THREE}], "split": "train"},
            {"id": "c2", "documents": [FOUR], "split": "test"},
        ]
        path = str(write("x.jsonl", "".join(json.dumps(record) + "\n" for record in records)))
        assert list(paragraph_documents(path, "train")) == [
            Paragraphed(id="0", paragraphs=((ONE,), (TWO,))),
            Paragraphed(id="1", paragraphs=()),
            Paragraphed(id="x", paragraphs=((THREE,),)),
        ]
        assert [found.id for found in paragraph_documents(path, "train", size=1)] == ["0", "1"]
        assert [found.paragraphs for found in paragraph_documents(path, "test")] == [((FOUR,),)]

    def test_a_wrong_corpus_is_refused_at_once(self, tmp_path):
        with pytest.raises(ValueError, match="no such file or folder"):
            paragraph_documents(str(tmp_path / "nowhere"), "train")

    def test_storyworld(self):
        made = list(paragraph_documents("storyworld", "validation", size=2, seed=5))
        reports = [
            report
            for story in stories(seed=5, split="validation", stop=2)
            for report in story.cluster.documents
        ]
        assert [found.id for found in made] == [report.id for report in reports]
        for found, report in zip(made, reports, strict=True):
            lines = report.text.split("\n")[1:]  # the first is the title
            assert [" ".join(paragraph) for paragraph in found.paragraphs] == lines
            assert sum(map(len, found.paragraphs)) == len(report.sentences) - 1
