"""Notebook 10's experiment: claims in sets, systems, verdicts and shares by hand; then on a
handful of claims trained, judged, scored, resumed and shown."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.data.files import DataError
from cdlm_lab.experiments import fact_verification, runs
from cdlm_lab.experiments.fact_verification import (
    CLAIM_SYSTEMS,
    Settings,
    VerificationRun,
    claim_facts,
    label_counts,
    labels_of,
    majority_label,
    read_claim_sets,
)
from cdlm_lab.experiments.runs import Training, cost_facts
from cdlm_lab.experiments.systems import verifying
from cdlm_lab.experiments.systems.verifying import (
    ClaimPredictions,
    Verifier,
    compared_pairs,
    evidence_shares,
    predict_verdicts,
)
from cdlm_lab.experiments.views import claims as views
from cdlm_lab.experiments.views.claims import EXAMPLE_CLAIM, EXAMPLE_EVIDENCE, own_sentences, own_texts
from cdlm_lab.models.joint import JointHead, load_paragraph_model, save_paragraph_model
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import read_report

SOME = ("SUPPORTS", "REFUTES")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"evidence": "golden"}, "evidence is 'golden'; it must be one of 'retrieved', 'gold'"),
        ({"evidence": "gold"}, "evidence is 'gold'; storyworld has retrieved alone"),
        ({"evidence_sentences": 0}, "evidence_sentences is 0; it must be at least 1"),
        ({"train_stories": 1}, "train_stories is 1; it must be at least 2"),
        ({"held_out_claims": -1}, "held_out_claims is -1; it must be at least 0"),
        ({"systems": "joint-ei"}, "systems names 'joint-ei'; choose among claim-only, pairwise-max"),
        ({"systems": "mspp-ie"}, "systems names 'mspp-ie'; choose among claim-only, pairwise-max"),
        ({"systems": " "}, "systems names nothing; choose among"),
        ({"positions": "dense"}, "positions is 'dense'; it must be one of 'strided', 'compact'"),
        ({"head_layers": "relu"}, "head_layers is 'relu'; it must be one of 'linear', 'tanh'"),
        ({"sentence_length": 1}, "sentence_length is 1; it must be at least 2"),
        (
            {"shown_system": "mspp"},
            "^shown_system is 'mspp'; choose one of claim-only, pairwise-sum, joint-ie$",
        ),
        ({"parallel": "4"}, "parallel is '4'; write"),
        ({"seeds": 0}, "seeds is 0; it must be at least 1"),
    ],
)
def test_values_that_cannot_be(given: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        Settings(**given)


def test_the_last_system_is_shown_or_the_one_that_is_named():
    assert Settings().shown is CLAIM_SYSTEMS["joint-ie"]
    assert Settings(shown_system="claim-only").shown is CLAIM_SYSTEMS["claim-only"]


# ---- claims ----


def fever(folder: Path, split: str, labels: Sequence[str | None], *, first: int = 0) -> None:
    """A claim of each label, each of a page of its own, with seven sentences."""
    records = [
        {
            "id": first + number,
            "claim": f"claim {number}",
            "evidence": [[f"Page {first + number}", 0, f"s{place}", 1] for place in range(7)],
            **({} if label is None else {"label": label}),
        }
        for number, label in enumerate(labels)
    ]
    write_lines(folder / f"bert_{split}.json", records)


def symmetric(folder: Path) -> None:
    records = [{"id": str(n), "claim": "c", "evidence": "e", "label": label} for n, label in enumerate(SOME)]
    write_lines(folder / "fever_symmetric_test.jsonl", records)


def write_lines(file: Path, records: Sequence[dict]) -> None:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split, labels in (("train", [*SOME, "REFUTES"]), ("dev", SOME), ("test", [None, None])):
        fever(tmp_path, split, labels, first=100 * len(split))
    return tmp_path


def test_storyworld():
    claims = read_claim_sets(Settings(train_stories=3, held_out_stories=2, evidence_sentences=4))
    groups = {name: len({claim.group for claim in of_set}) for name, of_set in claims.items()}
    assert groups == {"train": 3, "dev": 2, "test": 2}
    assert labels_of(claims) == ("supported", "refuted", "not enough info")
    assert {len(claim.evidence) for of_set in claims.values() for claim in of_set} == {4}


def test_files_with_the_symmetric_set_beside_them(folder: Path):
    assert list(read_claim_sets(Settings(corpus=str(folder)))) == ["train", "dev", "test"]
    symmetric(folder)
    claims = read_claim_sets(Settings(corpus=str(folder), evidence_sentences=3))
    assert list(claims) == ["train", "dev", "test", "symmetric"]
    assert [len(claim.evidence) for claim in claims["dev"]] == [3, 3]
    assert [claim.label for claim in claims["test"]] == [None, None]
    assert majority_label(claims) == "refuted"


def test_two_labels_or_three_and_one_that_training_never_has(folder: Path):
    assert labels_of(read_claim_sets(Settings(corpus=str(folder)))) == ("supported", "refuted")
    fever(folder, "dev", ["SUPPORTS", "NOT ENOUGH INFO"], first=900)
    claims = read_claim_sets(Settings(corpus=str(folder)))
    labels = labels_of(claims)
    assert label_counts(claims["train"], labels) == {"supported": 1, "refuted": 2, "not enough info": 0}
    assert label_counts(claims["dev"], labels) == {"supported": 1, "refuted": 0, "not enough info": 1}


def test_draws_are_the_same_ones_in_order_and_do_not_follow_labels():
    every = read_claim_sets(Settings(train_stories=20, held_out_stories=3))
    some = Settings(train_stories=20, held_out_stories=3, train_claims=20, held_out_claims=4)
    drawn = read_claim_sets(some)
    assert {name: len(claims) for name, claims in drawn.items()} == {"train": 20, "dev": 4, "test": 4}
    for name, claims in drawn.items():
        places = [every[name].index(claim) for claim in claims]
        assert places == sorted(places)
        assert places != list(range(len(places)))
    assert read_claim_sets(some) == drawn
    assert min(Counter(claim.label for claim in drawn["train"]).values()) >= 3


def test_most_frequent_label_of_training_ties_go_to_the_first(folder: Path):
    fever(folder, "train", ["NOT ENOUGH INFO", "REFUTES", "NOT ENOUGH INFO", "REFUTES"])
    assert majority_label(read_claim_sets(Settings(corpus=str(folder)))) == "refuted"


def test_what_cannot_be_learned_or_scored(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    settings = Settings(corpus=str(folder))
    fever(folder, "dev", ["SUPPORTS", None], first=500)
    with pytest.raises(ParameterError, match=r"claim 501 of dev has no label, which training needs"):
        read_claim_sets(settings)
    fever(folder, "dev", ["SUPPORTS"])
    with pytest.raises(ParameterError, match=r"all claims of dev are of 'Page 0'; intervals need"):
        read_claim_sets(settings)
    fever(folder, "dev", SOME)
    fever(folder, "train", ["REFUTES", "REFUTES"])
    with pytest.raises(ParameterError, match="all claims of train are refuted; there is nothing to learn"):
        read_claim_sets(settings)
    alone = tmp_path_factory.mktemp("symmetric")
    symmetric(alone)
    with pytest.raises(DataError, match="no claims for train here, but for symmetric"):
        read_claim_sets(Settings(corpus=str(alone)))


# ---- systems ----


def test_systems_come_in_the_order_of_the_tables():
    chosen = Settings(systems="mspp-ae-ie  joint-ie pairwise-max", mspp="x").chosen
    assert [system.name for system in chosen] == ["pairwise-max", "joint-ie", "mspp-ae-ie"]
    assert (chosen[2].pretrained, chosen[2].head) == ("ae", "ie_1")
    assert chosen[2].label == "MSPP AE_k + IE_1"


def test_joint_systems_are_tested_against_pairwise_mspp_against_its_head_and_all_against_claims_alone():
    def pairs(names: str) -> dict[str, list[tuple[str, str]]]:
        return {why: found for why, found in compared_pairs(Settings(systems=names).chosen).items() if found}

    assert pairs("claim-only pairwise-max pairwise-sum joint-ie joint-ae mspp-ie-ae") == {
        "evidence": [
            (name, "claim-only")
            for name in ("pairwise-max", "pairwise-sum", "joint-ie", "joint-ae", "mspp-ie-ae")
        ],
        "joint reading": [(name, "pairwise-sum") for name in ("joint-ie", "joint-ae", "mspp-ie-ae")],
        "pre-training": [("mspp-ie-ae", "joint-ae")],
    }
    assert pairs("joint-ie mspp-ie-ae pairwise-max") == {
        "joint reading": [("joint-ie", "pairwise-max"), ("mspp-ie-ae", "pairwise-max")]
    }
    assert pairs("claim-only") == {}


# ---- verdicts and shares ----

SENTENCES = ("The ferry sank at night.", "Nobody was hurt.", "The mayor came from Telk to see it all.")
# The second has no evidence, the fourth more than is read.
CLAIMS = [
    EvidencedClaim(id=f"c{n}", text=text, evidence=evidence, label=label, group=f"g{n // 2}")
    for n, (text, evidence, label) in enumerate(
        (
            ("The ferry sank.", SENTENCES, "supported"),
            ("A storm.", (), "refuted"),
            ("Twelve people were hurt when the ferry sank.", SENTENCES[1:2], "not enough info"),
            ("The mayor stayed at home.", (*SENTENCES[::-1], "Soup."), None),
        )
    )
]


def loaded(name: str) -> Verifier:
    settings = Settings(evidence_sentences=3, sentence_length=8)
    return VerificationRun(settings=settings, claims={"train": CLAIMS}).reader(CLAIM_SYSTEMS[name])


@pytest.fixture(scope="module", params=["pairwise-max", "pairwise-sum", "joint-ae", "claim-only"])
def verifier(request: pytest.FixtureRequest) -> Verifier:
    return loaded(request.param)


class Votes(nn.Module):
    """In place of a joint model: a sentence of evidence votes for or against the first label, by number."""

    def __init__(self, votes: tuple[float, ...]) -> None:
        super().__init__()
        self.votes = nn.Parameter(torch.tensor([0.0, *votes]))
        self.read: list[dict[str, torch.Tensor]] = []

    def forward(self, starts: torch.Tensor, **batch: torch.Tensor) -> SimpleNamespace:
        self.read.append(batch | {"starts": starts})
        first = ((starts >= 0) * self.votes).sum(1)
        return SimpleNamespace(logits=torch.stack([first, torch.zeros_like(first)], dim=1))


def voting(*votes: float) -> Verifier:
    return replace(loaded("joint-ie"), model=Votes(votes), labels=LABELS[:2])


def test_verdicts_are_those_of_each_claim_by_itself(verifier: Verifier):
    together = predict_verdicts(verifier, CLAIMS, batch_size=4)
    assert [claim.id for claim in together.claims] == ["c0", "c1", "c2", "c3"]
    np.testing.assert_allclose(together.probabilities.sum(1), 1)
    assert together.probabilities.std(axis=0).min() > 1e-4, "claims differ, or the test says nothing"
    for batch_size in (1, 3):
        apart = predict_verdicts(verifier, CLAIMS, batch_size=batch_size)
        np.testing.assert_allclose(apart.probabilities, together.probabilities, rtol=1e-4)


def test_claim_only_does_not_see_evidence_and_the_others_do(verifier: Verifier):
    other = [replace(claim, evidence=("Soup.",)) for claim in CLAIMS]
    before, after = (
        predict_verdicts(verifier, claims, batch_size=4).probabilities[0] for claims in (CLAIMS, other)
    )
    assert np.allclose(before, after) == (verifier.system.name == "claim-only")


def test_what_is_predicted_and_what_is_right():
    rows = [[0.5, 0.2, 0.3], [0.4, 0.2, 0.4], [0.1, 0.2, 0.7], [0.1, 0.1, 0.8]]
    predictions = ClaimPredictions(claims=CLAIMS, labels=LABELS, probabilities=np.array(rows))
    assert predictions.predicted == ["supported", "supported", "not enough info", "not enough info"]
    assert predictions.right.tolist() == [True, False, True, False], "the label of the last is not known"


def test_verdicts_come_back_from_disk_and_not_for_other_claims_or_labels(verifier: Verifier, tmp_path: Path):
    predictions = predict_verdicts(verifier, CLAIMS, batch_size=2)
    file = tmp_path / "new" / "dev.jsonl"
    predictions.save(file)
    again = ClaimPredictions.load(file, claims=CLAIMS, labels=LABELS)
    np.testing.assert_array_equal(again.probabilities, predictions.probabilities)
    row = json.loads(file.read_text().splitlines()[2])
    assert (row["id"], row["predicted"]) == ("c2", predictions.predicted[2])
    assert row["probabilities"]["refuted"] == predictions.probabilities[2, 1]
    for claims, labels in ((CLAIMS[::-1], LABELS), (CLAIMS[:3], LABELS), (CLAIMS, LABELS[:2])):
        with pytest.raises(ValueError, match="is of other claims, so of another run"):
            ClaimPredictions.load(file, claims=claims, labels=labels)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def test_shares_of_a_joint_model_are_falls_by_hand():
    """All three: 2 + 1 - 1 for the first label; without the first 0, the second 1, the third 3. They are
    of the label that is predicted with all of the evidence: at 1 - 2 < 0 only what votes against the first
    is missed."""
    (shares,) = evidence_shares(voting(2, 1, -1), CLAIMS[:1])
    falls = [log_sigmoid(2) - log_sigmoid(0), log_sigmoid(2) - log_sigmoid(1), 0]
    assert shares == pytest.approx([fall / sum(falls) for fall in falls], rel=1e-5)
    assert shares == pytest.approx([0.7524, 0.2476, 0], abs=1e-4)
    assert evidence_shares(voting(1, -2, 0), CLAIMS[:1]) == [(0, 1, 0)]
    assert evidence_shares(voting(0, 0, 0), CLAIMS[:1]) == [(0, 0, 0)]


def test_a_sentence_is_left_out_and_nothing_else_moves():
    verifier = voting(2, 1, -1)
    evidence_shares(verifier, CLAIMS[:1])
    (batch,) = verifier.model.read
    keys = ("token_type_ids", "position_ids", "input_ids")
    rows = [
        {
            token[:3]
            for token in zip(*(batch[key][row].tolist() for key in (*keys, "attention_mask")), strict=True)
            if token[3]
        }
        for row in range(4)
    ]
    for left_out in (1, 2, 3):
        assert rows[left_out] == {token for token in rows[0] if token[0] != left_out}
        assert len(rows[left_out]) < len(rows[0])


@pytest.mark.parametrize("name", ["pairwise-max", "pairwise-sum"])
def test_shares_of_pairwise_systems_are_the_models_own(name: str):
    verifier = loaded(name)
    shares, examples = evidence_shares(verifier, CLAIMS), verifier.examples(CLAIMS)
    batch = verifier.collate([examples[number] for number in range(4)])
    with torch.no_grad():
        output = verifier.model(**{key: tensor for key, tensor in batch.items() if key != "labels"})
    assert [len(of_claim) for of_claim in shares] == [3, 0, 1, 3]
    for number in (0, 2, 3):
        assert shares[number] == pytest.approx(output.shares[batch["claim"] == number].tolist(), abs=1e-4)
        assert sum(shares[number]) == pytest.approx(1, abs=1e-4)


def test_shares_are_kept_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, verifier, original, read = tmp_path / "shares.npy", voting(2, 1, -1), verifying._shares, []

    def stopped(*given: object) -> np.ndarray:
        if given[2] == 2:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(verifying, "_shares", stopped)
    with pytest.raises(KeyboardInterrupt):
        evidence_shares(verifier, CLAIMS, file=file)
    monkeypatch.setattr(verifying, "_shares", lambda *given: read.append(given[2]) or original(*given))
    again = evidence_shares(verifier, CLAIMS, file=file)
    assert read == [2, 3], "the first two were kept"
    assert again == evidence_shares(verifier, CLAIMS)
    assert again[1] == ()
    with pytest.raises(ValueError, match=r"holds numbers of shape \(4, 3\), but there are \(2, 3\)"):
        evidence_shares(verifier, CLAIMS[:2], file=file)


# ---- a run ----

Finished = tuple[VerificationRun, dict[tuple[str, int], dict[str, ClaimPredictions]]]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """With a model that was pretrained with ae_k, for no step at all."""
    folder = tmp_path_factory.mktemp("mspp")
    head = JointHead(kind="ae_k", sentences=3, length=12)
    save_paragraph_model(*load_paragraph_model("storyworld/longformer", head=head), folder / "model")
    return Settings(
        run_folder=str(tmp_path_factory.mktemp("runs") / "x"),
        train_stories=4,
        held_out_stories=2,
        evidence_sentences=2,
        systems="pairwise-sum mspp-ae-ie claim-only",
        mspp=str(folder),
        sentence_length=12,
        seeds=2,
        batch_size=8,
        micro_batch_size=4,
    )


@pytest.fixture(scope="module")
def finished(settings: Settings) -> Finished:
    run = fact_verification.prepare(settings)
    fact_verification.train(run)
    predictions = fact_verification.predict(run)
    fact_verification.report(run, fact_verification.evaluate(run, predictions))
    return run, predictions


def test_each_system_judges_every_claim_with_each_seed(finished: Finished):
    run, predictions = finished
    names = ("claim-only", "pairwise-sum", "mspp-ae-ie")
    assert list(predictions) == [(name, seed) for name in names for seed in (0, 1)]
    for of_set in predictions.values():
        assert list(of_set) == ["dev", "test"]
        for name, one in of_set.items():
            assert one.claims == run.claims[name]
            assert one.probabilities.shape == (12, 3)
    report = read_report(run.folder)
    assert report.parameters["shown_system"] == ""
    for name in names:
        each = [predictions[name, seed]["test"].right.mean() for seed in (0, 1)]
        score = report.scores[f"{name}/test/label_accuracy"]
        assert score["value"] == pytest.approx(sum(each) / 2)
        assert score["low"] <= score["value"] <= score["high"]
    assert (
        predictions[names[2], 0]["dev"].probabilities != predictions[names[2], 1]["dev"].probabilities
    ).any()


def test_the_epoch_that_is_kept_is_the_most_accurate_on_dev(finished: Finished):
    run, predictions = finished
    for training in run.trainings:
        file = run.folder_of(training) / "training" / "history.jsonl"
        records = [json.loads(line) for line in file.read_text().splitlines()]
        judged = [record["eval_judged"] for record in records if "eval_judged" in record]
        assert len(judged) == 2
        assert predictions[training.key]["dev"].right.mean() == pytest.approx(max(judged))


def test_what_is_finished_is_not_done_again(finished: Finished, monkeypatch: pytest.MonkeyPatch):
    run, predictions = finished
    monkeypatch.setattr(runs, "fine_tune", None)  # calling it would fail
    file = run.folder_of(Training(CLAIM_SYSTEMS["mspp-ae-ie"], 1)) / "test.jsonl"
    text = file.read_text()
    file.unlink()
    fact_verification.train(run)
    again = fact_verification.predict(run)
    assert file.read_text() == text
    assert again["mspp-ae-ie", 1]["test"].predicted == predictions["mspp-ae-ie", 1]["test"].predicted
    monkeypatch.setattr(fact_verification, "predict_verdicts", None)
    fact_verification.predict(run)


def test_sources_and_layouts_of_the_systems(finished: Finished, settings: Settings):
    run, _ = finished
    assert [settings.checkpoint(name) for name in ("ae", "")] == [
        f"{settings.mspp}/model",
        "storyworld/longformer",
    ]
    for name, positions in (("pairwise-sum", "compact"), ("mspp-ae-ie", "strided")):
        layout = run.reader(CLAIM_SYSTEMS[name]).layout
        assert (layout.sentences, layout.length, layout.positions) == (3, 12, positions)


def test_what_a_person_reads_before_the_start(finished: Finished):
    run, _ = finished
    facts = dict([*claim_facts(run), *cost_facts(run)])
    assert facts["precision of training"] == precision_told("auto")
    assert facts["train"].startswith("24 claims in 4 groups (8 supported, 8 refuted, 8 not enough info); 2.0")
    assert "of the sentences have more than 11 pieces of words" in facts["dev: cut"]
    assert "6 updates with 8 claims, about" in facts["MSPP AE_k + IE_1"]
    assert facts["pairwise, weighted sum"].endswith("times 2 seeds")
    assert all(text in fact_verification.preview(run).data for text in (facts["train"], "claim only"))
    roomy = replace(run, settings=replace(run.settings, sentence_length=150))
    assert dict(claim_facts(roomy))["test: cut"] == "nothing"
    alone = replace(run, settings=replace(run.settings, systems="claim-only", seeds=1))
    assert "seeds" not in dict(cost_facts(alone))["claim only"]


def test_a_label_that_training_never_has_is_reported(finished: Finished):
    run, _ = finished
    some = tuple(claim for claim in run.claims["train"] if claim.label != "not enough info")
    lacking = replace(run, claims={**run.claims, "train": some})
    assert lacking.labels == ("supported", "refuted", "not enough info")
    facts = dict(claim_facts(lacking))
    assert facts["never learned"] == "no training claim is not enough info: such claims are lost"
    assert "(8 supported, 8 refuted, 0 not enough info)" in facts["train"]
    unknown = tuple(replace(claim, label=None) for claim in run.claims["test"])
    facts = dict(claim_facts(replace(lacking, claims={**run.claims, "test": unknown})))
    assert "12 without label, which are not scored" in facts["test"]
    assert "never learned" not in facts


def test_the_example_shows_each_sentence_and_what_is_cut(finished: Finished):
    run, _ = finished
    evidence = ("Nobody was hurt.", f"Yes & no: {'so ' * 20}.")
    claim = replace(run.claims["train"][0], text="The ferry sank.", evidence=evidence)
    system = CLAIM_SYSTEMS["mspp-ae-ie"]
    rows = fact_verification.example_rows(replace(run, claims={**run.claims, "train": (claim,)}), system)
    assert [row[0] for row in rows] == ["claim", "evidence 1", "evidence 2"]
    assert rows[0][1] == '<small dir="ltr">&lt;s&gt;</small> The ferry sank.'
    assert rows[1][1].startswith('<small dir="ltr">&lt;/s&gt;</small> Nobody was')
    assert "&amp; no: so so" in rows[2][1]
    pieces = run.reader(system).tokenizer.tokenize
    assert rows[2][2] == f"12, {len(pieces(' ' + evidence[1])) - 11} cut"
    assert rows[1][2].isdigit() == (len(pieces(" Nobody was hurt.")) <= 11)
    alone = fact_verification.example_rows(run, CLAIM_SYSTEMS["claim-only"], index=3)
    assert [row[0] for row in alone] == ["claim"]
    assert "evidence 2" in fact_verification.example(run).data


def test_what_is_missing_is_refused_before_anything_is_read(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fact_verification, "read_claim_sets", None)  # calling it would fail
    elsewhere = replace(settings, corpus=str(tmp_path), run_folder=str(tmp_path / "run"))
    with pytest.raises(ParameterError, match=r'^mspp is ""; give a run'):
        fact_verification.prepare(replace(elsewhere, systems="joint-ie mspp-ie-ae", mspp=""))
    file = tmp_path / "claim.txt"
    file.write_text("A claim.", encoding="utf-8")
    with pytest.raises(DataError, match="there is a claim but no sentence of evidence"):
        fact_verification.prepare(replace(elsewhere, own_claim=str(file)))
    assert not (tmp_path / "run").exists()


def test_sentences_that_no_encoder_has_room_for(settings: Settings, tmp_path: Path):
    long = replace(settings, sentence_length=400, systems="joint-ie", run_folder=str(tmp_path / "run"))
    with pytest.raises(ValueError, match="reads 512 tokens, but the sentences may have 1200 together"):
        fact_verification.prepare(long)


# ---- claims one by one ----


@pytest.mark.parametrize("name", ["claim-only", "pairwise-sum", "mspp-ae-ie"])
def test_claims_are_shown_with_what_the_model_predicted(finished: Finished, name: str):
    run, predictions = finished
    system, of_dev = CLAIM_SYSTEMS[name], predictions[name, 0]["dev"]
    reads = views.read_verdicts(run, system, of_dev)
    assert [read.gold for read in reads] == [claim.label for claim in run.claims["dev"]]
    assert [read.predicted for read in reads] == of_dev.predicted
    np.testing.assert_array_equal([read.right for read in reads], of_dev.right)
    if name == "claim-only":
        assert {read.shares for read in reads} == {None}
    else:
        assert {len(read.shares) for read in reads} == {2}
        sums = [sum(read.shares) for read in reads]
        assert all(total == pytest.approx(1, abs=1e-4) or total == 0 for total in sums)
        assert (run.folder_of(Training(system, 0)) / "dev_shares.npy").is_file()


def test_the_first_of_many_are_shown_and_fewer_are_written(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
):
    run, predictions = finished
    monkeypatch.setattr(views, "MOST_SHOWN", 5)
    monkeypatch.setattr(views, "ON_A_PAGE", 2)
    shown = replace(run, settings=replace(run.settings, shown_system="claim-only"))
    assert (
        len(views.read_verdicts(run, CLAIM_SYSTEMS["claim-only"], predictions["claim-only", 0]["dev"])) == 5
    )
    assert fact_verification.verdicts(shown, predictions).children
    page = (run.folder / "verdicts.html").read_text(encoding="utf-8")
    assert [claim.text in page for claim in run.claims["dev"][:3]] == [True, True, False]


def test_a_claim_of_ones_own_is_judged_by_every_system(finished: Finished, tmp_path: Path):
    run, _ = finished
    file = tmp_path / "claim.txt"
    file.write_text("The ferry <b>sank</b>.\nIt sank at night.\n\n  Nobody was hurt. \n", encoding="utf-8")
    box = fact_verification.own_claim(replace(run, settings=replace(run.settings, own_claim=str(file))))
    page = (run.folder / "own_claim.html").read_text(encoding="utf-8")
    for system in run.systems:
        for html in (page, box.children[-1].value):
            assert html.count(f">{system.label}<") == 1
            assert system.shares in html
    assert "&lt;b&gt;sank" in page
    assert "<b>sank" not in page
    assert page.count("Nobody was hurt.") == 3
    with pytest.raises(ValueError, match="there are 3 sentences; the systems read 2: delete some"):
        views.judge_own(run, "A claim.", ["one", "two", "three"])


def test_shares_on_the_page_are_those_of_the_system():
    claim = EvidencedClaim(id="", text="The ferry sank.", evidence=("It sank.",), label=None, group="")
    read = views._judged(loaded("pairwise-max"), claim, precision="float32")
    assert (read.id, read.shares, read.gold) == ("pairwise, max", (1.0,), None)


def test_own_texts(tmp_path: Path):
    claim, evidence = own_texts(Settings(evidence_sentences=5))
    assert (claim, own_sentences(evidence)) == (EXAMPLE_CLAIM, own_sentences(EXAMPLE_EVIDENCE))
    two = own_texts(Settings(evidence_sentences=2))[1]
    assert own_sentences(two) == own_sentences(EXAMPLE_EVIDENCE)[:2]
    assert len(own_sentences(EXAMPLE_EVIDENCE)) == 3
    file = tmp_path / "claim.txt"
    file.write_text("A claim.\nOne.\nTwo.", encoding="utf-8")
    assert own_texts(Settings(own_claim=str(file), evidence_sentences=2)) == ("A claim.", "One.\nTwo.")
    with pytest.raises(DataError, match="there are 2 sentences of evidence; the systems read 1; delete some"):
        own_texts(Settings(own_claim=str(file), evidence_sentences=1))
    file.write_text("A claim.", encoding="utf-8")
    with pytest.raises(DataError, match="there is a claim but no sentence of evidence; write a claim on"):
        own_texts(Settings(own_claim=str(file)))
    with pytest.raises(DataError, match="write one sentence on each line"):
        own_sentences(" \n ")
