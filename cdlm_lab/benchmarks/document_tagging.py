"""The training cost of attention to the rest of the document: an epoch of static Doc-ARC against one of its
baseline, BERT + LSTM with as many parameters (Joerke et al. 2020, Table 11: 24 hours against 25 minutes).

Both take turns on the same batches, with cached encodings: lookup, forward, backward, update. The ratio is
that to the baseline in the same round. `encoding again` adds to each epoch the time that the encoder takes
for all its sequences, as in the released code.

`predicted` is the ratio of multiply-adds: a biLSTM needs as many per word as it has weights, and f_c reads a
sentence once more for each k for which a word has a k-th occurrence (equation 5), whereas `linear` reads
only the words that are attended to, each once per batch.

    python -m cdlm_lab.benchmarks.document_tagging --corpus shared/jnlpba --encoder minilm --documents 20
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cdlm_lab.benchmarks import timing
from cdlm_lab.data.convert.tagged import TaggedDocument, labels_of, read_docarc_split, tag_set
from cdlm_lab.data.storyworld.task_sets import read_storyworld_tags
from cdlm_lab.encoders.frozen import ENDS, PieceCounts, WordEncoder, WordEncodings, load_word_encoder
from cdlm_lab.tasks.tagging.examples import TagExamples, document_runs, split_long, words_read
from cdlm_lab.tasks.tagging.model import (
    StaticCollate,
    StaticTagger,
    StaticTaggerConfig,
    equal_hidden_size,
    new_static_tagger,
)

BATCH = 16  # sentences per batch, as in the paper
MAX_TOKENS = 128  # most tokens of a sentence
FORMS = ("baseline", "linear", "bilstm")
COLUMNS = {
    "K": "{occurrences}",
    "tagger": "{form}",
    "seconds an epoch": "{seconds:.2f}",
    "times baseline (min-max)": "{ratio:.2f} ({ratio_min:.2f}-{ratio_max:.2f})",
    "by multiply-adds": "{predicted:.2f}",
    "encoding again": "{again}",
}


class Epochs:
    """Training epochs of each form of the tagger on the same documents. `most`: K, the largest number of
    occurrences attended to; `cache`: a folder, empty because encoding is timed."""

    def __init__(
        self,
        encoder: WordEncoder,
        documents: Sequence[TaggedDocument],
        *,
        most: int,
        hidden_size: int,
        cache: Path,
        device: torch.device,
    ) -> None:
        self.device, room = device, encoder.max_tokens - ENDS
        tags = tag_set(labels_of(documents))
        pieces = PieceCounts(encoder.tokenizer)
        splits = [split_long(one, pieces=pieces, most=room) for one in documents]
        self.examples = TagExamples(splits, tags, most=most)
        encodings, sentences = WordEncodings(encoder, cache), words_read(self.examples)
        began = time.perf_counter()
        encodings.ensure(sentences)
        self.encoding = time.perf_counter() - began
        form = {"size": encoder.size, "tags": tags}
        config = StaticTaggerConfig(**form, hidden_size=hidden_size)
        configs = {
            "baseline": StaticTaggerConfig(**form, hidden_size=equal_hidden_size(config), context=False),
            "linear": StaticTaggerConfig(**form, hidden_size=hidden_size, context_encoder="linear"),
            "bilstm": config,
        }
        self.models: dict[str, StaticTagger] = {
            name: new_static_tagger(one).to(self.device) for name, one in configs.items()
        }
        self.collates = {
            name: StaticCollate(encodings, splits, context=one.context) for name, one in configs.items()
        }
        order = document_runs(self.examples, batch_size=BATCH, rng=np.random.default_rng(0))
        self.batches = [order[start : start + BATCH].tolist() for start in range(0, len(order), BATCH)]

    def epoch(self, form: str) -> None:
        """Train one form of the tagger on each batch once."""
        model, collate = self.models[form].train(), self.collates[form]
        optimiser = torch.optim.AdamW(model.parameters())
        for numbers in self.batches:
            batch = collate([self.examples[number] for number in numbers])
            loss = model(**{name: tensor.to(self.device) for name, tensor in batch.items()})["loss"]
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    def read(self) -> dict[str, int]:
        """Count words per epoch: `targets`, those to tag; `context`, these again for each k with an
        occurrence; `attended`, those attended to, each once per batch."""
        sizes = {"targets": 0, "context": 0, "attended": 0}
        collate = self.collates["bilstm"]
        for numbers in self.batches:
            batch = collate([self.examples[number] for number in numbers])
            words = batch["attention_mask"].sum(1)
            sizes["targets"] += int(words.sum())
            sizes["context"] += int(words @ (batch["places"] >= 0).any(1).sum(1))
            sizes["attended"] += len(batch["context"])
        return sizes

    def multiply_adds(self, form: str, read: Mapping[str, int]) -> int:
        """Return the multiply-adds of the forward passes of an epoch; `read`: its counts of words."""
        model = self.models[form]
        matrices = (part.parameters() for part in (model.context_encoder, model.sequence_encoder))
        f_c, f_s = (sum(one.numel() for one in part if one.dim() > 1) for part in matrices)
        more = {"baseline": 0, "linear": read["attended"], "bilstm": read["context"]}[form]
        return read["targets"] * (f_c + f_s) + more * f_c


def measure(epochs: Epochs, *, occurrences: int, repeats: int) -> list[dict[str, object]]:
    """Return a row of results for each form of the tagger."""
    works = {form: partial(epochs.epoch, form) for form in FORMS}
    times = timing.take_turns(works, repeats=repeats, device=epochs.device, desc=f"K = {occurrences}")
    read, rows = epochs.read(), []
    for form in FORMS:
        again = [mine + epochs.encoding for mine in times[form]]
        times_again = timing.ratio("again", again, times["baseline"])["again"]
        row = {
            "occurrences": occurrences,
            "form": form,
            "seconds": statistics.median(times[form]),
            **timing.ratio("ratio", times[form], times["baseline"]),
            "predicted": epochs.multiply_adds(form, read) / epochs.multiply_adds("baseline", read),
            "encoding_again": None if form == "baseline" else times_again,
            "sentences": len(epochs.examples),
        }
        rows.append(row)
    return rows


def main() -> None:
    """Parse the command line, run the benchmark and print its results."""
    parser = timing.command_line(__doc__, repeats=3)
    parser.add_argument("--corpus", default="storyworld", help="or a folder in Doc-ARC's format")
    parser.add_argument("--documents", type=int, default=20, help="to train on")
    parser.add_argument("--encoder", default="storyworld/longformer")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden-size", type=int, default=64)
    parser.add_argument("--occurrences", type=int, nargs="+", default=[2, 10, 25])
    given = timing.arguments(parser)
    if given.corpus == "storyworld":
        documents = list(read_storyworld_tags("train", given.documents))
    else:
        first = range(given.documents)
        documents = list(read_docarc_split(given.corpus, "train", chosen=lambda count: first[:count]))
    encoder = load_word_encoder(given.encoder, layers=given.layers, max_tokens=MAX_TOKENS)
    head = timing.print_head(given, documents=len(documents))
    rows = []
    for most in given.occurrences:
        with tempfile.TemporaryDirectory() as cache:
            form = {"most": most, "hidden_size": given.hidden_size, "device": given.device}
            epochs = Epochs(encoder, documents, **form, cache=Path(cache))
            rows += measure(epochs, occurrences=most, repeats=given.repeats)
    again = ["" if row["encoding_again"] is None else f"{row['encoding_again']:.1f}" for row in rows]
    print(timing.table(COLUMNS, [{**row, "again": text} for row, text in zip(rows, again, strict=True)]))
    timing.write_rows(given.json, head, rows)


if __name__ == "__main__":
    main()
