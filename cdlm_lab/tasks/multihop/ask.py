"""Questions over one's own documents: what `load` returns for a run of notebook 06."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from cdlm_lab.data.native import paragraph
from cdlm_lab.data.questions import check_question
from cdlm_lab.data.records import MultihopQuestion
from cdlm_lab.data.text_profile import TextProfile, texts_of_record
from cdlm_lab.encoders.source_attention import CutAsGiven, apart
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import profile_of, settings_of_run, system_named
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.multihop.experiment import MultihopRun
from cdlm_lab.tasks.multihop.systems import Answerer, DecodedAnswer
from cdlm_lab.tasks.multihop.view import ReadQuestion, answered_questions, question_html
from cdlm_lab.views.answers import PATIENCE, Pictured, asked, foreign_to, texts_of, warn_of_cut
from cdlm_lab.views.html import cut_in_words

OWN = "own"  # id of what a person asks


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingSentence:
    """A sentence of a document, and the probability that it supports the answer."""

    title: str
    sentence: int  # its index in the document, from 0
    start: int  # of its first character in the document as given
    end: int  # behind its last one
    text: str
    probability: float
    supports: bool  # True = predicted to support the answer


@dataclass(frozen=True, kw_only=True)
class Answer(Pictured[SupportingSentence]):
    """The answer to a question, and all sentences that were read."""

    text: str
    probability: float | None  # of the text, as the model has it: of its type, its first and its last token
    title: str | None  # the document that contains it; None for yes and no, which are in none
    start: int | None  # of its first character in that document as given; None = it is none, or in the title
    end: int | None  # behind its last one
    alternatives: tuple[tuple[str, float], ...]  # (text, score) of the best spans, best first
    parts: tuple[SupportingSentence, ...] = field(repr=False)

    @property
    def supporting(self) -> tuple[SupportingSentence, ...]:
        """The sentences predicted to support the answer."""
        return tuple(one for one in self.parts if one.supports)

    def heading(self) -> str:
        """The answer with its probability, and the sentences that support it."""
        share = "" if self.probability is None else f" ({self.probability:.1%})"
        support = (f"{one.title}: {one.text} ({one.probability:.1%})" for one in self.supporting)
        return "\n".join((f"{self.text}{share}", *support))

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.foreign, self.cut, self.heading())))

    def as_json(self) -> dict[str, Any]:
        """The answer with its probability, its document, and the supporting sentences with theirs."""
        supporting = [asdict(one) for one in self.supporting]
        answer = {"answer": self.text, "probability": self.probability, "title": self.title}
        return answer | {"start": self.start, "end": self.end, "supporting": supporting}


@dataclass(frozen=True, kw_only=True)
class QuestionModel:
    """Answers questions over several documents, and names the sentences that support the answer."""

    name: str
    system: str
    run: MultihopRun = field(repr=False)
    answerer: Answerer = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    example: ClassVar[Mapping[str, Any]] = {  # of storyworld, in a box before a person types
        "question": "Where does the author of the early warning teach?",
        "documents": {
            "Machines under suspicion in election muddle": "Some 655 officers were brought in from all "
            "over Storstusund county. Lecturer Rungerens Doendyholt, of Klivaholt University, declined to "
            "comment.",
            "A few votes turn the election": "The post brought 328 ballots from the suburb of Svumeines. A "
            "paper dated 1993 had warned of just this; its author is Rungerens Doendyholt, 63, a lecturer.",
            "Machines blamed in vote muddle": "Naizugeen Daykhopour, 42, a geographer, of the university "
            "Nuvairoyan College, which employs 801 people, asked for patience. A motion tabled by the deputy "
            "mayor passed by 68 votes to 11.",
        },
    }

    def answer(
        self,
        question: str | Sequence[str],
        documents: Mapping[str, str] | Sequence[Mapping[str, str]],
        *,
        cut: CutAsGiven = None,
    ) -> Any:
        """Answer a question about documents, given by title: an `Answer`; for lists of questions and of their
        documents `Answers`. Documents that are too long are truncated. `cut`: `"documents"` = none attends to
        another, and only the tokens of the question read all; see `source_attention.apart`."""

        def answered(questions: Sequence[MultihopQuestion]) -> list[Answer]:
            with apart(self.answerer.model, self.answerer.tokenizer, cut):
                return self._answer(questions)

        return asked(question_on, answered, question=question, documents=documents)

    def _answer(self, questions: Sequence[MultihopQuestion]) -> list[Answer]:
        whole = [replace(one, id=str(number)) for number, one in enumerate(questions)]
        examples = self.answerer.examples(whole, labelled=False)
        with bars_after(PATIENCE):
            predictions = self.run.answers(self.answerer, whole)
        reads = answered_questions(predictions, support=self.run.settings.support)
        policy = f"{self.name} reads {self.answerer.max_length:,} at once, of each document an equal share"
        answers = []
        each = zip(questions, predictions.answers, reads, strict=True)
        for number, (question, decoded, read) in enumerate(each):
            sequence = examples.describe(number)
            lost = sequence.lost_tokens
            total = lost + int((sequence.sentence >= 0).sum())
            cut = cut_in_words("documents", lost=lost, of=total, policy=policy)
            foreign = foreign_to(self.profile, self.name, texts_of_record(question), real=[])
            notes = {"cut": warn_of_cut(cut), "foreign": foreign}
            answers.append(_answered(question, decoded, replace(read, id=OWN), notes))
        return answers


def question_on(question: str, documents: Mapping[str, str]) -> MultihopQuestion:
    """A question about documents, given by title. Raises ValueError if one cannot be read."""
    texts_of({"the question": question})
    paragraphs = tuple(paragraph(title, text) for title, text in texts_of(documents).items())
    made = MultihopQuestion(id=OWN, text=question.strip(), paragraphs=paragraphs)
    check_question(made, where="your documents")
    return made


def _answered(
    question: MultihopQuestion, decoded: DecodedAnswer, read: ReadQuestion, notes: Mapping[str, str]
) -> Answer:
    sentences = []
    for (number, at), probability in sorted(read.sentence_probabilities.items()):
        source = question.paragraphs[number]
        whole, start = source.sentences[at], sum(map(len, source.sentences[:at]))
        start += len(whole) - len(whole.lstrip())
        sentences.append(
            SupportingSentence(
                title=source.title,
                sentence=at,
                start=start,
                end=start + len(whole.strip()),
                text=whole.strip(),
                probability=float(probability),
                supports=(number, at) in read.supporting,
            )
        )
    place = decoded.place
    start, end = (place.start, place.end) if place and place.part == "body" else (None, None)
    return Answer(
        text=decoded.text,
        probability=decoded.probability,
        title=question.paragraphs[place.paragraph].title if place else None,
        start=start,
        end=end,
        alternatives=tuple((span.text, float(span.score)) for span in decoded.n_best),
        parts=tuple(sentences),
        picture=partial(question_html, read),
        **notes,
    )


def load_questions(name: str, run: str, system: str) -> QuestionModel:
    """The answerer of a run of notebook 06."""
    settings = settings_of_run(multihop_qa.Settings, run)
    chosen = system_named(system, settings.chosen)
    opened = MultihopRun(settings=settings, questions={})
    training = Training(chosen, 0)
    form = {"run": opened, "answerer": opened.load(training), "profile": profile_of(opened, training)}
    return QuestionModel(name=name, system=chosen.name, **form)
