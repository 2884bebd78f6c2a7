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

from cdlm_lab.widgets.explorer.bertviz import LIBRARIES, SUPPORTED, VENDOR, bertviz_html

# bertviz leaves a file open each time it draws
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
bertviz = pytest.importorskip("bertviz", reason="needs bertviz: skipped until cdlm_lab[lab] is installed")
ROOT = Path(__file__).resolve().parents[3]
HOSTILE = [
    "<script>h=1</script>",
    "</script><b id=h>",
    "</SCRIPT ><b id=h>",
    "<!--<script>",
    "<img src=x onerror=h=1>",
    '";h=1;//',
    "';h=1;//",
    '"><b id=h>',
    "&lt;b&gt;&#60;b&#62;",
    "]]>",
    "${h=1}`;h=1;`",
    "PYTHON_PARAMS",
    "\\u003cb\\",
    "\u05e9\u05dc\u05d5\u05dd",
    "\U0001f600",
]


class Elements(HTMLParser):
    """All start tags with their attributes, and the text of each script."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if self._in_script or tag == "script":
            self._in_script = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def weights(*shape: int) -> np.ndarray:
    exponents = np.exp(3 * np.random.default_rng(0).normal(size=shape))
    return exponents / exponents.sum(-1, keepdims=True)


def frame(view_html: str) -> Elements:
    """What stands in the one frame of a view."""
    (attributes,) = Elements(view_html).named("iframe")
    return Elements(attributes["srcdoc"])


def data_of(view_html: str) -> dict:
    """What bertviz's code is given to draw."""
    drawing = frame(view_html).scripts[-1]
    _, marker, rest = drawing.partition("const params = ")
    assert marker
    return json.JSONDecoder().raw_decode(rest)[0]


def shown(tokens: list[str], view: str = "head") -> list[str]:
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
    assert data["include_layers"] == [0, 1]
    found = np.array(drawn["attn"])
    assert found.shape == attention.shape
    assert attention.max() > 0.9  # so it is drawn as it is
    np.testing.assert_array_equal(found, np.round(attention, 3))
    if view == "model":
        assert data["display_mode"] == "light"


def test_one_span_is_a_square():
    (drawn,) = data_of(bertviz_html(weights(2, 3, 4, 4), query_tokens=list("abcd")))["attention"]
    assert drawn["left_text"] == drawn["right_text"] == list("abcd")
    assert np.array(drawn["attn"]).shape == (2, 3, 4, 4)


def test_small_weights_are_drawn_stronger_and_the_caption_says_so():
    attention = np.array([0.03, 0.002, 0.0, 0.01]).reshape(1, 1, 2, 2)
    view_html = bertviz_html(attention, query_tokens=["a", "b"])
    assert "the largest is 0.03, and all lines are drawn 33 times as strong" in view_html
    assert data_of(view_html)["attention"][0]["attn"] == [[[[0.99, 0.066], [0.0, 0.33]]]]
    plain = bertviz_html(attention, query_tokens=["a", "b"], strength=1)
    assert "times as strong" not in plain
    assert data_of(plain)["attention"][0]["attn"] == [[[[0.03, 0.002], [0.0, 0.01]]]]
    most = bertviz_html(attention, query_tokens=["a", "b"], strength=1000)
    assert data_of(most)["attention"][0]["attn"] == [[[[1.0, 1.0], [0.0, 1.0]]]]
    assert "drawn 1,000 times as strong" in most


def test_no_weight_at_all_is_said():
    attention = np.zeros((1, 1, 1, 1))
    view_html = bertviz_html(attention, query_tokens=["a"], key_tokens=["b"])
    assert "All of these weights are 0, so no line is drawn" in view_html


def test_the_head_view_opens_on_the_layer_that_gives_most():
    attention = np.full((3, 1, 2, 2), 0.1)
    assert data_of(bertviz_html(attention, query_tokens=["a", "b"]))["layer"] == 0  # no layer stands out
    attention[1] = 0.2
    assert data_of(bertviz_html(attention, query_tokens=["a", "b"]))["layer"] == 1


def test_the_same_view_is_the_same_text():
    once, again = (bertviz_html(weights(1, 2, 2, 2), query_tokens=["a", "b"]) for _ in range(2))
    assert once == again


@pytest.mark.parametrize("view", ["head", "model"])
def test_nothing_comes_from_the_network(view):
    view_html = bertviz_html(weights(1, 2, 3, 3), query_tokens=list("abc"), view=view)
    inside = frame(view_html)
    fetching = {"src", "href", "srcset", "data", "action", "poster", "background"}
    for _, attributes in [*Elements(view_html).tags, *inside.tags]:
        assert not fetching & set(attributes)
    hosts = set(re.findall(r"//([\w-]+\.[\w.-]+)", view_html))
    assert hosts <= {"www.w3.org", "d3js.org", "github.com"}, "namespaces and notices only"
    assert "require.config" not in view_html
    assert "@import" not in view_html


@pytest.mark.parametrize("view", ["head", "model"])
def test_the_frame_runs_its_four_scripts_and_no_other(view):
    view_html = bertviz_html(weights(1, 2, 3, 3), query_tokens=list("abc"), view=view)
    (attributes,) = Elements(view_html).named("iframe")
    assert attributes["sandbox"] == "allow-scripts"
    inside = frame(view_html)
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
    attention = weights(1, 2, len(HOSTILE), len(HOSTILE))
    plain = bertviz_html(attention, query_tokens=["x"] * len(HOSTILE), view=view)
    hostile = bertviz_html(attention, query_tokens=HOSTILE, view=view)
    assert Elements(hostile).tags[0] == Elements(plain).tags[0]
    assert len(Elements(hostile).tags) == len(Elements(plain).tags)
    assert [tag for tag, _ in frame(hostile).tags] == [tag for tag, _ in frame(plain).tags]
    drawn = data_of(hostile)["attention"][0]["left_text"]
    if view == "head":
        assert drawn == HOSTILE
    drawing = frame(hostile).scripts[-1]
    without_data = frame(plain).scripts[-1]
    for character in "<>&":
        assert drawing.count(character) == without_data.count(character)


@settings(max_examples=25)
@given(tokens=st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_any_text_leaves_the_page_as_it_is(tokens):
    attention = np.ones((1, 1, len(tokens), len(tokens)))
    view_html = bertviz_html(attention, query_tokens=tokens)
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


@pytest.mark.parametrize(
    ("view", "most", "counts"), [("head", 64, (32, 32)), ("model", 48, (24, 24)), ("head", 64, (64,))]
)
def test_too_many_tokens_are_refused(view, most, counts):
    def draw(*counts: int) -> str:
        tokens = [["x"] * count for count in counts]
        keys = tokens[1] if len(tokens) == 2 else None
        attention = np.zeros((1, 1, counts[0], counts[-1]))
        return bertviz_html(attention, query_tokens=tokens[0], key_tokens=keys, view=view)

    assert draw(*counts)
    more = (counts[0] + 1, *counts[1:])
    with pytest.raises(ValueError, match=rf"at most {most} tokens in all, got {more[0]}.*choose fewer"):
        draw(*more)


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (np.ones((1, 2, 2)), r"attention is \(1, 2, 2\), but .* must be \(layer, head, 2, 2\)"),
        (np.ones((1, 1, 2, 3)), r"attention is \(1, 1, 2, 3\)"),
        (np.ones((0, 1, 2, 2)), "nothing to show"),
        (np.full((1, 1, 2, 2), np.nan), "must lie between 0 and 1, got nan"),
        (np.full((1, 1, 2, 2), -0.1), "must lie between 0 and 1, got -0.1"),
        (np.full((1, 1, 2, 2), 3.0), "must lie between 0 and 1, got 3 to 3"),
    ],
)
def test_attention_that_does_not_fit_is_refused(attention, message):
    with pytest.raises(ValueError, match=message):
        bertviz_html(attention, query_tokens=["a", "b"])


def test_what_is_unknown_is_refused():
    with pytest.raises(ValueError, match="view is 'neuron'; it must be 'head' or 'model'"):
        bertviz_html(np.ones((1, 1, 1, 1)), query_tokens=["a"], view="neuron")
    for strength in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="strength is"):
            bertviz_html(np.ones((1, 1, 1, 1)), query_tokens=["a"], strength=strength)


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
