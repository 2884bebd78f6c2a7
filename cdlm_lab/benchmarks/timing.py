"""Common functions of all benchmarks: timing in turns, peak memory, rate of a matrix product, tables."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from string import Formatter
from typing import Any, TypeVar

import torch
import transformers

from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import path_argument
from cdlm_lab.progress import Progress, end_with_parent

Work = Callable[[], object]
Name = TypeVar("Name")
TIMES_FASTER = "{times_faster:.1f} ({times_faster_min:.1f}-{times_faster_max:.1f})"  # a cell of a table


def seconds(work: Work, device: torch.device) -> float:
    """Return the wall time of `work` in seconds, with CUDA synchronised before and after it."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def take_turns(
    works: Mapping[Name, Work], *, repeats: int, device: torch.device, desc: str
) -> dict[Name, list[float]]:
    """Time functions in turn (A B A B ...), so that drifts in the machine's speed affect all; in seconds."""
    times: dict[Name, list[float]] = {name: [] for name in works}
    with Progress(total=repeats, desc=desc, unit=" rounds") as bar:
        for _ in range(repeats):
            for name, work in works.items():
                times[name].append(seconds(work, device))
            bar.update(1)
    return times


def ratio(name: str, upper: Sequence[float], lower: Sequence[float]) -> dict[str, float | None]:
    """Return median and range of the ratios of each round, as `name`, `name`_min and `name`_max; None if one
    of them was not measured."""
    if not upper or not lower:
        return dict.fromkeys((name, f"{name}_min", f"{name}_max"))
    ratios = [one / other for one, other in zip(upper, lower, strict=True)]
    return {name: statistics.median(ratios), f"{name}_min": min(ratios), f"{name}_max": max(ratios)}


def matmul_rate(*, device: torch.device, dtype: torch.dtype, size: int = 256) -> float:
    """Return the floating-point operations per second of a product of matrices with 2048 rows (median of 5).
    `size`: rows that are tried first, and alone if so slow, as in bfloat16 without a unit for it, that 2048
    would take minutes."""
    left = torch.randn(size, size, device=device).to(dtype)
    left @ left
    rate = 2 * size**3 / statistics.median(seconds(lambda: left @ left, device) for _ in range(5))
    return rate if size == 2048 or rate < 5e9 else matmul_rate(device=device, dtype=dtype, size=2048)


def peak_growth(work: Work, device: torch.device) -> float:
    """Return the peak memory of `work` above the current one in MiB: resident set, or CUDA's allocator."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    # not getrusage: its maximum is inherited from the parent process
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current resident set
    before = _peak_resident_mib()
    work()
    return _peak_resident_mib() - before


def _peak_resident_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmHWM: CPU memory is measured on Linux only")


def fresh_process(*, preloaded: bool = False) -> ProcessPoolExecutor:
    """Return an executor with one fresh process. `preloaded`: True = it starts with all modules imported,
    which saves seconds; but reuse of memory that the imports left free is then not measured as growth."""
    started = multiprocessing.get_context("forkserver" if preloaded else "spawn")
    if preloaded:  # what is imported here, but for the program itself: imported twice, it warns
        ours = ("cdlm_lab.", "transformers.models.")
        started.set_forkserver_preload([name for name in sys.modules if name.startswith(ours)])
    process = ProcessPoolExecutor(1, started, initializer=end_with_parent)
    process.submit(torch.set_num_threads, torch.get_num_threads())  # as many as here
    return process


def in_fresh_process(function: Callable[..., float], *arguments: object, **settings: object) -> float:
    """Call a module-level function in a fresh process and return its result."""
    with fresh_process() as process:
        return process.submit(function, *arguments, **settings).result()


def print_head(given: argparse.Namespace, *shown: str, **measured: object) -> dict[str, Any]:
    """Print and return machine, versions, the options in `shown`, and what else was `measured`."""
    on_cpu = f"{torch.get_num_threads()} CPU threads"
    machine = torch.cuda.get_device_name() if given.device.type == "cuda" else on_cpu
    head = {"machine": machine, "torch": torch.__version__, "transformers": transformers.__version__}
    head |= {name: getattr(given, name) for name in shown} | measured
    print("; ".join(f"{name} {value}" for name, value in head.items()) + "\n")
    return head


def command_line(doc: str | None, *, repeats: int) -> argparse.ArgumentParser:
    """Return a parser with the options common to all benchmarks, to be read by `arguments`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=torch.device, default=default_device())
    parser.add_argument("--repeats", type=int, default=repeats, help="runs of each way")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0 = as PyTorch chooses")
    parser.add_argument("--json", type=path_argument, help="also write the rows here")
    return parser


def arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line, and set the number of threads."""
    print_any_sign()
    given = parser.parse_args()
    torch.set_num_threads(given.threads or torch.get_num_threads())
    return given


def cell(form: str, row: Mapping[str, Any]) -> str:
    """A format string filled in from a row; of None, as of a model that did not fit, "out of memory"."""
    read = (name for _, name, _, _ in Formatter().parse(form) if name)
    return "out of memory" if any(row[name] is None for name in read) else form.format_map(row)


def table(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a Markdown table; `columns`: heading -> format string, which is filled in from a row."""
    cells = [list(columns), *([cell(text, row) for text in columns.values()] for row in rows)]
    head, *body = ("| " + " | ".join(line) + " |" for line in cells)
    return "\n".join([head, "|---" * len(columns) + "|", *body])


def write_rows(path: Path | None, head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows with their head as JSON; `path`: None = do nothing."""
    if path:
        path.write_text(json.dumps({**head, "rows": rows}, indent=2) + "\n")
