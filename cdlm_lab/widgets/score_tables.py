"""The tables of scores that notebooks show: which columns each experiment has, and on how much it measured.

`score_table(report)` makes the table of any report; a new experiment adds its `Layout` to `LAYOUTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.report import Report
from cdlm_lab.widgets.html import VARIANT_NAMES, paper_order
from cdlm_lab.widgets.tables import (
    NONE,
    PER_CENT,
    PERPLEXITY,
    POINTS,
    THOUSANDTHS,
    Column,
    Form,
    ScoreTable,
    SystemRow,
    counted,
    explained,
    measured,
    published,
    seeds,
    system_rows,
    table_of,
    threes,
)

COREFERENCE_MEASURES = {"muc": "MUC", "b_cubed": "B\u00b3", "ceaf_e": "CEAFe", "lea": "LEA"}
QUESTION_MEASURES = {
    f"{prefix}{metric}": f"{of} {metric.upper()}"
    for prefix, of in (("", "answer"), ("sp_", "support"), ("joint_", "joint"))
    for metric in ("em", "f1")
}
ANSWER_MEASURES = {"p_at_1": "P@1", "map": "MAP", "mrr": "MRR"}
RANK_CELLS = {
    "positive/event": "events that corefer",
    "positive/entity": "entities that corefer",
    "negative/event": "other events",
    "negative/entity": "other entities",
}
RANK_GAPS = {"gap/event": "gap, events", "gap/entity": "gap, entities"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the scores of an experiment stand in a table.

    Attributes:
        columns: group -> columns, those of the papers last.
        size: report, split and group -> on how much was measured: a number, to tell the larger of two, and in
            words.
        note: what the columns are, and of what the papers' numbers are.
        split: that is shown; "" = the reports have none.
        first: heading of the systems.
    """

    columns: Callable[[str], Sequence[Column]]
    size: Callable[[Report, str, str], tuple[int, str]]
    note: str
    split: str = "test"
    first: str = "system"


def score_table(
    report: Report,
    *,
    labels: Mapping[str, str] | None = None,
    group: str = "",
    split: str | None = None,
    caption: str = "",
    others: Sequence[SystemRow] = (),
    experiment: str = "",
) -> ScoreTable:
    """The table of a report: a row for each system, and beside it what the papers have.

    Args:
        labels: system -> what to call it, in the order of the rows; None = all as they are called,
            variants of CDLM as in the paper and in its order.
        group: the part or setting that is shown.
        split: None = that of the experiment; beside others there are no numbers of papers.
        caption: what was measured; the size is added.
        others: rows below ours, such as those of a paper.
        experiment: of whose columns the table is; "" = that of the report.

    Raises:
        ValueError: there is no score of that split and group.
    """
    layout = LAYOUTS[experiment or report.name]
    wanted = layout.split if split is None else split
    if labels is None:
        names = paper_order(score.system for score in report.rows if score.system)
        labels = {name: VARIANT_NAMES.get(name, name) for name in names}
    rows = system_rows(report.rows, split=wanted, group=group, labels=labels)
    columns = [one for one in layout.columns(group) if wanted == layout.split or not one.heading.published]
    caption = f"{caption}, n = {layout.size(report, wanted, group)[1]}".removeprefix(", ")
    note = f"{layout.note} {explained(rows)}"
    return table_of([*rows, *others], columns, first=layout.first, caption=caption, note=note)


def _each(names: Mapping[str, str], form: Form = PER_CENT) -> list[Column]:
    """A column of ours for each metric, by its heading; p stands in the cells."""
    return [measured(heading, metric, form, with_p=True) for metric, heading in names.items()]


def _perplexity_columns(_: str) -> list[Column]:
    crossing, of_paper = "cross_document_perplexity", ("validation perplexity", "test perplexity")
    below = "paper: validation / test"
    return [
        measured("perplexity", "perplexity", PERPLEXITY, with_p=True, lower=True),
        measured("on cross-document tokens", crossing, PERPLEXITY, with_p=True, lower=True),
        counted("cross-document tokens", crossing),
        seeds(),
        published("Multi-News", ("cdlm", "1"), dataset="Multi-News", columns=of_paper, below=below),
    ]


def _coreference_columns(_: str) -> list[Column]:
    of_metrics = [threes(heading, metric) for metric, heading in COREFERENCE_MEASURES.items()]
    return [*of_metrics, measured("CoNLL F1", "conll/f1", with_p=True), seeds()]


def _matching_columns(_: str) -> list[Column]:
    tables, columns = (("cda", "2"), ("cda", "3"), ("cdlm", "4")), ("accuracy", "f1")
    papers = [
        published(
            corpus,
            *tables,
            dataset=corpus,
            columns=columns,
            below="paper: Acc / F1",
            decimals=(1, 1),
            gaps=False,
        )
        for corpus in ("AAN", "OC", "S2ORC", "PAN")
    ]
    return [*_each({"accuracy": "accuracy", "f1": "F1"}), seeds(), *papers]


def _alignment_columns(group: str) -> list[Column]:
    """The papers' numbers stand beside `released` alone, which scores unrelated pairs as its code does."""
    shown = {"mrr": "MRR", "at_10": "P@10", "at_5": "P@5", "at_1": "P@1"}
    papers = [
        published(
            corpus,
            ("cda", table),
            dataset=corpus,
            columns=tuple(shown)[:count],
            below=f"paper: {' / '.join([*shown.values()][:count])}",
            decimals=(4, 1, 1, 1)[:count],
        )
        for corpus, table, count in (("S2ORC", "4", 4), ("PAN", "5", 3))
    ]
    mrr, *at = (
        _each({metric: heading}, THOUSANDTHS if metric == "mrr" else PER_CENT)[0]
        for metric, heading in shown.items()
    )
    return [mrr, *at, seeds(), *(papers if group == "released" else [])]


def _question_columns(_: str) -> list[Column]:
    papers = [
        published(of, ("cdlm", "5"), dataset="HotpotQA dev", columns=(metric,), below="paper: F1, HotpotQA")
        for metric, of in (("f1", "answer"), ("sp_f1", "support"), ("joint_f1", "joint"))
    ]
    return [*_each(QUESTION_MEASURES), seeds(), *papers]


def _tagging_columns(_: str) -> list[Column]:
    tables = [("doc-arc", table) for table in "234"]
    papers = [
        published(corpus, *tables, dataset=corpus, columns=("f1",), below="paper: F1 (SD)", deviations=True)
        for corpus in ("LitBank", "JNLPBA", "OntoNotes1000")
    ]
    return [*_each({"precision": "precision", "recall": "recall", "f1": "span F1"}), seeds(), *papers]


def _answer_columns(group: str) -> list[Column]:
    tables = [("mspp", "1")] if group == "all" else [("mspp", "2"), ("mspp", "7")]
    below, columns = "paper: P@1 / MAP / MRR", tuple(ANSWER_MEASURES)
    papers = [
        published(corpus, *tables, dataset=corpus, columns=columns, below=below, deviations=True)
        for corpus in ("ASNQ", "WikiQA", "TREC-QA")
    ]
    return [*_each(ANSWER_MEASURES), seeds(), *papers]


def _claim_columns(_: str) -> list[Column]:
    columns, below = ("dev label_accuracy", "label_accuracy"), "paper: dev / test"
    paper = published("FEVER", ("mspp", "8"), dataset="FEVER", columns=columns, below=below, deviations=True)
    return [*_each({"label_accuracy": "label accuracy"}), seeds(), paper]


def _rank_columns(_: str) -> list[Column]:
    below = "paper: the first four"
    paper = published("ECB+", ("cdlm", "6"), dataset="ECB+", columns=tuple(RANK_CELLS), below=below)
    return [*_each(RANK_CELLS | RANK_GAPS, POINTS), seeds(), paper]


def pairs_in_words(counts: Iterable[int]) -> str:
    """[1000, 1000] -> `1,000 pairs`, [990, 1000] -> `990\u20131,000 pairs`, [1] -> `1 pair`."""
    ordered = [f"{count:,}" for count in sorted(set(counts))]
    if not ordered:
        return "no pairs"
    ends = ordered if len(ordered) == 1 else [ordered[0], ordered[-1]]
    return f"{NONE.join(ends)} {'pair' if ordered == ['1'] else 'pairs'}"


def _tokens(report: Report, *_: str) -> tuple[int, str]:
    score = next(score for score in report.rows if score.n)
    return score.n or 0, f"{score.clusters:,} clusters, {score.n:,} masked tokens"


def _coreference_size(report: Report, split: str, _: str) -> tuple[int, str]:
    pairs = report.data["pairs_scored"][split]
    return pairs, f"{len(report.data['topics'][split]):,} topics, {pairs:,} pairs"


def _size(what: str, of: str) -> Callable[[Report, str, str], tuple[int, str]]:
    """`766 pairs, 214 clusters of them`, by what the report says of its data, of a split or of all."""

    def size(report: Report, split: str, _: str) -> tuple[int, str]:
        count, groups = (report.data[name][split] if split else report.data[name] for name in (what, of))
        return count, f"{count:,} {'claims' if what == 'scored' else what}, {groups:,} {of} of them"

    return size


def _tagging_size(report: Report, split: str, _: str) -> tuple[int, str]:
    return report.data["documents"][split], str(report.data["facts"][split])


def _answer_size(report: Report, split: str, _: str) -> tuple[int, str]:
    questions, candidates = (report.data[name][split] for name in ("questions", "candidates"))
    return candidates, f"{questions:,} questions, {candidates:,} candidates"


def _rank_size(report: Report, *_: str) -> tuple[int, str]:
    counts = [row.n for row in report.rows if row.n and not row.metric.startswith("gap/")]
    return sum(
        counts
    ), f"{pairs_in_words(counts)} of each sort and kind, {len(report.data['topics']):,} topics"


LAYOUTS: Mapping[str, Layout] = {
    "cross-document perplexity": Layout(
        columns=_perplexity_columns,
        size=_tokens,
        note="Lower is better. p: paired test against the next row.",
        split="",
        first="variant",
    ),
    "coreference": Layout(
        columns=_coreference_columns,
        size=_coreference_size,
        note="All times 100. CoNLL F1: mean of the F1 of MUC, B³ and CEAFe.",
    ),
    "document matching": Layout(
        columns=_matching_columns,
        size=_size("pairs", "clusters"),
        note="All in per cent; F1 of the related pairs. p: against the row above of the same family. "
        "Papers: accuracy / F1 of Zhou et al. 2020, Tables 2 and 3; F1 alone of Caciularu et al. 2021,"
        " Table 4.",
    ),
    "sentence alignment": Layout(
        columns=_alignment_columns,
        size=_size("pairs", "clusters"),
        note="MRR: mean reciprocal rank of the first true sentence; P@N in per cent. p: against the row "
        "above of the same family. Paper: Zhou et al. 2020, Tables 4 and 5.",
        split="",
    ),
    "multihop question answering": Layout(
        columns=_question_columns,
        size=_size("questions", "clusters"),
        note="All in per cent. EM: share of the questions of which the answer, the supporting sentences, or"
        " both are exactly right. F1: of the words of the answer, of the sentences, and joint from the"
        " products of both precisions and of both recalls; mean over questions. Paper: Caciularu et "
        "al. 2021, Table 5, which has F1 alone, of models of base size on the official development set"
        " of 7,405 questions; not to be compared with other questions or other sizes.",
        first="encoder",
    ),
    "document-attentive tagging": Layout(
        columns=_tagging_columns,
        size=_tagging_size,
        note="All in per cent. A span is right if its words and its label are. Paper: Joerke et al. 2020, "
        "test F1 as mean and standard deviation of 5 runs (Table 2: a frozen BERT base; Table 3: a "
        "trained BERT tiny; Table 4: a fine-tuned BERT base); not to be compared with other encoders "
        "or other parts of the documents.",
    ),
    "answer selection": Layout(
        columns=_answer_columns,
        size=_answer_size,
        note="All in per cent, means over questions. P@1: the first candidate is right; MAP: average "
        "precision; MRR: one divided by the place of the first right candidate. p: against pairwise "
        "reading. Paper: Di Liello et al. 2022, RoBERTa-base on the test questions (of WikiQA and "
        "TREC-QA those that have right and wrong candidates), mean (standard deviation) of 5 runs; "
        "Table 1 has all candidates, Tables 2 and 7 the pairwise model's five best; not to be compared"
        " with other encoders or other questions.",
    ),
    "fact verification": Layout(
        columns=_claim_columns,
        size=_size("scored", "groups"),
        note="Share of the claims with the right label, in per cent. p: against pairwise reading. Paper: Di"
        " Liello et al. 2022, Tables 3 and 8, on FEVER, RoBERTa-base where the system does not say "
        "otherwise; in parentheses the standard deviation over runs. Not to be compared with other "
        "encoders or other claims.",
    ),
    "attention analysis": Layout(
        columns=_rank_columns,
        size=_rank_size,
        note="Rank of the second mention among the tokens of its document, by the attention between it and "
        "the first mention: 0 lowest, 100 highest; mean over pairs. p: paired test against the next "
        "row.",
        split="",
        first="variant",
    ),
}
