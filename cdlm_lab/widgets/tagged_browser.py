"""Tagged sentences to leaf through: all of them, or those that were tagged wrongly, and one of them below,
with the occurrences of one of its words.

The controls need a running kernel. For a page that does without, see `read_tagged.tagged_page`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets

from cdlm_lab.widgets.leafing import SIGNS, Filters, Leafing, any_item, fill_list, nothing_left
from cdlm_lab.widgets.markup import count_in_words, visible
from cdlm_lab.widgets.read_tagged import ReadSentence, labels_of_reads, sentence_html
from cdlm_lab.widgets.shown_mention import joined, shortened
from cdlm_lab.widgets.word_occurrences import elsewhere

LONGEST_SENTENCE = 90  # characters of a sentence in the list
LONGEST_DOCUMENT = 40  # characters of the name of a document in the list
LONGEST_WORD = 40  # characters of a word in the list
EMPTY = nothing_left("sentence")


def tagged_browser(reads: Sequence[ReadSentence]) -> ipywidgets.Widget:
    """Lists to choose sentences by how they were tagged and by document, a list of those chosen, a list of
    the words of the one that is read, and that sentence with the occurrences of the chosen word.

    A sentence is right if exactly its true spans were predicted. "with entities" leaves those with a span,
    true or predicted. The sentence that is read stays where it is as long as it is among those chosen, and
    comes back after a choice without sentences.

    Raises:
        ValueError: no sentences.
    """
    if not reads:
        raise ValueError("there is no sentence to show: reads is empty")
    return TaggedBrowser(reads).box


class TaggedBrowser(Leafing[ReadSentence]):
    """The parts of `tagged_browser`: the controls, and

    Attributes:
        words: the list of words; its value is the number of one, None = none is chosen. It is off where the
            model attended to no occurrences.
        sentence: the sentence that is read.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadSentence]) -> None:
        self._reads, self._labels = reads, labels_of_reads(reads)
        self._read: ReadSentence | None = None
        self._listing = False  # True while the words are listed anew, which is no choice of the person's
        self.words = ipywidgets.Dropdown(
            description="word",
            layout=ipywidgets.Layout(width="min(520px, 100%)"),
            style={"description_width": "56px"},
        )
        self.sentence = ipywidgets.HTML()
        super().__init__(reads, noun="sentence", filters=_filters(reads), line=self._entry, show=self._open)
        self.filters["document"].layout.width = "min(420px, 100%)"
        self.filters["document"].style.description_width = "68px"
        self.box = ipywidgets.VBox([*self.rows, self.words, self.sentence])
        self.words.observe(lambda change: self._draw(), names="value")

    def _open(self, read: ReadSentence | None) -> None:
        """Another sentence, with the words of its own."""
        self._listing, self._read = True, read
        fill_list(self.words, _entries(read) if read else [], read.first_choice if read else None)
        self.words.disabled = read is None or not any(word.occurrences for word in read.words)
        self._listing = False
        self._draw()

    def _draw(self) -> None:
        if self._listing:
            return
        if self._read is None:
            self.sentence.value = EMPTY
        else:
            self.sentence.value = sentence_html(self._read, chosen=self.words.value, labels=self._labels)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        text = shortened(_line(joined(word.word for word in read.words)), LONGEST_SENTENCE)
        return f"{SIGNS[read.right]} {number + 1}. {text}"


def _filters(reads: Sequence[ReadSentence]) -> Filters[ReadSentence]:
    documents = list(dict.fromkeys(read.document for read in reads))
    names = [
        f"{place}. {shortened(_line(document), LONGEST_DOCUMENT)}"  # unlike all others, and unlike "all"
        for place, document in enumerate(documents, start=1)
    ]
    return {
        "show": {
            "all": any_item,
            "wrong": lambda read: read.right is False,
            "right": lambda read: read.right is True,
            "with entities": lambda read: bool(read.predicted or read.gold),
        },
        "document": {"all": any_item}
        | {name: _of_document(document) for name, document in zip(names, documents, strict=True)},
    }


def _of_document(document: str) -> Callable[[ReadSentence], bool]:
    return lambda read: read.document == document


def _entries(read: ReadSentence) -> list[tuple[str, int | None]]:
    """The words of a sentence as entries of a list, before them, if none is chosen at first, that."""
    unchosen = [("choose a word", None)] if read.first_choice is None else []
    return [*unchosen, *((_word(read, number), number) for number in range(len(read.words)))]


def _word(read: ReadSentence, number: int) -> str:
    word = read.words[number]
    text = shortened(_line(word.word), LONGEST_WORD)
    times = f"{count_in_words(elsewhere(read, number))} elsewhere"
    return f"{number + 1}. {text} \u00b7 {visible(word.predicted)} \u00b7 {times}"


def _line(text: str) -> str:
    """Text on one line, as a list shows it."""
    return visible(" ".join(text.split()))
