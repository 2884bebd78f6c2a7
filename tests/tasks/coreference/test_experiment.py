"""Coreference from topics to predictions, small: every stage, what is kept on disk, what is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from run_fixtures import die_in_the_third_batch

from cdlm_lab.data.convert.conll import read_conll
from cdlm_lab.data.coreference import topics_of
from cdlm_lab.data.records import PassedOver, gold_clusters
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.examples.collate import Collate
from cdlm_lab.runs.own import add_predictions
from cdlm_lab.runs.report import Report
from cdlm_lab.tasks.coreference import experiment, scoring, view
from cdlm_lab.tasks.coreference.examples import MentionPairExamples, group_mentions, pairs_within
from cdlm_lab.tasks.coreference.experiment import (
    SYSTEM,
    CoreferenceRun,
    Settings,
)
from cdlm_lab.tasks.coreference.metrics import score
from cdlm_lab.tasks.coreference.model import PairScorer, load_pair_scorer
from cdlm_lab.tasks.coreference.scoring import Predictions, score_pairs
from cdlm_lab.tasks.coreference.thresholds import THRESHOLDS
from cdlm_lab.training.trainer import TrainingResult
from cdlm_lab.training.validation import JUDGED


def scores_of(prepared: CoreferenceRun, split: str, folder: Path | None, **options: object) -> np.ndarray:
    predictions = experiment.predict_split(prepared, split, folder, **options)
    return np.concatenate([one.scores[np.triu_indices(len(one.scores), 1)] for one in predictions])


def changed(prepared: CoreferenceRun, **changes: object) -> CoreferenceRun:
    return replace(prepared, settings=replace(prepared.settings, **changes))


@pytest.fixture(scope="module")
def started(pair_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> CoreferenceRun:
    return experiment.prepare(replace(pair_settings, run_folder=str(tmp_path_factory.mktemp("a") / "run")))


@pytest.fixture(scope="module")
def trained(started: CoreferenceRun) -> TrainingResult:
    return experiment.train(started)


@pytest.fixture(scope="module")
def predictions(started: CoreferenceRun, trained: TrainingResult) -> Predictions:
    return experiment.predict(started)


@pytest.fixture(scope="module")
def finished(started: CoreferenceRun, predictions: Predictions) -> Report:
    return experiment.report(started, experiment.evaluate(started, predictions))


@pytest.fixture(scope="module")
def prepared(pair_settings: Settings) -> CoreferenceRun:
    """A prepared run that has not been trained."""
    return CoreferenceRun.read(pair_settings)


def test_what_will_be_is_said_before(prepared: CoreferenceRun):
    assert len(prepared.train_examples) == 2 * 16, "two epochs of at most 16 pairs"
    config = prepared.config
    assert (config.steps, config.evaluate_every, config.warmup_steps) == (4, 2, 0)
    assert (config.weight_decay, config.adam_beta2, config.adam_epsilon) == (0, 0.999, 1e-8)
    assert (config.learning_rate, config.warmup_steps, config.decay_power) == (1e-3, 0, 1)
    facts = dict(view.facts(prepared))
    assert facts["precision"] == precision_in_words("auto")
    assert facts.keys() >= {"mentions", "training", "scoring", "text", "gold clusters of test"}
    assert "4 updates with 8 pairs, about " in facts["training"]
    assert facts["searched together in test"] == "subtopic; 2 groups"
    pairs = {split: len(pairs_within(prepared.groups[split])) for split in ("dev", "test")}
    looks = 3 * pairs["dev"]  # after each of two epochs, and for the threshold
    assert f"{looks + pairs['test']:,} pairs of dev (3 times)" in facts["scoring"]
    assert facts["searched together in test"] in view.preview(prepared).data
    assert not any(name.startswith("chains of") for name in facts), "storyworld names its chains itself"
    noted = dict(prepared.passed_over) | {
        "dev": PassedOver(notes=["equal names are one chain within a topic"])
    }
    with_note = replace(prepared, passed_over=noted)
    assert dict(view.facts(with_note))["chains of dev"] == "equal names are one chain within a topic"
    assert with_note.data["chains"] == {"dev": "equal names are one chain within a topic"}


def test_the_model_judged_best_is_kept(
    started: CoreferenceRun, trained: TrainingResult, predictions: Predictions
):
    assert trained.steps == 4
    judged = {record["step"]: record[JUDGED] for record in trained.history if JUDGED in record}
    assert judged.keys() == {2, 4}, "a look after each epoch"
    assert trained.best_step == max(judged, key=judged.__getitem__)
    written, _ = load_pair_scorer(started.opened.folder / "model", max_length=128, window=8)
    for weight, other in zip(written.parameters(), started.model.parameters(), strict=True):
        torch.testing.assert_close(weight.cpu(), other.cpu(), rtol=0, atol=0)
    assert predictions.choice.score == pytest.approx(max(judged.values()))
    assert dict(view.facts(started))["training"] == f"none: the scorer is that of {started.folder / 'model'}"


def test_the_report_holds_the_metric_of_the_clusters_that_were_written(
    started: CoreferenceRun, predictions: Predictions, finished: Report
):
    form = {"kind": "event", "passed_over": PassedOver()}
    files = (started.opened.folder / f"{name}-test.conll" for name in ("key", "response"))
    read = [topics_of(read_conll(("", [file]), **form), "") for file in files]
    clusters = [gold_clusters(topics).values() for topics in read]
    response = scoring.response_at(predictions.test, predictions.threshold)
    wanted = scoring.key_of(started.topics["test"], "event"), response
    assert [sorted(map(len, side)) for side in clusters] == [sorted(map(len, side)) for side in wanted]
    value = {(row.split, row.system, row.metric): row.value for row in finished.rows}
    assert value["test", SYSTEM, "conll/f1"] == pytest.approx(score(*wanted)["conll"].f1)
    assert value["test", SYSTEM, "lea/recall"] == pytest.approx(score(*wanted)["lea"].recall)
    assert max(row["dev_conll_f1"] for row in finished.tables["thresholds"]) == predictions.choice.score
    assert finished.data["topic_level"] == {"train": "topic", "dev": "subtopic", "test": "subtopic"}
    assert finished.data["precision"] == precision_in_words("auto")
    told = view.summary(finished)
    assert told.startswith(f"threshold {predictions.threshold:.2f}, with CoNLL F1")
    rows = [row[0].text for row in view.table_view(finished).rows]
    assert rows[:4] == ["singletons", "one cluster", "same head word", SYSTEM]
    assert rows[-1] == "paper: CDLM"


def test_another_run_on_the_same_mentions_is_tested_beside_this_one(
    started: CoreferenceRun, predictions: Predictions, finished: Report, tmp_path: Path
):
    run_folder, other = str(tmp_path / "b"), started.settings.run_folder
    twin = shutil.copytree(other, tmp_path / "other" / Path(other).name)  # another of the same last name
    settings = replace(started.settings, run_folder=run_folder, compare_with=f"{other} {twin}")
    beside = experiment.prepare(settings)
    compared = experiment.report(beside, experiment.evaluate(beside, predictions))
    first, other = (
        next(row for row in one.rows if (row.split, row.system, row.metric) == ("test", name, "conll/f1"))
        for one, name in ((finished, SYSTEM), (compared, "other/run"))
    )
    assert (other.value, other.against, other.group) == (first.value, SYSTEM, "event")
    tests = {row["b"]: row for row in compared.tables["comparisons"]}
    assert (tests["other/run"]["difference"], tests["other/run"]["p_holm"], len(tests)) == (0, 1, 5)
    for row in finished.tables["comparisons"]:
        assert tests[row["b"]] == row, "no further folder changes another comparison"
    assert len({row["family"] for row in tests.values()}) == 5


def test_clusters_of_ones_own_have_the_same_scores(
    started: CoreferenceRun, predictions: Predictions, finished: Report, tmp_path: Path
):
    rows = [
        {"item": mention.id, "cluster": f"{number}"}
        for number, cluster in enumerate(
            cluster for one in predictions.test for cluster in one.clusters(predictions.threshold)
        )
        for mention in cluster
    ]
    (tmp_path / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    made = add_predictions(started, tmp_path / "mine.jsonl")
    value = {(row.system, row.metric): row.value for row in made.rows if row.seed is None}
    for row in finished.rows:
        if (row.system, row.split) == (SYSTEM, "test"):
            assert value["mine", row.metric] == row.value
    assert [row["p"] for row in made.comparisons if row["b"] == SYSTEM] == [1]


def test_scores_on_disk_are_used_again(prepared: CoreferenceRun, tmp_path: Path):
    first, file = scores_of(prepared, "dev", tmp_path), tmp_path / "dev.npy"
    stored = np.load(file)
    assert len(stored) == len(pairs_within(prepared.groups["dev"]))
    of_first_group = len(pairs_within(prepared.groups["dev"][:1]))
    stored[:of_first_group] = 0.25
    np.save(file, stored)
    again = scores_of(prepared, "dev", tmp_path)
    assert (again[:of_first_group] == 0.25).all()
    np.testing.assert_array_equal(again[of_first_group:], first[of_first_group:])


def test_a_single_epoch_or_a_choice_by_loss_needs_no_judge(prepared: CoreferenceRun):
    assert experiment.dev_judge(changed(prepared, epochs=1)) is None
    assert experiment.dev_judge(changed(prepared, select_by="loss")) is None


def test_a_new_scorer_begins_as_its_own_did_or_as_the_usual_one_that_reads_the_same(
    prepared: CoreferenceRun, capsys: pytest.CaptureFixture[str]
):
    own = prepared.small_job().model.state_dict()
    assert all(weight.equal(own[name]) for name, weight in prepared.model.state_dict().items())
    gone = changed(prepared, model="/gone", trained="a run")
    experiment.train_small(gone, on_log=print)
    assert capsys.readouterr().out.startswith("No new one is trained: /gone"), "its tokens are others"
    _, tokenizer = CoreferenceRun.load(changed(prepared, model=Settings().model).settings)
    assert replace(gone, tokenizer=tokenizer).small_job().model.config.vocab_size == len(tokenizer)


# ---- scores of pairs ----


@pytest.fixture(scope="module")
def sharp(sharp_encoder: str, pair_settings: Settings) -> tuple[PairScorer, MentionPairExamples]:
    """A pair scorer whose scores differ between pairs, and all pairs of six mentions."""
    model, tokenizer = load_pair_scorer(sharp_encoder, max_length=128, window=8)
    every = storyworld_pairs(replace(pair_settings, context="documents"), tokenizer, "test", 1)
    return model, every.in_order(np.flatnonzero((every.pairs < 6).all(axis=1)))


def storyworld_pairs(settings: Settings, tokenizer, split: str, stories: int) -> MentionPairExamples:
    topics = list(read_storyworld_topics(split, stories))
    groups = group_mentions(topics, "event", "topic")
    return scoring.pair_examples(settings, tokenizer, topics, groups)


def test_decisions_in_bfloat16_are_those_of_float32(pair_settings: Settings):
    """Decisions of a trained scorer. Only a score closer to the threshold than the rounding of scores, 0.001
    on average, can change a decision: of this small scorer, whose scores lie anywhere between 0 and 1, about
    one pair in 700; of MiniLM on ECB+ one in 2,900."""
    model, tokenizer = load_pair_scorer("storyworld/cdlm", max_length=128, window=32)
    examples = storyworld_pairs(pair_settings, tokenizer, "train", 6)
    cluster = np.array([mention.cluster for mention in examples.mentions])
    labels = (cluster[examples.pairs[:, 0]] == cluster[examples.pairs[:, 1]]).astype(np.float32)
    examples = replace(examples, labels=labels)
    order = np.random.default_rng(0).permutation(len(examples))
    corefers = order[labels[order] == 1]
    balanced = np.stack([corefers, order[labels[order] == 0][: len(corefers)]], axis=1).ravel()
    learn(model, examples.in_order(np.tile(balanced, 5)[:800]), batch_size=8)
    form = {"file": None, "batch_size": 16}
    exact, rounded = (score_pairs(model, examples, precision=one, **form) for one in ("float32", "bfloat16"))
    assert exact.std() > 0.1, "it has learned something"
    assert rounded.dtype == np.float32
    assert len(np.unique(rounded)) > 0.9 * len(np.unique(exact)), "heads compute in float32: few are equal"
    assert 0 < np.abs(rounded - exact).max() < 0.04
    assert np.abs(rounded - exact).mean() < 0.003
    same = [((exact > threshold) == (rounded > threshold)).mean() for threshold in THRESHOLDS]
    assert np.mean(same) > 0.997


def learn(model: PairScorer, examples: MentionPairExamples, *, batch_size: int) -> None:
    """Train a pair scorer for one epoch with AdamW."""
    collate = Collate(pad_token_id=model.config.pad_token_id)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for start in range(0, len(examples), batch_size):
        stop = min(start + batch_size, len(examples))
        loss = model(**collate([examples[number] for number in range(start, stop)])).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def test_batches_change_nothing_and_each_pair_is_scored(sharp, tmp_path: Path):
    alone = score_pairs(*sharp, file=tmp_path / "alone.npy", batch_size=1)
    together = score_pairs(*sharp, file=tmp_path / "together.npy", batch_size=7)
    assert alone.shape == (15,)
    assert len(set(alone.tolist())) > 10, "pairs differ"
    np.testing.assert_allclose(alone, together, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(np.load(tmp_path / "alone.npy", allow_pickle=False), alone)


def test_a_stopped_run_goes_on(sharp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = score_pairs(*sharp, file=tmp_path / "whole.npy", batch_size=4)
    seen = die_in_the_third_batch(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        score_pairs(*sharp, file=tmp_path / "part.npy", batch_size=4)
    assert np.isnan(np.load(tmp_path / "part.npy", allow_pickle=False)).sum() == 15 - 2 * 4
    seen[:] = [0, 0, 0]
    resumed = score_pairs(*sharp, file=tmp_path / "part.npy", batch_size=4)
    assert sum(seen[3:]) == 15 - 2 * 4, "what was scored is not scored again"
    np.testing.assert_allclose(resumed, whole, rtol=1e-4, atol=1e-6)
    assert [path.name for path in tmp_path.glob(".*")] == []
    np.save(tmp_path / "old.npy", np.zeros(3, dtype=np.float32))
    with pytest.raises(ValueError, match=r"old\.npy holds numbers of shape \(3,\), but there are \(15,\)"):
        score_pairs(*sharp, file=tmp_path / "old.npy", batch_size=4)
