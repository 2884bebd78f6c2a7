"""Storyworld as tagged documents: words, tags and reports agree with the stories they come from."""

from collections import Counter
from dataclasses import replace

import pytest

from cdlm_lab.data.records import Cluster, Document, EntityTag, Story
from cdlm_lab.data.storyworld import task_sets as tag_storyworld
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.storyworld.task_sets import read_storyworld_tags
from cdlm_lab.data.tagged import TaggedSentence, spans_of


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_documents_are_the_stories():
    given = list(stories(seed=3, split="test", start=2, stop=10))
    found = list(read_storyworld_tags("test", 8, seed=3, start=2))
    assert [document.id for document in found] == [story.cluster.id for story in given]
    drawn = Counter()
    for document, story in zip(found, given, strict=True):
        reports = story.cluster.documents
        # The labelled part is one report, all of it, and stands first; the others follow in order.
        labelled = "".join(word for n in document.labelled for word in document.sentences[n].words)
        (number,) = [n for n, report in enumerate(reports) if squeezed(report.text) == labelled]
        assert document.labelled == tuple(range(len(reports[number].sentences)))
        rest = [report for n, report in enumerate(reports) if n != number]
        words = [word for s in document.sentences[len(document.labelled) :] for word in s.words]
        assert "".join(words) == "".join(squeezed(report.text) for report in rest)
        assert len(document.sentences) == sum(len(report.sentences) for report in reports)
        tags = sorted(
            (tag.start, squeezed(reports[number].text[tag.start : tag.end]), tag.label)
            for tag in story.tags
            if tag.document == number
        )
        spans = [
            ("".join(document.sentences[n].words[span.first : span.stop]), span.label)
            for n in document.labelled
            for span in spans_of(document.sentences[n].tags)
        ]
        assert spans == [tag[1:] for tag in tags]
        drawn[number] += 1
    assert len(drawn) > 1  # not always the same report


def test_same_documents_every_time():
    assert list(read_storyworld_tags("dev", 2)) == list(read_storyworld_tags("validation", 2))
    first = next(read_storyworld_tags("train", 10**9))  # made one at a time
    assert first == next(read_storyworld_tags("train", 1))
    assert first != next(read_storyworld_tags("train", 1, seed=1))
    later = list(read_storyworld_tags("train", 3))[2]
    assert later == next(read_storyworld_tags("train", 1, start=2))


def test_words_are_cut_at_tags_in_the_labelled_report_alone(monkeypatch):
    """ "Orn's" holds a name and more: where it is labelled "Orn" is a word, in context nobody knows."""
    texts = ("Orn's win\nOrn 1,986 won.", "Orn's loss")
    story = Story(
        cluster=Cluster(
            id="c",
            documents=(
                Document(id="a", text=texts[0], sentences=((0, 9), (10, 24))),
                Document(id="b", text=texts[1], sentences=((0, 10),)),
            ),
        ),
        mentions=(),
        alignments=(),
        tags=(
            EntityTag(document=0, start=0, end=3, label="PER"),
            EntityTag(document=0, start=10, end=13, label="PER"),
            EntityTag(document=0, start=14, end=19, label="NUM"),
            EntityTag(document=1, start=0, end=3, label="PER"),
        ),
        questions=(),
        candidate_sets=(),
        claims=(),
    )
    first = [
        TaggedSentence(words=("Orn", "'s", "win"), tags=("B-PER", "O", "O")),
        TaggedSentence(words=("Orn", "1,986", "won", "."), tags=("B-PER", "B-NUM", "O", "O")),
    ]
    second = [TaggedSentence(words=("Orn", "'s", "loss"), tags=("B-PER", "O", "O"))]
    context = {
        "a": [TaggedSentence(words=("Orn's", "win")), TaggedSentence(words=("Orn", "1,986", "won", "."))],
        "b": [TaggedSentence(words=("Orn's", "loss"))],
    }
    # Which report is labelled is drawn by the id.
    several = [replace(story, cluster=replace(story.cluster, id=id)) for id in "cdefgh"]
    monkeypatch.setattr(tag_storyworld, "told", lambda **_: several)
    expected = (first + context["b"], second + context["a"])
    drawn = [expected.index(list(document.sentences)) for document in read_storyworld_tags("train", 6)]
    assert set(drawn) == {0, 1}


def test_context_does_not_depend_on_tags(monkeypatch):
    (story,) = stories(seed=0, split="train", start=0, stop=1)
    (document,) = read_storyworld_tags("train", 1)
    bare = replace(story, tags=())
    monkeypatch.setattr(tag_storyworld, "told", lambda **_: [bare])
    (without,) = read_storyworld_tags("train", 1)
    first = len(document.labelled)
    assert document.sentences[first:] == without.sentences[first:]
    assert document.sentences[:first] != without.sentences[:first]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "all"}, "split is 'all'; choose one of train, dev, test"),
        ({"stories": 0}, "stories is 0; it must be at least 1"),
        ({"start": -1}, "start is -1; it must be at least 0"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        read_storyworld_tags(**{"split": "train", "stories": 1, **arguments})
