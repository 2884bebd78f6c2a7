"""An example of paragraph pre-training as a table of its sentences."""

import re

import numpy as np
import pytest

from cdlm_lab.widgets.packed import MarkedTokens, ParagraphExampleView, TaskSentence, paragraph_example_html

# [CLS] a mill burned [SEP] nobody <was> hurt [SEP] the cup
TOKENS = ["[CLS]", "a", "mill", "burned", "[SEP]", "nobody", "<was>", "hurt", "[SEP]", "the", "cup"]
READ = {2: "[MASK]", 6: "saw", 9: "the"}  # hidden, swapped, kept
SENTENCES = [
    TaskSentence(source="this paragraph", document="d1", label=None),
    TaskSentence(source="same paragraph", document="d1", label=1, cut=1234),
    TaskSentence(source="other document", document="<i>d2</i>", label=0),
]


def view(
    sentences=tuple(SENTENCES), numbers=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2), title=""
) -> ParagraphExampleView:
    masked = np.isin(np.arange(len(TOKENS)), list(READ))
    marked = MarkedTokens(
        tokens=TOKENS,
        starts_word=np.ones(len(TOKENS), dtype=bool),
        masked=masked,
        replacement=[READ.get(place) for place in range(len(TOKENS))],
        mask_token="[MASK]",
        global_=np.zeros(len(TOKENS), dtype=bool),
        special=np.array([token.startswith("[") for token in TOKENS]),
        cross_document=np.zeros(len(TOKENS), dtype=bool),
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
        SENTENCES[0],
        TaskSentence(source="same paragraph", document="d1", label=1, probability=0.62),
        TaskSentence(source="other document", document="d2", label=0, probability=0.0),
    ]
    html = paragraph_example_html(view(asked))
    assert [row[3] for row in cells(html)] == [[], ["62%"], ["0%"]]
    assert "probability" in html
    assert "probability" not in paragraph_example_html(view())


def test_texts_are_no_markup() -> None:
    html = view(title="<b>x</b>")._repr_html_()
    assert "&lt;i&gt;d2&lt;/i&gt;" in html
    assert "<b>x</b>" not in html


def test_a_sentence_without_tokens_has_an_empty_row() -> None:
    rows = cells(paragraph_example_html(view([*SENTENCES, SENTENCES[2]])))
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
