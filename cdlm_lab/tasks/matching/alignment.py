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
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.data.words import split_sentences
from cdlm_lab.encoders.precision import Precision, precision_in_words
from cdlm_lab.metrics.ranking import RankedList, released_points, values_per_list
from cdlm_lab.metrics.significance import compare_means, mean_score, ratio_score
from cdlm_lab.parameters import ParameterError, parameter_names, settings, settings_of
from cdlm_lab.progress import Progress
from cdlm_lab.runs import runs
from cdlm_lab.runs.identity import Identity, Inputs
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.runs.report import REPORT_FILE, Report, changed_since, read_report
from cdlm_lab.runs.runs import Scores, SystemRun, Training, once, report
from cdlm_lab.runs.scores import Score
from cdlm_lab.runs.scoring import with_p_holm
from cdlm_lab.tasks.matching import experiment as document_matching
from cdlm_lab.tasks.matching.attention_alignment import by_encodings, by_global_attention
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.systems import SYSTEMS, Matcher
from cdlm_lab.tasks.matching.view import AlignedColumn, alignment_figure, compared_alignments_html
from cdlm_lab.training.trained import trained_parameters
from cdlm_lab.views import score_tables
from cdlm_lab.views.ask import OwnPair
from cdlm_lab.views.before_training import facts_table
from cdlm_lab.views.figures import folder_of, keep_figure
from cdlm_lab.views.html import warning
from cdlm_lab.views.tables import ScoreTable, Shown, system_rows

__all__ = ["Settings", "evaluate", "predict", "prepare", "preview", "report", "train"]

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
    def data(self) -> dict[str, Any]:
        """How P@N is computed, stored in the report."""
        return {"reading_of_p_at_n": self.settings.reading}


def prepare(given: Settings) -> AlignmentRun:
    """Claim the run folder and read the run of notebook 04."""
    own_texts(given)
    return AlignmentRun.open(given)


def matched_run(given: Settings) -> MatchingRun:
    """The run of notebook 04, with its pairs."""
    return MatchingRun.read(matched_settings(given))


def matched_settings(given: Settings) -> document_matching.Settings:
    """The settings of the finished run of notebook 04 that is named, else of one on storyworld inside this
    run's folder. Raises ParameterError if there is no finished run, or a system was not part of it."""
    kind = document_matching.Settings
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


def preview(run: AlignmentRun) -> Shown:
    """What is aligned, and which systems are trained first."""
    return facts_table(facts(run))


def facts(run: AlignmentRun) -> list[tuple[str, str]]:
    """Facts about the run before it starts, as (name, text)."""
    matching = run.matching
    aligned = sum(pair.related and bool(pair.aligned) for pair in matching.pairs["test"])
    where = f"related test pairs of {matching.settings.corpus} with true sentences"
    rows = [("pairs", f"{aligned:,} {where}")]
    rows.append(("systems", ", ".join(system.label for system in matching.systems)))
    if untrained := [one.label for one in matching.trainings if matching.is_to_train(one)]:
        rows.append(("trained first", ", ".join(untrained)))
        rows.append(("precision of training", precision_in_words(matching.settings.precision)))
    return rows


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


_CAPTIONS = {
    ORACLE: "documents known to be related (oracle)",
    JOINT: "jointly with the decision on the documents",
    RELEASED: "as the released code scores CDA's Tables 4 and 5, unrelated pairs included",
}


def score_table(report: Report, group: str) -> ScoreTable:
    """MRR and P@N for `oracle`, `joint` or `released`; the last beside the paper's scores."""
    labels = {row.system: ", ".join(filter(None, _label_and_by(row.system))) for row in report.rows}
    return score_tables.score_table(report, labels=labels, group=group, caption=_CAPTIONS[group])


def _label_and_by(way: str) -> tuple[str, str]:
    system, _, by = way.partition("/")
    return "Random (exact)" if system == RANDOM else SYSTEMS[system].label, by


def mrr_figure(report: Report) -> go.Figure:
    """A figure of MRR given that the documents are related, as CDA's Figure 3."""
    rows = system_rows(report.rows, split="", group=ORACLE)
    figure = alignment_figure([replace(row, label=_label_and_by(row.system)[0]) for row in rows])
    return keep_figure(folder_of(report), "mrr", figure)


# ---- the sentences of one pair ----

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
_WAYS = ("attention", GLOBAL_ATTENTION, "cosine")  # the first that a system has is shown


def compared_pair(run: AlignmentRun, aligned: Aligned) -> Shown:
    """A test pair as aligned by every system with seed 0: the one named by `shown_pair`, or one that most
    systems detect, preferably with few gold sentences that are neither first nor last."""
    name, names = run.settings.shown_pair, [pair.id for pair in aligned.pairs]
    if name and name not in names:
        raise ParameterError(
            f"shown_pair is {name!r}, which is no related test pair with true sentences; one is {names[0]!r}"
        )
    detected = np.mean(list(aligned.detected.values()), axis=0)
    # Rather a pair with one or two gold sentences, neither of them the first or the last.
    inside = [
        len(pair.aligned) < 3 and not {0, len(pair.first.sentences) - 1} & set(pair.aligned)
        for pair in aligned.pairs
    ]
    place = names.index(name) if name else int(np.argmax(detected + inside))
    pair, columns = aligned.pairs[place], []
    for system in run.matching.systems:
        keys = {by: (system.name, by, 0) for by in _WAYS}
        alignments = {by: aligned.scores[key][place] for by, key in keys.items() if key in aligned.scores}
        columns.append(_column(system.label, alignments, pair, aligned.probabilities[system.name, 0][place]))
    return Shown(pair_html(pair, columns))


def own_texts(given: Settings) -> tuple[str, str]:
    """The contents of the two files, or the built-in example. Raises DataError if one cannot be read."""
    return (
        (read_text(given.first_document), read_text(given.second_document))
        if given.first_document
        else EXAMPLE
    )


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
    column = _column(label, alignments, pair, predictions.probabilities[0])
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


def _column(
    label: str, alignments: Mapping[str, np.ndarray], pair: DocumentPair, probability: float
) -> AlignedColumn:
    """The weights of the sentences by one system; None for sentences that it does not read."""
    by = next(by for by in _WAYS if by in alignments)
    weights: list[float | None] = [None] * len(pair.first.sentences)
    known = _shares(alignments[by]) if by == GLOBAL_ATTENTION else alignments[by].tolist()
    weights[: len(known)] = known
    return AlignedColumn(name=label, weights=weights, shares=by != "cosine", decision=float(probability))


def _shares(scores: np.ndarray) -> list[float | None]:
    """Scores of global attention, which have no scale, as shares of their excess over the lowest; equal
    shares if all are tied. A sentence outside the sequence has a score 1 below the lowest, and no share."""
    read = scores >= scores.min() + 1 - 1e-6  # as 0.3 is a little less than 1 - 0.7
    read |= not read.any()
    above = np.maximum(scores - scores[read].min(), 0)
    shares = above / above.sum() if above.sum() > 0 else read / read.sum()
    return [share if known else None for share, known in zip(shares.tolist(), read.tolist(), strict=True)]


def pair_html(pair: DocumentPair, columns: list[AlignedColumn]) -> str:
    """The sentences of a pair with the weights from each system."""
    return compared_alignments_html(
        columns,
        pair.first.sentences,
        pair.aligned or (),
        title=pair.first.id,
        other_title=pair.second.id,
        other_sentences=pair.second.sentences,
    )
