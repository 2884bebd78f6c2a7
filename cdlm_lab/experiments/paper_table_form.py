"""What a table of a paper is, for the results book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdlm_lab.experiments.result_cells import Column, Form, measured


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of a paper.

    Attributes:
        name: short, for reports, such as `cdlm-1`.
        title: paper, number, and what it shows.
        experiment, group: the reports, and the rows of them, that fill it.
        systems: name -> label of the rows that can be measured, in the paper's order.
        columns: what is shown of a row; those of the paper last.
        others: True = other rows of a report are shown too, such as baselines; or the names of those.
        only_published: name -> label of rows that the paper alone has.
        is_published: False = no paper has it: it is left out if nobody ran it.
    """

    name: str
    title: str
    experiment: str
    group: str
    systems: Mapping[str, str]
    columns: tuple[Column, ...]
    others: bool | tuple[str, ...] = True
    only_published: Mapping[str, str] = field(default_factory=dict)
    is_published: bool = True


def each(names: Mapping[str, str], form: Form) -> tuple[Column, ...]:
    """A column of ours for each measure, by its heading; p stands in the cells."""
    return tuple(measured(heading, measure, form, with_p=True) for measure, heading in names.items())


def joined(*numbers: float | None, decimals: int = 1) -> str:
    """(74.5, None) -> `74.5 / –`; nothing but None -> empty."""
    if all(number is None for number in numbers):
        return ""
    return " / ".join("\u2013" if number is None else f"{number:.{decimals}f}" for number in numbers)
