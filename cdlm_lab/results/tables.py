"""The table that no paper has: every encoder on every task, by one measure of each.

A column is a task on a corpus. What stands in one column was measured on the same items: of several test sets
of a corpus the one on which most encoders were measured is taken, then the largest. Where an encoder was used
in several systems, its number is that of the system that is best on dev.

Rows of scores as tables: how numbers are written, and what columns show of a row.

What a table of a paper is, for the results book.

The tables of the papers filled from reports: one for each setting in which something was measured, and an
empty one where nothing was.

Tables 1, 2, 3, 5 and 6 of the CDLM paper, for the results book; Table 4 stands with those of CDA in
`paper_tables`.

The tables of the four papers whose numbers the notebooks measure, in the order of the papers: which rows
and columns they have, and what the papers report.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

from cdlm_lab.experiments.answer_selection import ANSWER_SYSTEMS
from cdlm_lab.experiments.fact_verification import CLAIM_SYSTEMS
from cdlm_lab.experiments.systems.matching import SYSTEMS
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS
from cdlm_lab.results.reports import (
    ALIGNMENT,
    ANSWERS,
    ATTENTION,
    CLAIMS,
    CONTEXTS,
    COREFERENCE,
    DEV,
    MATCHING,
    PERPLEXITY,
    QUESTIONS,
    TAGGING,
    FoundReport,
    FoundReports,
    KnownRuns,
    ReportedRow,
    ReportedScore,
    Series,
    TakenRow,
    corpus_of,
    series_of,
    size_of,
)
from cdlm_lab.widgets import (
    alignment_table,
    answer_table,
    coreference_table,
    matching_table,
    rank_table,
)
from cdlm_lab.widgets.html import VARIANT_NAMES
from cdlm_lab.widgets.matching_table import NONE, p_in_words, per_cent
from cdlm_lab.widgets.perplexity_table import PAPER_TABLE_1
from cdlm_lab.widgets.question_table import MEASURES as QUESTION_MEASURES
from cdlm_lab.widgets.question_table import PAPER_TABLE_5
from cdlm_lab.widgets.tables import NOT_RUN, Cell, Heading, ScoreTable
from cdlm_lab.widgets.tag_table import CORPUS_NAMES, PAPER_TAGGING
from cdlm_lab.widgets.verification_table import PAPER_VERIFICATION

# A value and its bounds -> how they are written; all of a cell are written alike.
Form = Callable[[Sequence[float]], list[str]]
_NOT_RUN = Cell(text=NOT_RUN, missing=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: its heading, and what it shows of a row."""

    heading: Heading
    cell: Callable[[ReportedRow], Cell]


def in_per_cent(values: Sequence[float]) -> list[str]:
    """(0.7157,) -> `71.6`."""
    return list(map(per_cent, values))


def in_points(values: Sequence[float]) -> list[str]:
    """What is in per cent already: (71.57,) -> `71.6`."""
    return [f"{value:.1f}" for value in values]


def in_thousandths(values: Sequence[float]) -> list[str]:
    """Reciprocal ranks: (0.32968,) -> `0.330`."""
    return [f"{value:.3f}" for value in values]


def as_perplexity(values: Sequence[float]) -> list[str]:
    """With as many decimals as suit the first: (4.835, 4.69) -> `4.84`, `4.69`; (100.6, 94.13) -> `100.6`,
    `94.1`; (1234.5,) -> `1,234`."""
    decimals = 2 if values[0] < 100 else 1 if values[0] < 1000 else 0
    return [f"{value:,.{decimals}f}" for value in values]


def number_cell(score: ReportedScore | None, form: Form, *, missing: str = "", with_p: bool = False) -> Cell:
    """A score with its deviation and interval; what is missing is said.

    Args:
        missing: what stands where there is no score; "" = an empty cell.
        with_p: p stands in the cell, too.
    """
    if score is None:
        return Cell(text=missing, missing=bool(missing))
    text, *bounds = form([score.value, *(score.interval or ())])
    below = [] if score.deviation is None else [f"\u00b1 {form([score.value, score.deviation])[1]}"]
    below += [f"[{', '.join(bounds)}]"] if bounds else []
    if with_p and score.p is not None:
        against = f" to {score.against}" if score.against else ""
        below.append(f"(p {'' if score.p < 0.001 else '= '}{p_in_text(score.p)}{against})")
    return Cell(text=text, below=" ".join(below))


def p_in_text(p: float) -> str:
    """0.0123 -> `0.012`, 0.0001 -> `< 0.001`."""
    return html.unescape(p_in_words(p))


def measured(
    name: str, measure: str, form: Form, *, below: str = "", bare: bool = False, with_p: bool = False
) -> Column:
    """A column of scores.

    Args:
        name, below: its heading.
        measure: by which rows have them; what a row lacks is an empty cell.
        bare: the value alone, without deviation and interval.
        with_p: as of `number_cell`.
    """

    def cell(row: ReportedRow) -> Cell:
        score = row.scores.get(measure)
        if score is not None and bare:
            score = ReportedScore(value=score.value)
        return number_cell(score, form, with_p=with_p)

    return Column(heading=Heading(name=name, below=below), cell=cell)


def p_of(measure: str) -> Column:
    """A column of p-values; empty where nothing was tested."""

    def cell(row: ReportedRow) -> Cell:
        score = row.scores.get(measure)
        return Cell(text="" if score is None or score.p is None else p_in_text(score.p))

    return Column(heading=Heading(name="p"), cell=cell)


def of_paper(name: str, text: Callable[[str], str], *, below: str = "") -> Column:
    """A column of a paper's numbers: system -> as written, "" = it has none."""

    def cell(row: ReportedRow) -> Cell:
        return paper_cell(text(row.system))

    return Column(heading=Heading(name=name, below=below, published=True), cell=cell)


def paper_cell(text: str) -> Cell:
    """A number of a paper as it is written; "" = an empty cell."""
    return Cell(text=text, published=bool(text))


def table_of(
    rows: Iterable[ReportedRow],
    columns: Sequence[Column],
    *,
    of_others: Collection[str] = (),
    first: str = "system",
    caption: str = "",
    note: str = "",
    sources: Mapping[str, str] | None = None,
    lines: Sequence[str] = (),
) -> ScoreTable:
    """A table with a row for each system, its label in front.

    Args:
        rows: one that has no scores is a system that was not measured: its cells say so.
        of_others: systems that the paper alone can have: their own cells are empty.
        first: heading of the labels.
        sources: system -> where its numbers are from.
        lines: as `sources` of the table.

    Raises:
        ValueError: no rows.
    """
    body = []
    for row in rows:
        cells = [column.cell(row) for column in columns]
        if not row.scores:
            lacking = Cell(text="") if row.system in of_others else _NOT_RUN
            cells = [
                cell if column.heading.published else lacking
                for cell, column in zip(cells, columns, strict=True)
            ]
        elif source := (sources or {}).get(row.system):
            cells = [
                cell if cell.published or not cell.text else replace(cell, source=source) for cell in cells
            ]
        body.append([Cell(text=row.label, published=row.system in of_others), *cells])
    headings = [Heading(name=first, is_text=True), *(column.heading for column in columns)]
    return ScoreTable(caption=caption, columns=headings, rows=body, note=note, sources=lines)


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of a paper.

    Attributes:
        name: short, for reports, such as `cdlm-1`.
        title: paper, number, and what it shows.
        experiment, group: the reports, and the rows of them, that fill it.
        systems: name -> label of the rows that can be measured, in the paper's order.
        columns: what is shown of a row; those of the paper last.
        others: True = other rows of a report are shown too, such as baselines; or the names of those.
        only_published: name -> label of rows that the paper alone has.
        is_published: False = no paper has it: it is left out if nobody ran it.
    """

    name: str
    title: str
    experiment: str
    group: str
    systems: Mapping[str, str]
    columns: tuple[Column, ...]
    others: bool | tuple[str, ...] = True
    only_published: Mapping[str, str] = field(default_factory=dict)
    is_published: bool = True


def each(names: Mapping[str, str], form: Form) -> tuple[Column, ...]:
    """A column of ours for each measure, by its heading; p stands in the cells."""
    return tuple(measured(heading, measure, form, with_p=True) for measure, heading in names.items())


def joined(*numbers: float | None, decimals: int = 1) -> str:
    """(74.5, None) -> `74.5 / –`; nothing but None -> empty."""
    if all(number is None for number in numbers):
        return ""
    return " / ".join("\u2013" if number is None else f"{number:.{decimals}f}" for number in numbers)


NOTE = (
    "Brackets: 95% interval. \u00b1: standard deviation over the seeds, of which the mean is shown. p: "
    "corrected, as the report has it, of the test against the row that is named; of several runs the "
    "largest. Muted: the paper's, on its own data, and what nobody ran."
)
_MOST_ROWS = 6  # named below a table; of more their number is told
_LONGEST = 60  # of a parameter's value in a caption
# Joerke et al. 2020 ("Doc-ARC"), Table 5: the words of the highest TF-IDF that are nothing but names.
PAPER_TOP_WORDS: Mapping[str, Sequence[str]] = {
    "LitBank": ("Lucilla (Person)", "Cresswell (Facility)", "Marjoribanks (Person)"),
    "JNLPBA": ("Akt-1 (Protein)", "Plasmin (Protein)", "Siah-1 (Protein)"),
    "OntoNotes1000": ("Linpien (GPE/NORP/LOC)", "Dongguan (GPE/ORG)", "Koreans (NORP)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledTable:
    """A table of a paper in one setting.

    Attributes:
        table: to be shown.
        name: of the paper's table.
        corpus: on which was measured; "" = nothing was.
        rows: system -> what was taken; {} = nothing was measured.
    """

    table: ScoreTable
    name: str
    corpus: str
    rows: Mapping[str, TakenRow]


def fill_table(
    paper: PaperTable, found: FoundReports, runs: KnownRuns, *, choose: str = ""
) -> list[FilledTable]:
    """The table in each setting, newest last; one without numbers of ours if nothing was measured.

    Args:
        choose: as of `series_of`.
    """
    every = series_of(found, runs, experiment=paper.experiment, group=paper.group, choose=choose)
    kept = [series for series in every if _fills(paper, series)]
    filled = [
        _filled(
            paper, series, runs, differing=_differing(series, kept), corpus=corpus_of(series.newest, runs)
        )
        for series in kept
    ]
    if filled or not paper.is_published:
        return filled
    return [
        FilledTable(
            table=table_of(
                _paper_rows(paper, {}),
                _with_seeds(paper.columns),
                of_others=paper.only_published,
                caption=f"{paper.title}: nobody ran this",
            ),
            name=paper.name,
            corpus="",
            rows={},
        )
    ]


def top_words(found: FoundReports, runs: KnownRuns) -> ScoreTable:
    """Table 5 of Doc-ARC: the words of the highest TF-IDF that are nothing but names."""
    columns = [
        Heading(name="corpus", is_text=True),
        Heading(name="first, second, third", is_text=True),
    ]
    ours: dict[str, FoundReport] = {}
    for one in sorted(found.reports, key=lambda one: (one.report.finished, one.name)):
        if one.report.name == TAGGING and one.report.tables.get("top"):
            ours[corpus_of(one, runs)] = one  # the newest of a corpus
    rows = [
        [
            Cell(text=corpus),
            Cell(
                text=", ".join(
                    f"{row['word']} ({'/'.join(row['labels'])})" for row in one.report.tables["top"]
                ),
                source=one.name,
            ),
        ]
        for corpus, one in ours.items()
    ]
    papers = [
        [paper_cell(f"paper: {corpus}"), paper_cell(", ".join(words))]
        for corpus, words in PAPER_TOP_WORDS.items()
    ]
    return ScoreTable(
        caption="Doc-ARC, Table 5: words of the highest TF-IDF that are nothing but names",
        columns=columns,
        rows=[*rows, *papers],
        sources=[f"{corpus}: {one.name}" for corpus, one in ours.items()],
    )


def _fills(paper: PaperTable, series: Series) -> bool:
    """True if it has a row that belongs into the table, not only one beside it."""
    wanted = paper.systems.keys() & series.rows.keys()
    return bool(wanted) or (paper.others is True and any(one.encoder for one in series.rows.values()))


def _paper_rows(paper: PaperTable, taken: Mapping[str, TakenRow]) -> list[ReportedRow]:
    """Rows of the paper, those that were not measured without scores; then others."""

    def empty(system: str, label: str) -> ReportedRow:
        return ReportedRow(group=paper.group, system=system, label=label, checkpoint="")

    rows = [
        taken[system].row if system in taken else empty(system, label)
        for system, label in paper.systems.items()
    ]
    others = taken.keys() if paper.others is True else paper.others or ()
    rows += [taken[system].row for system in others if system in taken and system not in paper.systems]
    return [*rows, *(empty(*names) for names in paper.only_published.items())]


def _filled(
    paper: PaperTable, series: Series, runs: KnownRuns, *, differing: Sequence[str], corpus: str
) -> FilledTable:
    rows = _paper_rows(paper, series.rows)
    shown = {row.system: series.rows[row.system] for row in rows if row.system in series.rows}
    parameters = series.newest.report.parameters
    told = [f"{name} {_short(parameters[name])}" for name in differing if name in dict(series.setting)]
    _, size = size_of(series.newest.report, paper.group)
    table = table_of(
        rows,
        _with_seeds(paper.columns),
        of_others=paper.only_published,
        caption=f"{paper.title} \u00b7 {corpus}, n = {size}",
        note=NOTE,
        sources={system: source_told(one) for system, one in shown.items()},
        lines=[*([f"With {', '.join(told)}"] if told else []), *_source_lines(shown)],
    )
    return FilledTable(table=table, name=paper.name, corpus=corpus, rows=shown)


def source_told(one: TakenRow) -> str:
    """Which reports a row is from, and of how many seeds."""
    names = ", ".join(found.name for found in one.sources)
    seeds = [found.report.seed for found in one.sources]
    own = next((score.seeds for score in one.row.scores.values() if score.seeds), None)
    if len(seeds) > 1:
        return f"{names}: mean of {len(seeds)} runs, seeds {', '.join(map(str, seeds))}"
    return f"{names}: mean of {own} trainings" if own and own > 1 else names


def _source_lines(shown: Mapping[str, TakenRow]) -> list[str]:
    """Which rows are from which reports, and which reports were passed over."""
    by_source: dict[str, list[str]] = {}
    passed: dict[str, list[str]] = {}
    for one in shown.values():
        by_source.setdefault(source_told(one), []).append(one.row.label)
        for other in one.passed_over:
            passed.setdefault(other.name, []).append(one.row.label)
    told = [f"From {source}" + _rows_told(rows, among=by_source) for source, rows in by_source.items()]
    other = [f"Not taken, another has it: {name}" + _rows_told(rows) for name, rows in passed.items()]
    return [*told, *other]


def _rows_told(rows: Sequence[str], *, among: Sized = ()) -> str:
    """Labels of rows in parentheses; nothing if there is but one source."""
    if len(among) == 1:
        return ""
    return f" ({'; '.join(rows)})" if len(rows) <= _MOST_ROWS else f" ({len(rows)} rows)"


def _with_seeds(columns: Sequence[Column]) -> list[Column]:
    """With the number of seeds between ours and theirs."""

    def cell(row: ReportedRow) -> Cell:
        seeds = max((score.seeds or 0 for score in row.scores.values()), default=0)
        return Cell(text=str(seeds or 1) if seeds or row.checkpoint else "")

    ours = [column for column in columns if not column.heading.published]
    theirs = [column for column in columns if column.heading.published]
    return [*ours, Column(heading=Heading(name="seeds"), cell=cell), *theirs]


def _differing(series: Series, every: Sequence[Series]) -> list[str]:
    """Names of the parameters in which the settings of a table differ."""
    settings = [dict(one.setting) for one in every]
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [name for name in names if name != "corpus" and len({one.get(name) for one in settings}) > 1]


def _short(value: Any) -> str:
    text = "none" if value in ("", None) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


PERPLEXITIES = PaperTable(
    name="cdlm-1",
    title="CDLM, Table 1: perplexity",
    experiment=PERPLEXITY,
    group="",
    systems=VARIANT_NAMES,
    columns=(
        *each(
            {"perplexity": "perplexity", "cross_document_perplexity": "on cross-document tokens"},
            as_perplexity,
        ),
        of_paper(
            "Multi-News",
            lambda variant: joined(*PAPER_TABLE_1.get(variant, ()), decimals=2),
            below="paper: validation / test",
        ),
    ),
)


def _threes(measure: str, heading: str) -> Column:
    """Recall, precision and F1 in one cell."""
    parts = [f"{measure}/{part}" for part in ("recall", "precision", "f1")]

    def cell(row: ReportedRow) -> Cell:
        if not all(part in row.scores for part in parts):
            return Cell(text="")
        numbers = in_per_cent([row.scores[part].value for part in parts])
        deviation = row.scores[parts[-1]].deviation
        below = "" if deviation is None else f"F1 \u00b1 {in_per_cent([deviation])[0]}"
        return Cell(text=" / ".join(numbers), below=below)

    return Column(heading=Heading(name=heading, below="R / P / F1"), cell=cell)


def _coreference_columns(kind: str) -> tuple[Column, ...]:
    published = coreference_table.PAPER_TABLE_2[kind]

    def of_places(start: int, stop: int) -> Callable[[str], str]:
        def text(system: str) -> str:
            numbers = published.get("CDLM" if system == "cdlm/documents" else system)
            return joined(*numbers[start:stop]) if numbers else ""

        return text

    measures = coreference_table.MEASURES
    return (
        *(_threes(measure, heading) for measure, heading in measures.items()),
        *each({"conll/f1": "CoNLL F1"}, in_per_cent),
        *(
            of_paper(heading, of_places(3 * number, 3 * number + 3), below="paper: R / P / F1")
            for number, heading in enumerate(measures.values())
        ),
        of_paper("CoNLL", of_places(12, 13), below="paper: F1"),
    )


def coreference(kind: str, what: str) -> PaperTable:
    """Table 2 on a kind of mentions, `event` or `entity`; `what` it is called."""
    others = {name: name for name in coreference_table.PAPER_TABLE_2[kind] if name != "CDLM"}
    return PaperTable(
        name=f"cdlm-2-{kind}",
        title=f"CDLM, Table 2: cross-document coreference of {what}",
        experiment=COREFERENCE,
        group=kind,
        systems={"cdlm/documents": f"CDLM, {CONTEXTS['documents']}"},
        columns=_coreference_columns(kind),
        only_published=others,
    )


_ABLATIONS = {
    "cdlm/documents": "full document CDLM",
    "cdlm/sentences": "sentences only CDLM",
    **{f"{variant}/documents": VARIANT_NAMES[variant] for variant in VARIANT_NAMES if variant != "cdlm"},
}
ABLATION = PaperTable(
    name="cdlm-3",
    title="CDLM, Table 3: event coreference, ablations",
    experiment=COREFERENCE,
    group="event",
    systems=_ABLATIONS,
    columns=(
        *each({"conll/f1": "CoNLL F1"}, in_per_cent),
        of_paper(
            "ECB+",
            lambda system: joined(coreference_table.PAPER_TABLE_3.get(_ABLATIONS.get(system, ""))),
            below="paper: CoNLL F1",
        ),
    ),
    others=False,
)


def questions() -> PaperTable:
    """Table 5."""

    def of_measure(measure: str) -> Callable[[str], str]:
        return lambda variant: joined(PAPER_TABLE_5.get(variant, {}).get(measure))

    columns = {measure: f"{of} {what}" for measure, (of, what) in QUESTION_MEASURES.items()}
    return PaperTable(
        name="cdlm-5",
        title="CDLM, Table 5: questions that need two documents",
        experiment=QUESTIONS,
        group="",
        systems=VARIANT_NAMES,
        columns=(
            *each(columns, in_per_cent),
            *(
                of_paper(QUESTION_MEASURES[measure][0], of_measure(measure), below="paper: F1, HotpotQA")
                for measure in ("f1", "sp_f1", "joint_f1")
            ),
        ),
    )


def ranks() -> PaperTable:
    """Table 6."""
    names = {"positive": "{} that corefer", "negative": "other {}", "gap": "gap, {}"}
    cells = [*rank_table.CELLS, *(f"gap/{kind}" for kind in rank_table.KINDS)]
    headings = {}
    for cell in cells:
        sort, kind = cell.split("/")
        headings[cell] = names[sort].format(rank_table.KIND_NAMES[kind])
    return PaperTable(
        name="cdlm-6",
        title="CDLM, Table 6: percentile rank of the other mention",
        experiment=ATTENTION,
        group="",
        systems=VARIANT_NAMES,
        columns=(
            *each(headings, in_points),
            of_paper(
                "ECB+",
                lambda variant: joined(*rank_table.PAPER_TABLE_6.get(variant, {}).values()),
                below="paper: the first four",
            ),
        ),
    )


_OTHERS = {  # of Tables 3 and 8 of MSPP
    "gear": "GEAR",
    "kgat": "KGAT",
    "transformer-xh": "Transformer-XH",
    "pairwise-bert": "pairwise BERT",
    "joint-bert": "joint BERT",
    "domlin++": "DOMLIN++",
    "dream": "DREAM",
}


def _matching(name: str, title: str, systems: tuple[str, ...], *, accuracy: bool = True) -> PaperTable:
    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            numbers = matching_table.PAPER_MATCHING.get(system, {}).get(corpus)
            return joined(*(numbers if accuracy else numbers[1:])) if numbers else ""

        return text

    corpora = [
        corpus
        for corpus in matching_table.CORPORA
        if any(corpus in matching_table.PAPER_MATCHING.get(system, {}) for system in systems)
    ]
    below = "paper: Acc / F1" if accuracy else "paper: F1"
    return PaperTable(
        name=name,
        title=title,
        experiment=MATCHING,
        group="",
        systems={system: SYSTEMS[system].label for system in systems},
        columns=(
            *each({"accuracy": "accuracy", "f1": "F1"}, in_per_cent),
            *(of_paper(corpus, of_corpus(corpus), below=below) for corpus in corpora),
        ),
        others=("tf-idf",),
    )


def _alignment(setting: str, told: str) -> PaperTable:
    """The paper's numbers stand beside `released` alone, which scores unrelated pairs as its code does."""

    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            name, _, by = system.partition("/")
            numbers = alignment_table.PAPER_ALIGNMENT.get((name, by), {}).get(corpus, {})
            return " / ".join(
                alignment_table.mrr_in_words(value) if measure == "mrr" else f"{value:.1f}"
                for measure, value in numbers.items()
            )

        return text

    at = {name: heading for name, heading in alignment_table.MEASURES.items() if name != "mrr"}
    ways = [key for key in alignment_table.PAPER_ALIGNMENT if key[1]]
    systems = {f"{system}/{by}": f"{SYSTEMS[system].label}, {by}" for system, by in ways}
    papers = (
        of_paper("S2ORC", of_corpus("S2ORC"), below="paper: MRR / P@10 / P@5 / P@1"),
        of_paper("PAN", of_corpus("PAN"), below="paper: MRR / P@10 / P@5"),
    )
    return PaperTable(
        name=f"cda-4-5-{setting}",
        title=f"CDA, Tables 4 and 5: which sentence, {told}",
        experiment=ALIGNMENT,
        group=setting,
        systems={alignment_table.RANDOM: "Random (exact)"} | systems if setting == "released" else systems,
        columns=(
            *each({"mrr": "MRR"}, in_thousandths),
            *each(at, in_per_cent),
            *(papers if setting == "released" else ()),
        ),
        is_published=setting == "released",
    )


def _tagging(number: int, what: str) -> PaperTable:
    systems = [
        name
        for name in TAG_SYSTEMS
        if any(one.table == number for one in PAPER_TAGGING.get(name, {}).values())
    ]

    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            one = PAPER_TAGGING.get(system, {}).get(corpus)
            return f"{one.f1:.2f} ({one.deviation:.2f})" if one else ""

        return text

    return PaperTable(
        name=f"doc-arc-{number}",
        title=f"Doc-ARC, Table {number}: {what}",
        experiment=TAGGING,
        group="",
        systems={name: TAG_SYSTEMS[name].label for name in systems},
        columns=(
            *each({"precision": "precision", "recall": "recall", "f1": "span F1"}, in_per_cent),
            *(
                of_paper(shown, of_corpus(corpus), below="paper: F1 (SD)")
                for corpus, shown in CORPUS_NAMES.items()
            ),
        ),
        others=False,
    )


def _answers(name: str, title: str, ranking: str, papers: answer_table.Published) -> PaperTable:
    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            return " / ".join(
                f"{one.value:.1f}" + ("" if one.deviation is None else f" ({one.deviation:.1f})")
                for one in papers.get(system, {}).get(corpus, {}).values()
            )

        return text

    return PaperTable(
        name=name,
        title=title,
        experiment=ANSWERS,
        group=ranking,
        systems={system.published: system.label for system in ANSWER_SYSTEMS.values()},
        columns=(
            *each(answer_table.MEASURES, in_per_cent),
            *(
                of_paper(shown, of_corpus(corpus), below="paper: P@1 / MAP / MRR")
                for corpus, shown in answer_table.CORPUS_NAMES.items()
            ),
        ),
    )


def _claims(group: str, told: str) -> PaperTable:
    ours = {system.paper: system.label for system in CLAIM_SYSTEMS.values() if system.paper}

    def paper(system: str) -> str:
        one = PAPER_VERIFICATION.get(system)
        return joined(one.dev, one.test, decimals=2) if one else ""

    return PaperTable(
        name=f"mspp-3-8-{group}",
        title=f"MSPP, Tables 3 and 8: fact verification, {told}",
        experiment=CLAIMS,
        group=group,
        systems=ours,
        columns=(
            *each({"label_accuracy": "label accuracy"}, in_per_cent),
            of_paper("FEVER", paper, below="paper: dev / test"),
        ),
        only_published=_OTHERS,
        is_published=group == "test",
    )


PAPER_TABLES: tuple[PaperTable, ...] = (
    PERPLEXITIES,
    coreference("event", "events"),
    coreference("entity", "entities"),
    ABLATION,
    _matching(
        "cdlm-4", "CDLM, Table 4: do two documents belong together", tuple(VARIANT_NAMES), accuracy=False
    ),
    questions(),
    ranks(),
    _matching(
        "cda-2",
        "CDA, Table 2: do two documents belong together",
        ("bert-avg", "bert-han", "bert-han-shallow", "gru-han", "gru-han-shallow", "gru-han-deep"),
    ),
    _matching(
        "cda-3",
        "CDA, Table 3: the same with BERT trained along",
        ("bert-han-finetuned", "bert-han-finetuned-shallow"),
    ),
    _alignment("released", "scored with the unrelated pairs, as by the released code"),
    _alignment("joint", "jointly with whether the documents belong together"),
    _alignment("oracle", "of documents that are known to belong together"),
    _tagging(2, "named entities, encoder frozen"),
    _tagging(3, "named entities, small encoder trained along"),
    _tagging(4, "named entities, encoder fine-tuned"),
    _answers(
        "mspp-1", "MSPP, Table 1: choosing answers among all candidates", "all", answer_table.PAPER_TABLE_1
    ),
    _answers(
        "mspp-2-7",
        "MSPP, Tables 2 and 7: the best of pairwise, ranked anew",
        "reranked",
        answer_table.PAPER_TABLES_2_AND_7,
    ),
    *(
        _claims(group, told)
        for group, told in (("test", "test claims"), ("dev", "dev claims"), ("symmetric", "FeverSymmetric"))
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task and the measure that stands for it: `experiment` and `group` as of `ReportedRow`."""

    name: str
    unit: str
    experiment: str
    group: str
    measure: str
    form: Form


TASKS = (
    Task(
        name="hidden words",
        unit="perplexity",
        experiment=PERPLEXITY,
        group="",
        measure="perplexity",
        form=as_perplexity,
    ),
    *(
        Task(
            name=f"coreference, {names}",
            unit="CoNLL F1",
            experiment=COREFERENCE,
            group=kind,
            measure="conll/f1",
            form=in_per_cent,
        )
        for kind, names in (("event", "events"), ("entity", "entities"))
    ),
    Task(name="matching", unit="F1", experiment=MATCHING, group="", measure="f1", form=in_per_cent),
    Task(
        name="alignment", unit="MRR", experiment=ALIGNMENT, group="oracle", measure="mrr", form=in_thousandths
    ),
    Task(
        name="questions",
        unit="joint F1",
        experiment=QUESTIONS,
        group="",
        measure="joint_f1",
        form=in_per_cent,
    ),
    Task(name="entities", unit="span F1", experiment=TAGGING, group="", measure="f1", form=in_per_cent),
    Task(name="answers", unit="MAP", experiment=ANSWERS, group="all", measure="map", form=in_per_cent),
    Task(
        name="claims",
        unit="accuracy",
        experiment=CLAIMS,
        group="test",
        measure="label_accuracy",
        form=in_per_cent,
    ),
    Task(
        name="attention, events",
        unit="points higher if they corefer",
        experiment=ATTENTION,
        group="",
        measure="gap/event",
        form=in_points,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskColumn:
    """A task on a corpus.

    Attributes:
        task, corpus: what.
        size: how much was measured on: a number, and in words.
        taken: encoder -> the row that stands for it.
        left: how many numbers were measured on other items of the corpus and are not shown.
    """

    task: Task
    corpus: str
    size: tuple[int, str]
    taken: Mapping[str, TakenRow]
    left: int


def task_columns(found: FoundReports, runs: KnownRuns, *, choose: str = "") -> list[TaskColumn]:
    """The columns, in the order of the papers. `choose`: as of `series_of`."""
    columns = []
    for task in TASKS:
        by_test: dict[tuple, list[Series]] = {}
        for series in series_of(found, runs, experiment=task.experiment, group=task.group, choose=choose):
            test = corpus_of(series.newest, runs), runs.test_of(series.newest)
            by_test.setdefault(test, []).append(series)
        by_corpus: dict[str, list[TaskColumn]] = {}
        for (corpus, _), every in by_test.items():
            taken = _by_encoder(task, every, runs)
            size = size_of(every[-1].newest.report, task.group)
            column = TaskColumn(task=task, corpus=corpus, size=size, taken=taken, left=0)
            by_corpus.setdefault(corpus, []).append(column)
        for corpus, tests in by_corpus.items():
            best = max(tests, key=lambda column: (len(column.taken), column.size[0], _finished(column)))
            left = sum(len(column.taken) for column in tests if column is not best)
            if best.taken:
                columns.append(
                    TaskColumn(task=task, corpus=corpus, size=best.size, taken=best.taken, left=left)
                )
    return columns


def encoder_table(columns: Sequence[TaskColumn]) -> ScoreTable | None:
    """The table; None if nothing was measured with any encoder."""
    encoders = sorted(dict.fromkeys(name for column in columns for name in column.taken), key=_place)
    if not encoders:
        return None
    headings = [Heading(name="encoder", is_text=True)]
    headings += [
        Heading(name=f"{column.task.name}, {column.corpus}", below=column.task.unit) for column in columns
    ]
    rows = [
        [Cell(text=encoder), *(_cell(column, column.taken.get(encoder)) for column in columns)]
        for encoder in encoders
    ]
    told = [f"{column.task.name}, {column.corpus}: n = {column.size[1]}" for column in columns]
    left = [
        f"{column.task.name}, {column.corpus}: {column.left} numbers on other test items are not shown here"
        for column in columns
        if column.left
    ]
    return ScoreTable(
        caption="Every encoder on every task",
        columns=headings,
        rows=rows,
        note=(
            "Lower is better for perplexity, higher for all others. Of several systems with an encoder "
            "the one that is best on dev, whose name stands below. Brackets: 95% interval. A column is of "
            "one test set, but settings of training may differ: see the tables above. \u2013: nobody ran it."
        ),
        sources=[*told, *left],
    )


def _finished(column: TaskColumn) -> str:
    return max((one.sources[-1].report.finished for one in column.taken.values()), default="")


def _by_encoder(task: Task, every: Sequence[Series], runs: KnownRuns) -> dict[str, TakenRow]:
    """Encoder -> its row: of the newest of the reports, and there of the system that is best on dev."""
    found: dict[str, TakenRow] = {}
    for series in every:  # the oldest first
        of_encoder: dict[str, list[TakenRow]] = {}
        for one in series.rows.values():
            encoder = one.encoder or _encoder_of_match(one, runs)
            if encoder and task.measure in one.row.scores:
                of_encoder.setdefault(encoder, []).append(one)
        found |= {encoder: _best(rows, task.measure) for encoder, rows in of_encoder.items()}
    return found


def _best(rows: Sequence[TakenRow], measure: str) -> TakenRow:
    """The highest on dev; where nothing is known of dev, the first, which is how the paper does it."""
    known = [one for one in rows if f"{DEV}{measure}" in one.row.scores]
    return max(known, key=lambda one: one.row.scores[f"{DEV}{measure}"].value) if known else rows[0]


def _encoder_of_match(one: TakenRow, runs: KnownRuns) -> str:
    """Of an alignment the encoder is that of the run of notebook 04."""
    source = one.sources[-1].report
    matching = (
        runs.run_at(str(source.parameters.get("matching_run", ""))) if source.name == ALIGNMENT else None
    )
    if matching is None or matching.report.name != MATCHING:
        return ""
    system = one.row.system.partition("/")[0]
    return next((runs.encoder_of(row.checkpoint) for row in matching.rows if row.system == system), "")


def _cell(column: TaskColumn, one: TakenRow | None) -> Cell:
    if one is None:
        return Cell(text=NONE, missing=True)
    cell = number_cell(one.row.scores[column.task.measure], column.task.form)
    several = column.task.experiment in (MATCHING, ALIGNMENT, TAGGING, ANSWERS, CLAIMS, COREFERENCE)
    below = f"{cell.below} {one.row.label}".strip() if several else cell.below
    return Cell(text=cell.text, below=below, source=source_told(one))


def _place(encoder: str) -> tuple[bool, str]:
    """Those that come with the project first."""
    return not encoder.startswith("storyworld/"), encoder
