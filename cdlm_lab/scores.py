"""The one table of scores that every report holds, in long form: a row for each number.

An experiment hands its rows to `Run.write_report`; who reads a report takes `report.frame`, a pandas frame
with a column for each field of `Score`. Before format 2 every experiment named its scores in its own way:
`NAMINGS` knows these names, and is the only place that does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, ConfigDict, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

if TYPE_CHECKING:
    import pandas as pd

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
_of_numpy = BeforeValidator(lambda value: value.item() if hasattr(value, "item") else value)
Number = Annotated[int | float, _of_numpy]
Count = Annotated[int, _of_numpy]


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Score:
    """One number of a report. What tells two rows apart: system, split, group, metric and seed."""

    system: str = ""  # what was measured, such as a model; "" = the run itself
    split: str = ""  # `train`, `dev`, `test`, or the name of another test set; "" = there is but one
    group: str = ""  # the part or setting that is measured, such as `event` and `entity`; "" = all
    metric: str  # `f1`, `conll/f1`, `perplexity`
    value: Number  # in [0, 1] unless the metric has another scale
    low: Number | None = None  # low, high: bounds of the 95% interval
    high: Number | None = None
    deviation: Number | None = None  # standard deviation over the seeds
    n: Count | None = None  # how many items it is measured on
    clusters: Count | None = None  # of how many groups of items the interval draws
    # Of the one training measured; None = the row is of all, or nothing was trained.
    seed: Count | None = None
    seeds: Count | None = None  # of how many trainings it is the mean
    # Two-sided, corrected for the number of tests (Holm), against the system `against`.
    p: Number | None = None
    against: str = ""
    chance: Number | None = None  # what guessing reaches
    note: str = ""  # anything else that belongs to it, as text

    def __post_init__(self) -> None:
        if (self.low is None) is not (self.high is None) or (self.low is not None and self.low > self.high):
            raise ValueError(f"[{self.low}, {self.high}] is no interval")
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"p is {self.p}; it must lie in [0, 1]")
        if self.deviation is not None and self.deviation < 0:
            raise ValueError(f"the deviation is {self.deviation}; it must not be negative")

    @property
    def key(self) -> tuple[str, str, str, str, int | None]:
        """What tells it from the other rows of its report."""
        return self.system, self.split, self.group, self.metric, self.seed


_DEFAULTS = {one.name: one.default for one in fields(Score)}
COLUMNS = tuple(_DEFAULTS)


def checked_rows(rows: object) -> list[Score]:
    """Rows as JSON has them, or as they are; ValueError with the number of a row that is none, or a second
    one of the same key."""
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ValueError(f"scores is {rows!r} ({type(rows).__name__}); it must be a list of rows")
    checked: dict[tuple, Score] = {}
    for number, row in enumerate(rows):
        one = row if isinstance(row, Score) else _row(row, f"scores[{number}]")
        if one.key in checked:
            raise ValueError(f"scores[{number}]: a second row of {plain_name(one)}")
        checked[one.key] = one
    return list(checked.values())


def _row(row: object, where: str) -> Score:
    if not isinstance(row, Mapping):
        raise ValueError(f"{where} is {row!r} ({type(row).__name__}); it must be a mapping")
    try:
        return Score(**row)
    except ValidationError as error:
        first = error.errors()[0]
        column = "".join(f"[{part!r}]" for part in first["loc"][:1])
        what = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}{column}: {what[0].lower()}{what[1:]}") from None


def json_of(rows: Iterable[Score]) -> list[dict[str, Any]]:
    """The rows as mappings, without the columns that say nothing of a row."""
    return [
        {name: value for name in COLUMNS if (value := getattr(row, name)) != _DEFAULTS[name]} for row in rows
    ]


def frame_of(rows: Iterable[Score]) -> pd.DataFrame:
    """A pandas frame with a column for each field; a number that a row lacks is nan."""
    import pandas as pd

    frame = pd.DataFrame([[getattr(row, name) for name in COLUMNS] for row in rows], columns=list(COLUMNS))
    numbers = [name for name in COLUMNS if _DEFAULTS[name] is None or name == "value"]
    return frame.astype(dict.fromkeys(numbers, "float64"))


def plain_name(row: Score) -> str:
    """`cdlm/test/f1`: all that tells a row apart, for people."""
    seed = "" if row.seed is None else f"seed {row.seed}"
    return "/".join(filter(None, (row.system, row.group, row.split, row.metric, seed)))


# ---- how scores were named before there were rows ----


@dataclass(frozen=True, kw_only=True)
class Naming:
    """How the reports of an experiment named their scores in format 1."""

    name: str = "{metric}"  # the form of the names; a name of fewer parts is a metric of the run itself
    # key of a score -> column, where it is not the same word
    columns: Mapping[str, str] = field(default_factory=lambda: {"label": "note"})
    group: str = ""  # the parameter that is the group of all rows
    # a row of the table of comparisons -> the row of scores that its p belongs to, and against what
    test: Callable[[Mapping[str, Any]], dict[str, str]] | None = None


def _of_test_set(row: Mapping[str, Any]) -> dict[str, str]:
    return {"system": row["a"], "split": "test", "metric": row["measure"], "against": row["b"]}


def _of_alignment(row: Mapping[str, Any]) -> dict[str, str]:
    tested, other = f"{row['a']}/{row['by']}", f"{row['b']}/{row['b_by']}"
    return {"system": tested, "group": "oracle", "metric": "mrr", "against": other}


def _of_answers(row: Mapping[str, Any]) -> dict[str, str]:
    return _of_test_set(row) | {"group": row["ranking"]} if row["b"] == "pairwise" else {}


def _of_claims(row: Mapping[str, Any]) -> dict[str, str]:
    return _of_test_set(row) | {"split": row["set"]} if row["b"].startswith("pairwise") else {}


def _of_kind(row: Mapping[str, Any]) -> dict[str, str]:
    return {"system": row["a"], "metric": row["kind"], "against": row["b"]}


_OF_TOKENS = {"tokens": "n", "n": "clusters"}
_OF_VARIANTS = Naming(name="{system}/{metric}", columns=_OF_TOKENS, test=_of_kind)
_OF_SPLITS = Naming(name="{system}/{split}/{metric}", test=_of_test_set)
NAMINGS: Mapping[str, Naming] = {
    "tour": _OF_VARIANTS,
    "pretraining": Naming(name="{system}/{metric}", columns=_OF_TOKENS),
    "cross-document perplexity": _OF_VARIANTS,
    "coreference": Naming(
        name="{split}/{system}/{metric}",
        group="kind",
        test=lambda row: {"system": row["b"], "split": "test", "metric": "conll/f1", "against": row["a"]},
    ),
    "document matching": _OF_SPLITS,
    "sentence alignment": Naming(name="{system}/{by}/{group}/{metric}", test=_of_alignment),
    "multihop question answering": _OF_SPLITS,
    "document-attentive tagging": _OF_SPLITS,
    "answer selection": Naming(name="{system}/{group}/{split}/{metric}", test=_of_answers),
    "fact verification": Naming(name="{system}/{split}/{metric}", test=_of_claims),
    "attention analysis": Naming(
        name="{system}/{metric}",
        test=lambda row: {"system": row["a"], "metric": row["cell"], "against": row["b"]},
    ),
}


def rows_of_names(
    experiment: str,
    scores: Mapping[str, Mapping[str, Any]],
    *,
    parameters: Mapping[str, Any],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
) -> list[Score]:
    """The rows of a report of format 1: name -> {"value": ..., and what belongs to it}; KeyError, TypeError
    or ValueError if it is not as its notebook wrote it."""
    naming = NAMINGS.get(experiment, Naming())
    tests = {}
    for row in tables.get("comparisons", ()) if naming.test else ():
        if tested := naming.test(row):
            against = tested.pop("against")
            tests[frozenset(tested.items())] = {"p": row["p_holm"], "against": against}
    rows = []
    for name, score in scores.items():
        place = _place(naming, name)
        test = tests.get(frozenset(place.items()), {})
        if naming.group:
            place["group"] = str(parameters.get(naming.group, ""))
        columns, further = _columns(naming, score)
        rows.append(place | columns | test)
        rows += [place | {"metric": f"{place['metric']}/{key}", "value": value} for key, value in further]
    return checked_rows(rows)


def _place(naming: Naming, name: str) -> dict[str, str]:
    """The columns that a name says."""
    form = naming.name.replace("{metric}", "(?P<metric>.+)")
    match = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]*)", form), name, re.DOTALL)
    place = match.groupdict() if match else {"metric": name}
    if by := place.pop("by", ""):
        place["system"] += f"/{by}"
    return place


def _columns(naming: Naming, score: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, Number]]]:
    """The columns of a score, and further numbers that have none."""
    columns, further, notes = {}, [], []
    for key, value in score.items():
        column = naming.columns.get(key, key)
        if column in COLUMNS:
            columns[column] = _DEFAULTS[column] if value is None else value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            further.append((key, value))
        elif value is not None:
            notes.append(", ".join(map(str, value)) if isinstance(value, list) else str(value))
    if notes:
        columns["note"] = "; ".join(notes)
    return columns, further
