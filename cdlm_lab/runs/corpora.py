"""Tokenised clusters: which of a corpus are read, their cache, and the sequences that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.cache import cache_folder
from cdlm_lab.data.clusters import corpus_checksum, open_corpus, passed_over
from cdlm_lab.data.files import named
from cdlm_lab.encoders.variants import Variant
from cdlm_lab.examples.cached_corpus import (
    CorpusCounts,
    corpus_fingerprint,
    read_counts,
    tokenise_clusters,
)
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.masking import continuing_pieces, word_pieces
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.parameters import ParameterError, parameters_of, settings
from cdlm_lab.progress import usable_cores
from cdlm_lab.training.config import Workers

CACHE_FOLDER = ""  # of tokenised corpora: the one of the user, see `cache_folder`
Split = Literal["train", "validation", "test"]
Masking = Literal["tokens", "whole_words"]
Packing = Literal["whole_documents", "equal_share"]
# Masks are drawn from the seed and a number per split, so that no two splits share random numbers.
SPLIT_SEEDS: dict[str, int] = {"train": 1, "validation": 2, "test": 3}


@settings
class CorpusSettings:
    """Which clusters are read, and how they become sequences.

    `train_clusters`, `held_out_clusters`: at most so many; 0 = all (storyworld is generated without end, so
    it needs a number). `minimum_documents`: smaller clusters are dropped. `mask_probability`: of each text
    token, or each word. `masking`: of training examples; held-out examples always mask single tokens, so that
    perplexities are comparable. `seed`: of the order of documents and the masks.
    """

    corpus: str = "storyworld"
    train_clusters: int = 1600
    held_out_clusters: int = 60
    minimum_documents: int = 3
    packing: Packing = "equal_share"
    max_length: int = 512
    mask_probability: float = 0.15
    masking: Masking = "tokens"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("train_clusters", "held_out_clusters"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name} is {getattr(self, name)}; write 0 for all, or how many at most")
            if self.corpus == "storyworld" and not getattr(self, name):
                raise ParameterError(
                    f"{name} is 0, but storyworld has no end; write how many clusters to use"
                )

    def size(self, split: str) -> int:
        """The number of clusters read from a split; 0 = all."""
        return self.train_clusters if split == "train" else self.held_out_clusters


class TokenisedSplit(NamedTuple):
    """One tokenised split of a corpus: the clusters, counts of what was kept and dropped, the checksum of the
    source, and the files that were skipped."""

    clusters: Dataset
    counts: CorpusCounts
    checksum: str
    passed_over: Sequence[str] = ()


def tokenised_split(
    settings: CorpusSettings,
    split: Split,
    *,
    tokenizer: PreTrainedTokenizerBase,
    cache: str | Path = CACHE_FOLDER,
    workers: Workers = "auto",
) -> TokenisedSplit:
    """Tokenise a split with so many processes (`workers`), or open it from the folder `cache`."""
    size, minimum = settings.size(split), settings.minimum_documents
    source = {"split": split, "size": size, "seed": 0}
    checksum = corpus_checksum(settings.corpus, **source)
    fingerprint = corpus_fingerprint(f"{checksum}/{split}/{size}", tokenizer, minimum_documents=minimum)
    clusters = tokenise_clusters(
        lambda: open_corpus(settings.corpus, **source),
        tokenizer,
        cache_dir=cache_folder(cache),
        fingerprint=fingerprint,
        minimum_documents=minimum,
        expected=size,
        processes=tokenising_processes(workers),
    )
    counts = read_counts(cache_folder(cache), CorpusCounts, fingerprint=fingerprint)
    return TokenisedSplit(clusters, counts, checksum, passed_over(settings.corpus))


def print_passed_over(corpus: str, files: Sequence[str]) -> None:
    """Print the files of a corpus that were skipped, if any; call it once for all splits."""
    if files:
        print(f"{corpus}: files passed over: {named(files)}", flush=True)


def tokenising_processes(workers: Workers) -> int:
    """The number of tokenising processes: `auto` = one per core; 0 = this process."""
    return usable_cores() if workers == "auto" else max(1, workers)


def examples_of(
    split: TokenisedSplit,
    name: Split,
    settings: CorpusSettings,
    *,
    variant: Variant,
    tokenizer: PreTrainedTokenizerBase,
    size: int | None = None,
    earlier: int = 0,
) -> CrossDocumentExamples:
    """The examples of split `name` as a variant reads them. Train: `size` examples in training order, with
    documents of the variant's kind, drawn anew for a model with `earlier` pretrainings. Held out: one example
    per cluster, always of related documents, with fixed masks that are the same for every variant; where
    facts are not marked (all corpora but storyworld), a word is marked that another document has too and its
    own has once, if the tokenizer shows words.

    Raises ValueError for whole-word masking with a tokenizer that does not show words.
    """
    choices: dict[str, Any] = {"documents": "related", "shuffle": False}
    if settings.corpus != "storyworld":
        with suppress(ValueError):  # a tokenizer that does not show words
            choices["words"] = word_pieces(tokenizer)
    if name == "train":
        continues = continuing_pieces(tokenizer) if settings.masking == "whole_words" else None
        choices = {"documents": variant.documents, "continues": continues, "size": size, "earlier": earlier}
    return CrossDocumentExamples(
        corpus=split.clusters,
        special=from_tokenizer(tokenizer),
        global_policy=variant.global_policy,
        seed=settings.seed * len(SPLIT_SEEDS) + SPLIT_SEEDS[name],
        **parameters_of(settings, "max_length", "packing", "mask_probability"),
        **choices,
    )
