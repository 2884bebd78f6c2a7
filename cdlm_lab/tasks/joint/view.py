"""What the views of joint models share: a sequence sentence by sentence, and what of texts is not read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.examples.tokens import encode_pieces
from cdlm_lab.tasks.joint.examples import JointSequence
from cdlm_lab.views.html import cut_in_words
from cdlm_lab.views.packed import MarkedTokens, tokens_html


def ends_cut(name: str, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, *, length: int) -> str:
    """A line on the ends of texts that a model does not read, which takes `length` tokens of each with the
    one in front of it; "" if it reads all."""
    sizes = [len(one) for one in encode_pieces(texts, tokenizer)]
    lost = sum(max(0, size - (length - 1)) for size in sizes)
    policy = f"{name} reads {length - 1} of a sentence"
    return cut_in_words("sentences", lost=lost, of=sum(sizes), policy=policy)


def sentence_rows(
    tokenizer: PreTrainedTokenizerBase, sequence: JointSequence
) -> list[tuple[int, str, str, str]]:
    """For each sentence its number, and as HTML its tokens, how many are read and cut, and its positions."""
    marked, rows = MarkedTokens.of(tokenizer, sequence.input_ids), []
    for number in np.flatnonzero(sequence.starts >= 0).tolist():
        read = np.flatnonzero(sequence.sentence == number).tolist()
        cut = f", {sequence.cut[number]} cut" if sequence.cut[number] else ""
        positions = f"{sequence.position_ids[read[0]]}&ndash;{sequence.position_ids[read[-1]]}"
        rows.append((number, tokens_html(marked, read), f"{len(read)}{cut}", positions))
    return rows
