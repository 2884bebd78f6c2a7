"""Views of paragraph pretraining: an example, and the course of both losses."""

import math

import numpy as np
import pytest
from shown_reads import cells_of, plain, words_of

from cdlm_lab.tasks.joint.pretraining_view import (
    ParagraphExampleView,
    TaskSentence,
    pretraining_losses_figure,
)
from cdlm_lab.views import html, packed

# [CLS] a mill burned [SEP] nobody <was> hurt [SEP] the cup
TASK_TOKENS = ["[CLS]", "a", "mill", "burned", "[SEP]", "nobody", "<was>", "hurt", "[SEP]", "the", "cup"]
REPLACED = {2: "[MASK]", 6: "saw", 9: "the"}  # hidden, swapped, kept
TASK_SENTENCES = [
    TaskSentence(source="this paragraph", document="d1", label=None),
    TaskSentence(source="same paragraph", document="d1", label=1, cut=1234),
    TaskSentence(source="other document", document="<i>d2</i>", label=0),
]


def view(sentences=TASK_SENTENCES, numbers=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2)):
    """HTML of an example."""
    marked = packed.MarkedTokens(
        tokens=TASK_TOKENS,
        starts_word=np.ones(len(TASK_TOKENS), dtype=bool),
        replacement=[REPLACED.get(place) for place in range(len(TASK_TOKENS))],
        mask_token="[MASK]",
        global_=np.zeros(len(TASK_TOKENS), dtype=bool),
        special=np.array([token.startswith("[") for token in TASK_TOKENS]),
    )
    given = {"sentence": np.array(numbers), "sentences": sentences, "title": ""}
    return ParagraphExampleView(marked=marked, **given)._repr_html_()


def test_a_row_says_where_a_sentence_comes_from_what_it_is_and_what_is_read():
    html = view([*TASK_SENTENCES, TASK_SENTENCES[2]])
    first, second, third, last = cells_of(html, words_of)
    assert first == ["s 0", "this paragraph d1", "", "[CLS] a mill burned", "4"]
    assert second[1:3] == ["same paragraph d1", "\u2713 1"]
    assert second[4] == "4 1,234 cut"
    assert third[1:3] == ["other document <i>d2</i>", "0"]
    assert last[3:] == ["", "0"], "a sentence without tokens"
    assert "<mark>mill</mark>" in html
    assert "<mark>&lt;was&gt;<i>\u2192<bdi>saw</bdi></i></mark>" in html, "swapped"
    assert "<mark>the<i>=</i></mark>" in html, "kept"
    assert [plain(html).count(f"{words} (1)") for words in ("give back", "other word", "as it is")] == [1] * 3
    assert "probability" not in html
    asked = [TaskSentence(source="", document="d", label=1, probability=p) for p in (0.62, 0.0)]
    judged = view([TASK_SENTENCES[0], *asked])
    assert [row[3] for row in cells_of(judged)] == ["", "62%", "0%"], "a model was asked"
    assert "probability" in judged


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"label": 2}, "the label is 2"),
        ({"label": 0, "cut": -1}, "-1 tokens are cut"),
        ({"label": 0, "probability": 1.5}, "the probability is 1.5"),
    ],
)
def test_sentences_and_tokens_that_make_no_sense_are_refused(fault, message):
    with pytest.raises(ValueError, match=message):
        TaskSentence(source="same document", document="d", **fault)
    with pytest.raises(ValueError, match="a token is of sentence 3; there are 3"):
        view(numbers=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3))
    with pytest.raises(ValueError, match="there are 11 tokens, but the sentences of 2"):
        view(numbers=(0, 1))


RECORDS = [
    {"step": 10, "loss": 5.5, "loss_mlm": 5.0, "loss_mspp": 0.5},
    {"step": 20, "eval_loss": 4.8, "eval_loss_mlm": 4.4, "eval_loss_mspp": 0.4},
    {"step": 20, "loss": 4.3, "loss_mlm": 4.0, "loss_mspp": None},
    {"step": 30, "learning_rate": 0.1},
]


def test_a_panel_for_each_loss_with_training_and_validation():
    figure = pretraining_losses_figure(RECORDS, right=0.2)
    assert [(trace.name, trace.yaxis, trace.x, trace.showlegend) for trace in figure.data] == [
        ("training, smoothed", "y", (10, 20), True),
        ("validation", "y", (20,), True),
        ("training, smoothed", "y2", (10,), False),
        ("validation", "y2", (20,), False),
    ]
    # span 4: (0.75 * 5 + 4) / 1.75
    assert [trace.y for trace in figure.data] == [(5.0, round(7.75 / 1.75, 4)), (4.4,), (0.5,), (0.4,)]
    assert [trace.line.color for trace in figure.data] == [html.MASKED, html.GLOBAL] * 2
    titles = figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text, figure.layout.xaxis2.title.text
    assert titles == ("nats for each masked token", "nats for each candidate", "optimiser step")
    (line,) = figure.layout.shapes  # what knowing only the share of right candidates costs
    assert (line.yref, line.line.dash) == ("y2", "dash")
    assert line.y0 == line.y1 == pytest.approx(0.2 * math.log(5) + 0.8 * math.log(1.25))
    texts = [note.text for note in figure.layout.annotations]
    assert texts == [
        "masked words (MLM)",
        "candidates of the same paragraph (MSPP)",
        "always guessing 20%: 0.50",
    ]
    validated = pretraining_losses_figure(RECORDS[1:2], right=0.2)
    assert [trace.x or () for trace in validated.data] == [(), (20,), (), (20,)]


def test_no_panel_for_masked_words_where_none_were_masked():
    unmasked = [record | {"loss_mlm": 0.0, "eval_loss_mlm": 0.0} for record in RECORDS]
    figure = pretraining_losses_figure(unmasked, right=0.2)
    assert [(trace.name, trace.yaxis, trace.showlegend) for trace in figure.data] == [
        ("training, smoothed", "y", True),
        ("validation", "y", True),
    ]
    assert figure.layout.yaxis.title.text == "nats for each candidate"
    assert figure.layout.title.text == "The loss of pretraining"


def test_long_courses_are_thinned_and_losses_that_make_no_sense_are_refused():
    long = [{"step": step, "loss_mlm": 1.0} for step in range(5000)]
    line = pretraining_losses_figure(long, right=0.2).data[0]
    assert (len(line.x), line.x[0], line.x[-1]) == (220, 0, 4999)
    with pytest.raises(ValueError, match="neither loss has numbers"):
        pretraining_losses_figure(RECORDS[3:], right=0.2)
    for wrong in (0.0, 1.0, 20.0, float("nan")):
        with pytest.raises(ValueError, match=r"right is .*; the share of right candidates lies in"):
            pretraining_losses_figure(RECORDS, right=wrong)
