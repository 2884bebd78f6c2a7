"""Claims read with their verdicts: of dev, kept on a page, and one of one's own by every system."""

from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.data.files import DataError
from cdlm_lab.experiments import fact_verification as verdicts
from cdlm_lab.experiments.fact_verification import (
    CLAIM_SYSTEMS,
    EXAMPLE_CLAIM,
    EXAMPLE_EVIDENCE,
    ClaimCorpus,
    VerificationRun,
    VerificationSettings,
    VerifierSettings,
    own_claim_in_place,
    own_judge,
    own_sentences,
    own_texts,
    predict_verdicts,
    prepare_verification,
    read_verdicts,
    verdicts_in_place,
)

SETTINGS = VerificationSettings(
    corpus=ClaimCorpus(train_stories=2, held_out_stories=2, evidence_sentences=3),
    verifiers=VerifierSettings(systems="claim-only pairwise-max joint-ae", sentence_length=12),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> VerificationRun:
    """As if it were trained: each system as it was drawn."""
    run = prepare_verification(SETTINGS, tmp_path_factory.mktemp("run"))
    for system in run.systems:
        made = run.verifier(system, 0, trained=False)
        made.model.save_pretrained(run.folder_of(system, 0) / "model")
        made.tokenizer.save_pretrained(run.folder_of(system, 0) / "model")
    return run


def test_claims_are_read_with_what_the_model_said(run: VerificationRun):
    for name in ("claim-only", "pairwise-max", "joint-ae"):
        system = CLAIM_SYSTEMS[name]
        said = predict_verdicts(run.verifier(system, 0, trained=True), run.claims["dev"], batch_size=4)
        reads = read_verdicts(run, system, said)
        assert [read.gold for read in reads] == [claim.label for claim in run.claims["dev"]]
        assert [read.predicted for read in reads] == said.predicted
        np.testing.assert_array_equal([read.right for read in reads], said.right)
        if name == "claim-only":
            assert {read.shares for read in reads} == {None}
        else:
            assert {len(read.shares) for read in reads} == {3}
            sums = [sum(read.shares) for read in reads]
            assert all(total == pytest.approx(1, abs=1e-4) or total == 0 for total in sums)
            assert (run.folder_of(system, 0) / "dev_shares.npy").is_file()


def test_the_first_of_many_are_shown_and_fewer_are_written(
    run: VerificationRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(verdicts, "MOST_SHOWN", 5)
    monkeypatch.setattr(verdicts, "ON_A_PAGE", 2)
    system = CLAIM_SYSTEMS["claim-only"]
    said = predict_verdicts(run.verifier(system, 0, trained=True), run.claims["dev"], batch_size=4)
    assert len(read_verdicts(run, system, said)) == 5
    assert verdicts_in_place(run, system, said, file=tmp_path / "page.html").children
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    texts = [claim.text for claim in run.claims["dev"]]
    assert [text in page for text in texts[:3]] == [True, True, False]


def test_a_claim_of_ones_own_is_judged_by_every_system(run: VerificationRun):
    box = own_claim_in_place(run, "The ferry <b>sank</b>.", "It sank at night.\n\n  Nobody was hurt. \n")
    page = (run.folder / "own_claim.html").read_text(encoding="utf-8")
    for system in run.systems:
        for html in (page, box.children[-1].value):
            assert html.count(f">{system.label}<") == 1
            assert system.shares in html
    assert "&lt;b&gt;sank" in page
    assert "<b>sank" not in page
    assert page.count("Nobody was hurt.") == 3
    judge = own_judge(run)
    with pytest.raises(ValueError, match="there are 4 sentences; the systems read 3: delete some"):
        judge("A claim.", ["one", "two", "three", "four"])


def test_shares_on_the_page_are_those_of_the_system(run: VerificationRun):
    claim = EvidencedClaim(id="", text="The ferry sank.", evidence=("It sank.",), label=None, group="")
    verifier = run.verifier(CLAIM_SYSTEMS["pairwise-max"], 0, trained=True)
    read = verdicts._judged(verifier, claim, precision="float32")
    assert (read.id, read.shares, read.gold) == ("pairwise, max", (1.0,), None)


def test_own_texts(tmp_path: Path):
    claim, evidence = own_texts("", most=5)
    assert (claim, own_sentences(evidence)) == (EXAMPLE_CLAIM, own_sentences(EXAMPLE_EVIDENCE))
    assert own_sentences(own_texts("", most=2)[1]) == own_sentences(EXAMPLE_EVIDENCE)[:2]
    assert len(own_sentences(EXAMPLE_EVIDENCE)) == 3
    file = tmp_path / "claim.txt"
    file.write_text("A claim.\nOne.\nTwo.", encoding="utf-8")
    assert own_texts(str(file), most=2) == ("A claim.", "One.\nTwo.")
    with pytest.raises(DataError, match="there are 2 sentences of evidence; the systems read 1; delete some"):
        own_texts(str(file), most=1)
    file.write_text("A claim.", encoding="utf-8")
    with pytest.raises(DataError, match="there is a claim but no sentence of evidence; write a claim on"):
        own_texts(str(file), most=2)
    with pytest.raises(DataError, match="write one sentence on each line"):
        own_sentences(" \n ")
