"""Cross-document perplexity of the five variants (CDLM section 3.1, Table 1): notebook 02.

Every variant predicts the same masked tokens of the same packed clusters, each with the global tokens it was
trained with. Losses are kept per cluster, so that the mean is weighted by masked tokens, intervals resample
clusters, and two variants are compared cluster by cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from cdlm_lab.data.files import named
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.encoder import load_language_model
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.encoders.precision import Precision, computing_in
from cdlm_lab.encoders.variants import Checkpoints, variant_of
from cdlm_lab.examples.collate import Collate, batches_by_length
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.metrics.significance import compare_perplexities, perplexity
from cdlm_lab.parameters import parameters_of, settings, settings_of
from cdlm_lab.progress import Progress
from cdlm_lab.runs.corpora import (
    CACHE_FOLDER,
    CorpusSettings,
    Packing,
    Split,
    TokenisedSplit,
    examples_of,
    print_passed_over,
    tokenised_split,
)
from cdlm_lab.runs.runs import ExperimentRun, Scores, VariantsRun, once, read_arrays, report, write_arrays
from cdlm_lab.runs.scores import Score
from cdlm_lab.runs.scoring import with_p_holm

__all__ = ["Settings", "evaluate", "predict", "prepare", "report"]
HEADLINE = ("cdlm", "local-cdlm")  # the two variants that the one-sentence result compares
LOSSES_FOLDER = "losses"  # inside the run folder, with one file per variant
# Metrics over all masked tokens, and over those that can be recovered only from another document.
METRICS = {"perplexity": ("loss", "tokens"), "cross_document_perplexity": ("cross_loss", "cross_tokens")}
LEAST_CLUSTERS = 10  # fewer with one number of documents are not compared apart


@settings
class Settings(Checkpoints):
    """The parameters of notebook 02, whose comments say what they mean."""

    run_folder: str = "runs/perplexity"
    corpus: str = "storyworld"
    split: Literal["test", "validation"] = "test"
    clusters: int = 200
    minimum_documents: int = 3
    packing: Packing = "equal_share"
    max_length: int = 512
    window: int = 32
    mask_probability: float = 0.15
    batch_size: int = 8
    precision: Precision = "auto"
    seed: int = 0

    @property
    def clusters_read(self) -> CorpusSettings:
        """Which clusters are read, and how they become sequences."""
        sizes = {"train_clusters": self.clusters, "held_out_clusters": self.clusters}
        return settings_of(CorpusSettings, parameters_of(self) | sizes)


@dataclass(frozen=True, kw_only=True)
class ClusterLosses:
    """For each cluster, the summed loss in nats and the number of masked tokens, (clusters,) each.

    `cross_loss`, `cross_tokens`: only over the tokens that can be recovered from another document of the
    sequence and from nothing else (all zero if the corpus does not mark them).
    """

    loss: np.ndarray
    tokens: np.ndarray
    cross_loss: np.ndarray
    cross_tokens: np.ndarray


Losses = Mapping[str, ClusterLosses]  # by variant
ModelsAndExamples = Iterator[tuple[str, CrossDocumentLM, CrossDocumentExamples, TokenisedSplit]]


@dataclass(frozen=True, kw_only=True)
class PerplexityRun(VariantsRun):
    """A run of notebook 02."""

    NAME: ClassVar[str] = "cross-document perplexity"

    settings: Settings
    cache: str | Path  # the folder of tokenised corpora

    @classmethod
    def read(cls, settings: Settings, *, cache: str | Path) -> PerplexityRun:
        """The settings; clusters are tokenised when the first model is there."""
        return cls(settings=settings, cache=cache)

    def check(self) -> None:
        """Open every model and tokenise the clusters; raises what does not fit."""
        for _ in self.models_and_examples():
            pass

    def models_and_examples(self) -> ModelsAndExamples:
        """Each variant, its model, its examples, and the tokenised split."""
        given = self.settings
        form = parameters_of(given, "split", "window") | {"cache": self.cache}
        return _models_and_examples(given.checkpoints, given.clusters_read, **form)


def prepare(settings: Settings, *, cache: str | Path = CACHE_FOLDER) -> PerplexityRun:
    """Open every model, tokenise the clusters (once, into the folder `cache`), and claim the run folder."""
    return PerplexityRun.open(settings, cache=cache)


def predict(prepared: PerplexityRun) -> tuple[dict[str, ClusterLosses], TokenisedSplit]:
    """The losses of each variant, which are saved in the run folder, and the clusters they were measured
    on."""
    settings = prepared.settings
    names = ("split", "window", "batch_size", "precision")
    form = parameters_of(settings, *names) | {"cache": prepared.cache}
    kept = prepared.folder / LOSSES_FOLDER
    return measure(settings.checkpoints, settings.clusters_read, **form, kept=kept)


@once
def evaluate(prepared: ExperimentRun, predictions: tuple[Losses, TokenisedSplit]) -> Scores:
    """The perplexities of each variant with intervals over clusters, each tested against the next variant in
    the paper's order, and facts about the clusters. `prepared`: a run of this notebook or of the tour."""
    losses, split = predictions
    rows, comparisons = score_rows(losses, seed=prepared.settings.seed)
    data = {
        "checksum": split.checksum,
        "clusters": split.counts.clusters_kept,
        "clusters_dropped": split.counts.clusters_dropped,
        "files_passed_over": named(split.passed_over),
    }
    documents = np.array([len(ids) for ids in split.clusters["document_ids"]])
    tables = {
        "comparisons": comparisons,
        "by_documents": by_documents(losses, documents, seed=prepared.settings.seed),
        "headline": headline_test(losses, seed=prepared.settings.seed),
    }
    return Scores(rows=rows, tables=tables, data=data)


def score_rows(losses: Losses, *, seed: int) -> tuple[list[Score], list[dict[str, Any]]]:
    """The rows of the score table, and the significance tests between variants."""
    comparisons = comparisons_of(losses, seed=seed)
    test_of = {(row["a"], row["kind"]): row for row in comparisons}
    rows = []
    for variant, sums in losses.items():
        for metric, (loss, tokens) in METRICS.items():
            if not getattr(sums, tokens).sum():
                continue
            columns = perplexity(getattr(sums, loss), getattr(sums, tokens), seed=seed)
            if test := test_of.get((variant, metric)):
                columns |= {"p": test["p_holm"], "against": test["b"]}
            rows.append(Score(system=variant, metric=metric, **columns))
    return rows, comparisons


def comparisons_of(losses: Losses, *, seed: int, chosen: Any = ...) -> list[dict[str, Any]]:
    """Each variant against the next in the paper's order, paired by cluster.

    `difference` is in nats per token (log-perplexity of `a` minus that of `b`); `p_holm` is corrected for all
    rows of one kind. `chosen`: index of the clusters to compare.
    """
    rows = []
    for kind, (_, tokens) in METRICS.items():
        measured = [pair for pair in pairwise(losses) if getattr(losses[pair[0]], tokens)[chosen].sum()]
        rows += with_p_holm([_compared(losses, kind, *pair, seed=seed, chosen=chosen) for pair in measured])
    return rows


def by_documents(losses: Losses, documents: np.ndarray, *, seed: int) -> list[dict[str, Any]]:
    """The same in the clusters with each number of documents. `documents`: how many each cluster has."""
    return [
        {"documents": number, "clusters": clusters, **row}
        for number, clusters in sorted(Counter(documents.tolist()).items())
        if clusters >= LEAST_CLUSTERS
        for row in comparisons_of(losses, seed=seed, chosen=documents == number)
    ]


def _compared(losses: Losses, kind: str, a: str, b: str, *, seed: int, chosen: Any = ...) -> dict[str, Any]:
    """The test of one variant against another by one metric, paired by cluster."""
    loss, tokens = METRICS[kind]
    parts = ((a, loss), (b, loss), (a, tokens))
    compared = compare_perplexities(*(getattr(losses[name], part)[chosen] for name, part in parts), seed=seed)
    names = ("difference", "low", "high", "p")
    return {"kind": kind, "a": a, "b": b} | {name: getattr(compared, name) for name in names}


def headline_test(losses: Losses, *, seed: int) -> list[dict[str, Any]]:
    """The test of CDLM against Local CDLM if both were measured, on cross-document tokens if the corpus marks
    them, else on all; one row, or none."""
    if not all(name in losses for name in HEADLINE):
        return []
    kinds = [kind for kind, (_, tokens) in METRICS.items() if getattr(losses[HEADLINE[0]], tokens).any()]
    return [_compared(losses, kinds[-1], *HEADLINE, seed=seed)]


def cluster_losses(
    model: CrossDocumentLM,
    examples: Sequence[Mapping[str, np.ndarray]],
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str = "",
) -> ClusterLosses:
    """Losses of every example under fixed masks, with a progress bar; float32 in every precision."""
    read = [examples[index] for index in range(len(examples))]
    lengths = [len(example["input_ids"]) for example in read]
    globals_ = [int(example["global_attention_mask"].sum()) for example in read]
    collate = Collate(pad_token_id=model.config.pad_token_id)
    sums = np.zeros((4, len(read)))
    model.eval()
    with (
        Progress(total=len(read), desc=f"perplexity of {name}".removesuffix(" of "), unit="cluster") as bar,
        torch.no_grad(),
        computing_in(precision, model.device),
    ):
        for numbers in batches_by_length(lengths, globals_, batch_size):
            batch = collate([read[number] for number in numbers])
            batch = {key: tensor.to(model.device) for key, tensor in batch.items()}
            crossing = batch.pop("cross_document")
            row, column = (batch["labels"] != NOT_MASKED).nonzero(as_tuple=True)
            loss = model(**batch).token_loss.cpu().double().numpy()
            index = np.array(numbers)[row.cpu().numpy()]
            is_cross = crossing[row, column].cpu().numpy()
            for place, weights in enumerate((loss, np.ones_like(loss), loss * is_cross, is_cross)):
                sums[place] += np.bincount(index, weights=weights, minlength=len(read))
            bar.update(len(numbers))
    return ClusterLosses(loss=sums[0], tokens=sums[1], cross_loss=sums[2], cross_tokens=sums[3])


def measure(
    checkpoints: Mapping[str, str | Path],
    corpus: CorpusSettings,
    *,
    split: Split,
    window: int,
    batch_size: int,
    precision: Precision = "float32",
    cache: str | Path = CACHE_FOLDER,
    kept: Path | None = None,
) -> tuple[dict[str, ClusterLosses], TokenisedSplit]:
    """Losses of each variant's checkpoint (variant name -> folder or hub name, in the order of the tables) on
    one split. `kept`: a folder in which they are saved; losses already in it are not measured again. Raises
    ValueError if vocabularies differ."""
    losses: dict[str, ClusterLosses] = {}
    read = _models_and_examples(checkpoints, corpus, split=split, window=window, cache=cache)
    for name, model, examples, tokenised in read:
        if not losses:
            print_passed_over(corpus.corpus, tokenised.passed_over)
        file = kept and kept / f"{name}.npz"
        if file and file.is_file():
            losses[name] = ClusterLosses(**read_arrays(file))
            continue
        losses[name] = cluster_losses(model, examples, batch_size=batch_size, precision=precision, name=name)
        if file:
            write_arrays(file, vars(losses[name]))
    return losses, tokenised


def _models_and_examples(
    checkpoints: Mapping[str, str | Path],
    corpus: CorpusSettings,
    *,
    split: Split,
    window: int,
    cache: str | Path = CACHE_FOLDER,
) -> ModelsAndExamples:
    """Yield each variant, its model, its examples, and the tokenised split."""
    tokenised: TokenisedSplit | None = None  # by the first tokenizer, which all variants share
    vocabulary = None
    for name, where in checkpoints.items():
        form = {"max_length": corpus.max_length, "window": window, "seed": corpus.seed}
        model, tokenizer = load_language_model(where, attention="auto", **form)
        if vocabulary not in (None, tokenizer.get_vocab()):
            raise ValueError(
                f"{where}: its vocabulary is not that of the variants before; perplexities of "
                "different vocabularies cannot be compared"
            )
        vocabulary = tokenizer.get_vocab()
        tokenised = tokenised or tokenised_split(corpus, split, tokenizer=tokenizer, cache=cache)
        parts = {"variant": variant_of(name), "tokenizer": tokenizer}
        examples = examples_of(tokenised, split, corpus, **parts)
        yield name, model.to(default_device()), examples, tokenised
