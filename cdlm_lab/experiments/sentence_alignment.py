"""Which sentences of one document belong to the other (Zhou et al. 2020, "CDA", section 5.3, Tables 4 and 5,
Figure 3): notebook 05.

The systems are those that notebook 04 trained to tell whether documents belong together; nobody told them of
sentences. Of the related test pairs whose true sentences are known, all sentences of the first document are
ranked. The hierarchical systems rank by attention and by cosine (equations 3 and 4). CDLM publishes no such
alignment: here it has one from its global attention and one from its encodings (see
analysis/sentence_alignment.py).

From ranked sentences to the report of notebook 05, its table and its figures.

One pair of documents, its sentences shaded by what each system makes of them (Zhou et al. 2020, "CDA",
Figure 4): of the test pairs, or of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.analysis.sentence_alignment import SOURCES, by_encodings, by_global_attention
from cdlm_lab.data.document_pairs import DocumentPair, PairDocument, split_sentences
from cdlm_lab.data.files import DataError, read_text, replaced_file
from cdlm_lab.experiments.document_matching import (
    SYSTEMS,
    Matcher,
    MatchingRun,
    MatchingSettings,
    MatchPredictions,
    System,
    WordOverlap,
    match_documents,
    predict,
    prepare_matching,
    systems_named,
)
from cdlm_lab.experiments.runs import KeptNumbers
from cdlm_lab.metrics.ranking import READINGS, RankedList, released_points, values_per_list
from cdlm_lab.metrics.significance import compare_means, holm, mean_score, ratio_score
from cdlm_lab.models.precision import Precision, precision_told
from cdlm_lab.parameters import ParameterError, check_choice, check_types
from cdlm_lab.progress import Progress
from cdlm_lab.report import REPORT_FILE, Report, Run, read_report
from cdlm_lab.widgets.aligned import RANDOM, AlignedColumn, alignment_figure, compared_alignments_html
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.tables import ScoreTable, system_rows

PARAMETERS = (
    "run_folder",
    "matching_run",
    "systems",
    "source",
    "reading",
    "precision",
    "shown_pair",
    "first_document",
    "second_document",
    "seed",
)
# What a run of its own trains if there is none of notebook 04.
DEFAULT_SYSTEMS = "tf-idf bert-han bert-han-shallow gru-han-shallow cdlm"
GLOBAL_ATTENTION, ENCODINGS = "global attention", "encodings"


@dataclass(frozen=True, kw_only=True)
class AlignmentSettings:
    """How sentences are ranked and scored.

    Attributes:
        source: whose global attention ranks the sentences for a Longformer: `first token` or `other
            document`.
        reading: of P@N, `hit` as for S2ORC or `precision` as for PAN; see `metrics.ranking.precision_at`.
        seed: of the bootstrap.
    """

    source: str = "other document"
    reading: str = "hit"
    seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, SOURCES, "source")
        check_choice(self, READINGS, "reading")


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """What the systems say of the pairs whose true sentences are known.

    Attributes:
        pairs: related test pairs.
        scores: (system, by, seed) -> for each pair float64 (sentences of the first document,).
        found: (system, seed) -> bool (pairs,), True = predicted to be related.
        probabilities: (system, seed) -> float64 (pairs,), of that.
        unrelated: unrelated test pairs.
        refused: (system, seed) -> bool (unrelated pairs,), True = predicted to be unrelated.
    """

    pairs: Sequence[DocumentPair]
    scores: Mapping[tuple[str, str, int], list[np.ndarray]] = field(repr=False)
    found: Mapping[tuple[str, int], np.ndarray] = field(repr=False)
    unrelated: Sequence[DocumentPair]
    refused: Mapping[tuple[str, int], np.ndarray] = field(repr=False)
    probabilities: Mapping[tuple[str, int], np.ndarray] = field(repr=False)

    def lists(self, key: tuple[str, str, int]) -> list[RankedList]:
        """The ranked sentences of each pair."""
        return [ranked(pair, scores) for pair, scores in zip(self.pairs, self.scores[key], strict=True)]


def ranked(pair: DocumentPair, scores: np.ndarray) -> RankedList:
    """The sentences of the first document of a pair whose true ones are known; those that a system does not
    read come last, all equal."""
    count = len(pair.first.sentences)
    lowest = scores.min(initial=0.0) - 1.0
    complete = np.concatenate([scores, np.full(count - len(scores), lowest)])
    return RankedList(scores=complete, relevant=np.isin(np.arange(count), pair.aligned))


def matched_run(
    folder: Path, *, matching_run: str, systems: str, precision: Precision = "auto"
) -> MatchingRun:
    """The finished run of notebook 04 in `matching_run`; if that is "", a run of its own on storyworld in
    `folder`, with the parameters that notebook 04 comes with.

    Args:
        systems: those that are looked at, of the ones that were run; "" = all.
        precision: in which a run of its own trains.

    Raises:
        ParameterError: there is no finished run, or a system was not part of it; else as the corpus is read.
    """
    if not matching_run:
        settings = MatchingSettings()
        training = replace(settings.training, systems=systems or DEFAULT_SYSTEMS, precision=precision)
        return prepare_matching(replace(settings, training=training), folder / "matching")
    where = Path(matching_run)
    if not (where / REPORT_FILE).is_file():
        raise ParameterError(
            f"matching_run is {matching_run!r}, where no finished run of notebook 04 is; run that first, or "
            'write ""'
        )
    report = read_report(where)
    try:
        # By however many it was made: it is read by one.
        settings = MatchingSettings.of(report.parameters | {"parallel": "", "workers": "auto"})
    except KeyError as error:
        raise ParameterError(
            f"matching_run is {matching_run!r}, a run of {report.name!r} without {error}; name one of "
            "notebook 04"
        ) from None
    kept = systems or settings.training.systems
    if missing := {one.name for one in systems_named(kept)} - {one.name for one in settings.systems}:
        raise ParameterError(f"systems names {min(missing)}, which {matching_run} has not")
    return prepare_matching(replace(settings, training=replace(settings.training, systems=kept)), where)


def alignment_facts(run: MatchingRun) -> list[tuple[str, str]]:
    """What is aligned and what is trained first, as (name, text)."""
    aligned = [pair for pair in run.pairs["test"] if pair.related and pair.aligned]
    rows = [
        ("pairs", f"{len(aligned):,} related test pairs of {run.settings.corpus.corpus} with true sentences"),
        ("systems", ", ".join(system.label for system in run.settings.systems)),
    ]
    if untrained := [
        f"{one.label}, seed {seed}" for one, seed in run.trainings if not run.is_finished(one, seed)
    ]:
        rows.append(("trained first", ", ".join(untrained)))
        rows.append(("precision of training", precision_told(run.settings.training.precision)))
    return rows


def align_sentences(run: MatchingRun, settings: AlignmentSettings, folder: Path) -> Aligned:
    """Rank the sentences of every related test pair whose true ones are known.

    What takes long, the Longformers, is kept in `folder`; a stopped run goes on.

    Raises:
        DataError: no pair has true sentences.
    """
    predictions = match_documents(run)
    numbers = [number for number, pair in enumerate(run.pairs["test"]) if pair.related and pair.aligned]
    if not numbers:
        raise DataError(
            Path(run.settings.corpus.corpus), "no true sentences in test", "take a corpus that has them"
        )
    pairs = [run.pairs["test"][number] for number in numbers]
    unrelated = [number for number, pair in enumerate(run.pairs["test"]) if not pair.related]
    scores: dict[tuple[str, str, int], list[np.ndarray]] = {}
    for system, seed in run.trainings:
        of_test: MatchPredictions = predictions[system.name, seed]["test"]
        for by, every in of_test.alignments.items():
            scores[system.name, by, seed] = [every[number] for number in numbers]
        if system.encoder == "longformer":
            read = _longformer_scores(run, system, seed, pairs, settings, folder)
            scores |= {(system.name, by, seed): one for by, one in read.items()}
    tested = {key: of_split["test"] for key, of_split in predictions.items()}
    return Aligned(
        pairs=pairs,
        scores=scores,
        found={key: one.decisions[numbers] for key, one in tested.items()},
        probabilities={key: one.probabilities[numbers] for key, one in tested.items()},
        unrelated=[run.pairs["test"][number] for number in unrelated],
        refused={key: ~one.decisions[unrelated] for key, one in tested.items()},
    )


def _longformer_scores(
    run: MatchingRun,
    system: System,
    seed: int,
    pairs: Sequence[DocumentPair],
    settings: AlignmentSettings,
    folder: Path,
) -> dict[str, list[np.ndarray]]:
    longest = max(len(pair.first.sentences) for pair in pairs)
    file = folder / "alignments" / f"{system.name}-{seed}-{settings.source.replace(' ', '-')}.npy"
    with KeptNumbers(file, (len(pairs), 2, longest)) as kept:
        if len(kept.missing):
            matcher = run.matcher(system, seed, trained=True)
            label = f"{system.label}, seed {seed}"
            with Progress(
                total=len(pairs), initial=len(pairs) - len(kept.missing), desc=label, unit="pair"
            ) as bar:
                for number in kept.missing:
                    row = longformer_alignments(matcher, pairs[number], source=settings.source)
                    kept.values[number] = -np.inf  # where there is no sentence
                    for place, found in enumerate(row.values()):
                        kept.values[number, place, : len(found)] = found
                    kept.save_when_due()
                    bar.update(1)
    return {
        by: [
            kept.values[number, place, : len(pair.first.sentences)].astype(np.float64)
            for number, pair in enumerate(pairs)
        ]
        for place, by in enumerate((GLOBAL_ATTENTION, ENCODINGS))
    }


def longformer_alignments(matcher: Matcher, pair: DocumentPair, *, source: str) -> dict[str, np.ndarray]:
    """Scores of the sentences of the first document by `global attention` and by `encodings`."""
    sequence = matcher.examples([pair]).describe(0)
    return {
        GLOBAL_ATTENTION: by_global_attention(matcher.model, sequence, document=0, source=source),
        ENCODINGS: by_encodings(matcher.model, sequence, document=0),
    }


AT = (1, 5, 10)
ORACLE, JOINT, RELEASED = "oracle", "joint", "released"
CAPTIONS = {
    ORACLE: "documents known to be related (oracle)",
    JOINT: "jointly with the decision on the documents",
    RELEASED: "as the released code scores CDA's Tables 4 and 5, unrelated pairs included",
}
_COLUMNS = {"mrr": "reciprocal_rank", **{f"at_{n}": f"at_{n}" for n in AT}}
# What ranks best in the papers, or is made to; the other is tested against it.
_FIRST = {"cosine": "attention", ENCODINGS: GLOBAL_ATTENTION}


def write_alignment_report(run: Run, aligned: Aligned, settings: AlignmentSettings) -> Report:
    """MRR and P@N of every system and way of ranking, and the tests between them: given that the documents
    are related (`oracle`), jointly with that decision (`joint`: 0 where it is wrong), and as the released
    code makes CDA's Tables 4 and 5 (`released`: with the unrelated pairs, see
    `metrics.ranking.released_points`)."""
    chance = _chance(aligned, settings)
    coin = (np.full(len(aligned.pairs), 0.5), np.full(len(aligned.unrelated), 0.5))
    scores = _scores(f"{RANDOM}//", [(chance, *coin)], aligned, settings, (ORACLE, RELEASED))
    for system, by in _ways(aligned):
        seeds = [
            (values, aligned.found[system, of_seed], aligned.refused[system, of_seed])
            for of_seed, values in _values(aligned, system, by, settings).items()
        ]
        scores |= _scores(f"{system}/{by}/", seeds, aligned, settings, (ORACLE, JOINT, RELEASED))
    return run.write_report(
        scores=scores,
        data={
            "pairs": len(aligned.pairs),
            "unrelated_pairs": len(aligned.unrelated),
            "clusters": len(set(_clusters(aligned))),
            "sentences": fmean(len(pair.first.sentences) for pair in aligned.pairs),
            "true_sentences": fmean(len(pair.aligned) for pair in aligned.pairs),
            "reading_of_p_at_n": settings.reading,
        },
        tables={"comparisons": _comparisons(aligned, settings)},
    )


def alignment_table(report: Report, setting: str) -> ScoreTable:
    """A row for each system and way of ranking, `oracle`, `joint` or `released`; random scores are the first,
    but of `joint`."""
    labels = {row.system: row.system for row in report.rows}
    for system in labels:
        name, _, by = system.partition("/")
        labels[system] = f"{SYSTEMS[name].label}, {by}" if by else "Random"
    return score_table(report, labels=labels, group=setting, caption=CAPTIONS[setting])


def mrr_figure(report: Report) -> go.Figure:
    """MRR given that the documents are related, as in CDA's Figure 3."""
    rows = system_rows(report.rows, split="", group=ORACLE)
    named = {row.system: row.system.partition("/")[0] for row in rows}
    labels = {system: "Random" if name == RANDOM else SYSTEMS[name].label for system, name in named.items()}
    return alignment_figure([replace(row, label=labels[row.system]) for row in rows])


def _ways(aligned: Aligned) -> list[tuple[str, str]]:
    """(system, by), in order."""
    return list(dict.fromkeys((system, by) for system, by, _ in aligned.scores))


def _clusters(aligned: Aligned) -> list[str]:
    return [pair.cluster for pair in aligned.pairs]


def _values(
    aligned: Aligned, system: str, by: str, settings: AlignmentSettings
) -> dict[int, dict[str, np.ndarray]]:
    """Seed -> measure -> (pairs,), given that the documents are related."""
    return {
        key[2]: values_per_list(aligned.lists(key), at=AT, reading=settings.reading)
        for key in aligned.scores
        if key[:2] == (system, by)
    }


def _chance(aligned: Aligned, settings: AlignmentSettings) -> dict[str, np.ndarray]:
    """What random scores have: those of equal scores, whose expectation over all orders is exact."""
    lists: list[RankedList] = [ranked(pair, np.zeros(len(pair.first.sentences))) for pair in aligned.pairs]
    return values_per_list(lists, at=AT, reading=settings.reading)


def _scores(
    name: str,
    seeds: Sequence[tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]],
    aligned: Aligned,
    settings: AlignmentSettings,
    of: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """Each setting of `of` and measure, after `name`.

    Args:
        seeds: with each seed the values of `_values`, and how probably each related pair is called related
            and each unrelated one unrelated.
    """
    related = _clusters(aligned)
    every = [*related, *(pair.cluster for pair in aligned.unrelated)]
    scores = {}
    for setting, (measure, column) in product(of, _COLUMNS.items()):
        if setting == RELEASED:
            points = [
                released_points(values, reading=settings.reading, detected=found, rejected=refused)[column]
                for values, found, refused in seeds
            ]
            score = ratio_score(points, every, seed=settings.seed)
        else:
            kept = [values[column] * (found if setting == JOINT else 1) for values, found, _ in seeds]
            score = mean_score(kept, related, seed=settings.seed)
        scores[f"{name}{setting}/{measure}"] = score
    return scores


def _comparisons(aligned: Aligned, settings: AlignmentSettings) -> list[dict[str, Any]]:
    """MRR given that the documents are related: each system's best way against that of the system that it
    builds on, and each other way against it; `p_holm` is corrected for all of these."""
    ways = set(_ways(aligned))
    tested: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for system, by in _ways(aligned):
        other = (system, _FIRST[by]) if by in _FIRST else (SYSTEMS[system].against, by)
        if other in ways:
            tested.append(((system, by), other))
    rows = [_compare(aligned, a, b, settings) for a, b in tested]
    corrected: Iterable[float] = holm([row["p"] for row in rows])
    return [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]


def _compare(
    aligned: Aligned, a: tuple[str, str], b: tuple[str, str], settings: AlignmentSettings
) -> Mapping[str, Any]:
    ours, theirs = (
        [one["reciprocal_rank"] for one in _values(aligned, *way, settings).values()] for way in (a, b)
    )
    compared = compare_means(ours, theirs, _clusters(aligned), seed=settings.seed)
    return {"a": a[0], "by": a[1], "b": b[0], "b_by": b[1], "measure": "mrr", **asdict(compared)}


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
