"""The cost of cross-document attention: GRU-HAN alone, with SHALLOW and with DEEP (Zhou et al. 2020, "CDA",
section 5.1 and Table 11).

The three forms take turns on the same batch of pairs, forward only, as in the table; each ratio is that to
GRU-HAN alone in the same round. Texts have the lengths of the paper's Table 1 (S2ORC: 9 sentences of 28
words, PAN: 47 of 33); words are random, and all lengths are equal.

`predicted` is the ratio of multiply-adds: a bidirectional GRU takes 2 x 3 x (in + hidden) x hidden per word;
DEEP compares every sentence with every sentence and word of the other document, which takes twice the vector
size for each of them; the affine map takes 2 x size^2 per query.

    python -m cdlm_lab.benchmarks.cross_document_attention --json cost.json
"""

from __future__ import annotations

import statistics
from functools import partial

import torch

from cdlm_lab.benchmarks import timing
from cdlm_lab.encoders.checkpoint import own_randomness
from cdlm_lab.tasks.matching.model import CDA, DocumentMatcher, HierarchicalConfig

TEXTS = {"S2ORC": (9, 28), "PAN": (47, 33)}  # sentences of a document, words of a sentence
WORDS = 5000
HIDDEN = 50  # hidden size, as in the paper; word vectors have the same size
COLUMNS = {
    "text": "{text}",
    "CDA": "{cda}",
    "seconds": "{seconds:.3f}",
    "times GRU-HAN alone (min-max)": "{ratio:.2f} ({ratio_min:.2f}-{ratio_max:.2f})",
    "by multiply-adds": "{predicted:.2f}",
    "more parameters": "{added_parameters:,}",
}


def matchers() -> dict[str, DocumentMatcher]:
    """Return GRU-HAN in its three forms, with random weights."""
    with own_randomness(0):
        return {
            cda: DocumentMatcher(HierarchicalConfig(encoder="gru", cda=cda, vocabulary_size=WORDS)).eval()
            for cda in CDA
        }


def added_parameters(models: dict[str, DocumentMatcher]) -> dict[str, int]:
    """Return how many more parameters each form has than GRU-HAN alone."""
    alone = models["none"].num_parameters()
    return {cda: model.num_parameters() - alone for cda, model in models.items()}


def multiply_adds(cda: str, *, sentences: int, words: int) -> int:
    """Return the multiply-adds of the forward pass for one pair of documents of equal lengths."""
    size, count = 2 * HIDDEN, sentences * words
    a_document = count * 6 * (2 * HIDDEN) * HIDDEN  # GRU over words
    a_document += sentences * 6 * (size + HIDDEN) * HIDDEN  # GRU over sentences
    a_document += (count + sentences) * (size * size + size)  # attention pooling, equation 1
    if cda != "none":
        a_document += 2 * size * (sentences + 1) + 2 * size * size
    if cda == "deep":
        a_document += sentences * (2 * size * (sentences + count) + 2 * size * size)
    return 2 * a_document


def measure(
    models: dict[str, DocumentMatcher], text: str, *, pairs: int, repeats: int, device: torch.device
) -> list[dict[str, object]]:
    """Return a row of results for each form of GRU-HAN."""
    sentences, words = TEXTS[text]
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(1, WORDS, (pairs, 2, sentences, words), generator=generator).to(device)
    mask = torch.ones(pairs, 2, sentences, dtype=torch.bool, device=device)
    works = {cda: partial(model, inputs, mask) for cda, model in models.items()}
    with torch.inference_mode():
        for work in works.values():  # warm-up
            work()
        times = timing.take_turns(works, repeats=repeats, device=device, desc=text)
    operations = {cda: multiply_adds(cda, sentences=sentences, words=words) for cda in models}
    return [
        {
            "text": text,
            "cda": cda,
            "seconds": statistics.median(times[cda]),
            **timing.ratio("ratio", times[cda], times["none"]),
            "predicted": operations[cda] / operations["none"],
            "added_parameters": added,
        }
        for cda, added in added_parameters(models).items()
    ]


def main() -> None:
    """Parse the command line, run the benchmark and print its results."""
    parser = timing.command_line(__doc__, repeats=9)
    parser.add_argument("--texts", choices=TEXTS, nargs="+", default=list(TEXTS))
    parser.add_argument("--pairs", type=int, default=64, help="in a batch (the paper: 256)")
    given = timing.arguments(parser)
    models = {cda: model.to(given.device) for cda, model in matchers().items()}
    form = {"pairs": given.pairs, "repeats": given.repeats}
    head = timing.print_head(given, *form)
    rows = [row for text in given.texts for row in measure(models, text, **form, device=given.device)]
    print(timing.table(COLUMNS, rows))
    timing.write_rows(given.json, head, rows)


if __name__ == "__main__":
    main()
