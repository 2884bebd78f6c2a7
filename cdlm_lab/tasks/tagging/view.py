"""Tagged sentences, and for one word of each its other occurrences in the document, nearest first, with the
attention weight of each occurrence (Joerke et al. 2020, equation 3); the figures of tagging.

Predicted spans have a coloured background and are followed by their label; missed gold spans are underlined
and labelled. Every colour has a word beside it; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cdlm_lab.data.tags import OUTSIDE, TagSpan, spans_of
from cdlm_lab.tasks.tagging.tf_idf import QUANTILES
from cdlm_lab.views import charts, html
from cdlm_lab.views.browse import Leafing, choices, fill_list, has_value
from cdlm_lab.views.charts import lay_out, marks, plain_text, small
from cdlm_lab.views.html import HUES, SIGNS, SMALL, UNKNOWN, counted, escaped, joined, one_line, visible

_PART = 40  # characters of a word, or of a document's name, in their lists
_SLACK = 1e-3  # tolerance for weights above 1, which half precision may produce
_CHIP = "font-size:10.5px;font-weight:700;white-space:nowrap;letter-spacing:0.02em"
_CHOSEN = "font-weight:700;border:1px solid;border-radius:3px;padding:0 2px"
_MARK = "color:inherit;border-radius:3px;padding"
# A word is the label of a check box: a click shows its occurrences, without a kernel and without a script.
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

    words: tuple[str, ...]  # words of the sentence that contains the occurrence
    place: int  # index of the occurrence in `words`
    distance: int  # distance in sentences, as the model counts them; 0 = in the same sentence
    weight: float  # attention weight of the occurrence, in [0, 1]
    sentence: int  # index of that sentence in the document, from 0

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
    # The occurrences that the model attended to, possibly this word itself; () = it attends to none.
    occurrences: tuple[ReadOccurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSentence:
    """A tagged sentence, at index `number` of its document; all of its words have gold tags or none has."""

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
        """Whether exactly the gold spans were predicted; None = the gold spans are not known."""
        return None if self.gold is None else self.predicted == self.gold

    @property
    def notable(self) -> tuple[int, ...]:
        """Indices of the words that are predicted to be in a span, or tagged wrongly."""
        return tuple(
            number
            for number, word in enumerate(self.words)
            if word.predicted != OUTSIDE or word.gold not in (None, word.predicted)
        )

    @property
    def first_choice(self) -> int | None:
        """Index of the notable word with the most occurrences, of ties the longest (all frequent words, "of"
        and names alike, have as many as a model may attend to); None = no word is notable."""

        def size(number: int) -> tuple[int, int]:
            return len(self.words[number].occurrences), len(self.words[number].word)

        return max(self.notable, key=size, default=None)

    def is_itself(self, occurrence: ReadOccurrence, number: int) -> bool:
        """Return whether an occurrence of the word of index `number` is that word itself."""
        place = occurrence.distance, occurrence.sentence, occurrence.place
        return place == (0, self.number, number)

    def elsewhere(self, number: int) -> int:
        """Return how many occurrences of word `number` were attended to, not counting the word itself."""
        return sum(not self.is_itself(one, number) for one in self.words[number].occurrences)


def labels_of_reads(reads: Iterable[ReadSentence]) -> tuple[str, ...]:
    """Return the labels of all gold and predicted spans of the sentences, sorted."""
    return tuple(sorted({span.label for read in reads for span in (*read.predicted, *(read.gold or ()))}))


def tagged_sentence_html(
    read: ReadSentence, *, labels: Sequence[str], chosen: int | None = None, every: bool = False
) -> str:
    """Return the sentence with its spans, and the occurrences of one word, nearest first. `chosen`: index of
    that word; None = `first_choice` of the sentence. A click on another notable word (`every`: on any word)
    with other occurrences shows these. `labels`: all labels of the documents in the order of their colours,
    so that a label has the same colour in all sentences. Raises ValueError if `chosen` is no word's index."""
    if chosen is not None and not 0 <= chosen < len(read.words):
        raise ValueError(f"chosen is {chosen}; the sentence has words 0 to {len(read.words) - 1}")
    return _whole(read, read.first_choice if chosen is None else chosen, _colours(labels), every=every)


def tagged_sentences_html(reads: Sequence[ReadSentence], *, labels: Sequence[str]) -> str:
    """Return several sentences of a text below one legend, each as `tagged_sentence_html` with `every`."""
    choices = [(read, *_clickable(read, read.first_choice, every=True)) for read in reads]
    parts = (_whole(read, read.first_choice, _colours(labels), every=True, alone=False) for read in reads)
    return _legend(choices) + "".join(parts)


def tagged_page(
    reads: Sequence[ReadSentence], *, title: str, labels: Sequence[str] = (), foreign: str = ""
) -> str:
    """Return a page with all sentences, in the order given. `labels`: the labels that have a colour, in
    order; () = those of the sentences. The occurrences of each sentence's `first_choice` are shown, those of
    other notable words after a click on the word, if there are any elsewhere. `foreign`: a warning above
    them."""
    colours = _colours(labels or labels_of_reads(reads))
    facts = html.right_of_known((read.right for read in reads), "{} of {} right")
    return html.page_of(
        reads,
        lambda read: _whole(read, read.first_choice, colours),
        noun="sentence",
        facts=facts,
        title=title,
        foreign=foreign,
    )


def _colours(labels: Sequence[str]) -> dict[str, str]:
    return {label: HUES[place % len(HUES)] for place, label in enumerate(labels)}


def _clickable(read: ReadSentence, chosen: int | None, *, every: bool) -> tuple[int | None, list[int]]:
    """Return the word whose occurrences are shown, None if there are none to show, and those to click."""
    numbers = range(len(read.words)) if every else read.notable
    others = [number for number in numbers if number != chosen and read.elsewhere(number)]
    return chosen if any(word.occurrences for word in read.words) else None, others


def _whole(
    read: ReadSentence,
    chosen: int | None,
    colours: Mapping[str, str],
    *,
    every: bool = False,
    alone: bool = True,
) -> str:
    """Return head, sentence, legend (if `alone`), and the occurrences of the chosen word and of the words
    that can be clicked. Without occurrences to show, no word is marked as chosen."""
    chosen, others = _clickable(read, chosen, every=every)
    lists, style = "" if chosen is None else _occurrences(read, chosen, colours), _CLICK
    for number in others:
        lists += f'<div class="cdlm-o cdlm-o{number}">{_occurrences(read, number, colours)}</div>'
        style += f"div.cdlm-tagged:has(.cdlm-w{number}:checked) .cdlm-o{number}{{display:block}}"
    where = html.span(f"<bdi>{escaped(read.document)}</bdi>, sentence {read.number + 1:,}", html.MUTED)
    verdict = "" if read.right is None else f"&ensp;{html.right_or_wrong(read.right)}"
    text = "font-size:15.5px;line-height:1.95;overflow-wrap:anywhere;margin:2px 0 4px"
    sentence = f'<div style="{text}" dir="auto">{"".join(_marked(read, chosen, colours, others))}</div>'
    head = html.div(f"{where}{verdict}", "font-size:12px")
    legend = _legend([(read, chosen, others)]) if alone else ""
    body = f"{head}{sentence}{legend}{lists}"
    return html.view_html("tagged", body, style=style if others else "")


def _marked(
    read: ReadSentence, chosen: int | None, colours: Mapping[str, str], others: Sequence[int]
) -> Iterator[str]:
    """Yield the sentence as pieces of HTML. Predicted spans are `mark` elements; missed gold spans are `u`
    elements around each word and each space separately, because they may end inside a predicted span."""
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


def _legend(shown: Sequence[tuple[ReadSentence, int | None, Sequence[int]]]) -> str:
    """Return a legend of those marks that occur in sentences, given with chosen and clickable words."""
    parts, reads = [], [read for read, _, _ in shown]
    known = any(read.gold is not None for read in reads)
    if any(read.predicted for read in reads):
        signs = f": {SIGNS[True]} right, {SIGNS[False]} wrong" if known else ""
        parts.append(f'<mark style="background:{UNKNOWN}42;{_MARK}:1px 3px">predicted span</mark>{signs}')
    if any(span not in read.predicted for read in reads for span in read.gold or ()):
        parts.append(f"{_underlined('gold span', UNKNOWN)} that was not found")
    if any(chosen is not None for _, chosen, _ in shown):
        parts.append(f'<b style="{_CHOSEN}">word</b> of which occurrences are shown')
    if any(others for _, _, others in shown):
        parts.append('<span style="border-bottom:1px dotted">word</span> that stands elsewhere: click it')
    return html.legend(parts or ["no spans" if known else "no span was predicted"])


def _occurrences(read: ReadSentence, number: int, colours: Mapping[str, str]) -> str:
    """Return a word with its tags and its number of other occurrences, then a row for each occurrence: its
    place, its weight as number and bar, and its sentence, truncated around the occurrence. "" if the model
    attends to no occurrences in the whole sentence."""
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


# ---- figures from the tables in a report of notebook 07 ----

Rows = Sequence[Mapping[str, Any]]  # rows of a table, as in the report


def _refuse_empty(rows: Rows, table: str) -> None:
    if not rows:
        raise ValueError(f"there is nothing to show: {table} is empty")


def shares_by_tf_idf_figure(corpus: str, shares: Rows) -> go.Figure:
    """Plot the share of a corpus's words with an entity label by TF-IDF (Joerke et al. 2020, Figure 2)."""
    _refuse_empty(shares, "shares")
    ends = [(row["start"], row["stop"]) for row in shares]
    figure = go.Figure()
    figure.add_scatter(
        x=[round((start + stop) / 2, 3) for start, stop in ends],
        y=[round(100 * row["share"], 3) for row in shares],
        text=[
            f"percentiles {start:.0f} to {stop:.0f}, n = {row['words']:,} words"
            for (start, stop), row in zip(ends, shares, strict=True)
        ],
        name=f"{charts.short_name(corpus)} (n = {sum(row['words'] for row in shares):,} words)",
        hovertemplate=f"{plain_text(corpus)}<br>%{{text}}<br>%{{y:.1f}}% are entities<extra></extra>",
        **charts.line_style(0),
    )
    figure.update_xaxes(range=[0, 100], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(title_text="share of entities (%)", rangemode="tozero")
    x = "TF-IDF of the word in its document (percentile)"
    title = "Share of words that are entities, by TF-IDF"
    return lay_out(figure, title=title, x=x, margin_t=88, showlegend=True)


def gain_by_tf_idf_figure(gains: Rows, *, system: str, other: str) -> go.Figure:
    """Plot word F1 of `system` minus that of `other`, over all words and over entities of high TF-IDF, with
    95% intervals (Joerke et al. 2020, Figure 3). Above zero `system` is better."""
    _refuse_empty(gains, "gains")
    places = list(range(len(gains)))
    bounds = ("difference", "low", "high")
    values, lows, highs = ([round(100 * row[bound], 3) for row in gains] for bound in bounds)
    words, text, labels = [], [], []
    for row in gains:
        mean, low, high = (html.points_in_words(row[bound]) for bound in bounds)
        name, n = plain_text(row["words"]), f"n = {row['occurrences']:,}"
        words.append(f"{name}<br>{mean} points ({low} to {high}), {n} words")
        text.append(mean)
        labels.append(name + small(n))
    style = charts.line_style(0)
    bars = charts.interval(values, lows, highs, color=style["line"]["color"])
    dots = marks(places, values, words, error_y=bars, mode="markers", marker={**style["marker"], "size": 11})
    # Beside the dots, on the side that is away from the line at zero.
    sides = ["top right" if value >= 0 else "bottom right" for value in values]
    figure = go.Figure([dots, marks(places, values, text=text, mode="text", textposition=sides)])
    figure.update_xaxes(charts.rows_of_an_axis(labels))
    low, high = min(0.0, *lows), max(0.0, *highs)
    room = max(high - low, 0.1) / 20
    figure.update_yaxes(range=[low - room, high + 2 * room], zeroline=True)
    y = f"word F1: {charts.short_name(system)} \u2212 {charts.short_name(other)} (points)"
    title = f"Word F1 of {system} minus that of {other}, by TF-IDF"
    return lay_out(figure, title=title, y=y, margin_t=60, showlegend=False)


def weights_by_distance_figure(weights: Rows, *, buckets: Sequence[str], title: str) -> go.Figure:
    """Plot attention weights by distance (Joerke et al. 2020, Figure 4). `buckets`: names of the ranges of
    distances that the rows index, such as "4-7". Boxes reach from the 25th to the 75th percentile with a line
    at the median, whiskers from the 5th to the 95th; diamonds are means. Single weights are not drawn."""
    _refuse_empty(weights, "weights")
    places = [row["bucket"] for row in weights]
    names = ("lowerfence", "q1", "median", "q3", "upperfence")
    quantiles = zip(*(row["quantiles"] for row in weights), strict=True)
    boxes = go.Box(
        x=places,
        **{name: [round(q, 5) for q in of] for name, of in zip(names, quantiles, strict=True)},
        line={"color": html.GLOBAL, "width": 1.6},
        fillcolor=charts.faded(html.GLOBAL, 0.3),
        width=0.55,
        name="median, middle 50% and middle 90% of the weights",
        hoverinfo="skip",
    )
    words, counts = [], dict.fromkeys(range(len(buckets)), 0)
    for row in weights:
        counts[row["bucket"]] = row["count"]
        below = ", ".join(f"{at:.0%}: {q:.3f}" for at, q in zip(QUANTILES, row["quantiles"], strict=True))
        about = f"distance {plain_text(buckets[row['bucket']])}, n = {row['count']:,}"
        words.append(f"{about}<br>mean {row['mean']:.3f}<br>{below}")
    values = [round(row["mean"], 5) for row in weights]
    diamonds = {"symbol": "diamond", "size": 9, "color": html.MASKED}
    means = marks(places, values, words, mode="markers", marker=diamonds, name="mean")
    figure = go.Figure([boxes, means])
    labels = [plain_text(buckets[place]) + small(f"n = {count:,}") for place, count in counts.items()]
    figure.update_xaxes(charts.rows_of_an_axis(labels, room=(0.6, 0.6)))
    highest = max(max(row["mean"], row["quantiles"][-1]) for row in weights)
    figure.update_yaxes(title_text="attention weight", range=[0, 1.04 * max(highest, 0.01)])
    x = "distance in sentences, and number of occurrences"
    return lay_out(figure, title=title, x=x, margin_t=88, hovermode="x", showlegend=True)


def sweep_figure(name: str, sweep: Rows) -> go.Figure:
    """Plot the mean F1 over seeds of a corpus or system on development documents, by the number K of
    occurrences that a word may attend to, with a band of one standard deviation on either side (Joerke et al.
    2020, Figure 5). The best mean is labelled with its value."""
    _refuse_empty(sweep, "sweep")
    of_seeds = pd.DataFrame(sweep).groupby("occurrences")["f1"].agg(["mean", "std", "count"])
    style, figure = charts.line_style(0), go.Figure()
    known = of_seeds.dropna()
    if len(known) > 1:
        upper, lower = known["mean"] + known["std"], (known["mean"] - known["std"])[::-1]
        xs, ys = [*upper.index, *lower.index], [round(100 * f1, 3) for f1 in (*upper, *lower)]
        ground = {"fill": "toself", "fillcolor": charts.faded(style["line"]["color"], 0.18)}
        figure.add_trace(marks(xs, ys, **ground, mode="lines", line={"width": 0}, showlegend=False))
    words = []
    for k, f1, deviation, seeds in of_seeds.itertuples():
        spread = "" if math.isnan(deviation) else f" \u00b1 {100 * deviation:.1f}"
        words.append(f"{plain_text(name)}<br>K = {k}: F1 {100 * f1:.1f}{spread}, {counted(seeds, 'seed')}")
    widths, best = of_seeds.index.tolist(), of_seeds["mean"].idxmax()
    numbers = [f"{100 * f1:.1f}" if k == best else "" for k, f1 in of_seeds["mean"].items()]
    style |= {"mode": "lines+markers+text", "textposition": "top center", "text": numbers}
    fewest, most = of_seeds["count"].min(), of_seeds["count"].max()
    n = counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    f1s = [round(100 * f1, 3) for f1 in of_seeds["mean"]]
    figure.add_trace(marks(widths, f1s, words, name=f"{charts.short_name(name)} (n = {n})", **style))
    figure.update_xaxes(tickvals=widths, showgrid=False)
    x, y = "K: occurrences that a word may attend to", "F1 on development documents (%)"
    title = "F1 by the number of occurrences attended to"
    return lay_out(figure, title=title, x=x, y=y, margin_t=88, showlegend=True)


class TaggedBrowser(Leafing):
    """Browser of tagged sentences, filtered by correctness and document. The list `words` has the words of
    the current sentence; its value is a word's index, None = none. Below is the sentence with the occurrences
    of that word. The list is disabled if the model attended to no occurrences. A sentence is right if exactly
    its gold spans were predicted; "with entities" passes those with a gold or predicted span. `labels`: those
    with a colour, in order; () = those of the sentences."""

    def __init__(self, reads: Sequence[ReadSentence], *, labels: Sequence[str] = ()) -> None:
        self._read: ReadSentence | None = None
        labels = labels or labels_of_reads(reads)
        self.words = choices("word", (), "min(520px, 100%)", "56px")
        documents = enumerate(dict.fromkeys(read.document for read in reads), start=1)
        tagged = {"wrong": has_value("right", False), "right": has_value("right", True)}
        super().__init__(
            reads,
            noun="sentence",
            filters={
                "show": tagged | {"with entities": lambda read: bool(read.predicted or read.gold)},
                # Numbered, so that names differ from each other and from "all".
                "document": {f"{n}. {one_line(d, _PART)}": has_value("document", d) for n, d in documents},
            },
            text=lambda read: joined(word.word for word in read.words),
            right=lambda read: read.right,
            html=lambda read: tagged_sentence_html(read, chosen=self.words.value, labels=labels, every=True),
            wide={"document": ("min(420px, 100%)", "68px")},
        )
        self.children = [*self.children[:-1], self.words, self.view]
        self.words.observe(lambda change: self._choose_word(), names="value")

    def show_item(self, item: ReadSentence | None) -> None:
        """Show another sentence and list its words; None = no sentence passes the filters."""
        self._read = None  # nothing is drawn while the list of words is refilled
        entries, first, words = [], None if item is None else item.first_choice, item.words if item else ()
        if item is not None and first is None:
            entries.append(("choose a word", None))
        for n, word in enumerate(words):
            name = f"{n + 1}. {one_line(word.word, _PART)}"
            entries.append(
                (f"{name} \u00b7 {visible(word.predicted)} \u00b7 {item.elsewhere(n):,} elsewhere", n)
            )
        fill_list(self.words, entries, first)
        self.words.disabled = not any(word.occurrences for word in words)
        self._read = item
        super().show_item(item)

    def _choose_word(self) -> None:
        if self._read is not None:
            super().show_item(self._read)
