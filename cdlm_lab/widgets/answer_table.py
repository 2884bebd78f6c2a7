"""How well systems choose answers: a table beside Tables 1, 2 and 7 of the MSPP paper, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED, count_in_words
from cdlm_lab.widgets.matching_table import (
    NONE,
    captioned_table,
    check_distinct,
    muted_heading,
    name_html,
)
from cdlm_lab.widgets.measured_score import (
    MeasuredScore,
    best_score,
    check_scores,
    explained_scores,
    score_html,
    seeds_in_words,
)

MEASURES = {"p_at_1": "P@1", "map": "MAP", "mrr": "MRR"}
CORPUS_NAMES = {"asnq": "ASNQ", "wikiqa": "WikiQA", "trecqa": "TREC-QA"}
_SMALL = f"font-size:11px;white-space:nowrap;{MUTED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedAnswers:
    """A number of the paper, in per cent, as mean of five runs.

    Attributes:
        value: the mean.
        deviation: standard deviation over the runs; None = not reported.
        table: where it stands.
    """

    value: float
    deviation: float | None
    table: int


# Di Liello et al. 2022 ("MSPP"), RoBERTa-base on the test sets: for each corpus, in the order of
# CORPUS_NAMES, P@1, MAP and MRR as (mean, deviation). Table 1: all candidates.
_TABLE_1 = {
    "pairwise": (
        ((61.8, 0.2), (66.9, 0.1), (73.1, 0.1)),
        ((77.1, 2.1), (85.3, 0.9), (86.5, 1.0)),
        ((87.9, 2.2), (89.3, 0.9), (93.1, 1.0)),
    ),
    "joint-ie_k": (
        ((3.4, 2.3), (8.0, 1.9), (10.0, 2.4)),
        ((19.7, 1.9), (39.4, 1.6), (40.3, 1.8)),
        ((30.9, 5.4), (41.9, 2.4), (50.8, 3.9)),
    ),
    "joint-ae_k": (
        ((3.6, 2.7), (8.0, 2.2), (10.2, 2.8)),
        ((18.7, 3.9), (39.0, 2.8), (39.7, 2.9)),
        ((29.7, 6.9), (42.3, 3.2), (49.2, 5.0)),
    ),
    "mspp-ie_k": (
        ((63.0, 0.3), (67.2, 0.2), (73.7, 0.2)),
        ((82.7, 2.2), (88.5, 1.5), (89.0, 1.5)),
        ((91.7, 2.2), (91.1, 0.5), (95.2, 1.3)),
    ),
    "mspp-ae_k": (
        ((63.0, 0.3), (67.3, 0.2), (73.7, 0.2)),
        ((81.9, 2.6), (87.9, 1.4), (89.0, 1.5)),
        ((88.7, 0.8), (90.1, 1.0), (93.6, 0.6)),
    ),
}
# Tables 2 and 7: the five best of the pairwise model, ranked anew. P@1 stands in both, its deviation in Table
# 2 alone; MAP and MRR have none.
_TABLES_2_AND_7 = {
    "pairwise": (((61.8, 0.2), 66.9, 73.1), ((77.1, 2.1), 85.3, 86.5), ((87.9, 2.2), 89.3, 93.1)),
    "joint-ie_k": (((25.2, 3.1), 44.0, 45.6), ((24.6, 3.1), 49.3, 49.7), ((57.6, 4.8), 73.7, 74.6)),
    "joint-ae_k": (((25.4, 3.3), 44.8, 46.2), ((26.4, 2.2), 50.6, 51.1), ((60.9, 4.9), 74.6, 76.7)),
    "mspp-ie_k": (((63.9, 0.8), 71.3, 73.1), ((82.7, 3.0), 88.5, 89.0), ((92.2, 0.8), 93.5, 95.4)),
    "mspp-ae_k": (((64.3, 1.1), 71.5, 73.4), ((82.1, 1.1), 87.9, 88.7), ((91.2, 2.9), 93.5, 94.9)),
}


Published = Mapping[str, Mapping[str, Mapping[str, PublishedAnswers]]]
# System -> corpus -> measure -> what the paper reports: of all candidates, and of re-ranking.
PAPER_TABLE_1: Published = {
    system: {
        corpus: {
            measure: PublishedAnswers(value=value, deviation=deviation, table=1)
            for measure, (value, deviation) in zip(MEASURES, numbers, strict=True)
        }
        for corpus, numbers in zip(CORPUS_NAMES, of_corpora, strict=True)
    }
    for system, of_corpora in _TABLE_1.items()
}
PAPER_TABLES_2_AND_7: Published = {
    system: {
        corpus: {
            "p_at_1": PublishedAnswers(value=p_at_1, deviation=deviation, table=2),
            "map": PublishedAnswers(value=average, deviation=None, table=7),
            "mrr": PublishedAnswers(value=reciprocal, deviation=None, table=7),
        }
        for corpus, ((p_at_1, deviation), average, reciprocal) in zip(CORPUS_NAMES, of_corpora, strict=True)
    }
    for system, of_corpora in _TABLES_2_AND_7.items()
}
_EXPLANATION = (
    "All in per cent, means over questions. P@1: the first candidate is right; MAP: average precision; MRR: "
    "one divided by the place of the first right candidate."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One system's scores.

    Attributes:
        label: what to call the system.
        system: `pairwise joint-ie_k joint-ae_k mspp-ie_k mspp-ae_k` for the paper's numbers; or any other.
        reranked: True = it ranks the best candidates of the pairwise model anew, as in Tables 2 and 7; False
            = all candidates, as in Table 1.
        scores: by the names in `MEASURES`; what is missing was not measured.
        seeds: how many models were trained; None = none, as for a random order.

    Raises:
        ValueError: an unknown measure, scores that do not go with the seeds (see `check_scores`).
    """

    label: str
    system: str
    reranked: bool
    scores: Mapping[str, MeasuredScore]
    seeds: int | None

    def __post_init__(self) -> None:
        if unknown := [measure for measure in self.scores if measure not in MEASURES]:
            raise ValueError(
                f"{self.label}: unknown measure {unknown[0]!r}; choose from {', '.join(MEASURES)}"
            )
        check_scores(self.label, self.scores, seeds=self.seeds)


def answer_table_html(rows: Sequence[AnswerRow], *, questions: int, corpus: str) -> str:
    """The table as HTML, in the order given; beside ours, muted, the paper's numbers of the systems in
    `rows`. The best of each column is bold, ties all.

    Args:
        rows: one for each system.
        questions: how many the numbers are of, for the caption.
        corpus: a name in `CORPUS_NAMES`; or any other (plain text), of which the paper has no numbers.

    Raises:
        ValueError: no rows, two of one label, no questions.
    """
    check_distinct([row.label for row in rows])
    if questions < 1:
        raise ValueError(f"questions is {questions}; the numbers are of at least one")
    papers = [_published(row).get(corpus, {}) for row in rows]
    published = MEASURES if any(papers) else {}
    columns = [
        "system",
        *MEASURES.values(),
        "seeds",
        *(muted_heading("paper", name) for name in published.values()),
    ]
    best = {measure: best_score(row.scores.get(measure) for row in rows) for measure in MEASURES}
    body = [
        [
            name_html(row.label),
            *(score_html(row.scores.get(measure), best=best[measure]) for measure in MEASURES),
            seeds_in_words(row.seeds),
            *(_of_paper(paper.get(measure)) for measure in published),
        ]
        for row, paper in zip(rows, papers, strict=True)
    ]
    counted = f"{count_in_words(questions)} question{'' if questions == 1 else 's'}"
    caption = f"Answers chosen: {CORPUS_NAMES.get(corpus, corpus)}, n = {counted}"
    parts = [_EXPLANATION, *explained_scores(row.scores for row in rows)]
    if published:
        parts.append(_of_which(corpus, [row for row, paper in zip(rows, papers, strict=True) if paper]))
    return captioned_table(caption, columns, body, note=" ".join(parts))


def _published(row: AnswerRow) -> Mapping[str, Mapping[str, PublishedAnswers]]:
    return (PAPER_TABLES_2_AND_7 if row.reranked else PAPER_TABLE_1).get(row.system, {})


def _of_paper(number: PublishedAnswers | None) -> str:
    if number is None:
        return f'<span style="{MUTED}">{NONE}</span>'
    deviation = "" if number.deviation is None else f" ({number.deviation:.1f})"
    return (
        f'<span style="{MUTED}">{number.value:.1f}{deviation}</span>'
        f'<div style="{_SMALL}">Table {number.table}</div>'
    )


def _of_which(corpus: str, rows: Sequence[AnswerRow]) -> str:
    """What the paper's numbers are of."""
    tables = {False: "Table 1: all candidates", True: "Tables 2 and 7: the pairwise model's five best"}
    shown = "; ".join(tables[reranked] for reranked in sorted({row.reranked for row in rows}))
    clean = "" if corpus == "asnq" else " that have right and wrong candidates"
    return (
        f"Paper: Di Liello et al. 2022, RoBERTa-base on the test questions of {CORPUS_NAMES[corpus]}{clean}, "
        f"mean (standard deviation) of 5 runs ({shown}); not to be compared with other encoders or other "
        "questions."
    )
