"""Documents pasted into a box: headings, texts, and every complaint."""

import re

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.data.typed_documents import filled_lines, first_and_others, pasted_documents

TWO = """
== Kiss and Tell ==
A film of 1945.
It stars <b>Shirley Temple</b>.

==Shirley   Temple ==

She was an envoy.  Later a == sign.
"""


def test_title_and_text_of_each_document():
    assert pasted_documents(TWO) == [
        ("Kiss and Tell", "A film of 1945.\nIt stars <b>Shirley Temple</b>."),
        ("Shirley Temple", "She was an envoy.  Later a == sign."),
    ]


def test_a_text_without_headings_is_one_document():
    assert pasted_documents("\n One.\n\nTwo = 2. \n") == [("document 1", "One.\n\nTwo = 2.")]


def test_lines_of_windows_and_a_byte_order_mark():
    assert pasted_documents("\ufeff== a ==\r\nOne.\r\nTwo.\r\n") == [("a", "One.\nTwo.")]
    assert pasted_documents("One.\r\n\r\nTwo.\r\n") == [("document 1", "One.\n\nTwo.")]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (" \n", 1, "the text is empty; write or paste a document"),
        ("\nOne.\n== a ==\nTwo.", 2, "text before the first heading; write a heading above it: == title =="),
        ("== a\nOne.", 1, "but == at its end is missing; write it as == title =="),
        ("== a ==\nOne.\n== ==\nTwo.", 3, "no title; write it as == title =="),
        ("====\nOne.", 1, "no title"),
        ("== a ==\nOne.\n==  a==\nTwo.", 3, "a document a begins in line 1 already; name them apart"),
        ("== a ==\n\n== b ==\nTwo.", 1, "the document a has no text; write some, or leave the document out"),
        ("== a ==\nOne.\n== b ==", 3, "the document b has no text"),
        ("== a ==\nOne\ud800.", 2, "half a character (U+D800); delete it and type it again"),
    ],
)
def test_complaints_name_the_line(text: str, line: int, message: str):
    with pytest.raises(DataError, match=rf"^documents:{line}: field .*{re.escape(message)}"):
        pasted_documents(text)


def test_a_first_line_and_others():
    text = "\ufeff\n Who? \r\n\n  One.\r\nTwo: x = y \n"
    assert filled_lines(text, source="box", remedy="write") == ["Who?", "One.", "Two: x = y"]
    words = {"source": "q.txt", "first": "a question", "other": "candidate"}
    assert first_and_others(text, **words) == ("Who?", "One.\nTwo: x = y")
    remedy = "write a question on the first line and one candidate on each line below"
    with pytest.raises(DataError, match=rf"q\.txt.*there is a question but no candidate; {remedy}"):
        first_and_others("\nWho?\n", **words)
    with pytest.raises(DataError, match=rf"q\.txt.*the text is empty; {remedy}"):
        first_and_others(" \n", **words)
