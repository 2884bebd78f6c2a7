"""Taggers by name: impossible values, sentences that are cut, what is encoded, what comes back from disk."""

from pathlib import Path

import numpy as np
import pytest
from tagging_runs import tagged

from cdlm_lab.data.records import TaggedDocument
from cdlm_lab.data.tags import tag_set
from cdlm_lab.encoders.frozen import ENDS
from cdlm_lab.runs.items import read_frame, write_frame
from cdlm_lab.tasks.tagging.examples import TagExamples, split_long
from cdlm_lab.tasks.tagging.systems import TAG_SYSTEMS, Tagger, Taggers, TaggerSettings, TagPredictions
from cdlm_lab.training.checkpoints import save_model


def test_systems_are_those_of_the_paper_in_its_order() -> None:
    """Tables 2 and 3 against Table 4: frozen; small and trained; large and fine-tuned as it is usual."""

    def names(attribute: str, value: bool = True) -> list[str]:
        return [name for name, system in TAG_SYSTEMS.items() if getattr(system, attribute) is value]

    assert names("context") == ["doc-arc", "dynamic-doc-arc"]
    assert names("trains_encoder", False) == ["bert-lstm", "doc-arc"]
    assert names("sequence_encoder", False) == ["dynamic-bert", "bert"]
    assert names("small") == ["dynamic-bert", "dynamic-bert-lstm", "dynamic-doc-arc"]
    assert len({system.label for system in TAG_SYSTEMS.values()}) == 6
    chosen = TaggerSettings(systems=" bert dynamic-doc-arc  doc-arc bert-lstm doc-arc ").chosen
    assert [system.name for system in chosen] == ["bert-lstm", "doc-arc", "dynamic-doc-arc", "bert"]


def burned(name: str) -> TaggedDocument:
    words = f"The town of {name} burned while people slept near {name} bridge"
    return tagged(name, (words, f"O O O B-LOC{' O' * 7}"), (f"{name} is small", None), ("Nobody came", None))


BURNED = [burned("Dram"), burned("Sul")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def made(name: str, cache: Path, *, trained: Path | None = None, seed: int = 1, **more) -> Tagger:
    settings = TaggerSettings(**{"layers": 1, "hidden_size": 6, "most_tokens": 10} | more)
    taggers, system = Taggers(settings=settings, labels=("LOC",), cache=cache), TAG_SYSTEMS[name]
    return taggers.make(system, most=3 if system.context else 0, seed=seed, trained=trained)


@pytest.mark.parametrize("name", ["bert-lstm", "doc-arc", "dynamic-doc-arc"])
def test_sentences_are_cut_to_the_tokens_that_there_is_room_for(name: str, cache: Path) -> None:
    tagger = made(name, cache)
    examples = tagger.read(BURNED)
    assert examples.tags == ("O", "B-LOC", "I-LOC")
    assert examples.most == (0 if name == "bert-lstm" else 3)
    found = tagger.predict(examples)
    assert [len(tags) for of_document in found.predicted() for tags in of_document] == [11, 11]
    assert found.gold()[0][0][3] == "B-LOC"
    sizes = [len(one.words) for split in examples.documents for one in split.document.sentences]
    assert max(sizes) <= 10 - ENDS
    assert len(examples) >= 4
    # a word without room is tagged all the same
    long = tagger.read([tagged("d", (f"Orn {'x' * 60} slept", "O O O"))])
    assert [split.shortened for split in long.documents] == [1]
    assert [len(tags) for tags in tagger.predict(long).predicted()[0]] == [3]


@pytest.mark.parametrize(("name", "sentences"), [("bert-lstm", 2), ("doc-arc", 4)])
def test_only_what_is_looked_at_is_encoded(name: str, sentences: int, tmp_path: Path) -> None:
    """ "Nobody came" has no word of a labelled sentence; "Dram is small" has one, for a tagger that looks."""
    tagger = made(name, tmp_path, most_tokens=64)
    tagger.make_ready(tagger.read(BURNED))
    again = made(name, tmp_path, most_tokens=64)
    assert len(again.collate_of(again.read(BURNED)).encodings) == sentences


@pytest.mark.parametrize("name", ["doc-arc", "dynamic-doc-arc", "dynamic-bert"])
def test_a_saved_tagger_says_the_same_when_it_is_loaded(name: str, cache: Path, tmp_path: Path) -> None:
    tagger = made(name, cache)
    for parameter in tagger.model.parameters():
        parameter.data.mul_(1.1)  # so that it is no fresh one
    save_model(tagger.model, tagger.tokenizer, tmp_path / "model")
    again = made(name, cache, trained=tmp_path / "model", seed=2)
    found, same = (one.predict(one.read(BURNED)) for one in (tagger, again))
    np.testing.assert_array_equal(found.tags, same.tags)
    np.testing.assert_array_equal(found.weights, same.weights)  # both may be None
    weights = [next(iter(one.model.state_dict().values())) for one in (tagger, again)]
    assert (weights[0] == weights[1]).all()
    if not tagger.system.trains_encoder:
        with pytest.raises(ValueError, match="of another encoder than this"):
            made(name, cache, trained=tmp_path / "model", model="storyworld/cdlm")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("bert", {"model": "nowhere"}, "nowhere"),
        ("dynamic-doc-arc", {"small_model": "nowhere"}, "nowhere"),
        ("doc-arc", {"model": "nowhere"}, "nowhere"),
        ("doc-arc", {"layers": 99}, "layers is 99; the encoder has 3"),
        ("doc-arc", {"most_tokens": 10**6}, "is longer than storyworld/longformer was made for"),
        ("dynamic-doc-arc", {"most_tokens": 10**6}, "is longer than storyworld/longformer was made for"),
    ],
)
def test_what_no_encoder_of_a_system_can_be(name: str, given: dict, message: str, cache: Path) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        made(name, cache, **given)
    assert "\n" not in str(raised.value)
    assert made("bert", cache, small_model="nowhere").system.name == "bert", "which does not read it"


# ---- predictions

TAGS = tag_set(["LOC", "PER"])  # O, B-LOC, I-LOC, B-PER, I-PER
NOTHING, PLACE, PERSON, MORE = 0, 1, 3, 4
DOCUMENTS = (
    tagged(
        "a",
        ("Sir Orn Vale of Dram slept", "O B-PER I-PER O B-LOC O"),
        ("He was in Dram for a week", None),
        ("Orn woke", "B-PER O"),
    ),
    tagged("b", ("Dram burned", None), ("Sul too", "B-LOC O")),
)
# The first sentence is cut after "Orn" and after "of".
PREDICTED = [NOTHING, PERSON, MORE, NOTHING, PLACE, NOTHING, NOTHING, NOTHING, PERSON, NOTHING]


def predicted(
    tags: list[int], *, room: int = 2, most: int = 2, order: list[int] | None = None
) -> TagPredictions:
    splits = [split_long(one, pieces=lambda words: [1] * len(words), most=room) for one in DOCUMENTS]
    examples = TagExamples(splits, TAGS, most=most)
    weights = np.linspace(0, 1, 2 * len(tags), dtype=np.float16).reshape(-1, 2) if most else None
    examples = examples.in_order(order) if order else examples
    return TagPredictions(examples=examples, tags=np.array(tags, dtype=np.int16), weights=weights)


def test_tags_of_a_sentence_that_was_cut_are_joined() -> None:
    predictions = predicted(PREDICTED)
    assert predictions.examples.sequences.tolist() == [[0, 0], [0, 1], [0, 2], [0, 7], [1, 1]]
    assert predictions.starts.tolist() == [0, 2, 4, 6, 8, 10]
    assert predictions.documents == [0, 1]
    first = [["O", "B-PER", "I-PER", "O", "B-LOC", "O"], ["O", "O"]]
    assert predictions.predicted() == [first, [["B-PER", "O"]]]


def test_buckets_say_how_far_occurrences_are() -> None:
    """In sequences: "Orn" is in 0 and 7, "Dram" in 2 and, of the context, in 4, all others are there once."""
    once = [0, -1]
    orn, dram, later = [0, 4], [0, 2], [0, 4]  # 7 sequences away is the bucket 4-7, number 4
    buckets = [once, orn, once, once, dram, once, later, once, once, once]
    assert predicted(PREDICTED).buckets().tolist() == buckets


@pytest.mark.parametrize("most", [0, 2])
def test_predictions_come_back_from_disk(tmp_path: Path, most: int) -> None:
    predictions, file = predicted(PREDICTED, most=most), tmp_path / "new" / "dev.parquet"
    write_frame(predictions.frame, file)
    again = TagPredictions.of_frame(read_frame(file), examples=predictions.examples)
    assert again.tags.dtype == np.int16
    assert again.weights is None if not most else again.weights.dtype == np.float16
    np.testing.assert_array_equal(again.tags, predictions.tags)
    np.testing.assert_array_equal(again.weights, predictions.weights)
    assert again.predicted() == predictions.predicted()
    assert [path.name for path in file.parent.iterdir()] == ["dev.parquet"]
