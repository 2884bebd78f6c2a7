"""Notebook 10's experiment on a handful of claims: trained, judged, scored, resumed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.experiments import fact_verification
from cdlm_lab.experiments.fact_verification import (
    CLAIM_SYSTEMS,
    PARAMETERS,
    ClaimCorpus,
    Found,
    VerificationRun,
    VerificationSettings,
    VerifierSettings,
    claim_facts,
    facts,
    prepare_verification,
    preview_rows,
    training_facts,
    verify_claims,
    write_claim_report,
)
from cdlm_lab.experiments.runs import FineTuning
from cdlm_lab.models.joint import JointHead, load_paragraph_model, save_paragraph_model
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run, read_report

Finished = tuple[VerificationRun, Found]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> VerificationSettings:
    """With a model that was pretrained with ae_k, for no step at all."""
    folder = tmp_path_factory.mktemp("mspp")
    head = JointHead(kind="ae_k", sentences=3, length=12)
    save_paragraph_model(*load_paragraph_model("storyworld/longformer", head=head), folder / "model")
    return VerificationSettings(
        corpus=ClaimCorpus(train_stories=4, held_out_stories=2, evidence_sentences=2),
        verifiers=VerifierSettings(
            systems="pairwise-sum mspp-ae-ie",
            mspp=str(folder),
            sentence_length=12,
        ),
        training=FineTuning(seeds=2, epochs=2, batch_size=8, micro_batch_size=4),
    )


@pytest.fixture(scope="module")
def finished(settings: VerificationSettings, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    opened = open_run(tmp_path_factory.mktemp("runs") / "x", name="x", parameters=settings.parameters)
    run = prepare_verification(settings, opened.folder)
    found = verify_claims(run)
    write_claim_report(run, opened, found)
    return run, found


def test_each_system_judges_every_claim_with_each_seed(finished: Finished):
    run, found = finished
    names = ("pairwise-sum", "mspp-ae-ie")
    assert list(found) == [(name, seed) for name in names for seed in (0, 1)]
    for of_set in found.values():
        assert list(of_set) == ["dev", "test"]
        for name, one in of_set.items():
            assert one.claims == run.claims[name]
            assert one.probabilities.shape == (12, 3)
    report = read_report(run.folder)
    for name in names:
        each = [found[name, seed]["test"].right.mean() for seed in (0, 1)]
        score = report.scores[f"{name}/test/label_accuracy"]
        assert score["value"] == pytest.approx(sum(each) / 2)
        assert score["low"] <= score["value"] <= score["high"]


def test_the_pass_that_is_kept_is_the_most_accurate_on_dev(finished: Finished):
    run, found = finished
    for (name, seed), of_set in found.items():
        file = run.folder_of(CLAIM_SYSTEMS[name], seed) / "training" / "history.jsonl"
        records = [json.loads(line) for line in file.read_text().splitlines()]
        judged = [record["eval_judged"] for record in records if "eval_judged" in record]
        assert len(judged) == 2
        assert of_set["dev"].right.mean() == pytest.approx(max(judged))


def test_what_is_finished_is_not_done_again(finished: Finished, monkeypatch: pytest.MonkeyPatch):
    run, found = finished
    monkeypatch.setattr(fact_verification, "fine_tune", None)  # calling it would fail
    file = run.folder_of(CLAIM_SYSTEMS["mspp-ae-ie"], 1) / "test.jsonl"
    text = file.read_text()
    file.unlink()
    again = verify_claims(run)
    assert file.read_text() == text
    assert again["mspp-ae-ie", 1]["test"].predicted == found["mspp-ae-ie", 1]["test"].predicted
    monkeypatch.setattr(fact_verification, "predict_verdicts", None)
    verify_claims(run)


def test_seeds_differ_and_mspp_starts_from_its_own_checkpoint(finished: Finished):
    run, found = finished
    assert (found["mspp-ae-ie", 0]["dev"].probabilities != found["mspp-ae-ie", 1]["dev"].probabilities).any()
    sources = [run.settings.verifiers.source_of(CLAIM_SYSTEMS[name]) for name in ("mspp-ae-ie", "joint-ie")]
    assert sources == [f"{run.settings.verifiers.mspp}/model", "storyworld/longformer"]


def test_pairs_have_the_length_of_a_sentence_and_compact_positions(finished: Finished):
    run, _ = finished
    pairwise, joint = (run.layout_of(CLAIM_SYSTEMS[name]) for name in ("pairwise-sum", "mspp-ae-ie"))
    assert (pairwise.sentences, pairwise.length, pairwise.positions) == (3, 12, "compact")
    assert (joint.sentences, joint.length, joint.positions) == (3, 12, "strided")


def test_what_a_person_reads_before_the_start(finished: Finished):
    run, _ = finished
    told = dict(facts(run))
    assert told["precision of training"] == precision_told("auto")
    assert told["train"].startswith("24 claims in 4 groups (8 supported, 8 refuted, 8 not enough info); 2.0")
    assert "of the sentences have more than 11 pieces of words" in told["dev: cut"]
    assert "6 updates with 8 claims, about" in told["MSPP AE_k + IE_1"]
    assert told["pairwise, weighted sum"].endswith("times 2 seeds")
    roomy = replace(run, settings=replace(run.settings, verifiers=VerifierSettings(sentence_length=150)))
    assert dict(claim_facts(roomy))["test: cut"] == "nothing"
    assert "seeds" not in dict(training_facts(replace(run, settings=only_claims(run.settings))))["claim only"]


def only_claims(settings: VerificationSettings) -> VerificationSettings:
    verifiers = replace(settings.verifiers, systems="claim-only")
    return replace(settings, verifiers=verifiers, training=replace(settings.training, seeds=1))


def test_a_label_that_training_never_has_is_told(finished: Finished):
    run, _ = finished
    some = tuple(claim for claim in run.claims["train"] if claim.label != "not enough info")
    lacking = replace(run, claims={**run.claims, "train": some}, settings=only_claims(run.settings))
    assert lacking.labels == ("supported", "refuted", "not enough info")
    told = dict(claim_facts(lacking))
    assert told["never learned"] == "no training claim is not enough info: such claims are lost"
    assert "(8 supported, 8 refuted, 0 not enough info)" in told["train"]
    unknown = tuple(replace(claim, label=None) for claim in run.claims["test"])
    blank = replace(lacking, claims={**run.claims, "test": unknown})
    told = dict(claim_facts(blank))
    assert "12 without label, which are not scored" in told["test"]
    assert "never learned" not in told


def test_the_preview_shows_each_sentence_and_what_is_cut(finished: Finished):
    run, _ = finished
    first = run.claims["train"][0]
    claim = replace(first, text="The ferry sank.", evidence=("Nobody was hurt.", f"Yes & no: {'so ' * 20}."))
    rows = preview_rows(replace(run, claims={**run.claims, "train": (claim,)}), CLAIM_SYSTEMS["mspp-ae-ie"])
    assert [row[0] for row in rows] == ["claim", "evidence 1", "evidence 2"]
    assert rows[0][1] == '<small dir="ltr">&lt;s&gt;</small> The ferry sank.'
    assert rows[1][1].startswith('<small dir="ltr">&lt;/s&gt;</small> Nobody was')
    assert "&amp; no: so so" in rows[2][1]
    pieces = run.verifier(CLAIM_SYSTEMS["mspp-ae-ie"], 0, trained=False).tokenizer.tokenize
    assert rows[2][2] == f"12, {len(pieces(' ' + claim.evidence[1])) - 11} cut"
    assert rows[1][2].isdigit() == (len(pieces(" Nobody was hurt.")) <= 11)
    alone = preview_rows(run, CLAIM_SYSTEMS["claim-only"], index=3)
    assert [row[0] for row in alone] == ["claim"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"systems": "joint-ei"}, "systems names 'joint-ei'"),
        ({"positions": "dense"}, "positions is 'dense'; choose one of strided, compact"),
        ({"head_layers": "relu"}, "head_layers is 'relu'; choose one of linear, tanh"),
        ({"sentence_length": 1}, "sentence_length is 1; it must be at least 2"),
    ],
)
def test_values_that_cannot_be(given: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        VerifierSettings(**given)


def test_what_is_missing_is_told_before_anything_is_read(
    settings: VerificationSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fact_verification, "read_claim_sets", None)  # calling it would fail
    elsewhere = replace(settings, corpus=ClaimCorpus(corpus=str(tmp_path)))
    asked = replace(settings.verifiers, systems="joint-ie mspp-ie-ae", mspp="")
    with pytest.raises(ParameterError, match=r'^mspp is ""; give a run'):
        prepare_verification(replace(elsewhere, verifiers=asked), tmp_path)
    with pytest.raises(ParameterError, match=r"^shown_system is 'mspp'; choose one of joint-ie, mspp-ie-ae$"):
        asked.shown("mspp")
    assert asked.shown("") is CLAIM_SYSTEMS["mspp-ie-ae"]
    assert asked.shown("joint-ie") is CLAIM_SYSTEMS["joint-ie"]


def test_sentences_that_no_encoder_has_room_for(settings: VerificationSettings, tmp_path: Path):
    long = replace(settings, verifiers=replace(settings.verifiers, sentence_length=400, systems="joint-ie"))
    with pytest.raises(ValueError, match="reads 512 tokens, but the sentences may have 1200 together"):
        prepare_verification(long, tmp_path)


def test_parameters_are_those_of_all_parts():
    assert {"run_folder", "corpus", "evidence", "systems", "mspp", "own_claim"} <= set(PARAMETERS)
    assert {"parallel", "workers"} <= set(PARAMETERS)
    assert len(set(PARAMETERS)) == len(PARAMETERS)
