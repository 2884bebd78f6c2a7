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

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cdlm_lab.data.records import TaggedDocument, TaggedSentence
from cdlm_lab.data.words import plain_word

Chosen = list[list[list[bool]]]  # for each document, labelled sentence and word, as `word_counts` takes it
PERCENTILES = (90, 95, 99)  # of TF-IDF, above which Figure 3 looks at entities
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of attention weights


def labelled_words(
    documents: Sequence[TaggedDocument], *, others: Iterable[TaggedDocument] = ()
) -> pd.DataFrame:
    """The words of each document's labelled sentences, as they first occur: `document` (its index), `word` in
    lower case, `spelling` (the most frequent one), `score` (TF-IDF), `occurrences` in these sentences,
    `inside` (how many are in a span) and `labels` of these spans, most frequent first.

    `others`, such as those of the other splits, count in N and df but are not scored: the paper uses all
    documents of a data set.
    """
    having, total, rows = Counter[str](), 0, []
    for document in others:
        having.update({_folded(word) for word in _all_words(document)})
        total += 1
    for number, document in enumerate(documents):
        count = Counter(map(_folded, _all_words(document)))
        having.update(count.keys())
        total += 1
        spellings, labels = defaultdict(Counter), defaultdict(Counter)
        for sentence in _labelled(document):
            for word, tag in zip(sentence.words, sentence.tags or (), strict=True):
                spellings[_folded(word)][word] += 1
                labels[_folded(word)][tag.partition("-")[2]] += 1
        for word, written in spellings.items():
            inside = written.total() - labels[word].pop("", 0)
            spans = [label for label, _ in labels[word].most_common()]
            spelling = written.most_common(1)[0][0]
            rows.append((number, word, spelling, written.total(), inside, spans, count[word]))
    names = ["document", "word", "spelling", "occurrences", "inside", "labels", "frequency"]
    words = pd.DataFrame(rows, columns=names)
    tf, df = words.pop("frequency").astype(float), words["word"].map(having).astype(float)
    return words.assign(score=(1 + np.log10(tf)) * np.log10(total / df))


def shares_by_quantile(words: pd.DataFrame, *, quantiles: int = 10) -> list[dict[str, Any]]:
    """How often words are entities, from low TF-IDF to high (Figure 2): of the words with adjacent scores,
    between the percentiles `start` and `stop`, the `lowest` and `highest` score, the number of `words`, and
    the `share` of them that are in a span at least once. Equal scores stay together, so there may be fewer
    quantiles, of unequal size."""
    scores = words["score"].to_numpy()
    edges = np.quantile(scores, np.arange(1, quantiles) / quantiles, method="inverted_cdf")
    part = np.searchsorted(edges, scores, side="left")  # an edge is the highest score of its part
    parts = words.assign(inside=words["inside"] > 0).groupby(part)
    of = {"lowest": ("score", "min"), "highest": ("score", "max")}
    table = parts.agg(**of, words=("score", "size"), share=("inside", "mean"))
    below = table["words"].cumsum()
    table.insert(0, "start", 100 * (below - table["words"]) / len(words))
    table.insert(1, "stop", 100 * below / len(words))
    return table.to_dict("records")


def entities_by_percentile(
    documents: Sequence[TaggedDocument], words: pd.DataFrame, *, percentiles: Sequence[float] = PERCENTILES
) -> dict[float, Chosen]:
    """The words that are entities somewhere in the labelled test set and at or above given percentiles of
    their TF-IDF (Figure 3). `words` must be the `labelled_words` of the documents."""
    entities = words[words["word"].isin(words.loc[words["inside"] > 0, "word"])]
    divided = {}
    for percentile in percentiles:
        kept = entities[entities["score"] >= np.percentile(entities["score"], percentile)]
        pairs = {*zip(kept["document"], kept["word"], strict=True)}
        divided[percentile] = [
            [[(number, _folded(word)) in pairs for word in one.words] for one in _labelled(document)]
            for number, document in enumerate(documents)
        ]
    return divided


def top_entities(words: pd.DataFrame, *, most: int = 3) -> list[dict[str, Any]]:
    """The entities with the highest TF-IDF (Table 5), `word`, `labels` and `score`: words that are always in
    spans in their document. A word of several documents is listed once, where its score is highest; ties go
    to the first."""
    always = words[words["inside"] == words["occurrences"]]
    ranked = always.sort_values("score", ascending=False, kind="stable").drop_duplicates("word").head(most)
    return [
        {"word": row.spelling, "labels": row.labels, "score": row.score}
        for row in ranked.itertuples(index=False)
    ]


def weights_by_distance(weights: np.ndarray, buckets: np.ndarray) -> list[dict[str, Any]]:
    """The distribution of attention weights in each bucket of distances that has any: `count`, `mean` and
    QUANTILES, from the weights of each word's occurrences and their buckets, both (words, K); bucket -1 = no
    occurrence."""
    rows = []
    for bucket in np.unique(buckets[buckets >= 0]).tolist():
        chosen = weights[buckets == bucket].astype(np.float64)
        quantiles = np.quantile(chosen, QUANTILES).tolist()
        described = {"count": len(chosen), "mean": float(chosen.mean()), "quantiles": quantiles}
        rows.append({"bucket": bucket, **described})
    return rows


def _all_words(document: TaggedDocument) -> Iterator[str]:
    return (word for sentence in document.sentences for word in sentence.words)


def _folded(word: str) -> str:
    return plain_word(word).lower()


def _labelled(document: TaggedDocument) -> Iterator[TaggedSentence]:
    return (document.sentences[number] for number in document.labelled)
