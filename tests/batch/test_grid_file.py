"""Grids as people write them: what they mean, and one clear line for each that means nothing."""

from pathlib import Path

import pytest
import yaml
from tiny_grid import PARAMETERS, write_notebook

from cdlm_lab.batch import grid as grid_file
from cdlm_lab.batch.expansion import expand
from cdlm_lab.batch.grid import read_grid
from cdlm_lab.batch.marked_yaml import GridError


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
    assert {name: given.value for name, given in a.parameters.items()} == {"rate": 1, "steps": 7}
    assert (a.parameters["rate"].where, a.parameters["steps"].where) == ("p.yaml:1", "grid.yaml:10")
    assert (a.resources.gpus, a.resources.cores, a.resources.minutes, a.resources.retries) == (1, 2, 5, 2)
    assert list(a.axes) == ["name", "seed"]
    assert grid.variables == {"runs": "runs/x", "data": "/big", "n": 7}
    names = {name: list(task.axes) for name, task in grid.tasks.items()}
    assert names == {"a": ["name", "seed"], "b": [], "c": ["seed"], "d": []}
    jobs = expand(grid)
    assert list(jobs) == [f"a-{n}-s{s}" for n in ("x", "y-z") for s in (0, 1)] + ["b", "c-s5", "d"]
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
    assert {
        name: {key: given.value for key, given in task.parameters.items()}
        for name, task in grid.tasks.items()
    } == {
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
AT_5, AT_6 = "grid.yaml:5: tasks: a:", "grid.yaml:6: "
# what is written, how the message begins, what it says
BAD = [
    ("", "grid.yaml:1: ", "the file is empty"),
    ("# nothing\n", "grid.yaml:1: ", "there is nothing in the grid"),
    ("- a\n", "grid.yaml:1: ", "the grid must be a mapping"),
    ("runs: [\n", "grid.yaml:1: not YAML", ""),
    ("runs: r\n\tx: 1\n", "grid.yaml:2: not YAML", ""),
    ("runs: r\nruns: q\ntasks: {}\n", "grid.yaml:2: ", "runs: found duplicate key"),
    ("runs: r\n", "grid.yaml:1: ", "the grid has no tasks"),
    ("runs: r\ntasks: {}\n", "grid.yaml:1: ", "the grid has no tasks"),
    ("runs: r\ntasks: 3\n", "grid.yaml:2: ", "must be a mapping"),
    ("tasks: {a: {notebook: tiny.ipynb}}\n", "grid.yaml:1: ", "'runs' is missing"),
    ("runs: 3\ntasks: {a: {notebook: tiny.ipynb}}\n", "grid.yaml:1: ", "runs is 3; it must be text"),
    ("runs: ''\ntasks: {a: {notebook: tiny.ipynb}}\n", "grid.yaml:1: ", "runs is empty"),
    ("runs: r\ntask: {a: {}}\ntasks: {a: {}}\n", "grid.yaml:2: ", "'task' here: did you mean 'tasks'?"),
    ("runs: r\ntasks:\n  a: {}\n", "grid.yaml:3: ", "'notebook' is missing"),
    ("runs: r\ntasks:\n  a-b: {notebook: tiny.ipynb}\n", "grid.yaml:3: ", "'a-b' is no name of a task"),
    ("runs: r\ntasks:\n  1: {notebook: tiny.ipynb}\n", "grid.yaml:3: ", "1 is no name: write it in quotes"),
    ("runs: r\ntasks:\n  a: {notebook: tinny.ipynb}\n", "grid.yaml:3: ", "there is no notebook tinny.ipynb"),
    ("runs: r\ntasks:\n  a: {notebook: 01_pretrainin}\n", "grid.yaml:3: ", "did you mean '01_pretraining'?"),
    (TASK + "    paramters: {rate: 1}\n", "grid.yaml:5: task a", "did you mean 'parameters'?"),
    (TASK + "    parameters:\n      rte: 1\n", "grid.yaml:6: ", "no parameter 'rte': did you mean 'rate'?"),
    (TASK + "    parameters:\n      rate: '1e-4'\n", "grid.yaml:6: ", "1e-4 as text, write 0.0001"),
    (TASK + "    parameters: {steps: 2.5}\n", "grid.yaml:5: ", "steps is 2.5 (float); it must be a whole"),
    (TASK + "    parameters: {steps: true}\n", "grid.yaml:5: ", "steps is True (bool)"),
    (TASK + "    parameters: {name: 3}\n", "grid.yaml:5: ", "name is 3 (int); it must be text"),
    (TASK + "    parameters: {name: false}\n", "grid.yaml:5: ", "name is False (bool); it must be text"),
    (TASK + "    parameters: {name: 2024-01-01}\n", "grid.yaml:5: ", "as a date: write it in quotes"),
    (TASK + "    parameters: {run_folder: x}\n", "grid.yaml:5: ", "the grid chooses run_folder"),
    (TASK + "    parameters: &p {maybe: *p}\n", "grid.yaml:5: ", "parameters: this contains itself"),
    (TASK + "    parameters: {rate: 1, rate: 2}\n", "grid.yaml:5: ", 'duplicate key "rate": leave'),
    (TASK + "    files: [none.yaml]\n", "grid.yaml:5: ", "there is no file none.yaml"),
    (TASK + "    files: none.yaml\n", "grid.yaml:5: ", "files is 'none.yaml'; it must be a list"),
    (TASK + "    files: [3]\n", "grid.yaml:5: ", "files holds 3; it must be a list of texts"),
    (TASK + "    axes: {rte: [1]}\n", "grid.yaml:5: ", "no parameter 'rte'"),
    (TASK + "    axes: {rate: []}\n", "grid.yaml:5: ", "rate has no values"),
    (TASK + "    axes: {rate: 1}\n", "grid.yaml:5: ", "rate is 1; it must be a list"),
    (TASK + "    axes: {rate: [1, x]}\n", "grid.yaml:5: ", "rate is the text 'x'"),
    (TASK + "    axes: {rate: [1, 1]}\n", "grid.yaml:5: ", "one of them stands there twice"),
    (TASK + "    axes: {maybe: [[1]]}\n", "grid.yaml:5: ", "maybe holds [1]; write name:"),
    (TASK + "    parameters: {rate: 1}\n    axes: {rate: [2]}\n", "grid.yaml:3: ", "rate is set by para"),
    (TASK + "    axes: {x: {p: {rate: 1}}, rate: [2]}\n", "grid.yaml:3: ", "the axis x and by the axis rate"),
    (TASK + "    parameters: {seed: 1}\n    seeds: [2]\n", "grid.yaml:3: ", "seed is set by parameters"),
    (TASK + "    seeds: 3\n", "grid.yaml:5: ", "seeds is 3"),
    (TASK + "    seeds: [1, 1]\n", "grid.yaml:5: ", "twice"),
    (TASK + "    seeds: [1.5]\n", "grid.yaml:5: ", "a list of whole numbers, or false"),
    (TASK + "    seeds: []\n", "grid.yaml:5: ", "a list of whole numbers, or false"),
    (TASK + "    resources: {gpu: 1}\n", "grid.yaml:5: ", "did you mean 'gpus'?"),
    (TASK + "    resources: {gpus: -1}\n", "grid.yaml:5: ", "gpus is -1; it must be at least 0"),
    (TASK + "    resources: {cores: 0}\n", "grid.yaml:5: ", "cores is 0; it must be at least 1"),
    (TASK + "    resources: {minutes: 0}\n", "grid.yaml:5: ", "minutes is 0; it must be above 0"),
    (TASK + "    resources: {minutes: .inf}\n", f"{AT_5} resources: minutes: .inf", "no number"),
    (TASK + "    resources: {minutes: 2024-13-45}\n", AT_5, "2024-13-45 as a date: write it"),
    (TASK + "    parameters:\n      rate: !unknown 1\n", "grid.yaml:6: tasks: a: param", "a !unknown"),
    (TASK + "    parameters: !unknown {rate: 1}\n", f"{AT_5} parameters:", "leave the tag out"),
    (TASK + "    parameters: {<<: 5}\n", f"{AT_5} parameters: ", "expected a mapping or list"),
    (TASK + "    parameters: {maybe: !!bool maybe}\n", "grid.yaml:5: tasks: a: ", "maybe: maybe is no bool"),
    (TASK + "    parameters: {maybe: !!int ''}\n", "grid.yaml:5: tasks: a: parameters: maybe: ", "is no int"),
    (TASK + f"    seeds: [{'9' * 5000}]\n", f"{AT_5} seeds: 99999", "... is no int (Exceeds"),
    (TASK + "    seeds: [18446744073709551616]\n", "grid.yaml:5: tasks: a: seeds: ", "has more than 64 bits"),
    (TASK + "    parameters: {rate: 1.0e999}\n", "grid.yaml:5: tasks: a: parameters: rate: ", "is no number"),
    (TASK + "    parameters: {maybe: " + "[" * 2000, "grid.yaml:5: not YAML: maximum depth", ""),
    (TASK + "    parameters: {maybe: '\x01'}\n", "grid.yaml:5: not YAML: unacceptable character #x0001", ""),
    (TASK + '    parameters: {maybe: "\\U99999999"}\n', "grid.yaml:5: not YAML: ", "too large"),
    (TASK + '    parameters: {maybe: "\\ud800"}\n', AT_5, "half a surrogate pair, which no file has"),
    (TASK + '    needs: {x: "a\\0b"}\n', "grid.yaml:5: tasks: a: needs: x: ", "it holds a NUL"),
    ('runs: "r/{data}"\n' + TASK[8:], "grid.yaml:1: the grid: runs is 'r/{data}'", "write the folder out"),
    ('runs: "a\\nb"\n' + TASK[8:], "grid.yaml:1: the grid: runs is 'a\\nb'", ""),
    ("%YAML 1.3\n---\n" + TASK, "grid.yaml:1: not YAML: ", "this cannot be read"),
    (TASK + "---\n" + TASK, "grid.yaml:5: not YAML: ", "another document"),
    (TASK + "    resources: {memory_gb: 4 GB}\n", "grid.yaml:5: ", "memory_gb is the text '4 GB'"),
    ("defaults: {minute: 1}\n" + TASK, "grid.yaml:1: ", "did you mean 'minutes'?"),
    (TASK + "    needs: {corpus: 3}\n", "grid.yaml:5: ", "it must be a path or hub:NAME"),
    (TASK + "    needs: [corpus]\n", "grid.yaml:5: ", "must be a mapping"),
    ("variables: {a: x}\n" + TASK, "grid.yaml:4: ", "'a' is the name of a variable too"),
    ("variables: {runs: x}\n" + TASK, "grid.yaml:1: ", "is no variable"),
    ("variables: {v: [1]}\n" + TASK, "grid.yaml:1: ", "is no variable"),
    # found when the runs are made of it
    (TASK + "    after: [b]\n", "grid.yaml:5: ", "no task is called 'b'"),
    (TASK + "    after: [a]\n", "grid.yaml:3: ", "runs wait for each other: a -> a"),
    (TASK + '    parameters: {reads: "{b}"}\n', "grid.yaml:5: ", "is called 'b'"),
    (TASK + '    parameters: {reads: "{a:x=1}"}\n', "grid.yaml:5: ", "task a has no axis 'x'"),
    (f'{TASK}    axes: {{rate: [1]}}\n    parameters: {{reads: "{{a:rate}}"}}\n', AT_6, "like axis=value"),
    (f'{TASK}    axes: {{rate: [1]}}\n    parameters: {{reads: "{{a:rate=2}}"}}\n', AT_6, "there are 1"),
    (TASK + "    axes: {name: [a b, a/b]}\n", "grid.yaml:3: ", "two runs would be called a-a-b"),
    (TASK + "    axes: {name: [" + "x" * 130 + "]}\n", "grid.yaml:3: ", "is too long for a name"),
]


def laughs(*, merged: bool) -> str:
    """Anchors, each of which stands for the one before it ten times."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, 30):
        tenfold = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {{{'<<' if merged else 'x'}: [{tenfold}]}}")
    return "\n".join(lines) + "\n"


CHAIN = "a0: &a0 1\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60))
VAST = r"^grid\.yaml:\d+: a\d+: .*more than 100000 values .*aliases .*write le"


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        (laughs(merged=False), VAST),
        (laughs(merged=True), VAST),
        (CHAIN, r"^grid\.yaml:51: a50: more than 50 levels"),
    ],
    ids=["laughs", "merged laughs", "chain"],
)
def test_aliases_cannot_make_much_of_little(aliases: str, message: str):
    with pytest.raises(GridError, match=message):
        read(aliases + TASK)


def test_numbers_and_words_are_those_of_yaml_1_2():
    values = "{a: 012, b: '1:30', c: 1:30, d: 1e-4, e: no, f: 0o14, g: true, h: 1.5, i: null, j: -3}"
    given = read(f"{TASK}    parameters: {{maybe: {values}}}\n").tasks["a"].parameters["maybe"].value
    expected = {"a": 12, "b": "1:30", "c": "1:30", "d": 0.0001, "e": "no"}
    expected |= {"f": 12, "g": True, "h": 1.5, "i": None, "j": -3}
    assert given == expected
    assert [type(value) for value in given.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[", "--set n=[:1: not YAML: "),
        ("[1]", r"--set n=[1]: [1] is no single value"),
        ("2024-01-01", "--set n=2024-01-01:1: YAML reads 2024-01-01 as a date"),
        ("9" * 5000, "--set n=" + "9" * 5000 + ":1: " + "9" * 40 + "... is no int"),
    ],
)
def test_a_value_of_the_command_line_that_is_none(value: str, message: str):
    with pytest.raises(GridError) as raised:
        read("variables: {n: 1}\n" + TASK, n=value)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "start", "part"), BAD, ids=range(len(BAD)))
def test_a_grid_that_means_nothing(text: str, start: str, part: str):
    with pytest.raises(GridError) as raised:
        expand(read(text))
    message = str(raised.value)
    assert message.startswith(start), message
    assert part in message, message
    assert "\n" not in message


def test_a_notebook_without_seeds_and_a_file_of_parameters_are_named(here: Path):
    with pytest.raises(GridError, match=r"grid\.yaml:4: task a: seedless.ipynb has no parameter 'seed'"):
        read("runs: r\ntasks:\n  a:\n    seeds: [1]\n    notebook: seedless.ipynb\n")
    (here / "p.yaml").write_text("rate: 1\nrates: 2\n")
    with pytest.raises(GridError, match=r"p\.yaml:2: tiny\.ipynb has no parameter 'rates'"):
        read(TASK + "    files: [p.yaml]\n")


def test_a_value_of_the_command_line_has_the_kind_of_the_file_s():
    text = 'runs: r\nvariables: {n: 1, d: x}\ntasks: {a: {notebook: tiny.ipynb, parameters: {steps: "{n}"}}}'
    assert read(text, n="60", d="2024").variables == {"runs": "r", "n": 60, "d": "2024"}
    with pytest.raises(GridError, match=r"steps is 0.5 \(float\)"):
        read(text, n="0.5")


def test_the_grid_of_the_docstring_has_the_keys_that_are_read():
    indented = [line[4:] for line in grid_file.__doc__.splitlines() if line.startswith("    ")]
    written = yaml.safe_load("\n".join(indented))
    assert set(written) <= set(grid_file._TOP)
    for name, task in written["tasks"].items():
        assert set(task) <= set(grid_file._TASK), name
