"""Inference speed: tokens per second of pair scoring (notebook 03), frozen word encodings (07), sentence
encodings (04) and candidate groups (09), in float32 and bfloat16, with batches in file order and by length.

    python -m cdlm_lab.benchmarks.inference                  # tiny, storyworld
    python -m cdlm_lab.benchmarks.inference --encoder minilm --max-length 1024 --window 128 --json out.json

All four variants take turns to build, pad and read the sequences of the same items (A B C D A B C D ...), so
that drifts in the machine's speed affect all. Tokens are those of the texts, without padding. Task heads are
newly initialised. "of rate" = multiply-adds x 2 of the encoder's weights for these tokens, per second,
divided by the rate of a large matrix product in the same precision, measured in the same run. Attention
itself is not counted; what a last layer that reads only global tokens skips is counted nevertheless.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch
from torch import nn

from cdlm_lab.benchmarks import timing
from cdlm_lab.data.storyworld.task_sets import (
    read_storyworld_candidates,
    read_storyworld_tags,
    read_storyworld_topics,
)
from cdlm_lab.encoders.frozen import ENDS, load_sentence_encoder, load_word_encoder
from cdlm_lab.encoders.precision import Precision, computing_in
from cdlm_lab.examples.collate import Collate, batches_by_length
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.tasks.coreference import examples as mention_pairs
from cdlm_lab.tasks.coreference.model import load_pair_scorer
from cdlm_lab.tasks.joint.examples import JointCollate
from cdlm_lab.tasks.joint.model import JointHead, load_joint_model
from cdlm_lab.tasks.joint.systems import examples_of

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
ORDERS = ("file", "length")
SENTENCE_TOKENS = 128
HEAD = JointHead(kind="ae_k", sentences=6, length=64)  # as in the MSPP paper
COLUMNS = {
    "": "{task}",
    "precision": "{precision}",
    "batches by": "{batches}",
    "tokens/s": "{tokens_per_second:,.0f}",
    "times float32 by file": "{times_faster:.2f}",
    "padding": "{padding:.0%}",
    "MiB": "{peak_mib:.0f}",
    "of rate": "{of_rate:.0%}",
}
Read = Callable[[Sequence[int]], object]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task to measure: items, and the functions that read them."""

    name: str
    # lengths, global_counts: tokens of each item, and how many of them are global.
    lengths: Sequence[int]
    global_counts: Sequence[int]
    batch_size: int  # items in a batch
    encoder: nn.Module  # encoder whose weights are counted
    read: dict[Precision, Read]  # precision -> function that reads the items of given indices as one batch

    @property
    def device(self) -> torch.device:
        """Device of the encoder."""
        return next(self.encoder.parameters()).device

    def batches(self, order: str) -> list[list[int]]:
        """Return the indices of all items in batches, in the order of the file or by length."""
        if order == "length":
            return batches_by_length(self.lengths, self.global_counts, self.batch_size)
        numbers = list(range(len(self.lengths)))
        return [numbers[first : first + self.batch_size] for first in numbers[:: self.batch_size]]

    def padding(self, order: str) -> float:
        """Return the proportion of padding among the positions of all batches."""
        batches = ([self.lengths[number] for number in numbers] for numbers in self.batches(order))
        return 1 - sum(self.lengths) / sum(len(lengths) * max(lengths) for lengths in batches)

    @torch.inference_mode()
    def go(self, precision: Precision, order: str) -> None:
        """Read all items once."""
        with computing_in(precision, self.device):
            for numbers in self.batches(order):
                self.read[precision](numbers)


def pair_task(given: argparse.Namespace) -> Task:
    """Return the task of scoring pairs of storyworld's event mentions, with whole documents as context."""
    model, tokenizer = load_pair_scorer(given.encoder, max_length=given.max_length, window=given.window)
    topics = list(read_storyworld_topics("test", given.stories))
    groups = mention_pairs.group_mentions(topics, "event", "topic")
    pairs = mention_pairs.pairs_within(groups)
    examples = mention_pairs.MentionPairExamples(
        mentions=mention_pairs.mentions_in(groups),
        pairs=pairs[:: max(1, len(pairs) // given.items)][: given.items],
        documents=EncodedDocuments((document for topic in topics for document in topic.documents), tokenizer),
        special=from_tokenizer(tokenizer),
        marks=mention_pairs.marks_from_tokenizer(tokenizer),
        context="documents",
        max_length=given.max_length,
    )
    sizes = [examples.size_of(number) for number in range(len(examples))]
    return Task(
        name="pair scoring",
        lengths=[size.length for size in sizes],
        global_counts=[size.global_count for size in sizes],
        batch_size=given.batch_size,
        encoder=model.longformer,
        read=_of_model(model, examples, Collate(pad_token_id=tokenizer.pad_token_id), given.device),
    )


def candidate_task(given: argparse.Namespace) -> Task:
    """Return the task of scoring groups of candidate answers for storyworld's questions."""
    model, tokenizer = load_joint_model(given.encoder, head=HEAD)
    sets = list(read_storyworld_candidates("test", given.stories))
    examples = examples_of(sets, tokenizer, HEAD.layout, None)
    lengths = [examples.length_of(number) for number in range(min(given.items, len(examples)))]
    return Task(
        name="candidate groups",
        lengths=lengths,
        global_counts=[0] * len(lengths),
        batch_size=given.batch_size,
        encoder=model.longformer,
        read=_of_model(model, examples, JointCollate(pad_token_id=tokenizer.pad_token_id), given.device),
    )


def _of_model(
    model: nn.Module, examples: Sequence, collate: Callable, device: torch.device
) -> dict[Precision, Read]:
    """Return functions that build, pad and read a batch; the precision is that of the calling context."""
    model.to(device).eval()

    def read(numbers: Sequence[int]) -> torch.Tensor:
        batch = collate([examples[number] for number in numbers])
        batch.pop("labels", None)
        return model(**{key: tensor.to(device) for key, tensor in batch.items()}).logits.float().cpu()

    return dict.fromkeys(PRECISIONS, read)


def encoding_tasks(given: argparse.Namespace) -> list[Task]:
    """Return the tasks of encoding storyworld's sentences: one vector per word, and one per sentence."""
    documents = read_storyworld_tags("test", given.stories)
    words = [sentence.words for one in documents for sentence in one.sentences][: given.sentences]
    texts = [" ".join(sentence) for sentence in words]
    tasks = []
    for name, load, items in (
        ("frozen encodings", partial(load_word_encoder, layers=1), words),
        ("sentence encodings", load_sentence_encoder, texts),
    ):
        encoders = {one: load(given.encoder, max_tokens=SENTENCE_TOKENS, precision=one) for one in PRECISIONS}
        for encoder in encoders.values():
            encoder.model.to(given.device).eval()
        tokenizer = encoders["float32"].tokenizer
        split = tokenizer([list(one) for one in words], is_split_into_words=True, add_special_tokens=False)
        lengths = [len(ids) + ENDS for ids in split["input_ids"]]
        task = Task(
            name=name,
            lengths=lengths,
            global_counts=[0] * len(lengths),
            batch_size=given.sentence_batch_size,
            encoder=encoders["float32"].model,
            read={one: partial(_encode, encoder, items) for one, encoder in encoders.items()},
        )
        tasks.append(task)
    return tasks


def _encode(encoder: object, items: Sequence, numbers: Sequence[int]) -> object:
    return encoder.encode([items[number] for number in numbers], batch_size=len(numbers))


def measure(task: Task, *, repeats: int, rates: dict[Precision, float]) -> list[dict[str, object]]:
    """Return a row of results for each precision and order of batches."""
    works = {way: partial(task.go, *way) for way in product(PRECISIONS, ORDERS)}
    # The first run of each counts for memory only, not for time.
    peaks = {way: timing.peak_growth(work, task.device) for way, work in works.items()}
    times = timing.take_turns(works, repeats=repeats, device=task.device, desc=task.name)
    weights = sum(weight.numel() for weight in task.encoder.encoder.parameters() if weight.dim() > 1)
    tokens, rows = sum(task.lengths), []
    for (precision, order), each in times.items():
        row = {
            "task": task.name,
            "precision": precision,
            "batches": order,
            "items": len(task.lengths),
            "tokens": tokens,
            "tokens_per_second": tokens / statistics.median(each),
            "times_faster": timing.ratio("of", times[PRECISIONS[0], ORDERS[0]], each)["of"],
            "padding": task.padding(order),
            "peak_mib": peaks[precision, order],
            "of_rate": 2 * weights * tokens / statistics.median(each) / rates[precision],
        }
        rows.append(row)
    return rows


def main() -> None:
    """Parse the command line, run the benchmark and print its results."""
    parser = timing.command_line(__doc__, repeats=3)
    parser.add_argument("--encoder", default="storyworld/cdlm", help="as in every notebook: minilm, a folder")
    parser.add_argument("--max-length", type=int, default=512, help="of a pair of documents")
    parser.add_argument("--window", type=int, default=32, help="of pair scoring; the others see all")
    parser.add_argument("--stories", type=int, default=30, help="of storyworld")
    parser.add_argument("--items", type=int, default=96, help="at most so many pairs, and groups")
    parser.add_argument("--sentences", type=int, default=768, help="at most so many")
    parser.add_argument("--batch-size", type=int, default=8, help="pairs, or groups, read at once")
    parser.add_argument("--sentence-batch-size", type=int, default=32, help="sentences read at once")
    given = timing.arguments(parser)
    rates = {name: timing.matmul_rate(device=given.device, dtype=getattr(torch, name)) for name in PRECISIONS}
    gflops = {name: rate / 1e9 for name, rate in rates.items()}
    head = timing.print_head(given, "encoder", "max_length", "window", "repeats", matmul_gflops=gflops)
    tasks = [pair_task(given), *encoding_tasks(given), candidate_task(given)]
    rows = [row for task in tasks for row in measure(task, repeats=given.repeats, rates=rates)]
    print(timing.table(COLUMNS, rows))
    timing.write_rows(given.json, head, rows)


if __name__ == "__main__":
    main()
