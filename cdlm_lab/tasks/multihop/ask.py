"""Questions over one's own documents: what `load` returns for a run of notebook 06."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from cdlm_lab.data.text_profile import TextProfile, texts_of_record
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import profile_of, settings_of_run, system_named
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.multihop.experiment import MultihopRun
from cdlm_lab.tasks.multihop.systems import Answerer, question_on
from cdlm_lab.tasks.multihop.view import answered_questions, question_html
from cdlm_lab.views.answers import PATIENCE, Pictured, foreign_to, texts_of, warn_of_cut
from cdlm_lab.views.html import cut_in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingSentence:
    """A sentence of a document, and the probability that it supports the answer."""

    title: str
    sentence: int  # its index in the document, from 0
    text: str
    probability: float
    supports: bool  # True = predicted to support the answer


@dataclass(frozen=True, kw_only=True)
class Answer(Pictured[SupportingSentence]):
    """The answer to a question, and all sentences that were read."""

    text: str
    probability: float | None  # of the text, as the model has it: of its type, its first and its last token
    title: str | None  # the document that contains it; None for yes and no, which are in none
    alternatives: tuple[tuple[str, float], ...]  # (text, score) of the best spans, best first
    parts: tuple[SupportingSentence, ...] = field(repr=False)

    @property
    def supporting(self) -> tuple[SupportingSentence, ...]:
        """The sentences predicted to support the answer."""
        return tuple(one for one in self.parts if one.supports)

    def __str__(self) -> str:
        share = "" if self.probability is None else f" ({self.probability:.1%})"
        support = (f"{one.title}: {one.text} ({one.probability:.1%})" for one in self.supporting)
        return "\n".join(filter(None, (self.foreign, self.cut, f"{self.text}{share}", *support)))

    def as_json(self) -> dict[str, Any]:
        """The answer with its probability, its document, and the supporting sentences with theirs."""
        supporting = [asdict(one) for one in self.supporting]
        answer = {"answer": self.text, "probability": self.probability, "title": self.title}
        return answer | {"supporting": supporting}


@dataclass(frozen=True, kw_only=True)
class QuestionModel:
    """Answers questions over several documents, and names the sentences that support the answer."""

    name: str
    system: str
    run: MultihopRun = field(repr=False)
    answerer: Answerer = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def answer(self, question: str, documents: Mapping[str, str]) -> Answer:
        """Answer a question about documents, given by title. Documents that are too long are truncated."""
        whole = question_on(question, [*texts_of(documents).items()])
        fit = self.answerer.examples([whole], labelled=False).fit_facts()
        policy = f"{self.name} reads {self.answerer.max_length:,} at once, of each document an equal share"
        cut = warn_of_cut(cut_in_words("documents", lost=fit.tokens_lost, of=fit.tokens, policy=policy))
        with bars_after(PATIENCE):
            predictions = self.run.answers(self.answerer, [whole])
        (decoded,) = predictions.answers
        (read,) = answered_questions(predictions, support=self.run.settings.support)
        sentences = tuple(
            SupportingSentence(
                title=whole.paragraphs[paragraph].title,
                sentence=number,
                text=whole.paragraphs[paragraph].sentences[number].strip(),
                probability=float(probability),
                supports=(paragraph, number) in read.supporting,
            )
            for (paragraph, number), probability in sorted(read.sentence_probabilities.items())
        )
        return Answer(
            text=decoded.text,
            probability=decoded.probability,
            title=whole.paragraphs[decoded.place[0]].title if decoded.place else None,
            alternatives=tuple((span.text, float(span.score)) for span in decoded.n_best),
            parts=sentences,
            picture=partial(question_html, read),
            foreign=foreign_to(self.profile, self.name, texts_of_record(whole)),
            cut=cut,
        )


def load_questions(name: str, run: str, system: str) -> QuestionModel:
    """The answerer of a run of notebook 06."""
    settings = settings_of_run(multihop_qa.Settings, run, own_question="", own_documents="")
    chosen = system_named(system, settings.chosen) if system else settings.shown
    opened = MultihopRun(settings=settings, questions={})
    training = Training(chosen, 0)
    form = {"run": opened, "answerer": opened.load(training), "profile": profile_of(opened, training)}
    return QuestionModel(name=name, system=chosen.name, **form)
