"""The coloured preview of one packed example, its overview, and an example of paragraph pretraining."""

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

from cdlm_lab.widgets.packed import (
    BINS,
    DocumentLoss,
    MarkedTokens,
    PackedPreview,
    ParagraphExampleView,
    TaskSentence,
    overview_svg,
    packed_example_html,
    paragraph_example_html,
)

ALLOWED_TAGS = {
    *("div", "style", "img", "bdi", "mark", "u", "b", "small", "i", "span", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Reader(HTMLParser):
    """Collects tags, attributes and what is written inside the text blocks of the preview."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.blocks, self.depth, self.style = [], [], [], 0, False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.style = tag == "style"
        if dict(attrs).get("class") == "cdlm-text":
            self.blocks.append("")
            self.depth = 1
        elif self.depth and tag == "div":
            self.depth += 1

    def handle_endtag(self, tag):
        self.style = False
        if self.depth and tag == "div":
            self.depth -= 1

    def handle_data(self, data):
        if self.depth:
            self.blocks[-1] += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def preview(
    texts, *, masked=(), replacement=None, global_=(), cross=(), starts_word=None, losses=None, **more
):
    """A preview of documents given as lists of tokens, in the layout [CLS] <doc-s> .. </doc-s> .. [SEP];
    `masked`, `global_` and `cross` are positions in the sequence."""
    tokens, document, special = ["[CLS]"], [-1], [True]
    for number, words in enumerate(texts):
        tokens += ["<doc-s>", *words, "</doc-s>"]
        document += [number] * (len(words) + 2)
        special += [True, *[False] * len(words), True]
    tokens, document, special = [*tokens, "[SEP]"], [*document, -1], [*special, True]

    def flags(positions):
        return np.isin(np.arange(len(tokens)), list(positions))

    stands = dict.fromkeys(masked, "[MASK]") | (replacement or {})
    return PackedPreview(
        tokens=tokens,
        document=np.array(document),
        masked=flags(masked),
        replacement=[stands.get(i) for i in range(len(tokens))],
        global_=flags(global_),
        special=np.array(special),
        cross_document=flags(cross),
        starts_word=starts_word,
        mask_token="[MASK]",
        documents=losses or [DocumentLoss(title=f"Report {n}", kept=len(t)) for n, t in enumerate(texts)],
        **more,
    )


# positions:     0     1       2    3      4      5        6       7       8      9       10
#              [CLS] <doc-s>  The  storm  hit  </doc-s> <doc-s>  Storm  closes </doc-s> [SEP]
SMALL = [["The", "storm", "hit"], ["Storm", "closes"]]


def text_of(html: str) -> list[str]:
    return read(html).blocks


def test_text_is_shown_in_order_with_spaces():
    assert text_of(preview(SMALL)._repr_html_()) == [
        "[CLS]",
        "<doc-s> The storm hit </doc-s>",
        "<doc-s> Storm closes </doc-s>",
        "[SEP]",
    ]


PIECES = np.isin(np.arange(11), [3, 4], invert=True)


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ({"starts_word": PIECES}, "</small> Thestormhit <small"),
        ({"starts_word": PIECES, "masked": [3], "global_": [3, 4]}, "The<u><mark>storm</mark>hit</u> <small"),
        ({"masked": [3], "global_": [4], "cross": [7]}, "The <mark>storm</mark> <u>hit</u>"),
        ({"cross": [7]}, "<b>Storm</b> closes"),
        ({"masked": [3], "global_": [3], "cross": [3]}, "<u><mark><b>storm</b></mark></u>"),
        (
            {"masked": [3], "global_": range(1, 6)},
            '<u><small dir="ltr">&lt;doc-s&gt;</small> The <mark>storm</mark> hit <small',
        ),
        (
            {"masked": [2, 3, 4], "replacement": {3: "cheese", 4: "hit"}},
            "<mark>The</mark> <mark>storm<i>→<bdi>cheese</bdi></i></mark> <mark>hit<i>=</i></mark>",
        ),
    ],
)
def test_each_property_has_its_mark_and_all_can_meet(marked, shown):
    assert shown in preview(SMALL, **marked)._repr_html_()


def headline(html: str) -> dict[str, tuple[str, str]]:
    tile = r">([a-z ]+)</div>" r'<div style="font-size:19px[^"]*">([^<]*)</div>' r"<div[^>]*>([^<]*)</div>"
    return {name: (value, note) for name, value, note in re.findall(tile, html)}


def test_headline_numbers_are_those_of_the_arrays():
    losses = [
        DocumentLoss(title="a", kept=3, cut=5, reason="no room"),
        DocumentLoss(title="b", kept=2),
        DocumentLoss(title="c", kept=0, cut=10, reason="no room"),
    ]
    shown = headline(
        preview(
            SMALL, masked=[3, 7], global_=[3, 7, 8], losses=losses, memory_bytes=2.1e9, step_seconds=95
        )._repr_html_()
    )
    assert shown == {
        "tokens": ("11", "5 of them text"),
        "documents": ("2", "1 whole, 1 cut short, 1 left out"),
        "masked": ("2", "40.0% of the text"),
        "global": ("3", "27.3% of all tokens"),
        "text cut": ("15", "75.0% of all text"),
        "memory": ("2.1 GB", "estimated peak"),
        "time": ("1 min 35 s", "estimated a step"),
    }


def test_memory_and_time_are_left_out_where_unknown():
    assert {"memory", "time"}.isdisjoint(headline(preview(SMALL)._repr_html_()))


def test_counts_at_random_equal_the_number_of_marks():
    random = np.random.default_rng(0)
    words = [[f"w{i}" for i in range(900)] for _ in range(4)]
    text = {1 + 902 * n + 1 + i: word for n in range(4) for i, word in enumerate(words[n])}  # place -> word
    masked = [int(i) for i in random.choice(list(text), 450, replace=False)]
    stands = {i: ("other", text[i], "[MASK]")[k % 3] for k, i in enumerate(masked)}
    html = preview(words, masked=masked, replacement=stands, global_=masked)._repr_html_()
    body = html[html.index("display:grid;grid-template-columns:repeat(auto-fit,minmax(340px") :]
    assert body.count("<mark>") == 450
    assert body.count("→") == 150
    assert body.count("<i>=</i>") == 150
    for meaning, count in (
        ("hidden behind [MASK]: the word to give back", 150),
        ("masked, but left as it is", 150),
    ):
        assert f"{meaning} ({count})" in html
    assert headline(html)["masked"][0] == headline(html)["global"][0] == "450"


def test_the_legend_explains_masks_only_where_there_are_some():
    shown = preview(SMALL, masked=[2, 3, 4], replacement={3: "cheese", 4: "hit"}, global_=[8])._repr_html_()
    for meaning in (
        "hidden behind [MASK]: the word to give back (1)",
        "masked by a random other word (1)",
        "masked, but left as it is (1)",
        "global: sees every token, and is seen by every token (1)",
    ):
        assert meaning in shown
    bare = preview(SMALL, global_=[8])._repr_html_()
    assert "global: sees every token, and is seen by every token (1)" in bare
    assert "masked" not in bare
    assert "hidden behind" not in bare


def test_table_says_what_was_cut_and_why():
    losses = [
        DocumentLoss(title="a", kept=3, cut=1, reason="the length was full"),
        DocumentLoss(title="b", kept=2),
    ]
    html = preview(SMALL, losses=losses)._repr_html_()
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert [re.sub("<[^>]*>", "", cell) for cell in cells] == [
        *("1&ensp;a", "3", "1", "25.0%", "the length was full"),
        *("2&ensp;b", "2", "–", "–", ""),
    ]


EVIL = [
    "<script>alert(1)</script>",
    '"><img',
    "src=x",
    "onerror=alert(1)>",
    "</details></div></u><style>*{display:none}</style>",
    "&lt;i&gt;",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "\u202e",
    "العاصفة",
    "🌊👩‍👩‍👧‍👦",
    "\x00",
]


@pytest.fixture(scope="module")
def evil_html():
    losses = [
        DocumentLoss(title=" ".join(EVIL), kept=12, cut=1, reason=" ".join(EVIL)),
        DocumentLoss(title="b", kept=1),
    ]
    shown = preview(
        [EVIL, ["x" * 10_000]],
        masked=[2, 3, 4, 6, 11],
        replacement={2: EVIL[4], 3: EVIL[1], 6: EVIL[4]},
        global_=[2, 5, 6],
        cross=[2, 6, 7],
        losses=losses,
        title=EVIL[0],
    )
    return shown._repr_html_()


def test_untrusted_text_is_text_and_no_element_or_attribute(evil_html):
    found = read(evil_html)
    assert set(found.tags) <= ALLOWED_TAGS
    assert found.tags.count("style") == 1
    opened = [tag for tag in found.tags if tag != "img"]
    assert sorted(opened) == sorted(re.findall(r"</([a-z]+)>", evil_html)), "tags are balanced"
    assert {name for name, _ in found.attributes} <= {"class", "style", "dir", "alt", "src"}
    sources = [value.split(",")[0] for name, value in found.attributes if name == "src"]
    assert sources == ["data:image/svg+xml;base64"]
    shown = " ".join(found.blocks)
    for text in [*EVIL[:8], EVIL[9], EVIL[10], "\u2039U+202E\u203a", "\u2400", "x" * 10_000]:
        assert text in shown


def test_a_document_that_runs_right_to_left_is_recognised():
    html = preview([["العاصفة"], ["b"]])._repr_html_()
    # dir=auto looks past elements with a direction of their own, so the special token does not decide
    assert '<div class="cdlm-text" dir="auto"><small dir="ltr">&lt;doc-s&gt;</small> العاصفة' in html


def test_a_long_example_is_folded_and_small():
    random = np.random.default_rng(1)
    words = [["word"] * 1022 for _ in range(4)]
    text = [i for i in range(1, 4097) if (i - 1) % 1024 not in (0, 1023)]
    masked = [int(i) for i in random.choice(text, 613, replace=False)]
    html = preview(words, masked=masked, global_=masked)._repr_html_()
    assert html.count("<details>") == 4
    assert "914 more tokens" in html  # 1,024 with both special tokens, less 110 in sight
    assert len(html) < 120_000
    assert " ".join(read(html).blocks).count("word") == 4 * 1022


def test_a_short_example_is_not_folded():
    assert "<details>" not in preview([["word"] * 300, ["word"] * 300])._repr_html_()


def test_padding_is_shown_once_with_its_number_and_nothing_at_all_can_be_shown():
    def bare(tokens, special, documents):
        none = np.zeros(len(tokens), bool)
        return PackedPreview(
            tokens=tokens,
            document=np.where(special, -1, 0).astype(int),
            masked=none,
            replacement=[None] * len(tokens),
            global_=none,
            special=np.array(special, bool),
            documents=documents,
        )

    padded = ["[CLS]", "a", "[SEP]", *["[PAD]"] * 5]
    shown = bare(padded, [token != "a" for token in padded], [DocumentLoss(title="a", kept=1)])
    assert text_of(packed_example_html(shown)) == ["[CLS]", "a", "[SEP] [PAD] \u00d7 5"]
    assert headline(packed_example_html(bare([], [], [])))["tokens"] == ("0", "0 of them text")


def _fields(**changes):
    fields = {
        "tokens": ["a", "b"],
        "document": np.array([0, 0]),
        "masked": np.array([True, False]),
        "replacement": ["[MASK]", None],
        "global_": np.array([False, False]),
        "special": np.array([False, False]),
        "documents": [DocumentLoss(title="t", kept=2)],
    }
    return fields | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"masked": np.array([True])}, r"masked has shape \(1,\), but there are 2 tokens"),
        ({"global_": np.array([0, 1])}, "global_ must be bool"),
        ({"document": np.array([0])}, r"document has shape \(1,\), but there are 2 tokens"),
        ({"document": np.array([0, 1])}, "document number 1 is not one of the 1 documents"),
        ({"replacement": ["[MASK]"]}, "replacement has 1 entries, but there are 2 tokens"),
        ({"replacement": [None, None]}, "token 0 is masked, but replacement"),
        ({"replacement": ["[MASK]", "x"]}, "token 1 is not masked, but replacement"),
        ({"documents": [DocumentLoss(title="t", kept=1)]}, r"documents\[0\].kept is 1, but 2 text tokens"),
        ({"documents": [DocumentLoss(title="t", kept=3)]}, r"documents\[0\].kept is 3, but 2 text tokens"),
        ({"cross_document": np.zeros(3, bool)}, "cross_document has shape"),
        ({"starts_word": np.zeros(3, bool)}, "starts_word has shape"),
    ],
)
def test_fields_that_do_not_fit_are_refused(changes, message):
    PackedPreview(**_fields())
    with pytest.raises(ValueError, match=message):
        PackedPreview(**_fields(**changes))


def test_a_negative_loss_is_refused():
    with pytest.raises(ValueError, match="must not be negative, got 1 and -2"):
        DocumentLoss(title="t", kept=1, cut=-2)


def bars(svg: str) -> list[float]:
    """Heights of the bars of the only lane."""
    path = next(e for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("path"))
    return [float(height) for height in re.findall(r"v-([\d.]+)h", path.get("d"))]


def test_documents_are_numbered_blocks_as_wide_as_they_are_long():
    svg = overview_svg(np.repeat([-1, 0, 1, -1], [100, 400, 200, 100]), [])
    root = ElementTree.fromstring(svg)
    widths = [float(e.get("width")) + 2 for e in root if e.tag.endswith("rect")]
    assert widths == pytest.approx([856 / 2, 856 / 4], abs=0.1)
    assert [e.text for e in root if e.tag.endswith("text")] == ["documents", "1", "2"]


def test_a_bar_is_as_tall_as_its_share():
    flags = np.zeros(BINS * 4, bool)
    flags[:4] = True  # the first place is full
    flags[8:10] = True  # the third is half full
    assert bars(overview_svg(np.zeros(BINS * 4, int), [("masked", flags, "#e69f00")])) == [17, 8.5]


def test_the_fullest_place_has_full_height():
    flags = np.zeros(BINS * 8, bool)
    flags[:2] = True
    flags[8] = True
    assert bars(overview_svg(np.zeros(BINS * 8, int), [("masked", flags, "#e69f00")])) == [17, 8.5]


def test_every_token_of_a_short_sequence_has_its_own_bar():
    assert len(bars(overview_svg(np.zeros(7, int), [("masked", np.ones(7, bool), "red")]))) == 7


def test_a_lane_of_another_length_is_refused():
    with pytest.raises(ValueError, match="lane 'masked' has 2 tokens, document has 3"):
        overview_svg(np.zeros(3, int), [("masked", np.zeros(2, bool), "red")])


# [CLS] a mill burned [SEP] nobody <was> hurt [SEP] the cup
TASK_TOKENS = ["[CLS]", "a", "mill", "burned", "[SEP]", "nobody", "<was>", "hurt", "[SEP]", "the", "cup"]
REPLACED = {2: "[MASK]", 6: "saw", 9: "the"}  # hidden, swapped, kept
TASK_SENTENCES = [
    TaskSentence(source="this paragraph", document="d1", label=None),
    TaskSentence(source="same paragraph", document="d1", label=1, cut=1234),
    TaskSentence(source="other document", document="<i>d2</i>", label=0),
]


def view(
    sentences=tuple(TASK_SENTENCES), numbers=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2), title=""
) -> ParagraphExampleView:
    masked = np.isin(np.arange(len(TASK_TOKENS)), list(REPLACED))
    marked = MarkedTokens(
        tokens=TASK_TOKENS,
        starts_word=np.ones(len(TASK_TOKENS), dtype=bool),
        masked=masked,
        replacement=[REPLACED.get(place) for place in range(len(TASK_TOKENS))],
        mask_token="[MASK]",
        global_=np.zeros(len(TASK_TOKENS), dtype=bool),
        special=np.array([token.startswith("[") for token in TASK_TOKENS]),
        cross_document=np.zeros(len(TASK_TOKENS), dtype=bool),
    )
    return ParagraphExampleView(marked=marked, sentence=np.array(numbers), sentences=sentences, title=title)


def cells(html: str) -> list[list[str]]:
    """The text of the body's cells, row by row."""
    rows = re.findall(r"<tr.*?</tr>", html.partition("<tbody>")[2], flags=re.DOTALL)
    return [
        [re.sub(r"<[^>]*>", " ", cell).split() for cell in re.findall(r"<td.*?</td>", row, flags=re.DOTALL)]
        for row in rows
    ]


def test_a_row_says_where_a_sentence_comes_from_what_it_is_and_what_is_read() -> None:
    first, second, third = cells(paragraph_example_html(view()))
    assert first == [["s", "0"], ["this", "paragraph", "d1"], [], ["[CLS]", "a", "mill", "burned"], ["4"]]
    assert second[1:3] == [["same", "paragraph", "d1"], ["\u2713&nbsp;1"]]
    assert second[4] == ["4", "1,234&nbsp;cut"]
    assert third[2] == ["0"]


def test_masks_are_marked_and_counted_by_what_became_of_them() -> None:
    html = paragraph_example_html(view())
    assert "<mark>mill</mark>" in html
    assert re.search(r"<mark>&lt;was&gt;<i>\u2192<bdi>saw</bdi></i></mark>", html), "swapped"
    assert "<mark>the<i>=</i></mark>" in html, "kept"
    for words in (
        "hidden behind [MASK]: the word to give back (1)",
        "masked by a random other word (1)",
        "left as it is (1)",
    ):
        assert words in html


def test_probabilities_stand_in_a_column_of_their_own_if_a_model_was_asked() -> None:
    asked = [
        TASK_SENTENCES[0],
        TaskSentence(source="same paragraph", document="d1", label=1, probability=0.62),
        TaskSentence(source="other document", document="d2", label=0, probability=0.0),
    ]
    html = paragraph_example_html(view(asked))
    assert [row[3] for row in cells(html)] == [[], ["62%"], ["0%"]]
    assert "probability" in html
    assert "probability" not in paragraph_example_html(view())


def test_a_sentence_without_tokens_has_an_empty_row() -> None:
    rows = cells(paragraph_example_html(view([*TASK_SENTENCES, TASK_SENTENCES[2]])))
    assert rows[3][3:] == [[], ["0"]]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"label": 2}, "the label is 2"),
        ({"label": 0, "cut": -1}, "-1 tokens are cut"),
        ({"label": 0, "probability": 1.5}, "the probability is 1.5"),
    ],
)
def test_what_cannot_be_is_refused(fault: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TaskSentence(source="same document", document="d", **fault)


def test_tokens_of_no_sentence_are_refused() -> None:
    with pytest.raises(ValueError, match="a token is of sentence 3; there are 3"):
        view(numbers=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3))
    with pytest.raises(ValueError, match="there are 11 tokens, but the sentences of 2"):
        view(numbers=(0, 1))
