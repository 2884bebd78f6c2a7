"""The preview shows what the training will read: counts, tokens, losses."""

import numpy as np
import pytest

from cdlm_lab.experiments.pretraining import Prepared, cost_of_step, preview, token_texts


def test_preview_is_the_example(prepared: Prepared) -> None:
    shown, example = preview(prepared, index=1), prepared.train_examples.describe(1)
    assert shown.masked.sum() == (example.labels != -100).sum()
    np.testing.assert_array_equal(shown.global_, shown.masked)
    assert sum(document.cut for document in shown.documents) == sum(example.packed.lost_tokens)
    assert shown.tokens[0] == "<s>"
    replaced = [shown.replacement[i] for i in np.flatnonzero(shown.masked)]
    assert 0.6 < np.mean([text == "<mask>" for text in replaced]) < 0.97, "80% are masks"
    html = shown._repr_html_()
    assert "cdlm on storyworld" in html


def test_preview_names_a_cost(prepared: Prepared) -> None:
    memory, seconds = cost_of_step(prepared)
    # 1.5 million weights, gradients and two moments are 24 MB; activations of 256 tokens are less than 1 GB
    assert 20e6 < memory < 1e9
    assert 1e-3 < seconds < 100


def test_tokens_of_byte_level_bpe(prepared: Prepared) -> None:
    ids = prepared.tokenizer("The mayor", add_special_tokens=True)["input_ids"]
    texts, starts = token_texts(prepared.tokenizer, ids)
    assert texts == ["<s>", "The", "mayor", "</s>"]
    assert starts.tolist() == [True, True, True, True]
    inside = token_texts(prepared.tokenizer, prepared.tokenizer("Qzxv")["input_ids"])[1]
    assert not inside[2:-1].any(), "pieces inside a word start none"


def test_tokens_of_wordpiece() -> None:
    class WordPiece:
        all_special_tokens = ("[CLS]",)

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [["[CLS]", "un", "##seen", "sea"][i] for i in ids]

    texts, starts = token_texts(WordPiece(), [0, 1, 2, 3])
    assert texts == ["[CLS]", "un", "seen", "sea"]
    assert starts.tolist() == [True, True, False, True]


@pytest.mark.parametrize("index", [-1, 8])
def test_an_example_that_is_not_there(prepared: Prepared, index: int) -> None:
    with pytest.raises(IndexError, match="there are 8"):
        preview(prepared, index=index)
