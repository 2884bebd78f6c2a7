"""The tables of the README that are made from reports of notebooks; `readme_tables` writes them into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cdlm_lab.experiments.reported_rows import reported_rows
from cdlm_lab.experiments.reported_scores import DEV, ReportedRow
from cdlm_lab.experiments.result_cells import (
    Column,
    as_perplexity,
    in_per_cent,
    in_points,
    in_thousandths,
    measured,
    of_paper,
    p_of,
    table_of,
)
from cdlm_lab.report import RunError, read_report
from cdlm_lab.widgets.alignment_table import PAPER_ALIGNMENT, RANDOM
from cdlm_lab.widgets.coreference_table import MEASURES, PAPER_TABLE_2, PAPER_TABLE_3
from cdlm_lab.widgets.matching_table import PAPER_MATCHING
from cdlm_lab.widgets.perplexity_table import PAPER_TABLE_1
from cdlm_lab.widgets.question_table import MEASURES as QUESTION_MEASURES
from cdlm_lab.widgets.rank_table import CELLS, KIND_NAMES, KINDS, PAPER_TABLE_6
from cdlm_lab.widgets.result_table import ResultCell, ResultColumn, ResultTable
from cdlm_lab.widgets.tag_table import PAPER_TAGGING

_BASELINES = ("same head word", "singletons", "one cluster")


def rows_of(file: Path, group: str | None = None) -> list[ReportedRow]:
    """The rows of a report, or of one of its groups.

    Raises:
        RunError: it is not there, or is not as its notebook writes it.
    """
    try:
        return [row for row in reported_rows(read_report(file)) if group in (None, row.group)]
    except (LookupError, TypeError, ValueError) as error:
        raise RunError(f"{file}: not as its notebook writes it ({error!r}); record the run anew") from None


def news_perplexity(results: Path) -> ResultTable:
    """Table 1 of CDLM on news."""
    return _perplexity(results / "news_clusters_minilm" / "perplexity.json")


def storyworld_perplexity(results: Path) -> ResultTable:
    """The same on storyworld, with the tokens that only another document tells."""
    crossing = measured("on cross-document tokens", "cross_document_perplexity", as_perplexity)
    return _perplexity(results / "storyworld_tiny" / "perplexity.json", crossing)


def _perplexity(file: Path, *more: Column) -> ResultTable:
    paper = of_paper(
        "paper",
        lambda name: " / ".join(f"{number:.2f}" for number in PAPER_TABLE_1.get(name, ())),
        below="validation / test",
    )
    columns = [measured("perplexity", "perplexity", as_perplexity), *more, paper]
    return table_of(rows_of(file), columns, first="variant")


def ecb_events(results: Path) -> ResultTable:
    """Tables 2 and 3 of CDLM on events, from sentences."""
    table = _coreference(results / "ecb_plus_minilm" / "event_sentences.json")
    of_sentences = _paper_row(
        "sentences only CDLM", [None] * len(MEASURES), PAPER_TABLE_3["sentences only CDLM"]
    )
    of_longformer = _paper_row("Longformer", [None] * len(MEASURES), PAPER_TABLE_3["Longformer"])
    return replace(table, rows=[*table.rows, of_sentences, of_longformer, _paper_of_table_2("event")])


def ecb_entities(results: Path) -> ResultTable:
    """Table 2 of CDLM on entities, from sentences."""
    table = _coreference(results / "ecb_plus_minilm" / "entity_sentences.json")
    return replace(table, rows=[*table.rows, _paper_of_table_2("entity")])


def ecb_event_documents(results: Path) -> ResultTable:
    """Events from whole documents, beside the run from sentences on the same mentions."""
    return _coreference(results / "ecb_plus_minilm" / "event_documents.json", order=_BASELINES[:1])


def _coreference(file: Path, *, order: Sequence[str] = _BASELINES) -> ResultTable:
    names = {
        "sentences": "MiniLM, sentences only",
        "documents": "MiniLM, whole documents",
        "ecb_event_sentences": "MiniLM, sentences only",
    }
    rows = {row.system: replace(row, label=names.get(row.system, row.system)) for row in rows_of(file)}
    ours = [row for name, row in rows.items() if name in names]
    columns = [
        *(
            measured(heading, f"{measure}/f1", in_per_cent, bare=True)
            for measure, heading in MEASURES.items()
        ),
        measured("CoNLL F1", "conll/f1", in_per_cent),
        p_of("conll/f1"),
        measured("CoNLL F1 on dev", f"{DEV}conll/f1", in_per_cent, bare=True),
    ]
    return table_of([*ours, *(rows[name] for name in order)], columns)


def _paper_of_table_2(kind: str) -> list[ResultCell]:
    numbers = PAPER_TABLE_2[kind]["CDLM"]
    return _paper_row("CDLM, whole documents", numbers[2:12:3], numbers[12])


def _paper_row(system: str, f1s: Sequence[float | None], conll: float | None) -> list[ResultCell]:
    """A row of the paper's numbers: of the measures, and CoNLL."""
    texts = ["" if number is None else f"{number:.1f}" for number in (*f1s, conll)]
    cells = [ResultCell(text=text, published=bool(text)) for text in texts]
    return [ResultCell(text=f"paper: {system}", published=True), *cells, *[ResultCell(text="")] * 2]


def scisumm_matching(results: Path) -> ResultTable:
    """Tables 2 of CDA and 4 of CDLM on SciSumm, which has papers of the ACL as AAN has."""

    def paper(system: str) -> str:
        numbers = PAPER_MATCHING.get(system, {}).get("AAN", ())
        return " / ".join(f"{number:.1f}" for number in numbers if number is not None)

    columns = [*_MATCHING, p_of("accuracy"), of_paper("paper, AAN", paper, below="Acc / F1")]
    return table_of(rows_of(results / "scisumm_minilm" / "matching.json"), columns)


def scisumm_two_sentences(results: Path) -> ResultTable:
    """The same on two sentences of each document."""
    return table_of(rows_of(results / "scisumm_minilm" / "matching_two_sentences.json"), _MATCHING)


_MATCHING = (measured("accuracy", "accuracy", in_per_cent), measured("F1", "f1", in_per_cent))


def scisumm_alignment(results: Path) -> ResultTable:
    """Table 4 of CDA on SciSumm: a row for each system. Of documents known to be related attention beside
    cosine; and attention scored as the paper's numbers are."""
    ways = ("attention", "cosine")
    merged: dict[str, ReportedRow] = {}
    for group in ("oracle", "released"):
        for row in rows_of(results / "scisumm_minilm" / "alignment.json", group):
            system, _, by = row.system.partition("/")
            first = replace(row, system=system, label=row.label.removesuffix(f", {by}"), scores={})
            one = merged.setdefault(system, first)
            scores = {
                f"{group}/{way}/{name}": score
                for way in ways
                if by in (way, "")
                for name, score in row.scores.items()
            }
            merged[system] = replace(one, scores={**one.scores, **scores})

    def paper(system: str) -> str:
        ranked_by = "" if system == RANDOM else "attention"
        numbers = PAPER_ALIGNMENT.get((system, ranked_by), {}).get("S2ORC")
        return f"{numbers['mrr']:.3f} / {numbers['at_1']:.1f}" if numbers else ""

    columns = [
        column
        for way in ways
        for column in (
            measured(f"MRR by {way}", f"oracle/{way}/mrr", in_thousandths),
            measured("P@1", f"oracle/{way}/at_1", in_per_cent, bare=True),
        )
    ]
    columns += [
        measured("released scoring: MRR", "released/attention/mrr", in_thousandths, bare=True),
        measured("P@1", "released/attention/at_1", in_per_cent, bare=True),
        of_paper("paper, S2ORC", paper, below="MRR / P@1"),
    ]
    return table_of(merged.values(), columns)


def storyworld_questions(results: Path) -> ResultTable:
    """Table 5 of CDLM on storyworld."""
    columns = [
        measured(f"{of} {what}", measure, in_per_cent) for measure, (of, what) in QUESTION_MEASURES.items()
    ]
    return table_of(rows_of(results / "storyworld_tiny" / "questions.json"), columns, first="encoder")


def storyworld_clue(results: Path) -> ResultTable:
    """Questions with and without the document that has the clue."""
    files = [
        results / "storyworld_minilm" / name
        for name in ("questions_three_paragraphs.json", "questions_one_document.json")
    ]
    kinds = [
        {row["kind"]: row for row in read_report(file).tables["kinds"] if row["split"] == "test"}
        for file in files
    ]
    rows = []
    for kind, told, measure in (
        ("bridge", "bridges: answer EM", "em"),
        ("bridge", "bridges: support F1", "sp_f1"),
        ("comparison", "comparisons: answer EM (guessing: 50)", "em"),
    ):
        texts = [*in_per_cent([of_kind[kind][measure] for of_kind in kinds])]
        rows.append([f"{kinds[0][kind]['questions']} {told}", *texts])
    joint = measured("", "joint_f1", in_per_cent)
    cells = [[ResultCell(text=text) for text in row] for row in rows]
    asked = read_report(files[0]).data["questions"]["test"]
    last = [ResultCell(text=f"all {asked}: joint F1"), *(joint.cell(rows_of(file)[0]) for file in files)]
    return ResultTable(
        caption="",
        columns=(
            ResultColumn(name="test questions", is_text=True),
            ResultColumn(name="both documents"),
            ResultColumn(name="without the clue"),
        ),
        rows=[*cells, last],
    )


def storyworld_tagging(results: Path) -> ResultTable:
    """Table 2 of Doc-ARC on storyworld."""
    columns = [
        measured("precision", "precision", in_per_cent),
        measured("recall", "recall", in_per_cent),
        *_spans(),
    ]
    return table_of(rows_of(results / "storyworld_tiny" / "tagging.json"), columns)


def jnlpba_tagging(results: Path) -> ResultTable:
    """Table 2 of Doc-ARC on JNLPBA."""
    return _tagging(results / "jnlpba_minilm", "jnlpba", "paper, BERT, all articles")


def litbank_tagging(results: Path) -> ResultTable:
    """Table 2 of Doc-ARC on LitBank."""
    return _tagging(results / "litbank_minilm", "litbank", "paper, BERT")


def _tagging(folder: Path, corpus: str, title: str) -> ResultTable:
    def paper(system: str) -> str:
        one = PAPER_TAGGING.get(system, {}).get(corpus)
        return f"{one.f1:.2f} ({one.deviation:.2f})" if one else ""

    return table_of(rows_of(folder / "tagging.json"), [*_spans(), of_paper(title, paper)])


def _spans() -> list[Column]:
    return [measured("span F1", "f1", in_per_cent), measured("dev F1", f"{DEV}f1", in_per_cent)]


def ecb_ranks(results: Path) -> ResultTable:
    """Table 6 of CDLM on ECB+, and what random spans have."""
    rows = rows_of(results / "ecb_plus_minilm" / "attention.json")
    names = {
        "positive": "{} that corefer",
        "negative": "other {}",
        "gap": "gap, {}",
    }
    cells = [*CELLS, *(f"gap/{kind}" for kind in KINDS)]
    columns = [
        measured(names[sort].format(KIND_NAMES[kind]), cell, in_points)
        for cell in cells
        for sort, kind in [cell.split("/")]
    ]

    def paper(variant: str) -> str:
        return " / ".join(f"{PAPER_TABLE_6[variant][cell]:.1f}" for cell in CELLS if variant in PAPER_TABLE_6)

    table = table_of(rows, [*columns, of_paper("paper", paper)], first="model")
    chance = [rows[0].scores.get(f"chance/{cell}") for cell in cells]
    texts = ["" if score is None else f"{score.value:.0f}" for score in chance]
    last = [ResultCell(text="a random span"), *(ResultCell(text=text) for text in texts)]
    return replace(table, rows=[*table.rows, [*last, ResultCell(text="50", published=True)]])


RUN_TABLES: Mapping[str, Callable[[Path], ResultTable]] = {
    "news-perplexity": news_perplexity,
    "storyworld-perplexity": storyworld_perplexity,
    "ecb-events": ecb_events,
    "ecb-entities": ecb_entities,
    "ecb-event-documents": ecb_event_documents,
    "scisumm-matching": scisumm_matching,
    "scisumm-two-sentences": scisumm_two_sentences,
    "scisumm-alignment": scisumm_alignment,
    "storyworld-questions": storyworld_questions,
    "storyworld-clue": storyworld_clue,
    "storyworld-tagging": storyworld_tagging,
    "jnlpba-tagging": jnlpba_tagging,
    "litbank-tagging": litbank_tagging,
    "ecb-ranks": ecb_ranks,
}
