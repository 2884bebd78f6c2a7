"""The parameter files that the project ships set parameters their notebook has, to values it takes."""

import ast
import re
from pathlib import Path
from typing import Any

import notebook_rules as rules
import pytest
import yaml

from cdlm_lab.batch.grid import YamlFile
from cdlm_lab.encoders.frozen import lengths_of
from cdlm_lab.parameters import parameter_names, parameters_of, settings_of
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint import paragraphs as paragraph_pretraining
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.pretraining.experiment import Settings

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FILES = sorted((NOTEBOOKS / "parameters").glob("*.yaml"))
GIVEN = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_papermill_and_grids_read_the_same(path: Path) -> None:
    """Papermill reads YAML 1.1, where 1e-4 is text and 012 is 10; a grid reads YAML 1.2."""
    assert repr(YamlFile(path).values) == repr(GIVEN[path.stem])


def declared(name: str) -> set[str]:
    cells = rules.code_cells(rules.read_notebook(NOTEBOOKS / f"{name}.ipynb"))
    return set(re.findall(r"^(\w+) = ", rules.source_of(cells[0][1]), flags=re.MULTILINE))


def test_the_papers_train_with_the_dropout_of_their_checkpoints_and_ours_with_none() -> None:
    dropout = {name: given["attention_dropout"] for name, given in GIVEN.items()}
    assert {name for name, share in dropout.items() if share == 0} == {"news_minilm", "storyworld_tiny"}
    assert {share for share in dropout.values() if share} == {"checkpoint"}


@pytest.mark.parametrize("name", ["01", "03", "04", "06", "07", "08", "09", "10"])
def test_notebooks_that_train_an_encoder_let_its_dropout_and_precision_be_chosen(name: str) -> None:
    given = rules.assigned_parameters(rules.read_notebook(next(NOTEBOOKS.glob(f"{name}_*.ipynb"))))
    assert ast.literal_eval(given["attention_dropout"].value) == 0.0
    assert ast.literal_eval(given["precision"].value) == "auto"


@pytest.mark.parametrize("grid", ["cdlm", "cda", "doc_arc"])
def test_grids_train_encoders_with_the_dropout_of_the_papers(grid: str) -> None:
    """Where no parameter file says so; the encoders of the other tasks are frozen."""
    text = (NOTEBOOKS / "grids" / f"{grid}.yaml").read_text(encoding="utf-8")
    trained = [
        task["parameters"]
        for task in yaml.safe_load(text)["tasks"].values()
        if task["notebook"] == "03_coreference" or "encoder_epochs" in task.get("parameters", {})
    ]
    assert trained
    assert {given.get("attention_dropout") for given in trained} == {"checkpoint"}


def test_paper_parameters_are_those_of_the_pretraining_notebook_and_the_papers() -> None:
    """CDLM, appendix B."""
    given, names = GIVEN["cdlm_paper"], set(parameter_names(Settings))
    assert declared("01_pretraining") == names >= set(given)
    assert (given["steps"], given["batch_size"], given["max_length"]) == (25_000, 64, 4096)
    assert (given["learning_rate"], given["warmup_steps"]) == (3e-5, 500)
    config = Settings(**{"corpus": "FOLDER"} | given).training
    assert config.accumulation(processes=8) == 1, "8 examples on each of 8 GPUs, as in the paper"


def test_task_adaptive_parameters_are_those_of_the_pretraining_notebook_and_the_papers() -> None:
    """Doc-ARC, Table 9: 128 tokens, batches of 32, learning rate 2e-5, 6% warm-up, whole words at 0.15."""
    given = GIVEN["docarc_tapt"]
    settings = Settings(**{"corpus": "FOLDER"} | given)
    assert (settings.masking, settings.mask_probability) == ("whole_words", 0.15)
    assert settings.minimum_documents == 1
    word_encoder = lengths_of(max_tokens=128, window=None)
    assert {name: given[name] for name in word_encoder} == word_encoder, "notebook 07 can open the model"
    config = settings.training
    assert (config.batch_size, config.learning_rate, config.decay_power) == (32, 2e-5, 1.0)
    assert config.warmup_steps == 0.06 * config.steps
    assert config.steps == pytest.approx(100 * 104_652 / 32, rel=1e-3), "100 epochs of JNLPBA's passages"


def settings_in(file: str, notebook: str, kind: type, **more: Any) -> Any:
    """The settings that a file makes, all of whose names the notebook has."""
    assert set(GIVEN[file]) <= declared(notebook)
    return settings_of(kind, more | GIVEN[file])


def test_paper_parameters_of_questions_are_those_of_their_notebook_and_the_papers() -> None:
    """CDLM, C.3."""
    assert GIVEN["hotpotqa_paper"]["dev_from_train"], "the pass must not be chosen on what is reported"
    settings = settings_in("hotpotqa_paper", "06_multihop_qa", multihop_qa.Settings, corpus="hotpotqa")
    assert len(settings.chosen) == 5
    assert (settings.epochs, settings.batch_size, settings.warmup_steps) == (5, 32, 100)
    assert (settings.max_length, settings.learning_rate) == (4096, 1e-4)


def test_paper_parameters_of_paragraphs_are_those_of_their_notebook_and_the_papers() -> None:
    """MSPP, sections 3.2 and 4.2, appendix B.1."""
    settings = settings_in("mspp_paper", "08_paragraph_pretraining", paragraph_pretraining.Settings)
    assert settings.k == (1, 2, 2)
    assert settings.joint_head.layout.tokens == 384
    assert settings.head_layers == "linear"
    assert (settings.model, settings.dropout, settings.mask_probability) == ("roberta-base", 0.1, 0.15)
    assert (settings.steps, settings.batch_size, settings.warmup_steps) == (100_000, 4096, 10_000)
    assert (settings.learning_rate, settings.decay_power) == (5e-5, 1.0)
    assert settings.config.accumulation(processes=8) == 8, "micro-batches of each of 8 GPUs"


def test_paper_parameters_of_answers_are_those_of_their_notebook_and_the_papers() -> None:
    """MSPP, section 4.2, appendix A.2 (Table 5) and B.1."""
    settings = settings_in("answer_selection_paper", "09_answer_selection", answer_selection.Settings)
    assert len(settings.chosen) == 5
    assert {settings.head_of(system).layout.tokens for system in settings.chosen} == {384}
    assert (settings.candidates, settings.head_layers) == (5, "linear")
    assert (settings.seeds, settings.epochs, settings.batch_size) == (5, 40, 32)
    assert (settings.learning_rate, settings.warmup_steps) == (2e-6, 1000)


def test_paper_parameters_of_claims_are_those_of_their_notebook_and_the_papers() -> None:
    """MSPP, sections 3.2 and 4.3, appendix B.1."""
    settings = settings_in("fever_paper", "10_fact_verification", fact_verification.Settings)
    assert len(settings.chosen) == 7, "Table 3 less the systems of others"
    assert (1 + settings.evidence_sentences) * settings.sentence_length == 384
    assert settings.head_layers == "linear"
    assert (settings.batch_size, settings.learning_rate, settings.warmup_steps) == (64, 1e-5, 1000)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb"))[:-1], ids=lambda path: path.stem)
def test_notebooks_come_with_the_values_of_the_library(path: Path) -> None:
    notebook = rules.read_notebook(path)
    settings = parameters_of(rules.experiment_of(notebook).Settings())
    given = rules.assigned_parameters(notebook)
    if "trained" in settings:  # a notebook may open what comes with the project; from Python nothing is
        assert settings.pop("trained") == ""
        given.pop("trained")
    assert {key: ast.literal_eval(given[key].value) for key in settings} == settings
    assert set(settings) == set(given)
