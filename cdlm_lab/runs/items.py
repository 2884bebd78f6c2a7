"""The table of items: what every experiment measures, one row an item and base metric.

    system  seed  split  group  cluster  item  metric  num  den

`num` and `den` add up over items: a base metric is the sum of `num` divided by that of `den`, so a mean has
`den` 1, precision has correct and predicted spans, a perplexity has nats and tokens. `cluster` is what is
left out together: items of one story, document or topic are not independent. `seed` is that of the training,
or UNTRAINED. Everything that a report says of scores, intervals and tests comes from this table, by
`cdlm_lab.runs.evaluation.evaluate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdlm_lab.data.files import DataError, replaced_file

KEY = ("system", "seed", "split", "group", "cluster", "item", "metric")
COLUMNS = (*KEY, "num", "den")
ITEMS_FILE = "items.parquet"
UNTRAINED = -1  # the seed of what has none: a rule, or models that are measured as they are
_TEXTS = tuple(name for name in KEY if name != "seed")
Numbers = Sequence[float] | np.ndarray


def items_of(
    values: Mapping[str, Numbers | tuple[Numbers, Numbers]],
    *,
    system: str,
    split: str,
    items: Sequence[Any],
    clusters: Sequence[Any] | None = None,
    seed: int = 0,
    group: str = "",
) -> pd.DataFrame:
    """The rows of one system with one seed on one split. `values`: base metric -> (items,) values, whose mean
    is the score, or a pair of (items,) sums, num and den; `items`: their names, which are told `apart`;
    `clusters`: of each item, None = each is its own."""
    names = apart(items)
    of_items = names if clusters is None else [str(one) for one in clusters]
    parts = []
    for metric, given in values.items():
        num, den = given if isinstance(given, tuple) else (given, np.ones(len(names)))
        parts.append(
            pd.DataFrame(
                {
                    "cluster": of_items,
                    "item": names,
                    "num": np.asarray(num, float),
                    "den": np.asarray(den, float),
                }
            ).assign(system=system, seed=seed, split=split, group=group, metric=metric)
        )
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def apart(names: Iterable[Any]) -> list[str]:
    """The names as text, each repeated one with its number.

    >>> apart(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: Counter[str] = Counter()
    told = []
    for name in map(str, names):
        seen[name] += 1
        told.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return told


def checked_items(table: pd.DataFrame) -> pd.DataFrame:
    """The table in its columns and types. Raises ValueError, with the first row at fault: a column is missing
    or not known, a number is not finite, `den` is negative, or two rows have the same key."""
    if lacking := [name for name in COLUMNS if name not in table]:
        raise ValueError(
            f"the table of items has no column {lacking[0]}; it has {', '.join(map(str, table))}"
        )
    if more := [name for name in table if name not in COLUMNS]:
        raise ValueError(f"the table of items has a column {more[0]}, which is not known")
    numbers = {"seed": "int64", "num": "float64", "den": "float64"}
    table = table[list(COLUMNS)].astype(dict.fromkeys(_TEXTS, "str") | numbers).reset_index(drop=True)
    for fault, what in (
        (~np.isfinite(table["num"]) | ~np.isfinite(table["den"]), "num and den must be finite"),
        (table["den"] < 0, "den must not be negative"),
        (table.duplicated(list(KEY)), "a second row of the same item, metric, system and seed"),
    ):
        if fault.any():
            row = int(np.argmax(fault))
            raise ValueError(f"items[{row}] {table.loc[row].to_dict()}: {what}")
    return table


def write_items(table: pd.DataFrame, file: Path) -> None:
    """Write the table as Parquet, atomically; texts that repeat are stored once."""
    write_frame(checked_items(table).astype(dict.fromkeys(_TEXTS, "category")), file)


def read_items(file: Path) -> pd.DataFrame:
    """Read what `write_items` wrote. Raises DataError if it is no table of items."""
    table = read_frame(file)
    try:
        return checked_items(table)
    except ValueError as error:
        raise DataError(file, f"not a table of items: {error}", "restore the file, or run again") from None


def write_frame(frame: pd.DataFrame, file: Path) -> None:
    """Write a table as Parquet, atomically; its folder is created if it does not exist."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(file, binary=True) as opened:
        frame.to_parquet(opened, index=False, compression="zstd")


def read_frame(file: Path) -> pd.DataFrame:
    """Read what `write_frame` wrote. Raises DataError if it is no table."""
    try:
        return pd.read_parquet(file)
    except FileNotFoundError:
        raise DataError(file, "no such file", "run the experiment again, which writes it") from None
    except (ValueError, OSError) as error:
        raise DataError(file, f"not a Parquet table: {error}", "delete the file and run again") from None
