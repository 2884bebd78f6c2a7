"""The plain HTML that replaces the explorer where no script runs."""

import re
from dataclasses import replace
from html import unescape
from importlib.resources import files

import numpy as np
import pytest

from cdlm_lab.explorer.reading import Panel, Prediction, Selection
from cdlm_lab.explorer.widget import still as looks
from cdlm_lab.explorer.widget.content import Content, ShownDocument, as_json
from cdlm_lab.explorer.widget.still import shade, still_html
from cdlm_lab.explorer.widget.widget import Explorer

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MORNING = ShownDocument(
    name="morning",
    words=("The", "gas", "blast", "did", "n't", "kill", ",", "he", "said", "."),
    sentences=((0, 7), (7, 10)),
    mentions=((0, 3, "blast"), (1, 2, ""), (7, 8, "him")),
)
EVENING = ShownDocument(
    name="evening", words=("An", "explosion", "in", "the", "mine", "."), sentences=((0, 6),)
)  # fmt: skip
DOCUMENTS = (MORNING, EVENING)
SELECTION = Selection(source=(0, 2, 3), layer=1)
KEPT_TAGS = {"div", "span", "table", "tr", "td", "b", "i", "u", "br", "p", "ol", "li", "small"}
# Of the properties that JupyterLab's sanitizer keeps (packages/apputils/src/sanitizer.ts), those used, and of
# what form their values must be for it.
LENGTH, COLOUR = r"(-?[\d.]+(px|%)|0)", r"(#[0-9a-f]{6}|rgba\(\d+,\d+,\d+,[01](\.\d+)?\))"
KEPT_STYLES = {
    "background-color": rf"{COLOUR}|transparent",
    "border": rf"\dpx solid {COLOUR}",
    "border-bottom": rf"\dpx (solid|dashed) {COLOUR}",
    "border-collapse": "collapse",
    "line-height": r"[\d.]+",
    "margin": rf"{LENGTH}( {LENGTH})*",
    "opacity": r"0\.\d+",
    "overflow-x": "auto",
    "padding": rf"{LENGTH}( {LENGTH})*",
    "table-layout": "fixed",
    "text-align": "left",
    "text-decoration": "none|line-through",
    "vertical-align": "top|super",
    "white-space": "normal",
    "word-wrap": "break-word",
}
LENGTHS = ("border-radius", "font-size", "margin-bottom", "margin-top", "min-width", "width")
KEPT_STYLES |= dict.fromkeys(LENGTHS, LENGTH)


def a_panel(ranks=None, *, words: int = 16, **more) -> Panel:
    ranks = np.zeros(words) if ranks is None else np.asarray(ranks, dtype=float)
    given = {"name": "CDLM", "scores": ranks, "ranks": ranks, "reach": np.ones(len(ranks), bool)}
    given["read"] = np.ones(len(ranks), bool)
    return Panel(**given | more)


def still(documents=DOCUMENTS, *, selection=SELECTION, panels=None, layers=2, title="Where") -> str:
    panels = [a_panel()] if panels is None else panels
    html = still_html(documents, selection=selection, panels=panels, layers=layers, title=title)
    check_kept(html)
    return html


def check_kept(html: str) -> None:
    """Check that JupyterLab's sanitizer keeps everything in `html`, and that all its tags are closed."""
    open_tags: list[str] = []
    for closing, tag, attributes in re.findall(r"<(/?)(\w+)([^<>]*)>", html):
        assert tag in KEPT_TAGS
        if closing:
            assert open_tags.pop() == tag
            continue
        open_tags.append(tag)
        assert re.fullmatch(r'( dir="auto"| valign="top")?( style="[^"]*")?', attributes), attributes
        for name, value in re.findall(r"([\w-]+):([^;\"]+)", attributes):
            assert re.fullmatch(KEPT_STYLES[name], value), (name, value)
    assert not open_tags
    assert html.count("<") == len(re.findall(r"</?\w+[^<>]*>", html)), "a sign that is no tag"


def columns(html: str) -> list[str]:
    """Return the contents of the cells of the first table."""
    return re.findall(r"<td[^>]*>(.*?)</td>", html.split("</table>")[0])


def plain(html: str) -> str:
    return unescape(re.sub(r"<small.*?</small>|<[^>]*>", "", html))


def test_the_shades_are_those_of_the_explorer():
    code = (files("cdlm_lab.explorer.widget") / "drawing.js").read_text(encoding="utf-8")
    assert f"const STRONGEST = {looks.STRONGEST};" in code
    first, steepness = looks.FIRST_SHADED, looks.STEEPNESS
    assert f"rank <= {first} ? 0 : STRONGEST * ((rank - {first}) / 20) ** {steepness};" in code
    assert f"opacity > {looks.FAINTEST} ? `rgba({looks.SHADE},${{opacity.toFixed(3)}})`" in code
    css = (files("cdlm_lab.explorer.widget") / "explorer.css").read_text(encoding="utf-8")
    for name, style in (("orange", looks.SOURCE), ("green", looks.TARGET), ("pink", looks.GLOBAL)):
        assert f"--x-{name}: {re.search('#[0-9a-f]{6}', style)[0]};" in css
    assert f".cdlm-x-unreached {{ {looks.UNREACHED.replace(':', ': ')}; }}" in css


@pytest.mark.parametrize(
    ("rank", "opacity"), [(90, 0.68 * 0.5**1.4), (100, 0.68), (82, 0.68 * 0.1**1.4), (80, None), (80.5, None)]
)
def test_a_word_is_as_dark_as_its_rank(rank, opacity):
    expected = "" if opacity is None else f"background-color:rgba(59,142,208,{opacity:.3f})"
    assert shade(rank) == expected
    ranks = np.zeros(16)
    ranks[11] = rank
    span = f'<span style="{expected}">explosion</span>'
    assert (span in still(panels=[a_panel(ranks)])) == (opacity is not None)


def test_the_source_and_punctuation_are_not_shaded_and_words_stand_as_in_print():
    morning, _ = columns(still(panels=[a_panel(np.full(16, 95.0))]))
    assert re.search(r'<b style="border:2px solid #e69f00[^>]*>(<[^>]*>)*blast', morning)
    shaded = re.findall(r"rgba\(59,142,208[^>]*>(.*?)</span>", morning)
    assert shaded == ["The gas", "didn&#x27;t kill", "he", "said"]
    morning, evening = columns(still(panels=[a_panel(np.linspace(70, 100, 16))]))
    assert "The gas blast didn't kill,he said." in plain(morning), "two sentences, a paragraph each"
    assert "An explosion in the mine." in plain(evening)
    assert ">10 words<" in morning


def test_words_that_look_alike_share_one_element():
    _, evening = columns(still())
    assert '<p dir="auto" style="margin:0 0 5px">An explosion in the mine.</p>' in evening
    one = replace(EVENING, mentions=((0, 1, ""), (0, 2, ""), (2, 3, ""), (3, 5, ""), (4, 5, "")))
    _, evening = columns(still((MORNING, one)))
    assert re.findall(r"<u[^>]*>(.*?)</u>", evening) == ["An explosion", "in", "the mine"]
    _, evening = columns(still((MORNING, replace(EVENING, mentions=((0, 3, ""), (1, 5, ""))))))
    assert re.findall(r"<u[^>]*>(.*?)</u>", evening) == ["An explosion in", "the mine"]


NEAR = np.arange(16) < 10  # the words of the first document
STRONG = np.array([*range(100, 110), 1, 5, 2, 4, 3, 9])
COMPARED, RANKS = {"target": (1, 0, 2)}, "ranks above {} of the words of its document"
REWRITTEN = {"target": (1, 1, 2), "edits": ((1, 1, "<fire>"),)}
FIRST = {"layer": 0, "heads": (0, 2), "direction": "from", "reduce": "max"}


@pytest.mark.parametrize(("changes", "panels", "said"), [
    ({}, [{}], 'Shaded: the words that go with "blast" most, last layer, all heads'),
    (FIRST, [{}], 'that "blast" looks at most, layer 1, heads 1 and 3, the strongest of heads'),
    ({"heads": (3,), "direction": "to"}, [{}], 'that look at "blast" most, last layer, head 4'),
    ({"heads": (0, 1, 3)}, [{}], "heads 1, 2 and 4"),
    ({"source": None}, [], "No word is chosen yet"),
    ({}, [], "is chosen, but there is no answer"),
    (COMPARED, [{"target_rank": 90.4}], 'CDLM "An explosion" ' + RANKS.format("90%")),
    (COMPARED, [{}, {"name": "LF", "target_rank": 99.5}], 'LF "An explosion" ' + RANKS.format("99.5%")),
    (COMPARED, [{"target_rank": 50.0, "reach": NEAR}], "has no direct weight: too far apart"),
    (COMPARED, [{"target_rank": 50.0, "reach": NEAR, "read": NEAR}], "is not read: the documents are longer"),
    ({}, [{"reach": NEAR}], "can carry no weight"),
    ({}, [{"reach": NEAR, "read": np.arange(16) < 12}], "ends (4 words) are more than the model can read"),
    ({}, [{"scores": STRONG}], 'other documents: "explosion", "the", "mine", "in", "An" in evening'),
    ({}, [{"scores": STRONG, "reach": np.arange(16) == 12}], 'other documents: "in" in evening'),
    (REWRITTEN, [{"before": a_panel()}], '<fire>" stands for "explosion'),
    (REWRITTEN, [{"before": a_panel(target_rank=20.0), "target_rank": 80.0}], "above 20% of the words"),
])  # fmt: skip
def test_what_is_seen_is_said_in_words(changes, panels, said):
    html = still(selection=replace(SELECTION, **changes), panels=[a_panel(**one) for one in panels])
    text = plain(html).translate(str.maketrans("\u201c\u201d\u2002", '"" '))
    assert said in text
    assert ("ranks above" in text) == any("target_rank" in one and "reach" not in one for one in panels)
    assert any("reach" in one for one in panels) or "can carry no weight" not in text
    assert html.count("<table") == max(1, len(panels))


def test_the_compared_word_is_framed_and_words_out_of_reach_are_muted():
    selection = replace(SELECTION, **COMPARED)
    html = still(selection=selection, panels=[a_panel(target_rank=90.4)])
    assert re.search(
        r'<b style="border:2px solid #009e73[^>]*>An explosion</b><small[^>]*>&nbsp;above 90%<', html
    )
    _, evening = columns(still(panels=[a_panel(np.full(16, 99.0), reach=NEAR)]))
    assert '<span style="opacity:0.68">An explosion in the mine.</span>' in evening


def test_hidden_words_and_what_is_put_for_them():
    hidden = Prediction(span=(0, 5, 6), truth_probability=0.004, top=(("<hurt>", 0.5), ("kill", 0.004)))
    selection = replace(SELECTION, masked=((0, 5, 6),), extra_global=((1, 4, 5),), source_global=False)
    html = still(selection=selection, panels=[a_panel(predictions=(hidden,))])
    assert "\u201ckill\u201d 0.40%; most likely <hurt> 50%, kill 0.40%" in plain(html)
    assert '<span style="text-decoration:line-through">kill</span>' in html
    assert '<span style="border-bottom:2px dashed #cc79a7">mine</span>' in html
    assert not re.search(r'dashed #cc79a7">blast', html), "the source does not see everything here"
    assert re.search(r'dashed #cc79a7">blast', still())


def test_hostile_text_stays_text():
    words = ("<script>alert(1)</script>", "</td>", "&lt;", "\"'", "\u202eabc", "\u05e9\u05dc", "🙂", "\x00")
    words += ("x" * 10_000,)
    whole = ((0, len(words)),)
    odd = ShownDocument(name="<i>\u2066", words=words, sentences=whole, mentions=((0, 2, "<b>"),))
    ranks = np.full(len(words) + 10, 95.0)
    chosen = Selection(source=(1, 0, len(words)), target=(1, 4, 6), masked=((1, 8, 9),), layer=1)
    guess = Prediction(span=(1, 8, 9), truth_probability=1.0, top=(("<img src=x onerror=h()>\u202e", 1.0),))
    panel = a_panel(ranks, name="<u onclick=h()>", target_rank=100.0, predictions=(guess,))
    texts = ("&lt;script&gt;alert(1)&lt;/script&gt;", "&amp;lt;", "🙂", "\u05e9\u05dc", "x" * 10_000)
    for selection in (chosen, replace(chosen, source=(0, 0, 1)), Selection()):
        html = still((MORNING, odd), selection=selection, panels=[panel], title="<style>b{}</style>")
        assert all(text in html for text in texts)
        assert not re.search("[\u202e\u2066\x00]", html)
        html.encode("utf-8")


def test_long_documents_stay_small():
    draws = np.random.default_rng(0)
    words = tuple(f"word{n}" if n % 9 else "," for n in range(410))
    mentions = tuple((n, n + 2, "m") for n in range(0, 400, 8))
    spans = tuple((n, min(n + 20, 410)) for n in range(0, 410, 20))
    documents = [
        ShownDocument(name=f"{d}", words=words, sentences=spans, mentions=mentions) for d in range(10)
    ]
    ranks = np.concatenate([100 * draws.permutation(410) / 409 for _ in documents])
    panels = [a_panel(ranks, name=name, reach=draws.random(4100) < 0.7) for name in ("a", "b")]
    html = still(documents, selection=Selection(source=(3, 5, 9), target=(4, 1, 2), layer=1), panels=panels)
    assert len(html.encode("utf-8")) < 400_000


def test_the_widget_carries_what_it_shows_now():
    panels = [a_panel(np.linspace(60, 100, 16))]
    content = Content(documents=DOCUMENTS, models=["CDLM"], layers=2, heads=2, answer=lambda chosen: panels)
    explorer = Explorer(content, title="A & B")

    def still_html():
        return explorer._repr_mimebundle_()[0]["text/html"]

    data, metadata = explorer._repr_mimebundle_(include=None, exclude=None)
    assert metadata == {}
    assert data[WIDGET_VIEW]["model_id"] == explorer.model_id
    assert "text/plain" in data
    assert "No word is chosen yet" in data["text/html"]
    assert "A &amp; B" in data["text/html"]
    explorer.choose(SELECTION)
    chosen = still_html()
    assert "go with" in chosen
    explorer.choose(replace(SELECTION, source=(1, 4, 5)))
    assert still_html() != chosen
    explorer.selection = as_json(SELECTION)
    assert still_html() == chosen
    explorer.selection = as_json(SELECTION) | {"source": [7, 0, 1]}
    assert "No word is chosen yet" in still_html()
