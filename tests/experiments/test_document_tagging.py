"""Document-attentive tagging: documents of each corpus, a run on a handful of stories, its report by hand."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cdlm_lab.data.files import DataError
from cdlm_lab.data.storyworld.task_sets import read_storyworld_tags
from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.examples.tagging import SplitDocument, TagExample, TagExamples
from cdlm_lab.experiments import runs
from cdlm_lab.experiments.document_tagging import (
    Settings,
    TaggedCorpus,
    TaggingRun,
    TagTraining,
    comparison_table,
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
    span_count,
    tags_in_place,
    top_table,
    train,
)
from cdlm_lab.experiments.runs import cost_facts
from cdlm_lab.experiments.systems import tagging
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS, Taggers, TagPredictions
from cdlm_lab.experiments.views.tagging import corpus_name, tag_rows
from cdlm_lab.metrics.counts import f1_of, span_counts
from cdlm_lab.models.precision import precision_told
from cdlm_lab.models.tagging import new_static_tagger
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, open_run, read_report
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


def run_on(corpus: TaggedCorpus, **values: Any) -> TaggingRun:
    settings = Settings(**values)
    labels = corpus.labels if corpus.documents else ()
    taggers = Taggers(settings=settings, labels=labels, cache=Path(settings.run_folder))
    return TaggingRun(settings=settings, corpus=corpus, taggers=taggers)


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
    assert [row.system for row in tag_rows(written)] == ["bert-lstm", "doc-arc"]
    for (name, _), of_split in predictions.items():
        for split, one in of_split.items():
            counts = span_counts(one.gold(), one.predicted()).sum(axis=0)
            assert score_of(written, name, split, "f1").value == pytest.approx(float(f1_of(counts)))
    assert {row["occurrences"] for row in written.tables["sweep"]} == {2, 4}
    assert len(figures(written)) == 4
    for split in ("dev", "test"):
        assert "Doc-ARC" in score_table(written, split).data


def score_of(written: Report, system: str, split: str, metric: str, seed: int | None = None):
    """The row of the score table."""
    return next(row for row in written.rows if row.key == (system, split, "", metric, seed))


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
        run = run_on(TaggedCorpus(documents={}), occurrences=10, hidden_size=4, **given)
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
    run = run_on(TaggedCorpus(documents={}), systems=systems, seeds=2, sweep="25")
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
    run = run_on(
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
    run = run_on(TaggedCorpus(documents=splits), run_folder=str(tmp_path), **small, **once)
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
    facts = dict(corpus_facts(run_on(corpus)))
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


# ---- the report on tags written by hand


def document(name: str, *sentences: tuple[str, str | None]) -> TaggedDocument:
    return TaggedDocument(
        id=name,
        sentences=tuple(
            TaggedSentence(words=tuple(words.split()), tags=tuple(tags.split()) if tags else None)
            for words, tags in sentences
        ),
    )


DOCUMENTS = {
    "train": (document("t", ("Nobody slept", "O O")), document("u", ("He came to", "O O O"))),
    "dev": (document("e", ("Orn slept", "B-PER O")), document("f", ("Sul burned", "B-LOC O"))),
    "test": (
        document("a", ("Orn Vale slept", "B-PER I-PER O"), ("He left Dram", "O O B-LOC")),
        document("b", ("Dram burned", "B-LOC O")),
        document("c", ("Nobody came to Sul", "O O O B-LOC"), ("Sul Sul Sul", None)),
    ),
}
# What systems say of the words of test, and how often the spans are right: 4 of the gold are there.
HALF = "B-PER O O O O B-LOC  O O  B-PER O O B-LOC"  # 2 of 4 predicted
MOST = "B-PER I-PER O O O B-LOC  B-LOC O  O O O O"  # 3 of 3
WITHOUT_B = "B-PER I-PER O O O B-LOC  O O  O O O B-LOC"  # 3 of 3
RIGHT = "B-PER I-PER O O O B-LOC  B-LOC O  O O O B-LOC"
NOTHING = "O O O O O O  O O  O O O O"
GIVEN = {
    "bert-lstm-0": (HALF, "O O O O"),
    "bert-lstm-1": (MOST, "B-PER O O O"),
    "doc-arc-3-0": (RIGHT, "B-PER O B-LOC O"),
    "doc-arc-3-1": (WITHOUT_B, "B-PER O O O"),
    "doc-arc-2-0": (NOTHING, "O O O O"),
    "doc-arc-2-1": (RIGHT, "B-PER O B-LOC O"),
}


def run_of(folder: Path, *, reading: str = "seqeval", **documents: tuple[TaggedDocument, ...]) -> TaggingRun:
    corpus = TaggedCorpus(documents=DOCUMENTS | documents, mended={"train": 0, "dev": 1200, "test": 0})
    run = run_on(corpus, run_folder=str(folder), occurrences=3, seeds=2, sweep="2", reading=reading)
    return replace(run, opened=open_run(folder, name="document-attentive tagging", parameters={}))


def report_of(run: TaggingRun, **given: tuple[str, str]) -> Report:
    return report(run, evaluate(run, tagged_by_hand(run, **given)))


def predicted(run: TaggingRun, split: str, tags: str, *, training: TagTraining) -> TagPredictions:
    """Tags as given. Weights: of Sul in c 0.5 for itself and 0.25 for the two nearest in the context; with
    seed 1 and other K something else, which the report must not look at."""
    documents = [
        SplitDocument(document=one, origin=tuple(range(len(one.sentences))))
        for one in run.corpus.documents[split]
    ]
    names = run.taggers.tags
    examples = TagExamples(documents, names, most=training.most)
    numbers = np.array([names.index(tag) for tag in tags.split()], dtype=np.int16)
    weights = None
    if training.most:
        weights = np.zeros((len(numbers), training.most), dtype=np.float16)
        weights[:, 0] = 1
        if split == "test" and training.name == "doc-arc-3-0":
            weights[-1] = 0.5, 0.25, 0.25
    return TagPredictions(examples=examples, tags=numbers, weights=weights)


def tagged_by_hand(run: TaggingRun, **given: tuple[str, str]) -> Predictions:
    return {
        training.key: {
            split: predicted(run, split, tags, training=training)
            for split, tags in zip(("test", "dev"), (GIVEN | given)[training.name], strict=True)
        }
        for training in run.trainings
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[TaggingRun, Report]:
    folder = tmp_path_factory.mktemp("tagging")
    run = run_of(folder)
    report_of(run)
    return run, read_report(folder)


def test_scores_are_means_over_the_seeds(written) -> None:
    _, by_hand = written
    for name, expected in (
        # precision, recall, F1; and F1 of the two seeds
        ("bert-lstm", ((0.5 + 1) / 2, (0.5 + 0.75) / 2, (0.5, 6 / 7))),
        ("doc-arc", (1, (1 + 0.75) / 2, (1, 6 / 7))),
        ("doc-arc-2", (0.5, 0.5, (0, 1))),
    ):
        precision, recall, each = expected
        scores = {metric: score_of(by_hand, name, "test", metric) for metric in ("precision", "recall", "f1")}
        assert scores["precision"].value == pytest.approx(precision)
        assert scores["recall"].value == pytest.approx(recall)
        assert scores["f1"].value == pytest.approx(sum(each) / 2)
        assert scores["f1"].deviation == pytest.approx(abs(each[0] - each[1]) / 2**0.5)
        assert (scores["f1"].seeds, scores["f1"].n, scores["f1"].clusters) == (2, 4, 3)
        assert scores["f1"].low <= scores["f1"].value <= scores["f1"].high
    assert score_of(by_hand, "doc-arc", "dev", "recall").value == pytest.approx((1 + 0.5) / 2)
    assert len([row for row in by_hand.rows if row.seed is None]) == 3 * 2 * 3


def test_each_training_has_its_own_rows(written) -> None:
    run, by_hand = written
    assert len([row for row in by_hand.rows if row.seed is not None]) == 3 * 2 * 3 * 2
    for (name, seed), of_split in tagged_by_hand(run).items():
        for split, one in of_split.items():
            correct, predicted, gold = span_counts(one.gold(), one.predicted()).sum(axis=0).tolist()
            precision, recall = (score_of(by_hand, name, split, of, seed) for of in ("precision", "recall"))
            assert precision.value == pytest.approx(correct / predicted if predicted else 0)
            assert recall.value == pytest.approx(correct / gold)
    assert score_of(by_hand, "bert-lstm", "test", "f1", 0).value == 0.5
    assert score_of(by_hand, "doc-arc", "test", "f1", 1).value == pytest.approx(6 / 7)


def test_comparisons_are_of_the_runs_own_k_on_test(written) -> None:
    _, by_hand = written
    (row,) = by_hand.tables["comparisons"]
    assert (row["a"], row["b"], row["measure"], row["clusters"]) == ("doc-arc", "bert-lstm", "f1", 3)
    assert row["difference"] == pytest.approx((1 + 6 / 7) / 2 - (0.5 + 6 / 7) / 2)
    assert row["p_holm"] == row["p"]  # one test needs no correction
    score = score_of(by_hand, "doc-arc", "test", "f1")
    assert (score.p, score.against) == (row["p_holm"], "bert-lstm")
    table = comparison_table(by_hand).data
    assert "+25.0 [" in table
    assert f"{row['p_holm']:.3f}" in table


def test_the_sweep_has_every_k_and_seed_on_dev(written) -> None:
    _, by_hand = written
    assert [(row["occurrences"], row["seed"]) for row in by_hand.tables["sweep"]] == [
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 1),
    ]
    assert [row["f1"] for row in by_hand.tables["sweep"]] == pytest.approx([0, 1, 1, 2 / 3])


def test_rows_of_the_tables(written) -> None:
    _, by_hand = written
    rows = tag_rows(by_hand)
    assert [(row.system, row.label, row.seeds) for row in rows] == [
        ("bert-lstm", "BERT + LSTM", 2),
        ("doc-arc", "Doc-ARC", 2),
    ]
    score = score_of(by_hand, "doc-arc", "test", "f1")
    assert rows[1].values["f1"] == (score.value, score.low, score.high)
    assert rows[1].deviation == score.deviation
    assert tag_rows(by_hand, "dev")[1].values["f1"][0] == pytest.approx((1 + 2 / 3) / 2)
    top = [{"word": "<b>", "labels": ["<i>", "PER"]}]
    hostile = top_table(replace(by_hand, tables=by_hand.tables | {"top": top})).data
    assert "&lt;b&gt;" in hostile
    assert "&lt;i&gt;, PER" in hostile
    tiny = by_hand.tables["comparisons"][0] | {"p_holm": 0.0002}
    assert "&lt; 0.001" in comparison_table(replace(by_hand, tables={"comparisons": [tiny]})).data


def test_the_report_says_what_was_tagged(written) -> None:
    run, by_hand = written
    assert by_hand.data["documents"] == {"train": 2, "dev": 2, "test": 3}
    assert by_hand.data["labels"] == ["LOC", "PER"]
    assert by_hand.data["precision"] == precision_told("auto")
    facts = dict(corpus_facts(run))
    assert by_hand.data["facts"] == facts
    assert facts["test"] == "3 documents of 15 words; 12 of them labelled, in 4 sentences with 4 spans"
    assert facts["dev"] == (
        "2 documents of 4 words; 4 of them labelled, in 2 sentences with 2 spans; 1,200 tags I- that began a "
        "span were read as B-"
    )
    assert facts["labels"] == "LOC, PER"
    assert span_count(run, "test") == 4
    json.loads((run.folder / "report.json").read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity


@pytest.mark.parametrize(("reading", "f1"), [("seqeval", 1), ("strict", 6 / 7), ("released", 4 / 7)])
def test_the_reading_of_spans_is_that_of_the_settings(tmp_path: Path, reading: str, f1: float) -> None:
    """The span of b starts with an I-. `released` also lets it go on with the span at the end of a."""
    run = run_of(tmp_path, reading=reading)
    stray = RIGHT.replace("B-LOC O  O", "I-LOC O  O")
    assert stray.split().count("I-LOC") == 1
    given = dict.fromkeys(("bert-lstm-0", "bert-lstm-1"), (stray, "O O O O"))
    assert score_of(report_of(run, **given), "bert-lstm", "test", "f1").value == pytest.approx(f1)


def test_a_corpus_of_the_paper_is_known_by_its_labels(written) -> None:
    by_hand = written[1]
    assert corpus_name(by_hand) == "storyworld"
    labels = ["PER", "LOC", "FAC", "GPE", "ORG", "VEH"]
    assert corpus_name(replace(by_hand, data=by_hand.data | {"labels": labels})) == "litbank"
    assert corpus_name(replace(by_hand, data=by_hand.data | {"corpus": "texts/mine"})) == "mine"


# ---- the analyses of section 5


def test_gains_are_of_words(written) -> None:
    """Word-level F1 of the 5 words in spans. bert-lstm: with seed 0 right are Orn, Dram and Sul, Nobody is
    wrong, 6/9; with seed 1 all but Sul, 8/9. doc-arc: 1, and without the Dram of b 8/9."""
    _, by_hand = written
    rows = {row["words"]: row for row in by_hand.tables["gains"]}
    assert list(rows) == ["all words", "top 10%", "top 5%", "top 1%"]
    assert rows["all words"]["occurrences"] == 5
    assert rows["all words"]["difference"] == pytest.approx((1 + 8 / 9) / 2 - (6 / 9 + 8 / 9) / 2)
    assert rows["all words"]["f1_a"] == pytest.approx((1 + 8 / 9) / 2)
    assert rows["all words"]["f1_b"] == pytest.approx((6 / 9 + 8 / 9) / 2)
    # Sul of c alone, where it stands four times: right with one of two seeds, and with both
    assert rows["top 1%"]["occurrences"] == 1
    assert rows["top 1%"]["difference"] == pytest.approx(1 - 0.5)
    assert {(row["a"], row["b"]) for row in rows.values()} == {("doc-arc", "bert-lstm")}


def test_the_top_entities_are_frequent_here_and_rare_elsewhere(written) -> None:
    """Of 7 documents Sul is in 2, Dram in 2, Orn in 2, Vale in 1: 1.6 log 3.5 and once log 7, log 3.5."""
    _, by_hand = written
    rows = by_hand.tables["top"]
    assert [(row["word"], row["labels"]) for row in rows[:2]] == [("Sul", ["LOC"]), ("Vale", ["PER"])]
    assert rows[0]["score"] == pytest.approx((1 + np.log10(4)) * np.log10(7 / 2))
    assert rows[1]["score"] == pytest.approx(np.log10(7))


def test_shares_are_of_all_labelled_words(written) -> None:
    _, by_hand = written
    assert sum(row["words"] for row in by_hand.tables["shares"]) == 12
    entities = sum(row["words"] * row["share"] for row in by_hand.tables["shares"])
    assert entities == pytest.approx(5)


def test_weights_are_of_words_that_occur_more_than_once_with_seed_0(written) -> None:
    _, by_hand = written
    rows = by_hand.tables["weights"]
    assert [(row["system"], row["bucket"], row["count"], row["mean"]) for row in rows] == [
        ("doc-arc", 0, 1, 0.5),
        ("doc-arc", 1, 2, 0.25),
    ]


def test_without_words_that_occur_again_there_are_no_weights(tmp_path: Path) -> None:
    test = (*DOCUMENTS["test"][:2], document("c", ("Nobody came to Sul", "O O O B-LOC")))
    run = run_of(tmp_path, test=test)
    assert report_of(run).tables["weights"] == []
