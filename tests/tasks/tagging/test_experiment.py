"""Document-attentive tagging: documents of each corpus, a run on a handful of stories, its report by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tagging_runs import finished_run, tagged, tagging_run

from cdlm_lab.data.convert.tagged import STRAY
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import TaggedDocument
from cdlm_lab.data.tags import spans_of
from cdlm_lab.metrics.counts import f1_of, span_counts
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import ALONE
from cdlm_lab.runs import runs
from cdlm_lab.tasks.tagging import experiment as document_tagging
from cdlm_lab.tasks.tagging import view
from cdlm_lab.tasks.tagging.experiment import Settings, TaggedCorpus, TaggingRun, TagTraining, read_tagged
from cdlm_lab.tasks.tagging.systems import TAG_SYSTEMS, TagPredictions
from cdlm_lab.views.before_training import cost_facts

SMALL = Settings(
    train_documents=6, held_out_documents=3, occurrences=4, hidden_size=8, layers=1,
    sweep="2", epochs=1, learning_rate=0.03,
)  # fmt: skip
Finished = tuple[TaggingRun, dict[tuple[str, int], dict[str, TagPredictions]]]
SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = str(tmp_path_factory.mktemp("runs") / "tagging")
    return finished_run(document_tagging, replace(SMALL, run_folder=folder))


def training_of(run: TaggingRun, name: str) -> TagTraining:
    return next(training for training in run.trainings if training.name == name)


def test_every_labelled_sentence_is_tagged_by_each_system(finished: Finished) -> None:
    run, predictions = finished
    assert [training.name for training in run.trainings] == ["bert-lstm-0", "doc-arc-4-0", "doc-arc-2-0"]
    assert list(predictions) == [("bert-lstm", 0), ("doc-arc", 0), ("doc-arc-2", 0)]
    for training in run.trainings:
        assert list(predictions[training.key]) == ["dev", "test"]
        for split, one in predictions[training.key].items():
            documents = run.corpus.documents[split]
            gold = [[list(each.sentences[n].tags) for n in each.labelled] for each in documents]
            assert one.gold() == gold
            words = sum(len(tags) for sentences in gold for tags in sentences)
            assert len(one.tags) == words
            if not training.most:
                assert one.weights is None
                continue
            assert one.weights.shape == (words, training.most)
            present = one.buckets() >= 0
            assert present.any(axis=1).all()  # the word itself at least
            assert not one.weights[~present].any()
            np.testing.assert_allclose(one.weights.astype(np.float64).sum(axis=1), 1, atol=2e-3)


def test_the_taggers_of_another_run_are_opened_and_nothing_is_trained(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, predictions = finished
    monkeypatch.setattr(runs, "fine_tune", None)  # calling it would fail
    given = Settings(
        trained=str(first.folder), run_folder=str(tmp_path / "run"), train_documents=2, held_out_documents=3,
        sweep="2", seeds=1, layers=1, occurrences=4, hidden_size=8,
    )  # fmt: skip
    run = document_tagging.prepare(given)
    assert run.settings == given, "nothing is replaced"
    assert ("BERT + LSTM", f"is trained already, in {first.folder}") in cost_facts(run)
    document_tagging.train(run)
    for key, of_split in document_tagging.predict(run).items():
        np.testing.assert_array_equal(of_split["test"].tags, predictions[key]["test"].tags)
    seen: list[object] = []
    document_tagging.train_small(run, on_log=seen.append)
    assert seen
    assert not (run.folder / "systems" / "doc-arc-4-0" / "model").exists()
    document_tagging.train_small(first, on_log=None)  # a whole training was seen: nothing to do

    with pytest.raises(ParameterError, match=r"which has no trained bert-lstm-1: its trainings are"):
        document_tagging.prepare(replace(given, run_folder=str(tmp_path / "two"), seeds=2))
    with pytest.raises(ParameterError, match=r"hidden_size is 16, but .* was trained with hidden_size = 8"):
        document_tagging.prepare(replace(given, run_folder=str(tmp_path / "wide"), hidden_size=16))
    taggers = replace(run.taggers, labels=("PER",))
    with pytest.raises(ParameterError, match=r"it tags DATE, .*, but the documents have PER; read more, or"):
        replace(run, taggers=taggers).load(run.trainings[0])


def test_splits_share_documents_and_no_sentence(finished: Finished) -> None:
    run, predictions = finished
    training = training_of(run, "doc-arc-4-0")
    examples, tagger, job = run.examples(training), run.new(training), run.job(training)
    assert examples["train"].documents is examples["dev"].documents is examples["test"].documents
    ids = {split: {document.id for document in run.corpus.documents[split]} for split in SPLITS}
    chosen_on = {"train of the job": job.train_examples, "dev of the job": job.validation_examples}
    for name, one in (examples | chosen_on).items():
        seen = {one.documents[number].document.id for number in one.sequences[:, 0].tolist()}
        assert seen == ids[name.split()[0]], "the best epoch is chosen on dev alone"
    for split, documents in run.corpus.documents.items():
        assert len(examples[split]) == sum(len(document.labelled) for document in documents)
    # one collate for train and dev makes what a collate for dev alone makes
    rows = [examples["dev"][number] for number in (0, 1)]
    batch, other = (tagger.collate_of(examples[split])(rows) for split in ("train", "dev"))
    assert all((batch[name] == other[name]).all() for name in other)
    assert predictions[training.key]["dev"].examples is not examples["train"]


def test_an_epoch_reads_each_sentence_once_but_for_what_fills_no_batch(finished: Finished) -> None:
    run, _ = finished
    training = training_of(run, "bert-lstm-0")
    examples = run.examples(training)["train"]
    config = replace(SMALL, epochs=3).config(training.system, seed=training.seed, items=len(examples))
    order, size = document_tagging.in_runs(examples, config), config.batch_size
    assert len(order) >= config.steps * size
    assert len(examples) % size  # so that something is left out
    epochs = order.reshape(-1, len(examples) // size * size)
    assert all(len(set(one)) == len(one) for one in epochs.tolist())
    assert set(order.tolist()) == set(range(len(examples)))  # others in each epoch
    assert not np.array_equal(epochs[0], epochs[1])
    assert np.array_equal(order, document_tagging.in_runs(examples, config))
    assert not np.array_equal(order, document_tagging.in_runs(examples, replace(config, seed=1)))


def test_the_optimiser_is_that_of_the_released_code_unless_set_otherwise() -> None:
    form = {"epochs": 5, "batch_size": 8, "encoder_epochs": 2, "encoder_learning_rate": 0.0005}
    given = Settings(**form, patience=2, precision="bfloat16")
    released = given.config(TAG_SYSTEMS["doc-arc"], seed=3, items=20)
    assert (released.steps, released.batch_size, released.seed) == (10, 8, 3)
    assert (released.learning_rate, released.warmup_steps, released.decay_power) == (0.003, 0, 0), "constant"
    assert (released.weight_decay, released.adam_epsilon, released.max_gradient_norm) == (0.01, 1e-6, 0.0)
    tuned = given.config(TAG_SYSTEMS["bert"], seed=0, items=20)  # its encoder has settings of its own
    assert (tuned.steps, tuned.batch_size, tuned.learning_rate) == (4, 8, 0.0005)
    assert {(one.precision, one.patience) for one in (released, tuned)} == {("bfloat16", 2)}
    form = {"epochs": 5, "schedule": "linear"}
    falling = Settings(**form).config(TAG_SYSTEMS["doc-arc"], seed=0, items=320)
    assert (falling.steps, falling.warmup_steps, falling.decay_power) == (100, 10, 1)
    assert falling.learning_rate == 0.003


def test_what_chooses_the_best_epoch(finished: Finished) -> None:
    """F1 on dev, with the scores' reading of spans, of the model at that epoch; or the loss on dev."""
    run, predictions = finished
    training = run.trainings[0]
    assert replace(run, settings=replace(run.settings, select_by="loss")).job(training).judge is None
    judge, model = run.job(training).judge, run.load(training).model
    gold = predictions[training.key]["dev"].gold()
    for tag in ("O", "B-NUM"):  # that every word gets
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.zero_()
            model.classifier.bias[run.taggers.tags.index(tag)] = 1
        tags = [[[tag] * len(sentence) for sentence in sentences] for sentences in gold]
        expected = float(f1_of(span_counts(gold, tags).sum(axis=0)))
        assert judge(model, ALONE) == pytest.approx(expected)
        assert bool(expected) is (tag != "O")


def test_systems_whose_encoder_is_trained(tmp_path: Path) -> None:
    """Each is trained once, at the smallest size: all train, and tag the words that are there."""
    sentences = [("Orn slept .", "B-PER O O"), ("Dram burned .", "B-LOC O O"), ("Orn left .", None)]
    splits = {
        split: tuple(tagged(f"{split} {number}", *sentences) for number in range(2)) for split in SPLITS
    }
    sizes = {"occurrences": 2, "hidden_size": 4, "most_tokens": 16, "encoder_epochs": 1, "batch_size": 4}
    systems = "dynamic-bert dynamic-bert-lstm dynamic-doc-arc"
    run = tagging_run(TaggedCorpus(documents=splits), run_folder=str(tmp_path), systems=systems, **sizes)
    facts = dict(cost_facts(run))
    two = ("Doc-ARC, dynamic", "small BERT + LSTM, fine-tuned")
    assert len({facts[name].split(" million")[0] for name in two}) == 1, "of one size, with the encoder"
    document_tagging.train(run)
    predictions = document_tagging.predict(run)
    assert list(predictions) == [(name, 0) for name in systems.split()]
    for training in run.trainings:
        one = predictions[training.key]["test"]
        assert one.tags.shape == (12,)
        assert (one.weights is None) == (training.most == 0)
    tests = document_tagging.evaluate(run, predictions).tables["comparisons"]
    assert [row["b"] for row in tests] == ["dynamic-bert-lstm"]
    # Orn stands in another sentence once more
    weights = predictions[run.shown.key]["test"].weights
    assert (weights[[0, 6]] > 0).all()
    assert weights[1].tolist() == [1, 0]


def test_a_word_without_room_in_test_does_not_end_a_run(tmp_path: Path) -> None:
    """An address with more subwords than `most_tokens` allows is read by its first subwords, and counted."""
    whole, address = ("Orn slept", "B-PER O"), (f"see http://{'x9' * 60} Orn", "O O B-PER")
    splits = {
        split: tuple(tagged(f"{split} {number}", whole, last) for number in range(2))
        for split, last in (("train", whole), ("dev", whole), ("test", address))
    }
    small = {"occurrences": 2, "hidden_size": 4, "most_tokens": 16, "layers": 1}
    once = {"epochs": 1, "encoder_epochs": 1, "batch_size": 2, "systems": "doc-arc dynamic-bert"}
    run = tagging_run(TaggedCorpus(documents=splits), run_folder=str(tmp_path), **small, **once)
    text = "of 2 long words the first 14 pieces are read"
    facts = dict(view.shortened_facts(run))
    assert facts == {"Doc-ARC: cut": text, "small BERT, fine-tuned: cut": text}
    document_tagging.train(run)
    predictions = document_tagging.predict(run)
    for of_split in predictions.values():
        assert [len(tags) for tags in of_split["test"].predicted()[0]] == [2, 3]
    counted, data = {"train": 0, "dev": 0, "test": 2}, document_tagging.evaluate(run, predictions).data
    assert data["shortened_words"] == {"doc-arc": counted, "dynamic-bert": counted}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"systems": "doc-arc lstm"}, "systems names 'lstm'; choose among bert-lstm, doc-arc, "),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"systems": "bert", "encoder_learning_rate": 0.0}, "learning_rate"),
    ],
)
def test_values_that_cannot_be(values: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as raised:
        TaggingRun.read(replace(SMALL, **values))
    assert "\n" not in str(raised.value)


# ---- documents of each corpus

LABELLED = "Orn\tB-PER\nslept\tO\n"


def unlabelled(*words: str) -> str:
    return "".join(f"\n{word}\tNULL\n" for word in words)


def write(folder: Path, split: str, *texts: str) -> None:
    """Write documents as 00.tsv, 01.tsv, ..."""
    (folder / split).mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / split / f"{number:02}.tsv").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in SPLITS:
        write(tmp_path, split, *[LABELLED + unlabelled("Orn")] * 6)
    return tmp_path


def ids(documents: tuple[TaggedDocument, ...]) -> list[str]:
    return [document.id for document in documents]


def test_a_folder_in_doc_arcs_format(folder: Path) -> None:
    write(folder, "test", LABELLED, "Dram\tB-LOC\n")
    write(folder, "dev", LABELLED, "slept\tO\n\nVale\tI-LOC\nOrn\tI-PER\n")
    read = read_tagged(Settings(corpus=str(folder)))
    assert read.documents["train"][0] == tagged("00", ("Orn slept", "B-PER O"), ("Orn", None))
    assert ids(read.documents["dev"]) == ["00", "01", "02", "03", "04", "05"]
    assert read.labels == ("LOC", "PER")  # of all splits: only test has a LOC
    counted = {split: one.count(STRAY) for split, one in read.passed_over.items()}
    assert counted == {"train": 0, "dev": 2, "test": 0}
    assert read.documents["dev"][1].sentences[1].tags == ("B-LOC", "B-PER")


def test_folders_that_cannot_be_used(folder: Path) -> None:
    def refused(message: str, corpus: Path = folder, **values: int) -> None:
        with pytest.raises(ParameterError, match=message):
            read_tagged(Settings(corpus=str(corpus), **values))

    write(folder, "test", *["slept\tO\n"] * 6)
    refused("whose test has no span; all labelled words have the tag O")
    for file in (folder / "test").iterdir():
        file.rename(folder / "dev" / f"more_{file.name}")
    write(folder, "test", LABELLED)
    refused("whose test has one document to read; it needs two: ")
    refused("and 0 or at least 2 as train_documents", train_documents=1)
    with pytest.raises(DataError, match="no such file or folder"):
        read_tagged(Settings(corpus=str(folder / "nowhere")))


def test_mentions_of_storyworld() -> None:
    corpus = read_tagged(Settings(corpus="storyworld mentions", train_documents=3, held_out_documents=3))
    assert corpus.labels == ("entity", "event")
    assert len(corpus.documents["train"]) > 3, "every report is a document"


def test_mentions_are_scored_by_kind_and_by_their_last_words(tmp_path: Path) -> None:
    form = {"train_documents": 1, "held_out_documents": 1, "systems": "bert-lstm", "sweep": "", "epochs": 1}
    settings = replace(SMALL, corpus="storyworld mentions", run_folder=str(tmp_path / "run"), **form)
    run, predictions = finished_run(document_tagging, settings)
    report = document_tagging.report(run, document_tagging.evaluate(run, predictions))
    made = predictions[run.shown.key]["test"]
    value = {(row.group, row.metric): row.value for row in report.rows if row.split == "test"}
    assert {("event", "f1"), ("entity", "last_word_f1"), ("", "f1")} <= value.keys()
    gold = [[spans_of(tags) for tags in one] for one in made.gold()]
    found = [[spans_of(tags) for tags in one] for one in made.predicted()]
    places = [
        {
            (n, m, span.stop)
            for n, of in enumerate(side)
            for m, spans in enumerate(of)
            for span in spans
            if span.label == "event"
        }
        for side in (gold, found)
    ]
    counts = np.array([len(places[0] & places[1]), len(places[1]), len(places[0])])
    assert value["event", "last_word_f1"] == pytest.approx(f1_of(counts))
    assert len(view.mention_tables(report)) == 2
    lines = [
        json.loads(line) for line in (run.folder / "tags-test.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [line["tags"] for line in lines] == made.predicted(), "as notebook 03 reads them"
