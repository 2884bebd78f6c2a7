"""The parameters cell of each notebook says what runs: what is shown there is used as it stands."""

import importlib
import re
from dataclasses import asdict
from pathlib import Path

import notebook_rules as rules
import pytest

from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.report import read_run_file
from cdlm_lab.training.trained import trained_model, trained_parameters, trained_run

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
ONLY_IN_TRAINING = "# training: used only where trained is"  # begins the heading of these parameters


def cell_of(path: Path) -> str:
    return rules.source_of(rules.code_cells(rules.read_notebook(path))[0][1])


def parameters_in(source: str) -> dict[str, object]:
    namespace: dict[str, object] = {}
    exec(source, {}, namespace)
    return namespace


OPENING = {
    path.stem: path
    for path in sorted(NOTEBOOKS.glob("*.ipynb"))
    if parameters_in(cell_of(path)).get("trained")
}


def test_most_notebooks_open_a_trained_run():
    assert list(OPENING) == [
        path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb")) if "03" <= path.stem[:2] <= "10"
    ]


@pytest.mark.parametrize("stem", OPENING)
def test_what_is_shown_is_what_is_opened(stem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As opened, a run has the values of the cell, none replaced, and those that shape its models are those
    that they were trained with."""
    monkeypatch.chdir(NOTEBOOKS.parent)
    shown = parameters_in(cell_of(OPENING[stem])) | {"run_folder": str(tmp_path / "run")}
    experiment = rules.experiment_of(rules.read_notebook(OPENING[stem]))
    settings = experiment.Settings(**shown)
    run = experiment.prepare(settings)
    assert asdict(settings) == asdict(run.settings) == shown
    assert read_run_file(tmp_path / "run")[1] == shown
    made = asdict(experiment.Settings()) | trained_parameters(str(shown["trained"]))
    shapes = getattr(type(getattr(run, "matching", run)), "SHAPES", ())
    opened = getattr(run, "matching", run).settings
    assert shapes, "without them nothing could be refused"
    assert {name: getattr(opened, name) for name in shapes} == {name: made[name] for name in shapes}


@pytest.mark.parametrize("stem", [stem for stem in OPENING if not stem.startswith("05")])
def test_a_model_of_another_shape_is_refused_in_one_line_and_nothing_is_claimed(stem: str, tmp_path: Path):
    shown = parameters_in(cell_of(OPENING[stem])) | {"run_folder": str(tmp_path / "run")}
    experiment = rules.experiment_of(rules.read_notebook(OPENING[stem]))
    name = {"03": "max_length", "07": "hidden_size", "08": "same_document"}.get(stem[:2])
    name = name or ("sentence_length" if "sentence_length" in shown else "max_length")
    other = shown[name] + 32
    with pytest.raises(ParameterError) as refused:
        experiment.prepare(experiment.Settings(**shown | {name: other}))
    wanted = f"{name} is {other}, but {shown['trained']} was trained with {name} = {shown[name]}; write that"
    assert str(refused.value) == f'{wanted}, or trained = "" to train with yours'
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("stem", OPENING)
def test_every_model_that_is_opened_is_named_in_the_cell(stem: str):
    """A shipped run has no models that the notebook passes over, and the cell names none that it has not."""
    shown = parameters_in(cell_of(OPENING[stem]))
    trainings = sorted(path.name for path in trained_run(str(shown["trained"])).glob("systems/*"))
    listed = str(shown.get("systems") or "").split()
    for training in trainings if listed else ():
        assert any(training.startswith(name) for name in listed), f"{training} is not shown"
    for name in listed:
        if name not in ("tf-idf", "bert-cosine"):
            assert any(re.fullmatch(rf"{name}(-\d+)?-0", one) for one in trainings), f"{name} is not shipped"
    if not trainings:
        assert trained_model(str(shown["trained"])).is_dir()


@pytest.mark.parametrize("stem", [stem for stem in OPENING if not stem.startswith("05")])
def test_what_only_training_uses_stands_under_its_own_heading(stem: str):
    groups = re.split("^(?=# )", cell_of(OPENING[stem]), flags=re.MULTILINE)
    training = [one for one in groups if one.startswith("# training")]
    assert training[0].startswith(ONLY_IN_TRAINING)
    only = parameters_in("".join(training))
    others = parameters_in(cell_of(OPENING[stem])).keys() - only.keys()
    module = importlib.import_module(
        rules.experiment_of(rules.read_notebook(OPENING[stem])).Settings.__module__
    )
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    (shapes,) = (one.SHAPES for one in classes if getattr(one, "SHAPES", ()))
    assert {"learning_rate", "batch_size", "parallel"} & only.keys(), only
    assert not set(shapes) & only.keys(), "what shapes a model is not only for training"
    assert not {name for name in others if re.search("epochs|learning_rate|warmup", name)}
