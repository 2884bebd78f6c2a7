"""The systematic attention analysis (CDLM section 3.5, Table 6): notebook 11.

Of pairs of mentions in two documents, one is made global; how high does the other rank among the tokens of
its document by the attention between them? Every model reads the same pairs with the same sources. Ranks are
kept for each pair, so that a stopped run goes on and two models are compared pair by pair.

From percentile ranks of many pairs to the report of notebook 11, its table and its figures.

The explorer with models behind it: whatever a person chooses is run, scored and ranked (CDLM section 3.5).

Words are ranked, where the paper ranks tokens: a word's score is the mean (or the largest) of its tokens',
and its percentile rank is among the words of its document; punctuation and the source do not count.

The overview needs the attention between all sentences. A model with sparse attention has none across
documents unless something is global, so the sentences are made global in turn, the first ones of all
documents together, then the second ones, and so on.

What the explorer of notebook 11 opens with: which documents, which models, which words; and the sentences
around the chosen words, handed to bertviz.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.analysis.percentile_rank import (
    CANDIDATES,
    MeanRank,
    compare_percentile_ranks,
    mean_percentile_rank,
    percentile_rank,
    rank_gap,
    ranks_within,
    source_scores,
    word_scores,
)
from cdlm_lab.analysis.source_attention import SourceAttention, attend_to_source, attention_between
from cdlm_lab.data.records import KINDS, CoreferenceDocument, Topic
from cdlm_lab.data.typed_documents import nearly_a_mark, read_marked_documents
from cdlm_lab.examples.mention_pairs import AlignedPair, sample_aligned_pairs
from cdlm_lab.examples.packing import DocumentSequence, document_sequence
from cdlm_lab.examples.tokens import (
    EncodedDocuments,
    SpecialTokens,
    encode_document,
    from_tokenizer,
)
from cdlm_lab.experiments.answer_selection import FIRST_HEAD, PAPER, RANDOM_SPAN, target_ranks
from cdlm_lab.experiments.cluster_corpora import VARIANTS, reset_globals, variant_of
from cdlm_lab.experiments.coreference import Split, read_corpus
from cdlm_lab.experiments.pretraining import token_texts
from cdlm_lab.metrics.significance import holm
from cdlm_lab.models.checkpoint import CheckpointError, default_device
from cdlm_lab.models.encoder import load_encoder, load_language_model
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run
from cdlm_lab.widgets.bertviz import bertviz_html
from cdlm_lab.widgets.charts import SORTS, head_maps, rank_distributions
from cdlm_lab.widgets.explorer import Explorer, Panel, Prediction, Selection, ShownDocument
from cdlm_lab.widgets.explorer.records import Place
from cdlm_lab.widgets.html import seconds_in_words, variant_name

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


Measured = Mapping[str, ModelRanks]  # by variant


def write_analysis_report(run: Run, analysis: Analysis, measured: Measured) -> Report:
    """Means with intervals, what a random span has, gaps between the sorts of pairs, and paired tests."""
    settings = analysis.settings
    return run.write_report(
        scores=scores_of(analysis, measured),
        data={
            "corpus": settings.corpus,
            "split": settings.split,
            "topics": [topic.id for topic in analysis.topics],
        },
        tables={
            "comparisons": comparisons_of(analysis, measured),
            "heads": [
                {"variant": variant, "kind": kind, "points": row.tolist(), "layer": layer}
                for kind in analysis.pairs
                for variant, points in head_differences(analysis, measured, kind).items()
                for layer, row in enumerate(points.round(2))
            ],
        },
    )


def scores_of(analysis: Analysis, measured: Measured) -> dict[str, dict[str, Any]]:
    """`variant/sort/kind`: the mean percentile rank with its 95% interval over topics and, as `chance`, that
    of random spans as long as the targets; `variant/gap/kind`: positives minus negatives."""
    seed = analysis.settings.seed
    scores = {}
    for variant, ranks in measured.items():
        for kind, of_kind in ranks.of_kind.items():
            named = {}
            for sort in SORTS:
                chosen, topics = of_kind[_chosen(analysis, kind, sort)], _topics(analysis, kind, sort)
                named[sort] = chosen[:, PAPER], topics
                mean = mean_percentile_rank(chosen[:, PAPER], clusters=topics, seed=seed)
                scores[f"{variant}/{sort}/{kind}"] = {
                    **_plain(mean),
                    "chance": float(chosen[:, RANDOM_SPAN].mean(dtype=np.float64)),
                }
            (positive, first), (negative, second) = named["positive"], named["negative"]
            gap = rank_gap(positive, negative, positive_clusters=first, negative_clusters=second, seed=seed)
            scores[f"{variant}/gap/{kind}"] = _plain(gap)
    return scores


def comparisons_of(analysis: Analysis, measured: Measured) -> list[dict[str, Any]]:
    """Each variant against the next in paper order, paired pair by pair, topics being what is drawn.

    `difference`: mean rank of `a` minus that of `b`; `p`: of the permutation test; `p_holm`: corrected for
    the rows of one sort and kind.
    """
    rows = []
    for kind in analysis.pairs:
        for sort in SORTS:
            chosen, topics = _chosen(analysis, kind, sort), _topics(analysis, kind, sort)
            found = [
                (
                    a,
                    b,
                    compare_percentile_ranks(
                        *(measured[name].of_kind[kind][chosen, PAPER] for name in (a, b)),
                        clusters=topics,
                        seed=analysis.settings.seed,
                    ),
                )
                for a, b in pairwise(measured)
            ]
            corrected = holm([one.p for _, _, one in found]) if found else []
            rows += [
                {
                    "cell": f"{sort}/{kind}",
                    "a": a,
                    "b": b,
                    "difference": one.difference,
                    "low": one.low,
                    "high": one.high,
                    "p": one.p,
                    "p_holm": p_holm,
                    "clusters": one.clusters,
                }
                for (a, b, one), p_holm in zip(found, corrected, strict=True)
            ]
    return rows


def gap_rows(report: Report) -> list[list[str]]:
    """For a table: each variant, and how many points higher its targets rank if they corefer, by kind."""
    gaps: dict[str, list[str]] = {}
    for name, score in report.scores.items():
        variant, sort, _ = name.split("/")
        if sort == "gap":
            words = f"{score['value']:+.1f} [{score['low']:+.1f}, {score['high']:+.1f}]"
            gaps.setdefault(variant, []).append(words)
    return [[variant_name(variant), *words] for variant, words in gaps.items()]


def ranks_by_cell(analysis: Analysis, measured: Measured) -> dict[str, dict[str, np.ndarray]]:
    """For the figure of distributions: variant -> `sort/kind` -> (pairs,) percentile ranks."""
    return {
        variant: {
            f"{sort}/{kind}": of_kind[_chosen(analysis, kind, sort), PAPER]
            for sort in SORTS
            for kind, of_kind in ranks.of_kind.items()
        }
        for variant, ranks in measured.items()
    }


def distribution_figure(analysis: Analysis, measured: Measured) -> go.Figure:
    """How the ranks of the pairs are spread."""
    title = f"{analysis.settings.corpus}, {analysis.settings.split}"
    return rank_distributions(ranks_by_cell(analysis, measured), title=title)


def head_figures(analysis: Analysis, measured: Measured) -> list[go.Figure]:
    """One figure a kind: which heads of which layers rank coreferring targets higher."""
    return [
        head_maps(head_differences(analysis, measured, kind), title=f"{kind} mentions")
        for kind in analysis.pairs
    ]


def head_differences(analysis: Analysis, measured: Measured, kind: str) -> dict[str, np.ndarray]:
    """For the heat maps: variant -> (layers, heads), mean rank of the targets that corefer minus that of the
    others, by one head of one layer alone; percentage points."""
    found = {}
    for variant, ranks in measured.items():
        positive, negative = (
            ranks.of_kind[kind][_chosen(analysis, kind, sort), FIRST_HEAD:].mean(axis=0) for sort in SORTS
        )
        found[variant] = (positive - negative).reshape(ranks.layers, ranks.heads)
    return found


def _chosen(analysis: Analysis, kind: str, sort: str) -> np.ndarray:
    """bool (pairs of the kind,), True = of the sort."""
    return np.array([pair.corefer == (sort == "positive") for pair in analysis.pairs[kind]])


def _topics(analysis: Analysis, kind: str, sort: str) -> list[str]:
    """The topic of each pair of a sort."""
    return [pair.topic for pair in analysis.pairs[kind] if pair.corefer == (sort == "positive")]


def _plain(mean: MeanRank) -> dict[str, Any]:
    return {
        "value": mean.mean,
        "low": mean.low,
        "high": mean.high,
        "n": mean.pairs,
        "clusters": mean.clusters,
    }


KEPT_RUNS = 24  # of the model, so that layers and heads can be changed without another


@dataclass(kw_only=True, eq=False)
class Reader:
    """A model that has read the documents.

    Attributes:
        name: above its panel.
        sequence: what it reads.
        firsts: number of the first word of each document among all words, and at the end their number.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sequence: DocumentSequence
    firsts: np.ndarray
    runs: dict[tuple, SourceAttention] = field(default_factory=dict)

    @property
    def words(self) -> np.ndarray:
        """int64 (seq,), number of each position's word among all words; -1 = special token."""
        return self.sequence.word_numbers(np.diff(self.firsts))

    def positions(self, place: Place) -> np.ndarray:
        """Positions of words. Raises ValueError if they are not in the text that the model reads."""
        document, start, end = place
        found = self.sequence.positions(document, (start, end))
        if not len(found):
            raise ValueError(
                f"{self.name} does not read these words: {sum(self.sequence.lost_tokens):,} tokens did not "
                "fit its length; raise max_length or choose fewer documents"
            )
        return found

    def run(self, selection: Selection) -> SourceAttention:
        """Attention from and to the source in all layers; the last runs are kept."""
        key = (selection.source, selection.source_global, selection.extra_global, selection.masked)
        if key not in self.runs:
            hidden = self._positions_of(selection.masked)
            ids = self.sequence.input_ids.copy()
            ids[hidden] = self.tokenizer.mask_token_id
            if len(self.runs) >= KEPT_RUNS:
                del self.runs[next(iter(self.runs))]
            self.runs[key] = attend_to_source(
                self.model,
                ids,
                source=self.positions(selection.source),
                extra_global=self._positions_of(selection.extra_global),
                source_is_global=selection.source_global,
                predict=hidden,
                truth=self.sequence.input_ids[hidden],
            )
        return self.runs[key]

    def _positions_of(self, places: Sequence[Place]) -> np.ndarray:
        return np.unique(np.concatenate([[], *(self.positions(place) for place in places)]).astype(np.int64))


def read_documents(
    documents: Sequence[CoreferenceDocument],
    models: dict[str, tuple[PreTrainedModel, PreTrainedTokenizerBase]],
    *,
    max_length: int,
) -> list[Reader]:
    """Write the documents into one sequence for each model; nothing is run. `models`: by name to show."""
    firsts = np.cumsum([0, *(len(document.tokens) for document in documents)])
    return [
        Reader(
            name=name,
            model=model,
            tokenizer=tokenizer,
            sequence=document_sequence(
                [encode_document(document, tokenizer) for document in documents],
                special=from_tokenizer(tokenizer),
                max_length=max_length,
            ),
            firsts=firsts,
        )
        for name, (model, tokenizer) in models.items()
    ]


def explorer(
    documents: Sequence[CoreferenceDocument],
    readers: Sequence[Reader],
    *,
    kind: str = "",
    selection: Selection | None = None,
    title: str = "Where the model looks",
) -> Explorer:
    """The widget over documents and the models that read them.

    Args:
        kind: mentions of this kind are underlined; "" = of all.
        selection: at first; its layer is taken from the models.
    """
    shown = [shown_document(document, kind) for document in documents]
    layers = min(reader.model.config.num_hidden_layers for reader in readers)
    counts = np.concatenate([document.counts for document in shown])
    return Explorer(
        shown,
        models=[reader.name for reader in readers],
        layers=layers,
        heads=min(reader.model.config.num_attention_heads for reader in readers),
        answer=lambda chosen: [panel_of(reader, chosen, counts) for reader in readers],
        overview=lambda tell: overview_of(readers, shown, tell),
        predicts=all(hasattr(reader.model, "lm_head") for reader in readers),
        selection=selection and replace(selection, layer=layers - 1),
        title=title,
    )


def shown_document(document: CoreferenceDocument, kind: str = "") -> ShownDocument:
    """A record as the explorer shows it, with its mentions of a kind ("" = all)."""
    return ShownDocument(
        name=document.id,
        words=document.tokens,
        sentences=document.sentences,
        mentions=tuple(
            (*mention.tokens, mention.cluster) for mention in document.mentions if kind in ("", mention.kind)
        ),
    )


def panel_of(reader: Reader, selection: Selection, counts: np.ndarray) -> Panel:
    """Run the model, or take a run that was kept, and score every word.

    Args:
        counts: bool (words of all documents,), True = ranked.

    Raises:
        ValueError: words that are not in the text that the model reads.
    """
    attention = reader.run(selection)
    tokens = source_scores(
        attention.given,
        attention.received,
        layers=[selection.layer],
        heads=selection.heads,
        directions=selection.direction,
        reduce="max" if selection.reduce == "max" else "sum",
    )
    words, total = reader.words, int(reader.firsts[-1])
    scores = word_scores(tokens, words, n_words=total, reduce=selection.reduce)
    reach = np.zeros(total, dtype=bool)
    reach[words[attention.reach & (words >= 0)]] = True
    read = ~np.isnan(scores)
    scores = np.where(read, scores, 1.0)  # words that did not fit: exp(0), no weight
    document, start, end = selection.source
    ranked = counts.copy()
    ranked[reader.firsts[document] + start : reader.firsts[document] + end] = False
    groups = np.where(ranked, np.repeat(np.arange(len(reader.firsts) - 1), np.diff(reader.firsts)), -1)
    return Panel(
        name=reader.name,
        scores=scores,
        ranks=np.nan_to_num(ranks_within(scores, groups), nan=0.0),
        reach=reach,
        read=read,
        target_rank=_target_rank(reader, selection.target, scores, groups),
        predictions=tuple(_prediction(reader, attention, place) for place in selection.masked),
    )


def _target_rank(
    reader: Reader, target: Place | None, scores: np.ndarray, groups: np.ndarray
) -> float | None:
    """Percentile rank of the target's mean among the other words of its document; None = nothing to rank."""
    if target is None:
        return None
    document, start, end = target
    span = slice(reader.firsts[document] + start, reader.firsts[document] + end)
    others = groups == document
    others[span] = False
    return percentile_rank(float(scores[span].mean()), scores[others]) if others.any() else None


def _prediction(reader: Reader, attention: SourceAttention, place: Place) -> Prediction:
    """What the model puts for the first token of the hidden words, and how likely it holds the truth."""
    at = np.searchsorted(attention.predicted, reader.positions(place))
    decoded = [reader.tokenizer.decode([token]).strip() for token in attention.predicted_ids[at[0]]]
    return Prediction(
        span=place,
        truth_probability=float(np.prod(attention.truth_probabilities[at])),
        top=tuple(zip(decoded, map(float, attention.probabilities[at[0]]), strict=True)),
    )


def overview_of(
    readers: Sequence[Reader], documents: Sequence[ShownDocument], tell: Callable[[str], None]
) -> list[np.ndarray]:
    """How much the sentences have to do with each other, for each model: (sentences, sentences) float64.

    Row i, column j: the weight between a token of sentence i, while that is global, and a token of sentence
    j in the last layer, both ways, summed over heads, on average. Sentences that did not fit have 0.
    `tell`: called with a line on how far it is.
    """
    sizes = [len(document.sentences) for document in documents]
    turns, all_turns = max(sizes), max(sizes) * len(readers)
    began, done, found = time.monotonic(), 0, []
    for reader in readers:
        sentence = _sentence_of_position(reader, documents)
        matrix = np.zeros((sum(sizes), sum(sizes)))
        for turn in range(turns):
            rows = [sum(sizes[:number]) + turn for number, size in enumerate(sizes) if turn < size]
            _fill_rows(matrix, reader, sentence, rows)
            done += 1
            left = seconds_in_words((time.monotonic() - began) / done * (all_turns - done))
            tell(f"reading sentence by sentence: {done} of {all_turns}, {left} left")
        found.append(matrix)
    return found


def _sentence_of_position(reader: Reader, documents: Sequence[ShownDocument]) -> np.ndarray:
    """int64 (seq,), number of each position's sentence among those of all documents; -1 = special token."""
    of_word = np.repeat(
        np.arange(sum(len(document.sentences) for document in documents)),
        [end - start for document in documents for start, end in document.sentences],
    )
    words = reader.words
    return np.where(words < 0, -1, of_word[words])


def _fill_rows(matrix: np.ndarray, reader: Reader, sentence: np.ndarray, rows: Sequence[int]) -> None:
    source = np.flatnonzero(np.isin(sentence, rows))
    if not len(source):
        return
    attention = attend_to_source(reader.model, reader.sequence.input_ids, source=source, layers=[-1])
    weights = (attention.given[0] + attention.received[0]).sum(axis=0)  # (source tokens, seq)
    counts = np.bincount(sentence[sentence >= 0], minlength=len(matrix))
    for row in rows:
        mine = sentence[attention.source] == row
        if mine.any():
            sums = np.bincount(
                sentence[sentence >= 0], weights[mine].mean(axis=0)[sentence >= 0], minlength=len(matrix)
            )
            matrix[row] = sums / np.maximum(counts, 1)


MOST_TOKENS = {"head": 32, "model": 24}  # of each of two sentences, in bertviz's two views


def documents_to_explore(
    topics: Sequence[Topic], pairs: Sequence[AlignedPair], *, names: str, own: str
) -> tuple[list[CoreferenceDocument], Selection | None]:
    """The documents to show, and the words to begin with.

    Args:
        pairs: of those that corefer in different words the one with the shortest documents is shown, if
            nothing else is named.
        names: of documents, separated by spaces; "" = those of that pair.
        own: a file or folder of one's own documents, with marked mentions or without; "" = none.

    Raises:
        ParameterError: a name that no document has, or both `names` and `own`.
        DataError: as of `read_marked_documents`.
    """
    if own and names:
        raise ParameterError("own_documents and explore_documents are both given; leave one empty")
    if own:
        return list(read_marked_documents(own, kind="event", needs_marks=False).documents), None
    known = {document.id: document for topic in topics for document in topic.documents}
    if names:
        if missing := [name for name in names.split() if name not in known]:
            raise ParameterError(
                f"explore_documents names {missing[0]}, which is not there; the documents are "
                f"{', '.join(sorted(known)[:20])}{', ...' if len(known) > 20 else ''}"
            )
        return [known[name] for name in names.split()], None
    pair = _in_different_words(pairs, known)
    mentions = (pair.source, pair.target)
    chosen = Selection(source=(0, *pair.source.tokens), target=(1, *pair.target.tokens))
    return [known[mention.document] for mention in mentions], chosen


def _in_different_words(
    pairs: Sequence[AlignedPair], documents: Mapping[str, CoreferenceDocument]
) -> AlignedPair:
    """Of the pairs that corefer and share no word, or of all that corefer, the one with the shortest
    documents: they are shown beside each other."""
    positive = [pair for pair in pairs if pair.corefer]

    def words(mention) -> set[str]:
        return set(documents[mention.document].text_of(mention).casefold().split())

    def length(pair: AlignedPair) -> int:
        return sum(len(documents[mention.document].tokens) for mention in (pair.source, pair.target))

    different = [pair for pair in positive if not words(pair.source) & words(pair.target)]
    return min(different or positive, key=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExploredCluster:
    """The explorer over some documents, and the models behind it."""

    documents: list[CoreferenceDocument]
    readers: list[Reader]
    view: Explorer

    @property
    def models(self) -> list[str]:
        """Their names."""
        return [reader.name for reader in self.readers]

    @property
    def told(self) -> str:
        """How much is shown, and what is not, as nobody marked it."""
        words = sum(len(document.tokens) for document in self.documents)
        counts = f"{len(self.documents)} documents, {words:,} words"
        if mentions := sum(len(document.mentions) for document in self.documents):
            return f"{counts}, {mentions:,} mentions underlined"
        near = nearly_a_mark(self.documents)
        wrong = f" ({near} is not a mark; write <m> and </m>)" if near else ""
        return f"{counts}; no mention is marked{wrong}, so nothing is underlined, and all else works"

    def in_bertviz(self, model: str, view: str, direction: str) -> str:
        """What is chosen in the explorer now, as `sentences_in_bertviz` shows it."""
        return sentences_in_bertviz(
            self.readers, self.documents, self.view.chosen, model=model, view=view, direction=direction
        )


def explore_cluster(analysis: Analysis, *, models: str, names: str = "", own: str = "") -> ExploredCluster:
    """Load models, write documents into their sequences, open the explorer.

    Args:
        models: variants of the analysis, one or two, separated by a space.
        names, own: as of `documents_to_explore`.

    Raises:
        ParameterError: a variant without a model, none, or more than two; as `documents_to_explore`.
        DataError: as of `documents_to_explore`.
    """
    wanted = models.split()
    if missing := [name for name in wanted if name not in analysis.checkpoints]:
        raise ParameterError(
            f"explore names {missing[0]!r}, for which no model is given; choose among "
            f"{', '.join(analysis.checkpoints)}"
        )
    if not 1 <= len(wanted) <= 2:
        raise ParameterError(f"explore names {len(wanted)} models; name one or two, separated by a space")
    documents, selection = documents_to_explore(
        analysis.topics, analysis.pairs["event"], names=names, own=own
    )
    readers = read_documents(
        documents,
        {variant_name(name): _loaded(analysis, name) for name in wanted},
        max_length=analysis.settings.max_length,
    )
    view = explorer(documents, readers, selection=selection, title="Where does the model look?")
    return ExploredCluster(documents=documents, readers=readers, view=view)


def _loaded(analysis: Analysis, variant: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        model, tokenizer = analysis.load(variant, load_language_model)
    except CheckpointError:  # without a head no words can be predicted, but all else can be seen
        model, tokenizer = analysis.load(variant, load_encoder)
    return model.to(default_device()), tokenizer


def sentences_in_bertviz(
    readers: Sequence[Reader],
    documents: Sequence[CoreferenceDocument],
    selection: Selection,
    *,
    model: str,
    view: str,
    direction: str = "from",
) -> str:
    """bertviz's view of two sentences as HTML: that of the source, and that of the target (without one, of
    the strongest word of another document), with the global attention that is chosen in the explorer.

    Only what passes between the two is shown; within a sentence there is far more, and it would hide this.

    Args:
        model: name of the reader.
        view: `head` or `model`.
        direction: `from` = what the source's sentence gives to the other; `to` = what it receives.

    Raises:
        ValueError: nothing is chosen; words that the model does not read; another document is missing;
            nothing passes between the sentences.
    """
    reader = next(reader for reader in readers if reader.name == model)
    if selection.source is None:
        raise ValueError("choose words in the explorer first: click a word or drag over several")
    other = selection.target or _strongest(reader, documents, selection)
    ids = reader.sequence.input_ids
    queries, keys = (
        _around(reader, documents, place, MOST_TOKENS[view]) for place in (selection.source, other)
    )
    if direction == "to":
        queries, keys = keys, queries
    is_global = np.zeros(len(ids), dtype=bool)
    for place in (*selection.extra_global, *((selection.source,) if selection.source_global else ())):
        is_global[reader.positions(place)] = True
    weights = attention_between(reader.model, ids, queries=queries, keys=keys, global_mask=is_global)
    if not weights.any():
        raise ValueError(
            "nothing passes between these sentences: they are too far apart and neither is global; switch on "
            "the global attention of the chosen words"
        )
    left, right = (token_texts(reader.tokenizer, ids[positions])[0] for positions in (queries, keys))
    return bertviz_html(weights, query_tokens=left, key_tokens=right, view=view)


def _strongest(reader: Reader, documents: Sequence[CoreferenceDocument], selection: Selection) -> Place:
    """The word of another document that goes with the source most. Raises ValueError without another one."""
    counts = np.concatenate([shown_document(document).counts for document in documents])
    of_word = np.repeat(np.arange(len(documents)), np.diff(reader.firsts))
    allowed = counts & (of_word != selection.source[0])
    if not allowed.any():
        raise ValueError("there is no other document; show two or more")
    word = int(np.where(allowed, panel_of(reader, selection, counts).scores, -np.inf).argmax())
    document = int(of_word[word])
    place = word - int(reader.firsts[document])
    return document, place, place + 1


def _around(reader: Reader, documents: Sequence[CoreferenceDocument], place: Place, most: int) -> np.ndarray:
    """Positions of the sentence of a span, at most so many, those nearest to the span."""
    document, start, end = place
    first, last = next(one for one in documents[document].sentences if one[0] <= start < one[1])
    sentence = reader.sequence.positions(document, (first, max(last, end)))
    chosen = reader.positions(place)
    middle = np.searchsorted(sentence, chosen).mean()
    begin = int(min(max(round(middle - most / 2), 0), max(0, len(sentence) - most)))
    return sentence[begin : begin + most]
