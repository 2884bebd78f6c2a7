"""Cross-document perplexity of the five variants (CDLM section 3.1, Table 1): notebook 02.

Every variant predicts the same masked tokens of the same packed clusters, each with the global tokens it was
trained with. Losses are kept per cluster, so that the mean is weighted by masked tokens, intervals resample
clusters, and two variants are compared cluster by cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from cdlm_lab.data.files import named
from cdlm_lab.examples.collate import Collate, batches_by_length
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.experiments.cluster_corpora import (
    VARIANTS,
    CorpusSettings,
    Split,
    TokenisedSplit,
    held_out_examples,
    tell_passed_over,
    tokenised_split,
    variant_of,
)
from cdlm_lab.metrics.significance import Comparison, compare_perplexities, holm, perplexity
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.encoder import load_language_model
from cdlm_lab.models.language_model import CrossDocumentLM
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run

# The parameters of notebook 02.
PARAMETERS = (
    "run_folder",
    "longformer",
    "local_cdlm",
    "rand_cdlm",
    "prefix_cdlm",
    "cdlm",
    "corpus",
    "split",
    "clusters",
    "minimum_documents",
    "packing",
    "max_length",
    "window",
    "mask_probability",
    "batch_size",
    "precision",
    "seed",
)


@dataclass(frozen=True, kw_only=True)
class ClusterLosses:
    """Of each cluster the summed loss in nats and the number of masked tokens, (clusters,) each.

    `loss`, `tokens`: over all masked tokens; `cross_loss`, `cross_tokens`: over those that can be recovered
    from another document of the sequence and from nothing else (all zero where the corpus does not mark
    them).
    """

    loss: np.ndarray
    tokens: np.ndarray
    cross_loss: np.ndarray
    cross_tokens: np.ndarray


def cluster_losses(
    model: CrossDocumentLM,
    examples: CrossDocumentExamples,
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str = "",
) -> ClusterLosses:
    """Losses of every example under fixed masks; a progress bar with time left. `precision`: of the forward
    pass, as of `resolve_precision`; losses are float32 in each."""
    read = [examples[index] for index in range(len(examples))]
    batches = batches_by_length(
        [len(example["input_ids"]) for example in read],
        [int(example["global_attention_mask"].sum()) for example in read],
        batch_size,
    )
    collate = Collate(pad_token_id=model.config.pad_token_id)
    sums = np.zeros((4, len(read)))
    model.eval()
    with (
        Progress(total=len(read), desc=f"perplexity of {name}".removesuffix(" of "), unit="cluster") as bar,
        torch.no_grad(),
        computing_in(precision, model.device),
    ):
        for batch_of in batches:
            batch = {
                key: tensor.to(model.device) for key, tensor in collate([read[i] for i in batch_of]).items()
            }
            crossing = batch.pop("cross_document")
            row, column = (batch["labels"] != NOT_MASKED).nonzero(as_tuple=True)
            loss = model(**batch).token_loss.double().cpu().numpy()
            index = np.array(batch_of)[row.cpu().numpy()]
            is_cross = crossing[row, column].cpu().numpy()
            for place, weights in enumerate((loss, np.ones_like(loss), loss * is_cross, is_cross)):
                sums[place] += np.bincount(index, weights=weights, minlength=len(read))
            bar.update(len(batch_of))
    return ClusterLosses(loss=sums[0], tokens=sums[1], cross_loss=sums[2], cross_tokens=sums[3])


def measure_variants(
    checkpoints: Mapping[str, str | Path],
    settings: CorpusSettings,
    *,
    split: Split,
    window: int,
    batch_size: int,
    attention: str = "auto",
    precision: Precision = "float32",
    device: str | None = None,
) -> tuple[dict[str, ClusterLosses], TokenisedSplit]:
    """Losses of each variant's checkpoint (variant name -> folder or hub name, "" = left out) on one split.
    `precision`: as of `cluster_losses`.

    Raises ValueError for an unknown variant, when none is left, or when tokenizers differ (their perplexities
    could not be compared), and what loading raises.
    """
    given = {name: str(where) for name, where in checkpoints.items() if where}
    for name in given:
        variant_of(name)
    if not given:
        raise ValueError("every variant is left out; name at least one checkpoint")
    losses: dict[str, ClusterLosses] = {}
    tokenised: TokenisedSplit | None = None  # of the first tokenizer, which is that of all
    vocabulary = None
    for name, variant in VARIANTS.items():
        if name not in given:
            continue
        model, tokenizer = load_language_model(
            given[name],
            max_length=settings.max_length,
            window=window,
            attention=attention,
            seed=settings.seed,
        )
        if vocabulary not in (None, tokenizer.get_vocab()):
            raise ValueError(
                f"{given[name]}: its vocabulary is not that of the variants before; perplexities of "
                "different vocabularies cannot be compared"
            )
        vocabulary = tokenizer.get_vocab()
        model.to(device or default_device())
        if tokenised is None:
            tokenised = tokenised_split(settings, split, tokenizer=tokenizer)
            tell_passed_over(settings.corpus, tokenised.passed_over)
        examples = held_out_examples(tokenised, settings, variant=variant, tokenizer=tokenizer, name=split)
        losses[name] = cluster_losses(model, examples, batch_size=batch_size, precision=precision, name=name)
    return losses, tokenised


KINDS = {"perplexity": ("loss", "tokens"), "cross_document_perplexity": ("cross_loss", "cross_tokens")}


def scores_of(losses: Mapping[str, ClusterLosses], *, seed: int) -> dict[str, dict[str, Any]]:
    """For the report: `variant/perplexity` and, where the corpus marks such tokens,
    `variant/cross_document_perplexity`, each with its 95% interval, the number of clusters (n) and of masked
    tokens."""
    scores: dict[str, dict[str, Any]] = {}
    for variant, sums in losses.items():
        for kind, (loss, tokens) in KINDS.items():
            if getattr(sums, tokens).sum():
                found = perplexity(getattr(sums, loss), getattr(sums, tokens), seed=seed)
                scores[f"{variant}/{kind}"] = {
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                    "n": found.clusters,
                    "tokens": found.tokens,
                }
    return scores


def comparisons_of(losses: Mapping[str, ClusterLosses], *, seed: int) -> list[dict[str, Any]]:
    """For the report: each variant against the next in paper order, paired by cluster.

    `difference` is in nats a token (log-perplexity of `a` minus that of `b`); `p` is that of the permutation
    test, `p_holm` corrected for all rows of one kind.
    """
    rows: list[dict[str, Any]] = []
    for kind, (loss, tokens) in KINDS.items():
        found: list[tuple[str, str, Comparison]] = []
        for a, b in pairwise(losses):
            if getattr(losses[a], tokens).sum():
                first, second = losses[a], losses[b]
                compared = compare_perplexities(
                    getattr(first, loss), getattr(second, loss), getattr(first, tokens), seed=seed
                )
                found.append((a, b, compared))
        corrected = holm([compared.p for _, _, compared in found]) if found else []
        rows += [
            {
                "kind": kind,
                "a": a,
                "b": b,
                "difference": compared.difference,
                "low": compared.low,
                "high": compared.high,
                "p": compared.p,
                "p_holm": p_holm,
            }
            for (a, b, compared), p_holm in zip(found, corrected, strict=True)
        ]
    return rows


def write_perplexity_report(
    run: Run,
    losses: Mapping[str, ClusterLosses],
    split: TokenisedSplit,
    *,
    seed: int,
    data: Mapping[str, Any] = MappingProxyType({}),
) -> Report:
    """Scores, comparisons and what they were measured on, as the run's report; `data`: what else it says."""
    return run.write_report(
        scores=scores_of(losses, seed=seed),
        data={
            "checksum": split.checksum,
            "clusters": split.counts.clusters_kept,
            "clusters_dropped": split.counts.clusters_dropped,
            "files_passed_over": named(split.passed_over),
            **data,
        },
        tables={"comparisons": comparisons_of(losses, seed=seed)},
    )
