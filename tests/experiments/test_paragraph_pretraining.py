"""Notebook 08's experiment on a handful of documents: trained, stopped and gone on with, opened elsewhere."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoTokenizer, LongformerForMaskedLM

from cdlm_lab.data.records import SPLITS
from cdlm_lab.experiments import paragraph_pretraining
from cdlm_lab.experiments.paragraph_pretraining import (
    PARAMETERS,
    ParagraphCorpus,
    ParagraphRun,
    ParagraphSettings,
    ParagraphTask,
    ParagraphTraining,
    has_copied_globals,
    prepare_paragraphs,
    pretrain,
)
from cdlm_lab.models.joint import JointHead, load_joint_model, paragraph_head
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.trainer import TrainingResult

SMALL = ParagraphSettings(
    corpus=ParagraphCorpus(train_clusters=3, held_out_clusters=2),
    task=ParagraphTask(sentence_length=10),
    training=ParagraphTraining(
        steps=4, batch_size=4, micro_batch_size=2, warmup_steps=1, evaluate_every=2, dropout=0.1
    ),
)
IDS = {"train": "c0", "validation": "c7", "test": "c11"}  # clusters that their hash puts there


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def finished(
    cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ParagraphRun, TrainingResult, Path]:
    folder = tmp_path_factory.mktemp("finished")
    run = prepare_paragraphs(SMALL, cache_folder=cache)
    return run, pretrain(run, folder), folder


def without_times(result: TrainingResult) -> list[dict]:
    return [{name: value for name, value in one.items() if name != "seconds"} for one in result.history]


def test_both_losses_are_recorded_and_add_up(finished) -> None:
    _, result, _ = finished
    assert [one["step"] for one in result.history] == [1, 2, 2, 3, 4, 4]
    for record in result.history:
        sign = "eval_" if "eval_loss" in record else ""
        parts = record[f"{sign}loss_mlm"], record[f"{sign}loss_mspp"]
        assert record[f"{sign}loss"] == pytest.approx(sum(parts), abs=1e-4)
        assert min(parts) > 0


def test_the_model_opens_in_plain_huggingface_and_says_the_same(finished) -> None:
    run, _, folder = finished
    plain = LongformerForMaskedLM.from_pretrained(folder / MODEL_FOLDER)
    tokenizer = AutoTokenizer.from_pretrained(folder / MODEL_FOLDER)
    ids = torch.tensor([tokenizer("The mayor asked for calm.")["input_ids"]])
    with torch.no_grad():
        states = run.model.eval().longformer(ids).last_hidden_state
        torch.testing.assert_close(plain(ids).logits, run.model.lm_head(states), rtol=0, atol=1e-4)


def test_a_joint_model_starts_from_the_head_beside_it(finished) -> None:
    run, _, folder = finished
    form, weights = paragraph_head(str(folder / MODEL_FOLDER))
    assert form == SMALL.task.joint_head == JointHead(kind="ie_k", sentences=6, length=10)
    joint, _ = load_joint_model(folder / MODEL_FOLDER, head=form)
    torch.testing.assert_close(joint.head.layers[0].weight, weights["layers.0.weight"])
    torch.testing.assert_close(joint.head.layers[0].weight, run.model.head.layers[0].weight.cpu())


def test_what_was_trained_is_not_what_it_began_with(finished, cache: Path) -> None:
    run, _, _ = finished
    before = prepare_paragraphs(SMALL, cache_folder=cache).model
    for name in (
        "head.layers.0.weight",
        "lm_head.dense.weight",
        "longformer.encoder.layer.0.output.dense.weight",
    ):
        assert not before.get_parameter(name).equal(run.model.get_parameter(name).cpu()), name


def test_global_projections_stay_copies_and_own_ones_stay_as_they_were(
    finished, cache: Path, tmp_path: Path
) -> None:
    assert has_copied_globals(finished[0].model), "of the shipped Longformer, whose local ones have changed"
    training = ParagraphTraining(
        model="storyworld/cdlm", steps=1, batch_size=2, micro_batch_size=2, warmup_steps=0
    )
    run = prepare_paragraphs(replace(SMALL, training=training), cache_folder=cache)
    projection = run.model.longformer.encoder.layer[0].attention.self
    own, local = projection.query_global.weight.clone(), projection.query.weight.clone()
    pretrain(run, tmp_path)
    assert projection.query_global.weight.equal(own)
    assert not projection.query.weight.equal(local)


def test_a_killed_run_goes_on_as_if_it_had_not_been(finished, cache: Path, tmp_path: Path) -> None:
    _, whole, _ = finished

    def killed(record: dict) -> None:
        if record["step"] == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        pretrain(prepare_paragraphs(SMALL, cache_folder=cache), tmp_path, on_log=killed)
    assert not (tmp_path / MODEL_FOLDER).exists()
    run = prepare_paragraphs(SMALL, cache_folder=cache)
    assert without_times(pretrain(run, tmp_path)) == without_times(whole)
    for name, weight in finished[0].model.state_dict().items():
        assert weight.equal(run.model.state_dict()[name]), name


def test_an_interrupted_run_leaves_no_model(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = SimpleNamespace(interrupted=True, steps=2)
    monkeypatch.setattr(paragraph_pretraining, "train_in_processes", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt, match="stopped after step 2"):
        pretrain(prepare_paragraphs(SMALL, cache_folder=cache), tmp_path)
    assert not (tmp_path / MODEL_FOLDER).exists()


def test_only_the_first_process_writes_the_model(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = SimpleNamespace(interrupted=False, steps=4)
    monkeypatch.setattr(paragraph_pretraining, "train_in_processes", lambda *_, **__: ended)
    monkeypatch.setenv("RANK", "1")
    run = prepare_paragraphs(SMALL, cache_folder=cache)
    assert pretrain(run, tmp_path) is ended
    assert not (tmp_path / MODEL_FOLDER).exists()


def test_each_split_has_documents_and_chance_of_its_own(finished) -> None:
    splits = finished[0].splits
    assert tuple(splits) == SPLITS
    ids = {split: set(one.examples.corpus["document_id"]) for split, one in splits.items()}
    assert len(set.union(*ids.values())) == sum(map(len, ids.values())), "none is in two splits"
    assert len({one.examples.seed for one in splits.values()}) == 3
    assert len({one.checksum for one in splits.values()}) == 3
    assert len(splits["train"].examples) == 16, "steps x batch size"
    for split in ("validation", "test"):
        assert len(splits[split].examples) == splits[split].examples.counts.sources


def jsonl(file: Path, documents: int) -> ParagraphCorpus:
    """A corpus with a cluster in each split, its documents of two paragraphs of two sentences each."""
    with file.open("w", encoding="utf-8") as opened:
        for name in IDS.values():
            texts = [
                f"{number} roofs were sold today. {number} owners are content.\n"
                f"{number} cellars stand empty. {number} buyers are looking at them."
                for number in range(documents)
            ]
            opened.write(json.dumps({"id": name, "documents": texts}) + "\n")
    return ParagraphCorpus(corpus=str(file), train_clusters=0, held_out_clusters=0)


def test_any_text_with_paragraphs_will_do(cache: Path, tmp_path: Path) -> None:
    run = prepare_paragraphs(replace(SMALL, corpus=jsonl(tmp_path / "houses.jsonl", 3)), cache_folder=cache)
    assert {split: one.counts.documents_kept for split, one in run.splits.items()} == dict.fromkeys(SPLITS, 3)
    assert {split: one.examples.counts.sources for split, one in run.splits.items()} == dict.fromkeys(
        SPLITS, 6
    )


def test_a_single_document_is_refused_with_the_name_of_the_split(cache: Path, tmp_path: Path) -> None:
    corpus = jsonl(tmp_path / "house.jsonl", 1)
    with pytest.raises(ValueError, match=r"house\.jsonl, train: the corpus has one document only"):
        prepare_paragraphs(replace(SMALL, corpus=corpus), cache_folder=cache)


def test_a_single_document_to_be_tested_on_is_refused_before_training(cache: Path, tmp_path: Path) -> None:
    corpus = jsonl(tmp_path / "houses.jsonl", 2)
    file = Path(corpus.corpus)
    lines = file.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[2])
    record["documents"][1] = "A text of a single paragraph. It has two sentences."
    file.write_text("\n".join([*lines[:2], json.dumps(record)]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"houses\.jsonl, test: only one document can be asked about"):
        prepare_paragraphs(replace(SMALL, corpus=corpus), cache_folder=cache)


def test_storyworld_needs_a_number_of_clusters(cache: Path) -> None:
    endless = replace(SMALL, corpus=ParagraphCorpus(train_clusters=0))
    with pytest.raises(ValueError, match="storyworld has no end"):
        prepare_paragraphs(endless, cache_folder=cache)


def test_a_model_from_scratch_has_copied_globals(cache: Path) -> None:
    scratch = replace(SMALL, training=replace(SMALL.training, model="tiny"))
    run = prepare_paragraphs(scratch, cache_folder=cache)
    assert not run.own_globals
    assert has_copied_globals(run.model)


def test_parameters_are_those_of_the_settings() -> None:
    assert PARAMETERS[0] == "run_folder"
    assert set(PARAMETERS[1:]) == set(SMALL.parameters)
    assert {"parallel", "workers"} <= set(PARAMETERS)


def test_what_is_no_parameter_is_the_papers() -> None:
    """Appendix B.1: Adam with 0.9, 0.999 and 1e-8, weight decay 0.01, gradients clipped at 1."""
    config = SMALL.training.config
    assert (config.adam_beta2, config.adam_epsilon) == (0.999, 1e-8)
    assert (config.weight_decay, config.max_gradient_norm) == (0.01, 1.0)
    rates = [config.learning_rate_at(step) / config.learning_rate for step in range(5)]
    assert rates == pytest.approx([0, 1, 2 / 3, 1 / 3, 0]), "triangular"


def test_the_head_reads_what_the_task_makes() -> None:
    task = ParagraphTask(
        same_paragraph=2, same_document=0, other_documents=3, head="ae_k", head_layers="tanh"
    )
    assert task.k == (2, 0, 3)
    assert task.right == 0.4
    assert task.joint_head == JointHead(kind="ae_k", sentences=6, length=32, layers="tanh")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"head": "ie_1"}, "head is 'ie_1'; choose one of ie_k, ae_k"),
        ({"head_layers": "relu"}, "head_layers is 'relu'"),
        ({"positions": "dense"}, "positions is 'dense'"),
        ({"same_paragraph": 0}, "same_paragraph is 0; it must be at least 1"),
        ({"same_document": -1}, "same_document is -1"),
        ({"same_document": 0, "other_documents": 0}, "there must be a wrong candidate"),
        ({"sentence_length": 1}, "sentence_length is 1"),
        ({"mask_probability": 0.0}, "masking probability is 0.0"),
        ({"mask_probability": "0.15"}, "mask_probability is the text"),
    ],
)
def test_tasks_that_cannot_be_are_refused(fault: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParagraphTask(**fault)


@pytest.mark.parametrize(
    ("part", "fault", "message"),
    [
        (ParagraphTraining, {"batch_size": 5, "micro_batch_size": 2}, "must be a multiple"),
        (ParagraphTraining, {"steps": 10, "warmup_steps": 10}, "must be fewer than steps"),
        (ParagraphTraining, {"precision": "half"}, "precision is 'half'"),
        (ParagraphCorpus, {"train_clusters": -1}, "train_clusters is -1"),
    ],
)
def test_other_parameters_that_cannot_be_are_refused(part: type, fault: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        part(**fault)
