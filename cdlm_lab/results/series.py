"""Which reports share a table, which of several is used for a row, and how several seeds are combined.

Reports share a table if their parameters agree in everything except what its rows are about, such as models
and systems. If several reports have a row, the newest is used; runs of the same model that differ only in
their seed become one row, with mean and standard deviation. Such a row has no interval, because the runs'
intervals say how each score varies with the test items, not with the seed; its p is the largest of the runs'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from statistics import fmean, stdev
from typing import Any

from cdlm_lab.encoders.variants import VARIANTS, variant_name
from cdlm_lab.parameters import BY_HOW_MANY, SHOWN, ParameterError, names_in
from cdlm_lab.results.reports import (
    ALIGNMENT,
    ANSWERS,
    COREFERENCE,
    EXPERIMENTS,
    PARAGRAPHS,
    NamedReport,
    ReportFolder,
)
from cdlm_lab.runs.identity import TASKS
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference.experiment import SYSTEM
from cdlm_lab.views.tables import SystemRow

CONTEXTS = {"documents": "whole documents", "sentences": "sentences only"}

# ---- comparing the parameters of reports ----


_PRETRAININGS = ("pretraining", PARAGRAPHS)
# Parameters that change no score, or only how many scores are averaged.
_FREE = (
    *("run_folder", "seed", "seeds", "attention", "precision", *BY_HOW_MANY, *SHOWN),
    *("micro_batch_size", "encoder_micro_batch_size", "gradient_checkpointing"),
)
# Parameters that have no effect on other corpora than storyworld.
_OF_STORYWORLD = ("train_stories", "held_out_stories", "stories", "paragraphs", "seen")
# Folders inside a run folder that may end the path of a checkpoint.
_WITHIN = ("model", "training")
# The recorded runs, in data/results, that produced the models shipped with the project.
_RECORDED = "storyworld_tiny/pretraining_{}.json"
_DEEPEST = 8  # limit for chains of runs made from runs, which could be circular
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
Setting = tuple[tuple[str, str], ...]  # (name, value) of parameters


@dataclass(frozen=True)
class KnownRuns:
    """The runs of a folder, used to interpret paths in the parameters of others: a checkpoint of a run is the
    same model whatever its folder is called, and with another seed the same except for the seed."""

    reports: ReportFolder

    @cached_property
    def by_folder(self) -> dict[PurePosixPath, NamedReport]:
        """Run folder, both as in its parameters and as found here -> the run."""
        folders: dict[PurePosixPath, NamedReport] = {}
        for one in (*self.reports.reports, *self.reports.others):
            if given := one.report.parameters.get("run_folder"):
                folders[_path(str(given))] = one
            folders[_path((self.reports.folder / one.name).as_posix())] = one
        return folders

    @cached_property
    def by_head(self) -> dict[PurePosixPath, NamedReport]:
        """Runs of notebook 08 as others refer to them, by parent folder and head: `runs/mspp/mspp-ie`,
        whatever the run in `runs/mspp` is called; without runs that another one continues from."""
        runs = {f: one for f, one in self.by_folder.items() if one.report.name == PARAGRAPHS}
        begun_with = {_run_folder(str(one.report.parameters.get("model"))) for one in runs.values()}
        return {
            folder.parent / f"mspp-{_head(one)}": one
            for folder, one in runs.items()
            if str(folder) not in begun_with
        }

    def run_at(self, path: str) -> NamedReport | None:
        """The run in whose folder a path lies; None if it is in no known run."""
        place = _path(path)
        for folder in (place, *place.parents):
            one = self.by_folder.get(folder) or self.by_head.get(folder)
            if one and str(folder) != ".":
                return one
        return None

    def comparable(self, value: Any, *, deep: int = 0) -> Any:
        """A parameter's value in a form that can be compared between runs: a path into a run is replaced by
        the parameters with which that run was made."""
        if not isinstance(value, str) or not value or deep > _DEEPEST:
            return value
        if run := self.run_at(value):
            return (run.report.name, self.parameters_of(run, without=_FREE, deep=deep + 1))
        place = _path(value)
        # Of a grid's folder only the pretrained models: the other runs in it refer to that folder themselves.
        within = {
            folder.name: self.parameters_of(one, without=_FREE, deep=deep + 1)
            for folder, one in self.by_folder.items()
            if folder.parent == place and str(place) != "." and one.report.name in _PRETRAININGS
        }
        return tuple(sorted(within.items())) if within else value

    def parameters_of(self, one: NamedReport, *, without: Sequence[str], deep: int = 0) -> Setting:
        """The parameters in comparable form, except for empty ones and those named in `without`."""
        values = parameters = one.report.parameters
        invented = parameters.get("corpus", "storyworld") == "storyworld"
        comparable = {
            name: _corpus_folder(value) if "corpus" in name else self.comparable(value, deep=deep)
            for name, value in values.items()
            if name not in without and value not in ("", None)
            if invented or name not in _OF_STORYWORLD
        }
        return tuple(sorted((name, repr(value)) for name, value in comparable.items()))

    def setting_of(self, one: NamedReport) -> Setting:
        """The parameters in which the reports of one table agree."""
        return self.parameters_of(one, without=(*_FREE, *EXPERIMENTS[one.report.name].rows))

    def test_of(self, one: NamedReport) -> Setting:
        """The parameters that determine the test data."""
        wanted = EXPERIMENTS[one.report.name].test
        return self.parameters_of(one, without=[name for name in one.report.parameters if name not in wanted])

    def encoder_of(self, checkpoint: str, *, deep: int = 0) -> str:
        """The display name of a checkpoint, the same for all seeds; "" = none."""
        if not checkpoint or checkpoint.startswith("storyworld/"):
            return checkpoint
        run = self.run_at(checkpoint)
        if run is None or deep > _DEEPEST:
            return _run_folder(checkpoint)
        parameters = run.report.parameters
        variant = parameters.get("variant")
        if variant and run.name == _RECORDED.format(variant):
            return f"storyworld/{variant}"
        if variant or run.report.name == PARAGRAPHS:
            made = variant_name(variant) if variant else f"MSPP {_head(run).upper()}_k"
            corpus = corpus_name(str(parameters.get("corpus", "")))
            return f"{made} of {corpus}, from {self._root(run)}, {parameters.get('steps', 0):,} steps"
        started = str(parameters.get("model") or parameters.get("encoder") or "")
        if not started:
            return run.name
        before, mark, task = self.encoder_of(started, deep=deep + 1), ", after ", TASKS[run.report.name]
        learned = before.partition(mark)[2].split(", ")
        return before if learned[-1] == task else f"{before}{', ' if learned[0] else mark}{task}"

    def _root(self, run: NamedReport) -> str:
        """The checkpoint from which the first run in the chain that made a model started."""
        for _ in range(_DEEPEST):
            start = str(run.report.parameters.get("model", ""))
            before = self.run_at(start)
            if before is None or before is run:
                return _run_folder(start)
            run = before
        return run.name

    def variant_of(self, checkpoint: str, *, deep: int = 0) -> str:
        """The variant of a checkpoint, from the run that made it or else from its path; "" = unknown."""
        run = self.run_at(checkpoint)
        if run and (variant := run.report.parameters.get("variant")):
            return str(variant)
        if run and run.report.parameters.get("model") and deep < _DEEPEST:
            return self.variant_of(str(run.report.parameters["model"]), deep=deep + 1)
        parts = [part for part in _path(checkpoint).parts if part in VARIANTS]
        return parts[-1] if parts else ""

    def misnamed(self, one: NamedReport) -> str:
        """A message if a report uses one variant's model under another's name, as a trial may; "" if not."""
        for row in one.rows:
            made = self.variant_of(row.checkpoint) if row.system in VARIANTS else ""
            if made not in ("", row.system):
                return f"has a model of {made} for {row.system}"
        return ""

    def corpus_of(self, one: NamedReport) -> str:
        """The display name of the corpus of a report; a subset of the labels is named as such."""
        parameters = one.report.parameters
        if one.report.name == ALIGNMENT:
            given = str(parameters.get("matching_run", ""))
            matching = self.run_at(given)
            if matching is None or matching is one:
                return f"documents of {_run_folder(given)}" if given else "storyworld"
            return self.corpus_of(matching)
        if one.report.name == ANSWERS:
            return corpus_name(str(one.report.data["format"]["test"]))
        name = corpus_name(str(parameters.get("corpus", "")))
        labels = parameters.get("labels", "all")
        return name if labels == "all" else f"{name}, {' and '.join(str(labels).split())} alone"


def corpus_name(corpus: str) -> str:
    """The display name of a corpus given as a parameter."""
    name = _corpus_folder(corpus)
    return _CORPORA.get(name, name)


def _path(path: str) -> PurePosixPath:
    """A path without `..`: relative paths start where the runs were started, which is unknown."""
    return PurePosixPath(*(part for part in PurePosixPath(Path(path).as_posix()).parts if part != ".."))


def _head(one: NamedReport) -> str:
    """The head, `ie` or `ae`, of a run of notebook 08."""
    return str(one.report.parameters["head"]).removesuffix("_k")


def _run_folder(checkpoint: str) -> str:
    """The run folder of a checkpoint path: `runs/news/cdlm/model` -> `runs/news/cdlm`."""
    path = _path(checkpoint)
    while path.name in _WITHIN or path.name.startswith("checkpoint-"):
        path = path.parent
    return str(path)


def _corpus_folder(corpus: Any) -> Any:
    """The last part of a corpus path: a corpus is the same wherever its folder lies."""
    return PurePosixPath(corpus.rstrip("/")).name if isinstance(corpus, str) else corpus


# ---- reports of one setting, and their rows ----


_Candidate = tuple[NamedReport, SystemRow]


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
    setting: Setting  # the parameters in which they agree
    rows: Mapping[str, TakenRow]  # by system
    others: Sequence[TakenRow]  # of systems with several encoders, the rows of the others


def series_of(runs: KnownRuns, *, experiment: str, group: str, choose: str = "") -> list[Series]:
    """The series for a group of rows, oldest first. `choose`: names of reports, separated by spaces, with `*`
    as a wildcard, that are preferred over newer ones."""
    by_setting: dict[Setting, list[NamedReport]] = {}
    for one in sorted(runs.reports.reports, key=age):
        if one.report.name == experiment and any(row.group == group for row in one.rows):
            by_setting.setdefault(runs.setting_of(one), []).append(one)
    series = []
    for setting, reports in by_setting.items():
        candidates: dict[str, list[_Candidate]] = {}
        by_encoder: dict[tuple[str, str], list[_Candidate]] = {}
        for one in reports:
            for row in one.rows:
                if row.group == group:
                    named = _named(one, row, runs)
                    candidates.setdefault(named.system, []).append((one, named))
                    encoder = runs.encoder_of(named.checkpoint)
                    by_encoder.setdefault((named.system, encoder), []).append((one, named))
        taken = {system: _take(rows, runs, names_in(choose, "choose")) for system, rows in candidates.items()}
        rows = {system: _with_sound_tests(one, taken) for system, one in taken.items()}
        others = [
            _with_sound_tests(_take(same, runs, names_in(choose, "choose")), taken)
            for (system, encoder), same in by_encoder.items()
            if encoder not in ("", taken[system].encoder)
        ]
        series.append(Series(newest=reports[-1], reports=reports, setting=setting, rows=rows, others=others))
    return series


def age(one: NamedReport) -> tuple[str, str]:
    """Sort key of reports, oldest first."""
    return one.report.finished, one.name


def check_chosen(reports: ReportFolder, choose: str) -> None:
    """Raise ParameterError if a name in `choose` matches no report."""
    for pattern in names_in(choose, "choose"):
        if not any(fnmatchcase(one.name, pattern) for one in reports.reports):
            raise ParameterError(f"choose names {pattern!r}, which no report in {reports.folder} is called")


def _named(one: NamedReport, row: SystemRow, runs: KnownRuns) -> SystemRow:
    """For coreference, whose reports say `this run` for their one model: the row as tables name it."""
    if one.report.name != COREFERENCE:
        return row
    parameters = one.report.parameters
    model, context = str(parameters["model"]), str(parameters["context"])
    model = runs.variant_of(model) or runs.encoder_of(model)
    system = f"{model}/{context}"
    if row.system == SYSTEM:
        return replace(row, system=system, label=f"{variant_name(model)}, {CONTEXTS.get(context, context)}")
    scores = {
        name: score if score.p is None else replace(score, against=system)
        for name, score in row.scores.items()
    }
    return replace(row, scores=scores)


def _take(candidates: Sequence[_Candidate], runs: KnownRuns, chosen: Sequence[str]) -> TakenRow:
    """The newest candidate, or the newest chosen one, averaged with runs of its model with other seeds."""

    def rank(candidate: _Candidate) -> tuple[bool, str, str]:
        return any(fnmatchcase(candidate[0].name, name) for name in chosen), *age(candidate[0])

    ordered = sorted(candidates, key=rank)
    newest = ordered[-1][1]
    model = runs.comparable(newest.checkpoint)
    of_seed: dict[tuple[int, int], _Candidate] = {}
    for one, row in ordered:  # the newest of each seed remains
        if runs.comparable(row.checkpoint) == model:
            made_by = runs.run_at(row.checkpoint)
            of_seed[one.report.seed or 0, (made_by and made_by.report.seed) or 0] = one, row
    alike = [of_seed[seeds] for seeds in sorted(of_seed)]
    values = [{name: score.value for name, score in row.scores.items()} for _, row in alike]
    if not newest.checkpoint and len(set(map(repr, values))) == 1:
        alike = [ordered[-1]]  # nothing was trained, so seeds change nothing
    sources, rows = tuple(one for one, _ in alike), [row for _, row in alike]
    row = rows[0]
    if len(rows) > 1:
        metrics = [metric for metric in row.scores if all(metric in one.scores for one in rows)]
        means = {metric: _of_seeds([one.scores[metric] for one in rows]) for metric in metrics}
        row = replace(row, scores=means)
    return TakenRow(
        row=row,
        encoder=runs.encoder_of(newest.checkpoint),
        sources=sources,
        passed_over=tuple(one for one, _ in ordered if one not in sources),
    )


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
