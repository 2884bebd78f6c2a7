"""Parameters that are paths, and those that are lists, mean the same in every notebook."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdlm_lab.parameters import LISTS, PATHS, ParameterError, as_one_text, check_like, local_path, names_in

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
# Parameters of text that are neither a path nor a list: choices of one word, and texts.
OTHERS = {
    "variant", "projections", "packing", "masking", "attention", "precision", "parallel", "workers", "split",
    "kind", "context", "topic_level", "select_by", "unrelated", "reading", "seen", "kinds",
    "support", "context_encoder", "schedule",
    "paragraphs", "head", "head_layers", "train_on", "labels", "evidence", "candidates",
    "chains", "scorer", "threshold_by", "adapter"
}  # fmt: skip


def cells_of(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][:2]


def defaults_of(notebook: Path) -> dict[str, Any]:
    lines = ast.parse(cells_of(notebook)[0]).body
    return {line.targets[0].id: ast.literal_eval(line.value) for line in lines}


def texts() -> Iterator[Any]:
    for notebook in sorted(FOLDER.glob("*.ipynb")):
        for name, default in defaults_of(notebook).items():
            if isinstance(default, str):
                yield pytest.param(notebook, name, id=f"{notebook.name[:2]}-{name}")


def settings_with(notebook: Path, **given: Any) -> Any:
    """What the second cell of a notebook reads if its parameters have these values."""
    parameters, imports = cells_of(notebook)
    values: dict[str, Any] = {}
    exec(parameters, values)
    values |= given
    *_, (head, line) = re.findall(r"(?s)^(.*)^(settings = read_settings[^\n]*)", imports, re.MULTILINE)
    exec(f"{head}{line}", values)
    return values["settings"]


PARAMETERS = list(texts())


@pytest.mark.parametrize(("notebook", "name"), PARAMETERS)
def test_every_text_is_a_path_a_list_or_a_word(notebook: Path, name: str):
    assert (name in PATHS | LISTS) != (name in OTHERS)


@pytest.mark.parametrize(("notebook", "name"), [one for one in PARAMETERS if one.values[1] in PATHS])
def test_a_path_may_begin_with_the_home_folder_and_is_no_address(
    notebook: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(FOLDER.parent)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    for written, meant in (("~/x/a", "x/a"), ("$DATA/a", "data/a"), ("${DATA}/a", "data/a")):
        assert getattr(settings_with(notebook, **{name: written}), name) == str(tmp_path / meant)
    for address in ("s3://bucket/x", "hf://allenai/x", "https://host/x", "file:///x"):
        with pytest.raises(
            ParameterError, match=rf"^{name} is '{address}', an address; .*: copy or "
        ) as error:
            settings_with(notebook, **{name: address})
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(("notebook", "name"), [one for one in PARAMETERS if one.values[1] in LISTS])
def test_a_list_may_be_written_as_one(notebook: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(FOLDER.parent)
    default = defaults_of(notebook)[name]
    names = default.split() or (["2", "5"] if name == "sweep" else ["a b", "c"])
    check_like(name, names, default)  # as papermill and grids do
    settings = settings_with(notebook, **{name: names})
    assert names_in(getattr(settings, name)) == names
    if default:
        assert settings == settings_with(notebook), "the same run"
    with pytest.raises(
        ParameterError, match=rf"^{name} is .*; a quotation mark is not closed: write a list, "
    ):
        settings_with(notebook, **{name: "it's"})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a b", ["a", "b"]),
        ("'my run' b", ["my run", "b"]),
        ('"my run"  runs/*', ["my run", "runs/*"]),
        ("", []),
        (["my run", "b*", "it's"], ["my run", "b*", "it's"]),
        ((2, 5), ["2", "5"]),
    ],
)
def test_names_with_spaces(text: Any, names: list[str]):
    assert names_in(as_one_text("compare", text)) == names


def test_paths_with_spaces_in_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    text = as_one_text("compare_with", ["~/my runs/a", "runs/b"])
    assert names_in(text) == [f"{tmp_path}/my runs/a", "runs/b"]
    assert as_one_text("compare_with", text) == text
    assert as_one_text("compare_with", "'~/my runs/a' runs/b") == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("~nobody-at-all/x", "there is no such user: write the folder out, or ./~ for the sign"),
        ("$NOT_SET_HERE/x", "$NOT_SET_HERE is not set in the environment: write the path out"),
        ("runs/${NOT_SET_HERE}", "${NOT_SET_HERE} is not set in the environment: write the path out"),
    ],
)
def test_what_cannot_be_expanded(text: str, message: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    with pytest.raises(ParameterError, match=f"^{re.escape(f'corpus is {text!r}; {message}')}$"):
        local_path(text, "corpus")


def test_names_that_are_no_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "US$news").mkdir()
    for name in (
        "allenai/longformer-base-4096",
        "storyworld/cdlm",
        "minilm",
        "",
        "a/b~",
        "./~",
        "US$news",
        "a:b",
    ):
        assert local_path(name) == name
