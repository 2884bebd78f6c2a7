"""What notebook 10 shows: tables of its report, claims with verdicts and shares of the evidence, and one of
one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ipywidgets import Widget

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.data.typed_documents import filled_lines, first_and_others
from cdlm_lab.experiments.runs import SystemRun, Training, write_page
from cdlm_lab.experiments.scoring import comparison_cells
from cdlm_lab.experiments.systems.joint import JointSettings
from cdlm_lab.experiments.systems.verifying import (
    CLAIM_SYSTEMS,
    ClaimPredictions,
    ClaimSystem,
    Verifier,
    evidence_shares,
    predict_verdicts,
)
from cdlm_lab.models.precision import Precision
from cdlm_lab.report import Report
from cdlm_lab.widgets.ask import EVIDENCE, own_candidates_box
from cdlm_lab.widgets.browse import verdict_browser
from cdlm_lab.widgets.html import still_page
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.tables import Cell, ScoreTable, text_table
from cdlm_lab.widgets.verdicts import ReadClaim, verdict_html, verdicts_page

MAJORITY = "majority"
SHOWN_ORDER = ("test", "symmetric", "dev")
SET_NAMES = {"symmetric": "FeverSymmetric"}
Predictions = Mapping[tuple[str, int], Mapping[str, ClaimPredictions]]  # (system, seed) -> set


def score_tables(report: Report) -> list[ScoreTable]:
    """A table of label accuracy for each set that is scored: the most frequent label, then the systems."""
    corpus = Path(report.data["corpus"]).name
    best = next(row.note for row in report.rows if row.system == MAJORITY)
    labels = {MAJORITY: f"always \u201c{best}\u201d"}
    labels |= {name: system.label for name, system in CLAIM_SYSTEMS.items()}
    captions = {name: f"Claims verified: {corpus}, {SET_NAMES.get(name, name)}" for name in SHOWN_ORDER}
    return [
        score_table(report, labels=labels, split=name, caption=caption)
        for name, caption in captions.items()
        if name in report.data["scored"]
    ]


def shown_set(report: Report) -> str:
    """The set whose tests and mistakes are shown: test, if it has labels, else dev."""
    return "test" if "test" in report.data["scored"] else "dev"


def comparisons(report: Report) -> ScoreTable:
    """The tests between systems on the shown set."""
    name = shown_set(report)
    rows = [
        [*(CLAIM_SYSTEMS[row[side]].label for side in "ab"), *comparison_cells(row)]
        for row in report.tables["comparisons"]
        if row["split"] == name
    ]
    columns = [f"on {name}", "against", "difference [95%]", "p (Holm)", "p over seeds"]
    return text_table(columns, rows, texts=2)


def mistakes(report: Report) -> ScoreTable:
    """Of each system and gold label on the shown set, the share of claims that is given each label."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    seeds: Counter[tuple[str, str]] = Counter()
    for row in report.tables["confusion"]:
        if row["split"] == shown_set(report):
            key = row["system"], row["gold"]
            counts.setdefault(key, Counter()).update(row["predicted"])
            seeds[key] += 1
    labels = [*dict.fromkeys(label for shares in counts.values() for label in shares)]
    order = [*CLAIM_SYSTEMS]
    rows = []
    for (system, gold), of_label in sorted(counts.items(), key=lambda item: order.index(item[0][0])):
        claims = of_label.total() // seeds[system, gold]
        shares = {label: f"{100 * of_label[label] / of_label.total():.1f}" for label in labels}
        cells = [Cell(text=share, best=label == gold) for label, share in shares.items()]
        rows.append([CLAIM_SYSTEMS[system].label, gold, f"{claims:,}", *cells])
    return text_table(["system", "gold label", "claims", *labels], rows, texts=2)


MOST_SHOWN = 300  # claims to leaf through: a joint model reads each once more for each sentence
ON_A_PAGE = 50
# What stands in the boxes before anything is typed.
EXAMPLE_CLAIM = "The police had 412 officers on duty."
EXAMPLE_EVIDENCE = """\
According to the police, order was kept by 412 officers, some of them called back from leave.
The ferry to Telk sails again from Monday.
A petition had gathered 11,523 signatures by noon.
"""


def verdicts(run: SystemRun, predictions: Predictions) -> Widget:
    """The first MOST_SHOWN claims of dev to leaf through, as the shown system with seed 0 judged them; the
    first ON_A_PAGE also go to `verdicts.html`, which needs no kernel."""
    system = run.settings.shown
    reads = read_verdicts(run, system, predictions[system.name, 0]["dev"])
    title = f"Claims and verdicts: {system.label}"
    page = verdicts_page(reads[:ON_A_PAGE], title=title, shares=system.shares)
    write_page(run.folder / "verdicts.html", page)
    return verdict_browser(reads, shares=system.shares)


def read_verdicts(run: SystemRun, system: ClaimSystem, predictions: ClaimPredictions) -> list[ReadClaim]:
    """The first MOST_SHOWN claims of dev, each with its evidence and its shares."""
    claims, shares = predictions.claims[:MOST_SHOWN], None
    some = replace(predictions, claims=claims, probabilities=predictions.probabilities[:MOST_SHOWN])
    if system.reads_evidence:
        file = run.folder_of(Training(system, 0)) / "dev_shares.npy"
        form = {"precision": run.settings.precision, "name": f"{system.label}: shares of the evidence"}
        shares = evidence_shares(run.loaded(system), claims, file=file, **form)
    return read_claims(some, shares)


def read_claims(predictions: ClaimPredictions, shares: Sequence[tuple[float, ...]] | None) -> list[ReadClaim]:
    """Each claim with its evidence and verdict; `shares`: of the evidence, None = not known."""
    return [
        ReadClaim(
            id=claim.id,
            claim=claim.text,
            evidence=claim.evidence,
            probabilities=dict(zip(predictions.labels, row.tolist(), strict=True)),
            shares=shares and shares[number],
            gold=claim.label,
        )
        for number, (claim, row) in enumerate(zip(predictions.claims, predictions.probabilities, strict=True))
    ]


def own_claim(run: SystemRun) -> Widget:
    """Boxes for a claim and its evidence, and the verdict of every system."""
    claim, evidence = own_texts(run.settings)
    texts = {"query": claim, "candidates": evidence, "words": EVIDENCE}
    answered = judge_own(run, claim, own_sentences(evidence))
    return own_candidates_box(partial(judge_own, run), **texts, answered=answered)


def judge_own(run: SystemRun, text: str, sentences: Sequence[str]) -> str:
    """The verdict of every system with seed 0 on a claim, as HTML, also in `own_claim.html`. Raises
    ValueError for more sentences than the systems read."""
    most, precision = run.settings.evidence_sentences, run.settings.precision
    if len(sentences) > most:
        raise ValueError(f"there are {len(sentences)} sentences; the systems read {most}: delete some")
    verifiers = map(run.loaded, run.systems)
    html = "".join(
        verdict_html(judged_own(one, text, sentences, precision=precision), shares=one.system.shares)
        for one in verifiers
    )
    note = f"as judged by {', '.join(system.label for system in run.systems)}"
    page = still_page(html, title=text, note=note, style="div.cdlm-claim{padding:0 0 22px}")
    write_page(run.folder / "own_claim.html", page)
    return html


def judged_own(verifier: Verifier, text: str, sentences: Sequence[str], *, precision: Precision) -> ReadClaim:
    """The verdict of one system, whose label stands for an id."""
    claim = EvidencedClaim(id="", text=text, evidence=tuple(sentences), label=None, group="")
    predictions = predict_verdicts(verifier, [claim], batch_size=1, precision=precision)
    reads = verifier.system.reads_evidence
    shares = evidence_shares(verifier, [claim], precision=precision) if reads else None
    return replace(read_claims(predictions, shares)[0], id=verifier.system.label)


def own_texts(settings: JointSettings) -> tuple[str, str]:
    """A claim and evidence, a sentence a line, from the text file `own_claim`, or the example."""
    most, file = settings.evidence_sentences, settings.own_claim
    if not file:
        return EXAMPLE_CLAIM, "\n".join(own_sentences(EXAMPLE_EVIDENCE)[:most])
    form = {"source": file, "first": "a claim", "other": "sentence of evidence"}
    claim, evidence = first_and_others(read_text(file), **form)
    if (count := len(own_sentences(evidence))) > most:
        what = f"there are {count} sentences of evidence; the systems read {most}"
        raise DataError(file, what, "delete some, or raise evidence_sentences", field="evidence")
    return claim, evidence


def own_sentences(text: str) -> list[str]:
    """The lines of a text that are not empty. Raises DataError if there are none."""
    return filled_lines(text, source="evidence", remedy="write one sentence on each line")
