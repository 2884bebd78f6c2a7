"""Questions with the candidates in the order of systems: those of test, where joint reading changed the
answer (Table 4 of the MSPP paper), or one of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from ipywidgets import Widget

from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.pasted_documents import filled_lines, first_and_others
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.examples.candidate_groups import fixed_order
from cdlm_lab.experiments.answer_models import Ranker
from cdlm_lab.experiments.answer_predictions import score_answers
from cdlm_lab.experiments.answer_scores import RERANKED, row_label
from cdlm_lab.experiments.answer_selection import AnswerRun, Found
from cdlm_lab.experiments.answer_systems import PAIRWISE
from cdlm_lab.widgets.markup import escaped, table_html
from cdlm_lab.widgets.own_candidates import own_candidates_box
from cdlm_lab.widgets.ranked_candidates import OUTCOMES, ReadRanking, rankings_page
from cdlm_lab.widgets.ranking_browser import ranking_browser
from cdlm_lab.widgets.share_bar import share_bar
from cdlm_lab.widgets.still_page import still_page

ON_A_PAGE = 100
CHANGED = (OUTCOMES[False, True], OUTCOMES[True, False])
# What stands in the boxes before anything is typed.
EXAMPLE_QUESTION = "How many passengers were aboard the ferry?"
EXAMPLE_CANDIDATES = """\
The ferry to Telk sails again from Monday, the harbour office said.
Divers searched the harbour of Telk until dark.
In all, 214 passengers and a crew of nine were aboard when the ferry left Telk.
The ferry, built in 1987, had passed its last inspection in spring.
A ticket for the crossing costs 14 crowns.
"No alarm was heard on board," said Marta Elling, a teacher, one of the passengers.
"""


def read_rankings(run: AnswerRun, found: Found, split: str = "test", *, seed: int = 0) -> list[ReadRanking]:
    """Each question with the scores of all systems, and of the joint ones on the best of pairwise."""
    k = run.settings.models.candidates
    scores: dict[str, Sequence[np.ndarray]] = {}
    for system in run.systems:
        ranked = found[system.name, seed][split]
        scores[system.label] = ranked.every.scores
        if ranked.best is not None:
            scores[row_label(system.name, RERANKED, k=k)] = ranked.best.scores
    return [
        _read(one, {label: of_all[number] for label, of_all in scores.items()})
        for number, one in enumerate(run.sets(split))
    ]


def rankings_in_place(run: AnswerRun, found: Found) -> Widget:
    """Questions of test to leaf through. Those on which a joint system changed what pairwise has right on
    top also go to `changed/<system>.html` in the folder of the run, which need no kernel; the first ON_A_PAGE
    of them."""
    reads = read_rankings(run, found)
    for system in run.systems[1:]:
        changed = [read for read in reads if read.outcome(system.label, beside=PAIRWISE) in CHANGED]
        if changed:
            title = f"Where {system.label} changed the answer"
            page = rankings_page(changed[:ON_A_PAGE], system=system.label, beside=PAIRWISE, title=title)
            _write(run.folder / "changed" / f"{system.name}.html", page)
    return ranking_browser(reads, beside=PAIRWISE)


def own_question_in_place(run: AnswerRun, question: str, candidates: str) -> Widget:
    """Boxes for a question and candidates of one's own, and what every system makes of them, that of what
    stands in the boxes at first included.

    Raises ValueError if these cannot be read.
    """
    answer = own_ranking(run)
    return own_candidates_box(
        answer,
        asked=question,
        candidates=candidates,
        answered=answer(question, candidate_lines(candidates)),
    )


def own_ranking(run: AnswerRun) -> Callable[[str, Sequence[str]], str]:
    """From a question and candidates to HTML: what every system trained with seed 0 makes of them. Models are
    loaded when they are first needed; the answer is also written to `own_question.html` in the folder of the
    run."""
    rankers: dict[str, Ranker] = {}

    def answer(question: str, candidates: Sequence[str]) -> str:
        if not rankers:
            rankers.update({one.label: run.ranker(one, 0, trained=True) for one in run.systems})
        one = CandidateSet(
            id="own", question=question, candidates=tuple(candidates), correct=(False,) * len(candidates)
        )
        training = run.settings.training
        form = {"batch_size": training.micro_batch_size, "precision": training.precision}
        scored = {label: score_answers(ranker, [one], **form) for label, ranker in rankers.items()}
        html = _table(_read(one, {label: found.scores[0] for label, found in scored.items()}, known=False))
        _write(run.folder / "own_question.html", still_page(html, title=question, note="Ranked candidates"))
        return html

    return answer


def own_texts(file: str) -> tuple[str, str]:
    """A question and candidates, one a line, from a text file with the question on the first; the example if
    `file` is "". Raises DataError as of `read_text` and `first_and_others`."""
    if not file:
        return EXAMPLE_QUESTION, EXAMPLE_CANDIDATES
    return first_and_others(read_text(file), source=file, first="a question", other="candidate")


def candidate_lines(text: str) -> list[str]:
    """One candidate a line, empty lines left out. Raises DataError as of `lines_of`."""
    return filled_lines(text, source="candidates", remedy="write one candidate on each line")


def _read(one: CandidateSet, scores: dict[str, np.ndarray], *, known: bool = True) -> ReadRanking:
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


def _table(read: ReadRanking) -> str:
    """Candidates in the order of the last system, and of each system place and probability."""
    systems = list(read.scores)
    places = {name: {number: at for at, number in enumerate(read.order(name), 1)} for name in systems}
    probabilities = {name: read.probabilities(name) for name in systems}
    rows = [
        [
            f'<div dir="auto">{escaped(read.candidates[number])}</div>',
            *(_cell(places[name][number], probabilities[name][number]) for name in systems),
        ]
        for number in read.order(systems[-1])
    ]
    heading = f"in the order of {escaped(systems[-1])}; of each system, place and probability"
    return table_html([heading, *map(escaped, systems)], rows)


def _cell(place: int, probability: float) -> str:
    number = f"<b>{place}</b>" if place == 1 else str(place)
    return f'<div style="display:inline-flex;gap:8px">{number}{share_bar(probability)}</div>'


def _write(file: Path, page: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(file) as opened:
        opened.write(page)
