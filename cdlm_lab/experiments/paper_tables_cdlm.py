"""Tables 1, 2, 3, 5 and 6 of the CDLM paper, for the results book; Table 4 stands with those of CDA in
`paper_tables`."""

from __future__ import annotations

from collections.abc import Callable

from cdlm_lab.experiments.paper_table_form import PaperTable, each, joined
from cdlm_lab.experiments.reported_scores import ATTENTION, COREFERENCE, PERPLEXITY, QUESTIONS, ReportedRow
from cdlm_lab.experiments.result_cells import Column, as_perplexity, in_per_cent, in_points, of_paper
from cdlm_lab.experiments.result_series import CONTEXTS
from cdlm_lab.widgets import coreference_table, rank_table
from cdlm_lab.widgets.perplexity_table import PAPER_TABLE_1
from cdlm_lab.widgets.question_table import MEASURES as QUESTION_MEASURES
from cdlm_lab.widgets.question_table import PAPER_TABLE_5
from cdlm_lab.widgets.result_table import ResultCell, ResultColumn
from cdlm_lab.widgets.theme import VARIANT_NAMES

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

    def cell(row: ReportedRow) -> ResultCell:
        if not all(part in row.scores for part in parts):
            return ResultCell(text="")
        numbers = in_per_cent([row.scores[part].value for part in parts])
        deviation = row.scores[parts[-1]].deviation
        below = "" if deviation is None else f"F1 \u00b1 {in_per_cent([deviation])[0]}"
        return ResultCell(text=" / ".join(numbers), below=below)

    return Column(heading=ResultColumn(name=heading, below="R / P / F1"), cell=cell)


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
