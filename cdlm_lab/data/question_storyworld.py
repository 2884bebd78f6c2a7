"""Questions over several paragraphs from storyworld: each takes two reports of one invented event.

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

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, count, islice, zip_longest
from random import Random

from cdlm_lab.data.multihop_questions import MultihopQuestion, Paragraph
from cdlm_lab.data.records import Document, Question, SentenceRef, Story
from cdlm_lab.data.splits import SPLIT_NAMES, Split
from cdlm_lab.data.storyworld import event_type_of, story

_REMEMBERED = 128  # stories


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
    @lru_cache(maxsize=_REMEMBERED)
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
