from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from cdlm_lab.examples.tokens import SpecialTokens, from_tokenizer

# 10 ids; 0 1 4 5 8 9 are special, 2 3 6 7 are words
SCATTERED = SpecialTokens(
    start=8, end=9, cls=4, sep=5, pad=0, mask=1, all_special=frozenset({0, 1, 4, 5, 8, 9}), vocabulary_size=10
)


def test_ids_are_the_tokenizers(tokenizer, special):
    names = {name: getattr(special, name) for name in ("start", "end", "cls", "sep", "pad", "mask")}
    texts = dict(zip(names, tokenizer.convert_ids_to_tokens(list(names.values())), strict=True))
    assert texts == {
        "start": "<doc-s>",
        "end": "</doc-s>",
        "cls": "[CLS]",
        "sep": "[SEP]",
        "pad": "[PAD]",
        "mask": "[MASK]",
    }
    assert special.vocabulary_size == 300 + 5 + 2
    assert special.all_special == {*names.values(), tokenizer.unk_token_id}


def test_a_tokenizer_without_document_marks_is_refused():
    bare = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(
            models.WordLevel({"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "[UNK]": 4})
        ),
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
    )
    with pytest.raises(ValueError, match=r"has no <doc-s>: load it with .*load_tokenizer"):
        from_tokenizer(bare)
    bare.add_tokens(["<doc-s>", "</doc-s>"], special_tokens=True)
    bare.mask_token = None
    with pytest.raises(ValueError, match="has no mask token"):
        from_tokenizer(bare)


def test_is_special():
    assert SCATTERED.is_special(np.array([[0, 2, 8], [3, 9, 7]])).tolist() == [
        [True, False, True],
        [False, True, False],
    ]


def test_random_ordinary_ids_are_uniform_and_never_special():
    drawn = SCATTERED.random_ordinary(100_000, generator=np.random.default_rng(1))
    ids, counts = np.unique(drawn, return_counts=True)
    assert ids.tolist() == [2, 3, 6, 7]
    np.testing.assert_allclose(counts / 100_000, 1 / 4, atol=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary_size": 9}, "special token id 9 is outside the vocabulary of 9 ids"),
        ({"mask": 2}, r"mask \(2\) is not among all_special"),
        ({"all_special": frozenset(range(10))}, "all 10 ids of the vocabulary are special"),
    ],
)
def test_inconsistent_ids_are_refused(change, message):
    values = {name: getattr(SCATTERED, name) for name in SpecialTokens.__dataclass_fields__}
    with pytest.raises(ValueError, match=message):
        SpecialTokens(**{**values, **change})


def test_special_ids_are_told_from_all_others():
    ids = np.array([[9, 2, 0], [7, 40, -1]])
    assert SCATTERED.is_special(ids).tolist() == [[True, False, True], [False, False, False]]
    assert SCATTERED.is_special(np.zeros(0, np.int32)).tolist() == []
