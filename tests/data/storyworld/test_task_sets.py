"""Storyworld as candidates, claims, coreference, pairs and tagged documents: they agree with the stories."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Any

import pytest

from cdlm_lab.data.candidates import is_clean
from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.data.document_pairs import check_splits
from cdlm_lab.data.records import (
    Claim,
    Cluster,
    Document,
    EntityTag,
    Mention,
    SentenceRef,
    Story,
    gold_clusters,
    mentions_of,
)
from cdlm_lab.data.storyworld import task_sets
from cdlm_lab.data.storyworld.stories import event_type_of, stories
from cdlm_lab.data.storyworld.task_sets import (
    read_storyworld_candidates,
    read_storyworld_claims,
    read_storyworld_pairs,
    read_storyworld_questions,
    read_storyworld_tags,
    read_storyworld_topics,
)
from cdlm_lab.data.tagged import TaggedSentence, spans_of

STORIES = 40
NUMBER = re.compile(r"\d[\d,]*\d|\d")
READERS: dict[str, Callable[..., Iterator[Any]]] = {
    "candidates": read_storyworld_candidates,
    "claims": read_storyworld_claims,
    "topics": read_storyworld_topics,
    "pairs": read_storyworld_pairs,
    "questions": read_storyworld_questions,
    "tags": read_storyworld_tags,
}


@pytest.fixture(params=READERS)
def read(request) -> Callable[..., Iterator[Any]]:
    return READERS[request.param]


def test_the_same_every_time(read):
    assert list(read("dev", 2)) == list(read("validation", 2))
    first = next(read("train", 10**6))  # made one at a time
    assert first == next(read("train", 2000))
    assert first != next(read("dev", 3))
    assert first != next(read("train", 3, seed=1))
    assert first != next(read("train", 3, start=1))


@pytest.mark.parametrize("split", ["all", "exam"])
def test_unknown_splits(read, split):
    with pytest.raises(ValueError, match=f"^split is '{split}'; choose one of train, dev, test$"):
        read(split, 3)


AT_LEAST_1 = "is 0; it must be at least 1"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        *((name, {"start": -1}, "start is -1; it must be at least 0") for name in READERS),
        *((n, {"stories": 0}, f"stories {AT_LEAST_1}") for n in ("candidates", "claims", "topics", "tags")),
        ("pairs", {"stories": 1}, "stories is 1; unrelated reports take at least 2"),
        ("pairs", {"unrelated": "hard"}, "unrelated is 'hard'; choose one of random, similar"),
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
    """given(story, ...): from now on these are the stories 0, 1, ..."""

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


class TestCandidates:
    def test_they_are_those_of_the_stories(self):
        read = list(read_storyworld_candidates("test", 8, seed=3, start=2))
        source = stories(seed=3, split="test", start=2, stop=10)
        assert read == [candidates for story in source for candidates in story.candidate_sets]
        assert len({one.id for one in read}) == len(read) > 8
        assert all(is_clean(one) for one in read)
        assert all(2 <= len(one.candidates) <= 8 for one in read)


SOLE = "The hall had 12 doors."
BOTH = "All 12 doors of the hall burnt."
FELL = "The hall burnt, the hall fell."
RAIN = "Rain fell."


class TestClaims:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            # Of four sentences "the" and "hall" stand in three, "doors" in two, "had" in one. So the first
            # scores log 4 + log 2 + 2 log 4/3 = 2.65, the last log 2 + 2 log 4/3 = 1.27, the third 0.58, the
            # second 0.
            (["The hall had 99 doors."], [SOLE, BOTH, FELL, RAIN]),
            # A rare word outweighs two frequent ones: "fell" gives log 2 = 0.69 to two sentences, "the" and
            # "hall" together 2 log 4/3 = 0.58 to three.
            (["The hall fell."], [FELL, RAIN, SOLE]),
            # Ties: "hall" gives log 4/3 to three sentences, "burnt" log 2 to two of them.
            (["HALL BURNT 12"], [FELL, BOTH, SOLE]),
            (["Nothing known"], [SOLE, RAIN]),
            # Neither label nor gold nor number matters.
            (["The hall had 12 doors.", "The hall had 7,000 doors.", "The hall had 13 doors."], [SOLE, BOTH]),
        ],
    )
    def test_retrieval_by_hand(self, given, texts, expected):
        gold = SentenceRef(document=0, sentence=2)
        labels = zip(texts, LABELS, ((), (gold,), ()), strict=False)
        claims = (Claim(id="c", text=text, label=label, evidence=at) for text, label, at in labels)
        first = report("r0", "The hall burns", SOLE, RAIN, "The hall burnt, the\nhall fell.")
        second = report("r1", "Hall burns down", RAIN, BOTH)
        given(made("s", first, second, claims=tuple(claims)))
        read = read_storyworld_claims("train", 1, evidence=len(expected))
        assert [one.evidence for one in read] == [tuple(expected)] * len(texts)

    @staticmethod
    @cache
    def read(**options) -> tuple[EvidencedClaim, ...]:
        return tuple(read_storyworld_claims("train", STORIES, **options))

    def test_they_are_those_of_the_stories(self, many):
        source = [(one.id, one.text, one.label, s.cluster.id) for s in many[:STORIES] for one in s.claims]
        assert [(one.id, one.text, one.label, one.group) for one in self.read()] == source
        labels = Counter(one.label for one in self.read())
        assert labels.keys() == set(LABELS)
        assert labels["supported"] == labels["refuted"] == 2 * STORIES

    @pytest.mark.parametrize("options", [{}, {"evidence": 8}])
    def test_evidence_is_of_the_story_and_no_headline(self, many, options):
        texts = {
            story.cluster.id: {
                " ".join(one.text[start:stop].split())
                for one in story.cluster.documents
                for start, stop in one.sentences[1:]
            }
            for story in many[:STORIES]
        }
        for one in self.read(**options):
            assert len(set(one.evidence)) == len(one.evidence) == options.get("evidence", 5)
            assert set(one.evidence) <= texts[one.group]
        fewer = read_storyworld_claims("train", 1, evidence=10_000)
        assert {len(one.evidence) for one in fewer} == {len(texts[many[0].cluster.id])}

    def test_how_often_the_number_is_retrieved(self, many):
        """As the docstring has it, on fewer stories."""
        hits, known = Counter(), Counter()
        by_id = {one.id: one for one in self.read()}
        for story in many[:STORIES]:
            for one in story.claims:
                gold = set()
                for at in one.evidence:
                    document = story.cluster.documents[at.document]
                    gold.add(" ".join(document.text[slice(*document.sentences[at.sentence])].split()))
                known[one.label] += 1
                hits[one.label] += bool(gold & set(by_id[one.id].evidence))
                evidence, numbers = " ".join(by_id[one.id].evidence), re.findall(r"\d[\d,]*", one.text)
                stated = any(re.search(rf"(?<![\d,]){number}(?![\d,]*\d)", evidence) for number in numbers)
                assert stated <= (one.label == "supported")
        assert hits["supported"] / known["supported"] > 0.95
        assert hits["refuted"] / known["refuted"] > 0.95
        assert not hits["not enough info"]


class TestTopics:
    def test_stories_become_topics(self):
        topics = list(read_storyworld_topics("test", 7, seed=3, start=2))
        names = ["storyworld-3-test-stories-2-4", "storyworld-3-test-stories-5-7"]
        assert [topic.id for topic in topics] == [*names, "storyworld-3-test-stories-8-8"]
        source = list(stories(seed=3, split="test", start=2, stop=9))
        subtopics = [list(dict.fromkeys(one.subtopic for one in topic.documents)) for topic in topics]
        names = [story.cluster.id for story in source]
        assert subtopics == [names[:3], names[3:6], names[6:]]
        documents = [document.id for topic in topics for document in topic.documents]
        assert documents == [document.id for story in source for document in story.cluster.documents]
        assert len(list(read_storyworld_topics("test", 4, stories_per_topic=1))) == 4
        assert len(list(read_storyworld_topics("test", 4, stories_per_topic=9))) == 1

    def test_mentions_are_those_of_the_stories(self, many):
        source = {
            document.id: (story, number)
            for story in many[:12]
            for number, document in enumerate(story.cluster.documents)
        }
        topics = list(read_storyworld_topics("train", 12))
        seen = 0
        for document in (document for topic in topics for document in topic.documents):
            story, number = source[document.id]
            text, spans = story.cluster.documents[number].text, story.cluster.documents[number].sentences
            gold = [mention for mention in story.mentions if mention.document == number]
            tags = {(tag.start, tag.end): tag.label for tag in story.tags if tag.document == number}
            assert "".join(document.tokens) == "".join(text.split())
            assert len(document.sentences) == len(spans)
            assert document.validated == tuple(range(len(document.sentences)))
            assert [
                ("".join(document.text_of(m).split()), m.kind, m.cluster, m.tag, m.sentence)
                for m in document.mentions
            ] == [
                (
                    "".join(text[m.start : m.end].split()),
                    m.kind,
                    f"{story.cluster.id}:{m.chain}",
                    tags.get((m.start, m.end), ""),
                    next(n for n, (start, end) in enumerate(spans) if start <= m.start and m.end <= end),
                )
                for m in sorted(gold, key=lambda m: (m.start, m.end))
            ]
            assert len({mention.place for mention in document.mentions}) == len(gold)
            seen += len(gold)
        assert seen == sum(len(story.mentions) for story in many[:12]) > 700

    def test_mentions_that_are_parts_of_words(self, given):
        """Storyworld has none so far; wherever a mention ends, a token does."""
        one = Document(id="s-0", text="Fire. Ann's half-built house", sentences=((0, 5), (6, 28)))
        other = Document(id="s-1", text="Ann", sentences=((0, 3),))
        mention = partial(Mention, document=0, kind="entity")
        mentions = (
            mention(start=6, end=9, chain="ann"),
            mention(start=6, end=28, chain="house"),
            mention(start=12, end=16, chain="half"),
        )
        tags = (
            EntityTag(document=1, start=12, end=16, label="ORG"),
            EntityTag(document=0, start=6, end=9, label="PER"),
        )
        given(made("s", one, other, mentions=mentions, tags=tags))
        (topic,) = read_storyworld_topics("train", 1)
        document = topic.documents[0]
        assert document.tokens == ("Fire", ".", "Ann", "'s", "half", "-built", "house")
        assert [(m.id, m.cluster, m.tokens, m.sentence, m.tag) for m in document.mentions] == [
            ("s-0:0", "s:ann", (2, 3), 1, "PER"),
            ("s-0:1", "s:house", (2, 7), 1, ""),
            ("s-0:2", "s:half", (4, 5), 1, ""),
        ]
        assert topic.documents[1].mentions == ()

    def test_clusters_link_documents_but_not_stories(self):
        topics = list(islice(read_storyworld_topics("train", 12), 4))
        for kind in ("event", "entity"):
            clusters = gold_clusters(topics, kind=kind).values()
            story_of = {d.id: d.subtopic for topic in topics for d in topic.documents}
            assert all(len({story_of[mention.document] for mention in each}) == 1 for each in clusters)
            assert sum(len({mention.document for mention in each}) > 1 for each in clusters) >= 12
        assert {mention.tag for mention in mentions_of(topics)} >= {"PER", "LOC", "ORG", ""}


def numbers_of(pair) -> list[int]:
    """The stories of both documents."""
    return [int(name.split("-")[3]) for name in pair.documents]


class TestPairs:
    def test_two_pairs_for_each_story(self):
        pairs = list(read_storyworld_pairs("dev", 24, seed=3, start=5))
        source = {story.cluster.id: story for story in stories(seed=3, split="validation", start=5, stop=29)}
        assert [pair.related for pair in pairs] == [True, False] * 24
        assert [pair.cluster for pair in pairs[::2]] == [pair.cluster for pair in pairs[1::2]] == list(source)
        assert len({pair.id for pair in pairs}) == 48
        owner = {document.id: name for name, story in source.items() for document in story.cluster.documents}
        for pair in pairs:
            first, second = (owner[name] for name in pair.documents)
            assert first == pair.cluster
            assert (first == second) == pair.related
            assert pair.first.id != pair.second.id
        assert all(one.first == other.first for one, other in zip(pairs[::2], pairs[1::2], strict=True))
        assert {pair.first.id > pair.second.id for pair in pairs[::2]} == {True, False}  # either order

    def test_documents_are_the_reports(self):
        pair = next(read_storyworld_pairs("train", 2))
        reports = {document.id: document for document in next(stories()).cluster.documents}
        report = reports[pair.first.id]
        assert pair.first.text_of() == " ".join(report.text.split())
        assert pair.first.sentences[0] == report.title
        assert len(pair.first.sentences) == len(report.sentences)

    def test_aligned_sentences_share_a_number(self):
        checked = 0
        for pair in read_storyworld_pairs("test", 40):
            if not pair.related:
                assert pair.aligned == ()
                continue
            assert pair.aligned
            assert 0 not in pair.aligned  # the headline
            assert len(pair.aligned) < len(pair.first.sentences)
            present = set(NUMBER.findall(pair.second.text_of()))
            for sentence in (pair.first.sentences[number] for number in pair.aligned):
                here = set(NUMBER.findall(sentence))
                checked += bool(here)
                assert not here or here & present, sentence
        assert checked > 150

    def test_aligned_is_the_gold_of_the_story(self, many):
        source = {story.cluster.id: story for story in many[:20]}
        for pair in read_storyworld_pairs("train", 20):
            if pair.related:
                first, second = (int(name.rpartition("-")[2]) for name in pair.documents)
                expected = {
                    end.sentence
                    for alignment in source[pair.cluster].alignments
                    if {alignment.source.document, alignment.target.document} == {first, second}
                    for end in (alignment.source, alignment.target)
                    if end.document == first
                }
                assert set(pair.aligned) == expected

    def test_unrelated_reports_are_of_one_type(self):
        kinds = {index: event_type_of(seed=0, split="train", index=index) for index in range(60)}
        partners = set()
        for pair in read_storyworld_pairs("train", 60):
            one, other = numbers_of(pair)
            alone = list(kinds.values()).count(kinds[one]) == 1
            assert kinds[one] == kinds[other] or alone
            partners.add(other - one)
            assert 0 <= other < 60
        assert len(partners) > 10

    def test_two_stories_are_enough(self):
        pairs = list(read_storyworld_pairs("train", 2))
        assert [numbers_of(pair)[1] for pair in pairs if not pair.related] == [1, 0]

    def test_splits_do_not_leak(self):
        check_splits({split: read_storyworld_pairs(split, 8) for split in ("train", "dev", "test")})
        early, late = (read_storyworld_pairs("train", 8, start=start) for start in (0, 8))
        check_splits({"early": early, "late": late})

    @pytest.mark.parametrize(("unrelated", "low", "high"), [("random", 0, 15), ("similar", 50, 61)])
    def test_unrelated_reports_of_any_event_or_of_one_of_the_same_kind(self, unrelated, low, high):
        pairs = list(read_storyworld_pairs("dev", 60, unrelated=unrelated))[1::2]
        assert not any(pair.related for pair in pairs)
        both = [numbers_of(pair) for pair in pairs]
        assert all(first != second for first, second in both)
        types = [[event_type_of(seed=0, split="validation", index=n) for n in one] for one in both]
        assert low <= sum(first == second for first, second in types) < high


def squeezed(text: str) -> str:
    return "".join(text.split())


class TestTags:
    def test_documents_are_the_stories(self):
        source = list(stories(seed=3, split="test", start=2, stop=10))
        read = list(read_storyworld_tags("test", 8, seed=3, start=2))
        assert [document.id for document in read] == [story.cluster.id for story in source]
        drawn = Counter()
        for document, story in zip(read, source, strict=True):
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
            assert [
                ("".join(document.sentences[n].words[span.first : span.stop]), span.label)
                for n in document.labelled
                for span in spans_of(document.sentences[n].tags)
            ] == [tag[1:] for tag in tags]
            drawn[number] += 1
        assert len(drawn) > 1  # not always the same report

    def test_words_are_cut_at_tags_in_the_labelled_report_alone(self, given):
        """ "Orn's" holds a name and more: where it is labelled "Orn" is a word, in context nobody knows."""
        tags = ((0, 0, 3, "PER"), (0, 10, 13, "PER"), (0, 14, 19, "NUM"), (1, 0, 3, "PER"))
        story = made(
            "c",
            Document(id="a", text="Orn's win\nOrn 1,986 won.", sentences=((0, 9), (10, 24))),
            Document(id="b", text="Orn's loss", sentences=((0, 10),)),
            tags=tuple(EntityTag(document=d, start=s, end=e, label=label) for d, s, e, label in tags),
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
        given(*(replace(story, cluster=replace(story.cluster, id=id)) for id in "cdefgh"))
        expected = (first + context["b"], second + context["a"])
        drawn = [expected.index(list(document.sentences)) for document in read_storyworld_tags("train", 6)]
        assert set(drawn) == {0, 1}

    def test_context_does_not_depend_on_tags(self, given, many):
        (document,) = read_storyworld_tags("train", 1)
        given(replace(many[0], tags=()))
        (without,) = read_storyworld_tags("train", 1)
        first = len(document.labelled)
        assert document.sentences[first:] == without.sentences[first:]
        assert document.sentences[:first] != without.sentences[:first]
