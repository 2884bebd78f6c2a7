"""Documents cut to whole sentences around some words."""

import numpy as np
import pytest

from cdlm_lab.examples.packing import document_sequence
from cdlm_lab.examples.tokens import encode_document, from_tokenizer
from cdlm_lab.experiments.attention_analysis.excerpts import excerpts


@pytest.mark.parametrize("max_length", [120, 300, 700, 5000])
@pytest.mark.parametrize("spans", [[(0, 0)] * 3, [(100, 102), (0, 1), (40, 41)]], ids=["none", "some"])
def test_whole_sentences_around_the_words_that_fit_and_no_more_would(documents, loaded, max_length, spans):
    ((_, tokenizer),) = loaded.values()
    cut = excerpts(documents, [tokenizer], max_length=max_length, around=spans)
    for (part, first), document, span in zip(cut, documents, spans, strict=True):
        last = first + len(part.tokens)
        assert part.tokens == document.tokens[first:last]
        assert first in {start for start, _ in document.sentences}
        assert last in {end for _, end in document.sentences}
        assert first <= span[0]
        assert span[1] <= last
        inside = [one for one in document.mentions if first <= one.tokens[0] and one.tokens[1] <= last]
        assert [part.text_of(one) for one in part.mentions] == [document.text_of(one) for one in inside]
    encoded = [encode_document(part, tokenizer) for part, _ in cut]
    sequence = document_sequence(encoded, special=from_tokenizer(tokenizer), max_length=max_length)
    longest = max(
        np.diff(encode_document(one, tokenizer).starts[[s for s, _ in one.sentences]]).max()
        for one in documents
    )
    if max_length > 4 * longest:
        assert sequence.lost_tokens == (0, 0, 0)
        if any(len(part.tokens) < len(one.tokens) for (part, _), one in zip(cut, documents, strict=True)):
            assert len(sequence.input_ids) > max_length - 3 * 2 * longest
    if max_length == 5000:
        assert [part for part, _ in cut] == list(documents)
