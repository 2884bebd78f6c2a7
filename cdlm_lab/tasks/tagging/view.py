"""Tagged sentences, and for one word of each its other occurrences in the document, nearest first, with the
attention weight of each occurrence (Joerke et al. 2020, equation 3); the figures of tagging.

Predicted spans have a coloured background and are followed by their label; missed gold spans are underlined
and labelled. Every colour has a word beside it; all texts are untrusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from ipywidgets import HTML, Widget

from cdlm_lab.data.records import KINDS, TaggedDocument
from cdlm_lab.data.tags import OUTSIDE, TagSpan, spans_of
from cdlm_lab.encoders.frozen import ENDS
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.runs import write_page
from cdlm_lab.tasks.tagging.examples import BUCKETS, TagExample
from cdlm_lab.tasks.tagging.experiment import (
    Predictions,
    TaggingRun,
    corpus_facts,
    shortened_words,
)
from cdlm_lab.tasks.tagging.systems import TAG_SYSTEMS, TagPredictions
from cdlm_lab.views import charts, html, score_tables
from cdlm_lab.views.before_training import cost_facts, facts_table
from cdlm_lab.views.browse import Leafing, has_value
from cdlm_lab.views.charts import lay_out, plain_text, small
from cdlm_lab.views.figures import folder_of, keep_figure
from cdlm_lab.views.html import HUES, SIGNS, UNKNOWN, escaped, one_line
from cdlm_lab.views.score_tables import Layout, each
from cdlm_lab.views.tables import ScoreTable, published, seeds, text_table
from cdlm_lab.views.templates import view

LABELS = {name: system.label for name, system in TAG_SYSTEMS.items()}
LAYOUT = Layout(
    shown=[
        *each({"precision": "precision", "recall": "recall", "f1": "span F1"}),
        seeds(),
        *(
            published(
                corpus,
                *(("doc-arc", table) for table in "234"),
                columns=("f1",),
                below="paper: F1 (SD)",
                deviations=True,
            )
            for corpus in ("LitBank", "JNLPBA", "OntoNotes1000")
        ),
    ],
    size=lambda report, split, _: (report.data["documents"][split], str(report.data["facts"][split])),
    labels=lambda _: LABELS,
    note="All in per cent. A span is right if its words and its label are.",
    paper="Paper: Joerke et al. 2020, test F1 as mean and standard deviation of 5 runs (Table 2: a "
    "frozen BERT base; Table 3: a trained BERT tiny; Table 4: a fine-tuned BERT base); not to be "
    "compared with other encoders or other parts of the documents.",
)

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

    @property
    def mention(self) -> html.ShownMention:
        """The occurrence in its sentence."""
        return html.ShownMention.from_tokens(self.words, (self.place, self.place + 1))


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
        and names alike, have as many as a model may attend to); punctuation comes last. None = no word is
        notable."""

        def size(number: int) -> tuple[bool, int, int]:
            word = self.words[number]
            return any(map(str.isalnum, word.word)), len(word.occurrences), len(word.word)

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


def tagged_sentence_html(read: ReadSentence, *, labels: Sequence[str], every: bool = False) -> str:
    """Return the sentence with its spans, and the occurrences of its `first_choice`, nearest first. A click
    on another notable word (`every`: on any word) with other occurrences shows these. `labels`: all labels of
    the documents in the order of their colours, so that a label has the same colour in all sentences."""
    return _whole(read, _colours(labels), every=every)


def tagged_sentences_html(reads: Sequence[ReadSentence], *, labels: Sequence[str]) -> str:
    """Return several sentences of a text below one legend, each as `tagged_sentence_html` with `every`."""
    choices = [(read, *_clickable(read, every=True)) for read in reads]
    parts = (_whole(read, _colours(labels), every=True, alone=False) for read in reads)
    return _legend(choices) + "".join(parts)


def tagged_page(reads: Sequence[ReadSentence], *, title: str, labels: Sequence[str] = ()) -> str:
    """Return a page with all sentences, in the order given. `labels`: the labels that have a colour, in
    order; () = those of the sentences. The occurrences of each sentence's `first_choice` are shown, those of
    other notable words after a click on the word, if there are any elsewhere."""
    colours = _colours(labels or labels_of_reads(reads))
    facts = html.right_of_known((read.right for read in reads), "{} of {} right")
    return html.page_of(
        reads,
        lambda read: _whole(read, colours),
        noun="sentence",
        facts=facts,
        title=title,
    )


def _colours(labels: Sequence[str]) -> dict[str, str]:
    return {label: HUES[place % len(HUES)] for place, label in enumerate(labels)}


def _clickable(read: ReadSentence, *, every: bool) -> tuple[int | None, list[int]]:
    """Return the word whose occurrences are shown, None if there are none to show, and those to click."""
    chosen, numbers = read.first_choice, range(len(read.words)) if every else read.notable
    others = [number for number in numbers if number != chosen and read.elsewhere(number)]
    return chosen if any(word.occurrences for word in read.words) else None, others


def _whole(read: ReadSentence, colours: Mapping[str, str], *, every: bool = False, alone: bool = True) -> str:
    """Return head, sentence, legend (if `alone`), and the occurrences of the chosen word and of the words
    that can be clicked. Without occurrences to show, no word is marked as chosen."""
    chosen, others = _clickable(read, every=every)
    opened = "div.cdlm-tagged:has(.cdlm-w{0}:checked) .cdlm-o{0}{{display:block}}"
    predicted = _by_word(read.predicted)

    def colour_of(number: int) -> str:
        return colours.get(predicted[number].label, UNKNOWN) if number in predicted else UNKNOWN

    return view(
        "tagged",
        "tasks/tagging/sentence.html.jinja",
        style=_CLICK + "".join(map(opened.format, others)) if others else "",
        read=read,
        chosen=chosen,
        others=others,
        colour_of=colour_of,
        sentence="".join(_marked(read, chosen, colours, others)),
        marks=_legend([(read, chosen, others)]) if alone else "",
    )


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


# ---- figures from the tables in a report of notebook 07 ----

Rows = Sequence[Mapping[str, Any]]  # rows of a table, as in the report


def shares_by_tf_idf_figure(corpus: str, shares: Rows) -> go.Figure:
    """Plot the share of a corpus's words with an entity label by TF-IDF (Joerke et al. 2020, Figure 2)."""
    table = pd.DataFrame(shares)
    table["percentile"], table["entities"] = (table["start"] + table["stop"]) / 2, 100 * table["share"]
    form = {"markers": True, "color_discrete_sequence": HUES, "hover_data": ["start", "stop", "words"]}
    figure = px.line(table, x="percentile", y="entities", **form)
    figure.update_xaxes(range=[0, 100], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(rangemode="tozero")
    axes = {"x": "TF-IDF of the word in its document (percentile)", "y": "share of entities (%)"}
    n = f"{table['words'].sum():,} words of {corpus}"
    return lay_out(figure, title=f"Share of words that are entities, by TF-IDF ({n})", **axes)


def gain_by_tf_idf_figure(gains: Rows, *, system: str, other: str) -> go.Figure:
    """Plot word F1 of `system` minus that of `other`, over all words and over entities of high TF-IDF, with
    95% intervals (Joerke et al. 2020, Figure 3). Above zero `system` is better."""
    table = 100 * pd.DataFrame(gains)[["difference", "low", "high"]]
    table["words"] = [plain_text(row["words"]) + small(f"n = {row['occurrences']:,}") for row in gains]
    table["above"], table["below"] = table["high"] - table["difference"], table["difference"] - table["low"]
    form = {"error_y": "above", "error_y_minus": "below", "color_discrete_sequence": HUES}
    text = [html.points_in_words(row["difference"]) for row in gains]
    figure = px.scatter(table, x="words", y="difference", text=text, **form)
    figure.update_traces(textposition="top right", marker_size=11)
    figure.update_yaxes(zeroline=True)
    y = f"word F1: {charts.short_name(system)} \u2212 {charts.short_name(other)} (points)"
    title = f"Word F1 of {system} minus that of {other}, by TF-IDF"
    return lay_out(figure, title=title, x=" ", y=y)


def weights_by_distance_figure(weights: Rows, *, buckets: Sequence[str], title: str) -> go.Figure:
    """Plot attention weights by distance (Joerke et al. 2020, Figure 4). `buckets`: names of the ranges of
    distances that the rows index, such as "4-7". Dashed lines are means. No single weights are drawn."""
    names = [plain_text(buckets[row["bucket"]]) + small(f"n = {row['count']:,}") for row in weights]
    form = {"x": "distance in sentences, and number of occurrences", "y": "attention weight"}
    quantiles, means = ([row[name] for row in weights] for name in ("quantiles", "mean"))
    return charts.box_figure(names, quantiles, mean=means, title=title, **form)


def sweep_figure(name: str, sweep: Rows) -> go.Figure:
    """Plot the mean F1 over seeds of a corpus or system on development documents, by the number K of
    occurrences that a word may attend to, with bars of one standard deviation on either side (Joerke et al.
    2020, Figure 5)."""
    table = pd.DataFrame(sweep).groupby("occurrences")["f1"].agg(["mean", "std", "count"]).reset_index()
    table[["mean", "std"]] *= 100
    form = {"text": table["mean"].map("{:.1f}".format), "color_discrete_sequence": HUES}
    figure = px.line(table, x="occurrences", y="mean", error_y="std", hover_data=["count"], **form)
    figure.update_traces(mode="lines+markers+text", textposition="top center")
    figure.update_xaxes(tickvals=table["occurrences"].tolist())
    axes = {"x": "K: occurrences that a word may attend to", "y": "F1 on development documents (%)"}
    return lay_out(figure, title=f"{name}: F1 by the number of occurrences attended to", **axes)


SHOWN_OF_OWN = 40  # most sentences shown below the input box


def tagged_sentences(predictions: TagPredictions, *, known: bool = True) -> list[ReadSentence]:
    """Each labelled sequence with its tags and the occurrences that were attended to; `known`: False = the
    tags in the documents are not gold."""
    examples, reads = predictions.examples, []
    names = [
        html.document_name(one.document.id, html.joined(one.document.sentences[0].words))
        for one in examples.documents
    ]
    for number, start in enumerate(predictions.starts[:-1].tolist()):
        example, words = examples[number], []
        document = examples.documents[example.document].document
        for place, word in enumerate(example.words):
            gold = examples.tags[example.labels[place]] if known else None
            predicted = examples.tags[predictions.tags[start + place]]
            occurrences = _attended(predictions, example, document, place, row=start + place)
            words.append(ReadWord(word=word, gold=gold, predicted=predicted, occurrences=occurrences))
        name = names[example.document]
        reads.append(ReadSentence(document=name, number=example.sentence, words=tuple(words)))
    return reads


def _attended(
    predictions: TagPredictions, example: TagExample, document: TaggedDocument, place: int, *, row: int
) -> tuple[ReadOccurrence, ...]:
    if predictions.weights is None:
        return ()
    weights = zip(example.places[place].tolist(), predictions.weights[row], strict=True)
    return tuple(
        ReadOccurrence(
            words=document.sentences[sentence].words,
            place=at,
            distance=abs(sentence - example.sentence),
            weight=float(weight),
            sentence=sentence,
        )
        for (sentence, at), weight in weights
        if sentence >= 0
    )


def tags_html(reads: Sequence[ReadSentence], *, labels: Sequence[str]) -> str:
    """All sentences of a short text, otherwise the first ones with a predicted span."""
    shown = reads
    if len(reads) > SHOWN_OF_OWN:
        shown = ([read for read in reads if read.predicted] or reads)[:SHOWN_OF_OWN]
    left = len(reads) - len(shown)
    more = html.muted(f"{html.counted(left, 'sentence')} more, not shown here.") if left else ""
    return tagged_sentences_html(shown, labels=labels) + more


def preview(run: TaggingRun) -> HTML:
    """The documents and what training will cost; encodes no more than one batch."""
    return facts_table(corpus_facts(run) + cost_facts(run) + shortened_facts(run))


def shortened_facts(run: TaggingRun) -> list[tuple[str, str]]:
    """For each system that truncates long words, how many, as (name, text)."""
    rows, room = [], run.settings.most_tokens - ENDS
    for system in run.systems:
        if cut := sum(shortened_words(run, run.examples(run.first(system))["train"]).values()):
            rows.append((f"{system.label}: cut", f"of {cut:,} long words the first {room} pieces are read"))
    return rows


def score_table(report: Report, split: str = "test") -> ScoreTable:
    """Precision, recall and F1 of each system outside the sweep; on test beside the paper's scores."""
    return score_tables.score_table(report, LAYOUT, split=split, caption=f"{_folder_name(report)}, {split}")


def mention_tables(report: Report) -> list[ScoreTable]:
    """Of a corpus of mentions the scores on test by kind, of whole mentions and of their last words."""
    scores = {"precision": "precision", "recall": "recall", "f1": "F1", "last_word_f1": "F1 of the last word"}
    layout = replace(LAYOUT, shown=[*each(scores), seeds()])
    kinds = dict.fromkeys(row.group for row in report.rows if row.group in KINDS)
    return [score_tables.score_table(report, layout, group=one, caption=one) for one in kinds]


def _folder_name(report: Report) -> str:
    return Path(report.data["corpus"]).name


def comparison_table(report: Report) -> ScoreTable:
    """The significance tests of a report."""
    return score_tables.comparison_table(report, LABELS, {"f1": "difference of F1 [95%]"})


def top_table(report: Report) -> ScoreTable:
    """The entities with the highest TF-IDF (Table 5)."""
    rows = [[row["word"], ", ".join(row["labels"])] for row in report.tables["top"]]
    return text_table(["word", "tagged as"], rows, texts=2)


def figures(report: Report) -> list[go.Figure]:
    """Figures 2 to 5, in this order; those for which the run has no numbers are left out."""
    corpus = _folder_name(report)
    shown = [shares_by_tf_idf_figure(corpus, report.tables["shares"])]
    for (a, b), gains in _grouped(report, "gains", "a", "b"):
        names = {"system": TAG_SYSTEMS[a].label, "other": TAG_SYSTEMS[b].label}
        shown.append(gain_by_tf_idf_figure(gains, **names))
    for (system,), weights in _grouped(report, "weights", "system"):
        title = f"Attention weight of occurrences, by distance: {TAG_SYSTEMS[system].label}"
        shown.append(weights_by_distance_figure(weights, buckets=BUCKETS, title=title))
    if len({row["occurrences"] for row in report.tables["sweep"]}) > 1:
        shown.append(sweep_figure(corpus, report.tables["sweep"]))
    folder = folder_of(report)
    return [keep_figure(folder, f"{n}-{one.layout.title.text}", one) for n, one in enumerate(shown, start=1)]


def _grouped(report: Report, table: str, *by: str) -> Iterable[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """The rows of a table grouped by the values of some columns."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in report.tables[table]:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return groups.items()


ON_A_PAGE = 100


def tags_in_place(run: TaggingRun, predictions: Predictions) -> Widget:
    """A browser of the dev sentences; the first ON_A_PAGE with a span also go to `html` in the run
    folder, which opens without a kernel."""
    of_dev = predictions[run.shown.key]["dev"]
    reads, labels = tagged_sentences(of_dev), of_dev.labels
    _write_page(run, "tagged", reads, title="Tagged sentences", labels=labels)
    browser = tagged_browser(reads, labels=labels)
    # The first sentence is a headline, mostly without a name.
    browser.picker.value = next((n for n, read in enumerate(reads) if read.first_choice is not None), 0)
    return browser


def _write_page(
    run: TaggingRun, name: str, reads: Sequence[ReadSentence], *, title: str, **form: Any
) -> None:
    shown = [read for read in reads if read.predicted or read.gold] or reads
    page = tagged_page(shown[:ON_A_PAGE], title=title, **form)
    write_page(run.folder / f"{name}.html", page)


LONGEST_PART = 40  # characters of a document's name in the list of documents


def tagged_browser(reads: Sequence[ReadSentence], *, labels: Sequence[str] = ()) -> Leafing:
    """A browser of tagged sentences, filtered by correctness and document; a click on a word shows its other
    occurrences. A sentence is right if exactly its gold spans were predicted; "with entities" passes those
    with a gold or predicted span. `labels`: those with a colour, in order; () = those of the sentences."""
    labels = labels or labels_of_reads(reads)
    documents = enumerate(dict.fromkeys(read.document for read in reads), start=1)
    tagged = {"wrong": has_value("right", False), "right": has_value("right", True)}
    return Leafing(
        reads,
        noun="sentence",
        filters={
            "show": tagged | {"with entities": lambda read: bool(read.predicted or read.gold)},
            # Numbered, so that names differ from each other and from "all".
            "document": {f"{n}. {one_line(d, LONGEST_PART)}": has_value("document", d) for n, d in documents},
        },
        text=lambda read: html.joined(word.word for word in read.words),
        right=lambda read: read.right,
        html=lambda read: tagged_sentence_html(read, labels=labels, every=True),
        wide={"document": ("min(420px, 100%)", "68px")},
    )
