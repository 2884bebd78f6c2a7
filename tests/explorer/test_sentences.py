"""The sentences that are handed to bertviz."""

from dataclasses import replace

import numpy as np
import pytest

from cdlm_lab.encoders.source_attention import attention_between
from cdlm_lab.explorer import bertviz_box as sentences
from cdlm_lab.explorer.explorer import ExploredCluster


@pytest.fixture
def handed(monkeypatch) -> dict:
    """What bertviz is given, and the positions it is of."""
    given = {}

    def recorded(model, ids, *, queries, keys, global_mask):
        given.update(queries=queries, keys=keys)
        return attention_between(model, ids, queries=queries, keys=keys, global_mask=global_mask)

    monkeypatch.setattr(sentences, "attention_between", recorded)
    monkeypatch.setattr(
        sentences, "bertviz_html", lambda weights, **named: given.update(named, weights=weights)
    )
    return given


@pytest.mark.parametrize("direction", ["from", "to"])
@pytest.mark.parametrize("with_target", [True, False])
def test_bertviz_gets_what_passes_between_the_sentences_of_both_spans(
    explored: ExploredCluster, handed: dict, with_target: bool, direction: str
):
    chosen, reader = explored.view.chosen, explored.readers[1]
    selection = chosen if with_target else replace(chosen, target=None)
    sentences.sentences_in_bertviz(reader, selection, view="head", direction=direction)
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
    everywhere = np.arange(len(ids))
    is_global = np.isin(everywhere, source)
    full = attention_between(reader.model, ids, queries=everywhere, keys=everywhere, global_mask=is_global)
    expected = full[:, :, handed["queries"]][:, :, :, handed["keys"]]
    np.testing.assert_allclose(handed["weights"], expected, atol=1e-6)


def test_where_nothing_passes_it_says_so(explored: ExploredCluster):
    selection = replace(explored.view.chosen, source_global=False)
    with pytest.raises(ValueError, match="nothing passes between these sentences: they are too far apart"):
        sentences.sentences_in_bertviz(explored.readers[1], selection, view="head", direction="from")


def test_a_long_sentence_is_cut_around_the_words(explored: ExploredCluster, handed: dict, monkeypatch):
    monkeypatch.setattr(sentences, "MOST_TOKENS", {"head": 6, "model": 4})
    explored.in_bertviz("Longformer", "model", "from")
    chosen = explored.view.chosen
    for place, positions in ((chosen.source, handed["queries"]), (chosen.target, handed["keys"])):
        assert 1 <= len(positions) <= 4
        reader = explored.readers[0]
        assert reader.positions(place)[0] in positions
        whole = reader.positions_of([(place[0], word, word + 1) for word in reader.sequence.word[positions]])
        assert len(positions) == 1 or set(whole) == set(positions), "no word is cut"
    texts = handed["query_tokens"] + handed["key_tokens"]
    assert any(text.startswith("\u2026 ") or text.endswith(" \u2026") for text in texts), "it says so"
