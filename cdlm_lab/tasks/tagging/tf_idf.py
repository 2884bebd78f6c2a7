"""Which words matter in a document, by TF-IDF, and how they are tagged (Joerke et al. 2020, section 5).

    tf-idf(word, document) = tf * log10(N / df)

N is the number of documents, df the number of them that have the word; all words of all documents count, in
lower case as in the released code. tf, "the logarithm of the term-frequency to control for variation in
document length", is 1 + log10(count). The same word in two documents counts as two words. Figure 2 is over
all words of the labelled sentences, Figure 3 over those of them that are in a span anywhere in the test set;
the paper does not say which.

Figure 4, how much attention a word pays to its occurrences near and far: the weights of a word (alpha_k of
equation 3) sum to 1 over its occurrences, itself included. Pass only rows with two or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.data.records import TaggedDocument, TaggedSentence
from cdlm_lab.data.words import plain_word
from cdlm_lab.errors import check_least


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledWord:
    """A word of the labelled sentences of a document."""

    document: int  # index of the document
    word: str  # in lower case; `spelling` is the most frequent one
    spelling: str
    score: float  # TF-IDF in its document
    occurrences: int  # number in these sentences; `inside`: number of these in a span
    inside: int
    labels: tuple[str, ...]  # of these spans, most frequent first


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileShare:
    """Words with adjacent scores, between the percentiles `start` and `stop`, and the fraction of them that
    are in a span at least once (Figure 2)."""

    start: float
    stop: float
    lowest: float  # lowest, highest: range of the scores
    highest: float
    words: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Entities whose TF-IDF is at or above a percentile, whose value is `threshold` (Figure 3)."""

    percentile: float
    threshold: float
    words: int  # number of such words, counted per document
    # For each document, labelled sentence and word, True = it is one of them; as `word_counts` takes it.
    chosen: tuple[tuple[tuple[bool, ...], ...], ...]


def tf_idf(
    documents: Iterable[TaggedDocument], *, others: Iterable[TaggedDocument] = ()
) -> list[dict[str, float]]:
    """The score of every word of every document, in lower case; documents are read once, one at a time.
    `others`, such as those of the other splits, count in N and df but are not scored: the paper uses all
    documents of a data set."""
    counts = [_word_counts(document) for document in documents]
    having, total = Counter[str](), len(counts)
    for count in counts:
        having.update(count.keys())
    for document in others:
        having.update(_word_counts(document).keys())
        total += 1
    scores = []
    for count in counts:
        numbers = np.array(list(count.values()), dtype=np.float64)
        idf = np.log10(total / np.array([having[word] for word in count], dtype=np.float64))
        scores.append(dict(zip(count, ((1 + np.log10(numbers)) * idf).tolist(), strict=True)))
    return scores


def labelled_words(
    documents: Sequence[TaggedDocument], scores: Sequence[Mapping[str, float]]
) -> tuple[LabelledWord, ...]:
    """The words of each document's labelled sentences, as they first occur, with scores of `tf_idf`."""
    if len(documents) != len(scores):
        raise ValueError(f"there are {len(documents)} documents, but scores of {len(scores)}")
    rows = []
    for number, document in enumerate(documents):
        spellings: dict[str, Counter[str]] = {}
        labels: dict[str, Counter[str]] = {}
        for sentence in _labelled(document):
            for word, tag in zip(sentence.words, sentence.tags or (), strict=True):
                spellings.setdefault(_folded(word), Counter())[word] += 1
                labels.setdefault(_folded(word), Counter())[tag.partition("-")[2]] += 1
        for word, written in spellings.items():
            if word not in scores[number]:
                what = f"document {document.id!r} has no score of {word!r}"
                raise ValueError(f"{what}; give the scores of these documents")
            outside = labels[word].pop("", 0)
            rows.append(
                LabelledWord(
                    document=number,
                    word=word,
                    spelling=written.most_common(1)[0][0],
                    score=scores[number][word],
                    occurrences=written.total(),
                    inside=written.total() - outside,
                    labels=tuple(label for label, _ in labels[word].most_common()),
                )
            )
    return tuple(rows)


def shares_by_quantile(words: Sequence[LabelledWord], *, quantiles: int = 10) -> tuple[QuantileShare, ...]:
    """How often words are entities, from low TF-IDF to high (Figure 2). Equal scores stay together, so there
    may be fewer quantiles, of unequal size."""
    scores = _scores(words)
    check_least(quantiles=quantiles)
    inside = np.array([bool(word.labels) for word in words])
    edges = np.quantile(scores, np.arange(1, quantiles) / quantiles, method="inverted_cdf")
    part = np.searchsorted(edges, scores, side="left")  # an edge is the highest score of its part
    shares, below = [], 0
    for number in np.unique(part):
        of_part = part == number
        count = int(of_part.sum())
        share = QuantileShare(
            start=100 * below / len(scores),
            stop=100 * (below + count) / len(scores),
            lowest=float(scores[of_part].min()),
            highest=float(scores[of_part].max()),
            words=count,
            share=float(inside[of_part].mean()),
        )
        shares.append(share)
        below += count
    return tuple(shares)


def strata(
    documents: Sequence[TaggedDocument],
    words: Sequence[LabelledWord],
    *,
    percentiles: Sequence[float] = (90, 95, 99),
) -> tuple[Stratum, ...]:
    """The words that are entities somewhere in the labelled test set and at or above given percentiles, in
    [0, 100], of their TF-IDF (Figure 3). `words` must be the `labelled_words` of the documents."""
    entities = {word.word for word in words if word.labels}
    vocabulary = [word for word in words if word.word in entities]
    if not vocabulary:
        raise ValueError("no word of the labelled sentences is in a span, so there are no entities to divide")
    scores = _scores(vocabulary)
    divided = []
    for percentile in percentiles:
        if not 0 <= percentile <= 100:
            raise ValueError(f"a percentile is {percentile}; it must lie in [0, 100]")
        threshold = float(np.percentile(scores, percentile))
        kept = {(word.document, word.word) for word in vocabulary if word.score >= threshold}
        chosen = tuple(
            tuple(tuple((number, _folded(word)) in kept for word in one.words) for one in _labelled(document))
            for number, document in enumerate(documents)
        )
        divided.append(
            Stratum(percentile=float(percentile), threshold=threshold, words=len(kept), chosen=chosen)
        )
    return tuple(divided)


def top_entities(words: Sequence[LabelledWord], *, most: int = 3) -> tuple[LabelledWord, ...]:
    """The entities with the highest TF-IDF (Table 5): words that are always in spans in their document. A
    word of several documents is listed once, where its score is highest; ties go to the first."""
    ranked = sorted((word for word in words if word.inside == word.occurrences), key=lambda word: -word.score)
    best: dict[str, LabelledWord] = {}
    for word in ranked:
        best.setdefault(word.word, word)
    return tuple(best.values())[:most]


def _word_counts(document: TaggedDocument) -> Counter[str]:
    return Counter(_folded(word) for sentence in document.sentences for word in sentence.words)


def _folded(word: str) -> str:
    return plain_word(word).lower()


def _labelled(document: TaggedDocument) -> Iterator[TaggedSentence]:
    return (document.sentences[number] for number in document.labelled)


def _scores(words: Sequence[LabelledWord]) -> np.ndarray:
    if not words:
        raise ValueError("there are no words; the documents must have labelled sentences")
    return np.array([word.score for word in words])


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_ROUNDING = 1e-3  # half-precision weights may exceed 1 by this much


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWeights:
    """Attention weights of the occurrences in one bucket of distances: number, mean and QUANTILES."""

    bucket: int
    count: int
    mean: float
    quantiles: tuple[float, ...]


def weights_by_distance(weights: ArrayLike, buckets: ArrayLike) -> tuple[BucketWeights, ...]:
    """The distribution of attention weights in each bucket that has any, in the order of the buckets, from
    the weights of each word's occurrences and the buckets of their distances, both (words, K); bucket -1 = no
    occurrence."""
    weights, buckets = np.asarray(weights, dtype=np.float64), np.asarray(buckets)
    if weights.ndim != 2 or weights.shape != buckets.shape:
        shapes = f"weights has shape {weights.shape} and buckets {buckets.shape}"
        raise ValueError(f"{shapes}; both must be (words, K)")
    if buckets.dtype.kind not in "iu" or (buckets < -1).any():
        raise ValueError("buckets must be whole numbers, 0 or more, or -1 where there is no occurrence")
    present = buckets >= 0
    if not present.any():
        raise ValueError("no word has an occurrence to attend to, so there are no weights to describe")
    if wrong := np.argwhere(present & ~((weights >= 0) & (weights <= 1 + _ROUNDING))).tolist():
        row, column = wrong[0]
        what = f"weights[{row}, {column}] is {weights[row, column]}"
        raise ValueError(f"{what}; an attention weight lies in [0, 1]")
    described = []
    for number in np.unique(buckets[present]).tolist():
        chosen = weights[buckets == number]
        quantiles = tuple(np.quantile(chosen, QUANTILES).tolist())
        described.append(
            BucketWeights(bucket=number, count=len(chosen), mean=float(chosen.mean()), quantiles=quantiles)
        )
    return tuple(described)
