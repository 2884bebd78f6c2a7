"""The tables of the READMEs, made only from the reports and benchmarks in data/results.

`TABLES` maps the names in a README's markers to functions that make the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cdlm_lab.benchmarks import attention, mining, training
from cdlm_lab.benchmarks.timing import TIMES_FASTER
from cdlm_lab.encoders.variants import VARIANT_NAMES
from cdlm_lab.explorer.cuts import read_scores
from cdlm_lab.explorer.rank_figures import RANK_CELLS
from cdlm_lab.explorer.view import RANK_GAPS, cut_view
from cdlm_lab.results.claims import PAPERS, SCORERS, claims_table, shipped_table, verdicts_table
from cdlm_lab.results.reports import is_cosine, report_rows
from cdlm_lab.runs.report import RunError, read_report
from cdlm_lab.tasks.coreference import view as coreference
from cdlm_lab.tasks.joint import answers_view
from cdlm_lab.tasks.multihop import view as multihop
from cdlm_lab.views import tables
from cdlm_lab.views.tables import (
    DEV,
    PER_CENT,
    PERPLEXITY,
    THOUSANDTHS,
    Cell,
    Column,
    Heading,
    ScoreTable,
    SystemRow,
    measured,
    p_of,
    published,
    system_rows,
    table_of,
)

Made = Callable[[Path], ScoreTable]
_BASELINES = ("same head word", "singletons", "one cluster")
_MATCHING = (measured("accuracy", "accuracy"), measured("F1", "f1"))
_MATCHING_TESTED = (*_MATCHING, p_of("accuracy"))
_SPANS = (measured("span F1", "f1"), measured("dev F1", f"{DEV}f1"))
_CLUSTERS = (
    *(measured(heading, f"{metric}/f1", bare=True) for metric, heading in coreference.MEASURES.items()),
    measured("CoNLL F1", "conll/f1"),
)
_PRECISE_SPANS = (measured("precision", "precision"), measured("recall", "recall"), *_SPANS)


def rows_of(file: Path, group: str | None = None) -> list[SystemRow]:
    """The rows of a report, or of one of its groups. Raises RunError if it does not exist, or is not as its
    notebook writes it."""
    try:
        return [row for row in report_rows(read_report(file)) if group in (None, row.group)]
    except (LookupError, TypeError, ValueError) as error:
        raise RunError(f"{file}: not as its notebook writes it ({error!r}); record the run anew") from None


# ---- tables of runs ----


def _whole_report(file: str, columns: Sequence[Column], *, first: str = "system", cosines: str = "") -> Made:
    """A table of all rows of a report; `cosines`: the report whose cosine baselines stand above them."""

    def made(results: Path) -> ScoreTable:
        above = _cosines(rows_of(results / cosines)) if cosines else []
        return table_of([*above, *rows_of(results / file)], columns, first=first)

    return made


def _cosines(rows: Sequence[SystemRow]) -> list[SystemRow]:
    return [row for row in rows if is_cosine(row.system)]


def _perplexity(file: str, *crossing: Column) -> Made:
    """Table 1 of CDLM; `crossing`: columns for tokens that can be recovered only from another document."""
    names = ("validation perplexity", "test perplexity")
    paper = published("paper", ("cdlm", "1"), dataset="Multi-News", columns=names, below="validation / test")
    ours = measured("perplexity", "perplexity", tables.PERPLEXITY)
    return _whole_report(file, [ours, *crossing, paper], first="variant")


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


def _coreference(
    results: Path,
    *,
    name: str,
    folder: str = "ecb_plus_minilm",
    order: Sequence[str] = _BASELINES,
    papers: Sequence[SystemRow] = (),
    label: str = "",
) -> ScoreTable:
    """Table 2 of CDLM: our models (`label`: what the first is called; "" = its encoder and what it reads),
    the baselines in the given order, and rows of the paper."""
    file = results / folder / f"{name}.json"
    rows, mark = {row.system: row for row in rows_of(file)}, f" {read_report(file).mark}".rstrip()
    encoder = "CDLM" if name.endswith(("_cdlm", "coreference")) else "MiniLM"
    context = "whole documents" if name.endswith(("documents", "coreference")) else "sentences only"
    labels = {"this run": label or f"{encoder}, {context}"} | SCORERS
    ours = [
        replace(rows[system], label=f"{label}{mark}") for system, label in labels.items() if system in rows
    ]
    columns = [
        *_CLUSTERS,
        p_of("conll/f1"),
        measured("CoNLL F1 on dev", f"{DEV}conll/f1", bare=True),
    ]
    return table_of([*ours, *(rows[system] for system in order), *papers], columns)


def _of_paper(table: str, labels: Mapping[str, str], kind: str = "event") -> list[SystemRow]:
    named = {system: f"paper: {label}" for system, label in labels.items()}
    return tables.published_rows("cdlm", table, f"ECB+ {kind}", named)


def _found_mentions(results: Path) -> ScoreTable:
    """How well mentions of events and entities are found."""
    rows = [
        replace(row, label=f"{kind} mentions")
        for kind in ("event", "entity")
        for row in rows_of(results / "ecb_english" / "mentions.json", kind)
    ]
    columns = [*_PRECISE_SPANS[:3], measured("F1 of the last word", "last_word_f1")]
    return table_of(rows, columns, first="what")


def _end_to_end(results: Path) -> ScoreTable:
    """Coreference of the mentions that were found, with and without clusters of one mention."""
    groups = {"found_events": ("event",), "found_entities": ("entity", "all")}
    rows = [
        replace(row, label=group)
        for file, kinds in groups.items()
        for kind in kinds
        for group in (kind, f"{kind}, without singletons")
        for row in rows_of(results / "ecb_english" / f"{file}.json", group)
        if row.system == "this run"
    ]
    return table_of(rows, [*_CLUSTERS, measured("mentions F1", "mentions/f1", bare=True)], first="what")


_WHOLE = {"cdlm/documents": "CDLM, whole documents"}
_ABLATED = {"cdlm/sentences": "sentences only CDLM", "longformer/documents": "Longformer"}
_FIVE_ENCODERS = {f"{variant}/documents": name for variant, name in VARIANT_NAMES.items()}


def _scisumm_paper() -> Column:
    """Tables 2 and 3 of CDA and 4 of CDLM on AAN, a corpus of ACL papers, as SciSumm is."""
    form = {"columns": ("accuracy", "f1"), "below": "Acc / F1", "decimals": (1, 1), "gaps": False}
    return published("paper, AAN", ("cda", "2"), ("cda", "3"), ("cdlm", "4"), dataset="AAN", **form)


def _scisumm_alignment(results: Path) -> ScoreTable:
    """Table 4 of CDA on SciSumm, one row per system: attention and cosine given that the documents are
    related, and attention scored as the paper's numbers are."""
    merged: dict[str, SystemRow] = {}
    folder = results / "scisumm_minilm"
    for group in ("oracle", "released"):
        rows, more = (rows_of(folder / f"{name}.json", group) for name in ("alignment", "alignment_cosine"))
        for row in [*_cosines(more), *rows]:
            system, _, by = row.system.partition("/")
            label = row.label.replace(f", {by}", "")
            one = merged.setdefault(system, replace(row, system=system, label=label, scores={}))
            ways = [by] if by else ["attention", "cosine"]
            scores = {f"{group}/{way}/{name}": score for way in ways for name, score in row.scores.items()}
            merged[system] = replace(one, scores={**one.scores, **scores})
    columns = []
    for way in ("attention", "cosine"):
        columns.append(measured(f"MRR by {way}", f"oracle/{way}/mrr", THOUSANDTHS))
        columns.append(measured("P@1", f"oracle/{way}/at_1", bare=True))
    columns.append(measured("released scoring: MRR", "released/attention/mrr", THOUSANDTHS, bare=True))
    columns.append(measured("P@1", "released/attention/at_1", bare=True))
    form = {"columns": ("mrr", "at_1"), "below": "MRR / P@1", "decimals": (3, 1)}
    paper = published("paper, S2ORC", ("cda", "4"), dataset="S2ORC", **form)

    def beside(row: SystemRow, labels: Mapping[str, str]) -> Cell:
        system = row.system if row.system == "random" else f"{row.system}/attention"
        return paper.cell(replace(row, system=system), labels)

    return table_of([*merged.values()], [*columns, replace(paper, cell=beside)])


def _storyworld_matching(results: Path, *, name: str, cosines: str) -> ScoreTable:
    """Matching on storyworld, and the accuracy when the model reads only one of the two documents."""
    reports = []
    for file in (results / "storyworld_tiny" / f"{one}.json" for one in (name, cosines)):
        control = system_rows(read_report(file).rows, split="test_one_document")
        alone = {row.system: {"alone": row.scores["accuracy"]} for row in control}
        reports.append([replace(row, scores={**row.scores, **alone[row.system]}) for row in rows_of(file)])
    rows = [*_cosines(reports[1]), *reports[0]]
    more = measured("accuracy on dev", f"{DEV}accuracy"), measured("accuracy, one document alone", "alone")
    return table_of(rows, [*_MATCHING, *more])


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
    joint = [tables.number_cell(rows_of(file)[0].scores["joint_f1"], PER_CENT) for file in files]
    rows.append([Cell(text=f"all {reports[0].data['questions']['test']}: joint F1"), *joint])
    headings = [Heading(name="test questions", is_text=True), Heading(name="both documents")]
    return ScoreTable(caption="", columns=[*headings, Heading(name="without the clue")], rows=rows)


def _tagging_paper(corpus: str) -> Column:
    """The paper's scores, from Tables 2, 3 and 4 of Doc-ARC."""
    of_paper = [("doc-arc", table) for table in "234"]
    return published("paper, BERT", *of_paper, dataset=corpus, columns=("f1",), deviations=True)


def _ranks(results: Path, *, file: str) -> ScoreTable:
    """Table 6 of CDLM, whose scores are on ECB+, with the ranks of random spans."""
    rows = rows_of(results / file)
    cells = RANK_CELLS | RANK_GAPS
    paper = published("paper", ("cdlm", "6"), dataset="ECB+", columns=tuple(RANK_CELLS))
    columns = [measured(heading, cell, tables.POINTS) for cell, heading in cells.items()]
    table = table_of(rows, [*columns, paper], first="model")
    chances = [rows[0].scores[cell].chance for cell in cells]
    texts = ["" if chance is None else f"{chance:.0f}" for chance in chances]
    last = [Cell(text="a random span"), *(Cell(text=text) for text in texts), Cell(text="50", published=True)]
    return replace(table, rows=[*table.rows, last])


def _answers(
    results: Path, *, folder: str, name: str = "answers", group: str = "all", corpus: str = ""
) -> ScoreTable:
    """Table 1 of MSPP, or Tables 2 and 7."""
    of_paper = [("mspp", "1")] if group == "all" else [("mspp", "2"), ("mspp", "7")]
    measures = answers_view.MEASURES
    form = {"columns": tuple(measures), "below": " / ".join(measures.values())}
    paper = published("paper", *of_paper, dataset=corpus, **form)
    shown = [*(measured(heading, metric) for metric, heading in measures.items()), p_of("map"), paper]
    return table_of(rows_of(results / folder / f"{name}.json", group), shown)


def _claims(results: Path, *, group: str) -> ScoreTable:
    """Tables 3 and 8 of MSPP on one set of claims."""
    file, columns = results / "fm2_minilm" / "verification.json", ("dev label_accuracy", "label_accuracy")
    paper = published("paper, FEVER", ("mspp", "8"), dataset="FEVER", columns=columns, below="dev / test")
    if not (rows := rows_of(file, group)):
        raise RunError(f"{file}: the claims of {group} were not scored; take the table's markers away")
    return table_of(rows, [measured("label accuracy", "label_accuracy"), p_of("label_accuracy"), paper])


_CROSSING = measured("on cross-document tokens", "cross_document_perplexity", tables.PERPLEXITY)
_QUESTIONS = [measured(heading, metric) for metric, heading in multihop.MEASURES.items()]
RUN_TABLES: Mapping[str, Made] = {
    "news-mined": _perplexity("news_mined/perplexity.json", _CROSSING),
    "news-perplexity": _perplexity("news_clusters_minilm_512/perplexity.json", _CROSSING),
    "news-perplexity-again": _perplexity("news_clusters_minilm_512/perplexity_seed_1.json", _CROSSING),
    "news-perplexity-fewer": _perplexity("news_clusters_minilm_512_fewer/perplexity.json", _CROSSING),
    "news-perplexity-long": _perplexity("news_clusters_minilm_4096/perplexity.json", _CROSSING),
    "news-perplexity-1024": _perplexity("news_clusters_minilm_1024/perplexity.json", _CROSSING),
    "news-perplexity-1024-again": _perplexity("news_clusters_minilm_1024/perplexity_seed_1.json", _CROSSING),
    "news-perplexity-full": _perplexity("news_clusters_minilm_4096_full/perplexity.json", _CROSSING),
    "news-perplexity-first": _perplexity("news_clusters_minilm/perplexity.json"),
    "storyworld-perplexity": _perplexity("storyworld_tiny/perplexity.json", _CROSSING),
    "storyworld-perplexity-seed-1": _perplexity("storyworld_tiny/perplexity_seed_1.json", _CROSSING),
    "ecb-events": partial(
        _coreference,
        name="event_sentences",
        papers=[*_of_paper("3", _ABLATED), *_of_paper("2", _WHOLE)],
    ),
    "ecb-events-longer": partial(_coreference, name="event_sentences_longer"),
    "ecb-events-cdlm": partial(_coreference, name="event_wide_cdlm"),
    "ecb-events-five": partial(_coreference, name="event_five_cdlm", papers=_of_paper("3", _FIVE_ENCODERS)),
    "ecb-events-two-passes": partial(_coreference, name="event_two_passes_cdlm"),
    "ecb-entities-longer": partial(_coreference, name="entity_sentences_longer"),
    "ecb-entities": partial(_coreference, name="entity_sentences", papers=_of_paper("2", _WHOLE, "entity")),
    **{
        f"ecb-one-reading-{kind}": partial(
            _coreference, folder="ecb_english", name=kind, label="one reading, sentences only"
        )
        for kind in ("events", "entities")
    },
    "ecb-meta": partial(
        _coreference, folder="ecb_english", name="meta_dev", label="one reading, threshold of its dev"
    ),
    "ecb-meta-unlabelled": partial(
        _coreference, folder="ecb_english", name="meta_unlabelled", order=(), label="threshold without gold"
    ),
    "ecb-mentions": _found_mentions,
    "ecb-end-to-end": _end_to_end,
    "storyworld-coreference": partial(_coreference, folder="storyworld_tiny", name="coreference"),
    "ecb-event-documents": partial(_coreference, name="event_documents", order=_BASELINES[:1]),
    "ecb-event-all-documents": partial(_coreference, name="event_all_documents"),
    "ecb-entity-all-documents": partial(_coreference, name="entity_all_documents"),
    "scisumm-matching": _whole_report(
        "scisumm_minilm/matching.json",
        [*_MATCHING_TESTED, _scisumm_paper()],
        cosines="scisumm_minilm/matching_cosine.json",
    ),
    "scisumm-ten-seeds": _whole_report("scisumm_minilm/matching_ten_seeds.json", _MATCHING_TESTED),
    "scisumm-two-sentences": _whole_report(
        "scisumm_minilm/matching_two_sentences.json",
        _MATCHING,
        cosines="scisumm_minilm/matching_cosine_two_sentences.json",
    ),
    "scisumm-alignment": _scisumm_alignment,
    "storyworld-matching": partial(_storyworld_matching, name="matching", cosines="matching_cosine"),
    "storyworld-matching-random": partial(
        _storyworld_matching, name="matching_6000", cosines="matching_cosine_random"
    ),
    "storyworld-answers": partial(_answers, folder="storyworld_tiny"),
    "storyworld-answers-mspp": partial(_answers, folder="storyworld_tiny", name="answers_mspp"),
    "storyworld-answers-reranked": partial(_answers, folder="storyworld_tiny", group="reranked"),
    "storyworld-questions": _whole_report("storyworld_tiny/questions.json", _QUESTIONS, first="encoder"),
    "hotpotqa": _whole_report("hotpotqa_minilm/questions_longer.json", _QUESTIONS, first="encoder"),
    "hotpotqa-last": _whole_report("hotpotqa_minilm/questions_last_pass.json", _QUESTIONS, first="encoder"),
    "storyworld-clue": _storyworld_clue,
    "storyworld-tagging": _whole_report("storyworld_tiny/tagging.json", _PRECISE_SPANS),
    "jnlpba-tagging": _whole_report("jnlpba_minilm/tagging.json", [*_SPANS, _tagging_paper("JNLPBA")]),
    "jnlpba-equation-5": _whole_report("jnlpba_minilm/tagging_equation_5.json", _SPANS),
    "jnlpba-more-articles": _whole_report("jnlpba_minilm/tagging_more_articles.json", _SPANS),
    "litbank-tagging": _whole_report("litbank_minilm/tagging.json", [*_SPANS, _tagging_paper("LitBank")]),
    "litbank-equation-5": _whole_report("litbank_minilm/tagging_equation_5.json", _SPANS),
    "ecb-ranks": partial(_ranks, file="ecb_plus_minilm/attention_512.json"),
    "ecb-ranks-1024": partial(_ranks, file="ecb_plus_minilm/attention_1024.json"),
    "ecb-ranks-first": partial(_ranks, file="ecb_plus_minilm/attention.json"),
    "storyworld-ranks": partial(_ranks, file="storyworld_tiny/attention.json"),
    "storyworld-ranks-seed-1": partial(_ranks, file="storyworld_tiny/attention_seed_1.json"),
    "storyworld-ranks-random-keys": partial(_ranks, file="storyworld_tiny/attention_random_keys.json"),
    **{
        f"{name}{suffix}": partial(_answers, folder=f"{name}_minilm", group=group, corpus=corpus)
        for name, corpus in (("wikiqa", "WikiQA"), ("trecqa", "TREC-QA"))
        for suffix, group in (("", "all"), ("-reranked", "reranked"))
    },
    "wikiqa-equal": partial(_answers, folder="wikiqa_minilm", corpus="WikiQA", name="answers_equal_updates"),
    "trecqa-own": partial(_answers, folder="trecqa_minilm", corpus="TREC-QA", name="answers_own_questions"),
    "fm2": partial(_claims, group="test"),
    "fm2-symmetric": partial(_claims, group="symmetric"),
}


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
    body = [[Cell(text=form.format_map(row)) for form in columns.values()] for row in rows]
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
    "news": _news,
    "shipped": shipped_table,
    **RUN_TABLES,
    "attention-speed": partial(_benchmark, file="attention_benchmark.json", columns=attention.COLUMNS),
    "training-speed": partial(_benchmark, file="training_benchmark.json", columns=training.COLUMNS),
    "training-speed-gpu": partial(_benchmark, file="training_benchmark_gpu.json", columns=training.COLUMNS),
    "explorer-speed": partial(_benchmark, file="source_attention_benchmark.json", columns=_EXPLORER_SPEED),
    "cut-storyworld": lambda results: cut_view(read_scores(results / "cut_storyworld.json")),
    "cut-news": lambda results: cut_view(read_scores(results / "cut_news.json")),
    "mining": partial(_benchmark, file="mining_benchmark.json", columns=mining.COLUMNS),
    "coreference-speed": _coreference_speed,
    "cross-document-cost": cross_document_cost,
    "tagging-cost": tagging_cost,
}
