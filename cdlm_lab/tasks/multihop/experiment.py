"""Multi-hop questions, which need two documents (CDLM section 3.4 and C.3, Table 5): notebook 06.

Each encoder is trained with each seed; the epoch with the lowest loss on dev is kept. Each trained model
answers the test questions once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from ipywidgets import Widget
from pydantic import Field
from torch import nn

from cdlm_lab.data.convert.hotpotqa import read_question_folder, write_predictions
from cdlm_lab.data.files import read_text
from cdlm_lab.data.marked import pasted_documents
from cdlm_lab.data.questions import asked_by_its_clue
from cdlm_lab.data.records import MultihopQuestion
from cdlm_lab.data.storyworld.task_sets import read_storyworld_questions
from cdlm_lab.data.text_profile import texts_of_record
from cdlm_lab.encoders.conversion import reset_globals
from cdlm_lab.encoders.encoder import check_lengths
from cdlm_lab.encoders.estimate import bytes_per_number, estimate
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.encoders.variants import checkpoint_of, variant_name
from cdlm_lab.examples.tokens import token_texts
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.runs import runs
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.runs import (
    EpochSettings,
    System,
    SystemRun,
    Training,
    predict,
    report,
    train,
    train_small,
)
from cdlm_lab.runs.scoring import Cell, paired_tests, score_rows
from cdlm_lab.tasks.multihop import systems as answering
from cdlm_lab.tasks.multihop.examples import FitFacts
from cdlm_lab.tasks.multihop.metrics import HOTPOTQA_SCORES
from cdlm_lab.tasks.multihop.model import load_question_answerer
from cdlm_lab.tasks.multihop.systems import (
    Answerer,
    QuestionPredictions,
    answered_questions,
    question_on,
)
from cdlm_lab.tasks.multihop.view import question_browser, question_html, questions_page
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob, in_training_order
from cdlm_lab.training.trained import trained_parameters
from cdlm_lab.views import score_tables
from cdlm_lab.views.ask import own_question_box
from cdlm_lab.views.before_training import cost_facts, cost_in_words, facts_table, time_taken
from cdlm_lab.views.html import warning
from cdlm_lab.views.packed import DocumentLoss, PackedPreview
from cdlm_lab.views.score_tables import score_table
from cdlm_lab.views.tables import ScoreTable, Shown, text_table

__all__ = ["Settings", "evaluate", "predict", "prepare", "preview", "report", "train", "train_small"]
__all__ += ["score_table", "trained_alike"]

STORYWORLD = "storyworld"
SPLITS = ("train", "dev", "test")
# Control: test without the documents that hold the clues. What is right there was not read across documents.
ONE_DOCUMENT = "test_one_document"
Questions = Mapping[str, tuple[MultihopQuestion, ...]]  # by split


@settings
class Settings(EpochSettings):
    """The parameters of notebook 06, whose first cell says what each is."""

    run_folder: str = "runs/multihop_qa"
    trained: str = ""  # a run whose models are opened; "" = they are trained
    # `storyworld`, or a folder of `train.json`, `dev.json` and `test.json` in HotpotQA's format or the hub's
    # (`.jsonl` too, and compressed).
    corpus: str = STORYWORLD
    train_stories: int = Field(default=200, ge=2)
    held_out_stories: int = Field(default=40, ge=2)
    passage_sentences: int = 2
    paragraphs: int = Field(default=4, ge=2)
    # Without the document that holds the clue nobody can do better than guess.
    seen: Literal["both documents", "one document"] = "both documents"
    kinds: Literal["all", "bridge", "comparison"] = "all"  # questions of other kinds are left out
    # In training each bridge question is also asked in the words of the sentence that holds its clue: finding
    # a name again is one step, which a small model learns first and then uses in two-step questions.
    clue_questions: bool = False
    train_questions: int = Field(default=0, ge=0, description="0 means all")
    held_out_questions: int = Field(default=0, ge=0, description="0 means all")
    # The paper reports on the official development set, so nothing may be selected on it, and the official
    # test set has no gold: so dev is sampled from train.
    dev_from_train: int = Field(default=0, ge=0)
    data_seed: int = 0
    variants: str = "local-cdlm"
    # Or a folder with a folder for each, such as `cdlm` or `cdlm/model`; a run of this notebook; a model.
    encoders: str = STORYWORLD
    reset_globals: bool = True
    max_length: int = 512  # longer sequences lose the ends of their paragraphs, which is reported
    window: int = 512
    select_by: Literal["loss", "f1"] = "loss"  # the epoch that is kept: by loss, or by joint F1, on dev
    paragraph_types: int = Field(default=4, ge=0)  # so many paragraphs have their own token type; paper: none
    support: Literal["threshold", "two_paragraphs"] = "threshold"
    most_answer_tokens: int = Field(default=30, ge=1)
    shown_model: str = ""
    own_question: str = ""
    own_documents: str = ""

    def __post_init__(self) -> None:
        if self.dev_from_train and self.corpus == STORYWORLD:
            raise ParameterError("dev_from_train is of a folder: storyworld has stories of its own for dev")
        if bool(self.own_question) != bool(self.own_documents):
            missing = "own_documents" if self.own_question else "own_question"
            raise ParameterError(f'{missing} is ""; give a question and a file of documents, or neither')
        super().__post_init__()
        check_lengths(self.max_length, self.window)
        _ = self.shown

    @property
    def chosen(self) -> tuple[System, ...]:
        """The encoders, in the paper's order."""
        return runs.chosen_systems(self.variants, answering.ENCODERS, parameter="variants")

    @property
    def shown(self) -> System:
        """The encoder whose answers are shown. Raises ParameterError if it is not among the trained ones."""
        return runs.shown_system(self.shown_model, self.chosen, parameter="shown_model")

    def config(self, *, items: int, seed: int) -> TrainingConfig:
        """The training config. Weight decay and epsilon follow the released code; the paper is silent."""
        config = super().config(items=items, seed=seed)
        return replace(config, weight_decay=0.01, adam_epsilon=1e-6)


# ---- questions ----


def read_questions(given: Settings) -> Questions:
    """Questions of train, dev and test. Supporting facts that name a missing sentence, as a few official ones
    do, become `unknown_supporting`. Raises ParameterError for an unknown kind of corpus, a file without gold
    answers, or a question in two splits."""
    if given.corpus == STORYWORLD:
        stories = dict.fromkeys(SPLITS, given.held_out_stories) | {"train": given.train_stories}
        form = {"sentences": given.passage_sentences, "paragraphs": given.paragraphs}
        form |= {"withheld": given.seen == "one document"}
        read = {split: list(read_storyworld_questions(split, n, **form)) for split, n in stories.items()}
    else:
        read = read_question_folder(given.corpus, dev_from_train=given.dev_from_train, seed=given.data_seed)
    most = dict.fromkeys(SPLITS, given.held_out_questions) | {"train": given.train_questions}
    seeds = {split: [given.data_seed, number] for number, split in enumerate(SPLITS)}
    if given.corpus == STORYWORLD and given.seen == "both documents":
        withheld = form | {"withheld": True}
        read[ONE_DOCUMENT] = list(read_storyworld_questions("test", given.held_out_stories, **withheld))
        most[ONE_DOCUMENT], seeds[ONE_DOCUMENT] = most["test"], seeds["test"]
    if given.kinds != "all":
        read = {split: [one for one in some if one.kind == given.kinds] for split, some in read.items()}
        if empty := [split for split, some in read.items() if not some]:
            raise ParameterError(f"kinds is {given.kinds!r}, of which {given.corpus} has none in {empty[0]}")
    questions = {split: runs.drawn(some, most[split], seed=seeds[split]) for split, some in read.items()}
    if given.clue_questions:
        questions["train"] += tuple(filter(None, map(asked_by_its_clue, questions["train"])))
    return questions


def cluster_of(question: MultihopQuestion) -> str:
    """The cluster of a question for intervals: its story in storyworld, else the question itself."""
    return runs.story_or_id(question.id, mark="-q")


# ---- the run ----

Predictions = Mapping[tuple[str, int], Mapping[str, QuestionPredictions]]  # (encoder, seed) -> split


@dataclass(frozen=True, kw_only=True)
class MultihopRun(SystemRun):
    """A run of notebook 06: its questions, and how its encoders are trained and answer."""

    NAME: ClassVar[str] = "multihop question answering"
    SHAPES: ClassVar[tuple[str, ...]] = ("max_length", "window", "paragraph_types")

    settings: Settings
    questions: Questions

    @classmethod
    def read(cls, given: Settings) -> MultihopRun:
        """Check that the encoders are available, and read the questions."""
        for encoder in given.chosen if not given.trained else ():
            checkpoint_of(given.encoders, encoder.name)
        run = cls(settings=given, questions=read_questions(given))
        given.config(items=len(run.questions["train"]), seed=0)  # raises for impossible values
        return run

    def records(self, split: str) -> Sequence[MultihopQuestion]:
        """The questions of a split."""
        return self.questions[split]

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the questions, stored in the report."""
        return {
            "corpus": self.settings.corpus,
            "precision": precision_in_words(self.settings.precision),
            "questions": {split: len(questions) for split, questions in self.questions.items()},
            "clusters": {split: len(set(map(cluster_of, some))) for split, some in self.questions.items()},
        }

    def check(self) -> None:
        """Raise an error if an encoder does not fit."""
        super().check()
        for training in self.trainings[:: self.settings.seeds]:
            self.answerer(training, trained=bool(self.settings.trained))

    def begins_with(self, training: Training) -> str:
        """The encoder of that name."""
        return checkpoint_of(self.settings.encoders, training.system.name)

    def sets(self, training: Training) -> tuple[str, ...]:
        """All splits except train."""
        return tuple(split for split in self.questions if split != "train")

    def answerer(self, training: Training, *, trained: bool) -> Answerer:
        """A new answerer on an encoder, or the trained one."""
        given, name = self.settings, training.system.name
        model, tokenizer = load_question_answerer(
            self.model_folder(training) if trained else checkpoint_of(given.encoders, name),
            max_length=given.max_length,
            window=given.window,
            paragraph_types=given.paragraph_types,
            attention_dropout=given.attention_dropout,
            seed=training.seed,
        )
        if given.reset_globals and not trained:
            reset_globals(model, name)
        return Answerer(model=model, tokenizer=tokenizer, max_length=given.max_length)

    @cached_property
    def untrained(self) -> Answerer:
        """The first answerer, for views and estimates before training; not to be trained."""
        return self.answerer(self.trainings[0], trained=bool(self.settings.trained))

    def job(self, training: Training, *, answerer: Answerer | None = None) -> TrainingJob:
        """A training job for a new answerer on the questions of train."""
        answerer, questions = answerer or self.answerer(training, trained=False), self.questions["train"]
        config = self.settings.config(items=len(questions), seed=training.seed)

        def judge(model: nn.Module) -> float:
            answered = self.predict_set(replace(answerer, model=model), "dev", "dev after this epoch")
            return float(answered.scores()["joint_f1"].mean())

        return TrainingJob(
            model=answerer.model,
            tokenizer=answerer.tokenizer,
            train_examples=answerer.examples(list(in_training_order(questions, config))),
            validation_examples=answerer.examples(self.questions["dev"]),
            collate=answerer.collate,
            config=config,
            judge=judge if self.settings.select_by == "f1" else None,
        )

    def load(self, training: Training) -> Answerer:
        """The trained answerer."""
        return self.answerer(training, trained=True)

    def predict_set(self, loaded: Answerer, name: str, bar: str) -> QuestionPredictions:
        """Answer the questions of a split."""
        return self.answers(loaded, self.questions[name], name=bar)

    def answers(
        self, loaded: Answerer, questions: Sequence[MultihopQuestion], *, name: str | None = None
    ) -> QuestionPredictions:
        """Answer any questions; `name`: text beside the progress bar, None = no bar."""
        given = self.settings
        return answering.predict_answers(
            loaded,
            loaded.examples(questions, labelled=False),
            support=given.support,
            most_tokens=given.most_answer_tokens,
            batch_size=given.micro_batch_size,
            precision=given.precision,
            name=name,
        )

    def read_predictions(self, file: Path, name: str) -> QuestionPredictions:
        """Read the answers to the questions of a split."""
        return QuestionPredictions.load(file, questions=self.questions[name])


def prepare(given: Settings) -> MultihopRun:
    """Claim the run folder, read the questions, and check that all models are available."""
    own_texts(given)
    return MultihopRun.open(given)


# ---- before training ----

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
    texts, starts_word = token_texts(answerer.tokenizer, sequence.input_ids)
    special = examples.special.is_special(sequence.input_ids)
    first, last = np.flatnonzero(special & (sequence.paragraph < 0))[1:3]  # [q] and [/q], after [CLS]
    places = np.arange(len(texts))
    in_question = (places >= first) & (places <= last)
    documents = [DocumentLoss(title=question.text)]
    for number, (paragraph, tokens) in enumerate(zip(question.paragraphs, encoded.paragraphs, strict=True)):
        read = int(((sequence.paragraph == number) & ~special).sum())
        cut = len(tokens.ids) + len(tokens.title_ids) - read
        reason = "its share of the room" if cut else ""
        documents.append(DocumentLoss(title=paragraph.title, cut=cut, reason=reason))
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
        replacement=[None] * len(texts),
        global_=sequence.global_attention_mask == 1,
        special=special,
        documents=documents,
        starts_word=starts_word,
        mask_token=answerer.tokenizer.mask_token,
        title="A question with its paragraphs, as a model reads it",
        memory_bytes=cost.peak_bytes,
    )


# ---- scores ----

TESTED = ("f1", "sp_f1", "joint_f1")  # the columns of the paper's Table 5
AGAINST = "longformer"  # the baseline in the significance tests


@runs.once
def evaluate(run: MultihopRun, predictions: Predictions) -> runs.Scores:
    """Scores of all encoders, and the significance tests between them; also writes, beside the answers of
    each training, a prediction file for test in the official format."""
    values: dict[Cell, list[np.ndarray]] = {}
    for training in run.trainings:
        for split, one in predictions[training.key].items():
            if split == "test":
                file, official = run.folder_of(training) / "test_predictions.json", one.official()
                write_predictions(file, official["answer"], official["sp"])
            for measure, scores in one.scores().items():
                values.setdefault(Cell(training.system.name, split, measure), []).append(scores)
    clusters = {split: list(map(cluster_of, questions)) for split, questions in run.questions.items()}
    names = [encoder.name for encoder in run.systems]
    tests = []
    for against in (Cell(AGAINST, "test", measure) for measure in TESTED if AGAINST in names):
        pairs = [(against._replace(system=name), against) for name in names if name != AGAINST]
        tests += paired_tests(pairs, values, clusters)
    kinds = [
        {"system": name, "split": split, **row}
        for name in names
        for split in run.sets(run.trainings[0])
        for row in _by_kind(
            run.questions[split], {measure: values[Cell(name, split, measure)] for measure in HOTPOTQA_SCORES}
        )
    ]
    rows = score_rows(values, clusters, tests)
    return runs.Scores(rows=rows, tables={"comparisons": tests, "kinds": kinds})


def control_table(report: Report) -> ScoreTable | Shown:
    """The score table on test without the documents that hold the clues."""
    return score_tables.control_table(report, ONE_DOCUMENT, score_table, caption="test, one document")


def _by_kind(
    questions: Sequence[MultihopQuestion], of_measure: Mapping[str, list[np.ndarray]]
) -> list[dict[str, Any]]:
    """Mean scores of bridge and comparison questions, and of yes-or-no questions."""
    means = {measure: np.mean(seeds, axis=0) for measure, seeds in of_measure.items()}
    kinds = sorted({one.kind for one in questions})
    groups = {kind: np.array([one.kind == kind for one in questions]) for kind in kinds}
    groups[_YES_NO] = np.array([one.type in ("yes", "no") for one in questions])
    rows = []
    for kind, chosen in groups.items():
        if chosen.any():
            of_kind = {measure: float(values[chosen].mean()) for measure, values in means.items()}
            rows.append({"kind": kind, "questions": int(chosen.sum()), **of_kind})
    return rows


def trained_alike(run: MultihopRun, own: Report, *, name: str) -> Report:
    """A report that compares encoders trained alike: `own`, if this run has the baseline and another encoder.
    Else that of the run `name`, whose models answer the questions of this run, in `trained_alike/` of its
    folder; or, on another corpus than theirs, `own` again."""
    given, made = run.settings, trained_parameters(name)
    names = {one.name for one in run.systems}
    if (AGAINST in names and len(names) > 1) or given.corpus != made["corpus"]:
        return own
    models = {setting: made[setting] for setting in (*MultihopRun.SHAPES, "variants", "encoders")}
    of_them = {
        "trained": name,
        "seeds": 1,
        "shown_model": "",
        "run_folder": f"{given.run_folder}/trained_alike",
    }
    other = MultihopRun.open(replace(given, **models, **of_them))
    return runs.report(other, evaluate(other, runs.predict(other)))


# ---- views ----

_YES_NO = "of all, yes or no"  # a part of the other kinds, which by themselves add up to all questions


def kind_table(report: Report, split: str = "test") -> ScoreTable:
    """Encoder, kind of question, number of questions, and F1 of answer, support and joint."""
    rows = []
    for row in report.tables["kinds"]:
        if row["split"] == split:
            first = [variant_name(row["system"]), row["kind"] or "not known", f"{row['questions']:,}"]
            rows.append([*first, *(f"{100 * row[measure]:.1f}" for measure in TESTED)])
    return text_table(["encoder", "questions", "how many", "answer", "support", "joint"], rows, texts=2)


ON_A_PAGE = 50
# The text in the input boxes before the reader types.
EXAMPLE_QUESTION = "Where does the author of the early warning teach?"
EXAMPLE_DOCUMENTS = """\
== Machines under suspicion in election muddle ==
Some 655 officers were brought in from all over Storstusund county. Lecturer Rungerens Doendyholt, of \
Klivaholt University, declined to comment.

== A few votes turn the election ==
The post brought 328 ballots from the suburb of Svumeines. A paper dated 1993 had warned of just this; its \
author is Rungerens Doendyholt, 63, a lecturer.

== Machines blamed in vote muddle ==
Naizugeen Daykhopour, 42, a geographer, of the university Nuvairoyan College, which employs 801 people, \
asked for patience. A motion tabled by the deputy mayor passed by 68 votes to 11.
"""


def answers_in_place(run: MultihopRun, predictions: Predictions) -> Widget:
    """A browser of the dev questions with the answers of the shown encoder (seed 0); the first ON_A_PAGE also
    go to `answers.html`, which opens without a kernel."""
    of_dev = predictions[run.settings.shown.name, 0]["dev"]
    reads = answered_questions(of_dev, support=run.settings.support)
    page = questions_page(reads[:ON_A_PAGE], title="Questions and answers")
    runs.write_page(run.folder / "answers.html", page)
    return question_browser(reads)


def own_question_in_place(run: MultihopRun) -> Widget:
    """Input boxes for the reader's own question and documents, and the answer of the shown encoder."""
    question, documents = own_texts(run.settings)
    ask = partial(answer_own, run)
    answered = ask(question, pasted_documents(documents))
    return own_question_box(ask, question=question, documents=documents, answered=answered)


def answer_own(run: MultihopRun, text: str, documents: Sequence[tuple[str, str]]) -> str:
    """HTML of the shown encoder's answer to a question about documents, given as (title, text); also written
    to `own_question.html`. Raises ValueError if they cannot be read."""
    question = question_on(text, documents)
    answers = run.answers(run.loaded(run.settings.shown), [question])
    (read,) = answered_questions(answers, support=run.settings.support)
    foreign = run.foreign(texts_of_record(question))
    page = questions_page([read], title=text, foreign=foreign)
    runs.write_page(run.folder / "own_question.html", page)
    return f"{warning(foreign)}{question_html(read)}"


def own_texts(given: Settings) -> tuple[str, str]:
    """The question and documents from the settings, or the built-in example."""
    if not given.own_question:
        return EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS
    return given.own_question, read_text(given.own_documents)
