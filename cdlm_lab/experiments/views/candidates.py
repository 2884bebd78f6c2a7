"""What notebook 09 shows: tables and figures of its report, questions with the candidates in the order of
systems, and one of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from ipywidgets import Widget

from cdlm_lab.analysis.joint_diagnosis import JointDiagnosis, diagnose
from cdlm_lab.data.files import read_text
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.typed_documents import filled_lines, first_and_others
from cdlm_lab.examples.candidates import fixed_order
from cdlm_lab.experiments.runs import SystemRun, write_page
from cdlm_lab.experiments.systems.ranking import (
    ANSWER_SYSTEMS,
    PAIRWISE,
    RANDOM,
    AnswerPredictions,
    Ranker,
    expected_ratios,
    score_answers,
)
from cdlm_lab.report import Report
from cdlm_lab.widgets import rankings as pictures
from cdlm_lab.widgets.ask import own_candidates_box
from cdlm_lab.widgets.browse import RankingBrowser
from cdlm_lab.widgets.export.figures import folder_of, keep_figure
from cdlm_lab.widgets.html import escaped, points_in_words, share_bar, still_page, table_html
from cdlm_lab.widgets.rankings import ReadRanking
from cdlm_lab.widgets.score_tables import score_table, split_in_words
from cdlm_lab.widgets.tables import Cell, ScoreTable, Shown, p_text, text_table

ALL, RERANKED = "all", "reranked"
Predictions = Mapping[tuple[str, int], Mapping[str, AnswerPredictions]]  # (system, seed) -> data set


def row_label(system: str, ranking: str, *, k: int) -> str:
    """What tables and figures call a system with a ranking."""
    if system == RANDOM:
        return "random order"
    label = ANSWER_SYSTEMS[system].label
    return label if ranking == ALL else f"{label} on pairwise's top {k}"


def answers_table(report: Report, *, ranking: str = ALL, split: str = "test") -> ScoreTable:
    """The table of one split. With ranking `all`, the paper's Table 1; with `reranked`, Tables 2 and 7:
    pairwise, and the joint systems on its best candidates."""
    k, corpus = report.parameters["candidates"], report.data["format"][split]
    labels = {
        name: row_label(name, ALL if name == PAIRWISE else ranking, k=k) for name in (*ANSWER_SYSTEMS, RANDOM)
    }
    caption = f"Answers chosen: {corpus}, {split_in_words(split)}"
    return score_table(report, labels=labels, group=ranking, split=split, caption=caption)


def comparisons(report: Report, *, ranking: str = ALL) -> ScoreTable:
    """The tests on test: for each pair of systems the differences in points, with both p-values."""
    rows: dict[tuple[str, str], list[str | Cell]] = {}
    for row in report.tables["comparisons"]:
        if row["group"] == ranking:
            difference, low, high = (points_in_words(row[name]) for name in ("difference", "low", "high"))
            seeds = "" if row["p_seeds"] is None else f"; over seeds {p_text(row['p_seeds'])}"
            labels = [ANSWER_SYSTEMS[row[side]].label for side in "ab"]
            cells = rows.setdefault((row["a"], row["b"]), labels)
            p = f"p {p_text(row['p_holm'])}{seeds}"
            cells.append(Cell(text=f"{difference} [{low}, {high}]", below=p))
    first = "all candidates" if ranking == ALL else "ranked anew"
    return text_table([first, "against", "P@1", "MAP", "MRR"], rows.values(), texts=2)


def collapses(report: Report) -> ScoreTable:
    """What became of each joint system with each seed."""
    rows = [
        [ANSWER_SYSTEMS[row["system"]].label, str(row["seed"]), row["verdict"]]
        for row in report.tables["diagnosis"]
    ]
    return text_table(["system", "seed", "on test"], rows, texts=3)


def diagnoses(run: SystemRun, predictions: Predictions) -> dict[tuple[str, int], JointDiagnosis]:
    """(joint system, seed) -> what its scores on test look like."""
    diagnosed = {}
    for key in (training.key for training in run.trainings if training.system.is_joint):
        scores, labels, question = predictions[key]["test"].read_together(run.settings.candidates)
        diagnosed[key] = diagnose(scores, labels, question=question)
    return diagnosed


def collapse_figures(run: SystemRun, predictions: Predictions) -> list[go.Figure]:
    """Spread of scores and accuracy by place, of the joint systems with seed 0."""
    diagnosed = diagnoses(run, predictions).items()
    first = {ANSWER_SYSTEMS[name].label: one for (name, seed), one in diagnosed if not seed}
    spread = pictures.score_spread_figure({label: one.spread for label, one in first.items()})
    shown = {"spread": spread, "accuracy-by-place": pictures.accuracy_by_place_figure(first)}
    return [keep_figure(run.folder, name, figure) for name, figure in shown.items()]


def timing_figure(report: Report) -> go.Figure:
    """Seconds a question, of each system."""
    latencies = [pictures.Latency(**row) for row in report.tables["latency"]]
    return keep_figure(folder_of(report), "latency", pictures.latency_figure(latencies, against=PAIRWISE))


def timing(report: Report) -> Shown:
    """How many times as long as pairwise reading joint reading takes, measured and by the paper."""
    seconds = {row["system"]: row["seconds"] for row in report.tables["latency"]}
    joint = [value for label, value in seconds.items() if label != PAIRWISE]
    quadratic, linear = expected_ratios(report.parameters["candidates"])
    return Shown(
        f"Joint reading takes {np.mean(joint) / seconds[PAIRWISE]:.2f} times as long as pairwise. By the "
        f"paper's arithmetic, for sentences of one length: (k + 1)&sup2; / 4k = {quadratic:.2f} where time "
        f"grows with the square of the sequence, (k + 1) / 2k = {linear:.2f} where it grows with its length; "
        f"it measured 1.14 (k = 5, WikiQA, one A100)."
    )


ON_A_PAGE = 100
CHANGED = (pictures.OUTCOMES[False, True], pictures.OUTCOMES[True, False])
# What stands in the boxes before anything is typed.
EXAMPLE_QUESTION = "How many miners were killed?"
EXAMPLE_CANDIDATES = """\
Rescuers searched the colliery of Telk until dark.
The colliery, opened in 1987, had passed its last inspection in spring.
The blast killed 48 miners at once.
In all, 214 people work at the colliery.
A ticket for the museum costs 14 crowns.
"No alarm was heard," said Marta Elling, a teacher.
"""


def read_rankings(run: SystemRun, predictions: Predictions, split: str = "test") -> list[ReadRanking]:
    """Each question with the scores of all systems with seed 0, of both rankings."""
    scores: dict[str, Sequence[np.ndarray]] = {}
    for system in run.systems:
        of_system = predictions[system.name, 0]
        scores[system.label] = of_system[split].scores
        if again := of_system.get(f"{split}_{RERANKED}"):
            scores[row_label(system.name, RERANKED, k=run.settings.candidates)] = again.scores
    return [
        _read_ranking(one, {label: of_all[number] for label, of_all in scores.items()})
        for number, one in enumerate(run.of_split(split))
    ]


def rankings(run: SystemRun, predictions: Predictions) -> Widget:
    """Questions of test to leaf through. Those on which a joint system changed what pairwise has right on top
    (Table 4) also go to `changed/<system>.html`, which needs no kernel; the first ON_A_PAGE of them."""
    reads = read_rankings(run, predictions)
    for system in run.systems[1:]:
        changed = [read for read in reads if read.outcome(system.label, beside=PAIRWISE) in CHANGED]
        if changed:
            form = {"beside": PAIRWISE, "title": f"Where {system.label} changed the answer"}
            page = pictures.rankings_page(changed[:ON_A_PAGE], system=system.label, **form)
            write_page(run.folder / "changed" / f"{system.name}.html", page)
    return RankingBrowser(reads, beside=PAIRWISE)


def own_question(run: SystemRun) -> Widget:
    """Boxes for a question and candidates of one's own, and how every system ranks them."""
    question, candidates = own_texts(run.settings.own_question)
    answered = rank_own(run, question, candidate_lines(candidates))
    return own_candidates_box(
        partial(rank_own, run), query=question, candidates=candidates, answered=answered
    )


def rank_own(run: SystemRun, question: str, candidates: Sequence[str]) -> str:
    """How every system trained with seed 0 ranks candidates, as HTML, also in `own_question.html`."""
    rankers = {system.label: run.loaded(system) for system in run.systems}
    html = ranking_table(ranked_own(rankers, question, candidates, **run.settings.predicting))
    write_page(run.folder / "own_question.html", still_page(html, title=question, note="Ranked candidates"))
    return html


def ranked_own(
    rankers: Mapping[str, Ranker], question: str, candidates: Sequence[str], **reading: Any
) -> ReadRanking:
    """How models, by their labels, rank candidates. `reading`: batch size, precision."""
    correct = (False,) * len(candidates)
    one = CandidateSet(id="own", question=question, candidates=tuple(candidates), correct=correct)
    scores = {label: score_answers(ranker, [one], **reading).scores[0] for label, ranker in rankers.items()}
    return _read_ranking(one, scores, known=False)


def own_texts(file: str) -> tuple[str, str]:
    """A question and candidates, one a line, from a text file; the example if it is ""."""
    if not file:
        return EXAMPLE_QUESTION, EXAMPLE_CANDIDATES
    return first_and_others(read_text(file), source=file, first="a question", other="candidate")


def candidate_lines(text: str) -> list[str]:
    """One candidate a line, empty lines left out. Raises DataError if there are none."""
    return filled_lines(text, source="candidates", remedy="write one candidate on each line")


def _read_ranking(one: CandidateSet, scores: dict[str, np.ndarray], *, known: bool = True) -> ReadRanking:
    """The candidates in an order that knows nothing of labels, for what ties leave open."""
    order = fixed_order(one.candidates, key=one.id)
    return ReadRanking(
        id=one.id if known else "",
        question=one.question,
        candidates=tuple(one.candidates[number] for number in order),
        right=tuple(one.correct[number] for number in order) if known else None,
        scores={
            label: [None if np.isnan(score) else float(score) for score in values[order]]
            for label, values in scores.items()
        },
    )


def ranking_table(read: ReadRanking) -> str:
    """Candidates in the order of the last system, and of each system place and probability."""
    rows = {n: [f'<div dir="auto">{escaped(text)}</div>'] for n, text in enumerate(read.candidates)}
    for system in read.scores:
        probabilities = read.probabilities(system)
        for place, number in enumerate(read.order(system), 1):
            shown = f"<b>{place}</b>" if place == 1 else str(place)
            bar = share_bar(probabilities[number])
            rows[number].append(f'<div style="display:inline-flex;gap:8px">{shown}{bar}</div>')
    *_, last = read.scores
    heading = f"in the order of {escaped(last)}; of each system, place and probability"
    return table_html([heading, *map(escaped, read.scores)], [rows[number] for number in read.order(last)])
