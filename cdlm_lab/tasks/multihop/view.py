"""A multihop question and a model's prediction: the paragraphs in order, the probability that each sentence
supports the answer, and the answer span marked in the text.

Every shade has a number and a bar beside it, every mark a word or a line; all texts are untrusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from ipywidgets import Widget
from markupsafe import Markup

from cdlm_lab.data.convert.hotpotqa import hotpot_record
from cdlm_lab.data.questions import Place, answer_occurrences, has_gold
from cdlm_lab.data.records import QUESTION_KINDS, MultihopQuestion, Paragraph
from cdlm_lab.encoders.estimate import bytes_per_number, estimate
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.runs import runs
from cdlm_lab.runs.opened import system_named
from cdlm_lab.runs.report import Report
from cdlm_lab.tasks.multihop.examples import FitFacts
from cdlm_lab.tasks.multihop.experiment import (
    ONE_DOCUMENT,
    SPLITS,
    TESTED,
    MultihopRun,
    Predictions,
)
from cdlm_lab.tasks.multihop.metrics import question_scores
from cdlm_lab.tasks.multihop.model import DecodedAnswer
from cdlm_lab.tasks.multihop.systems import QuestionPredictions, supporting_facts
from cdlm_lab.views import html, score_tables
from cdlm_lab.views.before_training import cost_facts, cost_in_words, facts_table, time_taken
from cdlm_lab.views.browse import Leafing, has_value, right_or_wrong
from cdlm_lab.views.html import escaped
from cdlm_lab.views.packed import DocumentLoss, PackedPreview
from cdlm_lab.views.score_tables import Layout, counts, each
from cdlm_lab.views.tables import ScoreTable, Shown, published, seeds, text_table
from cdlm_lab.views.templates import view

MEASURES = {
    f"{prefix}{metric}": f"{of} {metric.upper()}"
    for prefix, of in (("", "answer"), ("sp_", "support"), ("joint_", "joint"))
    for metric in ("em", "f1")
}
_OF_HOTPOT = {"dataset": "HotpotQA dev", "below": "paper: F1, HotpotQA"}
LAYOUT = Layout(
    shown=[
        *each(MEASURES),
        seeds(),
        published("answer", ("cdlm", "5"), columns=("f1",), **_OF_HOTPOT),
        published("support", ("cdlm", "5"), columns=("sp_f1",), **_OF_HOTPOT),
        published("joint", ("cdlm", "5"), columns=("joint_f1",), **_OF_HOTPOT),
    ],
    size=counts("questions", "clusters"),
    note="All in per cent. EM: share of the questions of which the answer, the supporting sentences, "
    "or both are exactly right. F1: of the words of the answer, of the sentences, and joint from the "
    "products of both precisions and of both recalls; mean over questions.",
    paper="Paper: Caciularu et al. 2021, Table 5, which has F1 alone, of models of base size on the "
    "official development set of 7,405 questions; not to be compared with other questions or other "
    "sizes.",
    first="encoder",
)

UNREAD = "did not fit"
# How supporting sentences are chosen by their probabilities, by the name of the rule.
RULES = {
    "threshold": "above 50%, or the most probable one if none is",
    "two_paragraphs": "in two paragraphs only, there above 50%, or the most probable one if none is",
}
_MARK = f"background:{html.MASKED}73;color:inherit;border-radius:2px;font-weight:600"
_UNDERLINE = f"text-decoration:underline 2px {html.CROSS};text-underline-offset:3px"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQuestion:
    """A question with its paragraphs, a model's predictions for it, and the gold answer and sentences."""

    id: str
    question: str
    kind: str  # such as "bridge"; "" = not known
    gold_answer: str | None  # None = not known
    answer: str  # the predicted answer
    # Where the predicted answer stands: index of the paragraph, "title" or "body", and the half-open span of
    # characters of the title or of `Paragraph.text`; None = it is no span, as for yes and no.
    place: Place | None
    paragraphs: tuple[Paragraph, ...]
    # (paragraph, sentence) -> probability that it supports the answer; truncated sentences are missing.
    sentence_probabilities: Mapping[tuple[int, int], float]
    paragraph_probabilities: tuple[float, ...]  # probability that each paragraph is needed for the answer
    supporting: frozenset[tuple[int, int]]  # the predicted supporting sentences, as (paragraph, sentence)
    gold_supporting: frozenset[tuple[int, int]] | None  # the gold ones; None = not known
    answer_f1: float | None  # in [0, 1]; None = not measured
    answer_em: bool | None  # exact match; None = not measured
    support_em: bool | None
    support_f1: float | None
    answer_probability: float | None = None  # of the predicted answer; None = not known
    support: str = "threshold"  # the rule for supporting sentences, one of RULES

    @property
    def shown_paragraphs(self) -> frozenset[int]:
        """Indices of the paragraphs with a gold or a predicted sentence, or with the predicted answer."""
        named = {number for number, _ in self.supporting | (self.gold_supporting or frozenset())}
        return frozenset(named | ({self.place[0]} if self.place else set()))


def question_html(read: ReadQuestion) -> str:
    """Return the question with the predicted and the gold answer, then the paragraphs in order.

    The blue behind a sentence is deeper for a higher probability of supporting the answer. Predicted and gold
    sentences are labelled, the predicted answer span is marked, and truncated sentences are struck out. The
    gold answer is underlined wherever models are trained to find it: in the titles and all sentences of
    paragraphs with a gold sentence. Paragraphs outside `shown_paragraphs` are folded."""
    gold_paragraphs = sorted({number for number, _ in read.gold_supporting or ()})
    gold = answer_occurrences(read.gold_answer, read.paragraphs, gold=gold_paragraphs)

    def marked(number: int, part: str, text: str, start: int) -> Markup:
        """Mark the answers in `text`, which begins at character `start` of the title or the body."""
        of_both = (
            [(first - start, last - start) for *where, first, last in places if where == [number, part]]
            for places in ([read.place] if read.place else [], gold)
        )
        return Markup(_marked(text, *of_both))

    return view(
        "question",
        "tasks/multihop/question.html.jinja",
        read=read,
        gold=gold,
        marked=marked,
        mark=_MARK,
        underline=_UNDERLINE,
        rule=RULES[read.support],
        unread_because=UNREAD,
        cut=len(read.sentence_probabilities) < sum(len(one.sentences) for one in read.paragraphs),
    )


def questions_page(reads: Sequence[ReadQuestion], *, title: str) -> str:
    """Return a page with all questions, in the order given."""
    facts = html.right_of_known((read.answer_em for read in reads), "{} of {} answers right")
    return html.page_of(reads, question_html, noun="question", facts=facts, title=title)


def _marked(text: str, marked: Sequence[tuple[int, int]], underlined: Sequence[tuple[int, int]]) -> str:
    """Return text as HTML, with some spans marked and others underlined; spans may extend beyond the text."""
    ends = {min(max(place, 0), len(text)) for ends in (*marked, *underlined) for place in ends}
    pieces = []
    for start, end in pairwise(sorted({0, len(text)} | ends)):
        piece = escaped(text[start:end])
        if any(first <= start < last for first, last in underlined):
            piece = f'<u style="{_UNDERLINE}">{piece}</u>'
        if any(first <= start < last for first, last in marked):
            piece = f'<mark style="{_MARK}">{piece}</mark>'
        pieces.append(piece)
    return "".join(pieces)


def answered_questions(predictions: QuestionPredictions, *, support: str) -> list[ReadQuestion]:
    """Each question with the predicted and gold answer, and the scores that compare them. `support`: the rule
    by which supporting sentences were predicted, which the legend names."""
    pairs = zip(predictions.questions, predictions.answers, strict=True)
    return [_answered(question, answer, support) for question, answer in pairs]


def _answered(question: MultihopQuestion, answer: DecodedAnswer, support: str) -> ReadQuestion:
    known, scores = has_gold(question), {}
    if known:
        facts = supporting_facts(question, answer)
        scores = question_scores(hotpot_record(question), answer=answer.text, supporting=facts)
    numbers = {paragraph.title: number for number, paragraph in enumerate(question.paragraphs)}
    gold = frozenset((numbers[title], sentence) for title, sentence in question.supporting)
    return ReadQuestion(
        id=question.id,
        question=question.text,
        kind=question.kind,
        gold_answer=question.answer,
        answer=answer.text,
        answer_probability=answer.probability,
        support=support,
        place=answer.place,
        paragraphs=question.paragraphs,
        sentence_probabilities=answer.sentence_probabilities,
        paragraph_probabilities=answer.paragraph_probabilities,
        supporting=frozenset(answer.supporting),
        gold_supporting=gold if known else None,
        answer_f1=scores.get("f1"),
        answer_em=scores["em"] == 1 if known else None,
        support_em=scores["sp_em"] == 1 if known else None,
        support_f1=scores.get("sp_f1"),
    )


LOOKED_AT = 500  # questions per split encoded for the preview: 90,000 would take most of an hour


def preview(run: MultihopRun) -> Shown:
    """The questions, how much of them is cut off, and what training will cost."""
    return facts_table(question_facts(run) + training_facts(run))


def question_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """Counts of the questions, and how much of the first LOOKED_AT of each split is cut off."""
    rows = []
    for split, questions in ((split, run.questions[split]) for split in SPLITS):
        kinds = Counter(one.kind or "other" for one in questions)
        listed = ", ".join(f"{count:,} {name}" for name, count in kinds.most_common())
        yes_no = sum(one.type in ("yes", "no") for one in questions)
        rows.append((split, f"{len(questions):,} questions ({listed}); {yes_no:,} of them yes or no"))
        if unknown := [len(one.unknown_supporting) for one in questions if one.unknown_supporting]:
            text = (
                f"{sum(unknown):,} in {len(unknown):,} questions name no sentence: nobody can find them, and "
                "they count as missed, as in the official scores"
            )
            rows.append((f"{split}: supporting facts", text))
        lost = _lost_in_words(run.untrained.examples(questions[:LOOKED_AT]).fit_facts())
        some = f"of the first {LOOKED_AT:,}: " if len(questions) > LOOKED_AT else ""
        rows.append((f"{split}: does not fit", some + lost))
    return rows


def _lost_in_words(fit: FitFacts) -> str:
    if not fit.questions_cut and not fit.without_occurrence:
        return "nothing"
    return (
        f"questions that lose text: {fit.questions_cut:,}; lost are {fit.tokens_lost / fit.tokens:.0%} of "
        f"all tokens and {fit.supporting_lost:,} of {fit.supporting:,} supporting sentences; of "
        f"{fit.span_questions:,} answers {fit.without_occurrence:,} stand nowhere in the needed paragraphs "
        "as far as they are read"
    )


def training_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """The size of an example, and the training cost of one encoder, from timing one batch (all encoders have
    the same size). For a finished run, the time it took."""
    if taken := time_taken(run):
        return taken
    job = run.job(run.trainings[0], answerer=run.untrained)
    batch = job.collate([job.train_examples[number] for number in range(job.config.micro_batch_size)])
    masks = (batch[name].sum(1).float().mean().item() for name in ("attention_mask", "global_attention_mask"))
    sizes = "{:,.0f} tokens, {:.0f} of them global".format(*masks)
    what = f"an example, mean of {len(batch['input_ids'])}"
    read = (what, f"{sizes}: question, starts of titles and sentences")
    if run.settings.trained:
        return [read, *cost_facts(run)]
    cost = cost_in_words(job, items="questions", parallel=run.settings.parallel)
    return [
        read,
        ("training", f"{cost}; times {len(run.trainings)} (encoders and seeds)"),
        ("precision of training", precision_in_words(job.config.precision)),
    ]


def example(run: MultihopRun, *, index: int = 0) -> PackedPreview:
    """A training question as the model reads it: the question, then each paragraph."""
    question, answerer = run.questions["train"][index], run.untrained
    examples = answerer.examples([question])
    sequence, encoded = examples.describe(0), examples.encoded[question.id]
    special = examples.special.is_special(sequence.input_ids)
    first, last = np.flatnonzero(special & (sequence.paragraph < 0))[1:3]  # [q] and [/q], after [CLS]
    places = np.arange(len(sequence.input_ids))
    in_question = (places >= first) & (places <= last)
    documents = [DocumentLoss(title=question.text)]
    for number, (paragraph, tokens) in enumerate(zip(question.paragraphs, encoded.paragraphs, strict=True)):
        read = int(((sequence.paragraph == number) & ~special).sum())
        cut = len(tokens.ids) + len(tokens.title_ids) - read
        reason = "its share of the room" if cut else ""
        documents.append(DocumentLoss(title=paragraph.title, cut=cut, reason=reason))
    cost = estimate(
        answerer.model.config,
        length=len(places),
        batch=run.settings.micro_batch_size,
        global_tokens=float(sequence.global_attention_mask.sum()),
        bytes_per_number=bytes_per_number(run.settings.precision),
    )
    return PackedPreview.of(
        answerer.tokenizer,
        sequence.input_ids,
        document=np.where(in_question, 0, np.where(sequence.paragraph < 0, -1, sequence.paragraph + 1)),
        global_=sequence.global_attention_mask == 1,
        special=special,
        documents=documents,
        title="A question with its paragraphs, as a model reads it",
        memory_bytes=cost.peak_bytes,
    )


def score_table(report: Report, **form: Any) -> ScoreTable:
    """The scores of each encoder; on test beside the paper's."""
    return score_tables.score_table(report, LAYOUT, **form)


def control_table(report: Report) -> ScoreTable | Shown:
    """The score table on test without the documents that hold the clues."""
    return score_tables.control_table(report, ONE_DOCUMENT, score_table, caption="test, one document")


def kind_table(report: Report, split: str = "test") -> ScoreTable:
    """Encoder, kind of question, number of questions, and F1 of answer, support and joint."""
    rows = []
    for row in report.tables["kinds"]:
        if row["split"] == split:
            first = [variant_name(row["system"]), row["kind"] or "not known", f"{row['questions']:,}"]
            rows.append([*first, *(f"{100 * row[measure]:.1f}" for measure in TESTED)])
    return text_table(["encoder", "questions", "how many", "answer", "support", "joint"], rows, texts=2)


ON_A_PAGE = 50


def answers_in_place(run: MultihopRun, predictions: Predictions, system: str = "") -> Widget:
    """A browser of the dev questions with the answers of an encoder (seed 0), "" = the last one of the table;
    the first ON_A_PAGE also go to `answers.html`, which opens without a kernel."""
    of_dev = predictions[system_named(system, run.systems).name, 0]["dev"]
    reads = answered_questions(of_dev, support=run.settings.support)
    page = questions_page(reads[:ON_A_PAGE], title="Questions and answers")
    runs.write_page(run.folder / "answers.html", page)
    return question_browser(reads)


def question_browser(reads: Sequence[ReadQuestion]) -> Leafing:
    """Return a browser of questions, filtered by answer, support and kind; right means an exact match."""
    return Leafing(
        reads,
        noun="question",
        filters={
            "answer": right_or_wrong("answer_em"),
            "support": right_or_wrong("support_em"),
            "kind": {kind: has_value("kind", kind) for kind in QUESTION_KINDS},
        },
        text=lambda read: read.question,
        right=lambda read: read.answer_em,
        html=question_html,
    )
