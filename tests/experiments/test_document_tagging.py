"""Notebook 07's experiment on a handful of stories: trained once, taken up again, reported, read."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.examples.tagging import TagExample
from cdlm_lab.experiments import document_tagging
from cdlm_lab.experiments import document_tagging as tag_predictions
from cdlm_lab.experiments.document_tagging import (
    EXAMPLE_TEXT,
    PARAMETERS,
    TAG_SYSTEMS,
    TagCorpus,
    TaggedCorpus,
    TaggingModels,
    TaggingRun,
    TaggingSettings,
    TaggingTraining,
    TagPredictions,
    Training,
    corpus_facts,
    cost_facts,
    in_runs,
    own_text_in_place,
    predict_tags,
    prepare_tagging,
    report_figures,
    static_config,
    tag_documents,
    tag_table,
    tags_in_place,
    training_config,
    write_tagging_report,
)
from cdlm_lab.metrics.counts import f1_of, span_counts
from cdlm_lab.models.precision import precision_told
from cdlm_lab.models.tagging import new_static_tagger
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run, read_report
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob

SMALL = TaggingSettings(
    corpus=TagCorpus(train_documents=6, held_out_documents=3, most_context=6),
    models=TaggingModels(occurrences=4, hidden_size=8, layers=1),
    training=TaggingTraining(sweep="2", epochs=1, learning_rate=0.03),
)
Found = dict[Training, dict[str, TagPredictions]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[TaggingRun, Found]:
    folder = tmp_path_factory.mktemp("runs") / "tagging"
    opened = open_run(folder, name="document-attentive tagging", parameters=SMALL.parameters)
    run = prepare_tagging(SMALL, opened.folder)
    found = tag_documents(run)
    write_tagging_report(run, opened, found)
    return run, found


def training_of(run: TaggingRun, name: str) -> Training:
    return next(training for training in run.trainings if training.name == name)


def same(found: TagPredictions, again: TagPredictions) -> bool:
    weights = (found.weights is None and again.weights is None) or np.array_equal(
        found.weights, again.weights
    )
    return weights and np.array_equal(found.tags, again.tags)


def test_every_labelled_sentence_is_tagged_by_each_system(finished) -> None:
    run, found = finished
    assert [training.name for training in found] == ["bert-lstm-0", "doc-arc-4-0", "doc-arc-2-0"]
    for training, of_split in found.items():
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
    _, found = finished
    for one in (of_split["test"] for training, of_split in found.items() if training.most):
        there = one.buckets() >= 0
        assert there.any(axis=1).all()  # the word itself at least
        assert not one.weights[~there].any()
        np.testing.assert_allclose(one.weights.astype(np.float64).sum(axis=1), 1, atol=2e-3)


def test_what_is_finished_is_not_trained_again(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = finished
    monkeypatch.setattr(document_tagging, "fine_tune", None)  # calling it would fail
    training = training_of(run, "doc-arc-4-0")
    fresh = TaggingRun(settings=run.settings, corpus=run.corpus, folder=run.folder)
    (run.folder_of(training) / "test.npz").rename(run.folder / "aside.npz")
    again = tag_documents(fresh)
    assert (run.folder_of(training) / "test.npz").is_file()
    for one in found:
        assert all(same(found[one][split], again[one][split]) for split in ("dev", "test"))
    (run.folder / "aside.npz").unlink()
    moved = run.folder_of(training) / "model"
    moved.rename(run.folder / "aside")
    with pytest.raises(TypeError):  # it would be trained
        tag_documents(fresh)
    (run.folder / "aside").rename(moved)


def test_a_sentence_is_tagged_alike_alone_and_in_a_batch(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = finished
    monkeypatch.setattr(tag_predictions, "BATCH", 1)
    for name in ("bert-lstm-0", "doc-arc-4-0"):
        training = training_of(run, name)
        tagger, together = run.tagger(training, trained=True), found[training]["dev"]
        some = [0, 7, 20, len(together.examples) - 1]
        alone = predict_tags(tagger, together.examples.in_order(some))
        rows = np.concatenate([np.arange(*together.starts[number : number + 2]) for number in some])
        assert np.array_equal(alone.tags, together.tags[rows])
        if training.most:
            np.testing.assert_allclose(alone.weights, together.weights[rows], atol=2e-3)


def test_splits_share_documents_and_no_sentence(finished) -> None:
    run, found = finished
    training = training_of(run, "doc-arc-4-0")
    examples = run.examples(run.tagger(training, trained=False), training)
    assert examples["train"].documents is examples["dev"].documents is examples["test"].documents
    for split, documents in run.corpus.documents.items():
        seen = {examples[split].documents[n].document.id for n in examples[split].sequences[:, 0].tolist()}
        assert seen == {document.id for document in documents}
        assert len(examples[split]) == sum(len(document.labelled) for document in documents)
    # one collate for train and dev makes what a collate for dev alone makes
    tagger = run.tagger(training, trained=False)
    rows = [examples["dev"][number] for number in (0, 1)]
    batch, other = (tagger.collate_of(examples[split])(rows) for split in ("train", "dev"))
    assert all((batch[name] == other[name]).all() for name in other)
    assert found[training]["dev"].examples is not examples["train"]


def test_the_best_pass_is_chosen_on_dev_alone(finished, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    run, _ = finished
    given: list[TrainingJob] = []
    monkeypatch.setattr(document_tagging, "fine_tune", lambda job, **_: given.append(job))
    fresh = replace(run, folder=tmp_path)
    with pytest.raises((ValueError, OSError)):  # nothing was trained, so there is nothing to load
        tag_documents(fresh)
    read = {split: _documents(getattr(given[0], f"{split}_examples")) for split in ("train", "validation")}
    assert read["train"] == {document.id for document in run.corpus.documents["train"]}
    assert read["validation"] == {document.id for document in run.corpus.documents["dev"]}


def _documents(examples: Sequence[TagExample]) -> set[str]:
    return {examples.documents[n].document.id for n in examples.sequences[:, 0].tolist()}


def test_the_baseline_is_as_large_as_doc_arc(finished) -> None:
    run, _ = finished
    sizes = {}
    for hidden_size in (64, 256):
        models = replace(run.settings.models, hidden_size=hidden_size)
        parts = replace(run.parts, settings=models)
        for name in ("bert-lstm", "doc-arc"):
            tagger = new_static_tagger(static_config(TAG_SYSTEMS[name], parts))
            sizes[name, hidden_size] = tagger.num_parameters()
    for hidden_size, apart in ((64, 0.02), (256, 0.005)):
        assert sizes["bert-lstm", hidden_size] == pytest.approx(sizes["doc-arc", hidden_size], rel=apart)


def test_a_pass_reads_each_sentence_once_but_for_what_fills_no_batch(finished) -> None:
    run, _ = finished
    training = training_of(run, "bert-lstm-0")
    examples = run.examples(run.tagger(training, trained=False), training)["train"]
    longer = replace(SMALL, training=replace(SMALL.training, epochs=3))
    config = training_config(longer, training.system, seed=training.seed, items=len(examples))
    order = in_runs(examples, config)
    assert len(order) >= config.steps * config.batch_size
    size = config.batch_size
    assert len(examples) % size  # so that something is left out
    passes = order.reshape(-1, len(examples) // size * size)
    assert all(len(set(one)) == len(one) for one in passes.tolist())
    assert set(order.tolist()) == set(range(len(examples)))  # others in each pass
    assert not np.array_equal(passes[0], passes[1])
    assert np.array_equal(order, in_runs(examples, config))
    other = replace(config, seed=1)
    assert not np.array_equal(order, in_runs(examples, other))


def test_encoders_that_are_trained_have_settings_of_their_own() -> None:
    training = TaggingTraining(
        epochs=5, batch_size=8, encoder_epochs=2, encoder_learning_rate=0.0005, patience=2
    )
    given = TaggingSettings(training=training, models=TaggingModels(precision="bfloat16"))
    frozen = training_config(given, TAG_SYSTEMS["doc-arc"], seed=3, items=20)
    assert (frozen.steps, frozen.batch_size, frozen.learning_rate, frozen.seed) == (10, 8, 0.003, 3)
    tuned = training_config(given, TAG_SYSTEMS["bert"], seed=0, items=20)
    assert (tuned.steps, tuned.batch_size, tuned.learning_rate) == (4, 8, 0.0005)
    assert {(one.precision, one.patience) for one in (frozen, tuned)} == {("bfloat16", 2)}


def test_the_optimiser_is_that_of_the_released_code_unless_told_otherwise() -> None:
    def config_of(**given: Any) -> TrainingConfig:
        settings = TaggingSettings(training=TaggingTraining(epochs=5, **given))
        return training_config(settings, TAG_SYSTEMS["doc-arc"], seed=0, items=320)

    released = config_of()
    assert {released.learning_rate_at(step) for step in range(released.steps)} == {0.003}
    assert (released.weight_decay, released.adam_epsilon, released.max_gradient_norm) == (0.01, 1e-6, 0.0)
    falling = config_of(schedule="linear", weight_decay=0.0)
    assert falling.weight_decay == 0
    rates = [falling.learning_rate_at(step) for step in (0, 10, 55, 99)]
    assert rates == pytest.approx([0, 0.003, 0.0015, 0.003 / 90])


@pytest.mark.parametrize("select_by", ["f1", "loss"])
def test_what_chooses_the_best_pass(finished, select_by: str, monkeypatch, tmp_path: Path) -> None:
    """F1 on dev, by the reading of the scores, of the model as it is at that pass; or the loss on dev."""
    run, found = finished
    given: list[TrainingJob] = []
    monkeypatch.setattr(document_tagging, "fine_tune", lambda job, **_: given.append(job))
    settings = replace(run.settings, training=replace(run.settings.training, select_by=select_by))
    with pytest.raises((ValueError, OSError)):  # nothing was trained, so there is nothing to load
        tag_documents(replace(run, settings=settings, folder=tmp_path))
    judge, first = given[0].judge, next(iter(found))
    if select_by == "loss":
        assert judge is None
        return
    model, gold = run.tagger(first, trained=True).model, found[first]["dev"].gold()
    for tag in ("O", "B-NUM"):  # that every word gets
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.zero_()
            model.classifier.bias[found[first]["dev"].examples.tags.index(tag)] = 1
        tags = [[[tag] * len(sentence) for sentence in sentences] for sentences in gold]
        expected = float(f1_of(span_counts(gold, tags).sum(axis=0)))
        assert judge(model) == pytest.approx(expected)
        assert bool(expected) is (tag != "O")


def test_the_report_of_a_run(finished) -> None:
    run, found = finished
    report = read_report(run.folder)
    assert [row[0].text for row in tag_table(report).rows] == ["BERT + LSTM", "Doc-ARC"]
    for training, name in zip(found, ("bert-lstm", "doc-arc", "doc-arc-2"), strict=True):
        for split, one in found[training].items():
            counts = span_counts(one.gold(), one.predicted()).sum(axis=0)
            assert report.scores[f"{name}/{split}/f1"]["value"] == pytest.approx(float(f1_of(counts)))
    assert {row["occurrences"] for row in report.tables["sweep"]} == {2, 4}
    assert len(report_figures(report)) == 4
    assert report.parameters == SMALL.parameters


def test_what_a_person_reads_before_the_start(finished) -> None:
    run, _ = finished
    facts = dict([*corpus_facts(run), *cost_facts(run)])
    assert facts["precision"] == precision_told("auto")
    assert facts["train"].startswith("6 documents of ")
    assert facts["dev"].startswith("3 documents of ")
    assert " besides the frozen encoder; 7 updates with 16 sentences, about " in facts["BERT + LSTM"]
    assert "times" not in facts["BERT + LSTM"]
    assert facts["Doc-ARC"].endswith("; times 2 (seeds, K)")


def test_tags_are_read_in_place_and_a_text_of_ones_own(finished) -> None:
    run, found = finished
    assert tags_in_place(found[run.shown]["dev"], file=run.folder / "tagged.html").children
    page = (run.folder / "tagged.html").read_text()
    assert run.corpus.documents["dev"][0].id in page
    assert own_text_in_place(run, run.shown, EXAMPLE_TEXT).children
    rows = (run.folder / "own_text.tsv").read_text().split("\n")
    assert [row.split("\t")[0] for row in rows[:3]] == ["Oskmere", "Works", "will"]


def test_trainings(tmp_path: Path) -> None:
    corpus = TaggedCorpus(documents={})

    def names(**given: Any) -> list[str]:
        settings = TaggingSettings(
            training=TaggingTraining(**given), models=TaggingModels(occurrences=10, hidden_size=4)
        )
        run = TaggingRun(settings=settings, corpus=corpus, folder=tmp_path)
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
    settings = TaggingSettings(training=TaggingTraining(systems=systems, seeds=2, sweep="25"))
    run = TaggingRun(settings=settings, corpus=TaggedCorpus(documents={}), folder=Path("unused"))
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
    settings = TaggingSettings(
        models=TaggingModels(occurrences=2, hidden_size=4, most_tokens=16),
        training=TaggingTraining(systems=systems, encoder_epochs=1, batch_size=4),
    )
    run = TaggingRun(settings=settings, corpus=TaggedCorpus(documents=splits), folder=tmp_path)
    facts = dict(cost_facts(run))
    assert (
        facts["Doc-ARC, dynamic"].split(" million")[0]
        == facts["small BERT + LSTM, fine-tuned"].split(" million")[0]
    )  # of the same size, the encoder counted in
    found = tag_documents(run)
    assert [training.name for training in found] == [
        "dynamic-bert-0",
        "dynamic-bert-lstm-0",
        "dynamic-doc-arc-2-0",
    ]
    for training, of_split in found.items():
        assert of_split["test"].tags.shape == (12,)
        assert (of_split["test"].weights is None) == (training.most == 0)
    report = write_tagging_report(run, open_run(tmp_path / "r", name="x", parameters={}), found)
    assert [row["b"] for row in report.tables["comparisons"]] == ["dynamic-bert-lstm"]
    # Orn stands in another sentence once more
    weights = found[run.shown]["test"].weights
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
    settings = TaggingSettings(
        models=TaggingModels(occurrences=2, hidden_size=4, most_tokens=16, layers=1),
        training=TaggingTraining(systems="doc-arc dynamic-bert", epochs=1, encoder_epochs=1, batch_size=2),
    )
    run = TaggingRun(settings=settings, corpus=TaggedCorpus(documents=splits), folder=tmp_path)
    for system in ("Doc-ARC", "small BERT, fine-tuned"):
        assert dict(cost_facts(run))[system].endswith("; of 2 long words the first 14 pieces are read")
    found = tag_documents(run)
    for of_split in found.values():
        assert [len(tags) for tags in of_split["test"].predicted()[0]] == [2, 3]
    report = write_tagging_report(run, open_run(tmp_path / "r", name="x", parameters={}), found)
    counted = {"train": 0, "dev": 0, "test": 2}
    assert report.data["shortened_words"] == {"doc-arc": counted, "dynamic-bert": counted}


def test_sentences_that_were_made_documents_are_told(tmp_path: Path) -> None:
    whole = TaggedDocument(id="a", sentences=(TaggedSentence(words=("Orn",), tags=("B-PER",)),))
    corpus = TaggedCorpus(documents={"train": (whole, whole), "dev": (whole,)}, divided={"train": 2})
    facts = dict(corpus_facts(TaggingRun(settings=SMALL, corpus=corpus, folder=tmp_path)))
    assert facts["train"].endswith("; it was one document, so each sentence is read as one")
    assert facts["dev"].endswith("1 spans")


def test_values_that_cannot_be(tmp_path: Path) -> None:
    for given, message in (
        ({"systems": "doc-arc lstm"}, "systems names 'lstm'; choose among bert-lstm, doc-arc, "),
        ({"systems": " "}, "systems names nothing"),
        ({"seeds": 0}, "seeds is 0; it must be at least 1"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"encoder_epochs": -1}, "encoder_epochs is -1"),
        ({"select_by": "accuracy"}, "select_by is 'accuracy'; choose one of f1, loss"),
        ({"schedule": "cosine"}, "schedule is 'cosine'; choose one of constant, linear"),
        ({"reading": "loose"}, "reading is 'loose'; choose one of seqeval, strict, released"),
        ({"sweep": "2 0"}, "sweep is '2 0'; write whole numbers above 0"),
        ({"sweep": "2,5"}, "sweep is '2,5'"),
        ({"sweep": "-2"}, "sweep is '-2'"),
    ):
        with pytest.raises(ParameterError, match=message):
            TaggingTraining(**given)
    for given, message in (
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"systems": "bert", "encoder_learning_rate": 0.0}, "learning_rate"),
        ({"weight_decay": -0.1}, "weight_decay"),
    ):
        with pytest.raises(ParameterError, match=message):
            prepare_tagging(replace(SMALL, training=TaggingTraining(**given)), tmp_path)


def test_parameters_are_those_of_all_parts() -> None:
    assert len(set(PARAMETERS)) == len(PARAMETERS)
    assert {"run_folder", "corpus", "encoder", "occurrences", "sweep", "reading", "own_text"} <= set(
        PARAMETERS
    )
