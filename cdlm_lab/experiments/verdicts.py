"""Claims with a model's verdict and the share that each sentence of evidence has in it: of dev, or one of
one's own, judged by every system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ipywidgets import Widget

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.data.files import DataError, read_text, replaced_file
from cdlm_lab.data.pasted_documents import filled_lines, first_and_others
from cdlm_lab.experiments.claim_predictions import ClaimPredictions, evidence_shares, predict_verdicts
from cdlm_lab.experiments.claim_systems import ClaimSystem
from cdlm_lab.experiments.claim_verifiers import Verifier
from cdlm_lab.experiments.fact_verification import VerificationRun
from cdlm_lab.models.precision import Precision
from cdlm_lab.widgets.own_candidates import EVIDENCE, own_candidates_box
from cdlm_lab.widgets.still_page import still_page
from cdlm_lab.widgets.verdict import ReadClaim, verdict_html, verdicts_page
from cdlm_lab.widgets.verdict_browser import verdict_browser

MOST_SHOWN = 300  # claims to leaf through: a joint model reads each once more for each sentence
ON_A_PAGE = 50
_PAGE_STYLE = "div.cdlm-claim{padding:0 0 22px}"
# What stands in the boxes before anything is typed.
EXAMPLE_CLAIM = "The police had 412 officers on duty."
EXAMPLE_EVIDENCE = """\
According to the police, order was kept by 412 officers, some of them called back from leave.
The ferry to Telk sails again from Monday.
A petition had gathered 11,523 signatures by noon.
"""


def verdicts_in_place(
    run: VerificationRun, system: ClaimSystem, predictions: ClaimPredictions, *, file: Path
) -> Widget:
    """The first MOST_SHOWN claims of dev to leaf through, as a system trained with seed 0 judged them; the
    first ON_A_PAGE also go to `file`, which needs no kernel. Their shares are kept in the folder of the run.

    Args:
        predictions: of dev.
    """
    reads = read_verdicts(run, system, predictions)
    title = f"Claims and verdicts: {system.label}"
    with replaced_file(file) as opened:
        opened.write(verdicts_page(reads[:ON_A_PAGE], title=title, shares=system.shares))
    return verdict_browser(reads, shares=system.shares)


def read_verdicts(
    run: VerificationRun, system: ClaimSystem, predictions: ClaimPredictions
) -> list[ReadClaim]:
    """The first MOST_SHOWN claims of dev, each with its evidence and its shares; arguments as of
    `verdicts_in_place`."""
    claims, shares = predictions.claims[:MOST_SHOWN], None
    if system.reads_evidence:
        shares = evidence_shares(
            run.verifier(system, 0, trained=True).on_device(),
            claims,
            file=run.folder_of(system, 0) / "dev_shares.npy",
            precision=run.settings.training.precision,
            name=f"{system.label}: shares of the evidence",
        )
    return [
        _read(claim, dict(zip(predictions.labels, row.tolist(), strict=True)), shares and shares[number])
        for number, (claim, row) in enumerate(zip(claims, predictions.probabilities, strict=False))
    ]


def own_claim_in_place(run: VerificationRun, claim: str, evidence: str) -> Widget:
    """Boxes for a claim and its evidence, and the verdict of every system trained with seed 0, that on what
    stands in the boxes at first included.

    Raises ValueError if these cannot be read.
    """
    judge = own_judge(run)
    return own_candidates_box(
        judge,
        asked=claim,
        candidates=evidence,
        words=EVIDENCE,
        answered=judge(claim, own_sentences(evidence)),
    )


def own_judge(run: VerificationRun) -> Callable[[str, Sequence[str]], str]:
    """From a claim and sentences to HTML: the verdict of every system. The models are loaded when they are
    first needed; the verdicts are also written to `own_claim.html` in the folder of the run.

    The function raises ValueError for more sentences than the systems read.
    """
    verifiers: list[Verifier] = []

    def judge(text: str, sentences: Sequence[str]) -> str:
        most = run.settings.corpus.evidence_sentences
        if len(sentences) > most:
            raise ValueError(f"there are {len(sentences)} sentences; the systems read {most}: delete some")
        claim = EvidencedClaim(id="", text=text, evidence=tuple(sentences), label=None, group="")
        if not verifiers:
            verifiers.extend(run.verifier(system, 0, trained=True).on_device() for system in run.systems)
        precision = run.settings.training.precision
        html = "".join(
            verdict_html(_judged(verifier, claim, precision=precision), shares=verifier.system.shares)
            for verifier in verifiers
        )
        with replaced_file(run.folder / "own_claim.html") as opened:
            note = f"as judged by {', '.join(verifier.system.label for verifier in verifiers)}"
            opened.write(still_page(html, title=text, note=note, style=_PAGE_STYLE))
        return html

    return judge


def own_texts(file: str, *, most: int) -> tuple[str, str]:
    """A claim and evidence, a sentence a line, from a text file with the claim on the first; the example if
    `file` is "".

    Args:
        most: sentences that the systems read.

    Raises:
        DataError: more sentences; as of `read_text` and `first_and_others`.
    """
    if not file:
        return EXAMPLE_CLAIM, "\n".join(own_sentences(EXAMPLE_EVIDENCE)[:most])
    claim, evidence = first_and_others(
        read_text(file), source=file, first="a claim", other="sentence of evidence"
    )
    if (given := len(own_sentences(evidence))) > most:
        what = f"there are {given} sentences of evidence; the systems read {most}"
        raise DataError(file, what, "delete some, or raise evidence_sentences", field="evidence")
    return claim, evidence


def own_sentences(text: str) -> list[str]:
    """The lines of a text that are not empty. Raises DataError if there are none."""
    return filled_lines(text, source="evidence", remedy="write one sentence on each line")


def _judged(verifier: Verifier, claim: EvidencedClaim, *, precision: Precision) -> ReadClaim:
    """By one system, whose label stands for an id."""
    found = predict_verdicts(verifier, [claim], batch_size=1, precision=precision)
    probabilities = dict(zip(found.labels, found.probabilities[0].tolist(), strict=True))
    shares = None
    if verifier.system.reads_evidence:
        (shares,) = evidence_shares(verifier, [claim], precision=precision)
    return _read(claim, probabilities, shares, name=verifier.system.label)


def _read(
    claim: EvidencedClaim,
    probabilities: dict[str, float],
    shares: tuple[float, ...] | None,
    *,
    name: str | None = None,
) -> ReadClaim:
    return ReadClaim(
        id=claim.id if name is None else name,
        claim=claim.text,
        evidence=claim.evidence,
        probabilities=probabilities,
        shares=shares,
        gold=claim.label,
    )
