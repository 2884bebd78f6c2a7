"""Documents of one's own: from a typed text to clusters on the screen and on the disk."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cdlm_lab.data.files import DataError
from cdlm_lab.data.typed_documents import parse_marked_documents
from cdlm_lab.experiments.coreference import (
    EXAMPLES,
    CoreferenceSettings,
    PairSettings,
    Prepared,
    cluster_own,
    own_clusters,
    own_text,
    prepare,
)
from cdlm_lab.models.encoder import TinySizes, load_language_model


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("encoder")
    sizes = TinySizes(hidden_size=16, layers=1, heads=2, intermediate_size=16, vocabulary=300)
    model, tokenizer = load_language_model("tiny", max_length=128, window=8, sizes=sizes)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.set_num_threads(1)
    settings = CoreferenceSettings(
        corpus="storyworld", kind="event", context="documents", topic_level="subtopic", predicted_topics="",
        train_stories=2, held_out_stories=1, dev_topics="", test_topics="", singletons=True, seed=0,
    )  # fmt: skip
    pairs = PairSettings(
        epochs=1, negatives_per_positive=1.0, train_pairs=8, max_length=128, checkpoint="conll",
        both_orders=True, batch_size=8,
    )  # fmt: skip
    return prepare(settings=settings, pairs=pairs, model=str(folder), window=8, attention="auto")


def test_clusters_by_threshold_are_shown_and_written(prepared: Prepared, tmp_path: Path):
    text = "== one ==\nA <m>fire</m> broke out.\n== two ==\nThe <m>blaze</m> was put <m>out</m>."
    clusters_at = own_clusters(prepared, text, folder=tmp_path)
    html = clusters_at(0.0)
    assert "1 cluster" in html
    assert "one:0" not in html, "which mentions corefer is not known, so nothing is marked as wrong"
    assert "\u2260" not in html
    assert "blaze" in html
    written = json.loads((tmp_path / "own_clusters.json").read_text())
    assert written["threshold"] == 0.0
    assert [mention["text"] for mention in written["clusters"][0]] == ["fire", "blaze", "out"]
    assert written["clusters"][0][1] == {"document": "two", "tokens": [1, 2], "text": "blaze"}
    clusters_at(1.0)
    written = json.loads((tmp_path / "own_clusters.json").read_text())
    assert [len(cluster) for cluster in written["clusters"]] == [1, 1, 1]


def test_markup_in_a_document_is_text(prepared: Prepared, tmp_path: Path):
    text = "A <m>fire <script>alert(1)</script></m> and a <m>blaze</m>."
    html = own_clusters(prepared, text, folder=tmp_path)(0.0)
    assert "<script" not in html
    assert "&lt;" in html


def test_one_mention_is_not_enough(prepared: Prepared):
    with pytest.raises(DataError, match=r"x\.txt:1: field marks: there is one mention only"):
        cluster_own(prepared, "A <m>fire</m>.", source="x.txt")
    with pytest.raises(DataError, match="no mention in any document"):
        cluster_own(prepared, "A fire.")


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_examples_are_well_formed(prepared: Prepared, kind: str):
    topic = parse_marked_documents(own_text("", kind), kind=kind)
    assert len(topic.documents) >= 2
    of_kind = replace(prepared, settings=replace(prepared.settings, kind=kind))
    found, prediction = cluster_own(of_kind, own_text("", kind))
    assert found == topic
    assert len(prediction.group.mentions) == sum(len(document.mentions) for document in topic.documents) >= 6


def test_a_file_is_read(tmp_path: Path):
    (tmp_path / "own.txt").write_text("A <m>fire</m>.", encoding="utf-8")
    assert own_text(str(tmp_path / "own.txt"), "event") == "A <m>fire</m>."
    with pytest.raises(DataError, match=r"gone\.txt"):
        own_text(str(tmp_path / "gone.txt"), "event")
