"""Types are held against annotations, and misspelt notebook parameters are found from inside the notebook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import Field

from cdlm_lab.parameters import (
    ParameterError,
    check_like,
    closest_name,
    parameter_names,
    parameters_of,
    read_settings,
    refuse_unknown,
    settings,
    settings_of,
)


@settings
class Settings:
    kind: ClassVar[str] = "ignored"
    steps: int = 1
    rate: float = 0.5
    name: str = "a"
    fast: bool = False
    policy: Literal["masked", "prefix"] = "masked"
    limit: int | None = None
    length: int | Literal["all"] = "all"
    factors: tuple[tuple[str, float], ...] = ()
    names: list[str] = field(default_factory=list)
    shares: Sequence[float] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    anything: Any = None
    count: int = Field(default=1, ge=1, lt=9)
    pairs: int = Field(default=0, ge=0, description="0 means all")
    share: float = Field(default=0.5, gt=0, le=1)
    place: Path = Path()

    def __post_init__(self) -> None:
        if self.name == self.policy:
            raise ParameterError(f"name is {self.name!r}, which is a policy")


def test_right_types_pass():
    Settings(rate=1, limit=3, length=7, factors=(("global", 10),), shares=[1, 0.5], sizes={"a": 1})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"rate": "1e-4"},
            "rate is the text '1e-4', not a number: papermill -y reads 1e-4 as text, write 0.0001 or 1.0e-4",
        ),
        ({"rate": "3e5"}, "papermill -y reads 3e5 as text, write 300000 or 3.0e+5"),
        ({"steps": "1e3"}, "papermill -y reads 1e3 as text, write 1000"),
        ({"rate": "0.5"}, "rate is the text '0.5'; it must be a number: write 0.5 without quotes"),
        ({"rate": "fast"}, "rate is the text 'fast'; it must be a number"),
        ({"rate": True}, "rate is True (bool); it must be a number"),
        ({"rate": float("nan")}, "rate is nan, which is not a number"),
        ({"steps": True}, "steps is True (bool); it must be a whole number"),
        ({"steps": 2.0}, "steps is 2.0 (float); it must be a whole number"),
        ({"fast": 1}, "fast is 1 (int); it must be True or False"),
        ({"fast": "true"}, "fast is 'true' (str); it must be True or False"),
        ({"name": 3}, "name is 3 (int); it must be text: write 3 in quotes, or with papermill -r name 3"),
        ({"policy": "mask"}, "policy is 'mask'; it must be one of 'masked', 'prefix'"),
        ({"limit": "x"}, "limit is the text 'x'; it must be a whole number"),
        ({"length": "some"}, "length is 'some' (str); it must be int | 'all'"),
        ({"factors": [("a", 1.0)]}, "factors is [('a', 1.0)] (list); it must be a tuple"),
        ({"factors": (("a", "b"),)}, "factors[0][1] is the text 'b'; it must be a number"),
        ({"factors": (("a", 1.0), ("a",))}, "factors[1] is ('a',); it needs an item 1"),
        ({"factors": (("a", 1.0, 2),)}, "factors[0] is ('a', 1.0, 2); it must have 2 items, not 3"),
        ({"shares": 3}, "shares is 3 (int); it must be a list or tuple"),
        ({"sizes": 3}, "sizes is 3 (int); it must be a mapping"),
        ({"names": ["a", 1]}, "names[1] is 1 (int); it must be text"),
        ({"shares": "0.5"}, "shares is '0.5' (str); it must be a list or tuple"),
        ({"sizes": {"a": 1.5}}, "sizes['a'] is 1.5 (float); it must be a whole number"),
        ({"count": 0}, "count is 0; it must be at least 1"),
        ({"count": 9}, "count is 9; it must be below 9"),
        ({"pairs": -1}, "pairs is -1; it must be at least 0 (0 means all)"),
        ({"share": 0}, "share is 0; it must be above 0"),
        ({"share": 1.5}, "share is 1.5; it must be at most 1"),
        ({"place": "x"}, "place is 'x' (str); it must be a Path"),
        ({"name": "masked"}, "name is 'masked', which is a policy"),
        ({"stepps": 3}, "unknown parameter stepps = 3: did you mean 'steps'?"),
        ({"sizes": {1: 1}}, "the key 1 of sizes is 1 (int); it must be text"),
    ],
)
def test_wrong_types_are_named(values: dict[str, Any], message: str):
    with pytest.raises(ParameterError, match=re.escape(message)):
        Settings(**values)


@settings
class Few:
    width: int = Field(default=2, ge=1)
    rate: float = 0.5


def test_the_fields_of_settings_are_the_parameters():
    assert parameter_names(Few) == ("width", "rate")
    assert parameters_of(Few(width=3)) == {"width": 3, "rate": 0.5}
    assert parameters_of(Few(width=3), "width") == {"width": 3}
    assert settings_of(Few, {"rate": 0.1, "other": 7}) == Few(rate=0.1)


def test_a_notebook_reads_its_settings():
    cell = {"width": 3, "run_folder": "runs/x", "_private": 1}
    assert read_settings(cell, Few, "run_folder") == Few(width=3)
    with pytest.raises(ParameterError, match=r"^width is 0; it must be at least 1$"):
        read_settings(cell | {"width": 0}, Few, "run_folder")
    with pytest.raises(ParameterError, match=r"^unknown parameter run_folder = 'runs/x': "):
        read_settings(cell, Few)


def test_a_word_may_stand_for_a_number():
    check_like("attention_dropout", "checkpoint", 0.0)
    check_like("attention_dropout", 0.1, 0.0)
    with pytest.raises(ParameterError, match=r"is the text 'model'; it must be a number, or 'checkpoint'$"):
        check_like("attention_dropout", "model", 0.0)
    with pytest.raises(ParameterError, match=r"^rate is the text 'checkpoint'; it must be a number$"):
        check_like("rate", "checkpoint", 0.0)


def test_closest_name():
    assert closest_name("lerning_rate", ["learning_rate", "steps"]) == "did you mean 'learning_rate'?"
    assert closest_name("zzz", ["b", "a"]) == "known are a, b"


def test_unknown_literals_are_refused():
    namespace = {"steps": 3, "stepps": [1, {"a": (None, 2.5)}], "lr": True}
    namespace |= {"_i": "x", "Out": {}, "path": Path(), "f": len}
    with pytest.raises(ParameterError) as error:
        refuse_unknown(namespace, ["steps"])
    assert str(error.value).splitlines() == [
        "unknown parameter stepps = [1, {'a': (None, 2.5)}]: did you mean 'steps'?",
        "unknown parameter lr = True: known are steps",
    ]
    refuse_unknown(namespace, ["steps", "stepps", "lr"])


def test_with_a_record_of_cells_only_parameter_cells_count():
    cells = ["", "steps = 3\nrate: float = 1e-4  # comment\n", "for i in range(3):\n    name = 'a'\n"]
    cells += ["%matplotlib", "k = 5", "notes = ['a', 'b', 'c']"]  # a user's own cells
    namespace = {"In": cells, "steps": 3, "rate": 1e-4, "i": 2, "name": "a", "k": 5, "notes": ["a"]}
    refuse_unknown(namespace, ["steps", "rate"])
    with pytest.raises(ParameterError, match=r"unknown parameter rate = 0\.0001"):
        refuse_unknown(namespace, ["steps"])


@pytest.mark.parametrize("papermill", [False, True])
def test_a_misspelling_that_was_corrected_is_forgotten(papermill: bool):
    """In the kernel the name is still there, and the cell in its history."""
    first, corrected = "steps = 3\nrte = 0.1\n", "steps = 3\nrate = 0.1\n"
    namespace = {"steps": 3, "rate": 0.1, "rte": 0.1}
    if papermill:
        first, corrected = f"{corrected}|# Parameters\nrte = 0.1", f"{corrected}|# Parameters\nrate = 0.1"
    with pytest.raises(ParameterError, match=r"^unknown parameter rte = 0.1: did you mean 'rate'\?$"):
        refuse_unknown(namespace | {"In": ["", *first.split("|")]}, ["steps", "rate"])
    cells = ["", *first.split("|"), *corrected.split("|")]
    refuse_unknown(namespace | {"In": cells}, ["steps", "rate"])


DEFAULTS = "steps = 3  # updates\nrate = 0.1\nfast = False\nname = 'a'\nlimit = None\nlength = 2 * 8\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("steps = 'many'", "steps is the text 'many'; it must be a whole number"),
        ("steps = None", "steps is None (NoneType); it must be a whole number"),
        ("steps = 2.5", "steps is 2.5 (float); it must be a whole number"),
        ("steps = [1]", "steps is [1] (list); it must be a whole number"),
        ("rate = float('nan')", "rate is nan, which is not a number"),
        ("rate = '1e-4'", "rate is the text '1e-4', not a number: papermill -y reads 1e-4 as text, write"),
        ("fast = 'yes'", "fast is 'yes' (str); it must be True or False"),
        ("name = 7", "name is 7 (int); it must be text: write 7 in quotes"),
    ],
)
def test_what_papermill_gives_is_of_the_type_of_the_default(line: str, message: str):
    values: dict[str, Any] = {}
    for cell in (DEFAULTS, line):
        exec(cell, values)
    del values["__builtins__"]
    names = ["steps", "rate", "fast", "name", "limit", "length"]
    with pytest.raises(ParameterError) as error:
        refuse_unknown(values | {"In": ["", DEFAULTS, f"# Parameters\n{line}\n"]}, names)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    refuse_unknown(values | {"In": ["", f"{DEFAULTS}{line}\n"]}, names)  # who edits the cell sets the default


def test_what_papermill_may_give():
    given = "# Parameters\nrate = 1\nlimit = 'x'\nlength = 'y'\nsteps = 4\nworkers = 2\n"
    values = {"rate": 1, "limit": "x", "length": "y", "steps": 4, "fast": True, "name": "b", "workers": 2}
    refuse_unknown(values | {"In": ["", DEFAULTS + "workers = 'auto'", given]}, list(values))
    refuse_unknown(values | {"In": ["", given]}, list(values))


@pytest.mark.parametrize("value", ["-1", "[1, 'a']", "{'a': (1, None)}", "2 * 8", "float('nan')", "None"])
def test_what_counts_as_a_literal_cell(value: str):
    with pytest.raises(ParameterError, match="unknown parameter rat "):
        refuse_unknown({"In": [f"rate = 1\nrat = {value}"], "rat": 1}, ["rate"])


@pytest.mark.parametrize("cell", ["rat = f()", "rat = other", "rat += 1", "a.rat = 1", "rat, b = 1, 2"])
def test_what_does_not(cell: str):
    refuse_unknown({"In": [f"rate = 1\n{cell}"], "rat": 1}, ["rate"])


def test_notebooks_of_a_clone_share_the_paths_of_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = tmp_path / "notebooks"
    here.mkdir()
    for clone in (False, True):
        monkeypatch.chdir(here)
        if clone:
            (tmp_path / "cdlm_lab").mkdir()
            (tmp_path / "cdlm_lab" / "parameters.py").touch()
        for _ in range(2):  # a cell may be run again
            read_settings({}, Few)
        assert Path.cwd() == (tmp_path if clone else here)
