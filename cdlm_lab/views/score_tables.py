"""The score tables that notebooks show: the columns of each experiment, and the size of its test set.

`score_table(report)` makes the table of any report; a new experiment adds its `Layout` to `LAYOUTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cdlm_lab.encoders.variants import VARIANT_NAMES
from cdlm_lab.runs.report import Report
from cdlm_lab.views import tables
from cdlm_lab.views.html import paper_order
from cdlm_lab.views.tables import (
    PER_CENT,
    Column,
    Form,
    ScoreTable,
    Shown,
    SystemRow,
    measured,
    published,
    seeds,
)

COREFERENCE_MEASURES = {"muc": "MUC", "b_cubed": "B\u00b3", "ceaf_e": "CEAFe", "lea": "LEA"}
QUESTION_MEASURES = {
    f"{prefix}{metric}": f"{of} {metric.upper()}"
    for prefix, of in (("", "answer"), ("sp_", "support"), ("joint_", "joint"))
    for metric in ("em", "f1")
}
ANSWER_MEASURES = {"p_at_1": "P@1", "map": "MAP", "mrr": "MRR"}
_COREFERRING = {"positive/event": "events that corefer", "positive/entity": "entities that corefer"}
_OTHERS = {"negative/event": "other events", "negative/entity": "other entities"}
RANK_CELLS = _COREFERRING | _OTHERS
RANK_GAPS = {"gap/event": "gap, events", "gap/entity": "gap, entities"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The layout of an experiment's score table."""

    shown: Sequence[Column]  # columns; those with the papers' numbers come last
    # (report, split, group) -> size of the data that was measured: a number for comparison, and in words.
    size: Callable[[Report, str, str], tuple[int, str]]
    note: str  # explanation of the columns
    test: str = ""  # what p is about; shown where there is one
    paper: str = ""  # explanation of the papers' numbers
    split: str = "test"  # the split that is shown; "" = the reports have no splits
    first: str = "system"  # heading of the column of systems

    def columns(self, group: str) -> list[Column]:
        """Return the columns that are shown with a group of scores."""
        return [column for column in self.shown if column.group in ("", group)]


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
    """Return the score table of a report: one row per system, and next to it the papers' numbers.

    Args:
        labels: system -> name to show, in the order of the rows; None = all systems under their own names,
            variants of CDLM with the names and in the order of the CDLM paper.
        group: the group of scores to show. Raises ValueError if there are none.
        split: None = the split of the experiment's layout; other splits have no numbers of papers.
        caption: what was measured; the size of the test set is appended.
        others: rows below ours, such as those of a paper.
        experiment: name of the experiment whose layout is used; "" = that of the report.
    """
    layout = LAYOUTS[experiment or report.name]
    wanted = layout.split if split is None else split
    if labels is None:
        names = paper_order(score.system for score in report.rows if score.system)
        labels = {name: VARIANT_NAMES.get(name, name) for name in names}
    labels = {system: f"{label}{origin(report, system)}" for system, label in labels.items()}
    rows = tables.system_rows(report.rows, split=wanted, group=group, labels=labels)
    columns = [one for one in layout.columns(group) if wanted == layout.split or not one.heading.published]
    caption = f"{caption}, n = {layout.size(report, wanted, group)[1]}".removeprefix(", ")
    table = tables.table_of([*rows, *others], columns, first=layout.first, caption=caption)
    of_paper = layout.paper if any(heading.published for heading in table.columns) else ""
    of_test = layout.test if any(cell.test for row in table.rows for cell in row) else ""
    notes = (layout.note, of_test, of_paper, tables.explained(rows))
    return replace(table, note=" ".join(filter(None, notes)))


def origin(report: Report, system: str) -> str:
    """Return what follows the name of a system: what its model began with, if the name does not say it, such
    as " (from CDLM, after claims)"; "" if there is nothing to say, or it is not known."""
    name = system.partition("/")[0]
    began = report.data.get("began_with", {}).get(name)
    if not began:
        return ""
    if name == began["base"]:
        return f" (after {', '.join(began['after'])})" if began["after"] else ""
    variants = name in VARIANT_NAMES and began["base"] in VARIANT_NAMES
    return f" (from {origin_in_words(began)})" if began["after"] or variants else ""


def origin_in_words(began: Mapping[str, Any]) -> str:
    """Return what a model began with as text: `CDLM, after language modelling, claims`."""
    after = f", after {', '.join(began['after'])}" if began["after"] else ""
    return f"{VARIANT_NAMES.get(began['base'], began['base'])}{after}"


def control_table(
    report: Report, split: str, table: Callable[..., ScoreTable], **form: Any
) -> ScoreTable | Shown:
    """The table of a control split, such as test without questions; a line of text if the run has none."""
    if any(row.split == split for row in report.rows):
        return table(report, split=split, **form)
    return Shown("<p>This run was not measured so.</p>")


def comparison_cells(row: Mapping[str, Any]) -> list[str]:
    """Cells of a test: difference in points with its interval, corrected p, and p over seeds if any."""
    low, high = (f"{100 * row[name]:.1f}" for name in ("low", "high"))
    difference = f"{100 * row['difference']:+.1f} [{low}, {high}]"
    ps = (row["p_holm"], row.get("p_seeds"))
    return [difference, *(tables.NONE if p is None else tables.p_text(p) for p in ps)]


def _each(names: Mapping[str, str], form: Form = PER_CENT) -> list[Column]:
    """Return one column of our scores, with p-values, for each metric; `names`: metric -> heading."""
    return [measured(heading, metric, form, with_p=True) for metric, heading in names.items()]


def pairs_in_words(counts: Iterable[int]) -> str:
    """[1000, 1000] -> `1,000 pairs`, [990, 1000] -> `990\u20131,000 pairs`, [1] -> `1 pair`."""
    ordered = [f"{count:,}" for count in sorted(set(counts))]
    if not ordered:
        return "no pairs"
    ends = ordered if len(ordered) == 1 else [ordered[0], ordered[-1]]
    return f"{tables.NONE.join(ends)} {'pair' if ordered == ['1'] else 'pairs'}"


def _tokens(report: Report, *_: str) -> tuple[int, str]:
    score = next(score for score in report.rows if score.n)
    return score.n or 0, f"{score.clusters:,} clusters, {score.n:,} masked tokens"


def _coreference_size(report: Report, split: str, _: str) -> tuple[int, str]:
    pairs = report.data["pairs_scored"][split]
    return pairs, f"{len(report.data['topics'][split]):,} topics, {pairs:,} pairs"


def _size(what: str, of: str) -> Callable[[Report, str, str], tuple[int, str]]:
    """Return a `size` that writes `766 pairs in 214 clusters` from a report's counts of a split or of all."""

    def size(report: Report, split: str, _: str) -> tuple[int, str]:
        count, groups = (report.data[name][split] if split else report.data[name] for name in (what, of))
        return count, f"{count:,} {'claims' if what == 'scored' else what} in {groups:,} {of}"

    return size


def _aligned_size(report: Report, _: str, group: str) -> tuple[int, str]:
    """The pairs that a group of scores is of: those of the released code hold the unrelated ones too."""
    counts = ((row.n, row.clusters) for row in report.rows if row.group == group and row.n and row.clusters)
    pairs, clusters = next(counts, (report.data["pairs"], report.data["clusters"]))
    return pairs, f"{pairs:,} pairs in {clusters:,} clusters"


def _answer_size(report: Report, split: str, _: str) -> tuple[int, str]:
    questions, candidates = (report.data[name][split] for name in ("questions", "candidates"))
    return candidates, f"{questions:,} questions, {candidates:,} candidates"


def _rank_size(report: Report, *_: str) -> tuple[int, str]:
    counts = [row.n for row in report.rows if row.n and not row.metric.startswith("gap/")]
    topics = len(report.data["topics"])
    return sum(counts), f"{pairs_in_words(counts)} of each sort and kind, {topics:,} topics"


_CROSSING = "cross_document_perplexity"
_OF_HOTPOT = {"dataset": "HotpotQA dev", "below": "paper: F1, HotpotQA"}
_MATCHED = {"columns": ("accuracy", "f1"), "below": "paper: Acc / F1", "decimals": (1, 1), "gaps": False}
_ANSWERS = {"columns": tuple(ANSWER_MEASURES), "below": "paper: P@1 / MAP / MRR", "deviations": True}
_ANSWER_SETS = ("ASNQ", "WikiQA", "TREC-QA")
_ALIGNED = ("mrr", "at_10", "at_5", "at_1")
# CDA's numbers are shown with the group `released` only, which scores unrelated pairs as CDA's code does.
_RELEASED = {"decimals": (4, 1, 1, 1), "group": "released"}

LAYOUTS: Mapping[str, Layout] = {
    "cross-document perplexity": Layout(
        shown=[
            measured("perplexity", "perplexity", tables.PERPLEXITY, with_p=True, lower=True),
            measured("on cross-document tokens", _CROSSING, tables.PERPLEXITY, with_p=True, lower=True),
            tables.counted("cross-document tokens", _CROSSING),
            seeds(),
            published(
                "Multi-News",
                ("cdlm", "1"),
                columns=("validation perplexity", "test perplexity"),
                below="paper: validation / test",
            ),
        ],
        size=_tokens,
        note="Lower is better.",
        test="p: paired test against the next row.",
        split="",
        first="variant",
    ),
    "coreference": Layout(
        shown=[
            *(tables.threes(heading, metric) for metric, heading in COREFERENCE_MEASURES.items()),
            measured("CoNLL F1", "conll/f1", with_p=True),
            seeds(),
        ],
        size=_coreference_size,
        note="All times 100. CoNLL F1: mean of the F1 of MUC, B³ and CEAFe.",
    ),
    "document matching": Layout(
        shown=[
            *_each({"accuracy": "accuracy", "f1": "F1"}),
            seeds(),
            *(
                published(corpus, ("cda", "2"), ("cda", "3"), ("cdlm", "4"), **_MATCHED)
                for corpus in ("AAN", "OC", "S2ORC", "PAN")
            ),
        ],
        size=_size("pairs", "clusters"),
        note="All in per cent; F1 of the related pairs.",
        test="p: against the row above of the same family.",
        paper="Papers: accuracy / F1 of Zhou et al. 2020, Tables 2 and 3; F1 alone of Caciularu et al. "
        "2021, Table 4.",
    ),
    "sentence alignment": Layout(
        shown=[
            *_each({"mrr": "MRR"}, tables.THOUSANDTHS),
            *_each({"at_10": "P@10", "at_5": "P@5", "at_1": "P@1"}),
            seeds(),
            published(
                "S2ORC", ("cda", "4"), columns=_ALIGNED, below="paper: MRR / P@10 / P@5 / P@1", **_RELEASED
            ),
            published(
                "PAN", ("cda", "5"), columns=_ALIGNED[:3], below="paper: MRR / P@10 / P@5", **_RELEASED
            ),
        ],
        size=_aligned_size,
        note="MRR: mean reciprocal rank of the first true sentence; P@N in per cent.",
        test="p: against the row above of the same family.",
        paper="Paper: Zhou et al. 2020, Tables 4 and 5.",
        split="",
    ),
    "multihop question answering": Layout(
        shown=[
            *_each(QUESTION_MEASURES),
            seeds(),
            published("answer", ("cdlm", "5"), columns=("f1",), **_OF_HOTPOT),
            published("support", ("cdlm", "5"), columns=("sp_f1",), **_OF_HOTPOT),
            published("joint", ("cdlm", "5"), columns=("joint_f1",), **_OF_HOTPOT),
        ],
        size=_size("questions", "clusters"),
        note="All in per cent. EM: share of the questions of which the answer, the supporting sentences, "
        "or both are exactly right. F1: of the words of the answer, of the sentences, and joint from the "
        "products of both precisions and of both recalls; mean over questions.",
        paper="Paper: Caciularu et al. 2021, Table 5, which has F1 alone, of models of base size on the "
        "official development set of 7,405 questions; not to be compared with other questions or other "
        "sizes.",
        first="encoder",
    ),
    "document-attentive tagging": Layout(
        shown=[
            *_each({"precision": "precision", "recall": "recall", "f1": "span F1"}),
            seeds(),
            *(
                published(
                    corpus,
                    *(("doc-arc", table) for table in "234"),
                    columns=("f1",),
                    below="paper: F1 (SD)",
                    deviations=True,
                )
                for corpus in ("LitBank", "JNLPBA", "OntoNotes1000")
            ),
        ],
        size=lambda report, split, _: (report.data["documents"][split], str(report.data["facts"][split])),
        note="All in per cent. A span is right if its words and its label are.",
        paper="Paper: Joerke et al. 2020, test F1 as mean and standard deviation of 5 runs (Table 2: a "
        "frozen BERT base; Table 3: a trained BERT tiny; Table 4: a fine-tuned BERT base); not to be "
        "compared with other encoders or other parts of the documents.",
    ),
    "answer selection": Layout(
        shown=[
            *_each(ANSWER_MEASURES),
            seeds(),
            *(published(one, ("mspp", "1"), group="all", **_ANSWERS) for one in _ANSWER_SETS),
            *(
                published(one, ("mspp", "2"), ("mspp", "7"), group="reranked", **_ANSWERS)
                for one in _ANSWER_SETS
            ),
        ],
        size=_answer_size,
        note="All in per cent, means over questions. P@1: the first candidate is right; MAP: average "
        "precision; MRR: one divided by the place of the first right candidate.",
        test="p: against pairwise reading.",
        paper="Paper: Di Liello et al. 2022, RoBERTa-base on the test questions (of WikiQA and TREC-QA "
        "those that have right and wrong candidates), mean (standard deviation) of 5 runs; Table 1 has "
        "all candidates, Tables 2 and 7 the pairwise model's five best; not to be compared with other "
        "encoders or other questions.",
    ),
    "fact verification": Layout(
        shown=[
            *_each({"label_accuracy": "label accuracy"}),
            seeds(),
            published(
                "FEVER",
                ("mspp", "8"),
                columns=("dev label_accuracy", "label_accuracy"),
                below="paper: dev / test",
                deviations=True,
            ),
        ],
        size=_size("scored", "groups"),
        note="Share of the claims with the right label, in per cent.",
        test="p: against pairwise reading.",
        paper="Paper: Di Liello et al. 2022, Tables 3 and 8, on FEVER, RoBERTa-base where the system "
        "does not say otherwise; in parentheses the standard deviation over runs. Not to be compared "
        "with other encoders or other claims.",
    ),
    "attention analysis": Layout(
        shown=[
            *_each(_COREFERRING, tables.POINTS),
            *(replace(one, value=None) for one in _each(_OTHERS, tables.POINTS)),  # none is bold
            *_each(RANK_GAPS, tables.POINTS),
            seeds(),
            published("ECB+", ("cdlm", "6"), columns=tuple(RANK_CELLS), below="paper: the first four"),
        ],
        size=_rank_size,
        note="Rank of the second mention among the tokens of its document, by the attention between it and "
        "the first mention: 0 lowest, 100 highest; mean over pairs.",
        test="p: paired test against the next row.",
        split="",
        first="variant",
    ),
}
