"""The explorer with a model behind it: scores, ranks, what-ifs and the overview are those of the analysis."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cdlm_lab.analysis.percentile_rank import source_scores, word_scores
from cdlm_lab.analysis.source_attention import attend_to_source
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.experiments.attention_analysis import (
    Reader,
    explorer,
    overview_of,
    panel_of,
    read_documents,
    shown_document,
)
from cdlm_lab.models.encoder import TinySizes, load_language_model
from cdlm_lab.widgets.explorer import Selection

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
)


@pytest.fixture(scope="module")
def documents():
    return next(iter(read_storyworld_topics("test", 1))).documents[:3]


@pytest.fixture(scope="module")
def loaded():
    torch.set_num_threads(1)
    return load_language_model("tiny", max_length=2048, window=16, sizes=SIZES)


@pytest.fixture
def reader(documents, loaded) -> Reader:
    return read_documents(documents, {"tiny": loaded}, max_length=2048)[0]


@pytest.fixture
def counts(documents) -> np.ndarray:
    return np.concatenate([shown_document(document).counts for document in documents])


SOURCE = Selection(source=(0, 12, 14), target=(1, 30, 32), layer=1)


def test_a_panel_holds_the_papers_scores(reader, counts):
    panel = panel_of(reader, SOURCE, counts)
    positions = reader.sequence.positions(0, (12, 14))
    attention = attend_to_source(reader.model, reader.sequence.input_ids, source=positions)
    tokens = source_scores(attention.given, attention.received)
    expected = word_scores(tokens, reader.words, int(reader.firsts[-1]))
    np.testing.assert_allclose(panel.scores, np.nan_to_num(expected, nan=1.0))
    np.testing.assert_array_equal(panel.reach, ~np.isnan(expected))
    # the rank of the target by a slow definition
    first = reader.firsts[1]
    target = panel.scores[first + 30 : first + 32].mean()
    others = [
        panel.scores[first + n]
        for n in range(reader.firsts[2] - first)
        if counts[first + n] and n not in (30, 31)
    ]
    below = sum(one < target for one in others) + sum(one == target for one in others) / 2
    assert panel.target_rank == pytest.approx(100 * below / len(others))


@pytest.mark.parametrize(
    "change",
    [{"layer": 0}, {"heads": (1,)}, {"direction": "from"}, {"reduce": "max"}, {"source_global": False}],
)
def test_every_choice_changes_the_scores(reader, counts, change):
    before, after = (panel_of(reader, chosen, counts) for chosen in (SOURCE, replace(SOURCE, **change)))
    assert np.abs(before.scores - after.scores).max() > 1e-6


def test_layers_and_heads_need_no_other_run(reader, counts):
    for change in ({}, {"layer": 0}, {"heads": (0,)}, {"direction": "to"}, {"target": None}):
        panel_of(reader, replace(SOURCE, **change), counts)
    assert len(reader.runs) == 1


def test_without_global_attention_far_words_are_out_of_reach(reader, counts):
    panel = panel_of(reader, replace(SOURCE, source_global=False), counts)
    assert panel.reach[: reader.firsts[1]].any()
    assert not panel.reach[reader.firsts[1] :].any()
    assert (panel.read | ~panel.reach).all(), "what is reached is read"
    assert panel.read[reader.firsts[1] :].any()
    assert (panel.scores[reader.firsts[1] :] == 1).all(), "exp of no weight"
    seen = panel_of(reader, replace(SOURCE, source_global=False, extra_global=((2, 5, 6),)), counts)
    assert np.flatnonzero(seen.reach[reader.firsts[1] :]).tolist() == [
        reader.firsts[2] - reader.firsts[1] + 5
    ]


def test_hidden_words_are_hidden_and_predicted(reader, counts):
    selection = replace(SOURCE, masked=((2, 8, 10),))
    panel = panel_of(reader, selection, counts)
    (prediction,) = panel.predictions
    assert prediction.span == (2, 8, 10)
    assert len(prediction.top) == 5
    hidden = reader.sequence.positions(2, (8, 10))
    ids = torch.tensor(reader.sequence.input_ids)[None]
    masked = ids.clone()
    masked[0, hidden] = reader.tokenizer.mask_token_id
    is_global = torch.zeros_like(ids)
    is_global[0, reader.sequence.positions(0, (12, 14))] = 1
    with torch.no_grad():
        states = reader.model.longformer(
            masked, torch.ones_like(ids), global_attention_mask=is_global
        ).last_hidden_state
        shares = reader.model.lm_head(states).softmax(-1)[0]
    expected = np.prod([float(shares[place, ids[0, place]]) for place in hidden])
    assert prediction.truth_probability == pytest.approx(expected, rel=1e-3)


def test_the_overview_is_the_mean_weight_between_sentences(reader, documents):
    shown = [shown_document(document) for document in documents]
    told: list[str] = []
    (matrix,) = overview_of([reader], shown, told.append)
    sizes = [len(document.sentences) for document in shown]
    assert matrix.shape == (sum(sizes), sum(sizes))
    assert len(told) == max(sizes)
    # one pair of sentences by hand: the third of the first document, the fifth of the second
    source = np.concatenate(
        [reader.sequence.positions(n, document.sentences[2]) for n, document in enumerate(shown)]
    )
    attention = attend_to_source(reader.model, reader.sequence.input_ids, source=source, layers=[-1])
    mine = np.isin(attention.source, reader.sequence.positions(0, shown[0].sentences[2]))
    theirs = reader.sequence.positions(1, shown[1].sentences[4])
    weights = (attention.given + attention.received)[0].sum(0)[mine][:, theirs]
    assert matrix[2, sizes[0] + 4] == pytest.approx(weights.mean(), rel=1e-4)


def test_words_that_did_not_fit_are_said(documents, loaded, counts):
    (short,) = read_documents(documents, {"tiny": loaded}, max_length=120)
    with pytest.raises(ValueError, match=r"tiny does not read these words: .* tokens did not fit"):
        panel_of(short, replace(SOURCE, source=(0, 150, 151)), counts)
    panel = panel_of(short, replace(SOURCE, source=(0, 1, 2), target=None), counts)
    assert not panel.reach[short.firsts[1] - 1]
    assert not panel.read[short.firsts[1] - 1]
    assert panel.read[0]


def test_the_widget_is_answered_by_the_model(documents, reader):
    widget = explorer(documents, [reader], kind="event")
    assert widget.view == "overview"
    assert widget.overview is not None
    events = sum(mention.kind == "event" for mention in documents[0].mentions)
    assert len(widget.documents[0]["mentions"]) == events
    widget.choose(SOURCE)
    assert widget.answer["panels"][0]["name"] == "tiny"
    assert widget.options["predicts"]
