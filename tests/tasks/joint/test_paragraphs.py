"""Notebook 08's experiment with a few documents: shown, trained, stopped and resumed, scored, opened
elsewhere; its scores by hand."""

import json
import shutil
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from datasets import Dataset
from ship import ship_run
from tagging_runs import by_name, saved
from transformers import AutoTokenizer, LongformerForMaskedLM

from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.splits import SPLITS
from cdlm_lab.encoders import model_folder
from cdlm_lab.encoders.checkpoint import HEAD_FILE
from cdlm_lab.encoders.conversion import copied_globals
from cdlm_lab.encoders.model_folder import MODEL_FOLDER
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.evaluation import evaluate
from cdlm_lab.runs.report import Report, read_report
from cdlm_lab.runs.scores import plain_name
from cdlm_lab.tasks.joint import paragraphs as experiment
from cdlm_lab.tasks.joint import paragraphs_view
from cdlm_lab.tasks.joint.model import JointHead, load_joint_model, paragraph_head
from cdlm_lab.tasks.joint.paragraphs import (
    MEASURES,
    PLANNED,
    ParagraphAnswers,
    ParagraphRun,
    Settings,
    chances_of,
    clusters_of,
    common_words,
    items_of_answers,
    prepare,
    train,
)
from cdlm_lab.tasks.joint.paragraphs_view import facts
from cdlm_lab.training import fine_tuning
from cdlm_lab.training.trainer import TrainingResult

SMALL = Settings(
    train_clusters=3, held_out_clusters=2, sentence_length=10, steps=4, batch_size=4, micro_batch_size=2,
    warmup_steps=1, evaluate_every=2, dropout=0.1, seed=5, learning_rate=0.0005, mask_probability=0.15
)  # fmt: skip
# clusters that their hash puts there
IDS = {"train": "c0", "validation": "c7", "test": "c11", "second of test": "c15"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def small(tmp_path: Path) -> Settings:
    return replace(SMALL, run_folder=str(tmp_path / "run"))


@pytest.fixture(scope="module")
def untrained(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> ParagraphRun:
    """A prepared run that tests share; it must not be trained."""
    return prepare(replace(SMALL, run_folder=str(tmp_path_factory.mktemp("run"))), cache=cache)


Finished = tuple[ParagraphRun, TrainingResult, Path]


@pytest.fixture(scope="module")
def finished(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    run = prepare(replace(SMALL, run_folder=str(folder)), cache=cache)
    result = train(run)
    experiment.report(run, experiment.evaluate(run, experiment.predict(run), result))
    return run, result, folder


@pytest.fixture(scope="module")
def report(finished: Finished) -> Report:
    return read_report(finished[2])


def test_what_is_no_parameter_is_the_papers_and_the_head_reads_what_the_task_makes():
    """Appendix B.1: Adam with 0.9, 0.999 and 1e-8, weight decay 0.01, gradient clipping at 1."""
    config = SMALL.training
    assert (config.adam_beta2, config.adam_epsilon) == (0.999, 1e-8)
    assert (config.weight_decay, config.max_gradient_norm) == (0.01, 1.0)
    assert (config.steps, config.warmup_steps, config.decay_power) == (4, 1, 1), "triangular"
    given = Settings(same_paragraph=2, same_document=0, other_documents=3, head="ae_k", head_layers="tanh")
    assert (given.k, given.right) == ((2, 0, 3), 0.4)
    assert given.joint_head == JointHead(kind="ae_k", sentences=6, length=32, layers="tanh")


# ---- the corpus ----


def jsonl(file: Path, documents: int) -> dict:
    """Write a corpus: a cluster per split, two for test; documents have two paragraphs of two sentences."""
    texts = [
        f"{number} roofs were sold today. {number} owners are content.\n"
        f"{number} cellars stand empty. {number} buyers are looking at them."
        for number in range(documents)
    ]
    file.write_text("".join(json.dumps({"id": name, "documents": texts}) + "\n" for name in IDS.values()))
    return {"corpus": str(file), "train_clusters": 0, "held_out_clusters": 0}


def test_every_token_may_start_with_the_global_projections_of_a_checkpoint(small: Settings):
    runs = [
        ParagraphRun.load(replace(small, model="storyworld/cdlm", projections=kind))[0]
        for kind in ("local", "global")
    ]
    kept, taken = (one.longformer.encoder.layer[0].attention.self for one in runs)
    assert list(map(len, map(copied_globals, runs))) == [0, runs[1].config.num_hidden_layers]
    assert torch.equal(taken.query.weight, kept.query_global.weight)
    assert not torch.equal(taken.query.weight, kept.query.weight)


def test_too_few_documents_are_refused_with_the_name_of_the_split(
    cache: Path, small: Settings, tmp_path: Path
):
    with pytest.raises(ValueError, match=r"house\.jsonl, train: the corpus has one document only"):
        prepare(replace(small, **jsonl(tmp_path / "house.jsonl", 1)), cache=cache)
    file = tmp_path / "houses.jsonl"
    corpus = jsonl(file, 2)
    *lines, last = file.read_text(encoding="utf-8").splitlines()
    record = json.loads(last)
    record["documents"] = ["A text of a single paragraph. It has two sentences."] * 2
    file.write_text("\n".join([*lines, json.dumps(record)]), encoding="utf-8")
    other = replace(small, **corpus, run_folder=str(tmp_path / "other"))
    with pytest.raises(ValueError, match=r"houses\.jsonl, test: only one cluster can be asked about"):
        prepare(other, cache=cache)
    with pytest.raises(ValueError, match="storyworld has no end"):
        prepare(replace(small, train_clusters=0, run_folder=str(tmp_path / "endless")), cache=cache)


# ---- training ----


def test_both_losses_are_recorded_and_add_up(finished: Finished):
    _, result, _ = finished
    assert [one["step"] for one in result.history] == [1, 2, 2, 3, 4, 4]
    for record in result.history:
        sign = "eval_" if "eval_loss" in record else ""
        parts = record[f"{sign}loss_mlm"], record[f"{sign}loss_mspp"]
        assert record[f"{sign}loss"] == pytest.approx(sum(parts), abs=1e-4)
        assert min(parts) > 0


def test_the_model_opens_elsewhere_and_says_the_same(finished: Finished):
    """It opens in plain Hugging Face, and, with the head that is saved beside it, as a joint model."""
    run, _, folder = finished
    plain = LongformerForMaskedLM.from_pretrained(folder / MODEL_FOLDER)
    tokenizer = AutoTokenizer.from_pretrained(folder / MODEL_FOLDER)
    ids = torch.tensor([tokenizer("The mayor asked for calm.")["input_ids"]])
    with torch.no_grad():
        states = run.model.eval().longformer(ids).last_hidden_state
        torch.testing.assert_close(plain(ids).logits, run.model.lm_head(states), rtol=0, atol=1e-4)
    form, weights = paragraph_head(str(folder / MODEL_FOLDER))
    assert form == SMALL.joint_head == JointHead(kind="ie_k", sentences=6, length=10)
    joint, _ = load_joint_model(folder / MODEL_FOLDER, head=form)
    for expected in (weights["layers.0.weight"], run.model.head.layers[0].weight.cpu()):
        torch.testing.assert_close(joint.head.layers[0].weight, expected)


def test_a_trained_model_is_opened_and_a_new_one_learns_beside_it(
    finished: Finished, report: Report, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """From its folder, and as shipped, in half precision; with the sizes and the history of its training."""
    monkeypatch.setattr(model_folder, "FOLDER", tmp_path / "project")
    ship_run(finished[2], "storyworld/paragraphs")
    losses = [row["loss"] for row in report.tables["history"] if "loss" in row]
    for number, name in enumerate((str(finished[2]), "storyworld/paragraphs")):
        given = replace(SMALL, trained=name, run_folder=str(tmp_path / str(number)))
        run = prepare(given, cache=cache)
        assert dict(facts(run))["training"] == f"done already, in {name}"
        assert train(run) is None
        again = experiment.report(run, experiment.evaluate(run, experiment.predict(run), None))
        assert [row["loss"] for row in again.tables["history"] if "loss" in row] == losses
        scores = {row.metric: row.value for row in again.rows}
        for row in report.rows:
            if row.metric.startswith(("mspp/above", "mlm")):
                assert scores[row.metric] == pytest.approx(row.value, rel=0.02), row.metric
        assert len(paragraphs_view.losses_figure(again).data) == 4
    assert not (tmp_path / "1" / "model").exists()
    monkeypatch.undo()
    seen: list[dict] = []
    experiment.train_small(run, on_log=seen.append)
    assert seen[-1]["step"] == 4
    assert seen[0]["loss"] == pytest.approx(losses[0]), "it begins where the other began"
    experiment.train_small(finished[0], on_log=None)  # a whole training was seen: nothing to do


def test_a_model_of_another_task_may_learn_paragraphs_alone(cache: Path, small: Settings, tmp_path: Path):
    """The other task's head is dropped; if no word is masked, no MLM metrics are computed. The initial model
    need not exist when the trained one is opened."""
    folder = saved(tmp_path / "answers", *load_joint_model("tiny", head=small.joint_head))
    given = replace(small, model=folder, mask_probability=0)
    with pytest.warns(UserWarning, match="has no language-model head"):
        prepare(replace(given, mask_probability=0.15, run_folder=str(tmp_path / "masked")), cache=cache)
    with warnings.catch_warnings(action="error"):
        run = prepare(given, cache=cache)
    own = load_joint_model(folder)[0].longformer.state_dict()
    for name, weight in run.model.longformer.state_dict().items():
        assert weight.equal(own[name]), name
    assert (run.splits["train"].examples[0]["mlm_labels"] == -100).all()
    result = train(run)
    report = experiment.report(run, experiment.evaluate(run, experiment.predict(run), result))
    assert "mlm/perplexity" not in {row.metric for row in report.rows}
    assert "masked" not in paragraphs_view.score_table(report).html()
    assert {row["loss_mlm"] for row in result.history if "loss_mlm" in row} == {0.0}
    shutil.rmtree(folder)
    opened = replace(given, trained=given.run_folder, run_folder=str(tmp_path / "opened"))
    again = prepare(opened, cache=cache)
    assert again.small_job().model.head.form == run.model.head.form


def test_what_cannot_be_opened_is_refused(finished: Finished, cache: Path, small: Settings, tmp_path: Path):
    given = replace(small, trained=str(finished[2]))
    with pytest.raises(ParameterError, match=r"head is 'ae_k', but .* was trained with head = \"ie_k\""):
        prepare(replace(given, head="ae_k"), cache=cache)
    shutil.copytree(finished[2], tmp_path / "other")
    (tmp_path / "other" / MODEL_FOLDER / HEAD_FILE).unlink()
    with pytest.raises(ParameterError, match=r"whose model has no head for paragraphs; name a run"):
        prepare(replace(given, trained=str(tmp_path / "other")), cache=cache)


def test_each_split_has_documents_and_chance_of_its_own(finished: Finished):
    splits = finished[0].splits
    assert tuple(splits) == SPLITS
    ids = {split: set(one.examples.corpus["document_id"]) for split, one in splits.items()}
    assert len(set.union(*ids.values())) == sum(map(len, ids.values())), "none is in two splits"
    assert len({one.examples.seed for one in splits.values()}) == 3
    assert len({one.checksum for one in splits.values()}) == 3
    assert len(splits["train"].examples) == 16, "steps x batch size"
    for split in ("validation", "test"):
        assert len(splits[split].examples) == splits[split].examples.counts.sources


def without_times(result: TrainingResult) -> list[dict]:
    return [{name: value for name, value in one.items() if name != "seconds"} for one in result.history]


def test_a_killed_run_goes_on_as_if_it_had_not_been(finished: Finished, cache: Path, small: Settings):
    def killed(record: dict) -> None:
        if record["step"] == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        train(prepare(small, cache=cache), on_log=killed)
    assert not (Path(small.run_folder) / MODEL_FOLDER).exists()
    run = prepare(small, cache=cache)
    assert without_times(train(run)) == without_times(finished[1])
    for name, weight in finished[0].model.state_dict().items():
        assert weight.equal(run.model.state_dict()[name]), name


def test_an_interrupted_run_and_other_processes_leave_no_model(
    cache: Path, small: Settings, monkeypatch: pytest.MonkeyPatch
):
    ended = SimpleNamespace(interrupted=True, steps=2)
    monkeypatch.setattr(fine_tuning, "train_in_processes", lambda *_, **__: ended)
    run = prepare(small, cache=cache)
    with pytest.raises(KeyboardInterrupt, match="Stopped after step 2, which is kept: run"):
        train(run)
    ended.interrupted = False
    monkeypatch.setenv("RANK", "1")
    assert train(run) is ended
    assert not (Path(small.run_folder) / MODEL_FOLDER).exists()


# ---- before the start, and the report ----


def test_facts_say_what_is_read_and_what_is_lost(untrained: ParagraphRun, cache: Path, small: Settings):
    text = dict(facts(untrained))
    train, test = untrained.splits["train"], untrained.splits["test"]
    assert text["test"].endswith(f"; {len(test.examples)} examples")
    assert text["wrong candidates"] == "each document has 2 or more sentences in other paragraphs"
    cut = [n for index in range(16) for n in train.examples.describe(index).sequence.cut]
    read = sum(len(train.examples[index]["input_ids"]) - 6 for index in range(16))
    share = sum(n > 0 for n in cut) / 96
    assert text["too long"] == (
        f"{share:.0%} of the sentences are cut to 10 tokens, which takes {sum(cut) / (sum(cut) + read):.0%} "
        "of the text"
    )
    assert text["test"] in paragraphs_view.preview(untrained).data
    run = prepare(replace(small, same_document=30, paragraphs="as written"), cache=cache)
    counts = run.splits["train"].examples.counts
    text = dict(facts(run))["wrong candidates"]
    assert text.startswith(f"{counts.short_of_hard / counts.sources:.0%} of these paragraphs")
    assert "fewer than 30 sentences elsewhere" in text


def test_the_report_has_scores_and_where_they_come_from(report: Report, finished: Finished):
    run, scores = finished[0], by_name(report)
    test = run.splits["test"]
    assert (scores["mspp/first"].n, scores["mspp/called"].n) == (len(test.examples), 5 * len(test.examples))
    assert scores["best_step"].value in (2, 4)
    assert report.data["checksums"]["test"] == test.checksum
    assert (report.data["right"], report.data["precision"]) == (0.2, precision_in_words("auto"))
    assert {record["step"] for record in report.tables["history"]} == {1, 2, 3, 4}
    assert paragraphs_view.score_table(report).html().count("<tr") == 1 + 9
    assert len(paragraphs_view.losses_figure(report).data) == 4


# ---- examples ----


# ---- scores by hand ----

PARAGRAPH, DOCUMENT, OTHER = "same paragraph", "same document", "other document"
# Three examples of three documents of two clusters; in the last one a hard negative was taken from elsewhere.
BY_HAND, CLUSTERS = (
    ParagraphAnswers(
        documents=np.array([7, 8, 3]),
        kinds=np.array(
            [[PARAGRAPH, DOCUMENT, OTHER], [DOCUMENT, PARAGRAPH, OTHER], [OTHER, OTHER, PARAGRAPH]]
        ),
        scores=np.array([[2.0, 1.0, -1.0], [3.0, -1.0, -2.0], [0.5, 0.0, 0.5]]),
        losses=np.array([2.0, 4.0, 3.0]),
        masked=np.array([2, 3, 1]),
    ),
    np.array(["a", "a", "b"]),
)
COSINES = np.array([[0.4, 0.1, 0.0], [0.2, 0.3, 0.1], [0.5, 0.0, 0.2]])  # first, first, second


def test_scores_by_hand():
    items = items_of_answers(BY_HAND, clusters=CLUSTERS, cosines=COSINES)
    rows, chances = evaluate(items, MEASURES, PLANNED).rows, chances_of(BY_HAND)
    scores = {plain_name(row): row for row in rows}
    expected = {
        # right, wrong, right; wrong, wrong, right; wrong, right, right
        "mspp/called": (5 / 9, 9, 2 / 3),
        "mspp/called/same paragraph": (2 / 3, 3, None),
        "mspp/called/other document": (3 / 4, 4, None),
        # first; second; level with another one for the first place
        "mspp/first": ((1 + 0 + 0.5) / 3, 3, 1 / 3),
        "tf-idf/mspp/first": ((1 + 1 + 0) / 3, 3, 1 / 3),
        "mspp/above/other document": ((1 + 1 + 0.5 + 1) / 4, 4, 0.5),
        "mlm/perplexity": (np.exp(9 / 6), 6, None),
    }
    assert scores.keys() == expected.keys(), "of the same document is one, which leaves no interval"
    for name, (value, n, chance) in expected.items():
        assert scores[name].value == pytest.approx(value)
        assert (scores[name].n, scores[name].clusters) == (n, 2)
        assert chances.get(scores[name].metric) == (chance and pytest.approx(chance))
    first = scores["mspp/first"]
    assert (first.low, first.high) == (0.5, 0.5), "one half in each cluster, though not in each document"
    assert scores["mspp/called"].low < 5 / 9 < scores["mspp/called"].high
    np.testing.assert_allclose(BY_HAND.probabilities[0], [0.880797, 0.731059, 0.268941], atol=1e-6)
    # differences of the clusters are 1/2 and -1, and level with them are all exchanges but one: p = 1
    assert (scores["mspp/first"].p, scores["mspp/first"].against) == (1.0, "tf-idf")


def test_common_words_are_weighed_by_test_sentences_and_read_as_far_as_the_model_reads(
    untrained: ParagraphRun,
):
    """By those that are compared, so that the baseline is the same whatever there is for training."""
    examples = untrained.splits["test"].examples
    cosines = common_words(examples)
    sentences = [set(sentence) for row in examples.corpus for sentence in row["input_ids"]]
    having = Counter(token for sentence in sentences for token in sentence)

    def weights(tokens: np.ndarray) -> dict[int, float]:
        counts = {token: count for token, count in Counter(tokens.tolist()).items() if token in having}
        return {
            token: (1 + np.log(count)) * (1 + np.log((1 + len(sentences)) / (1 + having[token])))
            for token, count in counts.items()
        }

    assert cosines.shape == (len(examples), 5)
    for row in (0, 3, len(examples) - 1):
        first, *others = (weights(one.tokens[:9]) for one in examples.describe(row).sentences)
        for column, other in enumerate(others):
            product = sum(first[token] * other[token] for token in first.keys() & other.keys())
            lengths = [np.sqrt(sum(value**2 for value in one.values())) for one in (first, other)]
            assert cosines[row, column] == pytest.approx(product / max(np.prod(lengths), 1e-300))


def test_answers_are_those_of_the_model(cache: Path, small: Settings):
    given = {"head": "ae_k", "sentence_length": 40, "paragraphs": "as written"}
    run = prepare(replace(small, **given), cache=cache)
    examples = run.splits["test"].examples
    answers = experiment.answer_tasks(run.model, examples, run.collate, batch_size=7, name="")
    assert len(answers.documents) == len(examples) > 20
    assert len({len(examples[index]["input_ids"]) for index in range(14)}) > 5, "read by length"
    for index in (0, 1, 2, len(examples) - 1):
        example = examples.describe(index)
        with torch.no_grad():
            output = run.model(**run.collate([examples[index]]))
        logits = output.logits[0].double().numpy()
        np.testing.assert_allclose(answers.scores[index], logits[:, 1] - logits[:, 0], atol=1e-4)
        assert answers.masked[index] == (example.mlm_labels >= 0).sum()
        mean = answers.losses[index] / answers.masked[index]
        assert mean == pytest.approx(output.parts["mlm"].item(), abs=1e-4)
        assert answers.documents[index] == example.sentences[0].row
        assert (answers.kinds[index] == PARAGRAPH).tolist() == example.labels.astype(bool).tolist()


def test_each_row_has_its_cluster_though_documents_are_missing_or_called_alike():
    named = {"c1": ["a", "b"], "c2": ["a", "c", "d"], "c3": ["b"]}
    clusters = [
        Cluster(id=name, documents=tuple(Document(id=one, text="") for one in documents))
        for name, documents in named.items()
    ]
    rows = Dataset.from_dict({"document_id": ["a", "a", "d", "b"]})
    assert clusters_of(rows, clusters) == ["c1", "c2", "c2", "c3"]
