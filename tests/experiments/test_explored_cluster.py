"""What the explorer opens with, and the sentences that are handed to bertviz."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.analysis.source_attention import attention_between
from cdlm_lab.experiments import attention_analysis as explored_cluster
from cdlm_lab.experiments.attention_analysis import (
    Analysis,
    AnalysisSettings,
    ExploredCluster,
    documents_to_explore,
    explore_cluster,
    prepare_analysis,
)
from cdlm_lab.models.encoder import TinySizes, load_encoder, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.explorer import Selection

SETTINGS = AnalysisSettings(
    corpus="storyworld", split="test", stories=6, pairs=12, candidates="document",
    max_length=400, window=8, attention="auto", seed=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    torch.set_num_threads(1)
    sizes = TinySizes(
        hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
    )
    checkpoints = {}
    for name, load in (("longformer", load_encoder), ("cdlm", load_language_model)):
        folder = tmp_path_factory.mktemp(name)
        model, tokenizer = load("tiny", max_length=400, window=8, sizes=sizes)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        checkpoints[name] = str(folder)
    return prepare_analysis(SETTINGS, checkpoints)


@pytest.fixture(scope="module")
def explored(analysis: Analysis) -> ExploredCluster:
    return explore_cluster(analysis, models="longformer cdlm")


def test_it_opens_with_a_pair_that_corefers_in_different_words(analysis: Analysis, explored: ExploredCluster):
    chosen = explored.view.chosen
    words = [
        {word.casefold() for word in explored.documents[place[0]].tokens[place[1] : place[2]]}
        for place in (chosen.source, chosen.target)
    ]
    assert not words[0] & words[1]
    clusters = {
        mention.cluster
        for document, (_, *span) in zip(explored.documents, (chosen.source, chosen.target), strict=True)
        for mention in document.mentions
        if mention.kind == "event" and list(mention.tokens) == span
    }
    assert len(clusters) == 1
    assert explored.models == ["Longformer", "CDLM"]
    assert [panel["name"] for panel in explored.view.answer["panels"]] == ["Longformer", "CDLM"]


def test_one_model_without_a_head_leaves_out_predictions(analysis: Analysis, explored: ExploredCluster):
    assert not explored.view.options["predicts"]
    assert explore_cluster(analysis, models="cdlm").view.options["predicts"]


def test_documents_can_be_named(analysis: Analysis):
    names = [document.id for document in analysis.topics[0].documents[:3]]
    documents, selection = documents_to_explore(
        analysis.topics, analysis.pairs["event"], names=f"{names[2]} {names[0]}", own=""
    )
    assert [document.id for document in documents] == [names[2], names[0]]
    assert selection is None


def test_text_of_ones_own(analysis: Analysis, tmp_path: Path):
    file = tmp_path / "mine.txt"
    file.write_text("== a ==\nThe mill burned.\n\n== b ==\nA <m>fire</m> was seen at the mill.\n")
    explored = explore_cluster(analysis, models="cdlm", own=str(file))
    assert [document.id for document in explored.documents] == ["a", "b"]
    assert explored.view.selection["source"] is None
    with pytest.raises(ValueError, match="choose words in the explorer first"):
        explored.in_bertviz("CDLM", "head", "from")
    explored.view.choose(Selection(source=(0, 2, 3), layer=1))
    assert "<iframe sandbox" in explored.in_bertviz("CDLM", "head", "from")
    assert explored.told == "2 documents, 12 words, 1 mentions underlined"


@pytest.mark.parametrize(("mark", "told"), [("", "marked, so"), ("[m]", "marked ([m] is not a mark; write ")])
def test_text_of_ones_own_needs_no_marks(analysis: Analysis, tmp_path: Path, mark: str, told: str):
    (tmp_path / "a.txt").write_text("The mill burned.\n")
    (tmp_path / "b.txt").write_text(f"A {mark}fire was seen at the mill.\n")
    explored = explore_cluster(analysis, models="cdlm", own=str(tmp_path))
    assert [document.mentions for document in explored.documents] == [(), ()]
    assert f"no mention is {told}" in explored.told
    explored.view.choose(Selection(source=(0, 2, 3), target=(1, 1, 2), layer=1))
    (panel,) = explored.view.answer["panels"]
    assert panel["target_rank"] is not None
    assert "<iframe sandbox" in explored.in_bertviz("CDLM", "head", "from")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": "cdlm", "names": "nobody"}, "explore_documents names nobody, which is not there"),
        ({"models": "cdlm", "names": "a", "own": "b"}, "are both given"),
        ({"models": "prefix-cdlm"}, "explore names 'prefix-cdlm', for which no model is given"),
        ({"models": ""}, "names 0 models; name one or two"),
    ],
)
def test_what_cannot_be_explored(analysis: Analysis, arguments: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        explore_cluster(analysis, **arguments)


@pytest.fixture
def handed(monkeypatch) -> dict:
    """What bertviz is given, and the positions it is of."""
    given = {}

    def asked(model, ids, *, queries, keys, global_mask):
        given.update(queries=queries, keys=keys)
        return attention_between(model, ids, queries=queries, keys=keys, global_mask=global_mask)

    monkeypatch.setattr(explored_cluster, "attention_between", asked)
    monkeypatch.setattr(
        explored_cluster, "bertviz_html", lambda weights, **named: given.update(named, weights=weights)
    )
    return given


@pytest.mark.parametrize("direction", ["from", "to"])
@pytest.mark.parametrize("with_target", [True, False])
def test_bertviz_gets_what_passes_between_the_sentences_of_both_spans(
    explored: ExploredCluster, handed: dict, with_target: bool, direction: str
):
    chosen = explored.view.chosen
    asked = chosen if with_target else replace(chosen, target=None)
    explored_cluster.sentences_in_bertviz(
        explored.readers, explored.documents, asked, model="CDLM", view="head", direction=direction
    )
    reader = explored.readers[1]
    ids, source = reader.sequence.input_ids, reader.positions(chosen.source)
    mine, other = (handed["queries"], handed["keys"])[:: 1 if direction == "from" else -1]
    assert len(handed["query_tokens"]) == len(handed["queries"])
    assert len(handed["key_tokens"]) == len(handed["keys"])
    assert set(source) <= set(mine)
    assert set(reader.sequence.document[mine]) == {0}
    assert set(reader.sequence.document[other]) == {1}
    if with_target:
        assert set(reader.positions(chosen.target)) <= set(other)
    # the weights are those of the whole text with the source global
    is_global = np.isin(np.arange(len(ids)), source)
    everywhere = np.arange(len(ids))
    full = attention_between(reader.model, ids, queries=everywhere, keys=everywhere, global_mask=is_global)
    expected = full[:, :, handed["queries"]][:, :, :, handed["keys"]]
    np.testing.assert_allclose(handed["weights"], expected, atol=1e-6)


def test_where_nothing_passes_it_says_so(explored: ExploredCluster):
    asked = replace(explored.view.chosen, source_global=False)
    with pytest.raises(ValueError, match="nothing passes between these sentences: they are too far apart"):
        explored_cluster.sentences_in_bertviz(
            explored.readers, explored.documents, asked, model="CDLM", view="head"
        )


def test_a_long_sentence_is_cut_around_the_words(explored: ExploredCluster, handed: dict, monkeypatch):
    monkeypatch.setattr(explored_cluster, "MOST_TOKENS", {"head": 6, "model": 4})
    explored.in_bertviz("Longformer", "model", "from")
    chosen = explored.view.chosen
    for place, positions in ((chosen.source, handed["queries"]), (chosen.target, handed["keys"])):
        assert len(positions) == 4
        assert explored.readers[0].positions(place)[0] in positions
