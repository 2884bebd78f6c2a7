"""A question with its candidates as one system ranks them, next to their ranks by another system, as in Table
4 of the MSPP paper (Di Liello et al. 2022); figures of scores and of speed.

Every bar has a number, every background and frame a word or a sign; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from ipywidgets import Widget
from markupsafe import Markup

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.runs import runs
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.scores import split_in_words
from cdlm_lab.tasks.joint.answers import (
    ALL,
    HELD_OUT,
    NO_QUESTION,
    RERANKED,
    AnswerRun,
    AnswerSplit,
    Predictions,
    diagnoses,
)
from cdlm_lab.tasks.joint.diagnosis import JointDiagnosis
from cdlm_lab.tasks.joint.examples import fixed_order
from cdlm_lab.tasks.joint.model import paragraph_head
from cdlm_lab.tasks.joint.ranking import (
    ANSWER_SYSTEMS,
    PAIRWISE,
    RANDOM,
    Latency,
    Ranker,
    expected_ratios,
)
from cdlm_lab.tasks.joint.view import sentence_rows
from cdlm_lab.views import charts, html, score_tables
from cdlm_lab.views.before_training import cost_facts, facts_table
from cdlm_lab.views.browse import Filters, Leafing, choices
from cdlm_lab.views.charts import lay_out, plain_text, short_name
from cdlm_lab.views.figures import folder_of, keep_figure
from cdlm_lab.views.html import (
    HUES,
    TEXT,
    check_some,
    escaped,
    unread,
    visible,
)
from cdlm_lab.views.score_tables import Layout, each, score_table
from cdlm_lab.views.tables import ScoreTable, Shown, html_table, published, seeds, text_table
from cdlm_lab.views.templates import view

MEASURES = {"p_at_1": "P@1", "map": "MAP", "mrr": "MRR"}
_PAPER = {"columns": tuple(MEASURES), "below": "paper: P@1 / MAP / MRR", "deviations": True}
_SETS = ("ASNQ", "WikiQA", "TREC-QA")


def _size(report: Report, split: str, _: str) -> tuple[int, str]:
    questions, candidates = (report.data[name][split] for name in ("questions", "candidates"))
    return candidates, f"{questions:,} questions, {candidates:,} candidates"


LABELS = {name: system.label for name, system in ANSWER_SYSTEMS.items()}
LAYOUT = Layout(
    shown=[
        *each(MEASURES),
        seeds(),
        *(published(one, ("mspp", "1"), group="all", **_PAPER) for one in _SETS),
        *(published(one, ("mspp", "2"), ("mspp", "7"), group="reranked", **_PAPER) for one in _SETS),
    ],
    size=_size,
    labels=lambda _: LABELS | {RANDOM: "random order"},
    note="All in per cent, means over questions. P@1: the first candidate is right; MAP: average "
    "precision; MRR: one divided by the place of the first right candidate.",
    test="p: against pairwise reading.",
    paper="Paper: Di Liello et al. 2022, RoBERTa-base on the test questions (of WikiQA and TREC-QA "
    "those that have right and wrong candidates), mean (standard deviation) of 5 runs; Table 1 has "
    "all candidates, Tables 2 and 7 the pairwise model's five best; not to be compared with other "
    "encoders or other questions.",
)

# (first candidate of the system compared with is right, that of the system itself is) -> outcome.
OUTCOMES = {
    (False, True): "repaired",
    (True, False): "broken",
    (True, True): "both right",
    (False, False): "both wrong",
}
OPEN = 10  # number of top ranks that are always shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRanking:
    """A question, its candidates, and the scores that systems predicted for them."""

    id: str  # "" = none, as for the user's own questions
    question: str
    candidates: tuple[str, ...]  # in an order that is independent of the labels, because it breaks ties
    right: tuple[bool, ...] | None  # True = the candidate answers the question; None = not known
    # Name of a system -> for each candidate the log-odds that it is right. None = the system has not read the
    # candidate, as when a cascade drops it; each system must have read at least one.
    scores: Mapping[str, Sequence[float | None]]
    # How many characters of each candidate were read by a system, the first ones; None = all of all.
    read: tuple[int, ...] | None = None

    def order(self, system: str, *, beside: str | None = None) -> tuple[int, ...]:
        """Return the candidates' indices by descending score, ties in the order of `candidates`. Those that
        the system has not read follow all that it has, in the order of the system `beside`."""
        scores = self.scores[system]
        read = [number for number, score in enumerate(scores) if score is not None]
        others = range(len(scores)) if beside in (None, system) else self.order(beside)
        unread = [number for number in others if scores[number] is None]
        return (*sorted(read, key=lambda number: -scores[number]), *unread)

    def probabilities(self, system: str) -> list[float | None]:
        """Return the probability, in [0, 1], that each candidate is right; None = not read."""
        # The logistic function 1 / (1 + e^-score), without overflow.
        return [None if score is None else (1 + math.tanh(score / 2)) / 2 for score in self.scores[system]]

    def text_html(self, number: int) -> Markup:
        """Return a candidate as HTML, with the end that was not read struck out."""
        text = self.candidates[number]
        end = len(text) if self.read is None else self.read[number]
        rest = unread(escaped(text[end:])) if text[end:].strip() else ""
        return Markup(escaped(text[:end]) + rest)

    @property
    def is_cut(self) -> bool:
        """Whether the end of some candidate was not read."""
        ends = zip(self.candidates, self.read or (), strict=False)
        return any(text[end:].strip() for text, end in ends)

    def right_on_top(self, system: str) -> bool | None:
        """Return whether the system's first candidate is right (P@1 of this question); None = not known."""
        first = self.order(system)[0]
        return None if self.right is None else self.right[first]

    def outcome(self, system: str, *, beside: str) -> str | None:
        """Compare `system` with `beside` by their first candidates: one of OUTCOMES; None = not known."""
        return OUTCOMES.get((self.right_on_top(beside), self.right_on_top(system)))


def ranking_html(read: ReadRanking, *, system: str, beside: str) -> str:
    """Return the question, its outcome, and the candidates with their probabilities, ranked by `system`.

    If `beside` is another system, such as "pairwise", its ranks are shown next to those of `system`, and its
    first candidate is framed. Below rank OPEN only right candidates and the first one of `beside` are shown;
    the others unfold on a click."""
    other = None if beside == system else beside
    before = {number: place for place, number in enumerate(read.order(other), 1)} if other else {}

    def in_sight(ranked: tuple[int, int]) -> bool:
        place, number = ranked
        return place <= OPEN or before.get(number) == 1 or bool(read.right and read.right[number])

    ranked = enumerate(read.order(system, beside=other), start=1)
    return view(
        "ranking",
        "tasks/joint/ranking.html.jinja",
        read=read,
        system=system,
        beside=other,
        before=before,
        probabilities=read.probabilities(system),
        groups=[(seen, [*places]) for seen, places in groupby(ranked, in_sight)],
    )


def rankings_page(reads: Sequence[ReadRanking], *, system: str, beside: str, title: str) -> str:
    """Return a page with all questions, which begins with the number of right first candidates by system."""
    facts = []
    for name in dict.fromkeys((system, beside)):
        rights = [read.right_on_top(name) for read in reads]
        facts += [f"{name} {words}" for words in html.right_of_known(rights, "right on {} of {}")]
    if beside != system:
        outcomes = Counter(read.outcome(system, beside=beside) for read in reads)
        facts += [f"{outcomes[name]:,} {name}" for name in OUTCOMES.values() if outcomes[name]]
    show = partial(ranking_html, system=system, beside=beside)
    return html.page_of(reads, show, noun="question", facts=facts, title=title)


def accuracy_by_place_figure(systems: Mapping[str, JointDiagnosis]) -> go.Figure:
    """Plot the accuracy of each system at each position of the sequence: the proportion of candidates there
    whose predicted label is the gold one. Dashed: accuracy of predicting wrong for every candidate; dotted:
    proportion of right candidates. A collapsed model follows the dashed line, or its accuracy depends on the
    position."""
    wrong = np.asarray(next(iter(systems.values())).always_wrong)
    lines = {short_name(name): np.asarray(one.accuracy) for name, one in systems.items()}
    lines |= {"calling each wrong": wrong, "right candidates": 1 - wrong}
    table = pd.DataFrame({name: 100 * values for name, values in lines.items()}).rename(lambda n: n + 1)
    colours = [*HUES[: len(systems)], TEXT, TEXT]
    dashes = [*("solid" for _ in systems), "dash", "dot"]
    form = {"color_discrete_sequence": colours, "line_dash_sequence": dashes, "line_dash": "variable"}
    figure = px.line(table, markers=True, **form)
    figure.update_xaxes(tickvals=list(table.index))
    figure.update_yaxes(range=[0, 103])
    x, title = "place of the candidate in the sequence", "Accuracy by place in the sequence"
    return lay_out(figure, title=title, x=x, y="share of candidates (%)", legend_title_text="")


def score_spread_figure(spreads: Mapping[str, Sequence[float]]) -> go.Figure:
    """Plot the spread of each system's scores within groups of candidates, as a box per system. With a spread
    near 0, a system gives all candidates of a group the same score. `spreads`: name of a system -> standard
    deviation of the log-odds in each group."""
    quantiles = [np.quantile(list(each), (0.05, 0.25, 0.5, 0.75, 0.95)).tolist() for each in spreads.values()]
    title, y = "How far scores lie apart within a group", "standard deviation of log-odds within a group"
    return charts.box_figure([short_name(name) for name in spreads], quantiles, title=title, y=y)


def latency_figure(latencies: Sequence[Latency], *, against: str) -> go.Figure:
    """Plot a bar for each system up to the median time of its runs, with a whisker from the fastest to the
    slowest run, and the ratio of its median to that of the system `against`."""
    table = pd.DataFrame(map(asdict, latencies)).set_index("system")
    table["ms"] = table["seconds"] * 1000
    table["more"], table["less"] = (
        1000 * table["slowest"] - table["ms"],
        table["ms"] - 1000 * table["fastest"],
    )
    times = table["seconds"] / table["seconds"][against]
    text = [f"{ms:,.1f} ms, {ratio:.2f} \u00d7" for ms, ratio in zip(table["ms"], times, strict=True)]
    whiskers = {"error_x": "more", "error_x_minus": "less", "orientation": "h"}
    figure = px.bar(table, x="ms", y=list(range(len(table))), **whiskers, color_discrete_sequence=HUES)
    rows = [short_name(name) + charts.small(time) for name, time in zip(table.index, text, strict=True)]
    figure.update_yaxes(charts.rows_of_an_axis(rows) | {"range": [len(rows) - 0.5, -0.5]})
    title, x = "Time for one question", f"milliseconds for one question; \u00d7: times {plain_text(against)}"
    return lay_out(figure, title=title, x=x, y=" ", height=150 + 52 * len(table), showlegend=False)


def read_ranking(one: CandidateSet, scores: Mapping[str, np.ndarray], *, known: bool = True) -> ReadRanking:
    """The candidates with all scores, in a fixed order independent of the labels, which breaks ties."""
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


LOOKED_AT = 500  # questions per split whose sentence lengths are measured: tokenising more would be slow


def preview(run: AnswerRun) -> Shown:
    """The questions, the pretraining of the MSPP systems where it differs, and the cost of training."""
    return facts_table([*question_facts(run), *pretraining_facts(run), *cost_facts(run)])


def question_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """How many questions are used and left out, and how many of the first candidates are truncated."""
    rankers = {system: run.shown_reader(system) for system in run.systems[:2]}
    rows = []
    for split, one in ((split, run.splits[split]) for split in ("train", *HELD_OUT)):
        cut = (f"{_share_cut(ranker, one.sets):.0%} ({system.label})" for system, ranker in rankers.items())
        rows.append((split, _questions_in_words(one)))
        rows.append((f"{split}: candidates that lose their end", ", ".join(cut)))
    for system, ranker in rankers.items():
        examples = ranker.examples(run.of_split("train")[:LOOKED_AT])
        tokens = np.mean([examples.length_of(number) for number in range(len(examples))])
        count = f"{run.examples_of(system):,} {run.unit(system)} of about {tokens:.0f} tokens"
        rows.append((f"an epoch, {'joint' if system.is_joint else system.label}", count))
    return rows


def pretraining_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """The input layout with which MSPP systems were pretrained, where it differs from the one used here."""
    rows = []
    for system in run.systems if run.settings.mspp else ():
        wanted = run.settings.head_of(system)
        pretrained = paragraph_head(run.settings.checkpoint(system.pretrained)) if system.pretrained else None
        if pretrained and (head := pretrained[0]) != wanted:
            unused = "" if head.layers == wanted.layers else "; its head is not used"
            text = f"{head.sentences - 1} candidates of {head.length} tokens, {head.positions} positions"
            rows.append((f"{system.label}: pretrained with", f"{text}, {head.layers} head{unused}"))
    return rows


def _questions_in_words(split: AnswerSplit) -> str:
    candidates = [len(one.candidates) for one in split.sets]
    right = sum(sum(one.correct) for one in split.sets)
    text = f"{len(candidates):,} questions with {sum(candidates):,} candidates, {right:,} of them right"
    if len(candidates) == split.read.questions:
        return text
    return (
        f"{text}; of the {split.read.questions:,} that are there, {split.read.without_right:,} have no right "
        f"candidate and {split.read.without_wrong:,} no wrong one"
    )


def _share_cut(ranker: Ranker, sets: Sequence[CandidateSet]) -> float:
    examples = ranker.examples(sets[:LOOKED_AT])
    lengths = [len(text) for one in examples.records for text in examples.encoded[one.id][1:]]
    return float((np.array(lengths) > ranker.model.head.form.length - 1).mean())


def example(run: AnswerRun) -> Shown:
    """The first group of training candidates, sentence by sentence, as the first joint system reads it."""
    system, sets = run.systems[1], run.of_split("train")
    ranker = run.shown_reader(system)
    examples = ranker.examples(sets, config=run.config(system))
    number, members = examples.owner(0)
    labels = ["", *("right" if sets[number].correct[member] else "wrong" for member in members)]
    rows = [
        [f"s<sub>{place}</sub>", labels[place], *cells]
        for place, *cells in sentence_rows(ranker.tokenizer, examples.describe(0))
    ]
    return html_table(["", "label", "what the model reads", "tokens", "positions"], rows, texts=3)


def row_label(system: str, ranking: str, *, k: int) -> str:
    """The label of a system in tables and figures, which says what it ranked."""
    if system == RANDOM:
        return "random order"
    label = ANSWER_SYSTEMS[system].label
    return label if ranking == ALL else f"{label} on pairwise's top {k}"


def answers_table(report: Report, *, ranking: str = ALL, split: str = "test") -> ScoreTable:
    """The score table of one split. With ranking `all`, the paper's Table 1; with `reranked`, Tables 2 and 7:
    pairwise, and the joint systems on its best candidates."""
    k, corpus = report.parameters["candidates"], report.data["format"][split]
    labels = {
        name: row_label(name, ALL if name == PAIRWISE else ranking, k=k) for name in (*ANSWER_SYSTEMS, RANDOM)
    }
    caption = f"Answers chosen: {corpus}, {split_in_words(split)}"
    return score_table(report, LAYOUT, labels=labels, group=ranking, split=split, caption=caption)


def control_table(report: Report) -> ScoreTable | Shown:
    """The score table on test without the questions."""
    return score_tables.control_table(report, NO_QUESTION, answers_table)


def comparisons(report: Report, *, ranking: str = ALL) -> ScoreTable:
    """The tests on test: for each pair of systems the differences in points, with both p-values."""
    first = "all candidates" if ranking == ALL else "ranked anew"
    return score_tables.comparison_table(report, LABELS, MEASURES, group=ranking, first=first)


def collapses(report: Report) -> ScoreTable:
    """The verdict on each joint system with each seed: whether it collapsed."""
    rows = [
        [ANSWER_SYSTEMS[row["system"]].label, str(row["seed"]), row["verdict"]]
        for row in report.tables["diagnosis"]
    ]
    return text_table(["system", "seed", "on test"], rows, texts=3)


def collapse_figures(run: AnswerRun, predictions: Predictions) -> list[go.Figure]:
    """Spread of scores and accuracy by position of the candidate, for the joint systems with seed 0."""
    diagnosed = diagnoses(run, predictions).items()
    first = {ANSWER_SYSTEMS[name].label: one for (name, seed), one in diagnosed if not seed}
    spread = score_spread_figure({label: one.spread for label, one in first.items()})
    shown = {"spread": spread, "accuracy-by-place": accuracy_by_place_figure(first)}
    return [keep_figure(run.folder, name, figure) for name, figure in shown.items()]


def timing_figure(report: Report) -> go.Figure:
    """A figure of the seconds per question of each system."""
    latencies = [Latency(**row) for row in report.tables["latency"]]
    return keep_figure(folder_of(report), "latency", latency_figure(latencies, against=PAIRWISE))


def timing(report: Report) -> Shown:
    """The ratio of joint to pairwise reading time, as measured and by the paper's arithmetic."""
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


CHANGED = (OUTCOMES[False, True], OUTCOMES[True, False])


def read_rankings(run: AnswerRun, predictions: Predictions, split: str = "test") -> list[ReadRanking]:
    """Each question with the scores of all systems with seed 0, from both rankings."""
    scores: dict[str, Sequence[np.ndarray]] = {}
    for system in run.systems:
        of_system = predictions[system.name, 0]
        scores[system.label] = of_system[split].scores
        if again := of_system.get(f"{split}_{RERANKED}"):
            scores[row_label(system.name, RERANKED, k=run.settings.candidates)] = again.scores
    return [
        read_ranking(one, {label: of_all[number] for label, of_all in scores.items()})
        for number, one in enumerate(run.of_split(split))
    ]


def rankings(run: AnswerRun, predictions: Predictions) -> Widget:
    """A browser of the test questions. Those where a joint system corrects or breaks pairwise's top answer
    (Table 4) also go to `changed/<system>.html`, which needs no kernel, at most ON_A_PAGE of them."""
    reads = read_rankings(run, predictions)
    for system in run.systems[1:]:
        changed = [read for read in reads if read.outcome(system.label, beside=PAIRWISE) in CHANGED]
        if changed:
            form = {"beside": PAIRWISE, "title": f"Where {system.label} changed the answer"}
            page = rankings_page(changed[:ON_A_PAGE], system=system.label, **form)
            runs.write_page(run.folder / "changed" / f"{system.name}.html", page)
    return RankingBrowser(reads, beside=PAIRWISE)


# Entry of the filter -> least and greatest number of candidates; a group of the MSPP paper has five.
_SIZES = {"up to 5": (1, 5), "6 to 10": (6, 10), "11 to 20": (11, 20), "more than 20": (21, math.inf)}


class RankingBrowser(Leafing):
    """Browser of questions whose candidates are ranked by a `system`, which is chosen in a list and compared
    with `beside`, the last in it. Filters: outcome and number of candidates; "repaired" passes questions
    whose first candidate is right by the system and wrong by `beside`, "broken" the opposite. All questions
    have scores of the same systems, `beside` among them."""

    def __init__(self, reads: Sequence[ReadRanking], *, beside: str) -> None:
        check_some(reads, "question")
        names = list(reads[0].scores)
        self._beside = beside
        options = [(visible(name), name) for name in sorted(names, key=lambda name: name == beside)]
        self.system = choices("system", options, "min(450px, 100%)", "56px")
        super().__init__(
            reads,
            noun="question",
            filters=self._filters(),
            text=lambda read: read.question,
            right=lambda read: read.right_on_top(self.system.value),
            html=lambda read: ranking_html(read, system=self.system.value, beside=beside),
            wide={"candidates": ("240px", "76px")},
        )
        self.children = [self.system, *self.children]
        self.system.observe(lambda change: self.choose_by(self._filters()), names="value")

    def _filters(self) -> Filters:
        system, beside = self.system.value, self._beside

        def became(outcome: str) -> Callable[[ReadRanking], bool]:
            return lambda read: read.outcome(system, beside=beside) == outcome

        def between(least: int, most: float) -> Callable[[ReadRanking], bool]:
            return lambda read: least <= len(read.candidates) <= most

        sizes = {entry: between(*bounds) for entry, bounds in _SIZES.items()}
        return {"answer": {outcome: became(outcome) for outcome in OUTCOMES.values()}, "candidates": sizes}
