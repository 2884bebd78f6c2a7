"""Sentences to read as a model tagged them: of dev, or of a text of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ipywidgets import Widget

from cdlm_lab.data.coreference_storyworld import token_spans
from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.pair_csv import split_sentences
from cdlm_lab.data.tagged_documents import OUTSIDE, TaggedDocument, TaggedSentence
from cdlm_lab.examples.tag_examples import TagExample
from cdlm_lab.experiments.document_tagging import TaggingRun, Training
from cdlm_lab.experiments.tag_predictions import SentenceTags, TagPredictions, predict_tags
from cdlm_lab.experiments.tagging_models import Tagger
from cdlm_lab.widgets.own_text import own_text_box
from cdlm_lab.widgets.read_tagged import labels_of_reads, sentence_html, tagged_page
from cdlm_lab.widgets.tagged_browser import tagged_browser
from cdlm_lab.widgets.tagged_sentences import ReadOccurrence, ReadSentence, ReadWord

ON_A_PAGE = 100
SHOWN_OF_OWN = 40  # sentences below the box
# What stands in the box before anything is typed.
EXAMPLE_TEXT = """\
Oskmere Works will close its yard on the Tolvane in spring. Yessel Brandir, 54, a welder, heard of it on the \
radio. "Nobody from Oskmere called," Brandir said.

Brandir came to Tolvane Bridge as a child. In 1998 the yard had 2,310 workers; 140 are left. Oskmere has not \
answered questions.
"""


def tags_in_place(predictions: TagPredictions, *, file: Path) -> Widget:
    """Sentences to leaf through; the first ON_A_PAGE with a span also go to `file`, which needs no kernel."""
    reads = read_sentences(predictions)
    shown = [read for read in reads if read.predicted or read.gold] or reads
    with replaced_file(file) as opened:
        opened.write(tagged_page(shown[:ON_A_PAGE], title="Tagged sentences"))
    return tagged_browser(reads)


def read_sentences(predictions: TagPredictions, *, known: bool = True) -> list[ReadSentence]:
    """Each labelled sequence with its tags and the occurrences that were attended to.

    Args:
        known: False = the tags of the documents are no gold.
    """
    starts = predictions.starts
    return [
        _read(predictions, number, start=int(starts[number]), known=known)
        for number in range(len(predictions.examples))
    ]


def _read(predictions: TagPredictions, number: int, *, start: int, known: bool) -> ReadSentence:
    examples = predictions.examples
    example = examples[number]
    words = []
    for place, word in enumerate(example.words):
        words.append(
            ReadWord(
                word=word,
                gold=examples.tags[example.labels[place]] if known else None,
                predicted=examples.tags[predictions.tags[start + place]],
                occurrences=_occurrences(predictions, example, place, row=start + place),
            )
        )
    document = examples.documents[example.document].document
    return ReadSentence(document=document.id, number=example.sentence, words=tuple(words))


def _occurrences(
    predictions: TagPredictions, example: TagExample, place: int, *, row: int
) -> tuple[ReadOccurrence, ...]:
    if predictions.weights is None:
        return ()
    sentences = predictions.examples.documents[example.document].document.sentences
    return tuple(
        ReadOccurrence(
            words=sentences[sentence].words,
            place=at,
            distance=abs(sentence - example.sentence),
            weight=float(weight),
            sentence=sentence,
        )
        for (sentence, at), weight in zip(
            example.places[place].tolist(), predictions.weights[row], strict=True
        )
        if sentence >= 0
    )


def own_text_in_place(run: TaggingRun, training: Training, text: str) -> Widget:
    """A box for a text of one's own, tagged by a trained system, that in the box at first included.

    Raises ValueError if it cannot be read.
    """
    tag = own_tagger(run, training)
    return own_text_box(tag, text=text, tagged=tag(text))


def own_text_of(file: str) -> str:
    """The text of a file, or the example if it is "". Errors as of `read_text`."""
    return read_text(file) if file else EXAMPLE_TEXT


def own_tagger(run: TaggingRun, training: Training) -> Callable[[str], str]:
    """From a text to HTML: its first sentences with a predicted span. All words with their tags are written
    to `own_text.tsv` in the folder of the run, a page to `own_text.html`.

    The function raises ValueError for a text without words.
    """
    loaded: list[Tagger] = []

    def tag(text: str) -> str:
        document = own_document(text)
        if not loaded:
            loaded.append(run.tagger(training, trained=True))
        predictions = predict_tags(loaded[0], loaded[0].read([document]))
        reads = read_sentences(predictions, known=False)
        _write_own(document, predictions.predicted()[0], file=run.folder / "own_text.tsv")
        found = [read for read in reads if read.predicted] or reads
        with replaced_file(run.folder / "own_text.html") as opened:
            opened.write(tagged_page(found[:ON_A_PAGE], title="Your text, tagged"))
        labels = labels_of_reads(reads)
        return "".join(sentence_html(read, labels=labels) for read in found[:SHOWN_OF_OWN])

    return tag


def own_document(text: str) -> TaggedDocument:
    """A text in sentences and words, all to be tagged. Raises ValueError if there is no word."""
    sentences = []
    for sentence in split_sentences(text):
        words = tuple(sentence[start:end] for start, end in token_spans(sentence))
        if words:
            sentences.append(TaggedSentence(words=words, tags=(OUTSIDE,) * len(words)))
    if not sentences:
        raise ValueError("the text has no words; write or paste one")
    return TaggedDocument(id="your text", sentences=tuple(sentences))


def _write_own(document: TaggedDocument, tags: SentenceTags, *, file: Path) -> None:
    """A line for each word, a blank one after each sentence."""
    with replaced_file(file) as opened:
        for sentence, found in zip(document.sentences, tags, strict=True):
            rows = zip(sentence.words, found, strict=True)
            opened.writelines(f"{word}\t{tag}\n" for word, tag in rows)
            opened.write("\n")
