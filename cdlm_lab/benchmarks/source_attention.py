"""Time and memory for the attention from and to a few source tokens in all layers and heads: ours and Hugging
Face's.

    python -m cdlm_lab.benchmarks.source_attention         # the table of the README: 2 CPU cores or a GPU
    python -m cdlm_lab.benchmarks.source_attention --lengths 1024 --model base --json out.json

The explorer does this at each click, and the attention analysis for each pair: three tokens in the middle of
the text become global, the model reads it, and their rows and columns of all attention matrices are kept.
Hugging Face returns the attention of every token to its window (`output_attentions=True`), from which the
same numbers are taken. Both have the same random weights and take turns in one process (A B A B ...); the
ratio is the median of the ratios of each round. Peak memory is measured in a fresh process: the growth of the
resident set during the forward pass (CPU), or the allocator's peak (CUDA)."""

from __future__ import annotations

import copy
import statistics
from functools import partial

import numpy as np
import torch
from torch import Tensor
from transformers import LongformerModel

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.benchmarks import timing
from cdlm_lab.benchmarks.coreference import SIZES
from cdlm_lab.encoders.checkpoint import own_randomness
from cdlm_lab.encoders.encoder import TinySizes, load_tokenizer, tiny_config
from cdlm_lab.encoders.source_attention import attend_to_source

SOURCE_TOKENS = 3
WAYS = ("huggingface", "ours")
COLUMNS = {
    "length": "{length}",
    "Hugging Face s": "{huggingface_seconds:.2f}",
    "ours s": "{ours_seconds:.2f}",
    "times faster (min-max)": timing.TIMES_FASTER,
    "Hugging Face MiB": "{huggingface_mib:.0f}",
    "ours MiB": "{ours_mib:.0f}",
}


def models(*, sizes: TinySizes, window: int, max_length: int) -> dict[str, LongformerModel]:
    """Return one encoder with Hugging Face's attention, and a copy with ours."""
    tokenizer = load_tokenizer("tiny", sizes=sizes)
    with own_randomness(0):
        config = tiny_config(tokenizer, max_length=max_length, window=window, sizes=sizes)
        theirs = LongformerModel(config, add_pooling_layer=False).eval()
    return {"huggingface": theirs, "ours": replace_self_attention(copy.deepcopy(theirs))}


def text_of(length: int, model: LongformerModel) -> tuple[Tensor, np.ndarray]:
    """Return random token ids (seq,) and the positions of the source tokens in the middle."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(10, model.config.vocab_size, (length,), generator=generator)
    return ids, np.arange(length // 2, length // 2 + SOURCE_TOKENS)


@torch.inference_mode()
def read(name: str, model: LongformerModel, ids: Tensor, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the attention from and to the source, each (layers, heads, source tokens, seq)."""
    if name == "ours":
        attended = attend_to_source(model, ids, source=source)
        return attended.given, attended.received
    is_global = torch.zeros(1, len(ids), dtype=torch.long, device=model.device)
    is_global[0, source] = 1
    out = model(
        ids[None].to(model.device),
        attention_mask=torch.ones_like(is_global),
        global_attention_mask=is_global,
        output_attentions=True,
    )
    # The attentions of global tokens are in a separate tensor; their rows in the other one are zeros.
    given = torch.stack([layer[0].transpose(-1, -2)[..., : len(ids)] for layer in out.global_attentions])
    received = torch.stack([layer[0, :, :, : len(source)].transpose(-1, -2) for layer in out.attentions])
    received[..., source] = given[..., source].transpose(-1, -2)  # between global tokens
    return given.cpu().numpy(), received.cpu().numpy()


def peak_memory(name: str, *, sizes: TinySizes, window: int, length: int, device: torch.device) -> float:
    """Return the peak memory of a forward pass in MiB; to be called in a fresh process."""
    model = models(sizes=sizes, window=window, max_length=length)[name].to(device)
    read(name, model, *text_of(window, model))
    return timing.peak_growth(partial(read, name, model, *text_of(length, model)), model.device)


def measure(
    both: dict[str, LongformerModel], *, length: int, repeats: int, memory: dict[str, float]
) -> dict[str, float]:
    """Return one row of the table. `memory`: peak memory of each model in MiB, measured elsewhere."""
    ids, source = text_of(length, both["ours"])
    works = {name: partial(read, name, model, ids, source) for name, model in both.items()}
    results = {name: work() for name, work in works.items()}  # warm-up
    times = timing.take_turns(works, repeats=repeats, device=both["ours"].device, desc=f"length {length}")
    pairs = zip(results["ours"], results["huggingface"], strict=True)
    return {
        "length": length,
        **{f"{name}_seconds": statistics.median(times[name]) for name in WAYS},
        **timing.ratio("times_faster", *(times[name] for name in WAYS)),
        **{f"{name}_mib": memory[name] for name in WAYS},
        "largest_difference": max(float(np.abs(mine - theirs).max()) for mine, theirs in pairs),
    }


def main() -> None:
    """Parse the command line, run the benchmark and print its results."""
    parser = timing.command_line(__doc__, repeats=5)
    parser.add_argument("--lengths", type=int, nargs="+", default=(1024, 2048, 4096))
    parser.add_argument("--model", choices=SIZES, default="minilm", help="sizes; weights are random")
    parser.add_argument("--window", type=int, default=512)
    given = timing.arguments(parser)
    form = {"sizes": SIZES[given.model], "window": given.window}
    loaded = models(**form, max_length=max(given.lengths))
    both = {name: model.to(given.device) for name, model in loaded.items()}
    head = timing.print_head(given, "model", "window", "repeats", source_tokens=SOURCE_TOKENS)
    form |= {"device": given.device}
    rows = []
    for length in given.lengths:
        memory = {name: timing.in_fresh_process(peak_memory, name, length=length, **form) for name in WAYS}
        rows.append(measure(both, length=length, repeats=given.repeats, memory=memory))
    print(timing.table({**COLUMNS, "differ by": "{largest_difference:.0e}"}, rows))
    timing.write_rows(given.json, head, rows)


if __name__ == "__main__":
    main()
