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
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

import numpy as np

from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.data.records import DocumentPair
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.metrics.ranking import RankedList, released_points, values_per_list
from cdlm_lab.metrics.significance import compare_means, mean_score, ratio_score
from cdlm_lab.parameters import ParameterError, parameter_names, settings, settings_of
from cdlm_lab.progress import Progress
from cdlm_lab.runs import runs
from cdlm_lab.runs.identity import Identity, Inputs
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.runs.report import REPORT_FILE, changed_since, read_report
from cdlm_lab.runs.runs import Scores, SystemRun, Training, once, report
from cdlm_lab.runs.scores import Score
from cdlm_lab.runs.scoring import with_p_holm
from cdlm_lab.tasks.matching import experiment
from cdlm_lab.tasks.matching.attention_alignment import by_encodings, by_global_attention
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.systems import SYSTEMS, Matcher
from cdlm_lab.training.trained import trained_parameters

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train"]

GLOBAL_ATTENTION, ENCODINGS = "global attention", "encodings"


@settings
class Settings:
    """The parameters of notebook 05, whose first cell says what each is."""

    run_folder: str = "runs/sentence_alignment"
    trained: str = ""  # a run of notebook 04 whose models are opened where `matching_run` is ""; "" = trained
    matching_run: str = ""
    systems: str = ""  # "" = all of that run
    source: Literal["first token", "other document"] = "other document"
    reading: Literal["hit", "precision"] = "hit"
    precision: Precision = "auto"
    shown_pair: str = ""
    first_document: str = ""
    second_document: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if bool(self.first_document) != bool(self.second_document):
            missing = "second_document" if self.first_document else "first_document"
            raise ParameterError(f'{missing} is ""; name two files, or none')


@dataclass(frozen=True, kw_only=True)
class AlignmentRun(SystemRun):
    """A run of notebook 05: the run of notebook 04 whose systems rank sentences."""

    NAME: ClassVar[str] = "sentence alignment"

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


def prepare(given: Settings) -> AlignmentRun:
    """Claim the run folder and read the run of notebook 04."""
    for file in filter(None, (given.first_document, given.second_document)):
        read_text(file)  # raises DataError if it cannot be read
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
    # However many processes made the run, only this one reads it.
    alone = {"run_folder": str(folder), "parallel": "", "workers": "auto"}
    values = known.parameters | alone
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
    """Predictions for the pairs whose gold sentences are known."""

    pairs: Sequence[DocumentPair]  # related test pairs
    # (system, way of ranking, seed) -> for each pair float64 (sentences of the first document,).
    scores: Mapping[tuple[str, str, int], list[np.ndarray]] = field(repr=False)
    # (system, seed) -> float64 (pairs,), probability of related; bool (pairs,), True = predicted related.
    probabilities: Mapping[tuple[str, int], np.ndarray] = field(repr=False)
    detected: Mapping[tuple[str, int], np.ndarray] = field(repr=False)
    unrelated: Sequence[DocumentPair]  # unrelated test pairs
    # (system, seed) -> bool (unrelated pairs,), True = predicted unrelated.
    rejected: Mapping[tuple[str, int], np.ndarray] = field(repr=False)

    def lists(self, key: tuple[str, str, int]) -> list[RankedList]:
        """The ranked sentences of each pair."""
        return [ranked(pair, scores) for pair, scores in zip(self.pairs, self.scores[key], strict=True)]


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
    numbers = [number for number, pair in enumerate(test) if pair.related and pair.aligned]
    if not numbers:
        corpus = Path(matching.settings.corpus)
        raise DataError(corpus, "no true sentences in test", "take a corpus that has them")
    pairs = [test[number] for number in numbers]
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
        pairs=pairs,
        scores=scores,
        probabilities={key: one.probabilities[numbers] for key, one in predictions.items()},
        detected={key: one.decisions[numbers] for key, one in predictions.items()},
        unrelated=[test[number] for number in unrelated],
        rejected={key: ~one.decisions[unrelated] for key, one in predictions.items()},
    )


def _longformer_scores(
    run: AlignmentRun, training: Training, pairs: Sequence[DocumentPair]
) -> dict[str, list[np.ndarray]]:
    source = run.settings.source
    file = run.folder / "alignments" / f"{training.name}-{source.replace(' ', '-')}.npy"
    counts = [len(pair.first.sentences) for pair in pairs]
    with KeptNumbers(file, (len(pairs), 2, max(counts))) as kept:
        if len(kept.missing):
            matcher, done = run.matching.load(training), len(pairs) - len(kept.missing)
            with Progress(total=len(pairs), initial=done, desc=training.label, unit="pair") as bar:
                for number in kept.missing:
                    kept.values[number] = -np.inf  # padding beyond the last sentence
                    alignments = longformer_alignments(matcher, pairs[number], source=source)
                    for place, scores in enumerate(alignments.values()):
                        kept.values[number, place, : len(scores)] = scores
                    kept.save_when_due()
                    bar.update(1)
    values = kept.values.astype(np.float64)
    return {
        by: [row[place, :count] for row, count in zip(values, counts, strict=True)]
        for place, by in enumerate((GLOBAL_ATTENTION, ENCODINGS))
    }


def longformer_alignments(matcher: Matcher, pair: DocumentPair, *, source: str) -> dict[str, np.ndarray]:
    """Scores of the sentences of the first document by `global attention` and by `encodings`."""
    sequence = matcher.examples([pair]).describe(0)
    return {
        GLOBAL_ATTENTION: by_global_attention(matcher.model, sequence, document=0, source=source),
        ENCODINGS: by_encodings(matcher.model, sequence, document=0),
    }


# ---- scores ----

AT = (1, 5, 10)
ORACLE, JOINT, RELEASED, RANDOM = "oracle", "joint", "released", "random"
_COLUMNS = {"mrr": "reciprocal_rank", **{f"at_{n}": f"at_{n}" for n in AT}}
# The way of ranking that is best in the papers, or designed to be; the other one is tested against it.
_FIRST = {"cosine": "attention", ENCODINGS: GLOBAL_ATTENTION}
# For one seed: measure -> (pairs,), given that the documents are related; the probability that each related
# pair is predicted related, and that each unrelated one is predicted unrelated.
OfSeed = tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]


@once
def evaluate(run: AlignmentRun, aligned: Aligned) -> Scores:
    """MRR and P@N of every system and way of ranking, and the significance tests between them: given that the
    documents are related (`oracle`), jointly with that decision (`joint`: 0 where it is wrong), and as the
    released code computes CDA's Tables 4 and 5 (`released`: with the unrelated pairs)."""
    given, pairs = run.settings, aligned.pairs
    # with all scores tied, the measures are their exact expectation over random orders
    equal = [ranked(pair, np.zeros(len(pair.first.sentences))) for pair in pairs]
    coin = (np.full(len(pairs), 0.5), np.full(len(aligned.unrelated), 0.5))
    by_chance = (values_per_list(equal, at=AT, reading=given.reading), *coin)
    values: dict[tuple[str, str], list[OfSeed]] = {}
    for system, by, seed in aligned.scores:
        of_lists = values_per_list(aligned.lists((system, by, seed)), at=AT, reading=given.reading)
        decided = (aligned.detected[system, seed], aligned.rejected[system, seed])
        values.setdefault((system, by), []).append((of_lists, *decided))
    tests = _comparisons(aligned, values, seed=given.seed)
    p_of = {
        (f"{row['a']}/{row['by']}", ORACLE, "mrr"): {
            "p": row["p_holm"],
            "against": f"{row['b']}/{row['b_by']}",
        }
        for row in tests
    }
    rows = _rows(RANDOM, [by_chance], aligned, given, (ORACLE, RELEASED))
    for (system, by), seeds in values.items():
        rows += _rows(f"{system}/{by}", seeds, aligned, given, (ORACLE, JOINT, RELEASED))
    rows = [replace(row, **p_of.get((row.system, row.group, row.metric), {})) for row in rows]
    data = {
        "pairs": len(pairs),
        "unrelated_pairs": len(aligned.unrelated),
        "clusters": len({pair.cluster for pair in pairs}),
        "sentences": fmean(len(pair.first.sentences) for pair in pairs),
        "true_sentences": fmean(len(pair.aligned) for pair in pairs),
    }
    return Scores(rows=rows, tables={"comparisons": tests}, data=data)


def _rows(
    system: str, seeds: Sequence[OfSeed], aligned: Aligned, given: Settings, groups: Sequence[str]
) -> list[Score]:
    related = [pair.cluster for pair in aligned.pairs]
    every = [*related, *(pair.cluster for pair in aligned.unrelated)]
    rows = []
    for group, (metric, column) in product(groups, _COLUMNS.items()):
        clusters = every if group == RELEASED else related
        if group == RELEASED:
            points = [
                released_points(values, reading=given.reading, detected=detected, rejected=rejected)[column]
                for values, detected, rejected in seeds
            ]
            score = ratio_score(points, clusters, seed=given.seed)
        else:
            counted = [values[column] * (detected if group == JOINT else 1) for values, detected, _ in seeds]
            score = mean_score(counted, clusters, seed=given.seed)
        size = {"n": len(clusters), "clusters": len(set(clusters))}
        rows.append(Score(system=system, group=group, metric=metric, **score, **size))
    return rows


def _comparisons(
    aligned: Aligned, values: Mapping[tuple[str, str], Sequence[OfSeed]], *, seed: int
) -> list[dict[str, Any]]:
    """Tests of MRR given that the documents are related: each system's best way of ranking against that of
    the system it builds on, and its other way against its best."""
    clusters = [pair.cluster for pair in aligned.pairs]
    rows = []
    for system, by in values:
        other = (system, _FIRST[by]) if by in _FIRST else (SYSTEMS[system].against, by)
        if other in values:
            sides = [[one[0]["reciprocal_rank"] for one in values[way]] for way in ((system, by), other)]
            names = {"a": system, "by": by, "b": other[0], "b_by": other[1], "measure": "mrr"}
            rows.append(names | asdict(compare_means(*sides, clusters, seed=seed)))
    return with_p_holm(rows)
