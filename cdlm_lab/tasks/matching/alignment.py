"""Sentence alignment: which sentences of one document belong to the other (Zhou et al. 2020, "CDA", section
5.3, Tables 4 and 5, Figures 3 and 4): notebook 05.

The systems are those that notebook 04 trained to predict whether documents belong together, without any
sentence labels. For each related test pair with gold sentences, all sentences of the first document are
ranked. The hierarchical systems rank by attention and by cosine (equations 3 and 4). CDLM publishes no such
alignment: here it has one from its global attention and one from its encodings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import DocumentPair
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.metrics.ranking import RankedList, released_points, values_per_list
from cdlm_lab.parameters import ParameterError, parameter_names, settings, settings_of
from cdlm_lab.progress import Progress
from cdlm_lab.runs import runs
from cdlm_lab.runs.evaluation import Measure, Planned
from cdlm_lab.runs.identity import Identity, Inputs
from cdlm_lab.runs.items import apart, items_of
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.runs.own import by_item
from cdlm_lab.runs.report import REPORT_FILE, changed_since, read_report
from cdlm_lab.runs.runs import Scores, SystemRun, Training, once, report
from cdlm_lab.tasks.matching import experiment
from cdlm_lab.tasks.matching.attention_alignment import by_encodings, by_global_attention
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.systems import SYSTEMS, Matcher
from cdlm_lab.training.trained import on_this_machine, trained_parameters

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train"]

GLOBAL_ATTENTION, ENCODINGS = "global attention", "encodings"
# The way of ranking that is best in the papers, or designed to be; the other one is compared with it.
_FIRST = {"cosine": "attention", ENCODINGS: GLOBAL_ATTENTION}
AT = (1, 5, 10)
ORACLE, JOINT, RELEASED, RANDOM = "oracle", "joint", "released", "random"
_COLUMNS = {"mrr": "reciprocal_rank", **{f"at_{n}": f"at_{n}" for n in AT}}


@settings
class Settings:
    """The parameters of notebook 05, whose first cell says what each is."""

    run_folder: str = "runs/sentence_alignment"
    trained: str = ""  # a run of notebook 04 whose models are opened where `matching_run` is ""; "" = trained
    matching_run: str = ""
    systems: str = ""  # "" = all of that run
    reading: Literal["hit", "precision"] = "hit"
    precision: Precision = "auto"


@dataclass(frozen=True, kw_only=True)
class AlignmentRun(SystemRun):
    """A run of notebook 05: the run of notebook 04 whose systems rank sentences."""

    NAME: ClassVar[str] = "sentence alignment"
    MEASURES: ClassVar[tuple[Measure, ...]] = tuple(Measure(name, counts="mrr") for name in _COLUMNS)

    settings: Settings
    matching: MatchingRun

    @classmethod
    def read(cls, given: Settings) -> AlignmentRun:
        """Read the run of notebook 04."""
        return cls(settings=given, matching=matched_run(given))

    @property
    def trainings(self) -> list[Training]:
        """Empty: all systems belong to the run of notebook 04."""
        return []

    def check(self) -> None:
        """Raise an error if a model does not fit, or if the run of notebook 04 read other data or models."""
        if not (run := self.settings.matching_run):
            self.matching.check()
            return
        now = Identity.of(MatchingRun.NAME, {}, self.matching.inputs)
        if changed := changed_since(Path(run), now, shared=True):
            what = f"which read other data or models: {'; '.join(changed)}"
            raise ParameterError(
                f"matching_run is {run!r}, {what}; make it anew in another folder, and name that"
            )

    @property
    def inputs(self) -> Inputs:
        """Those of the run of notebook 04, and its models, if it is another run's."""
        inputs, matching = self.matching.inputs, self.matching
        learned = (one for one in matching.trainings if one.system.is_model and self.settings.matching_run)
        folders = (str(matching.model_folder(one)) for one in learned)
        return replace(inputs, models=[*inputs.models, *folders])

    @property
    def origins(self) -> dict[str, Any]:
        """Those of the run of notebook 04."""
        return self.matching.origins

    @property
    def encoders(self) -> dict[str, Any]:
        """Those of the run of notebook 04."""
        return self.matching.encoders

    @property
    def data(self) -> dict[str, Any]:
        """How P@N is computed, and the parameters of the run of notebook 04, stored in the report."""
        return {"reading_of_p_at_n": self.settings.reading, "matching": asdict(self.matching.settings)}

    @property
    def planned(self) -> list[Planned]:
        """MRR given that the documents are related: each system's best way of ranking against that of the
        system it builds on, and its other way against its best."""
        ways = []
        for system in self.matching.systems:
            for first, other in zip(_FIRST.values(), _FIRST, strict=True):
                ways += [(f"{system.name}/{first}", f"{system.against}/{first}")]
                ways += [(f"{system.name}/{other}", f"{system.name}/{first}")]
        return [Planned(a=a, b=b, measure="mrr", split="", group=ORACLE) for a, b in ways]

    @cached_property
    def pairs(self) -> list[DocumentPair]:
        """The related test pairs whose true sentences are known."""
        return [pair for pair in self.matching.pairs["test"] if pair.related and pair.aligned]

    @cached_property
    def unrelated(self) -> list[DocumentPair]:
        """The unrelated test pairs."""
        return [pair for pair in self.matching.pairs["test"] if not pair.related]

    def items(self, predictions: Aligned | Mapping[tuple[str, int], Mapping[str, Any]]) -> pd.DataFrame:
        """MRR and P@N of each pair, in the groups that `evaluate` names; of scores of one's own, which hold
        no decision on the documents, only given that these are related."""
        if not isinstance(predictions, Aligned):
            own = ((key, scores) for key, of in predictions.items() for scores in of.values())
            return pd.concat([self._rows(*key, self._values(scores)) for key, scores in own])
        # With all scores tied, the measures are their exact expectation over random orders.
        tied = [np.zeros(len(pair.first.sentences)) for pair in self.pairs]
        by_chance = self._values(tied, (np.full(len(self.pairs), 0.5), np.full(len(self.unrelated), 0.5)))
        tables = [self._rows(RANDOM, 0, {group: by_chance[group] for group in (ORACLE, RELEASED)})]
        for (system, by, seed), scores in predictions.scores.items():
            decided = predictions.detected[system, seed], predictions.rejected[system, seed]
            tables.append(self._rows(f"{system}/{by}", seed, self._values(scores, decided)))
        return pd.concat(tables)

    def _values(
        self, scores: Sequence[np.ndarray], decided: tuple[np.ndarray, np.ndarray] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Group -> base metric -> values of the pairs. `decided`: the probabilities of the right decision on
        related and on unrelated pairs; None = not known, so that there is only the first group."""
        reading = self.settings.reading
        lists = [ranked(pair, of_pair) for pair, of_pair in zip(self.pairs, scores, strict=True)]
        of_lists = values_per_list(lists, at=AT, reading=reading)
        oracle = {name: of_lists[column] for name, column in _COLUMNS.items()}
        if decided is None:
            return {ORACLE: oracle}
        joint = {name: values * decided[0] for name, values in oracle.items()}
        points = released_points(of_lists, reading=reading, detected=decided[0], rejected=decided[1])
        return {
            ORACLE: oracle,
            JOINT: joint,
            RELEASED: {name: points[column] for name, column in _COLUMNS.items()},
        }

    def _rows(self, system: str, seed: int, values: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
        tables = []
        for group, of_pairs in values.items():
            pairs = [*self.pairs, *self.unrelated] if group == RELEASED else self.pairs
            names = {"items": [one.id for one in pairs], "clusters": [one.cluster for one in pairs]}
            tables.append(items_of(of_pairs, system=system, seed=seed, split="", group=group, **names))
        return pd.concat(tables)

    def own_predictions(
        self, file: Path, lines: Sequence[tuple[int, Mapping[str, Any]]], split: str
    ) -> list[np.ndarray]:
        """Lines {"item": id of a related pair with true sentences, "scores": [0.1, 0.7, ...]} with a score of
        each sentence of the first document; the highest is ranked first."""
        given = by_item(file, lines, apart(pair.id for pair in self.pairs), field="scores")
        read = []
        for pair, (line, scores) in zip(self.pairs, given.values(), strict=True):
            try:
                read.append(np.array(scores, dtype=np.float64))
            except (TypeError, ValueError):
                read.append(np.empty(0))
            count = len(pair.first.sentences)
            if read[-1].shape != (count,) or not np.isfinite(read[-1]).all():
                raise DataError(
                    file, f"no {count} scores", "write a number a sentence", line=line, field="scores"
                )
        return read


def prepare(given: Settings) -> AlignmentRun:
    """Claim the run folder and read the run of notebook 04."""
    return AlignmentRun.open(given)


def matched_run(given: Settings) -> MatchingRun:
    """The run of notebook 04, with its pairs."""
    return MatchingRun.read(matched_settings(given))


def matched_settings(given: Settings) -> experiment.Settings:
    """The settings of the finished run of notebook 04 that is named, else of one on storyworld inside this
    run's folder. Raises ParameterError if there is no finished run, or a system was not part of it."""
    kind = experiment.Settings
    if not given.matching_run:
        made = trained_parameters(given.trained) if given.trained else {}
        own = {name: made[name] for name in (*MatchingRun.SHAPES, "systems") if name in made}
        own |= {"systems": given.systems} if given.systems else {}
        own |= {"run_folder": str(Path(given.run_folder) / "matching"), "precision": given.precision}
        return kind(**own, trained=given.trained)
    folder, run = Path(given.matching_run), f"matching_run is {given.matching_run!r}"
    if not (folder / REPORT_FILE).is_file():
        raise ParameterError(f'{run}, where no finished run of notebook 04 is; run that first, or write ""')
    known, names = read_report(folder), parameter_names(kind)
    values = on_this_machine(known.parameters) | {"run_folder": str(folder)}
    if missing := [name for name in names if name not in values]:
        raise ParameterError(
            f"{run}, a run of {known.name!r} without {missing[0]!r}; name one of notebook 04"
        )
    chosen = given.systems or values["systems"]
    absent = set(runs.chosen_systems(chosen, SYSTEMS)) - set(runs.chosen_systems(values["systems"], SYSTEMS))
    if absent:
        first = min(system.name for system in absent)
        raise ParameterError(f"systems names {first}, which {given.matching_run} has not")
    return settings_of(kind, values | {"systems": chosen})


def train(run: AlignmentRun, *, curves: runs.Curves | None = None) -> None:
    """Train what is missing of the run of notebook 04. Raises Stopped; calling again continues from there."""
    runs.train(run.matching, curves=curves)


# ---- predictions ----


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """Predictions for the pairs of the run, whose true sentences are known."""

    # (system, way of ranking, seed) -> for each pair float64 (sentences of the first document,).
    scores: Mapping[tuple[str, str, int], list[np.ndarray]] = field(repr=False)
    # (system, seed) -> float64 (pairs,), probability of related; bool (pairs,), True = predicted related.
    probabilities: Mapping[tuple[str, int], np.ndarray] = field(repr=False)
    detected: Mapping[tuple[str, int], np.ndarray] = field(repr=False)
    # (system, seed) -> bool (unrelated pairs,), True = predicted unrelated.
    rejected: Mapping[tuple[str, int], np.ndarray] = field(repr=False)


def ranked(pair: DocumentPair, scores: np.ndarray) -> RankedList:
    """The scored sentences of the first document; those that a system does not read come last, tied."""
    count = len(pair.first.sentences)
    lowest = scores.min(initial=0.0) - 1.0
    complete = np.concatenate([scores, np.full(count - len(scores), lowest)])
    return RankedList(scores=complete, relevant=np.isin(np.arange(count), pair.aligned))


def predict(run: AlignmentRun) -> Aligned:
    """Rank the sentences of every related test pair with gold sentences. The slow part, the Longformers'
    scores, is saved in the run folder. Raises DataError if no pair has gold sentences."""
    matching, test = run.matching, run.matching.pairs["test"]
    predictions = {key: of_split["test"] for key, of_split in runs.predict(matching).items()}
    numbers, pairs = [n for n, pair in enumerate(test) if pair.related and pair.aligned], run.pairs
    if not pairs:
        corpus = Path(matching.settings.corpus)
        raise DataError(corpus, "no true sentences in test", "take a corpus that has them")
    unrelated = [number for number, pair in enumerate(test) if not pair.related]
    scores: dict[tuple[str, str, int], list[np.ndarray]] = {}
    for training in matching.trainings:
        name, seed = training.key
        for by, every in predictions[name, seed].alignments.items():
            scores[name, by, seed] = [every[number] for number in numbers]
        if training.system.encoder == "longformer":
            read = _longformer_scores(run, training, pairs)
            scores |= {(name, by, seed): one for by, one in read.items()}
    return Aligned(
        scores=scores,
        probabilities={key: one.probabilities[numbers] for key, one in predictions.items()},
        detected={key: one.decisions[numbers] for key, one in predictions.items()},
        rejected={key: ~one.decisions[unrelated] for key, one in predictions.items()},
    )


def _longformer_scores(
    run: AlignmentRun, training: Training, pairs: Sequence[DocumentPair]
) -> dict[str, list[np.ndarray]]:
    file = run.folder / "alignments" / f"{training.name}.npy"
    counts = [len(pair.first.sentences) for pair in pairs]
    with KeptNumbers(file, (len(pairs), 2, max(counts))) as kept:
        if len(kept.missing):
            matcher, done = run.matching.load(training), len(pairs) - len(kept.missing)
            with Progress(total=len(pairs), initial=done, desc=training.label, unit="pair") as bar:
                for number in kept.missing:
                    kept.values[number] = -np.inf  # padding beyond the last sentence
                    alignments = longformer_alignments(matcher, pairs[number])
                    for place, scores in enumerate(alignments.values()):
                        kept.values[number, place, : len(scores)] = scores
                    kept.save_when_due()
                    bar.update(1)
    values = kept.values.astype(np.float64)
    return {
        by: [row[place, :count] for row, count in zip(values, counts, strict=True)]
        for place, by in enumerate((GLOBAL_ATTENTION, ENCODINGS))
    }


def longformer_alignments(matcher: Matcher, pair: DocumentPair) -> dict[str, np.ndarray]:
    """Scores of the sentences of the first document by `global attention` and by `encodings`."""
    sequence = matcher.examples([pair]).describe(0)
    return {
        GLOBAL_ATTENTION: by_global_attention(matcher.model, sequence, document=0),
        ENCODINGS: by_encodings(matcher.model, sequence, document=0),
    }


# ---- scores ----


@once
def evaluate(run: AlignmentRun, aligned: Aligned) -> Scores:
    """MRR and P@N of every system and way of ranking, and the planned comparisons: given that the documents
    are related (`oracle`), jointly with that decision (`joint`: 0 where it is wrong), and as the released
    code computes CDA's Tables 4 and 5 (`released`: with the unrelated pairs)."""
    pairs = run.pairs
    data = {
        "pairs": len(pairs),
        "unrelated_pairs": len(run.unrelated),
        "clusters": len({pair.cluster for pair in pairs}),
        "sentences": fmean(len(pair.first.sentences) for pair in pairs),
        "true_sentences": fmean(len(pair.aligned) for pair in pairs),
    }
    return Scores.of(run.evaluated(aligned), data=data)
