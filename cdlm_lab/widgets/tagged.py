"""Sentences as a model tagged them, and for one word of each where else in the document it stands, nearest
first, with the attention that each occurrence got (Joerke et al. 2020, equation 3); the figures of tagging.

Predicted spans stand on a ground with their label behind them, gold spans that were missed are underlined and
named. Every colour has a word beside it; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import plotly.graph_objects as go

from cdlm_lab.analysis.tf_idf import QuantileShare
from cdlm_lab.data.tagged import OUTSIDE, TagSpan, spans_of
from cdlm_lab.widgets import charts, html
from cdlm_lab.widgets.charts import lay_out, marks, plain_text, small
from cdlm_lab.widgets.html import HUES, SIGNS, SMALL, UNKNOWN, check_between, counted, escaped

_SLACK = 1e-3  # a weight may lie so far above 1: half precision
_CHIP = "font-size:10.5px;font-weight:700;white-space:nowrap;letter-spacing:0.02em"
_CHOSEN = "font-weight:700;border:1px solid;border-radius:3px;padding:0 2px"
_MARK = "color:inherit;border-radius:3px;padding"
# A word is a check box: clicked, it shows its list, without a kernel and without a script.
_CLICK = """
div.cdlm-tagged .cdlm-o{display:none}
div.cdlm-tagged label{cursor:pointer;border-bottom:1px dotted}
div.cdlm-tagged label:has(:checked){font-weight:700;border:1px solid;border-radius:3px;padding:0 2px}
div.cdlm-tagged label:has(:focus-visible){outline:2px solid}
div.cdlm-tagged label input{position:absolute;opacity:0;width:0;height:0;margin:0}
"""


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
    """A sentence of a document (its number counts from 0), whose words all have a gold tag, or none has."""

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
        """Of those words that with the most occurrences, of several the longest (frequent words all have as
        many as a model may attend to, "of" and names alike); None = there are none."""

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
    read: ReadSentence, *, labels: Sequence[str], chosen: int | None = None, every: bool = False
) -> str:
    """The sentence with its spans, and the occurrences of one word, nearest first: that with the number
    `chosen`, None = `ReadSentence.first_choice`. Other notable words (`every`: all words) that stand
    elsewhere too show theirs when they are clicked. `labels`: all those of the documents, in the order of
    their colours, so that a label has the same colour in all sentences."""
    if chosen is not None and not 0 <= chosen < len(read.words):
        raise ValueError(f"chosen is {chosen}; the sentence has words 0 to {len(read.words) - 1}")
    return _whole(read, read.first_choice if chosen is None else chosen, _colours(labels), every=every)


def tagged_page(reads: Sequence[ReadSentence], *, title: str, labels: Sequence[str] = ()) -> str:
    """A page of its own with all sentences in the order given; `labels`: those that have a colour, in their
    order, () = those of the sentences. Of each the occurrences of `first_choice` are
    shown, those of its other notable words, if they stand elsewhere too, after a click on them."""
    colours = _colours(labels or labels_of_reads(reads))
    facts = html.right_of_known((read.right for read in reads), "{} of {} right")
    return html.page_of(
        reads,
        lambda read: _whole(read, read.first_choice, colours),
        noun="sentence",
        facts=facts,
        title=title,
    )


def _colours(labels: Sequence[str]) -> dict[str, str]:
    return {label: HUES[place % len(HUES)] for place, label in enumerate(labels)}


def _whole(read: ReadSentence, chosen: int | None, colours: Mapping[str, str], *, every: bool = False) -> str:
    """Head, sentence, legend, and the occurrences of the chosen word and of those that can be clicked;
    without any of it, no word is marked as chosen."""
    lists = "" if chosen is None else _occurrences(read, chosen, colours)
    numbers = range(len(read.words)) if every else read.notable
    others = [number for number in numbers if number != chosen and read.elsewhere(number)]
    chosen, style = chosen if lists else None, _CLICK
    for number in others:
        lists += f'<div class="cdlm-o cdlm-o{number}">{_occurrences(read, number, colours)}</div>'
        style += f"div.cdlm-tagged:has(.cdlm-w{number}:checked) .cdlm-o{number}{{display:block}}"
    where = html.span(f"<bdi>{escaped(read.document)}</bdi>, sentence {read.number + 1:,}", html.MUTED)
    verdict = "" if read.right is None else f"&ensp;{html.right_or_wrong(read.right)}"
    text = "font-size:15.5px;line-height:1.95;overflow-wrap:anywhere;margin:2px 0 4px"
    sentence = f'<div style="{text}" dir="auto">{"".join(_marked(read, chosen, colours, others))}</div>'
    head = html.div(f"{where}{verdict}", "font-size:12px")
    body = f"{head}{sentence}{_legend(read, chosen, others)}{lists}"
    return html.view_html("tagged", body, style=style if others else "")


def _marked(
    read: ReadSentence, chosen: int | None, colours: Mapping[str, str], others: Sequence[int]
) -> Iterator[str]:
    """The sentence as HTML, piece by piece. Predicted spans are `mark`, missed gold ones `u`, of each word
    and each space by itself, because they may end inside a predicted span."""
    missed = _by_word([span for span in read.gold or () if span not in read.predicted])
    predicted = _by_word(read.predicted)
    for number, word in enumerate(read.words):
        span, gold = predicted.get(number), missed.get(number)
        goes_on = gold is not None and gold.first < number
        if gap := html.gap_between(read.words[number - 1].word, word.word) if number else "":
            yield _underlined(gap, colours.get(gold.label, UNKNOWN)) if goes_on else gap
        if span and span.first == number:
            yield f'<mark style="background:{colours.get(span.label, UNKNOWN)}42;{_MARK}:2px 3px">'
        text = escaped(word.word)
        if number == chosen:
            text = f'<b style="{_CHOSEN}">{text}</b>'
        elif number in others:
            text = f'<label><input type="checkbox" class="cdlm-w{number}">{text}</label>'
        yield _underlined(text, colours.get(gold.label, UNKNOWN)) if gold and text else text
        if span and span.stop == number + 1:
            sign = "" if read.gold is None else f" {SIGNS[span in read.gold]}"
            yield f" {html.span(f'{escaped(span.label)}{sign}', _CHIP)}</mark>"
        if gold and gold.stop == number + 1:
            yield f' <span style="{_CHIP}">\u25c6 gold {escaped(gold.label)}</span>'


def _by_word(spans: Sequence[TagSpan]) -> dict[int, TagSpan]:
    return {number: span for span in spans for number in range(span.first, span.stop)}


def _underlined(text: str, colour: str) -> str:
    return f'<u style="text-decoration:underline dashed 2px {colour};text-underline-offset:4px">{text}</u>'


def _legend(read: ReadSentence, chosen: int | None, others: Sequence[int]) -> str:
    """What the marks mean; of the marks those alone that are in the sentence."""
    parts = []
    if read.predicted:
        signs = "" if read.gold is None else f": {SIGNS[True]} right, {SIGNS[False]} wrong"
        parts.append(f'<mark style="background:{UNKNOWN}42;{_MARK}:1px 3px">predicted span</mark>{signs}')
    if any(span not in read.predicted for span in read.gold or ()):
        parts.append(f"{_underlined('gold span', UNKNOWN)} that was not found")
    if chosen is not None:
        parts.append(f'<b style="{_CHOSEN}">word</b> of which occurrences are shown')
    if others:
        parts.append('<span style="border-bottom:1px dotted">word</span> that stands elsewhere: click it')
    return html.legend(parts or ["no span was predicted" if read.gold is None else "no spans"])


def _occurrences(read: ReadSentence, number: int, colours: Mapping[str, str]) -> str:
    """The word, how it is tagged and how often it stands elsewhere, and below that a row for each occurrence:
    where it is, its weight as number and bar, and its sentence, cut to some words around the occurrence;
    nothing if the model attends to none at all."""
    if not any(word.occurrences for word in read.words):
        return ""
    word, span = read.words[number], _by_word(read.predicted).get(number)
    tags = escaped(word.predicted)
    tags += f", gold {escaped(word.gold)}" if word.gold not in (None, word.predicted) else ""
    about = f"{tags} &middot; {counted(read.elsewhere(number), 'occurrence')} elsewhere"
    name = html.name_html(word.word, "font-weight:600;overflow-wrap:anywhere")
    heading = f"{name}&ensp;{html.span(about, SMALL)}"
    colour = colours.get(span.label, UNKNOWN) if span else UNKNOWN
    largest = max((one.weight for one in word.occurrences), default=0.0)
    rows = []
    for one in sorted(word.occurrences, key=lambda one: (one.distance, one.sentence, one.place)):
        side = "before" if one.sentence < read.number else "after"
        where = f"{counted(one.distance, 'sentence')} {side}" if one.distance else "this sentence"
        where = html.span("here" if read.is_itself(one, number) else where, f"white-space:nowrap;{SMALL}")
        bar = html.share_bar(one.weight / (largest or 1.0), f"{100 * one.weight:.1f}%", width=48)
        mention = html.ShownMention.from_tokens(one.words, (one.place, one.place + 1))
        rows.append([where, bar, f'<div dir="auto">{html.sentence_html(mention, colour)}</div>'])
    meaning = "Number and bar: share of the attention; the bar is full at the largest."
    table = html.bare_table(rows, align="top") + html.muted(meaning, size=11.5)
    table = table if rows else html.muted("The model attended to no occurrence of this word.")
    return html.div(f"<div>{heading}</div>{table}", "margin:8px 0")


QUANTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGain:
    """By how much a system tags some words better than another one."""

    stratum: str  # which words, such as "all words" or "top 5%"
    gain: float  # difference of word-level F1, in [-1, 1]
    low: float  # bounds of its 95% interval
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
        if self.count:
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


def shares_by_tf_idf_figure(corpus: str, shares: Sequence[QuantileShare]) -> go.Figure:
    """Figure 2: the share of words of a corpus with an entity label, by TF-IDF."""
    if not shares:
        raise ValueError("there is nothing to show: shares is empty")
    for part in shares:
        check_between(f"{corpus}: share", part.share)
    figure = go.Figure()
    figure.add_scatter(
        x=[round((part.start + part.stop) / 2, 3) for part in shares],
        y=[round(100 * part.share, 3) for part in shares],
        text=[f"percentiles {p.start:.0f} to {p.stop:.0f}, n = {p.words:,} words" for p in shares],
        name=f"{charts.short_name(corpus)} (n = {sum(part.words for part in shares):,} words)",
        hovertemplate=f"{plain_text(corpus)}<br>%{{text}}<br>%{{y:.1f}}% are entities<extra></extra>",
        **charts.line_style(0),
    )
    figure.update_xaxes(range=[0, 100], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(title_text="share of entities (%)", rangemode="tozero")
    x = "TF-IDF of the word in its document (percentile)"
    title = "Share of words that are entities, by TF-IDF"
    return lay_out(figure, title=title, x=x, margin_t=88, showlegend=True)


def gain_by_tf_idf_figure(gains: Sequence[WordGain], *, system: str, other: str) -> go.Figure:
    """Figure 3: by how much `system` tags words better than `other`, over all words and over entities of high
    TF-IDF; dots with 95% intervals and their numbers, above zero where `system` is better."""
    if not gains:
        raise ValueError("there is nothing to show: gains is empty")
    places = list(range(len(gains)))
    values, lows, highs = (
        [round(100 * getattr(gain, bound), 3) for gain in gains] for bound in ("gain", "low", "high")
    )
    words = []
    for gain in gains:
        mean, low, high = map(html.points_in_words, (gain.gain, gain.low, gain.high))
        words.append(
            f"{plain_text(gain.stratum)}<br>{mean} points ({low} to {high}), n = {gain.words:,} words"
        )
    style = charts.line_style(0)
    bars = charts.interval(values, lows, highs, color=style["line"]["color"])
    dots = marks(places, values, words, error_y=bars, mode="markers", marker={**style["marker"], "size": 11})
    text = [html.points_in_words(gain.gain) for gain in gains]
    figure = go.Figure([dots, marks(places, highs, text=text, mode="text", textposition="top center")])
    labels = [plain_text(gain.stratum) + small(f"n = {gain.words:,}") for gain in gains]
    figure.update_xaxes(charts.rows_of_an_axis(labels))
    low, high = min(0.0, *lows), max(0.0, *highs)
    room = max(high - low, 0.1) / 20
    figure.update_yaxes(range=[low - room, high + 2 * room], zeroline=True)
    y = f"word F1: {charts.short_name(system)} \u2212 {charts.short_name(other)} (points)"
    title = f"Word F1 of {system} minus that of {other}, by TF-IDF"
    return lay_out(figure, title=title, y=y, margin_t=60, showlegend=False)


def weights_by_distance_figure(weights: Sequence[DistanceWeights], *, title: str) -> go.Figure:
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
        line={"color": html.GLOBAL, "width": 1.6},
        fillcolor=charts.faded(html.GLOBAL, 0.3),
        width=0.55,
        name="median, middle 50% and middle 90% of the weights",
        hoverinfo="skip",
    )
    words = []
    for one in filled.values():
        below = ", ".join(f"{at}%: {q:.3f}" for at, q in zip(QUANTILES, one.quantiles, strict=True))
        about = f"distance {plain_text(one.bucket)}, n = {one.count:,}"
        words.append(f"{about}<br>mean {one.mean:.3f}<br>{below}")
    values = [round(one.mean, 5) for one in filled.values()]
    diamonds = {"symbol": "diamond", "size": 9, "color": html.MASKED}
    means = marks(list(filled), values, words, mode="markers", marker=diamonds, name="mean")
    figure = go.Figure([boxes, means])
    labels = [plain_text(one.bucket) + small(f"n = {one.count:,}") for one in weights]
    figure.update_xaxes(charts.rows_of_an_axis(labels, room=(0.6, 0.6)))
    highest = max(max(one.mean, one.quantiles[-1]) for one in filled.values())
    figure.update_yaxes(title_text="attention weight", range=[0, 1.04 * max(highest, 0.01)])
    x = "distance in sentences, and number of occurrences"
    return lay_out(figure, title=title, x=x, margin_t=88, hovermode="x", showlegend=True)


def sweep_figure(name: str, points: Sequence[SweepPoint]) -> go.Figure:
    """Figure 5: mean F1 of a corpus or system on development documents over K, with a band of one deviation
    on either side; the best K has its number written."""
    if not points:
        raise ValueError("there is nothing to show: points is empty")
    ordered = sorted(points, key=lambda point: point.k)
    widths = [point.k for point in ordered]
    if len(set(widths)) < len(ordered):
        raise ValueError(f"{name}: two points of one K; give each once")
    style, figure = charts.line_style(0), go.Figure()
    known = [point for point in ordered if point.deviation is not None]
    if len(known) > 1:
        outline = [(p.k, p.f1 + p.deviation) for p in known]
        outline += [(p.k, p.f1 - p.deviation) for p in reversed(known)]
        xs, ys = [k for k, _ in outline], [round(100 * f1, 3) for _, f1 in outline]
        ground = {"fill": "toself", "fillcolor": charts.faded(style["line"]["color"], 0.18)}
        figure.add_trace(marks(xs, ys, **ground, mode="lines", line={"width": 0}, showlegend=False))
    best = max(ordered, key=lambda point: point.f1)
    fewest, most = min(point.seeds for point in points), max(point.seeds for point in points)
    n = counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    words = []
    for point in ordered:
        spread = "" if point.deviation is None else f" \u00b1 {100 * point.deviation:.1f}"
        f1 = f"K = {point.k}: F1 {100 * point.f1:.1f}{spread}"
        words.append(f"{plain_text(name)}<br>{f1}, {counted(point.seeds, 'seed')}")
    f1s = [round(100 * point.f1, 3) for point in ordered]
    numbers = [f"{100 * point.f1:.1f}" if point is best else "" for point in ordered]
    style |= {"mode": "lines+markers+text", "textposition": "top center", "text": numbers}
    figure.add_trace(marks(widths, f1s, words, name=f"{charts.short_name(name)} (n = {n})", **style))
    figure.update_xaxes(tickvals=widths, showgrid=False)
    x, y = "K: occurrences that a word may attend to", "F1 on development documents (%)"
    title = "F1 by the number of occurrences attended to"
    return lay_out(figure, title=title, x=x, y=y, margin_t=88, showlegend=True)
