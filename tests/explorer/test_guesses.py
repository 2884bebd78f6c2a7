"""What two models take hidden words for, as notebook 02 shows it."""

import pytest

from cdlm_lab.explorer import guesses


def test_a_hidden_piece_stands_in_brackets_and_the_border_of_documents_is_a_sign(
    monkeypatch: pytest.MonkeyPatch,
):
    best = {"local-cdlm": ("x", 0.5), "cdlm": (" G", 0.9)}
    one = guesses.Guess(before="<s><doc-s> A.</doc-s><doc-s> B. by", hidden=" G", after="relara", best=best)
    monkeypatch.setattr(guesses, "guesses", lambda run: [one])
    shown = guesses.guesses_view(None).text
    assert "A. \u00b6 B. by [G]relara\u2026" in shown
    assert "\u2717 x (50%)" in shown
    assert "\u2713 G (90%)" in " ".join(shown.split())
