"""From names to models: each system reads pairs, starts as it should, and is the same when loaded again."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.data.document_pairs import DocumentPair
from cdlm_lab.data.storyworld.task_sets import read_storyworld_pairs
from cdlm_lab.examples.tokens import Vocabulary
from cdlm_lab.experiments.document_matching import (
    SYSTEMS,
    Matcher,
    MatcherParts,
    MatchingModels,
    MatchPredictions,
    new_matcher,
    predict,
)
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.checkpoints import save_model

SMALL = MatchingModels(hidden_size=6, most_sentences=5, most_words=12, max_length=192)
LEARNED = [name for name, system in SYSTEMS.items() if system.encoder != "words"]


@pytest.fixture(scope="module")
def pairs() -> list[DocumentPair]:
    return list(read_storyworld_pairs("train", 3))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def made(name: str, pairs: list[DocumentPair], cache: Path, **more) -> Matcher:
    parts = MatcherParts(settings=SMALL, training=pairs, cache=cache)
    return new_matcher(SYSTEMS[name], parts, **{"seed": 1} | more)


@pytest.mark.parametrize("name", LEARNED)
def test_a_pair_alone_is_as_in_a_batch_and_the_loss_is_of_its_label(name: str, pairs, cache) -> None:
    matcher = made(name, pairs, cache)
    together = predict(matcher, pairs, batch_size=6)
    alone = predict(matcher, pairs[2:3], batch_size=1)
    np.testing.assert_allclose(alone.probabilities, together.probabilities[2:3], atol=1e-5)
    for by, scores in alone.alignments.items():
        np.testing.assert_allclose(scores[0], together.alignments[by][2], atol=1e-5)
        assert len(scores[0]) == min(5, len(pairs[2].first.sentences))
    batch = matcher.collate([matcher.examples(pairs)[2]])
    with torch.no_grad():
        loss = matcher.model.eval()(**batch)["loss"].item()
    assert loss == pytest.approx(
        -np.log(alone.probabilities[0] if pairs[2].related else 1 - alone.probabilities[0]), abs=1e-4
    )


@pytest.mark.parametrize("name", ["bert-han-shallow", "bert-han-finetuned", "gru-han-deep", "cdlm"])
def test_a_saved_matcher_says_the_same_when_it_is_loaded(name: str, pairs, cache, tmp_path: Path) -> None:
    matcher = made(name, pairs, cache)
    with torch.no_grad():
        for parameter in matcher.model.parameters():
            parameter.mul_(1.1)  # so that it is no fresh one
    save_model(matcher.model, matcher.tokenizer, tmp_path)
    if matcher.vocabulary is not None:
        matcher.vocabulary.save(tmp_path)
    again = made(name, [], cache, trained=tmp_path)
    found, expected = (predict(one, pairs, batch_size=3) for one in (again, matcher))
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-5)


def test_seeds_make_different_models_and_the_same_seed_the_same(pairs, cache) -> None:
    one, same = (made("gru-han", pairs, cache).model.state_dict() for _ in range(2))
    other = made("gru-han", pairs, cache, seed=2).model.state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.0.weight"], other["head.0.weight"])
    assert torch.equal(one["encoder.words.weight"], other["encoder.words.weight"])  # given, not drawn


def word_table(pairs: list[DocumentPair], **settings) -> tuple[Vocabulary, np.ndarray | None]:
    return MatcherParts(
        settings=MatchingModels(**settings), training=pairs, cache=Path("not-needed")
    ).word_table


def test_words_are_those_of_an_encoder_of_a_file_or_of_the_training_documents(pairs, tmp_path: Path) -> None:
    encoder, tokenizer = load_encoder("storyworld/longformer", max_length=512, window=32)
    vocabulary, table = word_table(pairs, hidden_size=128)
    own = encoder.get_input_embeddings().weight.detach().numpy()[: len(table) - 2]
    stretched = own * (table[2, 0] / own[0, 0])
    np.testing.assert_allclose(table[2:], stretched, rtol=1e-4, atol=1e-6)
    assert np.square(table).mean() == pytest.approx(0.6**2)
    assert len(vocabulary) == len(table) == len(tokenizer) + 2

    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\nsea 3 5\nship -1 0\n")
    vocabulary, table = word_table(pairs, word_vectors=str(file), hidden_size=2)
    assert vocabulary.numbers("The ship sank", most=9).tolist() == [2, 4, 1]
    assert table[2:].tolist() == [[1, 2], [3, 5], [-1, 0]]

    vocabulary, table = word_table(pairs, word_vectors="")
    assert table is None
    assert len(vocabulary) > 20


def test_a_size_that_cannot_be() -> None:
    with pytest.raises(ParameterError, match="most_words is 0"):
        MatchingModels(most_words=0)


def test_predictions_come_back_from_disk_and_not_for_other_pairs(tmp_path: Path) -> None:
    scores = [np.array([0.25, 0.5]), np.array([1.0]), np.array([0.1, 0.2, 0.3])]
    kept = MatchPredictions(probabilities=np.array([0.1, 0.5, 0.9]), alignments={"cosine": scores})
    kept.save(tmp_path / "new" / "test.npz")
    found = MatchPredictions.load(tmp_path / "new" / "test.npz", pairs=3)
    assert found.probabilities.tolist() == [0.1, 0.5, 0.9]
    assert [one.tolist() for one in found.alignments["cosine"]] == [one.tolist() for one in scores]
    assert found.decisions.tolist() == [False, False, True]
    with pytest.raises(ValueError, match="is of 3 pairs, but there are 4"):
        MatchPredictions.load(tmp_path / "new" / "test.npz", pairs=4)
