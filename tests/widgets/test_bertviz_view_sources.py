"""What bertviz's views stand on: the release of bertviz, and the libraries that lie in vendor/."""

import hashlib
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.widgets.bertviz import LIBRARIES, SUPPORTED, VENDOR, bertviz_html

# bertviz leaves a file open each time it draws
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
bertviz = pytest.importorskip("bertviz", reason="needs bertviz: skipped until cdlm_lab[lab] is installed")
ROOT = Path(__file__).resolve().parents[2]


def test_without_bertviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bertviz", None)
    with pytest.raises(
        ModuleNotFoundError, match=r'pip install "bertviz>=1.4,<2", or all of "cdlm_lab\[lab\]"'
    ):
        bertviz_html(np.ones((1, 1, 1, 1)), query_tokens=["a"])


def test_the_message_names_the_releases_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert SUPPORTED in project["optional-dependencies"]["lab"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("require.config(", "System.config("),
        ("requirejs(['jquery', 'd3']", "requirejs(['d3', 'lodash']"),
        ("const params = ", "const options = "),
        ('"left_text"', '"leftText"'),
        ('"root_div_id"', '"root"'),
        ("const params = {", "const params = load({"),
        ("</script>\n", ""),
    ],
)
def test_another_release_of_bertviz_is_told_from_this_one(monkeypatch, old, new):
    draw = bertviz.head_view

    def changed(**options):
        result = draw(**options)
        assert old in result.data
        result.data = result.data.replace(old, new)
        return result

    monkeypatch.setattr(bertviz, "head_view", changed)
    with pytest.raises(
        RuntimeError, match=r"bertviz [\d.]+ writes its views in a way that is not known here"
    ):
        bertviz_html(np.ones((1, 1, 1, 1)), query_tokens=["a"])


def test_a_function_that_takes_other_arguments_is_another_release(monkeypatch):
    monkeypatch.setattr(bertviz, "head_view", lambda attention, tokens: "")
    with pytest.raises(RuntimeError, match=r"not known here .*unexpected keyword.* install another release"):
        bertviz_html(np.ones((1, 1, 1, 1)), query_tokens=["a"])


def test_libraries_are_those_that_were_published():
    rows = re.findall(
        r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$",
        (VENDOR / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "README.md"
    }
    assert dict(rows) == found
    assert set(LIBRARIES) == {name for name in found if name.endswith(".js")}
    for name in LIBRARIES:
        assert f"{name.partition('-')[0]}-LICENSE.txt" in found


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_can_stand_inside_a_page(name):
    source = (VENDOR / name).read_text(encoding="utf-8")
    assert re.search(r"</script|<!--", source, re.IGNORECASE) is None
    assert re.search(r"v?(\d+\.\d+\.\d+)", source)[1] in name
