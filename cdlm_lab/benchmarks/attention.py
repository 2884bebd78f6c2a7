"""Our attention layer against Hugging Face's, forward and backward, with projections: time, memory, fraction
of the peak rate.

    python -m cdlm_lab.benchmarks.attention         # the table of the README: 2 CPU cores or a GPU
    python -m cdlm_lab.benchmarks.attention --lengths 1024 --globals 15% 0 --repeats 5 --json out.json

Both layers have equal weights and take turns in one process (A B A B ...), so that drifts in the machine's
speed affect both; the ratio is the median of the ratios of each round. Peak memory is measured in a fresh
process per case and layer: the growth of the resident set (CPU), or of the allocator's peak (CUDA), above the
inputs. "of peak" = useful floating-point operations (the query-key pairs of the definition and the
projections that they need, nothing masked or discarded) per second, divided by the rate of a large matrix
product measured in the same run."""

from __future__ import annotations

import copy
import statistics
from functools import partial

import torch
from torch import Tensor, nn

from cdlm_lab.attention.layer import LocalGlobalSelfAttention, with_our_attention
from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.benchmarks import timing

HEADS, HEAD_SIZE, WINDOW = 12, 64, 512
COLUMNS = {
    "length": "{length}",
    "globals": "{globals}",
    "Hugging Face ms": "{huggingface_ms:.0f}",
    "ours ms": "{ours_ms:.0f}",
    "times faster (min-max)": timing.TIMES_FASTER,
    "Hugging Face MiB": "{huggingface_mib:.0f}",
    "ours MiB": "{ours_mib:.0f}",
    "times less memory": "{times_less_memory:.1f}",
    "of peak": "{of_peak:.0%}",
}


def number_of_globals(text: str, length: int) -> int:
    """Return the number of global tokens for a share of `length`, such as '15%', or for a plain number."""
    return round(length * float(text[:-1]) / 100) if text.endswith("%") else int(text)


def make_case(
    *, length: int, n_global: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return hidden states (1, length, embed) that require gradients, and Hugging Face's mask, in which the
    global tokens are evenly spaced."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(1, length, HEADS * HEAD_SIZE, generator=generator).to(device, dtype).requires_grad_()
    mask = torch.zeros(1, length, device=device)
    if n_global:
        mask[0, torch.linspace(0, length - 1, n_global).long()] = 10_000.0
    return hidden, mask


def layers(*, device: torch.device, dtype: torch.dtype) -> dict[str, nn.Module]:
    """Return Hugging Face's layer and ours, with equal weights."""
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
    theirs = LongformerSelfAttention(config, 0).to(device, dtype)
    return {"huggingface": theirs, "ours": with_our_attention(copy.deepcopy(theirs), backend="auto")}


def step(layer: nn.Module, hidden: Tensor, mask: Tensor) -> None:
    """Run forward and backward once; ours plans and packs, as for a new batch."""
    if isinstance(layer, LocalGlobalSelfAttention):
        plan = make_plan(attention_mask=mask >= 0, global_mask=mask > 0, window=WINDOW)
        plan.unpack(layer(plan.pack(hidden), plan)[0]).sum().backward()
    else:
        flags = {"is_index_masked": mask < 0, "is_index_global_attn": mask > 0}
        flags["is_global_attn"] = bool((mask > 0).any())
        layer(hidden, attention_mask=mask, **flags)[0].sum().backward()
    hidden.grad = None
    layer.zero_grad(set_to_none=True)


def useful_operations(plan: Plan) -> int:
    """Return multiply-adds x 2 of forward and backward, for pairs (scores and values) and projections.

    The backward pass of a product costs two products. That of fused attention costs five for the forward's
    two, as scores are recomputed, but only the four that the definition needs are counted.
    """
    embed = HEADS * HEAD_SIZE
    n_tokens, n_local, n_global = len(plan.order), len(plan.local_order), len(plan.global_order)
    projected = 2 * n_tokens + n_local + (2 * n_tokens + n_global if n_global else 0)
    return 3 * (2 * projected * embed * embed + 2 * 2 * plan.pairs * embed)


def peak_memory(name: str, *, length: int, n_global: int, device: torch.device, dtype: torch.dtype) -> float:
    """Return the peak memory of one step above the inputs in MiB; to be called in a fresh process."""
    layer = layers(device=device, dtype=dtype)[name]
    step(layer, *make_case(length=WINDOW, n_global=4, device=device, dtype=dtype))
    case = make_case(length=length, n_global=n_global, device=device, dtype=dtype)
    return timing.peak_growth(partial(step, layer, *case), device)


def measure(
    *, length: int, n_global: int, device: torch.device, dtype: torch.dtype, repeats: int, peak_rate: float
) -> dict[str, float]:
    """Return one row of the table; `peak_rate`: operations per second of a large matrix product."""
    form = {"length": length, "n_global": n_global, "device": device, "dtype": dtype}
    both = layers(device=device, dtype=dtype)
    hidden, mask = make_case(**form)
    works = {name: partial(step, layer, hidden, mask) for name, layer in both.items()}
    for work in works.values():  # warm-up
        work()
    desc = f"length {length}, {n_global} global"
    times = timing.take_turns(works, repeats=repeats, device=device, desc=desc)
    plan = make_plan(attention_mask=mask >= 0, global_mask=mask > 0, window=WINDOW)
    memory = {name: timing.in_fresh_process(peak_memory, name, **form) for name in both}
    ours = statistics.median(times["ours"])
    return {
        "length": length,
        "globals": n_global,
        "huggingface_ms": 1000 * statistics.median(times["huggingface"]),
        "ours_ms": 1000 * ours,
        **timing.ratio("times_faster", times["huggingface"], times["ours"]),
        "huggingface_mib": memory["huggingface"],
        "ours_mib": memory["ours"],
        "times_less_memory": memory["huggingface"] / memory["ours"],
        "of_peak": useful_operations(plan) / ours / peak_rate,
    }


def main() -> None:
    """Parse the command line, run the benchmark and print its results."""
    parser = timing.command_line(__doc__, repeats=7)
    parser.add_argument("--lengths", type=int, nargs="+", default=(1024, 2048, 4096))
    parser.add_argument("--globals", nargs="+", default=("15%", "16", "0"), help="counts or shares (15%%)")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    given = timing.arguments(parser)
    device, dtype = given.device, getattr(torch, given.dtype)
    cases = [(length, number_of_globals(text, length)) for length in given.lengths for text in given.globals]
    rate = timing.matmul_rate(device=device, dtype=dtype)
    print(f"one layer, {HEADS} x {HEAD_SIZE}, window {WINDOW}, both passes, {given.repeats} pairs of runs")
    head = timing.print_head(given, "dtype", matmul_gflops=rate / 1e9)
    form = {"device": device, "dtype": dtype, "repeats": given.repeats, "peak_rate": rate}
    rows = [measure(length=length, n_global=n_global, **form) for length, n_global in cases]
    print(timing.table(COLUMNS, rows))
    timing.write_rows(given.json, head, rows)


if __name__ == "__main__":
    main()
