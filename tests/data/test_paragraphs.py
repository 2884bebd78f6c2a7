"""Documents as paragraphs of sentences: where a paragraph ends, what is dropped, and all of a corpus."""

from __future__ import annotations

import pytest

from cdlm_lab.data import clusters
from cdlm_lab.data.clusters import paragraph_documents
from cdlm_lab.data.records import Document
from cdlm_lab.data.storyworld.stories import stories

ONE = "The mill stood by the river."
TWO = "It burned down on Monday."
THREE = "Nobody was hurt in the fire."
FOUR = "The miller will build it again."
TITLE = "A fire in the old mill by the river"
LONG = "It is 20 in letters."  # one letter fewer is dropped
# sentencex would make four of the first line; the third stands where it starts.
GIVEN = "Mill of St. Ives. Burnt. No\none was hurt in the fire.\nThe miller will. Build it again."
SPANS = ((0, 24), (25, 53), (54, 87))
MILLER = "The miller will. Build it again."
AFTER_TITLE = ((0, len(TITLE)), (len(TITLE) + 1, len(TITLE) + 1 + len(ONE)))


@pytest.mark.parametrize(("text", "fields", "expected"), [
    (f"{ONE} {TWO}\n{THREE}\n\n \n{FOUR}\n", {}, ((ONE, TWO), (THREE,), (FOUR,))),
    (f"\r\n{ONE} {TWO}\r\n\r\n{THREE}", {}, ((ONE, TWO), (THREE,))),
    (f"It is 19 in letter. {ONE} {LONG}\nBy our editor.\n{TWO}", {}, ((ONE, LONG), (TWO,))),
    ("Short.\n\nBy our editor.", {}, ()),
    ("", {}, ()),
    # sentences of the source are kept
    (GIVEN, {"sentences": SPANS}, (("Mill of St. Ives. Burnt.", "No one was hurt in the fire."), (MILLER,))),
    (GIVEN, {"sentences": SPANS[2:]}, ((MILLER,),)),
    # a first line that is the title is no paragraph; only the first, and only all of it
    (f"{TITLE}\n{ONE}", {"title": TITLE}, ((ONE,),)),
    (TITLE, {"title": TITLE}, ()),
    (f"{ONE}\n{TITLE}", {"title": TITLE}, ((ONE,), (TITLE,))),
    (f"{TITLE} again\n{ONE}", {"title": TITLE}, ((f"{TITLE} again",), (ONE,))),
    (f"{TITLE}\n{ONE}", {}, ((TITLE,), (ONE,))),
    (f"{ONE}\n{TWO}", {"title": ""}, ((ONE,), (TWO,))),
    (f"{TITLE}\n{ONE}", {"title": TITLE, "sentences": AFTER_TITLE}, ((ONE,),)),
    # no other white space ends a paragraph, and all of it becomes single
    *((f"The mill{mark} stood by the river. {TWO}", {}, ((ONE, TWO),)) for mark in "\u2028\x85\xa0"),
])  # fmt: skip
def test_paragraphs(text, fields, expected):
    assert len(LONG) == clusters.LEAST_CHARACTERS
    one = clusters.paragraphed(Document(id="a", text=text, **fields))
    assert (one.id, one.paragraphs) == ("a", expected)


def test_every_document_of_every_cluster_in_order(write, tmp_path):
    records = [
        {"id": "c0", "documents": [f"{ONE}\n{TWO}", "Short."], "split": "train"},
        {"id": "c1", "documents": [{"id": "x", "title": "Mill", "text": THREE}], "split": "train"},
        {"id": "c2", "documents": [FOUR], "split": "test"},
    ]
    path = str(write("x.jsonl", records))
    assert [(one.id, one.paragraphs) for one in paragraph_documents(path, "train")] == [
        ("0", ((ONE,), (TWO,))),
        ("1", ()),
        ("x", ((THREE,),)),
    ]
    assert [one.id for one in paragraph_documents(path, "train", size=1)] == ["0", "1"]
    assert [one.paragraphs for one in paragraph_documents(path, "test")] == [((FOUR,),)]
    with pytest.raises(ValueError, match="no such file or folder"):  # at once
        paragraph_documents(str(tmp_path / "nowhere"), "train")


def test_storyworld():
    made = list(paragraph_documents("storyworld", "validation", size=2, seed=5))
    drawn = stories(seed=5, split="validation", stop=2)
    reports = [report for story in drawn for report in story.cluster.documents]
    for one, report in zip(made, reports, strict=True):
        assert one.id == report.id
        lines = report.text.split("\n")[1:]  # the first is the title
        assert [" ".join(paragraph) for paragraph in one.paragraphs] == lines
        assert sum(map(len, one.paragraphs)) == len(report.sentences) - 1
    digests = paragraph_documents("storyworld", "validation", size=1, by_topic=True)
    assert [one.id for one in digests] == ["storyworld-0-validation-0-digest"]
