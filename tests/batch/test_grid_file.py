"""Grids as people write them: what they mean, and one clear line for each that means nothing."""

from pathlib import Path

import pytest
import yaml
from tiny_grid import PARAMETERS, write_notebook

from cdlm_lab.batch import grid as grid_file
from cdlm_lab.batch.expansion import expand
from cdlm_lab.batch.grid import GridError, read_grid


@pytest.fixture(autouse=True)
def _notebooks(here: Path) -> None:
    write_notebook(here / "tiny.ipynb")
    seedless = "\n".join(line for line in PARAMETERS.splitlines() if not line.startswith("seed"))
    write_notebook(here / "seedless.ipynb", parameters=seedless)


def read(text: str, **variables: str):
    Path("grid.yaml").write_text(text)
    return read_grid("grid.yaml", variables=variables)


def test_what_a_grid_says(here: Path):
    (here / "p.yaml").write_text("rate: 1\nsteps: 9\n")
    grid = read(
        """
runs: runs/x
seeds: [0, 1]
variables: {data: corpora, n: 7}
defaults: {minutes: 5, cores: 2}
tasks:
  a:
    notebook: tiny.ipynb
    files: [p.yaml]
    parameters: {steps: "{n}"}
    axes: {name: [x, y z]}
    resources: {gpus: 1, memory_gb: 16, retries: 2}
    needs: {corpus: "{data}/a", model: "hub:org/name"}
  b: {notebook: seedless.ipynb, after: [a]}
  c: {notebook: tiny.ipynb, seeds: [5]}
  d: {notebook: tiny.ipynb, seeds: false}
""",
        data="/big",
    )
    a = grid.tasks["a"]
    assert a.parameters == {"rate": 1, "steps": 7}
    assert (a.resources.gpus, a.resources.cores, a.resources.minutes, a.resources.retries) == (1, 2, 5, 2)
    assert list(a.axes) == ["name", "seed"]
    assert grid.variables == {"runs": "runs/x", "data": "/big", "n": 7}
    names = {name: list(task.axes) for name, task in grid.tasks.items()}
    assert names == {"a": ["name", "seed"], "b": [], "c": ["seed"], "d": []}
    jobs = expand(grid)
    assert sorted(jobs) == [f"a-{n}-s{s}" for n in ("x", "y-z") for s in (0, 1)] + ["b", "c-s5", "d"]
    assert jobs["a-y-z-s1"].parameters == {"rate": 1, "steps": 7, "name": "y z", "seed": 1}
    assert jobs["a-x-s0"].needs == {"corpus": "/big/a", "model": "hub:org/name"}
    assert len(jobs["b"].after) == 4


def test_what_an_anchor_brings_in_may_be_overruled():
    """Also in a mapping that brings in one which overrules something itself."""
    grid = read(
        """
runs: r
tasks:
  a: &a {notebook: tiny.ipynb, parameters: &p {rate: 1.5}}
  b: &b {<<: *a, parameters: &q {<<: *p, rate: 2.5, steps: 4}}
  c: {<<: *b, parameters: {<<: *q, steps: 5}}
  d: {<<: *a, parameters: {<<: *p, steps: 4}}
"""
    )
    assert {name: task.parameters for name, task in grid.tasks.items()} == {
        "a": {"rate": 1.5},
        "b": {"rate": 2.5, "steps": 4},
        "c": {"rate": 2.5, "steps": 5},
        "d": {"rate": 1.5, "steps": 4},
    }


def test_named_points_set_several_parameters(here: Path):
    axes = "{size: {small: {steps: 1, rate: 0.1}, large: {steps: 9}}, name: [n]}"
    jobs = expand(read(f"{TASK}    axes: {axes}\n"))
    assert {name: job.parameters for name, job in jobs.items()} == {
        "a-small-n": {"steps": 1, "rate": 0.1, "name": "n"},
        "a-large-n": {"steps": 9, "name": "n"},
    }


TASK = "runs: r\ntasks:\n  a:\n    notebook: tiny.ipynb\n"
NOT_YAML = "not YAML as a grid needs it: "
# what is written; in which line the fault is, and what is said about it
BAD = [
    ("", 1, "the file is empty"),
    ("# nothing\n", 1, "this must be a mapping"),
    ("- a\n", 1, "this must be a mapping"),
    ("runs: [\n", 1, NOT_YAML),
    ("runs: r\n\tx: 1\n", 2, NOT_YAML),
    ("runs: r\nruns: q\ntasks: {}\n", 2, 'found duplicate key "runs"'),
    ("runs: r\n", 1, "tasks: Field required"),
    ("runs: r\ntasks: {}\n", 2, "should have at least 1 item"),
    ("tasks: {a: {notebook: tiny.ipynb}}\n", 1, "runs: Field required"),
    ("runs: ''\ntasks: {a: {notebook: tiny.ipynb}}\n", 1, "runs: '': it must be a folder"),
    ('runs: "r/{data}"\n' + TASK[8:], 1, "runs: 'r/{data}': it must be a folder, without braces"),
    ("runs: r\ntask: {a: {}}\ntasks: {a: {}}\n", 2, "task: nothing is called so here: did you mean 'tasks'?"),
    ("runs: r\ntasks:\n  a: {}\n", 3, "task a: 'notebook' is missing"),
    ("runs: r\ntasks:\n  a-b: {notebook: tiny.ipynb}\n", 3, "'a-b': it must be a letter, then letters"),
    ("runs: r\ntasks:\n  a: {notebook: tinny.ipynb}\n", 3, "there is no notebook tinny.ipynb"),
    ("runs: r\ntasks:\n  a: {notebook: 01_pretrainin}\n", 3, "did you mean '01_pretraining'?"),
    (
        TASK + "    paramters: {rate: 1}\n",
        5,
        "tasks: a: paramters: nothing is called so here: did you mean 'par",
    ),
    (
        TASK + "    parameters:\n      rte: 1\n",
        6,
        "tiny.ipynb: it has no parameter 'rte': did you mean 'rate'?",
    ),
    (TASK + "    parameters:\n      rate: '1e-4'\n", 6, "1e-4 as text, write 0.0001"),
    (TASK + "    parameters: {steps: 2.5}\n", 5, "steps is 2.5 (float); it must be a whole"),
    (TASK + "    parameters: {name: false}\n", 5, "name is False (bool); it must be text"),
    (TASK + "    parameters: {rate: .inf}\n", 5, "rate is inf, which is not a number"),
    (TASK + "    parameters: {run_folder: x}\n", 5, "the grid chooses run_folder"),
    (TASK + "    parameters: &p {maybe: *p}\n", 1, "Circular reference"),
    (TASK + "    parameters: {rate: 1, rate: 2}\n", 5, 'duplicate key "rate"'),
    (TASK + "    parameters:\n      rate: !unknown 1\n", 6, "the tag '!unknown'"),
    (TASK + "    parameters: {<<: 5}\n", 5, "expected a mapping or list"),
    (TASK + "    parameters: {maybe: !!bool maybe}\n", 1, NOT_YAML),
    (TASK + "    parameters: {maybe: " + "[" * 200, 5, "maximum depth"),
    (TASK + '    parameters: {maybe: "\\U99999999"}\n', 1, NOT_YAML),
    (TASK + "    files: [none.yaml]\n", 5, "task a: there is no file none.yaml"),
    (TASK + "    files: none.yaml\n", 5, "files: 'none.yaml': input should be a valid list"),
    (TASK + "    axes: {rte: [1]}\n", 5, "no parameter 'rte'"),
    (TASK + "    axes: {rate: []}\n", 5, "the axis rate has no values"),
    (TASK + "    axes: {rate: [1, x]}\n", 5, "rate is the text 'x'"),
    (TASK + "    axes: {rate: [1, 1]}\n", 5, "one of the values of rate stands there twice"),
    (
        TASK + "    parameters: {rate: 1}\n    axes: {rate: [2]}\n",
        5,
        "rate is set by parameters and by the axis",
    ),
    (TASK + "    axes: {x: {p: {rate: 1}}, rate: [2]}\n", 5, "set by the axis x and by the axis rate"),
    (
        TASK + "    parameters: {seed: 1}\n    seeds: [2]\n",
        6,
        "seed is set by parameters and by the axis seed",
    ),
    (TASK + "    seeds: [1, 1]\n", 5, "one of them stands there twice"),
    (TASK + "    resources: {gpu: 1}\n", 5, "did you mean 'gpus'?"),
    ("defaults: {minute: 1}\n" + TASK, 1, "did you mean 'minutes'?"),
    ("variables: {a: x}\n" + TASK, 1, "'a' is taken: rename the variable"),
    ("variables: {v: [1]}\n" + TASK, 1, "variables: v: "),
    # found when the runs are made of it
    (TASK + "    after: [b]\n", 5, "no task is called 'b'"),
    (TASK + "    after: [a]\n", 3, "runs wait for each other: a -> a"),
    (TASK + '    parameters: {reads: "{b}"}\n', 5, "is called 'b'"),
    (TASK + '    parameters: {reads: "{a:x=1}"}\n', 5, "task a has no axis 'x'"),
    (TASK + '    axes: {rate: [1]}\n    parameters: {reads: "{a:rate}"}\n', 6, "must look like axis=value"),
    (TASK + '    axes: {rate: [1]}\n    parameters: {reads: "{a:rate=2}"}\n', 6, "there are 1"),
    (TASK + "    axes: {name: [a b, a/b]}\n", 3, "two runs would be called a-a-b"),
    (TASK + "    axes: {name: [" + "x" * 130 + "]}\n", 3, "is too long for a name"),
]


def test_numbers_and_words_are_those_of_yaml_1_2():
    values = "{a: 012, b: '1:30', c: 1:30, d: 1e-4, e: no, f: 0o14, g: true, h: 1.5, i: null, j: -3}"
    given = read(f"{TASK}    parameters: {{maybe: {values}}}\n").tasks["a"].parameters["maybe"]
    expected = {"a": 12, "b": "1:30", "c": "1:30", "d": 0.0001, "e": "no"}
    expected |= {"f": 12, "g": True, "h": 1.5, "i": None, "j": -3}
    assert given == expected
    assert [type(value) for value in given.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("value", "message"), [("[", f"--set n=[:1: {NOT_YAML}"), ("[1]", "--set n=[1]: this is no single value")]
)
def test_a_value_of_the_command_line_that_is_none(value: str, message: str):
    with pytest.raises(GridError) as raised:
        read("variables: {n: 1}\n" + TASK, n=value)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "line", "part"), BAD, ids=range(len(BAD)))
def test_a_grid_that_means_nothing(text: str, line: int, part: str):
    with pytest.raises(GridError) as raised:
        expand(read(text))
    message = str(raised.value)
    assert message.startswith(f"grid.yaml:{line}: "), message
    assert part in message, message
    assert "\n" not in message


def test_a_notebook_without_seeds_and_a_file_of_parameters_are_named(here: Path):
    with pytest.raises(GridError, match=r"grid\.yaml:4: seedless.ipynb: it has no parameter 'seed'"):
        read("runs: r\ntasks:\n  a:\n    seeds: [1]\n    notebook: seedless.ipynb\n")
    (here / "p.yaml").write_text("rate: 1\nrates: 2\n")
    with pytest.raises(GridError, match=r"p\.yaml:2: tiny\.ipynb: it has no parameter 'rates'"):
        read(TASK + "    files: [p.yaml]\n")


def test_a_value_of_the_command_line_has_the_kind_of_the_file_s():
    text = 'runs: r\nvariables: {n: 1, d: x}\ntasks: {a: {notebook: tiny.ipynb, parameters: {steps: "{n}"}}}'
    assert read(text, n="60", d="2024").variables == {"runs": "r", "n": 60, "d": "2024"}
    with pytest.raises(GridError, match=r"steps is 0.5 \(float\)"):
        read(text, n="0.5")


def test_the_grid_of_the_docstring_has_the_keys_that_are_read():
    indented = [line[4:] for line in grid_file.__doc__.splitlines() if line.startswith("    ")]
    written = yaml.safe_load("\n".join(indented))
    assert set(written) == set(grid_file._GridForm.model_fields)
    for name, task in written["tasks"].items():
        assert set(task) <= set(grid_file._TaskForm.model_fields), name
