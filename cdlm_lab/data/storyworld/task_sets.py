"""Storyworld as the data set of each task: readers that yield one record at a time, alike on every machine.

`split` is train, dev or test (they share no facts), `stories` the number of stories, `start` the number of
the first one; ranges of stories that do not overlap share no documents.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain, count, islice, zip_longest
from math import fsum, log
from random import Random
from typing import Literal, NamedTuple, get_args

from cdlm_lab.data import coreference, records, splits
from cdlm_lab.data.records import (
    Document,
    DocumentPair,
    EvidencedClaim,
    MultihopQuestion,
    PairDocument,
    Paragraph,
    Question,
    SentenceRef,
    Span,
    Story,
    TaggedDocument,
    TaggedSentence,
    Topic,
)
from cdlm_lab.data.storyworld.stories import contradicting_story, event_type_of, recurring_story, story
from cdlm_lab.data.tags import TagSpan, tagged_sentence
from cdlm_lab.data.words import token_spans
from cdlm_lab.errors import check_choice, check_least

_WORD = re.compile(r"[^\W\d_]+")  # letters alone, so that numbers are no words


class _Stories:
    """A range of stories of a split; the latest 128 are kept in memory. Raises ValueError for an unknown
    split and for numbers that are too small; `two_for`: what needs two stories, for the message."""

    def __init__(self, split: str, stories: int, *, seed: int, start: int, two_for: str = "") -> None:
        self.seed, self.split = seed, splits.split_named(split)
        if two_for and stories < 2:
            raise ValueError(f"stories is {stories}; {two_for} take at least 2")
        check_least(stories=stories)
        check_least(0, start=start)
        self.numbers = range(start, start + stories)
        place = {"seed": seed, "split": self.split}
        self.story = lru_cache(maxsize=128)(lambda number: story(**place, index=number))
        self.type_of = cache(lambda number: event_type_of(**place, index=number))

    def __iter__(self) -> Iterator[Story]:
        return map(self.story, self.numbers)


def read_storyworld_candidates(
    split: str, stories: int, *, seed: int = 0, start: int = 0
) -> Iterator[records.CandidateSet]:
    """Yield questions about numbers, with sentences of one report, of which those with the number are right.

    A story has up to three sets of up to eight candidates, in the order of the report, without the headline.
    """
    members = _Stories(split, stories, seed=seed, start=start)
    return (candidates for member in members for candidates in member.candidate_sets)


# ---- claims ----


def read_storyworld_claims(
    split: str, stories: int, *, evidence: int = 5, seed: int = 0, start: int = 0
) -> Iterator[EvidencedClaim]:
    """Yield claims about numbers, with sentences of the story's reports as evidence; a story is a group.

    A story has up to six, two of each label: with the true number (supported), with another (refuted), and
    about what no report of the story states (not enough info).

    The evidence (`evidence` sentences, best first) is retrieved by the words of the claim, without numbers:
    the score of a sentence is the sum of log(n / m) over the words that it shares with the claim, where m of
    the story's n sentences have the word; ties go to the earlier sentence. So labels play no part, and a true
    claim and a false one retrieve the same sentences. Duplicate sentences are used once, headlines never.

    Over 300 stories of train (seed 0), with 72 sentences on average, the five retrieved sentences include at
    least one that states the true number for 99.3% of the supported and 98.7% of the refuted claims, and 88%
    of all sentences that state it.

    The numbers of a story differ, and a false number is none of them. So a claim whose number is in the
    evidence is supported; to tell refuted from not enough info takes reading what the numbers are about.
    """
    check_least(evidence=evidence)
    members = _Stories(split, stories, seed=seed, start=start)
    return (claim for member in members for claim in _claims(member, evidence))


def _claims(member: Story, most: int) -> Iterator[EvidencedClaim]:
    reports = member.cluster.documents
    texts = (" ".join(text.split()) for one in reports for text in _sentences(one)[1:])
    sentences = tuple(dict.fromkeys(texts))
    for claim in member.claims:
        evidence, group = _retrieved(claim.text, sentences)[:most], member.cluster.id
        yield EvidencedClaim(id=claim.id, text=claim.text, evidence=evidence, label=claim.label, group=group)


def _retrieved(text: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """All sentences, sorted by their retrieval score for a text, best first."""
    query, *words = (set(_WORD.findall(each.lower())) for each in (text, *sentences))
    holders = Counter(chain.from_iterable(words))
    # fsum is exact, so that no score depends on the order in which a set yields its words.
    scores = [fsum(log(len(words) / holders[word]) for word in query & present) for present in words]
    return tuple(sentences[place] for place in sorted(range(len(words)), key=lambda at: -scores[at]))


def _sentences(report: Document) -> list[str]:
    return [report.text[start:end] for start, end in report.sentences]


# ---- coreference ----


def read_storyworld_topics(
    split: str, stories: int, *, seed: int = 0, start: int = 0, stories_per_topic: int = 3
) -> Iterator[Topic]:
    """Yield topics for coreference. A story is a sub-topic, several form a topic (the last may have fewer),
    so that reports of different events have to be distinguished, as in ECB+.

    Names are invented anew for each story, but the nouns used for them ("the city") recur.
    `stories_per_topic`: 1 for topics in which all documents report the same event.
    """
    check_least(stories_per_topic=stories_per_topic)
    members = _Stories(split, stories, seed=seed, start=start)
    return (
        _topic(members, members.numbers[first : first + stories_per_topic])
        for first in range(0, stories, stories_per_topic)
    )


def _topic(members: _Stories, numbers: range) -> Topic:
    topic = f"storyworld-{members.seed}-{members.split}-stories-{numbers[0]}-{numbers[-1]}"
    documents = (
        _coreference_document(member, number, topic)
        for member in map(members.story, numbers)
        for number in range(len(member.cluster.documents))
    )
    return Topic(id=topic, documents=tuple(documents))


def _coreference_document(member: Story, number: int, topic: str) -> records.CoreferenceDocument:
    document = member.cluster.documents[number]
    gold = sorted((m for m in member.mentions if m.document == number), key=lambda m: (m.start, m.end))
    boundaries = {place for mention in gold for place in (mention.start, mention.end)}
    tokens: list[Span] = []
    sentences: list[Span] = []
    for start, end in document.sentences:
        before, cuts = len(tokens), (place - start for place in boundaries)
        tokens += ((start + a, start + b) for a, b in token_spans(document.text[start:end], boundaries=cuts))
        sentences.append((before, len(tokens)))
    starts = [start for start, _ in tokens]
    labels = {(tag.start, tag.end): tag.label for tag in member.tags if tag.document == number}
    mentions, tags = [], {}
    for index, mention in enumerate(gold):
        name, place = f"{document.id}:{index}", (mention.start, mention.end)
        span = (bisect_left(starts, mention.start), bisect_left(starts, mention.end))
        mentions.append((name, span, mention.kind, f"{member.cluster.id}:{mention.chain}"))
        tags[name] = labels.get(place, "")
    return coreference.document_of_spans(
        mentions,
        id=document.id,
        topic=topic,
        subtopic=member.cluster.id,
        tokens=[document.text[start:end] for start, end in tokens],
        sentences=sentences,
        validated=range(len(sentences)),
        tags=tags,
    )


# ---- document pairs ----

Unrelated = Literal["random", "similar", "recurring", "contradicting"]


def read_storyworld_pairs(
    split: str, stories: int, *, seed: int = 0, start: int = 0, unrelated: Unrelated = "similar"
) -> Iterator[DocumentPair]:
    """Yield a related and an unrelated pair for each story, which is the cluster of both.

    The related pair is two reports of the story in random order; the unrelated pair is the first of them and,
    depending on `unrelated`,

    - "random": a report of another one of the (at least two) stories;
    - "similar": a report of another story with the same type of event (a ferry that sank, a bridge that
      fell), or of any other story if there is none;
    - "recurring": the second report as if written about another event of this type, with the same people and
      places but other numbers. Counting common words does not suffice (of 300 pairs,
      TF-IDF gets 76% right);
    - "contradicting": the second report after an exchange of the names and of the numbers that both reports
      state (TF-IDF: 50%); which of the two versions of the story serves as the true one is random.

    A sentence of the first report is `aligned` if it states a number of the event (18 killed, 329 injured)
    that a sentence of the second report states too, in any wording. Numbers of a person or a thing (an age,
    the employees of a firm) do not count, nor do facts without numbers: so other sentences may be about the
    contents of the second report as well. The first sentence is the headline.
    """
    members = _Stories(split, stories, seed=seed, start=start, two_for="unrelated reports")
    check_choice("unrelated", unrelated, get_args(Unrelated))
    return _pairs(members, unrelated)


def _pairs(members: _Stories, unrelated: Unrelated) -> Iterator[DocumentPair]:
    kinds: dict[str, list[int]] = {}
    for number in members.numbers if unrelated == "similar" else ():
        kinds.setdefault(members.type_of(number), []).append(number)
    for number in members.numbers:
        rng = Random(f"pairs/{members.seed}/{members.split}/{number}")
        this = members.story(number)
        first, second = both = rng.choice(sorted(_aligned(this)))
        form = {"seed": members.seed, "split": members.split, "index": number}
        cluster, place = this.cluster.id, second
        if unrelated == "recurring":
            other = recurring_story(**form)
        elif unrelated == "contradicting":
            other = contradicting_story(**form, reports=both)
            if rng.random() < 0.5:
                this, other = other, this
        else:
            alike = kinds[members.type_of(number)] if kinds else ()
            others: Sequence[int] = alike if len(alike) > 1 else members.numbers
            drawn = rng.randrange(len(others) - 1)
            other = members.story(others[drawn + (drawn >= others.index(number))])
            place = rng.randrange(len(other.cluster.documents))
        aligned = _aligned(this).get(both)
        for one, report, sentences in ((this, second, aligned), (other, place, ())):
            yield replace(_pair(this, first, one, report, aligned=sentences), cluster=cluster)


def _aligned(member: Story) -> Mapping[tuple[int, int], tuple[int, ...]]:
    """(first report, second report) -> indices of the first's sentences with a number that both state."""
    aligned: dict[tuple[int, int], set[int]] = {}
    for alignment in member.alignments:
        both = (alignment.source, alignment.target)
        for one, other in (both, both[::-1]):
            aligned.setdefault((one.document, other.document), set()).add(one.sentence)
    return {reports: tuple(sorted(sentences)) for reports, sentences in aligned.items()}


def _pair(
    member: Story, first: int, other: Story, second: int, *, aligned: tuple[int, ...] | None
) -> DocumentPair:
    left, right = (
        PairDocument(id=report.id, sentences=tuple(" ".join(text.split()) for text in _sentences(report)))
        for report in (member.cluster.documents[first], other.cluster.documents[second])
    )
    return DocumentPair(
        id=f"{left.id}+{right.id}",
        first=left,
        second=right,
        related=member is other,
        aligned=aligned,
        cluster=member.cluster.id,
    )


# ---- questions ----


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
    """Yield questions over several paragraphs that need two reports of a story, from at least two stories.

    A story has one or two bridge questions ("Where did the person grow up who opened the gates?": one report,
    the clue, says who did; another, the reply, where that person grew up) and one comparison of the numbers
    in two reports (which of two places has more, or yes or no).

    A paragraph is a run of sentences of a report, without the first one, the headline, which is its title
    (with a number if another paragraph has the same: "The gap in the road (2)"). Two paragraphs have a
    supporting sentence each, at a random position. The others, distractors, are random runs of other reports
    of the story, then of other stories: first those of the same type of event, each time from the next story
    on. For a bridge question, the first distractor is another story's reply to a question of the same
    wording, if the range has one, and reports of that story and of its own alternate from there. Otherwise
    the answer could be found without the clue, as the only sentence that says where somebody grew up, or as
    that of the story with most paragraphs. The names that a question turns on occur only in the two
    supporting paragraphs, and another story's clue to the same wording in none. The order is random. The
    number of stories affects only the distractors, and only if the range ends before there are enough.

    Raises ValueError, while reading, if the range has too few reports.

    Args:
        sentences: number of sentences of a paragraph; fewer if the report has fewer.
        paragraphs: number of paragraphs of a question; at least 2.
        withheld: for what a system can score that sees only one of the two documents: the clue of a bridge
            question, or a random one of the two sentences compared, is not in the context. Its paragraph is
            replaced by another run of the same report or, if that is too short, of a further one; all else is
            the same but `supporting`, which has only the sentence that is left.
    """
    check_least(sentences=sentences)
    check_least(2, paragraphs=paragraphs)
    members = _Stories(split, stories, seed=seed, start=start, two_for="reports of another story")
    return (
        _Context(members, number, question, sentences).filled(paragraphs, withheld=withheld)
        for number in members.numbers
        for question in members.story(number).questions
    )


class _Run(NamedTuple):
    """A run of sentences of a report: those with indices from `first` up to, not including, `stop`."""

    report: Document
    first: int
    stop: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """The texts of the sentences, each but the last with the space or line break that follows it."""
        spans = self.report.sentences[self.first : self.stop]
        ends = (*(start for start, _ in spans[1:]), spans[-1][1])
        return tuple(self.report.text[start:end] for (start, _), end in zip(spans, ends, strict=True))

    def holds(self, sentence: int) -> bool:
        """Whether the run includes the sentence of the report with that index."""
        return self.first <= sentence < self.stop

    def states(self, names: Collection[str]) -> bool:
        """Whether one of `names` occurs in the run or in the headline of its report."""
        text = f"{self.report.title}\n{''.join(self.sentences)}"
        return any(name in text for name in names)


class _Context:
    """Makes the paragraphs of one question. `names`: the names that it turns on, which are the link and the
    answer of a bridge question, and both places of a comparison."""

    def __init__(self, members: _Stories, number: int, question: Question, sentences: int) -> None:
        self.members, self.number, self.question, self.sentences = members, number, question, sentences
        self.story = members.story(number)
        self.names, self.link = _names(self.story, question), _link(self.story, question)
        self.rng = Random(f"questions/{question.id}")

    def filled(self, paragraphs: int, *, withheld: bool) -> MultihopQuestion:
        """The question with a number of paragraphs; `withheld`: without one of the supporting sentences."""
        runs, facts = [], []
        for at in self.question.supporting:  # their names occur nowhere else in the story
            every = self._runs(_report(self.story, at))
            runs.append(self.rng.choice([run for run in every if run.holds(at.sentence)]))
            facts.append(at.sentence - runs[-1].first)
        distractors = self._distractors()
        runs += islice(distractors, paragraphs - len(runs))
        order = list(range(paragraphs))
        self.rng.shuffle(order)
        titles: dict[int, str] = {}
        for which in order:
            titles[which] = _unlike(str(runs[which].report.title), titles.values())
        supporting = [(titles[which], fact) for which, fact in enumerate(facts)]
        if withheld:  # drawn last, so that all else is the same as without it
            lost = 0 if self.question.hops == "bridge" else self.rng.randrange(2)
            silent = self._silent(runs[lost].report, self.names)
            runs[lost] = self.rng.choice(silent) if silent else next(distractors)
            del supporting[lost], titles[lost]
            titles[lost] = _unlike(str(runs[lost].report.title), titles.values())
        return MultihopQuestion(
            id=self.question.id,
            text=self.question.text,
            paragraphs=tuple(Paragraph(title=titles[n], sentences=runs[n].sentences) for n in order),
            answer=self.question.answer,
            supporting=tuple(supporting),
            kind=self.question.hops,
        )

    def _distractors(self) -> Iterator[_Run]:
        """Yield runs of reports that do not support the answer, each from a different report."""
        used = {_report(self.story, at).id for at in self.question.supporting}
        rival, replies = self._rival()
        if replies:
            reply = self.rng.choice(replies)
            used.add(reply.report.id)
            yield reply
        of_rival = self._runs_of(rival, used) if replies else ()
        for both in zip_longest(of_rival, self._runs_of(self.number, used)):
            yield from filter(None, both)
        for other in self._others():
            if other != rival:
                yield from self._runs_of(other, used)
        raise ValueError(
            f"question {self.question.id}: the {len(self.members.numbers)} stories of the range have no "
            "report left for another paragraph; give more stories, or ask for fewer paragraphs"
        )

    def _runs_of(self, number: int, used: set[str]) -> Iterator[_Run]:
        """Yield a random run of each report of a story that is not in `used`, in random order."""
        other = self.members.story(number)
        # Another story's clue would make the question one about that story as well.
        alike = [one for one in other.questions if self.link and _link(other, one) == self.link]
        hidden = self.names.union(*(_names(other, one) for one in alike))
        reports = [report for report in other.cluster.documents if report.id not in used]
        self.rng.shuffle(reports)
        for report in reports:
            if runs := self._silent(report, hidden):
                yield self.rng.choice(runs)

    def _rival(self) -> tuple[int, list[_Run]]:
        """The number of another story with a question of the same wording, and the runs that hold its reply;
        (-1, []) if there is no such story, or this is a comparison."""
        for number in self._others() if self.link else ():
            other = self.members.story(number)
            for question in other.questions:
                if _link(other, question) == self.link:
                    at = question.supporting[1]
                    silent = self._silent(_report(other, at), self.names)
                    if runs := [run for run in silent if run.holds(at.sentence)]:
                        return number, runs
        return -1, []

    def _others(self) -> Iterator[int]:
        """Yield the numbers of all other stories, same type of event first, each from the next one on."""
        numbers, type_of = self.members.numbers, self.members.type_of
        here = self.number - numbers.start
        turned = (*numbers[here + 1 :], *numbers[:here])
        yield from (other for other in turned if type_of(other) == type_of(self.number))
        yield from (other for other in turned if type_of(other) != type_of(self.number))

    def _runs(self, report: Document) -> list[_Run]:
        """All runs of that many sentences, or the whole report if shorter; never the headline, the first."""
        stop = len(report.sentences)
        length = min(self.sentences, stop - 1)
        return [_Run(report, first, first + length) for first in range(1, stop - length + 1)]

    def _silent(self, report: Document, names: Collection[str]) -> list[_Run]:
        return [run for run in self._runs(report) if not run.states(names)]


def _report(member: Story, at: SentenceRef) -> Document:
    return member.cluster.documents[at.document]


def _named(member: Story, at: SentenceRef) -> dict[str, str]:
    """Slot in the story -> name, for all entities that a sentence mentions."""
    report = _report(member, at)
    start, end = report.sentences[at.sentence]
    inside = (m for m in member.mentions if m.document == at.document and start <= m.start and m.end <= end)
    return {m.chain: report.text[m.start : m.end] for m in inside if m.kind == "entity"}


def _names(member: Story, question: Question) -> set[str]:
    return {name for at in question.supporting for name in _named(member, at).values()}


def _link(member: Story, question: Question) -> str:
    """The slot in the story that both supporting sentences mention, which determines the wording of the
    question; "" for a comparison."""
    first, second = (_named(member, at).keys() for at in question.supporting)
    return "".join(sorted(first & second))


def _unlike(title: str, taken: Collection[str]) -> str:
    """The title, followed by the lowest number from 2, "title (2)", that makes it unique if it is taken."""
    numbered = chain((title,), (f"{title} ({number})" for number in count(2)))
    return next(one for one in numbered if one not in taken)


# ---- tags ----


def read_storyworld_tags(
    split: str, stories: int, *, seed: int = 0, start: int = 0
) -> Iterator[TaggedDocument]:
    """Yield tagged documents, one for each story: its reports one after the other, the first one labelled.

    The labelled report is drawn at random. The others follow in order as context, where the invented names
    occur again. Words are those of `token_spans`, in the labelled report also split where a name begins or
    ends: "Orn's" is one word of the context, though the labelled report may have "Orn" and "'s".
    """
    return map(_tagged_document, _Stories(split, stories, seed=seed, start=start))


def _tagged_document(member: Story) -> TaggedDocument:
    reports = list(range(len(member.cluster.documents)))
    labelled = Random(f"tags/{member.cluster.id}").choice(reports)
    order = [labelled, *(number for number in reports if number != labelled)]
    parts = (_tagged_sentences(member, number, labelled=number == labelled) for number in order)
    return TaggedDocument(id=member.cluster.id, sentences=tuple(chain.from_iterable(parts)))


def _tagged_sentences(member: Story, number: int, *, labelled: bool) -> Iterator[TaggedSentence]:
    report = member.cluster.documents[number]
    # The tags of context are not used at all: text without labels must not profit from annotation.
    gold = [tag for tag in member.tags if labelled and tag.document == number]
    names = [TagSpan(label=tag.label, first=tag.start, stop=tag.end) for tag in gold]
    for place in report.sentences:
        sentence = tagged_sentence(report.text, place, names)
        yield replace(sentence, tags=sentence.tags if labelled else None, offsets=())
