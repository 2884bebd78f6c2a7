"""Document-attentive tagging: documents of each corpus, a run on a handful of stories, its report by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tagging_runs import score_of, tagging_run

from cdlm_lab.data.files import DataError
from cdlm_lab.data.storyworld.task_sets import read_storyworld_tags
from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.examples.tagging import TagExample
from cdlm_lab.experiments import runs
from cdlm_lab.experiments.document_tagging import (
    Settings,
    TaggedCorpus,
    TaggingRun,
    TagTraining,
    corpus_facts,
    evaluate,
    figures,
    in_runs,
    own_text_in_place,
    predict,
    prepare,
    preview,
    read_tagged,
    report,
    score_table,
    shortened_facts,
    tags_in_place,
    train,
)
from cdlm_lab.experiments.runs import cost_facts
from cdlm_lab.experiments.systems import tagging
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS, TagPredictions
from cdlm_lab.metrics.counts import f1_of, span_counts
from cdlm_lab.models.precision import precision_told
from cdlm_lab.models.tagging import new_static_tagger
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import read_report
from cdlm_lab.training.config import TrainingConfig

SMALL = Settings(
    train_documents=6,
    held_out_documents=3,
    most_context=6,
    occurrences=4,
    hidden_size=8,
    layers=1,
    sweep="2",
    epochs=1,
    learning_rate=0.03,
)
Predictions = dict[tuple[str, int], dict[str, TagPredictions]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[TaggingRun, Predictions]:
    run = prepare(replace(SMALL, run_folder=str(tmp_path_factory.mktemp("runs") / "tagging")))
    train(run)
    predictions = predict(run)
    report(run, evaluate(run, predictions))
    return run, predictions


def training_of(run: TaggingRun, name: str) -> TagTraining:
    return next(training for training in run.trainings if training.name == name)


def same(one: TagPredictions, other: TagPredictions) -> bool:
    weights = (one.weights is None and other.weights is None) or np.array_equal(one.weights, other.weights)
    return weights and np.array_equal(one.tags, other.tags)


def test_every_labelled_sentence_is_tagged_by_each_system(finished) -> None:
    run, predictions = finished
    assert [training.name for training in run.trainings] == ["bert-lstm-0", "doc-arc-4-0", "doc-arc-2-0"]
    assert list(predictions) == [("bert-lstm", 0), ("doc-arc", 0), ("doc-arc-2", 0)]
    for training in run.trainings:
        of_split = predictions[training.key]
        assert list(of_split) == ["dev", "test"]
        for split, one in of_split.items():
            documents = run.corpus.documents[split]
            words = sum(len(document.sentences[n].words) for document in documents for n in document.labelled)
            assert len(one.tags) == words
            assert one.weights is None if not training.most else one.weights.shape == (words, training.most)
            assert one.gold() == [
                [list(document.sentences[n].tags) for n in document.labelled] for document in documents
            ]


def test_weights_of_a_word_add_up_to_one(finished) -> None:
    _, predictions = finished
    for one in (predictions[name, 0]["test"] for name in ("doc-arc", "doc-arc-2")):
        present = one.buckets() >= 0
        assert present.any(axis=1).all()  # the word itself at least
        assert not one.weights[~present].any()
        np.testing.assert_allclose(one.weights.astype(np.float64).sum(axis=1), 1, atol=2e-3)


def test_what_is_finished_is_not_trained_again(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, predictions = finished
    monkeypatch.setattr(runs, "fine_tune", None)  # calling it would fail
    training = training_of(run, "doc-arc-4-0")
    fresh = TaggingRun.read(run.settings)
    run.files(training)["test"].unlink()
    train(fresh)
    again = predict(fresh)
    assert run.files(training)["test"].is_file()
    for key, of_split in predictions.items():
        assert all(same(one, again[key][split]) for split, one in of_split.items())
    run.files(training)["test"].rename(run.folder / "aside.npz")
    run.model_folder(training).rename(run.folder / "aside")
    with pytest.raises(TypeError):  # it would be trained
        train(fresh)
    (run.folder / "aside").rename(run.model_folder(training))
    (run.folder / "aside.npz").rename(run.files(training)["test"])


def test_a_sentence_is_tagged_alike_alone_and_in_a_batch(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, predictions = finished
    monkeypatch.setattr(tagging, "BATCH", 1)
    for name in ("bert-lstm-0", "doc-arc-4-0"):
        training = training_of(run, name)
        tagger, together = run.load(training), predictions[training.key]["dev"]
        some = [0, 7, 20, len(together.examples) - 1]
        alone = tagger.predict(together.examples.in_order(some))
        rows = np.concatenate([np.arange(*together.starts[number : number + 2]) for number in some])
        assert np.array_equal(alone.tags, together.tags[rows])
        if training.most:
            np.testing.assert_allclose(alone.weights, together.weights[rows], atol=2e-3)


def test_splits_share_documents_and_no_sentence(finished) -> None:
    run, predictions = finished
    training = training_of(run, "doc-arc-4-0")
    examples = run.examples(training)
    assert examples["train"].documents is examples["dev"].documents is examples["test"].documents
    for split, documents in run.corpus.documents.items():
        seen = {examples[split].documents[n].document.id for n in examples[split].sequences[:, 0].tolist()}
        assert seen == {document.id for document in documents}
        assert len(examples[split]) == sum(len(document.labelled) for document in documents)
    # one collate for train and dev makes what a collate for dev alone makes
    tagger = run.new(training)
    rows = [examples["dev"][number] for number in (0, 1)]
    batch, other = (tagger.collate_of(examples[split])(rows) for split in ("train", "dev"))
    assert all((batch[name] == other[name]).all() for name in other)
    assert predictions[training.key]["dev"].examples is not examples["train"]


def test_the_best_epoch_is_chosen_on_dev_alone(finished) -> None:
    run, _ = finished
    job = run.job(run.trainings[0])
    read = {split: _documents(getattr(job, f"{split}_examples")) for split in ("train", "validation")}
    assert read["train"] == {document.id for document in run.corpus.documents["train"]}
    assert read["validation"] == {document.id for document in run.corpus.documents["dev"]}


def _documents(examples: Sequence[TagExample]) -> set[str]:
    return {examples.documents[n].document.id for n in examples.sequences[:, 0].tolist()}


def test_the_baseline_is_as_large_as_doc_arc(finished) -> None:
    run, _ = finished
    for hidden_size, apart in ((64, 0.02), (256, 0.005)):
        taggers = replace(run.taggers, settings=replace(run.settings, hidden_size=hidden_size))
        baseline, own = (
            new_static_tagger(taggers.static_config(TAG_SYSTEMS[name])).num_parameters()
            for name in ("bert-lstm", "doc-arc")
        )
        assert baseline == pytest.approx(own, rel=apart)


def test_an_epoch_reads_each_sentence_once_but_for_what_fills_no_batch(finished) -> None:
    run, _ = finished
    training = training_of(run, "bert-lstm-0")
    examples = run.examples(training)["train"]
    config = replace(SMALL, epochs=3).config(training.system, seed=training.seed, items=len(examples))
    order = in_runs(examples, config)
    assert len(order) >= config.steps * config.batch_size
    size = config.batch_size
    assert len(examples) % size  # so that something is left out
    epochs = order.reshape(-1, len(examples) // size * size)
    assert all(len(set(one)) == len(one) for one in epochs.tolist())
    assert set(order.tolist()) == set(range(len(examples)))  # others in each epoch
    assert not np.array_equal(epochs[0], epochs[1])
    assert np.array_equal(order, in_runs(examples, config))
    other = replace(config, seed=1)
    assert not np.array_equal(order, in_runs(examples, other))


def test_encoders_that_are_trained_have_settings_of_their_own() -> None:
    form = {"epochs": 5, "batch_size": 8, "encoder_epochs": 2, "encoder_learning_rate": 0.0005}
    given = Settings(**form, patience=2, precision="bfloat16")
    frozen = given.config(TAG_SYSTEMS["doc-arc"], seed=3, items=20)
    assert (frozen.steps, frozen.batch_size, frozen.learning_rate, frozen.seed) == (10, 8, 0.003, 3)
    tuned = given.config(TAG_SYSTEMS["bert"], seed=0, items=20)
    assert (tuned.steps, tuned.batch_size, tuned.learning_rate) == (4, 8, 0.0005)
    assert {(one.precision, one.patience) for one in (frozen, tuned)} == {("bfloat16", 2)}


def test_the_optimiser_is_that_of_the_released_code_unless_set_otherwise() -> None:
    def config_of(**given: Any) -> TrainingConfig:
        return Settings(epochs=5, **given).config(TAG_SYSTEMS["doc-arc"], seed=0, items=320)

    released = config_of()
    assert {released.learning_rate_at(step) for step in range(released.steps)} == {0.003}
    assert (released.weight_decay, released.adam_epsilon, released.max_gradient_norm) == (0.01, 1e-6, 0.0)
    falling = config_of(schedule="linear", weight_decay=0.0)
    assert falling.weight_decay == 0
    rates = [falling.learning_rate_at(step) for step in (0, 10, 55, 99)]
    assert rates == pytest.approx([0, 0.003, 0.0015, 0.003 / 90])


def test_what_chooses_the_best_epoch(finished) -> None:
    """F1 on dev, by the reading of the scores, of the model as it is at that epoch; or the loss on dev."""
    run, predictions = finished
    training = run.trainings[0]
    by_loss = replace(run, settings=replace(run.settings, select_by="loss"))
    assert by_loss.job(training).judge is None
    judge, model = run.job(training).judge, run.load(training).model
    gold = predictions[training.key]["dev"].gold()
    for tag in ("O", "B-NUM"):  # that every word gets
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.zero_()
            model.classifier.bias[run.taggers.tags.index(tag)] = 1
        tags = [[[tag] * len(sentence) for sentence in sentences] for sentences in gold]
        expected = float(f1_of(span_counts(gold, tags).sum(axis=0)))
        assert judge(model) == pytest.approx(expected)
        assert bool(expected) is (tag != "O")


def test_the_report_of_a_run(finished) -> None:
    run, predictions = finished
    written = read_report(run.folder)
    for (name, _), of_split in predictions.items():
        for split, one in of_split.items():
            counts = span_counts(one.gold(), one.predicted()).sum(axis=0)
            assert score_of(written, name, split, "f1").value == pytest.approx(float(f1_of(counts)))
    assert {row["occurrences"] for row in written.tables["sweep"]} == {2, 4}
    assert len(figures(written)) == 4
    for split in ("dev", "test"):
        assert "Doc-ARC" in score_table(written, split).html()


def test_what_a_person_reads_before_the_start(finished, tmp_path: Path) -> None:
    run, _ = finished
    facts = dict([*corpus_facts(run), *cost_facts(run)])
    assert facts["precision of training"] == precision_told("auto")
    assert facts["train"].startswith("6 documents of ")
    assert facts["dev"].startswith("3 documents of ")
    assert " 7 updates with 16 sentences, about " in facts["BERT + LSTM"]
    assert "times" not in facts["BERT + LSTM"]
    assert facts["Doc-ARC"].endswith("; times 2 seeds")
    fresh = TaggingRun.read(replace(run.settings, run_folder=str(tmp_path)))
    assert "6 documents of " in preview(fresh).data
    batch, every = (one.examples(one.trainings[0])["train"] for one in (fresh, run))
    assert len(fresh.taggers.encodings) < len(every) == len(batch), "one batch of each is encoded"


def test_tags_are_read_in_place_and_a_text_of_ones_own(finished) -> None:
    run, predictions = finished
    assert tags_in_place(run, predictions).children
    page = (run.folder / "tagged.html").read_text()
    assert run.corpus.documents["dev"][0].id in page
    assert own_text_in_place(run).children
    rows = (run.folder / "own_text.tsv").read_text().split("\n")
    assert [row.split("\t")[0] for row in rows[:3]] == ["Oskmere", "Works", "will"]


def test_trainings() -> None:
    def names(**given: Any) -> list[str]:
        run = tagging_run(TaggedCorpus(documents={}), occurrences=10, hidden_size=4, **given)
        return [training.name for training in run.trainings]

    assert names(systems="doc-arc bert-lstm", seeds=2) == [
        "bert-lstm-0",
        "bert-lstm-1",
        "doc-arc-10-0",
        "doc-arc-10-1",
    ]
    # each K once, in order, and not again that of the run
    assert names(systems="doc-arc", sweep="25 2 10 2", seeds=2) == [
        "doc-arc-10-0",
        "doc-arc-10-1",
        "doc-arc-2-0",
        "doc-arc-2-1",
        "doc-arc-25-0",
        "doc-arc-25-1",
    ]
    assert names(systems="bert-lstm dynamic-doc-arc", sweep="2 5") == ["bert-lstm-0", "dynamic-doc-arc-10-0"]


@pytest.mark.parametrize(
    ("systems", "shown"),
    [
        ("bert-lstm doc-arc", "doc-arc-10-0"),
        ("doc-arc bert", "doc-arc-10-0"),
        ("doc-arc dynamic-doc-arc", "dynamic-doc-arc-10-0"),
        ("bert bert-lstm", "bert-0"),
    ],
)
def test_what_is_shown_attends_to_the_document_if_anything_does(systems: str, shown: str) -> None:
    run = tagging_run(TaggedCorpus(documents={}), systems=systems, seeds=2, sweep="25")
    assert run.shown.name == shown


def test_systems_whose_encoder_is_trained(tmp_path: Path) -> None:
    """Once, as small as they go: all are trained and tag what is there."""
    sentences = [("Orn slept .", "B-PER O O"), ("Dram burned .", "B-LOC O O"), ("Orn left .", None)]
    document = TaggedDocument(
        id="a",
        sentences=tuple(
            TaggedSentence(words=tuple(words.split()), tags=tuple(tags.split()) if tags else None)
            for words, tags in sentences
        ),
    )
    splits = {
        split: tuple(replace(document, id=f"{split} {number}") for number in range(2))
        for split in ("train", "dev", "test")
    }
    systems = "dynamic-bert dynamic-bert-lstm dynamic-doc-arc"
    run = tagging_run(
        TaggedCorpus(documents=splits),
        run_folder=str(tmp_path),
        occurrences=2,
        hidden_size=4,
        most_tokens=16,
        systems=systems,
        encoder_epochs=1,
        batch_size=4,
    )
    facts = dict(cost_facts(run))
    assert (
        facts["Doc-ARC, dynamic"].split(" million")[0]
        == facts["small BERT + LSTM, fine-tuned"].split(" million")[0]
    )  # of the same size, the encoder counted in
    train(run)
    predictions = predict(run)
    assert list(predictions) == [("dynamic-bert", 0), ("dynamic-bert-lstm", 0), ("dynamic-doc-arc", 0)]
    for training in run.trainings:
        one = predictions[training.key]["test"]
        assert one.tags.shape == (12,)
        assert (one.weights is None) == (training.most == 0)
    tests = evaluate(run, predictions).tables["comparisons"]
    assert [row["b"] for row in tests] == ["dynamic-bert-lstm"]
    # Orn stands in another sentence once more
    weights = predictions[run.shown.key]["test"].weights
    assert (weights[[0, 6]] > 0).all()
    assert weights[1].tolist() == [1, 0]


def test_a_word_without_room_in_test_does_not_end_a_run(tmp_path: Path) -> None:
    """An address of more pieces than `most_tokens` has room for: read by its first pieces, and counted."""
    whole = TaggedSentence(words=("Orn", "slept"), tags=("B-PER", "O"))
    address = TaggedSentence(words=("see", "http://" + "x9" * 60, "Orn"), tags=("O", "O", "B-PER"))
    splits = {
        split: tuple(TaggedDocument(id=f"{split} {number}", sentences=(whole, last)) for number in range(2))
        for split, last in (("train", whole), ("dev", whole), ("test", address))
    }
    small = {"occurrences": 2, "hidden_size": 4, "most_tokens": 16, "layers": 1}
    once = {"epochs": 1, "encoder_epochs": 1, "batch_size": 2, "systems": "doc-arc dynamic-bert"}
    run = tagging_run(TaggedCorpus(documents=splits), run_folder=str(tmp_path), **small, **once)
    text = "of 2 long words the first 14 pieces are read"
    assert dict(shortened_facts(run)) == {"Doc-ARC: cut": text, "small BERT, fine-tuned: cut": text}
    train(run)
    predictions = predict(run)
    for of_split in predictions.values():
        assert [len(tags) for tags in of_split["test"].predicted()[0]] == [2, 3]
    counted = {"train": 0, "dev": 0, "test": 2}
    assert evaluate(run, predictions).data["shortened_words"] == {"doc-arc": counted, "dynamic-bert": counted}


def test_sentences_that_were_made_documents_are_counted() -> None:
    whole = TaggedDocument(id="a", sentences=(TaggedSentence(words=("Orn",), tags=("B-PER",)),))
    corpus = TaggedCorpus(documents={"train": (whole, whole), "dev": (whole,)}, divided={"train": 2})
    facts = dict(corpus_facts(tagging_run(corpus)))
    assert facts["train"].endswith("; it was one document, so each sentence is read as one")
    assert facts["dev"].endswith("1 spans")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"systems": "doc-arc lstm"}, "systems names 'lstm'; choose among bert-lstm, doc-arc, "),
        ({"seeds": 0}, "seeds is 0; it must be at least 1"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"encoder_epochs": -1}, "encoder_epochs is -1"),
        ({"select_by": "accuracy"}, "select_by is 'accuracy'; it must be one of 'f1', 'loss'"),
        ({"schedule": "cosine"}, "schedule is 'cosine'; it must be one of 'constant', 'linear'"),
        ({"reading": "loose"}, "reading is 'loose'; it must be one of 'seqeval', 'strict', 'released'"),
        ({"sweep": "2 0"}, "sweep is '2 0'; write whole numbers above 0"),
        ({"sweep": "2,5"}, "sweep is '2,5'"),
        ({"sweep": "-2"}, "sweep is '-2'"),
        ({"train_documents": -1}, "train_documents is -1; it must be at least 0"),
        ({"held_out_documents": -2}, "held_out_documents is -2"),
        ({"most_context": -1}, "most_context is -1"),
        ({"stray_tags": "mend"}, "stray_tags is 'mend'; it must be one of 'accept', 'refuse'"),
        ({"train_documents": "six"}, "train_documents"),
    ],
)
def test_values_that_cannot_be(values: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as raised:
        Settings(**values)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"systems": "bert", "encoder_learning_rate": 0.0}, "learning_rate"),
        ({"weight_decay": -0.1}, "weight_decay"),
    ],
)
def test_values_that_no_training_can_have(values: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        TaggingRun.read(replace(SMALL, **values))


# ---- documents of each corpus

LABELLED = "Orn\tB-PER\nslept\tO\n"


def unlabelled(*words: str) -> str:
    return "".join(f"\n{word}\tNULL\n" for word in words)


def write(folder: Path, split: str, *texts: str) -> None:
    """Documents 00.tsv, 01.tsv, ..."""
    (folder / split).mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / split / f"{number:02}.tsv").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "dev", "test"):
        write(tmp_path, split, *[LABELLED + unlabelled("Orn")] * 6)
    return tmp_path


def ids(documents: tuple[TaggedDocument, ...]) -> list[str]:
    return [document.id for document in documents]


def test_documents_of_storyworld_are_its_stories() -> None:
    read = read_tagged(Settings(train_documents=3, held_out_documents=2))
    assert list(read.documents) == ["train", "dev", "test"]
    for split, count in (("train", 3), ("dev", 2), ("test", 2)):
        assert read.documents[split] == tuple(read_storyworld_tags(split, count))
    assert read.mended == {"train": 0, "dev": 0, "test": 0}
    assert set(read.labels) <= {"DATE", "FAC", "LOC", "MISC", "NUM", "ORG", "PER"}
    assert "PER" in read.labels


def test_a_folder_in_doc_arcs_format(folder: Path) -> None:
    write(folder, "test", LABELLED, "Dram\tB-LOC\n")
    read = read_tagged(Settings(corpus=str(folder)))
    assert read.documents["train"][0] == TaggedDocument(
        id="00",
        sentences=(
            TaggedSentence(words=("Orn", "slept"), tags=("B-PER", "O")),
            TaggedSentence(words=("Orn",)),
        ),
    )
    assert ids(read.documents["dev"]) == ["00", "01", "02", "03", "04", "05"]
    assert read.labels == ("LOC", "PER")  # of all splits: only test has a LOC


def test_drawn_documents_are_the_same_each_time_and_in_order(folder: Path) -> None:
    few = Settings(corpus=str(folder), train_documents=4, held_out_documents=2)
    read = read_tagged(few)
    assert {split: len(found) for split, found in read.documents.items()} == {"train": 4, "dev": 2, "test": 2}
    for found in read.documents.values():
        assert ids(found) == sorted(set(ids(found)))
    assert read_tagged(few) == read
    # They are drawn, and not the first ones everywhere.
    assert {tuple(ids(found)) for found in read.documents.values()} != {
        ("00", "01", "02", "03"),
        ("00", "01"),
    }
    assert ids(read_tagged(Settings(corpus=str(folder), train_documents=9)).documents["train"]) == [
        "00",
        "01",
        "02",
        "03",
        "04",
        "05",
    ]


def test_context_is_kept_where_it_is_near_to_a_label(folder: Path) -> None:
    """Labelled sentences 2 and 5: sentence 0 is 2 away from one, 1, 3, 4 and 6 are 1 away, 7 is 2 away."""
    middle = f"\n{LABELLED}"
    text = unlabelled("a", "b") + middle + unlabelled("c", "d") + middle + unlabelled("e", "f")
    write(folder, "dev", *[text] * 6)

    def kept(most: int) -> list[str]:
        read = read_tagged(Settings(corpus=str(folder), most_context=most))
        return ["".join(sentence.words) for sentence in read.documents["dev"][0].sentences]

    own = "Ornslept"
    assert kept(0) == ["a", "b", own, "c", "d", own, "e", "f"]
    assert kept(1) == ["b", own, own]
    assert kept(3) == ["b", own, "c", "d", own]
    assert kept(4) == ["b", own, "c", "d", own, "e"]
    assert kept(5) == ["a", "b", own, "c", "d", own, "e"]  # a and f are as near; a comes first
    assert kept(99) == kept(0)


def test_all_labelled_sentences_stay(folder: Path) -> None:
    write(folder, "test", *[f"{LABELLED}\n{LABELLED}"] * 6)  # no context at all
    read = read_tagged(Settings(corpus=str(folder), most_context=1))
    assert [len(document.sentences) for document in read.documents["test"]] == [2] * 6


def test_stray_tags_are_counted_or_refused_where_they_stand(folder: Path) -> None:
    write(folder, "dev", LABELLED, "slept\tO\n\nVale\tI-LOC\nOrn\tI-PER\n")
    read = read_tagged(Settings(corpus=str(folder)))
    assert read.mended == {"train": 0, "dev": 2, "test": 0}
    assert read.documents["dev"][1].sentences[1].tags == ("B-LOC", "B-PER")
    with pytest.raises(DataError, match=r"dev/01\.tsv:3.*'I-LOC' follows no span of its label") as raised:
        read_tagged(Settings(corpus=str(folder), stray_tags="refuse"))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_one_document_is_read_by_sentences(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conll").write_text("Orn B-PER\nslept O\n\nDram B-LOC\n\nHe O\n")
    read = read_tagged(Settings(corpus=str(tmp_path), held_out_documents=2))
    assert {split: len(found) for split, found in read.documents.items()} == {"train": 3, "dev": 2, "test": 2}
    assert read.divided == {"train": 3, "dev": 3, "test": 3}


def test_folders_that_cannot_be_used(folder: Path) -> None:
    settings = Settings(corpus=str(folder))
    write(folder, "test", *["slept\tO\n"] * 6)
    with pytest.raises(ParameterError, match="whose test has no span; all labelled words have the tag O"):
        read_tagged(settings)
    for file in (folder / "test").iterdir():
        file.rename(folder / "dev" / f"more_{file.name}")
    write(folder, "test", LABELLED)
    with pytest.raises(ParameterError, match="whose test has one document to read; it needs two: "):
        read_tagged(settings)
    with pytest.raises(ParameterError, match="and 0 or at least 2 as train_documents"):
        read_tagged(Settings(corpus=str(folder), train_documents=1))
    with pytest.raises(ParameterError, match="which is no folder; write storyworld, or a folder with"):
        read_tagged(Settings(corpus=str(folder / "nowhere")))
