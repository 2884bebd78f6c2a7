"""One pair of documents, its sentences shaded by what each system makes of them (Zhou et al. 2020, "CDA",
Figure 4): of the test pairs, or of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.pair_csv import split_sentences
from cdlm_lab.experiments.document_matching import MatchingRun
from cdlm_lab.experiments.match_predictions import predict
from cdlm_lab.experiments.sentence_alignment import (
    GLOBAL_ATTENTION,
    Aligned,
    AlignmentSettings,
    longformer_alignments,
)
from cdlm_lab.experiments.word_overlap import WordOverlap
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.aligned_sentences import AlignedColumn, compared_alignments_html

# What stands in the boxes before anything is typed.
EXAMPLE = (
    """\
A gas blast killed 14 miners in the Ombrava mine near Telk on Tuesday. The mine was opened in 1961 and \
belongs to the state. Another 30 men were brought up alive by nightfall. The town will hold a service on \
Sunday.""",
    """\
Fourteen miners died when gas exploded underground near Telk. Rescuers reached 30 survivors after six \
hours, the energy minister said. An inquiry into the disaster will begin this week.""",
)
_WAYS = ("attention", GLOBAL_ATTENTION, "cosine")  # of a system the first that it has


def aligned_test_pair(run: MatchingRun, aligned: Aligned, *, name: str) -> str:
    """HTML of a test pair under every system, trained with seed 0.

    Args:
        name: of the pair, as in the report; "" = one that most systems found, with the true sentence neither
            first nor last where there is such.

    Raises:
        ParameterError: there is no such pair with true sentences.
    """
    names = [pair.id for pair in aligned.pairs]
    if name and name not in names:
        raise ParameterError(
            f"shown_pair is {name!r}, which is no related test pair with true sentences; one is {names[0]!r}"
        )
    place = names.index(name) if name else _telling(aligned)
    pair = aligned.pairs[place]
    columns = [
        _column(
            system.label,
            {
                by: aligned.scores[key][place]
                for by in _WAYS
                if (key := (system.name, by, 0)) in aligned.scores
            },
            probability=float(aligned.probabilities[system.name, 0][place]),
            sentences=len(pair.first.sentences),
        )
        for system in run.settings.systems
    ]
    return _html(pair, columns)


def _telling(aligned: Aligned) -> int:
    """Place of a pair found by most systems, the true sentences of which are few and inside the document."""
    found = np.mean(list(aligned.found.values()), axis=0)
    inside = [
        0 not in pair.aligned and len(pair.first.sentences) - 1 not in pair.aligned and len(pair.aligned) < 3
        for pair in aligned.pairs
    ]
    return int(np.argmax(found + inside))


def own_pair(run: MatchingRun, settings: AlignmentSettings, *, folder: Path) -> Callable[[str, str], str]:
    """From the texts of two documents to HTML: whether each system, trained with seed 0, takes them to belong
    together, and the sentences that say so. Models are loaded when they are first needed; the answer is
    also written to `folder/own_pair.html`.

    The function raises ValueError for a text without sentences.
    """
    readers: dict[str, Callable[[DocumentPair], tuple[float, dict[str, np.ndarray]]]] = {}

    def compare(first: str, second: str) -> str:
        pair = _own(first, second)
        columns = []
        for system in run.settings.systems:
            if system.name not in readers:
                readers[system.name] = _reader(run, settings, system.name)
            probability, alignments = readers[system.name](pair)
            sentences = len(pair.first.sentences)
            columns.append(_column(system.label, alignments, probability=probability, sentences=sentences))
        html = _html(pair, columns)
        with replaced_file(folder / "own_pair.html") as file:
            file.write(f"<!doctype html><meta charset=utf-8>{html}")
        return html

    return compare


def own_texts(first: str, second: str) -> tuple[str, str]:
    """The texts of two files, or the example if both names are "".

    Raises ParameterError if one alone is given, DataError as `read_text`.
    """
    if not first and not second:
        return EXAMPLE
    if not (first and second):
        missing = "second_document" if first else "first_document"
        raise ParameterError(f'{missing} is ""; name two files, or none')
    return read_text(first), read_text(second)


def _own(first: str, second: str) -> DocumentPair:
    documents = []
    for name, text in (("first document", first), ("second document", second)):
        sentences = tuple(split_sentences(text))
        if not sentences:
            raise ParameterError(f"the {name} is empty; write some sentences")
        documents.append(PairDocument(id=name, sentences=sentences))
    return DocumentPair(
        id="own", first=documents[0], second=documents[1], related=False, aligned=None, cluster="own"
    )


def _reader(
    run: MatchingRun, settings: AlignmentSettings, name: str
) -> Callable[[DocumentPair], tuple[float, dict[str, np.ndarray]]]:
    """From a pair to its probability and its alignments, by one system."""
    system = next(one for one in run.settings.systems if one.name == name)
    overlap = WordOverlap(run.pairs["train"]) if system.encoder == "words" else None
    matcher = None if overlap else run.matcher(system, 0, trained=True)

    def read(pair: DocumentPair) -> tuple[float, dict[str, np.ndarray]]:
        precision = run.settings.training.precision
        found = (
            overlap.predict([pair])
            if overlap
            else predict(matcher, [pair], batch_size=1, precision=precision)
        )
        alignments = {by: every[0] for by, every in found.alignments.items()}
        if system.encoder == "longformer":
            alignments = longformer_alignments(matcher, pair, source=settings.source)
        return float(found.probabilities[0]), alignments

    return read


def _column(
    label: str, alignments: Mapping[str, np.ndarray], *, probability: float, sentences: int
) -> AlignedColumn:
    """What a system gives the sentences; those that it does not read get nothing."""
    by = next(by for by in _WAYS if by in alignments)
    shown = _shares(alignments[by]) if by == GLOBAL_ATTENTION else alignments[by]
    weights = np.concatenate([shown, np.zeros(sentences - len(shown))])
    return AlignedColumn(name=label, weights=weights.tolist(), decision=probability)


def _shares(scores: np.ndarray) -> np.ndarray:
    """Scores of global attention, which have no scale, as shares of what lies above the lowest; a sentence
    that is not in the sequence, and so 1 below the lowest, gets nothing."""
    read = scores >= scores.min() + 1
    above = np.maximum(scores - scores[read].min(initial=np.inf if read.any() else scores.min()), 0)
    return above / above.sum() if above.sum() > 0 else above


def _html(pair: DocumentPair, columns: list[AlignedColumn]) -> str:
    return compared_alignments_html(
        columns,
        pair.first.sentences,
        pair.aligned or (),
        title=pair.first.id,
        other_title=pair.second.id,
        other_sentences=pair.second.sentences,
    )
