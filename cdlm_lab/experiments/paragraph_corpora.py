"""From the corpus that notebook 08 names to examples of paragraph pre-training (Di Liello et al. 2022,
section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.corpus import corpus_checksum, passed_over
from cdlm_lab.data.paragraphs import paragraph_documents
from cdlm_lab.data.splits import Split
from cdlm_lab.examples.joint_sequence import POSITIONS
from cdlm_lab.examples.masking import check_probability
from cdlm_lab.examples.paragraph_corpus import (
    ParagraphCounts,
    paragraph_fingerprint,
    read_paragraph_counts,
    tokenise_paragraphs,
)
from cdlm_lab.examples.paragraph_tasks import ParagraphTasks
from cdlm_lab.examples.special_tokens import from_tokenizer
from cdlm_lab.experiments.corpora import SPLIT_SEEDS, tokenising_processes
from cdlm_lab.models.joint_head import LAYERS, JointHead
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types
from cdlm_lab.training.config import Workers

HEADS = ("ie_k", "ae_k")  # those of MSPP, which label each candidate


@dataclass(frozen=True, kw_only=True)
class ParagraphCorpus:
    """What is read: `corpus`, `storyworld` or a path (see `cdlm_lab.data.corpus`); `train_clusters` and
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
