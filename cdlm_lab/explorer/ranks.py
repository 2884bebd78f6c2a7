"""The systematic attention analysis (CDLM section 3.5, Table 6): notebook 11.

Of two mentions in different documents, one (the source) is made global: how high does the other (the target)
rank among the tokens of its document by the attention between them? Every model reads the same pairs with the
same sources. The ranks of each pair are saved, so that a stopped run continues and models are compared pair
by pair. Intervals and tests resample topics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.records import KINDS, Topic
from cdlm_lab.encoders import percentile_rank
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.conversion import reset_globals
from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.encoders.percentile_rank import source_scores, target_rank
from cdlm_lab.encoders.precision import Precision, computing_in
from cdlm_lab.encoders.source_attention import attend_to_source
from cdlm_lab.encoders.variants import VARIANTS, Checkpoints
from cdlm_lab.examples.packing import document_sequence
from cdlm_lab.examples.tokens import EncodedDocument, EncodedDocuments, SpecialTokens, from_tokenizer
from cdlm_lab.explorer.aligned_pairs import AlignedPair, sample_aligned_pairs
from cdlm_lab.parameters import ParameterError, parameters_of, settings
from cdlm_lab.progress import Progress
from cdlm_lab.runs.evaluation import Measure, Planned
from cdlm_lab.runs.items import UNTRAINED, items_of
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.runs.runs import Scores, VariantsRun, once, report
from cdlm_lab.tasks.coreference.corpus import CoreferenceSplit, read_corpus

__all__ = ["Settings", "evaluate", "predict", "prepare", "report"]
PAPER, RANDOM_SPAN, FIRST_HEAD = 0, 1, 2  # columns in a row of ranks
SORTS = ("positive", "negative")  # pairs that corefer, and pairs that do not
BASE = "longformer"  # the baseline in the tests of the gap
# Mean percentile ranks of coreferring targets and of others, and by how many points the former are higher: a
# difference that cancels what raises both alike.
MEASURES = tuple(
    measure
    for kind in KINDS
    for measure in (
        Measure(f"positive/{kind}"),
        Measure(f"negative/{kind}", lower=True),
        Measure(f"gap/{kind}", "gap", of=(f"positive/{kind}", f"negative/{kind}")),
    )
)
Load = Callable[..., tuple[PreTrainedModel, PreTrainedTokenizerBase]]


@settings
class Settings(Checkpoints):
    """The parameters of notebook 11, whose comments say what they mean."""

    run_folder: str = "runs/attention"
    corpus: str = "storyworld"
    split: CoreferenceSplit = "test"
    stories: int = Field(default=90, ge=1)
    pairs: int = Field(default=100, ge=1)
    max_length: int = 512
    window: int = 32
    attention: str = "auto"
    precision: Precision = "float32"
    reset_globals: bool = True
    cut_stories: int = Field(default=20, ge=0)
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Analysis(VariantsRun):
    """A run of notebook 11: the documents, and the pairs of each kind of mention."""

    NAME: ClassVar[str] = "attention analysis"
    MEASURES: ClassVar[tuple[Measure, ...]] = MEASURES

    settings: Settings
    topics: list[Topic]
    pairs: Mapping[str, list[AlignedPair]]

    @classmethod
    def read(cls, settings: Settings) -> Analysis:
        """Read the corpus and sample the pairs. Raises ValueError for a bad corpus, or one that does not have
        pairs of each kind, coreferring and not, in at least two topics."""
        topics = read_corpus(settings.corpus, settings.split, stories=settings.stories)
        form = {"count": settings.pairs, "seed": settings.seed}
        pairs = {kind: sample_aligned_pairs(topics, kind, **form) for kind in KINDS}
        for kind, of_kind in pairs.items():
            for corefer, what in ((True, "corefer"), (False, "do not corefer")):
                if len({pair.topic for pair in of_kind if pair.corefer == corefer}) < 2:
                    raise ParameterError(
                        f"all pairs of {kind} mentions that {what} are of one topic, but an interval needs "
                        "two; raise pairs or stories, or take another split"
                    )
        return cls(settings=settings, topics=topics, pairs=pairs)

    def items(self, measured: Measured) -> pd.DataFrame:
        """The rank of the target of each pair."""
        parts = []
        for variant, ranks in measured.items():
            for kind, sort in product(ranks.of_kind, SORTS):
                chosen, topics = self.of_sort(kind, sort)
                values = {f"{sort}/{kind}": ranks.of_kind[kind][chosen, PAPER]}
                form = {"system": variant, "seed": UNTRAINED, "split": "", "clusters": topics}
                parts.append(items_of(values, items=np.flatnonzero(chosen), **form))
        return pd.concat(parts)

    @property
    def planned(self) -> list[Planned]:
        """The mean ranks of each variant against those of the next one in the paper's order, and its gap
        against Longformer's."""
        names = [*self.settings.checkpoints]
        means = [f"{sort}/{kind}" for kind in KINDS for sort in SORTS]
        return [
            *(Planned(a=a, b=b, measure=one, split="") for one in means for a, b in pairwise(names)),
            *(
                Planned(a=name, b=BASE, measure=f"gap/{kind}", split="", beside=False)
                for kind in KINDS
                for name in names
                if name != BASE
            ),
        ]

    def check(self) -> None:
        """Open every model; raises what does not fit."""
        for variant in self.settings.checkpoints:
            self.load(variant, load_encoder)

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the corpus, stored in the report."""
        return parameters_of(self.settings, "corpus", "split") | {"topics": [one.id for one in self.topics]}

    @property
    def readings(self) -> int:
        """The number of forward passes: each pair by each model."""
        return len(self.settings.checkpoints) * sum(map(len, self.pairs.values()))

    @cached_property
    def kept_models(self) -> dict[tuple[str, str], tuple[Any, Any]]:
        """The explorer's models: (variant, where) -> its files, and model and tokenizer."""
        return {}

    def load(
        self, variant: str, load: Load, *, where: str = ""
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """A model on the default device, with its tokenizer; `load`: `load_encoder` or `load_language_model`;
        `where`: "" = the checkpoint of the variant. Global projections are reset if the settings say so."""
        form = parameters_of(self.settings, "max_length", "window", "attention", "seed")
        model, tokenizer = load(where or self.settings.checkpoints[variant], **form)
        if self.settings.reset_globals and variant in VARIANTS:
            reset_globals(model, variant)
        return model.to(default_device()), tokenizer

    def of_sort(self, kind: str, sort: str) -> tuple[np.ndarray, list[str]]:
        """Which pairs of a kind are `positive` or `negative`, bool (pairs of the kind,), and their topics."""
        chosen = np.array([pair.corefer == (sort == "positive") for pair in self.pairs[kind]])
        return chosen, [pair.topic for pair, of_sort in zip(self.pairs[kind], chosen, strict=True) if of_sort]


class ModelRanks(NamedTuple):
    """The ranks by one model: its numbers of layers and heads, and for each kind of mention float32 (pairs, 2
    + layers x heads): the rank by the paper's score, of a random span, and by each head alone."""

    layers: int
    heads: int
    of_kind: Mapping[str, np.ndarray]


Measured = Mapping[str, ModelRanks]  # by variant, in paper order


def prepare(settings: Settings) -> Analysis:
    """Read the corpus, sample the pairs, open every model, and claim the run folder."""
    return Analysis.open(settings)


def seconds_expected(analysis: Analysis) -> float:
    """The expected time of all forward passes, from timing a few pairs."""
    _, ranks = _reader(analysis, next(iter(analysis.settings.checkpoints)))
    sample = [pairs[len(pairs) // 2] for pairs in analysis.pairs.values()]
    ranks(sample[:1])  # warm-up: the first forward pass is slower than all others
    start = time.perf_counter()
    ranks(sample)
    return (time.perf_counter() - start) / len(sample) * analysis.readings


def predict(analysis: Analysis) -> dict[str, ModelRanks]:
    """The ranks of every pair by every model, with one progress bar; saved in `ranks/`, and what is there is
    not computed again."""
    folder, measured = analysis.folder / "ranks", {}
    with Progress(total=analysis.readings, desc="reading pairs", unit="pair") as bar:
        for variant in analysis.settings.checkpoints:
            model, ranks = _reader(analysis, variant)
            of_kind = {
                kind: ranks(pairs, file=folder / f"{variant}-{kind}.npy", bar=bar)
                for kind, pairs in analysis.pairs.items()
            }
            config = model.config
            measured[variant] = ModelRanks(config.num_hidden_layers, config.num_attention_heads, of_kind)
    return measured


def _reader(analysis: Analysis, variant: str) -> tuple[PreTrainedModel, Callable[..., np.ndarray]]:
    """A model, and its `target_ranks`, which still takes pairs, a file and a bar."""
    model, tokenizer = analysis.load(variant, load_encoder)
    documents = (document for topic in analysis.topics for document in topic.documents)
    return model, partial(
        target_ranks,
        model,
        documents=EncodedDocuments(documents, tokenizer),
        special=from_tokenizer(tokenizer),
        **parameters_of(analysis.settings, "max_length", "precision"),
    )


def target_ranks(
    model: PreTrainedModel,
    pairs: Sequence[AlignedPair],
    documents: Mapping[str, EncodedDocument],
    *,
    special: SpecialTokens,
    max_length: int,
    precision: Precision = "float32",
    file: Path | None = None,
    bar: Progress | None = None,
) -> np.ndarray:
    """Rank of each pair's target while the source is global.

    Both documents stand in one sequence, in the order of their ids, without marks; if they are too long, they
    are cut to the text around the mentions.

    Args:
        file: `.npy`; pairs in it are not run again. It belongs to one model and one list of pairs.
        bar: counts pairs, including those in `file`.

    Returns:
        float32 (pairs, 2 + layers x heads): the percentile rank by the paper's score; the mean rank of random
        spans of the same length; then the target's rank by each head of each layer alone, layer after layer.
    """
    width = FIRST_HEAD + model.config.num_hidden_layers * model.config.num_attention_heads
    bar = bar or Progress(disable=True)
    form = {"special": special, "max_length": max_length}
    with KeptNumbers(file, (len(pairs), width)) as ranks, computing_in(precision, model.device):
        bar.update(len(pairs) - len(ranks.missing))
        for number in ranks.missing:
            ranks.values[number] = _ranks(model, pairs[number], documents, **form)
            ranks.save_when_due()
            bar.update(1)
    return ranks.values


def _ranks(
    model: PreTrainedModel,
    pair: AlignedPair,
    documents: Mapping[str, EncodedDocument],
    *,
    special: SpecialTokens,
    max_length: int,
) -> np.ndarray:
    """The row of a pair in `target_ranks`."""
    mentions = sorted((pair.source, pair.target), key=lambda mention: mention.document)
    encoded, around = [documents[one.document] for one in mentions], [one.tokens for one in mentions]
    sequence = document_sequence(encoded, special=special, max_length=max_length, around=around)
    positions = {mention.id: sequence.positions(n, mention.tokens) for n, mention in enumerate(mentions)}
    attention = attend_to_source(model, sequence.input_ids, source=positions[pair.source.id])
    everywhere = np.arange(len(sequence.document))
    source, target = (np.isin(everywhere, positions[one.id]) for one in (pair.source, pair.target))
    among = percentile_rank.candidate_mask(sequence.document, source=source, target=target)
    paper = source_scores(attention.given, attention.received)
    of_target = sequence.document == sequence.document[target.argmax()]
    random = percentile_rank.chance_rank(paper, target, among, document=of_target)
    alone = [
        target_rank(source_scores(given[None, None], received[None, None]), target, among)
        for layer in zip(attention.given, attention.received, strict=True)
        for given, received in zip(*layer, strict=True)  # of a head: (source tokens, seq)
    ]
    return np.array([target_rank(paper, target, among), random, *alone])


# ---- the report ----


@once
def evaluate(analysis: Analysis, measured: Measured) -> Scores:
    """Mean ranks, gaps between the sorts of pairs, tests between variants, and results of each head; `chance`
    of a rank is that of random spans as long as the targets."""
    made = analysis.evaluated(measured)
    chances = {
        (variant, f"{sort}/{kind}"): float(
            of_kind[analysis.of_sort(kind, sort)[0], RANDOM_SPAN].mean(dtype=np.float64)
        )
        for variant, ranks in measured.items()
        for kind, of_kind in ranks.of_kind.items()
        for sort in SORTS
    }
    rows = [replace(row, chance=chances.get((row.system, row.metric))) for row in made.rows]
    heads = [
        {"variant": variant, "kind": kind, "points": row.tolist(), "layer": layer}
        for kind in analysis.pairs
        for variant, points in head_differences(analysis, measured, kind).items()
        for layer, row in enumerate(points.round(2))
    ]
    comparisons = [{"cell": row["measure"], **row} for row in made.comparisons]
    return Scores.of(replace(made, rows=rows), comparisons=comparisons, heads=heads)


def head_differences(analysis: Analysis, measured: Measured, kind: str) -> dict[str, np.ndarray]:
    """Variant -> (layers, heads), mean rank of coreferring targets minus that of the others, in percentage
    points, by one head of one layer alone."""
    chosen = [analysis.of_sort(kind, sort)[0] for sort in SORTS]
    differences = {}
    for variant, ranks in measured.items():
        positive, negative = (ranks.of_kind[kind][of_sort, FIRST_HEAD:].mean(axis=0) for of_sort in chosen)
        differences[variant] = (positive - negative).reshape(ranks.layers, ranks.heads)
    return differences
