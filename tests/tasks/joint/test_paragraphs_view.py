"""Views of paragraph pretraining: an example, and the course of both losses."""

import math

import numpy as np
import pytest
from shown_reads import cells_of, plain, words_of

from cdlm_lab.tasks.joint.paragraphs_view import example_html, pretraining_losses_figure
from cdlm_lab.views import packed

# [CLS] a mill burned [SEP] nobody <was> hurt [SEP] the cup
TASK_TOKENS = ["[CLS]", "a", "mill", "burned", "[SEP]", "nobody", "<was>", "hurt", "[SEP]", "the", "cup"]
REPLACED = {2: "[MASK]", 6: "saw", 9: "the"}  # hidden, swapped, kept
TASK_SENTENCES = [
    ("this paragraph", "d1", None, 0, None),
    ("same paragraph", "d1", 1, 1234, None),
    ("other document", "<i>d2</i>", 0, 0, None),
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
        cross_document=np.zeros(len(TASK_TOKENS), dtype=bool),
    )
    return example_html(marked, np.array(numbers), sentences, title="")


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
    asked = [("", "d", 1, 0, probability) for probability in (0.62, 0.0)]
    judged = view([TASK_SENTENCES[0], *asked])
    assert [row[3] for row in cells_of(judged)] == ["", "62%", "0%"], "a model was asked"
    assert "probability" in judged


RECORDS = [
    {"step": 10, "loss": 5.5, "loss_mlm": 5.0, "loss_mspp": 0.5},
    {"step": 20, "eval_loss": 4.8, "eval_loss_mlm": 4.4, "eval_loss_mspp": 0.4},
    {"step": 20, "loss": 4.3, "loss_mlm": 4.0, "loss_mspp": None},
    {"step": 30, "learning_rate": 0.1},
]


def test_a_panel_for_each_loss_with_training_and_validation():
    figure = pretraining_losses_figure(RECORDS, right=0.2)
    found = {(trace.name, trace.yaxis): (list(trace.x), list(trace.y)) for trace in figure.data}
    assert found == {
        # span 4: (0.75 * 5 + 4) / 1.75
        ("training, smoothed", "y2"): ([10, 20], [5.0, pytest.approx(7.75 / 1.75)]),
        ("validation", "y2"): ([20], [4.4]),
        ("training, smoothed", "y"): ([10], [0.5]),
        ("validation", "y"): ([20], [0.4]),
    }
    (line,) = figure.layout.shapes  # what knowing only the share of right candidates costs
    assert line.yref == "y"
    assert line.y0 == line.y1 == pytest.approx(0.2 * math.log(5) + 0.8 * math.log(1.25))
    unmasked = [record | {"loss_mlm": 0.0, "eval_loss_mlm": 0.0} for record in RECORDS]
    assert {trace.yaxis for trace in pretraining_losses_figure(unmasked, right=0.2).data} == {"y"}
    long = [{"step": step, "loss_mlm": 1.0} for step in range(5000)]
    line = pretraining_losses_figure(long, right=0.2).data[0]
    assert (len(line.x), line.x[0], line.x[-1]) == (220, 0, 4999)
