"""How many spans taggers find: a table beside Tables 2, 3 and 4 of the Doc-ARC paper, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED, count_in_words
from cdlm_lab.widgets.matching_table import (
    NONE,
    best_written,
    captioned_table,
    check_distinct,
    check_measured,
    check_seeds,
    measured_html,
    muted_heading,
    name_html,
    per_cent,
)

MEASURES = ("precision", "recall", "f1")
CORPUS_NAMES = {"litbank": "LitBank", "jnlpba": "JNLPBA", "ontonotes1000": "OntoNotes1000"}
_HEADINGS = {"precision": "precision", "recall": "recall", "f1": "F1"}
_SMALL = f"font-size:11px;white-space:nowrap;{MUTED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedF1:
    """A number of the paper.

    Attributes:
        f1, deviation: mean and standard deviation over 5 runs, in per cent, of spans of the test set.
        table: where it stands.
    """

    f1: float
    deviation: float
    table: int


# Joerke et al. 2020 ("Doc-ARC"): (mean, SD) in the order of CORPUS_NAMES. Table 2 has a frozen BERT base,
# Table 3 a trainable BERT tiny, Table 4 a fine-tuned BERT base.
_TABLES = {
    2: {
        "doc-arc": ((75.75, 0.45), (71.17, 0.49), (84.25, 0.41)),
        "bert-lstm": ((74.22, 0.49), (69.28, 0.39), (82.20, 0.47)),
    },
    3: {
        "dynamic-doc-arc": ((64.47, 1.27), (65.26, 0.79), (72.55, 0.76)),
        "dynamic-bert": ((56.17, 0.83), (56.96, 0.75), (69.19, 0.67)),
        "dynamic-bert-lstm": ((60.97, 0.40), (62.08, 0.66), (71.32, 0.42)),
    },
    4: {"bert": ((76.90, 0.61), (70.05, 0.81), (84.44, 0.18))},
}
# System -> corpus -> what the paper reports.
PAPER_TAGGING: Mapping[str, Mapping[str, PublishedF1]] = {
    system: {
        corpus: PublishedF1(f1=f1, deviation=deviation, table=table)
        for corpus, (f1, deviation) in zip(CORPUS_NAMES, numbers, strict=True)
    }
    for table, systems in _TABLES.items()
    for system, numbers in systems.items()
}
_ENCODERS = {2: "a frozen BERT base", 3: "a trained BERT tiny", 4: "a fine-tuned BERT base"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRow:
    """One system's scores on the spans of the test documents.

    Attributes:
        label: what to call the system.
        system: `doc-arc bert-lstm dynamic-doc-arc dynamic-bert-lstm dynamic-bert bert` for the paper's
            numbers; or any other name.
        values: mean over the seeds and bounds of its 95% interval, in [0, 1], by the names in `MEASURES`;
            what is missing was not measured.
        deviation: standard deviation of F1 over the seeds; None with one seed.
        seeds: how many models were trained.

    Raises:
        ValueError: an unknown measure, a number outside [0, 1], bounds that run backwards, a deviation over
            one seed, no seeds.
    """

    label: str
    system: str
    values: Mapping[str, tuple[float, float, float]]
    deviation: float | None
    seeds: int

    def __post_init__(self) -> None:
        for measure, (mean, low, high) in self.values.items():
            if measure not in MEASURES:
                raise ValueError(
                    f"{self.label}: unknown measure {measure!r}; choose from {', '.join(MEASURES)}"
                )
            check_measured(f"{self.label}: {measure}", mean, (low, high))
        check_seeds(self.label, self.seeds, {"f1": self.deviation}, p=None)


def tag_table_html(rows: Sequence[TagRow], *, spans: int, corpus: str) -> str:
    """The table as HTML, in the order given; beside ours, muted, the paper's F1 of the systems in `rows`. The
    best of each column is bold, ties all.

    Args:
        rows: one for each system.
        spans: how many true ones the numbers are of, for the caption.
        corpus: a name in `CORPUS_NAMES`; or any other, of which the paper has no numbers.

    Raises:
        ValueError: no rows, two of one label, no spans.
    """
    check_distinct([row.label for row in rows])
    if spans < 1:
        raise ValueError(f"spans is {spans}; the numbers are of at least one")
    papers = [PAPER_TAGGING.get(row.system, {}).get(corpus) for row in rows]
    published = [paper for paper in papers if paper]
    several = any(row.seeds > 1 for row in rows)
    columns = [
        "system",
        *_HEADINGS.values(),
        *(["seeds"] if several else []),
        *([muted_heading("paper", "F1 (SD)")] if published else []),
    ]
    best = {
        measure: best_written([row.values[measure][0] for row in rows if measure in row.values], per_cent)
        for measure in MEASURES
    }
    body = [
        [
            name_html(row.label),
            *(_cell(row, measure, best[measure]) for measure in MEASURES),
            *([str(row.seeds)] if several else []),
            *([_of_paper(paper)] if published else []),
        ]
        for row, paper in zip(rows, papers, strict=True)
    ]
    counted = f"{count_in_words(spans)} true span{'' if spans == 1 else 's'}"
    caption = f"Spans found: {CORPUS_NAMES.get(corpus, corpus)}, n = {counted}"
    return captioned_table(caption, columns, body, note=_explanation(rows, published))


def _cell(row: TagRow, measure: str, best: str | None) -> str:
    if measure not in row.values:
        return NONE
    mean, *interval = row.values[measure]
    return measured_html(
        mean,
        form=per_cent,
        interval=(interval[0], interval[1]),
        deviation=row.deviation if measure == "f1" else None,
        best=best,
    )


def _of_paper(paper: PublishedF1 | None) -> str:
    if paper is None:
        return f'<span style="{MUTED}">{NONE}</span>'
    number = f'<span style="{MUTED}">{paper.f1:.2f} ({paper.deviation:.2f})</span>'
    return f'{number}<div style="{_SMALL}">Table {paper.table}</div>'


def _explanation(rows: Sequence[TagRow], published: Sequence[PublishedF1]) -> str:
    parts = ["All in per cent. A span is right if its words and its label are. Brackets: 95% interval."]
    if any(row.deviation is not None for row in rows):
        parts.append("\u00b1: standard deviation of F1 over the seeds, of which the mean is shown.")
    if len(rows) > 1:
        parts.append("Bold: best.")
    if published:
        tables = sorted({paper.table for paper in published})
        encoders = "; ".join(f"Table {table}: {_ENCODERS[table]}" for table in tables)
        parts.append(
            f"Paper: Joerke et al. 2020, test F1 as mean and standard deviation of 5 runs ({encoders}); not "
            "to be compared with other encoders or other parts of the documents."
        )
    return " ".join(parts)
