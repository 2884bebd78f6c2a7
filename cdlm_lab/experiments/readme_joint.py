"""The tables of the README on joint reading, notebooks 09 and 10."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from cdlm_lab.experiments.answer_scores import ALL, RERANKED
from cdlm_lab.experiments.readme_numbers import rows_of
from cdlm_lab.experiments.reported_scores import ANSWERS, CLAIMS
from cdlm_lab.experiments.result_cells import in_per_cent, measured, of_paper, p_of, table_of
from cdlm_lab.report import RunError, read_report
from cdlm_lab.widgets.answer_table import MEASURES, PAPER_TABLE_1, PAPER_TABLES_2_AND_7
from cdlm_lab.widgets.result_table import ResultTable
from cdlm_lab.widgets.verification_table import PAPER_VERIFICATION


def newest_report(folder: Path, experiment: str) -> Path:
    """The report of an experiment in a folder of recorded runs, whatever its file is called; of several the
    one that was finished last.

    Raises:
        RunError: there is none.
    """
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            report = read_report(file)
        except RunError:
            continue  # something else that is recorded beside it
        if report.name == experiment:
            found.append((report.finished, file))
    if not found:
        raise RunError(
            f"there is no report of {experiment!r} in {folder}; record one, or take its table's markers away"
        )
    return max(found)[1]


def answers(results: Path, *, folder: str, ranking: str, corpus: str) -> ResultTable:
    """Tables 1, or 2 and 7, of MSPP on a corpus as the paper's tables name it."""
    papers = PAPER_TABLE_1 if ranking == ALL else PAPER_TABLES_2_AND_7

    def paper(system: str) -> str:
        numbers = papers.get(system, {}).get(corpus, {})
        return " / ".join(f"{numbers[measure].value:.1f}" for measure in MEASURES if numbers)

    columns = [
        *(measured(heading, measure, in_per_cent) for measure, heading in MEASURES.items()),
        p_of("map"),
        of_paper("paper", paper, below=" / ".join(MEASURES.values())),
    ]
    return table_of(rows_of(newest_report(results / folder, ANSWERS), ranking), columns)


def claims(results: Path, *, folder: str, group: str) -> ResultTable:
    """Tables 3 and 8 of MSPP on a set of claims."""

    def paper(system: str) -> str:
        one = PAPER_VERIFICATION.get(system)
        return "" if one is None else f"{one.dev:.2f} / {'–' if one.test is None else f'{one.test:.2f}'}"

    file = newest_report(results / folder, CLAIMS)
    columns = [
        measured("label accuracy", "label_accuracy", in_per_cent),
        p_of("label_accuracy"),
        of_paper("paper, FEVER", paper, below="dev / test"),
    ]
    rows = rows_of(file, group)
    if not rows:
        raise RunError(f"{file}: the claims of {group} were not scored; take the table's markers away")
    return table_of(rows, columns)


JOINT_TABLES: Mapping[str, Callable[[Path], ResultTable]] = {
    **{
        f"{corpus}{suffix}": partial(answers, folder=f"{corpus}_minilm", ranking=ranking, corpus=corpus)
        for corpus in ("wikiqa", "trecqa")
        for suffix, ranking in (("", ALL), ("-reranked", RERANKED))
    },
    "fm2": partial(claims, folder="fm2_minilm", group="test"),
    "fm2-dev": partial(claims, folder="fm2_minilm", group="dev"),
    "fm2-symmetric": partial(claims, folder="fm2_minilm", group="symmetric"),
}
