"""What two models of notebook 02 take hidden words for, piece by piece, where only another document states
them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import torch

from cdlm_lab.encoders.encoder import load_tokenizer
from cdlm_lab.encoders.precision import computing_in
from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.examples.collate import Collate
from cdlm_lab.tasks.pretraining.perplexity import HEADLINE, PerplexityRun
from cdlm_lab.views.html import SIGNS, escaped
from cdlm_lab.views.tables import Shown, html_table

_ROUND = 60  # characters of text on either side of a hidden piece
_BOUNDARY = re.compile(r"(?:</?(?:doc-)?s>)+")  # tokens at the ends of documents
_SHOWN = 4  # hidden pieces that are shown of those that the last model finds, and of those that it does not


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A hidden piece of a word that only another document states, and what two models take it for."""

    before: str  # the text of the cluster before it, and after it
    after: str
    hidden: str
    best: dict[str, tuple[str, float]]  # variant -> the piece that it finds most probable, its probability


def guesses(run: PerplexityRun, *, clusters: int = 6) -> list[Guess]:
    """What the variants of HEADLINE (or the last two of the run) guess for the hidden pieces of the first
    clusters that can be recovered only from another document."""
    names = [name for name in HEADLINE[::-1] if name in run.variants]
    names = names if len(names) > 1 else [*run.variants][-2:]
    decode = load_tokenizer(next(iter(run.variants.values()))).decode
    found: dict[tuple[int, int], Guess] = {}
    for name, model, examples, _ in run.models_and_examples():
        for number in range(min(clusters, len(examples)) if name in names else 0):
            batch = Collate(pad_token_id=model.config.pad_token_id)([examples[number]])
            del batch["cross_document"]
            with torch.no_grad(), computing_in(run.settings.precision, model.device):
                logits = model.eval()(**{key: one.to(model.device) for key, one in batch.items()}).logits
            example = examples.describe(number)
            ids, places = example.packed.input_ids, np.flatnonzero(example.masked)
            shares, pieces = (of.tolist() for of in logits.float().softmax(-1).max(-1))
            for place, share, piece in zip(places.tolist(), shares, pieces, strict=True):
                if example.cross_document[place]:
                    texts = {"before": ids[:place], "hidden": ids[[place]], "after": ids[place + 1 :]}
                    guess = Guess(**{part: decode(of) for part, of in texts.items()}, best={})
                    found.setdefault((number, place), guess).best[name] = decode([piece]), share
    return list(found.values())


def guesses_view(run: PerplexityRun) -> Shown:
    """Hidden pieces of names and numbers that only another document states, with the first guess of two
    models: some that the second of them finds, and some that it does not."""
    found = guesses(run)
    names = list(found[0].best) if found else []
    rows = []
    for is_right in (True, False):
        chosen = [one for one in found if (one.best[names[-1]][0] == one.hidden) is is_right]
        # in steps, so that they are of several clusters
        for one in chosen[:: max(1, len(chosen) // _SHOWN)][:_SHOWN]:
            before, after = (_BOUNDARY.sub(" \u00b6 ", text) for text in (one.before, one.after))
            before, hidden, after = map(escaped, (before[-_ROUND:], one.hidden, after[:_ROUND]))
            blank = " " * hidden.startswith(" ")
            text = f"\u2026{before}{blank}<b>[{hidden.strip()}]</b>{after}\u2026"
            cells = [
                f"{SIGNS[piece == one.hidden]} {escaped(piece)} ({share:.0%})"
                for piece, share in (one.best[name] for name in names)
            ]
            rows.append([text, *cells])
    heads = ["hidden piece in its text", *(f"{variant_name(name)} guesses" for name in names)]
    return html_table(heads, rows, texts=len(heads))
