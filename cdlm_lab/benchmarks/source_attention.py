"""The attention from and to a few chosen tokens, in every layer and head: our way and Hugging Face's.

    python -m cdlm_lab.benchmarks.source_attention         # the table of the README: 2 CPU cores or a GPU
    python -m cdlm_lab.benchmarks.source_attention --lengths 1024 --model base --json out.json

What the explorer does at each click and the attention analysis for each pair: three tokens in the middle of
the text become global, the model reads it, and their rows and columns of all attention matrices are kept.
Hugging Face returns the attention of every token to its window (`output_attentions=True`), from which the
same numbers are taken. Both ways have the same weights, drawn at random, and run in turn in one process (A B
A B ...); the ratio is the median of the ratios run by run. Peak memory is taken in a fresh process: the
growth of the resident set while the model reads (CPU), or the allocator's peak (CUDA).
"""

from __future__ import annotations

import argparse
import copy
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from transformers import LongformerModel

from cdlm_lab.analysis.source_attention import attend_to_source
from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.benchmarks.coreference import SIZES
from cdlm_lab.benchmarks.timing import (
    command_line,
    peak_growth,
    print_head,
    ratio,
    surroundings,
    table,
    take_turns,
    write_rows,
)
from cdlm_lab.models.checkpoint import own_randomness
from cdlm_lab.models.encoder import TinySizes, load_tokenizer, tiny_config

LENGTHS = (1024, 2048, 4096)
SOURCE_TOKENS = 3
WAYS = ("huggingface", "ours")


def models(*, sizes: TinySizes, window: int, max_length: int) -> dict[str, LongformerModel]:
    """An encoder twice, with Hugging Face's attention and with ours."""
    tokenizer = load_tokenizer("tiny", sizes=sizes)
    with own_randomness(0):
        config = tiny_config(tokenizer, max_length=max_length, window=window, sizes=sizes)
        theirs = LongformerModel(config, add_pooling_layer=False).eval()
    return {"huggingface": theirs, "ours": replace_self_attention(copy.deepcopy(theirs))}


def text_of(length: int, model: LongformerModel) -> tuple[Tensor, np.ndarray]:
    """Random tokens (seq,) and the positions of the source, in the middle."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(10, model.config.vocab_size, (length,), generator=generator)
    return ids, np.arange(length // 2, length // 2 + SOURCE_TOKENS)


def read(name: str, model: LongformerModel, ids: Tensor, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the source gives and receives, (layers, heads, source tokens, seq) each."""
    if name == "ours":
        attended = attend_to_source(model, ids, source=source)
        return attended.given, attended.received
    return _from_huggingface(model, ids, source)


@torch.inference_mode()
def _from_huggingface(
    model: LongformerModel, ids: Tensor, source: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same out of Hugging Face's returned attentions; those of global tokens stand in a tensor of their
    own, and their rows in the other hold zeros."""
    is_global = torch.zeros(1, len(ids), dtype=torch.long, device=model.device)
    is_global[0, source] = 1
    out = model(
        ids[None].to(model.device),
        attention_mask=torch.ones_like(is_global),
        global_attention_mask=is_global,
        output_attentions=True,
    )
    given = torch.stack([layer[0].transpose(-1, -2)[..., : len(ids)] for layer in out.global_attentions])
    received = torch.stack([layer[0, :, :, : len(source)].transpose(-1, -2) for layer in out.attentions])
    received[..., source] = given[..., source].transpose(-1, -2)  # between global tokens
    return given.cpu().numpy(), received.cpu().numpy()


def peak_memory(name: str, model: LongformerModel, *, length: int) -> float:
    """MiB above the loaded model at the peak of one reading, in this (fresh) process."""
    read(name, model, *text_of(model.config.attention_window[0], model))
    text = text_of(length, model)
    return peak_growth(lambda: read(name, model, *text), model.device)


def measure(
    both: dict[str, LongformerModel], *, length: int, repeats: int, memory: dict[str, float]
) -> dict[str, float]:
    """One row of the table. `memory`: MiB of each way, measured elsewhere."""
    ids, source = text_of(length, both["ours"])
    found = {name: read(name, model, ids, source) for name, model in both.items()}  # the warm-up
    works = {name: partial(read, name, model, ids, source) for name, model in both.items()}
    times = take_turns(works, repeats=repeats, device=both["ours"].device, desc=f"length {length}")
    differences = [
        float(np.abs(mine - theirs).max())
        for mine, theirs in zip(found["ours"], found["huggingface"], strict=True)
    ]
    return {
        "length": length,
        **{f"{name}_seconds": statistics.median(times[name]) for name in WAYS},
        **ratio("times_faster", *(times[name] for name in WAYS)),
        **{f"{name}_mib": memory[name] for name in WAYS},
        "largest_difference": max(differences),
    }


def markdown(rows: Sequence[Mapping[str, float]]) -> str:
    """The rows as a Markdown table."""
    columns = {
        "length": "{length}",
        "Hugging Face s": "{huggingface_seconds:.2f}",
        "ours s": "{ours_seconds:.2f}",
        "times faster (min-max)": "{times_faster:.1f} ({times_faster_min:.1f}-{times_faster_max:.1f})",
        "Hugging Face MiB": "{huggingface_mib:.0f}",
        "ours MiB": "{ours_mib:.0f}",
        "differ by": "{largest_difference:.0e}",
    }
    return table(columns, rows)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--model", choices=SIZES, default="minilm", help="sizes; weights are random")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peak-of", choices=WAYS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Parse the command line, measure, print."""
    given = arguments()
    loaded = models(sizes=SIZES[given.model], window=given.window, max_length=max(given.lengths))
    if given.peak_of:
        model = loaded[given.peak_of].to(given.device)
        print(peak_memory(given.peak_of, model, length=given.lengths[0]))
        return
    both = {name: model.to(given.device) for name, model in loaded.items()}
    head = surroundings(torch.device(given.device)) | {"model": given.model, "window": given.window}
    head |= {"source_tokens": SOURCE_TOKENS, "repeats": given.repeats}
    print_head(head)
    rows = [
        measure(both, length=length, repeats=given.repeats, memory=_memory_of(given, length))
        for length in given.lengths
    ]
    print(markdown(rows))
    write_rows(given.json, head, rows)


def _memory_of(given: argparse.Namespace, length: int) -> dict[str, float]:
    """`peak_memory` of each way, measured where nothing else has run."""
    found = {}
    for name in WAYS:
        command = [sys.executable, "-m", "cdlm_lab.benchmarks.source_attention", "--peak-of", name]
        command += ["--lengths", str(length), "--model", given.model, "--window", str(given.window)]
        command += ["--device", given.device]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[name] = float(output.split()[-1])
    return found


if __name__ == "__main__":
    main()
