"""A claim with its evidence as a model reads it, before the start: where each sentence is cut."""

from __future__ import annotations

import numpy as np

from cdlm_lab.experiments.claim_systems import ClaimSystem
from cdlm_lab.experiments.fact_verification import VerificationRun
from cdlm_lab.experiments.preview import token_texts
from cdlm_lab.widgets.token_text import MarkedTokens, tokens_html


def preview_rows(run: VerificationRun, system: ClaimSystem, *, index: int = 0) -> list[list[str]]:
    """A training claim, then each sentence of its evidence that is read, as cells of HTML: which it is, its
    tokens, how many are read and how many are not.

    Args:
        system: whose; a pairwise one reads the claim with each sentence by itself.
        index: of the claim, in the order of the corpus.
    """
    verifier = run.verifier(system, 0, trained=False)
    examples = verifier.examples([run.claims["train"][index]])
    sequence = examples.describe(0)
    texts, starts_word = token_texts(verifier.tokenizer, sequence.input_ids)
    nothing = np.zeros(len(texts), dtype=bool)
    marked = MarkedTokens(
        texts=texts,
        starts_word=starts_word,
        masked=nothing,
        replacement=[None] * len(texts),
        mask_token="",
        global_=nothing,
        special=examples.special.is_special(sequence.input_ids),
        cross_document=nothing,
    )
    rows = []
    for number in np.flatnonzero(sequence.starts >= 0).tolist():
        read = np.flatnonzero(sequence.sentence == number).tolist()
        cut = int(sequence.cut[number])
        name = f"evidence {number}" if number else "claim"
        rows.append([name, tokens_html(marked, read), f"{len(read)}, {cut} cut" if cut else f"{len(read)}"])
    return rows
