"""Claims of the papers, and whether the recorded runs confirm them: `claims.csv` names a report and two
systems for each claim; scores, test and verdict are read from the report. A report that was made by a program
with uncommitted changes supports no verdict: nobody can make it again. Where a report's items were not
recorded, the verdict is marked: it is by the same rule, but from the p-values that the report held.

Columns of the CSV: `file` is a report, or one for each seed; `better` is claimed to score above `other`, or
below it in perplexity; `metric` and `group` are those of the score rows (for fact verification the group is
the set of claims); `test` selects the row of the table of comparisons, together with the two systems, or that
of the gains among `words` of high TF-IDF.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import CLAIMS, PARAGRAPHS, PERPLEXITY, size_of
from cdlm_lab.results.verdicts import comparisons_of
from cdlm_lab.runs.report import Report, items_file, read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.views import tables
from cdlm_lab.views.score_tables import labels_of

CLAIMS_FILE = Path(__file__).with_name("claims.csv")
SHIPPED_FILE = Path(__file__).with_name("shipped.csv")
# Control test sets, from which something was removed, and their names in tables.
_CONTROLS = {"test_one_document": ", one document alone", "test_no_question": ", without the question"}
_WORDS = "words="
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
PAPERS = {"cdlm": "CDLM", "cda": "CDA", "doc-arc": "Doc-ARC", "mspp": "MSPP"}  # as `table` in the CSV begins


def claims_of(paper: str = "") -> list[dict[str, str]]:
    """The rows of `claims.csv` on a paper, a key of PAPERS; "" = on all."""
    with CLAIMS_FILE.open(encoding="utf-8", newline="") as file:
        claims = list(csv.DictReader(file))
    return [one for one in claims if one["table"].startswith(PAPERS[paper] if paper else "")]


def claims_table(results: Path, paper: str = "") -> tables.ScoreTable:
    """Each claim of a paper, our scores, and whether it holds for them."""
    claims = claims_of(paper)
    columns = {
        "paper, table": [claim["table"] for claim in claims],
        "claimed": [claim["claim"] for claim in claims],
        "measured on": [f"{claim['corpus']}, {claim['measure']}" for claim in claims],
    }
    measured = [_measured(results, claim) for claim in claims]
    names = ("ours", "against", "n", "seeds", "p", "there it")
    columns |= {name: [row[name] for row in measured] for name in names}
    files = [claim["file"].split() for claim in claims]  # several files share the folder of the first
    columns["file"] = [", ".join([one[0], *(Path(file).name for file in one[1:])]) for one in files]
    headings = [tables.Heading(name=name, is_text=name not in ("seeds", "p")) for name in columns]
    rows = [[tables.Cell(text=text) for text in row] for row in zip(*columns.values(), strict=True)]
    return tables.ScoreTable(caption="", columns=headings, rows=rows)


NO_VERDICT = "no verdict"  # of runs that nobody can make again
VERDICTS = ("holds", "does not", "undecided", "too few units", NO_VERDICT)


def verdicts_table(results: Path, paper: str) -> tables.ScoreTable:
    """Each claim of a paper, and on which data it holds, does not, is undecided or has no verdict."""
    names = dict.fromkeys((one["table"].partition(", ")[2], one["claim"]) for one in claims_of(paper))
    found: dict[tuple[str, str], dict[str, list[str]]] = {name: {} for name in names}
    for claim in claims_of(paper):
        one = found[claim["table"].partition(", ")[2], claim["claim"]]
        reports = _reports(results, claim)
        one.setdefault(_verdict(reports, _tested(reports, claim), claim), []).append(claim["corpus"])
    used = [verdict for verdict in VERDICTS if any(verdict in one for one in found.values())]
    headings = [tables.Heading(name=name, is_text=True) for name in ("table", "claim", *used)]
    texts = [(*name, *("; ".join(one.get(verdict, ())) for verdict in used)) for name, one in found.items()]
    rows = [[tables.Cell(text=text) for text in row] for row in texts]
    caption = f"{PAPERS[paper]}: where its claims hold"
    return tables.ScoreTable(caption=caption, columns=headings, rows=rows)


def effect_of(results: Path, claim: Mapping[str, str]) -> tuple[str, float]:
    """The verdict on a claim, and by how much the system that it claims to be better is: in points, or in
    percent of the perplexity of the other."""
    reports = _reports(results, claim)
    better, other = (score.value for score in _pair(reports[0], claim))
    if reports[0].name == PERPLEXITY:
        effect = 100 * (other - better) / other
    else:
        effect = (better - other) * (1 if better > 1.5 or other > 1.5 else 100)
    return _verdict(reports, _tested(reports, claim), claim), effect


def _reports(results: Path, claim: Mapping[str, str]) -> list[Report]:
    """The report of a claim, or several, each of one seed."""
    return [read_report(results / file) for file in claim["file"].split()]


def _measured(results: Path, claim: Mapping[str, str]) -> dict[str, str]:
    """Table column -> text for a claim, from its reports."""
    reports = _reports(results, claim)
    better, other = _pair(reports[0], claim)
    tested = _tested(reports, claim)
    return {
        "ours": _named_score(reports[0], better),
        "against": _named_score(reports[0], other),
        "n": size_of(reports[0], claim["group"])[1].partition(" of ")[0],
        "seeds": str(len(reports) if len(reports) > 1 else better.seeds or 1),
        "p": tables.p_text(tested["p_holm"]),
        "there it": _there_it(reports, tested, claim),
    }


_TURNED = {"holds": "does not", "does not": "holds"}


def _verdict(reports: Sequence[Report], tested: Mapping[str, Any], claim: Mapping[str, str]) -> str:
    """One of VERDICTS: that of the test, if all reports can be made again."""
    if any(report.mark for report in reports):
        return NO_VERDICT
    turned = _TURNED if tested["a"] != claim["better"] else {}
    return turned.get(tested["verdict"], tested["verdict"])


def _there_it(reports: Sequence[Report], tested: Mapping[str, Any], claim: Mapping[str, str]) -> str:
    """The verdict, with the mark of a report that cannot be made again, or of a test without items."""
    by_items = all(report.file and items_file(report.file).exists() for report in reports)
    unclean = next((report.mark for report in reports if report.mark), "")
    return f"{_verdict(reports, tested, claim)} {unclean or WITHOUT_ITEMS * (not by_items)}".strip()


def _pair(report: Report, claim: Mapping[str, str]) -> tuple[Score, Score]:
    """The scores of the two systems of a claim."""
    names = claim["better"], claim["other"]
    if claim["test"].startswith(_WORDS):
        values = _tested([report], claim)
        seeds = report.parameters["seeds"]
        scores = {values[side]: values[f"f1_{side}"] for side in "ab"}
        better, other = (Score(system=name, metric="f1", value=scores[name], seeds=seeds) for name in names)
        return better, other
    return _score(report, claim, names[0]), _score(report, claim, names[1])


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
            ours = _score(report, model, model["system"])
            later = read_report(results / model["other_file"]) if model["other_file"] else report
            other = _score(later, model, model["other"], split=model["other_split"])
            scores = _named_score(report, ours), _named_score(later, other) + _CONTROLS.get(other.split, "")
            n = size_of(report, model["group"])[1].partition(" of ")[0]
        texts = [model["model"], model["notebook"], model["measure"], *scores]
        files = ", ".join([model["file"], Path(model["other_file"]).name]).removesuffix(", ")
        texts += [n, str(ours.seeds or 1), f"data/results/{files}"]
        rows.append([tables.Cell(text=text) for text in texts])
    headings = [tables.Heading(name=name, is_text=name != "seeds") for name in names]
    return tables.ScoreTable(caption="", columns=headings, rows=rows)


def _score(report: Report, claim: Mapping[str, str], system: str, *, split: str = "") -> Score:
    split, group = split or LAYOUTS[report.name].split, claim["group"]
    if report.name == CLAIMS:
        split, group = group, ""
    return next(row for row in report.rows if row.key == (system, split, group, claim["metric"], None))


def _tested(reports: Sequence[Report], claim: Mapping[str, str]) -> dict[str, Any]:
    """The row that tests the two systems of a claim."""
    names = {claim["better"], claim["other"]}
    test = dict(part.split("=") for part in claim["test"].split("; ") if part)
    lower = reports[0].name == PERPLEXITY
    rows = (
        reports[0].tables["gains"]
        if claim["test"].startswith(_WORDS)
        else comparisons_of(reports, lower=lower)
    )
    return next(
        row
        for row in rows
        if {row["a"], row["b"]} == names and all(row[key] == value for key, value in test.items())
    )
