"""A question and candidates of one's own, as a person writes them; test_answer_report.py has the rankings to
read."""

from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.experiments.answer_selection import (
    EXAMPLE_CANDIDATES,
    EXAMPLE_QUESTION,
    candidate_lines,
    own_texts,
)


def test_texts_of_ones_own(tmp_path: Path):
    assert own_texts("") == (EXAMPLE_QUESTION, EXAMPLE_CANDIDATES)
    assert len(candidate_lines(EXAMPLE_CANDIDATES)) == 6
    file = tmp_path / "question.txt"
    file.write_text("Who?\n\n  One. \n\nTwo.\n")
    assert own_texts(str(file)) == ("Who?", "One.\nTwo.")
    assert candidate_lines("  One. \n\nTwo.\n") == ["One.", "Two."]
    file.write_text("Who?\n")
    with pytest.raises(DataError, match="there is a question but no candidate; write a question"):
        own_texts(str(file))
    file.write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        own_texts(str(file))
    with pytest.raises(DataError, match="the text is empty; write one candidate on each line"):
        candidate_lines("\n \n")
