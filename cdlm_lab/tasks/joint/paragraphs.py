"""Pretraining on paragraphs with MLM and MSPP: notebook 08 (Di Liello et al. 2022, section 3.4, appendix B).

Unlike the paper, which seems to take the last step, the model is selected on validation; validation and test
documents, and all their candidates, come from other clusters than training ones. What is not a parameter is
the paper's: AdamW with beta_2 0.999, epsilon 1e-8 and weight decay 0.01, gradients clipped at norm 1.

The paper has no scores on held-out paragraphs. Candidates are scored here
- one by one: `called`, the accuracy when log-odds above 0 mean the same paragraph, overall and by source;
- against each other, without a threshold: `first`, how often a candidate of the same paragraph has the top
  score, and `above`, how often it scores above a candidate from elsewhere, by the source of that one.
Beside `first` stands a word-overlap baseline: the TF-IDF cosine of each candidate with s_0.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from datasets import Dataset
from pydantic import Field
from sklearn.feature_extraction.text import TfidfVectorizer
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.cache import cache_folder
from cdlm_lab.data.clusters import corpus_checksum, open_corpus, paragraph_documents, passed_over
from cdlm_lab.data.files import named
from cdlm_lab.data.records import Cluster, Paragraphed
from cdlm_lab.data.splits import SPLITS, Split, split_named
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.conversion import copy_global_to_local, copy_local_to_global
from cdlm_lab.encoders.encoder import FROM_SCRATCH
from cdlm_lab.encoders.precision import Precision, precision_in_words
from cdlm_lab.examples import cached_corpus
from cdlm_lab.examples.masking import NOT_MASKED, check_probability
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.metrics.ranking import values_per_group
from cdlm_lab.parameters import ParameterError, parameters_of, settings
from cdlm_lab.runs.corpora import (
    CACHE_FOLDER,
    SPLIT_SEEDS,
    print_passed_over,
    tokenising_processes,
)
from cdlm_lab.runs.evaluation import Measure, Planned
from cdlm_lab.runs.items import UNTRAINED, items_of, read_frame, write_frame
from cdlm_lab.runs.runs import (
    ModelRun,
    Scores,
    StepSettings,
    once,
    outputs_by_length,
    report,
    train_small,
)
from cdlm_lab.runs.runs import train_model as train
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.joint import model as joint
from cdlm_lab.tasks.joint import paragraph_examples as paragraph_tasks
from cdlm_lab.tasks.joint.examples import JointCollate
from cdlm_lab.tasks.joint.model import ParagraphModel
from cdlm_lab.tasks.joint.paragraph_examples import SAME_PARAGRAPH
from cdlm_lab.training.checkpoints import TRAINING_FOLDER
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob
from cdlm_lab.training.history import HISTORY_FILE, read_history
from cdlm_lab.training.processes import processes_of
from cdlm_lab.training.trained import trained_model, trained_run
from cdlm_lab.training.trainer import TrainingResult

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train", "train_small"]

# ---- settings and data ----


@settings
class Settings(StepSettings):
    """The parameters of notebook 08, whose first cell says what each is."""

    run_folder: str = "runs/paragraph_pretraining"
    trained: str = ""  # a run whose model is opened; "" = one is trained
    model: str = "storyworld/longformer"  # or `tiny`, from scratch
    corpus: str = "storyworld"
    paragraphs: Literal["by topic", "as written"] = "by topic"  # in storyworld: of its digests, or reports
    # At most so many for training, and for each of validation and test; storyworld, generated without end,
    # needs a number.
    train_clusters: int = Field(default=200, ge=0, description="0 means all")
    held_out_clusters: int = Field(default=60, ge=0, description="0 means all")
    head: Literal["ie_k", "ae_k"] = "ie_k"
    head_layers: Literal["linear", "tanh"] = "linear"
    # Candidates of each kind, k_1, k_2 and k_3.
    same_paragraph: int = Field(default=1, ge=1)
    same_document: int = Field(default=2, ge=0)
    other_documents: int = Field(default=2, ge=0)
    sentence_length: int = Field(default=32, ge=2)  # L, the token in front included
    mask_probability: float = 0.0  # 0 = no MLM, only MSPP
    steps: int = 300
    batch_size: int = 16
    micro_batch_size: int = 16
    warmup_steps: int = 30
    decay_power: float = 1.0

    def __post_init__(self) -> None:
        if not self.same_document + self.other_documents:
            raise ParameterError("same_document and other_documents are 0; there must be a wrong candidate")
        if self.mask_probability != 0:
            check_probability(self.mask_probability)
        self.training.accumulation(processes=processes_of(self.parallel))  # raises for impossible values

    @property
    def training(self) -> TrainingConfig:
        """The training config."""
        return replace(super().training, adam_beta2=0.999, adam_epsilon=1e-8)

    @property
    def k(self) -> tuple[int, int, int]:
        """(k_1, k_2, k_3), the number of candidates of each kind."""
        return self.same_paragraph, self.same_document, self.other_documents

    @property
    def right(self) -> float:
        """The fraction of candidates that come from the same paragraph."""
        return self.same_paragraph / sum(self.k)

    @property
    def joint_head(self) -> joint.JointHead:
        """The model head; it also fixes the layout of the input sequences."""
        return joint.JointHead(
            kind=self.head,
            sentences=1 + sum(self.k),
            length=self.sentence_length,
            layers=self.head_layers,
        )


@dataclass(frozen=True, kw_only=True)
class ParagraphSplit:
    """One split of a corpus: counts of its contents, a checksum of the source, and the sampled examples."""

    counts: cached_corpus.ParagraphCounts
    checksum: str
    examples: paragraph_tasks.ParagraphTasks
    clusters: Sequence[str]  # of test: the cluster of each document, by its row in the corpus


def clusters_of(documents: Dataset, clusters: Iterable[Cluster]) -> list[str]:
    """The cluster of each row of a tokenised corpus of these `clusters`, whose documents are its rows, in
    order, except for those without a sentence."""
    source = ((document.id, cluster.id) for cluster in clusters for document in cluster.documents)
    return [next(cluster for name, cluster in source if name == row) for row in documents["document_id"]]


def _reading(settings: Settings, split: Split) -> dict[str, Any]:
    """What `paragraph_documents` takes beside the corpus."""
    clusters = settings.train_clusters if split == "train" else settings.held_out_clusters
    return {"split": split, "size": clusters, "seed": 0, "by_topic": settings.paragraphs == "by topic"}


def read_split(
    settings: Settings, split: Split, *, tokenizer: PreTrainedTokenizerBase, cache: Path
) -> ParagraphSplit:
    """Tokenise a split, or open it from the cache, and sample examples: for training as many as it needs,
    otherwise one from each paragraph that is long enough. Raises ValueError if there is too little text."""
    is_train, read = split == "train", _reading(settings, split)
    checksum = corpus_checksum(settings.corpus, **read)
    fingerprint = cached_corpus.paragraph_fingerprint(checksum, tokenizer)
    documents = cached_corpus.tokenise_paragraphs(
        lambda: paragraph_documents(settings.corpus, **read),
        tokenizer,
        cache_dir=cache,
        fingerprint=fingerprint,
        processes=tokenising_processes(settings.workers),
    )
    try:
        examples = paragraph_tasks.ParagraphTasks(
            corpus=documents,
            layout=settings.joint_head.layout,
            special=from_tokenizer(tokenizer),
            k=settings.k,
            mask_probability=settings.mask_probability,
            seed=settings.seed * len(SPLIT_SEEDS) + SPLIT_SEEDS[split],
            size=settings.steps * settings.batch_size if is_train else None,
        )
    except ValueError as error:
        raise ValueError(f"{settings.corpus}, {split}: {error}") from error
    counts = cached_corpus.read_counts(cache, cached_corpus.ParagraphCounts, fingerprint=fingerprint)
    # of test alone, whose clusters are resampled: this reads the source
    names = clusters_of(documents, open_corpus(settings.corpus, **read)) if split == "test" else []
    return ParagraphSplit(counts=counts, checksum=checksum, examples=examples, clusters=names)


# ---- the run ----

TF_IDF = "tf-idf"
_KINDS = [kind for kind in paragraph_tasks.KINDS if kind != SAME_PARAGRAPH]
PERPLEXITY = "mlm/perplexity"
MEASURES = (
    *(Measure(f"mspp/{one}") for one in ("called", "first")),
    *(Measure(f"mspp/called/{kind}") for kind in paragraph_tasks.KINDS),
    *(Measure(f"mspp/above/{kind}") for kind in _KINDS),
    Measure(PERPLEXITY, "exp", lower=True),
)
PLANNED = [Planned(a="", b=TF_IDF, measure="mspp/first", split="")]


@dataclass(frozen=True, kw_only=True)
class ParagraphRun(ModelRun):
    """A paragraph pretraining run: the model and its examples."""

    NAME: ClassVar[str] = "paragraph pretraining"
    SHAPES: ClassVar[tuple[str, ...]] = (
        *("head", "head_layers", "same_paragraph", "same_document", "other_documents"),
        *("sentence_length", "mask_probability"),
    )

    MEASURES: ClassVar[tuple[Measure, ...]] = MEASURES

    settings: Settings
    model: ParagraphModel
    splits: Mapping[Split, ParagraphSplit]  # of the corpus
    cache: str  # folder of tokenised corpora
    write = staticmethod(joint.save_paragraph_model)  # with the head

    @classmethod
    def read(cls, settings: Settings, *, cache: str) -> ParagraphRun:
        """Load the model and build the examples."""
        model, tokenizer = cls.load(settings)
        splits = {
            split: read_split(settings, split, tokenizer=tokenizer, cache=cache_folder(cache))
            for split in SPLITS
        }
        test = splits["test"]
        if len({test.clusters[row] for row in test.examples.source_rows.tolist()}) < 2:
            raise ValueError(
                f"{settings.corpus}, test: only one cluster can be asked about, and intervals need two; "
                "give more clusters"
            )
        return cls(settings=settings, model=model, tokenizer=tokenizer, splits=splits, cache=cache)

    def records(self, split: str) -> Iterator[Paragraphed]:
        """The documents of a split, read again."""
        return paragraph_documents(self.settings.corpus, **_reading(self.settings, split_named(split)))

    @staticmethod
    def load(settings: Settings) -> tuple[ParagraphModel, PreTrainedTokenizerBase]:
        """The model that `trained` names, or a new one. Raises ParameterError: `trained` has no such head."""
        form = parameters_of(settings, "dropout", "attention_dropout", "seed") | {"head": settings.joint_head}
        if not settings.trained:
            with warnings.catch_warnings():
                if not settings.mask_probability:  # without MLM the new language-model head is never used
                    warnings.filterwarnings("ignore", ".* has no language-model head")
                model, tokenizer = joint.load_paragraph_model(settings.model, **form)
            if settings.projections == "global":
                copy_global_to_local(model)
            elif settings.model == FROM_SCRATCH:
                copy_local_to_global(model)
            return model, tokenizer
        folder = trained_model(settings.trained)
        if not joint.paragraph_head(str(folder)):
            raise ParameterError(
                f"trained is {settings.trained!r}, whose model has no head for paragraphs; name a run of "
                'notebook 08, or "" to train'
            )
        return joint.load_paragraph_model(folder, **form)

    @property
    def collate(self) -> JointCollate:
        """Turns examples into batches."""
        return JointCollate(pad_token_id=self.tokenizer.pad_token_id)

    def items(self, answers: ParagraphAnswers) -> pd.DataFrame:
        """The sums of each test example."""
        test = self.splits["test"]
        clusters = np.array(test.clusters)[answers.documents]
        return items_of_answers(answers, clusters=clusters, cosines=common_words(test.examples))

    @property
    def planned(self) -> list[Planned]:
        """The first places against those of common words."""
        return PLANNED

    def recipe(self) -> Recipe:
        """The recipe, with the folder of tokenised corpora added."""
        return super().recipe(cache=self.cache)

    def job(self) -> TrainingJob:
        """The training job: the model and its examples."""
        return TrainingJob(
            model=self.model,
            tokenizer=self.tokenizer,
            train_examples=self.splits["train"].examples,
            validation_examples=self.splits["validation"].examples,
            collate=self.collate,
            config=self.settings.training,
        )

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the corpus and the model, stored in the report."""
        counts = {split: one.examples.counts for split, one in self.splits.items()}
        cut, read = tokens_cut(self)
        return {
            "corpus": self.settings.corpus,
            "precision": precision_in_words(self.settings.precision),
            "checksums": {split: one.checksum for split, one in self.splits.items()},
            "files_passed_over": named(passed_over(self.settings.corpus)),
            "documents": {split: one.counts.documents_kept for split, one in self.splits.items()},
            "paragraphs": {split: one.sources for split, one in counts.items()},
            "short_of_hard": {split: one.short_of_hard for split, one in counts.items()},
            "share_of_text_cut": float(cut.sum() / (cut.sum() + read)),
            "right": self.settings.right,
            "weights": self.model.num_parameters(),
        }


def prepare(settings: Settings, *, cache: str | Path = CACHE_FOLDER) -> ParagraphRun:
    """Claim the run folder, load the model, tokenise the corpus (once) and build the examples."""
    run = ParagraphRun.open(settings, cache=str(cache))
    print_passed_over(settings.corpus, passed_over(settings.corpus))
    return run


# ---- predictions ----


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphAnswers:
    """Predictions of a model for the examples; a candidate of the same paragraph is a positive."""

    documents: np.ndarray  # int64 (examples,), corpus row of the document that s_0 comes from
    kinds: np.ndarray  # str (examples, k), where each candidate comes from, one of `paragraph_tasks.KINDS`
    scores: np.ndarray  # float64 (examples, k), log-odds of being of the same paragraph
    losses: np.ndarray  # float64 (examples,), MLM cross entropy in nats, summed over the masked tokens
    masked: np.ndarray  # int64 (examples,), number of masked tokens

    @property
    def probabilities(self) -> np.ndarray:
        """float64 (examples, k), probability that each candidate is of the same paragraph."""
        return 1 / (1 + np.exp(-self.scores))


def predict(run: ParagraphRun) -> ParagraphAnswers:
    """Predictions for the test examples; computed once, then kept in the run folder."""
    given, file = run.settings, run.folder / "answers.parquet"
    if not file.is_file():
        form = {"batch_size": given.micro_batch_size, "precision": given.precision, "name": "test"}
        answers = answer_tasks(
            run.model.to(default_device()), run.splits["test"].examples, run.collate, **form
        )
        write_frame(pd.DataFrame({name: [*values] for name, values in vars(answers).items()}), file)
    frame = read_frame(file)
    return ParagraphAnswers(**{name: np.array([*frame[name]]) for name in frame})


def answer_tasks(
    model: ParagraphModel,
    examples: paragraph_tasks.ParagraphTasks,
    collate: JointCollate,
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str,
) -> ParagraphAnswers:
    """Predictions for all examples, on the model's device; logits are float32 in every precision."""
    described = [examples.describe(number) for number in range(len(examples))]
    scores, losses = np.zeros((len(described), examples.layout.candidates)), np.zeros(len(described))
    reading = {"batch_size": batch_size, "precision": precision, "name": name}
    lengths, inputs = [len(one.input_ids) for one in described], [one.inputs for one in described]
    for rows, _, output in outputs_by_length(model, inputs, collate, lengths=lengths, **reading):
        scores[rows], losses[rows] = joint.scores_of(output.logits), output.nats.cpu().double().numpy()
    return ParagraphAnswers(
        documents=np.array([one.sentences[0].row for one in described]),
        kinds=np.array([[sentence.kind for sentence in one.sentences[1:]] for one in described]),
        scores=scores,
        losses=losses,
        masked=np.array([(one.mlm_labels != NOT_MASKED).sum() for one in described], dtype=np.int64),
    )


# ---- scores ----


@once
def evaluate(run: ParagraphRun, answers: ParagraphAnswers, result: TrainingResult | None) -> Scores:
    """Scores on test, and the history of both losses; for an opened model (`result` is None) the history that
    its run has kept, if any."""
    made, chances = run.evaluated(answers), chances_of(answers)
    rows = [replace(row, chance=chances.get(row.metric)) for row in made.rows]
    if result is None:
        history = read_history(trained_run(run.settings.trained) / TRAINING_FOLDER / HISTORY_FILE)
    else:
        history = [dict(record) for record in result.history]
        numbers = (result.best_step, result.seconds, result.tokens)
        named = zip(("best_step", "training_seconds", "training_tokens"), numbers, strict=True)
        rows += [Score(metric=name, value=value) for name, value in named]
    return Scores.of(replace(made, rows=rows), history=history)


_WEIGHED_BY = 2_000  # test documents whose sentences give the inverse document frequencies


def common_words(examples: paragraph_tasks.ParagraphTasks) -> np.ndarray:
    """float64 (test examples, k), TF-IDF cosines of the candidates with s_0, truncated as for the model but
    unmasked. Inverse document frequencies come from the sentences of the test documents, without labels, so
    that nothing depends on how many documents there are for training."""
    corpus = examples.corpus.with_format("arrow")
    words = TfidfVectorizer(analyzer=np.ndarray.tolist, sublinear_tf=True)
    documents = (cached_corpus.read_document(corpus, row) for row in range(min(_WEIGHED_BY, len(corpus))))
    words.fit(one.sentence(number) for one in documents for number in range(len(one.paragraphs)))
    cosines = np.zeros((len(examples), examples.layout.candidates))
    for row in range(len(examples)):
        sentences = examples.describe(row).sentences
        read = words.transform([one.tokens[: examples.layout.length - 1] for one in sentences])
        cosines[row] = (read[1:] @ read[0].T).toarray().ravel()
    return cosines


def chances_of(answers: ParagraphAnswers) -> dict[str, float]:
    """Measure -> its value without any knowledge: calling every candidate negative, or random scores; none
    where it depends on how many are called positive."""
    right = float((answers.kinds == SAME_PARAGRAPH).mean())
    above = {f"mspp/above/{kind}": 0.5 for kind in _KINDS}
    return {"mspp/called": 1 - right, "mspp/first": right, **above}


def items_of_answers(answers: ParagraphAnswers, *, clusters: np.ndarray, cosines: np.ndarray) -> pd.DataFrame:
    """The sums of each example: of candidates called rightly, of first places, of pairs in the right order,
    and of nats; also the first places of the TF-IDF `cosines` (examples, k). Documents of a cluster report
    the same events, so they are resampled together; kinds with fewer than two of `clusters` (examples,),
    names of those of s_0, are left out, as is the perplexity if no token is masked."""
    positive = answers.kinds == SAME_PARAGRAPH  # (examples, k)
    right = (answers.scores > 0) == positive
    first, by_words = (
        values_per_group(list(zip(scores, positive, strict=True)))["precision_at_1"]
        for scores in (answers.scores, cosines)
    )
    one = np.ones(len(first))
    every: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {
        ("", "mspp/called"): (right.sum(axis=1), one * positive.shape[1]),
        ("", "mspp/first"): (first, one),
        (TF_IDF, "mspp/first"): (by_words, one),
        ("", PERPLEXITY): (answers.losses, answers.masked),
    }
    for kind in paragraph_tasks.KINDS:
        chosen = answers.kinds == kind
        every["", f"mspp/called/{kind}"] = (right & chosen).sum(axis=1), chosen.sum(axis=1)
    for kind in _KINDS:
        every["", f"mspp/above/{kind}"] = _above(answers, answers.kinds == kind)
    parts = []
    for (system, name), (num, den) in every.items():
        some = np.flatnonzero(den)
        if len({*clusters[some]}) > 1:
            form = {"system": system, "seed": UNTRAINED, "split": "", "clusters": clusters[some]}
            parts.append(items_of({name: (num[some], den[some])}, items=some, **form))
    return pd.concat(parts)


def _above(answers: ParagraphAnswers, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each candidate of the same paragraph against each of the `other` ones, (examples, k) bool: for each
    example how many score higher (a tie is a half), and the number of pairs."""
    positive = answers.kinds == SAME_PARAGRAPH
    pairs = positive[:, :, None] & other[:, None, :]
    higher = (1 + np.sign(answers.scores[:, :, None] - answers.scores[:, None, :])) / 2
    return (higher * pairs).sum(axis=(1, 2)), pairs.sum(axis=(1, 2))


LOOKED_AT = 200  # examples from which the share of cut text and the mean length are estimated


def tokens_cut(run: ParagraphRun) -> tuple[np.ndarray, int]:
    """Tokens cut from each sentence of the first training examples, and how many are read in all."""
    examples = run.splits["train"].examples
    seen = [examples.describe(index) for index in range(min(LOOKED_AT, len(examples)))]
    read = sum(len(one.input_ids) - len(one.sequence.starts) for one in seen)
    return np.concatenate([one.sequence.cut for one in seen]), read
