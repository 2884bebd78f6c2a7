"""Tagged documents from storyworld: reports of an invented event, one of them labelled, without any file.

The names of a story are invented and occur in several of its reports, so that what a word is can be learned
from the places where it stands elsewhere. Labels are those of `records.EntityTag`.

Sets of candidate answers from storyworld: a question about a number of an invented event, and sentences of
one report, of which those that state the number are right.

Every set is clean (`candidate_sets.is_clean`). The sentences are in the order of the report, without the
headline; a story has up to three sets of up to eight candidates.

Claims about invented events from storyworld, with sentences of its reports as evidence.

A story has up to six claims about its numbers, two of each label: with the true number (supported), with
another (refuted), and about what no report of the story states (not enough info).

The evidence is retrieved by the words of the claim, numbers left out: a sentence scores the sum of
log(n / m) over the words that it shares with the claim, m of the story's n sentences having that word; equal
scores go to the earlier sentence. Labels and gold sentences are not looked at, and without the number a true
claim and a false one fetch the same sentences. Every claim gets as many. Sentences that several reports have
word for word count once, headlines not at all: they state no numbers.

Over 300 stories of train (seed 0), of 72 sentences on average: among five sentences retrieved is at least
one that states the true number for 99.3% of the supported claims and 98.7% of the refuted ones, and of all
sentences that state it 88% are.

Numbers of a story differ, and a false one is none of them. So a claim whose number stands in the evidence is
supported; to tell refuted claims from those without evidence takes reading what a number is about.

Coreference data from storyworld: gold mentions of invented events and entities, without any file.

A story is a sub-topic; several stories make a topic, so that reports of different events have to be told
apart, as in ECB+. Names are invented anew for each story, but the nouns that stand for them ("the city", "the
bridge") recur.

Document pairs from storyworld: reports of one invented event, or of two events.

Questions over several paragraphs from storyworld: each takes two reports of one invented event.

A story has one or two bridge questions ("Where did the person grow up who opened the gates?": one report, the
clue, tells who did; another, the reply, where that person grew up) and one comparison of two reports' numbers
(which of two places has more, or yes or no).

Two paragraphs hold a supporting sentence each, at a place in the run of sentences that is drawn from those
which the report's length allows. The others are drawn runs of other reports: of the story's own, then of
other stories. A bridge question takes first, if the range has one, another story's reply to a question of the
same wording, then reports of that story and of its own in turn, so that of four paragraphs two are of each.
Otherwise the one sentence that tells where somebody grew up, or the one of the story most told about, would
be the answer, clue or no clue.

Other stories are those of the same type of event, then the rest, each counted from the next story on and,
after the last, from the first again. The names that a question turns on stand in none but the two paragraphs,
and another story's clue to the same wording in none. The order of the paragraphs is drawn. Where in its
report a supporting sentence stands is not: never first, where drawn runs may begin.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, count, islice, zip_longest
from math import fsum, log
from random import Random
from typing import get_args

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.data.document_pairs import DocumentPair, Hardness, PairDocument
from cdlm_lab.data.questions import MultihopQuestion, Paragraph
from cdlm_lab.data.records import (
    SPLIT_NAMES,
    CandidateSet,
    Cluster,
    CoreferenceDocument,
    CoreferenceMention,
    Document,
    EntityTag,
    Question,
    SentenceRef,
    Span,
    Split,
    Story,
    Topic,
    token_spans,
)
from cdlm_lab.data.storyworld.stories import event_type_of, stories, story
from cdlm_lab.data.storyworld.stories import stories as told
from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, TagSpan, tags_of


def read_storyworld_candidates(
    split: str, stories_count: int, *, seed: int = 0, start: int = 0
) -> Iterator[CandidateSet]:
    """The sets of each story, one at a time, the same on every machine.

    Args:
        split: train, dev or test; splits share no facts.
        stories_count: how many stories; there are more sets than that.
        seed: of the stories.
        start: number of the first story.

    Raises:
        ValueError: an unknown split, `stories_count` below 1, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    for name, value, least in (("stories_count", stories_count, 1), ("start", start, 0)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    told = stories(seed=seed, split=SPLIT_NAMES[split], start=start, stop=start + stories_count)
    return (candidates for story in told for candidates in story.candidate_sets)


_WORD = re.compile(r"[^\W\d_]+")  # letters alone, so that numbers are no words


def read_storyworld_claims(
    split: str, stories_count: int, *, evidence: int = 5, seed: int = 0, start: int = 0
) -> Iterator[EvidencedClaim]:
    """The claims of each story, one at a time, the same on every machine; their group is the story.

    Args:
        split: train, dev or test; splits share no facts.
        stories_count: how many.
        evidence: sentences retrieved for a claim, best first; fewer if the story has fewer.
        seed: of the stories.
        start: number of the first story.

    Raises:
        ValueError: an unknown split, `stories_count` or `evidence` below 1, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    for name, value, least in (
        ("stories_count", stories_count, 1),
        ("evidence", evidence, 1),
        ("start", start, 0),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    members = told(seed=seed, split=SPLIT_NAMES[split], start=start, stop=start + stories_count)
    return (claim for story in members for claim in _claims(story, evidence=evidence))


def _claims(story: Story, *, evidence: int) -> Iterator[EvidencedClaim]:
    sentences = _sentences(story.cluster)
    for claim in story.claims:
        yield EvidencedClaim(
            id=claim.id,
            text=claim.text,
            evidence=_retrieved(claim.text, sentences)[:evidence],
            label=claim.label,
            group=story.cluster.id,
        )


def _sentences(cluster: Cluster) -> tuple[str, ...]:
    """Those of all reports in order, each once, without headlines, which come first."""
    texts = (
        " ".join(report.text[first:stop].split())
        for report in cluster.documents
        for first, stop in report.sentences[1:]
    )
    return tuple(dict.fromkeys(texts))


def _retrieved(text: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """All sentences, best first."""
    asked, words = _words(text), [_words(sentence) for sentence in sentences]
    holders = Counter(word for found in words for word in found)
    # fsum is exact, so that the order in which a set yields its words moves no score.
    scores = [fsum(log(len(words) / holders[word]) for word in asked & found) for found in words]
    return tuple(sentences[place] for place in sorted(range(len(words)), key=lambda at: -scores[at]))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def read_storyworld_topics(
    split: str, clusters: int, *, seed: int = 0, start: int = 0, stories_per_topic: int = 3
) -> Iterator[Topic]:
    """Topics of invented stories, one at a time, the same on every machine.

    Args:
        split: train, dev or test; splits share no facts.
        clusters: how many stories in all. A last topic of fewer than `stories_per_topic` is kept.
        seed: of the stories.
        start: number of the first story.
        stories_per_topic: 1 for topics in which all documents report the same event.

    Raises:
        ValueError: an unknown split, `clusters` or `stories_per_topic` below 1, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    for name, value, least in (
        ("clusters", clusters, 1),
        ("stories_per_topic", stories_per_topic, 1),
        ("start", start, 0),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    numbers = range(start, start + clusters)
    return (
        _topic(numbers[first : first + stories_per_topic], split=SPLIT_NAMES[split], seed=seed)
        for first in range(0, clusters, stories_per_topic)
    )


def _topic(numbers: range, *, split: Split, seed: int) -> Topic:
    topic = f"storyworld-{seed}-{split}-stories-{numbers[0]}-{numbers[-1]}"
    members = stories(seed=seed, split=split, start=numbers[0], stop=numbers[-1] + 1)
    return Topic(
        id=topic,
        documents=tuple(
            _document(story, number, topic)
            for story in members
            for number in range(len(story.cluster.documents))
        ),
    )


def _document(story: Story, number: int, topic: str) -> CoreferenceDocument:
    document = story.cluster.documents[number]
    gold = sorted((m for m in story.mentions if m.document == number), key=lambda m: (m.start, m.end))
    boundaries = set(chain.from_iterable((mention.start, mention.end) for mention in gold))
    tokens: list[Span] = []
    sentences: list[Span] = []
    for start, end in document.sentences:
        before = len(tokens)
        cuts = (place - start for place in boundaries)
        tokens += ((start + a, start + b) for a, b in token_spans(document.text[start:end], boundaries=cuts))
        sentences.append((before, len(tokens)))
    labels = {(tag.start, tag.end): tag.label for tag in story.tags if tag.document == number}
    starts, first = [start for start, _ in tokens], [start for start, _ in sentences]
    spans = [(bisect_left(starts, mention.start), bisect_left(starts, mention.end)) for mention in gold]
    return CoreferenceDocument(
        id=document.id,
        topic=topic,
        subtopic=story.cluster.id,
        tokens=tuple(document.text[start:end] for start, end in tokens),
        sentences=tuple(sentences),
        validated=tuple(range(len(sentences))),
        mentions=tuple(
            CoreferenceMention(
                id=f"{document.id}:{index}",
                document=document.id,
                tokens=span,
                sentence=bisect_right(first, span[0]) - 1,
                kind=mention.kind,
                cluster=f"{story.cluster.id}:{mention.chain}",
                tag=labels.get((mention.start, mention.end), ""),
            )
            for index, (mention, span) in enumerate(zip(gold, spans, strict=True))
        ),
    )


_REMEMBERED = 64  # stories


def read_storyworld_pairs(
    split: str, stories: int, *, seed: int = 0, start: int = 0, unrelated: Hardness = "similar"
) -> Iterator[DocumentPair]:
    """A related and an unrelated pair for each story, one at a time, the same on every machine.

    Related are two reports of the story, in a drawn order. Unrelated are the first of these and a report of
    another of the stories. The sentences of a document are those of its report; the first is the headline.

    A sentence of the first report is `aligned` if it states a number of the event (18 killed, 329 injured)
    that a sentence of the second report states too, in whatever words. That is what `Story.alignments` holds.
    Not counted are headlines, which state no numbers; numbers that belong to a person or a thing rather than
    to the event (an age, the people a firm employs); and what is told without numbers, such as a name or a
    quotation, even if both reports have it. Each related pair has aligned sentences, and they are sure; that
    another sentence has nothing to do with the second report is not.

    A pair is of the cluster of its first report: the story.

    Args:
        split: train, dev or test; splits share no facts.
        stories: how many; at least 2. Pairs lie within them, so that ranges that do not overlap share no
            documents.
        seed: of the stories and of what is drawn.
        start: number of the first story.
        unrelated: "similar", of the same type of event (a ferry that sank, a bridge that fell) unless the
            type occurs once; or "random", of any.

    Raises:
        ValueError: an unknown split or `unrelated`, fewer than 2 stories, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    if stories < 2:
        raise ValueError(f"stories is {stories}; unrelated reports take at least 2")
    if start < 0:
        raise ValueError(f"start is {start}; it must be at least 0")
    if unrelated not in get_args(Hardness):
        raise ValueError(f"unrelated is {unrelated!r}; choose one of {', '.join(get_args(Hardness))}")
    return _pairs(SPLIT_NAMES[split], range(start, start + stories), seed=seed, unrelated=unrelated)


def _pairs(split: Split, numbers: range, *, seed: int, unrelated: Hardness) -> Iterator[DocumentPair]:
    types = {
        number: event_type_of(seed=seed, split=split, index=number) if unrelated == "similar" else ""
        for number in numbers
    }
    members: dict[str, list[int]] = {}
    for number, name in types.items():
        members.setdefault(name, []).append(number)

    @lru_cache(maxsize=_REMEMBERED)
    def told(number: int) -> Story:
        return story(seed=seed, split=split, index=number)

    for number in numbers:
        rng = Random(f"pairs/{seed}/{split}/{number}")
        this = told(number)
        reports = _aligned(this)
        first, second = rng.choice(sorted(reports))
        yield _pair(this, first, this, second, aligned=reports[first, second])
        alike = members[types[number]] if len(members[types[number]]) > 1 else numbers
        place = rng.randrange(len(alike) - 1)  # of the others
        other = told(alike[place + (place >= alike.index(number))])
        yield _pair(this, first, other, rng.randrange(len(other.cluster.documents)), aligned=())


def _aligned(told: Story) -> Mapping[tuple[int, int], tuple[int, ...]]:
    """Two reports of a story, in order -> sentences of the first that state a number of the second."""
    found: dict[tuple[int, int], set[int]] = {}
    for alignment in told.alignments:
        for here, there in ((alignment.source, alignment.target), (alignment.target, alignment.source)):
            found.setdefault((here.document, there.document), set()).add(here.sentence)
    return {reports: tuple(sorted(sentences)) for reports, sentences in found.items()}


def _pair(told: Story, first: int, other: Story, second: int, *, aligned: tuple[int, ...]) -> DocumentPair:
    left, right = told.cluster.documents[first], other.cluster.documents[second]
    return DocumentPair(
        id=f"{left.id}+{right.id}",
        first=_document_pair_storyworld(left),
        second=_document_pair_storyworld(right),
        related=told is other,
        aligned=aligned,
        cluster=told.cluster.id,
    )


def _document_pair_storyworld(report: Document) -> PairDocument:
    sentences = tuple(" ".join(report.text[start:end].split()) for start, end in report.sentences)
    return PairDocument(id=report.id, sentences=sentences)


_REMEMBERED_QUESTION_STORYWORLD = 128  # stories


def read_storyworld_questions(
    split: str,
    stories: int,
    *,
    seed: int = 0,
    start: int = 0,
    sentences: int = 4,
    paragraphs: int = 4,
    withheld: bool = False,
) -> Iterator[MultihopQuestion]:
    """The questions of each story, one at a time, the same on every machine.

    A paragraph is a run of sentences of a report, under its headline; a headline that another paragraph of
    the question has is numbered: "The gap in the road (2)".

    Args:
        split: train, dev or test; splits share no facts.
        stories: how many; at least 2. Paragraphs lie within them, so that ranges that do not overlap share no
            documents. Questions and the runs that support them do not depend on how many there are; the other
            paragraphs, and the order, do where the range ends before the story that a longer one would take.
        seed: of the stories and of what is drawn.
        start: number of the first story.
        sentences: of a paragraph; fewer if the report has fewer.
        paragraphs: of a question; at least 2.
        withheld: what a system can score that sees one of the two documents: the clue of a bridge question,
            or one of the two sentences compared, drawn, is not in the context. In its paragraph's place is
            another run of the same report, or, if that is too short, of a further one. The other paragraphs
            and `answer` are the same as without; the answer to a bridge question still stands in the context,
            that to a comparison may not. `supporting` has only the sentence that is left.

    Raises:
        ValueError: an unknown split, `stories` or `paragraphs` below 2, `start` below 0, `sentences` below 1;
            while reading: `paragraphs` is more than the reports of the range allow.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    if stories < 2:
        raise ValueError(f"stories is {stories}; reports of another story take at least 2")
    counts = (("start", start, 0), ("sentences", sentences, 1), ("paragraphs", paragraphs, 2))
    for name, value, least in counts:
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    given = _range(SPLIT_NAMES[split], range(start, start + stories), seed=seed)
    return (
        _question(given, number, asked, sentences=sentences, paragraphs=paragraphs, withheld=withheld)
        for number in given.numbers
        for asked in given.told(number).questions
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """Stories by number."""

    numbers: range
    told: Callable[[int], Story]
    type_of: Callable[[int], str]

    def others(self, number: int) -> Iterator[int]:
        """All but `number`, those of its type of event first, each from the next one on."""
        here, first = number - self.numbers.start, self.type_of(number)
        turned = (*self.numbers[here + 1 :], *self.numbers[:here])
        yield from (other for other in turned if self.type_of(other) == first)
        yield from (other for other in turned if self.type_of(other) != first)


def _range(split: Split, numbers: range, *, seed: int) -> _Range:
    @lru_cache(maxsize=_REMEMBERED_QUESTION_STORYWORLD)
    def told(number: int) -> Story:
        return story(seed=seed, split=split, index=number)

    @cache
    def type_of(number: int) -> str:
        return event_type_of(seed=seed, split=split, index=number)

    return _Range(numbers=numbers, told=told, type_of=type_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Sentences `first` to `stop` of a report, `stop` not included."""

    report: Document
    first: int
    stop: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each with the space or new line that follows it; not so the last."""
        spans = self.report.sentences[self.first : self.stop]
        ends = (*(start for start, _ in spans[1:]), spans[-1][1])
        return tuple(self.report.text[start:end] for (start, _), end in zip(spans, ends, strict=True))

    def holds(self, sentence: int) -> bool:
        """Whether it has that sentence of the report."""
        return self.first <= sentence < self.stop

    def tells(self, names: Collection[str]) -> bool:
        """Whether one of `names` stands in it or in its headline."""
        text = f"{self.report.title}\n{''.join(self.sentences)}"
        return any(name in text for name in names)


def _question(
    given: _Range, number: int, asked: Question, *, sentences: int, paragraphs: int, withheld: bool
) -> MultihopQuestion:
    rng, this = Random(f"questions/{asked.id}"), given.told(number)
    runs = []
    for at in asked.supporting:  # whose names stand nowhere else in the story
        every = _runs(this.cluster.documents[at.document], sentences)
        runs.append(rng.choice([run for run in every if run.holds(at.sentence)]))
    facts = [at.sentence - run.first for at, run in zip(asked.supporting, runs, strict=True)]
    distractors = _distractors(given, number, asked, rng=rng, sentences=sentences)
    runs += islice(distractors, paragraphs - len(runs))
    order = list(range(paragraphs))
    rng.shuffle(order)
    titles: dict[int, str] = {}
    for which in order:
        titles[which] = _unlike(str(runs[which].report.title), titles.values())
    supporting = [(titles[which], fact) for which, fact in enumerate(facts)]
    if withheld:  # drawn last, so that all else is as without
        lost = 0 if asked.hops == "bridge" else rng.randrange(2)
        silent = _silent(runs[lost].report, sentences, names=_names(this, asked))
        runs[lost] = rng.choice(silent) if silent else next(distractors)
        del supporting[lost], titles[lost]
        titles[lost] = _unlike(str(runs[lost].report.title), titles.values())
    return MultihopQuestion(
        id=asked.id,
        text=asked.text,
        paragraphs=tuple(Paragraph(title=titles[which], sentences=runs[which].sentences) for which in order),
        answer=asked.answer,
        supporting=tuple(supporting),
        kind=asked.hops,
    )


def _distractors(
    given: _Range, number: int, asked: Question, *, rng: Random, sentences: int
) -> Iterator[_Run]:
    """Runs of reports that do not support the answer, each of another report."""
    this = given.told(number)
    names, link = _names(this, asked), _link(this, asked)
    used = {this.cluster.documents[at.document].id for at in asked.supporting}

    def runs_of(other: int) -> Iterator[_Run]:
        told = given.told(other)
        # Another story's clue would make the question one about that story as well.
        alike = [one for one in told.questions if link and _link(told, one) == link]
        hidden = names.union(*(_names(told, one) for one in alike))
        reports = [report for report in told.cluster.documents if report.id not in used]
        rng.shuffle(reports)
        for report in reports:
            if runs := _silent(report, sentences, names=hidden):
                yield rng.choice(runs)

    rival, replies = _rival(given, number, link=link, names=names, sentences=sentences)
    if replies:
        reply = rng.choice(replies)
        used.add(reply.report.id)
        yield reply
    for both in zip_longest(runs_of(rival) if replies else (), runs_of(number)):
        yield from filter(None, both)
    for other in given.others(number):
        if other != rival:
            yield from runs_of(other)
    raise ValueError(
        f"question {asked.id}: the {len(given.numbers)} stories of the range have no report left for another "
        "paragraph; give more stories, or ask for fewer paragraphs"
    )


def _rival(
    given: _Range, number: int, *, link: str, names: Collection[str], sentences: int
) -> tuple[int, list[_Run]]:
    """Another story with a question of the same wording, and the runs that hold its reply; -1 and none if
    there is no such story, or `link` is ""."""
    for other in given.others(number) if link else ():
        told = given.told(other)
        for question in told.questions:
            if _link(told, question) == link:
                at = question.supporting[1]
                silent = _silent(told.cluster.documents[at.document], sentences, names=names)
                if runs := [run for run in silent if run.holds(at.sentence)]:
                    return other, runs
    return -1, []


def _runs(report: Document, sentences: int) -> list[_Run]:
    """All of that length, or the whole report without its headline, which is the first sentence."""
    stop = len(report.sentences)
    length = min(sentences, stop - 1)
    return [_Run(report=report, first=first, stop=first + length) for first in range(1, stop - length + 1)]


def _silent(report: Document, sentences: int, *, names: Collection[str]) -> list[_Run]:
    return [run for run in _runs(report, sentences) if not run.tells(names)]


def _named(told: Story, at: SentenceRef) -> dict[str, str]:
    """Part in the story -> name, of all whom a sentence names."""
    report = told.cluster.documents[at.document]
    start, end = report.sentences[at.sentence]
    return {
        mention.chain: report.text[mention.start : mention.end]
        for mention in told.mentions
        if mention.document == at.document
        and mention.kind == "entity"
        and start <= mention.start
        and mention.end <= end
    }


def _names(told: Story, asked: Question) -> set[str]:
    """Of a bridge question the link and the answer, of a comparison both places."""
    return {name for at in asked.supporting for name in _named(told, at).values()}


def _link(told: Story, asked: Question) -> str:
    """The part in the story that both supporting sentences name; it tells how the question is worded. "" in a
    comparison."""
    first, second = (_named(told, at).keys() for at in asked.supporting)
    return "".join(sorted(first & second))


def _unlike(title: str, taken: Collection[str]) -> str:
    """The title, with the least number from 2 that makes it differ from those taken."""
    numbered = chain((title,), (f"{title} ({number})" for number in count(2)))
    return next(one for one in numbered if one not in taken)


def read_storyworld_tags(
    split: str, stories: int, *, seed: int = 0, start: int = 0
) -> Iterator[TaggedDocument]:
    """A document for each story, one at a time, the same on every machine.

    It is the reports of the story one after the other: first a drawn one, which is labelled, then the others
    in their order, which are context. Words are cut as in `coreference_storyworld.token_spans`; those of the
    labelled report also where a span begins or ends, which nobody knows of text without labels: "Orn's" is
    one word of the context, though the labelled report may have "Orn" and "'s".

    Args:
        split: train, dev or test; splits share no facts.
        stories: how many.
        seed: of the stories and of what is drawn.
        start: number of the first story.

    Raises:
        ValueError: an unknown split, `stories` below 1, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    for name, value, least in (("stories", stories, 1), ("start", start, 0)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    members = told(seed=seed, split=SPLIT_NAMES[split], start=start, stop=start + stories)
    return (_document_tag_storyworld(story) for story in members)


def _document_tag_storyworld(story: Story) -> TaggedDocument:
    reports = list(range(len(story.cluster.documents)))
    labelled = Random(f"tags/{story.cluster.id}").choice(reports)
    order = [labelled, *(number for number in reports if number != labelled)]
    sentences = (
        sentence
        for number in order
        for sentence in _sentences_tag_storyworld(story, number, labelled=number == labelled)
    )
    return TaggedDocument(id=story.cluster.id, sentences=tuple(sentences))


def _sentences_tag_storyworld(story: Story, number: int, *, labelled: bool) -> Iterator[TaggedSentence]:
    report = story.cluster.documents[number]
    # The tags of context are not even looked at: text without labels must not profit from annotation.
    found = [tag for tag in story.tags if labelled and tag.document == number]
    for start, end in report.sentences:
        inside = [tag for tag in found if start <= tag.start < end]
        cuts = [place - start for tag in inside for place in (tag.start, tag.end)]
        spans = token_spans(report.text[start:end], boundaries=cuts)
        words = tuple(report.text[start + first : start + stop] for first, stop in spans)
        tags = None
        if labelled:
            starts = [start + first for first, _ in spans]
            tags = tags_of((_span(tag, starts) for tag in inside), len(words))
        yield TaggedSentence(words=words, tags=tags)


def _span(tag: EntityTag, starts: list[int]) -> TagSpan:
    return TagSpan(label=tag.label, first=bisect_left(starts, tag.start), stop=bisect_left(starts, tag.end))
