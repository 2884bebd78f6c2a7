"""The tables of README.md, made from the reports in data/results and from nothing else.

    python -m cdlm_lab.results.readme README.md            # writes them anew
    python -m cdlm_lab.results.readme README.md --check    # says which are stale, changes nothing

They stand between markers (see `marked_tables`), and data/results lies beside the README. `TABLES` has the
names that a marker can have.

The tables of the README that are made from reports of notebooks; `readme_tables` writes them into it.

The tables of the README on joint reading, notebooks 09 and 10.

Tables of the README that are made from the files of the benchmarks.

Generated tables in a text file: what stands between `<!-- table NAME begin -->` and `<!-- table NAME end
-->` is written anew, and all else stays as it is, byte for byte.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cdlm_lab.data.files import replaced_file
from cdlm_lab.experiments.answer_selection import ALL, RERANKED
from cdlm_lab.report import RunError, read_report
from cdlm_lab.results.reports import ANSWERS, CLAIMS, DEV, ReportedRow, reported_rows
from cdlm_lab.results.tables import (
    Column,
    as_perplexity,
    in_per_cent,
    in_points,
    in_thousandths,
    measured,
    of_paper,
    p_of,
    paper_cell,
    table_of,
)
from cdlm_lab.widgets.alignment_table import PAPER_ALIGNMENT, RANDOM
from cdlm_lab.widgets.answer_table import (
    MEASURES as MEASURES_readme_joint,
)
from cdlm_lab.widgets.answer_table import (
    PAPER_TABLE_1 as PAPER_TABLE_1_readme_joint,
)
from cdlm_lab.widgets.answer_table import (
    PAPER_TABLES_2_AND_7,
)
from cdlm_lab.widgets.coreference_table import MEASURES, PAPER_TABLE_2, PAPER_TABLE_3
from cdlm_lab.widgets.matching_table import PAPER_MATCHING
from cdlm_lab.widgets.perplexity_table import PAPER_TABLE_1
from cdlm_lab.widgets.question_table import MEASURES as QUESTION_MEASURES
from cdlm_lab.widgets.rank_table import CELLS, KIND_NAMES, KINDS, PAPER_TABLE_6
from cdlm_lab.widgets.tables import (
    Cell,
    Heading,
    ScoreTable,
)
from cdlm_lab.widgets.tag_table import PAPER_TAGGING
from cdlm_lab.widgets.verification_table import PAPER_VERIFICATION

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


def news_perplexity(results: Path) -> ScoreTable:
    """Table 1 of CDLM on news."""
    return _perplexity(results / "news_clusters_minilm" / "perplexity.json")


def storyworld_perplexity(results: Path) -> ScoreTable:
    """The same on storyworld, with the tokens that only another document tells."""
    crossing = measured("on cross-document tokens", "cross_document_perplexity", as_perplexity)
    return _perplexity(results / "storyworld_tiny" / "perplexity.json", crossing)


def _perplexity(file: Path, *more: Column) -> ScoreTable:
    paper = of_paper(
        "paper",
        lambda name: " / ".join(f"{number:.2f}" for number in PAPER_TABLE_1.get(name, ())),
        below="validation / test",
    )
    columns = [measured("perplexity", "perplexity", as_perplexity), *more, paper]
    return table_of(rows_of(file), columns, first="variant")


def ecb_events(results: Path) -> ScoreTable:
    """Tables 2 and 3 of CDLM on events, from sentences."""
    table = _coreference(results / "ecb_plus_minilm" / "event_sentences.json")
    of_sentences = _paper_row(
        "sentences only CDLM", [None] * len(MEASURES), PAPER_TABLE_3["sentences only CDLM"]
    )
    of_longformer = _paper_row("Longformer", [None] * len(MEASURES), PAPER_TABLE_3["Longformer"])
    return replace(table, rows=[*table.rows, of_sentences, of_longformer, _paper_of_table_2("event")])


def ecb_entities(results: Path) -> ScoreTable:
    """Table 2 of CDLM on entities, from sentences."""
    table = _coreference(results / "ecb_plus_minilm" / "entity_sentences.json")
    return replace(table, rows=[*table.rows, _paper_of_table_2("entity")])


def ecb_event_documents(results: Path) -> ScoreTable:
    """Events from whole documents, beside the run from sentences on the same mentions."""
    return _coreference(results / "ecb_plus_minilm" / "event_documents.json", order=_BASELINES[:1])


def _coreference(file: Path, *, order: Sequence[str] = _BASELINES) -> ScoreTable:
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


def _paper_of_table_2(kind: str) -> list[Cell]:
    numbers = PAPER_TABLE_2[kind]["CDLM"]
    return _paper_row("CDLM, whole documents", numbers[2:12:3], numbers[12])


def _paper_row(system: str, f1s: Sequence[float | None], conll: float | None) -> list[Cell]:
    """A row of the paper's numbers: of the measures, and CoNLL."""
    texts = ["" if number is None else f"{number:.1f}" for number in (*f1s, conll)]
    cells = [Cell(text=text, published=bool(text)) for text in texts]
    return [Cell(text=f"paper: {system}", published=True), *cells, *[Cell(text="")] * 2]


def scisumm_matching(results: Path) -> ScoreTable:
    """Tables 2 of CDA and 4 of CDLM on SciSumm, which has papers of the ACL as AAN has."""

    def paper(system: str) -> str:
        numbers = PAPER_MATCHING.get(system, {}).get("AAN", ())
        return " / ".join(f"{number:.1f}" for number in numbers if number is not None)

    columns = [*_MATCHING, p_of("accuracy"), of_paper("paper, AAN", paper, below="Acc / F1")]
    return table_of(rows_of(results / "scisumm_minilm" / "matching.json"), columns)


def scisumm_two_sentences(results: Path) -> ScoreTable:
    """The same on two sentences of each document."""
    return table_of(rows_of(results / "scisumm_minilm" / "matching_two_sentences.json"), _MATCHING)


_MATCHING = (measured("accuracy", "accuracy", in_per_cent), measured("F1", "f1", in_per_cent))


def scisumm_alignment(results: Path) -> ScoreTable:
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


def storyworld_questions(results: Path) -> ScoreTable:
    """Table 5 of CDLM on storyworld."""
    columns = [
        measured(f"{of} {what}", measure, in_per_cent) for measure, (of, what) in QUESTION_MEASURES.items()
    ]
    return table_of(rows_of(results / "storyworld_tiny" / "questions.json"), columns, first="encoder")


def storyworld_clue(results: Path) -> ScoreTable:
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
    cells = [[Cell(text=text) for text in row] for row in rows]
    asked = read_report(files[0]).data["questions"]["test"]
    last = [Cell(text=f"all {asked}: joint F1"), *(joint.cell(rows_of(file)[0]) for file in files)]
    return ScoreTable(
        caption="",
        columns=(
            Heading(name="test questions", is_text=True),
            Heading(name="both documents"),
            Heading(name="without the clue"),
        ),
        rows=[*cells, last],
    )


def storyworld_tagging(results: Path) -> ScoreTable:
    """Table 2 of Doc-ARC on storyworld."""
    columns = [
        measured("precision", "precision", in_per_cent),
        measured("recall", "recall", in_per_cent),
        *_spans(),
    ]
    return table_of(rows_of(results / "storyworld_tiny" / "tagging.json"), columns)


def jnlpba_tagging(results: Path) -> ScoreTable:
    """Table 2 of Doc-ARC on JNLPBA."""
    return _tagging(results / "jnlpba_minilm", "jnlpba", "paper, BERT, all articles")


def litbank_tagging(results: Path) -> ScoreTable:
    """Table 2 of Doc-ARC on LitBank."""
    return _tagging(results / "litbank_minilm", "litbank", "paper, BERT")


def _tagging(folder: Path, corpus: str, title: str) -> ScoreTable:
    def paper(system: str) -> str:
        one = PAPER_TAGGING.get(system, {}).get(corpus)
        return f"{one.f1:.2f} ({one.deviation:.2f})" if one else ""

    return table_of(rows_of(folder / "tagging.json"), [*_spans(), of_paper(title, paper)])


def _spans() -> list[Column]:
    return [measured("span F1", "f1", in_per_cent), measured("dev F1", f"{DEV}f1", in_per_cent)]


def ecb_ranks(results: Path) -> ScoreTable:
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
    last = [Cell(text="a random span"), *(Cell(text=text) for text in texts)]
    return replace(table, rows=[*table.rows, [*last, Cell(text="50", published=True)]])


RUN_TABLES: Mapping[str, Callable[[Path], ScoreTable]] = {
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


def newest_report(folder: Path, experiment: str) -> Path:
    """The report of an experiment in a folder of recorded runs, whatever its file is called; of several the
    one that was finished last.

    Raises:
        RunError: there is none.
    """
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            report = read_report(file)
        except RunError:
            continue  # something else that is recorded beside it
        if report.name == experiment:
            found.append((report.finished, file))
    if not found:
        raise RunError(
            f"there is no report of {experiment!r} in {folder}; record one, or take its table's markers away"
        )
    return max(found)[1]


def answers(results: Path, *, folder: str, ranking: str, corpus: str) -> ScoreTable:
    """Tables 1, or 2 and 7, of MSPP on a corpus as the paper's tables name it."""
    papers = PAPER_TABLE_1_readme_joint if ranking == ALL else PAPER_TABLES_2_AND_7

    def paper(system: str) -> str:
        numbers = papers.get(system, {}).get(corpus, {})
        return " / ".join(f"{numbers[measure].value:.1f}" for measure in MEASURES_readme_joint if numbers)

    columns = [
        *(measured(heading, measure, in_per_cent) for measure, heading in MEASURES_readme_joint.items()),
        p_of("map"),
        of_paper("paper", paper, below=" / ".join(MEASURES_readme_joint.values())),
    ]
    return table_of(rows_of(newest_report(results / folder, ANSWERS), ranking), columns)


def claims(results: Path, *, folder: str, group: str) -> ScoreTable:
    """Tables 3 and 8 of MSPP on a set of claims."""

    def paper(system: str) -> str:
        one = PAPER_VERIFICATION.get(system)
        return "" if one is None else f"{one.dev:.2f} / {'–' if one.test is None else f'{one.test:.2f}'}"

    file = newest_report(results / folder, CLAIMS)
    columns = [
        measured("label accuracy", "label_accuracy", in_per_cent),
        p_of("label_accuracy"),
        of_paper("paper, FEVER", paper, below="dev / test"),
    ]
    rows = rows_of(file, group)
    if not rows:
        raise RunError(f"{file}: the claims of {group} were not scored; take the table's markers away")
    return table_of(rows, columns)


JOINT_TABLES: Mapping[str, Callable[[Path], ScoreTable]] = {
    **{
        f"{corpus}{suffix}": partial(answers, folder=f"{corpus}_minilm", ranking=ranking, corpus=corpus)
        for corpus in ("wikiqa", "trecqa")
        for suffix, ranking in (("", ALL), ("-reranked", RERANKED))
    },
    "fm2": partial(claims, folder="fm2_minilm", group="test"),
    "fm2-dev": partial(claims, folder="fm2_minilm", group="dev"),
    "fm2-symmetric": partial(claims, folder="fm2_minilm", group="symmetric"),
}


# Zhou et al. 2020 ("CDA"), Table 11: seconds of inference of GRU-HAN alone, SHALLOW and DEEP, on a GPU.
PAPER_TABLE_11 = {"S2ORC": (0.256, 0.256, 0.258), "PAN": (0.568, 0.581, 0.637)}


def attention_speed(results: Path) -> ScoreTable:
    """Our attention layer against Hugging Face's."""
    rows = [
        [
            str(row["length"]),
            str(row["globals"]),
            f"{row['huggingface_ms']:.0f}",
            f"{row['ours_ms']:.0f}",
            _times(row),
            f"{row['huggingface_mib']:.0f}",
            f"{row['ours_mib']:.0f}",
            f"{row['times_less_memory']:.1f}",
            f"{row['of_peak']:.0%}",
        ]
        for row in _read(results / "attention_benchmark.json", "rows")
    ]
    names = "length, globals, Hugging Face ms, ours ms, times faster (min-max), Hugging Face MiB, ours MiB"
    return _table([*names.split(", "), "times less memory", "of peak"], rows)


def training_speed(results: Path) -> ScoreTable:
    """Whole training steps, ours against Hugging Face's."""
    rows = [
        [
            row["part"],
            f"{row['length']:,} / {row['window']}",
            str(row["global_tokens"]),
            f"{row['attention_dropout']:g}",
            row["precision"],
            f"{row['huggingface_tokens_per_second']:,.0f}",
            f"{row['ours_tokens_per_second']:,.0f}",
            _times(row),
            f"{row['huggingface_mib']:,.0f}",
            f"{row['ours_mib']:,.0f}",
            f"{row['of_rate']:.0%}",
        ]
        for row in _read(results / "training_benchmark.json", "rows")
    ]
    names = (
        "part, length / window, globals, attention dropout, precision, Hugging Face tokens/s, ours tokens/s"
    )
    return _table(
        [*names.split(", "), "times faster (min-max)", "Hugging Face MiB", "ours MiB", "of rate"], rows
    )


def explorer_speed(results: Path) -> ScoreTable:
    """Attention of chosen tokens against Hugging Face's `output_attentions`."""
    rows = [
        [
            str(row["length"]),
            f"{row['huggingface_seconds']:.2f}",
            f"{row['ours_seconds']:.2f}",
            _times(row),
            f"{row['huggingface_mib']:.0f}",
            f"{row['ours_mib']:.0f}",
        ]
        for row in _read(results / "source_attention_benchmark.json", "rows")
    ]
    names = "length, Hugging Face s, ours s, times faster (min-max), Hugging Face MiB, ours MiB"
    return _table(names.split(", "), rows)


def coreference_speed(results: Path) -> ScoreTable:
    """Pairs of mentions scored a second, ours against one at a time."""
    rows = []
    for context in ("documents", "sentences"):
        file = results / f"coreference_benchmark_{context}.json"
        rate = _read(file, "pairs_per_second")
        rows.append(
            [
                context,
                f"{_read(file, 'tokens_per_pair')['median']:.0f}",
                short(rate["huggingface"]),
                short(rate["ours"]),
                _times({name: _read(file, name) for name in _TIMES}),
                f"{_read(file, 'largest_difference'):.0e}",
            ]
        )
    names = "context, tokens a pair (median), Hugging Face pairs/s, ours pairs/s, times faster (min-max)"
    return _table([*names.split(", "), "probabilities differ by"], rows)


def cross_document_cost(results: Path) -> ScoreTable:
    """What cross-document attention costs GRU-HAN."""
    rows = []
    for row in _read(results / "cross_document_attention_benchmark.json", "rows"):
        if row["cda"] != "none":
            alone, *others = PAPER_TABLE_11.get(row["text"], (None, None, None))
            paper = dict(zip(("shallow", "deep"), others, strict=True))[row["cda"]]
            rows.append(
                [
                    Cell(text=row["text"]),
                    Cell(text=row["cda"].upper()),
                    Cell(text=_ratio(row)),
                    Cell(text=f"{row['predicted']:.2f}"),
                    paper_cell(f"{paper / alone:.2f}" if paper else ""),
                    Cell(text=f"{row['added_parameters']:,}"),
                ]
            )
    return ScoreTable(
        caption="",
        columns=(
            Heading(name="text", is_text=True),
            Heading(name="CDA", is_text=True),
            Heading(name="times GRU-HAN alone (min-max)"),
            Heading(name="by multiply-adds"),
            Heading(name="paper, GPU", published=True),
            Heading(name="more parameters"),
        ),
        rows=rows,
    )


def tagging_cost(results: Path) -> ScoreTable:
    """An epoch of Doc-ARC against its baseline."""
    names = {"linear": "linear", "bilstm": "biLSTM (the paper)"}
    rows = [
        [
            str(row["occurrences"]),
            names[row["form"]],
            _ratio(row),
            short(row["predicted"]),
            f"{row['encoding_again']:.{1 if row['encoding_again'] < 10 else 0}f}",
        ]
        for row in _read(results / "document_tagging_benchmark.json", "rows")
        if row["form"] in names
    ]
    columns = ["K", "context encoder", "times the baseline (min-max)", "by multiply-adds"]
    return _table([*columns, "with encoding in each epoch, as released"], rows)


BENCHMARK_TABLES: Mapping[str, Callable[[Path], ScoreTable]] = {
    "attention-speed": attention_speed,
    "training-speed": training_speed,
    "explorer-speed": explorer_speed,
    "coreference-speed": coreference_speed,
    "cross-document-cost": cross_document_cost,
    "tagging-cost": tagging_cost,
}


def short(value: float) -> str:
    """Two decimals below 10, one below 15 times that, none above: 0.844 -> `0.84`, 46.87 -> `46.9`."""
    return f"{value:.{2 if value < 10 else 1 if value < 150 else 0}f}"


_TIMES = ("times_faster", "times_faster_min", "times_faster_max")


def _times(row: Mapping[str, float]) -> str:
    times, lowest, highest = (f"{row[name]:.1f}" for name in _TIMES)
    return f"{times} ({lowest}-{highest})"


def _ratio(row: Mapping[str, float]) -> str:
    ratio, lowest, highest = (short(row[name]) for name in ("ratio", "ratio_min", "ratio_max"))
    return f"{ratio} ({lowest}-{highest})"


def _read(file: Path, field: str) -> Any:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"there is no {file}; run its benchmark, or take its table's markers away") from None
    except ValueError as error:
        raise RunError(f"{file}: not JSON ({error}); write it anew") from None
    if not isinstance(values, dict) or field not in values:
        raise RunError(f"{file}: the field {field!r} is missing; write it anew")
    return values[field]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> ScoreTable:
    """All columns hold numbers but those whose first cell does not begin with a digit."""
    columns = [
        Heading(name=name, is_text=not cell[0].isdigit()) for name, cell in zip(names, rows[0], strict=True)
    ]
    return ScoreTable(caption="", columns=columns, rows=[[Cell(text=cell) for cell in row] for row in rows])


_MARKER = re.compile(rb"^[ \t]*<!--[ \t]*table[ \t]+(\S+)[ \t]+(\S+)[ \t]*-->[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedTable:
    """Where a table stands.

    Attributes:
        name: of the table.
        line: number of its first marker, from 1.
        start, stop: what is between the markers, as offsets into the bytes of the file.
        text: that, without the line breaks around it.
    """

    name: str
    line: int
    start: int
    stop: int
    text: str


def marked_tables(file: Path, *, known: Collection[str]) -> list[MarkedTable]:
    """The tables that are marked in a file, in order.

    Args:
        known: their names.

    Raises:
        RunError: the file cannot be read; an unknown name or word in a marker, a marker without its other
            half, one table in another, or one name twice. The message has the line.
    """
    content = _content(file)
    found: list[MarkedTable] = []
    opened: re.Match[bytes] | None = None
    for marker in _MARKER.finditer(content):
        name, word = (part.decode("utf-8", "replace") for part in marker.groups())
        where = f"{file}:{_line(content, marker)}"
        if word not in ("begin", "end"):
            raise RunError(f"{where}: table {name} is marked {word!r}; write begin or end")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
            raise RunError(f"{where}: there is no table {name!r}; {hint}")
        if (word == "begin") is (opened is not None):
            before = opened.group(1).decode("utf-8", "replace") if opened else ""
            what = (
                f"table {before} is not ended yet" if opened else f"table {name} is ended and has not begun"
            )
            raise RunError(f"{where}: {what}; markers stand in pairs")
        if opened is None:
            opened = marker
            continue
        if opened.group(1) != marker.group(1):
            begun = opened.group(1).decode("utf-8", "replace")
            raise RunError(f"{where}: table {begun} has begun, but {name} is ended here")
        if name in {one.name for one in found}:
            raise RunError(f"{where}: table {name} is marked a second time; each can stand once")
        found.append(_table_marked_tables(content, opened, marker, name, file))
        opened = None
    if opened is not None:
        name = opened.group(1).decode("utf-8", "replace")
        raise RunError(f"{file}:{_line(content, opened)}: table {name} has no end; add its second marker")
    return found


def write_tables(file: Path, texts: Mapping[str, str], *, known: Collection[str]) -> list[str]:
    """Put texts between the markers of a file, in one go; names of the tables that were changed.

    Args:
        texts: of all tables that are marked, without line breaks around them.

    Raises:
        RunError: as of `marked_tables`, or a text is missing.
    """
    content, tables = _content(file), marked_tables(file, known=known)
    if lacking := [one for one in tables if one.name not in texts]:
        raise RunError(f"{file}:{lacking[0].line}: there is nothing to put into table {lacking[0].name}")
    break_ = b"\r\n" if b"\r\n" in content else b"\n"
    changed, parts, at = [], [], 0
    for one in tables:
        # an empty line on both sides: without it, GitHub shows a table that follows a comment as text
        put = b"\n\n%b\n\n" % texts[one.name].encode("utf-8")
        put = put.replace(b"\n", break_)
        if content[one.start : one.stop] != put:
            changed.append(one.name)
        parts += [content[at : one.start], put]
        at = one.stop
    if changed:
        with replaced_file(file, binary=True) as stream:
            stream.write(b"".join([*parts, content[at:]]))
    return changed


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RunError(f"{file} cannot be read ({error.strerror or error}); check the path") from None


def _line(content: bytes, marker: re.Match[bytes]) -> int:
    return content.count(b"\n", 0, marker.start()) + 1


def _table_marked_tables(
    content: bytes, begin: re.Match[bytes], end: re.Match[bytes], name: str, file: Path
) -> MarkedTable:
    start = begin.end() - begin.group(0).endswith(b"\r")  # the line break belongs to what is replaced
    try:
        text = content[start : end.start()].decode("utf-8")
    except UnicodeDecodeError:
        raise RunError(f"{file}:{_line(content, begin)}: table {name} is not text in UTF-8") from None
    return MarkedTable(
        name=name,
        line=_line(content, begin),
        start=start,
        stop=end.start(),
        text="\n".join(text.splitlines()).strip("\n"),
    )


RESULTS = Path("data") / "results"
TABLES: Mapping[str, Callable[[Path], ScoreTable]] = {**RUN_TABLES, **JOINT_TABLES, **BENCHMARK_TABLES}
COMMAND = ".venv/bin/python -m cdlm_lab.results.readme"


def stale_tables(readme: Path) -> list[str]:
    """What to say of each marked table that is not what the recorded runs make of it; none if all are.

    Raises:
        RunError: as of `marked_tables`, or a report is missing.
    """
    texts = _texts(readme)
    return [
        f"{readme}:{one.line}: table {one.name} is not what {RESULTS} says; write it with: {COMMAND} {readme}"
        for one in marked_tables(readme, known=TABLES)
        if one.text != texts[one.name]
    ]


def write_readme(readme: Path) -> list[str]:
    """Write all marked tables anew, in one go; names of those that changed. Errors as of `stale_tables`."""
    return write_tables(readme, _texts(readme), known=TABLES)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0 = all is well, 1 = tables are stale, 2 = something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readme", type=Path, help="the file with the markers")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a table is stale")
    given = parser.parse_args(arguments)
    try:
        if given.check:
            stale = stale_tables(given.readme)
            print("\n".join(stale) or "all tables are what the recorded runs say")
            return 1 if stale else 0
        changed = write_readme(given.readme)
    except RunError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"changed: {', '.join(changed)}" if changed else "nothing to change")
    return 0


def _texts(readme: Path) -> dict[str, str]:
    """Of the tables that are marked, not of all: some have no recorded runs yet."""
    results = readme.resolve().parent / RESULTS
    texts = {}
    for one in marked_tables(readme, known=TABLES):
        try:
            texts[one.name] = TABLES[one.name](results).markdown()
        except (LookupError, TypeError, ValueError) as error:
            raise RunError(
                f"{readme}:{one.line}: table {one.name} cannot be made: its file in {results} is not as its "
                f"notebook or benchmark writes it ({error!r})"
            ) from None
    return texts


if __name__ == "__main__":
    sys.exit(main())
