"""The matchers: what each is, that a pair alone is as in a batch, that one loaded again says the same."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.data.storyworld.task_sets import read_storyworld_pairs
from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.examples.tokens import Vocabulary
from cdlm_lab.runs.items import read_frame, write_frame
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.experiment import Settings as MatchingSettings
from cdlm_lab.tasks.matching.systems import (
    SYSTEMS,
    CosineThreshold,
    Matcher,
    Matchers,
    MatcherSettings,
    MatchPredictions,
    predict_pairs,
)
from cdlm_lab.training.checkpoints import save_model
from cdlm_lab.views.tables import published_numbers

SMALL = MatcherSettings(hidden_size=6, most_sentences=5, most_words=12, max_length=192, window=32)
LEARNED = [name for name, system in SYSTEMS.items() if system.is_model]


def test_all_published_systems_are_tested_against_one_of_them() -> None:
    tables = [published_numbers()[table] for table in (("cda", "2"), ("cda", "3"), ("cdlm", "4"))]
    published = {system for table in tables for _, system, _ in table}
    assert set(SYSTEMS) - published == {"tf-idf", "bert-cosine"}
    assert {one.against for one in SYSTEMS.values()} - {""} <= set(SYSTEMS)
    against = {name: SYSTEMS[name].against for name in ("gru-han-deep", "gru-han-shallow", "cdlm")}
    assert against == {"gru-han-deep": "gru-han-shallow", "gru-han-shallow": "gru-han", "cdlm": "longformer"}


@pytest.fixture(scope="module")
def pairs() -> list[DocumentPair]:
    return list(read_storyworld_pairs("train", 3))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def made(name: str, pairs: list[DocumentPair], cache: Path, **more) -> Matcher:
    matchers = Matchers(settings=SMALL, training=pairs, cache=cache)
    return matchers.make(SYSTEMS[name], **{"seed": 1} | more)


@pytest.mark.parametrize("name", LEARNED)
def test_a_pair_alone_is_as_in_a_batch_and_the_loss_is_of_its_label(name: str, pairs, cache) -> None:
    matcher = made(name, pairs, cache)
    together = predict_pairs(matcher, pairs, batch_size=6)
    alone = predict_pairs(matcher, pairs[2:3], batch_size=1)
    np.testing.assert_allclose(alone.probabilities, together.probabilities[2:3], atol=1e-5)
    for by, scores in alone.alignments.items():
        np.testing.assert_allclose(scores[0], together.alignments[by][2], atol=1e-5)
        assert len(scores[0]) == min(5, len(pairs[2].first.sentences))
    batch = matcher.collate([matcher.examples(pairs)[2]])
    with torch.no_grad():
        loss = matcher.model.eval()(**batch)["loss"].item()
    right = alone.probabilities[0] if pairs[2].related else 1 - alone.probabilities[0]
    assert loss == pytest.approx(-np.log(right), abs=1e-4)


@pytest.mark.parametrize("name", ["bert-han-shallow", "bert-han-finetuned", "gru-han-deep", "cdlm"])
def test_a_saved_matcher_says_the_same_when_it_is_loaded(name: str, pairs, cache, tmp_path: Path) -> None:
    matcher = made(name, pairs, cache)
    with torch.no_grad():
        for parameter in matcher.model.parameters():
            parameter.mul_(1.1)  # so that it is no fresh one
    save_model(matcher.model, matcher.tokenizer, tmp_path)
    again = made(name, [], cache, trained=tmp_path)
    same, expected = (predict_pairs(one, pairs, batch_size=3) for one in (again, matcher))
    np.testing.assert_allclose(same.probabilities, expected.probabilities, atol=1e-5)
    if name == "bert-han-shallow":
        given = replace(SMALL, sentence_encoder="storyworld/cdlm")
        with pytest.raises(ValueError, match="of another encoder than this"):
            Matchers(settings=given, training=[], cache=cache).make(SYSTEMS[name], seed=1, trained=tmp_path)


@pytest.mark.parametrize("name", ["bert-avg", "bert-han"])
def test_frozen_encodings_are_standardised_by_the_training_pairs(name: str, pairs, cache) -> None:
    """Else what all documents have in common soon drives every unit of the head below 0."""
    matcher = made(name, pairs, cache)
    documents = {one.id: one for pair in pairs for one in (pair.first, pair.second)}.values()
    encodings = np.concatenate([matcher.examples(pairs).encode(one) for one in documents])
    centre = matcher.model.encoder.centre.numpy()
    np.testing.assert_allclose(centre, encodings.mean(0), atol=1e-5)
    assert matcher.model.encoder.spread.item() == pytest.approx((encodings - centre).std(), rel=1e-3)


def test_seeds_make_different_models_and_the_same_seed_the_same(pairs, cache) -> None:
    one, same = (made("gru-han", pairs, cache).model.state_dict() for _ in range(2))
    other = made("gru-han", pairs, cache, seed=2).model.state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.0.weight"], other["head.0.weight"])
    assert torch.equal(one["encoder.words.weight"], other["encoder.words.weight"])  # given, not drawn


def word_table(pairs: list[DocumentPair], **settings) -> tuple[Vocabulary, np.ndarray | None]:
    given = MatcherSettings(**settings)
    return Matchers(settings=given, training=pairs, cache=Path("not-needed")).word_table


def test_words_are_those_of_an_encoder_of_a_file_or_of_the_training_documents(pairs, tmp_path: Path) -> None:
    encoder, tokenizer = load_encoder("storyworld/longformer", max_length=512, window=32)
    vocabulary, table = word_table(pairs, hidden_size=128, word_vector_size=0.9)
    own = encoder.get_input_embeddings().weight.detach().numpy()[: len(table) - 2]
    np.testing.assert_allclose(table[2:], own * (table[2, 0] / own[0, 0]), rtol=1e-4, atol=1e-6)
    assert np.square(table).mean() == pytest.approx(0.9**2)
    assert len(vocabulary) == len(table) == len(tokenizer) + 2

    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\nsea 3 5\nship -1 0\n")
    vocabulary, table = word_table(pairs, word_vectors=str(file), hidden_size=2)
    assert vocabulary.numbers("The ship sank", most=9).tolist() == [2, 4, 1]
    assert table[2:].tolist() == [[1, 2], [3, 5], [-1, 0]]

    vocabulary, table = word_table(pairs, word_vectors="")
    assert (table, len(vocabulary) > 20) == (None, True)


def test_predictions_come_back_from_disk(tmp_path: Path) -> None:
    scores = [np.array([0.25, 0.5]), np.array([1.0]), np.array([0.1, 0.2, 0.3])]
    saved = MatchPredictions(probabilities=np.array([0.1, 0.5, 0.9]), alignments={"cosine": scores})
    write_frame(saved.frame, tmp_path / "new" / "test.parquet")
    again = MatchPredictions.of_frame(read_frame(tmp_path / "new" / "test.parquet"))
    assert again.probabilities.tolist() == [0.1, 0.5, 0.9]
    assert [one.tolist() for one in again.alignments["cosine"]] == [one.tolist() for one in scores]
    assert again.decisions.tolist() == [False, False, True]


# ---- cosines: learn a threshold, align by common words or meanings, and never see what they are tested on

TEXTS = {
    "a": ("the cat sat", "a storm came"),
    "b": ("a cat was there", "it purred"),
    "c": ("ships sink", "banks fail"),
    "d": ("the bank failed", "ships sink fast"),
}


def pair(first: str, second: str) -> DocumentPair:
    one, other = (PairDocument(id=name, sentences=TEXTS[name]) for name in (first, second))
    related = {first, second} in ({"a", "b"}, {"c", "d"})
    form = {"related": related, "aligned": None, "cluster": first}
    return DocumentPair(id=first + second, first=one, second=other, **form)


DEV = [pair("a", "b"), pair("c", "d"), pair("a", "d"), pair("b", "c")]


def test_common_words_make_pairs_probable_and_sentences_aligned() -> None:
    """By cosines that are those of the vectors by hand; words are those of the documents compared."""
    overlap = threshold("tf-idf")
    predictions = overlap.predict([pair("a", "b"), pair("b", "c"), pair("c", "d")])
    probabilities, cosine = predictions.probabilities, predictions.alignments["cosine"]
    assert min(probabilities[0], probabilities[2]) > probabilities[1]  # which has no word in common
    assert cosine[1].tolist() == [0, 0]
    ships, banks = cosine[2]
    assert ships > banks == 0  # "banks" is not "bank"
    first, second = overlap.vectors([TEXTS["a"], TEXTS["b"]]).toarray()
    rows = overlap.vectors([[text] for text in TEXTS["a"]]).toarray()
    np.testing.assert_allclose(cosine[0], rows @ second, atol=1e-12)
    np.testing.assert_allclose(overlap.cosines([pair("a", "b")]), [first @ second], atol=1e-12)
    without = threshold("tf-idf", [pair("c", "d"), pair("d", "a")])
    assert without.vectors([["it purred"]]).nnz == 0, "words of other documents are not known"


def test_mean_sentences_are_compared_as_far_as_documents_are_read() -> None:
    """By cosines of the encodings, kept or not: of documents, and of a sentence with a document."""
    matchers = Matchers(settings=replace(SMALL, most_sentences=1), training=(), dev=DEV, cache=None)
    by_mean = matchers.threshold(SYSTEMS["bert-cosine"])
    predictions = by_mean.predict([pair("a", "b")])

    def encoded(text: str) -> np.ndarray:
        matchers.encodings.ensure([text])
        return matchers.encodings.vectors([text])[0]

    other = encoded(TEXTS["b"][0])  # of the second document one sentence is read
    cosines = [a @ other / np.linalg.norm(a) / np.linalg.norm(other) for a in map(encoded, TEXTS["a"])]
    np.testing.assert_allclose(predictions.alignments["cosine"][0], cosines, atol=1e-5)
    np.testing.assert_allclose(by_mean.cosines([pair("a", "b")]), cosines[:1], atol=1e-5)


def test_no_cosine_depends_on_how_many_pairs_there_are_for_training(tmp_path: Path) -> None:
    """With few of them most names of the test set were no words of TF-IDF, so that it counted numbers alone
    and looked twice as good."""
    given = MatchingSettings(systems="tf-idf bert-cosine", held_out_stories=6, run_folder=str(tmp_path))
    for system in given.chosen:
        few, many = (
            MatchingRun.read(replace(given, train_stories=stories)).load(Training(system, 0))
            for stories in (2, 40)
        )
        pairs = list(read_storyworld_pairs("test", 6, unrelated="recurring"))
        one, other = few.predict(pairs), many.predict(pairs)
        assert one.probabilities.tolist() == other.probabilities.tolist()
        assert len(set(one.probabilities)) > 4
        names = {word for pair in pairs for word in " ".join(pair.second.sentences).split() if word.istitle()}
        if system.name == "tf-idf":
            known = few.vectors([[name] for name in sorted(names)]).getnnz(axis=1)
            assert known.all(), "every word that is compared counts"


def threshold(name: str, dev: list[DocumentPair] = DEV) -> CosineThreshold:
    return Matchers(settings=SMALL, training=(), dev=dev, cache=None).threshold(SYSTEMS[name])
