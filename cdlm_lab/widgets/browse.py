"""Claims to leaf through: all of them, or those of a label, or those that were judged wrongly, and one of
them with its evidence below.

The controls need a running kernel. For a page that does without, see `verdict.verdicts_page`.

Items to leaf through: lists to choose some of them, a list of those chosen, and arrows.

What is shown below is up to whoever is told which item is to be seen. The controls need a running kernel.

Questions to leaf through: all of them, or those that were answered wrongly, and one of them below.

The controls need a running kernel. For a page that does without, see `read_question.questions_page`.

Questions to leaf through: those that one system repaired or broke beside another one, or by the number of
candidates, and the candidates of one of them below.

The controls need a running kernel. For a page that does without, see `ranked_candidates.rankings_page`.

Tagged sentences to leaf through: all of them, or those that were tagged wrongly, and one of them below,
with the occurrences of one of its words.

The controls need a running kernel. For a page that does without, see `read_tagged.tagged_page`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import ipywidgets

from cdlm_lab.data.questions import QUESTION_KINDS
from cdlm_lab.widgets.html import MUTED, count_in_words, joined, shortened, visible
from cdlm_lab.widgets.questions import ReadQuestion, question_html
from cdlm_lab.widgets.rankings import OUTCOMES, ReadRanking, ranking_html
from cdlm_lab.widgets.tagged import (
    ReadSentence,
    labels_of_reads,
)
from cdlm_lab.widgets.tagged import (
    tagged_sentence_html as sentence_html,
)
from cdlm_lab.widgets.verdicts import SHARES, ReadClaim, verdict_html

Item = TypeVar("Item")
# Name of a list -> its entries, the first of which is chosen at first -> which items an entry leaves.
Filters = Mapping[str, Mapping[str, Callable[[Item], bool]]]
SIGNS = {True: "\u2713", False: "\u2717", None: "\u00b7"}  # right, wrong, not known


def any_item(item: object) -> bool:
    """True: what the entry "all" of a list leaves."""
    return True


def nothing_left(noun: str) -> str:
    """HTML to show where no item is chosen; `noun` names one, such as "question"."""
    return f'<div style="{MUTED}">No {noun} is like that; choose "all" in one of the lists above.</div>'


def fill_list(part: ipywidgets.Dropdown, entries: Sequence[tuple[str, object]], value: object) -> None:
    """New entries for a list; the browser learns of them and of the value at once."""
    with part.hold_sync():
        if list(part.options) != list(entries):
            part.options = list(entries)  # this chooses the first
        if value is None:  # as a value None chooses nothing, also where an entry has it
            part.index = next((place for place, entry in enumerate(entries) if entry[1] is None), None)
        else:
            part.value = value


class Leafing(Generic[Item]):
    """The controls.

    An entry of a list says how many items it would leave, given the other lists. The item that is seen stays
    as long as it is among those chosen, and comes back after a choice without items.

    Args:
        items: at least one.
        noun: what one of them is, such as "question", for the arrows.
        filters: the lists.
        line: an item, by its number in `items`, as an entry of the list of items, which shows text as it is.
        show: called with the item that is to be seen whenever it is another; None = no item is chosen.

    Attributes:
        filters: the lists by name; their values are the names of entries.
        picker: the list of items; its value is the number of one in `items`, None = there is none.
        rows: all controls, to be put above what `show` shows.

    Raises:
        ValueError: no items.
    """

    def __init__(
        self,
        items: Sequence[Item],
        *,
        noun: str,
        filters: Filters[Item],
        line: Callable[[int], str],
        show: Callable[[Item | None], None],
    ) -> None:
        if not items:
            raise ValueError(f"there is no {noun} to show: items is empty")
        self._items, self._line, self._show = items, line, show
        self._left = {
            name: {entry: _numbers(items, leaves) for entry, leaves in entries.items()}
            for name, entries in filters.items()
        }
        self._numbers: list[int] = []  # of the items chosen
        self._last = 0  # number of the item that is seen, or was seen last
        self._seen: int | None = -1  # number of the item that is seen; -1 = nothing was shown yet
        self._filling = False  # True while lists are filled anew, which is no choice of the person's
        self.filters = {name: _filter_list(name, list(entries)) for name, entries in filters.items()}
        self.previous = _step_button("arrow-left", f"the {noun} before")
        self.next = _step_button("arrow-right", f"the next {noun}")
        self.picker = ipywidgets.Dropdown(
            layout=ipywidgets.Layout(flex="1 1 280px", width="auto", min_width="0")
        )
        self.position = ipywidgets.Label()
        rows = ([*self.filters.values()], [self.previous, self.next, self.picker, self.position])
        wrapped = ipywidgets.Layout(flex_flow="row wrap", width="100%", max_width="960px")
        self.rows = tuple(ipywidgets.HBox(row, layout=wrapped) for row in rows)
        self._choose()
        for part in self.filters.values():
            part.observe(lambda change: self._choose(), names="value")
        self.picker.observe(lambda change: self._pick(), names="value")
        self.previous.on_click(lambda button: self._step(-1))
        self.next.on_click(lambda button: self._step(1))

    def _chosen(self, choice: Mapping[str, str]) -> set[int]:
        """Numbers of the items that all entries leave."""
        return set(range(len(self._items))).intersection(
            *(self._left[name][entry] for name, entry in choice.items())
        )

    def _choose(self) -> None:
        """Fill all lists anew; go on with the item that was seen, or with the first of those chosen."""
        if self._filling:
            return
        self._filling = True
        choice = {name: part.value for name, part in self.filters.items()}
        for name, part in self.filters.items():
            others = self._chosen({other: entry for other, entry in choice.items() if other != name})
            counts = {entry: len(others & left) for entry, left in self._left[name].items()}
            entries = [(f"{entry} ({count_in_words(count)})", entry) for entry, count in counts.items()]
            fill_list(part, entries, choice[name])
        self._numbers = sorted(self._chosen(choice))
        kept = self._last if self._last in self._numbers else next(iter(self._numbers), None)
        fill_list(self.picker, [(self._line(number), number) for number in self._numbers], kept)
        self._filling = False
        self._pick()

    def _pick(self) -> None:
        """Show the item that the list of items names, if any."""
        if self._filling:
            return
        number, count = self.picker.value, len(self._numbers)
        place = -1 if number is None else self._numbers.index(number)
        self.picker.disabled = number is None
        self.previous.disabled, self.next.disabled = place <= 0, place == count - 1
        self.position.value = f"{count_in_words(place + 1)} of {count_in_words(count)}"
        self._last = self._last if number is None else number
        if number != self._seen:
            self._seen = number
            self._show(None if number is None else self._items[number])

    def _step(self, by: int) -> None:
        if self.picker.value is None:
            return
        place = self._numbers.index(self.picker.value) + by
        if 0 <= place < len(self._numbers):  # a second click may come before the button is seen to be off
            self.picker.value = self._numbers[place]


def _numbers(items: Sequence[Item], leaves: Callable[[Item], bool]) -> frozenset[int]:
    return frozenset(number for number, item in enumerate(items) if leaves(item))


def _filter_list(name: str, entries: Sequence[str]) -> ipywidgets.Dropdown:
    narrow, style = ipywidgets.Layout(width="205px"), {"description_width": "56px"}
    return ipywidgets.Dropdown(options=entries, description=name, layout=narrow, style=style)


def _step_button(icon: str, tooltip: str) -> ipywidgets.Button:
    return ipywidgets.Button(icon=icon, tooltip=tooltip, layout=ipywidgets.Layout(width="40px"))


LONGEST_QUESTION = 90  # characters of a question in the list
EMPTY = nothing_left("question")
_FILTERS: Filters[ReadQuestion] = {
    "answer": {
        "all": any_item,
        "right": lambda read: read.answer_em is True,
        "wrong": lambda read: read.answer_em is False,
    },
    "support": {
        "all": any_item,
        "right": lambda read: read.support_em is True,
        "wrong": lambda read: read.support_em is False,
    },
    "kind": {"all": any_item} | {kind: lambda read, kind=kind: read.kind == kind for kind in QUESTION_KINDS},
}


def question_browser(reads: Sequence[ReadQuestion]) -> ipywidgets.Widget:
    """Lists to choose questions by answer, support and kind, a list of those chosen, and one question.

    An entry says how many questions it would leave, given the other lists. Right is what matches exactly.
    The question that is read stays where it is as long as it is among those chosen, and comes back after a
    choice without questions.

    Raises:
        ValueError: no questions.
    """
    if not reads:
        raise ValueError("there is no question to show: reads is empty")
    return QuestionBrowser(reads).box


class QuestionBrowser(Leafing[ReadQuestion]):
    """The parts of `question_browser`: the controls, and

    Attributes:
        question: the question that is read.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadQuestion]) -> None:
        self._reads = reads
        self.question = ipywidgets.HTML()
        super().__init__(reads, noun="question", filters=_FILTERS, line=self._entry, show=self._draw)
        self.box = ipywidgets.VBox([*self.rows, self.question])

    def _draw(self, read: ReadQuestion | None) -> None:
        self.question.value = EMPTY if read is None else question_html(read)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        text = shortened(visible(" ".join(read.question.split())), LONGEST_QUESTION)
        return f"{SIGNS[read.answer_em]} {number + 1}. {text}"


# Entry of the list -> how many candidates, from and to; a group of the paper has five.
_SIZES = {"up to 5": (1, 5), "6 to 10": (6, 10), "11 to 20": (11, 20), "more than 20": (21, math.inf)}


def ranking_browser(reads: Sequence[ReadRanking], *, beside: str = "pairwise") -> ipywidgets.Widget:
    """A list of systems, lists to choose questions by what became of them and by the number of candidates, a
    list of those chosen, and one question.

    "repaired" leaves the questions on which the system put a right answer on top and `beside` did not,
    "broken" the opposite. An entry says how many questions it would leave, given the other list. The question
    that is read stays where it is, under another system too, as long as it is among those chosen.

    Args:
        reads: with scores of the same systems.
        beside: the system with which all others are compared.

    Raises:
        ValueError: no questions, questions of different systems, no scores of `beside`.
    """
    if not reads:
        raise ValueError("there is no question to show: reads is empty")
    return RankingBrowser(reads, beside=beside).box


class RankingBrowser:
    """The parts of `ranking_browser`.

    Attributes:
        system: the list of systems, that of `beside` last.
        leafing: the other controls, which are made anew for each system, because it decides what is chosen.
        ranking: the question that is read.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadRanking], *, beside: str = "pairwise") -> None:
        names = list(reads[0].scores)
        for read in reads:
            if set(read.scores) != set(names):
                has = ", ".join(read.scores)
                raise ValueError(f"question {read.id!r} has scores of {has}, the first of {', '.join(names)}")
        if beside not in names:
            raise ValueError(f"there are no scores of {beside!r}; choose from {', '.join(names)}")
        self._reads, self._beside = reads, beside
        self.system = ipywidgets.Dropdown(
            options=[(visible(name), name) for name in sorted(names, key=lambda name: name == beside)],
            description="system",
            layout=ipywidgets.Layout(width="min(450px, 100%)"),
            style={"description_width": "56px"},
        )
        self.ranking = ipywidgets.HTML()
        self.box = ipywidgets.VBox()
        self.leafing: Leafing[ReadRanking] | None = None
        self._open()
        self.system.observe(lambda change: self._open(), names="value")

    def _open(self) -> None:
        """The controls for the chosen system; what was chosen and read before stays, if it can."""
        before = self.leafing
        with self.ranking.hold_sync():  # the browser learns of the last of several drawings
            self.leafing = Leafing(
                self._reads,
                noun="question",
                filters=_filters(self.system.value, self._beside),
                line=self._entry,
                show=self._draw,
            )
            self.leafing.filters["candidates"].layout.width = "240px"
            self.leafing.filters["candidates"].style.description_width = "76px"
            if before is not None:
                if before.picker.value is not None:
                    self.leafing.picker.value = before.picker.value
                for name, part in before.filters.items():
                    self.leafing.filters[name].value = part.value
        self.box.children = [self.system, *self.leafing.rows, self.ranking]

    def _draw(self, read: ReadRanking | None) -> None:
        if read is None:
            self.ranking.value = EMPTY
        else:
            self.ranking.value = ranking_html(read, system=self.system.value, beside=self._beside)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        sign = SIGNS[read.right_on_top(self.system.value)]
        text = shortened(visible(" ".join(read.question.split())), LONGEST_QUESTION)
        return f"{sign} {number + 1}. {text}"


def _filters(system: str, beside: str) -> Filters[ReadRanking]:
    return {
        "answer": {"all": any_item} | {name: _became(name, system, beside) for name in OUTCOMES.values()},
        "candidates": {"all": any_item} | {entry: _between(*bounds) for entry, bounds in _SIZES.items()},
    }


def _became(outcome: str, system: str, beside: str) -> Callable[[ReadRanking], bool]:
    return lambda read: read.outcome(system, beside=beside) == outcome


def _between(least: int, most: float) -> Callable[[ReadRanking], bool]:
    return lambda read: least <= len(read.candidates) <= most


LONGEST_SENTENCE = 90  # characters of a sentence in the list
LONGEST_DOCUMENT = 40  # characters of the name of a document in the list
LONGEST_WORD = 40  # characters of a word in the list
EMPTY_TAGGED = nothing_left("sentence")


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
        super().__init__(
            reads, noun="sentence", filters=_tagged_filters(reads), line=self._entry, show=self._open
        )
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
            self.sentence.value = EMPTY_TAGGED
        else:
            self.sentence.value = sentence_html(self._read, chosen=self.words.value, labels=self._labels)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        text = shortened(_line(joined(word.word for word in read.words)), LONGEST_SENTENCE)
        return f"{SIGNS[read.right]} {number + 1}. {text}"


def _tagged_filters(reads: Sequence[ReadSentence]) -> Filters[ReadSentence]:
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
    times = f"{count_in_words(read.elsewhere(number))} elsewhere"
    return f"{number + 1}. {text} \u00b7 {visible(word.predicted)} \u00b7 {times}"


def _line(text: str) -> str:
    """Text on one line, as a list shows it."""
    return visible(" ".join(text.split()))


LONGEST_CLAIM = 90  # characters of a claim in the list
EMPTY_VERDICTS = nothing_left("claim")


def verdict_browser(reads: Sequence[ReadClaim], *, shares: str = SHARES) -> ipywidgets.Widget:
    """Lists to choose claims by verdict, gold and predicted label, a list of those chosen, and one claim.

    An entry says how many claims it would leave, given the other lists. The claim that is read stays where it
    is as long as it is among those chosen, and comes back after a choice without claims.

    Args:
        shares: as of `verdict_html`.

    Raises:
        ValueError: no claims.
    """
    if not reads:
        raise ValueError("there is no claim to show: reads is empty")
    return VerdictBrowser(reads, shares=shares).box


class VerdictBrowser(Leafing[ReadClaim]):
    """The parts of `verdict_browser`: the controls, and

    Attributes:
        claim: the claim that is read.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadClaim], *, shares: str = SHARES) -> None:
        self._reads, self._shares = reads, shares
        self.claim = ipywidgets.HTML()
        super().__init__(
            reads, noun="claim", filters=_verdict_filters(reads), line=self._entry, show=self._draw
        )
        for name in ("gold", "predicted"):  # labels are longer than the entries of other lists
            self.filters[name].layout.width = "260px"
            self.filters[name].style.description_width = "68px"
        self.box = ipywidgets.VBox([*self.rows, self.claim])

    def _draw(self, read: ReadClaim | None) -> None:
        self.claim.value = EMPTY_VERDICTS if read is None else verdict_html(read, shares=self._shares)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        text = shortened(visible(" ".join(read.claim.split())), LONGEST_CLAIM)
        return f"{SIGNS[read.right]} {number + 1}. {text}"


def _verdict_filters(reads: Sequence[ReadClaim]) -> Filters[ReadClaim]:
    labels = list(dict.fromkeys(label for read in reads for label in read.probabilities))
    return {
        "verdict": {
            "all": any_item,
            "right": lambda read: read.right is True,
            "wrong": lambda read: read.right is False,
        },
        "gold": {"all": any_item} | {visible(label): _gold_is(label) for label in labels},
        "predicted": {"all": any_item} | {visible(label): _predicted_is(label) for label in labels},
    }


def _gold_is(label: str) -> Callable[[ReadClaim], bool]:
    return lambda read: read.gold == label


def _predicted_is(label: str) -> Callable[[ReadClaim], bool]:
    return lambda read: read.predicted == label
