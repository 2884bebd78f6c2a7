"""The tables of the pages in data/results and of README.md, made only from what is recorded there.

The name in a page's markers is that of a table in `TABLES`, or of a recorded report, which is shown with the
columns of its notebook: `FOLDER/REPORT`, such as `wikiqa_minilm/answers`; behind a colon the group of its
rows, behind an @ another split. Several reports in one table: `FOLDER/REPORT+REPORT:GROUP@SPLIT`; of a system
that several have, as they are of other seeds, the mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mining_benchmark
from claim_tables import SCORERS, claims_table, shipped_table
from contradiction_tables import CONTRADICTIONS, contradiction_table
from coreference_tables import ablation_table, coreference_table, mean_scores

from cdlm_lab.benchmarks import attention, inference, training
from cdlm_lab.benchmarks.timing import TIMES_FASTER, cell
from cdlm_lab.explorer.cuts import read_scores
from cdlm_lab.explorer.view import cut_view
from cdlm_lab.parameters import closest_name
from cdlm_lab.results.claims import PAPERS, verdicts_table
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import NamedReport, report_rows
from cdlm_lab.results.series import corpus_of
from cdlm_lab.results.tables import TASKS
from cdlm_lab.runs.report import RunError, read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference import view as coreference
from cdlm_lab.views import tables
from cdlm_lab.views.tables import DEV, PER_CENT, PERPLEXITY, Cell, Heading, ScoreTable, SystemRow, measured

Made = Callable[[Path], ScoreTable]
_LIKEST = {"SciSumm": "AAN"}  # corpus -> that of papers which stands beside it


# ---- tables of runs ----


def report_table(results: Path, name: str) -> ScoreTable:
    """The rows of recorded reports, with the columns of their notebook and the score on dev, and what
    guessing reaches; of a paper's several corpora the one that ours is like. Raises RunError if a report does
    not exist, has no such rows, or is not as its notebook writes it."""
    place, _, split = name.partition("@")
    place, _, group = place.partition(":")
    folder, _, names = place.rpartition("/")
    files = [results / folder / f"{one}.json" for one in names.split("+")]
    try:
        reports = [NamedReport(name=name, report=read_report(file)) for file in files]
        every = [row for one in reports for row in _rows(one, group, split)]
        last, rows = reports[-1], _over_seeds(every)
        layout = LAYOUTS[last.report.name]
        of_papers = [one for one in layout.columns(group) if one.heading.published and not split]
        corpora = [one for one in of_papers if one.heading.name[0].isupper()]  # others are metrics
        if len(corpora) > 1:
            corpus = _LIKEST.get(ours := corpus_of(last), ours)
            of_papers = [one for one in corpora if one.heading.name == corpus]
        columns = [one for one in layout.columns(group) if not one.heading.published]
        on_dev = {one.metric: one for one in TASKS if one.experiment == last.report.name and not split}
        for metric, one in on_dev.items():
            columns.append(measured(f"{one.unit} on dev", f"{DEV}{metric}", one.form))
        shown = [*rows, *_by_chance(every)]
        return tables.table_of(shown, [*columns, *of_papers], first=layout.first)
    except (LookupError, TypeError, ValueError) as error:
        raise RunError(f"{files[-1]}: no table {name} can be made of it ({error!r})") from None


def _rows(one: NamedReport, group: str, split: str) -> Iterator[SystemRow]:
    """The rows of a report, or of one of its groups; of coreference by the names that the claims use."""
    for row in report_rows(one.report, split=split):
        if group in ("", row.group):
            yield replace(row, label=row.label.replace(row.system, SCORERS.get(row.system, row.system)))


def _over_seeds(rows: Sequence[SystemRow]) -> list[SystemRow]:
    """A row for each system, with the means of those that it has."""
    same: dict[str, list[SystemRow]] = {}
    for row in rows:
        same.setdefault(row.system, []).append(row)
    return [replace(each[-1], scores=mean_scores([one.scores for one in each])) for each in same.values()]


def _by_chance(rows: Sequence[SystemRow]) -> list[SystemRow]:
    """A row of what guessing reaches, if that is known."""
    known = {name: one for row in rows for name, one in row.scores.items() if one.chance is not None}
    scores = {name: Score(metric=one.metric, value=one.chance) for name, one in known.items()}
    return [SystemRow(system="chance", label="by chance", scores=scores)] if scores else []


_NEWS = {  # folder -> the clusters that its models were trained on
    "news_mined": "mined",
    "news_clusters_minilm_512": "gold",
    "news_clusters_minilm_1024": "gold",
    "news_clusters_minilm_4096_full": "gold",
}


def _news(results: Path) -> ScoreTable:
    """Perplexity of CDLM beside Local CDLM at three lengths: of words that only another article has, and of
    all words."""
    body = []
    for folder, clusters in _NEWS.items():
        report = read_report(results / folder / "perplexity.json")
        rows = {row.system: row.scores for row in report_rows(report)}
        texts = [clusters, f"{report.parameters['max_length']:,} {report.mark}".strip()]
        for metric in ("cross_document_perplexity", "perplexity"):
            local, cdlm = rows["local-cdlm"][metric].value, rows["cdlm"][metric].value
            texts += [*PERPLEXITY.write([local, cdlm]), f"{cdlm / local - 1:+.0%}".replace("-", "\u2212")]
        body.append([Cell(text=text) for text in texts])
    names = ("clusters", "tokens", "another article's: Local", "CDLM", "change")
    names += ("all words: Local", "CDLM", "change")
    return ScoreTable(caption="", columns=[Heading(name=name) for name in names], rows=body)


def _read_rows(file: Path, group: str) -> list[SystemRow]:
    return [row for row in report_rows(read_report(file)) if row.group == group]


def _found_mentions(results: Path) -> ScoreTable:
    """How well mentions of events and entities are found."""
    rows = [
        replace(row, label=f"{kind} mentions")
        for kind in ("event", "entity")
        for row in _read_rows(results / "ecb_english/mentions.json", kind)
    ]
    names = {"precision": "precision", "recall": "recall", "f1": "span F1"}
    names |= {"last_word_f1": "F1 of the last word"}
    columns = [measured(heading, metric) for metric, heading in names.items()]
    return tables.table_of(rows, columns, first="what")


def _end_to_end(results: Path) -> ScoreTable:
    """Coreference of the mentions that were found, with and without clusters of one mention."""
    groups = {"found_events": ("event",), "found_entities": ("entity", "all")}
    rows = [
        replace(row, label=group)
        for file, kinds in groups.items()
        for kind in kinds
        for group in (kind, f"{kind}, without singletons")
        for row in _read_rows(results / f"ecb_english/{file}.json", group)
        if row.system == "this run"
    ]
    columns = [*coreference.LAYOUT.shown, tables.threes("mentions", "mentions")]
    return tables.table_of(rows, columns, first="what")


def _storyworld_clue(results: Path) -> ScoreTable:
    """Questions with and without the document that holds the clue."""
    folder = results / "storyworld_minilm"
    files = [folder / "questions_three_paragraphs.json", folder / "questions_one_document.json"]
    reports = [read_report(file) for file in files]
    tests = [[row for row in report.tables["kinds"] if row["split"] == "test"] for report in reports]
    kinds = [{row["kind"]: row for row in of_test} for of_test in tests]
    rows = []
    for kind, what, metric in (
        ("bridge", "bridges: answer EM", "em"),
        ("bridge", "bridges: support F1", "sp_f1"),
        ("comparison", "comparisons: answer EM (guessing: 50)", "em"),
    ):
        texts = [f"{kinds[0][kind]['questions']} {what}"]
        texts += PER_CENT.write([of_kind[kind][metric] for of_kind in kinds])
        rows.append([Cell(text=text) for text in texts])
    scores = [report_rows(report)[0].scores["joint_f1"] for report in reports]
    joint = [tables.number_cell(one, PER_CENT) for one in scores]
    rows.append([Cell(text=f"all {reports[0].data['questions']['test']}: joint F1"), *joint])
    headings = [Heading(name="test questions", is_text=True), Heading(name="both documents")]
    return ScoreTable(caption="", columns=[*headings, Heading(name="without the clue")], rows=rows)


# ---- tables of benchmarks ----


def short(value: float) -> str:
    """A number with two decimals below 10, one below 150, else none: 0.844 -> `0.84`, 46.87 -> `46.9`."""
    return f"{value:.{2 if value < 10 else 1 if value < 150 else 0}f}"


def _ratio(row: Mapping[str, float]) -> str:
    ratio, lowest, highest = (short(row[name]) for name in ("ratio", "ratio_min", "ratio_max"))
    return f"{ratio} ({lowest}-{highest})"


def _read(file: Path, *names: str) -> dict[str, Any]:
    """The contents of a benchmark's file. Raises RunError if it, or one of the named fields, is missing."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"there is no {file}; run its benchmark, or take its table's markers away") from None
    except ValueError as error:
        raise RunError(f"{file}: not JSON ({error}); write it anew") from None
    for name in names:
        if not isinstance(values, dict) or name not in values:
            raise RunError(f"{file}: the field {name!r} is missing; write it anew")
    return values


def _formatted(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> ScoreTable:
    """A table of columns, given as heading -> format string for a row."""
    body = [[Cell(text=cell(form, row)) for form in columns.values()] for row in rows]
    texts = [not cell.text[0].isdigit() for cell in body[0]]
    headings = [Heading(name=name, is_text=text) for name, text in zip(columns, texts, strict=True)]
    return ScoreTable(caption="", columns=headings, rows=body)


def _benchmark(results: Path, *, file: str, columns: Mapping[str, str]) -> ScoreTable:
    return _formatted(_read(results / file, "rows")["rows"], columns)


def _coreference_speed(results: Path) -> ScoreTable:
    """Mention pairs scored per second, ours against one pair at a time."""
    names = ("tokens_per_pair", "pairs_per_second", "largest_difference", "times_faster")
    rows = []
    for context in ("documents", "sentences"):
        values = _read(results / f"coreference_benchmark_{context}.json", *names)
        rates = {name: short(rate) for name, rate in values["pairs_per_second"].items()}
        rows.append(values | {"context": context, "tokens": values["tokens_per_pair"]["median"], **rates})
    columns = {
        "context": "{context}",
        "tokens a pair (median)": "{tokens:.0f}",
        "Hugging Face pairs/s": "{huggingface}",
        "ours pairs/s": "{ours}",
        "times faster (min-max)": TIMES_FASTER,
        "probabilities differ by": "{largest_difference:.0e}",
    }
    return _formatted(rows, columns)


def cross_document_cost(results: Path) -> ScoreTable:
    """The cost of cross-document attention in GRU-HAN."""
    seconds = tables.published_numbers()["cda", "11"]
    rows = []
    for row in _read(results / "cross_document_attention_benchmark.json", "rows")["rows"]:
        if row["cda"] != "none":
            systems = ("gru-han", f"gru-han-{row['cda']}")
            alone, paper = (seconds.get((row["text"], system, "seconds")) for system in systems)
            texts = [row["text"], row["cda"].upper(), _ratio(row), f"{row['predicted']:.2f}"]
            of_paper = f"{float(paper) / float(alone):.2f}" if paper and alone else ""
            cells = [*(Cell(text=text) for text in texts), Cell(text=of_paper, published=bool(of_paper))]
            rows.append([*cells, Cell(text=f"{row['added_parameters']:,}")])
    columns = [
        *(Heading(name=name, is_text=True) for name in ("text", "CDA")),
        *(Heading(name=name) for name in ("times GRU-HAN alone (min-max)", "by multiply-adds")),
        Heading(name="paper, GPU", published=True),
        Heading(name="more parameters"),
    ]
    return ScoreTable(caption="", columns=columns, rows=rows)


def tagging_cost(results: Path) -> ScoreTable:
    """The time of an epoch of Doc-ARC relative to its baseline."""
    forms = {"linear": "linear", "bilstm": "biLSTM (the paper)"}
    rows = [
        row
        | {"form": forms[row["form"]], "ratio": _ratio(row), "predicted": short(row["predicted"])}
        | {"again": f"{row['encoding_again']:.{1 if row['encoding_again'] < 10 else 0}f}"}
        for row in _read(results / "document_tagging_benchmark.json", "rows")["rows"]
        if row["form"] in forms
    ]
    columns = {
        "K": "{occurrences}",
        "context encoder": "{form}",
        "times the baseline (min-max)": "{ratio}",
        "by multiply-adds": "{predicted}",
        "with encoding in each epoch, as released": "{again}",
    }
    return _formatted(rows, columns)


_EXPLORER_SPEED = {
    "length": "{length}",
    "Hugging Face s": "{huggingface_seconds:.2f}",
    "ours s": "{ours_seconds:.2f}",
    "times faster (min-max)": TIMES_FASTER,
    "Hugging Face MiB": "{huggingface_mib:.0f}",
    "ours MiB": "{ours_mib:.0f}",
}
TABLES: Mapping[str, Made] = {
    **{f"verdicts-{paper}": partial(verdicts_table, paper=paper) for paper in PAPERS},
    **{f"claims-{paper}": partial(claims_table, paper=paper) for paper in PAPERS},
    **{name: partial(contradiction_table, name=name) for name in CONTRADICTIONS},
    "news": _news,
    "shipped": shipped_table,
    **{f"ecb-table-2-{kind}": partial(coreference_table, table=kind) for kind in ("events", "entities")},
    "ecb-table-3": ablation_table,
    "ecb-mentions": _found_mentions,
    "ecb-end-to-end": _end_to_end,
    "storyworld-clue": _storyworld_clue,
    "attention-speed": partial(_benchmark, file="attention_benchmark.json", columns=attention.COLUMNS),
    "training-speed": partial(_benchmark, file="training_benchmark.json", columns=training.COLUMNS),
    "training-speed-gpu": partial(_benchmark, file="training_benchmark_gpu.json", columns=training.COLUMNS),
    "reading-speed": partial(_benchmark, file="inference_benchmark.json", columns=inference.COLUMNS),
    "explorer-speed": partial(_benchmark, file="source_attention_benchmark.json", columns=_EXPLORER_SPEED),
    "cut-storyworld": lambda results: cut_view(read_scores(results / "cut_storyworld.json")),
    "cut-news": lambda results: cut_view(read_scores(results / "cut_news.json")),
    "mining": partial(_benchmark, file="mining_benchmark.json", columns=mining_benchmark.COLUMNS),
    "coreference-speed": _coreference_speed,
    "cross-document-cost": cross_document_cost,
    "tagging-cost": tagging_cost,
}


def table_named(results: Path, name: str) -> ScoreTable:
    """The table of that name, made of what a folder holds. Raises RunError if there is none."""
    if "/" in name:
        return report_table(results, name)
    if name not in TABLES:
        raise RunError(f"there is no table {name!r}: {closest_name(name, TABLES)}")
    return TABLES[name](results)
