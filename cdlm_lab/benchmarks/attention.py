"""Our attention layer against Hugging Face's, forward + backward, with projections: time, memory, fraction of
peak.

    python -m cdlm_lab.benchmarks.attention                     # the table of the README: 2 CPU cores or a
    GPU python -m cdlm_lab.benchmarks.attention --lengths 1024 --globals 15% 0 --repeats 5 --json out.json

Both layers share their weights and run in turn in one process (A B A B ...), so that a machine whose speed
drifts drifts for both; the ratio is the median of the ratios pair by pair. Peak memory is taken in a fresh
process a case and layer: the growth of the resident set over the inputs (CPU), or the allocator's peak over
the inputs (CUDA).

"of peak" = useful floating-point operations (the pairs the definition asks for and the projections they need,
nothing masked or thrown away) per second, over the rate of a large matrix product measured in the same run.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from cdlm_lab.attention.layer import LocalGlobalSelfAttention, replace_self_attention
from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.benchmarks.timing import (
    command_line,
    matmul_rate,
    peak_growth,
    print_head,
    ratio,
    surroundings,
    table,
    take_turns,
    write_rows,
)

HEADS, HEAD_SIZE, WINDOW = 12, 64, 512
LENGTHS = (1024, 2048, 4096)
GLOBALS = ("15%", "16", "0")


def number_of_globals(text: str, length: int) -> int:
    """'15%' of `length`, or a plain number."""
    return round(length * float(text[:-1]) / 100) if text.endswith("%") else int(text)


def make_case(
    *, length: int, n_global: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Hidden states (1, length, embed) that want a gradient, and Hugging Face's mask with globals spread
    evenly."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(1, length, HEADS * HEAD_SIZE, generator=generator).to(device, dtype).requires_grad_()
    mask = torch.zeros(1, length, device=device)
    if n_global:
        mask[0, torch.linspace(0, length - 1, n_global).long()] = 10_000.0
    return hidden, mask


def layers(*, device: torch.device, dtype: torch.dtype) -> dict[str, nn.Module]:
    """Hugging Face's layer and ours, with equal weights."""
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    config = LongformerConfig(
        hidden_size=HEADS * HEAD_SIZE,
        num_attention_heads=HEADS,
        num_hidden_layers=1,
        attention_window=[WINDOW],
        attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    holder = nn.ModuleDict({"self": LongformerSelfAttention(config, 0)}).to(device, dtype)
    ours = replace_self_attention(copy.deepcopy(holder))
    return {"huggingface": holder["self"], "ours": ours["self"]}


def step(layer: nn.Module, hidden: Tensor, mask: Tensor) -> None:
    """One forward and backward. The mask is copied so that our plan is made anew, as for a new batch."""
    mask = mask.clone()
    arguments = (
        {}
        if isinstance(layer, LocalGlobalSelfAttention)
        else {
            "is_index_masked": mask < 0,
            "is_index_global_attn": mask > 0,
            "is_global_attn": bool((mask > 0).any()),
        }
    )
    layer(hidden, attention_mask=mask, **arguments)[0].sum().backward()
    hidden.grad = None
    layer.zero_grad(set_to_none=True)


def useful_operations(plan: Plan) -> int:
    """Multiply-adds x 2 of forward and backward: pairs (scores and values) and the projections they need.

    The backward of a product costs two products; of fused attention it costs five for the forward's two,
    since scores are recomputed, but only the four that the definition needs are counted.
    """
    embed = HEADS * HEAD_SIZE
    n_tokens, n_local, n_global = len(plan.order), len(plan.local_order), len(plan.global_order)
    projected = 2 * n_tokens + n_local + (2 * n_tokens + n_global if n_global else 0)
    return 3 * (2 * projected * embed * embed + 2 * 2 * plan.pairs * embed)


def peak_memory(name: str, *, length: int, n_global: int, device: torch.device, dtype: torch.dtype) -> float:
    """MiB above the inputs at the peak of one step, in this (fresh) process."""
    layer = layers(device=device, dtype=dtype)[name]
    step(layer, *make_case(length=WINDOW, n_global=4, device=device, dtype=dtype))
    case = make_case(length=length, n_global=n_global, device=device, dtype=dtype)
    return peak_growth(lambda: step(layer, *case), device)


def peak_memory_in_fresh_process(name: str, *, length: int, n_global: int, device: str, dtype: str) -> float:
    """`peak_memory`, measured where nothing else has run."""
    arguments = ["--peak-of", name, "--lengths", str(length), "--globals", str(n_global)]
    arguments += ["--device", device, "--dtype", dtype]
    command = [sys.executable, "-m", "cdlm_lab.benchmarks.attention", *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def measure(
    *, length: int, n_global: int, device: str, dtype: str, repeats: int, peak_rate: float
) -> dict[str, float]:
    """One row of the table."""
    place, precision = torch.device(device), getattr(torch, dtype)
    both = layers(device=place, dtype=precision)
    hidden, mask = make_case(length=length, n_global=n_global, device=place, dtype=precision)
    for layer in both.values():
        step(layer, hidden, mask)
    works = {name: partial(step, layer, hidden, mask) for name, layer in both.items()}
    times = take_turns(works, repeats=repeats, device=place, desc=f"length {length}, {n_global} global")
    plan = make_plan(attention_mask=mask >= 0, global_mask=mask > 0, window=WINDOW)
    memory = {
        name: peak_memory_in_fresh_process(name, length=length, n_global=n_global, device=device, dtype=dtype)
        for name in both
    }
    ours = statistics.median(times["ours"])
    return {
        "length": length,
        "globals": n_global,
        "huggingface_ms": 1000 * statistics.median(times["huggingface"]),
        "ours_ms": 1000 * ours,
        **ratio("times_faster", times["huggingface"], times["ours"]),
        "huggingface_mib": memory["huggingface"],
        "ours_mib": memory["ours"],
        "times_less_memory": memory["huggingface"] / memory["ours"],
        "of_peak": useful_operations(plan) / ours / peak_rate,
    }


def markdown(rows: Sequence[Mapping[str, float]]) -> str:
    """The rows as a Markdown table."""
    columns = {
        "length": "{length}",
        "globals": "{globals}",
        "Hugging Face ms": "{huggingface_ms:.0f}",
        "ours ms": "{ours_ms:.0f}",
        "times faster (min-max)": "{times_faster:.1f} ({times_faster_min:.1f}-{times_faster_max:.1f})",
        "Hugging Face MiB": "{huggingface_mib:.0f}",
        "ours MiB": "{ours_mib:.0f}",
        "times less memory": "{times_less_memory:.1f}",
        "of peak": "{of_peak:.0%}",
    }
    return table(columns, rows)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = command_line(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--globals", nargs="+", default=GLOBALS, help="numbers, or shares such as 15%%")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--peak-of", choices=["huggingface", "ours"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    device, dtype = torch.device(given.device), getattr(torch, given.dtype)
    cases = [(length, number_of_globals(text, length)) for length in given.lengths for text in given.globals]
    if given.peak_of:
        print(
            peak_memory(given.peak_of, length=cases[0][0], n_global=cases[0][1], device=device, dtype=dtype)
        )
        return
    rate = matmul_rate(device=device, dtype=dtype)
    head = {"machine": surroundings(device)["machine"], "torch": torch.__version__, "dtype": given.dtype}
    head |= {"matmul_gflops": rate / 1e9}
    print(f"one layer, {HEADS} x {HEAD_SIZE}, window {WINDOW}, both passes, {given.repeats} pairs of runs")
    print_head(head)
    rows = [
        measure(
            length=length,
            n_global=n_global,
            device=given.device,
            dtype=given.dtype,
            repeats=given.repeats,
            peak_rate=rate,
        )
        for length, n_global in cases
    ]
    print(markdown(rows))
    write_rows(given.json, head, rows)


if __name__ == "__main__":
    main()
