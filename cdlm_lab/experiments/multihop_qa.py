"""Questions that need two documents (CDLM section 3.4 and C.3, Table 5): notebook 06.

Each encoder is trained with each seed; of its passes over the training questions the one with the lowest loss
on dev is kept. Test questions are answered once by each. All that is finished stays in the run folder: a
stopped run goes on where it was.

From the corpus that notebook 06 names to questions in three splits: storyworld, or files in HotpotQA's
format.

What a trained model answers, kept on disk: a line of JSON for each question.

A question as a model reads it, as a picture: what is global, what is cut, what a step costs.

Before and after a run of notebook 06: what is asked and what it will cost, the scores, and their tests.

Questions with a model's answers in place: of dev or test, or one of one's own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ipywidgets import Widget
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.document_pairs import split_sentences
from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.questions import (
    MultihopQuestion,
    Paragraph,
    SupportingFact,
    check_question,
    hotpot_record,
    read_hotpotqa,
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
from cdlm_lab.examples.tokens import from_tokenizer, token_texts
from cdlm_lab.experiments.cluster_corpora import VARIANTS, checkpoint_of, reset_globals
from cdlm_lab.experiments.runs import time_told
from cdlm_lab.metrics.question_answering import (
    HOTPOTQA_SCORES,
    question_scores,
    scores_by_question,
)
from cdlm_lab.metrics.significance import compare_means, holm, mean_score
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.encoder import AttentionDropout
from cdlm_lab.models.estimate import bytes_per_number, estimate, parameter_count
from cdlm_lab.models.precision import Precision, computing_in, precision_told
from cdlm_lab.models.question_answering import (
    SUPPORT,
    AnswerSpan,
    DecodedAnswer,
    Place,
    QuestionAnswerer,
    QuestionOutput,
    decode,
    load_question_answerer,
)
from cdlm_lab.parameters import (
    ParameterError,
    check_choice,
    check_least,
    check_types,
    parameters_of,
)
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob, config_of_passes, fine_tune, in_training_order
from cdlm_lab.training.history import seconds_of_batch
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.ask import own_question_box
from cdlm_lab.widgets.browse import question_browser
from cdlm_lab.widgets.html import escaped, variant_name
from cdlm_lab.widgets.packed import DocumentLoss, PackedPreview
from cdlm_lab.widgets.questions import ReadQuestion, question_html, questions_page
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.tables import ScoreTable

SPLITS = ("train", "dev", "test")
SEEN = ("both documents", "one document")
_SUFFIXES = (".json", ".json.gz", ".jsonl", ".jsonl.gz")
Questions = Mapping[str, tuple[MultihopQuestion, ...]]  # by split


@dataclass(frozen=True, kw_only=True)
class QuestionCorpus:
    """Which questions are asked.

    Attributes:
        corpus: `storyworld`, or a folder of `train.json`, `dev.json` and `test.json` in HotpotQA's format or
            the hub's (`.jsonl` too, and compressed).
        train_stories, held_out_stories: of storyworld, two or three questions each.
        passage_sentences: of storyworld: sentences of a report that stand in the context.
        paragraphs: of storyworld: in the context of a question, two of which an answer needs.
        seen: of storyworld: `both documents`, or `one document` = without the one that makes the other tell
            the answer, so that nobody can do better than guess.
        train_questions, held_out_questions: at most so many are drawn of the training questions, and of those
            of dev and of test; 0 = all.
        dev_from_train: of a folder: so many questions, drawn of `train.json`, are dev and not train; 0 =
            `dev.json` is dev. The paper reports on the official development set; nothing may be chosen there,
            and the official test set has no gold.
        data_seed: of all these draws.
    """

    corpus: str = "storyworld"
    train_stories: int = 200
    held_out_stories: int = 40
    passage_sentences: int = 2
    paragraphs: int = 4
    seen: str = "both documents"
    train_questions: int = 0
    held_out_questions: int = 0
    dev_from_train: int = 0
    data_seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, SEEN, "seen")
        check_least(self, 2, "train_stories", "held_out_stories", "paragraphs")
        for name in ("train_questions", "held_out_questions", "dev_from_train"):
            if getattr(self, name) < 0:
                zero = "dev.json" if name == "dev_from_train" else "all"
                raise ParameterError(f"{name} is {getattr(self, name)}; write 0 for {zero}, or how many")
        if self.dev_from_train and self.corpus == "storyworld":
            raise ParameterError("dev_from_train is of a folder: storyworld has stories of its own for dev")


def read_questions(settings: QuestionCorpus) -> Questions:
    """Questions of train, dev and test; answers and supporting facts are known of all. Facts that name a
    sentence which is not there, as a few of the official ones do, are `unknown_supporting`.

    Raises:
        ParameterError: a corpus that is neither, a file without gold, or one question in two splits.
        DataError: as its reader.
    """
    if settings.corpus == "storyworld":
        found = {split: _storyworld(split, settings) for split in SPLITS}
    else:
        found = _of_folder(Path(settings.corpus), settings)
    return {split: tuple(_drawn(questions, split, settings)) for split, questions in found.items()}


def _of_folder(folder: Path, settings: QuestionCorpus) -> dict[str, Sequence[MultihopQuestion]]:
    apart = settings.dev_from_train
    files = {split: _file(folder, split) for split in SPLITS if split != "dev" or not apart}
    read = {split: _with_gold(file) for split, file in files.items()}
    if apart:
        if apart >= len(read["train"]):
            raise ParameterError(
                f"dev_from_train is {apart}; train has {len(read['train']):,} questions in all"
            )
        order = np.random.default_rng([settings.data_seed, len(SPLITS)]).permutation(len(read["train"]))
        for split, numbers in (("dev", order[:apart]), ("train", order[apart:])):
            read[split] = [read["train"][number] for number in sorted(numbers)]
    found = {split: read[split] for split in SPLITS}
    for one, other in combinations(SPLITS, 2):
        if shared := {question.id for question in found[one]} & {question.id for question in found[other]}:
            raise ParameterError(
                f"corpus is {str(folder)!r}, where {one} and {other} share {len(shared):,} questions, as "
                f"{min(shared)}: what is learned or chosen on a question cannot be tested on it; take other "
                "questions, or as dev some of train with dev_from_train"
            )
    return found


def _storyworld(split: str, settings: QuestionCorpus) -> list[MultihopQuestion]:
    return list(
        read_storyworld_questions(
            split,
            settings.train_stories if split == "train" else settings.held_out_stories,
            sentences=settings.passage_sentences,
            paragraphs=settings.paragraphs,
            withheld=settings.seen == "one document",
        )
    )


def _file(folder: Path, split: str) -> Path:
    files = [file for suffix in _SUFFIXES if (file := folder / f"{split}{suffix}").is_file()]
    if not files:
        also = "; or take dev from train with dev_from_train" if split == "dev" else ""
        raise ParameterError(
            f"corpus is {str(folder)!r}, where there is no {split}.json; write storyworld, or a folder with "
            f"train.json, dev.json and test.json in HotpotQA's format{also}"
        )
    return files[0]


def _with_gold(file: Path) -> list[MultihopQuestion]:
    questions = read_hotpotqa(file, unknown_facts="keep")
    for question in questions:
        if question.answer is None or not (question.supporting or question.unknown_supporting):
            raise ParameterError(
                f"{file}: question {question.id} has no answer or no supporting facts, which training and "
                "scores need; leave it out"
            )
    return questions


def _drawn(
    questions: Sequence[MultihopQuestion], split: str, settings: QuestionCorpus
) -> Sequence[MultihopQuestion]:
    """The questions that are used, in their order."""
    most = settings.train_questions if split == "train" else settings.held_out_questions
    if not most or most >= len(questions):
        return questions
    kept = np.random.default_rng([settings.data_seed, SPLITS.index(split)]).permutation(len(questions))[:most]
    return [questions[number] for number in sorted(kept)]


def cluster_of(question: MultihopQuestion) -> str:
    """What a question shares its paragraphs with others of, for intervals: of storyworld the story, else the
    question itself."""
    return question.id.rpartition("-q")[0] if question.id.startswith("storyworld-") else question.id


@dataclass(frozen=True, kw_only=True)
class QuestionPredictions:
    """Answers to questions, in order."""

    questions: Sequence[MultihopQuestion]
    answers: Sequence[DecodedAnswer]

    def texts(self) -> dict[str, str]:
        """Id of a question -> its predicted answer."""
        return {one.id: answer.text for one, answer in zip(self.questions, self.answers, strict=True)}

    def supporting(self) -> dict[str, list[SupportingFact]]:
        """Id of a question -> (title, sentence) of its predicted support."""
        return {
            one.id: [(one.paragraphs[paragraph].title, sentence) for paragraph, sentence in answer.supporting]
            for one, answer in zip(self.questions, self.answers, strict=True)
        }

    def official(self) -> dict[str, dict[str, Any]]:
        """As `metrics.question_answering.hotpotqa` and the official evaluation take them."""
        sp = {name: [list(fact) for fact in facts] for name, facts in self.supporting().items()}
        return {"answer": self.texts(), "sp": sp}

    def save(self, file: Path) -> None:
        """Write a line for each question, in one go."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file) as opened:
            for question, answer in zip(self.questions, self.answers, strict=True):
                opened.write(json.dumps({"id": question.id, **_plain(answer)}, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, file: Path, *, questions: Sequence[MultihopQuestion]) -> QuestionPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of other questions.
        """
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        if [row.pop("id") for row in rows] != [question.id for question in questions]:
            raise ValueError(f"{file} is of other questions, so of another run: choose another run folder")
        return cls(questions=questions, answers=[_answer(row) for row in rows])


def _plain(answer: DecodedAnswer) -> dict[str, Any]:
    """Without keys that JSON has not: sentences are rows of paragraph, sentence, probability."""
    found = asdict(answer)
    found["sentence_probabilities"] = [
        [*sentence, round(value, 6)] for sentence, value in answer.sentence_probabilities.items()
    ]
    return found


def _answer(row: Mapping[str, Any]) -> DecodedAnswer:
    sentences = {(paragraph, number): value for paragraph, number, value in row["sentence_probabilities"]}
    return DecodedAnswer(
        **row
        | {
            "place": row["place"] and Place(*row["place"]),
            "n_best": tuple(AnswerSpan(text, score, Place(*place)) for text, score, place in row["n_best"]),
            "sentence_probabilities": sentences,
            "paragraph_probabilities": tuple(row["paragraph_probabilities"]),
            "supporting": tuple((paragraph, number) for paragraph, number in row["supporting"]),
        }
    )


def predict_answers(
    model: QuestionAnswerer,
    examples: QuestionExamples,
    collate: Callable[..., Mapping[str, torch.Tensor]],
    *,
    support: str,
    most_tokens: int,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> QuestionPredictions:
    """Answer every question.

    Questions are read longest first, so that batches hold little padding.

    Args:
        examples: their labels, if they have any, are not read.
        support, most_tokens: as of `decode`.
        batch_size: questions read at once; changes nothing but speed and memory.
        precision: of the forward pass, as of `resolve_precision`.
        name: beside the progress bar; None = no bar.
    """
    model = model.to(default_device()).eval()
    lengths = [_length(question) for question in examples.questions]
    answers: dict[int, DecodedAnswer] = {}
    with (
        Progress(total=len(examples), desc=name, unit="question", disable=name is None) as bar,
        computing_in(precision, model.device),
    ):
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            sequences = [examples.describe(number) for number in numbers]
            output = _read(model, collate([sequence.inputs for sequence in sequences]))
            for row, (number, sequence) in enumerate(zip(numbers, sequences, strict=True)):
                answers[number] = decode(
                    examples.questions[number],
                    sequence,
                    output.row(row),
                    support=support,
                    most_tokens=most_tokens,
                )
            bar.update(len(numbers))
    return QuestionPredictions(
        questions=examples.questions, answers=[answers[number] for number in range(len(answers))]
    )


def _length(question: MultihopQuestion) -> int:
    """Characters of the question, the titles and the sentences: tokens would need all sequences at once."""
    return len(question.text) + sum(len(one.title) + len(one.text) for one in question.paragraphs)


@torch.inference_mode()
def _read(model: QuestionAnswerer, batch: Mapping[str, torch.Tensor]) -> QuestionOutput:
    batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
    return model(**batch)


RUN_SPLITS = ("dev", "test")  # that are answered


@dataclass(frozen=True, kw_only=True)
class AnswererSettings:
    """What answers, and how it is trained; the paper's values are 4,096 tokens, window 512, 5 passes, batches
    of 32, learning rate 1e-4 and 100 steps of warm-up.

    Attributes:
        variants: encoders, names of CDLM's ablation separated by spaces.
        encoders: where they are: `storyworld`, or a folder with a folder for each, such as `cdlm` or
            `cdlm/model`.
        reset_globals: Longformer and Local CDLM start with their local projections as the global ones, as in
            the paper; False = with those of the checkpoint. (Of the models of notebook 01 they are the same.)
        max_length: of a question with its paragraphs in tokens; what is longer loses the ends of its
            paragraphs (see examples/question_sequence.py), and is reported.
        window: of local attention.
        seeds: how many times each is trained, with seeds from 0.
        attention_dropout: of attention weights; `checkpoint` = as the checkpoint says. That of hidden states
            is the checkpoint's.
        precision: of the forward pass in training and in answering, as of `TrainingConfig`.
        support: which sentences are predicted as support: `threshold` or `two_paragraphs`.
        most_answer_tokens: of an answer.
        parallel: processes that train, as of `Processes.of`; "" = one. Questions are answered by one.
        workers: as of `TrainingConfig`.
    """

    variants: str = "longformer cdlm"
    encoders: str = "storyworld"
    reset_globals: bool = True
    max_length: int = 512
    window: int = 32
    seeds: int = 1
    epochs: int = 2
    batch_size: int = 16
    micro_batch_size: int = 16
    learning_rate: float = 0.001
    warmup_steps: int = 20
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"
    support: str = "threshold"
    most_answer_tokens: int = 30
    parallel: str = ""
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        check_types(self)
        names = self.variants.split()
        if not names or (unknown := [name for name in names if name not in VARIANTS]):
            told = repr(unknown[0]) if names else "nothing"
            raise ParameterError(f"variants names {told}; choose among {', '.join(VARIANTS)}")
        check_choice(self, SUPPORT, "support")
        check_least(self, 1, "seeds", "epochs", "most_answer_tokens")
        Processes.of(self.parallel)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the encoders, in the paper's order."""
        return tuple(name for name in VARIANTS if name in self.variants.split())

    def shown(self, name: str) -> str:
        """The encoder of that name; "" = the last one. Raises ParameterError for one that is not trained."""
        if name and name not in self.names:
            raise ParameterError(f"shown_model is {name!r}; choose one of {', '.join(self.names)}")
        return name or self.names[-1]


@dataclass(frozen=True, kw_only=True)
class MultihopSettings:
    """All parameters of a run but its folder."""

    corpus: QuestionCorpus = field(default_factory=QuestionCorpus)
    answerer: AnswererSettings = field(default_factory=AnswererSettings)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of both parts."""
        return parameters_of(self)


# The parameters of notebook 06.
PARAMETERS = (
    "run_folder",
    *MultihopSettings().parameters,
    "shown_model",
    "own_question",
    "own_documents",
)


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
class MultihopRun:
    """The questions of a run and the folder that it works in."""

    settings: MultihopSettings
    questions: Questions
    folder: Path

    @property
    def trainings(self) -> list[tuple[str, int]]:
        """Each encoder with each seed."""
        answerer = self.settings.answerer
        return [(name, seed) for name in answerer.names for seed in range(answerer.seeds)]

    def folder_of(self, name: str, seed: int) -> Path:
        """Where an encoder trained with a seed is kept."""
        return self.folder / "systems" / f"{name}-{seed}"

    def predictions_of(self, name: str, seed: int, split: str) -> Path:
        """The file of its answers."""
        return self.folder_of(name, seed) / f"{split}.jsonl"

    def answerer(self, name: str, seed: int, *, trained: bool) -> Answerer:
        """A new one on an encoder, or the one that was trained. Errors as of its loader."""
        settings = self.settings.answerer
        source = self.folder_of(name, seed) / MODEL_FOLDER if trained else self.encoder_of[name]
        model, tokenizer = load_question_answerer(
            source,
            max_length=settings.max_length,
            window=settings.window,
            attention_dropout=settings.attention_dropout,
            seed=seed,
        )
        if settings.reset_globals and not trained:
            reset_globals(model, name)
        return Answerer(model=model, tokenizer=tokenizer, max_length=settings.max_length)

    @cached_property
    def untrained(self) -> Answerer:
        """A new one on the first encoder, loaded once for all that looks before the start; not to be trained.
        Errors as of `answerer`."""
        return self.answerer(self.settings.answerer.names[0], 0, trained=False)

    @cached_property
    def encoder_of(self) -> dict[str, str]:
        """Name of an encoder -> where it is. Raises ParameterError for one that is not there."""
        answerer = self.settings.answerer
        return {name: checkpoint_of(answerer.encoders, name) for name in answerer.names}

    @property
    def config(self) -> TrainingConfig:
        """Of seed 0. Raises ParameterError for values that cannot be."""
        return self.config_of(0)

    def config_of(self, seed: int) -> TrainingConfig:
        """How each encoder is trained; weight decay and epsilon as in the released code, where the paper is
        silent."""
        settings = self.settings.answerer
        config = config_of_passes(
            items=len(self.questions["train"]),
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            micro_batch_size=settings.micro_batch_size,
            learning_rate=settings.learning_rate,
            warmup_steps=settings.warmup_steps,
            precision=settings.precision,
            parallel=settings.parallel,
            workers=settings.workers,
            seed=seed,
        )
        return replace(config, weight_decay=0.01, adam_epsilon=1e-6)


def prepare_multihop(settings: MultihopSettings, folder: Path) -> MultihopRun:
    """Read the questions and look whether all is there; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    run = MultihopRun(settings=settings, questions=read_questions(settings.corpus), folder=folder)
    _ = run.config, run.encoder_of
    return run


def answer_questions(run: MultihopRun) -> dict[tuple[str, int], dict[str, QuestionPredictions]]:
    """(encoder, seed) -> split -> answers; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    return {
        (name, seed): {split: _answers(run, name, seed, split) for split in RUN_SPLITS}
        for name, seed in run.trainings
    }


def _answers(run: MultihopRun, name: str, seed: int, split: str) -> QuestionPredictions:
    file = run.predictions_of(name, seed, split)
    if not file.is_file():
        if not (run.folder_of(name, seed) / MODEL_FOLDER).is_dir():
            _train(run, name, seed)
        answerer = run.answerer(name, seed, trained=True)
        found = predict_answers(
            answerer.model,
            answerer.examples(run.questions[split], labelled=False),
            answerer.collate,
            support=run.settings.answerer.support,
            most_tokens=run.settings.answerer.most_answer_tokens,
            batch_size=run.settings.answerer.micro_batch_size,
            precision=run.settings.answerer.precision,
            name=f"{name}, seed {seed}: {split}",
        )
        found.save(file)
    return QuestionPredictions.load(file, questions=run.questions[split])


def _train(run: MultihopRun, name: str, seed: int) -> None:
    arguments = {"settings": run.settings, "folder": str(run.folder), "name": name, "seed": seed}
    fine_tune(
        _job(run, name, seed),
        folder=run.folder_of(name, seed),
        name=f"{name}, seed {seed}",
        parallel=run.settings.answerer.parallel,
        recipe=Recipe(function=prepare_job, arguments=arguments),
    )


def prepare_job(*, settings: MultihopSettings, folder: str, name: str, seed: int) -> TrainingJob:
    """That of an encoder and a seed, for each of several processes. Errors as of `prepare_multihop`."""
    return _job(prepare_multihop(settings, Path(folder)), name, seed)


def _job(run: MultihopRun, name: str, seed: int) -> TrainingJob:
    answerer, config = run.answerer(name, seed, trained=False), run.config_of(seed)
    return TrainingJob(
        model=answerer.model,
        tokenizer=answerer.tokenizer,
        train_examples=answerer.examples(list(in_training_order(run.questions["train"], config))),
        validation_examples=answerer.examples(run.questions["dev"]),
        collate=answerer.collate,
        config=config,
    )


CUT = "its share of the room"


def question_preview(run: MultihopRun, *, index: int = 0) -> PackedPreview:
    """A training question in its sequence: the question, then each paragraph.

    Args:
        index: of the question, in the order of the corpus.
    """
    question = run.questions["train"][index]
    answerer = run.untrained
    examples = answerer.examples([question])
    sequence, encoded = examples.describe(0), examples.encoded[question.id]
    texts, starts_word = token_texts(answerer.tokenizer, sequence.input_ids)
    special = examples.special.is_special(sequence.input_ids)
    asked = np.flatnonzero(special & (sequence.paragraph < 0))[1:3]  # [q] and [/q], after [CLS]
    places = np.arange(len(texts))
    in_question = (places >= asked[0]) & (places <= asked[1])
    documents = [DocumentLoss(title=question.text, kept=int((in_question & ~special).sum()))]
    for number, (paragraph, tokens) in enumerate(zip(question.paragraphs, encoded.paragraphs, strict=True)):
        kept = int(((sequence.paragraph == number) & ~special).sum())
        cut = len(tokens.ids) + len(tokens.title_ids) - kept
        documents.append(DocumentLoss(title=paragraph.title, kept=kept, cut=cut, reason=CUT if cut else ""))
    cost = estimate(
        answerer.model.config,
        length=len(texts),
        batch=run.settings.answerer.micro_batch_size,
        global_tokens=float(sequence.global_attention_mask.sum()),
        bytes_per_number=bytes_per_number(run.settings.answerer.precision),
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


TESTED = ("f1", "sp_f1", "joint_f1")  # the columns of the paper's Table 5
AGAINST = "longformer"  # what the variants are tested against
LOOKED_AT = 500  # questions of a split that are read before the start: 90,000 would take most of an hour
Found = Mapping[tuple[str, int], Mapping[str, QuestionPredictions]]  # (encoder, seed) -> split
# (encoder, seed, split) -> measure -> (questions,)
Scored = Mapping[tuple[str, int, str], Mapping[str, np.ndarray]]


def facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    return question_facts(run) + training_facts(run)


def question_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What is asked, and what of the first LOOKED_AT questions of each split fits into the sequences, as
    (name, text)."""
    rows = []
    for split, questions in run.questions.items():
        kinds = Counter(one.kind or "other" for one in questions)
        types = Counter(one.type for one in questions)
        told = ", ".join(f"{count:,} {name}" for name, count in kinds.most_common())
        yes_no = types["yes"] + types["no"]
        rows.append((split, f"{len(questions):,} questions ({told}); {yes_no:,} of them yes or no"))
        if unknown := [len(one.unknown_supporting) for one in questions if one.unknown_supporting]:
            told = (
                f"{sum(unknown):,} in {len(unknown):,} questions name no sentence: nobody can find them, and "
            )
            rows.append(
                (f"{split}: supporting facts", f"{told}they count as missed, as in the official scores")
            )
        rows.append((f"{split}: does not fit", _what_is_lost(run, split)))
    return rows


def _what_is_lost(run: MultihopRun, split: str) -> str:
    questions = run.questions[split]
    told = _told(run.untrained.examples(questions[:LOOKED_AT]).fit_facts())
    return told if len(questions) <= LOOKED_AT else f"of the first {LOOKED_AT:,}: {told}"


def _told(fit: FitFacts) -> str:
    if not fit.questions_cut and not fit.without_occurrence:
        return "nothing"
    return (
        f"questions that lose text: {fit.questions_cut:,}; lost are {fit.tokens_lost / fit.tokens:.0%} of "
        f"all tokens and {fit.supporting_lost:,} of {fit.supporting:,} supporting sentences; of "
        f"{fit.span_questions:,} answers {fit.without_occurrence:,} stand nowhere in the needed paragraphs "
        "as far as they are read"
    )


def training_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What training an encoder takes, as (name, text); takes a few seconds, for one batch is learned from to
    know how long a step takes. All encoders are of one size."""
    answerer, config = run.untrained, run.config
    examples = answerer.examples(run.questions["train"][: config.micro_batch_size])
    chosen = [examples[number] for number in range(len(examples))]
    model = answerer.model
    seconds, batch = seconds_of_batch(model, partial(answerer.collate, chosen), precision=config.precision)
    model.to("cpu")  # it stays; nothing of it on the accelerator
    total = seconds * config.steps * config.batch_size / len(examples)
    processes = Processes.of(run.settings.answerer.parallel)
    tokens, globals_ = (
        float(batch[mask].sum(1).float().mean()) for mask in ("attention_mask", "global_attention_mask")
    )
    return [
        (
            "an example",
            f"{tokens:,.0f} tokens, {globals_:.0f} of them global: question, starts of titles and sentences",
        ),
        (
            "training",
            f"{parameter_count(model) / 1e6:.1f} million parameters; {config.steps:,} updates with "
            f"{config.batch_size} questions, about {time_told(total, processes)}; times "
            f"{len(run.trainings)} (encoders and seeds)",
        ),
        ("precision of training", precision_told(config.precision)),
    ]


def write_question_report(run: MultihopRun, opened: Run, found: Found) -> Report:
    """Scores of all encoders on dev and test, the tests between them, and for each training the official
    prediction file of test beside its answers."""
    for (name, seed), of_split in found.items():
        file = run.folder_of(name, seed) / "test_predictions.json"
        write_predictions(file, of_split["test"].texts(), of_split["test"].supporting())
    scored = _scored(run, found)
    names = run.settings.answerer.names
    clusters = {split: list(map(cluster_of, questions)) for split, questions in run.questions.items()}
    return opened.write_report(
        scores={
            f"{name}/{split}/{measure}": mean_score(seeds, clusters[split], seed=0)
            for name in names
            for split in RUN_SPLITS
            for measure, seeds in _seeds(scored, name, split).items()
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.config.precision),
            "questions": {split: len(questions) for split, questions in run.questions.items()},
            "clusters": {split: len(set(of_split)) for split, of_split in clusters.items()},
        },
        tables={
            "comparisons": _comparisons(names, scored, clusters["test"]),
            "kinds": [
                {"system": name, "split": split, **row}
                for name in names
                for split in RUN_SPLITS
                for row in _by_kind(run.questions[split], _seeds(scored, name, split))
            ],
            "runs": [
                {
                    "system": name,
                    "seed": seed,
                    "split": split,
                    **{measure: float(values.mean()) for measure, values in scores.items()},
                }
                for (name, seed, split), scores in scored.items()
            ],
        },
    )


def question_table(report: Report, split: str = "test") -> ScoreTable:
    """A row for each encoder of a report."""
    return score_table(report, split=split, caption="Answers and supporting sentences")


def kind_rows(report: Report, split: str = "test") -> list[list[str]]:
    """Encoder, kind, number of questions, and F1 of answer, support and both, as cells of HTML."""
    return [
        [
            variant_name(row["system"]),
            escaped(row["kind"] or "not known"),
            f"{row['questions']:,}",
            *(f"{100 * row[measure]:.1f}" for measure in TESTED),
        ]
        for row in report.tables["kinds"]
        if row["split"] == split
    ]


def _scored(run: MultihopRun, found: Found) -> Scored:
    """Every score of every question, once for all tables."""
    gold = {split: [hotpot_record(one) for one in run.questions[split]] for split in RUN_SPLITS}
    return {
        (name, seed, split): scores_by_question(gold[split], one.official())
        for (name, seed), of_split in found.items()
        for split, one in of_split.items()
    }


def _seeds(scored: Scored, name: str, split: str) -> dict[str, list[np.ndarray]]:
    """Measure -> with each seed (questions,)."""
    seeds = [scores for (other, _, of_split), scores in scored.items() if (other, of_split) == (name, split)]
    return {measure: [scores[measure] for scores in seeds] for measure in HOTPOTQA_SCORES}


def _by_kind(
    questions: Sequence[MultihopQuestion], of_measure: Mapping[str, list[np.ndarray]]
) -> list[dict[str, Any]]:
    """The means of bridge and comparison questions, and of yes-or-no ones."""
    means = {measure: np.mean(seeds, axis=0) for measure, seeds in of_measure.items()}
    groups = {
        **{kind: [one.kind == kind for one in questions] for kind in sorted({one.kind for one in questions})},
        "yes or no": [one.type in ("yes", "no") for one in questions],
    }
    return [
        {
            "kind": kind,
            "questions": int(np.sum(chosen)),
            **{measure: float(values[chosen].mean()) for measure, values in means.items()},
        }
        for kind, chosen in groups.items()
        if any(chosen)
    ]


def _comparisons(names: Sequence[str], scored: Scored, clusters: Sequence[str]) -> list[dict[str, Any]]:
    """Each variant against Longformer on test, clusters of questions being what is drawn. `p_holm`:
    corrected for the variants tested."""
    tested = [name for name in names if name != AGAINST] if AGAINST in names else []
    of_test = {name: _seeds(scored, name, "test") for name in names}
    rows = []
    for measure in TESTED:
        compared = [
            compare_means(of_test[name][measure], of_test[AGAINST][measure], clusters, seed=0)
            for name in tested
        ]
        corrected = holm([one.p for one in compared])
        for name, one, p in zip(tested, compared, corrected, strict=True):
            rows.append({"a": name, "b": AGAINST, "measure": measure, **asdict(one), "p_holm": p})
    return rows


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


def read_questions_of(predictions: QuestionPredictions) -> list[ReadQuestion]:
    """Each question with its answer, its gold, and how well they agree."""
    return [
        _read_answered(question, answer)
        for question, answer in zip(predictions.questions, predictions.answers, strict=True)
    ]


def answers_in_place(predictions: QuestionPredictions, *, file: Path) -> Widget:
    """Questions to leaf through; the first ON_A_PAGE of them also go to `file`, which needs no kernel."""
    reads = read_questions_of(predictions)
    _write_page(reads[:ON_A_PAGE], file, title="Questions and answers")
    return question_browser(reads)


def own_question_in_place(run: MultihopRun, name: str, question: str, documents: str) -> Widget:
    """Boxes for a question and documents of one's own, and the answer of an encoder trained with seed 0,
    that to what stands in the boxes at first included.

    Raises ValueError if these cannot be read.
    """
    answer = own_answer(run, name)
    return own_question_box(
        answer,
        question=question,
        documents=documents,
        answered=answer(question, pasted_documents(documents)),
    )


def own_answer(run: MultihopRun, name: str) -> Callable[[str, Sequence[tuple[str, str]]], str]:
    """From a question and (title, text) of documents to HTML: the answer of an encoder trained with seed 0.
    The model is loaded when it is first needed; the answer is also written to `own_question.html` in the
    folder of the run.

    The function raises ValueError for what cannot be read.
    """
    loaded: list[Answerer] = []

    def answer(text: str, documents: Sequence[tuple[str, str]]) -> str:
        question = _own(text, documents)
        if not loaded:
            loaded.append(run.answerer(name, 0, trained=True))
        settings = run.settings.answerer
        found = predict_answers(
            loaded[0].model,
            loaded[0].examples([question], labelled=False),
            loaded[0].collate,
            support=settings.support,
            most_tokens=settings.most_answer_tokens,
            batch_size=1,
            precision=settings.precision,
        )
        (read,) = read_questions_of(found)
        _write_page([read], run.folder / "own_question.html", title=text)
        return question_html(read)

    return answer


def own_texts(question: str, documents: str) -> tuple[str, str]:
    """A question and the text of a file of documents, or the example if both are "".

    Raises ParameterError if one alone is given, DataError as `read_text`.
    """
    if not question and not documents:
        return EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS
    if not (question and documents):
        missing = "own_documents" if question else "own_question"
        raise ParameterError(f'{missing} is ""; give a question and a file of documents, or neither')
    return question, read_text(documents)


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


def _read_answered(question: MultihopQuestion, answer: DecodedAnswer) -> ReadQuestion:
    known = question.answer is not None and bool(question.supporting or question.unknown_supporting)
    numbers = {paragraph.title: number for number, paragraph in enumerate(question.paragraphs)}
    gold = frozenset((numbers[title], sentence) for title, sentence in question.supporting)
    facts = [(question.paragraphs[paragraph].title, sentence) for paragraph, sentence in answer.supporting]
    scores = question_scores(hotpot_record(question), answer=answer.text, supporting=facts) if known else {}
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
