"""The coloured preview of one packed example, its overview, and an example of paragraph pretraining."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from shown_reads import cells_of, plain

from cdlm_lab.views import packed
from cdlm_lab.views.packed import BINS, DocumentLoss, PackedPreview


def blocks(html):
    """What is written in the text blocks."""
    return [plain(text) for text in re.findall(r'<div class="cdlm-text"[^>]*>(.*?)</div>', html, re.DOTALL)]


def preview(texts, *, masked=(), replacement=None, global_=(), cross=(), losses=None, **more):
    """HTML of documents given as lists of tokens, in the layout [CLS] <doc-s> .. </doc-s> .. [SEP];
    `masked`, `global_` and `cross` are positions in the sequence."""
    tokens, document, special = ["[CLS]"], [-1], [True]
    for number, words in enumerate(texts):
        tokens += ["<doc-s>", *words, "</doc-s>"]
        document += [number] * (len(words) + 2)
        special += [True, *[False] * len(words), True]
    tokens, document, special = [*tokens, "[SEP]"], [*document, -1], [*special, True]
    flags = {"global_": global_, "cross_document": cross}
    count = len(tokens)
    stands = dict.fromkeys(masked, "[MASK]") | (replacement or {})
    given = {"starts_word": np.ones(count, bool), "title": "", "memory_bytes": 0} | more
    return PackedPreview(
        tokens=tokens,
        document=np.array(document),
        replacement=[stands.get(i) for i in range(count)],
        special=np.array(special),
        mask_token="[MASK]",
        documents=losses or [DocumentLoss(title=f"Report {n}") for n in range(len(texts))],
        **{name: np.isin(np.arange(count), list(places)) for name, places in flags.items()},
        **given,
    )._repr_html_()


# positions:     0     1       2    3      4      5        6       7       8      9       10
#              [CLS] <doc-s>  The  storm  hit  </doc-s> <doc-s>  Storm  closes </doc-s> [SEP]
SMALL = [["The", "storm", "hit"], ["Storm", "closes"]]
PIECES = np.isin(np.arange(11), [3, 4], invert=True)
BECAME = {"masked": [2, 3, 4], "replacement": {3: "cheese", 4: "hit"}}


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ({"starts_word": PIECES}, "</small> Thestormhit <small"),
        ({"starts_word": PIECES, "masked": [3], "global_": [3, 4]}, "The<u><mark>storm</mark>hit</u> <small"),
        ({"masked": [3], "global_": [4], "cross": [7]}, "The <mark>storm</mark> <u>hit</u>"),
        ({"cross": [7]}, "<b>Storm</b> closes"),
        ({"masked": [3], "global_": [3], "cross": [3]}, "<u><mark><b>storm</b></mark></u>"),
        ({"masked": [3], "global_": range(1, 6)}, '<u><small dir="ltr">&lt;doc-s&gt;</small> The <mark>'),
        (BECAME, "<mark>The</mark> <mark>storm<i>→<bdi>cheese</bdi></i></mark> <mark>hit<i>=</i></mark>"),
    ],
)
def test_each_property_has_its_mark_and_all_can_meet(marked, shown):
    html = preview(SMALL, **marked)
    assert shown in html
    if set(marked) == {"cross"}:
        texts = ["<doc-s> The storm hit </doc-s>", "<doc-s> Storm closes </doc-s>"]
        assert blocks(html) == ["[CLS]", *texts, "[SEP]"]


def headline(html):
    tile = r">([a-z ]+)</div>" r'<div style="font-size:19px[^"]*">([^<]*)</div>' r"<div[^>]*>([^<]*)</div>"
    return {name: (value, note) for name, value, note in re.findall(tile, html)}


def test_headline_numbers_and_losses_are_those_of_the_arrays():
    losses = [
        DocumentLoss(title="a", cut=5, reason="no room"),
        DocumentLoss(title="b"),
        DocumentLoss(title="c", cut=10, reason="full"),
    ]
    more = {"memory_bytes": 2.1e9, "step_seconds": 95}
    html = preview(SMALL, masked=[3, 7], global_=[3, 7, 8], losses=losses, **more)
    assert headline(html) == {
        "tokens": ("11", "5 of them text"),
        "documents": ("2", "1 whole, 1 cut short, 1 left out"),
        "masked": ("2", "40.0% of the text"),
        "global": ("3", "27.3% of all tokens"),
        "text cut": ("15", "75.0% of all text"),
        "memory": ("2.1 GB", "estimated peak"),
        "time": ("1 min 35 s", "estimated a step"),
    }
    assert cells_of(html) == [
        ["1\u2002a", "3", "5", "62.5%", "no room"],
        ["2\u2002b", "2", "–", "–", ""],
        ["3\u2002c", "0", "10", "100.0%", "full"],
    ]
    assert "time" not in headline(preview(SMALL))


def test_counts_at_random_equal_the_number_of_marks_and_a_long_example_is_folded_and_small():
    words = [[f"w{i}" for i in range(1022)] for _ in range(4)]
    text = {1 + 1024 * n + 1 + i: word for n in range(4) for i, word in enumerate(words[n])}  # place -> word
    masked = [int(i) for i in np.random.default_rng(0).choice(list(text), 600, replace=False)]
    stands = {i: ("other", text[i], "[MASK]")[k % 3] for k, i in enumerate(masked)}
    html = preview(words, masked=masked, replacement=stands, global_=masked)
    body = html[html.index("display:grid;grid-template-columns:repeat(auto-fit,minmax(390px") :]
    assert (body.count("<mark>"), body.count("→"), body.count("<i>=</i>")) == (600, 200, 200)
    assert "hidden behind [MASK]: the word to give back (200)" in html
    assert "masked, but left as it is (200)" in html
    assert headline(html)["masked"][0] == headline(html)["global"][0] == "600"
    assert html.count("<details>") == 4
    assert "914 more tokens" in html  # 1,024 with both special tokens, less 110 in sight
    assert len(html) < 120_000
    assert " ".join(blocks(html)).count("w1021") == 4
    assert "<details>" not in preview([["word"] * 300, ["word"] * 300])


def test_the_legend_explains_masks_only_where_there_are_some():
    shown, bare = preview(SMALL, **BECAME, global_=[8]), preview(SMALL, global_=[8])
    for meaning in ("hidden behind [MASK]: the word to give back", "masked by a random other word"):
        assert f"{meaning} (1)" in shown
    assert "masked, but left as it is (1)" in shown
    for html in (shown, bare):
        assert "global: sees every token, and is seen by every token (1)" in html
    hidden = preview(SMALL, masked=[2])
    assert "hidden behind" in hidden
    assert not re.search(r"\(0\)|swapped|left as it is", hidden), "what does not occur is not explained"
    assert not re.search("masked|hidden behind", bare)


EVIL = ["</details></div></u><style>*{display:none}</style>", "&lt;i&gt;", "العاصفة"]
EVIL += ["🌊👩‍👩‍👧‍👦", "\u202e", "\x00"]


def test_tokens_of_all_sorts_are_shown():
    html = preview([EVIL, ["x" * 10_000]], masked=[2, 3], replacement={3: EVIL[0]}, global_=[2, 5])
    shown = " ".join(blocks(html))
    assert all(text in shown for text in [*EVIL[:-2], "\u2039U+202E\u203a", "\u2400", "x" * 10_000])
    # dir=auto looks past elements with a direction of their own, so the special token does not decide
    leading = '<div class="cdlm-text" dir="auto"><small dir="ltr">&lt;doc-s&gt;</small> العاصفة'
    assert leading in preview([["العاصفة"], ["b"]])


def fields(**changes):
    given = {"tokens": ["a", "b"], "document": np.array([0, 0]), "replacement": ["[MASK]", None]}
    given |= {"global_": np.zeros(2, bool), "special": np.zeros(2, bool), "starts_word": np.ones(2, bool)}
    given |= {"mask_token": "[MASK]", "title": "", "memory_bytes": 0, "cross_document": np.zeros(2, bool)}
    return given | {"documents": [DocumentLoss(title="t")]} | changes


def test_padding_is_shown_once_with_its_number_and_nothing_at_all_can_be_shown():
    def bare(tokens, documents):
        special = np.array([token != "a" for token in tokens], bool)
        none, replacement = np.zeros(len(tokens), bool), [None] * len(tokens)
        more = {"global_": none, "special": special, "starts_word": none, "replacement": replacement}
        places = np.where(special, -1, 0).astype(int)
        return PackedPreview(**fields(tokens=tokens, document=places, documents=documents, **more))

    shown = bare(["[CLS]", "a", "[SEP]", *["[PAD]"] * 5], [DocumentLoss(title="a")])
    assert blocks(shown._repr_html_()) == ["[CLS]", "a", "[SEP] [PAD] \u00d7 5"]
    assert repr(shown) == "PackedPreview(8 tokens, 1 documents, 0 masked, 0 global)"
    assert headline(bare([], [])._repr_html_())["tokens"] == ("0", "0 of them text")


def bars(flags):
    """Heights of the bars of the only lane."""
    svg = packed.overview_svg(np.zeros(len(flags), int), [("masked", np.array(flags, bool), "#e69f00")])
    path = next(e for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("path"))
    return [float(height) for height in re.findall(r"v-([\d.]+)h", path.get("d"))]


def test_documents_are_numbered_blocks_as_wide_as_they_are_long():
    root = ElementTree.fromstring(packed.overview_svg(np.repeat([-1, 0, 1, -1], [100, 400, 200, 100]), []))
    widths = [float(e.get("width")) + 2 for e in root if e.tag.endswith("rect")]
    assert widths == pytest.approx([856 / 2, 856 / 4], abs=0.1)
    assert [e.text for e in root if e.tag.endswith("text")] == ["documents", "1", "2"]


def test_a_bar_is_as_tall_as_its_share_of_the_fullest_place():
    places = np.arange(BINS * 8)
    assert bars(np.isin(places[: BINS * 4], [0, 1, 2, 3, 8, 9])) == [17, 8.5], "full, and half full"
    assert bars(np.isin(places, [0, 1, 8])) == [17, 8.5], "the fullest has full height"
    assert len(bars([True] * 7)) == 7, "every token of a short sequence has its own"
