"""One reading for all pairs of mentions of two documents: what is read, and each pair once, in any room."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from run_fixtures import die_in_the_third_batch
from transformers import PreTrainedTokenizerBase

import cdlm_lab
from cdlm_lab.data.convert.conll import write_conll
from cdlm_lab.data.records import gold_clusters
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.examples.collate import Collate
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference import experiment, view
from cdlm_lab.tasks.coreference.clustering import labels_at
from cdlm_lab.tasks.coreference.examples import corefer, group_mentions, marks_from_tokenizer, pairs_within
from cdlm_lab.tasks.coreference.experiment import Settings
from cdlm_lab.tasks.coreference.model import OneReadingScorer, load_pair_scorer, mean_states
from cdlm_lab.tasks.coreference.readings import ReadingExamples, windows_around
from cdlm_lab.tasks.coreference.scoring import Scorer, score_pairs, scored_apart

Loaded = tuple[OneReadingScorer, PreTrainedTokenizerBase]


@pytest.fixture(scope="module")
def sharp(sharp_encoder: str) -> Loaded:
    """A scorer whose scores differ between pairs."""
    return load_pair_scorer(sharp_encoder, scorer="one-reading", max_length=128, window=16)


def readings(tokenizer: PreTrainedTokenizerBase, *, stories: int = 2, **changes: object) -> ReadingExamples:
    topics = list(read_storyworld_topics("test", stories))
    form = {
        "documents": EncodedDocuments((one for topic in topics for one in topic.documents), tokenizer),
        "special": from_tokenizer(tokenizer),
        "marks": marks_from_tokenizer(tokenizer),
        "context": "sentences",
        "max_length": 128,
    }
    return ReadingExamples.over(group_mentions(topics, "event", "topic"), **(form | changes))


@pytest.mark.parametrize(
    ("context", "max_length"), [("sentences", 2048), ("sentences", 72), ("documents", 128)]
)
def test_each_pair_is_in_one_reading_whatever_the_room(sharp: Loaded, context: str, max_length: int):
    examples = readings(sharp[1], context=context, max_length=max_length).labelled()
    pairs, found = pairs_within(examples.groups), []
    same = corefer(examples.groups, pairs)
    for number, example in enumerate(examples):
        size, mask = examples.size_of(number), example["pair_mask"]
        assert size.length == len(example["input_ids"]) <= max_length
        assert size.global_count == example["global_attention_mask"].sum()
        read = (example["input_ids"] == examples.marks.start).sum()
        assert read == len(example["mention_mask"]) == len(mask), "each mention is marked"
        for row, mention in zip(example["mention_mask"], examples._numbers(number), strict=True):
            record = examples.mentions[mention]
            encoded = examples.documents[record.document]
            own = encoded.input_ids[slice(*encoded.subwords(record.tokens))]
            np.testing.assert_array_equal(example["input_ids"][row], own)
            assert example["global_attention_mask"][row].all()
        of_pairs = examples.pairs_of(number)
        np.testing.assert_array_equal(example["labels"][mask] == 1, same[of_pairs])
        assert (example["labels"][~mask] == -100).all()
        numbers = examples._numbers(number)[np.argwhere(mask)]
        np.testing.assert_array_equal(np.sort(numbers, axis=1), pairs[of_pairs])
        found += of_pairs.tolist()
    assert sorted(found) == list(range(len(pairs))) == list(range(examples.pair_count))
    parts, documents = len(examples.parts), len({one.document for one in examples.parts})
    assert (parts > documents) == (max_length < 2048), "there is room for whole documents, or there is not"
    assert any(examples.size_of(number).lost_tokens for number in range(len(examples))) == (max_length < 2048)


def test_of_documents_in_parts_promising_mentions_are_read_together_and_no_others(sharp: Loaded):
    examples = readings(sharp[1], max_length=72)
    every, pairs = range(examples.pair_count), pairs_within(examples.groups)
    documents = [one.document for one in examples.mentions]
    in_parts = {a.document for a, b in pairwise(examples.parts) if a.document == b.document}
    promising = np.random.default_rng(0).random(len(every)) < 0.03
    hopeful = {(documents[i], documents[j]): set() for i, j in pairs}
    for i, j in pairs[promising]:
        hopeful[documents[i], documents[j]] |= {i, j}
    found = pairs_read(examples.of_promising(promising))
    assert len(found) == len({*found}) < len(every), "no pair twice"
    assert {*np.flatnonzero(promising)} <= {*found}
    for i, j in pairs[found]:
        whole = not {documents[i], documents[j]} & in_parts
        assert whole or {i, j} <= hopeful[documents[i], documents[j]]
    assert sorted(pairs_read(examples.of_promising(promising | True))) == [*every]
    whole = readings(sharp[1], max_length=2048)
    assert (examples.in_parts, whole.in_parts) == (True, False)
    np.testing.assert_array_equal(whole.of_promising(promising & False).readings, whole.readings)


def pairs_read(examples: ReadingExamples) -> list[int]:
    return np.concatenate([examples.pairs_of(number) for number in range(len(examples))]).tolist()


def test_scores_from_parts_read_alone(sharp: Loaded):
    """Within a part those of its reading; else the head on what the two readings say, with the mean of their
    [CLS]."""
    model, tokenizer = sharp
    examples = readings(tokenizer, max_length=72)
    actual = scored_apart(
        Scorer(settings=Settings(precision="float32"), model=model, tokenizer=tokenizer),
        examples,
        batch_size=3,
    )
    alone = score_pairs(model, examples.alone, file=None, batch_size=3)
    within = ~np.isnan(alone)
    assert 0 < within.mean() < 1
    np.testing.assert_allclose(actual[within], alone[within], atol=1e-6)
    read = {}
    for number, part in enumerate(examples.parts):
        first, vectors = states_of(sharp, examples.alone[number])
        read |= {place: (first, vector) for place, vector in zip(part.mentions, vectors, strict=True)}
    pairs = pairs_within(examples.groups)
    for number in [*np.flatnonzero(~within)[:20], len(pairs) - 1]:
        (s, first), (t, second) = (read[place] for place in pairs[number])
        logit = model.scorer(torch.cat([(s + t) / 2, first, second, first * second]))
        assert actual[number] == pytest.approx(logit.sigmoid().item(), abs=1e-5)


def states_of(loaded: Loaded, example: dict[str, np.ndarray]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The state of [CLS] and those of the mentions of one reading."""
    model, _ = loaded
    batch = Collate(pad_token_id=model.config.pad_token_id)([example])
    own = (batch[name] for name in ("input_ids", "attention_mask", "global_attention_mask"))
    with torch.no_grad():
        states = model.longformer(*own).last_hidden_state[0]
    return states[0], [states[mask].mean(0) for mask in batch["mention_mask"][0]]


def test_what_does_not_fit_at_all_is_refused(sharp: Loaded):
    with pytest.raises(
        ValueError, match=r"needs \d+ tokens with its marks, but max_length 10 leaves \d+ for"
    ):
        readings(sharp[1], max_length=10)


def test_windows_are_as_wide_as_there_is_room():
    assert windows_around([(3, 4), (20, 22)], length=30, room=100) == [(0, 30)]
    assert windows_around([(3, 4), (20, 22)], length=30, room=11) == [(1, 6), (18, 24)]
    assert windows_around([(0, 1), (20, 22)], length=30, room=9) == [(0, 3), (18, 24)]
    assert windows_around([(3, 4), (4, 6)], length=30, room=3) == [(3, 6)]


def test_scores_are_those_of_one_pair_at_a_time(sharp: Loaded):
    model, tokenizer = sharp
    examples = readings(tokenizer, stories=1)
    actual = score_pairs(model, examples, file=None, batch_size=5)
    assert actual.std() > 1e-3
    assert not np.isnan(actual).any()
    expected = np.zeros(len(actual))
    for number, example in enumerate(examples):
        first, vectors = states_of(sharp, example)
        for (i, j), pair in zip(np.argwhere(example["pair_mask"]), examples.pairs_of(number), strict=True):
            both = torch.cat([first, vectors[i], vectors[j], vectors[i] * vectors[j]])
            expected[pair] = torch.sigmoid(model.scorer(both)).item()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def test_the_vector_of_a_mention_is_the_mean_of_its_states():
    states = torch.tensor([[[9.0, 8.0], [1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]])
    mask = torch.tensor([[[False, True, True, False], [False, False, False, True], [False] * 4]])
    assert mean_states(states, mask).tolist() == [[[2, -1], [5, 6], [0, 0]]]


def test_the_loss_is_the_mean_over_the_pairs_of_all_readings(sharp: Loaded):
    model, tokenizer = sharp
    examples = readings(tokenizer, stories=1).labelled()
    batch = Collate(pad_token_id=model.config.pad_token_id)([examples[0], examples[1], examples[2]])
    labels, out = batch["labels"][batch["pair_mask"]], model(**batch)
    p = torch.sigmoid(out.logits.double())
    losses = -torch.where(labels == 1, p, 1 - p).log()
    assert out.loss.item() == pytest.approx(losses.mean().item(), rel=1e-5)


def test_a_stopped_scoring_goes_on(sharp: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model, tokenizer = sharp
    examples = readings(tokenizer, stories=1)
    whole = score_pairs(model, examples, file=None, batch_size=2)
    seen = die_in_the_third_batch(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        score_pairs(model, examples, file=tmp_path / "part.npy", batch_size=2)
    resumed = score_pairs(model, examples, file=tmp_path / "part.npy", batch_size=2)
    assert sum(seen[3:]) == len(examples) - 4, "what was read is not read again"
    np.testing.assert_allclose(resumed, whole, rtol=1e-4, atol=1e-6)


def test_training_readings_are_drawn_from_the_seed(sharp: Loaded):
    examples = readings(sharp[1], stories=2, max_length=2048)
    form = {"epochs": 2, "batch_size": 4}
    drawn, same, other = (examples.drawn(seed=seed, **form) for seed in (0, 0, 1))
    np.testing.assert_array_equal(drawn.readings, same.readings)
    assert not np.array_equal(drawn.readings, other.readings)
    half = len(drawn) // 2
    assert half == len(examples) // 4 * 4
    known = {tuple(sorted(pair)) for pair in examples.readings.tolist()}
    for epoch in (drawn.readings[:half], drawn.readings[half:]):
        pairs = [tuple(sorted(pair)) for pair in epoch.tolist()]
        assert len({*pairs}) == half
        assert {*pairs} <= known
    turned = (drawn.readings[:, 0] > drawn.readings[:, 1]).mean()
    assert 0.2 < turned < 0.8, "documents stand in either order"
    lengths = np.array([drawn.length_of(number) for number in range(len(drawn))]).reshape(-1, 4)
    assert np.ptp(lengths, axis=1).mean() < np.ptp(lengths) / 2, "those of a batch are about as long"
    assert len(examples.drawn(seed=0, **form, most=9)) == 2 * 8


def test_words_of_mentions_are_hidden_as_often_as_is_said(sharp: Loaded):
    plain = readings(sharp[1], stories=2).labelled()
    hiding, seen = replace(plain, hidden=0.3), []
    for shown, masked in zip(plain, hiding, strict=True):
        other = shown["input_ids"] != masked["input_ids"]
        assert (masked["input_ids"][other] == plain.special.mask).all()
        for mention in shown["mention_mask"]:
            seen.append(other[mention].all())
            assert seen[-1] or not other[mention].any() or (shown["mention_mask"].sum(0)[mention] > 1).any()
        for name in shown.keys() - {"input_ids"}:
            np.testing.assert_array_equal(shown[name], masked[name])
    assert np.mean(seen) == pytest.approx(0.3, abs=0.04)
    np.testing.assert_array_equal(hiding[3]["input_ids"], hiding[3]["input_ids"])
    assert not hiding.without_labels().hidden, "when pairs are scored all words are read"


def test_notebook_03_from_training_to_ones_own_texts(pair_settings: Settings, tmp_path: Path):
    run = str(tmp_path / "run")
    given = replace(pair_settings, scorer="one-reading", hide_mentions=0.5, run_folder=run)
    prepared = experiment.prepare(given)
    assert prepared.config.learning_rate_factors == (("scorer", 10.0),)
    assert "readings of dev (3 times) and test" in dict(view.facts(prepared))["scoring"]
    experiment.train(prepared)
    predictions = experiment.predict(prepared)
    experiment.report(prepared, experiment.evaluate(prepared, predictions))
    opened = cdlm_lab.load(run)
    found = opened.clusters({"a": "A <m>fire</m> broke out.", "b": "The <m>blaze</m> and a <m>storm</m>."})
    assert sum(map(len, found.parts)) == 3
    again = experiment.prepare(replace(given, trained=run, run_folder=str(tmp_path / "again")))
    scores = [one.scores for one in experiment.predict_split(again, "test", None)]
    for one, other in zip(predictions.test, scores, strict=True):
        np.testing.assert_allclose(one.scores, other, rtol=1e-4, atol=1e-5)
    other = replace(given, scorer="pairwise", trained=run, run_folder=str(tmp_path / "other"))
    with pytest.raises(ValueError, match=r"scorer is 'pairwise', but .* with scorer = \"one-reading\""):
        experiment.prepare(other)


def test_a_trained_scorer_is_judged_on_a_corpus_without_training_texts(
    pair_settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    given = replace(pair_settings, scorer="one-reading", epochs=1, run_folder=str(run))
    prepared = experiment.prepare(given)
    experiment.train(prepared)
    report = experiment.report(prepared, experiment.evaluate(prepared, experiment.predict(prepared)))
    own = {row.metric: row.value for row in report.rows}["threshold"]
    groups = prepared.groups["train"]
    mentions = [(group.id, mention.cluster) for group in groups for mention in group.mentions]
    share = report.data["merged"]["train"]
    assert share == (len(mentions) - len({*mentions})) / len(mentions)
    elsewhere.mkdir()
    for split in ("dev", "test"):
        topics = list(read_storyworld_topics(split, 2, seed=5))
        write_conll(elsewhere / f"{split}.conll", topics, gold_clusters(topics, kind="event"))
    found = {}
    for by in ("dev", "trained", "unlabelled"):
        there = {"corpus": str(elsewhere), "trained": str(run), "run_folder": str(tmp_path / by)}
        judged = experiment.prepare(replace(given, threshold_by=by, **there))
        assert dict(view.facts(judged))["mentions"].startswith("train 0, dev ")
        found[by] = experiment.predict(judged)
        experiment.report(judged, experiment.evaluate(judged, found[by]))
    experiment.train_small(judged, on_log=print)
    assert "has no split to train on" in capsys.readouterr().out
    assert found["trained"].threshold == own
    assert found["dev"].choice.score >= found["trained"].choice.score
    trees = [one.tree for one in found["unlabelled"].test]
    count = sum(len(tree) + 1 for tree in trees)
    clusters = sum(len(set(labels_at(tree, found["unlabelled"].threshold))) for tree in trees)
    assert abs((count - clusters) / count - share) <= 0.5 / count + 1e-9
    with pytest.raises(ValueError, match="no split train"):
        experiment.prepare(replace(given, corpus=str(elsewhere), run_folder=str(tmp_path / "none")))
    written = json.loads((run / "report.json").read_text())
    (run / "report.json").write_text(json.dumps(written | {"data": {}}))
    refused = {"threshold_by": "unlabelled", "run_folder": str(tmp_path / "refused")}
    with pytest.raises(ParameterError, match="does not say how many of its mentions are merged; name a"):
        experiment.prepare(replace(given, **there | refused))
