"""A claim with its evidence and a model's verdict: the probability of each label, and each sentence's share
in the verdict (Di Liello et al. 2022, section 3.1, "Fact Verification").

Every background and every bar has a number, every mark a word; all texts are untrusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from ipywidgets import Widget

from cdlm_lab.runs import runs
from cdlm_lab.runs.opened import system_named
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.joint.claims import (
    MAJORITY,
    SHOWN_ORDER,
    Predictions,
    VerificationRun,
    label_counts,
)
from cdlm_lab.tasks.joint.examples import EncodedTexts
from cdlm_lab.tasks.joint.verifying import (
    CLAIM_SYSTEMS,
    ClaimPredictions,
    ClaimSystem,
    evidence_shares,
)
from cdlm_lab.tasks.joint.view import sentence_rows
from cdlm_lab.views import html
from cdlm_lab.views.before_training import cost_facts, facts_table
from cdlm_lab.views.browse import Leafing, has_value, right_or_wrong
from cdlm_lab.views.html import (
    visible,
)
from cdlm_lab.views.score_tables import Layout, comparison_table, counts, each, score_table
from cdlm_lab.views.tables import Cell as TableCell
from cdlm_lab.views.tables import ScoreTable, Shown, html_table, published, seeds, text_table
from cdlm_lab.views.templates import view

LABELS = {name: system.label for name, system in CLAIM_SYSTEMS.items()}


def _labels(report: Report) -> dict[str, str]:
    majority = next((row.note for row in report.rows if row.system == MAJORITY), "")
    return {MAJORITY: f"always \u201c{majority}\u201d"} | LABELS


LAYOUT = Layout(
    shown=[
        *each({"label_accuracy": "label accuracy"}),
        seeds(),
        published(
            "FEVER",
            ("mspp", "8"),
            columns=("dev label_accuracy", "label_accuracy"),
            below="paper: dev / test",
            deviations=True,
        ),
    ],
    size=counts("scored", "groups"),
    labels=_labels,
    note="Share of the claims with the right label, in per cent.",
    test="p: against pairwise reading.",
    paper="Paper: Di Liello et al. 2022, Tables 3 and 8, on FEVER, RoBERTa-base where the system "
    "does not say otherwise; in parentheses the standard deviation over runs. Not to be compared "
    "with other encoders or other claims.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClaim:
    """A claim with its evidence, and a model's prediction for it."""

    id: str  # "" = none, as for the user's own claims
    claim: str
    evidence: tuple[str, ...]  # sentences in the order of retrieval; () = none were retrieved
    probabilities: Mapping[str, float]  # label -> its predicted probability; they sum to 1
    # Share of each sentence of the evidence in the verdict, in [0, 1]; None = the model has no such shares.
    shares: tuple[float | None, ...] | None  # of a sentence None = it was not read
    gold: str | None  # the gold label; None = not known
    # How many characters of each sentence of the evidence the model has read, the first ones, 0 = it has left
    # the sentence out; None = all of all.
    read: tuple[int, ...] | None = None

    @property
    def predicted(self) -> str:
        """The label with the highest probability; of several, the first."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def right(self) -> bool | None:
        """Whether the gold label is predicted; None = the gold label is not known."""
        return None if self.gold is None else self.predicted == self.gold

    def parts(self, number: int) -> tuple[str, str]:
        """What the model has read of a sentence of the evidence, and its end that it has not."""
        end = None if self.read is None else self.read[number]
        text = self.evidence[number]
        return (text, "") if end is None else (text[:end], text[end:])

    @property
    def is_cut(self) -> bool:
        """Whether the end of some sentence of the evidence was not read."""
        return any(self.parts(number)[1].strip() for number in range(len(self.evidence)))


def verdict_html(read: ReadClaim, *, shares: str) -> str:
    """Return the claim, the labels with their probabilities, and the evidence, each sentence on a blue that
    is deeper for a larger share in the verdict. `shares`: what the legend calls these shares (plain text)."""
    return view("claim", "tasks/joint/claim.html.jinja", read=read, shares=shares)


def verdicts_page(reads: Sequence[ReadClaim], *, title: str, shares: str) -> str:
    """Return a page with all claims, in the order given."""
    facts = html.right_of_known((read.right for read in reads), "{} of {} verdicts right")
    return html.page_of(reads, partial(verdict_html, shares=shares), noun="claim", facts=facts, title=title)


def shown_claims(
    predictions: ClaimPredictions, shares: Sequence[tuple[float, ...] | None] | None
) -> list[ReadClaim]:
    """Each claim with its evidence and verdict; `shares`: of the evidence, None = unknown."""
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


LOOKED_AT = 500  # claims per set that are tokenised for the preview


def preview(run: VerificationRun) -> Shown:
    """The claims of each set, and what training will cost."""
    return facts_table([*claim_facts(run), *cost_facts(run)])


def claim_facts(run: VerificationRun) -> list[tuple[str, str]]:
    """Counts of the claims, how much is truncated, and labels that cannot be learned, as (name, text)."""
    tokenizer = run.shown_reader(run.systems[0]).tokenizer
    rows = []
    for name, claims in run.claims.items():
        counts = label_counts(claims, run.labels)
        labels = ", ".join(f"{count:,} {label}" for label, count in counts.items())
        if unknown := len(claims) - sum(counts.values()):
            labels += f", {unknown:,} without label, which are not scored"
        evidence = [len(claim.evidence) for claim in claims]
        text = (
            f"{len(claims):,} claims in {len({claim.group for claim in claims}):,} groups ({labels}); "
            f"{np.mean(evidence):.1f} sentences of evidence each, {evidence.count(0):,} claims without"
        )
        encoded = EncodedTexts(claims[:LOOKED_AT], tokenizer)
        rows += [(name, text), (f"{name}: cut", _what_is_cut(encoded, run.settings.sentence_length))]
    never = [label for label, count in label_counts(run.claims["train"], run.labels).items() if not count]
    if never:
        rows.append(("never learned", f"no training claim is {', '.join(never)}: such claims are lost"))
    return rows


def _what_is_cut(encoded: EncodedTexts, length: int) -> str:
    sizes = np.array([len(pieces) for name in encoded for pieces in encoded[name]])
    lost = np.maximum(sizes - (length - 1), 0)
    if not lost.any():
        return "nothing"
    return (
        f"{(lost > 0).mean():.0%} of the sentences have more than {length - 1} pieces of words and lose "
        f"their end, {lost.sum() / sizes.sum():.0%} of all pieces (of {len(encoded):,} claims looked at)"
    )


def example(run: VerificationRun, system: str = "") -> Shown:
    """The first training claim as a system reads it; "" = the last one of the table."""
    columns = ["", "what is read", "tokens", "positions"]
    return html_table(columns, example_rows(run, system_named(system, run.systems)), texts=2)


def example_rows(run: VerificationRun, system: ClaimSystem, *, index: int = 0) -> list[list[str]]:
    """A training claim, then each evidence sentence that is read, as rows of HTML cells."""
    verifier = run.shown_reader(system)
    sequence = verifier.examples([run.claims["train"][index]]).describe(0)
    return [
        [f"evidence {number}" if number else "claim", *cells]
        for number, *cells in sentence_rows(verifier.tokenizer, sequence)
    ]


SET_NAMES = {"symmetric": "FeverSymmetric"}


def score_tables(report: Report) -> list[ScoreTable]:
    """A table of label accuracy for each scored set: the majority label, then the systems."""
    corpus = Path(report.data["corpus"]).name
    captions = {name: f"Claims verified: {corpus}, {SET_NAMES.get(name, name)}" for name in SHOWN_ORDER}
    return [
        score_table(report, LAYOUT, split=name, caption=caption)
        for name, caption in captions.items()
        if name in report.data["scored"]
    ]


def shown_set(report: Report) -> str:
    """The set whose tests and mistakes are shown: test if it has labels, else dev."""
    return "test" if "test" in report.data["scored"] else "dev"


def comparisons(report: Report) -> ScoreTable:
    """The significance tests between systems on the shown set."""
    name, measures = shown_set(report), {"label_accuracy": "difference [95%]"}
    return comparison_table(report, LABELS, measures, split=name, first=f"on {name}")


def mistakes(report: Report) -> ScoreTable:
    """For each system and gold label on the shown set, the percentage of claims predicted as each label."""
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
        cells = [TableCell(text=share, best=label == gold) for label, share in shares.items()]
        rows.append([CLAIM_SYSTEMS[system].label, gold, f"{claims:,}", *cells])
    return text_table(["system", "gold label", "claims", *labels], rows, texts=2)


MOST_SHOWN = 300  # claims in the browser: for the shares, a joint model rereads each once per sentence


ON_A_PAGE = 50


def verdicts(run: VerificationRun, predictions: Predictions, system: str = "") -> Widget:
    """A browser of the first MOST_SHOWN dev claims with the verdicts of a system (seed 0), "" = the last one
    of the table; the first ON_A_PAGE also go to `verdicts.html`, which opens without a kernel."""
    shown = system_named(system, run.systems)
    reads = read_verdicts(run, shown, predictions[shown.name, 0]["dev"])
    title = f"Claims and verdicts: {shown.label}"
    page = verdicts_page(reads[:ON_A_PAGE], title=title, shares=shown.shares)
    runs.write_page(run.folder / "verdicts.html", page)
    return verdict_browser(reads, shares=shown.shares)


def read_verdicts(
    run: VerificationRun, system: ClaimSystem, predictions: ClaimPredictions
) -> list[ReadClaim]:
    """The first MOST_SHOWN dev claims, each with its evidence and the share of each sentence."""
    claims, shares = predictions.claims[:MOST_SHOWN], None
    some = replace(predictions, claims=claims, probabilities=predictions.probabilities[:MOST_SHOWN])
    if system.reads_evidence:
        file = run.folder_of(Training(system, 0)) / "dev_shares.npy"
        form = {"precision": run.settings.precision, "name": f"{system.label}: shares of the evidence"}
        shares = evidence_shares(run.loaded(system), claims, file=file, **form)
    return shown_claims(some, shares)


def verdict_browser(reads: Sequence[ReadClaim], *, shares: str) -> Leafing:
    """Browse claims by verdict, gold and predicted label; `shares`: the legend's text for sentence shares."""
    labels = list(dict.fromkeys(label for read in reads for label in read.probabilities))
    of_labels = {
        name: {visible(label): has_value(name, label) for label in labels} for name in ("gold", "predicted")
    }
    return Leafing(
        reads,
        noun="claim",
        filters={"verdict": right_or_wrong("right")} | of_labels,
        text=lambda read: read.claim,
        right=lambda read: read.right,
        html=lambda read: verdict_html(read, shares=shares),
        wide=dict.fromkeys(of_labels, ("260px", "68px")),  # for long labels
    )
