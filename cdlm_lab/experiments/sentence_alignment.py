"""Which sentences of one document belong to the other (Zhou et al. 2020, "CDA", section 5.3, Tables 4 and 5,
Figure 3): notebook 05.

The systems are those that notebook 04 trained to tell whether documents belong together; nobody told them of
sentences. Of the related test pairs whose true sentences are known, all sentences of the first document are
ranked. The hierarchical systems rank by attention and by cosine (equations 3 and 4). CDLM publishes no such
alignment: here it has one from its global attention and one from its encodings (see
analysis/sentence_alignment.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cdlm_lab.analysis.sentence_alignment import SOURCES, by_encodings, by_global_attention
from cdlm_lab.data.document_pairs import DocumentPair
from cdlm_lab.data.files import DataError
from cdlm_lab.experiments.document_matching import (
    MatchingRun,
    MatchingSettings,
    match_documents,
    prepare_matching,
)
from cdlm_lab.experiments.kept_numbers import KeptNumbers
from cdlm_lab.experiments.match_predictions import MatchPredictions
from cdlm_lab.experiments.matching_models import Matcher
from cdlm_lab.experiments.matching_systems import System, systems_named
from cdlm_lab.metrics.ranking import READINGS, RankedList
from cdlm_lab.parameters import ParameterError, check_choice, check_types
from cdlm_lab.progress import Progress
from cdlm_lab.report import read_report
from cdlm_lab.report.document import REPORT_FILE
from cdlm_lab.training.config import Precision, precision_told

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
