"""Scores of pairs: the same whatever the batches, kept on disk, gone on with, in one order or both."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.examples.collate import Collate
from cdlm_lab.examples.mention_pairs import (
    MentionPairExamples,
    all_pairs,
    corefer,
    group_mentions,
    marks_from_tokenizer,
    mentions_in,
    pairs_within,
)
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.experiments import coreference as pair_scoring
from cdlm_lab.experiments.coreference import THRESHOLDS, score_pairs
from cdlm_lab.models.coreference import PairScorer, load_pair_scorer
from cdlm_lab.models.encoder import TinySizes

SIZES = TinySizes(
    hidden_size=16, layers=1, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
)


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> tuple[PairScorer, object]:
    from cdlm_lab.models.encoder import load_language_model

    folder = tmp_path_factory.mktemp("encoder")
    model, tokenizer = load_language_model("tiny", max_length=128, window=8, sizes=SIZES)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.set_num_threads(1)
    return load_pair_scorer(folder, max_length=128, window=8)


@pytest.fixture(scope="module")
def examples(scorer) -> MentionPairExamples:
    topics = list(read_storyworld_topics("test", 1))
    (group,) = group_mentions(topics, "event", "topic")
    tokenizer = scorer[1]
    return MentionPairExamples(
        mentions=group.mentions,
        pairs=all_pairs(6),
        documents=EncodedDocuments((d for t in topics for d in t.documents), tokenizer),
        special=from_tokenizer(tokenizer),
        marks=marks_from_tokenizer(tokenizer),
        context="documents",
        max_length=128,
    )


def test_decisions_in_bfloat16_are_those_of_float32():
    """Of a trained scorer. What may change a decision is a score nearer to the threshold than the rounding of
    scores, 0.001 on average: of this small one, whose scores lie everywhere between 0 and 1, that is about
    one pair in 700; of MiniLM on ECB+ one in 2,900."""
    scorer, tokenizer = load_pair_scorer("storyworld/cdlm", max_length=128, window=32)
    groups = group_mentions(topics := list(read_storyworld_topics("train", 6)), "event", "topic")
    examples = MentionPairExamples(
        mentions=mentions_in(groups),
        pairs=pairs_within(groups),
        documents=EncodedDocuments((d for t in topics for d in t.documents), tokenizer),
        special=from_tokenizer(tokenizer),
        marks=marks_from_tokenizer(tokenizer),
        context="sentences",
        max_length=128,
        labels=corefer(groups, pairs_within(groups)).astype(np.float32),
    )
    order = np.random.default_rng(0).permutation(len(examples))
    corefers = order[examples.labels[order] == 1]
    balanced = np.stack([corefers, order[examples.labels[order] == 0][: len(corefers)]], axis=1).ravel()
    learned(scorer, examples.in_order(np.tile(balanced, 5)[:800]), batch_size=8)
    form = {"file": None, "batch_size": 16}
    exact, rounded = (score_pairs(scorer, examples, precision=one, **form) for one in ("float32", "bfloat16"))
    assert exact.std() > 0.1, "it has learned something"
    assert rounded.dtype == np.float32
    assert len(np.unique(rounded)) > 0.9 * len(np.unique(exact)), "heads compute in float32: few are equal"
    assert 0 < np.abs(rounded - exact).max() < 0.04
    assert np.abs(rounded - exact).mean() < 0.003
    same = [((exact > threshold) == (rounded > threshold)).mean() for threshold in THRESHOLDS]
    assert np.mean(same) > 0.997


def learned(scorer: PairScorer, examples: MentionPairExamples, *, batch_size: int) -> None:
    """One pass of AdamW."""
    collate = Collate(pad_token_id=scorer.config.pad_token_id)
    optimiser = torch.optim.AdamW(scorer.parameters(), lr=5e-4)
    for start in range(0, len(examples), batch_size):
        stop = min(start + batch_size, len(examples))
        loss = scorer(**collate([examples[number] for number in range(start, stop)])).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def test_batches_change_nothing_and_each_pair_is_scored(scorer, examples, tmp_path: Path):
    alone = score_pairs(scorer[0], examples, file=tmp_path / "alone.npy", batch_size=1)
    together = score_pairs(scorer[0], examples, file=tmp_path / "together.npy", batch_size=7)
    assert alone.shape == (15,)
    assert len(set(alone.tolist())) > 10, "pairs differ"
    np.testing.assert_allclose(alone, together, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(np.load(tmp_path / "alone.npy", allow_pickle=False), alone)


def test_both_orders_give_the_mean(scorer, examples, tmp_path: Path):
    from dataclasses import replace

    both = score_pairs(scorer[0], examples, file=tmp_path / "a.npy", batch_size=4, both_orders=True)
    one = score_pairs(scorer[0], examples, file=tmp_path / "b.npy", batch_size=4)
    exchanged = replace(examples, pairs=np.ascontiguousarray(examples.pairs[:, ::-1]))
    other = score_pairs(scorer[0], exchanged, file=tmp_path / "c.npy", batch_size=4)
    assert np.abs(one - other).max() > 1e-4, "the order matters to this scorer"
    np.testing.assert_allclose(both, (one + other) / 2, rtol=1e-6)


def test_a_stopped_run_goes_on(scorer, examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = score_pairs(scorer[0], examples, file=tmp_path / "whole.npy", batch_size=4)
    real, seen = pair_scoring._probabilities, []

    def dies_in_the_third(model, batch):
        seen.append(len(batch["input_ids"]))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(model, batch)

    monkeypatch.setattr(pair_scoring, "_probabilities", dies_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        score_pairs(scorer[0], examples, file=tmp_path / "part.npy", batch_size=4)
    assert np.isnan(np.load(tmp_path / "part.npy", allow_pickle=False)).sum() == 15 - 2 * 4
    seen[:] = [0, 0, 0]
    resumed = score_pairs(scorer[0], examples, file=tmp_path / "part.npy", batch_size=4)
    assert sum(seen[3:]) == 15 - 2 * 4, "what was scored is not scored again"
    np.testing.assert_allclose(resumed, whole, rtol=1e-4, atol=1e-6)
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_scores_of_another_list_of_pairs_are_refused(scorer, examples, tmp_path: Path):
    np.save(tmp_path / "old.npy", np.zeros(3, dtype=np.float32))
    with pytest.raises(ValueError, match=r"old\.npy holds numbers of shape \(3,\), but there are \(15,\)"):
        score_pairs(scorer[0], examples, file=tmp_path / "old.npy", batch_size=4)
