"""Which code a notebook depends on, and what differs between two runs, in words."""

from cdlm_lab.batch.plan import changes, checksums_of, code_of


def test_code_is_what_is_imported_directly_or_not():
    code = code_of(["from cdlm_lab.report import open_run\nopen_run"])
    assert {
        "cdlm_lab/__init__.py",
        "cdlm_lab/report.py",
        "cdlm_lab/data/files.py",  # that values imports
    } <= set(code)
    assert not any(name.startswith(("cdlm_lab/models", "cdlm_lab/batch")) for name in code)


def test_imports_inside_functions_and_of_modules_count():
    code = code_of(["def f():\n    from cdlm_lab.widgets import explorer"])
    assert "cdlm_lab/widgets/explorer/__init__.py" in code
    assert any(name.endswith(".js") for name in code), "files beside modules too"
    assert "cdlm_lab/parameters.py" in code_of(["import cdlm_lab.parameters as p"])


def test_cells_with_magics_could_import_anything():
    assert "cdlm_lab/models/joint.py" in code_of(["%matplotlib inline"])


def test_a_notebook_without_the_library_depends_on_none_of_it():
    assert code_of(["import os, numpy"]) == {}


def test_a_file_that_is_gone_has_no_checksum():
    assert checksums_of(["cdlm_lab/no_such.py"]) == {"cdlm_lab/no_such.py": ""}


OLD = {
    "notebook": "1",
    "parameters": {"steps": 60, "rate": 1},
    "code": {"a.py": "1", "b.py": "1"},
    "data": {"corpus": "1", "model": None},
    "runs": {"x": "noon"},
}


def difference(**new: object) -> list[str]:
    return changes(OLD, OLD | new)


def test_differences_in_words():
    assert difference() == []
    assert difference(notebook="2") == ["the notebook's code changed"]
    assert difference(parameters={"steps": 80, "rate": 1.0, "new": "a"}) == [
        'parameter new (absent) -> "a"',
        "parameter rate 1 -> 1.0",
        "parameter steps 60 -> 80",
    ]
    by_others = OLD["parameters"] | {"parallel": "ddp 8", "workers": 2}
    assert difference(parameters=by_others) == [], "by how many it is made is not what is made"
    assert difference(code={"a.py": "2", "c.py": "1"}) == ["code: a.py, b.py, c.py changed"]
    assert difference(code={}) == ["code: a.py, b.py changed"]
    many = {f"{n}.py": "1" for n in range(5)} | OLD["code"]
    assert difference(code=many) == ["code: 0.py, 1.py, 2.py and 2 more changed"]
    assert difference(data={"corpus": "2", "model": "3"}) == ["data: corpus changed"]
    assert difference(data={"corpus": None}) == []
    assert difference(runs={"x": "one", "y": None}) == ["x, which it reads, was made anew", "it reads y now"]
    assert difference(runs={"x": None}) == []
    assert difference(parameters={"steps": "x" * 100, "rate": 1})[0].endswith("...")


def test_code_may_be_ignored():
    new = OLD | {"notebook": "2", "code": {}}
    assert changes(OLD, new, ignore_code=True) == []
    assert changes(OLD, new | {"data": {"corpus": "2"}}, ignore_code=True) == ["data: corpus changed"]
