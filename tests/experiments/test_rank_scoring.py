"""Percentile ranks of many targets: the paper's number, that of each head, kept on disk."""

import numpy as np
import pytest
import torch

from cdlm_lab.analysis.percentile_rank import candidate_mask, source_scores, target_rank
from cdlm_lab.analysis.source_attention import attend_to_source
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.examples.mention_pairs import sample_aligned_pairs
from cdlm_lab.examples.packing import document_sequence
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.experiments import answer_selection as rank_scoring
from cdlm_lab.experiments.answer_selection import FIRST_HEAD, PAPER, RANDOM_SPAN, target_ranks
from cdlm_lab.models.encoder import TinySizes, load_encoder

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
)


@pytest.fixture(scope="module")
def case():
    torch.set_num_threads(1)
    model, tokenizer = load_encoder("tiny", max_length=300, window=16, sizes=SIZES)
    topics = list(read_storyworld_topics("test", 2))
    pairs = sample_aligned_pairs(topics, "event", count=3, seed=0)
    documents = EncodedDocuments((d for topic in topics for d in topic.documents), tokenizer)
    settings = {
        "special": from_tokenizer(tokenizer),
        "max_length": 300,
        "candidates": "document",
    }
    return model, pairs, documents, settings


def test_ranks_by_a_second_definition(case):
    model, pairs, documents, settings = case
    ranks = target_ranks(model, pairs, documents, file=None, **settings)
    assert ranks.shape == (6, 2 + 2 * 2)
    pair = pairs[4]
    first, second = sorted((pair.source, pair.target), key=lambda mention: mention.document)
    sequence = document_sequence(
        [documents[first.document], documents[second.document]], special=settings["special"], max_length=300,
        around=[first.tokens, second.tokens],
    )  # fmt: skip
    number = {first.id: 0, second.id: 1}
    source = sequence.positions(number[pair.source.id], pair.source.tokens)
    target = sequence.positions(number[pair.target.id], pair.target.tokens)
    attention = attend_to_source(model, sequence.input_ids, source=source)
    masks = [np.isin(np.arange(300), positions)[: len(sequence.input_ids)] for positions in (source, target)]
    among = candidate_mask(sequence.document, source=masks[0], target=masks[1])
    paper = target_rank(source_scores(attention.given, attention.received), masks[1], among)
    head = source_scores(attention.given, attention.received, layers=[0], heads=[1])
    assert ranks[4, 0] == pytest.approx(paper)
    assert ranks[4, FIRST_HEAD + 1] == pytest.approx(target_rank(head, masks[1], among))
    length, scores = len(target), source_scores(attention.given, attention.received)
    (places,) = np.where(sequence.document == sequence.document[target[0]])
    spans = [
        np.isin(np.arange(len(masks[1])), places[i : i + length]) for i in range(len(places) - length + 1)
    ]
    random = np.mean([target_rank(scores, span, (among | masks[1]) & ~span) for span in spans])
    assert ranks[4, RANDOM_SPAN] == pytest.approx(random)


def test_punctuation_can_be_left_out(case):
    model, pairs, documents, settings = case
    words = target_ranks(model, pairs, documents, file=None, **{**settings, "candidates": "words"})
    assert (words[:, PAPER] != target_ranks(model, pairs, documents, file=None, **settings)[:, PAPER]).any()


def test_a_stopped_run_goes_on(case, tmp_path, monkeypatch):
    model, pairs, documents, settings = case
    whole = target_ranks(model, pairs, documents, file=None, **settings)
    real, seen = rank_scoring.attend_to_source, []

    def dies_in_the_third(*arguments, **named):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **named)

    monkeypatch.setattr(rank_scoring, "attend_to_source", dies_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        target_ranks(model, pairs, documents, file=tmp_path / "m.npy", **settings)
    again = target_ranks(model, pairs, documents, file=tmp_path / "m.npy", **settings)
    np.testing.assert_array_equal(again, whole)
    assert len(seen) == 3 + 4, "what was there is not run again"
