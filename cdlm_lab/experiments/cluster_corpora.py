"""From the corpus a notebook names to tokenised clusters and examples of a variant.

The five language models of CDLM's ablation (section 3, "Baseline LMs"), and what sets them apart.

| variant | documents of an example | tokens with global attention |
|---|---|---|
| longformer | unrelated ones: the base that all others start from, never shown a cluster | none |
| local-cdlm | of one cluster | none |
| rand-cdlm | of different clusters | the masked ones |
| prefix-cdlm | of one cluster | the first 15% |
| cdlm | of one cluster | the masked ones |

In the paper `longformer` is the published checkpoint and is not trained. Models that come without a fitted
language-model head (`tiny` from scratch, `minilm`, whose head is not published) first need that base: it is
what `longformer` trains here, on unrelated documents with local attention, as Longformer was. Perplexity of
each variant is measured with the globals it was trained with, always on documents of one cluster (section
3.1).

Wherever a task has global tokens (Tables 3 to 6), "the global attention weights used by the underlying
Longformer and by Local CDLM are initialized to the values of their pretrained local attention weights"
(section 3). The models of notebook 01 are saved so; a checkpoint of others, as the published Longformer, may
have global weights of its own, which `reset_globals` replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from datasets import Dataset
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.clusters import corpus_checksum, open_corpus, passed_over
from cdlm_lab.data.files import named
from cdlm_lab.examples.cached_corpus import (
    CorpusCounts,
    corpus_fingerprint,
    read_counts,
    tokenise_clusters,
)
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.masking import continuing_pieces
from cdlm_lab.examples.packing import PACKING_POLICIES
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.models.encoder import copy_local_to_global
from cdlm_lab.parameters import ParameterError, check_choice, check_types
from cdlm_lab.progress import usable_cores
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import Workers


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How one of the five models is trained and read.

    `documents`: `related` or `random`, of the training examples; `global_policy`: `masked`, `prefix` or
    `none`, in training and evaluation alike.
    """

    name: str
    documents: str
    global_policy: str


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant(name="longformer", documents="random", global_policy="none"),
        Variant(name="local-cdlm", documents="related", global_policy="none"),
        Variant(name="rand-cdlm", documents="random", global_policy="masked"),
        Variant(name="prefix-cdlm", documents="related", global_policy="prefix"),
        Variant(name="cdlm", documents="related", global_policy="masked"),
    )
}


def variant_of(name: str) -> Variant:
    """The variant of that name. Raises ValueError naming all of them for any other name."""
    if name not in VARIANTS:
        raise ValueError(f"unknown variant {name!r}; choose one of {', '.join(VARIANTS)}")
    return VARIANTS[name]


def reset_globals(model: nn.Module, name: str) -> None:
    """Set the global projections of a variant that was trained without global tokens to its local ones, in
    place; others stay."""
    if variant_of(name).global_policy == "none":
        copy_local_to_global(model)


def checkpoint_of(encoders: str, name: str) -> str:
    """The encoder of a variant.

    Args:
        encoders: `storyworld` = the one that comes with the project; else a folder that has a folder of the
            variant's name, with the model in it or in its `model`.

    Raises:
        ParameterError: it is not there.
    """
    if encoders == "storyworld":
        return f"storyworld/{name}"
    for folder in (Path(encoders) / name / MODEL_FOLDER, Path(encoders) / name):
        if (folder / "config.json").is_file():
            return str(folder)
    raise ParameterError(
        f"encoders is {encoders!r}, where {name} is not; write storyworld, or a folder with a folder {name}"
    )


Split = Literal["train", "validation", "test"]
Masking = Literal["tokens", "whole_words"]
# Masks are drawn from the seed and a number of their own for each split: no split sees the chance of another.
SPLIT_SEEDS: dict[str, int] = {"train": 1, "validation": 2, "test": 3}


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """Which clusters, and how they become sequences.

    `corpus`: `storyworld` or a path (see `cdlm_lab.data.clusters`). `train_clusters`, `held_out_clusters`: at
    most so many (0 = all; storyworld, which has no end, needs a number). `minimum_documents`: smaller
    clusters are dropped (the paper: 3). `packing`: whole_documents (the paper), equal_share or truncate_last.
    `max_length`: of a sequence, special tokens included. `mask_probability`: of each text token, or of each
    word. `seed`: of documents, order and masks. `cache_folder`: where tokenised corpora are kept. `masking`:
    of training examples, tokens or whole_words; held-out examples always have tokens masked, so that
    perplexities compare.
    """

    corpus: str
    train_clusters: int
    held_out_clusters: int
    minimum_documents: int
    packing: str
    max_length: int
    mask_probability: float
    seed: int
    cache_folder: str
    masking: Masking = "tokens"

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, PACKING_POLICIES, "packing")
        for name in ("train_clusters", "held_out_clusters"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name} is {getattr(self, name)}; write 0 for all, or how many at most")
            if self.corpus == "storyworld" and not getattr(self, name):
                raise ParameterError(
                    f"{name} is 0, but storyworld has no end; write how many clusters to use"
                )

    def size(self, split: str) -> int:
        """How many clusters of a split are read; 0 = all."""
        return self.train_clusters if split == "train" else self.held_out_clusters


@dataclass(frozen=True, kw_only=True)
class TokenisedSplit:
    """One split of a corpus, tokenised: the clusters, what was dropped, the checksum of what was read, and
    the files of the corpus that were passed over (see `tell_passed_over`)."""

    clusters: Dataset
    counts: CorpusCounts
    checksum: str
    passed_over: Sequence[str] = ()


def tokenised_split(
    settings: CorpusSettings, split: Split, *, tokenizer: PreTrainedTokenizerBase, workers: Workers = "auto"
) -> TokenisedSplit:
    """Tokenise a split, or open it if that was done before. Raises what the readers raise for a bad corpus.

    Args:
        workers: processes that tokenise, as of `tokenising_processes`.
    """
    source = {"split": split, "size": settings.size(split), "seed": 0}
    checksum = corpus_checksum(settings.corpus, **source)
    cache = Path(settings.cache_folder)
    fingerprint = corpus_fingerprint(
        f"{checksum}/{split}/{settings.size(split)}", tokenizer, minimum_documents=settings.minimum_documents
    )
    clusters = tokenise_clusters(
        lambda: open_corpus(settings.corpus, **source),
        tokenizer,
        cache_dir=cache,
        fingerprint=fingerprint,
        minimum_documents=settings.minimum_documents,
        expected=settings.size(split),
        processes=tokenising_processes(workers),
    )
    counts = read_counts(cache, fingerprint=fingerprint)
    return TokenisedSplit(
        clusters=clusters,
        counts=counts,
        checksum=checksum,
        passed_over=passed_over(settings.corpus),
    )


def tell_passed_over(corpus: str, found: Sequence[str]) -> None:
    """Print the files of a corpus that are not read (`corpus.passed_over`), if there are any: once for all of
    its splits."""
    if found:
        print(f"{corpus}: files passed over: {named(found)}", flush=True)


def tokenising_processes(workers: Workers) -> int:
    """How many tokenise if so many are to make examples: `auto` = one for each core; 0 = this one."""
    return usable_cores() if workers == "auto" else max(1, workers)


def training_examples(
    split: TokenisedSplit,
    settings: CorpusSettings,
    *,
    variant: Variant,
    tokenizer: PreTrainedTokenizerBase,
    size: int,
) -> CrossDocumentExamples:
    """`size` examples in the order of training, with the variant's documents and globals.

    Raises ValueError for whole words of a tokenizer that does not show them."""
    continues = continuing_pieces(tokenizer) if settings.masking == "whole_words" else None
    choices = {"documents": variant.documents, "size": size, "continues": continues}
    return _examples(split, settings, variant, tokenizer, "train", **choices)


def held_out_examples(
    split: TokenisedSplit,
    settings: CorpusSettings,
    *,
    variant: Variant,
    tokenizer: PreTrainedTokenizerBase,
    name: Split,
) -> CrossDocumentExamples:
    """One example a cluster, always of related documents, with fixed masks that are the same for every
    variant."""
    return _examples(split, settings, variant, tokenizer, name, documents="related", shuffle=False)


def _examples(
    split: TokenisedSplit,
    settings: CorpusSettings,
    variant: Variant,
    tokenizer: PreTrainedTokenizerBase,
    name: str,
    **choices: object,
) -> CrossDocumentExamples:
    return CrossDocumentExamples(
        corpus=split.clusters,
        special=from_tokenizer(tokenizer),
        max_length=settings.max_length,
        packing=settings.packing,
        global_policy=variant.global_policy,
        mask_probability=settings.mask_probability,
        seed=settings.seed * len(SPLIT_SEEDS) + SPLIT_SEEDS[name],
        **choices,
    )
