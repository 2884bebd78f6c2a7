"""What goes to the browser and what comes back from it."""

import base64
from dataclasses import replace

import numpy as np
import pytest

from cdlm_lab.explorer.reading import Panel, Prediction, Selection
from cdlm_lab.explorer.widget.content import ShownDocument, as_json, packed, selection_from_browser

DOCUMENT = ShownDocument(
    name="a",
    words=("He", "did", "n't", ",", "she", "said", "."),
    sentences=((0, 4), (4, 7)),
    mentions=((4, 5, "her"),),
)
THERE = {"sizes": [7, 3], "layers": 2, "heads": 4}


def test_a_document_as_the_browser_has_it():
    values = DOCUMENT.for_browser()
    assert values["gaps"] == "0100110"
    assert values["counts"] == "1110110"
    assert values["sentences"] == [[0, 4], [4, 7]]
    assert values["mentions"] == [[4, 5, "her"]]

    document = replace(DOCUMENT, name="\u202ea", words=("<script>", "\u202e", "\x00", "é", "🙂", "a", "b"))
    values = document.for_browser()
    assert values["words"] == ["<script>", "\u2039U+202E\u203a", "\u2400", "é", "🙂", "a", "b"]
    assert values["name"] == "\u2039U+202E\u203aa"


def test_a_selection_comes_back_as_it_went():
    selection = Selection(
        source=(0, 1, 3), target=(1, 0, 2), source_global=False, extra_global=((1, 2, 3),),
        masked=((0, 5, 6),), layer=1, heads=(0, 3), direction="from", reduce="max",
        edits=((1, 2, "of two"), (0, 0, "<b>")),
    )  # fmt: skip
    assert selection_from_browser(as_json(selection), **THERE) == selection
    assert selection_from_browser(as_json(Selection()), **THERE) == Selection()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": [0, 5, 8]}, "no words 5 to 8 of document 0"),
        ({"source": [2, 0, 1]}, "of document 2"),
        ({"target": [0, 3, 3]}, "no words 3 to 3"),
        ({"extra_global": [[-1, 0, 1]]}, "of document -1"),
        ({"layer": 2}, "no layer 3 of 2"),
        ({"heads": [0, 4]}, "not among the 4"),
        ({"heads": []}, "not among the 4"),
        ({"direction": "up"}, "direction: Input should be 'both', 'from' or 'to', not 'up'"),
        ({"reduce": "median"}, "reduce: Input should be 'mean' or 'max', not 'median'"),
        ({"edits": [[0, 7, "x"]]}, "no words 7 to 8 of document 0"),
        ({"edits": [[0, 1, " "]]}, "in place of a word write 1 to 60 characters"),
        ({"edits": [[0, 1, "x" * 61]]}, "in place of a word write 1 to 60"),
        ({"source": "abc"}, "source: .*, not 'abc'"),
        ({"layer": None}, "layer: .*, not None"),
    ],
)
def test_what_is_not_there_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        selection_from_browser(as_json(Selection()) | change, **THERE)


def test_numbers_are_little_endian_float32():
    assert base64.b64decode(packed(np.array([[1.0, -2.5]]))) == b"\x00\x00\x80?\x00\x00 \xc0"


def test_a_panel_as_the_browser_has_it():
    panel = Panel(
        name="CDLM", scores=np.array([1.0, 2.0]), ranks=np.array([0.0, 100.0]), reach=np.array([True, False]),
        read=np.array([True, True]),
        target_rank=12.5,
        predictions=(Prediction(span=(0, 1, 2), truth_probability=0.25, top=(("<b>", 0.5),), pieces=3),),
    )  # fmt: skip
    values = as_json(panel)
    assert base64.b64decode(values["reach"]) == b"\x01\x00"
    assert base64.b64decode(values["read"]) == b"\x01\x01"
    assert values["target_rank"] == 12.5
    assert values["before"] is None
    assert as_json(replace(panel, before=panel))["before"] == values
    (prediction,) = values["predictions"]
    assert prediction == {"span": [0, 1, 2], "truth_probability": 0.25, "top": [["<b>", 0.5]], "pieces": 3}
