"""The report of notebook 03 and its views: scores by hand, other runs, wrong pairs, your own documents."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.evaluation import evaluate
from cdlm_lab.runs.items import UNTRAINED
from cdlm_lab.runs.report import write_json
from cdlm_lab.tasks.coreference import experiment, scoring, view
from cdlm_lab.tasks.coreference.clustering import ThresholdChoice
from cdlm_lab.tasks.coreference.evaluation import (
    baseline_responses,
    items_of_clusters,
    measures,
    read_clusters,
    told_apart,
)
from cdlm_lab.tasks.coreference.examples import MentionGroup, group_mentions
from cdlm_lab.tasks.coreference.experiment import CoreferenceRun, Settings
from cdlm_lab.tasks.coreference.metrics import score
from cdlm_lab.tasks.coreference.scoring import GroupPrediction, Predictions
from cdlm_lab.tasks.coreference.thresholds import choose_threshold


def document(
    name: str, topic: str, words: str, clusters: dict[int, str], length: int = 1
) -> CoreferenceDocument:
    """One sentence; `clusters`: number of the first word of a mention, which has so many -> its cluster."""
    tokens, form = tuple(words.split()), {"document": name, "sentence": 0, "kind": "event"}
    mentions = tuple(
        CoreferenceMention(id=f"{name}-{first}", tokens=(first, first + length), cluster=cluster, **form)
        for first, cluster in clusters.items()
    )
    form = {"topic": topic, "subtopic": topic, "validated": (0,), "sentences": ((0, len(tokens)),)}
    return CoreferenceDocument(id=name, tokens=tokens, mentions=mentions, **form)


@pytest.fixture
def topics() -> list[Topic]:
    """In each of three topics a fire and an attack that two documents report; one says "raid" for attack."""
    made = []
    for name in "123":
        fire, raid = f"{name}fire", f"{name}raid"
        first = document(f"{name}a", name, "The fire and the attack", {1: fire, 4: raid})
        second = document(f"{name}b", name, "A raid caused fires", {1: raid, 3: fire})
        made.append(Topic(id=name, documents=(first, second)))
    return made


def test_baselines_and_their_scores(topics: list[Topic]):
    responses = baseline_responses(topics, group_mentions(topics, "event", "topic"))
    fire = [("1a", 1, 2), ("1b", 3, 4)]
    assert sorted(map(sorted, responses["same head word"]))[:2] == [fire, [("1a", 4, 5)]]
    assert len(responses["singletons"]) == 12
    assert [len(cluster) for cluster in responses["one cluster"]] == [4, 4, 4]
    key = [[(f"{t}a", 1, 2), (f"{t}b", 3, 4)] for t in "123"]
    key += [[(f"{t}a", 4, 5), (f"{t}b", 1, 2)] for t in "123"]
    topic_of = {document.id: topic.id for topic in topics for document in topic.documents}
    responses = {(name, UNTRAINED): clusters for name, clusters in responses.items()}
    form = {"groups": group_mentions(topics, "event", "topic"), "topic_of": topic_of, "singletons": True}
    items = items_of_clusters(key, responses, **form, split="test", group="event")
    scores = {(row.system, row.metric): row for row in evaluate(items, measures()).rows}
    for (name, _), response in responses.items():
        for measure, parts in score(key, response).items():
            for part in ("recall", "precision", "f1"):
                assert scores[name, f"{measure}/{part}"].value == pytest.approx(getattr(parts, part))
    # of each topic's two links one is result, and no wrong one
    assert scores["same head word", "muc/recall"].value == pytest.approx(1 / 2)
    assert scores["same head word", "muc/precision"].value == pytest.approx(1.0)
    # mentions: the fire whole (2 x 1), the raid in halves (2 x 1/2), of 4
    assert scores["same head word", "b_cubed/recall"].value == pytest.approx((2 + 1) / 4)
    # one cluster: 2 of its 3 links are right
    assert scores["one cluster", "muc/precision"].value == pytest.approx(2 / 3)
    conll = scores["same head word", "conll/f1"]
    assert (conll.n, conll.split) == (3, "test")
    assert conll.low == pytest.approx(conll.high), "three equal topics leave nothing to chance"


def places(clusters: list[list[tuple]]) -> set[tuple]:
    return {place for one in clusters for place in one}


def test_clusters_of_other_runs(tmp_path: Path):
    def write(*clusters: list) -> None:
        write_json(tmp_path / "clusters-test.json", {"clusters": clusters})

    clusters = [[("a", 0, 1)], [("b", 2, 3), ("b", 4, 5)]]
    with pytest.raises(ParameterError, match=r"there is no clusters-test.json in it; is the run finished\?"):
        read_clusters(tmp_path, "test", among=places(clusters))
    write(*clusters)
    assert read_clusters(tmp_path, "test", among=places(clusters)) == clusters
    with pytest.raises(ParameterError, match="lacks 1 of the 2 mentions of test"):
        read_clusters(tmp_path, "test", among={("a", 0, 1), ("c", 0, 1)})
    write([("a", 0, 1), ("b", 0, 1)], [("b", 2, 3)], [("c", 4, 5)])  # a run on more topics
    among = [[("a", 0, 1)], [("c", 4, 5)]]
    assert read_clusters(tmp_path, "test", among=places(among)) == among


@pytest.fixture(scope="module")
def prepared(pair_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> CoreferenceRun:
    run_folder = str(tmp_path_factory.mktemp("runs") / "run")
    return experiment.prepare(replace(pair_settings, context="documents", run_folder=run_folder))


def test_mentions_too_long_for_a_sequence_are_refused_before_training(pair_settings: Settings, monkeypatch):
    """Of test, which is read last: mentions that fill the sequence."""
    real = experiment.read_topics
    long = document("long", "t", "word " * 100, {0: "a", 1: "b"}, length=90)

    def with_a_long_one(settings, split, passed_over):
        topics = real(settings, split, passed_over)
        return topics if split != "test" else [*topics, Topic(id="t", documents=(long,))]

    monkeypatch.setattr(experiment, "read_topics", with_a_long_one)
    with pytest.raises(ValueError, match=r"mention long-1 .* need .* max_length 128 leaves"):
        CoreferenceRun.read(pair_settings)


def test_the_threshold_is_chosen_with_the_clusters_that_are_scored(prepared: CoreferenceRun):
    """Gold: a pair and six alone. Joining the pair below .5 joins three wrong pairs too, above it nothing is
    joined: with singletons that is better, without them it leaves nothing to score."""
    documents = tuple(document(f"d{n}", "t", "x", {0: cluster}) for n, cluster in enumerate("xxabcdef"))
    square = np.full((8, 8), 0.01) + np.diag(np.full(8, 0.99))
    for first, second, value in ((0, 1, 0.5), (2, 3, 0.8), (4, 5, 0.8), (6, 7, 0.8)):
        square[first, second] = square[second, first] = value
    group = MentionGroup(id="toy", mentions=tuple(one.mentions[0] for one in documents))
    prediction, topics = GroupPrediction(group, square), [Topic(id="t", documents=documents)]
    key, chosen = scoring.key_of(topics, "event"), {}
    for singletons in (True, False):
        settings = replace(prepared.settings, singletons=singletons)
        toy = replace(prepared, settings=settings, topics={"dev": topics})
        chosen[singletons] = choice = choose_threshold(toy, [prediction])
        response = scoring.response_at([prediction], choice.threshold)
        assert choice.score == score(key, response, singletons=singletons)["conll"].f1
    assert chosen[True].threshold > 0.8
    assert chosen[False].threshold < 0.5
    wrong = scoring.response_at([prediction], chosen[True].threshold)
    assert score(key, wrong, singletons=False)["conll"].f1 == 0 < chosen[False].score


def test_views_show_what_the_clusters_say(prepared: CoreferenceRun):
    (prediction, *_) = test = experiment.predict_split(prepared, "test", None)
    topics, mentions = prepared.topics["test"], prediction.group.mentions
    # one cluster of all at threshold 0: the merged pairs are those that do not corefer, and none is split
    merged, split = view.pair_errors(topics, test[:1], 0.0)
    assert len(prediction.clusters(0.0)) == 1
    gold = [mention.cluster for mention in mentions]
    wrong = sum(gold[i] != gold[j] for i in range(len(gold)) for j in range(i))
    assert (len(merged), len(split)) == (wrong, 0)
    # and alone at threshold 1
    merged, split = view.pair_errors(topics, test[:1], 1.0)
    pairs = len(mentions) * (len(mentions) - 1) // 2
    assert (len(merged), len(split)) == (0, pairs - wrong)

    (cluster,) = view.shown_clusters(topics, prediction, 0.0)
    documents = {document.id: document for topic in topics for document in topic.documents}
    starts = [documents[mention.document].tokens[0] for mention in mentions]
    assert all(one.document.startswith(start) for one, start in zip(cluster.mentions, starts, strict=True))
    assert not any("storyworld-" in f"{one.document} {one.gold}" for one in cluster.mentions)
    assert len({one.gold for one in cluster.mentions}) == len(set(gold)), "two clusters have two names"
    first = documents[mentions[0].document].text_of(mentions[0])
    assert cluster.mentions[0].text.split()[0] == first.split()[0]
    choice = ThresholdChoice(threshold=0.5, score=0.1, tried=((0.5, 0.1),))
    predictions = Predictions(dev=test, test=test, choice=choice)
    assert view.tree_view(prepared, predictions).data
    assert "cluster" in view.clusters_view(prepared, predictions).data
    assert view.errors_view(prepared, predictions).data


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["runs/a", "runs/b/"], ["a", "b"]),
        (["runs/x/a", "runs/y/a", "runs/a", "runs/y/c"], ["x/a", "y/a", "runs/a", "c"]),
        (["runs/x/a", "runs/x/../x/a", "runs/x/a"], ["a"]),
        (["runs/this run", "runs/singletons"], ["runs/this run", "runs/singletons"]),
        (["a/same", "b/a/same", "c/same"], ["{here}/a/same", "b/a/same", "c/same"]),
    ],
)
def test_no_run_to_compare_with_takes_the_name_of_another(folders: list[str], names: list[str]):
    here = Path.cwd().name
    found = told_apart(folders, taken={"this run", "singletons", "one cluster", "same head word"})
    assert list(found.values()) == [name.format(here=here) for name in names]
    assert {Path(folder).resolve() for folder in found} == {Path(folder).resolve() for folder in folders}
