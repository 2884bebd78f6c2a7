"""The parameter files that the project ships set parameters their notebook has, to values it takes."""

import ast
import re
from operator import attrgetter
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
from cdlm_lab.tasks.pretraining import experiment as pretraining

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


# file -> its notebook, and what the paper says
PAPERS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    # CDLM, appendix B
    "cdlm_paper": ("01_pretraining", pretraining.Settings, {
        "steps": 25_000, "batch_size": 64, "max_length": 4096, "learning_rate": 3e-5, "warmup_steps": 500,
    }),
    # Doc-ARC, Table 9
    "docarc_tapt": ("01_pretraining", pretraining.Settings, {
        "masking": "whole_words", "mask_probability": 0.15, "minimum_documents": 1, "training.batch_size": 32,
        "training.learning_rate": 2e-5, "training.decay_power": 1.0,
    }),
    # CDLM, C.3; the pass must not be chosen on what is reported
    "hotpotqa_paper": ("06_multihop_qa", multihop_qa.Settings, {
        "epochs": 5, "batch_size": 32, "warmup_steps": 100, "max_length": 4096, "learning_rate": 1e-4,
    }),
    # MSPP, sections 3.2 and 4.2, appendix B.1
    "mspp_paper": ("08_paragraph_pretraining", paragraph_pretraining.Settings, {
        "k": (1, 2, 2), "joint_head.layout.tokens": 384, "head_layers": "linear", "model": "roberta-base",
        "dropout": 0.1, "mask_probability": 0.15, "steps": 100_000, "batch_size": 4096,
        "warmup_steps": 10_000, "learning_rate": 5e-5, "decay_power": 1.0,
    }),
    # MSPP, section 4.2, appendix A.2 (Table 5) and B.1
    "answer_selection_paper": ("09_answer_selection", answer_selection.Settings, {
        "candidates": 5, "head_layers": "linear", "seeds": 5, "epochs": 40, "batch_size": 32,
        "learning_rate": 2e-6, "warmup_steps": 1000,
    }),
    # MSPP, sections 3.2 and 4.3, appendix B.1
    "fever_paper": ("10_fact_verification", fact_verification.Settings, {
        "head_layers": "linear", "batch_size": 64, "learning_rate": 1e-5, "warmup_steps": 1000,
    }),
}  # fmt: skip


def settings_in(file: str) -> Any:
    return settings_of(PAPERS[file][1], {"corpus": "FOLDER"} | GIVEN[file])


@pytest.mark.parametrize("file", PAPERS)
def test_parameters_of_a_paper_are_those_of_the_notebook_and_of_the_paper(file: str) -> None:
    notebook, _, expected = PAPERS[file]
    assert set(GIVEN[file]) <= declared(notebook)
    settings = settings_in(file)
    assert {name: attrgetter(name)(settings) for name in expected} == expected


def test_what_follows_from_the_parameters_of_papers() -> None:
    assert declared("01_pretraining") == set(parameter_names(pretraining.Settings))
    training = settings_in("cdlm_paper").training
    assert training.accumulation(processes=8) == 1, "8 examples on each of 8 GPUs, as in the paper"
    word_encoder, training = lengths_of(max_tokens=128, window=None), settings_in("docarc_tapt").training
    opened = {name: GIVEN["docarc_tapt"][name] for name in word_encoder}
    assert opened == word_encoder, "notebook 07 can open the model"
    assert training.warmup_steps == 0.06 * training.steps
    assert training.steps == pytest.approx(100 * 104_652 / 32, rel=1e-3), "100 epochs of JNLPBA's passages"
    assert GIVEN["hotpotqa_paper"]["dev_from_train"]
    for file, systems in {"answer_selection_paper": 5, "fever_paper": 7, "hotpotqa_paper": 5}.items():
        assert len(settings_in(file).chosen) == systems
    micro_batches = settings_in("mspp_paper").training.accumulation(processes=8)
    assert micro_batches == 8, "of each of 8 GPUs"
    answers, claims = map(settings_in, ("answer_selection_paper", "fever_paper"))
    lengths = {answers.head_of(system).layout.tokens for system in answers.chosen}
    assert lengths == {(1 + claims.evidence_sentences) * claims.sentence_length} == {384}


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
