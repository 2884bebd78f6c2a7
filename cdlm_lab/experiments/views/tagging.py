"""What notebook 07 shows: the tables and figures of its report (Doc-ARC sections 4 and 5), and sentences to
read as they were tagged, of dev or of a text of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from ipywidgets import Widget

from cdlm_lab.data.document_pairs import split_sentences
from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.records import token_spans
from cdlm_lab.data.tagged import OUTSIDE, TaggedDocument, TaggedSentence
from cdlm_lab.examples.tagging import BUCKETS, TagExample
from cdlm_lab.experiments.runs import SystemRun, write_page
from cdlm_lab.experiments.scoring import comparison_cells
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS, Tagger, TagPredictions
from cdlm_lab.report import Report
from cdlm_lab.widgets import score_tables, tagged
from cdlm_lab.widgets.ask import own_text_box
from cdlm_lab.widgets.browse import TaggedBrowser
from cdlm_lab.widgets.export.figures import folder_of, keep_figure
from cdlm_lab.widgets.html import counted, document_name, joined, muted
from cdlm_lab.widgets.tables import ScoreTable, text_table


def score_table(report: Report, split: str = "test") -> ScoreTable:
    """Precision, recall and F1 of each system that is not of the sweep, on test beside the paper's."""
    labels = {name: system.label for name, system in TAG_SYSTEMS.items()}
    return score_tables.score_table(
        report, labels=labels, split=split, caption=f"{_folder_name(report)}, {split}"
    )


def _folder_name(report: Report) -> str:
    return Path(report.data["corpus"]).name


def comparison_table(report: Report) -> ScoreTable:
    """The tests of a report."""
    rows = []
    for row in report.tables["comparisons"]:
        labels = [TAG_SYSTEMS[row[side]].label for side in ("a", "b")]
        rows.append([*labels, *comparison_cells(row)[:2]])
    columns = ["system", "against", "difference of F1 [95%]", "p"]
    return text_table(columns, rows, texts=2)


def top_table(report: Report) -> ScoreTable:
    """The entities of the highest TF-IDF (Table 5)."""
    rows = [[row["word"], ", ".join(row["labels"])] for row in report.tables["top"]]
    return text_table(["word", "tagged as"], rows, texts=2)


def figures(report: Report) -> list[go.Figure]:
    """Figures 2 to 5, in this order; those of which the run has no numbers are left out."""
    corpus = _folder_name(report)
    shown = [tagged.shares_by_tf_idf_figure(corpus, report.tables["shares"])]
    for (a, b), gains in _grouped(report, "gains", "a", "b"):
        names = {"system": TAG_SYSTEMS[a].label, "other": TAG_SYSTEMS[b].label}
        shown.append(tagged.gain_by_tf_idf_figure(gains, **names))
    for (system,), weights in _grouped(report, "weights", "system"):
        title = f"Attention weight of occurrences, by distance: {TAG_SYSTEMS[system].label}"
        shown.append(tagged.weights_by_distance_figure(weights, buckets=BUCKETS, title=title))
    if len({row["occurrences"] for row in report.tables["sweep"]}) > 1:
        shown.append(tagged.sweep_figure(corpus, report.tables["sweep"]))
    folder = folder_of(report)
    return [keep_figure(folder, f"{n}-{one.layout.title.text}", one) for n, one in enumerate(shown, start=1)]


def _grouped(report: Report, table: str, *by: str) -> Iterable[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """The rows of a table that agree in some columns, with what they have in these."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in report.tables[table]:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return groups.items()


# ---- sentences as they were tagged ----

ON_A_PAGE = 100
SHOWN_OF_OWN = 40  # sentences below the box
# What stands in the box before anything is typed.
EXAMPLE_TEXT = """\
Oskmere Works, an employer of 310 people, will close its yard in the town of Telk. Yessel Brandir, 54, a \
welder, heard of it on the radio on Monday.

Brandir came to Telk in 1998. "Nobody from Oskmere called," Brandir said. The yard had 2,310 workers then; \
140 are left.
"""


def tags_in_place(
    run: SystemRun, predictions: Mapping[tuple[str, int], Mapping[str, TagPredictions]]
) -> Widget:
    """Sentences of dev to leaf through; the first ON_A_PAGE with a span also go to `tagged.html` in the
    folder of the run, which needs no kernel."""
    of_dev = predictions[run.shown.key]["dev"]
    reads, labels = tagged_sentences(of_dev), labels_of(of_dev)
    _write_page(run, "tagged", reads, title="Tagged sentences", labels=labels)
    browser = TaggedBrowser(reads, labels=labels)
    # The first sentence is a headline, mostly without a name.
    browser.picker.value = next((n for n, read in enumerate(reads) if read.first_choice is not None), 0)
    return browser


def labels_of(predictions: TagPredictions) -> list[str]:
    """All labels that the tagger knows, sorted, so that each has the same colour in every view of it."""
    return sorted({tag.partition("-")[2] for tag in predictions.examples.tags if tag != OUTSIDE})


def _write_page(
    run: SystemRun, name: str, reads: Sequence[tagged.ReadSentence], *, title: str, labels: Sequence[str]
) -> None:
    shown = [read for read in reads if read.predicted or read.gold] or reads
    page = tagged.tagged_page(shown[:ON_A_PAGE], title=title, labels=labels)
    write_page(run.folder / f"{name}.html", page)


def tagged_sentences(predictions: TagPredictions, *, known: bool = True) -> list[tagged.ReadSentence]:
    """Each labelled sequence with its tags and the occurrences that were attended to; `known`: False = the
    tags of the documents are no gold."""
    examples, reads = predictions.examples, []
    names = {
        one.document.id: document_name(one.document.id, joined(one.document.sentences[0].words))
        for one in examples.documents
    }
    for number, start in enumerate(predictions.starts[:-1].tolist()):
        example, words = examples[number], []
        document = examples.documents[example.document].document
        for place, word in enumerate(example.words):
            gold = examples.tags[example.labels[place]] if known else None
            predicted = examples.tags[predictions.tags[start + place]]
            occurrences = _occurrences(predictions, example, document, place, row=start + place)
            words.append(tagged.ReadWord(word=word, gold=gold, predicted=predicted, occurrences=occurrences))
        reads.append(
            tagged.ReadSentence(document=names[document.id], number=example.sentence, words=tuple(words))
        )
    return reads


def _occurrences(
    predictions: TagPredictions, example: TagExample, document: TaggedDocument, place: int, *, row: int
) -> tuple[tagged.ReadOccurrence, ...]:
    if predictions.weights is None:
        return ()
    weights = zip(example.places[place].tolist(), predictions.weights[row], strict=True)
    return tuple(
        tagged.ReadOccurrence(
            words=document.sentences[sentence].words,
            place=at,
            distance=abs(sentence - example.sentence),
            weight=float(weight),
            sentence=sentence,
        )
        for (sentence, at), weight in weights
        if sentence >= 0
    )


def own_text_in_place(run: SystemRun) -> Widget:
    """A box for a text of one's own, tagged by the shown system, that in the box at first included.

    Raises ValueError if it cannot be read.
    """
    tag, text = own_tagger(run), own_text_of(run.settings)
    return own_text_box(tag, text=text, tagged=tag(text))


def own_text_of(given: Any) -> str:
    """The text of the file, or the example. Raises DataError for a file that cannot be read."""
    return read_text(given.own_text) if given.own_text else EXAMPLE_TEXT


def own_tagger(run: SystemRun) -> Callable[[str], str]:
    """From a text to HTML: its first sentences with a predicted span, by the shown system. All words with
    their tags are written to `own_text.tsv` in the folder of the run, a page to `own_text.html`.

    The function raises ValueError for a text without words.
    """
    loaded: list[Tagger] = []

    def tag(text: str) -> str:
        if not loaded:
            loaded.append(run.load(run.shown))
        document, predictions = tag_own(loaded[0], text)
        with replaced_file(run.folder / "own_text.tsv") as opened:
            for sentence, tags in zip(document.sentences, predictions.predicted()[0], strict=True):
                rows = zip(sentence.words, tags, strict=True)
                opened.writelines([*(f"{word}\t{predicted}\n" for word, predicted in rows), "\n"])
        reads = tagged_sentences(predictions, known=False)
        _write_page(run, "own_text", reads, title="Your text, tagged", labels=labels_of(predictions))
        return tags_html(predictions)

    return tag


def tags_html(predictions: TagPredictions) -> str:
    """All sentences of a short text, else the first with a predicted span; the tags of the documents are no
    gold."""
    reads = tagged_sentences(predictions, known=False)
    labels, shown = labels_of(predictions), reads
    if len(reads) > SHOWN_OF_OWN:
        shown = ([read for read in reads if read.predicted] or reads)[:SHOWN_OF_OWN]
    texts = [tagged.tagged_sentence_html(read, labels=labels, every=True) for read in shown]
    left = len(reads) - len(shown)
    return "".join([*texts, muted(f"{counted(left, 'sentence')} more, not shown here.") if left else ""])


def tag_own(tagger: Tagger, text: str) -> tuple[TaggedDocument, TagPredictions]:
    """A text in sentences and words, and their tags. Raises ValueError if there is no word."""
    document = own_document(text)
    return document, tagger.predict(tagger.read([document]))


def own_document(text: str) -> TaggedDocument:
    """A text in sentences and words, all to be tagged. Raises ValueError if there is no word."""
    each = (
        tuple(sentence[start:end] for start, end in token_spans(sentence))
        for sentence in split_sentences(text)
    )
    sentences = [TaggedSentence(words=words, tags=(OUTSIDE,) * len(words)) for words in each if words]
    if not sentences:
        raise ValueError("the text has no words; write or paste one")
    return TaggedDocument(id="your text", sentences=tuple(sentences))
