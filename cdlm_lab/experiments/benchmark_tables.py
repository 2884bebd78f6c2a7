"""Tables of the README that are made from the files of the benchmarks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdlm_lab.experiments.result_cells import paper_cell
from cdlm_lab.report import RunError
from cdlm_lab.widgets.result_table import ResultCell, ResultColumn, ResultTable

# Zhou et al. 2020 ("CDA"), Table 11: seconds of inference of GRU-HAN alone, SHALLOW and DEEP, on a GPU.
PAPER_TABLE_11 = {"S2ORC": (0.256, 0.256, 0.258), "PAN": (0.568, 0.581, 0.637)}


def attention_speed(results: Path) -> ResultTable:
    """Our attention layer against Hugging Face's."""
    rows = [
        [
            str(row["length"]),
            str(row["globals"]),
            f"{row['huggingface_ms']:.0f}",
            f"{row['ours_ms']:.0f}",
            _times(row),
            f"{row['huggingface_mib']:.0f}",
            f"{row['ours_mib']:.0f}",
            f"{row['times_less_memory']:.1f}",
            f"{row['of_peak']:.0%}",
        ]
        for row in _read(results / "attention_benchmark.json", "rows")
    ]
    names = "length, globals, Hugging Face ms, ours ms, times faster (min-max), Hugging Face MiB, ours MiB"
    return _table([*names.split(", "), "times less memory", "of peak"], rows)


def training_speed(results: Path) -> ResultTable:
    """Whole training steps, ours against Hugging Face's."""
    rows = [
        [
            row["part"],
            f"{row['length']:,} / {row['window']}",
            str(row["global_tokens"]),
            f"{row['attention_dropout']:g}",
            row["precision"],
            f"{row['huggingface_tokens_per_second']:,.0f}",
            f"{row['ours_tokens_per_second']:,.0f}",
            _times(row),
            f"{row['huggingface_mib']:,.0f}",
            f"{row['ours_mib']:,.0f}",
            f"{row['of_rate']:.0%}",
        ]
        for row in _read(results / "training_benchmark.json", "rows")
    ]
    names = (
        "part, length / window, globals, attention dropout, precision, Hugging Face tokens/s, ours tokens/s"
    )
    return _table(
        [*names.split(", "), "times faster (min-max)", "Hugging Face MiB", "ours MiB", "of rate"], rows
    )


def explorer_speed(results: Path) -> ResultTable:
    """Attention of chosen tokens against Hugging Face's `output_attentions`."""
    rows = [
        [
            str(row["length"]),
            f"{row['huggingface_seconds']:.2f}",
            f"{row['ours_seconds']:.2f}",
            _times(row),
            f"{row['huggingface_mib']:.0f}",
            f"{row['ours_mib']:.0f}",
        ]
        for row in _read(results / "source_attention_benchmark.json", "rows")
    ]
    names = "length, Hugging Face s, ours s, times faster (min-max), Hugging Face MiB, ours MiB"
    return _table(names.split(", "), rows)


def coreference_speed(results: Path) -> ResultTable:
    """Pairs of mentions scored a second, ours against one at a time."""
    rows = []
    for context in ("documents", "sentences"):
        file = results / f"coreference_benchmark_{context}.json"
        rate = _read(file, "pairs_per_second")
        rows.append(
            [
                context,
                f"{_read(file, 'tokens_per_pair')['median']:.0f}",
                short(rate["huggingface"]),
                short(rate["ours"]),
                _times({name: _read(file, name) for name in _TIMES}),
                f"{_read(file, 'largest_difference'):.0e}",
            ]
        )
    names = "context, tokens a pair (median), Hugging Face pairs/s, ours pairs/s, times faster (min-max)"
    return _table([*names.split(", "), "probabilities differ by"], rows)


def cross_document_cost(results: Path) -> ResultTable:
    """What cross-document attention costs GRU-HAN."""
    rows = []
    for row in _read(results / "cross_document_attention_benchmark.json", "rows"):
        if row["cda"] != "none":
            alone, *others = PAPER_TABLE_11.get(row["text"], (None, None, None))
            paper = dict(zip(("shallow", "deep"), others, strict=True))[row["cda"]]
            rows.append(
                [
                    ResultCell(text=row["text"]),
                    ResultCell(text=row["cda"].upper()),
                    ResultCell(text=_ratio(row)),
                    ResultCell(text=f"{row['predicted']:.2f}"),
                    paper_cell(f"{paper / alone:.2f}" if paper else ""),
                    ResultCell(text=f"{row['added_parameters']:,}"),
                ]
            )
    return ResultTable(
        caption="",
        columns=(
            ResultColumn(name="text", is_text=True),
            ResultColumn(name="CDA", is_text=True),
            ResultColumn(name="times GRU-HAN alone (min-max)"),
            ResultColumn(name="by multiply-adds"),
            ResultColumn(name="paper, GPU", published=True),
            ResultColumn(name="more parameters"),
        ),
        rows=rows,
    )


def tagging_cost(results: Path) -> ResultTable:
    """An epoch of Doc-ARC against its baseline."""
    names = {"linear": "linear", "bilstm": "biLSTM (the paper)"}
    rows = [
        [
            str(row["occurrences"]),
            names[row["form"]],
            _ratio(row),
            short(row["predicted"]),
            f"{row['encoding_again']:.{1 if row['encoding_again'] < 10 else 0}f}",
        ]
        for row in _read(results / "document_tagging_benchmark.json", "rows")
        if row["form"] in names
    ]
    columns = ["K", "context encoder", "times the baseline (min-max)", "by multiply-adds"]
    return _table([*columns, "with encoding in each epoch, as released"], rows)


BENCHMARK_TABLES: Mapping[str, Callable[[Path], ResultTable]] = {
    "attention-speed": attention_speed,
    "training-speed": training_speed,
    "explorer-speed": explorer_speed,
    "coreference-speed": coreference_speed,
    "cross-document-cost": cross_document_cost,
    "tagging-cost": tagging_cost,
}


def short(value: float) -> str:
    """Two decimals below 10, one below 15 times that, none above: 0.844 -> `0.84`, 46.87 -> `46.9`."""
    return f"{value:.{2 if value < 10 else 1 if value < 150 else 0}f}"


_TIMES = ("times_faster", "times_faster_min", "times_faster_max")


def _times(row: Mapping[str, float]) -> str:
    times, lowest, highest = (f"{row[name]:.1f}" for name in _TIMES)
    return f"{times} ({lowest}-{highest})"


def _ratio(row: Mapping[str, float]) -> str:
    ratio, lowest, highest = (short(row[name]) for name in ("ratio", "ratio_min", "ratio_max"))
    return f"{ratio} ({lowest}-{highest})"


def _read(file: Path, field: str) -> Any:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"there is no {file}; run its benchmark, or take its table's markers away") from None
    except ValueError as error:
        raise RunError(f"{file}: not JSON ({error}); write it anew") from None
    if not isinstance(values, dict) or field not in values:
        raise RunError(f"{file}: the field {field!r} is missing; write it anew")
    return values[field]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> ResultTable:
    """All columns hold numbers but those whose first cell does not begin with a digit."""
    columns = [
        ResultColumn(name=name, is_text=not cell[0].isdigit())
        for name, cell in zip(names, rows[0], strict=True)
    ]
    return ResultTable(
        caption="", columns=columns, rows=[[ResultCell(text=cell) for cell in row] for row in rows]
    )
