"""A run as files that need neither a notebook nor a network: one HTML page without code, or a folder with
each table as CSV and LaTeX and each figure as HTML and SVG.

    python -m cdlm_lab.results.page runs/my-run --html run.html --export folder

`cdlm-lab show` calls it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdlm_lab.data.files import is_hidden, replaced_file
from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import path_argument
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import CLAIMS, PERPLEXITY, training_name, trainings_in
from cdlm_lab.runs.card import run_card
from cdlm_lab.runs.report import REPORT_FILE, Report, RunError, kept, read_report
from cdlm_lab.training.history import read_history
from cdlm_lab.views.figures import figure_html, figure_scripts, kept_figures, write_figures
from cdlm_lab.views.html import STILL_POLICY, counted, div, escaped, fold, still_page
from cdlm_lab.views.live_curve import LiveCurve
from cdlm_lab.views.score_tables import score_table
from cdlm_lab.views.tables import ScoreTable, text_table
from cdlm_lab.views.text import file_name

LONGEST_TABLE = 500  # most rows of a further table on the page
_IN_PERPLEXITY = ("tour", "pretraining")  # experiments whose curves show perplexity
_TOURS = ("tour", "tour, shipped checkpoints")
_STYLE = "iframe{width:100%;height:70vh;border:1px solid rgba(128,128,128,.4);border-radius:6px}"
_STYLE += "pre{white-space:pre-wrap;font-size:12px}"


def score_tables_of(report: Report) -> dict[str, ScoreTable]:
    """Name -> table of scores, for each split and group that the report has."""
    name = PERPLEXITY if report.name in _TOURS else report.name
    if name not in LAYOUTS:
        return {"scores": _all_scores(report)}
    shown = [row for row in report.rows if row.system and row.seed is None]
    places = dict.fromkeys((row.split, "" if name == CLAIMS else row.group) for row in shown)
    tables_shown = {}
    for split, group in sorted(places, key=lambda place: place[0] != LAYOUTS[name].split):
        title = ", ".join(filter(None, ("scores", split, group)))
        parts = {"group": group, "split": split, "caption": title}
        tables_shown[title] = score_table(report, LAYOUTS[name], **parts)
    return tables_shown or {"scores": _all_scores(report)}


def _all_scores(report: Report) -> ScoreTable:
    columns = ["system", "split", "group", "measure", "seed", "value", "95% interval"]
    texts = []
    for row in report.rows:
        seed, interval = ("" if row.seed is None else str(row.seed)), ""
        if row.low is not None and row.high is not None:
            interval = f"[{row.low:.4g}, {row.high:.4g}]"
        texts.append([row.system, row.split, row.group, row.metric, seed, f"{row.value:.6g}", interval])
    return text_table(columns, texts, texts=4, caption="scores")


def further_tables(report: Report) -> dict[str, ScoreTable]:
    """Name -> further table of the report, such as the tests between systems."""
    tables_shown = {}
    for name, rows in report.tables.items():
        if rows and name != "history":
            columns = list(dict.fromkeys(key for row in rows for key in row))
            texts = ([_cell(row.get(key)) for key in columns] for row in rows)
            words = [any(isinstance(row.get(key), str) for row in rows) for key in columns]
            tables_shown[name] = text_table(columns, texts, texts=[*words, False].index(False), caption=name)
    return tables_shown


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return json.dumps(value, ensure_ascii=False)


def curves(folder: Path, report: Report) -> Iterator[str]:
    """Yield the loss curve of each training in the folder, as HTML."""
    measure = "perplexity" if report.name in _IN_PERPLEXITY else "loss"
    for training, file in trainings_in(folder):
        curve = LiveCurve(title=training_name(training, report) or report.name, measure=measure)
        for record in read_history(file):
            curve.remember(record)
        if curve.known("loss"):
            yield curve.html(final=False)


def still_pages(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, HTML) of the example pages that the notebook left, which run no scripts; without those of
    the reader's own texts."""
    for file in (one for one in sorted(folder.rglob("*.html")) if not is_hidden(one, folder)):
        text = file.read_text(encoding="utf-8", errors="replace")
        if STILL_POLICY in text[:500] and "script-src" not in text[:500] and not file.stem.startswith("own_"):
            yield file.relative_to(folder).with_suffix("").as_posix(), text


def run_page(folder: Path) -> str:
    """All results of a finished run as one HTML page that loads nothing from elsewhere. Raises RunError if
    there is no finished run."""
    report, figures = _read(folder), kept_figures(folder)
    parts = [table.html() for table in score_tables_of(report).values()]
    parts += [figure_html(name, figure) for name, figure in figures.items()]
    parts += [div(curve, "margin:18px 0") for curve in curves(folder, report)]
    for name, table in further_tables(report).items():
        more = f", the first {LONGEST_TABLE:,}" if len(table.rows) > LONGEST_TABLE else ""
        shown = replace(table, rows=table.rows[:LONGEST_TABLE]) if more else table
        parts.append(fold(f"{escaped(name)} ({counted(len(table.rows), 'row')}{more})", shown.html()))
    for name, page in still_pages(folder):
        frame = f'<iframe sandbox loading="lazy" title="{escaped(name)}" srcdoc="{escaped(page)}"></iframe>'
        parts.append(fold(f"examples: {escaped(name)}", frame))
    parts.append(fold("parameters, data, versions, machine", f"<pre>{escaped(run_card(folder))}</pre>"))
    scripts = figure_scripts() if figures else ()
    note = f"{report.name}; finished {report.finished[:16].replace('T', ' ')} UTC"
    return still_page("".join(parts), title=folder.resolve().name, note=note, style=_STYLE, scripts=scripts)


def export(folder: Path, where: Path) -> list[str]:
    """Write each table of a run as CSV and LaTeX and each figure as HTML and SVG into a folder; returns
    lines on what was written."""
    report = _read(folder)
    where.mkdir(parents=True, exist_ok=True)
    tables = score_tables_of(report) | further_tables(report)
    for name, table in tables.items():
        for suffix, text in (("csv", table.csv()), ("tex", table.latex())):
            with kept(where), replaced_file(where / f"{file_name(name)}.{suffix}") as opened:
                opened.write(text)
    figures = kept_figures(folder)
    lines = [f"{where}: {len(tables)} tables (.csv, .tex), {len(figures)} figures (.html, .svg)"]
    if not figures:
        lines.append("no figures: the notebook of this run shows none, or was not run to its end")
    write_figures(figures, where)
    return lines


def _read(folder: Path) -> Report:
    if not (folder / REPORT_FILE).is_file():
        raise RunError(f"{folder} holds no finished run: there is no {REPORT_FILE} in it")
    return read_report(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the outputs that are asked for; returns 0, or 2 after printing what is wrong."""
    print_any_sign()
    parser = argparse.ArgumentParser(prog="python -m cdlm_lab.results.page", description=__doc__)
    parser.add_argument("folder", type=path_argument)
    parser.add_argument("--html", type=path_argument, metavar="FILE")
    parser.add_argument("--export", type=path_argument, metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.html:
            page = run_page(chosen.folder)
            with kept(chosen.html), replaced_file(chosen.html) as opened:
                opened.write(page)
            print(f"{chosen.html}: {chosen.folder} on one page")
        if chosen.export:
            print("\n".join(export(chosen.folder, chosen.export)))
    except (RunError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
