"""How often systems give claims the right label: a table beside Tables 3 and 8 of the MSPP paper."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedAccuracy:
    """Label accuracy on FEVER as the paper has it, in per cent; None = not reported.

    Attributes:
        dev, test: on the development and the test set.
        deviation: standard deviation over the runs, of `dev`.
    """

    dev: float
    test: float | None
    deviation: float | None = None


# Di Liello et al. 2022 ("MSPP"), Table 8, of which Table 3 is a part. Ours of the paper are named by the
# heads of pretraining and of fine-tuning; RoBERTa-base, if the name does not say otherwise.
PAPER_VERIFICATION: Mapping[str, PublishedAccuracy] = {
    system: PublishedAccuracy(dev=dev, test=test, deviation=deviation)
    for system, (dev, deviation, test) in {
        "gear": (70.69, None, 71.60),
        "kgat": (78.29, None, 74.07),
        "transformer-xh": (78.05, None, 72.39),
        "pairwise-bert": (73.30, None, 69.75),
        "pairwise-max": (79.82, None, None),
        "pairwise-weighted_sum": (80.01, None, None),
        "joint-bert": (73.67, None, 71.01),
        "joint-ie_1": (79.25, None, 73.56),
        "mspp-ie_k-ie_1": (81.21, 0.24, 74.39),
        "mspp-ie_k-ae_1": (81.10, 0.15, 74.25),
        "mspp-ae_k-ie_1": (81.18, 0.14, 73.77),
        "mspp-ae_k-ae_1": (81.21, 0.16, 74.13),
        "domlin++": (77.48, None, 76.60),
        "dream": (79.16, None, 76.85),
    }.items()
}
_OF_THE_PAPER = (
    "Paper: Di Liello et al. 2022, Tables 3 and 8, on FEVER, RoBERTa-base where the system does not say "
    "otherwise; in parentheses the standard deviation over runs. Not to be compared with other encoders or "
    "other claims."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRow:
    """One system's label accuracy.

    Attributes:
        label: what to call the system.
        system: a name in `PAPER_VERIFICATION`, such as "pairwise-max" or "mspp-ie_k-ae_1", for the paper's
            numbers; or any other.
        accuracy: share of the claims with the right label.
        seeds: how many models were trained; None = none, as for the most frequent label.

    Raises:
        ValueError: an accuracy that does not go with the seeds (see `check_scores`).
    """

    label: str
    system: str
    accuracy: MeasuredScore
    seeds: int | None

    def __post_init__(self) -> None:
        check_scores(self.label, {"accuracy": self.accuracy}, seeds=self.seeds)


def verification_table_html(rows: Sequence[VerificationRow], *, claims: int, corpus: str) -> str:
    """The table as HTML, in the order given; beside ours, muted, the paper's numbers of the systems in
    `rows`. The best accuracy is bold, ties all.

    Args:
        rows: one for each system.
        claims: how many the numbers are of, for the caption.
        corpus: what the claims are of (plain text), for the caption.

    Raises:
        ValueError: no rows, two of one label, no claims.
    """
    check_distinct([row.label for row in rows])
    if claims < 1:
        raise ValueError(f"claims is {claims}; the numbers are of at least one")
    papers = [PAPER_VERIFICATION.get(row.system) for row in rows]
    published = any(papers)
    columns = ["system", "label accuracy", "seeds"]
    columns += (
        [muted_heading("FEVER dev", "paper"), muted_heading("FEVER test", "paper")] if published else []
    )
    best = best_score(row.accuracy for row in rows)
    body = [
        [
            name_html(row.label),
            score_html(row.accuracy, best=best),
            seeds_in_words(row.seeds),
            *(_of_paper(paper) if published else []),
        ]
        for row, paper in zip(rows, papers, strict=True)
    ]
    caption = f"Claims verified: {corpus}, n = {count_in_words(claims)} claim{'' if claims == 1 else 's'}"
    scores = explained_scores({"accuracy": row.accuracy} for row in rows)
    parts = ["Share of the claims with the right label, in per cent.", *scores]
    return captioned_table(
        caption, columns, body, note=" ".join([*parts, *([_OF_THE_PAPER] if published else [])])
    )


def _of_paper(paper: PublishedAccuracy | None) -> list[str]:
    """The cells of both sets."""
    if paper is None:
        texts = [NONE, NONE]
    else:
        deviation = "" if paper.deviation is None else f" ({paper.deviation:.2f})"
        texts = [f"{paper.dev:.2f}{deviation}", NONE if paper.test is None else f"{paper.test:.2f}"]
    return [f'<span style="{MUTED}">{text}</span>' for text in texts]
