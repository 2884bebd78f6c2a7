"""What a GPU does with everything here, on one page: `make gpu-check`, the first thing to run where a GPU is
at hand, under ten minutes on one H100. On a CPU the same is done, except the tests that need a GPU.

    python -m cdlm_lab.benchmarks.gpu_check                                 # writes runs/gpu-check/record.md
    python -m cdlm_lab.benchmarks.gpu_check --parts tests benchmark         # some parts
    python -m cdlm_lab.benchmarks.gpu_check --parts notebooks --only tour   # some tasks of the small grid

tests       the tests marked gpu
notebooks   all thirteen notebooks at the small setting (notebooks/grids/small.yaml), by papermill, in `auto`
            precision, which is bfloat16 on such a GPU; scores beside those recorded on a CPU
resume      a pretraining that is killed and begun again, beside one that is not
benchmark   training steps beside Hugging Face's Longformer, and beside full attention by PyTorch's
paper       memory and time of a step of each paper's settings: as estimated before a training, and measured

Trainings of the small grid end differently on every kind of machine, so scores are held to the CPU's by a
bound on their median distance and on the share that are far off (MEDIAN, FAR, SHARE); the loss of the resumed
training to that of the other by RESUMED, since a GPU adds in no fixed order.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import BertConfig, LongformerConfig, RobertaConfig

from cdlm_lab.benchmarks import timing, training
from cdlm_lab.data.files import replaced_file
from cdlm_lab.encoders.conversion import longformer_config
from cdlm_lab.encoders.encoder import TinySizes
from cdlm_lab.encoders.estimate import bytes_per_number, estimate, measured_rate, training_seconds
from cdlm_lab.encoders.precision import resolve_precision
from cdlm_lab.progress import Progress
from cdlm_lab.runs.report import git_commit, read_report
from cdlm_lab.runs.scores import plain_name
from cdlm_lab.training.history import HISTORY_FILE, read_history

ROOT = Path(__file__).resolve().parents[2]  # of a clone: tests and notebooks are not installed
CPU_SCORES = ROOT / "tests" / "frozen" / "frozen.json"
MEDIAN, FAR, SHARE = 0.05, 0.25, 0.1  # of distances between scores, relative ones of those above 1
RESUMED = 0.02  # relative difference of two losses
PRETRAINING = {"train_clusters": 60, "held_out_clusters": 8, "max_length": 256, "steps": 60}
PRETRAINING |= {"warmup_steps": 10, "evaluate_every": 10, "attention_dropout": 0.1}
KILLED_AT = 20  # steps


class Part(NamedTuple):
    """What a part of the check found."""

    text: str  # Markdown
    passed: bool = True


# ---- tests, notebooks, resumption


def tests(given: Any) -> Part:
    """The tests marked gpu."""
    if given.device.type != "cuda":
        return Part("No GPU: the tests marked gpu were not run.")
    done = _command(["-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "tests"])
    return Part(f"`{(done.stdout.strip().splitlines() or [done.stderr[-300:]])[-1]}`", done.returncode == 0)


def notebooks(given: Any) -> Part:
    """All notebooks at the small setting, and their scores beside the CPU's."""
    began = time.monotonic()
    only = ["--only", *given.only] if given.only else []
    command = ["-m", "cdlm_lab.batch.command", "run", str(ROOT / "notebooks/grids/small.yaml"), *only]
    done = _command(command, cwd=given.folder)
    took = f"exit {done.returncode}, {time.monotonic() - began:.0f} s"
    text = f"`cdlm-lab run notebooks/grids/small.yaml`: {took}."
    if done.returncode:
        return Part(f"{text}\n\n```\n{(done.stdout + done.stderr)[-2000:]}\n```", False)
    compared, held = beside_cpu(given.folder / "runs" / "small")
    return Part(f"{text} {compared}", held)


def beside_cpu(runs: Path) -> tuple[str, bool]:
    """A sentence on the scores in a folder of runs beside those recorded on a CPU, and whether they are
    within the bound."""
    wanted = json.loads(CPU_SCORES.read_text(encoding="utf-8"))["grid"]["runs"]
    found = {run: scores_of(runs / run) for run in wanted if (runs / run / "report.json").is_file()}
    distances = {}
    for run, scores in found.items():
        for entry in wanted[run].split(", "):
            name, value = entry.rsplit(" ", 1)
            if name in scores:
                distances[f"{run} {name}"] = abs(scores[name] - float(value)) / max(1.0, abs(float(value)))
    if not distances:
        return "No score to compare.", bool(found)
    median = statistics.median(distances.values())
    share = sum(distance > FAR for distance in distances.values()) / len(distances)
    worst = max(distances, key=distances.__getitem__)
    held = median <= MEDIAN and share <= SHARE
    return (
        f"{len(distances)} scores of {len(found)} runs beside the CPU's: median distance {median:.3f} (bound "
        f"{MEDIAN}), {share:.0%} beyond {FAR} (bound {SHARE:.0%}), the largest {distances[worst]:.2f} "
        f"({worst}).",
        held,
    )


def scores_of(run: Path) -> dict[str, float]:
    """The scores of a run over its seeds, by readable names."""
    rows = (row for row in read_report(run).rows if row.seed is None)
    return {plain_name(row): row.value for row in rows if math.isfinite(row.value)}


def resume(given: Any) -> Part:
    """A pretraining that is killed after some steps and begun again ends as one that is not."""
    last = {}
    for name in ("whole", "killed"):
        run = given.folder / "runs" / name
        if name == "killed":
            _kill_when(_papermill(run), run)
        if code := _papermill(run).wait():
            return Part(f"The {name} training ended with exit {code}; see {run}.log.", False)
        last[name] = [one["eval_loss"] for one in _history(run) if "eval_loss" in one][-1]
    apart = abs(last["whole"] - last["killed"]) / last["whole"]
    text = f"loss on dev {last['whole']:.6f}; killed after {KILLED_AT} steps and resumed {last['killed']:.6f}"
    steps = PRETRAINING["steps"]
    return Part(f"Pretraining of {steps} steps: {text} (bound: {RESUMED:.0%}).", apart <= RESUMED)


def _papermill(run: Path) -> subprocess.Popen[bytes]:
    run.parent.mkdir(parents=True, exist_ok=True)
    words = [part for name, value in PRETRAINING.items() for part in ("-p", name, str(value))]
    notebook, out = ROOT / "notebooks" / "01_pretraining.ipynb", f"{run}.ipynb"
    command = [sys.executable, "-m", "papermill", str(notebook), out, "-p", "run_folder", str(run), *words]
    with open(f"{run}.log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=_surroundings(), start_new_session=True)


def _kill_when(process: subprocess.Popen[bytes], run: Path) -> None:
    """Kill a training with all its processes once it has made KILLED_AT steps, or let it end."""
    while process.poll() is None and not any(one["step"] >= KILLED_AT for one in _history(run)):
        time.sleep(0.1)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _history(run: Path) -> list[dict[str, Any]]:
    file = next(run.rglob(HISTORY_FILE), None)
    return read_history(file) if file else []


def _surroundings() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def _command(words: list[str], *, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    form = {"cwd": cwd, "env": _surroundings(), "capture_output": True, "text": True}
    return subprocess.run([sys.executable, *words], **form)


# ---- speed and memory

COLUMNS = {
    **{name: training.COLUMNS[name] for name in ("part", "length / window", "globals", "attention dropout")},
    "precision": "{precision}",
    "rows": "{examples}",
    "Hugging Face tokens/s": "{huggingface_tokens_per_second:,.0f}",
    "full attention tokens/s": "{full_tokens_per_second:,.0f}",
    "ours tokens/s": "{ours_tokens_per_second:,.0f}",
    "MiB of the three": "{huggingface_mib:,.0f}, {full_mib:,.0f}, {ours_mib:,.0f}",
    "of rate": "{of_rate:.0%}",
}


def benchmark(given: Any) -> Part:
    """Training steps of three models with the same sizes; on a CPU of `tiny`."""
    part = "minilm" if given.device.type == "cuda" else "tiny"
    form = {"parts": [part], "shares": ["15%"], "lengths": [4096], "precisions": [given.precision]}
    chosen = list(training.cases(**form))
    total = 4 * sum(case.useful_operations for case in chosen)
    pace = {"device": given.device, "repeats": 3, "patience": 15.0, "ways": (*training.WAYS, training.FULL)}
    with Progress(total=total, desc="steps") as bar:
        rows = [training.measure(case, **pace, bar=bar) for case in chosen]
    return Part(timing.table(COLUMNS, rows))


class Setting(NamedTuple):
    """What a paper trains, as its parameter file and grid say."""

    name: str
    config: LongformerConfig
    length: int  # tokens of a sequence
    batch: int  # sequences read at once
    global_tokens: int
    attention_dropout: float = 0.1
    gradient_checkpointing: bool = False


def settings() -> Iterator[Setting]:
    """A training of each paper's grid; nothing is downloaded, as sizes alone matter."""
    sizes = {"vocab_size": 50_265, "pad_token_id": 1, "layer_norm_eps": 1e-5}
    longformer = LongformerConfig(**sizes, attention_window=[512] * 12, max_position_embeddings=4098)
    roberta = longformer_config(RobertaConfig(**sizes), max_length=768, window=768)
    large = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    large |= {"intermediate_size": 4096, "vocab_size": 28_996}
    bert = longformer_config(BertConfig(**large), max_length=256, window=256)
    yield Setting("CDLM, pretraining", longformer, 4096, 8, 614, gradient_checkpointing=True)
    yield Setting("CDLM, HotpotQA", longformer, 4096, 4, 60)
    yield Setting("MSPP, six sentences of 64", roberta, 384, 32, 0)
    yield Setting("CDA, BERT-large on sentences", bert, 64, 480, 0)
    yield Setting("Doc-ARC, pretraining on passages", bert, 128, 32, 0)


def paper(given: Any) -> Part:
    """A step of each paper's settings: estimated and measured; on a CPU of a model of two narrow layers."""
    rate, rows = measured_rate(given.precision), []
    with timing.fresh_process(preloaded=True) as process:
        for one in settings():
            one = one if given.device.type == "cuda" else _small(one)
            cost = estimate(
                one.config,
                length=one.length,
                batch=one.batch,
                global_tokens=one.global_tokens,
                bytes_per_number=bytes_per_number(given.precision),
                gradient_checkpointing=one.gradient_checkpointing,
            )
            one.config.attention_probs_dropout_prob = one.attention_dropout
            seconds, mib = process.submit(step_of, one, given.precision, given.device).result()
            expected = one.batch * training_seconds(cost, one.config, rate=rate)
            row = {"setting": one.name, "shape": f"{one.batch} x {one.length:,}", "seconds": seconds}
            row |= {"mib": mib, "estimated_seconds": expected}
            row["estimated_mib"] = (cost.activation_bytes + cost.state_bytes * 3 / 4) / 2**20
            rows.append(row)
    columns = {"setting": "{setting}", "batch": "{shape}", "s a step": "{seconds:.3f}"}
    columns |= {"estimated s": "{estimated_seconds:.3f}", "MiB": "{mib:,.0f}"}
    columns |= {"estimated MiB": "{estimated_mib:,.0f}"}
    text = "MiB: above weights; each as a masked language model."
    return Part(f"{timing.table(columns, rows)}\n\n{text}")


def _small(one: Setting) -> Setting:
    config = LongformerConfig(
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        num_hidden_layers=2,
        vocab_size=300,
        attention_window=[one.config.attention_window[0] // 8] * 2,
        max_position_embeddings=one.length // 8 + 2,
        pad_token_id=1,
        type_vocab_size=1,
    )
    form = {"length": one.length // 8, "batch": 2, "global_tokens": one.global_tokens // 8}
    return one._replace(config=config, **form)


@dataclass(frozen=True, kw_only=True)
class _Case(training.Case):
    """A case of the training benchmark with another configuration."""

    given: LongformerConfig

    @property
    def config(self) -> LongformerConfig:
        return self.given

    @property
    def sizes(self) -> TinySizes:
        return TinySizes(vocabulary=self.given.vocab_size)


def step_of(one: Setting, precision: str, device: torch.device) -> tuple[float, float]:
    """Seconds of a training step (the median of three after the first), and MiB of the first above weights;
    to be called in a fresh process."""
    case = _Case(
        part="minilm",
        length=one.length,
        window=one.config.attention_window[0],
        examples=one.batch,
        global_tokens=one.global_tokens,
        attention_dropout=one.attention_dropout,
        precision=precision,
        given=one.config,
    )
    step = training.TrainingStep(case, "ours", device=device)
    if one.gradient_checkpointing:
        step.model.gradient_checkpointing_enable({"use_reentrant": False})
    mib = timing.peak_growth(step, device)
    return statistics.median(timing.seconds(step, device) for _ in range(3)), mib


# ---- the record

PARTS: dict[str, Callable[[Any], Part]] = {
    "tests": tests,
    "notebooks": notebooks,
    "resume": resume,
    "benchmark": benchmark,
    "paper": paper,
}


def main() -> None:
    """Run the parts and write the record after each; the exit code is 1 if one did not pass."""
    parser = timing.command_line(__doc__, repeats=3)
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=tuple(PARTS))
    parser.add_argument("--only", nargs="+", default=(), help="tasks of the small grid, with what they need")
    parser.add_argument("--folder", type=Path, default=Path("runs/gpu-check"), help="for runs and the record")
    given = timing.arguments(parser)
    given.folder = given.folder.resolve()
    given.folder.mkdir(parents=True, exist_ok=True)
    given.precision = resolve_precision("auto", device=given.device.type)
    name = torch.cuda.get_device_name(given.device) if given.device.type == "cuda" else "no GPU"
    versions = f"torch {torch.__version__}, commit {git_commit() or 'unknown'}"
    page = [f"# GPU check: {name}", f"{time.strftime('%Y-%m-%d')}; {versions}; {given.precision}."]
    passed = True
    for title in given.parts:
        began = time.monotonic()
        part = PARTS[title](given)
        passed &= part.passed
        verdict = "passed" if part.passed else "FAILED"
        page += [f"## {title}: {verdict}, {time.monotonic() - began:.0f} s", part.text]
        with replaced_file(given.folder / "record.md") as file:
            file.write("\n\n".join(page) + "\n")
        print("\n\n".join(page[-2:]), flush=True)
    print(f"\n{given.folder / 'record.md'}: {'all passed' if passed else 'something FAILED'}")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
