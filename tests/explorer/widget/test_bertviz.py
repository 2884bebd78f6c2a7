"""bertviz's views as self-contained HTML, in which text stays text, and the libraries that they stand on."""

import base64
import hashlib
import json
import re
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdlm_lab.explorer.widget.bertviz import LIBRARIES, SUPPORTED, VENDOR, bertviz_html

# bertviz leaves a file open each time it draws
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
bertviz = pytest.importorskip("bertviz", reason="needs bertviz: skipped until cdlm_lab[lab] is installed")
ROOT = Path(__file__).resolve().parents[3]
HOSTILE = ["<script>h=1</script>", "</script><b id=h>", "</SCRIPT ><b id=h>", "<!--<script>"]
HOSTILE += ["<img src=x onerror=h=1>", '";h=1;//', "';h=1;//", '"><b id=h>', "&lt;b&gt;&#60;b&#62;", "]]>"]
HOSTILE += ["${h=1}`;h=1;`", "PYTHON_PARAMS", "\\u003cb\\", "\u05e9\u05dc\u05d5\u05dd", "\U0001f600"]


class Elements(HTMLParser):
    """All start tags with their attributes, and the text of each script."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.scripts, self._in_script = [], [], False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if self._in_script or tag == "script":
            self._in_script = True
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            self.scripts[-1] += data

    def named(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def weights(*shape):
    exponents = np.exp(3 * np.random.default_rng(0).normal(size=shape))
    return exponents / exponents.sum(-1, keepdims=True)


def square(tokens, attention=None, view="head"):
    """A view of tokens that look at each other."""
    attention = weights(1, 2, len(tokens), len(tokens)) if attention is None else attention
    return bertviz_html(attention, query_tokens=tokens, key_tokens=tokens, view=view)


ONE = np.ones((1, 1, 1, 1))


def frame(view_html):
    """What stands in the one frame of a view."""
    (attributes,) = Elements(view_html).named("iframe")
    return Elements(attributes["srcdoc"])


def data_of(view_html):
    """What bertviz's code is given to draw."""
    _, marker, rest = frame(view_html).scripts[-1].partition("const params = ")
    assert marker
    return json.JSONDecoder().raw_decode(rest)[0]


def shown(tokens, view="head"):
    attention = np.ones((1, 1, len(tokens), 1))
    drawn = data_of(bertviz_html(attention, query_tokens=tokens, key_tokens=["k"], view=view))
    return drawn["attention"][0]["left_text"]


@pytest.mark.parametrize("view", ["head", "model"])
def test_two_spans_are_a_rectangle(view):
    attention = weights(2, 3, 4, 5)
    view_html = bertviz_html(attention, query_tokens=list("abcd"), key_tokens=list("vwxyz"), view=view)
    data = data_of(view_html)
    (drawn,) = data["attention"]
    assert (drawn["left_text"], drawn["right_text"]) == (list("abcd"), list("vwxyz"))
    assert data["include_layers"] == [1, 2], "counted as people do"
    assert data.get("include_heads", [1, 2, 3]) == [1, 2, 3]
    assert attention.max() > 0.9  # so it is drawn as it is
    np.testing.assert_array_equal(np.array(drawn["attn"]), np.round(attention, 3))
    assert view == "head" or data["display_mode"] == "light"
    assert view_html == bertviz_html(
        attention, query_tokens=list("abcd"), key_tokens=list("vwxyz"), view=view
    ), "the same view is the same text"


def test_small_weights_are_drawn_stronger_and_the_caption_says_so():
    attention = np.array([0.03, 0.002, 0.0, 0.01]).reshape(1, 1, 2, 2)
    view_html = square(["a", "b"], attention)
    assert "the largest is 0.03, and all lines are drawn 33 times as strong" in view_html
    assert data_of(view_html)["attention"][0]["attn"] == [[[[0.99, 0.066], [0.0, 0.33]]]]
    assert "drawn 3,300 times as strong" in square(["a", "b"], attention / 100)
    assert "times as strong" not in square(["a", "b"], attention * 33)


def test_the_head_view_opens_on_the_layer_that_gives_most():
    attention = np.full((3, 1, 2, 2), 0.1)
    assert data_of(square(["a", "b"], attention))["layer"] == 1  # no layer stands out
    attention[1] = 0.2
    assert data_of(square(["a", "b"], attention))["layer"] == 2


@pytest.mark.parametrize("view", ["head", "model"])
def test_nothing_comes_from_the_network_and_the_frame_runs_its_four_scripts_and_no_other(view):
    view_html = square(list("abc"), view=view)
    inside = frame(view_html)
    fetching = {"src", "href", "srcset", "data", "action", "poster", "background"}
    for _, attributes in [*Elements(view_html).tags, *inside.tags]:
        assert not fetching & set(attributes)
    hosts = set(re.findall(r"//([\w-]+\.[\w.-]+)", view_html))
    assert hosts <= {"www.w3.org", "d3js.org", "github.com"}, "namespaces and notices only"
    assert "require.config" not in view_html
    assert "@import" not in view_html
    (attributes,) = Elements(view_html).named("iframe")
    assert attributes["sandbox"] == "allow-scripts"
    assert len(inside.scripts) == 4
    policies = [meta["content"] for meta in inside.named("meta") if "http-equiv" in meta]
    directives = dict(part.strip().split(" ", 1) for part in policies[0].split(";"))
    assert directives["default-src"] == "'none'"
    digests = [hashlib.sha256(script.encode()).digest() for script in inside.scripts]
    allowed = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    assert directives["script-src"].split() == allowed
    tags = [tag for tag, _ in inside.tags]
    assert tags.index("meta") < tags.index("script")


@pytest.mark.parametrize("view", ["head", "model"])
def test_hostile_tokens_are_text(view):
    plain, hostile = square(["x"] * len(HOSTILE), view=view), square(HOSTILE, view=view)
    assert Elements(hostile).tags[0] == Elements(plain).tags[0]
    assert len(Elements(hostile).tags) == len(Elements(plain).tags)
    assert [tag for tag, _ in frame(hostile).tags] == [tag for tag, _ in frame(plain).tags]
    assert view == "model" or data_of(hostile)["attention"][0]["left_text"] == HOSTILE
    for character in "<>&":
        assert frame(hostile).scripts[-1].count(character) == frame(plain).scripts[-1].count(character)


@settings(max_examples=25)
@given(tokens=st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_any_text_leaves_the_page_as_it_is(tokens):
    view_html = square(tokens)
    assert view_html.encode("utf-8")
    assert view_html.count("<iframe") == 1
    assert len(frame(view_html).scripts) == 4
    drawn = data_of(view_html)["attention"][0]["left_text"]
    assert len(drawn) == len(tokens)
    assert all(label.strip() for label in drawn)


@pytest.mark.parametrize(
    ("token", "label"),
    [
        (" fire", "fire"),
        ("", "\u2205"),
        (" ", "\u2423"),
        ("\n\n", "\u23ce\u23ce"),
        ("a\u2028b", "a b"),
        ("\u202eevil", "\u2039U+202E\u203aevil"),
        ("\x00\x07", "\u2400\u2407"),
        ("\ud800", "\ufffd"),
        ("internationalisations", "internationalisations"),
        ("a" * 24, "a" * 24),
        ("a" * 25, "a" * 23 + "\u2026"),
        ("a" * 10_000, "a" * 23 + "\u2026"),
        ("\u65e5" * 12, "\u65e5" * 12),
        ("\u65e5" * 13, "\u65e5" * 11 + "\u2026"),
    ],
)
def test_labels(token, label):
    assert shown([token]) == [label]


def test_labels_of_the_model_view_are_shorter():
    assert shown(["internationalisation", "twelve chars"], "model") == ["internation\u2026", "twelve chars"]


@pytest.mark.parametrize(("view", "most"), [("head", 64), ("model", 48)])
def test_too_many_tokens_are_refused(view, most):
    assert square(["x"] * (most // 2), view=view)
    tokens = ["x"] * (most // 2 + 1)
    with pytest.raises(
        ValueError, match=rf"at most {most} tokens in all, got {2 * len(tokens)}: choose fewer"
    ):
        square(tokens, view=view)


def test_without_bertviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bertviz", None)
    remedy = r'pip install "bertviz>=1.4,<2", or all of "cdlm_lab\[lab\]"'
    with pytest.raises(ModuleNotFoundError, match=remedy):
        square(["a"], ONE)
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
    with pytest.raises(RuntimeError, match=r"bertviz [\d.]+ writes its views in a way .* not known here"):
        square(["a"], ONE)
    monkeypatch.setattr(bertviz, "head_view", lambda attention, tokens: "")
    with pytest.raises(RuntimeError, match=r"not known here .*unexpected keyword.* install another release"):
        square(["a"], ONE)


def test_libraries_are_those_that_were_published_and_can_stand_inside_a_page():
    text = (VENDOR / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", text, re.MULTILINE)
    files = {path.name: path.read_bytes() for path in VENDOR.iterdir() if path.name != "README.md"}
    assert dict(rows) == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert set(LIBRARIES) == {name for name in files if name.endswith(".js")}
    for name in LIBRARIES:
        assert f"{name.partition('-')[0]}-LICENSE.txt" in files
        source = files[name].decode("utf-8")
        assert re.search(r"</script|<!--", source, re.IGNORECASE) is None
        assert re.search(r"v?(\d+\.\d+\.\d+)", source)[1] in name
