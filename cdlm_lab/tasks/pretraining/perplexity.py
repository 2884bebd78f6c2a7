"""Cross-document perplexity of the five variants (CDLM section 3.1, Table 1): notebook 02.

Every variant predicts the same masked tokens of the same packed clusters, each with the global tokens it was
trained with. Losses are kept per cluster, so that the mean is weighted by masked tokens, intervals resample
clusters, and two variants are compared cluster by cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
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
from cdlm_lab.runs.evaluation import ItemTable, Measure, Planned, comparison_rows
from cdlm_lab.runs.items import UNTRAINED, items_of, read_frame, write_frame
from cdlm_lab.runs.runs import ExperimentRun, Scores, VariantsRun, once, report

__all__ = ["Settings", "evaluate", "predict", "prepare", "report"]
HEADLINE = ("cdlm", "local-cdlm")  # the two variants that the one-sentence result compares
LOSSES_FOLDER = "losses"  # inside the run folder, with one file per variant
# Metrics over all masked tokens, and over those that can be recovered only from another document.
METRICS = {"perplexity": ("loss", "tokens"), "cross_document_perplexity": ("cross_loss", "cross_tokens")}
MEASURES = tuple(Measure(metric, "exp", lower=True) for metric in METRICS)
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


def items_of_losses(losses: Losses) -> pd.DataFrame:
    """Nats and tokens of each cluster, for each metric those that have tokens."""
    return pd.concat(
        [
            items_of(
                {metric: tuple(getattr(sums, part)[chosen] for part in parts)},
                system=variant,
                seed=UNTRAINED,
                split="",
                items=chosen,
            )
            for variant, sums in losses.items()
            for metric, parts in METRICS.items()
            for chosen in [np.flatnonzero(getattr(sums, parts[1]))]
        ]
    )


def neighbours(variants: Iterable[str]) -> list[Planned]:
    """Each variant against the next one, by each metric."""
    pairs = [*pairwise(variants)]
    return [Planned(a=a, b=b, measure=metric, split="") for metric in METRICS for a, b in pairs]


@dataclass(frozen=True, kw_only=True)
class LossesRun(ExperimentRun):
    """A run whose predictions are the losses of `variants`, which stand in the paper's order."""

    MEASURES: ClassVar[tuple[Measure, ...]] = MEASURES

    def items(self, predictions: tuple[Losses, TokenisedSplit]) -> pd.DataFrame:
        """Nats and tokens of each cluster."""
        return items_of_losses(predictions[0])

    @property
    def planned(self) -> list[Planned]:
        """Each variant against the next one."""
        return neighbours(self.variants)


ModelsAndExamples = Iterator[tuple[str, CrossDocumentLM, CrossDocumentExamples, TokenisedSplit]]


@dataclass(frozen=True, kw_only=True)
class PerplexityRun(LossesRun, VariantsRun):
    """A run of notebook 02."""

    NAME: ClassVar[str] = "cross-document perplexity"

    settings: Settings
    cache: str | Path  # the folder of tokenised corpora

    @classmethod
    def read(cls, settings: Settings, *, cache: str | Path) -> PerplexityRun:
        """The settings; clusters are tokenised when the first model is there."""
        return cls(settings=settings, cache=cache)

    @property
    def variants(self) -> Mapping[str, str]:
        """Variant -> its model."""
        return self.settings.checkpoints

    def check(self) -> None:
        """Open every model and tokenise the clusters; raises what does not fit."""
        for _ in self.models_and_examples():
            pass

    def models_and_examples(self) -> ModelsAndExamples:
        """Each variant, its model, its examples, and the tokenised split."""
        given = self.settings
        form = parameters_of(given, "split", "window") | {"cache": self.cache}
        return models_and_examples(given.checkpoints, given.clusters_read, **form)


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
def evaluate(run: LossesRun, predictions: tuple[Losses, TokenisedSplit]) -> Scores:
    """The perplexities of each variant with intervals over clusters, each tested against the next variant in
    the paper's order, and facts about the clusters."""
    split, made = predictions[1], run.evaluated(predictions)
    data = {
        "checksum": split.checksum,
        "clusters": split.counts.clusters_kept,
        "clusters_dropped": split.counts.clusters_dropped,
        "files_passed_over": named(split.passed_over),
    }
    documents = np.array([len(ids) for ids in split.clusters["document_ids"]])
    # of CDLM and Local CDLM if both were measured, on cross-document tokens if the corpus marks them
    headline = [Planned(a=HEADLINE[0], b=HEADLINE[1], measure=one, split="") for one in METRICS]
    tables = {
        "comparisons": compared(made.items, run.planned),
        "by_documents": by_documents(made.items, documents, run.planned),
        "headline": compared(made.items, headline)[-1:],
    }
    return Scores.of(made, data=data, **tables)


def compared(items: pd.DataFrame, planned: Sequence[Planned]) -> list[dict[str, Any]]:
    """The planned comparisons, paired by cluster; `difference` is in nats a token: the log-perplexity of `a`
    minus that of `b`. `kind` is the measure."""
    rows = comparison_rows(ItemTable(items), MEASURES, planned)
    return [{"kind": row["measure"], **row} for row in rows]


def by_documents(
    items: pd.DataFrame, documents: np.ndarray, planned: Sequence[Planned]
) -> list[dict[str, Any]]:
    """The same in the clusters with each number of documents. `documents`: how many each cluster has."""
    rows = []
    for number, clusters in sorted(Counter(documents.tolist()).items()):
        chosen = items[items["item"].astype(int).isin(np.flatnonzero(documents == number))]
        if clusters >= LEAST_CLUSTERS:
            about = {"documents": number, "clusters": clusters}
            rows += [row | about for row in compared(chosen, planned)]
    return rows


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
    read = models_and_examples(checkpoints, corpus, split=split, window=window, cache=cache)
    for name, model, examples, tokenised in read:
        if not losses:
            print_passed_over(corpus.corpus, tokenised.passed_over)
        file = kept and kept / f"{name}.parquet"
        if file and file.is_file():
            losses[name] = ClusterLosses(**{key: one.to_numpy() for key, one in read_frame(file).items()})
            continue
        losses[name] = cluster_losses(model, examples, batch_size=batch_size, precision=precision, name=name)
        if file:
            write_frame(pd.DataFrame(vars(losses[name])), file)
    return losses, tokenised


def models_and_examples(
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
