"""Pairs of mentions scored per second: one at a time by Hugging Face's Longformer, and in batches by ours.

    python -m cdlm_lab.benchmarks.coreference                          # 2 CPU cores or a GPU; minutes
    python -m cdlm_lab.benchmarks.coreference --context sentences --model base --json out.json

The documents are from storyworld; their pairs are about as long as those of ECB+ (median tokens: 890 and 840
with documents as context, 80 and 75 with sentences). All pairs of event mentions are put into batches as
`score_pairs` does; a sample of these batches, evenly spaced from the longest to the shortest, is scored. "One
at a time" reads the same pairs without padding of its own. Both models have the same random weights, build
the sequences anew in each run, and take turns in one process (A B A B ...), so that drifts in the machine's
speed affect both; the ratio is the median of the ratios of each round.

"of peak" = useful floating-point operations (those of the definition, without padding, and in the last layer
only those for the global tokens) per second, divided by the rate of a large matrix product measured in the
same run. "padding" = proportion of the positions that the first layer's feed-forward block computes without a
token; Hugging Face's model pads every batch to a multiple of the window.
"""

from __future__ import annotations

import copy
import json
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from torch import nn
from transformers import LongformerConfig, PreTrainedTokenizerBase

from cdlm_lab.attention.layer import read_only_globals, replace_self_attention
from cdlm_lab.attention.plan import make_plan
from cdlm_lab.benchmarks import timing
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.encoders.checkpoint import own_randomness
from cdlm_lab.encoders.encoder import TinySizes, load_tokenizer, tiny_config
from cdlm_lab.examples.collate import Collate, batches_by_length
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.tasks.coreference import examples as mention_pairs
from cdlm_lab.tasks.coreference.examples import MentionPairExamples
from cdlm_lab.tasks.coreference.model import HIDDEN, PairScorer

VOCABULARY = 4096  # splits words into about as many subwords as the tokenizers of BERT and RoBERTa do
SIZES = {
    "tiny": TinySizes(vocabulary=VOCABULARY),
    "minilm": TinySizes(hidden_size=384, layers=6, heads=12, intermediate_size=1536, vocabulary=VOCABULARY),
    "base": TinySizes(hidden_size=768, layers=12, heads=12, intermediate_size=3072, vocabulary=VOCABULARY),
}
WAYS = ("huggingface", "ours")


def storyworld_pairs(
    tokenizer: PreTrainedTokenizerBase, *, stories: int, context: str, max_length: int, most: int = 0
) -> MentionPairExamples:
    """Return pairs of event mentions of storyworld's test stories: all, or at most `most`, evenly spaced."""
    topics = list(read_storyworld_topics("test", stories))
    groups = mention_pairs.group_mentions(topics, "event", "topic")
    pairs = mention_pairs.pairs_within(groups)
    return MentionPairExamples(
        mentions=mention_pairs.mentions_in(groups),
        pairs=pairs[:: max(1, len(pairs) // most)][:most] if most else pairs,
        documents=EncodedDocuments((document for topic in topics for document in topic.documents), tokenizer),
        special=from_tokenizer(tokenizer),
        marks=mention_pairs.marks_from_tokenizer(tokenizer),
        context=context,
        max_length=max_length,
    )


def scorers_and_examples(
    *, sizes: TinySizes, window: int, max_length: int, context: str, stories: int
) -> tuple[dict[str, PairScorer], MentionPairExamples]:
    """Return one pair scorer with Hugging Face's attention and a copy with ours, and all pairs to score."""
    tokenizer = load_tokenizer("tiny", sizes=sizes)
    marks = [mention_pairs.MENTION_START, mention_pairs.MENTION_END]
    tokenizer.add_special_tokens({"extra_special_tokens": marks}, replace_extra_special_tokens=False)
    with own_randomness(0):
        theirs = PairScorer(tiny_config(tokenizer, max_length=max_length, window=window, sizes=sizes)).eval()
    ours = replace_self_attention(copy.deepcopy(theirs))
    read_only_globals(ours.longformer)
    examples = storyworld_pairs(tokenizer, stories=stories, context=context, max_length=max_length)
    return {"huggingface": theirs, "ours": ours}, examples


def spaced_batches(examples: MentionPairExamples, *, batch_size: int, pairs: int) -> list[list[int]]:
    """Put all pairs into batches by length; return about `pairs` / `batch_size` of these batches, evenly
    spaced from the longest to the shortest."""
    sizes = [examples.size_of(number) for number in range(len(examples))]
    lengths, global_counts = ([getattr(size, name) for size in sizes] for name in ("length", "global_count"))
    batches = batches_by_length(lengths, global_counts, batch_size)
    wanted = min(len(batches), max(1, round(pairs / batch_size)))
    return [batches[int((number + 0.5) * len(batches) / wanted)] for number in range(wanted)]


@torch.inference_mode()
def probabilities(
    model: PairScorer, examples: MentionPairExamples, batches: Sequence[Sequence[int]], *, dtype: torch.dtype
) -> np.ndarray:
    """Build, pad and read the pairs of all batches; return their coreference probabilities, in order."""
    collate = Collate(pad_token_id=model.config.pad_token_id)
    of_batches = []
    for numbers in batches:
        batch = collate([examples[number] for number in numbers])
        on_device = {key: tensor.to(model.device) for key, tensor in batch.items()}
        with torch.autocast(model.device.type, dtype=dtype, enabled=dtype != torch.float32):
            logits = model(**on_device).logits
        of_batches.append(torch.sigmoid(logits).cpu().numpy())
    return np.concatenate(of_batches)


@contextmanager
def counted_places(model: PairScorer) -> Iterator[list[int]]:
    """Context whose list gets the number of positions in each pass of the first feed-forward block."""
    counts: list[int] = []
    block: nn.Module = model.longformer.encoder.layer[0].intermediate.dense
    hook = block.register_forward_pre_hook(lambda _, inputs: counts.append(inputs[0][..., 0].numel()))
    try:
        yield counts
    finally:
        hook.remove()


def useful_operations(config: LongformerConfig, example: dict[str, np.ndarray]) -> int:
    """Return the floating-point operations (multiply-adds x 2) that the probability of one pair needs.

    The MLP reads `[CLS]` and the mentions, which are all global tokens. Of the last layer this needs only the
    global queries, their keys and values, and the feed-forward block of global tokens.
    """
    width, inner = config.hidden_size, config.intermediate_size
    is_global = torch.from_numpy(example["global_attention_mask"])[None] == 1
    everything, window = torch.ones_like(is_global), config.attention_window[0]
    plan = make_plan(attention_mask=everything, global_mask=is_global, window=window)
    tokens, of_globals = len(plan.order), len(plan.global_order)
    rest = 2 * width * (width + 2 * inner)  # per token after attention: output projection, feed-forward
    layer = 2 * 5 * tokens * width * width + 4 * plan.pairs * width + tokens * rest
    last = 2 * (2 * tokens + of_globals) * width * width + 4 * of_globals * tokens * width + of_globals * rest
    return (config.num_hidden_layers - 1) * layer + last + 2 * HIDDEN * (4 * width + 1)


def measure(
    models: dict[str, PairScorer],
    examples: MentionPairExamples,
    *,
    batches: Sequence[Sequence[int]],
    dtype: torch.dtype,
    repeats: int,
) -> dict[str, object]:
    """Return speeds, padding, and differences between the probabilities of the two models."""
    numbers = [number for batch in batches for number in batch]
    work = {"huggingface": [[number] for number in numbers], "ours": batches}
    results: dict[str, np.ndarray] = {}
    places: dict[str, int] = {}
    runs = {name: partial(probabilities, models[name], examples, work[name], dtype=dtype) for name in WAYS}
    for name in WAYS:  # warm-up
        with counted_places(models[name]) as counts:
            results[name] = runs[name]()
        places[name] = sum(counts)
    times = timing.take_turns(runs, repeats=repeats, device=models["ours"].device, desc="scoring")
    tokens = sum(examples.length_of(number) for number in numbers)
    return {
        "pairs_per_second": {name: len(numbers) / statistics.median(times[name]) for name in WAYS},
        **timing.ratio("times_faster", *(times[name] for name in WAYS)),
        "padding": {name: 1 - tokens / places[name] for name in WAYS},
        "largest_difference": float(np.abs(results["huggingface"] - results["ours"]).max()),
        "probability_min": float(results["ours"].min()),
        "probability_max": float(results["ours"].max()),
    }


def described(row: dict[str, object]) -> str:
    """Return the report as a Markdown table and a line below it."""
    columns = {"": "{title}", "pairs/s": "{pairs_per_second:.2f}", "padding": "{padding:.0%}"}
    columns["of peak"] = "{of_peak:.0%}"
    rows = [
        {"title": title} | {key: row[key][name] for key in ("pairs_per_second", "padding", "of_peak")}
        for name, title in zip(WAYS, ("one at a time, Hugging Face", "ours"), strict=True)
    ]
    below = (
        "{times_faster:.2f} times faster ({times_faster_min:.2f}-{times_faster_max:.2f}); probabilities "
        "from {probability_min:.3f} to {probability_max:.3f} differ by {largest_difference:.1e} at most"
    )
    return f"{timing.table(columns, rows)}\n\n{below.format(**row)}"


def sizes_of(
    config: LongformerConfig, examples: MentionPairExamples, numbers: Sequence[int]
) -> dict[str, object]:
    """Return number, lengths, global tokens and useful operations (10^9 per pair) of the pairs to score."""
    sizes = [examples.size_of(number) for number in numbers]
    lengths, of_globals = ([getattr(size, name) for size in sizes] for name in ("length", "global_count"))
    operations = [useful_operations(config, examples[number]) for number in numbers]
    return {
        "pairs": len(numbers),
        "tokens_per_pair": {"min": min(lengths), "median": statistics.median(lengths), "max": max(lengths)},
        "globals_per_pair": statistics.median(of_globals),
        "gflop_per_pair": statistics.mean(operations) / 1e9,
    }


def main() -> None:
    """Parse the command line, run the benchmark and print its results."""
    parser = timing.command_line(__doc__, repeats=3)
    parser.add_argument("--model", choices=SIZES, default="minilm", help="sizes; weights are random")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--max-length", type=int, default=4096)
    parser.add_argument("--context", choices=mention_pairs.CONTEXTS, default="documents")
    parser.add_argument("--stories", type=int, default=30, help="of storyworld: where the pairs come from")
    parser.add_argument("--pairs", type=int, default=32, help="about how many are scored in a run")
    parser.add_argument("--batch-size", type=int, default=8, help="pairs read at once our way")
    precisions, by_default = ("float32", "bfloat16"), "bfloat16 on CUDA, else float32"
    parser.add_argument("--dtype", choices=precisions, help=f"of both ways; default: {by_default}")
    given = timing.arguments(parser)
    given.dtype = given.dtype or ("bfloat16" if given.device.type == "cuda" else "float32")
    dtype = getattr(torch, given.dtype)
    form = {name: getattr(given, name) for name in ("window", "max_length", "context", "stories")}
    models, examples = scorers_and_examples(sizes=SIZES[given.model], **form)
    models = {name: model.to(given.device) for name, model in models.items()}
    batches = spaced_batches(examples, batch_size=given.batch_size, pairs=given.pairs)
    rate = timing.matmul_rate(device=given.device, dtype=dtype)
    report = timing.print_head(
        given,
        *("dtype", "model", "window", "max_length", "context", "batch_size", "repeats"),
        matmul_gflops=rate / 1e9,
        parameters=models["ours"].num_parameters(),
        all_pairs=len(examples),
        **sizes_of(models["ours"].config, examples, [number for batch in batches for number in batch]),
    )
    report |= measure(models, examples, batches=batches, dtype=dtype, repeats=given.repeats)
    useful = report["gflop_per_pair"] * 1e9 / rate
    report["of_peak"] = {name: useful * speed for name, speed in report["pairs_per_second"].items()}
    print(described(report))
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
