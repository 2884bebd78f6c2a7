"""Notebook 10's experiment: claims in sets, systems, verdicts and shares by hand; then a small run that is
trained, judged, scored, resumed and shown; last the report of verdicts that are written down here."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tagging_runs import by_name, finished_run, judged, table_cells
from torch import nn

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.records import EvidencedClaim
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.items import read_frame
from cdlm_lab.runs.own import add_predictions
from cdlm_lab.runs.report import Report, open_run
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint import claims_view, verifying
from cdlm_lab.tasks.joint.claims import (
    CLAIM_SYSTEMS,
    Settings,
    VerificationRun,
    label_counts,
    labels_of,
    majority_label,
    read_claim_sets,
)
from cdlm_lab.tasks.joint.claims_view import claim_facts
from cdlm_lab.tasks.joint.model import JointHead, load_paragraph_model, save_paragraph_model
from cdlm_lab.tasks.joint.verifying import ClaimPredictions, Verifier, evidence_shares
from cdlm_lab.views.before_training import cost_facts

SOME = ("SUPPORTS", "REFUTES")


# ---- claims ----


def write_lines(file: Path, records: Sequence[dict]) -> None:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def fever(folder: Path, split: str, labels: Sequence[str | None], *, first: int = 0) -> None:
    """Write one claim for each label, each about a different page, with seven sentences of evidence."""
    records = []
    for number, label in enumerate(labels, first):
        evidence = [[f"Page {number}", 0, f"s{place}", 1] for place in range(7)]
        record = {"id": number, "claim": f"claim {number}", "evidence": evidence}
        records.append(record if label is None else record | {"label": label})
    write_lines(folder / f"bert_{split}.json", records)


def symmetric(folder: Path) -> None:
    records = [{"id": str(n), "claim": "c", "evidence": "e", "label": label} for n, label in enumerate(SOME)]
    write_lines(folder / "fever_symmetric_test.jsonl", records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split, labels in (("train", [*SOME, "REFUTES"]), ("dev", SOME), ("test", [None, None])):
        fever(tmp_path, split, labels, first=100 * len(split))
    return tmp_path


def test_claims_that_no_evidence_decides_may_be_left_out():
    given = {"train_stories": 3, "held_out_stories": 2}
    every, two = (read_claim_sets(Settings(labels=each, **given)) for each in ("all", "supported refuted"))
    for name, claims in every.items():
        assert two[name] == tuple(claim for claim in claims if claim.label != "not enough info")
        assert 0 < len(two[name]) < len(claims)
    assert labels_of(two) == ("supported", "refuted")
    given |= {"trained": "storyworld/claims", "run_folder": "nowhere"}
    with pytest.raises(ParameterError, match="labels is 'supported refuted', but storyworld/claims was"):
        fact_verification.prepare(Settings(labels="supported refuted", **given))


def test_files_with_the_symmetric_set_beside_them(folder: Path):
    assert list(read_claim_sets(Settings(corpus=str(folder)))) == ["train", "dev", "test"]
    symmetric(folder)
    claims = read_claim_sets(Settings(corpus=str(folder), evidence_sentences=3))
    assert list(claims) == ["train", "dev", "test", "symmetric"]
    assert [len(claim.evidence) for claim in claims["dev"]] == [3, 3]
    assert [claim.label for claim in claims["test"]] == [None, None]
    assert (majority_label(claims), labels_of(claims)) == ("refuted", ("supported", "refuted"))
    for split in ("train", "dev", "test"):
        (folder / f"bert_{split}.json").unlink()
    with pytest.raises(DataError, match="it has no split train, but symmetric"):
        read_claim_sets(Settings(corpus=str(folder)))


def test_a_label_that_training_never_has_counts_and_ties_go_to_the_first(folder: Path):
    fever(folder, "dev", ["SUPPORTS", "NOT ENOUGH INFO"], first=900)
    claims = read_claim_sets(Settings(corpus=str(folder)))
    labels = labels_of(claims)
    assert label_counts(claims["train"], labels) == {"supported": 1, "refuted": 2, "not enough info": 0}
    assert label_counts(claims["dev"], labels) == {"supported": 1, "refuted": 0, "not enough info": 1}
    fever(folder, "train", ["NOT ENOUGH INFO", "REFUTES", "NOT ENOUGH INFO", "REFUTES"])
    assert majority_label(read_claim_sets(Settings(corpus=str(folder)))) == "refuted"


@pytest.mark.parametrize(
    ("split", "labels", "message"),
    [
        ("dev", ["SUPPORTS", None], "claim 1 of dev has no label, which training needs"),
        ("dev", ["SUPPORTS"], "all claims of dev are of 'Page 0'; intervals need"),
        ("train", ["REFUTES", "REFUTES"], "all claims of train are refuted; there is nothing to learn"),
    ],
)
def test_what_cannot_be_learned_or_scored(folder: Path, split: str, labels: list, message: str):
    fever(folder, split, labels)
    with pytest.raises(ParameterError, match=message):
        read_claim_sets(Settings(corpus=str(folder)))


# ---- systems ----


READING = ("pairwise-max", "pairwise-sum", "joint-ie", "joint-ae", "mspp-ie-ae")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            f"claim-only {' '.join(READING)}",
            {
                "evidence": [(name, "claim-only") for name in READING],
                "joint reading": [(name, "pairwise-sum") for name in READING[2:]],
                "pre-training": [("mspp-ie-ae", "joint-ae")],
            },
        ),
        (
            "joint-ie mspp-ie-ae pairwise-max",
            {"joint reading": [("joint-ie", "pairwise-max"), ("mspp-ie-ae", "pairwise-max")]},
        ),
        ("claim-only", {}),
    ],
)
def test_joint_systems_are_tested_against_pairwise_mspp_against_its_head_and_all_against_claims_alone(
    names: str, expected: dict
):
    pairs = verifying.compared_pairs(Settings(systems=names).chosen)
    assert {why: tested for why, tested in pairs.items() if tested} == expected


# ---- verdicts and shares ----

SENTENCES = ("The ferry sank at night.", "Nobody was hurt.", "The mayor came from Telk to see it all.")


def claim_of(
    name: str, text: str, evidence: tuple[str, ...], label: str | None, group: str = ""
) -> EvidencedClaim:
    return EvidencedClaim(id=name, text=text, evidence=evidence, label=label, group=group)


# The second has no evidence, the fourth more than is read.
CLAIMS = [
    claim_of("c0", "The ferry sank.", SENTENCES, "supported"),
    claim_of("c1", "A storm.", (), "refuted"),
    claim_of("c2", "Twelve people were hurt when the ferry sank.", SENTENCES[1:2], "not enough info"),
    claim_of("c3", "The mayor stayed at home.", (*SENTENCES[::-1], "Soup."), None),
]


def loaded(name: str) -> Verifier:
    settings = Settings(evidence_sentences=3, sentence_length=8)
    return VerificationRun(settings=settings, claims={"train": CLAIMS}).reader(CLAIM_SYSTEMS[name])


def probabilities(verifier: Verifier, claims: Sequence[EvidencedClaim] = CLAIMS, batch_size: int = 4):
    return verifying.predict_verdicts(verifier, claims, batch_size=batch_size).probabilities


@pytest.fixture(scope="module", params=["pairwise-max", "pairwise-sum", "joint-ae", "claim-only"])
def verifier(request: pytest.FixtureRequest) -> Verifier:
    return loaded(request.param)


class Votes(nn.Module):
    """Replaces a joint model: each sentence of evidence adds its vote to the first label's logit."""

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


def test_verdicts_are_those_of_each_claim_by_itself_and_claim_only_does_not_see_evidence(verifier: Verifier):
    together = probabilities(verifier)
    np.testing.assert_allclose(together.sum(1), 1)
    assert together.std(axis=0).min() > 1e-4, "claims differ, or the test says nothing"
    for batch_size in (1, 3):
        np.testing.assert_allclose(probabilities(verifier, batch_size=batch_size), together, rtol=1e-4)
    other = probabilities(verifier, [replace(claim, evidence=("Soup.",)) for claim in CLAIMS])
    assert np.allclose(together[0], other[0]) == (verifier.system.name == "claim-only")


def test_verdicts_come_back_from_disk(tmp_path: Path):
    rows = [[0.5, 0.2, 0.3], [0.4, 0.2, 0.4], [0.1, 0.2, 0.7], [0.1, 0.1, 0.8]]
    predictions = ClaimPredictions(claims=CLAIMS, labels=LABELS, probabilities=np.array(rows))
    assert predictions.predicted == ["supported", "supported", "not enough info", "not enough info"]
    assert predictions.right.tolist() == [True, False, True, False], "the label of the last is not known"
    file = tmp_path / "new" / "dev.parquet"
    predictions.save(file)
    again = VerificationRun(settings=None, claims={"dev": CLAIMS}).read_predictions(file, "dev")
    np.testing.assert_array_equal(again.probabilities, predictions.probabilities)
    assert again.labels == LABELS
    shares = dict(zip(LABELS, rows[2], strict=True))
    assert read_frame(file).loc[2].to_dict() == {"item": "c2", "label": "not enough info", **shares}


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def test_shares_of_a_joint_model_are_falls_by_hand():
    """With all three sentences the first label's logit is 2 + 1 - 1, without the first 0, the second 1, the
    third 3. Shares are for the label predicted with all evidence: at 1 - 2 < 0, the second label, only
    leaving out the vote against the first label lowers its probability."""
    verifier = voting(2, 1, -1)
    (shares,) = evidence_shares(verifier, CLAIMS[:1])
    falls = [log_sigmoid(2) - log_sigmoid(0), log_sigmoid(2) - log_sigmoid(1), 0]
    assert shares == pytest.approx([fall / sum(falls) for fall in falls], rel=1e-5)
    assert shares == pytest.approx([0.7524, 0.2476, 0], abs=1e-4)
    assert evidence_shares(voting(1, -2, 0), CLAIMS[:1]) == [(0, 1, 0)]
    assert evidence_shares(voting(0, 0, 0), CLAIMS[:1]) == [(0, 0, 0)]
    # a sentence is left out and nothing else moves
    (batch,) = verifier.model.read
    keys = ("token_type_ids", "position_ids", "input_ids", "attention_mask")
    rows = [
        {token[:3] for token in zip(*(batch[key][row].tolist() for key in keys), strict=True) if token[3]}
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

    def stopped(*given: Any) -> list[np.ndarray]:
        if 2 in given[2]:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(verifying, "AT_ONCE", 2)
    monkeypatch.setattr(verifying, "_shares", stopped)
    with pytest.raises(KeyboardInterrupt):
        evidence_shares(verifier, CLAIMS, file=file)
    monkeypatch.setattr(verifying, "_shares", lambda *given: read.append(given[2]) or original(*given))
    again = evidence_shares(verifier, CLAIMS, file=file)
    assert read == [[2, 3]], "the first two were kept"
    assert again == evidence_shares(verifier, CLAIMS)
    assert again[1] == ()
    with pytest.raises(ValueError, match=r"holds numbers of shape \(4, 3\), but there are \(2, 3\)"):
        evidence_shares(verifier, CLAIMS[:2], file=file)


# ---- a run ----

Finished = tuple[VerificationRun, dict[tuple[str, int], dict[str, ClaimPredictions]]]
NAMES = ("claim-only", "pairwise-sum", "mspp-ae-ie")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with a model in the form of ae_k pretraining, without any training step."""
    folder = tmp_path_factory.mktemp("mspp")
    head = JointHead(kind="ae_k", sentences=3, length=12)
    save_paragraph_model(*load_paragraph_model("storyworld/longformer", head=head), folder / "model")
    return Settings(
        run_folder=str(tmp_path_factory.mktemp("runs") / "x"), train_stories=4, held_out_stories=2,
        evidence_sentences=2, systems="pairwise-sum mspp-ae-ie claim-only", mspp=str(folder),
        sentence_length=12, seeds=2, batch_size=8, micro_batch_size=4
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(settings: Settings) -> Finished:
    return finished_run(fact_verification, settings)


def test_each_system_judges_every_claim_with_each_seed(finished: Finished):
    run, predictions = finished
    assert list(predictions) == [(name, seed) for name in NAMES for seed in (0, 1)]
    for training in run.trainings:
        of_set = predictions[training.key]
        for name, one in of_set.items():
            assert (one.claims, one.probabilities.shape) == (run.claims[name], (12, 3))
        epochs = judged(run.folder_of(training))
        assert (len(epochs), of_set["dev"].right.mean()) == (2, pytest.approx(max(epochs)))
    sources = [run.settings.checkpoint(name) for name in ("ae", "")]
    assert sources == [f"{run.settings.mspp}/model", "storyworld/longformer"]
    for name, positions in (("pairwise-sum", "compact"), ("mspp-ae-ie", "strided")):
        layout = run.reader(CLAIM_SYSTEMS[name]).layout
        assert (layout.sentences, layout.length, layout.positions) == (3, 12, positions)


def test_what_a_person_reads_before_the_start(finished: Finished):
    run, _ = finished
    facts = dict([*claim_facts(run), *cost_facts(run)])
    assert facts["train"].startswith("24 claims in 4 groups (8 supported, 8 refuted, 8 not enough info); 2.0")
    assert "6 updates with 8 claims, about" in facts["MSPP AE_k + IE_1"]
    assert all(text in claims_view.preview(run).data for text in (facts["train"], "claim only"))
    # a label that training never has, and a set without labels
    some = tuple(claim for claim in run.claims["train"] if claim.label != "not enough info")
    unknown = tuple(replace(claim, label=None) for claim in run.claims["test"])
    facts = dict(claim_facts(replace(run, claims={**run.claims, "train": some, "test": unknown})))
    assert facts["never learned"] == "no training claim is not enough info: such claims are lost"
    assert "12 without label, which are not scored" in facts["test"]


def test_the_example_shows_each_sentence_and_what_is_cut(finished: Finished):
    run, _ = finished
    evidence = ("Nobody was hurt.", f"Yes & no: {'so ' * 20}.")
    claim = replace(run.claims["train"][0], text="The ferry sank.", evidence=evidence)
    system = CLAIM_SYSTEMS["mspp-ae-ie"]
    rows = claims_view.example_rows(replace(run, claims={**run.claims, "train": (claim,)}), system)
    assert [row[0] for row in rows] == ["claim", "evidence 1", "evidence 2"]
    assert rows[0][1] == '<small dir="ltr">&lt;s&gt;</small> The ferry sank.'
    assert rows[1][1].startswith('<small dir="ltr">&lt;/s&gt;</small> Nobody was')
    assert "&amp; no: so so" in rows[2][1]
    pieces = run.reader(system).tokenizer.tokenize
    assert rows[2][2] == f"12, {len(pieces(' ' + evidence[1])) - 11} cut"
    assert rows[1][2].isdigit() == (len(pieces(" Nobody was hurt.")) <= 11)
    alone = claims_view.example_rows(run, CLAIM_SYSTEMS["claim-only"], index=3)
    assert [row[0] for row in alone] == ["claim"]
    assert "evidence 2" in claims_view.example(run).data


def test_what_is_missing_is_refused_before_anything_is_read(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = replace(settings, sentence_length=400, systems="joint-ie", run_folder=str(tmp_path / "long"))
    with pytest.raises(ValueError, match="reads 512 tokens, but the sentences may have 1200 together"):
        fact_verification.prepare(long)
    monkeypatch.setattr(fact_verification, "read_claim_sets", None)  # calling it would fail
    elsewhere = replace(settings, corpus=str(tmp_path), run_folder=str(tmp_path / "run"))
    with pytest.raises(ParameterError, match=r'^mspp is ""; give a run'):
        fact_verification.prepare(replace(elsewhere, systems="joint-ie mspp-ie-ae", mspp=""))
    assert not (tmp_path / "run").exists()


# ---- the report by hand ----

JUDGED = tuple(
    claim_of(f"c{n}", f"claim {n}", ("e",), label, f"page {n // 2}")
    for n, label in enumerate(("supported", "supported", "refuted", "refuted"))
)
# What each training predicts of the four claims, + = supported.
PREDICTED = {
    ("claim-only", 0): "++++",
    ("claim-only", 1): "++++",
    ("pairwise-sum", 0): "++-+",
    ("pairwise-sum", 1): "+++-",
    ("joint-ie", 0): "++--",
    ("joint-ie", 1): "++--",
}


def judged_run(folder: Path, *, corpus: str = "storyworld", **sets: tuple[EvidencedClaim, ...]):
    """Make a run of these claims and its predictions."""
    settings = Settings(
        run_folder=str(folder), systems="claim-only pairwise-sum joint-ie", seeds=2, corpus=corpus
    )
    claims = dict.fromkeys(("train", "dev", "test"), JUDGED) | sets
    opened = open_run(folder, name=VerificationRun.NAME, parameters={})
    run = VerificationRun(settings=settings, claims=claims, opened=opened)
    rows = {"+": [0.75, 0.25], "-": [0.25, 0.75]}
    predictions = {
        key: {
            name: ClaimPredictions(
                claims=claims[name], labels=LABELS[:2], probabilities=np.array([rows[sign] for sign in signs])
            )
            for name in run.held_out
        }
        for key, signs in PREDICTED.items()
    }
    return run, predictions


def report_of(folder: Path, **given) -> Report:
    run, predictions = judged_run(folder, **given)
    return fact_verification.report(run, fact_verification.evaluate(run, predictions))


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(tmp_path_factory.mktemp("claims") / "run")


def test_labels_of_ones_own_are_scored_on_the_same_claims(tmp_path: Path):
    run, predictions = judged_run(tmp_path / "run")
    report = fact_verification.report(run, fact_verification.evaluate(run, predictions))
    file, labels = tmp_path / "mine.jsonl", predictions["pairwise-sum", 1]["test"].predicted
    rows = [{"item": claim.id, "label": label} for claim, label in zip(JUDGED, labels, strict=True)]
    write_lines(file, rows[::-1])
    made = add_predictions(run, file)
    (mine,) = {row.value for row in made.rows if row.system == "mine"}
    assert mine == next(row.value for row in report.rows if row.key[::4] == ("pairwise-sum", 1))
    assert [row["b"] for row in made.comparisons] == ["claim-only", "pairwise-sum", "joint-ie", "majority"]
    write_lines(file, [*rows[:3], rows[3] | {"label": "true"}])
    with pytest.raises(DataError, match=r"mine\.jsonl:4: field label: 'true' is no label; choose among supp"):
        add_predictions(run, file)


def test_accuracy_over_seeds_with_its_interval_over_pages(by_hand: Report):
    scores = {row.system: row for row in by_hand.rows if row.split == "test" and row.seed is None}
    rows = {name: (row.value, row.low, row.high, row.seeds) for name, row in scores.items()}
    assert rows["joint-ie"] == (1, 1, 1, 2)
    assert rows["pairwise-sum"] == (0.75, 0, 1, 2), "two pages tell little"
    assert rows["claim-only"] == (0.5, 0, 1, 2)
    assert rows["majority"] == (0.5, 0, 1, None)
    assert scores["majority"].note == "supported"
    assert len([row for row in by_hand.rows if row.seed is not None]) == 3 * 2 * 2
    test, dev = (table.html() for table in claims_view.score_tables(by_hand))
    assert "80.01" in test, "the paper's pairwise reading with a weighted sum, on dev"
    assert "storyworld, dev" in dev


def test_systems_are_compared_page_by_page(by_hand: Report):
    rows = {(row["a"], row["b"]): row for row in by_hand.tables["comparisons"] if row["split"] == "test"}
    alone = [("pairwise-sum", "claim-only"), ("joint-ie", "claim-only")]
    assert list(rows) == [*alone, ("joint-ie", "pairwise-sum")]
    row = rows["joint-ie", "pairwise-sum"]
    assert (row["difference"], row["clusters"], row["verdict"]) == (0.25, 2, "too few units")
    assert row["low"] < 0 < row["high"], "of page 0 the systems are equal, of page 1 half a point apart"
    assert [rows[pair]["p_holm"] for pair in alone] == [min(1, 2 * rows[pair]["p"]) for pair in alone]
    _, *cells = table_cells(claims_view.comparisons(by_hand).html())
    assert cells[2][:2] == ["joint IE_1", "pairwise, weighted sum"]
    assert cells[2][2].startswith("+25.0 [")
    assert cells[2][2].endswith("]  p 1.000; too few units")
    beside = {row.system: row.against for row in by_hand.rows if row.split == "test" and row.seed is None}
    assert beside == {"claim-only": "", "pairwise-sum": "", "joint-ie": "pairwise-sum", "majority": ""}


def test_mistakes_are_counted_and_shared_out_over_the_seeds(by_hand: Report):
    rows = {
        (row["system"], row["seed"], row["split"], row["gold"]): row["predicted"]
        for row in by_hand.tables["confusion"]
    }
    assert rows["pairwise-sum", 1, "test", "refuted"] == {"supported": 1, "refuted": 1}
    html = claims_view.mistakes(by_hand).html()
    _, *cells = table_cells(html)
    assert cells[2:4] == [
        ["pairwise, weighted sum", "supported", "2", "100.0", "0.0"],
        ["pairwise, weighted sum", "refuted", "2", "50.0", "50.0"],
    ]
    assert len(cells) == html.count("<b>") == 6


def test_a_set_without_labels_is_not_scored_and_one_in_part_by_what_is_known(tmp_path: Path):
    blank = tuple(replace(claim, label=None) for claim in JUDGED)
    report = report_of(tmp_path / "run", test=blank, symmetric=(blank[0], *JUDGED[1:]))
    assert report.data["scored"] == {"dev": 4, "symmetric": 3}
    assert report.data["precision"] == precision_in_words("auto")
    assert report.data["claims"] == {"train": 4, "dev": 4, "test": 4, "symmetric": 4}
    assert {row.split for row in report.rows} == {"dev", "symmetric"}
    assert by_name(report)["pairwise-sum/symmetric/label_accuracy"].value == pytest.approx(2 / 3)
    assert claims_view.shown_set(report) == "dev"
    first = claims_view.score_tables(report)[0]
    assert first.caption.startswith("Claims verified: storyworld, FeverSymmetric")
    assert {row["split"] for row in report.tables["comparisons"]} == {"dev", "symmetric"}
