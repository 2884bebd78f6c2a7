"""Data and models belong to a run's identity, in every notebook; what is refused leaves nothing behind."""

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from tagging_runs import finished_run, saved, tiny_parts

from cdlm_lab.data.reading import write_records
from cdlm_lab.data.storyworld import task_sets
from cdlm_lab.data.storyworld.stories import digest
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.explorer import ranks as attention_analysis
from cdlm_lab.runs.identity import VERSIONS
from cdlm_lab.runs.report import RunError, read_report
from cdlm_lab.runs.runs import ExperimentRun
from cdlm_lab.tasks.coreference import experiment as coreference
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint import paragraphs as paragraph_pretraining
from cdlm_lab.tasks.matching import alignment as sentence_alignment
from cdlm_lab.tasks.matching import experiment as document_matching
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.pretraining import experiment as pretraining
from cdlm_lab.tasks.pretraining import perplexity, tour
from cdlm_lab.tasks.tagging import experiment as document_tagging

OTHERS = {"longformer": "", "local_cdlm": "", "rand_cdlm": "", "prefix_cdlm": ""}
SMALL_BATCHES = {"batch_size": 2, "micro_batch_size": 2}
TWO_STEPS = {"steps": 2, "warmup_steps": 0, "train_clusters": 0, "held_out_clusters": 0, **SMALL_BATCHES}
LENGTHS = {"max_length": 128, "window": 8}

# ---- small corpora in files, of storyworld's texts; another `seed`, others

SPLITS, STORIES = ("train", "dev", "test"), 6
Write = Callable[[Path, int], None]


def clusters(folder: Path, seed: int) -> None:
    """Paragraphs for notebook 08, of which each cluster holds three documents."""
    rows = []
    for split, part in zip(SPLITS, ("train", "validation", "test"), strict=True):
        for index in range(0, 3 * STORIES, 3):
            texts = [digest(seed=seed, split=part, index=index + place).text for place in range(3)]
            rows.append(json.dumps({"id": f"{split}{index}", "split": split, "documents": texts}))
    (folder / "clusters.jsonl").write_text("\n".join(rows))


def pairs(folder: Path, seed: int) -> None:
    for split in SPLITS:
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            for pair in task_sets.read_storyworld_pairs(split, STORIES, seed=seed):
                first = list(pair.first.sentences)
                for number in pair.aligned or ():  # \x01 marks the true sentences
                    first[number] = f"{first[number][:-1]} \x01{first[number][-1]}"
                texts = ("\n".join(sentences) for sentences in (first, pair.second.sentences))
                csv.writer(file).writerow([int(pair.related), *texts])


def native(read: Callable[..., Iterator[Any]], **options: Any) -> Write:
    """Records of storyworld in JSON lines, a file for each split."""

    def write(folder: Path, seed: int) -> None:
        for split in SPLITS:
            write_records(folder / f"{split}.jsonl", read(split, STORIES, seed=seed, **options))

    return write


def topics(folder: Path, seed: int) -> None:
    """Coreference as in the released JSON."""
    for split in SPLITS:
        documents, mentions = {}, {"event": [], "entity": []}
        for number, topic in enumerate(task_sets.read_storyworld_topics(split, STORIES, seed=seed), 1):
            for place, one in enumerate(topic.documents, 1):
                words = enumerate(one.sentences)
                documents[name := f"{number}_{place}ecb.xml"] = [
                    [n, token, one.tokens[token], True] for n, span in words for token in range(*span)
                ]
                for mention in one.mentions:
                    record = {"topic": str(number), "doc_id": name, "m_id": mention.id}
                    record |= {"tokens_ids": list(range(*mention.tokens)), "cluster_id": mention.cluster}
                    mentions[mention.kind].append(record)
        (folder / f"{split}.json").write_text(json.dumps(documents))
        for kind, name in (("event", "events"), ("entity", "entities")):
            (folder / f"{split}_{name}.json").write_text(json.dumps(mentions[kind]))


# ---- experiments


@dataclass(frozen=True, kw_only=True)
class Case:
    """An experiment with data and models in folders. `models`, `trained`: parameter -> what is copied: "" for
    a tiny encoder, else what ships with the project."""

    experiment: Any
    write: Write
    given: dict[str, Any]
    file: str = ""  # of the folder; "" = the corpus is the folder
    models: dict[str, str] = field(default_factory=dict)
    trained: str = ""
    keep: dict[str, Any] = field(default_factory=dict)  # what else the trained run needs
    wrong: dict[str, Any] = field(default_factory=dict)  # parameters with values that are refused

    def settings(self, folder: Path, **more: Any) -> Any:
        """The settings of a run, of whose corpus and models the copies are made first."""
        corpus = folder / "corpus"
        corpus.mkdir(exist_ok=True)
        self.write(corpus, 0)
        values = dict(self.given)
        for name, kind in self.models.items():
            place = folder / name
            if not place.exists():
                shutil.copytree(FOLDER / kind, place) if kind else saved(place, *tiny_parts(512, 32))
            values[name] = str(place)
        return self.experiment.Settings(
            corpus=str(corpus / self.file), run_folder=str(folder / "run"), **values | more
        )

    def opened(self, folder: Path) -> Any:
        """The settings of a run that opens trained models."""
        if not (folder / "trained").exists():
            shutil.copytree(FOLDER / self.trained, folder / "trained")
        theirs = json.loads((folder / "trained" / "run.json").read_text())["parameters"]
        given = self.settings(folder)
        named = ("run_folder", "corpus", "trained", "train_stories", "held_out_stories", "train_clusters")
        kept = {name: value for name, value in theirs.items() if name not in named and hasattr(given, name)}
        return replace(given, trained=str(folder / "trained"), **kept | self.keep)


CASES = {
    "01": Case(
        experiment=pretraining,
        write=clusters,
        file="clusters.jsonl",
        given={**TWO_STEPS, **LENGTHS},
        models={"model": ""},
        wrong={"max_length": 2000},
    ),
    "02": Case(
        experiment=perplexity,
        write=clusters,
        file="clusters.jsonl",
        given={"clusters": 0, **OTHERS, **LENGTHS},
        models={"cdlm": ""},
        wrong={"max_length": 2000},
    ),
    "03": Case(
        experiment=coreference,
        write=topics,
        given={"context": "sentences", "topic_level": "topic", "train_pairs": 8, **SMALL_BATCHES, **LENGTHS},
        models={"model": ""},
        trained="coreference",
        keep={"test_topics": "1", "dev_topics": "1", "train_pairs": 8},
        wrong={"test_topics": "nothing", "compare_with": "nowhere", "predicted_topics": "nowhere"},
    ),
    "04": Case(
        experiment=document_matching,
        write=pairs,
        given={"systems": "tf-idf bert-avg gru-han cdlm", "hidden_size": 8, **LENGTHS},
        models={"encoders": "", "sentence_encoder": "", "word_vectors": ""},
        trained="matching",
    ),
    "06": Case(
        experiment=multihop_qa,
        write=native(task_sets.read_storyworld_questions, sentences=2, paragraphs=3),
        given={"systems": "cdlm", **LENGTHS},
        models={"encoders": ""},
        trained="questions",
    ),
    "07": Case(
        experiment=document_tagging,
        write=native(task_sets.read_storyworld_tags),
        given={"systems": "bert-lstm doc-arc", "layers": 1, "most_tokens": 100},
        models={"model": ""},
        trained="tagging",
        wrong={"layers": 7},
    ),
    "08": Case(
        experiment=paragraph_pretraining,
        write=clusters,
        file="clusters.jsonl",
        given={**TWO_STEPS, "sentence_length": 8},
        models={"model": ""},
        trained="paragraphs",
    ),
    "09": Case(
        experiment=answer_selection,
        write=native(task_sets.read_storyworld_candidates),
        given={"systems": "pairwise mspp-ie", "sentence_length": 16, "pairwise_length": 16},
        models={"model": "longformer", "mspp": "paragraphs"},
        trained="answers",
        wrong={"test_corpus": "nowhere"},
    ),
    "10": Case(
        experiment=fact_verification,
        write=native(task_sets.read_storyworld_claims, evidence=2),
        given={"systems": "joint-ie mspp-ie-ie", "sentence_length": 16, "evidence_sentences": 2},
        models={"model": "longformer", "mspp": "paragraphs"},
        trained="claims",
    ),
    "11": Case(
        experiment=attention_analysis,
        write=topics,
        given={"pairs": 60, **OTHERS, **LENGTHS},
        models={"cdlm": ""},
        wrong={"max_length": 2000},
    ),
}
TRAINED = [name for name, case in CASES.items() if case.trained]


def prepared(case: Case, settings: Any) -> Any:
    run = case.experiment.prepare(settings)
    run.opened.close()
    return run


def retrain(folder: Path) -> None:
    """Other weights in the place of the ones in a folder, in whatever is below it."""
    for file in folder.rglob("*.safetensors"):
        with safe_open(file, framework="np") as opened:
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            metadata = opened.metadata()
        weights[min(weights)] += weights[min(weights)].dtype.type(0.25)
        save_file(weights, file, metadata)


def refused(case: Case, settings: Any, how: str, *names: str) -> None:
    before = {path: path.read_bytes() for path in Path(settings.run_folder).rglob("*") if path.is_file()}
    with pytest.raises(RunError) as raised:
        case.experiment.prepare(settings)
    message = str(raised.value)
    assert f"holds a run that {how} with other data or models: " in message
    for name in names:
        assert f"{name} has changed" in message
    assert "\n" not in message
    assert "Choose another run_folder" in message
    after = {path: path.read_bytes() for path in Path(settings.run_folder).rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("name", CASES)
def test_a_run_goes_on_only_with_the_data_and_models_it_began_with(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    settings = case.settings(tmp_path)
    run = prepared(case, settings)
    begun = json.loads((tmp_path / "run" / "run.json").read_text())
    assert list(begun["data"]) == [settings.corpus]
    changes = {settings.corpus: lambda: case.write(tmp_path / "corpus", 1)}
    changes |= {str(tmp_path / one): lambda one=one: retrain(tmp_path / one) for one in case.models}
    opened = list(begun["models"])
    assert {Path(one).relative_to(tmp_path).parts[0] for one in opened} == set(case.models)
    assert prepared(case, settings).opened.resumed
    made = run.opened.write_report(scores=[])
    assert made.identity["data"] == begun["data"] != {}, "which the notebooks' README promises"
    assert made.identity["models"] == begun["models"]
    assert case.experiment.prepare(settings).finished == made
    for change in changes.values():
        change()
    refused(case, settings, "was finished", settings.corpus, *opened)
    (tmp_path / "run" / "report.json").unlink()
    refused(case, settings, "was begun", settings.corpus, *opened)
    assert not prepared(case, replace(settings, run_folder=str(tmp_path / "other"))).opened.resumed


@pytest.mark.parametrize("name", TRAINED)
def test_a_run_of_trained_models_goes_on_only_with_them(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    settings = case.opened(tmp_path)
    prepared(case, settings)
    begun = json.loads((tmp_path / "run" / "run.json").read_text())
    trained = [one for one in begun["models"] if one.startswith(settings.trained)]
    assert trained
    retrain(tmp_path / "trained")
    refused(case, settings, "was begun", *trained)


@pytest.mark.parametrize("name", CASES)
def test_a_refused_value_leaves_no_folder_and_the_corrected_one_runs(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    settings = case.settings(tmp_path)
    wrong = dict.fromkeys(("corpus", *case.models), str(tmp_path / "nowhere")) | case.wrong
    wrong |= {"trained": str(tmp_path / "nowhere")} if case.trained else {}
    for parameter, value in wrong.items():
        with pytest.raises((ValueError, RuntimeError)) as raised:
            case.experiment.prepare(replace(settings, **{parameter: value}))
        assert "\n" not in str(raised.value), parameter
        assert not (tmp_path / "run").exists(), parameter
    assert not prepared(case, settings).opened.resumed


def test_a_folder_that_is_not_free_is_refused_before_the_data_are_read(tmp_path: Path, monkeypatch):
    case = CASES["04"]
    settings = case.settings(tmp_path)
    prepared(case, settings)
    monkeypatch.setattr(document_matching, "read_pairs", pytest.fail)
    with pytest.raises(RunError, match="with other parameters: hidden_size is 6, in the run 8"):
        document_matching.prepare(replace(settings, hidden_size=6))


# ---- from one end to the other ----


def test_accuracy_is_never_of_the_corpus_that_was_there_before(tmp_path: Path) -> None:
    """Stopped after `predict`, the corpus replaced by another one of the same size, the same command."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    pairs(corpus, 0)
    settings = document_matching.Settings(
        corpus=str(corpus), systems="tf-idf", run_folder=str(tmp_path / "run")
    )
    run = document_matching.prepare(settings)
    document_matching.predict(run)
    pairs(corpus, 5)
    with pytest.raises(RunError, match="corpus has changed while this run was going on"):
        document_matching.report(run, document_matching.evaluate(run, document_matching.predict(run)))
    run.opened.close()
    with pytest.raises(RunError, match=f"was begun with other data or models: {corpus} has changed. Choose"):
        document_matching.prepare(settings)
    fresh, _ = finished_run(document_matching, replace(settings, run_folder=str(tmp_path / "fresh")))
    assert list(read_report(fresh.folder).identity["data"]) == [str(corpus)]


def test_alignments_are_of_the_run_of_notebook_04_as_it_was(tmp_path: Path) -> None:
    case = CASES["04"]
    given = replace(case.settings(tmp_path), systems="tf-idf gru-han", epochs=1)
    finished_run(document_matching, given)
    aligned = sentence_alignment.Settings(
        matching_run=given.run_folder, systems="gru-han", run_folder=str(tmp_path / "aligned")
    )
    run = sentence_alignment.prepare(aligned)
    sentence_alignment.report(run, sentence_alignment.evaluate(run, sentence_alignment.predict(run)))
    identity = read_report(run.folder).identity
    assert given.corpus in identity["data"], "the fingerprint of the data"
    retrain(tmp_path / "run" / "systems")
    with pytest.raises(RunError, match=r"was finished with other .*systems/gru-han-0/model has changed"):
        sentence_alignment.prepare(aligned)
    case.write(tmp_path / "corpus", 1)
    elsewhere = replace(aligned, run_folder=str(tmp_path / "anew"))
    with pytest.raises(ValueError, match="where no finished run of notebook 04 is"):
        sentence_alignment.prepare(replace(elsewhere, matching_run=str(tmp_path / "nowhere")))
    with pytest.raises(ValueError, match=r"which read other data or models: .*corpus has changed; make"):
        sentence_alignment.prepare(elsewhere)
    assert not (tmp_path / "anew").exists()


def test_the_tour_refuses_what_it_cannot_train(tmp_path: Path) -> None:
    given = tour.Settings(run_folder=str(tmp_path / "run"), train_clusters=2, held_out_clusters=2)
    for wrong in ({"window": 31}, {"learning_rate": -1.0}, {"train_clusters": 0}):
        with pytest.raises((ValueError, RuntimeError)):
            tour.prepare(replace(given, **wrong))
        assert not (tmp_path / "run").exists()
    run = tour.prepare(given)
    assert run.opened.write_report(scores=[]).identity["data"] == {"storyworld": "generator 1"}


def of_all(kind: type) -> set[str]:
    return {getattr(kind, "NAME", "")}.union(*map(of_all, kind.__subclasses__())) - {""}


def test_every_experiment_has_a_version() -> None:
    assert of_all(ExperimentRun) <= set(VERSIONS)
