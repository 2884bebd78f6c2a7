"""Coreference scores: MUC, B-cubed, CEAFe, LEA, the CoNLL mean of the first three, and a baseline.

`key` is gold, `response` is the predicted clustering: iterables of clusters, a cluster being an iterable of
hashable mentions that name their document, such as (document, start, end). The numbers are those of the CoNLL
reference scorer (Pradhan et al. 2014) and, for LEA, of coval (Moosavi and Strube 2016):

- Nothing is repaired: spurious and missing mentions still count in the sizes of their clusters.
- Singletons count. `singletons=False` drops the clusters of one mention from each side first; such scores
  cannot be compared with others, so label them "without singletons".
- 0 / 0 is 0. An empty side scores 0, and so does MUC where there are only singletons, even if all are right.
- The score of a corpus is a ratio of sums, `Parts`, never a mean over topics. Parts of topics add up to those
  of the corpus if no cluster has mentions of two topics: `parts_by_topic` refuses others, `joined_topics`
  merges topics that share clusters.

The baseline clusters mentions with the same head word, by rules that were settled on the dev topics of ECB+;
with gold sub-topics, stemming raises CoNLL F1 there from 73.2 to 77.1 for events and leaves entities as they
are (71.3, 71.2).
"""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cdlm_lab.data.words import plain_word

Clusters = Iterable[Iterable[Hashable]]
CONLL = ("muc", "b_cubed", "ceaf_e")
SCORE_PARTS = ("recall", "precision", "f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """The mentions that the clusters of two clusterings share."""

    key_sizes: np.ndarray  # (key,), number of mentions in each cluster
    response_sizes: np.ndarray  # (response,)
    key: np.ndarray  # (pair,), index of a cluster that shares mentions with that in `response`
    response: np.ndarray  # (pair,), index of that cluster; each pair once
    common: np.ndarray  # (pair,), number of mentions they share, at least 1

    def exchanged(self) -> Overlaps:
        """Key and response exchanged: the recall of one is the precision of the other."""
        return Overlaps(
            key_sizes=self.response_sizes,
            response_sizes=self.key_sizes,
            key=self.response,
            response=self.key,
            common=self.common,
        )

    def sum_by_key(self, of_pairs: np.ndarray) -> np.ndarray:
        """(pair,) to (key,): sums over the response clusters that share mentions with a key cluster."""
        return np.bincount(self.key, weights=of_pairs, minlength=len(self.key_sizes))


def overlaps(key: Clusters, response: Clusters, *, singletons: bool = True) -> Overlaps:
    """What the clusters of key and response share; `singletons=False` drops clusters of one mention first."""
    keys, responses = checked_clusters(key, side="key"), checked_clusters(response, side="response")
    if not singletons:
        keys, responses = ([c for c in clusters if len(c) > 1] for clusters in (keys, responses))
    response_of = {mention: number for number, cluster in enumerate(responses) for mention in cluster}
    pairs = Counter(
        (number, response_of[mention])
        for number, cluster in enumerate(keys)
        for mention in cluster
        if mention in response_of
    )
    numbers = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    return Overlaps(
        key_sizes=np.array([len(cluster) for cluster in keys], dtype=np.int64),
        response_sizes=np.array([len(cluster) for cluster in responses], dtype=np.int64),
        key=numbers[:, 0],
        response=numbers[:, 1],
        common=np.array(list(pairs.values()), dtype=np.int64),
    )


def checked_clusters(clusters: Clusters, *, side: str) -> list[list[Hashable]]:
    """The clusters as lists; ValueError unless every cluster has mentions and every mention occurs once (the
    reference scorer drops all but the first). `side` is their name in errors: "key", "response"."""
    checked = [list(cluster) for cluster in clusters]
    cluster_of: dict[Hashable, int] = {}
    for number, cluster in enumerate(checked):
        here = f"{side}[{number}]"
        if not cluster:
            raise ValueError(f"{here} is empty; leave out clusters without mentions")
        for mention in cluster:
            earlier = cluster_of.setdefault(mention, -1)
            if earlier == number:
                raise ValueError(f"{here} has the mention {mention!r} twice; name each mention once")
            if earlier >= 0:
                both = f"{side}[{earlier}] = {reprlib.repr(checked[earlier])} and in {here} = "
                what = f"mention {mention!r} is in {both}{reprlib.repr(cluster)}"
                raise ValueError(f"{what}; a mention belongs to one cluster")
            cluster_of[mention] = number
    return checked


def joined_topics(
    *clusterings: Clusters, topic: Callable[[Hashable], Hashable]
) -> Callable[[Hashable], frozenset]:
    """A `topic` for `parts_by_topic` that no cluster crosses: topics that share clusters are merged.

    ECB+ needs it for entities: a few gold chains, such as a place, run through two topics. `clusterings`: the
    key, and the response of every system that is compared; no iterators. Maps a mention of these clusterings
    to the set of topics that it is scored with; KeyError for other topics.
    """
    unit_of: dict[Hashable, frozenset] = {}
    for number, clusters in enumerate(clusterings):
        for cluster in checked_clusters(clusters, side=f"clusterings[{number}]"):
            topics = {topic(mention) for mention in cluster}
            unit = frozenset(topics.union(*(unit_of.get(one, ()) for one in topics)))
            unit_of.update(dict.fromkeys(unit, unit))
    return lambda mention: unit_of[topic(mention)]


def largest_total(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> float:
    """The largest sum of weights (none negative) over pairs such that no two share a row or a column.

    Rows and columns fall into components that no pair connects; each is aligned separately, so no table is
    larger than one component, of r rows and c columns: 8 * r * c bytes.
    """
    if not len(weights):
        return 0.0
    first_column = int(rows.max()) + 1
    nodes = first_column + int(columns.max()) + 1
    graph = coo_array((np.ones(len(rows)), (rows, first_column + columns)), shape=(nodes, nodes))
    _, component = connected_components(graph, directed=False)
    order = np.argsort(component[rows], kind="stable")
    starts = np.flatnonzero(np.diff(component[rows][order])) + 1
    totals = []
    for pairs in np.split(order, starts):
        row_numbers, row = np.unique(rows[pairs], return_inverse=True)
        column_numbers, column = np.unique(columns[pairs], return_inverse=True)
        table = np.zeros((len(row_numbers), len(column_numbers)))
        table[row, column] = weights[pairs]
        totals.append(math.fsum(table[linear_sum_assignment(table, maximize=True)]))
    return math.fsum(totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Recall, precision and F1, each in [0, 1]."""

    recall: float
    precision: float
    f1: float


@dataclass(frozen=True, slots=True)
class Parts:
    """The numerators and denominators of a measure; `Parts()` is all zero."""

    recall_numerator: float = 0.0
    recall_denominator: float = 0.0
    precision_numerator: float = 0.0
    precision_denominator: float = 0.0

    def __add__(self, other: Parts) -> Parts:
        """The parts of two topics together, exact if they share no cluster."""
        if not isinstance(other, Parts):
            return NotImplemented
        return Parts(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def score(self) -> Score:
        """The two ratios and their harmonic mean; 0 / 0 is 0."""
        return Score(**dict(zip(SCORE_PARTS, map(float, _ratios(np.array(astuple(self)))), strict=True)))


def score(key: Clusters, response: Clusters, *, singletons: bool = True) -> dict[str, Score]:
    """Every measure of a whole corpus: `muc`, `b_cubed`, `ceaf_e`, `lea` and `conll`.

    `conll` is the mean of MUC, B-cubed and CEAFe. Its `f1`, the mean of three F1, is the CoNLL F1 of the
    literature. Its `recall` and `precision` are means of three as well, so `f1` is not their harmonic mean.
    """
    return scores_of_parts(score_parts(key, response, singletons=singletons))


def score_parts(key: Clusters, response: Clusters, *, singletons: bool = True) -> dict[str, Parts]:
    """The numerators and denominators of `muc`, `b_cubed`, `ceaf_e` and `lea`."""
    counted = overlaps(key, response, singletons=singletons)
    return {measure: parts(counted) for measure, parts in _MEASURES.items()}


def parts_by_topic(
    key: Clusters, response: Clusters, *, topic: Callable[[Hashable], Hashable], singletons: bool = True
) -> dict[Hashable, dict[str, Parts]]:
    """`score_parts` for each topic, in the order of the key, then the topics that only the response has: so
    two responses to the same mentions give the same topics in the same order, as paired tests need them.

    `topic` returns the topic of a mention, or another unit for tests of significance.
    """
    sides: dict[str, dict[Hashable, list]] = {"key": {}, "response": {}}
    for side, clusters in (("key", key), ("response", response)):
        for number, cluster in enumerate(checked_clusters(clusters, side=side)):
            example_of = {topic(mention): mention for mention in cluster}
            if len(example_of) > 1:
                (a, in_a), (b, in_b) = list(example_of.items())[:2]
                raise ValueError(
                    f"{side}[{number}] has {in_a!r} of topic {a!r} and {in_b!r} of topic {b!r}; "
                    "take topics that share a cluster as one (joined_topics), or score all at once"
                )
            (unit,) = example_of
            sides[side].setdefault(unit, []).append(cluster)
    return {
        unit: score_parts(sides["key"].get(unit, []), sides["response"].get(unit, []), singletons=singletons)
        for unit in sides["key"] | sides["response"]
    }


def scores_of_parts(parts: Mapping[str, Parts]) -> dict[str, Score]:
    """The score of each measure, and `conll`, the mean of those in `CONLL`."""
    scores = {measure: sums.score for measure, sums in parts.items()}
    three = [scores[measure] for measure in CONLL]
    means = {part: math.fsum(getattr(one, part) for one in three) / 3 for part in SCORE_PARTS}
    return scores | {"conll": Score(**means)}


def _ratios(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recall, precision and F1, (...), from (..., 4), the numbers of `Parts` in order."""

    def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
        return np.divide(numerator, denominator, out=np.zeros(denominator.shape), where=denominator != 0)

    recall, precision = ratio(counts[..., 0], counts[..., 1]), ratio(counts[..., 2], counts[..., 3])
    return recall, precision, ratio(2 * recall * precision, recall + precision)


def _both_ways(recall: Callable[[Overlaps], tuple[float, float]]) -> Callable[[Overlaps], Parts]:
    """Parts of a measure whose precision is its recall with key and response exchanged."""
    return lambda o: Parts(*recall(o), *recall(o.exchanged()))


@_both_ways
def _muc(o: Overlaps) -> tuple[float, float]:
    """Links that are recovered, out of the n - 1 needed to connect n mentions (Vilain et al. 1995)."""
    missing = o.key_sizes - o.sum_by_key(o.common)  # each of these is a separate piece
    pieces = o.sum_by_key(np.ones(len(o.common))) + missing
    return math.fsum(o.key_sizes - pieces), math.fsum(o.key_sizes - 1)


@_both_ways
def _b_cubed(o: Overlaps) -> tuple[float, float]:
    """For each mention the fraction of its cluster that stays with it, averaged (Bagga and Baldwin 1998); 0
    for a mention that the other side does not have."""
    share = o.common / o.key_sizes[o.key]  # the same for all `common` mentions
    return math.fsum(o.common * share), math.fsum(o.key_sizes)


def _ceaf_e(o: Overlaps) -> Parts:
    """The similarity of clusters under the best one-to-one alignment (Luo 2005), phi4: twice the number of
    shared mentions, over the sizes of both clusters."""
    phi4 = 2 * o.common / (o.key_sizes[o.key] + o.response_sizes[o.response])
    similarity = largest_total(o.key, o.response, phi4)
    # the denominators: each cluster aligned with itself, at a similarity of 1
    return Parts(similarity, float(len(o.key_sizes)), similarity, float(len(o.response_sizes)))


@_both_ways
def _lea(o: Overlaps) -> tuple[float, float]:
    """Fraction of its links (pairs of mentions) that each cluster keeps, weighted by size (Moosavi and Strube
    2016). A singleton has one link, to itself, which it keeps if it is a singleton on the other side too."""
    links = np.where(o.key_sizes == 1, 1, o.key_sizes * (o.key_sizes - 1) / 2)
    both_single = (o.key_sizes[o.key] == 1) & (o.response_sizes[o.response] == 1)
    kept = o.sum_by_key(np.where(both_single, 1, o.common * (o.common - 1) / 2))
    return math.fsum(o.key_sizes * (kept / links)), math.fsum(o.key_sizes)


_MEASURES = {"muc": _muc, "b_cubed": _b_cubed, "ceaf_e": _ceaf_e, "lea": _lea}


_PREPOSITIONS = """
about above across after against along amid among around as at because before behind below beneath beside
besides between beyond by despite down during except for from in inside into like near of off on onto out
outside over past per since than through throughout till to toward towards under underneath until up upon via
with within without
"""
_RELATIVES = "who whom whose which that where when while"
_CUTS = frozenset([*_PREPOSITIONS.split(), *_RELATIVES.split(), ","])
# Words with their irregular forms, which no rule for endings recognises.
_IRREGULAR = """
be: am is are was were been being; bear: bore born; become: became; begin: began begun; bite: bit bitten;
bleed: bled; blow: blew blown; break: broke broken; bring: brought; build: built; buy: bought;
catch: caught; child: children; choose: chose chosen; come: came; deal: dealt; die: died dying;
do: does did done; draw: drew drawn; drive: drove driven; fall: fell fallen; feel: felt; fight: fought;
find: found; flee: fled; fly: flew flown; foot: feet; get: got gotten; give: gave given;
go: goes went gone; grow: grew grown; hang: hung; have: has had; hear: heard; hide: hid hidden; hold: held;
keep: kept; know: knew known; lead: led; leave: left leaves; lie: lied lying; life: lives; lose: lost;
make: made; man: men; mean: meant; meet: met; pay: paid; ride: rode ridden; ring: rang rung;
rise: rose risen; run: ran; say: said; see: saw seen; seek: sought; sell: sold; send: sent;
shake: shook shaken; shoot: shot; sink: sank sunk; sit: sat; speak: spoke spoken; speed: sped;
spend: spent; stand: stood; steal: stole stolen; strike: struck; swear: swore sworn; take: took taken;
teach: taught; tell: told; think: thought; throw: threw thrown; wear: wore worn; win: won; woman: women;
write: wrote written
"""
_REGULAR_FORM = {
    form: word.strip()
    for word, _, forms in (entry.partition(":") for entry in _IRREGULAR.split(";"))
    for form in forms.split()
}
_POSSESSIVES = ("'s", "\u2019s")
_APOSTROPHES = ("'", "\u2019", "`", "\u00b4")


def head_word(tokens: Sequence[str], *, stem: bool = False) -> str:
    """The word of a mention that most likely names what it is about, in lower case.

    It is the last word before the first preposition, relative pronoun or comma, except those at the very
    start: "the Kodak Theatre at Hollywood" -> theatre, "after one season" -> season, "opened fire" -> fire.
    Punctuation and possessive endings are not words; conjunctions do not count here. `stem`: True = without
    its ending.
    """
    if not tokens:
        raise ValueError("a mention without tokens has no head; give at least one token")
    words = _words(tokens)
    while len(words) > 1 and words[0] in _CUTS:
        words = words[1:]
    if not words:
        return " ".join(map(plain_word, tokens)).lower()  # only symbols, such as "$"
    cut = next((place for place, word in enumerate(words) if place and word in _CUTS), len(words))
    return word_stem(words[cut - 1]) if stem else words[cut - 1]


def _words(tokens: Sequence[str]) -> list[str]:
    """Words and commas in lower case, without possessive endings; the last one is a word."""
    lowered = [plain_word(token).lower() for token in tokens]
    words: list[str] = []
    for before, token in zip(["", *lowered], lowered, strict=False):
        if token in _POSSESSIVES or (token == "s" and before in _APOSTROPHES):
            continue
        if token == "," or any(character.isalnum() for character in token):
            words.append(token[:-2] if token.endswith(_POSSESSIVES) else token)
    while words and words[-1] == ",":
        words.pop()
    return words


def word_stem(word: str) -> str:
    """A lower-case English word without the endings of plurals and of verbs; not always a word itself.

    "said" -> say, from a table of irregular words; "parties" -> parti, like "party"; "charged", "charging"
    and "charges" -> charg, like "charge". Endings that form another part of speech (-ion, -er) are kept.
    """
    word = _REGULAR_FORM.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and any(letter in "aeiouy" for letter in rest):
            # "planned" -> plan, but "killed" -> kill and "missed" -> miss
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "aeiouls" else rest
            break
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word.endswith("y") else word


def same_head(mentions: Sequence[Sequence[str]], groups: Sequence[Hashable]) -> np.ndarray:
    """The baseline: mentions (given by their tokens) of one group, such as a topic, form a cluster if their
    heads are equal except for endings ("killed", "killing"). Returns labels, int64 (mentions,), numbered from
    0 in order of the first mention."""
    if len(mentions) != len(groups):
        raise ValueError(f"there are {len(mentions)} mentions, but {len(groups)} groups; give one for each")
    heads = [head_word(tokens, stem=True) for tokens in mentions]
    numbers: dict[Hashable, int] = {}
    names = zip(groups, heads, strict=True)
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
