"""Sentences as a model tagged them, and for one word of each where else in the document it stands, nearest
first, with the attention that each occurrence got (Joerke et al. 2020, equation 3).

Predicted spans stand on a ground with their label behind them, gold spans that were missed are underlined and
named. Every colour has a word beside it; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from cdlm_lab.analysis.tf_idf import QuantileShare
from cdlm_lab.data.tagged import OUTSIDE, TagSpan, spans_of
from cdlm_lab.widgets.charts import (
    faded,
    interval,
    lay_out,
    line_styles,
    marks,
    not_empty,
    plain_text,
    short_name,
    small,
)
from cdlm_lab.widgets.html import (
    GLOBAL,
    HUES,
    MASKED,
    MUTED,
    SIGNS,
    SMALL,
    TEXT,
    UNKNOWN,
    ShownMention,
    bare_table,
    check_between,
    count_in_words,
    counted,
    escaped,
    fold,
    gap_between,
    legend,
    muted,
    page_of,
    points_in_words,
    right_of_known,
    right_or_wrong,
    sentence_html,
    share_bar,
    view_html,
)

HERE = "here"
_SLACK = 1e-3  # a weight may lie so far above 1: half precision
_CHIP = "font-size:10.5px;font-weight:700;white-space:nowrap;letter-spacing:0.02em"
_CHOSEN = "font-weight:700;border:1px solid;border-radius:3px;padding:0 2px"
_MARK = "color:inherit;border-radius:3px;padding"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOccurrence:
    """An occurrence of a word that the model attended to when it tagged the word."""

    words: tuple[str, ...]  # of the sentence it stands in
    place: int  # its number in them
    distance: int  # in sentences, as the model counts them; 0 = in the same sentence
    weight: float  # the attention it got, in [0, 1]
    sentence: int  # number of that sentence in the document, from 0

    def __post_init__(self) -> None:
        if not 0 <= self.place < len(self.words):
            raise ValueError(f"an occurrence at word {self.place} of {len(self.words)}; count them from 0")
        if self.distance < 0:
            raise ValueError(f"the distance of an occurrence is {self.distance}; it must not be negative")
        if not 0 <= self.weight <= 1 + _SLACK:
            raise ValueError(f"the weight of an occurrence is {self.weight}; it must lie in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWord:
    """A word of a tagged sentence."""

    word: str
    gold: str | None  # its gold tag, such as "B-PER" or "O"; None = not known
    predicted: str  # its predicted tag
    # Those that the model attended to, itself among them if it may; () for a model that attends to none.
    occurrences: tuple[ReadOccurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSentence:
    """A sentence of a document (its number counts from 0), the tags that a model gave it, and the gold ones
    of all its words or of none."""

    document: str
    number: int
    words: tuple[ReadWord, ...]

    def __post_init__(self) -> None:
        where = f"{self.document}, sentence {self.number}"
        if not self.words:
            raise ValueError(f"{where}: it has no words")
        if len({word.gold is None for word in self.words}) > 1:
            raise ValueError(f"{where}: some words have a gold tag and some have not; give all or none")

    @property
    def predicted(self) -> tuple[TagSpan, ...]:
        """The predicted spans."""
        return spans_of([word.predicted for word in self.words])

    @property
    def gold(self) -> tuple[TagSpan, ...] | None:
        """The gold spans; None = not known."""
        tags = [word.gold for word in self.words if word.gold is not None]
        return spans_of(tags) if tags else None

    @property
    def right(self) -> bool | None:
        """True = exactly the gold spans were predicted; None = these are not known."""
        return None if self.gold is None else self.predicted == self.gold

    @property
    def notable(self) -> tuple[int, ...]:
        """Numbers of the words that are worth a look: predicted to be in a span, or tagged wrongly."""
        return tuple(
            number
            for number, word in enumerate(self.words)
            if word.predicted != OUTSIDE or word.gold not in (None, word.predicted)
        )

    @property
    def first_choice(self) -> int | None:
        """Of those words that with the most occurrences, of several the longest; None = there are none.

        As a rule frequent words have as many occurrences as a model may attend to, "of" and names alike.
        """

        def size(number: int) -> tuple[int, int]:
            return len(self.words[number].occurrences), len(self.words[number].word)

        return max(self.notable, key=size, default=None)

    def is_itself(self, occurrence: ReadOccurrence, number: int) -> bool:
        """Whether an occurrence of word `number` is that word."""
        place = occurrence.distance, occurrence.sentence, occurrence.place
        return place == (0, self.number, number)

    def elsewhere(self, number: int) -> int:
        """How many occurrences of word `number` were attended to, the word itself left out."""
        return sum(not self.is_itself(one, number) for one in self.words[number].occurrences)


def labels_of_reads(reads: Iterable[ReadSentence]) -> tuple[str, ...]:
    """The labels of all spans of sentences, gold and predicted, sorted."""
    return tuple(sorted({span.label for read in reads for span in (*read.predicted, *(read.gold or ()))}))


def tagged_sentence_html(
    read: ReadSentence, *, chosen: int | None = None, labels: Sequence[str] | None = None
) -> str:
    """The sentence with its spans, and the occurrences of one word, nearest first.

    Args:
        chosen: number of that word; None = `ReadSentence.first_choice`.
        labels: all labels of the documents, in the order of their colours, so that a label has the same
            colour in all sentences; None = those of this sentence.
    """
    if chosen is not None and not 0 <= chosen < len(read.words):
        raise ValueError(f"chosen is {chosen}; the sentence has words 0 to {len(read.words) - 1}")
    word = read.first_choice if chosen is None else chosen
    colours = _colours(labels_of_reads([read]) if labels is None else labels)
    return _whole(read, word, colours, "" if word is None else _occurrences(read, word, colours))


def tagged_page(reads: Sequence[ReadSentence], *, title: str) -> str:
    """A page of its own with all sentences in the order given. Of each the occurrences of `first_choice` are
    shown, those of its other notable words, if they stand elsewhere too, are folded."""
    colours = _colours(labels_of_reads(reads))

    def show(read: ReadSentence) -> str:
        first = read.first_choice
        others = [number for number in read.notable if number != first and read.elsewhere(number)]
        lists = "" if first is None else _occurrences(read, first, colours)
        lists += "".join(_occurrences(read, number, colours, folded=True) for number in others)
        return _whole(read, first, colours, lists)

    facts = right_of_known((read.right for read in reads), "{} of {} right")
    return page_of(reads, show, noun="sentence", facts=facts, title=title)


def _colours(labels: Sequence[str]) -> dict[str, str]:
    return {label: HUES[place % len(HUES)] for place, label in enumerate(labels)}


def _whole(read: ReadSentence, chosen: int | None, colours: Mapping[str, str], lists: str) -> str:
    """Head, sentence, legend, and the lists of occurrences (HTML); without any, no word is marked as
    chosen."""
    chosen = chosen if lists else None
    where = f"<bdi>{escaped(read.document)}</bdi>, sentence {count_in_words(read.number + 1)}"
    verdict = "" if read.right is None else f"&ensp;{right_or_wrong(read.right)}"
    head = f'<div style="font-size:12px"><span style="{MUTED}">{where}</span>{verdict}</div>'
    text = "font-size:15.5px;line-height:1.95;overflow-wrap:anywhere;margin:2px 0 4px"
    sentence = f'<div style="{text}" dir="auto">{"".join(_marked(read, chosen, colours))}</div>'
    return view_html("tagged", f"{head}{sentence}{_legend(read, chosen)}{lists}")


def _marked(read: ReadSentence, chosen: int | None, colours: Mapping[str, str]) -> Iterator[str]:
    """The sentence as HTML, piece by piece. Predicted spans are `mark`, missed gold ones `u`, of each word
    and each space by itself, because they may end inside a predicted span."""
    missed = _by_word([span for span in read.gold or () if span not in read.predicted])
    predicted = _by_word(read.predicted)
    for number, word in enumerate(read.words):
        span, gold = predicted.get(number), missed.get(number)
        goes_on = gold is not None and gold.first < number
        if gap := gap_between(read.words[number - 1].word, word.word) if number else "":
            yield _underlined(gap, colours.get(gold.label, UNKNOWN)) if goes_on else gap
        if span and span.first == number:
            yield f'<mark style="background:{colours.get(span.label, UNKNOWN)}42;{_MARK}:2px 3px">'
        text = escaped(word.word)
        if number == chosen:
            text = f'<b style="{_CHOSEN}">{text}</b>'
        yield _underlined(text, colours.get(gold.label, UNKNOWN)) if gold and text else text
        if span and span.stop == number + 1:
            sign = "" if read.gold is None else f" {SIGNS[span in read.gold]}"
            yield f' <span style="{_CHIP}">{escaped(span.label)}{sign}</span></mark>'
        if gold and gold.stop == number + 1:
            yield f' <span style="{_CHIP}">\u25c6 gold {escaped(gold.label)}</span>'


def _by_word(spans: Sequence[TagSpan]) -> dict[int, TagSpan]:
    return {number: span for span in spans for number in range(span.first, span.stop)}


def _underlined(text: str, colour: str) -> str:
    return f'<u style="text-decoration:underline dashed 2px {colour};text-underline-offset:4px">{text}</u>'


def _legend(read: ReadSentence, chosen: int | None) -> str:
    """What the marks mean; of the marks those alone that are in the sentence."""
    parts = []
    if read.predicted:
        signs = "" if read.gold is None else f": {SIGNS[True]} right, {SIGNS[False]} wrong"
        mark = f'<mark style="background:{UNKNOWN}42;{_MARK}:1px 3px">predicted span</mark>'
        parts.append(mark + signs)
    if any(span not in read.predicted for span in read.gold or ()):
        parts.append(f"{_underlined('gold span', UNKNOWN)} that was not found")
    if chosen is not None:
        parts.append(f'<b style="{_CHOSEN}">word</b> of which occurrences are shown')
    return legend(parts or ["no span was predicted" if read.gold is None else "no spans"])


def _occurrences(read: ReadSentence, number: int, colours: Mapping[str, str], *, folded: bool = False) -> str:
    """The word, how it is tagged and how often it stands elsewhere, and below that a row for each occurrence;
    nothing if the model attends to none at all."""
    if not any(word.occurrences for word in read.words):
        return ""
    word = read.words[number]
    tags = escaped(word.predicted)
    if word.gold not in (None, word.predicted):
        tags += f", gold {escaped(word.gold)}"
    occurrences = f"{counted(read.elsewhere(number), 'occurrence')} elsewhere"
    name = f'<bdi style="font-weight:600;overflow-wrap:anywhere">{escaped(word.word)}</bdi>'
    heading = f'{name}&ensp;<span style="{SMALL}">{tags} &middot; {occurrences}</span>'
    span = _by_word(read.predicted).get(number)
    table = _occurrence_table(read, number, colours.get(span.label, UNKNOWN) if span else UNKNOWN)
    return fold(heading, table) if folded else f'<div style="margin:8px 0"><div>{heading}</div>{table}</div>'


def _occurrence_table(read: ReadSentence, number: int, colour: str) -> str:
    """A row for each occurrence: where it is, its weight as number and bar, and its sentence, cut to some
    words around the occurrence, which is marked."""
    nearest = sorted(read.words[number].occurrences, key=lambda one: (one.distance, one.sentence, one.place))
    if not nearest:
        return muted("The model attended to no occurrence of this word.")
    largest = max(one.weight for one in nearest)
    rows = []
    for one in nearest:
        side = "before" if one.sentence < read.number else "after"
        where = f"{counted(one.distance, 'sentence')} {side}" if one.distance else "this sentence"
        where = HERE if read.is_itself(one, number) else where
        bar = share_bar(one.weight / largest if largest else 0.0, f"{100 * one.weight:.1f}%", width=48)
        mention = ShownMention.from_tokens(one.words, (one.place, one.place + 1))
        sentence = f'<div dir="auto">{sentence_html(mention, colour)}</div>'
        rows.append([f'<span style="white-space:nowrap;{SMALL}">{where}</span>', bar, sentence])
    note = muted("Number and bar: share of the attention; the bar is full at the largest.", size=11.5)
    return bare_table(rows, align="top") + note


QUANTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGain:
    """By how much a system tags some words better than another one."""

    stratum: str  # which words, such as "all words" or "top 5%"
    gain: float  # difference of word-level F1, in [-1, 1]
    # low, high: bounds of its 95% interval.
    low: float
    high: float
    words: int  # how many occurrences of words in the text it is of

    def __post_init__(self) -> None:
        check_between(f"{self.stratum}: gain", self.gain, -1)
        if not -1 <= self.low <= self.high <= 1:
            raise ValueError(f"{self.stratum}: ({self.low}, {self.high}) is no interval in [-1, 1]")
        if self.words < 0:
            raise ValueError(f"{self.stratum}: words is {self.words}; it must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceWeights:
    """The attention weights of the occurrences at some distance in sentences, such as "4-7": their QUANTILES
    and mean, each in [0, 1], and how many they are; with a count of 0 the numbers mean nothing."""

    bucket: str
    quantiles: Sequence[float]
    mean: float
    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"{self.bucket}: count is {self.count}; it must not be negative")
        if len(self.quantiles) != len(QUANTILES):
            raise ValueError(f"{self.bucket}: {len(self.quantiles)} quantiles; give those at {QUANTILES}")
        if not self.count:
            return
        for number in (*self.quantiles, self.mean):
            check_between(f"{self.bucket}: a weight", number)
        if any(left > right for left, right in pairwise(self.quantiles)):
            raise ValueError(f"{self.bucket}: quantiles {tuple(self.quantiles)} must not fall")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """F1 on development documents where a word may attend to `k` occurrences: mean over the seeds, in [0, 1],
    and its standard deviation, None with one seed."""

    k: int
    f1: float
    deviation: float | None
    seeds: int

    def __post_init__(self) -> None:
        check_between(f"K = {self.k}: f1", self.f1)
        if self.k < 0 or self.seeds < 1:
            raise ValueError(f"K = {self.k} with {self.seeds} seeds; K is at least 0, seeds at least 1")
        if self.deviation is not None and (self.seeds == 1 or not 0 <= self.deviation < math.inf):
            raise ValueError(f"K = {self.k}: a deviation of {self.deviation} over {self.seeds} seeds")


def shares_by_tf_idf_figure(
    shares: Mapping[str, Sequence[QuantileShare]],
    *,
    title: str = "Share of words that are entities, by TF-IDF",
) -> go.Figure:
    """Figure 2: the share of words with an entity label, by TF-IDF, a line for each corpus."""
    shown = not_empty(shares, "shares")
    figure = go.Figure()
    for (name, parts), style in zip(shown.items(), line_styles(len(shown)), strict=True):
        for part in parts:
            check_between(f"{name}: share", part.share)
        figure.add_scatter(
            x=[round((part.start + part.stop) / 2, 3) for part in parts],
            y=[round(100 * part.share, 3) for part in parts],
            text=[f"percentiles {p.start:.0f} to {p.stop:.0f}, n = {p.words:,} words" for p in parts],
            name=f"{short_name(name)} (n = {sum(part.words for part in parts):,} words)",
            hovertemplate=f"{plain_text(name)}<br>%{{text}}<br>%{{y:.1f}}% are entities<extra></extra>",
            cliponaxis=False,
            **style,
        )
    axis = "TF-IDF of the word in its document (percentile)"
    figure.update_xaxes(title_text=axis, range=[0, 100], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(title_text="share of entities (%)", rangemode="tozero")
    lay_out(figure, title=title, margin_t=88, showlegend=True)
    return figure


def gain_by_tf_idf_figure(
    gains: Mapping[str, Sequence[WordGain]], *, system: str, other: str, title: str = ""
) -> go.Figure:
    """Figure 3: by how much `system` tags words better than `other`, over all words and over entities of high
    TF-IDF; dots with 95% intervals, above zero where `system` is better.

    `gains`: name of a corpus -> its strata, in the order to be drawn; the same strata of each.
    """
    shown = not_empty(gains, "gains")
    strata = [gain.stratum for gain in next(iter(shown.values()))]
    for name, of_corpus in shown.items():
        if [gain.stratum for gain in of_corpus] != strata:
            raise ValueError(f"{name}: its strata are not {', '.join(strata)}; give the same of each corpus")
    figure = go.Figure()
    several = len(shown) > 1
    for place, ((name, of_corpus), style) in enumerate(
        zip(shown.items(), line_styles(len(shown)), strict=True)
    ):
        offset = (place - (len(shown) - 1) / 2) * 0.66 / len(shown)
        figure.add_traces(_gain_traces(name, of_corpus, offset, style, several=several))
    labels = []
    for number, stratum in enumerate(strata):
        whose = {f"{short_name(name)}: " if several else "": of[number].words for name, of in shown.items()}
        labels.append(plain_text(stratum) + small("<br>".join(f"{who}n = {n:,}" for who, n in whose.items())))
    ends = [-0.5, len(strata) - 0.5]
    figure.update_xaxes(tickvals=list(range(len(strata))), ticktext=labels, range=ends, showgrid=False)
    bounds = [100 * bound for of in shown.values() for gain in of for bound in (gain.low, gain.high)]
    low, high = min(0.0, *bounds), max(0.0, *bounds)
    room = max(high - low, 0.1) / 20
    axis = f"word F1: {short_name(system)} \u2212 {short_name(other)} (points)"
    zero = {"zeroline": True, "zerolinecolor": TEXT, "zerolinewidth": 1}
    figure.update_yaxes(title_text=axis, range=[low - room, high + 2 * room], **zero)
    title = title or f"Word F1 of {system} minus that of {other}, by TF-IDF"
    lay_out(figure, title=title, margin_t=88 if several else 60, showlegend=several)
    return figure


def _gain_traces(
    name: str, gains: Sequence[WordGain], offset: float, style: Mapping[str, Any], *, several: bool
) -> list[go.Scatter]:
    """Dots with intervals, and above each interval the number in figures."""
    places = [round(place + offset, 4) for place in range(len(gains))]
    values, lows, highs = (
        [round(100 * getattr(gain, bound), 3) for gain in gains] for bound in ("gain", "low", "high")
    )
    words = []
    for gain in gains:
        mean, low, high = map(points_in_words, (gain.gain, gain.low, gain.high))
        numbers = f"{mean} points ({low} to {high}), n = {gain.words:,} words"
        words.append(f"{f'{plain_text(name)}, ' if several else ''}{plain_text(gain.stratum)}<br>{numbers}")
    error = interval(values, lows, highs, color=style["line"]["color"])
    look = {"mode": "markers", "marker": {**style["marker"], "size": 11}, "name": short_name(name)}
    dots = marks(places, values, words, error_y=error, legendgroup=name, **look)
    text = [points_in_words(gain.gain) for gain in gains]
    look = {"mode": "text", "textposition": "top center", "textfont": {"size": 12}, "cliponaxis": False}
    return [dots, marks(places, highs, text=text, legendgroup=name, showlegend=False, **look)]


def weights_by_distance_figure(
    weights: Sequence[DistanceWeights], *, title: str = "Attention weight of occurrences, by distance"
) -> go.Figure:
    """Figure 4: attention weights by distance, in the order given. A box reaches from the 25th to the 75th
    percentile with a line at the median, its whiskers from the 5th to the 95th; a diamond is the mean. There
    are no single weights."""
    filled = {place: one for place, one in enumerate(weights) if one.count}
    if not filled:
        raise ValueError("there is nothing to show: weights is empty")
    names = ("lowerfence", "q1", "median", "q3", "upperfence")
    quantiles = zip(*(one.quantiles for one in filled.values()), strict=True)
    boxes = go.Box(
        x=list(filled),
        **{name: [round(q, 5) for q in of] for name, of in zip(names, quantiles, strict=True)},
        line={"color": GLOBAL, "width": 1.6},
        fillcolor=faded(GLOBAL, 0.3),
        width=0.55,
        name="median, middle 50% and middle 90% of the weights",
        hoverinfo="skip",
    )
    values, words = zip(
        *((round(one.mean, 5), _weights_in_words(one)) for one in filled.values()), strict=True
    )
    diamonds = {"symbol": "diamond", "size": 9, "color": MASKED}
    means = marks(list(filled), values, words, mode="markers", marker=diamonds, name="mean")
    figure = go.Figure([boxes, means])
    figure.update_xaxes(
        title_text="distance in sentences, and number of occurrences",
        tickvals=list(range(len(weights))),
        ticktext=[plain_text(one.bucket) + small(f"n = {one.count:,}") for one in weights],
        range=[-0.6, len(weights) - 0.4],
        showgrid=False,
    )
    highest = max(max(one.mean, one.quantiles[-1]) for one in filled.values())
    figure.update_yaxes(title_text="attention weight", range=[0, 1.04 * max(highest, 0.01)])
    lay_out(figure, title=title, margin_t=88, hovermode="x", showlegend=True)
    return figure


def _weights_in_words(one: DistanceWeights) -> str:
    named = zip(QUANTILES, one.quantiles, strict=True)
    below = ", ".join(f"{at}%: {weight:.3f}" for at, weight in named)
    return f"distance {plain_text(one.bucket)}, n = {one.count:,}<br>mean {one.mean:.3f}<br>{below}"


def sweep_figure(
    sweeps: Mapping[str, Sequence[SweepPoint]], *, title: str = "F1 by the number of occurrences attended to"
) -> go.Figure:
    """Figure 5: mean F1 on development documents over K, with a band of one deviation on either side; the
    best K of each line has its number written. `sweeps`: name of a corpus or system -> its points."""
    shown = not_empty(sweeps, "sweeps")
    figure = go.Figure()
    for (name, points), style in zip(shown.items(), line_styles(len(shown)), strict=True):
        ordered = sorted(points, key=lambda point: point.k)
        if len({point.k for point in ordered}) < len(ordered):
            raise ValueError(f"{name}: two points of one K; give each once")
        known = [point for point in ordered if point.deviation is not None]
        if len(known) > 1:
            outline = [(p.k, p.f1 + p.deviation) for p in known]
            outline += [(p.k, p.f1 - p.deviation) for p in reversed(known)]
            xs, ys = [k for k, _ in outline], [round(100 * f1, 3) for _, f1 in outline]
            ground = {"fill": "toself", "fillcolor": faded(style["line"]["color"], 0.18)}
            look = {"mode": "lines", "line": {"width": 0}, "legendgroup": name, "showlegend": False}
            figure.add_trace(marks(xs, ys, **ground, **look))
        figure.add_trace(_sweep_line(name, ordered, style))
    widths = sorted({point.k for points in shown.values() for point in points})
    figure.update_xaxes(
        title_text="K: occurrences that a word may attend to", tickvals=widths, showgrid=False
    )
    figure.update_yaxes(title_text="F1 on development documents (%)")
    lay_out(figure, title=title, margin_t=88, showlegend=True)
    return figure


def _sweep_line(name: str, points: Sequence[SweepPoint], style: Mapping[str, Any]) -> go.Scatter:
    best = max(points, key=lambda point: point.f1)
    fewest, most = min(point.seeds for point in points), max(point.seeds for point in points)
    n = counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    words = []
    for point in points:
        spread = "" if point.deviation is None else f" \u00b1 {100 * point.deviation:.1f}"
        f1 = f"K = {point.k}: F1 {100 * point.f1:.1f}{spread}"
        words.append(f"{plain_text(name)}<br>{f1}, {counted(point.seeds, 'seed')}")
    look = dict(style) | {"mode": "lines+markers+text", "textposition": "top center", "cliponaxis": False}
    return marks(
        [point.k for point in points],
        [round(100 * point.f1, 3) for point in points],
        words,
        text=[f"{100 * point.f1:.1f}" if point is best else "" for point in points],
        name=f"{short_name(name)} (n = {n})",
        legendgroup=name,
        **look,
    )
