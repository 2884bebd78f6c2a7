"""The table of scores that every report holds, in long form: one row for each number.

An experiment passes its rows to `Run.write_report`; `report.frame` returns them as a pandas DataFrame with a
column for each field of `Score`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, ConfigDict
from pydantic.dataclasses import dataclass as checked_dataclass

if TYPE_CHECKING:
    import pandas as pd

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
_of_numpy = BeforeValidator(lambda value: value.item() if hasattr(value, "item") else value)
Number = Annotated[int | float, _of_numpy]
Count = Annotated[int, _of_numpy]


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Score:
    """One number of a report. Its key (system, split, group, metric, seed) is unique within the report."""

    system: str = ""  # what was measured, such as a model; "" = the run itself
    split: str = ""  # `train`, `dev`, `test`, or the name of another test set; "" = there is only one
    group: str = ""  # the subset or setting that is measured, such as `event` or `entity`; "" = all
    metric: str  # such as `f1`, `conll/f1`, `perplexity`
    value: Number  # in [0, 1] unless the metric has another scale
    low: Number | None = None  # low, high: bounds of the 95% interval
    high: Number | None = None
    deviation: Number | None = None  # standard deviation over the seeds
    n: Count | None = None  # number of items measured
    clusters: Count | None = None  # number of groups of items that the interval resamples
    # Seed of the one training run that is measured; None = the row covers all, or nothing was trained.
    seed: Count | None = None
    seeds: Count | None = None  # number of training runs whose mean this is
    # Two-sided p-value of the test against the system `against`, Holm-corrected for the number of tests.
    p: Number | None = None
    against: str = ""
    chance: Number | None = None  # value that guessing reaches
    note: str = ""  # anything else about the number, as text

    def __post_init__(self) -> None:
        if (self.low is None) is not (self.high is None) or (self.low is not None and self.low > self.high):
            raise ValueError(f"[{self.low}, {self.high}] is no interval")
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"p is {self.p}; it must lie in [0, 1]")
        if self.deviation is not None and self.deviation < 0:
            raise ValueError(f"the deviation is {self.deviation}; it must not be negative")

    @property
    def key(self) -> tuple[str, str, str, str, int | None]:
        """(system, split, group, metric, seed), by which a row is unique in its report."""
        return self.system, self.split, self.group, self.metric, self.seed


_DEFAULTS = {one.name: one.default for one in fields(Score)}
COLUMNS = tuple(_DEFAULTS)


def check_apart(rows: Sequence[Score]) -> None:
    """Raise ValueError, with the index of the row, if one has the same key as an earlier row."""
    seen = set()
    for number, row in enumerate(rows):
        if row.key in seen:
            raise ValueError(f"scores[{number}]: a second row of {plain_name(row)}")
        seen.add(row.key)


def json_of(rows: Iterable[Score]) -> list[dict[str, Any]]:
    """The rows as JSON mappings, without the columns in which a row has the default value."""
    return [
        {name: value for name in COLUMNS if (value := getattr(row, name)) != _DEFAULTS[name]} for row in rows
    ]


def frame_of(rows: Iterable[Score]) -> pd.DataFrame:
    """The rows as a pandas DataFrame with a column for each field of `Score`; missing numbers are nan."""
    import pandas as pd

    frame = pd.DataFrame([[getattr(row, name) for name in COLUMNS] for row in rows], columns=list(COLUMNS))
    numbers = [name for name in COLUMNS if _DEFAULTS[name] is None or name == "value"]
    return frame.astype(dict.fromkeys(numbers, "float64"))


def plain_name(row: Score) -> str:
    """A readable name of a row, made of its key: `cdlm/test/f1`."""
    seed = "" if row.seed is None else f"seed {row.seed}"
    return "/".join(filter(None, (row.system, row.group, row.split, row.metric, seed)))


def split_in_words(split: str) -> str:
    """Write the name of a split in words: test_one_document -> "test, one document"."""
    return split.replace("_", ", ", 1).replace("_", " ")
