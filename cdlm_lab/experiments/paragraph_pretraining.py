"""Pre-training with paragraphs, MLM and MSPP: notebook 08 (Di Liello et al. 2022, section 3.4, appendix B).

`prepare_paragraphs` reads and tokenises the corpus and loads the model; nothing is trained, so that a person
can look at what will be. `pretrain` trains, keeps the checkpoint with the lowest sum of both losses on
validation, and writes the model into the run's folder. A run that was stopped goes on when the same is called
again.

Ours: a model is chosen by validation, where the paper seems to take that of the last step; documents for
validation and test, and all their candidates, are of other clusters than those for training.

From the corpus that notebook 08 names to examples of paragraph pre-training (Di Liello et al. 2022,
section 3.4).

What a model makes of held-out paragraphs: how it scores the candidates, and the loss on masked tokens
(Di Liello et al. 2022, section 3.4).

The paper reports neither. Candidates are scored here
- each by itself: `called`, the share that is called as it is (log-odds above 0 = of the same paragraph), of
  all and by where they come from;
- against each other, whatever the threshold: `first`, how often one of the same paragraph has the highest
  score, and `above`, how often it has a higher score than one from elsewhere, by where that comes from.

An example of paragraph pre-training as a picture, before training and, with what the model says of it,
after.

Before and after a run of notebook 08: what is read and what it will cost, the scores, the two losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.clusters import corpus_checksum, paragraph_documents, passed_over
from cdlm_lab.data.files import named
from cdlm_lab.data.records import SPLITS, Split
from cdlm_lab.errors import Stopped
from cdlm_lab.examples.cached_corpus import (
    ParagraphCounts,
    paragraph_fingerprint,
    read_paragraph_counts,
    tokenise_paragraphs,
)
from cdlm_lab.examples.candidates import POSITIONS, JointCollate
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.examples.masking import NOT_MASKED, check_probability
from cdlm_lab.examples.paragraph_tasks import (
    KINDS,
    OTHER_DOCUMENT,
    SAME_DOCUMENT,
    SAME_PARAGRAPH,
    ParagraphTasks,
)
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.experiments.cluster_corpora import (
    SPLIT_SEEDS,
    tell_passed_over,
    tokenising_processes,
)
from cdlm_lab.experiments.pretraining import token_texts
from cdlm_lab.metrics.ranking import values_per_group
from cdlm_lab.metrics.significance import mean_score, perplexity, sums_by_cluster
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.encoder import copy_local_to_global
from cdlm_lab.models.estimate import (
    bytes_per_number,
    estimate,
    measured_rate,
    parameter_count,
    training_seconds,
)
from cdlm_lab.models.joint import (
    LAYERS,
    JointHead,
    ParagraphModel,
    front_states,
    load_paragraph_model,
    save_paragraph_model,
    scores_of,
    sentence_states,
)
from cdlm_lab.models.precision import Precision, computing_in, precision_told
from cdlm_lab.parameters import (
    ParameterError,
    check_choice,
    check_least,
    check_types,
    parameters_of,
)
from cdlm_lab.progress import Progress, is_first
from cdlm_lab.report import Report, Run
from cdlm_lab.training.checkpoints import MODEL_FOLDER, TRAINING_FOLDER
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob, train_in_processes
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.trainer import TrainingResult
from cdlm_lab.widgets.charts import pretraining_losses_figure, task_losses
from cdlm_lab.widgets.html import bytes_in_words, seconds_in_words
from cdlm_lab.widgets.packed import MarkedTokens, ParagraphExampleView, TaskSentence

HEADS = ("ie_k", "ae_k")  # those of MSPP, which label each candidate


@dataclass(frozen=True, kw_only=True)
class ParagraphCorpus:
    """What is read: `corpus`, `storyworld` or a path (see `cdlm_lab.data.clusters`); `train_clusters` and
    `held_out_clusters`, at most so many for training, and for validation and test each (0 = all; storyworld,
    which has no end, needs a number)."""

    corpus: str = "storyworld"
    train_clusters: int = 200
    held_out_clusters: int = 15

    def __post_init__(self) -> None:
        check_types(self)
        check_least(self, 0, "train_clusters", "held_out_clusters")

    def size(self, split: Split) -> int:
        """How many clusters of a split are read; 0 = all."""
        return self.train_clusters if split == "train" else self.held_out_clusters


@dataclass(frozen=True, kw_only=True)
class ParagraphTask:
    """What the model is asked, and what stands on it.

    Attributes:
        head, head_layers: kind and layers of `JointHead`.
        same_paragraph, same_document, other_documents: candidates of each kind, k_1, k_2 and k_3.
        sentence_length: L, the token in front included.
        positions: `strided` (the paper) or `compact`.
        mask_probability: of each token.
    """

    head: str = "ie_k"
    head_layers: str = "linear"
    same_paragraph: int = 1
    same_document: int = 2
    other_documents: int = 2
    sentence_length: int = 32
    positions: str = "strided"
    mask_probability: float = 0.15

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, HEADS, "head")
        check_choice(self, LAYERS, "head_layers")
        check_choice(self, POSITIONS, "positions")
        check_least(self, 1, "same_paragraph")
        check_least(self, 0, "same_document", "other_documents")
        if not self.same_document + self.other_documents:
            raise ParameterError("same_document and other_documents are 0; there must be a wrong candidate")
        check_least(self, 2, "sentence_length")
        check_probability(self.mask_probability)

    @property
    def k(self) -> tuple[int, int, int]:
        """(k_1, k_2, k_3)."""
        return self.same_paragraph, self.same_document, self.other_documents

    @property
    def right(self) -> float:
        """The share of the candidates that are of the paragraph."""
        return self.same_paragraph / sum(self.k)

    @property
    def joint_head(self) -> JointHead:
        """The head, which knows the layout of the sequences."""
        return JointHead(
            kind=self.head,
            sentences=1 + sum(self.k),
            length=self.sentence_length,
            positions=self.positions,
            layers=self.head_layers,
        )


@dataclass(frozen=True, kw_only=True)
class ParagraphSplit:
    """One split of a corpus: what went into it, a checksum of what was read, the examples drawn, and the
    files of the corpus that were passed over."""

    counts: ParagraphCounts
    checksum: str
    examples: ParagraphTasks
    passed_over: Sequence[str] = ()


def read_split(
    source: ParagraphCorpus,
    task: ParagraphTask,
    split: Split,
    *,
    tokenizer: PreTrainedTokenizerBase,
    cache: Path,
    seed: int,
    size: int | None = None,
    workers: Workers = "auto",
) -> ParagraphSplit:
    """Tokenise a split, or open it if that was done before, and draw examples from it.

    Args:
        cache: where tokenised corpora are kept.
        seed: of the examples; each split has chance of its own.
        size: how many examples; None = one of each paragraph that can be asked about.
        workers: processes that tokenise, as of `tokenising_processes`.

    Raises:
        ValueError: the split has too little to ask about, or as the readers.
    """
    read = {"split": split, "size": source.size(split), "seed": 0}
    checksum = corpus_checksum(source.corpus, **read)
    fingerprint = paragraph_fingerprint(checksum, tokenizer)
    documents = tokenise_paragraphs(
        lambda: paragraph_documents(source.corpus, **read),
        tokenizer,
        cache_dir=cache,
        fingerprint=fingerprint,
        processes=tokenising_processes(workers),
    )
    try:
        examples = ParagraphTasks(
            corpus=documents,
            layout=task.joint_head.layout,
            special=from_tokenizer(tokenizer),
            k=task.k,
            mask_probability=task.mask_probability,
            seed=seed * len(SPLIT_SEEDS) + SPLIT_SEEDS[split],
            size=size,
        )
    except ValueError as error:
        raise ValueError(f"{source.corpus}, {split}: {error}") from error
    return ParagraphSplit(
        counts=read_paragraph_counts(cache, fingerprint=fingerprint),
        checksum=checksum,
        examples=examples,
        passed_over=passed_over(source.corpus),
    )


@dataclass(frozen=True, kw_only=True)
class ParagraphTraining:
    """What the training starts from, and how it goes. What is no parameter is the paper's: AdamW with beta_2
    0.999, epsilon 1e-8 and weight decay 0.01, gradients cut at 1.

    Attributes:
        model: as of `load_language_model`.
        dropout: of hidden states and head; None = as the checkpoint says.
        attention_dropout: of attention weights; `checkpoint` = as the checkpoint says.
        steps ... gradient_checkpointing: as of `TrainingConfig`.
        workers: processes that tokenise (`auto` = one for each core) and then make examples, as of
            `TrainingConfig`.
        evaluate_every: steps between looks at the validation examples, and between checkpoints.
        parallel: processes that train, as of `Processes.of`; "" = one.
        seed: of everything left to chance.
    """

    model: str = "storyworld/longformer"
    dropout: float | None = None
    attention_dropout: AttentionDropout = 0.0
    steps: int = 300
    batch_size: int = 16
    micro_batch_size: int = 16
    learning_rate: float = 0.002
    warmup_steps: int = 30
    decay_power: float = 1.0
    precision: Precision = "auto"
    gradient_checkpointing: bool = False
    evaluate_every: int = 100
    parallel: str = ""
    workers: Workers = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        self.config.accumulation(processes=Processes.of(self.parallel).total)  # refuses what cannot be

    @property
    def config(self) -> TrainingConfig:
        """The settings of the trainer. Raises ParameterError for values that cannot be."""
        return TrainingConfig(
            steps=self.steps,
            batch_size=self.batch_size,
            micro_batch_size=self.micro_batch_size,
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            decay_power=self.decay_power,
            weight_decay=0.01,
            adam_beta2=0.999,
            adam_epsilon=1e-8,
            max_gradient_norm=1.0,
            precision=self.precision,
            gradient_checkpointing=self.gradient_checkpointing,
            evaluate_every=self.evaluate_every,
            save_every=self.evaluate_every,
            log_every=max(1, self.steps // 100),
            workers=self.workers,
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class ParagraphSettings:
    """All parameters of a run but its folder."""

    corpus: ParagraphCorpus = field(default_factory=ParagraphCorpus)
    task: ParagraphTask = field(default_factory=ParagraphTask)
    training: ParagraphTraining = field(default_factory=ParagraphTraining)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of all parts."""
        return parameters_of(self)


# The parameters of notebook 08.
PARAMETERS = ("run_folder", *ParagraphSettings().parameters)


@dataclass(frozen=True, kw_only=True)
class ParagraphRun:
    """All that a run needs.

    Attributes:
        splits: `train`, with as many examples as the training takes; `validation` and `test`, with one of
            each paragraph that has two sentences or more.
        cache_folder: where tokenised corpora are kept.
        own_globals: True = the checkpoint brought global projections other than copies of the local ones.
    """

    settings: ParagraphSettings
    model: ParagraphModel
    tokenizer: PreTrainedTokenizerBase
    splits: Mapping[Split, ParagraphSplit]
    cache_folder: str
    own_globals: bool

    @property
    def collate(self) -> JointCollate:
        """From examples to batches."""
        return JointCollate(pad_token_id=self.tokenizer.pad_token_id)

    @property
    def job(self) -> TrainingJob:
        """What is trained on what."""
        return TrainingJob(
            model=self.model,
            tokenizer=self.tokenizer,
            train_examples=self.splits["train"].examples,
            validation_examples=self.splits["validation"].examples,
            collate=self.collate,
            config=self.settings.training.config,
        )


def prepare_paragraphs(settings: ParagraphSettings, *, cache_folder: str | Path) -> ParagraphRun:
    """Load the model, tokenise the corpus (once) and make the examples; nothing is trained.

    Args:
        cache_folder: where tokenised corpora are kept.

    Raises ValueError with one clear line for whatever does not fit.
    """
    training = settings.training
    model, tokenizer = load_paragraph_model(
        training.model,
        head=settings.task.joint_head,
        dropout=training.dropout,
        attention_dropout=training.attention_dropout,
        seed=training.seed,
    )
    if training.model == "tiny":
        copy_local_to_global(model)
    splits = {
        split: read_split(
            settings.corpus,
            settings.task,
            split,
            tokenizer=tokenizer,
            cache=Path(cache_folder),
            seed=training.seed,
            size=training.steps * training.batch_size if split == "train" else None,
            workers=training.workers,
        )
        for split in SPLITS
    }
    tell_passed_over(settings.corpus.corpus, splits["train"].passed_over)
    if splits["test"].examples.counts.source_documents < 2:
        raise ValueError(
            f"{settings.corpus.corpus}, test: only one document can be asked about, and intervals need two; "
            "give more clusters"
        )
    return ParagraphRun(
        settings=settings,
        model=model,
        tokenizer=tokenizer,
        splits=splits,
        cache_folder=str(cache_folder),
        own_globals=not has_copied_globals(model),
    )


def prepare_job(*, settings: ParagraphSettings, cache_folder: str) -> TrainingJob:
    """That of `prepare_paragraphs`, for each of several processes."""
    return prepare_paragraphs(settings, cache_folder=cache_folder).job


def has_copied_globals(model: ParagraphModel) -> bool:
    """True = all global projections are what the local ones are."""
    return all(
        getattr(layer, f"{name}_global").weight.equal(getattr(layer, name).weight)
        for layer in model.modules()
        if hasattr(layer, "query_global")
        for name in ("query", "key", "value")
    )


def pretrain(
    run: ParagraphRun, folder: Path, *, on_log: Callable[[Mapping[str, Any]], None] | None = None
) -> TrainingResult:
    """Train and write the best model into `folder/model`, its head beside it; checkpoints and history go to
    `folder/training`.

    No token is global in this task. Global projections that were copies of the local ones at the start are so
    at the end; a checkpoint's own are kept as they were.

    Raises:
        Stopped: it was asked to stop; the same call goes on from there.
    """
    arguments, job = {"settings": run.settings, "cache_folder": run.cache_folder}, run.job
    result = train_in_processes(
        Recipe(function=prepare_job, arguments=arguments),
        job=job,
        processes=Processes.of(run.settings.training.parallel, config=job.config),
        folder=folder / TRAINING_FOLDER,
        on_log=on_log,
    )
    if result.interrupted:
        raise Stopped(f"stopped after step {result.steps}; run again to go on")
    if not run.own_globals:
        copy_local_to_global(run.model)
    if is_first():
        save_paragraph_model(run.model, run.tokenizer, folder / MODEL_FOLDER)
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphAnswers:
    """What a model makes of examples.

    Attributes:
        documents: int64 (examples,), row of the document of s_0 in the corpus.
        kinds: str (examples, k), where each candidate comes from, one of `paragraph_tasks.KINDS`; those of
            the same paragraph are to be found.
        scores: float64 (examples, k), log-odds of being of the same paragraph.
        losses: float64 (examples,), cross entropy in nats, summed over the masked tokens.
        masked: int64 (examples,), how many these are.
    """

    documents: np.ndarray
    kinds: np.ndarray
    scores: np.ndarray
    losses: np.ndarray
    masked: np.ndarray

    @property
    def probabilities(self) -> np.ndarray:
        """float64 (examples, k), of being of the same paragraph."""
        return 1 / (1 + np.exp(-self.scores))


def answer_tasks(
    model: ParagraphModel,
    examples: ParagraphTasks,
    collate: JointCollate,
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str,
) -> ParagraphAnswers:
    """Put all examples to a model, on the device that it is on; a progress bar called `name`. `precision`: of
    the forward pass, as of `resolve_precision`; scores and losses are float32 in each."""
    described = [examples.describe(number) for number in range(len(examples))]
    scores = np.zeros((len(described), examples.layout.candidates))
    losses, masked = np.zeros(len(described)), np.zeros(len(described), dtype=np.int64)
    lengths = [len(one.input_ids) for one in described]
    model.eval()
    with (
        Progress(total=len(described), desc=name, unit="example") as bar,
        torch.no_grad(),
        computing_in(precision, model.device),
    ):
        for rows in batches_by_length(lengths, [0] * len(lengths), batch_size):
            batch = collate([examples[row] for row in rows])
            logits, loss = _read(model, {key: value.to(model.device) for key, value in batch.items()})
            scores[rows] = scores_of(logits)
            losses[rows] = loss.double().cpu().numpy()
            masked[rows] = (batch["mlm_labels"] != NOT_MASKED).sum(1).numpy()
            bar.update(len(rows))
    return ParagraphAnswers(
        documents=np.array([one.sentences[0].row for one in described]),
        kinds=np.array([[sentence.kind for sentence in one.sentences[1:]] for one in described]),
        scores=scores,
        losses=losses,
        masked=masked,
    )


def _read(model: ParagraphModel, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Logits of the candidates, (batch, k, 2), and the summed loss of the masked tokens of each example,
    (batch,): what `ParagraphModel.forward` has the mean of."""
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    states = sentence_states(model.longformer, *(batch[name] for name in names))
    fronts = front_states(states, batch["starts"], sentences=model.head.form.sentences)
    labels = batch["mlm_labels"]
    row, place = (labels != NOT_MASKED).nonzero(as_tuple=True)
    words = model.lm_head(states[row, place]).float()  # (n_masked, vocab)
    each = torch.nn.functional.cross_entropy(words, labels[row, place], reduction="none")
    return model.head(fronts, batch["starts"]), each.new_zeros(len(labels)).index_add(0, row, each)


def paragraph_scores(answers: ParagraphAnswers, *, seed: int) -> dict[str, dict[str, Any]]:
    """For the report: `mspp/called`, `mspp/called/<kind>`, `mspp/first`, `mspp/above/<kind>` and
    `mlm/perplexity`.

    Each has its `value` with a 95% interval over the documents of s_0 (`low`, `high`), what it is of, `n`
    (candidates, examples, pairs or masked tokens), and `chance`, what knowing nothing gives: calling each
    candidate wrong, scores at random; None of perplexity and of `called` by kind, where it depends on what is
    called. Kinds of fewer than two documents are left out.

    Args:
        seed: of the interval's draws.

    Raises:
        ValueError: the examples are of a single document.
    """
    positive = answers.kinds == SAME_PARAGRAPH  # (examples, k)
    right = (answers.scores > 0) == positive
    first = values_per_group(list(zip(answers.scores, positive, strict=True)))["precision_at_1"]
    documents = np.broadcast_to(answers.documents[:, None], positive.shape)  # (examples, k)
    found = {
        "called": (right.ravel(), documents.ravel(), float(1 - positive.mean())),
        **{
            f"called/{kind}": (right[chosen], documents[chosen], None)
            for kind in KINDS
            for chosen in [answers.kinds == kind]
        },
        "first": (first, answers.documents, float(positive.mean())),
        **{f"above/{kind}": (*_above(answers, kind), 0.5) for kind in KINDS if kind != SAME_PARAGRAPH},
    }
    scores = {
        f"mspp/{name}": _score(values, of, seed=seed) | {"chance": chance}
        for name, (values, of, chance) in found.items()
        if "/" not in name or len(np.unique(of)) > 1
    }
    sums = sums_by_cluster([answers.losses, answers.masked], answers.documents.tolist(), name="examples")
    of_words = perplexity(*sums.T, seed=seed)
    return scores | {
        "mlm/perplexity": {
            "value": of_words.value,
            "low": of_words.low,
            "high": of_words.high,
            "n": of_words.tokens,
            "chance": None,
        }
    }


def _above(answers: ParagraphAnswers, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair of a candidate of the same paragraph and one of a kind: 1 = the score of the first is
    higher, 0 = lower, 1/2 = the same; and the document of s_0."""
    positive, other = (answers.kinds == one for one in (SAME_PARAGRAPH, kind))
    example, left, right = np.nonzero(positive[:, :, None] & other[:, None, :])
    difference = answers.scores[example, left] - answers.scores[example, right]
    return (1 + np.sign(difference)) / 2, answers.documents[example]


def _score(values: np.ndarray, documents: Sequence[int] | np.ndarray, *, seed: int) -> dict[str, Any]:
    found = mean_score([values.astype(np.float64)], np.asarray(documents).tolist(), seed=seed)
    return {name: found[name] for name in ("value", "low", "high")} | {"n": len(values)}


def task_preview(
    run: ParagraphRun, *, split: Split = "train", index: int = 0, answers: ParagraphAnswers | None = None
) -> ParagraphExampleView:
    """s_0 and its candidates: where each comes from, its label, its masked words, how much of it is cut.

    Args:
        split, index: of the example.
        answers: what a model made of the examples of that split; None = it was not asked.

    Raises:
        IndexError: there is no such example.
    """
    example = run.splits[split].examples.describe(index)
    tokens, starts_word = token_texts(run.tokenizer, example.sequence.input_ids)
    read, _ = token_texts(run.tokenizer, example.input_ids)
    masked = example.mlm_labels >= 0
    nothing = np.zeros(len(tokens), dtype=bool)
    marked = MarkedTokens(
        tokens=tokens,
        starts_word=starts_word,
        masked=masked,
        replacement=[text if hidden else None for text, hidden in zip(read, masked, strict=True)],
        mask_token=run.tokenizer.mask_token,
        global_=nothing,
        special=run.splits[split].examples.special.is_special(example.sequence.input_ids),
        cross_document=nothing,
    )
    labels = [None, *example.labels.tolist()]
    said = [None, *(answers.probabilities[index].tolist() if answers else [None] * len(example.labels))]
    return ParagraphExampleView(
        marked=marked,
        sentence=example.sequence.sentence,
        sentences=[
            TaskSentence(
                source=drawn.kind if number else "this paragraph",
                document=drawn.document_id,
                label=labels[number],
                cut=int(example.sequence.cut[number]),
                probability=said[number],
            )
            for number, drawn in enumerate(example.sentences)
        ],
        title=f"Example {index + 1:,} of {split}",
    )


LOOKED_AT = 200  # examples, for what is cut and for the mean length
MEASURES = {
    "mspp/called": "candidates called as they are",
    f"mspp/called/{SAME_PARAGRAPH}": "of the same paragraph",
    f"mspp/called/{SAME_DOCUMENT}": "of the same document, another paragraph",
    f"mspp/called/{OTHER_DOCUMENT}": "of other documents",
    "mspp/first": "one of the same paragraph is ranked first",
    f"mspp/above/{SAME_DOCUMENT}": "above one of the same document, another paragraph",
    f"mspp/above/{OTHER_DOCUMENT}": "above one of another document",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCost:
    """What a training takes, estimated: tokens of an example on average, bytes of memory at most, seconds of
    a step and of the whole with its evaluations."""

    tokens: float
    memory_bytes: float
    step_seconds: float
    seconds: float


def facts(run: ParagraphRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    train, training = run.splits["train"], run.settings.training
    cost = cost_of_training(run)
    return [
        ("for training", _documents_told(train)),
        *[
            (name, f"{_documents_told(run.splits[name])}; {len(run.splits[name].examples):,} examples")
            for name in ("validation", "test")
        ],
        *([("files passed over", named(train.passed_over))] if train.passed_over else []),
        ("wrong candidates", _shortage_told(train)),
        ("too long", _cut_told(run)),
        ("weights", f"{parameter_count(run.model):,}"),
        ("precision", precision_told(training.precision)),
        (
            "training",
            f"{training.steps:,} steps of {training.batch_size:,} examples, each of about {cost.tokens:,.0f} "
            f"tokens: {training.steps * training.batch_size / train.examples.counts.sources:,.1f} times each "
            f"paragraph; here about {seconds_in_words(cost.step_seconds)} a step and "
            f"{seconds_in_words(cost.seconds)} in all, {bytes_in_words(cost.memory_bytes)} of memory",
        ),
    ]


def cost_of_training(run: ParagraphRun) -> TaskCost:
    """By the arithmetic of `models.estimate` and the speed of a matrix product here; nothing is trained."""
    settings, examples = run.settings.training, run.splits["train"].examples
    seen = [examples[index] for index in range(min(LOOKED_AT, len(examples)))]
    length = float(np.mean([len(example["input_ids"]) for example in seen]))
    cost = estimate(
        run.model.config,
        length=round(length),
        batch=settings.micro_batch_size,
        global_tokens=0.0,
        masked_tokens=float(np.mean([(example["mlm_labels"] != NOT_MASKED).sum() for example in seen])),
        bytes_per_number=bytes_per_number(settings.precision),
        gradient_checkpointing=settings.gradient_checkpointing,
    )
    rate = measured_rate(settings.precision)
    looks = -(-settings.steps // settings.evaluate_every)  # the last step is always looked at
    held_out = looks * len(run.splits["validation"].examples) + len(run.splits["test"].examples)
    one = training_seconds(cost, run.model.config, rate=rate)
    step = one * settings.batch_size / Processes.of(settings.parallel).total
    return TaskCost(
        tokens=length,
        memory_bytes=cost.peak_bytes,
        step_seconds=step,
        seconds=settings.steps * step + held_out * cost.forward_flops / rate,
    )


def measure(run: ParagraphRun) -> ParagraphAnswers:
    """What the model makes of the test examples."""
    return answer_tasks(
        run.model,
        run.splits["test"].examples,
        run.collate,
        batch_size=run.settings.training.micro_batch_size,
        precision=run.settings.training.precision,
        name="test",
    )


def write_paragraph_report(
    run: ParagraphRun, opened: Run, result: TrainingResult, answers: ParagraphAnswers
) -> Report:
    """Scores on test, what they were measured on, and the history of both losses."""
    return opened.write_report(
        scores={
            **paragraph_scores(answers, seed=run.settings.training.seed),
            "best_step": {"value": result.best_step},
            "training_seconds": {"value": result.seconds},
            "training_tokens": {"value": result.tokens},
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.training.precision),
            "checksums": {split: one.checksum for split, one in run.splits.items()},
            "files_passed_over": named(run.splits["train"].passed_over),
            "documents": {split: one.counts.documents_kept for split, one in run.splits.items()},
            "paragraphs": {split: one.examples.counts.sources for split, one in run.splits.items()},
            "short_of_hard": {split: one.examples.counts.short_of_hard for split, one in run.splits.items()},
            "share_of_text_cut": _share_cut(run),
            "right": run.settings.task.right,
            "weights": parameter_count(run.model),
        },
        tables={"history": [dict(record) for record in result.history]},
    )


def score_rows(report: Report) -> list[list[str]]:
    """Measure, value with interval, chance, and what it is of, as cells of HTML."""
    rows = [
        [
            f"&emsp;{name}" if key.count("/") > 1 else name,
            f"{score['value']:.1%} [{score['low']:.1%}, {score['high']:.1%}]",
            "" if score["chance"] is None else f"{score['chance']:.0%}",
            f"{score['n']:,}",
        ]
        for key, name in MEASURES.items()
        if (score := report.scores.get(key))
    ]
    words = report.scores["mlm/perplexity"]
    interval = f"{words['value']:.2f} [{words['low']:.2f}, {words['high']:.2f}]"
    return [*rows, ["perplexity of masked tokens", interval, "", f"{words['n']:,}"]]


def losses_figure(report: Report) -> go.Figure:
    """Both losses over the steps, made from the report and nothing else."""
    history = report.tables["history"]
    mlm, mspp = (task_losses(history, name) for name in ("mlm", "mspp"))
    return pretraining_losses_figure(mlm, mspp, right=report.data["right"])


def _documents_told(split: ParagraphSplit) -> str:
    counts, sources = split.counts, split.examples.counts
    left_out = counts.documents_read - counts.documents_kept
    without = f" ({left_out:,} without)" if left_out else ""
    return (
        f"{counts.documents_kept:,} documents with sentences{without}: {counts.paragraphs:,} paragraphs, "
        f"{sources.sources:,} of them long enough to ask about, {counts.sentences:,} sentences"
    )


def _shortage_told(split: ParagraphSplit) -> str:
    counts, hard = split.examples.counts, split.examples.k[1]
    if not counts.short_of_hard:
        return f"each document has {hard:,} or more sentences in other paragraphs"
    share = counts.short_of_hard / counts.sources
    return (
        f"{share:.0%} of these paragraphs stand in documents with fewer than {hard:,} sentences elsewhere; "
        "what is missing is taken from other documents"
    )


def _share_cut(run: ParagraphRun) -> float:
    """Of the tokens of the first training examples, how much is cut."""
    cut, read = _cut(run)
    return float(cut.sum() / (cut.sum() + read))


def _cut_told(run: ParagraphRun) -> str:
    cut, read = _cut(run)
    length = run.settings.task.sentence_length
    return (
        f"{(cut > 0).mean():.0%} of the sentences are cut to {length:,} tokens, which takes "
        f"{cut.sum() / (cut.sum() + read):.0%} of the text"
    )


def _cut(run: ParagraphRun) -> tuple[np.ndarray, int]:
    """Tokens cut from each sentence of the first training examples, and how many are read of all."""
    examples = run.splits["train"].examples
    seen = [examples.describe(index) for index in range(min(LOOKED_AT, len(examples)))]
    read = sum(len(one.input_ids) - len(one.sequence.starts) for one in seen)
    return np.concatenate([one.sequence.cut for one in seen]), read
