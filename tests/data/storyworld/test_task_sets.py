"""Storyworld as candidates, claims, coreference, pairs and tagged documents, consistent with the stories."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.records import (
    Claim,
    Cluster,
    Document,
    EntityTag,
    SentenceRef,
    Story,
    TaggedSentence,
    gold_clusters,
    is_clean,
)
from cdlm_lab.data.splits import check_splits
from cdlm_lab.data.storyworld import task_sets
from cdlm_lab.data.storyworld.stories import stories

STORIES = 40
READERS = {
    name: getattr(task_sets, f"read_storyworld_{name}")
    for name in ("candidates", "claims", "topics", "pairs", "questions", "tags")
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_the_same_every_time(read):
    assert list(read("dev", 2)) == list(read("validation", 2))
    first = next(read("train", 10**6))  # made one at a time
    assert first == next(read("train", 2000))
    for split, options in (("dev", {}), ("train", {"seed": 1}), ("train", {"start": 1})):
        assert first != next(read(split, 3, **options))


AT_LEAST_1 = "is 0; it must be at least 1"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        *((n, {"split": "exam"}, "split is 'exam'; choose one of train, dev, test") for n in READERS),
        *((n, {"start": -1}, "start is -1; it must be at least 0") for n in READERS),
        *((n, {"stories": 0}, f"stories {AT_LEAST_1}") for n in ("candidates", "claims", "topics", "tags")),
        ("pairs", {"stories": 1}, "stories is 1; unrelated reports take at least 2"),
        (
            "pairs",
            {"unrelated": "hard"},
            "unrelated is 'hard'; choose one of random, similar, recurring, contradicting",
        ),
        ("questions", {"stories": 1}, "stories is 1; reports of another story take at least 2"),
        ("questions", {"sentences": 0}, f"sentences {AT_LEAST_1}"),
        ("questions", {"paragraphs": 1}, "paragraphs is 1; it must be at least 2"),
        ("claims", {"evidence": 0}, f"evidence {AT_LEAST_1}"),
        ("topics", {"stories_per_topic": 0}, f"stories_per_topic {AT_LEAST_1}"),
    ],
)
def test_arguments_out_of_range(name, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        READERS[name](**{"split": "train", "stories": 3} | arguments)


@pytest.fixture
def given(monkeypatch) -> Callable[..., None]:
    """`given(story, ...)` makes these stories the stories 0, 1, ... from now on."""

    def _given(*made: Story) -> None:
        monkeypatch.setattr(task_sets, "story", lambda *, seed, split, index: made[index])

    return _given


def made(identifier: str, *documents: Document, **records) -> Story:
    empty = dict.fromkeys(("mentions", "alignments", "tags", "questions", "candidate_sets", "claims"), ())
    return Story(cluster=Cluster(id=identifier, documents=documents), **empty | records)


def report(name: str, *sentences: str) -> Document:
    text, spans = "", []
    for sentence in sentences:
        spans.append((len(text), len(text) + len(sentence)))
        text += f"{sentence}\n"
    return Document(id=name, text=text, title=sentences[0], sentences=tuple(spans))


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_candidates_are_those_of_the_stories():
    read = list(task_sets.read_storyworld_candidates("test", 8, seed=3, start=2))
    source = stories(seed=3, split="test", start=2, stop=10)
    assert read == [candidates for story in source for candidates in story.candidate_sets]
    assert len({one.id for one in read}) == len(read) > 8
    assert all(is_clean(one) and 2 <= len(one.candidates) <= 8 for one in read)


# ---- claims ----

SOLE = "The hall had 12 doors."
BOTH = "All 12 doors of the hall burnt."
FELL = "The hall burnt, the hall fell."
RAIN = "Rain fell."


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # Of four sentences "the" and "hall" stand in three, "doors" in two, "had" in one. So the first
        # scores log 4 + log 2 + 2 log 4/3 = 2.65, the last log 2 + 2 log 4/3 = 1.27, the others 0.58 and 0.
        (["The hall had 99 doors."], [SOLE, BOTH, FELL, RAIN]),
        # A rare word, "fell" (log 2 = 0.69), outweighs two frequent ones, "the hall" (2 log 4/3 = 0.58).
        (["The hall fell."], [FELL, RAIN, SOLE]),
        # Ties: "hall" gives log 4/3 to three sentences, "burnt" log 2 to two of them.
        (["HALL BURNT 12"], [FELL, BOTH, SOLE]),
        (["Nothing known"], [SOLE, RAIN]),
        # Neither label nor gold nor number matters.
        (["The hall had 12 doors.", "The hall had 7,000 doors.", "The hall had 13 doors."], [SOLE, BOTH]),
    ],
)
def test_retrieval_by_hand(given, texts, expected):
    gold = SentenceRef(document=0, sentence=2)
    labels = zip(texts, LABELS, ((), (gold,), ()), strict=False)
    claims = (Claim(id="c", text=text, label=label, evidence=at) for text, label, at in labels)
    first = report("r0", "The hall burns", SOLE, RAIN, "The hall burnt, the\nhall fell.")
    given(made("s", first, report("r1", "Hall burns down", RAIN, BOTH), claims=tuple(claims)))
    read = task_sets.read_storyworld_claims("train", 1, evidence=len(expected))
    assert [one.evidence for one in read] == [tuple(expected)] * len(texts)


# ---- coreference ----


def test_mentions_are_those_of_the_stories_and_link_its_documents(many):
    topics = list(task_sets.read_storyworld_topics("train", 12))
    documents = {document.id: document for topic in topics for document in topic.documents}
    seen = 0
    for story in many[:12]:
        for number, source in enumerate(story.cluster.documents):
            document, text = documents[source.id], source.text
            gold = sorted(
                (mention for mention in story.mentions if mention.document == number),
                key=lambda mention: (mention.start, mention.end),
            )
            tags = {(tag.start, tag.end): tag.label for tag in story.tags if tag.document == number}
            assert "".join(document.tokens) == squeezed(text)
            assert len(document.sentences) == len(source.sentences)
            assert document.validated == tuple(range(len(document.sentences)))
            for mention, m in zip(document.mentions, gold, strict=True):
                assert squeezed(document.text_of(mention)) == squeezed(text[m.start : m.end])
                assert (mention.kind, mention.cluster) == (m.kind, f"{story.cluster.id}:{m.chain}")
                assert mention.tag == tags.get((m.start, m.end), "")
                start, end = source.sentences[mention.sentence]
                assert start <= m.start < m.end <= end
            assert len({mention.place for mention in document.mentions}) == len(gold)
            seen += len(gold)
    assert seen == sum(len(story.mentions) for story in many[:12]) > 700
    for kind in ("event", "entity"):
        clusters = gold_clusters(topics, kind=kind).values()
        assert all(len({documents[m.document].subtopic for m in each}) == 1 for each in clusters)
        assert sum(len({m.document for m in each}) > 1 for each in clusters) >= 12
    assert {m.tag for document in documents.values() for m in document.mentions} >= {"PER", "LOC", "ORG", ""}


# ---- document pairs ----

NUMBER = re.compile(r"\d[\d,]*\d|\d")


def numbers_of(pair) -> list[int]:
    """Return the numbers of the stories of both documents."""
    return [int(name.split("-")[3]) for name in pair.documents]


def test_two_pairs_for_each_story():
    pairs = list(task_sets.read_storyworld_pairs("dev", 24, seed=3, start=5))
    source = {story.cluster.id: story for story in stories(seed=3, split="validation", start=5, stop=29)}
    reports = {one.id: (name, one) for name, story in source.items() for one in story.cluster.documents}
    assert [pair.related for pair in pairs] == [True, False] * 24
    assert [pair.cluster for pair in pairs[::2]] == [pair.cluster for pair in pairs[1::2]] == list(source)
    assert len({pair.id for pair in pairs}) == 48
    for pair in pairs:
        (first, report), (second, _) = (reports[name] for name in pair.documents)
        assert first == pair.cluster
        assert (first == second) == pair.related
        assert pair.first.id != pair.second.id
        assert pair.first.text_of() == " ".join(report.text.split())
        assert pair.first.sentences[0] == report.title
        assert len(pair.first.sentences) == len(report.sentences)
    assert all(one.first == other.first for one, other in zip(pairs[::2], pairs[1::2], strict=True))
    assert {pair.first.id > pair.second.id for pair in pairs[::2]} == {True, False}  # either order


def test_aligned_sentences_are_the_gold_of_the_story_and_share_a_number(many):
    checked = 0
    source = {story.cluster.id: story for story in many[:STORIES]}
    for pair in task_sets.read_storyworld_pairs("train", STORIES):
        if not pair.related:
            assert pair.aligned == ()
            continue
        first, second = (int(name.rpartition("-")[2]) for name in pair.documents)
        assert set(pair.aligned) == {
            end.sentence
            for alignment in source[pair.cluster].alignments
            if {alignment.source.document, alignment.target.document} == {first, second}
            for end in (alignment.source, alignment.target)
            if end.document == first
        }
        assert 0 not in pair.aligned  # the headline
        assert 0 < len(pair.aligned) < len(pair.first.sentences)
        present = set(NUMBER.findall(pair.second.text_of()))
        for sentence in (pair.first.sentences[number] for number in pair.aligned):
            here = set(NUMBER.findall(sentence))
            checked += bool(here)
            assert not here or here & present, sentence
    assert checked > 150


@pytest.mark.parametrize("unrelated", ["recurring", "contradicting"])
def test_a_report_told_otherwise_has_the_same_words_but_for_names_and_numbers(unrelated: str):
    """True of all but a few reports, which end elsewhere as names and numbers have other lengths."""
    pairs = list(task_sets.read_storyworld_pairs("dev", 40, unrelated=unrelated))
    assert [pair.related for pair in pairs] == [True, False] * 40
    assert pairs == list(task_sets.read_storyworld_pairs("dev", 40, unrelated=unrelated))
    changing = re.compile((r"[A-Z][a-z]+|" if unrelated == "contradicting" else "") + r"\d[\d,]*|\ban?\b")
    alike = 0
    for true, false in zip(pairs[::2], pairs[1::2], strict=True):
        assert (true.first, true.cluster, ()) == (false.first, false.cluster, false.aligned)
        assert all((true.aligned, true.cluster in true.first.id))
        first, *texts = (one.text_of() for one in (true.first, true.second, false.second))
        words = [re.findall(r"\d[\d,]*\d|\w+", text.lower()) for text in texts]
        if len(words[0]) == len(words[1]):
            assert sum(map(str.__ne__, *words)) >= 4, "one of them cannot be true"
            same_words = unrelated == "recurring" or set(words[0]) == set(words[1])
            alike += same_words and changing.sub("#", texts[0]) == changing.sub("#", texts[1])
        if unrelated == "recurring":
            first_numbers, same, other = ({*re.findall(r"\d[\d,]*", text)} for text in (first, *texts))
            assert len(first_numbers & same) > len(first_numbers & other)
    assert alike >= 36
    twisted = sum(unrelated in pair.first.id for pair in pairs[::2])
    assert unrelated == "recurring" or 10 < twisted < 30, "each telling is the true one about as often"
    assert all(
        (unrelated in pairs[n].second.id) != (unrelated in pairs[n + 1].second.id) for n in range(0, 80, 2)
    )
    check_splits({"early": pairs[:40], "late": pairs[40:]})


def test_two_stories_are_enough_and_splits_do_not_leak():
    pairs = list(task_sets.read_storyworld_pairs("train", 2))
    assert [numbers_of(pair)[1] for pair in pairs if not pair.related] == [1, 0]
    check_splits({split: task_sets.read_storyworld_pairs(split, 8) for split in ("train", "dev", "test")})
    early, late = (task_sets.read_storyworld_pairs("train", 8, start=start) for start in (0, 8))
    check_splits({"early": early, "late": late})


# ---- tags ----


def test_words_are_cut_at_tags_in_the_labelled_report_alone(given):
    """ "Orn's" holds a name and more: where it is labelled "Orn" is a word; in context its tag is unknown."""
    tags = ((0, 0, 3, "PER"), (0, 10, 13, "PER"), (0, 14, 19, "NUM"), (1, 0, 3, "PER"))
    story = made(
        "c",
        Document(id="a", text="Orn's win\nOrn 1,986 won.", sentences=((0, 9), (10, 24))),
        Document(id="b", text="Orn's loss", sentences=((0, 10),)),
        tags=tuple(EntityTag(document=d, start=s, end=e, label=label) for d, s, e, label in tags),
    )
    won = ("Orn", "1,986", "won", ".")
    first = [
        TaggedSentence(words=("Orn", "'s", "win"), tags=("B-PER", "O", "O")),
        TaggedSentence(words=won, tags=("B-PER", "B-NUM", "O", "O")),
    ]
    second = [TaggedSentence(words=("Orn", "'s", "loss"), tags=("B-PER", "O", "O"))]
    first_context = [TaggedSentence(words=("Orn's", "win")), TaggedSentence(words=won)]
    expected = ([*first, TaggedSentence(words=("Orn's", "loss"))], second + first_context)
    # Which report is labelled is drawn by the id.
    given(*(replace(story, cluster=replace(story.cluster, id=id)) for id in "cdefgh"))
    read = task_sets.read_storyworld_tags("train", 6)
    assert {expected.index(list(document.sentences)) for document in read} == {0, 1}
