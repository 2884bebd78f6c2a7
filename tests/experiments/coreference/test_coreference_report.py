"""The report of notebook 03 and its views: scores by hand, other runs, wrong pairs, your own documents."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.clustering import ThresholdChoice
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.data.typed_documents import parse_marked_documents
from cdlm_lab.examples.mention_pairs import group_mentions
from cdlm_lab.experiments import coreference
from cdlm_lab.experiments.coreference.report import (
    EXAMPLES,
    baseline_responses,
    clusters_view,
    coreference_scores,
    errors_view,
    own_clusters,
    own_documents,
    pair_errors,
    read_clusters,
    shown_clusters,
    tree_view,
)
from cdlm_lab.experiments.coreference.scorer import Predictions, Prepared, Settings, predict_split
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import write_json


def document(name: str, topic: str, words: str, clusters: dict[int, str]) -> CoreferenceDocument:
    """One sentence; `clusters`: number of a one-word mention -> its cluster."""
    tokens = tuple(words.split())
    mentions = tuple(
        CoreferenceMention(
            id=f"{name}-{place}",
            document=name,
            tokens=(place, place + 1),
            sentence=0,
            kind="event",
            cluster=cluster,
        )
        for place, cluster in clusters.items()
    )
    return CoreferenceDocument(
        id=name,
        topic=topic,
        subtopic=topic,
        tokens=tokens,
        sentences=((0, len(tokens)),),
        validated=(0,),
        mentions=mentions,
    )


@pytest.fixture
def topics() -> list[Topic]:
    """In each of three topics a fire and an attack that two documents report; one says "raid" for attack."""
    return [
        Topic(
            id=topic,
            documents=(
                document(
                    f"{topic}a", topic, "The fire and the attack", {1: f"{topic}fire", 4: f"{topic}raid"}
                ),
                document(f"{topic}b", topic, "A raid caused fires", {1: f"{topic}raid", 3: f"{topic}fire"}),
            ),
        )
        for topic in ("1", "2", "3")
    ]


def test_baselines_and_their_scores(topics: list[Topic]):
    responses = baseline_responses(topics, group_mentions(topics, "event", "topic"))
    fire = [("1a", 1, 2), ("1b", 3, 4)]
    assert sorted(map(sorted, responses["same head word"]))[:2] == [fire, [("1a", 4, 5)]]
    assert len(responses["singletons"]) == 12
    assert [len(cluster) for cluster in responses["one cluster"]] == [4, 4, 4]
    key = [[(f"{t}a", 1, 2), (f"{t}b", 3, 4)] for t in "123"] + [
        [(f"{t}a", 4, 5), (f"{t}b", 1, 2)] for t in "123"
    ]
    rows, tests = coreference_scores(
        key, responses, topic_of={d.id: t.id for t in topics for d in t.documents}, columns={"split": "test"}
    )
    scores = {(row.system, row.metric): row for row in rows}
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
    assert [(row["a"], row["b"]) for row in tests] == [
        ("singletons", "one cluster"),
        ("singletons", "same head word"),
    ]
    assert all(row["p_holm"] >= row["p"] for row in tests)
    assert (conll.p, conll.against) == (tests[1]["p_holm"], "singletons")
    assert scores["singletons", "conll/f1"].p is None


def test_without_singletons_they_are_dropped_first(topics: list[Topic]):
    key = [[("1a", 1, 2), ("1b", 3, 4)], [("1a", 4, 5)]]
    topic_of = {"1a": "1", "1b": "1"}

    def b_cubed(response: list, **options: bool) -> tuple[float, float]:
        rows, _ = coreference_scores(key, {"x": response}, topic_of=topic_of, **options)
        value = {row.metric: row.value for row in rows}
        return value["b_cubed/precision"], value["b_cubed/recall"]

    assert b_cubed(key) == (1.0, 1.0)
    # the response's one cluster of three holds both mentions of the key: (2/3 + 2/3 + 0) / 3 of its mentions
    worse = [[("1a", 1, 2), ("1b", 3, 4), ("1a", 4, 5)]]
    assert b_cubed(worse, singletons=False) == (pytest.approx((2 / 3 + 2 / 3) / 3), 1.0)


def test_clusters_of_other_runs(tmp_path: Path):
    def write(*clusters: list) -> None:
        write_json(tmp_path / "clusters-test.json", {"clusters": clusters})

    clusters = [[("a", 0, 1)], [("b", 2, 3), ("b", 4, 5)]]
    with pytest.raises(ParameterError, match=r"there is no clusters-test.json in it; is the run finished\?"):
        read_clusters(tmp_path, "test", among=clusters)
    write(*clusters)
    assert read_clusters(tmp_path, "test", among=clusters) == clusters
    with pytest.raises(ParameterError, match="lacks 1 of the 2 mentions of test"):
        read_clusters(tmp_path, "test", among=[[("a", 0, 1), ("c", 0, 1)]])
    write([("a", 0, 1), ("b", 0, 1)], [("b", 2, 3)], [("c", 4, 5)])  # a run on more topics
    among = [[("a", 0, 1)], [("c", 4, 5)]]
    assert read_clusters(tmp_path, "test", among=among) == among


@pytest.fixture(scope="module")
def prepared(pair_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    run_folder = str(tmp_path_factory.mktemp("runs") / "run")
    return coreference.prepare(replace(pair_settings, context="documents", run_folder=run_folder))


def test_views_show_what_the_clusters_say(prepared: Prepared):
    (prediction, *_) = test = predict_split(prepared, "test", None)
    topics = prepared.topics["test"]
    mentions = prediction.group.mentions
    # one cluster of all at threshold 0: the merged pairs are those that do not corefer, and none is split
    errors = pair_errors(topics, test[:1], 0.0)
    assert len(prediction.clusters(0.0)) == 1
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
    first = documents[mentions[0].document].text_of(mentions[0])
    assert cluster.mentions[0].text.split()[0] == first.split()[0]
    choice = ThresholdChoice(threshold=0.5, score=0.1, tried=((0.5, 0.1),))
    predictions = Predictions(dev=test, test=test, choice=choice)
    assert tree_view(prepared, predictions).data
    assert "cluster" in clusters_view(prepared, predictions).data
    assert errors_view(prepared, predictions).data
    assert own_documents(prepared, predictions).threshold.value == 0.5


def test_own_clusters_by_threshold_are_shown_and_written(prepared: Prepared):
    text = "== one ==\nA <m>fire</m> broke out.\n== two ==\nThe <m>blaze</m> was put <m>out</m>."
    clusters_at = own_clusters(prepared, text)
    html = clusters_at(0.0)
    assert "1 cluster" in html
    assert "one:0" not in html, "which mentions corefer is not known, so nothing is marked as wrong"
    assert "\u2260" not in html
    assert "blaze" in html
    file = prepared.opened.folder / "own_clusters.json"
    written = json.loads(file.read_text())
    assert written["threshold"] == 0.0
    assert [mention["text"] for mention in written["clusters"][0]] == ["fire", "blaze", "out"]
    assert written["clusters"][0][1] == {"document": "two", "tokens": [1, 2], "text": "blaze"}
    clusters_at(1.0)
    assert [len(cluster) for cluster in json.loads(file.read_text())["clusters"]] == [1, 1, 1]


def test_markup_in_a_document_is_text(prepared: Prepared):
    html = own_clusters(prepared, "A <m>fire <script>alert(1)</script></m> and a <m>blaze</m>.")(0.0)
    assert "<script" not in html
    assert "&lt;" in html


def test_one_mention_is_not_enough(prepared: Prepared):
    with pytest.raises(DataError, match=r"x\.txt:1: field marks: there is one mention only"):
        own_clusters(prepared, "A <m>fire</m>.", source="x.txt")
    with pytest.raises(DataError, match="no mention in any document"):
        own_clusters(prepared, "A fire.")


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_examples_are_well_formed(prepared: Prepared, kind: str):
    topic = parse_marked_documents(EXAMPLES[kind], kind=kind)
    mentions = [mention for document in topic.documents for mention in document.mentions]
    assert len(topic.documents) >= 2
    assert len(mentions) >= 6
    of_kind = replace(prepared, settings=replace(prepared.settings, kind=kind))
    own_clusters(of_kind, EXAMPLES[kind])(1.0)
    written = json.loads((prepared.opened.folder / "own_clusters.json").read_text())["clusters"]
    assert len(written) == len(mentions)


def test_a_file_is_read(prepared: Prepared, tmp_path: Path):
    (tmp_path / "own.txt").write_text("A <m>fire</m>.", encoding="utf-8")
    choice = ThresholdChoice(threshold=0.5, score=0.1, tried=((0.5, 0.1),))
    predictions = Predictions(dev=[], test=[], choice=choice)

    def box(file: str) -> str:
        given = replace(prepared.settings, own_documents=str(tmp_path / file))
        return own_documents(replace(prepared, settings=given), predictions).text.value

    assert box("own.txt") == "A <m>fire</m>."
    with pytest.raises(DataError, match=r"gone\.txt"):
        box("gone.txt")
