"""From reports to the rows of tables: which reports belong together, which of two is taken, and what several
seeds are together.

Reports stand in one table if their settings agree (see `report_settings`). A row that several of them have is
that of the newest; runs of the same model that differ in their seed alone are one row, with mean and
deviation over them. Of such a row no interval is shown, for those of the runs say what other test items would
have changed in each; p is the largest of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from statistics import fmean, stdev

from cdlm_lab.experiments.coreference_report import SYSTEM
from cdlm_lab.experiments.found_reports import FoundReport, FoundReports
from cdlm_lab.experiments.report_settings import KnownRuns
from cdlm_lab.experiments.reported_scores import COREFERENCE, ReportedRow, ReportedScore
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.theme import variant_name

CONTEXTS = {"documents": "whole documents", "sentences": "sentences only"}
_Candidate = tuple[FoundReport, ReportedRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRow:
    """A row of a table.

    Attributes:
        row: its scores; `against` of these is a label.
        encoder: name of its checkpoint; "" = none.
        sources: the reports that it is from, of several seeds in their order.
        passed_over: reports that have this row too and were not taken.
    """

    row: ReportedRow
    encoder: str
    sources: tuple[FoundReport, ...]
    passed_over: tuple[FoundReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Reports of one experiment whose settings agree, and the rows that they make of one group.

    Attributes:
        newest: the last of them.
        reports: all of them.
        setting: what they agree in.
        rows: by system.
    """

    newest: FoundReport
    reports: Sequence[FoundReport]
    setting: tuple[tuple[str, str], ...]
    rows: Mapping[str, TakenRow]


def series_of(
    found: FoundReports, runs: KnownRuns, *, experiment: str, group: str, choose: str = ""
) -> list[Series]:
    """The series of a group of rows, the oldest first.

    Args:
        choose: names of reports, separated by spaces, `*` standing for anything, that are taken before newer
            ones.
    """
    by_setting: dict[tuple[tuple[str, str], ...], list[FoundReport]] = {}
    for one in sorted(found.reports, key=lambda one: (one.report.finished, one.name)):
        if one.report.name == experiment and any(row.group == group for row in one.rows):
            by_setting.setdefault(runs.setting_of(one), []).append(one)
    return [
        Series(
            newest=reports[-1],
            reports=reports,
            setting=setting,
            rows=_taken(reports, runs, group, choose.split()),
        )
        for setting, reports in by_setting.items()
    ]


def check_chosen(found: FoundReports, choose: str) -> None:
    """Refuses names of `choose` that no report has.

    Raises:
        ParameterError: such a name.
    """
    for pattern in choose.split():
        if not any(fnmatchcase(one.name, pattern) for one in found.reports):
            raise ParameterError(f"choose names {pattern!r}, which no report in {found.folder} is called")


def _taken(
    reports: Sequence[FoundReport], runs: KnownRuns, group: str, chosen: Sequence[str]
) -> dict[str, TakenRow]:
    candidates: dict[str, list[_Candidate]] = {}
    for one in reports:
        for row in one.rows:
            if row.group == group:
                named = _named(one, row, runs)
                candidates.setdefault(named.system, []).append((one, named))
    taken = {system: _take(rows, runs, chosen) for system, rows in candidates.items()}
    return {system: _with_sound_tests(one, taken) for system, one in taken.items()}


def _named(one: FoundReport, row: ReportedRow, runs: KnownRuns) -> ReportedRow:
    """Of coreference, where a report is of one model and says `this run`: the row as the table has it."""
    if one.report.name != COREFERENCE:
        return row
    ours = next(other for other in one.rows if other.label == SYSTEM)
    model = runs.variant_of(ours.checkpoint) or runs.encoder_of(ours.checkpoint)
    system = f"{model}/{ours.system}"
    if row is ours:
        label = f"{variant_name(model)}, {CONTEXTS.get(ours.system, ours.system)}"
        return replace(row, system=system, label=label)
    scores = {
        name: replace(score, against=system) if score.p is not None else score
        for name, score in row.scores.items()
    }
    return replace(row, scores=scores)


def _take(candidates: Sequence[_Candidate], runs: KnownRuns, chosen: Sequence[str]) -> TakenRow:
    """The newest, or the newest that is chosen, with the runs of the same model that have other seeds."""

    def rank(candidate: _Candidate) -> tuple[bool, str, str]:
        one = candidate[0]
        return any(fnmatchcase(one.name, name) for name in chosen), one.report.finished, one.name

    ordered = sorted(candidates, key=rank)
    model = runs.told(ordered[-1][1].checkpoint)
    of_seed: dict[int | None, _Candidate] = {}
    for candidate in ordered:  # the last of each seed stays
        if runs.told(candidate[1].checkpoint) == model:
            of_seed[candidate[0].report.seed] = candidate
    alike = sorted(of_seed.values(), key=lambda candidate: candidate[0].report.seed or 0)
    if not ordered[-1][1].checkpoint and len({repr(_values(row)) for _, row in alike}) == 1:
        alike = [ordered[-1]]  # nothing was trained, so seeds change nothing
    sources = tuple(one for one, _ in alike)
    return TakenRow(
        row=_merged([row for _, row in alike]),
        encoder=runs.encoder_of(ordered[-1][1].checkpoint),
        sources=sources,
        passed_over=tuple(one for one, _ in ordered if one not in sources),
    )


def _values(row: ReportedRow) -> dict[str, float]:
    return {name: score.value for name, score in row.scores.items()}


def _merged(rows: Sequence[ReportedRow]) -> ReportedRow:
    if len(rows) == 1:
        return rows[0]
    measures = [name for name in rows[0].scores if all(name in row.scores for row in rows)]
    return replace(rows[0], scores={name: _of_seeds([row.scores[name] for row in rows]) for name in measures})


def _of_seeds(scores: Sequence[ReportedScore]) -> ReportedScore:
    values = [score.value for score in scores]
    p = [score.p for score in scores if score.p is not None]
    tested = len(p) == len(scores) and len({score.against for score in scores}) == 1
    return ReportedScore(
        value=fmean(values),
        deviation=stdev(values),
        seeds=len(values),
        p=max(p) if tested else None,
        against=scores[0].against if tested else "",
    )


def _with_sound_tests(one: TakenRow, taken: Mapping[str, TakenRow]) -> TakenRow:
    """Without the p-values of tests against a row that is now from another report; what is tested against
    gets its label."""

    def sound(score: ReportedScore) -> ReportedScore:
        other = taken.get(score.against)
        if score.p is None or (other is not None and _names(other.sources) == _names(one.sources)):
            return replace(score, against=other.row.label if other and score.p is not None else "")
        return replace(score, p=None, against="")

    scores = {name: sound(score) for name, score in one.row.scores.items()}
    return replace(one, row=replace(one.row, scores=scores))


def _names(reports: Iterable[FoundReport]) -> set[str]:
    return {one.name for one in reports}
