"""Coreference from topics to a report, small: every stage, what is kept on disk, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.clustering import merge_tree
from cdlm_lab.data.coreference_files import read_conll
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic, gold_clusters
from cdlm_lab.examples.mention_pairs import MentionGroup
from cdlm_lab.experiments.coreference import (
    SYSTEM,
    CoreferenceSettings,
    GroupPrediction,
    PairSettings,
    Prepared,
    choose_threshold,
    coreference_table,
    dev_judge,
    facts_of,
    group_tree,
    key_of,
    pair_errors,
    pairs_of,
    predict,
    prepare,
    read_clusters,
    read_topics,
    response_at,
    scores_of_split,
    shown_clusters,
    train_scorer,
    training_config,
    write_clusters,
    write_coreference_report,
)
from cdlm_lab.metrics.coreference import score
from cdlm_lab.models.coreference import load_pair_scorer
from cdlm_lab.models.encoder import TinySizes, load_language_model
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run
from cdlm_lab.training.validation import JUDGED

SETTINGS = CoreferenceSettings(
    corpus="storyworld",
    kind="event",
    context="sentences",
    topic_level="subtopic",
    predicted_topics="",
    train_stories=3,
    held_out_stories=2,
    dev_topics="",
    test_topics="",
    singletons=True,
    seed=0,
)
PAIRS = PairSettings(
    epochs=2,
    negatives_per_positive=1.0,
    train_pairs=16,
    max_length=128,
    checkpoint="conll",
    both_orders=False,
    batch_size=8,
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("encoder")
    sizes = TinySizes(hidden_size=16, layers=1, heads=2, intermediate_size=16, vocabulary=300)
    model, tokenizer = load_language_model("tiny", max_length=128, window=8, sizes=sizes)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.set_num_threads(1)
    return str(folder)


@pytest.fixture(scope="module")
def prepared(encoder: str) -> Prepared:
    return prepare(settings=SETTINGS, pairs=PAIRS, model=encoder, window=8, attention="auto")


def test_from_topics_to_a_report(prepared: Prepared, tmp_path: Path):
    assert len(prepared.train_examples) == 2 * 16, "two passes of at most 16 pairs"
    training = training_config(prepared, batch_size=8, micro_batch_size=4, learning_rate=1e-3, warmup_steps=0)
    assert (training.steps, training.evaluate_every, training.warmup_steps) == (4, 2, 0)
    facts = dict(facts_of(prepared, training))
    assert facts["precision"] == precision_told("auto")
    assert facts.keys() >= {"mentions", "training", "scoring", "text", "gold clusters of test"}
    assert facts["searched together in test"] == "subtopic; 2 groups"
    looks = 3 * pairs_of(prepared.groups["dev"])  # after each of two epochs, and for the threshold
    assert f"{looks + pairs_of(prepared.groups['test']):,} pairs of dev (3 times)" in facts["scoring"]

    run = open_run(tmp_path / "run", name="coreference", parameters={"seed": 0})
    result = train_scorer(prepared, run.folder, training)
    assert result.steps == 4
    judged = {record["step"]: record[JUDGED] for record in result.history if JUDGED in record}
    assert judged.keys() == {2, 4}, "a look after each epoch"
    assert result.best_step == max(judged, key=judged.__getitem__)
    written, _ = load_pair_scorer(run.folder / "model", max_length=128, window=8)
    for weight, other in zip(written.parameters(), prepared.model.parameters(), strict=True):
        torch.testing.assert_close(weight, other, rtol=0, atol=0)
    dev, test = (predict(prepared, split, run.folder / "scores") for split in ("dev", "test"))
    choice = choose_threshold(prepared, dev)
    assert choice.score == pytest.approx(max(judged.values())), "the best judged is kept"
    report = write_coreference_report(prepared, run, dev, test, choice)
    assert report.data["topic_level"] == {"train": "topic", "dev": "subtopic", "test": "subtopic"}
    assert report.data["precision"] == precision_told("auto")

    # the report's numbers are those of the metric on the clusters that were written
    key, response = (
        [[mention.place for mention in cluster] for cluster in gold_clusters(list(read_conll(file))).values()]
        for file in (run.folder / "key-test.conll", run.folder / "response-test.conll")
    )
    expected = score(key_of(prepared.topics["test"], "event"), response_at(test, choice.threshold))
    assert sorted(map(len, response)) == sorted(map(len, response_at(test, choice.threshold)))
    assert sorted(map(len, key)) == sorted(map(len, key_of(prepared.topics["test"], "event")))
    scores = scores_of_split(report, "test")
    assert scores[f"{SYSTEM}/conll/f1"]["value"] == pytest.approx(expected["conll"].f1)
    assert scores[f"{SYSTEM}/lea/recall"]["value"] == pytest.approx(expected["lea"].recall)
    assert max(row["dev_conll_f1"] for row in report.tables["thresholds"]) == choice.score

    # another run on the same mentions is scored and tested beside this one
    other = open_run(tmp_path / "other", name="coreference", parameters={"seed": 1})
    compared = write_coreference_report(prepared, other, dev, test, choice, compare_with=[str(run.folder)])
    assert compared.scores["test/run/conll/f1"]["value"] == scores[f"{SYSTEM}/conll/f1"]["value"]
    assert compared.tables["comparisons"][0]["b"] == "run"
    assert compared.tables["comparisons"][0]["difference"] == 0

    rows = [row[0].text for row in coreference_table(report).rows]
    assert rows[:4] == ["singletons", "one cluster", "same head word", SYSTEM]
    assert rows[-1] == "paper: CDLM"


def test_runs_that_cannot_be_compared(tmp_path: Path):
    clusters = [[("a", 0, 1)], [("b", 2, 3), ("b", 4, 5)]]
    with pytest.raises(ParameterError, match=r"there is no clusters-test.json in it; is the run finished\?"):
        read_clusters(tmp_path, "test", among=clusters)
    write_clusters(tmp_path, "test", clusters)
    assert read_clusters(tmp_path, "test", among=clusters) == clusters
    with pytest.raises(ParameterError, match="lacks 1 of the 2 mentions of test"):
        read_clusters(tmp_path, "test", among=[[("a", 0, 1), ("c", 0, 1)]])


def test_of_a_run_on_more_topics_only_the_mentions_at_hand_are_compared(tmp_path: Path):
    write_clusters(tmp_path, "test", [[("a", 0, 1), ("b", 0, 1)], [("b", 2, 3)], [("c", 4, 5)]])
    among = [[("a", 0, 1)], [("c", 4, 5)]]
    assert read_clusters(tmp_path, "test", among=among) == among


def test_views_show_what_the_clusters_say(prepared: Prepared, tmp_path: Path):
    (prediction, *_) = test = predict(prepared, "test", tmp_path)
    topics = prepared.topics["test"]
    mentions = prediction.group.mentions
    # one cluster of all at threshold 0: the merged pairs are those that do not corefer, and none is split
    everything = prediction.clusters(0.0)
    errors = pair_errors(topics, test[:1], 0.0)
    assert len(everything) == 1
    gold = [mention.cluster for mention in mentions]
    wrong = sum(gold[i] != gold[j] for i in range(len(gold)) for j in range(i))
    assert (len(errors.merged), len(errors.split)) == (wrong, 0)
    # and alone at threshold 1
    errors = pair_errors(topics, test[:1], 1.0)
    pairs = len(mentions) * (len(mentions) - 1) // 2
    assert (len(errors.merged), len(errors.split)) == (0, pairs - wrong)

    (cluster,) = shown_clusters(topics, prediction, 0.0)
    documents = {document.id: document for topic in topics for document in topic.documents}
    assert [shown.document for shown in cluster.mentions] == [mention.document for mention in mentions]
    assert (
        cluster.mentions[0].text.split()[0] == documents[mentions[0].document].text_of(mentions[0]).split()[0]
    )
    assert group_tree(topics, prediction, 0.5).data


def test_scores_on_disk_are_used_again(prepared: Prepared, tmp_path: Path):
    first = predict(prepared, "dev", tmp_path)
    stored = np.load(tmp_path / "dev.npy")
    assert len(stored) == pairs_of(prepared.groups["dev"])
    stored[: pairs_of(prepared.groups["dev"][:1])] = 0.25
    np.save(tmp_path / "dev.npy", stored)
    again = predict(prepared, "dev", tmp_path)
    off_diagonal = ~np.eye(len(again[0].scores), dtype=bool)
    assert (again[0].scores[off_diagonal] == 0.25).all()
    np.testing.assert_array_equal(again[1].scores, first[1].scores)


def test_mentions_too_long_for_a_sequence_are_refused_before_training(encoder: str, monkeypatch):
    """Of test, which is read last: a mention that fills the sequence."""

    def read(settings, split, passed_over):
        topics = read_topics(settings, split, passed_over)
        if split != "test":
            return topics
        mentions = [
            CoreferenceMention(
                id=f"long:{n}", document="long", tokens=(n, 90 + n), sentence=0, kind="event", cluster=str(n)
            )
            for n in range(2)
        ]
        long = CoreferenceDocument(
            id="long", topic="t", subtopic="t", tokens=("word",) * 100, sentences=((0, 100),), validated=(0,),
            mentions=tuple(mentions),
        )  # fmt: skip
        return [*topics, Topic(id="t", documents=(long,))]

    monkeypatch.setattr("cdlm_lab.experiments.coreference.read_topics", read)
    with pytest.raises(ValueError, match=r"mention long:1 .* need .* max_length 128 leaves"):
        prepare(settings=SETTINGS, pairs=PAIRS, model=encoder, window=8, attention="auto")


def test_no_pair_of_two_groups_is_made(encoder: str):
    by_topic = prepare(
        settings=replace(SETTINGS, topic_level="topic"),
        pairs=PAIRS,
        model=encoder,
        window=8,
        attention="auto",
    )
    by_story = prepare(settings=SETTINGS, pairs=PAIRS, model=encoder, window=8, attention="auto")
    assert len(by_topic.groups["dev"]) == 1
    assert len(by_story.groups["dev"]) == 2
    assert pairs_of(by_topic.groups["dev"]) > pairs_of(by_story.groups["dev"])


def toy_prediction(clusters: list[str], scores: dict[tuple[int, int], float]) -> GroupPrediction:
    """Mentions of these clusters, one a document; pairs without a score have 0.01."""
    mentions = tuple(
        CoreferenceMention(
            id=f"d{number}:0", document=f"d{number}", tokens=(0, 1), sentence=0, kind="event", cluster=cluster
        )
        for number, cluster in enumerate(clusters)
    )
    square = np.full((len(clusters), len(clusters)), 0.01)
    for (first, second), score_of_pair in scores.items():
        square[first, second] = square[second, first] = score_of_pair
    np.fill_diagonal(square, 1.0)
    group = MentionGroup(id="toy", mentions=mentions)
    return GroupPrediction(group=group, scores=square, tree=merge_tree(square))


def test_the_threshold_is_chosen_with_the_clusters_that_are_scored(prepared: Prepared):
    """Gold: a pair and six alone. Joining the pair below .5 joins three wrong pairs too, above it nothing is
    joined: with singletons that is better, without them it leaves nothing to score."""
    prediction = toy_prediction(
        ["x", "x", "a", "b", "c", "d", "e", "f"], {(0, 1): 0.5, (2, 3): 0.8, (4, 5): 0.8, (6, 7): 0.8}
    )
    documents = tuple(
        CoreferenceDocument(
            id=mention.document, topic="t", subtopic="t", tokens=("x",), sentences=((0, 1),), validated=(0,),
            mentions=(mention,),
        )
        for mention in prediction.group.mentions
    )  # fmt: skip
    topics = {"dev": [Topic(id="t", documents=documents)]}
    chosen = {}
    for singletons in (True, False):
        settings = replace(SETTINGS, singletons=singletons)
        choice = choose_threshold(replace(prepared, settings=settings, topics=topics), [prediction])
        key, response = key_of(topics["dev"], "event"), response_at([prediction], choice.threshold)
        assert choice.score == score(key, response, singletons=singletons)["conll"].f1
        chosen[singletons] = choice.threshold
    assert chosen[True] > 0.8
    assert chosen[False] < 0.5
    wrong = score(key, response_at([prediction], chosen[True]), singletons=False)["conll"].f1
    assert wrong == 0 < choice.score


def test_a_single_epoch_or_a_choice_by_loss_needs_no_judge(prepared: Prepared):
    assert dev_judge(replace(prepared, pairs=replace(PAIRS, epochs=1))) is None
    assert dev_judge(replace(prepared, pairs=replace(PAIRS, checkpoint="loss"))) is None


def test_the_optimiser_is_that_of_the_released_code(prepared: Prepared):
    config = training_config(prepared, batch_size=8, micro_batch_size=8, learning_rate=1e-5, warmup_steps=0)
    assert (config.weight_decay, config.adam_beta2, config.adam_epsilon) == (0, 0.999, 1e-8)
    assert (config.learning_rate_at(0), config.decay_power) == (1e-5, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "person"}, "kind is 'person'; choose one of event, entity"),
        (
            {"topic_level": "corpus"},
            "topic_level is 'corpus'; choose one of auto, topic, subtopic, predicted",
        ),
        ({"context": "paragraphs"}, "paragraphs"),
        ({"predicted_topics": "x.json", "topic_level": "topic"}, "set it to 'predicted'"),
        ({"train_stories": "3"}, "train_stories"),
    ],
)
def test_settings_that_cannot_be(change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **change)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_topics_of_choice(split: str):
    nine = replace(SETTINGS, held_out_stories=9)  # three of them are a topic
    ids = [topic.id for topic in read_topics(nine, split)]
    chosen = replace(nine, **{f"{split}_topics": f"{ids[2]} {ids[0]}"})
    assert [topic.id for topic in read_topics(chosen, split)] == [ids[0], ids[2]]
    assert len(read_topics(chosen, "train")) == len(read_topics(SETTINGS, "train"))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_topic_that_is_not_there(split: str):
    with pytest.raises(ParameterError, match=f"{split}_topics names 99, but the topics are"):
        read_topics(replace(SETTINGS, **{f"{split}_topics": "99"}), split)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"train_pairs": -1}, "0 for all"),
        ({"checkpoint": "f1"}, "checkpoint is 'f1'; choose one of conll, loss"),
    ],
)
def test_pair_settings_that_cannot_be(change: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        replace(PAIRS, **change)
