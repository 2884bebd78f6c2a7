"""How well systems answer questions over several paragraphs and name the sentences that support the answers:
a table beside Table 5 of the CDLM paper, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED, count_in_words, escaped
from cdlm_lab.widgets.matching_table import (
    NONE,
    best_written,
    captioned_table,
    check_distinct,
    check_measured,
    measured_html,
    muted_heading,
    name_html,
    per_cent,
)

# Measure -> what it is of, and what it is.
MEASURES = {
    "em": ("answer", "EM"),
    "f1": ("answer", "F1"),
    "sp_em": ("support", "EM"),
    "sp_f1": ("support", "F1"),
    "joint_em": ("joint", "EM"),
    "joint_f1": ("joint", "F1"),
}
_PUBLISHED = ("f1", "sp_f1", "joint_f1")
_SMALL = f"font-size:11px;font-weight:400;{MUTED}"

# Caciularu et al. 2021, Table 5: F1 on the development set of HotpotQA's distractor setting, in per cent.
PAPER_TABLE_5: Mapping[str, Mapping[str, float]] = {
    variant: dict(zip(_PUBLISHED, numbers, strict=True))
    for variant, numbers in {
        "longformer": (74.5, 83.9, 64.5),
        "local-cdlm": (74.1, 84.0, 64.2),
        "rand-cdlm": (72.7, 84.8, 63.7),
        "prefix-cdlm": (74.8, 84.7, 65.2),
        "cdlm": (74.7, 86.3, 66.3),
    }.items()
}
_EXPLANATION = (
    "All in per cent. EM: share of the questions of which the answer, the supporting sentences, or both are "
    "exactly right. F1: of the words of the answer, of the sentences, and joint from the products of both "
    "precisions and of both recalls; mean over questions."
)
_OF_THE_PAPER = (
    "Paper: Caciularu et al. 2021, Table 5, which has F1 alone, of models of base size on the official "
    "development set of 7,405 questions; not to be compared with other questions or other sizes."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """One system's scores.

    Attributes:
        label: what to call the system.
        variant: `longformer local-cdlm rand-cdlm prefix-cdlm cdlm`, as in `theme.VARIANTS`, for the paper's
            numbers; or any other name.
        values: mean and bounds of its 95% interval, in [0, 1], by the names in `MEASURES`; what is missing
            was not measured.

    Raises:
        ValueError: an unknown measure, a number outside [0, 1], bounds that run backwards.
    """

    label: str
    variant: str
    values: Mapping[str, tuple[float, float, float]]

    def __post_init__(self) -> None:
        for measure, (mean, low, high) in self.values.items():
            if measure not in MEASURES:
                raise ValueError(
                    f"{self.label}: unknown measure {measure!r}; choose from {', '.join(MEASURES)}"
                )
            check_measured(f"{self.label}: {measure}", mean, (low, high))


def question_table_html(rows: Sequence[QuestionRow], *, questions: int) -> str:
    """The table as HTML, in the order given: answer, support, and both together, then muted the paper's F1 of
    the variants in `rows`. The best of each column is bold, ties all.

    Args:
        rows: one for each system.
        questions: how many the numbers are of, for the caption.

    Raises:
        ValueError: no rows, two of one label, no questions.
    """
    check_distinct([row.label for row in rows])
    if questions < 1:
        raise ValueError(f"questions is {questions}; the numbers are of at least one")
    papers = [PAPER_TABLE_5.get(row.variant, {}) for row in rows]
    published = _PUBLISHED if any(papers) else ()
    columns = [
        "system",
        *(f'<div>{of}</div><div style="{_SMALL}">{measure}</div>' for of, measure in MEASURES.values()),
        *(muted_heading(MEASURES[measure][0], "paper F1") for measure in published),
    ]
    best = {
        measure: best_written([row.values[measure][0] for row in rows if measure in row.values], per_cent)
        for measure in MEASURES
    }
    body = [
        [
            name_html(row.label),
            *(_cell(row.values.get(measure), best[measure]) for measure in MEASURES),
            *(_of_paper(paper.get(measure)) for measure in published),
        ]
        for row, paper in zip(rows, papers, strict=True)
    ]
    caption = f"Answers and supporting sentences, n = {count_in_words(questions)} questions"
    parts = [_EXPLANATION, "Brackets: 95% interval.", *(["Bold: best."] if len(rows) > 1 else [])]
    return captioned_table(
        caption, columns, body, note=" ".join([*parts, *([_OF_THE_PAPER] if published else [])])
    )


def _cell(value: tuple[float, float, float] | None, best: str | None) -> str:
    if value is None:
        return NONE
    return measured_html(value[0], form=per_cent, interval=value[1:], best=best)


def _of_paper(number: float | None) -> str:
    return f'<span style="{MUTED}">{NONE if number is None else escaped(f"{number:.1f}")}</span>'
