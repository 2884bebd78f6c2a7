"""Two documents of the reader's own, as the systems of notebook 05 align them: for its boxes and `load`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from cdlm_lab.data.files import read_text
from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.data.words import split_sentences
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs import runs
from cdlm_lab.tasks.matching.alignment import AlignmentRun, Settings, longformer_alignments
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.systems import Matcher
from cdlm_lab.tasks.matching.view import AlignedColumn, column_of, pair_html
from cdlm_lab.views.ask import OwnPair
from cdlm_lab.views.html import warning

# The text in the input boxes before the reader types.
EXAMPLE = (  # two reports of one event of storyworld's test set, which all shipped systems call related
    """\
Bridge inspectors had warned

At least 74 people were killed and 381 injured when part of the Zudodan Bridge broke off near Busajash on \
Thursday. At that point the bridge stands 64 metres above the Merdihur river. The wrecks of 77 vehicles lay \
in the river. The bridge, opened in 1997, was crossed by 57,922 vehicles a day. The 53-year-old police \
chief, Dzugaya Taidaymabad, begged drivers to stay away.""",
    """\
Operator of fallen bridge faces claims

Rescuers searched the Merdihur river on Thursday after the Zudodan Bridge collapsed near Busajash and 77 \
vehicles fell into the gorge. The roadway fell 64 metres into the Merdihur river. Dzugaya Taidaymabad, 53, \
the police chief, said 74 people had been killed. The bridge dates from 1997; 57,922 vehicles a day used it. \
"We are looking for the living," said the police chief.""",
)


def own_texts(given: Settings) -> tuple[str, str]:
    """The contents of the two files, or the built-in example. Raises DataError if one cannot be read."""
    if not given.first_document:
        return EXAMPLE
    return read_text(given.first_document), read_text(given.second_document)


def own_pair_box(run: AlignmentRun) -> OwnPair:
    """Input boxes for two documents of the reader's own, and how the systems align them."""
    return OwnPair(*own_texts(run.settings), compare=partial(compare_own, run))


def compare_own(run: AlignmentRun, first: str, second: str) -> str:
    """HTML: whether each system with seed 0 predicts that two texts belong together, and how it weighs the
    sentences; also written to `own_pair.html`. Raises ParameterError for a text without sentences."""
    pair, columns = own_pair(first, second), []
    for system in run.matching.systems:
        loaded = run.matching.loaded(system)
        columns.append(compared_own(run.matching, loaded, pair, system.label, source=run.settings.source))
    foreign = run.matching.foreign([first, second])
    html = f"{warning(foreign)}{pair_html(pair, columns)}"
    runs.write_page(run.folder / "own_pair.html", f"<!doctype html><meta charset=utf-8>{html}")
    return html


def own_pair(first: str, second: str) -> DocumentPair:
    """Two texts as a pair. Raises ParameterError for a text without sentences."""
    form = {"first": _own("first document", first), "second": _own("second document", second)}
    return DocumentPair(id="own", **form, related=False, aligned=None, cluster="own")


def compared_own(
    matching: MatchingRun, loaded: Any, pair: DocumentPair, label: str, *, source: str
) -> AlignedColumn:
    """Whether a loaded system says that a pair belongs together, and its weights of the first's sentences."""
    predictions = matching.predict_pairs(loaded, [pair])
    alignments = {by: every[0] for by, every in predictions.alignments.items()}
    if isinstance(loaded, Matcher) and loaded.system.encoder == "longformer":
        alignments = longformer_alignments(loaded, pair, source=source)
    column = column_of(label, alignments, pair, predictions.probabilities[0])
    return replace(column, others_read=sentences_read(matching, loaded, pair)[1])


def sentences_read(matching: MatchingRun, loaded: Any, pair: DocumentPair) -> tuple[int, int]:
    """The number of sentences of both documents, always the first ones, that a loaded system reads."""
    counts = len(pair.first.sentences), len(pair.second.sentences)
    if not isinstance(loaded, Matcher):
        return counts
    if loaded.system.encoder == "longformer":
        lost = loaded.examples([pair]).describe(0).lost_sentences
        return counts[0] - lost[0], counts[1] - lost[1]
    most = matching.settings.most_sentences
    return min(counts[0], most), min(counts[1], most)


def _own(name: str, text: str) -> PairDocument:
    if not (sentences := split_sentences(text)):
        raise ParameterError(f"the {name} is empty; write some sentences")
    return PairDocument(id=name, sentences=tuple(sentences))
