"""The systematic attention analysis (CDLM section 3.5, Table 6): notebook 11.

Of pairs of mentions in two documents, one is made global; how high does the other rank among the tokens of
its document by the attention between them? Every model reads the same pairs with the same sources. Ranks are
kept for each pair, so that a stopped run goes on and two models are compared pair by pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.analysis.percentile_rank import CANDIDATES
from cdlm_lab.data.coreference_records import KINDS, Topic
from cdlm_lab.examples.aligned_mentions import AlignedPair, sample_aligned_pairs
from cdlm_lab.examples.encode_document import EncodedDocuments
from cdlm_lab.examples.special_tokens import SpecialTokens, from_tokenizer
from cdlm_lab.experiments.coreference_corpora import Split, read_corpus
from cdlm_lab.experiments.rank_scoring import target_ranks
from cdlm_lab.experiments.variants import VARIANTS, reset_globals, variant_of
from cdlm_lab.models.device import default_device
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types
from cdlm_lab.progress import Progress
from cdlm_lab.widgets.markup import seconds_in_words

# The parameters of notebook 11.
PARAMETERS = (
    "run_folder",
    "longformer",
    "local_cdlm",
    "rand_cdlm",
    "prefix_cdlm",
    "cdlm",
    "corpus",
    "split",
    "stories",
    "own_documents",
    "explore",
    "explore_documents",
    "pairs",
    "candidates",
    "max_length",
    "window",
    "attention",
    "precision",
    "reset_globals",
    "seed",
)


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings:
    """What is analysed. `corpus`, `split`: as of `read_corpus`. `stories`: of storyworld. `pairs`: that
    corefer, of each kind of mention, and as many that do not. `candidates`: as of `candidate_mask`.
    `max_length`: of both documents in tokens. `window`: of local attention. `attention`: a backend.
    `precision`: of the forward pass, as of `resolve_precision`; ranks are of float32 scores in each.
    `reset_globals`: Longformer and Local CDLM are read with their local projections as the global ones,
    as in the paper; False = with those of the checkpoint."""

    corpus: str
    split: Split
    stories: int
    pairs: int
    candidates: str
    max_length: int
    window: int
    attention: str
    seed: int
    reset_globals: bool = True
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, CANDIDATES, "candidates")
        check_least(self, 1, "pairs", "stories")


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The documents, the pairs of each kind, and the models (variant -> folder or name, in paper order)."""

    settings: AnalysisSettings
    topics: list[Topic]
    pairs: Mapping[str, list[AlignedPair]]
    checkpoints: Mapping[str, str]

    def load(
        self, variant: str, load: Callable[..., tuple[PreTrainedModel, PreTrainedTokenizerBase]]
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """A model as it is analysed, with its tokenizer. `load`: `load_encoder` or `load_language_model`,
        whose errors are raised."""
        settings = self.settings
        model, tokenizer = load(
            self.checkpoints[variant],
            max_length=settings.max_length,
            window=settings.window,
            attention=settings.attention,
            seed=settings.seed,
        )
        if settings.reset_globals:
            reset_globals(model, variant)
        return model, tokenizer


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelRanks:
    """What was measured of one model.

    Attributes:
        layers, heads: of the model.
        of_kind: kind -> float32 (pairs, 2 + layers x heads), as of `target_ranks`.
    """

    layers: int
    heads: int
    of_kind: Mapping[str, np.ndarray]


def prepare_analysis(settings: AnalysisSettings, checkpoints: Mapping[str, str]) -> Analysis:
    """Read the corpus and draw the pairs; nothing is run. `checkpoints`: "" leaves a variant out.

    Raises ValueError for an unknown variant, for none, for a bad corpus, or one without pairs of a kind in
    at least two topics.
    """
    for variant in checkpoints:
        variant_of(variant)
    given = {variant: str(checkpoints[variant]) for variant in VARIANTS if checkpoints.get(variant)}
    if not given:
        raise ParameterError("every model is left out; name at least one")
    topics = read_corpus(settings.corpus, settings.split, stories=settings.stories)
    pairs = {
        kind: sample_aligned_pairs(topics, kind, count=settings.pairs, seed=settings.seed) for kind in KINDS
    }
    _check_topics(pairs)
    return Analysis(settings=settings, topics=topics, pairs=pairs, checkpoints=given)


def _check_topics(pairs: Mapping[str, Sequence[AlignedPair]]) -> None:
    """Raise ParameterError unless the pairs of each kind and sort are of two topics or more, as intervals
    need."""
    for kind, of_kind in pairs.items():
        for corefer in (True, False):
            if len({pair.topic for pair in of_kind if pair.corefer == corefer}) < 2:
                raise ParameterError(
                    f"all pairs of {kind} mentions that {'corefer' if corefer else 'do not corefer'} are of "
                    "one topic, but an interval needs two; raise pairs or stories, or take another split"
                )


def measured_ranks(analysis: Analysis, folder: Path) -> dict[str, ModelRanks]:
    """The ranks of every pair under every model, with one progress bar; they are kept in `folder`, and what
    is there is not read again. By variant, in paper order."""
    found = {}
    with Progress(total=_readings(analysis), desc="reading pairs", unit="pair") as bar:
        for variant in analysis.checkpoints:
            reader = _Reader.of(analysis, variant)
            found[variant] = ModelRanks(
                layers=reader.model.config.num_hidden_layers,
                heads=reader.model.config.num_attention_heads,
                of_kind={
                    kind: reader.ranks(pairs, file=folder / f"{variant}-{kind}.npy", bar=bar)
                    for kind, pairs in analysis.pairs.items()
                },
            )
    return found


def _readings(analysis: Analysis) -> int:
    return len(analysis.checkpoints) * sum(map(len, analysis.pairs.values()))


def facts_of(analysis: Analysis) -> list[tuple[str, str]]:
    """What a person wants to know before the run starts, as (name, text); a few pairs are read to learn how
    long one takes."""
    reader = _Reader.of(analysis, next(iter(analysis.checkpoints)))
    sample = [pairs[len(pairs) // 2] for pairs in analysis.pairs.values()]
    reader.ranks(sample[:1])  # the first reading is slower than all others
    start = time.perf_counter()
    reader.ranks(sample)
    each = (time.perf_counter() - start) / len(sample)
    readings = _readings(analysis)
    return [
        ("models", ", ".join(f"{variant} ({where})" for variant, where in analysis.checkpoints.items())),
        *((f"pairs of {kind} mentions", _counts_in_words(pairs)) for kind, pairs in analysis.pairs.items()),
        ("from", f"{len(analysis.topics)} topics of {analysis.settings.corpus}, {analysis.settings.split}"),
        ("time", f"{readings:,} readings of two documents: about {seconds_in_words(readings * each)}"),
    ]


def _counts_in_words(pairs: Sequence[AlignedPair]) -> str:
    corefer = sum(pair.corefer for pair in pairs)
    return f"{corefer:,} that corefer, {len(pairs) - corefer:,} that do not"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Reader:
    """A model and the documents in its subwords."""

    model: PreTrainedModel
    documents: EncodedDocuments
    special: SpecialTokens
    settings: AnalysisSettings

    @classmethod
    def of(cls, analysis: Analysis, variant: str) -> _Reader:
        settings = analysis.settings
        model, tokenizer = analysis.load(variant, load_encoder)
        documents = (document for topic in analysis.topics for document in topic.documents)
        return cls(
            model=model.to(default_device()),
            documents=EncodedDocuments(documents, tokenizer),
            special=from_tokenizer(tokenizer),
            settings=settings,
        )

    def ranks(
        self, pairs: Sequence[AlignedPair], *, file: Path | None = None, bar: Progress | None = None
    ) -> np.ndarray:
        """As of `target_ranks`."""
        return target_ranks(
            self.model,
            pairs,
            self.documents,
            special=self.special,
            max_length=self.settings.max_length,
            candidates=self.settings.candidates,
            precision=self.settings.precision,
            file=file,
            bar=bar,
        )
