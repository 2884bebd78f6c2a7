"""A model that has read the documents: scores, ranks and what-ifs are those of the analysis."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cdlm_lab.encoders.percentile_rank import source_scores, word_scores
from cdlm_lab.encoders.source_attention import attend_to_source
from cdlm_lab.explorer.reading import Reader, Selection, panel_of, read_documents

SOURCE = Selection(source=(0, 12, 14), target=(1, 30, 32), layer=1)


def test_a_panel_holds_the_papers_scores(reader):
    panel = panel_of(reader, SOURCE)
    positions = reader.sequence.positions(0, (12, 14))
    attention = attend_to_source(reader.model, reader.sequence.input_ids, source=positions)
    tokens = source_scores(attention.given, attention.received)
    expected = word_scores(tokens, reader.words, int(reader.firsts[-1]))
    np.testing.assert_allclose(panel.scores, np.nan_to_num(expected, nan=1.0))
    np.testing.assert_array_equal(panel.reach, ~np.isnan(expected))
    # the rank of the target by a slow definition
    first, end = reader.firsts[1:3]
    target = panel.scores[first + 30 : first + 32].mean()
    ranked = [n for n in range(first, end) if reader.ranked[n] and n - first not in (30, 31)]
    below = sum((panel.scores[n] < target) + (panel.scores[n] == target) / 2 for n in ranked)
    assert panel.target_rank == pytest.approx(100 * below / len(ranked))


@pytest.mark.parametrize(
    "change",
    [{"layer": 0}, {"heads": (1,)}, {"direction": "from"}, {"reduce": "max"}, {"source_global": False}],
)
def test_every_choice_changes_the_scores(reader, change):
    before, after = (panel_of(reader, chosen) for chosen in (SOURCE, replace(SOURCE, **change)))
    assert np.abs(before.scores - after.scores).max() > 1e-6
    again = "source_global" in change
    assert len(reader.runs) == 1 + again, "layers, heads and directions need no other run"


def test_without_global_attention_far_words_are_out_of_reach(reader):
    panel, second = panel_of(reader, replace(SOURCE, source_global=False)), reader.firsts[1]
    assert panel.reach[:second].any()
    assert not panel.reach[second:].any()
    assert (panel.read | ~panel.reach).all(), "what is reached is read"
    assert panel.read[second:].any()
    assert (panel.scores[second:] == 1).all(), "exp of no weight"
    seen = panel_of(reader, replace(SOURCE, source_global=False, extra_global=((2, 5, 6),)))
    assert np.flatnonzero(seen.reach[second:]).tolist() == [reader.firsts[2] - second + 5]


def test_hidden_words_are_hidden_whole_and_predicted_piece_by_piece(reader):
    place = next((2, n, n + 1) for n in range(99) if len(reader.sequence.positions(2, (n, n + 1))) > 2)
    (prediction,) = panel_of(reader, replace(SOURCE, masked=(place,))).predictions
    hidden = reader.sequence.positions(2, place[1:])
    assert (prediction.span, prediction.pieces) == (place, len(hidden))
    ids = torch.tensor(reader.sequence.input_ids)[None]
    text, is_global, expected = ids.clone(), torch.zeros_like(ids), 1.0
    text[0, hidden] = reader.tokenizer.mask_token_id
    is_global[0, reader.sequence.positions(0, (12, 14))] = 1
    for at in hidden:  # the pieces before it stand there
        with torch.no_grad():
            read = reader.model.longformer(text, torch.ones_like(ids), global_attention_mask=is_global)
            shares = reader.model.lm_head(read.last_hidden_state).softmax(-1)[0]
        expected *= float(shares[at, ids[0, at]])
        text[0, at] = ids[0, at]
    assert prediction.truth_probability == pytest.approx(expected, rel=1e-3)
    assert len(prediction.top) == 5
    assert all(word and " " not in word for word, _ in prediction.top), "one word, not pieces of several"


def test_words_that_did_not_fit_are_said(documents, loaded):
    (short,) = read_documents(documents, loaded, max_length=120)
    with pytest.raises(ValueError, match=r"tiny does not read these words: .* tokens did not fit"):
        panel_of(short, replace(SOURCE, source=(0, 150, 151)))
    panel = panel_of(short, replace(SOURCE, source=(0, 1, 2), target=None))
    last = short.firsts[1] - 1
    assert (panel.reach[last], panel.read[last], panel.read[0]) == (False, False, True)


@pytest.mark.parametrize("text", ["Zebra", "two <b>words"])
def test_a_rewritten_word_is_read_beside_the_text_before(reader, documents, loaded, text):
    edited = replace(SOURCE, edits=((1, 5, text),), masked=((1, 7, 8),))
    panel = panel_of(reader, edited)
    unedited = replace(edited, edits=())
    before = panel_of(reader, unedited)
    np.testing.assert_array_equal(panel.before.scores, before.scores)
    assert panel.before.predictions == before.predictions
    assert before.before is None
    words = list(documents[1].tokens)
    words[5] = text
    changed = [documents[0], replace(documents[1], tokens=tuple(words)), documents[2]]
    (other,) = read_documents(changed, loaded, max_length=2048)
    expected = panel_of(other, unedited)
    np.testing.assert_array_equal(panel.scores, expected.scores)
    assert panel.predictions == expected.predictions
    assert panel.scores.shape == panel.before.scores.shape, "a word stays one place"
    assert np.abs(panel.scores - panel.before.scores).max() > 1e-6


def test_a_cut_panel_also_holds_that_of_before(reader: Reader) -> None:
    source = Selection(source=(0, 3, 5), masked=((1, 2, 3),), layer=1)
    before = panel_of(reader, source)
    other = reader.document_of_word != 0
    for cut in ("documents", "layer", "below", "random"):
        panel = panel_of(reader, replace(source, cut=cut))
        np.testing.assert_array_equal(panel.before.scores, before.scores)
        assert panel.before.reach[other].any()
        assert panel.reach[other].any() == (cut in ("below", "random"))
        assert panel.reach[~other].any()
        assert (panel.scores[other] == 1).all() == (cut in ("documents", "layer")), "exp(0)"
        assert panel.predictions != before.predictions
    np.testing.assert_array_equal(panel_of(reader, source).scores, before.scores)
