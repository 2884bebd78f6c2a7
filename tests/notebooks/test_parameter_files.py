"""The parameter files that the project ships set parameters their notebook has, to values it takes."""

import ast
import re
from pathlib import Path
from typing import Any

import notebook_rules as rules
import pytest
import yaml

from cdlm_lab.batch.marked_yaml import read_yaml
from cdlm_lab.experiments import (
    answer_selection,
    attention_analysis,
    coreference,
    document_matching,
    document_tagging,
    fact_verification,
    multihop_qa,
    paragraph_pretraining,
    perplexity,
    pretraining,
    sentence_alignment,
    tour,
)
from cdlm_lab.models.frozen import lengths_of
from cdlm_lab.parameters import parameter_names, parameters_of, settings_of

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "notebooks" / "parameters" / "cdlm_paper.yaml"


@pytest.mark.parametrize("path", sorted(PAPER.parent.glob("*.yaml")), ids=lambda path: path.stem)
def test_papermill_and_grids_read_the_same(path: Path) -> None:
    """Papermill reads YAML 1.1, where 1e-4 is text and 012 is 10; a grid reads YAML 1.2."""
    text = path.read_text(encoding="utf-8")
    ours, papermills = read_yaml(text, where=str(path)), yaml.safe_load(text)
    assert repr(ours) == repr(papermills)


def declared(name: str) -> set[str]:
    cells = rules.code_cells(rules.read_notebook(ROOT / "notebooks" / f"{name}.ipynb"))
    source = rules.source_of(cells[0][1])
    return set(re.findall(r"^(\w+) = ", source, flags=re.MULTILINE))


def test_paper_parameters_are_those_of_the_pretraining_notebook() -> None:
    names = set(parameter_names(pretraining.Settings))
    assert declared("01_pretraining") == names
    assert set(yaml.safe_load(PAPER.read_text(encoding="utf-8"))) <= names


def test_the_papers_train_with_the_dropout_of_their_checkpoints_and_ours_with_none() -> None:
    given = {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))["attention_dropout"]
        for path in PAPER.parent.glob("*.yaml")
    }
    assert {name for name, share in given.items() if share == 0} == {"news_minilm", "storyworld_tiny"}
    assert {share for share in given.values() if share} == {"checkpoint"}


TRAINING = ["01", "03", "04", "06", "07", "08", "09", "10"]  # an encoder, with parameters for it


@pytest.mark.parametrize("name", TRAINING)
def test_notebooks_that_train_an_encoder_let_its_dropout_and_precision_be_chosen(name: str) -> None:
    path = next((ROOT / "notebooks").glob(f"{name}_*.ipynb"))
    given = rules.assigned_parameters(rules.read_notebook(path))
    assert ast.literal_eval(given["attention_dropout"].value) == 0.0
    assert ast.literal_eval(given["precision"].value) == "auto"


@pytest.mark.parametrize("grid", ["cdlm", "cda", "doc_arc"])
def test_grids_train_encoders_with_the_dropout_of_the_papers(grid: str) -> None:
    """Where no parameter file says so; the encoders of the other tasks are frozen."""
    text = (ROOT / "notebooks" / "grids" / f"{grid}.yaml").read_text(encoding="utf-8")
    tasks = yaml.safe_load(text)["tasks"].values()
    trained = [
        task["parameters"]
        for task in tasks
        if task["notebook"] == "03_coreference" or "encoder_epochs" in task.get("parameters", {})
    ]
    assert trained
    assert {given.get("attention_dropout") for given in trained} == {"checkpoint"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 25_000),
        ("batch_size", 64),
        ("max_length", 4096),
        ("learning_rate", 3e-5),
        ("warmup_steps", 500),
    ],
)
def test_paper_parameters_are_the_papers(name: str, value: float) -> None:
    """CDLM, appendix B."""
    assert yaml.safe_load(PAPER.read_text(encoding="utf-8"))[name] == value


def test_paper_parameters_make_a_training_config() -> None:
    given = yaml.safe_load(PAPER.read_text(encoding="utf-8"))
    config = pretraining.Settings(**{"corpus": "FOLDER"} | given).training
    assert config.accumulation(processes=8) == 1, "8 examples on each of 8 GPUs, as in the paper"


def test_task_adaptive_parameters_are_those_of_the_pretraining_notebook_and_the_papers() -> None:
    """Doc-ARC, Table 9: 128 tokens, batches of 32, learning rate 2e-5, 6% warm-up, whole words at 0.15."""
    given = yaml.safe_load((PAPER.parent / "docarc_tapt.yaml").read_text(encoding="utf-8"))
    settings = pretraining.Settings(**{"corpus": "FOLDER"} | given)
    assert (settings.masking, settings.mask_probability, settings.minimum_documents) == (
        "whole_words",
        0.15,
        1,
    )
    word_encoder = lengths_of(max_tokens=128, window=None)
    assert {name: given[name] for name in word_encoder} == word_encoder, "notebook 07 can open the model"
    config = settings.training
    assert (config.batch_size, config.learning_rate, config.decay_power) == (32, 2e-5, 1.0)
    assert config.warmup_steps == 0.06 * config.steps
    assert config.steps == pytest.approx(100 * 104_652 / 32, rel=1e-3), "100 epochs of JNLPBA's passages"


def test_paper_parameters_of_questions_are_those_of_their_notebook_and_the_papers() -> None:
    """CDLM, C.3."""
    given = yaml.safe_load((PAPER.parent / "hotpotqa_paper.yaml").read_text(encoding="utf-8"))
    assert set(given) <= declared("06_multihop_qa")
    assert given.pop("dev_from_train"), "the pass must not be chosen on what is reported"
    settings = settings_of(multihop_qa.Settings, {"corpus": "hotpotqa"} | given)
    assert len(settings.chosen) == 5
    assert (settings.epochs, settings.batch_size, settings.warmup_steps) == (5, 32, 100)
    assert (settings.max_length, settings.learning_rate) == (4096, 1e-4)


def test_paper_parameters_of_paragraphs_are_those_of_their_notebook_and_the_papers() -> None:
    """MSPP, sections 3.2 and 4.2, appendix B.1."""
    given = yaml.safe_load((PAPER.parent / "mspp_paper.yaml").read_text(encoding="utf-8"))
    assert set(given) <= declared("08_paragraph_pretraining")
    settings = settings_of(paragraph_pretraining.Settings, given)
    assert settings.k == (1, 2, 2)
    assert settings.joint_head.layout.tokens == 384
    assert (settings.positions, settings.head_layers, settings.mask_probability) == (
        "strided",
        "linear",
        0.15,
    )
    assert (settings.model, settings.dropout) == ("roberta-base", 0.1)
    assert (settings.steps, settings.batch_size, settings.warmup_steps) == (100_000, 4096, 10_000)
    assert (settings.learning_rate, settings.decay_power) == (5e-5, 1.0)
    assert settings.config.accumulation(processes=8) == 8, "micro-batches of each of 8 GPUs"


def test_paper_parameters_of_answers_are_those_of_their_notebook_and_the_papers() -> None:
    """MSPP, section 4.2, appendix A.2 (Table 5) and B.1."""
    given = yaml.safe_load((PAPER.parent / "answer_selection_paper.yaml").read_text(encoding="utf-8"))
    assert set(given) <= declared("09_answer_selection")
    settings = settings_of(answer_selection.Settings, given)
    assert len(settings.chosen) == 5
    assert {settings.head_of(system).layout.tokens for system in settings.chosen} == {384}
    assert (settings.candidates, settings.positions, settings.head_layers) == (5, "strided", "linear")
    assert (settings.seeds, settings.epochs, settings.batch_size) == (5, 40, 32)
    assert (settings.learning_rate, settings.warmup_steps) == (2e-6, 1000)


def test_paper_parameters_of_claims_are_those_of_their_notebook_and_the_papers() -> None:
    """MSPP, sections 3.2 and 4.3, appendix B.1."""
    given = yaml.safe_load((PAPER.parent / "fever_paper.yaml").read_text(encoding="utf-8"))
    assert set(given) <= declared("10_fact_verification")
    settings = settings_of(fact_verification.Settings, given)
    assert len(settings.chosen) == 7, "Table 3 less the systems of others"
    assert (1 + settings.evidence_sentences) * settings.sentence_length == 384
    assert (settings.positions, settings.head_layers) == ("strided", "linear")
    assert (settings.batch_size, settings.learning_rate, settings.warmup_steps) == (64, 1e-5, 1000)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("00_tour", tour.Settings()),
        ("01_pretraining", pretraining.Settings()),
        ("02_cross_document_perplexity", perplexity.Settings()),
        ("03_coreference", coreference.Settings()),
        ("04_document_matching", document_matching.Settings()),
        ("05_sentence_alignment", sentence_alignment.Settings()),
        ("06_multihop_qa", multihop_qa.Settings()),
        ("07_document_attentive_ner", document_tagging.Settings()),
        ("08_paragraph_pretraining", paragraph_pretraining.Settings()),
        ("09_answer_selection", answer_selection.Settings()),
        ("10_fact_verification", fact_verification.Settings()),
        ("11_attention_analysis", attention_analysis.Settings()),
    ],
)
def test_notebooks_come_with_the_values_of_the_library(name: str, settings: Any) -> None:
    given = rules.assigned_parameters(rules.read_notebook(ROOT / "notebooks" / f"{name}.ipynb"))
    found = {key: ast.literal_eval(given[key].value) for key in parameters_of(settings)}
    assert found == parameters_of(settings)
    if "run_folder" in found:
        assert set(found) == set(given)
