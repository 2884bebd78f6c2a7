"""Complete training steps of Hugging Face's Longformer and ours: tokens per second, memory, and fraction of
the rate of a matrix product.

    python -m cdlm_lab.benchmarks.training       # about 30 minutes on 2 CPU cores, --full an hour; or a GPU
    python -m cdlm_lab.benchmarks.training --parts minilm --lengths 1024 --globals 15% --precisions bfloat16

A step is forward, backward, gradient clipping and AdamW, as in the trainer (autocast in bfloat16, weights in
float32), on random tokens, 15% of them masked:

    minilm   a masked language model with 12 layers, hidden size 384, RoBERTa's vocabulary; hidden dropout 0.1
    modernbert  a ModernBERT with as many layers and weights and the same masks, with 15% globals and the last
             of the dropouts alone; Hugging Face's is then theirs with the masks as matrices. The rows of
             minilm with the same length are Longformer's
    tiny     the small model that comes with the project; without dropout, as it is trained
    pairs    the pairwise coreference scorer on minilm: whole documents, 9 global tokens ([CLS], two marked
             mentions); hidden dropout 0.1
    sentences  minilm on sentences of 20 to 60 tokens, padded, without global tokens, as models of MSPP, CDA,
             and Doc-ARC read; Hugging Face's is then RoBERTa, with PyTorch's own attention

Both models have the same weights, dropout, precision and optimiser, and take turns (A B A B ...), so that
drifts in the machine's speed affect both; the ratio is the median of the ratios of each pair of steps. After
`--patience` seconds on one row no further pair of steps begins. Each model has its own process, ours with
`memory_kept`, as in every training of this library. Peak memory is measured in the first step, above weights
and tokens: activations, gradients, AdamW's averages. The first step is not timed.

"of rate" = our useful floating-point operations (those of `cdlm_lab.encoders.estimate`) per second, by
the rate of a large matrix product in the same precision, measured after each pair of steps.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor
from transformers import (
    LongformerConfig,
    LongformerForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PretrainedConfig,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
)
from transformers.modeling_outputs import MaskedLMOutput

from cdlm_lab.attention.dense import visible
from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.benchmarks import timing
from cdlm_lab.benchmarks.attention import number_of_globals
from cdlm_lab.encoders.checkpoint import own_randomness
from cdlm_lab.encoders.conversion import COPIED_SETTINGS
from cdlm_lab.encoders.encoder import TinySizes
from cdlm_lab.encoders.estimate import MASKED_SHARE, estimate
from cdlm_lab.encoders.language_model import NOT_MASKED, CrossDocumentLM, CrossDocumentModernBert, set_dropout
from cdlm_lab.encoders.packed import read_only_globals, replace_self_attention
from cdlm_lab.encoders.precision import memory_kept
from cdlm_lab.examples.collate import plan_of
from cdlm_lab.progress import Progress
from cdlm_lab.tasks.coreference.model import HIDDEN, PairScorer

WAYS = ("huggingface", "ours")
FULL = "full"  # as many weights with full attention by PyTorch's kernel, measured by `gpu_check`
ROBERTA_WORDS = 50_265
SIZES = {
    "minilm": TinySizes(
        hidden_size=384, layers=12, heads=12, intermediate_size=1536, vocabulary=ROBERTA_WORDS, dropout=0.1
    ),
    "tiny": TinySizes(),
}
WINDOWS = {1024: 128, 4096: 512}
EXAMPLES = {1024: 2, 4096: 1}  # length -> batch size of minilm
TINY = {"length": 512, "window": 32, "examples": 4}  # as in storyworld_tiny.yaml
PAIRS = {"length": 1024, "window": 128, "examples": 4}  # documents as long as those of ECB+
PAIR_GLOBALS = 9
SENTENCES = {"length": 60, "window": 120, "examples": 32}
PARTS = ("minilm", "modernbert", "tiny", "pairs", "sentences")
GLOBALS = ("15%", "0")
DROPOUTS = (0.1, 0.0)
PRECISIONS = ("float32", "bfloat16")
COLUMNS = {
    "part": "{part}",
    "length / window": "{length:,} / {window}",
    "globals": "{global_tokens}",
    "attention dropout": "{attention_dropout:g}",
    "precision": "{precision}",
    "Hugging Face tokens/s": "{huggingface_tokens_per_second:,.0f}",
    "ours tokens/s": "{ours_tokens_per_second:,.0f}",
    "times faster (min-max)": timing.TIMES_FASTER,
    "Hugging Face MiB": "{huggingface_mib:,.0f}",
    "ours MiB": "{ours_mib:,.0f}",
    "of rate": "{of_rate:.0%}",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """Settings of one row of the table."""

    part: str  # one of PARTS
    length: int  # tokens of each example; there is no padding, but in sentences, where it counts as tokens
    window: int  # attention window
    examples: int  # batch size
    global_tokens: int  # global tokens of each example
    attention_dropout: float  # of both models
    precision: str  # of the forward pass

    @property
    def sizes(self) -> TinySizes:
        """Sizes of the model."""
        return SIZES["tiny" if self.part == "tiny" else "minilm"]

    @property
    def config(self) -> PretrainedConfig:
        """Configuration of both models."""
        sizes = self.sizes
        if self.part == "modernbert":
            return self._of_modernbert(sizes)
        return LongformerConfig(
            vocab_size=sizes.vocabulary,
            hidden_size=sizes.hidden_size,
            num_hidden_layers=sizes.layers,
            num_attention_heads=sizes.heads,
            intermediate_size=sizes.intermediate_size,
            attention_window=[self.window] * sizes.layers,
            max_position_embeddings=self.length + 2,
            type_vocab_size=1,
            initializer_range=0.02,
            hidden_dropout_prob=sizes.dropout,
            attention_probs_dropout_prob=self.attention_dropout,
        )

    def _of_modernbert(self, sizes: TinySizes) -> ModernBertConfig:
        config = ModernBertConfig(
            vocab_size=sizes.vocabulary,
            hidden_size=sizes.hidden_size,
            num_hidden_layers=sizes.layers,
            num_attention_heads=sizes.heads,
            intermediate_size=sizes.intermediate_size * 2 // 3,  # three matrices instead of two
            max_position_embeddings=self.length,
            pad_token_id=1,
            cls_token_id=0,
            bos_token_id=0,
            sep_token_id=2,
            eos_token_id=2,
        )
        config.attention_window = [self.window] * sizes.layers
        set_dropout(config, hidden=sizes.dropout, attention=self.attention_dropout)
        return config

    @property
    def useful_operations(self) -> float:
        """Useful floating-point operations of one step, forward and backward."""
        if self.part == "pairs":
            is_global = self.batch()["global_attention_mask"][:1] == 1
            return 3 * self.examples * pair_operations(self.config, is_global)
        form = {"global_tokens": self.global_tokens, "masked_tokens": round(MASKED_SHARE * self.length)}
        return self.examples * estimate(self.config, length=self.length, batch=1, **form).training_flops

    def model(self, way: str) -> PreTrainedModel:
        """Return one of the models in training mode; those of WAYS have the same weights."""
        with own_randomness(0):
            if self.part == "pairs":
                model = PairScorer(self.config)
            elif self.part == "modernbert":
                model = (CrossDocumentModernBert if way == "ours" else MatrixModernBertForMaskedLM)(
                    self.config
                )
            else:
                model = (CrossDocumentLM if way == "ours" else LongformerForMaskedLM)(self.config)
                torch.nn.init.zeros_(model.lm_head.bias)  # Hugging Face leaves it uninitialised
        if way == FULL or (way == "huggingface" and self.part == "sentences"):
            model = self._with_full_attention(model)
        if way == "ours":
            replace_self_attention(model)
            if self.part == "pairs":
                read_only_globals(model.longformer)
        return model.train()

    def _with_full_attention(self, model: PreTrainedModel) -> PreTrainedModel:
        """RoBERTa with the weights of a Longformer, but its global projections."""
        form = {name: getattr(self.config, name) for name in COPIED_SETTINGS}
        full = RobertaForMaskedLM(RobertaConfig(**form, max_position_embeddings=self.length + 2))
        named = {name.replace("longformer.", "roberta."): w for name, w in model.state_dict().items()}
        full.load_state_dict({name: named[name] for name in full.state_dict()})
        return full

    def batch(self) -> dict[str, Tensor]:
        """Return a batch of random tokens. Masked tokens are at random positions, the mentions of pairs at
        the centre of each half."""
        generator = torch.Generator().manual_seed(0)
        shape = (self.examples, self.length)
        input_ids = torch.randint(5, self.sizes.vocabulary, shape, generator=generator)
        is_global = torch.zeros(shape, dtype=torch.int64)
        batch = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}
        batch["global_attention_mask"] = is_global
        if self.part == "pairs":
            mentions = torch.zeros(self.examples, 2, self.length, dtype=torch.bool)
            for number in range(2):
                start = (1 + 2 * number) * self.length // 4
                mentions[:, number, start : start + (self.global_tokens - 1) // 2] = True
            is_global[mentions.any(1)] = 1
            is_global[:, 0] = 1
            labels = torch.arange(self.examples).remainder(2).float()
            return {**batch, "mention_mask": mentions, "labels": labels}
        order = torch.rand(shape, generator=generator).argsort(dim=-1)
        masked = order[:, : round(MASKED_SHARE * self.length)]
        is_global.scatter_(1, order[:, : self.global_tokens], 1)
        labels = torch.full(shape, NOT_MASKED).scatter(1, masked, input_ids.gather(1, masked))
        if self.part == "sentences":
            ends = torch.linspace(self.length // 3, self.length, self.examples).long()
            batch["attention_mask"] = (torch.arange(self.length) < ends[:, None]).long()
            padding = batch["attention_mask"] == 0
            batch["input_ids"] = input_ids.masked_fill(padding, self.config.pad_token_id)
            labels.masked_fill_(padding, NOT_MASKED)
        return {**batch, "labels": labels}


def pair_operations(config: LongformerConfig, is_global: Tensor) -> int:
    """Return the floating-point operations (multiply-adds x 2) of one pair's probability; `is_global`: (1,
    seq).

    The MLP reads `[CLS]` and the mentions, which are all global tokens. Of the last layer this needs only the
    global queries, their keys and values, and the feed-forward block of global tokens.
    """
    width, inner = config.hidden_size, config.intermediate_size
    everything, window = torch.ones_like(is_global), config.attention_window[0]
    plan = make_plan(attention_mask=everything, global_mask=is_global, window=window)
    tokens, of_globals = len(plan.order), len(plan.global_order)
    rest = 2 * width * (width + 2 * inner)  # per token after attention: output projection, feed-forward
    layer = 2 * 5 * tokens * width * width + 4 * plan.pairs * width + tokens * rest
    last = 2 * (2 * tokens + of_globals) * width * width + 4 * of_globals * tokens * width + of_globals * rest
    return (config.num_hidden_layers - 1) * layer + last + 2 * HIDDEN * (4 * width + 1)


class MatrixModernBertForMaskedLM(ModernBertForMaskedLM):
    """Hugging Face's ModernBERT with local + global attention as a matrix in PyTorch's own attention."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor,
        global_attention_mask: Tensor | None = None,
    ) -> MaskedLMOutput:
        """Hugging Face's output."""
        is_global = attention_mask * 0 if global_attention_mask is None else global_attention_mask
        masks = {"attention_mask": attention_mask.bool(), "global_mask": is_global.bool()}
        sees = visible(**masks, window=self.config.attention_window[0])[:, None]
        masks = dict.fromkeys(self.config.layer_types, sees)
        return super().forward(input_ids, attention_mask=masks, labels=labels)


class TrainingStep:
    """Training of one model (`way`: one of WAYS, or FULL); each call makes one step."""

    _plan: Plan | None = None

    def __init__(self, case: Case, way: str, *, device: torch.device) -> None:
        self.model = case.model(way).to(device)
        batch = case.batch()
        if way == FULL or not batch["global_attention_mask"].any():
            del batch["global_attention_mask"]
        elif way == "ours" and device.type == "cuda":  # as workers make batches meanwhile
            self._plan = plan_of(batch, window=case.window)
        self.batch = {name: tensor.to(device) for name, tensor in batch.items()}
        self._dtype = getattr(torch, case.precision)
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-5, weight_decay=0.01, fused=True)

    def __call__(self) -> None:
        """Make one step: forward, backward, gradient clipping, update."""
        batch = self.batch if self._plan is None else self.batch | {"plan": replace(self._plan, kept={})}
        with torch.autocast(self.model.device.type, self._dtype, enabled=self._dtype != torch.float32):
            loss = self.model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()


def cases(
    *,
    parts: Sequence[str] = PARTS,
    lengths: Sequence[int] = tuple(WINDOWS),
    shares: Sequence[str] = GLOBALS,
    dropouts: Sequence[float] = DROPOUTS,
    precisions: Sequence[str] = PRECISIONS,
) -> Iterator[Case]:
    """Yield the rows to measure, the slowest part first. `shares`: global tokens, except for "pairs"."""
    for length, part in product(sorted(lengths, reverse=True), PARTS[:2]):
        form = {"part": part, "length": length, "window": WINDOWS[length], "examples": EXAMPLES[length]}
        ways = (shares, dropouts) if part == "minilm" else (shares[:1], dropouts[-1:])
        for share, dropout, precision in product(*ways, precisions) if part in parts else ():
            count = number_of_globals(share, length)
            yield Case(**form, global_tokens=count, attention_dropout=dropout, precision=precision)
    for precision, dropout in product(precisions, dropouts) if "pairs" in parts else ():
        form = {"attention_dropout": dropout, "precision": precision}
        yield Case(part="pairs", **PAIRS, global_tokens=PAIR_GLOBALS, **form)
    for precision, dropout in product(precisions, dropouts) if "sentences" in parts else ():
        form = {"attention_dropout": dropout, "precision": precision}
        yield Case(part="sentences", **SENTENCES, global_tokens=0, **form)
    for precision, share in product(precisions, shares) if "tiny" in parts else ():
        count = number_of_globals(share, TINY["length"])
        yield Case(part="tiny", **TINY, global_tokens=count, attention_dropout=0.0, precision=precision)


_kept = ExitStack()  # contexts that stay open until the process ends
_step: TrainingStep | None = None  # made by `begin` in a worker process


def begin(case: Case, way: str, device: torch.device) -> float:
    """Make a model in a fresh process; return the peak MiB of its first step above weights and tokens."""
    global _step
    length = 2 * case.window
    first = replace(case, length=length, examples=1, global_tokens=min(case.global_tokens, length // 4))
    if way == "ours":
        _kept.enter_context(memory_kept())
    # Another model makes a step first, so that memory that libraries allocate once is not counted.
    TrainingStep(replace(first, part="tiny"), way, device=device)()
    _step = TrainingStep(case, way, device=device)
    return timing.peak_growth(_step, device)


def seconds_of_step() -> float:
    """Make one more step with that model; return its duration in seconds."""
    return timing.seconds(_step, _step.model.device)


def measure(
    case: Case,
    *,
    device: torch.device,
    repeats: int,
    patience: float,
    bar: Progress,
    ways: Sequence[str] = WAYS,
) -> dict[str, object]:
    """Return one row of the table; `ways`: what takes turns, WAYS among them. Of another model than ours that
    the machine has no memory for, the numbers are None. The bar advances by `repeats` + 1 times the case's
    useful operations. Raises MemoryError if there is none for ours."""
    share, dtype = case.useful_operations, getattr(torch, case.precision)
    times: dict[str, list[float]] = {way: [] for way in ways}
    rates: list[float] = []
    with ExitStack() as stack:
        workers = {way: stack.enter_context(timing.fresh_process(preloaded=True)) for way in ways}
        memory = {way: _begun(worker, case, way, device) for way, worker in workers.items()}
        running = {way: worker for way, worker in workers.items() if memory[way] is not None}
        bar.update(share)
        began = time.monotonic()
        for done in range(repeats):
            if done and time.monotonic() - began > patience:
                bar.update(share * (repeats - done))
                break
            for way, worker in running.items():
                times[way].append(worker.submit(seconds_of_step).result())
            rates.append(timing.matmul_rate(device=device, dtype=dtype))
            bar.update(share)
    tokens = case.examples * case.length
    of_rate = [share / ours / rate for ours, rate in zip(times["ours"], rates, strict=True)]
    return {
        **dataclasses.asdict(case),
        "pairs_of_steps": len(rates),
        **{
            f"{way}_tokens_per_second": tokens / statistics.median(of) if of else None
            for way, of in times.items()
        },
        **timing.ratio("times_faster", times["huggingface"], times["ours"]),
        **{f"{way}_mib": memory[way] for way in ways},
        "matmul_gflops": statistics.median(rates) / 1e9,
        "of_rate": statistics.median(of_rate),
    }


def _begun(worker: ProcessPoolExecutor, case: Case, way: str, device: torch.device) -> float | None:
    """What `begin` returns; None if the model's process was killed, as one is whose memory is not there."""
    try:
        return worker.submit(begin, case, way, device).result()
    except (BrokenProcessPool, torch.OutOfMemoryError) as error:
        if way == "ours":
            raise MemoryError(f"our model had no memory for a step of {case}; choose other rows") from error
        return None


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = timing.command_line(__doc__, repeats=3)
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--lengths", type=int, choices=WINDOWS, nargs="+", default=tuple(WINDOWS))
    parser.add_argument("--globals", nargs="+", default=GLOBALS, help="counts or shares (15%%), not of pairs")
    parser.add_argument("--dropouts", type=float, nargs="+", default=DROPOUTS, help="of the attention")
    parser.add_argument("--precisions", choices=PRECISIONS, nargs="+", default=PRECISIONS)
    parser.add_argument("--patience", type=float, default=15, help="seconds until a row begins no more pairs")
    parser.add_argument("--full", action="store_true", help="five pairs of steps a row; an hour or more")
    given = timing.arguments(parser)
    if given.full:
        given.repeats, given.patience = 5, math.inf
    return given


def main() -> None:
    """Run the benchmark and print its results."""
    given = arguments()
    form = {name: getattr(given, name) for name in ("parts", "lengths", "dropouts", "precisions")}
    chosen = list(cases(shares=given.globals, **form))
    head = timing.print_head(given, "repeats")
    rows: list[dict[str, object]] = []
    total = (given.repeats + 1) * sum(case.useful_operations for case in chosen)
    drawn = "{desc}: {percentage:3.0f}% |{bar:20}| {elapsed}<{remaining}"
    pace = {name: getattr(given, name) for name in ("device", "repeats", "patience")}
    with Progress(total=total, desc="steps", bar_format=drawn) as bar:
        for case in chosen:
            rows.append(measure(case, **pace, bar=bar))
            timing.write_rows(given.json, head, rows)
    print(timing.table(COLUMNS, rows))


if __name__ == "__main__":
    main()
