"""Questions that need two documents (CDLM section 3.4 and C.3, Table 5): notebook 06.

Each encoder is trained with each seed; of its epochs the one with the lowest loss on dev is kept. Test
questions are answered once by each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from IPython.display import HTML
from ipywidgets import Widget
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.document_pairs import split_sentences
from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.questions import (
    MultihopQuestion,
    Paragraph,
    check_question,
    has_gold,
    hotpot_record,
    read_question_folder,
    write_predictions,
)
from cdlm_lab.data.storyworld.task_sets import read_storyworld_questions
from cdlm_lab.data.typed_documents import pasted_documents
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.examples.questions import (
    EncodedQuestions,
    FitFacts,
    QuestionCollate,
    QuestionExamples,
    question_marks_of,
)
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.experiments.cluster_corpora import VARIANTS, checkpoint_of, reset_globals
from cdlm_lab.experiments.pretraining import token_texts
from cdlm_lab.experiments.runs import (
    Cell,
    Scores,
    SystemRun,
    Training,
    chosen_systems,
    cost_in_words,
    facts_table,
    output_of,
    paired_tests,
    predict,
    read_rows,
    report,
    score_rows,
    train,
    write_rows,
)
from cdlm_lab.metrics.question_answering import HOTPOTQA_SCORES, question_scores, scores_by_question
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.estimate import bytes_per_number, estimate
from cdlm_lab.models.precision import Precision, precision_told
from cdlm_lab.models.question_answering import (
    AnswerSpan,
    DecodedAnswer,
    Place,
    QuestionAnswerer,
    decode,
    load_question_answerer,
)
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import TrainingJob, config_of_passes, in_training_order
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.ask import own_question_box
from cdlm_lab.widgets.browse import question_browser
from cdlm_lab.widgets.html import escaped, table_html, variant_name
from cdlm_lab.widgets.packed import DocumentLoss, PackedPreview
from cdlm_lab.widgets.question_table import MEASURES, QuestionRow, question_table_html
from cdlm_lab.widgets.questions import ReadQuestion, question_html, questions_page

__all__ = ["Settings", "evaluate", "predict", "prepare", "preview", "report", "train"]

STORYWORLD = "storyworld"
SPLITS = ("train", "dev", "test")
Questions = Mapping[str, tuple[MultihopQuestion, ...]]  # by split


class Encoder(NamedTuple):
    """One of CDLM's ablation, which answers."""

    name: str
    label: str


ENCODERS = {name: Encoder(name, variant_name(name)) for name in VARIANTS}


@settings
class Settings:
    """The parameters of notebook 06, whose first cell says what each is.

    Attributes:
        corpus: `storyworld`, or a folder of `train.json`, `dev.json` and `test.json` in HotpotQA's format or
            the hub's (`.jsonl` too, and compressed).
        train_stories, held_out_stories: of storyworld, two or three questions each.
        seen: of storyworld: `one document` = without the one that holds the clue, so that nobody can do
            better than guess.
        train_questions, held_out_questions: at most so many are drawn of the training questions, and of those
            of dev and of test; 0 = all.
        dev_from_train: of a folder: so many questions, drawn of `train.json`, are dev and not train; 0 =
            `dev.json` is dev. The paper reports on the official development set; nothing may be chosen there,
            and the official test set has no gold.
        encoders: where the variants are: `storyworld`, or a folder with a folder for each, such as `cdlm` or
            `cdlm/model`.
        reset_globals: Longformer and Local CDLM start with their local projections as the global ones, as in
            the paper; False = with those of the checkpoint. (Of the models of notebook 01 they are the same.)
        max_length: of a question with its paragraphs in tokens; what is longer loses the ends of its
            paragraphs, and is reported.
        support: which sentences are predicted as support.
    """

    run_folder: str = "runs/multihop_qa"
    corpus: str = STORYWORLD
    train_stories: int = Field(default=200, ge=2)
    held_out_stories: int = Field(default=40, ge=2)
    passage_sentences: int = 2
    paragraphs: int = Field(default=4, ge=2)
    seen: Literal["both documents", "one document"] = "both documents"
    train_questions: int = Field(default=0, ge=0)
    held_out_questions: int = Field(default=0, ge=0)
    dev_from_train: int = Field(default=0, ge=0)
    data_seed: int = 0
    variants: str = "longformer cdlm"
    encoders: str = STORYWORLD
    reset_globals: bool = True
    max_length: int = 512
    window: int = 32
    seeds: int = Field(default=1, ge=1)
    epochs: int = Field(default=2, ge=1)
    batch_size: int = 16
    micro_batch_size: int = 16
    learning_rate: float = 0.001
    warmup_steps: int = 20
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"
    support: Literal["threshold", "two_paragraphs"] = "threshold"
    most_answer_tokens: int = Field(default=30, ge=1)
    parallel: str = ""
    workers: Workers = "auto"
    shown_model: str = ""
    own_question: str = ""
    own_documents: str = ""

    def __post_init__(self) -> None:
        if self.dev_from_train and self.corpus == STORYWORLD:
            raise ParameterError("dev_from_train is of a folder: storyworld has stories of its own for dev")
        if bool(self.own_question) != bool(self.own_documents):
            missing = "own_documents" if self.own_question else "own_question"
            raise ParameterError(f'{missing} is ""; give a question and a file of documents, or neither')
        Processes.of(self.parallel)
        _ = self.shown

    @property
    def chosen(self) -> tuple[Encoder, ...]:
        """The encoders, in the paper's order."""
        return chosen_systems(self.variants, ENCODERS, parameter="variants")

    @property
    def shown(self) -> str:
        """Name of the encoder whose answers are shown. Raises ParameterError for one that is not trained."""
        names = [encoder.name for encoder in self.chosen]
        if self.shown_model and self.shown_model not in names:
            raise ParameterError(f"shown_model is {self.shown_model!r}; choose one of {', '.join(names)}")
        return self.shown_model or names[-1]

    def config(self, *, items: int, seed: int) -> TrainingConfig:
        """How each encoder is trained; weight decay and epsilon as in the released code, where the paper is
        silent. Raises ParameterError for values that cannot be."""
        names = ("epochs", "batch_size", "micro_batch_size", "learning_rate", "warmup_steps")
        given = {name: getattr(self, name) for name in (*names, "precision", "parallel", "workers")}
        config = config_of_passes(items=items, seed=seed, **given)
        return replace(config, weight_decay=0.01, adam_epsilon=1e-6)


# ---- questions ----


def read_questions(given: Settings) -> Questions:
    """Questions of train, dev and test; answers and supporting facts are known of all. Facts that name a
    sentence which is not there, as a few of the official ones do, are `unknown_supporting`.

    Raises:
        ParameterError: a corpus that is neither, a file without gold, or one question in two splits.
        DataError: a file that cannot be read.
    """
    if given.corpus == STORYWORLD:
        read = _of_storyworld(given)
    else:
        form = {"dev_from_train": given.dev_from_train, "seed": given.data_seed}
        read = read_question_folder(given.corpus, **form)
    return {split: tuple(_drawn(questions, split, given)) for split, questions in read.items()}


def _of_storyworld(given: Settings) -> dict[str, Sequence[MultihopQuestion]]:
    stories = dict.fromkeys(SPLITS, given.held_out_stories) | {"train": given.train_stories}
    form = {"sentences": given.passage_sentences, "paragraphs": given.paragraphs}
    withheld = given.seen == "one document"
    return {
        split: list(read_storyworld_questions(split, count, **form, withheld=withheld))
        for split, count in stories.items()
    }


def _drawn(questions: Sequence[MultihopQuestion], split: str, given: Settings) -> Sequence[MultihopQuestion]:
    """The questions that are used, in their order."""
    most = given.train_questions if split == "train" else given.held_out_questions
    if not most or most >= len(questions):
        return questions
    order = np.random.default_rng([given.data_seed, SPLITS.index(split)]).permutation(len(questions))
    return [questions[number] for number in sorted(order[:most])]


def cluster_of(question: MultihopQuestion) -> str:
    """What a question shares its paragraphs with others of, for intervals: of storyworld the story, else the
    question itself."""
    return question.id.rpartition("-q")[0] if question.id.startswith("storyworld-") else question.id


# ---- models and what they answer ----


@dataclass(frozen=True, kw_only=True)
class Answerer:
    """A model and how it reads questions."""

    model: QuestionAnswerer
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    def examples(self, questions: Sequence[MultihopQuestion], *, labelled: bool = True) -> QuestionExamples:
        """What `collate` makes batches of."""
        return QuestionExamples(
            questions=questions,
            encoded=EncodedQuestions(questions, self.tokenizer),
            special=from_tokenizer(self.tokenizer),
            marks=question_marks_of(self.tokenizer),
            max_length=self.max_length,
            labelled=labelled,
        )

    @property
    def collate(self) -> QuestionCollate:
        """From examples to batches."""
        return QuestionCollate(pad_token_id=self.tokenizer.pad_token_id)


@dataclass(frozen=True, kw_only=True)
class QuestionPredictions:
    """Answers to questions, in order."""

    questions: Sequence[MultihopQuestion]
    answers: Sequence[DecodedAnswer]

    def official(self) -> dict[str, dict[str, Any]]:
        """As the official evaluation takes them: `answer`, id -> text, and `sp`, id -> [[title, sentence]]."""
        pairs = list(zip(self.questions, self.answers, strict=True))
        return {
            "answer": {question.id: answer.text for question, answer in pairs},
            "sp": {question.id: _facts_of(question, answer) for question, answer in pairs},
        }

    def save(self, file: Path) -> None:
        """Write a line for each question, atomically."""
        pairs = zip(self.questions, self.answers, strict=True)
        write_rows(file, ({"id": question.id, **_plain(answer)} for question, answer in pairs))

    @classmethod
    def load(cls, file: Path, *, questions: Sequence[MultihopQuestion]) -> QuestionPredictions:
        """Read what `save` wrote. Raises ValueError if it is of other questions."""
        rows = read_rows(file, [question.id for question in questions], what="questions")
        return cls(questions=questions, answers=[_answer(row) for row in rows])


def _facts_of(question: MultihopQuestion, answer: DecodedAnswer) -> list[list[Any]]:
    """[title, sentence] of the predicted support."""
    return [[question.paragraphs[paragraph].title, sentence] for paragraph, sentence in answer.supporting]


def _plain(answer: DecodedAnswer) -> dict[str, Any]:
    """Without keys that JSON has not: sentences are rows of paragraph, sentence, probability."""
    sentences = [[*place, round(value, 6)] for place, value in answer.sentence_probabilities.items()]
    return asdict(answer) | {"sentence_probabilities": sentences}


def _answer(row: Mapping[str, Any]) -> DecodedAnswer:
    sentences = {(paragraph, number): value for paragraph, number, value in row["sentence_probabilities"]}
    spans = (AnswerSpan(text, score, Place(*place)) for text, score, place in row["n_best"])
    return DecodedAnswer(
        text=row["text"],
        type=row["type"],
        type_probabilities=row["type_probabilities"],
        place=row["place"] and Place(*row["place"]),
        n_best=tuple(spans),
        sentence_probabilities=sentences,
        paragraph_probabilities=tuple(row["paragraph_probabilities"]),
        supporting=tuple((paragraph, number) for paragraph, number in row["supporting"]),
    )


# ---- the run ----


@dataclass(frozen=True, kw_only=True)
class MultihopRun(SystemRun):
    """The questions of a run, and how its encoders are trained and answer."""

    NAME: ClassVar[str] = "multihop question answering"
    ITEMS: ClassVar[str] = "questions"

    settings: Settings
    questions: Questions

    @classmethod
    def read(cls, given: Settings) -> MultihopRun:
        """Look whether the encoders are there, and read the questions."""
        for encoder in given.chosen:
            checkpoint_of(given.encoders, encoder.name)
        run = cls(settings=given, questions=read_questions(given))
        _ = run.config(0)
        return run

    @property
    def systems(self) -> tuple[Encoder, ...]:
        """The encoders, in the paper's order."""
        return self.settings.chosen

    @property
    def data(self) -> dict[str, Any]:
        """What the report says of the questions."""
        return {
            "corpus": self.settings.corpus,
            "precision": precision_told(self.settings.precision),
            "questions": {split: len(questions) for split, questions in self.questions.items()},
            "clusters": {split: len(set(map(cluster_of, some))) for split, some in self.questions.items()},
        }

    def sets(self, training: Training) -> tuple[str, ...]:
        """Dev and test."""
        return "dev", "test"

    def config(self, seed: int) -> TrainingConfig:
        """Raises ParameterError for values that cannot be."""
        return self.settings.config(items=len(self.questions["train"]), seed=seed)

    def answerer(self, training: Training, *, trained: bool) -> Answerer:
        """A new one on an encoder, or the one that was trained."""
        given, name = self.settings, training.system.name
        model, tokenizer = load_question_answerer(
            self.model_folder(training) if trained else checkpoint_of(given.encoders, name),
            max_length=given.max_length,
            window=given.window,
            attention_dropout=given.attention_dropout,
            seed=training.seed,
        )
        if given.reset_globals and not trained:
            reset_globals(model, name)
        return Answerer(model=model, tokenizer=tokenizer, max_length=given.max_length)

    @cached_property
    def untrained(self) -> Answerer:
        """A new one on the first encoder, loaded once for all that looks before the start; not to be
        trained."""
        return self.answerer(self.trainings[0], trained=False)

    def job(self, training: Training) -> TrainingJob:
        """A new answerer on the questions of train."""
        return self._job(self.answerer(training, trained=False), self.config(training.seed))

    def trial(self) -> TrainingJob:
        """What the first encoder learns, not to be run: all encoders are of one size."""
        return self._job(self.untrained, self.config(0))

    def _job(self, answerer: Answerer, config: TrainingConfig) -> TrainingJob:
        return TrainingJob(
            model=answerer.model,
            tokenizer=answerer.tokenizer,
            train_examples=answerer.examples(list(in_training_order(self.questions["train"], config))),
            validation_examples=answerer.examples(self.questions["dev"]),
            collate=answerer.collate,
            config=config,
        )

    def load(self, training: Training) -> Answerer:
        """The trained one."""
        return self.answerer(training, trained=True)

    def predict_set(self, loaded: Answerer, name: str, bar: str) -> QuestionPredictions:
        """Answers to the questions of a split."""
        return self.answers(loaded, loaded.examples(self.questions[name], labelled=False), name=bar)

    def answers(
        self, loaded: Answerer, examples: QuestionExamples, *, name: str | None = None
    ) -> QuestionPredictions:
        """Answers to any questions, read the longest first, so that batches hold little padding; `name`
        beside the bar, None = no bar."""
        given, questions = self.settings, examples.questions
        loaded.model.to(default_device())
        # in characters: tokens would need all sequences at once
        lengths = [sum(map(len, (one.text, *_paragraph_texts(one)))) for one in questions]
        answers: dict[int, DecodedAnswer] = {}
        with Progress(total=len(examples), desc=name, unit="question", disable=name is None) as bar:
            for numbers in batches_by_length(lengths, [0] * len(lengths), given.micro_batch_size):
                sequences = [examples.describe(number) for number in numbers]
                inputs = [sequence.inputs for sequence in sequences]
                output = output_of(loaded.model, inputs, loaded.collate, precision=given.precision)
                for row, (number, sequence) in enumerate(zip(numbers, sequences, strict=True)):
                    form = {"support": given.support, "most_tokens": given.most_answer_tokens}
                    answers[number] = decode(questions[number], sequence, output.row(row), **form)
                bar.update(len(numbers))
        return QuestionPredictions(questions=questions, answers=[answers[n] for n in range(len(answers))])

    def read_predictions(self, file: Path, name: str) -> QuestionPredictions:
        """Answers to the questions of a split."""
        return QuestionPredictions.load(file, questions=self.questions[name])


def _paragraph_texts(question: MultihopQuestion) -> list[str]:
    return [text for one in question.paragraphs for text in (one.title, one.text)]


Predictions = Mapping[tuple[str, int], Mapping[str, QuestionPredictions]]  # (encoder, seed) -> split


def prepare(given: Settings) -> MultihopRun:
    """Take the folder, read the questions and look whether all is there; nothing is trained.

    Raises:
        ValueError: whatever does not fit, in one line.
        RunError: the folder is not free for this run.
    """
    own_texts(given)
    return MultihopRun.open(given)


# ---- before the start ----

LOOKED_AT = 500  # questions of a split that are read before the start: 90,000 would take most of an hour
CUT = "its share of the room"


def preview(run: MultihopRun) -> HTML:
    """What is asked and what training will cost."""
    return facts_table(question_facts(run) + training_facts(run))


def question_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What is asked, and what of the first LOOKED_AT questions of each split fits into the sequences, as
    (name, text)."""
    rows = []
    for split, questions in run.questions.items():
        kinds = Counter(one.kind or "other" for one in questions)
        types = Counter(one.type for one in questions)
        listed = ", ".join(f"{count:,} {name}" for name, count in kinds.most_common())
        yes_no = types["yes"] + types["no"]
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
    """What training an encoder takes, as (name, text); one batch is learned from to know that."""
    job = run.trial()
    examples = [job.train_examples[number] for number in range(job.config.micro_batch_size)]
    batch = job.collate(examples)
    masks = (batch[name].sum(1).float().mean().item() for name in ("attention_mask", "global_attention_mask"))
    sizes = "{:,.0f} tokens, {:.0f} of them global".format(*masks)
    cost = cost_in_words(job, items="questions", parallel=run.settings.parallel)
    return [
        ("an example", f"{sizes}: question, starts of titles and sentences"),
        ("training", f"{cost}; times {len(run.trainings)} (encoders and seeds)"),
        ("precision of training", precision_told(job.config.precision)),
    ]


def example(run: MultihopRun, *, index: int = 0) -> PackedPreview:
    """A training question in its sequence: the question, then each paragraph."""
    question, answerer = run.questions["train"][index], run.untrained
    examples = answerer.examples([question])
    sequence, encoded = examples.describe(0), examples.encoded[question.id]
    texts, starts_word = token_texts(answerer.tokenizer, sequence.input_ids)
    special = examples.special.is_special(sequence.input_ids)
    first, last = np.flatnonzero(special & (sequence.paragraph < 0))[1:3]  # [q] and [/q], after [CLS]
    places = np.arange(len(texts))
    in_question = (places >= first) & (places <= last)
    documents = [DocumentLoss(title=question.text, kept=int((in_question & ~special).sum()))]
    for number, (paragraph, tokens) in enumerate(zip(question.paragraphs, encoded.paragraphs, strict=True)):
        read = int(((sequence.paragraph == number) & ~special).sum())
        cut = len(tokens.ids) + len(tokens.title_ids) - read
        documents.append(DocumentLoss(title=paragraph.title, kept=read, cut=cut, reason=CUT if cut else ""))
    cost = estimate(
        answerer.model.config,
        length=len(texts),
        batch=run.settings.micro_batch_size,
        global_tokens=float(sequence.global_attention_mask.sum()),
        bytes_per_number=bytes_per_number(run.settings.precision),
    )
    return PackedPreview(
        tokens=texts,
        document=np.where(in_question, 0, np.where(sequence.paragraph < 0, -1, sequence.paragraph + 1)),
        masked=np.zeros(len(texts), dtype=bool),
        replacement=[None] * len(texts),
        global_=sequence.global_attention_mask == 1,
        special=special,
        documents=documents,
        starts_word=starts_word,
        title="A question with its paragraphs, as a model reads it",
        memory_bytes=cost.peak_bytes,
    )


# ---- scores ----

TESTED = ("f1", "sp_f1", "joint_f1")  # the columns of the paper's Table 5
AGAINST = "longformer"  # what the variants are tested against


def evaluate(run: MultihopRun, predictions: Predictions) -> Scores:
    """Scores of all encoders on dev and test, and the tests between them; the official prediction file of test
    of each training is written beside its answers."""
    gold = {split: [hotpot_record(one) for one in run.questions[split]] for split in ("dev", "test")}
    values: dict[Cell, list[np.ndarray]] = {}
    for training in run.trainings:
        for split, one in predictions[training.key].items():
            official = one.official()
            if split == "test":
                file = run.folder_of(training) / "test_predictions.json"
                write_predictions(file, official["answer"], official["sp"])
            for measure, scores in scores_by_question(gold[split], official).items():
                values.setdefault(Cell(training.system.name, split, measure), []).append(scores)
    clusters = {split: list(map(cluster_of, questions)) for split, questions in run.questions.items()}
    names = [encoder.name for encoder in run.systems]
    tests = []
    for measure in TESTED:
        against = Cell(AGAINST, "test", measure)
        pairs = [(against._replace(system=name), against) for name in names if name != AGAINST]
        tests += paired_tests(pairs if AGAINST in names else [], values, clusters)
    kinds = [
        {"system": name, "split": split, **row}
        for name in names
        for split in gold
        for row in _by_kind(
            run.questions[split], {measure: values[Cell(name, split, measure)] for measure in HOTPOTQA_SCORES}
        )
    ]
    return Scores(rows=score_rows(values, clusters, tests), tables={"comparisons": tests, "kinds": kinds})


def _by_kind(
    questions: Sequence[MultihopQuestion], of_measure: Mapping[str, list[np.ndarray]]
) -> list[dict[str, Any]]:
    """The means of bridge and comparison questions, and of yes-or-no ones."""
    means = {measure: np.mean(seeds, axis=0) for measure, seeds in of_measure.items()}
    kinds = sorted({one.kind for one in questions})
    groups = {kind: [one.kind == kind for one in questions] for kind in kinds}
    groups["yes or no"] = [one.type in ("yes", "no") for one in questions]
    return [
        {
            "kind": kind,
            "questions": int(np.sum(chosen)),
            **{measure: float(values[chosen].mean()) for measure, values in means.items()},
        }
        for kind, chosen in groups.items()
        if any(chosen)
    ]


def score_table(report: Report, split: str = "test") -> HTML:
    """Answer, support and joint scores of each encoder beside the paper's."""
    return HTML(question_table_html(question_rows(report, split), questions=report.data["questions"][split]))


def question_rows(report: Report, split: str = "test") -> list[QuestionRow]:
    """A row for each encoder of a report, in order."""
    scores: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in report.rows:
        if row.split == split and row.metric in MEASURES and row.seed is None:
            scores.setdefault(row.system, {})[row.metric] = row.value, row.low, row.high
    return [QuestionRow(label=variant_name(name), variant=name, values=of) for name, of in scores.items()]


def kind_table(report: Report, split: str = "test") -> HTML:
    """Encoder, kind, number of questions, and F1 of answer, support and both."""
    columns = ["encoder", "questions", "how many", "answer", "support", "joint"]
    rows = [
        [
            variant_name(row["system"]),
            escaped(row["kind"] or "not known"),
            f"{row['questions']:,}",
            *(f"{100 * row[measure]:.1f}" for measure in TESTED),
        ]
        for row in report.tables["kinds"]
        if row["split"] == split
    ]
    return HTML(table_html(columns, rows, text_columns=(0, 1)))


# ---- answers in place ----

ON_A_PAGE = 50
# What stands in the boxes before anything is typed.
EXAMPLE_QUESTION = "Where does the author of the early warning teach?"
EXAMPLE_DOCUMENTS = """\
== Warning came years ago ==
A paper dated 1995 had warned of just this; its author is Kryla Truldei, an engineer. The council read it \
and put it away.

== Students bring soup ==
Students of Triard University came by bus with an engineer, Kryla Truldei, who teaches there. They stayed \
until the morning.

== Ferry back in service ==
The ferry to Telk sails again from Monday. Tickets cost what they did before.
"""


def answers_in_place(run: MultihopRun, predictions: Predictions) -> Widget:
    """Questions of dev to leaf through, as the shown encoder answers them with seed 0; the first ON_A_PAGE of
    them also go to `answers.html` in the folder of the run, which needs no kernel."""
    reads = answered_questions(predictions[run.settings.shown, 0]["dev"])
    _write_page(reads[:ON_A_PAGE], run.folder / "answers.html", title="Questions and answers")
    return question_browser(reads)


def answered_questions(predictions: QuestionPredictions) -> list[ReadQuestion]:
    """Each question with its answer, its gold, and how well they agree."""
    pairs = zip(predictions.questions, predictions.answers, strict=True)
    return [_answered(question, answer) for question, answer in pairs]


def _answered(question: MultihopQuestion, answer: DecodedAnswer) -> ReadQuestion:
    known, scores = has_gold(question), {}
    if known:
        facts = _facts_of(question, answer)
        scores = question_scores(hotpot_record(question), answer=answer.text, supporting=facts)
    numbers = {paragraph.title: number for number, paragraph in enumerate(question.paragraphs)}
    gold = frozenset((numbers[title], sentence) for title, sentence in question.supporting)
    return ReadQuestion(
        id=question.id,
        question=question.text,
        kind=question.kind,
        gold_answer=question.answer,
        answer=answer.text,
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


def own_question_in_place(run: MultihopRun) -> Widget:
    """Boxes for a question and documents of one's own, and the answer of the shown encoder, trained with seed
    0, that to what stands in the boxes at first included.

    Raises ValueError if these cannot be read.
    """
    answer = own_answer(run)
    question, documents = own_texts(run.settings)
    answered = answer(question, pasted_documents(documents))
    return own_question_box(answer, question=question, documents=documents, answered=answered)


def own_answer(run: MultihopRun) -> Callable[[str, Sequence[tuple[str, str]]], str]:
    """From a question and (title, text) of documents to HTML: the answer of the shown encoder, trained with
    seed 0, which is also written to `own_question.html` in the folder of the run.

    The function raises ValueError for what cannot be read.
    """
    training = next(one for one in run.trainings if one.key == (run.settings.shown, 0))
    loaded: list[Answerer] = []

    def answer(text: str, documents: Sequence[tuple[str, str]]) -> str:
        question = _own(text, documents)
        if not loaded:
            loaded.append(run.load(training))
        examples = loaded[0].examples([question], labelled=False)
        (read,) = answered_questions(run.answers(loaded[0], examples))
        _write_page([read], run.folder / "own_question.html", title=text)
        return question_html(read)

    return answer


def own_texts(given: Settings) -> tuple[str, str]:
    """The question and the text of the file of documents, or the example. Raises DataError for a file that
    cannot be read."""
    if not given.own_question:
        return EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS
    return given.own_question, read_text(given.own_documents)


def _write_page(reads: Sequence[ReadQuestion], file: Path, *, title: str) -> None:
    with replaced_file(file) as opened:
        opened.write(questions_page(reads, title=title))


def _own(text: str, documents: Sequence[tuple[str, str]]) -> MultihopQuestion:
    paragraphs = []
    for title, body in documents:
        sentences = split_sentences(body)
        spaced = (f"{sentence} " for sentence in sentences[:-1])
        paragraphs.append(Paragraph(title=title, sentences=(*spaced, *sentences[-1:])))
    question = MultihopQuestion(id="own", text=text.strip(), paragraphs=tuple(paragraphs))
    check_question(question, where="your documents")
    return question
