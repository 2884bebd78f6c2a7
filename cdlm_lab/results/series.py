"""Which reports share a table, which of several is used for a row, and how several seeds are combined.

All rows of all reports are one frame, and a table is made of a group of it: reports share a table if their
parameters agree in everything except what its rows are about, such as models and systems. If several reports
have a row, the newest is used; runs of the same model that differ only in their seed become one row, with
mean and standard deviation. Such a row has no interval, because the runs' intervals say how each score varies
with the test items, not with the seed; its p is the largest of the runs'.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from cdlm_lab.data.cache import STORYWORLD
from cdlm_lab.encoders.model_folder import PREFIX
from cdlm_lab.encoders.variants import VARIANTS, variant_name
from cdlm_lab.parameters import ParameterError, names_in
from cdlm_lab.results.reports import (
    ALIGNMENT,
    ANSWERS,
    COREFERENCE,
    EXPERIMENTS,
    Encoder,
    NamedReport,
    ReportFolder,
)
from cdlm_lab.runs.identity import FREE
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference.experiment import SYSTEM
from cdlm_lab.views.tables import SystemRow

CONTEXTS = {"documents": "whole documents", "sentences": "sentences only"}
# Parameters that have no effect on other corpora than storyworld.
_OF_STORYWORLD = ("train_stories", "held_out_stories", "stories", "paragraphs", "seen")
_CORPORA = {
    "storyworld": "storyworld",
    "news_clusters": "news",
    "ECB+_LREC2014": "ECB+",
    "ecbplus": "ECB+",
    "scisumm": "SciSumm",
    "hotpotqa": "HotpotQA",
    "genia_ner_data_full": "JNLPBA",
    "jnlpba": "JNLPBA",
    "litbank": "LitBank",
    "flat_litbank_full": "LitBank",
    "wikiqa": "WikiQA",
    "trecqa": "TREC-QA",
    "asnq": "ASNQ",
    "fm2": "FM2",
    "fever_related": "FM2",
}

# ---- columns: what reports are grouped by ----


def rows_of_reports(reports: Iterable[NamedReport]) -> pd.DataFrame:
    """All rows of the reports, oldest first, with what they are grouped by: `experiment`, `group`, `setting`
    (the parameters in which the reports of a table agree, as JSON), `system`, `encoder` (its display name, ""
    = none), `model` (the same for models that differ in their seed alone), `seed` and `model_seed`; the
    report's `finished` and `name`; and the `report` and the `row` itself."""
    rows = []
    for one in sorted(reports, key=age):
        setting = setting_of(one)
        for row in one.rows:
            encoder = one.encoder_of(row.system)
            named = _named(one, row)
            rows.append(
                {
                    "experiment": one.report.name,
                    "group": row.group,
                    "setting": setting,
                    "system": named.system,
                    "encoder": encoder_name(encoder),
                    "model": [encoder.variant, encoder.head, encoder.recipe or encoder.model],
                    "seed": one.report.seed or 0,
                    "model_seed": encoder.seed or 0,
                    "finished": one.report.finished,
                    "name": one.name,
                    "report": one,
                    "row": named,
                }
            )
    names = ("experiment", "group", "setting", "system", "encoder", "model", "seed", "model_seed")
    frame = pd.DataFrame(rows, columns=[*names, "finished", "name", "report", "row"])
    return frame.assign(model=frame.model.map(repr))


def encoder_name(encoder: Encoder) -> str:
    """The display name of an encoder, the same for all seeds; "" = none."""
    name = encoder.name
    if encoder.corpus and not name.startswith(PREFIX):
        head = encoder.head.removesuffix("_k").upper()
        made = f"MSPP {head}_k" if head else variant_name(encoder.variant)
        name = f"{made} of {corpus_name(encoder.corpus)}, from {encoder.root}, {encoder.steps:,} steps"
    return f"{name}, after {', '.join(encoder.tasks)}" if encoder.tasks else name


def setting_of(one: NamedReport) -> str:
    """The parameters in which the reports of one table agree, as JSON."""
    rows = EXPERIMENTS[one.report.name].rows
    return _as_text(one, {name for name in one.report.parameters if name not in (*FREE, *rows)})


def test_of(one: NamedReport) -> str:
    """The parameters that determine the test data, as JSON."""
    return _as_text(one, {*EXPERIMENTS[one.report.name].test})


def _as_text(one: NamedReport, names: set[str]) -> str:
    """The parameters of these names that are not empty, as JSON in a form that can be compared."""

    def comparable(parameters: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        invented = parameters.get("corpus", STORYWORLD) == STORYWORLD
        given = {name: parameters[name] for name in sorted(names) if parameters.get(name) not in ("", None)}
        return {
            name: _corpus_folder(value) if "corpus" in name else value_of(name, value)
            for name, value in given.items()
            if invented or name not in _OF_STORYWORLD
        }

    def value_of(name: str, value: Any) -> Any:
        if name == "matching_run":
            matching = one.report.data["matching"]
            return comparable(matching, matching.keys() - {*FREE})
        return _recipes(one, value) or value

    return json.dumps(comparable(one.report.parameters, names))


def _recipes(one: NamedReport, value: Any) -> list[str]:
    """Where a parameter names an encoder of the report, or a folder of some: how they were made, seed and
    variant aside."""
    if not isinstance(value, str) or f"{value}/".startswith(PREFIX):
        return []
    within = (value, *(f"{value.rstrip('/')}{mark}" for mark in "/-_"))
    named = (
        made for made in one.encoders.values() if made.model == value or made.model.startswith(within[1:])
    )
    return sorted({made.recipe for made in named if made.recipe})


def misnamed(one: NamedReport) -> str:
    """A message if a report uses one variant's language model under another's name, as a trial may; "" if
    not. What has learned more since stands under its system's name, and tables say what it began with."""
    for system, made in one.encoders.items():
        if system in VARIANTS and not made.tasks and made.variant not in ("", system):
            return f"has a model of {made.variant} for {system}"
    return ""


def corpus_of(one: NamedReport) -> str:
    """The display name of the corpus of a report; a subset of the labels is named as such."""
    report = one.report
    if report.name == ANSWERS:
        return corpus_name(str(report.data["format"]["test"]))
    parameters = report.data["matching"] if report.name == ALIGNMENT else report.parameters
    name, labels = corpus_name(str(parameters.get("corpus", ""))), parameters.get("labels", "all")
    return name if labels == "all" else f"{name}, {' and '.join(str(labels).split())} alone"


def corpus_name(corpus: str) -> str:
    """The display name of a corpus given as a parameter."""
    name = _corpus_folder(corpus)
    return _CORPORA.get(name, name)


def _corpus_folder(corpus: Any) -> Any:
    """The last part of a corpus path: a corpus is the same wherever its folder lies."""
    return PurePosixPath(corpus.rstrip("/")).name if isinstance(corpus, str) else corpus


# ---- reports of one setting, and their rows ----


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRow:
    """A row of a table, with its sources."""

    row: SystemRow  # its scores; their `against` is a label
    encoder: str  # display name of its checkpoint; "" = none
    sources: tuple[NamedReport, ...]  # the reports it comes from, sorted by seed
    passed_over: tuple[NamedReport, ...]  # reports that also have this row and were not used


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Reports of one experiment with the same setting, and their combined rows of one group."""

    newest: NamedReport
    reports: Sequence[NamedReport]
    setting: Mapping[str, Any]  # the parameters in which they agree
    rows: Mapping[str, TakenRow]  # by system
    others: Sequence[TakenRow]  # of systems with several encoders, the rows of the others


def series_of(frame: pd.DataFrame, *, experiment: str, group: str, choose: str = "") -> list[Series]:
    """The series for a group of rows, oldest first. `choose`: names of reports, separated by spaces, with `*`
    as a wildcard, that are preferred over newer ones."""
    chosen = names_in(choose, "choose")
    frame = frame[(frame.experiment == experiment) & (frame.group == group)]
    frame = frame.assign(chosen=[any(fnmatchcase(name, one) for one in chosen) for name in frame.name])
    series = []
    for setting, rows in _grouped(frame.itertuples(), "setting").items():
        taken = {system: _take(same) for (system,), same in _grouped(rows, "system").items()}
        others = [
            _with_sound_tests(_take(same), taken)
            for (system, encoder), same in _grouped(rows, "system", "encoder").items()
            if encoder not in ("", taken[system].encoder)
        ]
        reports = [*{one.name: one.report for one in rows}.values()]
        sound = {system: _with_sound_tests(one, taken) for system, one in taken.items()}
        parts = {"setting": json.loads(*setting), "rows": sound, "others": others}
        series.append(Series(newest=reports[-1], reports=reports, **parts))
    return series


def _grouped(rows: Iterable[Any], *columns: str) -> dict[tuple, list[Any]]:
    """The rows by their values in some columns, in the order in which these come first."""
    groups: dict[tuple, list[Any]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, column) for column in columns), []).append(row)
    return groups


def age(one: NamedReport) -> tuple[str, str]:
    """Sort key of reports, oldest first."""
    return one.report.finished, one.name


def check_chosen(reports: ReportFolder, choose: str) -> None:
    """Raise ParameterError if a name in `choose` matches no report."""
    for pattern in names_in(choose, "choose"):
        if not any(fnmatchcase(one.name, pattern) for one in reports.reports):
            raise ParameterError(f"choose names {pattern!r}, which no report in {reports.searched} is called")


def _named(one: NamedReport, row: SystemRow) -> SystemRow:
    """For coreference, whose reports say `this run` for their one model: the row as tables name it."""
    if one.report.name != COREFERENCE:
        return row
    encoder, context = one.encoder_of(SYSTEM), str(one.report.parameters["context"])
    model = encoder.variant or encoder_name(encoder)
    system = f"{model}/{context}"
    if row.system == SYSTEM:
        return replace(row, system=system, label=f"{variant_name(model)}, {CONTEXTS.get(context, context)}")
    scores = {
        name: score if score.p is None else replace(score, against=system)
        for name, score in row.scores.items()
    }
    return replace(row, scores=scores)


def _take(candidates: Sequence[Any]) -> TakenRow:
    """The newest candidate, or the newest chosen one, averaged with runs of its model with other seeds."""
    ordered = sorted(candidates, key=lambda one: (one.chosen, one.finished, one.name))
    newest = ordered[-1]
    by_seed = {_seeds(one): one for one in ordered if one.model == newest.model}
    alike = [by_seed[seeds] for seeds in sorted(by_seed)]
    values = [repr({name: score.value for name, score in one.row.scores.items()}) for one in alike]
    if not newest.row.checkpoint and len(set(values)) == 1:
        alike = [newest]  # nothing was trained, so seeds change nothing
    row, *more = (one.row for one in alike)
    if more:
        metrics = [metric for metric in row.scores if all(metric in one.scores for one in more)]
        means = {metric: _of_seeds([one.row.scores[metric] for one in alike]) for metric in metrics}
        row = replace(row, scores=means)
    used = {one.name for one in alike}
    passed_over = tuple(one.report for one in ordered if one.name not in used)
    sources = tuple(one.report for one in alike)
    return TakenRow(row=row, encoder=newest.encoder, sources=sources, passed_over=passed_over)


def _seeds(one: Any) -> tuple[float, float]:
    """The seed of a run and of its model; one that is not known comes last."""
    first, second = (float("inf") if pd.isna(seed) else seed for seed in (one.seed, one.model_seed))
    return first, second


def _of_seeds(scores: Sequence[Score]) -> Score:
    values = [score.value for score in scores]
    p = [score.p for score in scores if score.p is not None]
    tested = len(p) == len(scores) and len({score.against for score in scores}) == 1
    return Score(
        system=scores[0].system,
        metric=scores[0].metric,
        value=fmean(values),
        deviation=stdev(values),
        seeds=len(values),
        p=max(p) if tested else None,
        against=scores[0].against if tested else "",
    )


def _with_sound_tests(one: TakenRow, taken: Mapping[str, TakenRow]) -> TakenRow:
    """The row without the p-values of tests against a row that now comes from another report; in the others,
    `against` becomes a label."""

    def sound(score: Score) -> Score:
        other = taken.get(score.against)
        if score.p is None:
            return replace(score, against="")
        if other and {source.name for source in other.sources} == {source.name for source in one.sources}:
            return replace(score, against=other.row.label)
        return replace(score, p=None, against="")

    scores = {name: sound(score) for name, score in one.row.scores.items()}
    return replace(one, row=replace(one.row, scores=scores))
