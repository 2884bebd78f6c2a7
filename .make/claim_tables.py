"""The tables of the papers' claims, and of the models that ship with the project, for pages in data/results.

Where a report's items were not recorded, a verdict is marked: it is by the same rule, but from the p-values
that the report held.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdlm_lab.results.claims import (
    claims_of,
    mark_of,
    pair_of,
    power_of,
    reports_of,
    score_of,
    tested_of,
    verdict_of,
)
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import PARAGRAPHS, PERPLEXITY, size_of
from cdlm_lab.runs.report import Report, items_file, read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.views import tables
from cdlm_lab.views.score_tables import labels_of

SHIPPED_FILE = Path(__file__).with_name("shipped.csv")
# Control test sets, from which something was removed, and their names in tables.
_CONTROLS = {"test_one_document": ", one document alone", "test_no_question": ", without the question"}
_NUMBERS = ("seeds", "p", "could show", "paper")  # columns aligned as numbers
WITHOUT_ITEMS = "\u2021"  # a verdict from the tests of a report whose items were not recorded
SCORERS = {  # runs of notebook 03 that other runs are compared with, and what they read
    "this run": "our scorer",
    "ecb_event_wide_longformer": "Longformer, sentences only",
    "ecb_event_sentences_cdlm": "CDLM, sentences only, window 32",
    "ecb_event_five_longformer": "Longformer, sentences only",
    "ecb_event_five_local": "Local CDLM, sentences only",
    "ecb_event_five_rand": "Rand CDLM, sentences only",
    "ecb_event_five_prefix": "Prefix CDLM, sentences only",
    "ecb_event_five_cdlm": "CDLM, sentences only, 12,800 pairs",
    "ecb_event_sentences": "MiniLM, sentences only",
    "ecb_event_more_sentences": "MiniLM, sentences only",
    "ecb_entity_more_sentences": "MiniLM, sentences only",
    "coreference_sentences": "CDLM, sentences only",
    "coreference_longformer": "Longformer, whole documents",
}


def claims_table(results: Path, paper: str = "") -> tables.ScoreTable:
    """Each claim of a paper, our scores, and whether it holds for them."""
    claims = claims_of(paper)
    columns = {
        "paper, table": [claim["table"] for claim in claims],
        "claimed": [claim["claim"] for claim in claims],
        "measured on": [f"{claim['corpus']}, {claim['measure']}" for claim in claims],
    }
    measured = [_measured(results, claim) for claim in claims]
    names = ("ours", "against", "n", "seeds", "p", "could show", "paper", "there it")
    columns |= {name: [row[name] for row in measured] for name in names}
    files = [claim["file"].split() for claim in claims]  # several files share the folder of the first
    columns["file"] = [", ".join([one[0], *(Path(file).name for file in one[1:])]) for one in files]
    headings = [tables.Heading(name=name, is_text=name not in _NUMBERS) for name in columns]
    rows = [[tables.Cell(text=text) for text in row] for row in zip(*columns.values(), strict=True)]
    return tables.ScoreTable(caption="", columns=headings, rows=rows)


def _measured(results: Path, claim: Mapping[str, str]) -> dict[str, str]:
    """Table column -> text for a claim, from its reports."""
    reports = reports_of(results, claim)
    better, other = pair_of(reports, claim)
    tested = tested_of(reports, claim)
    shown, papers = power_of(reports, tested, claim)
    return {
        "ours": _named_score(reports[0], better),
        "against": _named_score(reports[0], other),
        "n": size_of(reports[0], claim["group"])[1].partition(" of ")[0],
        "seeds": str(len(reports) if len(reports) > 1 else better.seeds or 1),
        "p": tables.p_text(tested["p_holm"]),
        "could show": f"{shown:.1f}",
        "paper": "" if papers is None else f"{papers:.1f}",
        "there it": _there_it(reports, tested, claim),
    }


def _there_it(reports: Sequence[Report], tested: Mapping[str, Any], claim: Mapping[str, str]) -> str:
    """The verdict, with the mark of a report that cannot be made again, of a fault, or of no items."""
    by_items = all(report.file and items_file(report.file).exists() for report in reports)
    mark = mark_of(reports, claim) or WITHOUT_ITEMS * (not by_items)
    return f"{verdict_of(reports, tested, claim)} {mark}".strip()


def _named_score(report: Report, score: Score) -> str:
    """A score with its label, such as `CDLM: 2.27 [2.22, 2.33]`."""
    points = score.metric.endswith(("/event", "/entity"))
    form = tables.PERPLEXITY if report.name == PERPLEXITY else tables.POINTS if points else tables.PER_CENT
    cell = tables.number_cell(score, form)
    label = SCORERS.get(score.system) or labels_of(report, LAYOUTS[report.name])[score.system]
    return f"{label}: {cell.text} {cell.below} {report.mark}".strip()


def shipped_table(results: Path) -> tables.ScoreTable:
    """The score of each model that ships with the project on unseen stories, and the score it is compared
    with according to `shipped.csv`: that of another system, of a later report (`other_file`) if its run
    had another one, or its own on a control test set."""
    with SHIPPED_FILE.open(encoding="utf-8", newline="") as file:
        models = list(csv.DictReader(file))
    names = ("model", "notebook", "measured", "ours", "against", "n", "seeds", "file")
    rows = []
    for model in models:
        report = read_report(results / model["file"])
        if report.name == PARAGRAPHS:  # scores of one model, and of a TF-IDF baseline
            by_system = {row.system: row for row in report.rows if row.metric == model["metric"]}
            ours, words = by_system[""], by_system[model["other"]]
            cells = [tables.number_cell(one, tables.PER_CENT) for one in (ours, words)]
            texts = [f"{cell.text} {cell.below}" for cell in cells]
            texts[0] = f"{texts[0]} {report.mark}".strip()
            scores, n = (f"MSPP IE_k: {texts[0]}", f"TF-IDF cosine: {texts[1]}"), f"{ours.n:,} examples"
        else:
            ours = score_of(report, model, model["system"])
            later = read_report(results / model["other_file"]) if model["other_file"] else report
            other = score_of(later, model, model["other"], split=model["other_split"])
            scores = _named_score(report, ours), _named_score(later, other) + _CONTROLS.get(other.split, "")
            n = size_of(report, model["group"])[1].partition(" of ")[0]
        texts = [model["model"], model["notebook"], model["measure"], *scores]
        files = ", ".join([model["file"], Path(model["other_file"]).name]).removesuffix(", ")
        texts += [n, str(ours.seeds or 1), f"data/results/{files}"]
        rows.append([tables.Cell(text=text) for text in texts])
    headings = [tables.Heading(name=name, is_text=name != "seeds") for name in names]
    return tables.ScoreTable(caption="", columns=headings, rows=rows)
